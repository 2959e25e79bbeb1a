/* Losses over the outputs of heads: small next to the encoder, computed in double, 128 items to a task. */
#include <math.h>
#include <string.h>
#include "backend/cpu/cpu.h"
#include "backend/dropout.h"

static double get(const struct tensor *t, int64_t row, int64_t column)
{
	const void *element = tensor_at(t, row, column);
	return t->dtype == DTYPE_BF16 ? bf16_to_float(*(const uint16_t *)element) : *(const float *)element;
}

static void put(const struct tensor *t, int64_t row, int64_t column, double value)
{
	void *element = tensor_at(t, row, column);
	if (t->dtype == DTYPE_BF16)
		*(uint16_t *)element = float_to_bf16((float)value);
	else
		*(float *)element = (float)value;
}

struct sums {
	double loss, correct;
};

/* A loss, item by item: adds what item i gives, and writes its gradients. */
struct loss_call {
	struct replica *r;
	void (*item)(const struct loss_call *call, int64_t i, struct sums *sums);
	int64_t items;
	int head;
	const void *arguments;
};

static void loss_slice(void *context, int64_t slice, int worker)
{
	(void)worker;
	const struct loss_call *call = context;
	int64_t first = slice * ROW_MULTIPLE, end = first + slice_rows(call->items, slice);
	struct sums sums = {0};
	for (int64_t i = first; i < end; i++)
		call->item(call, i, &sums);
	double *place = cpu_scratch(call->r)->slice_sums + slice * 2;
	place[0] = sums.loss;
	place[1] = sums.correct;
}

/* All items; what slices came to is added in their order. `correct` may be NULL. */
static void run_loss(struct loss_call call, double *out_loss, double *out_correct)
{
	const struct cpu_scratch *scratch = cpu_scratch(call.r);
	int64_t slices = slice_count(call.items);
	BUG_IF(slices > scratch->slices);
	pool_run(call.r->backend->pool, slices, loss_slice, &call);
	double loss = 0, correct = 0;
	for (int64_t slice = 0; slice < slices; slice++) {
		loss += scratch->slice_sums[slice * 2];
		correct += scratch->slice_sums[slice * 2 + 1];
	}
	*out_loss += loss;
	if (out_correct)
		*out_correct += correct;
}

/* The gradient of something of this weight. */
static double scaled(const struct loss_call *call, double weight, double gradient)
{
	const struct scalars *s = call->r->scalars;
	return weight * gradient * s->inverse_weight[call->head] * s->loss_scale;
}

/* Logits among which one is right: `count` of them, one behind the other in a row or in a column. */
struct choice {
	const struct tensor *logits, *dlogits;
	int64_t row, column, count;
	bool downwards;
};

static double choice_logit(const struct choice *c, int64_t j)
{
	return c->downwards ? get(c->logits, c->row + j, c->column) : get(c->logits, c->row, c->column + j);
}

/* The cross entropy; *best is the likeliest. With weight 0 the gradients are 0. */
static double cross_entropy(const struct loss_call *call, const struct choice *c, int32_t label, double weight, int64_t *best)
{
	BUG_IF(label < -1 || label >= c->count);
	*best = 0;
	for (int64_t j = 1; j < c->count; j++)
		if (choice_logit(c, j) > choice_logit(c, *best))
			*best = j;
	double max = choice_logit(c, *best), sum = 0;
	for (int64_t j = 0; j < c->count; j++)
		sum += exp(choice_logit(c, j) - max);
	double lse = max + log(sum);
	for (int64_t j = 0; c->dlogits->data && j < c->count; j++) {
		double d = exp(choice_logit(c, j) - lse) - (j == label);
		put(c->dlogits, c->downwards ? c->row + j : c->row, c->downwards ? c->column : c->column + j,
		    weight == 0 ? 0 : scaled(call, weight, d));
	}
	return label < 0 ? 0 : lse - choice_logit(c, label);
}

static void xent_item(const struct loss_call *call, int64_t i, struct sums *sums)
{
	const struct xent *a = call->arguments;
	struct choice choice = {.logits = &a->logits, .dlogits = &a->dlogits, .row = i, .count = a->logits.columns};
	double weight = a->labels[i] < 0 ? 0 : a->weights[i];
	int64_t best;
	double loss = cross_entropy(call, &choice, a->labels[i], weight, &best);
	if (weight == 0)
		return;
	sums->loss += weight * loss;
	sums->correct += best == a->labels[i] ? weight : 0;
}

void cpu_xent(struct replica *r, const struct xent *a)
{
	run_loss((struct loss_call){r, xent_item, a->logits.rows, a->head, a}, a->loss, a->correct);
}

