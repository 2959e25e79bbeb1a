/* Rounds matrices to FP8 (backend/fp8.h), as rows and transposed: products in FP8 need the summed dimension to be contiguous
 * in both operands. Three passes: the largest magnitude (unless the matrix's producer has recorded it), the scale, the
 * rounding. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

constexpr int THREADS = 256, WARPS = THREADS / WARP;
constexpr unsigned MOST_PARTS = 1024; /* maximum number of blocks that share a matrix */
/* A tile's bytes in shared memory: rows of 68 bytes, so that accesses along a column, and to rows 16 apart, have few bank
 * conflicts. */
constexpr int TILE = 64, PITCH = TILE + 4, CHUNK = 16;

/* Reads backwards from the end, which the producer has left in the cache, to the beginning, where rounding starts. */
template <typename T> __global__ void __launch_bounds__(THREADS) take_largest(struct kernel_fp8 a)
{
	const struct kernel_fp8_matrix &m = a.matrix[blockIdx.y];
	if (m.known)
		return;
	const T *from = static_cast<const T *>(m.from);
	int64_t elements = m.rows * m.columns; /* columns are a multiple of 16 */
	uint32_t most = 0;
	for (int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * BLOCK; i < elements;
	     i += (int64_t)gridDim.x * THREADS * BLOCK) {
		float v[BLOCK];
		load_vector(from + (elements - BLOCK - i), v);
#pragma unroll
		for (int j = 0; j < BLOCK; j++)
			most = max(most, __float_as_uint(v[j]) & 0x7fffffffu);
	}
	note_largest(m.largest, blockIdx.x * WARPS + threadIdx.x / WARP, most);
}

/* One warp per matrix. */
__global__ void __launch_bounds__(WARP) scales(struct kernel_fp8 a)
{
	const struct kernel_fp8_matrix &m = a.matrix[blockIdx.x];
	uint32_t most = 0;
	for (int i = lane_index(); i < LARGEST_SLOTS; i += WARP) {
		uint32_t *slot = m.largest + i * LARGEST_STRIDE;
		most = *slot > most ? *slot : most;
		*slot = 0;
	}
	most = warp_max(most);
	if (threadIdx.x == 0)
		*m.scale = fp8_scale_of(m.format, most);
}

/* blockIdx: tile of columns, tile of rows, matrix. Rows are written up to the next multiple of 16, with zeros beyond the
 * matrix. */
template <typename T> __global__ void __launch_bounds__(THREADS) round_tiles(struct kernel_fp8 a)
{
	unsigned char *tile = shared_start();
	const struct kernel_fp8_matrix &m = a.matrix[blockIdx.z];
	int64_t first_row = (int64_t)blockIdx.y * TILE, first_column = (int64_t)blockIdx.x * TILE;
	int64_t padded = (m.rows + CHUNK - 1) / CHUNK * CHUNK;
	if (first_row >= padded || first_column >= m.columns)
		return;
	float scale = m.scale->scale;
	int block = (int)threadIdx.x % (TILE / BLOCK) * BLOCK;
	for (int row = (int)threadIdx.x / (TILE / BLOCK); row < TILE; row += THREADS / (TILE / BLOCK)) {
		int64_t at = first_row + row, column = first_column + block;
		if (at >= padded || column >= m.columns)
			continue;
		float v[BLOCK] = {};
		if (at < m.rows)
			load_vector(static_cast<const T *>(m.from) + at * m.columns + column, v);
		uint2 bytes = {pack4_fp8(m.format, v[0] * scale, v[1] * scale, v[2] * scale, v[3] * scale),
			       pack4_fp8(m.format, v[4] * scale, v[5] * scale, v[6] * scale, v[7] * scale)};
		if (m.rows_out != nullptr)
			*reinterpret_cast<uint2 *>(m.rows_out + at * m.columns + column) = bytes;
		uint32_t *place = reinterpret_cast<uint32_t *>(tile + row * PITCH + block);
		place[0] = bytes.x;
		place[1] = bytes.y;
	}
	if (m.columns_out == nullptr)
		return;
	__syncthreads();
	/* Four adjacent threads write 64 bytes of a column. */
	int column = (int)threadIdx.x / (TILE / CHUNK), chunk = (int)threadIdx.x % (TILE / CHUNK) * CHUNK;
	if (first_column + column >= m.columns || first_row + chunk >= padded)
		return;
	uint32_t words[CHUNK / 4];
#pragma unroll
	for (int i = 0; i < CHUNK / 4; i++) {
		const unsigned char *at = tile + (chunk + 4 * i) * PITCH + column;
		words[i] = at[0] | (uint32_t)at[PITCH] << 8 | (uint32_t)at[2 * PITCH] << 16 | (uint32_t)at[3 * PITCH] << 24;
	}
	store16(m.columns_out + (first_column + column) * padded + first_row + chunk,
		uint4{words[0], words[1], words[2], words[3]});
}
static_assert(THREADS == TILE * TILE / CHUNK, "a chunk a thread");

} // namespace

extern "C" cudaError_t kernel_fp8_largest(cudaStream_t stream, const struct kernel_fp8 *a)
{
	int64_t elements = 0;
	for (int i = 0; i < a->count; i++) {
		const struct kernel_fp8_matrix *m = &a->matrix[i];
		elements = !m->known && m->rows * m->columns > elements ? m->rows * m->columns : elements;
	}
	unsigned parts = blocks_of(elements, THREADS * BLOCK);
	dim3 grid(parts < MOST_PARTS ? parts : MOST_PARTS, (unsigned)a->count);
	return for_dtype(a->dtype, [&](auto type) { return launch(take_largest<decltype(type)>, grid, THREADS, 0, stream, *a); });
}

extern "C" cudaError_t kernel_fp8(cudaStream_t stream, const struct kernel_fp8 *a)
{
	int64_t rows = 0, columns = 0;
	for (int i = 0; i < a->count; i++) {
		const struct kernel_fp8_matrix *m = &a->matrix[i];
		rows = m->rows > rows ? m->rows : rows;
		columns = m->columns > columns ? m->columns : columns;
	}
	if (rows == 0 || columns == 0)
		return cudaSuccess;
	cudaError_t error = kernel_fp8_largest(stream, a);
	if (error == cudaSuccess)
		error = launch(scales, (unsigned)a->count, WARP, 0, stream, *a);
	if (error != cudaSuccess)
		return error;
	return for_dtype(a->dtype, [&](auto type) {
		dim3 grid(blocks_of(columns, TILE), blocks_of(rows, TILE), (unsigned)a->count);
		return launch(round_tiles<decltype(type)>, grid, THREADS, TILE * PITCH, stream, *a);
	});
}
