/* The gradient's norm, and AdamW (Loshchilov and Hutter 2019). */
#include <math.h>
#include "backend/cpu/cpu.h"

struct sum_call {
	struct replica *r;
	const struct tensor *range;
	int64_t part; /* elements */
};

static void sum_part(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct sum_call *call = context;
	int64_t first = index * call->part, left = call->range->columns - first;
	cpu_scratch(call->r)->range_sums[index] = cpu_state(call->r)->kernels->sum_squares(
		(const float *)call->range->data + first, left < call->part ? left : call->part);
}

void cpu_sumsq_finite(struct replica *r, const struct sumsq_finite *a)
{
	struct sum_call call = {r, &a->range, round_up((a->range.columns + RANGE_PARTS - 1) / RANGE_PARTS, 64)};
	int64_t parts = call.part ? (a->range.columns + call.part - 1) / call.part : 0;
	pool_run(r->backend->pool, parts, sum_part, &call);
	double sum = 0;
	for (int64_t i = 0; i < parts; i++)
		sum += cpu_scratch(r)->range_sums[i];
	r->scalars->gradient_square_sum = (a->add ? r->scalars->gradient_square_sum : 0) + sum;
	/* Squares of finite floats neither overflow a double nor make NaN. */
	r->scalars->finite = (a->add ? r->scalars->finite : 1) && isfinite(sum);
}

/* Elements of a task: four arrays of 64 KiB. */
#define ADAMW_ELEMENTS (16 << 10)

struct adamw_call {
	struct replica *r;
	struct adamw_range range; /* the whole; a task moves the pointers */
};

static void adamw_part(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct adamw_call *call = context;
	struct adamw_range range = call->range;
	int64_t first = index * ADAMW_ELEMENTS, left = range.count - first;
	range.count = left < ADAMW_ELEMENTS ? left : ADAMW_ELEMENTS;
	range.w += first;
	range.m += first;
	range.v += first;
	range.g += first;
	cpu_state(call->r)->kernels->adamw(&range);
}

void cpu_adamw(struct replica *r, const struct adamw *a)
{
	const struct scalars *s = r->scalars;
	if (!s->finite)
		return;
	double norm = sqrt(s->gradient_square_sum) / s->loss_scale;
	double clip = s->max_grad_norm > 0 ? fmin(1, s->max_grad_norm / (norm + 1e-6)) : 1;
	struct adamw_call call = {
		.r = r,
		.range = {.count = a->w.columns,
			  .w = a->w.data,
			  .m = a->m.data,
			  .v = a->v.data,
			  .g = a->g.data,
			  .beta1 = (float)a->beta1,
			  .beta2 = (float)a->beta2,
			  .one_minus_beta1 = (float)(1 - a->beta1),
			  .one_minus_beta2 = (float)(1 - a->beta2),
			  .gradient_scale = (float)(clip / s->loss_scale),
			  .step_size = (float)(s->learning_rate / s->bias_correction1),
			  .root_scale = (float)(1 / sqrt(s->bias_correction2)),
			  .epsilon = (float)a->epsilon,
			  .decay = (float)(s->learning_rate * a->weight_decay)},
	};
	pool_run(r->backend->pool, (a->w.columns + ADAMW_ELEMENTS - 1) / ADAMW_ELEMENTS, adamw_part, &call);
}
