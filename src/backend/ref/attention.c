/* Scaled dot-product attention (Vaswani et al. 2017) of every head within every sequence. */
#include "backend/ref/ref.h"

#include <math.h>
#include <string.h>

struct rotation {
	const struct rotary *a;
	float frequencies[ROTARY_LIMIT / 2];
};

static void rotary_row(void *context, int64_t t, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct rotation *rotation = call->arguments;
	const struct rotary *a = rotation->a;
	int64_t hidden = a->qkv.columns / 3, half = hidden / a->heads / 2;
	for (int64_t i = 0; i < half; i++) {
		float angle = (float)a->batch->positions[t] * rotation->frequencies[i];
		double cosine = cos((double)angle), sine = a->back ? -sin((double)angle) : sin((double)angle);
		for (double *x = ref_row(&a->qkv, t) + i, *end = x + 2 * hidden; x < end; x += 2 * half) {
			double low = x[0], high = x[half];
			x[0] = low * cosine - high * sine;
			x[half] = high * cosine + low * sine;
		}
	}
}

void ref_rotary(struct replica *r, const struct rotary *a)
{
	struct rotation rotation = {.a = a};
	rotary_frequencies(a->base, (int32_t)(a->qkv.columns / 3 / a->heads), rotation.frequencies);
	ref_run(r, a->qkv.rows, rotary_row, &rotation);
}

/* One head of one sequence, and where its rows are. */
struct head {
	int64_t first, length; /* tokens */
	int64_t head, width;   /* head number, and its columns */
	int64_t sequence, window;
	double scale;
};

static struct head head_of(const struct batch *batch, int64_t index, int32_t heads, int32_t window, int64_t hidden)
{
	struct head h = {.sequence = index / heads, .head = index % heads, .width = hidden / heads, .window = window};
	h.first = batch->starts[h.sequence];
	h.length = batch->starts[h.sequence + 1] - h.first;
	h.scale = 1 / sqrt((double)h.width);
	return h;
}

/* The keys that a query sees: first and end. */
static int64_t first_key(const struct head *h, int64_t query)
{
	return h->window > 0 && query > h->window ? query - h->window : 0;
}

static int64_t end_key(const struct head *h, int64_t query)
{
	return h->window > 0 && h->length - query > h->window ? query + h->window + 1 : h->length;
}

/* Row of query (part 0), key (1) or value (2) of a token of the sequence, within qkv or dqkv. */
static double *part(const struct tensor *qkv, const struct head *h, int64_t token, int number)
{
	return ref_row(qkv, h->first + token) + number * (qkv->columns / 3) + h->head * h->width;
}

/* The head's columns of y or dy. */
static double *output(const struct tensor *y, const struct head *h, int64_t token)
{
	return ref_row(y, h->first + token) + h->head * h->width;
}

/* Multiplies row[key] by the dropout factor of (head, query, key). */
static void dropout_keys(const struct replica *r, const struct dropout *dropout, const struct batch *batch, const struct head *h,
			 int64_t query, double *row)
{
	if (dropout->p <= 0)
		return;
	uint32_t threshold = dropout_threshold(dropout->p);
	double scale = dropout_scale(dropout->p);
	for (int64_t first = 0; first < h->length; first += 8) {
		uint16_t u[8];
		dropout_block(r->scalars->seed, dropout_attention_counter((uint32_t)h->head, (uint32_t)first), (uint32_t)query,
			      dropout->site, batch->samples[h->sequence], u);
		for (int64_t key = first; key < first + 8 && key < h->length; key++)
			row[key] *= u[key - first] < threshold ? 0 : scale;
	}
}

