/* The gradient's norm, AdamW and LAMB: passes over weights, moments and gradients. Nothing is returned to the host: everything
 * that depends on the norm is computed from the scalars on the device. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

constexpr int THREADS = 256, WARPS = THREADS / WARP;
constexpr int LANES = 4; /* numbers per fp32 vector */

DEVICE void load4(const float *at, float out[LANES])
{
	uint4 v = load16(at);
	out[0] = __uint_as_float(v.x), out[1] = __uint_as_float(v.y);
	out[2] = __uint_as_float(v.z), out[3] = __uint_as_float(v.w);
}
DEVICE void store4(float *at, const float in[LANES])
{
	store16(at, uint4{__float_as_uint(in[0]), __float_as_uint(in[1]), __float_as_uint(in[2]), __float_as_uint(in[3])});
}

/* Loops over [begin, end) for an update: the calling thread is number `thread` of `threads`. Calls vector(i) for four elements
 * aligned to 16 bytes, and element(i) for the remaining ones: all of them, if `begin` is not aligned. */
template <typename V, typename E>
DEVICE void for_range(int64_t begin, int64_t end, int64_t thread, int64_t threads, V vector, E element)
{
	int64_t whole = begin % LANES == 0 ? begin + (end - begin) / LANES * LANES : begin;
#pragma unroll 1
	for (int64_t i = begin + thread * LANES; i < whole; i += threads * LANES)
		vector(i);
#pragma unroll 1
	for (int64_t i = whole + thread; i < end; i += threads)
		element(i);
}

/* Stores the copy of weights, rounded to T; with float no copy is wanted. */
template <typename T> DEVICE void copy4(void *copy, int64_t first, const float in[LANES])
{
	if constexpr (sizeof(T) == 2)
		*reinterpret_cast<uint2 *>(static_cast<T *>(copy) + first) =
			uint2{pack2<T>(in[0], in[1]), pack2<T>(in[2], in[3])};
}
template <typename T> DEVICE void copy1(void *copy, int64_t at, float in)
{
	if constexpr (sizeof(T) == 2)
		static_cast<T *>(copy)[at] = from_float<T>(in);
}

/* Calls body(T()) with the type of the copy, or float for no copy. */
template <typename F> cudaError_t for_copy(const void *copy, enum dtype dtype, F body)
{
	return copy == nullptr       ? body(float())
	       : dtype == DTYPE_BF16 ? body(bf16())
	       : dtype == DTYPE_F16  ? body(f16())
				     : cudaErrorInvalidValue;
}

/* ---- The norm of the gradient ---- */

__global__ void __launch_bounds__(THREADS) square_parts(const float *range, int64_t count, double *parts)
{
	double *shared = reinterpret_cast<double *>(shared_start()), sum = 0;
	int64_t thread = (int64_t)blockIdx.x * THREADS + threadIdx.x, threads = (int64_t)gridDim.x * THREADS;
	int64_t whole = count / LANES * LANES;
#pragma unroll 4
	for (int64_t i = thread * LANES; i < whole; i += threads * LANES) {
		float x[LANES];
		load4(range + i, x);
#pragma unroll
		for (int j = 0; j < LANES; j++)
			sum += (double)x[j] * (double)x[j];
	}
	if (whole + thread < count)
		sum += (double)range[whole + thread] * (double)range[whole + thread];
	sum = block_sum(sum, shared);
	if (threadIdx.x == 0)
		parts[blockIdx.x] = sum;
}

/* Squares of finite floats cannot overflow a double or become NaN, so the sum is finite if all elements are. */
__global__ void __launch_bounds__(THREADS)
	square_sum(const double *parts, int count, bool add, const struct accumulators *sums, bool decides, struct scalars *s)
{
	double *shared = reinterpret_cast<double *>(shared_start()), sum = 0;
	for (int i = (int)threadIdx.x; i < count; i += THREADS)
		sum += parts[i];
	sum = block_sum(sum, shared);
	if (threadIdx.x != 0)
		return;
	bool losses_finite = true;
	for (int i = 0; sums != nullptr && i < ACCUMULATOR_COUNT; i++)
		losses_finite = losses_finite && sums->value[i] - sums->value[i] == 0;
	s->gradient_square_sum = (add ? s->gradient_square_sum : 0) + sum;
	s->losses_finite = (!add || s->losses_finite != 0) && losses_finite ? 1 : 0;
	s->finite = (!add || s->finite != 0) && losses_finite && sum - sum == 0 ? 1 : 0;
	if (decides)
		loss_scale_next(s);
}

