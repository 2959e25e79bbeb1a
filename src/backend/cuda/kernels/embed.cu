/* Embeddings: the sum of three tables, normalized, with dropout; and the gradients of the tables, with rows added in a fixed
 * order. */
#include "backend/cuda/kernels/norm_row.cuh"

namespace
{

constexpr int WARPS = 4; /* per block, each with its own token */

template <typename T, int BLOCKS, bool ALIGNED>
__global__ void __launch_bounds__(WARPS *WARP) embed_fwd(struct kernel_embed_fwd a)
{
	int64_t t = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
	if (t >= a.tokens)
		return;
	int columns = (int)a.columns;
	int at = a.positions[t];
	const float *word = a.word + a.ids[t] * a.columns;
	const float *position = a.position == nullptr ? nullptr : a.position + at * a.columns;
	const float *type = a.type == nullptr ? nullptr : a.type + a.types[t] * a.columns;
	T *sum = static_cast<T *>(a.sum) + t * columns, *y = static_cast<T *>(a.y) + t * columns;
	uint64_t seed = a.dropout.threshold > 0 ? a.dropout.scalars->seed : 0;
	uint32_t sample = a.dropout.threshold > 0 ? a.dropout.samples[t] : 0;
	float v[BLOCKS][BLOCK], mean, rstd;
	uint32_t most = 0;
	/* Issue all loads of the word's row, the most distant in memory, before waiting for any of them. */
#pragma unroll
	for (int b = 0; b < BLOCKS; b++) {
#pragma unroll
		for (int i = 0; i < BLOCK; i++)
			v[b][i] = 0;
		if (norm_first(b) < columns)
			load_block<ALIGNED>(word, norm_first(b), columns, v[b]);
	}
#pragma unroll
	for (int b = 0; b < BLOCKS; b++) {
		int first = norm_first(b);
		if (first >= columns)
			continue;
		float p[BLOCK] = {}, s[BLOCK] = {};
		if (position != nullptr)
			load_block<ALIGNED>(position, first, columns, p);
		if (type != nullptr)
			load_block<ALIGNED>(type, first, columns, s);
#pragma unroll
		for (int i = 0; i < BLOCK; i++)
			v[b][i] += p[i] + s[i];
		raw_block<T> stored = pack_block<T>(v[b]);
		store_raw<ALIGNED>(sum, first, columns, stored);
		unpack_block(stored, v[b]); /* backward sees only the rounded value */
	}
	norm_statistics<BLOCKS, ALIGNED>(v, columns, a.epsilon, &mean, &rstd);
#pragma unroll
	for (int b = 0; b < BLOCKS; b++) {
		int first = norm_first(b);
		if (first >= columns)
			continue;
		norm_scale<ALIGNED>(v[b], first, columns, mean, rstd, a.gamma, a.beta);
		if (a.dropout.threshold > 0)
			drop_block(a.dropout, seed, first, at, sample, v[b]);
		store_block<ALIGNED>(y, first, columns, v[b]);
		if (has_largest<T> && a.largest != nullptr)
			most = larger_pairs(most, pack_block<T>(v[b]));
	}
	if (lane_index() == 0) {
		a.mean[t] = mean;
		a.rstd[t] = rstd;
	}
	if (has_largest<T> && a.largest != nullptr)
		note_pairs(a.largest, (unsigned)t, most);
}

/* ---- Words: tokens in order of their ids, divided into chunks ---- */

/* Chunks along x, blocks of eight columns along y. If all tokens of an id are in one chunk, they are added to its row at once.
 * Other ids leave one sum per chunk: in edges[chunk][0] for the id that continues from an earlier chunk, in edges[chunk][1]
 * for the id that begins in this chunk and continues beyond its end. */
template <typename T, bool ALIGNED> __global__ void word_chunks(struct kernel_word_gradient a)
{
	int columns = (int)a.columns, first = (int)(blockIdx.y * blockDim.x + threadIdx.x) * BLOCK;
	int64_t begin = (int64_t)blockIdx.x * WORD_CHUNK, end = begin + WORD_CHUNK < a.tokens ? begin + WORD_CHUNK : a.tokens;
	if (first >= columns)
		return;
	float *edges = a.edges + blockIdx.x * 2 * a.columns;
	bool inside = begin > 0 && a.ids[a.order[begin - 1]] == a.ids[a.order[begin]]; /* the id began in an earlier chunk */
	for (int64_t i = begin; i < end;) {
		int32_t id = a.ids[a.order[i]];
		float sum[BLOCK] = {}, row[BLOCK];
		do {
			load_block<ALIGNED>(static_cast<const T *>(a.dy) + a.order[i] * a.columns, first, columns, row);
#pragma unroll
			for (int j = 0; j < BLOCK; j++)
				sum[j] += row[j];
			i++;
		} while (i < end && a.ids[a.order[i]] == id);
		bool goes_on = i == end && end < a.tokens && a.ids[a.order[end]] == id;
		float *to = inside ? edges : goes_on ? edges + columns : a.gradient + id * a.columns;
		if (!inside && !goes_on) {
			load_block<ALIGNED>(to, first, columns, row);
#pragma unroll
			for (int j = 0; j < BLOCK; j++)
				sum[j] += row[j];
		}
		store_block<ALIGNED>(to, first, columns, sum);
		inside = false;
	}
}

/* Adds up the sums of an id that extends over several chunks: done by the chunk in which it begins. */
template <bool ALIGNED> __global__ void word_edges(struct kernel_word_gradient a)
{
	int columns = (int)a.columns, first = (int)(blockIdx.y * blockDim.x + threadIdx.x) * BLOCK;
	int64_t begin = (int64_t)blockIdx.x * WORD_CHUNK, end = begin + WORD_CHUNK;
	if (first >= columns || end >= a.tokens)
		return;
	int32_t id = a.ids[a.order[end - 1]];
	bool goes_on = a.ids[a.order[end]] == id;
	bool begins_before = begin > 0 && a.ids[a.order[begin - 1]] == id; /* the whole chunk is inside the id */
	if (!goes_on || begins_before)
		return;
	const float *edges = a.edges + blockIdx.x * 2 * a.columns;
	float *gradient = a.gradient + id * a.columns, sum[BLOCK], next[BLOCK];
	load_block<ALIGNED>(gradient, first, columns, sum);
	load_block<ALIGNED>(edges + columns, first, columns, next);
#pragma unroll
	for (int j = 0; j < BLOCK; j++)
		sum[j] += next[j];
	for (; end < a.tokens && a.ids[a.order[end]] == id; end += WORD_CHUNK) {
		edges += 2 * a.columns;
		load_block<ALIGNED>(edges, first, columns, next);
#pragma unroll
		for (int j = 0; j < BLOCK; j++)
			sum[j] += next[j];
	}
	store_block<ALIGNED>(gradient, first, columns, sum);
}

/* ---- Positions: the sequences, divided into parts ---- */

/* Positions along x, blocks of eight columns along y, parts of the sequences along z. */
template <typename T, bool ALIGNED> __global__ void position_parts(struct kernel_position_gradient a)
{
	int columns = (int)a.columns, first = (int)(blockIdx.y * blockDim.x + threadIdx.x) * BLOCK, position = (int)blockIdx.x;
	if (first >= columns)
		return;
	int each = (a.sequences + a.part_count - 1) / a.part_count, begin = (int)blockIdx.z * each;
	int end = begin + each < a.sequences ? begin + each : a.sequences;
	float sum[BLOCK] = {}, row[BLOCK];
	for (int b = begin; b < end; b++) {
		int64_t t = a.starts[b] + position;
		if (t >= a.starts[b + 1])
			continue;
		load_block<ALIGNED>(static_cast<const T *>(a.dy) + t * columns, first, columns, row);
#pragma unroll
		for (int j = 0; j < BLOCK; j++)
			sum[j] += row[j];
	}
	store_block<ALIGNED>(a.parts + ((int64_t)blockIdx.z * a.longest + position) * columns, first, columns, sum);
}

/* ---- Types: the tokens, divided into parts ---- */

/* Blocks of eight columns along x, parts of the tokens along y; each part has the sums of type 0, then, with two kinds,
 * those of type 1. */
template <typename T, bool ALIGNED> __global__ void type_parts(struct kernel_type_gradient a)
{
	int columns = (int)a.columns, first = (int)(blockIdx.x * blockDim.x + threadIdx.x) * BLOCK;
	if (first >= columns)
		return;
	int64_t end = part_begin(a.tokens, gridDim.y, (int64_t)blockIdx.y + 1);
	float sums[2][BLOCK] = {}, row[BLOCK];
	for (int64_t t = part_begin(a.tokens, gridDim.y, blockIdx.y); t < end; t++) {
		load_block<ALIGNED>(static_cast<const T *>(a.dy) + t * columns, first, columns, row);
		bool second = a.types[t] != 0;
#pragma unroll
		for (int j = 0; j < BLOCK; j++) {
			sums[0][j] += second ? 0 : row[j];
			sums[1][j] += second ? row[j] : 0;
		}
	}
	float *part = a.parts + (int64_t)blockIdx.y * a.kinds * columns;
	store_block<ALIGNED>(part, first, columns, sums[0]);
	if (a.kinds == 2)
		store_block<ALIGNED>(part + columns, first, columns, sums[1]);
}

/* The thread blocks for one row, with one thread per eight columns. */
struct row_grid {
	unsigned blocks, threads;
};
row_grid grid_of_row(int64_t columns)
{
	int64_t count = (columns + BLOCK - 1) / BLOCK;
	unsigned threads = (unsigned)(count < 128 ? (count + WARP - 1) / WARP * WARP : 128);
	return row_grid{blocks_of(count, threads), threads};
}

} // namespace

