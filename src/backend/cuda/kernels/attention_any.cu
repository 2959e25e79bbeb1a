/* Attention where there is no matrix kernel: fp32, and heads of any size up to 256. Arithmetic is in fp32. A block of four
 * warps has 16 rows of its own, four per warp, and loops over the rows of the other side in tiles of 32, one row per lane:
 *
 *   forward      own queries, other side keys        dk, dv   own keys, other side queries
 *   dq           own queries, other side keys
 *
 * Also computes the column sums of dqkv where the kernel that wrote it did not. */
#include "backend/cuda/kernels/attention.cuh"

namespace
{
enum { WARPS = 4, THREADS = WARP * WARPS, OWN = 4 /* rows per warp */, ROWS = OWN * WARPS, OTHERS = 32 };

/* PARTS: a row has at most 32 PARTS elements; the rest of a row in shared memory is zero. */
template <int PARTS> struct any_rows {
	static constexpr int stride = 32 * PARTS + 4; /* in floats: lanes read the same four columns of 32 rows */

	template <typename T>
	static DEVICE void load(float *to, int rows, const T *from, int64_t row_stride, int valid, int columns)
	{
		for (int i = threadIdx.x; i < rows * 32 * PARTS; i += THREADS) {
			int row = i / (32 * PARTS), column = i % (32 * PARTS);
			to[row * stride + column] =
				row < valid && column < columns ? to_float(from[row * row_stride + column]) : 0.f;
		}
	}

	/* out[i] = dot product of the warp's own row i and the lane's row. */
	static DEVICE void products(float (&out)[OWN], const float *own, const float *others, int columns)
	{
		const float *other = others + lane_index() * stride;
#pragma unroll
		for (int i = 0; i < OWN; i++)
			out[i] = 0;
		for (int c = 0; c < columns; c += 4) {
			float4 x = *reinterpret_cast<const float4 *>(other + c);
#pragma unroll
			for (int i = 0; i < OWN; i++) {
				float4 y = *reinterpret_cast<const float4 *>(own + i * stride + c);
				out[i] = fmaf(x.w, y.w, fmaf(x.z, y.z, fmaf(x.y, y.y, fmaf(x.x, y.x, out[i]))));
			}
		}
	}

	/* sum[i] += sum of the rows times their weights, one weight per lane; lane l holds columns l, l + 32, ... of the sum.
	 * `passed` is the warp's area for exchanging weights. */
	static DEVICE void add(float (&sum)[OWN][PARTS], const float (&weights)[OWN], const float *others, float4 *passed)
	{
		__syncwarp();
		passed[lane_index()] = {weights[0], weights[1], weights[2], weights[3]};
		__syncwarp();
		for (int row = 0; row < OTHERS; row++) {
			float4 w = passed[row];
#pragma unroll
			for (int p = 0; p < PARTS; p++) {
				float x = others[row * stride + lane_index() + 32 * p];
				sum[0][p] = fmaf(w.x, x, sum[0][p]);
				sum[1][p] = fmaf(w.y, x, sum[1][p]);
				sum[2][p] = fmaf(w.z, x, sum[2][p]);
				sum[3][p] = fmaf(w.w, x, sum[3][p]);
			}
		}
	}

	template <typename T>
	static DEVICE void store(T *to, int64_t row_stride, int valid, int columns, const float (&sum)[OWN][PARTS],
				 const float (&factors)[OWN])
	{
#pragma unroll
		for (int i = 0; i < OWN; i++)
#pragma unroll
			for (int p = 0; p < PARTS; p++)
				if (int column = lane_index() + 32 * p; i < valid && column < columns)
					to[i * row_stride + column] = from_float<T>(sum[i][p] * factors[i]);
	}
};

/* The work of a block: its head and its rows. */
struct any_place {
	attention_head h;
	int first, size; /* first of the block's rows; columns of a head */
	int64_t stride;
};

DEVICE any_place find_place(const struct kernel_attention &a)
{
	int blocks = (a.longest + ROWS - 1) / ROWS, item = (int)blockIdx.x;
	return {find_head(a, item / a.heads / blocks, item % a.heads), item / a.heads % blocks * ROWS, a.hidden / a.heads,
		3 * (int64_t)a.hidden};
}

/* The tiles of the other side that a block's rows see: first row and end. */
DEVICE int seen_first(const struct kernel_attention &a, const any_place &at)
{
	return max(at.first - a.window, 0) / OTHERS * OTHERS;
}
DEVICE int seen_end(const struct kernel_attention &a, const any_place &at)
{
	return min(at.h.length, at.first + ROWS + a.window);
}

/* Whether dropout keeps the lane's key for the warp's query i: bit i, for 32 keys. Sixteen lanes generate the bits of 8 keys
 * each. */
DEVICE uint32_t stay_with_keys(const attention_dropout &d, int query, int key)
{
	if (d.threshold == 0)
		return ~0u;
	int lane = lane_index();
	uint32_t mine = dropout_bits(d, query + (lane & 3), key + (lane >> 2 & 3) * 8), bits = 0;
#pragma unroll
	for (int i = 0; i < OWN; i++)
		bits |= (__shfl_sync(ALL_LANES, mine, i + (lane >> 3) * 4) >> (lane & 7) & 1) << i;
	return bits;
}

template <typename T, int PARTS> __global__ void __launch_bounds__(THREADS) attention_any_fwd_kernel(struct kernel_attention a)
{
	using rows = any_rows<PARTS>;
	float4 *passed = reinterpret_cast<float4 *>(shared_start());
	float *q = reinterpret_cast<float *>(passed + THREADS), *k = q + ROWS * rows::stride, *v = k + OTHERS * rows::stride;
	any_place at = find_place(a);
	const attention_head &h = at.h;
	if (at.first >= h.length)
		return;
	const T *from = static_cast<const T *>(a.qkv) + h.start * at.stride + h.head * at.size;
	rows::load(q, ROWS, from + at.first * at.stride, at.stride, h.length - at.first, at.size);
	attention_dropout dropout = find_dropout(a, h);
	int warp = (int)threadIdx.x / WARP, query = at.first + OWN * warp;
	float y[OWN][PARTS] = {}, largest[OWN], sum[OWN], factors[OWN];
#pragma unroll
	for (int i = 0; i < OWN; i++) {
		largest[i] = LEAST;
		sum[i] = 0;
	}
	for (int key = seen_first(a, at); key < seen_end(a, at); key += OTHERS) {
		__syncthreads();
		rows::load(k, OTHERS, from + a.hidden + key * at.stride, at.stride, h.length - key, at.size);
		rows::load(v, OTHERS, from + 2 * a.hidden + key * at.stride, at.stride, h.length - key, at.size);
		__syncthreads();
		float s[OWN];
		rows::products(s, q + OWN * warp * rows::stride, k, at.size);
		uint32_t stays = stay_with_keys(dropout, query, key);
#pragma unroll
		for (int i = 0; i < OWN; i++) {
			bool seen = key + lane_index() < h.length && abs(key + lane_index() - query - i) <= a.window;
			s[i] = seen ? s[i] * a.scale : -INFINITY;
			float most = fmaxf(largest[i], warp_max(s[i])), correction = expf(largest[i] - most);
			s[i] = expf(s[i] - most);
			largest[i] = most;
			sum[i] = sum[i] * correction + s[i];
			s[i] = stays >> i & 1 ? s[i] : 0.f;
#pragma unroll
			for (int p = 0; p < PARTS; p++)
				y[i][p] *= correction;
		}
		rows::add(y, s, v, passed + warp * WARP);
	}
#pragma unroll
	for (int i = 0; i < OWN; i++) {
		float total = warp_sum(sum[i]);
		factors[i] = a.dropout_scale / total;
		if (a.lse && lane_index() == 0 && query + i < h.length)
			a.lse[h.head * a.tokens + h.start + query + i] = largest[i] + logf(total);
	}
	rows::store(static_cast<T *>(a.y) + (h.start + query) * (int64_t)a.hidden + h.head * at.size, a.hidden, h.length - query,
		    at.size, y, factors);
}

/* Finds lse and delta = dy y of one query, by the whole warp together. */
template <typename T>
DEVICE void find_statistics(const struct kernel_attention &a, const any_place &at, int query, float *lse, float *delta)
{
	*lse = INFINITY; /* for padding queries: probability 0 */
	float sum = 0;
	if (query < at.h.length) {
		int64_t row = (at.h.start + query) * (int64_t)a.hidden + at.h.head * at.size;
		for (int c = lane_index(); c < at.size; c += WARP)
			sum = fmaf(to_float(static_cast<const T *>(a.dy)[row + c]),
				   to_float(static_cast<const T *>(a.y)[row + c]), sum);
		*lse = a.lse[at.h.head * a.tokens + at.h.start + query];
	}
	*delta = warp_sum(sum);
}

template <typename T, int PARTS> __global__ void __launch_bounds__(THREADS) attention_any_keys_kernel(struct kernel_attention a)
{
	using rows = any_rows<PARTS>;
	float4 *passed = reinterpret_cast<float4 *>(shared_start());
	float *k = reinterpret_cast<float *>(passed + THREADS), *v = k + ROWS * rows::stride, *q = v + ROWS * rows::stride,
	      *dy = q + OTHERS * rows::stride, *lse = dy + OTHERS * rows::stride, *delta = lse + OTHERS;
	any_place at = find_place(a);
	const attention_head &h = at.h;
	if (at.first >= h.length)
		return;
	const T *from = static_cast<const T *>(a.qkv) + h.start * at.stride + h.head * at.size;
	const T *dy_from = static_cast<const T *>(a.dy) + h.start * (int64_t)a.hidden + h.head * at.size;
	rows::load(k, ROWS, from + a.hidden + at.first * at.stride, at.stride, h.length - at.first, at.size);
	rows::load(v, ROWS, from + 2 * a.hidden + at.first * at.stride, at.stride, h.length - at.first, at.size);
	attention_dropout dropout = find_dropout(a, h);
	int warp = (int)threadIdx.x / WARP, key = at.first + OWN * warp;
	float dk[OWN][PARTS] = {}, dv[OWN][PARTS] = {};
	for (int query = seen_first(a, at); query < seen_end(a, at); query += OTHERS) {
		__syncthreads();
		rows::load(q, OTHERS, from + query * at.stride, at.stride, h.length - query, at.size);
		rows::load(dy, OTHERS, dy_from + query * (int64_t)a.hidden, a.hidden, h.length - query, at.size);
		for (int i = warp; i < OTHERS; i += WARPS) {
			float power, mean;
			find_statistics<T>(a, at, query + i, &power, &mean);
			if (lane_index() == 0) {
				lse[i] = power;
				delta[i] = mean;
			}
		}
		__syncthreads();
		float s[OWN], dp[OWN];
		rows::products(s, k + OWN * warp * rows::stride, q, at.size);
		rows::products(dp, v + OWN * warp * rows::stride, dy, at.size);
		uint32_t stays = dropout.threshold ? dropout_bits(dropout, query + lane_index(), key) >> (key & 7) : ~0u;
#pragma unroll
		for (int i = 0; i < OWN; i++) {
			bool seen = key + i < h.length && abs(key + i - query - lane_index()) <= a.window;
			float p = seen ? expf(s[i] * a.scale - lse[lane_index()]) : 0.f;
			s[i] = stays >> i & 1 ? p : 0.f;
			dp[i] = p * ((stays >> i & 1 ? dp[i] * a.dropout_scale : 0.f) - delta[lane_index()]);
		}
		rows::add(dv, s, dy, passed + warp * WARP);
		rows::add(dk, dp, q, passed + warp * WARP);
	}
	float factors[OWN], dropout_factors[OWN];
#pragma unroll
	for (int i = 0; i < OWN; i++) {
		factors[i] = a.scale;
		dropout_factors[i] = a.dropout_scale;
	}
	T *out = static_cast<T *>(a.dqkv) + (h.start + key) * at.stride + h.head * at.size;
	rows::store(out + a.hidden, at.stride, h.length - key, at.size, dk, factors);
	rows::store(out + 2 * a.hidden, at.stride, h.length - key, at.size, dv, dropout_factors);
}

template <typename T, int PARTS>
__global__ void __launch_bounds__(THREADS) attention_any_queries_kernel(struct kernel_attention a)
{
	using rows = any_rows<PARTS>;
	float4 *passed = reinterpret_cast<float4 *>(shared_start());
	float *q = reinterpret_cast<float *>(passed + THREADS), *dy = q + ROWS * rows::stride, *k = dy + ROWS * rows::stride,
	      *v = k + OTHERS * rows::stride;
	any_place at = find_place(a);
	const attention_head &h = at.h;
	if (at.first >= h.length)
		return;
	const T *from = static_cast<const T *>(a.qkv) + h.start * at.stride + h.head * at.size;
	const T *dy_from = static_cast<const T *>(a.dy) + (h.start + at.first) * (int64_t)a.hidden + h.head * at.size;
	rows::load(q, ROWS, from + at.first * at.stride, at.stride, h.length - at.first, at.size);
	rows::load(dy, ROWS, dy_from, a.hidden, h.length - at.first, at.size);
	attention_dropout dropout = find_dropout(a, h);
	int warp = (int)threadIdx.x / WARP, query = at.first + OWN * warp;
	float dq[OWN][PARTS] = {}, lse[OWN], delta[OWN], factors[OWN];
#pragma unroll
	for (int i = 0; i < OWN; i++) {
		find_statistics<T>(a, at, query + i, &lse[i], &delta[i]);
		factors[i] = a.scale;
	}
	for (int key = seen_first(a, at); key < seen_end(a, at); key += OTHERS) {
		__syncthreads();
		rows::load(k, OTHERS, from + a.hidden + key * at.stride, at.stride, h.length - key, at.size);
		rows::load(v, OTHERS, from + 2 * a.hidden + key * at.stride, at.stride, h.length - key, at.size);
		__syncthreads();
		float s[OWN], dp[OWN];
		rows::products(s, q + OWN * warp * rows::stride, k, at.size);
		rows::products(dp, dy + OWN * warp * rows::stride, v, at.size);
		uint32_t stays = stay_with_keys(dropout, query, key);
#pragma unroll
		for (int i = 0; i < OWN; i++) {
			bool seen = key + lane_index() < h.length && abs(key + lane_index() - query - i) <= a.window;
			float p = seen ? expf(s[i] * a.scale - lse[i]) : 0.f;
			s[i] = p * ((stays >> i & 1 ? dp[i] * a.dropout_scale : 0.f) - delta[i]);
		}
		rows::add(dq, s, k, passed + warp * WARP);
	}
	rows::store(static_cast<T *>(a.dqkv) + (h.start + query) * at.stride + h.head * at.size, at.stride, h.length - query,
		    at.size, dq, factors);
}

/* sums (sequences, 3 hidden): column sums of dqkv's rows for each sequence; one column per thread. */
template <typename T> __global__ void attention_sums_kernel(struct kernel_attention a)
{
	int sequence = (int)blockIdx.x, column = (int)(blockIdx.y * blockDim.x + threadIdx.x), columns = 3 * a.hidden;
	if (column >= columns || !in_class(a, a.starts[sequence + 1] - a.starts[sequence]))
		return;
	const T *from = static_cast<const T *>(a.dqkv) + column;
	float sum = 0;
	for (int row = a.starts[sequence]; row < a.starts[sequence + 1]; row++)
		sum += to_float(from[row * (int64_t)columns]);
	a.sums[sequence * (int64_t)columns + column] = sum;
}

/* Shared memory for `own` arrays of own rows and two of the other side. */
template <int PARTS> constexpr size_t any_bytes(int own)
{
	return (size_t)((own * ROWS + 2 * OTHERS) * any_rows<PARTS>::stride + 2 * OTHERS + 4 * THREADS) * sizeof(float);
}

cudaError_t start_any(void (*kernel)(struct kernel_attention), size_t shared, const struct kernel_attention &a,
		      cudaStream_t stream)
{
	cudaError_t error = allow_shared(kernel, shared);
	unsigned blocks = blocks_of(a.longest, ROWS) * (unsigned)a.heads * (unsigned)a.sequences;
	return error != cudaSuccess ? error : launch(kernel, blocks, THREADS, shared, stream, a);
}

/* Calls body(type, head_size), where the value of head_size is the number of 32-column parts. */
template <typename F> cudaError_t for_parts(enum dtype dtype, int size, F body)
{
	return for_dtype(dtype, [&](auto type) {
		return size <= 64    ? body(type, head_size<2>())
		       : size <= 128 ? body(type, head_size<4>())
		       : size <= 256 ? body(type, head_size<8>())
				     : cudaErrorInvalidValue;
	});
}
} // namespace