/* ---- Factors derived from the scalars: computed by one thread for the whole block ---- */

struct adamw_factors {
	float gradient_scale, step_size, root_scale, decay;
	int64_t begin, end; /* the elements that the block updates */
};

static inline __host__ __device__ int64_t adamw_parts(const struct decay_range &range)
{
	return (range.count + ADAMW_PART - 1) / ADAMW_PART;
}

/* Finds the block's part: every thread checks one range, and the one whose range contains the part fills in `out`. */
DEVICE void adamw_find(const struct kernel_adamw &a, adamw_factors *out)
{
	int i = (int)threadIdx.x;
	if (i >= a.range_count)
		return;
	const struct decay_range range = a.range[i].elements;
	int64_t part = (int64_t)blockIdx.x - a.range[i].first_part, first = part * ADAMW_PART;
	if (part < 0 || part >= adamw_parts(range))
		return;
	out->begin = range.offset + first;
	out->end = range.offset + (first + ADAMW_PART < range.count ? first + ADAMW_PART : range.count);
	out->step_size = (float)(a.scalars->learning_rate * range.rate / a.scalars->bias_correction1);
	out->decay = (float)(a.scalars->learning_rate * range.rate * range.weight_decay);
}
static_assert(ADAMW_RANGES <= THREADS, "a thread a range");
static_assert(sizeof(struct kernel_adamw) <= 4096, "the limit of kernel parameters");

DEVICE void adamw_prepare(const struct scalars *s, adamw_factors *out)
{
	double norm = sqrt(s->gradient_square_sum) / s->gradient_scale, clip = 1;
	if (s->max_grad_norm > 0 && s->max_grad_norm < norm + 1e-6)
		clip = s->max_grad_norm / (norm + 1e-6);
	out->gradient_scale = (float)(clip / s->gradient_scale);
	out->root_scale = (float)(1 / sqrt(s->bias_correction2));
}

template <typename T> __global__ void __launch_bounds__(THREADS) adamw_ranges(struct kernel_adamw a)
{
	adamw_factors *shared = reinterpret_cast<adamw_factors *>(shared_start());
	if (a.scalars->finite == 0)
		return;
	adamw_find(a, shared);
	if (threadIdx.x == 0)
		adamw_prepare(a.scalars, shared);
	__syncthreads();
	const adamw_factors f = *shared;
	auto update = [&](float &w, float &m, float &v, float g) {
		g *= f.gradient_scale;
		m = a.beta1 * m + a.one_minus_beta1 * g;
		v = a.beta2 * v + a.one_minus_beta2 * g * g;
		w -= f.step_size * m / (sqrtf(v) * f.root_scale + a.epsilon) + f.decay * w;
	};
	for_range(
		f.begin, f.end, threadIdx.x, THREADS,
		[&](int64_t i) {
			float w[LANES], m[LANES], v[LANES], g[LANES];
			load4(a.g + i, g);
			load4(a.m + i, m);
			load4(a.v + i, v);
			load4(a.w + i, w);
#pragma unroll
			for (int j = 0; j < LANES; j++)
				update(w[j], m[j], v[j], g[j]);
			store4(a.m + i, m);
			store4(a.v + i, v);
			store4(a.w + i, w);
			copy4<T>(a.copy, i, w);
		},
		[&](int64_t i) {
			update(a.w[i], a.m[i], a.v[i], a.g[i]);
			copy1<T>(a.copy, i, a.w[i]);
		});
}

/* ---- LAMB: parts of a tensor along x, tensors along y ---- */

struct lamb_factors {
	float gradient_scale, moment_scale, root_scale, step_size;
};

/* Elements per part; depends on the tensor alone. */
DEVICE int64_t lamb_part_size(const struct lamb_tensor &tensor)
{
	int64_t each = (tensor.count + LAMB_PARTS - 1) / LAMB_PARTS;
	return each < LAMB_LEAST ? LAMB_LEAST : (each + LANES - 1) / LANES * LANES;
}

