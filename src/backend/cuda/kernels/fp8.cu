/* Rounds matrices to FP8 (backend/fp8.h), as rows and transposed: products in FP8 need the summed dimension to be contiguous
 * in both operands. Three passes: the largest magnitude (unless the matrix's producer has recorded it), the scale, the
 * rounding. GELU and its derivative need one pass: their scale is known in advance. */
#include "backend/cuda/kernels/fp8_tile.cuh"

namespace
{

constexpr int THREADS = 256, WARPS = THREADS / WARP;
constexpr unsigned MOST_PARTS = 1024; /* maximum number of blocks that share a matrix */
constexpr int TILE = 64, PITCH = TILE + FP8_PAD;
/* A thread's blocks of a tile's rows are ROW_STEP rows apart. */
constexpr int ROW_STEP = THREADS / (TILE / BLOCK);

/* A warp has a row at a time. Reads backwards from the end, which the producer has left in the cache, to the beginning, where
 * rounding starts. */
template <typename T> __global__ void __launch_bounds__(THREADS) take_largest(struct kernel_fp8 a)
{
	const struct kernel_fp8_matrix &m = a.matrix[blockIdx.y];
	if (m.known)
		return;
	const T *from = static_cast<const T *>(m.from);
	unsigned number = blockIdx.x * WARPS + threadIdx.x / WARP;
	uint32_t most = 0, longest = 0;
	for (int64_t row = m.rows - 1 - number; row >= 0; row -= (int64_t)gridDim.x * WARPS) {
		float squares = 0;
		for (int64_t i = lane_index() * BLOCK; i < m.columns; i += WARP * BLOCK) { /* columns are a multiple of 16 */
			float v[BLOCK];
			load_vector(from + row * m.columns + i, v);
#pragma unroll
			for (int j = 0; j < BLOCK; j++) {
				most = max(most, __float_as_uint(v[j]) & 0x7fffffffu);
				squares += v[j] * v[j];
			}
		}
		if (m.sizes != nullptr)
			longest = max(longest, __float_as_uint(warp_sum(squares)) & 0x7fffffffu);
	}
	note_largest(m.largest, number, most);
	if (m.sizes != nullptr && lane_index() == 0)
		atomicMax(&m.sizes->squares, longest);
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
	if (threadIdx.x == 0 && m.sizes != nullptr)
		*m.sizes = {__uint_as_float(most), sqrtf(__uint_as_float(m.sizes->squares)), 0};
}

/* A thread's chunk of a column of the tile at (first_row, first_column): four adjacent threads write 64 bytes. */
DEVICE void put_columns(const unsigned char *tile, int64_t first_row, int64_t first_column, int64_t padded, int64_t columns,
			unsigned char *out)
{
	int column = (int)threadIdx.x / (TILE / FP8_CHUNK), chunk = (int)threadIdx.x % (TILE / FP8_CHUNK) * FP8_CHUNK;
	if (first_column + column < columns && first_row + chunk < padded)
		fp8_put_column(tile + chunk * PITCH + column, PITCH, out + (first_column + column) * padded + first_row + chunk);
}
static_assert(THREADS == TILE * TILE / FP8_CHUNK, "a chunk a thread");

/* blockIdx: tile of columns, tile of rows, matrix. Rows are written up to the next multiple of 16, with zeros beyond the
 * matrix. */
template <typename T> __global__ void __launch_bounds__(THREADS) round_tiles(struct kernel_fp8 a)
{
	unsigned char *tile = shared_start();
	const struct kernel_fp8_matrix &m = a.matrix[blockIdx.z];
	int64_t first_row = (int64_t)blockIdx.y * TILE, first_column = (int64_t)blockIdx.x * TILE;
	int64_t padded = fp8_padded(m.rows);
	if (first_row >= padded || first_column >= m.columns || (m.rows_out == nullptr && m.columns_out == nullptr))
		return;
	float scale = m.scale->scale;
	int block = (int)threadIdx.x % (TILE / BLOCK) * BLOCK;
	for (int row = (int)threadIdx.x / (TILE / BLOCK); row < TILE; row += ROW_STEP) {
		int64_t at = first_row + row, column = first_column + block;
		if (at >= padded || column >= m.columns)
			continue;
		float v[BLOCK] = {};
		if (at < m.rows)
			load_vector(static_cast<const T *>(m.from) + at * m.columns + column, v);
		fp8_put_row(m.format, scale, v, tile + row * PITCH + block,
			    m.rows_out != nullptr ? m.rows_out + at * m.columns + column : nullptr);
	}
	if (m.columns_out == nullptr)
		return;
	__syncthreads();
	put_columns(tile, first_row, first_column, padded, m.columns, m.columns_out);
}

/* blockIdx: tile of columns, part of the rows, whose tiles the block takes in turn. */
template <enum activation FORM, bool BACKWARD> __global__ void __launch_bounds__(THREADS) gelu_tiles(struct kernel_fp8_gelu a)
{
	constexpr int STEPS = TILE / ROW_STEP;
	unsigned char *tile = shared_start();
	float *sums = reinterpret_cast<float *>(shared_start()); /* (ROW_STEP, TILE), when the tiles are done */
	int64_t first_column = (int64_t)blockIdx.x * TILE, padded = fp8_padded(a.rows);
	float scale = fp8_output_scale(a.y), sum[BLOCK] = {};
	int block = (int)threadIdx.x % (TILE / BLOCK) * BLOCK, own = (int)threadIdx.x / (TILE / BLOCK);
	int64_t column = first_column + block;
	for (int64_t first_row = (int64_t)blockIdx.y * TILE; first_row < padded; first_row += (int64_t)gridDim.y * TILE) {
		raw_block<bf16> pre[STEPS] = {}, x[STEPS] = {};
#pragma unroll
		for (int i = 0; i < STEPS; i++) {
			int64_t at = first_row + own + i * ROW_STEP;
			if (at >= a.rows || column >= a.columns)
				continue;
			pre[i] = load_raw<true>(static_cast<const bf16 *>(a.pre) + at * a.columns, (int)column, (int)a.columns);
			if (BACKWARD)
				x[i] = load_raw<true>(static_cast<const bf16 *>(a.x) + at * a.columns, (int)column,
						      (int)a.columns);
		}
#pragma unroll
		for (int i = 0; i < STEPS; i++) {
			int64_t at = first_row + own + i * ROW_STEP;
			float v[BLOCK], other[BLOCK];
			unpack_block(pre[i], v);
			unpack_block(x[i], other);
#pragma unroll
			for (int j = 0; j < BLOCK; j++) /* zeros, which stand for rows beyond the matrix, stay zeros */
				v[j] = BACKWARD ? other[j] * gelu_derivative<bf16>(FORM, v[j]) : gelu<bf16>(FORM, v[j]);
			unpack_block(pack_block<bf16>(v), v);
#pragma unroll
			for (int j = 0; j < BLOCK; j++)
				sum[j] += v[j];
			if (at < padded && column < a.columns)
				fp8_put_row(a.y.format, scale, v, tile + (own + i * ROW_STEP) * PITCH + block,
					    a.y.rows + at * a.columns + column);
		}
		__syncthreads();
		put_columns(tile, first_row, first_column, padded, a.columns, a.y.columns);
		__syncthreads();
	}
	if (!BACKWARD || a.parts == nullptr)
		return;
	store_vector(sums + own * TILE + block, sum);
	__syncthreads();
	if (threadIdx.x >= TILE || first_column + threadIdx.x >= a.columns)
		return;
	float total = 0;
	for (int i = 0; i < ROW_STEP; i++)
		total += sums[i * TILE + threadIdx.x];
	a.parts[(int64_t)blockIdx.y * a.columns + first_column + threadIdx.x] = total;
}

} // namespace

extern "C" cudaError_t kernel_fp8_largest(cudaStream_t stream, const struct kernel_fp8 *a)
{
	int64_t rows = 0;
	for (int i = 0; i < a->count; i++) {
		const struct kernel_fp8_matrix *m = &a->matrix[i];
		rows = !m->known && m->rows > rows ? m->rows : rows;
	}
	unsigned parts = blocks_of(rows, WARPS);
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

extern "C" cudaError_t kernel_fp8_gelu(cudaStream_t stream, const struct kernel_fp8_gelu *a)
{
	dim3 grid(blocks_of(a->columns, TILE), a->x != nullptr ? (unsigned)a->part_count : blocks_of(a->rows, TILE));
	size_t shared = a->x != nullptr ? ROW_STEP * TILE * sizeof(float) : TILE * PITCH;
	return for_activation(a->activation, [&](auto form) {
		constexpr enum activation FORM = decltype(form)::value;
		return launch(a->x != nullptr ? gelu_tiles<FORM, true> : gelu_tiles<FORM, false>, grid, THREADS, shared, stream,
			      *a);
	});
}
