/* Softmax cross entropy over the vocabulary: the MLM head's output layer. */
#include "backend/ref/ref.h"

#include <math.h>
#include <string.h>

static double vocab_logit(const struct tensor *x, const struct weight *table, const struct weight *bias, int64_t i, int64_t v)
{
	return ref_dot(ref_row(x, i), ref_row(&table->master, v), x->columns) + ref_row(&bias->master, 0)[v];
}

/* dlogits[i][v]: w_i (softmax - onehot) * inverse_weight[head] * loss_scale. */
static double dlogit(const struct replica *r, const struct vocab_xent *a, int64_t i, int64_t v, double logit, double lse)
{
	double softmax_minus_onehot = exp(logit - lse) - (v == a->labels[i] ? 1 : 0);
	return a->weights[i] * softmax_minus_onehot * r->scalars->inverse_weight[a->head] * r->scalars->loss_scale;
}

/* Loss, correct and lse of each row, kept separately and then added in row order. */
struct row_results {
	double loss, correct, lse;
};

static struct row_results *row_results(struct replica *r, int64_t rows)
{
	return (struct row_results *)ref_shared_scratch(r, rows * 3);
}

static void vocab_xent_row(void *context, int64_t i, int worker)
{
	const struct ref_call *call = context;
	const struct vocab_xent *a = call->arguments;
	int64_t vocab = a->table->master.rows, best;
	struct row_results *result = row_results(call->replica, a->x.rows) + i;
	*result = (struct row_results){0};
	double *dx = a->training ? ref_row(&a->dx, i) : NULL;
	if (a->training)
		memset(dx, 0, (size_t)a->dx.columns * sizeof *dx);
	if (a->weights[i] == 0)
		return;
	BUG_IF(a->labels[i] < 0 || a->labels[i] >= vocab);
	double *logits = ref_scratch(call->replica, worker, vocab);
	for (int64_t v = 0; v < vocab; v++)
		logits[v] = vocab_logit(&a->x, a->table, a->bias, i, v);
	result->lse = ref_log_sum_exp(logits, vocab, &best);
	result->loss = a->weights[i] * (result->lse - logits[a->labels[i]]);
	result->correct = best == a->labels[i] ? a->weights[i] : 0;
	for (int64_t v = 0; a->training && v < vocab; v++) {
		double d = dlogit(call->replica, a, i, v, logits[v], result->lse);
		for (int64_t j = 0; j < a->dx.columns; j++)
			dx[j] += d * ref_row(&a->table->master, v)[j];
	}
}

/* Gradients of one word's row and bias. The logits are recomputed rather than kept: P x V doubles would not fit in memory
 * where the other back ends do. */
static void vocab_xent_word(void *context, int64_t v, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct vocab_xent *a = call->arguments;
	const struct row_results *results = row_results(call->replica, a->x.rows);
	double *dtable = ref_row(&a->table->gradient, v), *dbias = ref_row(&a->bias->gradient, 0) + v;
	if (a->overwrite) {
		memset(dtable, 0, (size_t)a->x.columns * sizeof *dtable);
		*dbias = 0;
	}
	for (int64_t i = 0; i < a->x.rows; i++) {
		if (a->weights[i] == 0)
			continue;
		double d = dlogit(call->replica, a, i, v, vocab_logit(&a->x, a->table, a->bias, i, v), results[i].lse);
		for (int64_t j = 0; j < a->x.columns; j++)
			dtable[j] += d * ref_row(&a->x, i)[j];
		*dbias += d;
	}
}

void ref_vocab_xent(struct replica *r, const struct vocab_xent *a)
{
	ref_run(r, a->x.rows, vocab_xent_row, a);
	if (a->training)
		ref_run(r, a->table->master.rows, vocab_xent_word, a);
	const struct row_results *results = row_results(r, a->x.rows);
	double loss = 0, correct = 0;
	for (int64_t i = 0; i < a->x.rows; i++) {
		loss += results[i].loss;
		if (a->losses)
			a->losses[i] = results[i].loss;
		correct += results[i].correct;
	}
	*a->loss += loss;
	*a->correct += correct;
}

static void vocab_topk_row(void *context, int64_t i, int worker)
{
	const struct ref_call *call = context;
	const struct vocab_topk *a = call->arguments;
	int64_t vocab = a->table->master.rows, best;
	double *logits = ref_scratch(call->replica, worker, vocab);
	for (int64_t v = 0; v < vocab; v++)
		logits[v] = vocab_logit(&a->x, a->table, a->bias, i, v);
	double lse = ref_log_sum_exp(logits, vocab, &best);
	for (int64_t rank = 0; rank < a->k; rank++) {
		best = 0;
		for (int64_t v = 1; v < vocab; v++)
			if (logits[v] > logits[best])
				best = v;
		a->ids[i * a->k + rank] = (int32_t)best;
		a->probabilities[i * a->k + rank] = exp(logits[best] - lse);
		logits[best] = -INFINITY; /* taken */
	}
}

void ref_vocab_topk(struct replica *r, const struct vocab_topk *a)
{
	ref_run(r, a->x.rows, vocab_topk_row, a);
}

/* The weights of a sequence. */
static void vocab_max_sequence(void *context, int64_t s, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct vocab_max_fwd *a = call->arguments;
	for (int64_t v = 0; v < a->y.columns; v++) {
		double most = 0;
		int32_t row = -1;
		for (int32_t t = a->batch->starts[s]; t < a->batch->starts[s + 1]; t++) {
			double logit = vocab_logit(&a->x, a->table, a->bias, t, v);
			if (logit > most || isnan(logit)) {
				most = logit;
				row = t;
			}
		}
		ref_row(&a->y, s)[v] = log1p(most);
		if (a->rows)
			a->rows[s * a->y.columns + v] = row;
	}
}

void ref_vocab_max_fwd(struct replica *r, const struct vocab_max_fwd *a)
{
	ref_run(r, a->batch->sequence_count, vocab_max_sequence, a);
}

void ref_vocab_max_bwd(struct replica *r, const struct vocab_max_bwd *a)
{
	int64_t width = a->x.columns, vocab = a->y.columns;
	if (a->overwrite) {
		memset(a->table->gradient.data, 0, (size_t)(vocab * width) * sizeof(double));
		memset(a->bias->gradient.data, 0, (size_t)vocab * sizeof(double));
	}
	memset(a->dx.data, 0, (size_t)(a->dx.rows * width) * sizeof(double));
	for (int64_t i = 0; i < a->batch->sequence_count * vocab; i++) {
		int64_t s = i / vocab, v = i % vocab, row = a->rows[i];
		if (row < 0)
			continue;
		double d = ref_row(&a->dy, s)[v] * exp(-ref_row(&a->y, s)[v]) * r->scalars->loss_scale;
		for (int64_t j = 0; j < width; j++) {
			ref_row(&a->dx, row)[j] += d * ref_row(&a->table->master, v)[j];
			ref_row(&a->table->gradient, v)[j] += d * ref_row(&a->x, row)[j];
		}
		ref_row(&a->bias->gradient, 0)[v] += d;
	}
}
