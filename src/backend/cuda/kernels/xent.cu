/* Softmax cross entropy: over a few classes, and over the vocabulary, where gradients replace the logits in place. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

constexpr int THREADS = 256, WARPS = THREADS / WARP;

/* The softmax statistics of a row of logits. -inf contributes nothing, NaN makes the sum NaN. */
struct softmax {
	float largest; /* largest logit */
	float sum;     /* of exp(logit - largest) */
	int best;      /* index of the largest logit, lowest index on ties */
};

DEVICE softmax empty_softmax()
{
	return softmax{-INFINITY, 0, 0x7fffffff};
}

/* Adds one logit; indices come in ascending order. */
DEVICE void softmax_add(softmax *s, float logit, int index)
{
	if (logit > s->largest) {
		s->sum = s->sum * expf(s->largest - logit) + 1; /* initially 0 * exp(-inf) */
		s->largest = logit;
		s->best = index;
	} else {
		s->sum += logit == -INFINITY ? 0 : expf(logit - s->largest);
		if (s->best == 0x7fffffff) /* the first logit is -inf */
			s->best = index;
	}
}

DEVICE softmax softmax_join(softmax a, softmax b)
{
	bool first = a.largest > b.largest || (a.largest == b.largest && a.best < b.best);
	softmax larger = first ? a : b, smaller = first ? b : a;
	if (smaller.sum != 0)
		larger.sum += smaller.sum * expf(smaller.largest - larger.largest);
	return larger;
}

DEVICE softmax warp_softmax(softmax s)
{
#pragma unroll
	for (int bits = WARP / 2; bits > 0; bits /= 2) {
		softmax other;
		other.largest = __shfl_xor_sync(ALL_LANES, s.largest, bits);
		other.sum = __shfl_xor_sync(ALL_LANES, s.sum, bits);
		other.best = __shfl_xor_sync(ALL_LANES, s.best, bits);
		s = softmax_join(s, other);
	}
	return s;
}

/* Returns the whole block's statistics to every thread; `shared` has room for one struct per warp. */
DEVICE softmax block_softmax(softmax s, softmax *shared)
{
	s = warp_softmax(s);
	if (lane_index() == 0)
		shared[threadIdx.x / WARP] = s;
	__syncthreads();
	s = lane_index() < (int)blockDim.x / WARP ? shared[lane_index()] : empty_softmax();
	return warp_softmax(s);
}

/* ---- Over the vocabulary: one block per row, four logits per thread at a time ----
 *
 * A row is read twice. Blocks are large, so that few rows are processed at a time: the rows in flight on the whole GPU (122 KB
 * each for 30,522 words, one or two per multiprocessor) are still in the second-level cache when they are read again. */

constexpr int VOCAB_THREADS = 1024, LANES = 4, VOCAB_STEP = VOCAB_THREADS * LANES;
constexpr float LOG2_E = 1.44269504f;

DEVICE void load_logits(const float *logits, const float *bias, float out[LANES])
{
	uint4 x = load16(logits), b = load16(bias);
	out[0] = __uint_as_float(x.x) + __uint_as_float(b.x), out[1] = __uint_as_float(x.y) + __uint_as_float(b.y);
	out[2] = __uint_as_float(x.z) + __uint_as_float(b.z), out[3] = __uint_as_float(x.w) + __uint_as_float(b.w);
}

/* Adds four logits, with indices from `index` on. */
DEVICE void softmax_add4(softmax *s, const float x[LANES], int index)
{
	float most = fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3]));
	if (most > s->largest) {
		s->sum *= exp2_approximate((s->largest - most) * LOG2_E); /* initially 0 * exp(-inf) */
		s->largest = most;
		s->best = index + (x[0] == most ? 0 : x[1] == most ? 1 : x[2] == most ? 2 : 3);
	}
	float offset = s->largest > -INFINITY ? s->largest * LOG2_E : 0;
#pragma unroll
	for (int i = 0; i < LANES; i++)
		s->sum += exp2_approximate(fmaf(x[i], LOG2_E, -offset));
}