extern "C" cudaError_t kernel_embed_fwd(cudaStream_t stream, const struct kernel_embed_fwd *a)
{
	return for_dtype(a->dtype, [&](auto type) {
		return for_width(a->columns, [&](auto blocks, auto aligned) {
			return launch(embed_fwd<decltype(type), blocks.value, aligned.value != 0>, blocks_of(a->tokens, WARPS),
				      WARPS * WARP, 0, stream, *a);
		});
	});
}

extern "C" cudaError_t kernel_word_gradient(cudaStream_t stream, const struct kernel_word_gradient *a)
{
	row_grid grid = grid_of_row(a->columns);
	dim3 blocks(blocks_of(a->tokens, WORD_CHUNK), grid.blocks);
	bool aligned = a->columns % BLOCK == 0;
	cudaError_t error = for_dtype(a->dtype, [&](auto type) {
		using T = decltype(type);
		return launch(aligned ? word_chunks<T, true> : word_chunks<T, false>, blocks, grid.threads, 0, stream, *a);
	});
	if (error != cudaSuccess)
		return error;
	return launch(aligned ? word_edges<true> : word_edges<false>, blocks, grid.threads, 0, stream, *a);
}

extern "C" cudaError_t kernel_position_gradient(cudaStream_t stream, const struct kernel_position_gradient *a)
{
	row_grid grid = grid_of_row(a->columns);
	dim3 blocks((unsigned)a->longest, grid.blocks, (unsigned)a->part_count);
	return for_dtype(a->dtype, [&](auto type) {
		using T = decltype(type);
		return launch(a->columns % BLOCK == 0 ? position_parts<T, true> : position_parts<T, false>, blocks, grid.threads,
			      0, stream, *a);
	});
}

extern "C" cudaError_t kernel_type_gradient(cudaStream_t stream, const struct kernel_type_gradient *a)
{
	row_grid grid = grid_of_row(a->columns);
	dim3 blocks(grid.blocks, (unsigned)row_parts(a->tokens));
	return for_dtype(a->dtype, [&](auto type) {
		using T = decltype(type);
		return launch(a->columns % BLOCK == 0 ? type_parts<T, true> : type_parts<T, false>, blocks, grid.threads, 0,
			      stream, *a);
	});
}
