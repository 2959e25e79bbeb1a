/* The gradient's norm, Adam with decoupled weight decay (Loshchilov and Hutter 2019), LAMB (You et al. 2020). */
#include "backend/ref/ref.h"

#include <math.h>
#include <string.h>

#include "backend/loss_scale.h"

void ref_sumsq_finite(struct replica *r, const struct sumsq_finite *a)
{
	const double *g = a->range.data;
	double sum = 0;
	bool finite = true, losses_finite = true;
	for (int64_t i = 0; i < a->range.columns; i++) {
		sum += g[i] * g[i];
		if (!isfinite(g[i]))
			finite = false;
	}
	for (int i = 0; a->sums && i < ACCUMULATOR_COUNT; i++)
		if (!isfinite(a->sums->value[i]))
			losses_finite = false;
	struct scalars *s = r->scalars;
	s->gradient_square_sum = (a->add ? s->gradient_square_sum : 0) + sum;
	s->losses_finite = (a->add ? s->losses_finite : 1) && losses_finite;
	s->finite = (a->add ? s->finite : 1) && finite && losses_finite && isfinite(sum);
	if (a->decides)
		loss_scale_next(s);
}

/* Elements per task. */
#define ELEMENT_BLOCK 4096

static void adamw_block(void *context, int64_t block, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct adamw *a = call->arguments;
	const struct scalars *s = call->replica->scalars;
	double norm = sqrt(s->gradient_square_sum) / s->gradient_scale;
	double clip = s->max_grad_norm > 0 ? fmin(1, s->max_grad_norm / (norm + 1e-6)) : 1;
	double *w = a->w.data, *m = a->m.data, *v = a->v.data, *gradient = a->g.data;
	const struct decay_range *range = a->ranges;
	int64_t first = range->offset + block * ELEMENT_BLOCK, end = range->offset + range->count;
	for (int64_t i = first; i < end && i < first + ELEMENT_BLOCK; i++) {
		double g = gradient[i] * clip / s->gradient_scale;
		m[i] = a->beta1 * m[i] + (1 - a->beta1) * g;
		v[i] = a->beta2 * v[i] + (1 - a->beta2) * g * g;
		double update = m[i] / s->bias_correction1 / (sqrt(v[i] / s->bias_correction2) + a->epsilon);
		w[i] -= s->learning_rate * range->rate * (update + range->weight_decay * w[i]);
	}
}

void ref_adamw(struct replica *r, const struct adamw *a)
{
	for (int64_t i = 0; r->scalars->finite && i < a->range_count; i++) {
		struct adamw one = *a; /* with only the current range */
		one.ranges = &a->ranges[i];
		ref_run(r, (one.ranges->count + ELEMENT_BLOCK - 1) / ELEMENT_BLOCK, adamw_block, &one);
	}
}

/* u, from the moments as updated in this step. */
static double lamb_update(const struct scalars *s, double m, double v, double w, double epsilon, double decay)
{
	return m / s->bias_correction1 / (sqrt(v / s->bias_correction2) + epsilon) + decay * w;
}

static void lamb_norms_tensor(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct lamb_norms *a = call->arguments;
	const struct scalars *s = call->replica->scalars;
	const struct lamb_tensor *tensor = &a->tensors[index];
	double norm = sqrt(s->gradient_square_sum) / s->gradient_scale, factor = 1;
	if (a->normalize)
		factor = norm > 0 ? 1 / norm : 1;
	else if (s->max_grad_norm > 0 && norm > s->max_grad_norm)
		factor = s->max_grad_norm / norm;
	const double *w = a->w.data, *gradient = a->g.data;
	double *m = a->m.data, *v = a->v.data, w_sum = 0, u_sum = 0;
	for (int64_t i = tensor->offset; i < tensor->offset + tensor->count; i++) {
		double g = gradient[i] * factor / s->gradient_scale;
		m[i] = a->beta1 * m[i] + a->beta3 * g;
		v[i] = a->beta2 * v[i] + (1 - a->beta2) * g * g;
		double u = lamb_update(s, m[i], v[i], w[i], a->epsilon, tensor->weight_decay);
		w_sum += w[i] * w[i];
		u_sum += u * u;
	}
	a->norms[2 * index] = w_sum;
	a->norms[2 * index + 1] = u_sum;
}

void ref_lamb_norms(struct replica *r, const struct lamb_norms *a)
{
	if (r->scalars->finite)
		ref_run(r, a->tensor_count, lamb_norms_tensor, a);
	else
		memset(a->norms, 0, (size_t)a->tensor_count * 2 * sizeof *a->norms);
}

static void lamb_apply_tensor(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct lamb_apply *a = call->arguments;
	const struct scalars *s = call->replica->scalars;
	const struct lamb_tensor *tensor = &a->tensors[index];
	double w_norm = sqrt(a->norms[2 * index]), u_norm = sqrt(a->norms[2 * index + 1]), ratio = 1;
	if (tensor->adapts && w_norm > 0 && u_norm > 0)
		ratio = w_norm / u_norm;
	if (tensor->adapts && a->max_trust_ratio > 0)
		ratio = fmin(ratio, a->max_trust_ratio);
	double *w = a->w.data;
	const double *m = a->m.data, *v = a->v.data;
	for (int64_t i = tensor->offset; i < tensor->offset + tensor->count; i++)
		w[i] -= s->learning_rate * tensor->rate * ratio *
			lamb_update(s, m[i], v[i], w[i], a->epsilon, tensor->weight_decay);
}

void ref_lamb_apply(struct replica *r, const struct lamb_apply *a)
{
	if (r->scalars->finite)
		ref_run(r, a->tensor_count, lamb_apply_tensor, a);
}
