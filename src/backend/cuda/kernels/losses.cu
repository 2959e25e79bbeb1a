/* Losses of heads besides cross entropy over classes, and dropout of rows. A warp an item: they are small next to the encoder. */
#include "backend/cuda/kernels/device.cuh"
#include "backend/dropout.h"

namespace
{

constexpr int THREADS = 128, WARPS = THREADS / WARP;

DEVICE double warp_sum_double(double x)
{
#pragma unroll
	for (int bits = WARP / 2; bits > 0; bits /= 2)
		x += __shfl_xor_sync(ALL_LANES, x, bits);
	return x;
}

/* The largest of a warp's values, and its place; the lower of equals. */
DEVICE void warp_best(float *value, int *place)
{
#pragma unroll
	for (int bits = WARP / 2; bits > 0; bits /= 2) {
		float other = __shfl_xor_sync(ALL_LANES, *value, bits);
		int where = __shfl_xor_sync(ALL_LANES, *place, bits);
		if (other > *value || (other == *value && where < *place)) {
			*value = other;
			*place = where;
		}
	}
}

/* What gradients of an item are multiplied by. */
DEVICE double factor_of(const struct kernel_loss &a, double weight)
{
	return weight * a.scalars->inverse_weight[a.head] * a.scalars->loss_scale;
}

/* Cross entropy of `count` logits that lie `stride` apart, and its gradients times `factor`. A NaN makes it NaN. */
template <typename T>
DEVICE double cross_entropy(const T *logits, T *gradients, int count, int stride, int label, double factor, int *out_best)
{
	float largest = -INFINITY;
	int best = 0x7fffffff;
	for (int j = lane_index(); j < count; j += WARP) {
		float logit = to_float(logits[(int64_t)j * stride]);
		if (logit > largest) {
			largest = logit;
			best = j;
		}
	}
	warp_best(&largest, &best);
	double sum = 0;
	for (int j = lane_index(); j < count; j += WARP)
		sum += expf(to_float(logits[(int64_t)j * stride]) - largest);
	sum = warp_sum_double(sum);
	for (int j = lane_index(); gradients != nullptr && j < count; j += WARP) {
		double share = (double)expf(to_float(logits[(int64_t)j * stride]) - largest) / sum - (j == label ? 1 : 0);
		gradients[(int64_t)j * stride] = from_float<T>(factor == 0 ? 0 : (float)(factor * share));
	}
	*out_best = best;
	return label < 0 ? 0 : (double)(largest - to_float(logits[(int64_t)label * stride])) + log(sum);
}

template <typename T> DEVICE void group_item(const struct kernel_loss &a, int64_t i, double *loss, double *correct)
{
	int first = a.starts[i], count = a.starts[i + 1] - first, label = a.labels[i], best;
	double weight = label < 0 ? 0 : a.weights[i];
	T *gradients = a.gradients == nullptr ? nullptr : static_cast<T *>(a.gradients) + first;
	double own =
		cross_entropy(static_cast<const T *>(a.outputs) + first, gradients, count, 1, label, factor_of(a, weight), &best);
	*loss = weight == 0 ? 0 : weight * own;
	*correct = best == label ? weight : 0;
}

template <typename T> DEVICE void segment_item(const struct kernel_loss &a, int64_t i, double *loss, double *correct)
{
	int first = a.starts[i], count = a.starts[i + 1] - first;
	bool right = false, wrong = false;
	*loss = 0;
	for (int column = 0; column < 2; column++) {
		int label = a.labels[2 * i + column], best;
		int64_t at = (int64_t)first * 2 + column;
		double weight = label < 0 ? 0 : a.weights[i];
		T *gradients = a.gradients == nullptr ? nullptr : static_cast<T *>(a.gradients) + at;
		double own = cross_entropy(static_cast<const T *>(a.outputs) + at, gradients, count, 2, label,
					   factor_of(a, weight / 2), &best);
		if (weight == 0)
			continue;
		*loss += weight * own / 2;
		right = right || best == label;
		wrong = wrong || best != label;
	}
	*correct = right && !wrong ? a.weights[i] : 0;
}

/* Squared error and binary cross entropy: a row of outputs beside a row of values. */
template <typename T> DEVICE void row_item(const struct kernel_loss &a, int64_t i, double *loss, double *correct)
{
	const T *outputs = static_cast<const T *>(a.outputs) + i * a.columns;
	double weight = a.weights[i], sum = 0, factor = factor_of(a, weight) / a.columns, wrong = 0;
	for (int c = lane_index(); c < a.columns; c += WARP) {
		double x = to_float(outputs[c]), value = a.values[i * a.columns + c], gradient;
		if (a.kind == LOSS_KIND_SQUARED) {
			sum += (x - value) * (x - value);
			gradient = 2 * (x - value);
		} else {
			sum += (x > 0 ? x : 0) - x * value + log1p(exp(-fabs(x)));
			gradient = 1 / (1 + exp(-x)) - value;
			wrong += (x > 0) == (value > 0.5) ? 0 : 1;
		}
		if (a.gradients != nullptr)
			static_cast<T *>(a.gradients)[i * a.columns + c] =
				from_float<T>(weight == 0 ? 0 : (float)(factor * gradient));
	}
	sum = warp_sum_double(sum);
	wrong = warp_sum_double(wrong);
	*loss = weight == 0 ? 0 : weight * sum / a.columns;
	*correct = wrong == 0 ? weight : 0;
}

template <typename T> __global__ void __launch_bounds__(THREADS) loss_items(struct kernel_loss a)
{
	int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
	if (i >= a.items)
		return;
	double loss, correct;
	if (a.kind == LOSS_KIND_GROUP)
		group_item<T>(a, i, &loss, &correct);
	else if (a.kind == LOSS_KIND_SEGMENT)
		segment_item<T>(a, i, &loss, &correct);
	else
		row_item<T>(a, i, &loss, &correct);
	if (lane_index() == 0) {
		a.losses[i] = loss;
		a.corrects[i] = correct;
	}
}

/* In a fixed order. */
__global__ void __launch_bounds__(THREADS)
	add_items(const double *losses, const double *corrects, int64_t items, double *loss, double *correct)
{
	double *shared = reinterpret_cast<double *>(shared_start()), l = 0, c = 0;
	for (int64_t i = threadIdx.x; i < items; i += THREADS) {
		l += losses[i];
		c += corrects[i];
	}
	l = block_sum(l, shared);
	c = block_sum(c, shared + WARPS);
	if (threadIdx.x == 0) {
		*loss += l;
		if (correct != nullptr)
			*correct += c;
	}
}

/* A thread eight columns. */
template <typename T> __global__ void __launch_bounds__(THREADS) dropout_rows(struct kernel_row_dropout a)
{
	int blocks = (a.columns + BLOCK - 1) / BLOCK;
	int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
	if (i >= a.rows * blocks)
		return;
	int64_t row = i / blocks;
	int block = (int)(i % blocks), token = a.row_tokens == nullptr ? (int)row : a.row_tokens[row];
	const T *x = static_cast<const T *>(a.x) + row * a.columns;
	T *y = static_cast<T *>(a.y) + row * a.columns;
	uint16_t u[8];
	dropout_block(a.scalars->seed, (uint32_t)block, (uint32_t)a.positions[token], a.site, a.token_samples[token], u);
	for (int c = 0; c < BLOCK && block * BLOCK + c < a.columns; c++)
		y[block * BLOCK + c] = from_float<T>(u[c] < a.threshold ? 0 : to_float(x[block * BLOCK + c]) * a.scale);
}

} // namespace

extern "C" cudaError_t kernel_loss(cudaStream_t stream, const struct kernel_loss *a)
{
	cudaError_t error = for_dtype(a->dtype, [&](auto type) {
		return launch(loss_items<decltype(type)>, blocks_of(a->items, WARPS), THREADS, 0, stream, *a);
	});
	if (error != cudaSuccess)
		return error;
	return launch(add_items, 1, THREADS, 2 * WARPS * sizeof(double), stream, a->losses, a->corrects, a->items, a->loss,
		      a->correct);
}

extern "C" cudaError_t kernel_row_dropout(cudaStream_t stream, const struct kernel_row_dropout *a)
{
	return for_dtype(a->dtype, [&](auto type) {
		int64_t blocks = (a->columns + BLOCK - 1) / BLOCK;
		return launch(dropout_rows<decltype(type)>, blocks_of(a->rows * blocks, THREADS), THREADS, 0, stream, *a);
	});
}
