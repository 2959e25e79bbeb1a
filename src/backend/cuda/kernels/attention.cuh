/* Shared by the attention kernels: tiles of rows in shared memory, their fragments, dropout bits and the output of results.
 *
 * A tile holds rows of D elements in chunks of 16 bytes, arranged so that the eight rows that ldmatrix reads at once, or that
 * a warp writes at once, are in different banks. Fragment letters are those of the PTX manual, mma.m16n8k16: lane = 4 g + t;
 * an accumulator c[4] is (row g, columns 2t, 2t+1), (row g + 8, columns 2t, 2t+1).
 */
#ifndef BACKEND_CUDA_KERNELS_ATTENTION_CUH
#define BACKEND_CUDA_KERNELS_ATTENTION_CUH

#include "backend/cuda/kernels/device.cuh"

/* Bytes per row of a tile: swizzled rows have no padding. */
constexpr int row_bytes(int size)
{
	return (size % 64 == 0 ? size / 8 : size / 8 | 1) * 16;
}
template <int D> struct tile_row {
	static constexpr int bytes = row_bytes(D);
};

/* Index of a 16-byte chunk of a tile: rows of 128 or 256 bytes are swizzled, others are padded to an odd number of chunks. */
template <int D> DEVICE int tile_chunk(int row, int chunk)
{
	if (D % 64 == 0)
		return row * (D / 8) + (chunk ^ (row & 7));
	return row * (tile_row<D>::bytes / 16) + chunk;
}

/* Copies `rows` rows of D elements, `stride` elements apart, into a tile; rows from `valid` on become zero. The copy is
 * asynchronous: use copy_commit and copy_wait. */
template <int D, int THREADS, typename E> DEVICE void load_tile(void *tile, int rows, const E *from, int64_t stride, int valid)
{
	constexpr int chunks = D / 8;
#pragma unroll 1
	for (int i = threadIdx.x; i < rows * chunks; i += THREADS) {
		int row = i / chunks, chunk = i % chunks;
		bool there = row < valid;
		copy_async16(static_cast<char *>(tile) + tile_chunk<D>(row, chunk) * 16,
			     from + (there ? row : 0) * stride + chunk * 8, there ? 16 : 0);
	}
}

/* Byte offset in a tile of (row + lane_row, chunk + lane_chunk), where row is a multiple of 8 and chunk a multiple of 2: the
 * part that depends on the lane is computed once for all tiles, and a swizzled chunk needs only one more exclusive or. */
template <int D> DEVICE int tile_offset(int row, int chunk, int lane_row, int lane_chunk)
{
	if (D % 64 == 0)
		return row * tile_row<D>::bytes +
		       ((lane_row * tile_row<D>::bytes + (lane_chunk ^ (lane_row & 7)) * 16) ^ (chunk * 16));
	return (row + lane_row) * tile_row<D>::bytes + (chunk + lane_chunk) * 16;
}

/* Loads 16 x 16 elements with their corner at (row, chunk), where the tile's rows are the fragment's rows (A) or its k (B). */
template <int D, bool TRANSPOSED> DEVICE void load_rows(uint32_t (&out)[4], const char *tile, int row, int chunk)
{
	int lane = lane_index();
	const char *at = tile + tile_offset<D>(row, chunk, lane & 15, lane >> 4);
	if (TRANSPOSED)
		load_matrices4_transposed(out, at);
	else
		load_matrices4(out, at);
}

/* The same with the two middle matrices swapped, where the tile's rows are A's k or B's columns. */
template <int D, bool TRANSPOSED> DEVICE void load_columns(uint32_t (&out)[4], const char *tile, int row, int chunk)
{
	int lane = lane_index();
	const char *at = tile + tile_offset<D>(row, chunk, (lane & 7) + (lane >> 4) * 8, lane >> 3 & 1);
	if (TRANSPOSED)
		load_matrices4_transposed(out, at);
	else
		load_matrices4(out, at);
}

/* c += a b for two adjacent tiles of eight columns; b as loaded by load_rows or load_columns. */
template <typename E> DEVICE void multiply(float (&left)[4], float (&right)[4], const uint32_t (&a)[4], const uint32_t (&b)[4])
{
	mma16<E>(left, a, b);
	mma16<E>(right, a, b + 2);
}

template <int D> struct head_size {
	static constexpr int value = D;
};

/* One head of one sequence: the work of a block. */
struct attention_head {
	int start, length; /* tokens; length <= 0: nothing to do */
	int head, sequence;
	uint32_t sample;
};