static void attention_head(void *context, int64_t index, int worker)
{
	const struct ref_call *call = context;
	const struct attention_fwd *a = call->arguments;
	struct head h = head_of(a->batch, index, a->heads, a->window, a->y.columns);
	double *p = ref_scratch(call->replica, worker, h.length);
	for (int64_t query = 0; query < h.length; query++) {
		int64_t first = first_key(&h, query), end = end_key(&h, query);
		double largest = -INFINITY, sum = 0;
		for (int64_t key = first; key < end; key++) {
			p[key] = h.scale * ref_dot(part(&a->qkv, &h, query, 0), part(&a->qkv, &h, key, 1), h.width);
			largest = fmax(largest, p[key]);
		}
		for (int64_t key = first; key < end; key++)
			sum += exp(p[key] - largest);
		double lse = largest + log(sum);
		for (int64_t key = first; key < end; key++)
			p[key] = exp(p[key] - lse);
		if (a->lse.data != NULL)
			ref_row(&a->lse, h.head)[h.first + query] = lse;

		dropout_keys(call->replica, &a->dropout, a->batch, &h, query, p);
		double *y = output(&a->y, &h, query);
		memset(y, 0, (size_t)h.width * sizeof *y);
		for (int64_t key = first; key < end; key++)
			for (int64_t j = 0; j < h.width; j++)
				y[j] += p[key] * part(&a->qkv, &h, key, 2)[j];
	}
}

void ref_attention_fwd(struct replica *r, const struct attention_fwd *a)
{
	ref_run(r, (int64_t)a->batch->sequence_count * a->heads, attention_head, a);
}

/* With y = sum_k f_k p_k v_k, f the dropout factors and p the softmax of s = scale q k':
 *   dv_k += f_k p_k dy;  dp_k = f_k (dy . v_k);  ds_k = p_k (dp_k - sum_j p_j dp_j)
 *   dq += scale ds_k k;  dk_k += scale ds_k q. */
static void attention_bwd_head(void *context, int64_t index, int worker)
{
	const struct ref_call *call = context;
	const struct attention_bwd *a = call->arguments;
	struct head h = head_of(a->batch, index, a->heads, a->window, a->dy.columns);
	double *p = ref_scratch(call->replica, worker, 2 * h.length), *factor = p + h.length;
	for (int64_t token = 0; token < h.length; token++)
		for (int number = 0; number < 3; number++)
			memset(part(&a->dqkv, &h, token, number), 0, (size_t)h.width * sizeof(double));

	for (int64_t query = 0; query < h.length; query++) {
		int64_t first = first_key(&h, query), end = end_key(&h, query);
		const double *q = part(&a->qkv, &h, query, 0), *dy = output(&a->dy, &h, query);
		double *dq = part(&a->dqkv, &h, query, 0), lse = ref_row(&a->lse, h.head)[h.first + query], total = 0;
		for (int64_t key = first; key < end; key++) {
			p[key] = exp(h.scale * ref_dot(q, part(&a->qkv, &h, key, 1), h.width) - lse);
			factor[key] = 1;
		}
		dropout_keys(call->replica, &a->dropout, a->batch, &h, query, factor);
		for (int64_t key = first; key < end; key++)
			total += p[key] * factor[key] * ref_dot(dy, part(&a->qkv, &h, key, 2), h.width);
		for (int64_t key = first; key < end; key++) {
			const double *k = part(&a->qkv, &h, key, 1), *v = part(&a->qkv, &h, key, 2);
			double *dk = part(&a->dqkv, &h, key, 1), *dv = part(&a->dqkv, &h, key, 2);
			double dp = factor[key] * ref_dot(dy, v, h.width);
			double ds = p[key] * (dp - total);
			for (int64_t j = 0; j < h.width; j++) {
				dq[j] += h.scale * ds * k[j];
				dk[j] += h.scale * ds * q[j];
				dv[j] += factor[key] * p[key] * dy[j];
			}
		}
	}
}

void ref_attention_bwd(struct replica *r, const struct attention_bwd *a)
{
	ref_run(r, (int64_t)a->batch->sequence_count * a->heads, attention_bwd_head, a);
	if (a->bias != NULL)
		ref_column_sums(r, &a->dqkv, &a->bias->gradient, a->overwrite);
}