extern "C" cudaError_t kernel_attention_any_fwd(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a)
{
	return for_parts(dtype, a->hidden / a->heads, [&](auto type, auto parts) {
		using T = decltype(type);
		return start_any(attention_any_fwd_kernel<T, parts.value>, any_bytes<parts.value>(1), *a, stream);
	});
}

extern "C" cudaError_t kernel_attention_any_bwd(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a)
{
	return for_parts(dtype, a->hidden / a->heads, [&](auto type, auto parts) {
		using T = decltype(type);
		constexpr size_t shared = any_bytes<parts.value>(2);
		cudaError_t error = start_any(attention_any_keys_kernel<T, parts.value>, shared, *a, stream);
		return error != cudaSuccess ? error : start_any(attention_any_queries_kernel<T, parts.value>, shared, *a, stream);
	});
}

extern "C" size_t kernel_attention_any_shared(int32_t head_size)
{
	return head_size <= 64 ? any_bytes<2>(2) : head_size <= 128 ? any_bytes<4>(2) : any_bytes<8>(2);
}

extern "C" cudaError_t kernel_attention_sums(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a)
{
	return for_dtype(dtype, [&](auto x) {
		return launch(attention_sums_kernel<decltype(x)>, dim3((unsigned)a->sequences, blocks_of(3 * a->hidden, 128)),
			      128, 0, stream, *a);
	});
}