/* This block's elements [begin, end) of the range; false if the tensor has no such part. */
DEVICE bool lamb_part(const struct lamb_tensor &tensor, int64_t *begin, int64_t *end)
{
	int64_t each = lamb_part_size(tensor), first = blockIdx.x * each;
	*begin = tensor.offset + first;
	*end = tensor.offset + (first + each < tensor.count ? first + each : tensor.count);
	return first < tensor.count;
}

/* The update of an element, from the moments as updated in this step. */
DEVICE float lamb_update(const lamb_factors &f, float m, float v, float w, float epsilon, float decay)
{
	return m * f.moment_scale / (sqrtf(v) * f.root_scale + epsilon) + decay * w;
}

DEVICE lamb_factors lamb_prepare(const struct scalars *s, bool normalize)
{
	double norm = sqrt(s->gradient_square_sum) / s->gradient_scale, factor = 1;
	if (normalize)
		factor = norm > 0 ? 1 / norm : 1;
	else if (s->max_grad_norm > 0 && norm > s->max_grad_norm)
		factor = s->max_grad_norm / norm;
	return lamb_factors{(float)(factor / s->gradient_scale), (float)(1 / s->bias_correction1),
			    (float)(1 / sqrt(s->bias_correction2)), (float)s->learning_rate};
}

__global__ void __launch_bounds__(THREADS) lamb_norms_part(struct kernel_lamb a)
{
	double *sums = reinterpret_cast<double *>(shared_start());
	lamb_factors *shared = reinterpret_cast<lamb_factors *>(sums + 2 * WARPS);
	double w_sum = 0, u_sum = 0;
	const struct lamb_tensor tensor = a.tensors[blockIdx.y];
	int64_t begin, end;
	if (!lamb_part(tensor, &begin, &end))
		return;
	if (a.scalars->finite != 0) {
		if (threadIdx.x == 0)
			*shared = lamb_prepare(a.scalars, a.normalize);
		__syncthreads();
		const lamb_factors f = *shared;
		float decay = (float)tensor.weight_decay;
		auto update = [&](float w, float &m, float &v, float g) {
			g *= f.gradient_scale;
			m = a.beta1 * m + a.beta3 * g;
			v = a.beta2 * v + a.one_minus_beta2 * g * g;
			float u = lamb_update(f, m, v, w, a.epsilon, decay);
			w_sum += (double)w * (double)w;
			u_sum += (double)u * (double)u;
		};
		for_range(
			begin, end, threadIdx.x, THREADS,
			[&](int64_t i) {
				float w[LANES], m[LANES], v[LANES], g[LANES];
				load4(a.g + i, g);
				load4(a.m + i, m);
				load4(a.v + i, v);
				load4(a.w + i, w);
#pragma unroll
				for (int j = 0; j < LANES; j++)
					update(w[j], m[j], v[j], g[j]);
				store4(a.m + i, m);
				store4(a.v + i, v);
			},
			[&](int64_t i) { update(a.w[i], a.m[i], a.v[i], a.g[i]); });
	}
	__syncthreads();
	w_sum = block_sum(w_sum, sums);
	u_sum = block_sum(u_sum, sums + WARPS);
	if (threadIdx.x == 0) {
		double *part = a.parts + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * 2;
		part[0] = w_sum;
		part[1] = u_sum;
	}
}

/* One warp per tensor: adds the tensor's parts, of at most part_count, in a fixed order. */
__global__ void __launch_bounds__(WARP)
	lamb_sums(const struct lamb_tensor *tensors, const double *parts, int part_count, double *norms)
{
	const struct lamb_tensor &tensor = tensors[blockIdx.x];
	const double *own = parts + (int64_t)blockIdx.x * part_count * 2;
	int64_t each = lamb_part_size(tensor);
	double w_sum = 0, u_sum = 0;
	for (int i = lane_index(); i * each < tensor.count; i += WARP) {
		w_sum += own[2 * i];
		u_sum += own[2 * i + 1];
	}
	w_sum = warp_sum(w_sum);
	u_sum = warp_sum(u_sum);
	if (lane_index() == 0) {
		norms[2 * blockIdx.x] = w_sum;
		norms[2 * blockIdx.x + 1] = u_sum;
	}
}

