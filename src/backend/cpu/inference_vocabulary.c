/* The output layer over the vocabulary, forward only: all logits of some rows are in memory at a time, and each row is then
 * finished independently. */
#include <math.h>

#include "backend/cpu/inference.h"

struct vocabulary_call {
	struct replica *r;
	const struct weight *table;
	const float *bias;
	struct product_rows x; /* rows of the chunk */
	int64_t panels;        /* per task */
	const struct inference_scratch *scratch;
	/* From the chunk's first row on: */
	const int32_t *labels;
	const float *weights;
	double loss[VOCABULARY_CHUNK], correct[VOCABULARY_CHUNK];
	int32_t k, *ids;
	double *probabilities;
	const struct vocab_max_fwd *max;
	int64_t first;
};

static void logits_task(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct vocabulary_call *call = context;
	const struct packed_weight *w = packed(call->table);
	int64_t width = inference_kernels()->panel, panel = index * call->panels, end = panel + call->panels;
	for (; panel < end && panel * width < w->outputs; panel++)
		inference_multiply(w, &call->x, 0, call->x.rows, panel, call->scratch->vocabulary.logits + panel * width,
				   call->scratch->vocabulary.columns);
}

/* Adds the bias to a row of logits; returns their log-sum-exp and the index of the largest logit, lowest index on ties. */
static double finish_row(const struct vocabulary_call *call, int64_t row, float **out_logits, int32_t *out_best)
{
	float max, sum, *logits = call->scratch->vocabulary.logits + row * call->scratch->vocabulary.columns;
	cpu_state(call->r)->kernels->softmax_fwd(&(struct softmax_rows){.rows = 1,
									.columns = packed(call->table)->outputs,
									.logits = logits,
									.bias = call->bias,
									.max = &max,
									.sum = &sum,
									.best = out_best});
	*out_logits = logits;
	return (double)max + log((double)sum);
}

static void loss_row(void *context, int64_t row, int worker)
{
	(void)worker;
	struct vocabulary_call *call = context;
	float weight = call->weights[row], *logits;
	int32_t best, label = call->labels[row];
	call->loss[row] = call->correct[row] = 0;
	if (weight == 0)
		return;
	BUG_IF(label < 0 || label >= call->table->master.rows);
	double lse = finish_row(call, row, &logits, &best);
	call->loss[row] = weight * (lse - (double)logits[label]);
	call->correct[row] = best == label ? weight : 0;
}

/* Inserts each logit into the k best so far; ids come in ascending order, so an equal logit goes after earlier ones. */
static void topk_row(void *context, int64_t row, int worker)
{
	(void)worker;
	const struct vocabulary_call *call = context;
	float *logits;
	int32_t best, *ids = call->ids + row * call->k, count = 0;
	double lse = finish_row(call, row, &logits, &best), *values = call->probabilities + row * call->k;
	for (int64_t c = 0; c < packed(call->table)->outputs; c++) {
		if (count == call->k && !((double)logits[c] > values[count - 1]))
			continue;
		int32_t at = count < call->k ? count++ : count - 1;
		for (; at > 0 && (double)logits[c] > values[at - 1]; at--) {
			values[at] = values[at - 1];
			ids[at] = ids[at - 1];
		}
		values[at] = (double)logits[c];
		ids[at] = (int32_t)c;
	}
	for (int32_t j = 0; j < count; j++)
		values[j] = exp(values[j] - lse);
}

/* Words that a task takes the largest logits of. */
#define MAX_WORDS 512

static void max_words(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct vocabulary_call *call = context;
	int64_t first = index * MAX_WORDS, left = call->max->y.columns - first;
	cpu_vocabulary_max(call->max, &(struct vocabulary_part){.first_row = call->first,
								.rows = call->x.rows,
								.first_column = first,
								.columns = left < MAX_WORDS ? left : MAX_WORDS,
								.logits = call->scratch->vocabulary.logits + first,
								.stride = call->scratch->vocabulary.columns,
								.bias = call->bias + first});
}

/* Computes the logits of rows [first, first + rows) of x, then runs `finish` `count` times. */
static void run_chunk(struct vocabulary_call *call, const struct tensor *x, int64_t first, int64_t rows, pool_task *finish,
		      int64_t count)
{
	enum { TASKS = 8 }; /* per thread */
	struct pool *pool = call->r->backend->pool;
	int64_t width = inference_kernels()->panel, panels = (packed(call->table)->outputs + width - 1) / width;
	struct tensor part = *x;
	part.data = tensor_at(x, first, 0);
	part.rows = rows;
	call->x = inference_rows(call->r, packed(call->table), &part);
	call->panels = (panels + TASKS * pool_threads(pool) - 1) / (TASKS * pool_threads(pool));
	pool_run(pool, (panels + call->panels - 1) / call->panels, logits_task, call);
	pool_run(pool, count, finish, call);
}

static struct vocabulary_call call_start(struct replica *r, const struct weight *table, const struct weight *bias)
{
	return (struct vocabulary_call){
		.r = r, .table = table, .bias = packed(bias)->rows, .scratch = &cpu_scratch(r)->inference};
}

void inference_vocab_xent(struct replica *r, const struct vocab_xent *a)
{
	BUG_IF(a->training);
	struct vocabulary_call call = call_start(r, a->table, a->bias);
	int64_t chunk = call.scratch->vocabulary.rows;
	for (int64_t first = 0; first < a->x.rows; first += chunk) {
		int64_t rows = a->x.rows - first < chunk ? a->x.rows - first : chunk;
		call.labels = a->labels + first;
		call.weights = a->weights + first;
		run_chunk(&call, &a->x, first, rows, loss_row, rows);
		for (int64_t i = 0; i < rows; i++) {
			*a->loss += call.loss[i];
			if (a->losses)
				a->losses[first + i] = call.loss[i];
			*a->correct += call.correct[i];
		}
	}
}

void inference_vocab_topk(struct replica *r, const struct vocab_topk *a)
{
	struct vocabulary_call call = call_start(r, a->table, a->bias);
	int64_t chunk = call.scratch->vocabulary.rows;
	call.k = a->k;
	for (int64_t first = 0; first < a->x.rows; first += chunk) {
		call.ids = a->ids + first * a->k;
		call.probabilities = a->probabilities + first * a->k;
		int64_t rows = a->x.rows - first < chunk ? a->x.rows - first : chunk;
		run_chunk(&call, &a->x, first, rows, topk_row, rows);
	}
}

void inference_vocab_max_fwd(struct replica *r, const struct vocab_max_fwd *a)
{
	struct vocabulary_call call = call_start(r, a->table, a->bias);
	int64_t chunk = call.scratch->vocabulary.rows;
	call.max = a;
	cpu_vocabulary_max_start(r, a);
	for (call.first = 0; call.first < a->x.rows; call.first += chunk) {
		int64_t left = a->x.rows - call.first;
		run_chunk(&call, &a->x, call.first, left < chunk ? left : chunk, max_words,
			  (a->y.columns + MAX_WORDS - 1) / MAX_WORDS);
	}
}
