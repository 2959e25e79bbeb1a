/* Losses over the outputs of heads: small compared to the encoder, computed in double, 128 items per task. */
#include <math.h>
#include <string.h>
#include "backend/cpu/state.h"
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

/* A loss, item by item or slice by slice: adds the contribution of item i (or of a slice), and writes its gradients. */
struct loss_call {
	struct replica *r;
	void (*item)(const struct loss_call *call, int64_t i, struct sums *sums);
	int64_t items; /* or rows, which are divided into slices */
	int head;
	const void *arguments;
	void (*slice)(const struct loss_call *call, int64_t slice, struct sums *sums); /* NULL: item by item */
};

static void loss_slice(void *context, int64_t slice, int worker)
{
	(void)worker;
	const struct loss_call *call = context;
	int64_t first = slice * ROW_MULTIPLE, end = first + slice_rows(call->items, slice);
	struct sums sums = {0};
	if (call->slice)
		call->slice(call, slice, &sums);
	for (int64_t i = first; !call->slice && i < end; i++)
		call->item(call, i, &sums);
	double *place = cpu_scratch(call->r)->slice_sums + slice * 2;
	place[0] = sums.loss;
	place[1] = sums.correct;
}

/* Processes all items; adds the sums of slices in order. `correct` may be NULL. */
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

/* The gradient of something, scaled for an item with this weight. */
static double scaled(const struct loss_call *call, double weight, double gradient)
{
	const struct scalars *s = call->r->scalars;
	return weight * gradient * s->inverse_weight[call->head] * s->loss_scale;
}

/* Logits of which one is the right choice: `count` of them, consecutive in a row or in a column. */
struct choice {
	const struct tensor *logits, *dlogits;
	int64_t row, column, count;
	bool downwards;
};

static double choice_logit(const struct choice *c, int64_t j)
{
	return c->downwards ? get(c->logits, c->row + j, c->column) : get(c->logits, c->row, c->column + j);
}

/* The cross entropy; *best is the most likely choice. With weight 0 the gradients are 0. */
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

/* Label smoothing moves a share of the target from the label to all classes: returns what this adds to the cross entropy of a row
 * whose weight is not 0, and writes its gradient again. */
static double smooth(const struct loss_call *call, int64_t row, double cross_entropy)
{
	const struct xent *a = call->arguments;
	int64_t classes = a->logits.columns, label = a->labels[row];
	double share = a->label_smoothing / (double)classes, right = get(&a->logits, row, label), sum = 0;
	for (int64_t c = 0; c < classes; c++) {
		double logit = get(&a->logits, row, c), target = (c == label ? 1 - a->label_smoothing : 0) + share;
		sum += right - logit;
		if (a->dlogits.data)
			put(&a->dlogits, row, c, scaled(call, a->weights[row], exp(logit - right - cross_entropy) - target));
	}
	return share * sum;
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
	if (a->label_smoothing > 0)
		loss += smooth(call, i, loss);
	sums->loss += weight * loss;
	sums->correct += best == a->labels[i] ? weight : 0;
}

void cpu_xent(struct replica *r, const struct xent *a)
{
	run_loss((struct loss_call){r, xent_item, a->logits.rows, a->head, a, NULL}, a->loss, a->correct);
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
	run_loss((struct loss_call){r, squared_error_item, a->outputs.rows, a->head, a, NULL}, a->loss, NULL);
}