DEVICE void store_gradients(float *at, const float in[LANES])
{
	store16(at, uint4{__float_as_uint(in[0]), __float_as_uint(in[1]), __float_as_uint(in[2]), __float_as_uint(in[3])});
}
template <typename T> DEVICE void store_gradients(T *at, const float in[LANES])
{
	*reinterpret_cast<uint2 *>(at) = uint2{pack2<T>(in[0], in[1]), pack2<T>(in[2], in[3])};
}

template <typename T> __global__ void __launch_bounds__(VOCAB_THREADS) vocab_xent(struct kernel_vocab_xent a)
{
	softmax *shared = reinterpret_cast<softmax *>(shared_start());
	int64_t row = blockIdx.x;
	const float *logits = a.logits + row * a.stride;
	float weight = a.weights[row];
	/* The row of gradients replaces the row of logits. */
	T *gradients = reinterpret_cast<T *>(a.logits + row * a.stride);
	double loss = 0, correct = 0;
	float factor = 0, lse = 0;
	int label = -1, whole = a.vocab / LANES * LANES;
	if (weight != 0) {
		softmax s = empty_softmax();
#pragma unroll 2
		for (int v = (int)threadIdx.x * LANES; v < whole; v += VOCAB_STEP) {
			float x[LANES];
			load_logits(logits + v, a.bias + v, x);
			softmax_add4(&s, x, v);
		}
		if (int v = whole + (int)threadIdx.x; v < a.vocab)
			softmax_add(&s, logits[v] + a.bias[v], v);
		s = block_softmax(s, shared);
		label = a.labels[row];
		lse = s.largest + logf(s.sum);
		/* Take the difference first, because a large logit would hide a small loss. */
		loss = (double)weight * ((double)(s.largest - (logits[label] + a.bias[label])) + log((double)s.sum));
		correct = s.best == label ? (double)weight : 0;
		if (a.training)
			factor = (float)((double)weight * a.scalars->inverse_weight[a.head] * a.scalars->loss_scale);
	}
	if (threadIdx.x == 0) {
		a.losses[row] = loss;
		a.corrects[row] = correct;
	}
	if (!a.training)
		return;
	/* In each step, all threads read their logits before any of them writes gradients: gradients are not wider than
	 * logits, so they only overwrite what has already been read. */
	for (int first = 0; first < a.vocab; first += VOCAB_STEP) {
		int v = first + (int)threadIdx.x * LANES, count = a.vocab - v < LANES ? a.vocab - v : LANES;
		float x[LANES] = {};
		if (weight != 0 && count == LANES) {
			load_logits(logits + v, a.bias + v, x);
		} else if (weight != 0) {
#pragma unroll
			for (int i = 0; i < LANES; i++)
				x[i] = i < count ? logits[v + i] + a.bias[v + i] : 0;
		}
#pragma unroll
		for (int i = 0; i < LANES; i++)
			x[i] = weight != 0 ? factor * (exp2_approximate((x[i] - lse) * LOG2_E) - (v + i == label ? 1 : 0)) : 0;
		__syncthreads();
		if (count == LANES) {
			store_gradients(gradients + v, x);
		} else {
#pragma unroll
			for (int i = 0; i < LANES; i++)
				if (i < count)
					gradients[v + i] = from_float<T>(x[i]);
		}
	}
}

/* ---- The most probable entries: one block per row, one entry per iteration ---- */

__global__ void __launch_bounds__(THREADS) topk_row(struct kernel_vocab_topk a)
{
	softmax *shared = reinterpret_cast<softmax *>(shared_start());
	int64_t row = blockIdx.x;
	const float *logits = a.logits + row * a.stride;
	softmax all = empty_softmax();
	for (int v = (int)threadIdx.x; v < a.vocab; v += THREADS)
		softmax_add(&all, logits[v] + a.bias[v], v);
	all = block_softmax(all, shared);
	softmax last = all;
	for (int rank = 0; rank < a.k; rank++) {
		if (threadIdx.x == 0) {
			a.ids[row * a.k + rank] = last.best;
			a.probabilities[row * a.k + rank] = exp((double)(last.largest - all.largest)) / (double)all.sum;
		}
		/* The largest among those that rank after the last one. */
		softmax next = empty_softmax();
		for (int v = (int)threadIdx.x; v < a.vocab; v += THREADS) {
			float logit = logits[v] + a.bias[v];
			if (logit < last.largest || (logit == last.largest && v > last.best))
				softmax_add(&next, logit, v);
		}
		__syncthreads(); /* shared has been read */
		last = block_softmax(next, shared);
	}
}