static void squared_error_item(const struct loss_call *call, int64_t i, struct sums *sums)
{
	const struct squared_error *a = call->arguments;
	int64_t columns = a->outputs.columns;
	double weight = a->weights[i], sum = 0;
	for (int64_t c = 0; c < columns; c++) {
		double difference = get(&a->outputs, i, c) - (double)a->values[i * columns + c];
		sum += difference * difference;
		if (a->doutputs.data)
			put(&a->doutputs, i, c, weight == 0 ? 0 : scaled(call, weight, 2 * difference / (double)columns));
	}
	sums->loss += weight == 0 ? 0 : weight * sum / (double)columns;
}

void cpu_squared_error(struct replica *r, const struct squared_error *a)
{
	run_loss((struct loss_call){r, squared_error_item, a->outputs.rows, a->head, a}, a->loss, NULL);
}

static void binary_xent_item(const struct loss_call *call, int64_t i, struct sums *sums)
{
	const struct binary_xent *a = call->arguments;
	int64_t columns = a->logits.columns;
	double weight = a->weights[i], sum = 0;
	bool right = true;
	for (int64_t c = 0; c < columns; c++) {
		double x = get(&a->logits, i, c), value = a->values[i * columns + c];
		sum += (x > 0 ? x : 0) - x * value + log1p(exp(-fabs(x)));
		right = right && (x > 0) == (value > 0.5);
		if (a->dlogits.data)
			put(&a->dlogits, i, c,
			    weight == 0 ? 0 : scaled(call, weight, (1 / (1 + exp(-x)) - value) / (double)columns));
	}
	sums->loss += weight == 0 ? 0 : weight * sum / (double)columns;
	sums->correct += right ? weight : 0;
}

void cpu_binary_xent(struct replica *r, const struct binary_xent *a)
{
	run_loss((struct loss_call){r, binary_xent_item, a->logits.rows, a->head, a}, a->loss, a->correct);
}

static void group_xent_item(const struct loss_call *call, int64_t i, struct sums *sums)
{
	const struct group_xent *a = call->arguments;
	struct choice choice = {.logits = &a->logits,
				.dlogits = &a->dlogits,
				.row = a->starts[i],
				.count = a->starts[i + 1] - a->starts[i],
				.downwards = true};
	double weight = a->labels[i] < 0 ? 0 : a->weights[i];
	int64_t best;
	double loss = cross_entropy(call, &choice, a->labels[i], weight, &best);
	if (weight == 0)
		return;
	sums->loss += weight * loss;
	sums->correct += best == a->labels[i] ? weight : 0;
}

void cpu_group_xent(struct replica *r, const struct group_xent *a)
{
	run_loss((struct loss_call){r, group_xent_item, a->count, a->head, a}, a->loss, a->correct);
}

static void segment_xent_item(const struct loss_call *call, int64_t i, struct sums *sums)
{
	const struct segment_xent *a = call->arguments;
	const int32_t *starts = a->batch->starts;
	bool right = false, wrong = false;
	for (int64_t column = 0; column < 2; column++) {
		int32_t label = a->labels[2 * i + column];
		struct choice choice = {.logits = &a->logits,
					.dlogits = &a->dlogits,
					.row = starts[i],
					.column = column,
					.count = starts[i + 1] - starts[i],
					.downwards = true};
		double weight = label < 0 ? 0 : a->weights[i];
		int64_t best;
		double loss = cross_entropy(call, &choice, label, weight / 2, &best);
		if (weight == 0)
			continue;
		sums->loss += weight * loss / 2;
		right = right || best == label;
		wrong = wrong || best != label;
	}
	sums->correct += right && !wrong ? a->weights[i] : 0;
}

void cpu_segment_xent(struct replica *r, const struct segment_xent *a)
{
	run_loss((struct loss_call){r, segment_xent_item, a->batch->sequence_count, a->head, a}, a->loss, a->correct);
}

struct dropout_call {
	struct replica *r;
	const struct row_dropout *a;
};

static void dropout_slice(void *context, int64_t slice, int worker)
{
	(void)worker;
	const struct dropout_call *call = context;
	const struct row_dropout *a = call->a;
	int64_t first = slice * ROW_MULTIPLE, end = first + slice_rows(a->x.rows, slice);
	uint32_t threshold = dropout_threshold(a->dropout.p);
	float scale = (float)dropout_scale(a->dropout.p);
	for (int64_t i = first; i < end; i++) {
		int64_t token = a->rows ? a->rows[i] : i;
		for (int64_t c = 0; c < a->x.columns; c += 8) {
			uint16_t u[8];
			dropout_block(call->r->scalars->seed, (uint32_t)c / 8, (uint32_t)a->batch->positions[token],
				      a->dropout.site, a->batch->token_samples[token], u);
			for (int64_t k = c; k < c + 8 && k < a->x.columns; k++)
				put(&a->y, i, k, u[k - c] < threshold ? 0 : (float)get(&a->x, i, k) * scale);
		}
	}
}

void cpu_row_dropout(struct replica *r, const struct row_dropout *a)
{
	struct dropout_call call = {r, a};
	pool_run(r->backend->pool, slice_count(a->x.rows), dropout_slice, &call);
}