/* log(1 + exp(x)) */
static double softplus(double x)
{
	return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static void binary_xent_item(const struct loss_call *call, int64_t i, struct sums *sums)
{
	const struct binary_xent *a = call->arguments;
	int64_t columns = a->logits.columns;
	double weight = a->weights[i], sum = 0;
	bool right = true;
	for (int64_t c = 0; c < columns; c++) {
		double x = get(&a->logits, i, c), value = a->values[i * columns + c];
		double p = 1 / (1 + exp(-x));
		double excess = a->positive_weights ? ((double)a->positive_weights[c] - 1) * value : 0; /* of the value's term */
		sum += (x > 0 ? x : 0) - x * value + log1p(exp(-fabs(x))) + excess * softplus(-x);
		right = right && (x > 0) == (value > 0.5);
		if (a->dlogits.data)
			put(&a->dlogits, i, c,
			    weight == 0 ? 0 : scaled(call, weight, (p - value - excess * (1 - p)) / (double)columns));
	}
	sums->loss += weight == 0 ? 0 : weight * sum / (double)columns;
	sums->correct += right ? weight : 0;
}

void cpu_binary_xent(struct replica *r, const struct binary_xent *a)
{
	run_loss((struct loss_call){r, binary_xent_item, a->logits.rows, a->head, a, NULL}, a->loss, a->correct);
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
	run_loss((struct loss_call){r, group_xent_item, a->count, a->head, a, NULL}, a->loss, a->correct);
}

static double list_shares(const struct loss_call *call, int64_t first, int64_t end)
{
	const struct list_loss *a = call->arguments;
	double most = -INFINITY, sum = 0, all = 0, loss = 0, weight = a->weights[first];
	for (int64_t j = first; j < end; j++)
		most = fmax(most, get(&a->logits, j, 0));
	for (int64_t j = first; j < end; j++) {
		sum += exp(get(&a->logits, j, 0) - most);
		all += (double)a->targets[j];
	}
	double lse = most + log(sum);
	for (int64_t j = first; j < end; j++) {
		double below = get(&a->logits, j, 0) - lse;
		loss -= (double)a->targets[j] * below;
		if (a->dlogits.data)
			put(&a->dlogits, j, 0, weight == 0 ? 0 : scaled(call, weight, all * exp(below) - (double)a->targets[j]));
	}
	return weight == 0 ? 0 : weight * loss;
}

static double list_margins(const struct loss_call *call, int64_t first, int64_t end)
{
	const struct list_loss *a = call->arguments;
	double loss = 0, sum = 0;
	for (int64_t j = first + 1; j < end; j++) {
		double weight = a->weights[j];
		double off =
			get(&a->logits, first, 0) - get(&a->logits, j, 0) - ((double)a->targets[first] - (double)a->targets[j]);
		double slope = weight == 0 ? 0 : scaled(call, weight, 2 * off);
		loss += weight == 0 ? 0 : weight * off * off;
		sum += slope;
		if (a->dlogits.data)
			put(&a->dlogits, j, 0, -slope);
	}
	if (a->dlogits.data)
		put(&a->dlogits, first, 0, sum);
	return loss;
}

static void list_loss_item(const struct loss_call *call, int64_t i, struct sums *sums)
{
	const struct list_loss *a = call->arguments;
	int64_t first = a->starts[i], end = a->starts[i + 1];
	if (first < end)
		sums->loss += a->kind == LIST_SHARES ? list_shares(call, first, end) : list_margins(call, first, end);
}

void cpu_list_loss(struct replica *r, const struct list_loss *a)
{
	run_loss((struct loss_call){r, list_loss_item, a->count, a->head, a, NULL}, a->loss, NULL);
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
	run_loss((struct loss_call){r, segment_xent_item, a->batch->sequence_count, a->head, a, NULL}, a->loss, a->correct);
}

/* ---- Pointers ---- */

/* One of the pointers of a sequence: the columns of its numbers, and the rows that it points from and to. */
struct pointer {
	const struct loss_call *call;
	const struct pointer_xent *a;
	int32_t number, first, end; /* the sequence's rows */
	int64_t query, key, size;
	float scale;
};

/* `size` numbers of a row as floats: in place, or converted into `room`. */
static const float *row_numbers(const struct pointer *p, int64_t row, int64_t column, float room[POINTER_SIZE_MOST])
{
	const void *at = tensor_at(&p->a->logits, row, column);
	if (p->a->logits.dtype != DTYPE_BF16)
		return at;
	for (int64_t i = 0; i < p->size; i++)
		room[i] = bf16_to_float(((const uint16_t *)at)[i]);
	return room;
}

/* Eight partial sums, which compilers vectorize. */
static float pointer_logit(const struct pointer *p, const float *query, const float *key)
{
	float sums[8] = {0}, rest = 0;
	int64_t i = 0;
	for (; i + 8 <= p->size; i += 8)
		for (int k = 0; k < 8; k++)
			sums[k] += query[i + k] * key[i + k];
	for (; i < p->size; i++)
		rest += query[i] * key[i];
	for (int k = 0; k < 8; k++)
		rest += sums[k];
	return rest * p->scale;
}

static int32_t pointer_label(const struct pointer *p, int32_t item)
{
	return p->a->labels[(int64_t)item * (1 + p->a->pointers) + 1 + p->number];
}

/* The gradient of the logit of an item's row for a place in its sequence. */
static float logit_gradient(const struct pointer *p, int32_t item, int32_t place, float logit)
{
	int32_t label = pointer_label(p, item);
	double weight = label < 0 ? 0 : p->a->weights[item], lse = ((const float *)tensor_at(&p->a->lse, p->number, item))[0];
	return weight == 0 ? 0 : (float)(scaled(p->call, weight, exp(logit - lse) - (place == label)) * p->scale);
}

static void add_scaled(float *sum, const float *x, float factor, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		sum[i] += factor * x[i];
}

static void put_row(const struct tensor *t, int64_t row, int64_t column, const float *values, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		put(t, row, column + i, values[i]);
}

/* Evaluates where an item's row points: stores its lse in a->lse and returns the cross entropy. */
static double point(const struct pointer *p, int32_t item, int32_t *best)
{
	float query_room[POINTER_SIZE_MOST], room[POINTER_SIZE_MOST], largest = -INFINITY, right = 0;
	const float *query = row_numbers(p, p->a->rows[item], p->query, query_room);
	int32_t label = pointer_label(p, item);
	double sum = 0;
	BUG_IF(label < -1 || label >= p->end - p->first);
	*best = 0;
	for (int32_t place = 0; place < p->end - p->first; place++) {
		float logit = pointer_logit(p, query, row_numbers(p, p->first + place, p->key, room));
		if (logit > largest) {
			sum *= exp((double)largest - logit);
			largest = logit;
			*best = place;
		}
		sum += exp((double)logit - largest);
		right = place == label ? logit : right;
	}
	double lse = largest + log(sum);
	*(float *)tensor_at(&p->a->lse, p->number, item) = (float)lse;
	return label < 0 ? 0 : lse - right;
}

static void query_gradient(const struct pointer *p, int32_t item)
{
	float query_room[POINTER_SIZE_MOST], room[POINTER_SIZE_MOST], sum[POINTER_SIZE_MOST] = {0};
	const float *query = row_numbers(p, p->a->rows[item], p->query, query_room);
	for (int32_t place = 0; place < p->end - p->first; place++) {
		const float *key = row_numbers(p, p->first + place, p->key, room);
		add_scaled(sum, key, logit_gradient(p, item, place, pointer_logit(p, query, key)), p->size);
	}
	put_row(&p->a->dlogits, p->a->rows[item], p->query, sum, p->size);
}

/* Gradient of the key of a place that items [first, end) point to. */
static void key_gradient(const struct pointer *p, int32_t place, int32_t first, int32_t end)
{
	float key_room[POINTER_SIZE_MOST], room[POINTER_SIZE_MOST], sum[POINTER_SIZE_MOST] = {0};
	const float *key = row_numbers(p, p->first + place, p->key, key_room);
	for (int32_t item = first; item < end; item++) {
		const float *query = row_numbers(p, p->a->rows[item], p->query, room);
		add_scaled(sum, query, logit_gradient(p, item, place, pointer_logit(p, query, key)), p->size);
	}
	put_row(&p->a->dlogits, p->first + place, p->key, sum, p->size);
}

/* The first item whose row is at or after this one. */
static int32_t first_item(const struct pointer_xent *a, int32_t row)
{
	int32_t low = 0, high = a->count;
	while (low < high) {
		int32_t middle = low + (high - low) / 2;
		if (a->rows[middle] < row)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct pointer pointer_of(const struct loss_call *call, int32_t sequence, int32_t number)
{
	const struct pointer_xent *a = call->arguments;
	int64_t size = (a->logits.columns - a->classes) / (2 * (int64_t)a->pointers), query = a->classes + 2 * number * size;
	return (struct pointer){.call = call,
				.a = a,
				.number = number,
				.first = a->batch->starts[sequence],
				.end = a->batch->starts[sequence + 1],
				.query = query,
				.key = query + size,
				.size = size,
				.scale = 1 / sqrtf((float)size)};
}

static void pointer_item(const struct loss_call *call, int32_t sequence, int32_t item, struct sums *sums)
{
	const struct pointer_xent *a = call->arguments;
	const int32_t *labels = a->labels + (int64_t)item * (1 + a->pointers);
	struct choice classes = {.logits = &a->logits, .dlogits = &a->dlogits, .row = a->rows[item], .count = a->classes};
	double weight = labels[0] < 0 ? 0 : a->weights[item];
	int64_t best;
	double loss = weight * cross_entropy(call, &classes, labels[0], weight, &best);
	bool known = weight != 0, wrong = known && best != labels[0];
	for (int32_t k = 0; k < a->pointers; k++) {
		struct pointer p = pointer_of(call, sequence, k);
		int32_t place;
		double own = point(&p, item, &place);
		if (a->dlogits.data)
			query_gradient(&p, item);
		if (labels[1 + k] < 0 || a->weights[item] == 0)
			continue;
		loss += a->weights[item] * own;
		known = true;
		wrong = wrong || place != labels[1 + k];
	}
	sums->loss += known ? loss : 0;
	sums->correct += known && !wrong ? a->weights[item] : 0;
}

static void pointer_sequence(const struct loss_call *call, int32_t sequence, struct sums *sums)
{
	const struct pointer_xent *a = call->arguments;
	int32_t begin = a->batch->starts[sequence], end = a->batch->starts[sequence + 1];
	int32_t first = first_item(a, begin), last = first_item(a, end);
	for (int32_t row = begin; a->dlogits.data && row < end; row++)
		memset(tensor_at(&a->dlogits, row, 0), 0, (size_t)a->dlogits.columns * dtype_bytes(a->dlogits.dtype));
	for (int32_t item = first; item < last; item++)
		pointer_item(call, sequence, item, sums);
	for (int32_t k = 0; a->dlogits.data && k < a->pointers; k++) {
		struct pointer p = pointer_of(call, sequence, k);
		for (int32_t place = 0; place < end - begin; place++)
			key_gradient(&p, place, first, last);
	}
}

/* Processes the sequences that begin within a slice of 128 rows. */
static void pointer_slice(const struct loss_call *call, int64_t slice, struct sums *sums)
{
	const struct pointer_xent *a = call->arguments;
	int64_t first = slice * ROW_MULTIPLE, end = first + slice_rows(a->logits.rows, slice);
	for (int32_t s = 0; s < a->batch->sequence_count && a->batch->starts[s] < end; s++)
		if (a->batch->starts[s] >= first)
			pointer_sequence(call, s, sums);
}

void cpu_pointer_xent(struct replica *r, const struct pointer_xent *a)
{
	run_loss((struct loss_call){r, NULL, a->logits.rows, a->head, a, pointer_slice}, a->loss, a->correct);
}

/* ---- Losses against a teacher ---- */

/* Logits and a teacher's at the same positions: `count` of them from (row, column) to the right or downwards. */
struct soft_choice {
	const struct soft_loss *a;
	int64_t row, column, count;
	bool downwards;
};

static double soft_logit(const struct soft_choice *c, const struct tensor *from, int64_t j)
{
	return get(from, c->downwards ? c->row + j : c->row, c->downwards ? c->column : c->column + j) / c->a->temperature;
}

static double soft_log_sum(const struct soft_choice *c, const struct tensor *from)
{
	double largest = -INFINITY, sum = 0;
	for (int64_t j = 0; j < c->count; j++)
		largest = fmax(largest, soft_logit(c, from, j));
	for (int64_t j = 0; j < c->count; j++)
		sum += exp(soft_logit(c, from, j) - largest);
	return largest + log(sum);
}

/* Mixes the gradient of something, for an item with this weight, into the existing gradient. */
static void mix_gradient(const struct loss_call *call, int64_t row, int64_t column, double weight, double gradient)
{
	const struct soft_loss *a = call->arguments;
	double own = weight == 0 ? 0 : scaled(call, weight, gradient);
	put(&a->dlogits, row, column, (1 - a->share) * get(&a->dlogits, row, column) + a->share * own);
}

/* T^2 KL(teacher, student). */
static double divergence(const struct loss_call *call, const struct soft_choice *c, double weight)
{
	const struct soft_loss *a = c->a;
	double teachers = soft_log_sum(c, &a->teacher), students = soft_log_sum(c, &a->logits), sum = 0;
	for (int64_t j = 0; j < c->count; j++) {
		double log_p = soft_logit(c, &a->teacher, j) - teachers, log_q = soft_logit(c, &a->logits, j) - students;
		double p = exp(log_p);
		sum += p > 0 ? p * (log_p - log_q) : 0;
		mix_gradient(call, c->downwards ? c->row + j : c->row, c->downwards ? c->column : c->column + j, weight,
			     a->temperature * (exp(log_q) - p));
	}
	return a->temperature * a->temperature * sum;
}

/* The same for a single probability. */
static double sigmoid_divergence(const struct loss_call *call, int64_t row, int64_t column, double weight)
{
	const struct soft_loss *a = call->arguments;
	double t = a->temperature, teacher = get(&a->teacher, row, column) / t, student = get(&a->logits, row, column) / t;
	double p = 1 / (1 + exp(-teacher));
	mix_gradient(call, row, column, weight, t * (1 / (1 + exp(-student)) - p));
	return t * t * (softplus(student) - softplus(teacher) - p * (student - teacher));
}

static double squared_difference(const struct loss_call *call, int64_t row, int64_t column, double weight)
{
	const struct soft_loss *a = call->arguments;
	double difference = get(&a->logits, row, column) - get(&a->teacher, row, column);
	mix_gradient(call, row, column, weight, 2 * difference);
	return difference * difference;
}

static void soft_loss_item(const struct loss_call *call, int64_t i, struct sums *sums)
{
	const struct soft_loss *a = call->arguments;
	int64_t columns = a->logits.columns;
	double weight = a->weights[i], each = weight / (double)columns, sum = 0;
	if (a->kind == SOFT_CLASSES)
		sum = divergence(call, &(struct soft_choice){.a = a, .row = i, .count = columns}, weight) * (double)columns;
	for (int64_t c = 0; c < columns && a->kind != SOFT_CLASSES; c++) {
		struct soft_choice rows = {.a = a, .column = c, .downwards = true};
		if (a->kind == SOFT_ROWS) {
			rows.row = a->starts[i];
			rows.count = a->starts[i + 1] - a->starts[i];
			sum += divergence(call, &rows, each);
		} else {
			sum += a->kind == SOFT_SIGMOIDS ? sigmoid_divergence(call, i, c, each)
							: squared_difference(call, i, c, each);
		}
	}
	sums->loss += weight == 0 ? 0 : each * sum;
}

void cpu_soft_loss(struct replica *r, const struct soft_loss *a)
{
	run_loss((struct loss_call){r, soft_loss_item, a->count, a->head, a, NULL}, a->loss, NULL);
}

static void hidden_error_item(const struct loss_call *call, int64_t i, struct sums *sums)
{
	const struct hidden_error *a = call->arguments;
	const struct scalars *s = call->r->scalars;
	int64_t columns = a->x.columns;
	float factor = (float)(2 * a->factor * s->inverse_tokens * s->loss_scale / (double)columns);
	bool narrow = a->x.dtype == DTYPE_BF16;
	const void *x = tensor_at(&a->x, i, 0), *target = tensor_at(&a->target, i, 0);
	void *dx = tensor_at(&a->dx, i, 0);
	double sum = 0;
	for (int64_t j = 0; j < columns; j++) {
		float difference = narrow ? bf16_to_float(((const uint16_t *)x)[j]) - bf16_to_float(((const uint16_t *)target)[j])
					  : ((const float *)x)[j] - ((const float *)target)[j];
		sum += (double)difference * (double)difference;
		if (narrow)
			((uint16_t *)dx)[j] = float_to_bf16(factor * difference);
		else
			((float *)dx)[j] = factor * difference;
	}
	sums->loss += sum / (double)columns;
}

void cpu_hidden_error(struct replica *r, const struct hidden_error *a)
{
	run_loss((struct loss_call){r, hidden_error_item, a->x.rows, 0, a, NULL}, a->loss, NULL);
}

/* ---- Dropout ---- */

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