template <typename T> __global__ void __launch_bounds__(THREADS) lamb_apply_part(struct kernel_lamb a)
{
	lamb_factors *shared = reinterpret_cast<lamb_factors *>(shared_start());
	const struct lamb_tensor tensor = a.tensors[blockIdx.y];
	int64_t begin, end;
	if (!lamb_part(tensor, &begin, &end) || a.scalars->finite == 0)
		return;
	if (threadIdx.x == 0) {
		lamb_factors f = lamb_prepare(a.scalars, false);
		double w_norm = sqrt(a.norms[2 * blockIdx.y]), u_norm = sqrt(a.norms[2 * blockIdx.y + 1]), ratio = 1;
		if (tensor.adapts && w_norm > 0 && u_norm > 0)
			ratio = w_norm / u_norm;
		if (tensor.adapts && a.max_trust_ratio > 0 && ratio > a.max_trust_ratio)
			ratio = a.max_trust_ratio;
		f.step_size = (float)(a.scalars->learning_rate * tensor.rate * ratio);
		*shared = f;
	}
	__syncthreads();
	const lamb_factors f = *shared;
	float decay = (float)tensor.weight_decay;
	auto update = [&](float &w, float m, float v) { w -= f.step_size * lamb_update(f, m, v, w, a.epsilon, decay); };
	for_range(
		begin, end, threadIdx.x, THREADS,
		[&](int64_t i) {
			float w[LANES], m[LANES], v[LANES];
			load4(a.m + i, m);
			load4(a.v + i, v);
			load4(a.w + i, w);
#pragma unroll
			for (int j = 0; j < LANES; j++)
				update(w[j], m[j], v[j]);
			store4(a.w + i, w);
			copy4<T>(a.copy, i, w);
		},
		[&](int64_t i) {
			update(a.w[i], a.m[i], a.v[i]);
			copy1<T>(a.copy, i, a.w[i]);
		});
}

} // namespace

extern "C" cudaError_t kernel_sumsq_finite(cudaStream_t stream, const float *range, int64_t count, bool add,
					   const struct accumulators *sums, bool decides, double *parts, struct scalars *scalars)
{
	unsigned grid = blocks_of(count, (int64_t)THREADS * LANES);
	grid = grid < SQUARE_PARTS ? grid : SQUARE_PARTS;
	cudaError_t error = launch(square_parts, grid, THREADS, WARPS * sizeof(double), stream, range, count, parts);
	if (error != cudaSuccess)
		return error;
	return launch(square_sum, 1, THREADS, WARPS * sizeof(double), stream, parts, (int)grid, add, sums, decides, scalars);
}

extern "C" cudaError_t kernel_adamw(cudaStream_t stream, const struct kernel_adamw *a)
{
	struct kernel_adamw own = *a;
	int64_t parts = 0;
	for (int i = 0; i < a->range_count; i++) {
		own.range[i].first_part = parts;
		parts += adamw_parts(a->range[i].elements);
	}
	return for_copy(a->copy, a->copy_dtype, [&](auto type) {
		return launch(adamw_ranges<decltype(type)>, (unsigned)parts, THREADS, sizeof(adamw_factors), stream, own);
	});
}

/* The number of parts that the largest possible tensor has. */
static unsigned lamb_part_count(const struct kernel_lamb *a)
{
	unsigned parts = blocks_of(a->count, LAMB_LEAST);
	return parts < LAMB_PARTS ? parts : LAMB_PARTS;
}

extern "C" cudaError_t kernel_lamb_norms(cudaStream_t stream, const struct kernel_lamb *a)
{
	unsigned parts = lamb_part_count(a);
	cudaError_t error = launch(lamb_norms_part, dim3(parts, (unsigned)a->tensor_count), THREADS,
				   2 * WARPS * sizeof(double) + sizeof(lamb_factors), stream, *a);
	return error != cudaSuccess ? error
				    : launch(lamb_sums, (unsigned)a->tensor_count, WARP, 0, stream, a->tensors, a->parts,
					     (int)parts, a->norms);
}

extern "C" cudaError_t kernel_lamb_apply(cudaStream_t stream, const struct kernel_lamb *a)
{
	return for_copy(a->copy, a->copy_dtype, [&](auto type) {
		return launch(lamb_apply_part<decltype(type)>, dim3(lamb_part_count(a), (unsigned)a->tensor_count), THREADS,
			      sizeof(lamb_factors), stream, *a);
	});
}
