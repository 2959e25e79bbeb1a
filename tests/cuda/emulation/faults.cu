#include "faults.h"

#include "backend/cuda/kernels/device.cuh"

namespace
{

constexpr int THREADS = 64;

__global__ void faulty(int fault, const float *data, int count, float *out)
{
	float *shared = reinterpret_cast<float *>(shared_start());
	int i = (int)threadIdx.x, lane = lane_index();
	float x = data[i], own[4] = {x, x, x, x};
	shared[i] = x;
	__syncthreads();
	switch (fault) {
	case FAULT_BEYOND_BLOCK: x += data[count + (i == 5 ? 0 : -1)]; break;
	case FAULT_HOST_MEMORY: x += out[0]; break;
	case FAULT_MISALIGNED: load_vector(data + 1, own); break;
	case FAULT_BEYOND_SHARED: shared[THREADS + (i == 63)] = x; break;
	case FAULT_OTHERS_VARIABLE: {
		/* The address of lane 0's array reaches the other lanes by a shuffle. */
		uint64_t address = (uint64_t)(uintptr_t)own;
		address = __shfl_sync(ALL_LANES, address, 0);
		x += *reinterpret_cast<volatile float *>((uintptr_t)address);
		break;
	}
	case FAULT_DIVERGENT_BARRIER:
		if (i < 32)
			__syncthreads();
		else
			barrier_sync(1, 64);
		break;
	case FAULT_TWO_BARRIERS:
		if (i < 32)
			__syncthreads();
		else
			__syncthreads();
		break;
	case FAULT_LANE_MISSING:
		if (lane != 7)
			x += __shfl_sync(ALL_LANES, x, 0);
		break;
	case FAULT_RACE_IN_WARP:
		shared[i] = x + 1;
		x += shared[i ^ 1];
		break;
	case FAULT_RACE_IN_BLOCK:
		shared[i] = x + 1;
		__syncwarp();
		x += shared[i ^ 32];
		break;
	case FAULT_RACE_OF_BLOCKS: out[i] = x; break;
	case FAULT_COPY_NOT_WAITED: copy_async16(shared + 4 * (i % 16), data + 4 * (i % 16), i < 16 ? 16 : 0); break;
	case FAULT_COPY_TOO_EARLY:
		if (i < 16)
			copy_async16(shared + 4 * i, data + 4 * i, 16);
		copy_commit();
		__syncthreads();
		x += shared[i];
		copy_wait<0>();
		break;
	default: break;
	}
	out[(size_t)blockIdx.x * THREADS + i] = x + own[1];
}

} // namespace

extern "C" cudaError_t fault_launch(cudaStream_t stream, enum fault fault, const float *data, int count, float *out, int blocks)
{
	return launch(faulty, (unsigned)blocks, THREADS, THREADS * sizeof(float), stream, (int)fault, data, count, out);
}
