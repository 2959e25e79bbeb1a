/* Linear layers of few rows, where a product is a stream of weights: y = act(x w' + bias), or, in two kernels, y = LN(x w' +
 * bias + residual). A block has a tile of y and (before a norm) a part of the depth, and keeps STAGES pieces of x and w in
 * flight. The parts of a sum are stored in fp32 and added in order by the norm, which has to read its row anyway.
 *
 * With `early`, a kernel starts while the one before it still runs, and loads weights until that one has ended. */
#include "backend/cuda/kernels/attention.cuh"

namespace
{

/* Columns of x and w per piece; pieces in flight. */
constexpr int DEPTH = 64, STAGES = 6;

/* Rows and columns of y per warp and per block. */
template <int ROWS, int COLUMNS> struct few_tile {
	static constexpr int rows = ROWS, columns = COLUMNS, warp_rows = ROWS * COLUMNS == 64 * 64 ? 32 : 16, warp_columns = 16,
			     across = COLUMNS / warp_columns, threads = ROWS / warp_rows * across * WARP,
			     x_bytes = ROWS * tile_row<DEPTH>::bytes, w_bytes = COLUMNS * tile_row<DEPTH>::bytes,
			     shared = STAGES * (x_bytes + w_bytes);
};

template <typename T> DEVICE float activate(enum activation activation, float x)
{
	return activation == ACTIVATION_NONE ? x : activation == ACTIVATION_TANH ? tanhf(x) : gelu<T>(activation, x);
}

/* Two adjacent elements of y, or of this block's part of their sums. */
template <typename T> DEVICE void put_pair(const struct kernel_few_rows &a, int row, int column, float left, float right)
{
	int64_t at = (int64_t)row * a.columns + column;
	if (a.parts != nullptr) {
		at += (int64_t)blockIdx.z * a.rows * a.columns;
		*reinterpret_cast<float2 *>(a.parts + at) = float2{left, right};
		return;
	}
	if (a.bias != nullptr)
		left += a.bias[column], right += a.bias[column + 1];
	*reinterpret_cast<uint32_t *>(static_cast<T *>(a.y) + at) =
		pack2<T>(activate<T>(a.activation, left), activate<T>(a.activation, right));
}

template <typename T, typename TILE> __global__ void __launch_bounds__(TILE::threads) few_rows(struct kernel_few_rows a)
{
	constexpr int DOWN = TILE::warp_rows / 16;
	int row = (int)blockIdx.y * TILE::rows, column = (int)blockIdx.x * TILE::columns, pieces = a.depth / DEPTH;
	int piece = (int)part_begin(pieces, gridDim.z, blockIdx.z), end = (int)part_begin(pieces, gridDim.z, blockIdx.z + 1);
	char *x_tiles = reinterpret_cast<char *>(shared_start()), *w_tiles = x_tiles + STAGES * TILE::x_bytes;
	tile_source<T, DEPTH, TILE::threads> x(static_cast<const T *>(a.x) + (int64_t)row * a.depth + piece * DEPTH, a.depth);
	tile_source<T, DEPTH, TILE::threads> w(static_cast<const T *>(a.w) + (int64_t)column * a.depth + piece * DEPTH, a.depth);
	int x_rows = a.rows - row, w_rows = a.columns - column, count = end - piece;
	auto load_w = [&](int i) {
		if (i < count)
			w.template load<TILE::columns>(w_tiles + i % STAGES * TILE::w_bytes, 0, w_rows);
		w.from += DEPTH;
	};
	auto load_x = [&](int i) {
		if (i < count)
			x.template load<TILE::rows>(x_tiles + i % STAGES * TILE::x_bytes, 0, x_rows);
		x.from += DEPTH;
		copy_commit();
	};
	start_next();
#pragma unroll
	for (int i = 0; i < STAGES - 1; i++)
		load_w(i);
	wait_for_previous();
#pragma unroll
	for (int i = 0; i < STAGES - 1; i++)
		load_x(i);

	int warp = (int)threadIdx.x / WARP, down = warp / TILE::across * TILE::warp_rows,
	    across = warp % TILE::across * TILE::warp_columns;
	const lane_places<DEPTH> rows = row_places<DEPTH>(down, 0), columns = column_places<DEPTH>(across, 0);
	float sums[DOWN][2][4] = {};
#pragma unroll 1
	for (int i = 0; i < count; i++) {
		copy_wait<STAGES - 2>();
		__syncthreads();
		load_w(i + STAGES - 1);
		load_x(i + STAGES - 1);
		const char *x_tile = x_tiles + i % STAGES * TILE::x_bytes, *w_tile = w_tiles + i % STAGES * TILE::w_bytes;
#pragma unroll
		for (int k = 0; k < DEPTH / 16; k++) {
			uint32_t left[4], right[4];
			load_matrices4(right, w_tile + columns.at(0, 2 * k));
#pragma unroll
			for (int m = 0; m < DOWN; m++) {
				load_matrices4(left, x_tile + rows.at(16 * m, 2 * k));
				multiply<T>(sums[m][0], sums[m][1], left, right);
			}
		}
	}
	copy_wait<0>();
#pragma unroll
	for (int m = 0; m < DOWN; m++)
#pragma unroll
		for (int n = 0; n < 2; n++)
#pragma unroll
			for (int half = 0; half < 2; half++) {
				int own = row + down + 16 * m + 8 * half + (lane_index() >> 2),
				    first = column + across + 8 * n + 2 * (lane_index() & 3);
				if (own < a.rows && first < a.columns)
					put_pair<T>(a, own, first, sums[m][n][2 * half], sums[m][n][2 * half + 1]);
			}
}

/* A block has a row, a thread eight columns of it. */
template <typename T> __global__ void __launch_bounds__(NORM_WIDTH_LIMIT / BLOCK) few_norm(struct kernel_few_norm a)
{
	float *scratch = reinterpret_cast<float *>(shared_start()); /* (2, WARP) */
	int columns = a.columns, first = (int)threadIdx.x * BLOCK;
	bool own = first < columns;
	int64_t at = (int64_t)blockIdx.x * columns + first, stride = (int64_t)gridDim.x * columns;
	float v[BLOCK] = {}, gamma[BLOCK] = {}, beta[BLOCK] = {}, term[BLOCK], total = 0, squares = 0;
	start_next();
	if (own) {
		load_vector(a.gamma + first, gamma);
		if (a.bias != nullptr)
			load_vector(a.bias + first, v);
		if (a.beta != nullptr)
			load_vector(a.beta + first, beta);
	}
	wait_for_previous();
	if (own) {
		raw_block<T> residual = {};
		if (a.residual != nullptr)
			residual = load_raw<true>(static_cast<const T *>(a.residual) + at, 0, columns);
#pragma unroll 4
		for (int part = 0; part < a.part_count; part++) {
			load_vector(a.parts + part * stride + at, term);
#pragma unroll
			for (int i = 0; i < BLOCK; i++)
				v[i] += term[i];
		}
		unpack_block(residual, term);
#pragma unroll
		for (int i = 0; i < BLOCK; i++) {
			v[i] = rounded<T>(v[i] + term[i]); /* as it is stored where the sum is wanted */
			total += v[i];
		}
		if (a.sum != nullptr)
			store_vector(static_cast<T *>(a.sum) + at, v);
	}
	float mean = block_sum(total, scratch) / (float)columns;
	if (own) {
#pragma unroll
		for (int i = 0; i < BLOCK; i++)
			squares += (v[i] - mean) * (v[i] - mean);
	}
	float rstd = 1 / sqrtf(block_sum(squares, scratch + WARP) / (float)columns + a.epsilon);
	if (own) {
#pragma unroll
		for (int i = 0; i < BLOCK; i++)
			v[i] = gamma[i] * ((v[i] - mean) * rstd) + beta[i];
		store_vector(static_cast<T *>(a.y) + at, v);
	}
	if (threadIdx.x == 0 && a.mean != nullptr) {
		a.mean[blockIdx.x] = mean;
		a.rstd[blockIdx.x] = rstd;
	}
}

/* Tiles from which on larger ones are better, since each is read once for fewer others; and blocks that sums are divided among.
 * Both are the same on every GPU, as the bits must be. */
constexpr int TILES = 64, BLOCKS = 128;

template <typename F> cudaError_t for_tile(bool in_parts, int rows, int columns, F body)
{
	if (rows <= 32)
		return body(few_tile<32, 32>());
	if (in_parts || (int)(blocks_of(rows, 64) * blocks_of(columns, 64)) >= TILES)
		return body(few_tile<64, 64>());
	return body(few_tile<64, 32>());
}

} // namespace

