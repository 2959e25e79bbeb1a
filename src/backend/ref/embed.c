/* Sum of word, position and type embeddings, layer normalization, dropout. */
#include "backend/ref/ref.h"

#include <string.h>

static void embed_row(void *context, int64_t t, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct embed_fwd *a = call->arguments;
	int64_t width = a->y.columns;
	const struct batch *batch = a->batch;
	BUG_IF(batch->ids[t] < 0 || batch->ids[t] >= a->word->master.rows);
	BUG_IF(a->position && (batch->positions[t] < 0 || batch->positions[t] >= a->position->master.rows));
	BUG_IF(a->type && (batch->types[t] < 0 || batch->types[t] >= a->type->master.rows));
	const double *word = ref_row(&a->word->master, batch->ids[t]);
	const double *position = a->position ? ref_row(&a->position->master, batch->positions[t]) : NULL;
	const double *type = a->type ? ref_row(&a->type->master, batch->types[t]) : NULL;
	double *sum = ref_row(&a->sum, t), *y = ref_row(&a->y, t);
	for (int64_t j = 0; j < width; j++)
		sum[j] = word[j] + (position ? position[j] : 0) + (type ? type[j] : 0);
	ref_norm_row(sum, a->epsilon, a->gamma->master.data, ref_vector(a->beta), (double *)a->mean.data + t,
		     (double *)a->rstd.data + t, y, width);
	ref_dropout_row(call->replica, &a->dropout, batch, t, y, width);
}

void ref_embed_fwd(struct replica *r, const struct embed_fwd *a)
{
	ref_run(r, a->y.rows, embed_row, a);
}

static void dropout_row(void *context, int64_t t, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct embed_bwd *a = call->arguments;
	ref_dropout_row(call->replica, &a->dropout, a->batch, t, ref_row(&a->dy, t), a->dy.columns);
}

static void norm_row(void *context, int64_t t, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct embed_bwd *a = call->arguments;
	double *dy = ref_row(&a->dy, t);
	ref_norm_row_backward(dy, ref_row(&a->sum, t), ((double *)a->mean.data)[t], ((double *)a->rstd.data)[t],
			      a->gamma->master.data, NULL, dy, a->dy.columns);
}

/* One column of a table's gradient: acc table[rows[t]] over the tokens in order. */
static void table_column(const struct tensor *gradient, const int32_t *rows, const struct tensor *dsum, int64_t column,
			 bool overwrite)
{
	for (int64_t i = 0; overwrite && i < gradient->rows; i++)
		ref_row(gradient, i)[column] = 0;
	for (int64_t t = 0; t < dsum->rows; t++)
		ref_row(gradient, rows[t])[column] += ref_row(dsum, t)[column];
}

static void tables_column(void *context, int64_t column, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct embed_bwd *a = call->arguments;
	table_column(&a->word->gradient, a->batch->ids, &a->dy, column, a->overwrite_word);
	if (a->position)
		table_column(&a->position->gradient, a->batch->positions, &a->dy, column, a->overwrite);
	if (a->type)
		table_column(&a->type->gradient, a->batch->types, &a->dy, column, a->overwrite);
}

void ref_embed_bwd(struct replica *r, const struct embed_bwd *a)
{
	/* dy becomes the gradient of the norm's output and then, row by row, of the sum. */
	ref_run(r, a->dy.rows, dropout_row, a);
	ref_norm_weights_backward(r, &a->dy, &a->sum, &a->mean, &a->rstd, a->gamma, a->beta, a->overwrite);
	ref_run(r, a->dy.rows, norm_row, a);
	ref_run(r, a->dy.columns, tables_column, a);
}
