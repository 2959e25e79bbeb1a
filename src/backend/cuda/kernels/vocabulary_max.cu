/* The largest logit of each word among the rows of a sequence, and its gradients. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

constexpr int THREADS = 256, WARPS = THREADS / WARP;
/* Columns per thread of a row's gradient. */
constexpr int COLUMNS = 4;

/* One thread per word of a sequence. While a sequence goes on in the next chunk, y is its largest logit so far. */
__global__ void __launch_bounds__(THREADS) largest_logits(struct kernel_vocab_max a)
{
	int v = (int)(blockIdx.y * THREADS + threadIdx.x), begin = a.starts[blockIdx.x], end = a.starts[blockIdx.x + 1];
	bool opens = begin >= a.first;
	if (v >= a.vocab || (!opens && end <= a.first))
		return;
	int64_t place = (int64_t)blockIdx.x * a.vocab + v;
	float most = opens ? 0 : a.y[place];
	int row = opens || a.rows == nullptr ? -1 : a.rows[place], last = a.first + a.count;
	for (int t = opens ? begin : a.first; t < end && t < last; t++) {
		float logit = a.logits[(t - a.first) * a.stride + v] + a.bias[v];
		if (logit > most || logit != logit) {
			most = logit;
			row = t;
		}
	}
	a.y[place] = end <= last ? log1pf(most) : most;
	if (a.rows != nullptr)
		a.rows[place] = row;
}

DEVICE float gradient_of(const struct kernel_vocab_max_bwd &a, int64_t place)
{
	return a.dy[place] * expf(-a.y[place]) * (float)a.scalars->loss_scale;
}

/* One block per row of x and columns: adds the words whose largest logit the row has, in order. */
template <typename T> __global__ void __launch_bounds__(THREADS) gradients_of_rows(struct kernel_vocab_max_bwd a)
{
	unsigned *hits = reinterpret_cast<unsigned *>(shared_start());
	float *factors = reinterpret_cast<float *>(hits + WARPS), sum[COLUMNS] = {};
	const T *table = static_cast<const T *>(a.table);
	int t = (int)blockIdx.x, first = (int)(blockIdx.y * THREADS * COLUMNS + threadIdx.x), low = 0, high = a.sequences;
	while (high - low > 1) { /* the sequence that has the row */
		int middle = (low + high) / 2;
		if (a.starts[middle] <= t)
			low = middle;
		else
			high = middle;
	}
	for (int word = 0; word < a.vocab; word += THREADS) {
		int v = word + (int)threadIdx.x;
		int64_t place = (int64_t)low * a.vocab + v;
		bool hit = v < a.vocab && a.rows[place] == t;
		unsigned mask = __ballot_sync(ALL_LANES, hit);
		if (lane_index() == 0)
			hits[threadIdx.x / WARP] = mask;
		factors[threadIdx.x] = hit ? gradient_of(a, place) : 0;
		__syncthreads();
		for (int w = 0; w < WARPS; w++) {
			for (unsigned left = hits[w]; left != 0; left &= left - 1) {
				int i = w * WARP + __ffs((int)left) - 1;
#pragma unroll
				for (int k = 0; k < COLUMNS; k++)
					if (int c = first + k * THREADS; c < a.columns)
						sum[k] += factors[i] * to_float(table[(int64_t)(word + i) * a.columns + c]);
			}
		}
		__syncthreads();
	}
#pragma unroll
	for (int k = 0; k < COLUMNS; k++)
		if (int c = first + k * THREADS; c < a.columns)
			static_cast<T *>(a.dx)[(int64_t)t * a.columns + c] = from_float<T>(sum[k]);
}

/* One block per word: its row of the table, and its bias. */
template <typename T> __global__ void __launch_bounds__(THREADS) gradients_of_words(struct kernel_vocab_max_bwd a)
{
	int v = (int)blockIdx.x;
	for (int c = (int)threadIdx.x; c <= a.columns; c += THREADS) { /* the last one is the bias */
		float *to = c < a.columns ? a.table_gradient + (int64_t)v * a.columns + c : a.bias_gradient + v;
		float sum = a.overwrite ? 0 : *to;
		for (int s = 0; s < a.sequences; s++) {
			int64_t place = (int64_t)s * a.vocab + v;
			int row = a.rows[place];
			if (row < 0)
				continue;
			float x = c < a.columns ? to_float(static_cast<const T *>(a.x)[(int64_t)row * a.columns + c]) : 1;
			sum += gradient_of(a, place) * x;
		}
		*to = sum;
	}
}

} // namespace

extern "C" cudaError_t kernel_vocab_max(cudaStream_t stream, const struct kernel_vocab_max *a)
{
	return launch(largest_logits, dim3((unsigned)a->sequences, blocks_of(a->vocab, THREADS)), THREADS, 0, stream, *a);
}

extern "C" cudaError_t kernel_vocab_max_bwd(cudaStream_t stream, const struct kernel_vocab_max_bwd *a)
{
	return for_dtype(a->dtype, [&](auto type) {
		using T = decltype(type);
		dim3 grid((unsigned)a->tokens, blocks_of(a->columns, THREADS * COLUMNS));
		size_t shared = WARPS * sizeof(unsigned) + THREADS * sizeof(float);
		cudaError_t error = launch(gradients_of_rows<T>, grid, THREADS, shared, stream, *a);
		return error != cudaSuccess ? error : launch(gradients_of_words<T>, (unsigned)a->vocab, THREADS, 0, stream, *a);
	});
}