DEVICE attention_head find_head(const struct kernel_attention &a, int sequence, int head)
{
	int number = a.order ? a.order[sequence] : sequence, start = a.starts[number];
	return {start, a.starts[number + 1] - start, head, number, a.samples[number]};
}

/* The part of dropout's counters that is common to a block; threshold 0: no dropout. */
struct attention_dropout {
	uint64_t seed;
	uint32_t threshold, site, sample, head;
};

DEVICE attention_dropout find_dropout(const struct kernel_attention &a, const attention_head &h)
{
	return {a.threshold ? a.scalars->seed : 0, a.threshold, a.site, h.sample, (uint32_t)h.head};
}

/* Which of eight adjacent keys of a query are kept (backend/dropout.h): bit i is set if key + i is. */
DEVICE uint32_t dropout_bits(const attention_dropout &d, int query, int key)
{
	struct philox block =
		philox4x32(d.seed, dropout_attention_counter(d.head, (uint32_t)key), (uint32_t)query, d.site, d.sample, 7);
	uint32_t bits = 0,
		 threshold = d.threshold << 16; /* compared in the high half: the low half is shifted up, or does not matter */
#pragma unroll
	for (int i = 0; i < 4; i++) {
		bits |= (block.word[i] << 16) >= threshold ? 1u << (2 * i) : 0;
		bits |= block.word[i] >= threshold ? 2u << (2 * i) : 0;
	}
	return bits;
}

/* Position in a.kept of a head's first word for keys from `key` on; the word of the next 16 keys is kept_stride() further on. */
DEVICE int kept_stride(const struct kernel_attention &a)
{
	return (int)attention_kept_place(a.tokens, a.sequences);
}
DEVICE uint16_t *kept_words(const struct kernel_attention &a, const attention_head &h, int key)
{
	int row = h.head * (int)attention_kept_words(a.longest) + key / KEPT_KEYS;
	return a.kept + ((int64_t)row * kept_stride(a) + (int)attention_kept_place(h.start, h.sequence));
}

/* A warp's dropout bits for 16 queries from `query` on and 64 keys from `key` on: each lane has the bits of query lane % 16
 * and of 32 keys, starting with key + 32 (lane / 16). Takes four Philox calls, for the lane's 32 elements. */
DEVICE uint32_t make_kept(const attention_dropout &d, int query, int key)
{
	int lane = lane_index();
	uint32_t mine = 0;
#pragma unroll
	for (int i = 0; i < 4; i++)
		mine |= dropout_bits(d, query + (lane & 15), key + (lane >> 4) * 32 + 8 * i) << (8 * i);
	return mine;
}
/* Store these bits in a.kept, and load them from it. */
DEVICE void store_kept(const struct kernel_attention &a, const attention_head &h, uint32_t mine, int query, int key)
{
	int first = key + (lane_index() >> 4) * 32;
	uint16_t *to = kept_words(a, h, first) + query + (lane_index() & 15);
	if (first < h.length)
		to[0] = (uint16_t)mine;
	if (first + KEPT_KEYS < h.length)
		to[kept_stride(a)] = (uint16_t)(mine >> 16);
}
DEVICE uint32_t load_kept(const struct kernel_attention &a, const attention_head &h, int query, int key)
{
	int first = key + (lane_index() >> 4) * 32;
	const uint16_t *from = kept_words(a, h, first) + query + (lane_index() & 15);
	uint32_t low = first < h.length ? from[0] : 0, high = first + KEPT_KEYS < h.length ? from[kept_stride(a)] : 0;
	return low | high << 16;
}

/* Rearranges the bits into the fragments of q k': bit 8 (n % 4) + e of out[half][n / 4] belongs to element 2 half + e of key
 * tile n. */
DEVICE void kept_fragments(uint32_t (&out)[2][2], uint32_t mine)
{
	int lane = lane_index(), g = lane >> 2, t = lane & 3;
#pragma unroll
	for (int half = 0; half < 2; half++)
#pragma unroll
		for (int side = 0; side < 2; side++)
			out[half][side] = __shfl_sync(ALL_LANES, mine, g + 8 * half + 16 * side) >> (2 * t);
}

/* Transposes among four adjacent lanes: afterwards, w[i] of lane t is w[t] of lane i before. */
DEVICE void transpose_quad(uint32_t (&w)[4])
{
	int lane = lane_index();
#pragma unroll
	for (int step = 1; step <= 2; step *= 2) {
		bool upper = lane & step;
#pragma unroll
		for (int i = 0; i < 2; i++) {
			int low = step == 1 ? 2 * i : i, high = low + step;
			uint32_t other = __shfl_xor_sync(ALL_LANES, upper ? w[low] : w[high], step);
			if (upper)
				w[low] = other;
			else
				w[high] = other;
		}
	}
}

