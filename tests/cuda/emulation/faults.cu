/* Kernels with one error each, which the emulation must notice. */
#include "faults.h"

#include "backend/cuda/kernels/wgmma.cuh"

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

/* Adds nothing to what the kernel ahead has written. */
__global__ void faulty_early(int fault, const float *data, float *out)
{
	float *own = out + (size_t)blockIdx.x * THREADS + threadIdx.x, x = data[threadIdx.x];
	start_next();
	if (fault == FAULT_EARLY_READ)
		x += *own;
	if (fault == FAULT_EARLY_WRITE)
		*own = x;
	if (fault != FAULT_EARLY_NOT_WAITED || threadIdx.x < WARP)
		wait_for_previous();
	*own += x - data[threadIdx.x];
}

/* 64 times a tile of ones. */
__global__ void faulty_product(int fault, const float *data, float *out)
{
	constexpr int TILE = 64 * 64;
	uint16_t *shared = reinterpret_cast<uint16_t *>(shared_start());
	int thread = (int)threadIdx.x;
	float sums[8][4], other[8][4];
	for (int i = thread; i < 2 * TILE; i += WARPGROUP)
		shared[i] = 0x3c00; /* 1 as f16 */
	if (fault != FAULT_PRODUCT_UNFENCED)
		fence_shared();
	if (fault != FAULT_PRODUCT_NO_BARRIER)
		__syncthreads();
	uint32_t tile = group_tile(shared + (fault == FAULT_PRODUCT_MISPLACED ? 64 : 0));
	if (fault != FAULT_PRODUCT_REGISTERS)
		group_fence();
	if (fault != FAULT_PRODUCT_WARP_MISSING || thread >= 32) {
		int first = fault == FAULT_PRODUCT_DIFFERENT && thread < 32 ? 2 : 0;
		for (int i = 0; i < 4; i++)
			group_multiply<f16, ROWS_ARE_KEPT, ROWS_ARE_KEPT>(sums, tile_at(tile, 0, 2 * i),
									  tile_at(tile, 0, 2 * i ^ first), i > 0);
		group_commit();
		group_multiply<f16, ROWS_ARE_KEPT, ROWS_ARE_SUMMED>(other, tile, tile, false);
		group_commit();
	}
	if (fault == FAULT_PRODUCT_SUMS)
		sums[1][1] = 0;
	float early = sums[1][1];
	if (fault == FAULT_PRODUCT_OVERWRITTEN) {
		__syncthreads();
		shared[thread] = 0;
	}
	if (fault != FAULT_PRODUCT_NOT_WAITED && (fault != FAULT_PRODUCT_WARP_MISSING || thread >= 32)) {
		group_wait<1>();
		group_wait<0>();
	}
	if (fault == FAULT_PRODUCT_RACE)
		shared[thread] = 0;
	float sum = fault == FAULT_PRODUCT_READ_EARLY ? early : sums[1][1];
	if (thread < THREADS)
		out[(size_t)blockIdx.x * THREADS + thread] = 2 * data[thread] + sum + 3 * other[7][3] - 112;
}

} // namespace

extern "C" cudaError_t fault_launch(cudaStream_t stream, enum fault fault, const float *data, int count, float *out, int blocks)
{
	if ((fault >= FAULT_EARLY_READ && fault <= FAULT_EARLY_NOT_WAITED) || fault == FAULT_EARLY_NONE) {
		launch(faulty, (unsigned)blocks, THREADS, THREADS * sizeof(float), stream, (int)FAULT_NONE, data, count, out);
		return launch_early(true, faulty_early, (unsigned)blocks, THREADS, 0, stream, (int)fault, data, out);
	}
	if (fault >= FAULT_PRODUCT_NOT_WAITED && fault != FAULT_COUNT)
		return launch(faulty_product, (unsigned)blocks, WARPGROUP, 2 * 64 * 64 * sizeof(uint16_t), stream, (int)fault,
			      data, out);
	return launch(faulty, (unsigned)blocks, THREADS, THREADS * sizeof(float), stream, (int)fault, data, count, out);
}
