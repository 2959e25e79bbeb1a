/* Losses of heads other than cross entropy over classes, and dropout of rows. One warp per item: they are small compared to
 * the encoder. */
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

/* The largest of a warp's values and its place; on ties the lowest place. */
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

/* The factor for an item's gradients. */
template <typename LOSS> DEVICE double factor_of(const LOSS &a, double weight)
{
	return weight * a.scalars->inverse_weight[a.head] * a.scalars->loss_scale;
}

/* Cross entropy of `count` logits that are `stride` apart, and its gradients times `factor`. A NaN makes it NaN. */
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

/* The rows of a list against their values: shares of a softmax, or margins to the first row. */
template <typename T> DEVICE void list_item(const struct kernel_loss &a, int64_t i, double *loss)
{
	int first = a.starts[i], end = a.starts[i + 1];
	const T *logits = static_cast<const T *>(a.outputs);
	T *gradients = static_cast<T *>(a.gradients);
	bool shares = a.kind == LOSS_KIND_SHARES;
	float largest = -INFINITY;
	double sum = 0, all = 0, own = 0, slopes = 0;
	*loss = 0;
	if (first == end)
		return;
	double top = to_float(logits[first]), target = a.values[first];
	for (int j = first + lane_index(); j < end; j += WARP)
		largest = fmaxf(largest, to_float(logits[j]));
	largest = warp_max(largest);
	for (int j = first + lane_index(); j < end; j += WARP) {
		sum += expf(to_float(logits[j]) - largest);
		all += a.values[j];
	}
	double lse = largest + log(warp_sum_double(sum));
	all = warp_sum_double(all);
	for (int j = first + lane_index(); j < end; j += WARP) {
		double z = to_float(logits[j]), value = a.values[j],
		       weight = shares       ? a.weights[first]
				: j == first ? 0
					     : a.weights[j];
		double off = top - z - (target - value), slope = shares ? all * exp(z - lse) - value : -2 * off;
		double scaled = weight == 0 ? 0 : factor_of(a, weight) * slope;
		own += weight == 0 ? 0 : weight * (shares ? value * (lse - z) : off * off);
		slopes -= scaled;
		if (gradients != nullptr)
			gradients[j] = from_float<T>((float)scaled);
	}
	*loss = warp_sum_double(own);
	slopes = warp_sum_double(slopes);
	if (gradients != nullptr && !shares && lane_index() == 0)
		gradients[first] = from_float<T>((float)slopes);
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

/* log(1 + exp(x)) */
DEVICE double softplus(double x)
{
	return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

/* Squared error and binary cross entropy: compares a row of outputs with a row of values. */
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
			double p = 1 / (1 + exp(-x)); /* and beyond the term of a value without a weight: */
			double excess = a.positive_weights != nullptr ? ((double)a.positive_weights[c] - 1) * value : 0;
			sum += (x > 0 ? x : 0) - x * value + log1p(exp(-fabs(x))) + excess * softplus(-x);
			gradient = p - value - excess * (1 - p);
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
	double loss, correct = 0;
	if (a.kind == LOSS_KIND_SHARES || a.kind == LOSS_KIND_MARGINS)
		list_item<T>(a, i, &loss);
	else if (a.kind == LOSS_KIND_GROUP)
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

/* Log-sum-exp of `count` logits / t that are `stride` apart. */
template <typename T> DEVICE double soft_log_sum(const T *logits, int count, int stride, double t)
{
	float largest = -INFINITY;
	for (int j = lane_index(); j < count; j += WARP)
		largest = fmaxf(largest, to_float(logits[(int64_t)j * stride]));
	largest = warp_max(largest);
	double sum = 0;
	for (int j = lane_index(); j < count; j += WARP)
		sum += exp((to_float(logits[(int64_t)j * stride]) - (double)largest) / t);
	return largest / t + log(warp_sum(sum));
}

/* Mixes the gradient `own` into the existing one. */
template <typename T> DEVICE void mix_gradient(const struct kernel_soft_loss &a, int64_t at, double own)
{
	T *gradient = static_cast<T *>(a.gradients) + at;
	*gradient = from_float<T>((float)((1 - a.share) * to_float(*gradient) + a.share * own));
}

/* T^2 KL(teacher, student) of `count` logits from `at` on; mixes in its gradients times `factor`. */
template <typename T> DEVICE double divergence(const struct kernel_soft_loss &a, int64_t at, int count, int stride, double factor)
{
	const T *teacher = static_cast<const T *>(a.teacher) + at, *student = static_cast<const T *>(a.outputs) + at;
	double t = a.temperature, sum = 0;
	double teachers = soft_log_sum(teacher, count, stride, t), students = soft_log_sum(student, count, stride, t);
	for (int j = lane_index(); j < count; j += WARP) {
		int64_t place = (int64_t)j * stride;
		double log_p = to_float(teacher[place]) / t - teachers, log_q = to_float(student[place]) / t - students;
		double p = exp(log_p);
		sum += p > 0 ? p * (log_p - log_q) : 0;
		mix_gradient<T>(a, at + place, factor == 0 ? 0 : factor * t * (exp(log_q) - p));
	}
	return t * t * warp_sum(sum);
}

/* Sum over a row of outputs, each compared with the teacher's separately. */
template <typename T> DEVICE double soft_row(const struct kernel_soft_loss &a, int64_t at, double factor)
{
	const T *teachers = static_cast<const T *>(a.teacher) + at, *students = static_cast<const T *>(a.outputs) + at;
	double t = a.kind == SOFT_SIGMOIDS ? a.temperature : 1, sum = 0;
	for (int c = lane_index(); c < a.columns; c += WARP) {
		double teacher = to_float(teachers[c]) / t, student = to_float(students[c]) / t, gradient;
		if (a.kind == SOFT_NUMBERS) {
			sum += (student - teacher) * (student - teacher);
			gradient = 2 * (student - teacher);
		} else {
			double p = 1 / (1 + exp(-teacher));
			sum += t * t * (softplus(student) - softplus(teacher) - p * (student - teacher));
			gradient = t * (1 / (1 + exp(-student)) - p);
		}
		mix_gradient<T>(a, at + c, factor == 0 ? 0 : factor * gradient);
	}
	return warp_sum(sum);
}

template <typename T> __global__ void __launch_bounds__(THREADS) soft_items(struct kernel_soft_loss a)
{
	int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
	if (i >= a.items)
		return;
	double weight = a.weights[i], sum = 0;
	double factor = weight * a.scalars->inverse_weight[a.head] * a.scalars->loss_scale;
	if (a.kind == SOFT_CLASSES)
		sum = divergence<T>(a, i * a.columns, a.columns, 1, factor);
	else if (a.kind == SOFT_ROWS)
		for (int c = 0; c < a.columns; c++)
			sum += divergence<T>(a, (int64_t)a.starts[i] * a.columns + c, a.starts[i + 1] - a.starts[i], a.columns,
					     factor / a.columns) /
			       a.columns;
	else
		sum = soft_row<T>(a, i * a.columns, factor / a.columns) / a.columns;
	if (lane_index() == 0)
		a.losses[i] = weight == 0 ? 0 : weight * sum;
}

/* One warp per token; blocks take tokens in turn. */
template <typename T> __global__ void __launch_bounds__(THREADS) hidden_rows(struct kernel_hidden_error a)
{
	double *shared = reinterpret_cast<double *>(shared_start()), all = 0;
	double factor = 2 * a.factor * a.scalars->inverse_tokens * a.scalars->loss_scale / (double)a.columns;
	int own = a.own_tokens[0];
	for (int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP; i < a.tokens; i += (int64_t)gridDim.x * WARPS) {
		const T *x = static_cast<const T *>(a.x) + i * a.columns,
			*target = static_cast<const T *>(a.target) + i * a.columns;
		T *dx = static_cast<T *>(a.dx) + i * a.columns;
		double sum = 0;
		for (int64_t c = lane_index(); c < a.columns; c += WARP) {
			float difference = i < own ? to_float(x[c]) - to_float(target[c]) : 0;
			sum += (double)difference * (double)difference;
			dx[c] = from_float<T>((float)factor * difference);
		}
		all += sum / (double)a.columns;
	}
	all = block_sum(all, shared);
	if (threadIdx.x == 0)
		a.parts[blockIdx.x] = all;
}

/* Adds the items in a fixed order. */
__global__ void __launch_bounds__(THREADS)
	add_items(const double *losses, const double *corrects, int64_t items, double *loss, double *correct)
{
	double *shared = reinterpret_cast<double *>(shared_start()), l = 0, c = 0;
	for (int64_t i = threadIdx.x; i < items; i += THREADS) {
		l += losses[i];
		c += correct != nullptr ? corrects[i] : 0;
	}
	l = block_sum(l, shared);
	c = block_sum(c, shared + WARPS);
	if (threadIdx.x == 0) {
		*loss += l;
		if (correct != nullptr)
			*correct += c;
	}
}

/* ---- Pointers: one block per sequence; one warp per item, then one warp per key ---- */

constexpr int POINTER_PARTS = POINTER_SIZE_MOST / WARP; /* numbers of a vector that each lane adds up */

/* One of the pointers of a sequence. */
template <typename T> struct pointer {
	const struct kernel_pointer_xent *a;
	int number, first, count; /* the sequence's rows */
	int query, key;           /* columns */
	DEVICE const T *at(int row, int column) const
	{
		return static_cast<const T *>(a->logits) + (int64_t)row * a->columns + column;
	}
	DEVICE T *gradient(int row, int column) const
	{
		return static_cast<T *>(a->gradients) + (int64_t)row * a->columns + column;
	}
	/* The logit with which a row points at a place of its sequence; computed by one lane. */
	DEVICE float logit(int row, int place) const
	{
		const T *q = at(row, query), *k = at(first + place, key);
		float sum = 0;
		for (int i = 0; i < a->size; i++)
			sum += to_float(q[i]) * to_float(k[i]);
		return sum * a->scale;
	}
	DEVICE int label(int item) const
	{
		return a->labels[(int64_t)item * (1 + a->pointers) + 1 + number];
	}
	DEVICE float *lse(int item) const
	{
		return a->lse + (int64_t)number * a->items + item;
	}
	/* The factor of an item's product of query and key, in the gradient of either. */
	DEVICE float factor(int item, int place) const
	{
		int right = label(item);
		double weight = right < 0 ? 0 : a->weights[item];
		float share = expf(logit(a->rows[item], place) - *lse(item)) - (place == right ? 1 : 0);
		return weight == 0 ? 0 : (float)(factor_of(*a, weight) * share) * a->scale;
	}
};

template <typename T> DEVICE struct pointer<T> pointer_of(const struct kernel_pointer_xent &a, int sequence, int number) {
	int first = a.starts[sequence], query = a.classes + 2 * number * a.size;
	return {&a, number, first, a.starts[sequence + 1] - first, query, query + a.size};
}

/* The cross entropy of where an item's row points; stores its lse. */
template <typename T>
DEVICE double point(const struct pointer<T> &p, int item, int *out_best)
{
	float largest = -INFINITY;
	int best = 0x7fffffff, row = p.a->rows[item], right = p.label(item);
	for (int place = lane_index(); place < p.count; place += WARP) {
		float logit = p.logit(row, place);
		if (logit > largest) {
			largest = logit;
			best = place;
		}
	}
	warp_best(&largest, &best);
	double sum = 0;
	for (int place = lane_index(); place < p.count; place += WARP)
		sum += expf(p.logit(row, place) - largest);
	sum = warp_sum_double(sum);
	if (lane_index() == 0)
		*p.lse(item) = (float)(largest + log(sum));
	*out_best = best;
	return right < 0 ? 0 : (double)(largest - p.logit(row, right)) + log(sum);
}

/* Stores the sum over items or places j of factor j times vector j, as the gradient of a query or key. Each lane computes one
 * of 32 factors, and sums one of every 32 numbers. */
template <typename T, typename FACTOR, typename VECTOR>
DEVICE void add_vectors(int count, int size, FACTOR factor_of_vector, VECTOR vector, T *out)
{
	float sum[POINTER_PARTS] = {};
	for (int first = 0; first < count; first += WARP) {
		int mine = first + lane_index(), most = count - first < WARP ? count - first : WARP;
		float own = mine < count ? factor_of_vector(mine) : 0;
		for (int j = 0; j < most; j++) {
			float factor = __shfl_sync(ALL_LANES, own, j);
			const T *x = vector(first + j);
#pragma unroll
			for (int part = 0; part < POINTER_PARTS; part++)
				if (part * WARP + lane_index() < size)
					sum[part] += factor * to_float(x[part * WARP + lane_index()]);
		}
	}
#pragma unroll
	for (int part = 0; part < POINTER_PARTS; part++)
		if (part * WARP + lane_index() < size)
			out[part * WARP + lane_index()] = from_float<T>(sum[part]);
}

template <typename T>
DEVICE void pointer_item(const struct kernel_pointer_xent &a, int sequence, int item, double *loss, double *correct)
{
	const int32_t *labels = a.labels + (int64_t)item * (1 + a.pointers);
	int64_t row = (int64_t)a.rows[item] * a.columns;
	T *gradients = a.gradients == nullptr ? nullptr : static_cast<T *>(a.gradients) + row;
	double weight = labels[0] < 0 ? 0 : a.weights[item];
	int best;
	double own = cross_entropy(static_cast<const T *>(a.logits) + row, gradients, a.classes, 1, labels[0],
				   factor_of(a, weight), &best);
	bool known = weight != 0, wrong = known && best != labels[0];
	double sum = known ? weight * own : 0;
	for (int k = 0; k < a.pointers; k++) {
		struct pointer<T> p = pointer_of<T>(a, sequence, k);
		own = point(p, item, &best);
		__syncwarp();
		if (gradients != nullptr)
			add_vectors<T>(
				p.count, a.size, [&](int place) { return p.factor(item, place); },
				[&](int place) { return p.at(p.first + place, p.key); }, gradients + p.query);
		if (labels[1 + k] < 0 || a.weights[item] == 0)
			continue;
		sum += a.weights[item] * own;
		known = true;
		wrong = wrong || best != labels[1 + k];
	}
	*loss += sum;
	*correct += known && !wrong ? a.weights[item] : 0;
}

/* The items that fill up a batch (fill.c) have no weight and take rows from the end downwards, while rows ascend up to them: the
 * number of items before the rows descend, which leaves out all of these but perhaps the first. */
DEVICE int ascending_items(const struct kernel_pointer_xent &a)
{
	int low = 0, high = a.items - 1;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (a.rows[middle] < a.rows[middle + 1])
			low = middle + 1;
		else
			high = middle;
	}
	return a.items > 0 ? low + 1 : 0;
}

/* The first of `items` items whose row is at or after this one. */
DEVICE int first_item(const struct kernel_pointer_xent &a, int items, int row)
{
	int low = 0, high = items;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (a.rows[middle] < row)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

template <typename T> __global__ void __launch_bounds__(THREADS) pointer_sequences(struct kernel_pointer_xent a)
{
	double *shared = reinterpret_cast<double *>(shared_start()), loss = 0, correct = 0;
	int sequence = (int)blockIdx.x, warp = (int)threadIdx.x / WARP;
	int begin = a.starts[sequence], end = a.starts[sequence + 1], items = ascending_items(a);
	int first = first_item(a, items, begin), last = first_item(a, items, end);
	if (a.gradients != nullptr) {
		T *gradients = static_cast<T *>(a.gradients);
		for (int64_t i = (int64_t)begin * a.columns + threadIdx.x; i < (int64_t)end * a.columns; i += THREADS)
			gradients[i] = from_float<T>(0);
	}
	__syncthreads();
	for (int item = first + warp; item < last; item += WARPS)
		pointer_item<T>(a, sequence, item, &loss, &correct);
	__syncthreads();
	for (int i = warp; a.gradients != nullptr && i < (end - begin) * a.pointers; i += WARPS) {
		struct pointer<T> p = pointer_of<T>(a, sequence, i / (end - begin));
		int place = i % (end - begin);
		add_vectors<T>(
			last - first, a.size, [&](int j) { return p.factor(first + j, place); },
			[&](int j) { return p.at(a.rows[first + j], p.query); }, p.gradient(begin + place, p.key));
	}
	/* All lanes of a warp hold the warp's total, so only one of them is counted. */
	loss = block_sum(lane_index() == 0 ? loss : 0, shared);
	correct = block_sum(lane_index() == 0 ? correct : 0, shared + WARPS);
	if (threadIdx.x == 0) {
		a.losses[sequence] = loss;
		a.corrects[sequence] = correct;
	}
}

/* One thread per eight columns. */
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

extern "C" cudaError_t kernel_pointer_xent(cudaStream_t stream, const struct kernel_pointer_xent *a)
{
	cudaError_t error = for_dtype(a->dtype, [&](auto type) {
		return launch(pointer_sequences<decltype(type)>, (unsigned)a->sequences, THREADS, 2 * WARPS * sizeof(double),
			      stream, *a);
	});
	if (error != cudaSuccess)
		return error;
	return launch(add_items, 1, THREADS, 2 * WARPS * sizeof(double), stream, a->losses, a->corrects, (int64_t)a->sequences,
		      a->loss, a->correct);
}

extern "C" cudaError_t kernel_soft_loss(cudaStream_t stream, const struct kernel_soft_loss *a)
{
	cudaError_t error = for_dtype(a->dtype, [&](auto type) {
		return launch(soft_items<decltype(type)>, blocks_of(a->items, WARPS), THREADS, 0, stream, *a);
	});
	if (error != cudaSuccess)
		return error;
	return launch(add_items, 1, THREADS, 2 * WARPS * sizeof(double), stream, static_cast<const double *>(a->losses),
		      static_cast<const double *>(nullptr), a->items, a->loss, static_cast<double *>(nullptr));
}

extern "C" cudaError_t kernel_hidden_error(cudaStream_t stream, const struct kernel_hidden_error *a)
{
	unsigned blocks = blocks_of(a->tokens, WARPS);
	blocks = blocks < SQUARE_PARTS ? blocks : SQUARE_PARTS;
	cudaError_t error = for_dtype(a->dtype, [&](auto type) {
		return launch(hidden_rows<decltype(type)>, blocks, THREADS, WARPS * sizeof(double), stream, *a);
	});
	if (error != cudaSuccess)
		return error;
	return launch(add_items, 1, THREADS, 2 * WARPS * sizeof(double), stream, static_cast<const double *>(a->parts),
		      static_cast<const double *>(nullptr), (int64_t)blocks, a->loss, static_cast<double *>(nullptr));
}

extern "C" cudaError_t kernel_row_dropout(cudaStream_t stream, const struct kernel_row_dropout *a)
{
	return for_dtype(a->dtype, [&](auto type) {
		int64_t blocks = (a->columns + BLOCK - 1) / BLOCK;
		return launch(dropout_rows<decltype(type)>, blocks_of(a->rows * blocks, THREADS), THREADS, 0, stream, *a);
	});
}
