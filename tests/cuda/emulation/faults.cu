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
		/* Addresses of lane 0's array reach the others by a shuffle. */
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

/* Operands through shared memory: a by rows, b transposed by ldmatrix. */
template <typename T> __global__ void one_mma(const uint16_t *a, const uint16_t *b, float *c)
{
	uint16_t *sa = reinterpret_cast<uint16_t *>(shared_start()), *sb = sa + 16 * 16;
	int lane = lane_index(), group = lane / 4, member = lane % 4;
	for (int i = lane; i < 16 * 16; i += WARP)
		sa[i] = a[i];
	for (int i = lane; i < 16 * 8; i += WARP)
		sb[i] = b[i];
	__syncwarp();
	uint32_t fa[4], fb[2];
	/* Matrices of a: rows 0-7 and 8-15 of the first eight columns, then of the second. */
	load_matrices4(fa, sa + (lane % 16) * 16 + lane / 16 * 8);
	load_matrices2_transposed(fb, sb + (lane % 16) * 8);
	float fc[4];
	for (int i = 0; i < 4; i++)
		fc[i] = c[(group + 8 * (i / 2)) * 8 + 2 * member + i % 2];
	mma16<T>(fc, fa, fb);
	for (int i = 0; i < 4; i++)
		c[(group + 8 * (i / 2)) * 8 + 2 * member + i % 2] = fc[i];
}

__global__ void one_mma_tf32(const float *a, const float *b, float *c)
{
	int lane = lane_index(), group = lane / 4, member = lane % 4;
	uint32_t fa[4], fb[2];
	for (int i = 0; i < 4; i++)
		fa[i] = __float_as_uint(a[(group + 8 * (i % 2)) * 8 + member + 4 * (i / 2)]);
	for (int i = 0; i < 2; i++)
		fb[i] = __float_as_uint(b[(member + 4 * i) * 8 + group]);
	float fc[4];
	for (int i = 0; i < 4; i++)
		fc[i] = c[(group + 8 * (i / 2)) * 8 + 2 * member + i % 2];
	mma8_tf32(fc, fa, fb);
	for (int i = 0; i < 4; i++)
		c[(group + 8 * (i / 2)) * 8 + 2 * member + i % 2] = fc[i];
}

} // namespace

extern "C" cudaError_t fault_launch(cudaStream_t stream, enum fault fault, const float *data, int count, float *out, int blocks)
{
	return launch(faulty, (unsigned)blocks, THREADS, THREADS * sizeof(float), stream, (int)fault, data, count, out);
}

extern "C" cudaError_t fault_mma(cudaStream_t stream, int half, const unsigned short *a, const unsigned short *b, float *c)
{
	return launch(half ? one_mma<f16> : one_mma<bf16>, 1, WARP, (16 * 16 + 16 * 8) * sizeof(uint16_t), stream, a, b, c);
}

extern "C" cudaError_t fault_mma_tf32(cudaStream_t stream, const float *a, const float *b, float *c)
{
	return launch(one_mma_tf32, 1, WARP, 0, stream, a, b, c);
}
