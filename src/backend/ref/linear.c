/* Linear layers with their activations, forward and backward. */
#include "backend/ref/ref.h"

#include <math.h>
#include <string.h>

#define SQRT_2_OVER_PI 0.79788456080286535588
#define SQRT_1_OVER_2 0.70710678118654752440
#define ONE_OVER_SQRT_2_PI 0.39894228040143267794

/* Hendrycks and Gimpel 2016: x times the normal distribution function, either exact or by their tanh approximation; or x times
 * the logistic function (SiLU), or x if it is positive (ReLU). */
double ref_gelu(enum activation activation, double x)
{
	if (activation == ACTIVATION_RELU)
		return x > 0 ? x : 0;
	if (activation == ACTIVATION_SILU)
		return x / (1 + exp(-x));
	if (activation == ACTIVATION_GELU_ERF)
		return 0.5 * x * (1 + erf(x * SQRT_1_OVER_2));
	return 0.5 * x * (1 + tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)));
}

double ref_gelu_derivative(enum activation activation, double x)
{
	double s = 1 / (1 + exp(-x));
	if (activation == ACTIVATION_RELU)
		return x > 0;
	if (activation == ACTIVATION_SILU)
		return s + x * s * (1 - s);
	if (activation == ACTIVATION_GELU_ERF)
		return 0.5 * (1 + erf(x * SQRT_1_OVER_2)) + x * ONE_OVER_SQRT_2_PI * exp(-0.5 * x * x);
	double t = tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x));
	return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * SQRT_2_OVER_PI * (1 + 3 * 0.044715 * x * x);
}

/* Element (i, j) of x w' + b. */
static double product(const struct tensor *x, const struct weight *w, const struct weight *b, int64_t i, int64_t j)
{
	double sum = ref_dot(ref_row(x, i), ref_row(&w->master, j), x->columns);
	return b == NULL ? sum : sum + ref_row(&b->master, 0)[j];
}

static void linear_row(void *context, int64_t i, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct linear_fwd *a = call->arguments;
	for (int64_t j = 0; j < a->y.columns; j++) {
		double y = product(&a->x, a->w, a->b, i, j);
		ref_row(&a->y, i)[j] = a->activation == ACTIVATION_TANH ? tanh(y) : y;
	}
}

void ref_linear_fwd(struct replica *r, const struct linear_fwd *a)
{
	struct weight w = ref_weight_operand(r, a->w);
	struct linear_fwd own = *a;
	own.w = &w;
	own.x = ref_operand(r, a->w, DTYPE_E4M3, &a->x);
	ref_run(r, a->x.rows, linear_row, &own);
}

static void linear_gelu_row(void *context, int64_t i, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct linear_gelu_fwd *a = call->arguments;
	for (int64_t j = 0; j < a->y.columns; j++) {
		double pre = product(&a->x, a->w, a->b, i, j);
		if (a->pre.data != NULL)
			ref_row(&a->pre, i)[j] = pre;
		ref_row(&a->y, i)[j] = ref_gelu(a->activation, pre);
	}
}

void ref_linear_gelu_fwd(struct replica *r, const struct linear_gelu_fwd *a)
{
	struct weight w = ref_weight_operand(r, a->w);
	struct linear_gelu_fwd own = *a;
	own.w = &w;
	own.x = ref_operand(r, a->w, DTYPE_E4M3, &a->x);
	ref_run(r, a->x.rows, linear_gelu_row, &own);
}

/* dropout(gelu(a) g) of a row, whose a and g are the halves of pre. */
static void gated_row(void *context, int64_t i, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct gated_fwd *a = call->arguments;
	const double *pre = ref_row(&a->pre, i), *gate = pre + a->y.columns;
	double *y = ref_row(&a->y, i);
	for (int64_t j = 0; j < a->y.columns; j++)
		y[j] = ref_gelu(a->activation, pre[j]) * gate[j];
	ref_dropout_row(call->replica, &a->dropout, a->batch, i, y, a->y.columns);
}

void ref_gated_fwd(struct replica *r, const struct gated_fwd *a)
{
	ref_run(r, a->y.rows, gated_row, a);
}

