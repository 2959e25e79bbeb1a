/* Runs single matrix instructions on registers that a test has filled. */
#include "fragments.h"

#include "backend/cuda/kernels/wgmma.cuh"

namespace
{

__global__ void one_mma(int type, const uint32_t *a, const uint32_t *b, float *c)
{
	int lane = lane_index();
	uint32_t fa[4], fb[2];
	float fc[4];
	for (int i = 0; i < 4; i++)
		fa[i] = a[4 * lane + i];
	for (int i = 0; i < 2; i++)
		fb[i] = b[2 * lane + i];
	for (int i = 0; i < 4; i++)
		fc[i] = c[4 * lane + i];
	if (type == FRAGMENT_BF16)
		mma16<bf16>(fc, fa, fb);
	else if (type == FRAGMENT_F16)
		mma16<f16>(fc, fa, fb);
	else
		mma8_tf32(fc, fa, fb);
	for (int i = 0; i < 4; i++)
		c[4 * lane + i] = fc[i];
}

__global__ void one_load(int count, int transposed, const uint16_t *matrices, uint32_t *out)
{
	uint16_t *shared = reinterpret_cast<uint16_t *>(shared_start());
	int lane = lane_index();
	uint32_t registers[4];
	for (int i = lane; i < count * 64; i += WARP)
		shared[i] = matrices[i];
	__syncwarp();
	const uint16_t *row = shared + lane % (8 * count) * 8;
	if (count == 4 && transposed)
		load_matrices4_transposed(registers, row);
	else if (count == 4)
		load_matrices4(registers, row);
	else if (transposed)
		load_matrices2_transposed(registers, row);
	else
		load_matrices2(registers, row);
	for (int i = 0; i < count; i++)
		out[count * lane + i] = registers[i];
}

template <typename E, enum tile_rows A, enum tile_rows B>
DEVICE void multiply_last(float (&c)[8][4], const fragment_product &p, uint32_t a, uint32_t b)
{
	float half[4][4] = {};
	int skipped = 64 - p.columns;
	a = A == ROWS_ARE_SUMMED ? tile_at(a, 48, 0) : tile_at(a, 0, 6);
	b = B == ROWS_ARE_SUMMED ? tile_at(b, 48, skipped / 8) : tile_at(b, skipped, 6);
	group_fence();
	if (p.a_registers) {
		uint32_t fa[4];
		for (int i = 0; i < 4; i++)
			fa[i] = p.a_registers[4 * threadIdx.x + i];
		group_multiply<E, B>(c, fa, b);
	} else if (p.columns == 64) {
		group_multiply<E, A, B>(c, a, b, false);
	} else {
		group_multiply<E, A, B>(half, a, b, false);
	}
	group_commit();
	group_wait<0>();
	for (int i = 0; i < 16 && p.columns == 32; i++)
		c[i / 4][i % 4] = half[i / 4][i % 4];
}

template <typename E> DEVICE void multiply_tiles(float (&c)[8][4], const fragment_product &p, uint32_t a, uint32_t b)
{
	if (p.a_summed && p.b_summed)
		multiply_last<E, ROWS_ARE_SUMMED, ROWS_ARE_SUMMED>(c, p, a, b);
	else if (p.a_summed)
		multiply_last<E, ROWS_ARE_SUMMED, ROWS_ARE_KEPT>(c, p, a, b);
	else if (p.b_summed)
		multiply_last<E, ROWS_ARE_KEPT, ROWS_ARE_SUMMED>(c, p, a, b);
	else
		multiply_last<E, ROWS_ARE_KEPT, ROWS_ARE_KEPT>(c, p, a, b);
}

__global__ void one_group_multiply(fragment_product p)
{
	constexpr int TILE = 64 * 64;
	uint16_t *shared = reinterpret_cast<uint16_t *>(shared_start());
	float c[8][4] = {};
	for (int i = (int)threadIdx.x; i < TILE; i += WARPGROUP) {
		shared[i] = p.b[i];
		shared[TILE + i] = p.a[i];
	}
	fence_shared();
	__syncthreads();
	uint32_t a = group_tile(shared + TILE), b = group_tile(shared);
	if (threadIdx.x == 0)
		*p.out_descriptor = tile_descriptor(b);
	if (p.type == FRAGMENT_BF16)
		multiply_tiles<bf16>(c, p, a, b);
	else
		multiply_tiles<f16>(c, p, a, b);
	for (int i = 0; i < p.columns / 2; i++)
		p.c[p.columns / 2 * threadIdx.x + i] = c[i / 4][i % 4];
}

} // namespace

extern "C" cudaError_t fragment_mma(cudaStream_t stream, enum fragment_type type, const uint32_t *a, const uint32_t *b, float *c)
{
	return launch(one_mma, 1, WARP, 0, stream, (int)type, a, b, c);
}

extern "C" cudaError_t fragment_load(cudaStream_t stream, int count, int transposed, const uint16_t *matrices, uint32_t *out)
{
	return launch(one_load, 1, WARP, (size_t)count * 64 * sizeof(uint16_t), stream, count, transposed, matrices, out);
}

extern "C" cudaError_t fragment_group_multiply(cudaStream_t stream, const struct fragment_product *product)
{
	return launch(one_group_multiply, 1, WARPGROUP, 2 * 64 * 64 * sizeof(uint16_t), stream, *product);
}