extern "C" int kernel_few_parts(int rows, int columns, int depth)
{
	int parts = 1;
	for_tile(true, rows, columns, [&](auto tile) {
		using TILE = decltype(tile);
		int tiles = (int)(blocks_of(rows, TILE::rows) * blocks_of(columns, TILE::columns)), pieces = depth / DEPTH;
		parts = max(1, min(BLOCKS / tiles, pieces / 2));
		return cudaSuccess;
	});
	return parts;
}

extern "C" bool kernel_few_takes(enum dtype dtype, int64_t rows, int64_t columns, int64_t depth, size_t shared_limit)
{
	return (dtype == DTYPE_BF16 || dtype == DTYPE_F16) && rows > 0 && rows <= FEW_ROWS_LIMIT && columns % BLOCK == 0 &&
	       depth % DEPTH == 0 && depth > 0 && columns <= INT32_MAX / FEW_ROWS_LIMIT && depth <= INT32_MAX / FEW_ROWS_LIMIT &&
	       few_tile<64, 64>::shared <= shared_limit;
}

extern "C" cudaError_t kernel_few_rows(cudaStream_t stream, const struct kernel_few_rows *a)
{
	return for_tile(a->parts != nullptr, a->rows, a->columns, [&](auto tile) {
		using TILE = decltype(tile);
		auto kernel = a->dtype == DTYPE_BF16 ? few_rows<bf16, TILE> : few_rows<f16, TILE>;
		cudaError_t error = allow_shared(kernel, TILE::shared);
		dim3 grid(blocks_of(a->columns, TILE::columns), blocks_of(a->rows, TILE::rows), (unsigned)a->part_count);
		return error != cudaSuccess ? error
					    : launch_early(a->early, kernel, grid, TILE::threads, TILE::shared, stream, *a);
	});
}

extern "C" cudaError_t kernel_few_norm(cudaStream_t stream, const struct kernel_few_norm *a)
{
	auto kernel = a->dtype == DTYPE_BF16 ? few_norm<bf16> : few_norm<f16>;
	unsigned threads = blocks_of(a->columns, BLOCK * WARP) * WARP;
	return launch_early(a->early, kernel, (unsigned)a->rows, threads, 2 * WARP * sizeof(float), stream, *a);
}
