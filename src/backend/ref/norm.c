/* Layer normalization (Ba et al. 2016), on its own and after a linear layer with dropout and residual. */
#include "backend/ref/ref.h"

#include <math.h>
#include <string.h>

void ref_norm_row(const double *sum, double epsilon, const double *gamma, const double *beta, double *out_mean, double *out_rstd,
		  double *y, int64_t columns)
{
	double mean = 0, variance = 0;
	for (int64_t j = 0; j < columns; j++)
		mean += sum[j];
	mean /= (double)columns;
	for (int64_t j = 0; j < columns; j++)
		variance += (sum[j] - mean) * (sum[j] - mean);
	variance /= (double)columns;
	double rstd = 1 / sqrt(variance + epsilon);
	for (int64_t j = 0; j < columns; j++)
		y[j] = gamma[j] * (sum[j] - mean) * rstd + (beta ? beta[j] : 0);
	*out_mean = mean;
	*out_rstd = rstd;
}

void ref_norm_row_backward(const double *dy, const double *sum, double mean, double rstd, const double *gamma, const double *add,
			   double *dx, int64_t columns)
{
	double mean_g = 0, mean_gn = 0;
	for (int64_t j = 0; j < columns; j++) {
		double g = dy[j] * gamma[j];
		mean_g += g;
		mean_gn += g * (sum[j] - mean) * rstd;
	}
	mean_g /= (double)columns;
	mean_gn /= (double)columns;
	for (int64_t j = 0; j < columns; j++)
		dx[j] = rstd * (dy[j] * gamma[j] - mean_g - (sum[j] - mean) * rstd * mean_gn) + (add ? add[j] : 0);
}

struct norm_weights {
	const struct tensor *dy, *sum, *mean, *rstd;
	const struct weight *gamma, *beta;
	bool overwrite;
};

static void norm_weights_task(void *context, int64_t column, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct norm_weights *a = call->arguments;
	double gamma = 0, beta = 0;
	for (int64_t i = 0; i < a->dy->rows; i++) {
		double dy = ref_row(a->dy, i)[column];
		double mean = ((double *)a->mean->data)[i], rstd = ((double *)a->rstd->data)[i];
		gamma += dy * (ref_row(a->sum, i)[column] - mean) * rstd;
		beta += dy;
	}
	double *dgamma = a->gamma->gradient.data, *dbeta = a->beta ? a->beta->gradient.data : NULL;
	dgamma[column] = (a->overwrite ? 0 : dgamma[column]) + gamma;
	if (dbeta)
		dbeta[column] = (a->overwrite ? 0 : dbeta[column]) + beta;
}

void ref_norm_weights_backward(struct replica *r, const struct tensor *dy, const struct tensor *sum, const struct tensor *mean,
			       const struct tensor *rstd, const struct weight *gamma, const struct weight *beta, bool overwrite)
{
	struct norm_weights a = {dy, sum, mean, rstd, gamma, beta, overwrite};
	ref_run(r, dy->columns, norm_weights_task, &a);
}

static void linear_norm_row(void *context, int64_t i, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct linear_norm_fwd *a = call->arguments;
	int64_t width = a->y.columns;
	const double *x = ref_row(&a->x, i);
	double *y = ref_row(&a->y, i);
	double *sum = a->sum.data != NULL ? ref_row(&a->sum, i) : y; /* y holds the sum when nothing is saved */
	for (int64_t j = 0; j < width; j++)
		sum[j] = a->w == NULL ? x[j]
				      : ref_dot(x, ref_row(&a->w->master, j), a->x.columns) +
						(a->b ? ref_row(&a->b->master, 0)[j] : 0);
	ref_dropout_row(call->replica, &a->dropout, a->batch, i, sum, width);
	for (int64_t j = 0; a->residual.data != NULL && j < width; j++)
		sum[j] += ref_row(&a->residual, i)[j];
	double mean, rstd;
	ref_norm_row(sum, a->epsilon, a->gamma->master.data, ref_vector(a->beta), &mean, &rstd, y, width);
	if (a->sum.data != NULL) {
		((double *)a->mean.data)[i] = mean;
		((double *)a->rstd.data)[i] = rstd;
	}
}

void ref_linear_norm_fwd(struct replica *r, const struct linear_norm_fwd *a)
{
	struct linear_norm_fwd own = *a;
	struct weight w;
	if (a->w != NULL) {
		w = ref_weight_operand(r, a->w);
		own.w = &w;
		own.x = ref_operand(r, a->w, DTYPE_E4M3, &a->x);
	}
	ref_run(r, a->x.rows, linear_norm_row, &own);
}

static void norm_bwd_row(void *context, int64_t i, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct norm_bwd *a = call->arguments;
	int64_t width = a->dy.columns;
	double *dresidual = ref_row(&a->dresidual, i);
	ref_norm_row_backward(ref_row(&a->dy, i), ref_row(&a->sum, i), ((double *)a->mean.data)[i], ((double *)a->rstd.data)[i],
			      a->gamma->master.data, a->add.data ? ref_row(&a->add, i) : NULL, dresidual, width);
	if (a->dx.data == NULL || a->dx.data == a->dresidual.data)
		return;
	double *dx = ref_row(&a->dx, i);
	memcpy(dx, dresidual, (size_t)width * sizeof *dx);
	ref_dropout_row(call->replica, &a->dropout, a->batch, i, dx, width);
	for (int64_t j = 0; a->pre.data != NULL && j < width; j++)
		dx[j] *= ref_gelu_derivative(a->pre_activation, ref_row(&a->pre, i)[j]);
}

void ref_norm_bwd(struct replica *r, const struct norm_bwd *a)
{
	/* Before the row pass, which may overwrite dy. */
	ref_norm_weights_backward(r, &a->dy, &a->sum, &a->mean, &a->rstd, a->gamma, a->beta, a->overwrite);
	ref_run(r, a->dy.rows, norm_bwd_row, a);
	if (a->bias != NULL)
		ref_column_sums(r, a->dx.data != NULL ? &a->dx : &a->dresidual, &a->bias->gradient, a->overwrite);
}
