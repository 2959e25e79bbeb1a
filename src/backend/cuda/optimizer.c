/* The gradient's norm, AdamW (Loshchilov and Hutter 2019), LAMB (You et al. 2020). */
#include "backend/cuda/state.h"

void cuda_sumsq_finite(struct replica *r, const struct sumsq_finite *a)
{
	cuda_run(r,
		 kernel_sumsq_finite(cuda_stream(r), a->range.data, a->range.columns, a->add, a->sums, a->decides,
				     cuda_scratch(r)->sums, r->scalars),
		 "sumsq_finite");
}

void cuda_adamw(struct replica *r, const struct adamw *a)
{
	struct kernel_adamw adamw = {
		.w = a->w.data,
		.m = a->m.data,
		.v = a->v.data,
		.g = a->g.data,
		.beta1 = (float)a->beta1,
		.beta2 = (float)a->beta2,
		.one_minus_beta1 = (float)(1 - a->beta1),
		.one_minus_beta2 = (float)(1 - a->beta2),
		.epsilon = (float)a->epsilon,
		.scalars = r->scalars,
		.copy_dtype = a->copy.dtype,
		.copy = a->copy.data,
	};
	for (int64_t i = 0; i < a->range_count; i++) {
		adamw.range[adamw.range_count++].elements = a->ranges[i];
		if (adamw.range_count == ADAMW_RANGES || i + 1 == a->range_count) {
			cuda_run(r, kernel_adamw(cuda_stream(r), &adamw), "adamw");
			adamw.range_count = 0;
		}
	}
}

/* The number of tensors in the next launch, limited by the scratch for their parts' sums. */
static int64_t tensors_from(int64_t first, int64_t count)
{
	return count - first < LAMB_TENSORS ? count - first : LAMB_TENSORS;
}

void cuda_lamb_norms(struct replica *r, const struct lamb_norms *a)
{
	for (int64_t first = 0; first < a->tensor_count; first += LAMB_TENSORS) {
		struct kernel_lamb lamb = {
			.tensors = a->tensors + first,
			.tensor_count = tensors_from(first, a->tensor_count),
			.count = a->w.columns,
			.w = a->w.data,
			.m = a->m.data,
			.v = a->v.data,
			.g = a->g.data,
			.beta1 = (float)a->beta1,
			.beta2 = (float)a->beta2,
			.beta3 = (float)a->beta3,
			.one_minus_beta2 = (float)(1 - a->beta2),
			.epsilon = (float)a->epsilon,
			.normalize = a->normalize,
			.scalars = r->scalars,
			.norms = a->norms + 2 * first,
			.parts = cuda_scratch(r)->sums,
		};
		cuda_run(r, kernel_lamb_norms(cuda_stream(r), &lamb), "lamb_norms");
	}
}

void cuda_lamb_apply(struct replica *r, const struct lamb_apply *a)
{
	for (int64_t first = 0; first < a->tensor_count; first += LAMB_TENSORS) {
		struct kernel_lamb lamb = {
			.tensors = a->tensors + first,
			.tensor_count = tensors_from(first, a->tensor_count),
			.count = a->w.columns,
			.w = a->w.data,
			.m = a->m.data,
			.v = a->v.data,
			.epsilon = (float)a->epsilon,
			.max_trust_ratio = a->max_trust_ratio,
			.scalars = r->scalars,
			.norms = (double *)a->norms + 2 * first,
			.copy_dtype = a->copy.dtype,
			.copy = a->copy.data,
		};
		cuda_run(r, kernel_lamb_apply(cuda_stream(r), &lamb), "lamb_apply");
	}
}
