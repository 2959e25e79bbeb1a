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

/* One thread's part of copying rows, `stride` elements apart, into tiles: 16 bytes of every STEP-th row, at places that are known
 * at compile time but for one offset. */
template <typename E, int D, int THREADS> struct tile_source {
	static constexpr int CHUNKS = D / 8, STEP = THREADS / CHUNKS;
	static_assert(STEP % 8 == 0, "all rows of a thread are swizzled alike");
	const E *from;
	int stride, row, to;

	DEVICE tile_source(const E *rows, int row_stride) : stride(row_stride), row((int)threadIdx.x / CHUNKS)
	{
		int chunk = (int)threadIdx.x % CHUNKS;
		from = rows + row * (int64_t)stride + chunk * 8;
		to = tile_chunk<D>(row, chunk) * 16;
	}

	/* Copies ROWS rows, starting with row `first`, into a tile; rows from `length` on become zero. The copy is
	 * asynchronous: use copy_commit and copy_wait. */
	template <int ROWS> DEVICE void load(char *tile, int first, int length) const
	{
		const E *at = from + first * (int64_t)stride;
#pragma unroll
		for (int i = 0; i < ROWS; i += STEP)
			if (ROWS % STEP == 0 || row + i < ROWS)
				copy_async16(tile + to + i * tile_row<D>::bytes, at + i * (int64_t)stride,
					     row + first + i < length ? 16 : 0);
	}
};

/* A lane's offsets in tiles for ldmatrix: of (row + lane_row, chunk + lane_chunk), where row is a multiple of 8 and chunk a
 * multiple of 2, known at compile time. Swizzling makes four offsets for four chunks; all others differ by a constant. */
template <int D> struct lane_places {
	static constexpr int WAYS = D % 64 == 0 ? 4 : 1;
	int way[WAYS];

	DEVICE lane_places(int lane_row, int lane_chunk)
	{
#pragma unroll
		for (int i = 0; i < WAYS; i++)
			way[i] = settled(tile_chunk<D>(lane_row, 2 * i ^ lane_chunk) * 16);
	}
	DEVICE int at(int row, int chunk) const
	{
		return way[chunk / 2 % WAYS] + chunk / 2 / WAYS * WAYS * 32 + row * tile_row<D>::bytes;
	}
};

/* The places for 16 x 16 elements with their corner at (row, chunk), where the tile's rows are the fragment's rows (A) or its k
 * (B); and the same with the two middle matrices swapped, where the tile's rows are A's k or B's columns. */
template <int D> DEVICE lane_places<D> row_places(int row, int chunk)
{
	return {row + (lane_index() & 15), chunk + (lane_index() >> 4)};
}
template <int D> DEVICE lane_places<D> column_places(int row, int chunk)
{
	return {row + (lane_index() & 7) + (lane_index() >> 4) * 8, chunk + (lane_index() >> 3 & 1)};
}

/* c += a b for two adjacent tiles of eight columns; b as loaded at column_places or, transposed, at row_places. */
template <typename E> DEVICE void multiply(float (&left)[4], float (&right)[4], const uint32_t (&a)[4], const uint32_t (&b)[4])
{
	mma16<E>(left, a, b);
	mma16<E>(right, a, b + 2);
}

/* Where a maximum of scores starts: a query of which no key has been seen yet has probabilities of 0, not NaN. */
constexpr float LEAST = -1e30f;

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