/* Writes an accumulator of 16 rows and 8 TILES columns, times the rows' factor, to rows `stride` elements apart; only the
 * first `valid` rows. Writes sixteen bytes per lane if TILES is a multiple of 4. Returns the largest magnitudes of the pairs
 * that the lane writes, as a pair. */
template <typename E, int TILES>
DEVICE uint32_t store_tile(E *to, int64_t stride, int valid, const float (&c)[TILES][4], float factor0, float factor1)
{
	int g = lane_index() >> 2, t = lane_index() & 3;
	uint32_t most = 0;
#pragma unroll
	for (int half = 0; half < 2; half++) {
		float factor = half ? factor1 : factor0;
		E *row = to + (g + 8 * half) * stride;
		bool there = g + 8 * half < valid;
#pragma unroll
		for (int first = 0; first < TILES; first += 4) {
			uint32_t w[4];
#pragma unroll
			for (int i = 0; i < 4 && first + i < TILES; i++)
				w[i] = pack2<E>(c[first + i][2 * half] * factor, c[first + i][2 * half + 1] * factor);
#pragma unroll
			for (int i = 0; i < 4 && first + i < TILES; i++)
				most = there ? larger_pair(most, w[i]) : most;
			if (TILES % 4 == 0) {
				transpose_quad(w);
				if (there)
					store16(row + (first + t) * 8, {w[0], w[1], w[2], w[3]});
			} else if (there) {
#pragma unroll
				for (int i = 0; i < 4 && first + i < TILES; i++)
					*reinterpret_cast<uint32_t *>(row + (first + i) * 8 + 2 * t) = w[i];
			}
		}
	}
	return most;
}

/* Sums over the lanes of a fragment's column: in steps over half, a quarter, an eighth of the warp, lanes exchange halves of v
 * while there are any, and each lane continues with its own half. Returns the index of the first sum that the lane is left
 * with. */
template <int COUNT, int STEP> DEVICE int sum_columns(float *v)
{
	if constexpr (STEP < 4) {
		return 0;
	} else if constexpr (COUNT == 1) {
		v[0] += __shfl_xor_sync(ALL_LANES, v[0], STEP);
		return sum_columns<1, STEP / 2>(v);
	} else {
		bool upper = lane_index() & STEP;
#pragma unroll
		for (int i = 0; i < COUNT / 2; i++) {
			float other = __shfl_xor_sync(ALL_LANES, upper ? v[i] : v[i + COUNT / 2], STEP);
			v[i] = (upper ? v[i + COUNT / 2] : v[i]) + other;
		}
		return (upper ? COUNT / 2 : 0) + sum_columns<COUNT / 2, STEP / 2>(v);
	}
}

/* Adds the column sums of an accumulator, times `factor`, to `sums`: each element is updated by exactly one lane. */
template <int TILES> DEVICE void add_column_sums(float *sums, const float (&c)[TILES][4], float factor)
{
	int lane = lane_index(), t = lane & 3;
	float v[2 * TILES];
#pragma unroll
	for (int i = 0; i < 2 * TILES; i++)
		v[i] = c[i / 2][i % 2] + c[i / 2][i % 2 + 2];
	int first = sum_columns<2 * TILES, 16>(v);
	constexpr int own = TILES >= 4 ? TILES / 4 : 1;
#pragma unroll
	for (int i = 0; i < own; i++)
		if (int at = first + i; TILES >= 4 || (lane & 4) == 0)
			sums[at / 2 * 8 + 2 * t + at % 2] += v[i] * factor;
}

/* Calls body(type, integral constant) for the types and head sizes that have matrix kernels. */
template <typename T, typename F> static cudaError_t for_head_size(int size, F body)
{
	switch (size) {
	case 32: return body(T(), head_size<32>());
	case 64: return body(T(), head_size<64>());
	case 128: return body(T(), head_size<128>());
	default: return cudaErrorInvalidValue;
	}
}
static inline bool is_head_size(int size)
{
	return size == 32 || size == 64 || size == 128;
}
template <typename F> static cudaError_t for_head(enum dtype dtype, int size, F body)
{
	return dtype == DTYPE_BF16  ? for_head_size<bf16>(size, body)
	       : dtype == DTYPE_F16 ? for_head_size<f16>(size, body)
				    : cudaErrorInvalidValue;
}

#endif
