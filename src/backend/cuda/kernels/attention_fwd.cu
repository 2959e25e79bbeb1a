/* Forward attention with matrix instructions (FlashAttention-2: Dao 2023): a block of 8 warps handles 128 queries of one head
 * of one sequence, 16 per warp, and loops over the keys in tiles of 64, with two tiles of keys and values in flight. Scores
 * stay in registers, because the accumulator of q k' is the fragment that p v needs. */
#include "backend/cuda/kernels/attention.cuh"

namespace
{
enum { WARPS = 8, THREADS = 32 * WARPS, QUERIES = 16 * WARPS, KEYS = 64, KEY_TILES = KEYS / 8 };

/* Online softmax for rows g and g + 8 of a warp's scores against one tile of keys: rescales the sum of exp2 and the output so
 * far to the new maximum; scores become probabilities, not yet divided by their sum. */
template <int TILES>
DEVICE void softmax(float (&s)[KEY_TILES][4], float (&o)[TILES][4], float (&largest)[2], float (&sum)[2], float scale)
{
#pragma unroll
	for (int half = 0; half < 2; half++) {
		float most = largest[half];
#pragma unroll
		for (int n = 0; n < KEY_TILES; n++)
			most = fmaxf(most, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
		most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 1));
		most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 2));
		float correction = exp2_approximate((largest[half] - most) * scale), offset = most * scale;
		largest[half] = most;
		sum[half] *= correction;
#pragma unroll
		for (int n = 0; n < TILES; n++) {
			o[n][2 * half] *= correction;
			o[n][2 * half + 1] *= correction;
		}
#pragma unroll
		for (int n = 0; n < KEY_TILES; n++) {
			s[n][2 * half] = exp2_approximate(fmaf(s[n][2 * half], scale, -offset));
			s[n][2 * half + 1] = exp2_approximate(fmaf(s[n][2 * half + 1], scale, -offset));
			sum[half] += s[n][2 * half] + s[n][2 * half + 1];
		}
	}
}