/* ---- Over a few classes: one warp per row ---- */

constexpr int CLASS_WARPS = 4;

template <typename T> __global__ void __launch_bounds__(CLASS_WARPS *WARP) class_xent(struct kernel_xent a)
{
	int64_t row = (int64_t)blockIdx.x * CLASS_WARPS + threadIdx.x / WARP;
	if (row >= a.rows)
		return;
	const T *logits = static_cast<const T *>(a.logits) + row * a.classes;
	T *gradients = static_cast<T *>(a.dlogits) + row * a.classes;
	int label = a.labels[row];
	double weight = label < 0 ? 0 : a.weights[row];
	softmax s = empty_softmax();
	for (int c = lane_index(); c < a.classes; c += WARP)
		softmax_add(&s, to_float(logits[c]), c);
	s = warp_softmax(s);
	float share = a.label_smoothing / (float)a.classes, right = label < 0 ? 0 : to_float(logits[label]), spread = 0;
	for (int c = lane_index(); a.label_smoothing > 0 && c < a.classes; c += WARP)
		spread += share * (right - to_float(logits[c]));
	spread = warp_sum(spread);
	if (lane_index() == 0) {
		a.losses[row] = weight == 0 ? 0 : weight * ((double)(s.largest - right) + log((double)s.sum) + (double)spread);
		a.corrects[row] = s.best == label ? weight : 0;
	}
	if (a.dlogits == nullptr)
		return;
	float factor = (float)(weight * a.scalars->inverse_weight[a.head] * a.scalars->loss_scale);
	for (int c = lane_index(); c < a.classes; c += WARP)
		gradients[c] = from_float<T>(factor == 0 ? 0
							 : factor * (expf(to_float(logits[c]) - s.largest) / s.sum -
								     ((c == label ? 1 - a.label_smoothing : 0) + share)));
}

/* ---- Sums of rows, in a fixed order ---- */

__global__ void __launch_bounds__(THREADS)
	add_rows(const double *losses, const double *corrects, int64_t rows, double *loss, double *correct)
{
	double *shared = reinterpret_cast<double *>(shared_start()), l = 0, c = 0;
	for (int64_t i = threadIdx.x; i < rows; i += THREADS) {
		l += losses[i];
		c += corrects[i];
	}
	l = block_sum(l, shared);
	c = block_sum(c, shared + WARPS);
	if (threadIdx.x == 0) {
		*loss += l;
		*correct += c;
	}
}

cudaError_t queue_add_rows(cudaStream_t stream, const double *losses, const double *corrects, int64_t rows, double *loss,
			   double *correct)
{
	return launch(add_rows, 1, THREADS, 2 * WARPS * sizeof(double), stream, losses, corrects, rows, loss, correct);
}

} // namespace

extern "C" cudaError_t kernel_vocab_xent(cudaStream_t stream, const struct kernel_vocab_xent *a)
{
	cudaError_t error = for_dtype(a->dtype, [&](auto type) {
		return launch(vocab_xent<decltype(type)>, (unsigned)a->rows, VOCAB_THREADS,
			      VOCAB_THREADS / WARP * sizeof(struct softmax), stream, *a);
	});
	return error != cudaSuccess ? error : queue_add_rows(stream, a->losses, a->corrects, a->rows, a->loss, a->correct);
}

extern "C" cudaError_t kernel_vocab_topk(cudaStream_t stream, const struct kernel_vocab_topk *a)
{
	return launch(topk_row, (unsigned)a->rows, THREADS, WARPS * sizeof(struct softmax), stream, *a);
}

extern "C" cudaError_t kernel_xent(cudaStream_t stream, const struct kernel_xent *a)
{
	cudaError_t error = for_dtype(a->dtype, [&](auto type) {
		return launch(class_xent<decltype(type)>, blocks_of(a->rows, CLASS_WARPS), CLASS_WARPS * WARP, 0, stream, *a);
	});
	return error != cudaSuccess ? error : queue_add_rows(stream, a->losses, a->corrects, a->rows, a->loss, a->correct);
}
