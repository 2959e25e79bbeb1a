/* The gradient's norm, AdamW (Loshchilov and Hutter 2019), LAMB (You et al. 2020). */
#include <math.h>
#include <string.h>
#include "backend/cpu/state.h"
#include "backend/loss_scale.h"

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
	bool losses_finite = true;
	for (int i = 0; a->sums && i < ACCUMULATOR_COUNT; i++)
		losses_finite = losses_finite && isfinite(a->sums->value[i]);
	struct scalars *s = r->scalars;
	s->gradient_square_sum = (a->add ? s->gradient_square_sum : 0) + sum;
	s->losses_finite = (a->add ? s->losses_finite : 1) && losses_finite;
	/* Squares of finite floats cannot overflow a double or become NaN. */
	s->finite = (a->add ? s->finite : 1) && losses_finite && isfinite(sum);
	if (a->decides)
		loss_scale_next(s);
}

/* Elements per task: four arrays of 64 KiB. */
#define TASK_ELEMENTS (16 << 10)

struct adamw_call {
	struct replica *r;
	struct adamw_range range; /* the whole range; a task moves the pointers */
};

static void adamw_part(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct adamw_call *call = context;
	struct adamw_range range = call->range;
	int64_t first = index * TASK_ELEMENTS, left = range.count - first;
	range.count = left < TASK_ELEMENTS ? left : TASK_ELEMENTS;
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
	double norm = sqrt(s->gradient_square_sum) / s->gradient_scale;
	double clip = s->max_grad_norm > 0 ? fmin(1, s->max_grad_norm / (norm + 1e-6)) : 1;
	struct adamw_call call = {
		.r = r,
		.range = {.beta1 = (float)a->beta1,
			  .beta2 = (float)a->beta2,
			  .one_minus_beta1 = (float)(1 - a->beta1),
			  .one_minus_beta2 = (float)(1 - a->beta2),
			  .gradient_scale = (float)(clip / s->gradient_scale),
			  .root_scale = (float)(1 / sqrt(s->bias_correction2)),
			  .epsilon = (float)a->epsilon},
	};
	for (int64_t i = 0; i < a->range_count; i++) {
		const struct decay_range *range = &a->ranges[i];
		call.range.count = range->count;
		call.range.w = (float *)a->w.data + range->offset;
		call.range.m = (float *)a->m.data + range->offset;
		call.range.v = (float *)a->v.data + range->offset;
		call.range.g = (const float *)a->g.data + range->offset;
		call.range.step_size = (float)(s->learning_rate * range->rate / s->bias_correction1);
		call.range.decay = (float)(s->learning_rate * range->rate * range->weight_decay);
		pool_run(r->backend->pool, (range->count + TASK_ELEMENTS - 1) / TASK_ELEMENTS, adamw_part, &call);
	}
}

/* Tensors are processed one at a time: a vector by the caller alone, a matrix in parts by all workers. */
struct lamb_call {
	struct replica *r;
	struct lamb_range range; /* the tensor; a task moves the pointers */
	int64_t part;            /* elements */
};

/* Elements per part, such that the sums of all parts, two each, fit into the scratch. */
static int64_t lamb_part(int64_t count)
{
	int64_t least = round_up((count + RANGE_PARTS / 2 - 1) / (RANGE_PARTS / 2), 64);
	return least > TASK_ELEMENTS ? least : TASK_ELEMENTS;
}

static struct lamb_range lamb_piece(const struct lamb_call *call, int64_t index)
{
	struct lamb_range range = call->range;
	int64_t first = index * call->part, left = range.count - first;
	range.count = left < call->part ? left : call->part;
	range.w += first;
	range.m += first;
	range.v += first;
	if (range.g)
		range.g += first;
	return range;
}

static struct lamb_call lamb_call_begin(struct replica *r, const struct lamb_tensor *tensor, const struct tensor *w,
					const struct tensor *m, const struct tensor *v, double epsilon)
{
	const struct scalars *s = r->scalars;
	return (struct lamb_call){
		.r = r,
		.range = {.count = tensor->count,
			  .w = (float *)w->data + tensor->offset,
			  .m = (float *)m->data + tensor->offset,
			  .v = (float *)v->data + tensor->offset,
			  .moment_scale = (float)(1 / s->bias_correction1),
			  .root_scale = (float)(1 / sqrt(s->bias_correction2)),
			  .epsilon = (float)epsilon,
			  .decay = (float)tensor->weight_decay},
		.part = lamb_part(tensor->count),
	};
}

static void lamb_norms_part(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct lamb_call *call = context;
	struct lamb_range range = lamb_piece(call, index);
	cpu_state(call->r)->kernels->lamb_norms(&range, cpu_scratch(call->r)->range_sums + 2 * index);
}

void cpu_lamb_norms(struct replica *r, const struct lamb_norms *a)
{
	const struct scalars *s = r->scalars;
	memset(a->norms, 0, (size_t)a->tensor_count * 2 * sizeof *a->norms);
	if (!s->finite)
		return;
	double norm = sqrt(s->gradient_square_sum) / s->gradient_scale, factor = 1;
	if (a->normalize)
		factor = norm > 0 ? 1 / norm : 1;
	else if (s->max_grad_norm > 0 && norm > s->max_grad_norm)
		factor = s->max_grad_norm / norm;
	for (int64_t i = 0; i < a->tensor_count; i++) {
		const struct lamb_tensor *tensor = &a->tensors[i];
		struct lamb_call call = lamb_call_begin(r, tensor, &a->w, &a->m, &a->v, a->epsilon);
		call.range.g = (const float *)a->g.data + tensor->offset;
		call.range.beta1 = (float)a->beta1;
		call.range.beta2 = (float)a->beta2;
		call.range.beta3 = (float)a->beta3;
		call.range.one_minus_beta2 = (float)(1 - a->beta2);
		call.range.gradient_scale = (float)(factor / s->gradient_scale);
		int64_t parts = (tensor->count + call.part - 1) / call.part;
		pool_run(r->backend->pool, parts, lamb_norms_part, &call);
		for (int64_t part = 0; part < parts; part++) {
			a->norms[2 * i] += cpu_scratch(r)->range_sums[2 * part];
			a->norms[2 * i + 1] += cpu_scratch(r)->range_sums[2 * part + 1];
		}
	}
}

static void lamb_apply_part(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct lamb_call *call = context;
	struct lamb_range range = lamb_piece(call, index);
	cpu_state(call->r)->kernels->lamb_apply(&range);
}

void cpu_lamb_apply(struct replica *r, const struct lamb_apply *a)
{
	if (!r->scalars->finite)
		return;
	for (int64_t i = 0; i < a->tensor_count; i++) {
		const struct lamb_tensor *tensor = &a->tensors[i];
		struct lamb_call call = lamb_call_begin(r, tensor, &a->w, &a->m, &a->v, a->epsilon);
		double w_norm = sqrt(a->norms[2 * i]), u_norm = sqrt(a->norms[2 * i + 1]), ratio = 1;
		if (tensor->adapts && w_norm > 0 && u_norm > 0)
			ratio = w_norm / u_norm;
		if (tensor->adapts && a->max_trust_ratio > 0)
			ratio = fmin(ratio, a->max_trust_ratio);
		call.range.step_size = (float)(r->scalars->learning_rate * tensor->rate * ratio);
		pool_run(r->backend->pool, (tensor->count + call.part - 1) / call.part, lamb_apply_part, &call);
	}
}