static void gated_bwd_row(void *context, int64_t i, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct gated_bwd *a = call->arguments;
	int64_t width = a->dy.columns;
	const double *pre = ref_row(&a->pre, i), *gate = pre + width;
	double *dpre = ref_row(&a->dpre, i), *dgate = dpre + width;
	memcpy(dpre, ref_row(&a->dy, i), (size_t)width * sizeof *dpre);
	ref_dropout_row(call->replica, &a->dropout, a->batch, i, dpre, width);
	for (int64_t j = 0; j < width; j++) {
		double dy = dpre[j];
		dgate[j] = dy * ref_gelu(a->activation, pre[j]);
		dpre[j] = dy * gate[j] * ref_gelu_derivative(a->activation, pre[j]);
	}
}

void ref_gated_bwd(struct replica *r, const struct gated_bwd *a)
{
	ref_run(r, a->dy.rows, gated_bwd_row, a);
}

static void tanh_row(void *context, int64_t i, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct linear_bwd *a = call->arguments;
	for (int64_t j = 0; j < a->dy.columns; j++) {
		double y = ref_row(&a->tanh_y, i)[j];
		ref_row(&a->dy, i)[j] *= 1 - y * y;
	}
}

/* Columns of dx or dw that are summed together, so that the inner loop accesses memory contiguously. */
#define COLUMN_BLOCK 256

static void dx_row(void *context, int64_t m, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct linear_bwd *a = call->arguments;
	const double *dy = ref_row(&a->dy, m);
	for (int64_t first = 0; first < a->dx.columns; first += COLUMN_BLOCK) {
		int64_t count = a->dx.columns - first < COLUMN_BLOCK ? a->dx.columns - first : COLUMN_BLOCK;
		double sum[COLUMN_BLOCK] = {0};
		for (int64_t o = 0; o < a->dy.columns; o++) {
			const double *w = ref_row(&a->w->master, o) + first;
			for (int64_t j = 0; j < count; j++)
				sum[j] += dy[o] * w[j];
		}
		for (int64_t j = 0; j < count; j++) {
			if (a->pre.data != NULL)
				sum[j] *= ref_gelu_derivative(a->pre_activation, ref_row(&a->pre, m)[first + j]);
			if (a->add.data != NULL) /* read before dx is written: they may be the same */
				sum[j] += ref_row(&a->add, m)[first + j];
			ref_row(&a->dx, m)[first + j] = sum[j];
		}
	}
}

static void dw_row(void *context, int64_t o, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct linear_bwd *a = call->arguments;
	double *dw = ref_row(&a->w->gradient, o);
	for (int64_t first = 0; first < a->x.columns; first += COLUMN_BLOCK) {
		int64_t count = a->x.columns - first < COLUMN_BLOCK ? a->x.columns - first : COLUMN_BLOCK;
		double sum[COLUMN_BLOCK] = {0};
		for (int64_t m = 0; m < a->x.rows; m++) {
			double dy = ref_row(&a->dy, m)[o];
			const double *x = ref_row(&a->x, m) + first;
			for (int64_t j = 0; j < count; j++)
				sum[j] += dy * x[j];
		}
		for (int64_t j = 0; j < count; j++)
			dw[first + j] = (a->overwrite ? 0 : dw[first + j]) + sum[j];
	}
}

void ref_linear_bwd(struct replica *r, const struct linear_bwd *a)
{
	if (a->tanh_y.data != NULL)
		ref_run(r, a->dy.rows, tanh_row, a);
	struct weight w = ref_weight_operand(r, a->w);
	struct linear_bwd own = *a;
	own.w = &w;
	own.x = ref_operand(r, a->w, DTYPE_E4M3, &a->x);
	own.dy = ref_operand(r, a->w, DTYPE_E5M2, &a->dy);
	if (a->w->gradient.data != NULL)
		ref_run(r, a->w->master.rows, dw_row, &own);
	if (a->b != NULL && a->w->gradient.data != NULL)
		ref_column_sums(r, &a->dy, &a->b->gradient, a->overwrite);
	if (a->dx.data != NULL)
		ref_run(r, a->dx.rows, dx_row, &own);
	if (a->producer_bias != NULL)
		ref_column_sums(r, &a->dx, &a->producer_bias->gradient, a->overwrite);
}
