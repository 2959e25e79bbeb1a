/* The gradient's norm, and Adam with decoupled weight decay (Loshchilov and Hutter 2019). */
#include "backend/ref/ref.h"

#include <math.h>

void ref_sumsq_finite(struct replica *r, const struct sumsq_finite *a)
{
	const double *g = a->range.data;
	double sum = 0;
	int64_t finite = 1;
	for (int64_t i = 0; i < a->range.columns; i++) {
		sum += g[i] * g[i];
		if (!isfinite(g[i]))
			finite = 0;
	}
	r->scalars->gradient_square_sum = (a->add ? r->scalars->gradient_square_sum : 0) + sum;
	r->scalars->finite = (a->add ? r->scalars->finite : 1) && finite;
}

/* Elements that one task updates. */
#define ELEMENT_BLOCK 4096

static void adamw_block(void *context, int64_t block, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct adamw *a = call->arguments;
	const struct scalars *s = call->replica->scalars;
	double norm = sqrt(s->gradient_square_sum) / s->loss_scale;
	double clip = s->max_grad_norm > 0 ? fmin(1, s->max_grad_norm / (norm + 1e-6)) : 1;
	double *w = a->w.data, *m = a->m.data, *v = a->v.data, *gradient = a->g.data;
	int64_t first = block * ELEMENT_BLOCK, end = first + ELEMENT_BLOCK;
	for (int64_t i = first; i < end && i < a->w.columns; i++) {
		double g = gradient[i] * clip / s->loss_scale;
		m[i] = a->beta1 * m[i] + (1 - a->beta1) * g;
		v[i] = a->beta2 * v[i] + (1 - a->beta2) * g * g;
		double update = m[i] / s->bias_correction1 / (sqrt(v[i] / s->bias_correction2) + a->epsilon);
		w[i] -= s->learning_rate * (update + a->weight_decay * w[i]);
	}
}

void ref_adamw(struct replica *r, const struct adamw *a)
{
	if (r->scalars->finite)
		ref_run(r, (a->w.columns + ELEMENT_BLOCK - 1) / ELEMENT_BLOCK, adamw_block, a);
}