/* Applies dropout to the probabilities of the 16 queries from `query` on and the 64 keys from `key` on, and saves the bits. */
DEVICE void drop(float (&s)[KEY_TILES][4], const struct kernel_attention &a, const attention_head &h, const attention_dropout &d,
		 int query, int key)
{
	uint32_t bits[2][2], mine = make_kept(d, query, key);
	if (a.kept)
		store_kept(a, h, mine, query, key);
	kept_fragments(bits, mine);
#pragma unroll
	for (int n = 0; n < KEY_TILES; n++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			s[n][e] = bits[e / 2][n / 4] & 1u << (8 * (n % 4) + e % 2) ? s[n][e] : 0.f;
}

template <typename E, int D>
__global__ void __launch_bounds__(THREADS, D <= 64 ? 2 : 1) attention_fwd_kernel(struct kernel_attention a)
{
	constexpr int TILES = D / 8, STEPS = D / 16, KEY_BYTES = KEYS * tile_row<D>::bytes;
	char *q_tile = reinterpret_cast<char *>(shared_start()), *k_tile = q_tile + QUERIES * tile_row<D>::bytes,
	     *v_tile = k_tile + 2 * KEY_BYTES;

	int blocks = (a.longest + QUERIES - 1) / QUERIES, item = (int)(blockIdx.x);
	attention_head h = find_head(a, item / a.heads / blocks, item % a.heads);
	int first = item / a.heads % blocks * QUERIES;
	if (first >= h.length)
		return;

	int64_t stride = 3 * (int64_t)(a.hidden);
	const E *q = static_cast<const E *>(a.qkv) + h.start * stride + h.head * D, *k = q + a.hidden, *v = k + a.hidden;
	load_tile<D, THREADS>(q_tile, QUERIES, q + first * stride, stride, h.length - first);
	load_tile<D, THREADS>(k_tile, KEYS, k, stride, h.length);
	copy_commit();
	load_tile<D, THREADS>(v_tile, KEYS, v, stride, h.length);
	copy_commit();

	int warp = (int)(threadIdx.x) / 32, g = lane_index() >> 2, t = lane_index() & 3;
	int query = first + 16 * warp;
	bool active = query < h.length;
	attention_dropout dropout = find_dropout(a, h);
	float scale = a.scale * 1.44269504f;
	uint32_t q_part[STEPS][4];
	float o[TILES][4] = {}, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};

	int key_blocks = (h.length + KEYS - 1) / KEYS;
	for (int j = 0; j < key_blocks; j++) {
		int key = j * KEYS, next = key + KEYS;
		copy_wait<1>(); /* the keys have arrived, the values may still be in flight */
		__syncthreads();
		if (next < h.length)
			load_tile<D, THREADS>(k_tile + (j + 1) % 2 * KEY_BYTES, KEYS, k + next * stride, stride, h.length - next);
		copy_commit();

		uint32_t p[KEYS / 16][4];
		if (active) {
			if (j == 0) {
#pragma unroll
				for (int i = 0; i < STEPS; i++)
					load_rows<D, false>(q_part[i], q_tile, 16 * warp, 2 * i);
			}
			const char *tile = k_tile + j % 2 * KEY_BYTES;
			float s[KEY_TILES][4] = {};
#pragma unroll
			for (int i = 0; i < STEPS; i++) {
#pragma unroll
				for (int n = 0; n < KEY_TILES; n += 2) {
					uint32_t b[4];
					load_columns<D, false>(b, tile, 8 * n, 2 * i);
					multiply<E>(s[n], s[n + 1], q_part[i], b);
				}
			}
			if (next > h.length) {
#pragma unroll
				for (int n = 0; n < KEY_TILES; n++)
#pragma unroll
					for (int e = 0; e < 4; e++)
						if (key + 8 * n + 2 * t + e % 2 >= h.length)
							s[n][e] = -INFINITY;
			}
			softmax(s, o, largest, sum, scale);
			if (dropout.threshold)
				drop(s, a, h, dropout, query, key);
#pragma unroll
			for (int i = 0; i < KEYS / 16; i++) {
				p[i][0] = pack2<E>(s[2 * i][0], s[2 * i][1]);
				p[i][1] = pack2<E>(s[2 * i][2], s[2 * i][3]);
				p[i][2] = pack2<E>(s[2 * i + 1][0], s[2 * i + 1][1]);
				p[i][3] = pack2<E>(s[2 * i + 1][2], s[2 * i + 1][3]);
			}
		}

		copy_wait<1>(); /* the values have arrived, the next keys may still be in flight */
		__syncthreads();
		if (next < h.length)
			load_tile<D, THREADS>(v_tile + (j + 1) % 2 * KEY_BYTES, KEYS, v + next * stride, stride, h.length - next);
		copy_commit();
		if (active) {
			const char *tile = v_tile + j % 2 * KEY_BYTES;
#pragma unroll
			for (int i = 0; i < KEYS / 16; i++) {
#pragma unroll
				for (int n = 0; n < TILES; n += 2) {
					uint32_t b[4];
					load_rows<D, true>(b, tile, 16 * i, n);
					multiply<E>(o[n], o[n + 1], p[i], b);
				}
			}
		}
	}
	if (!active)
		return;

#pragma unroll
	for (int half = 0; half < 2; half++) {
		sum[half] += __shfl_xor_sync(ALL_LANES, sum[half], 1);
		sum[half] += __shfl_xor_sync(ALL_LANES, sum[half], 2);
		int row = query + g + 8 * half;
		if (a.lse && t == 0 && row < h.length)
			a.lse[h.head * a.tokens + h.start + row] = largest[half] * a.scale + logf(sum[half]);
	}
	E *y = static_cast<E *>(a.y) + (h.start + query) * (int64_t)(a.hidden) + h.head * D;
	uint32_t most = store_tile(y, a.hidden, h.length - query, o, a.dropout_scale / sum[0], a.dropout_scale / sum[1]);
	if (has_largest<E> && a.largest != nullptr)
		note_pairs(a.largest, blockIdx.x * WARPS + (unsigned)warp, most);
}

template <typename E, int D> cudaError_t start(const struct kernel_attention &a, cudaStream_t stream)
{
	size_t shared = kernel_attention_fwd_shared(D);
	cudaError_t error = allow_shared(attention_fwd_kernel<E, D>, shared);
	unsigned blocks = blocks_of(a.longest, QUERIES) * (unsigned)a.heads * (unsigned)a.sequences;
	return error != cudaSuccess ? error : launch(attention_fwd_kernel<E, D>, blocks, THREADS, shared, stream, a);
}
} // namespace

extern "C" cudaError_t kernel_attention_fwd(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a)
{
	return for_head(dtype, a->hidden / a->heads,
			[&](auto type, auto size) { return start<decltype(type), size.value>(*a, stream); });
}

extern "C" size_t kernel_attention_fwd_shared(int32_t head_size)
{
	return (size_t)((QUERIES + 4 * KEYS) * row_bytes(head_size));
}

extern "C" bool kernel_attention_has(enum dtype dtype, int32_t head_size)
{
	return (dtype == DTYPE_BF16 || dtype == DTYPE_F16) && is_head_size(head_size);
}