/* Whether a sequence is of the class of lengths that is being processed. */
DEVICE bool in_class(const struct kernel_attention &a, int length)
{
	return length > a.above && length <= a.upto;
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

/* dropout_bits() in parts. Of Philox's rounds the first, half of the second and half of the third depend on the eight keys or
 * on the query alone: */
struct dropout_keys {
	uint32_t second, third, word, low;
};
struct dropout_query {
	uint32_t high, low;
};
constexpr uint32_t PHILOX_M0 = 0xD2511F53u, PHILOX_M1 = 0xCD9E8D57u, PHILOX_W0 = 0x9E3779B9u, PHILOX_W1 = 0xBB67AE85u;

DEVICE dropout_keys find_dropout_keys(const attention_dropout &d, int key)
{
	uint32_t k0 = (uint32_t)d.seed, k1 = (uint32_t)(d.seed >> 32), low, high, site_low, site_high;
	dropout_keys out;
	multiply_wide(PHILOX_M0, dropout_attention_counter(d.head, (uint32_t)key), &low, &high);
	multiply_wide(PHILOX_M1, d.site, &site_low, &site_high);
	out.second = low ^ (k1 + PHILOX_W1);
	multiply_wide(PHILOX_M1, high ^ d.sample ^ k1, &low, &high);
	out.third = low ^ (k0 + 2 * PHILOX_W0);
	multiply_wide(PHILOX_M0, high ^ site_low ^ (k0 + PHILOX_W0), &out.low, &high);
	out.word = high ^ (k1 + 2 * PHILOX_W1);
	return out;
}
DEVICE dropout_query find_dropout_query(const attention_dropout &d, int query)
{
	uint32_t low, high;
	dropout_query out;
	multiply_wide(PHILOX_M1, d.site, &low, &high);
	multiply_wide(PHILOX_M0, high ^ (uint32_t)query ^ (uint32_t)d.seed, &out.low, &out.high);
	return out;
}
/* The block's four words: pairs of numbers of adjacent keys. */
DEVICE void dropout_words(uint32_t (&word)[4], const attention_dropout &d, const dropout_keys &keys, const dropout_query &query)
{
	uint32_t k0 = (uint32_t)d.seed, k1 = (uint32_t)(d.seed >> 32), low, high;
	multiply_wide(PHILOX_M1, query.high ^ keys.second, &word[1], &high);
	word[0] = high ^ keys.third;
	word[2] = query.low ^ keys.word;
	word[3] = keys.low;
#pragma unroll
	for (uint32_t round = 3; round < 7; round++) {
		uint32_t c1 = word[1], c3 = word[3];
		multiply_wide(PHILOX_M0, word[0], &word[3], &low);
		multiply_wide(PHILOX_M1, word[2], &word[1], &high);
		word[0] = high ^ c1 ^ (k0 + round * PHILOX_W0);
		word[2] = low ^ c3 ^ (k1 + round * PHILOX_W1);
	}
}

/* A warp's dropout bits for 16 queries and 64 keys: each lane has those of query lane % 16 and of 32 keys, the first or last of
 * the tile's eight dropout_keys. Takes four calls, for the lane's 32 elements. Set bits drop; the bit of key 8 i + 2 w + e is
 * 16 e + drop_bit(i) - 2 w, so that, shifted to the left by 2 t, lane t of a fragment's row finds its keys where
 * spread_pair() wants them. */
DEVICE constexpr int drop_bit(int block)
{
	return 7 + block % 2 * 8 - block / 2;
}
DEVICE uint32_t make_drops(const attention_dropout &d, const pair_limit &limit, const uint4 *keys, const dropout_query &query)
{
	uint32_t drops = 0;
#pragma unroll
	for (int i = 0; i < 4; i++) {
		uint4 k = load16(keys + lane_index() / 16 * 4 + i);
		uint32_t word[4];
		dropout_words(word, d, {k.x, k.y, k.z, k.w}, query);
#pragma unroll
		for (int w = 0; w < 4; w++)
			drops += limit.below(word[w]) << (drop_bit(i) - 2 * w);
	}
	return drops;
}
/* Store these bits in a.kept in the order of attention_kept_bit(), and load them from it. */
DEVICE void store_drops(const struct kernel_attention &a, const attention_head &h, uint32_t drops, int query, int key)
{
	int first = key + (lane_index() >> 4) * 32;
	uint16_t *to = kept_words(a, h, first) + query + (lane_index() & 15);
	if (first < h.length)
		to[0] = (uint16_t)((drops & 0xaaaa) | (drops >> 17 & 0x5555));
	if (first + KEPT_KEYS < h.length)
		to[kept_stride(a)] = (uint16_t)((drops << 1 & 0xaaaa) | (drops >> 16 & 0x5555));
}
DEVICE uint32_t load_drops(const struct kernel_attention &a, const attention_head &h, int query, int key)
{
	int first = key + (lane_index() >> 4) * 32;
	const uint16_t *from = kept_words(a, h, first) + query + (lane_index() & 15);
	uint32_t low = first < h.length ? from[0] : 0, high = first + KEPT_KEYS < h.length ? from[kept_stride(a)] : 0;
	return (low & 0xaaaa) | (low & 0x5555) << 17 | (high & 0xaaaa) >> 1 | (high & 0x5555) << 16;
}

/* The bits rearranged for the fragments of q k'. */
struct drop_fragments {
	uint32_t word[2][2];

	explicit DEVICE drop_fragments(uint32_t drops)
	{
		int lane = lane_index(), g = lane >> 2, t = lane & 3;
#pragma unroll
		for (int half = 0; half < 2; half++)
#pragma unroll
			for (int side = 0; side < 2; side++)
				word[half][side] = __shfl_sync(ALL_LANES, drops, g + 8 * half + 16 * side) << (2 * t);
	}
	/* Ones for what is dropped of the pair of key tile n in the rows' half. */
	DEVICE uint32_t mask(int n, int half) const
	{
		return spread_pair(word[half][n / 4] << (n % 4 / 2), n % 2);
	}
	/* Whether element e of key tile n is dropped. */
	DEVICE bool has(int n, int e) const
	{
		return word[e / 2][n / 4] & 1u << (drop_bit(n % 4) + e % 2 * 16);
	}
};

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
