/* Losses over all vectors of a step and their gradients, in parallel over texts. */
#include "tasks/contrastive.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

/* Sums are split into this many lanes, which the compiler can keep in vector registers without changing the order of
 * summation. */
#define LANES 16

uint64_t contrastive_text(const int32_t *ids, int64_t count)
{
	return hash64(ids, (size_t)count * sizeof *ids);
}

double vectors_dot(const float *a, const float *b, int64_t count)
{
	float lanes[LANES] = {0};
	double sum = 0;
	int64_t i = 0;
	for (; i + LANES <= count; i += LANES)
		for (int k = 0; k < LANES; k++)
			lanes[k] += a[i + k] * b[i + k];
	for (int k = 0; k < LANES; k++)
		sum += lanes[k];
	for (; i < count; i++)
		sum += (double)a[i] * (double)b[i];
	return sum;
}

double vectors_cosine(const float *a, const float *b, int64_t count)
{
	enum { PRODUCT, LEFT, RIGHT, SUMS };
	double lanes[SUMS][LANES / 2] = {{0}}, sums[SUMS] = {0};
	int64_t i = 0;
	for (; i + LANES / 2 <= count; i += LANES / 2) {
		for (int k = 0; k < LANES / 2; k++) {
			lanes[PRODUCT][k] += (double)a[i + k] * (double)b[i + k];
			lanes[LEFT][k] += (double)a[i + k] * (double)a[i + k];
			lanes[RIGHT][k] += (double)b[i + k] * (double)b[i + k];
		}
	}
	for (int s = 0; s < SUMS; s++)
		for (int k = 0; k < LANES / 2; k++)
			sums[s] += lanes[s][k];
	for (; i < count; i++) {
		sums[PRODUCT] += (double)a[i] * (double)b[i];
		sums[LEFT] += (double)a[i] * (double)a[i];
		sums[RIGHT] += (double)b[i] * (double)b[i];
	}
	return sums[PRODUCT] / (fmax(sqrt(sums[LEFT]), 1e-12) * fmax(sqrt(sums[RIGHT]), 1e-12));
}

/* Sets unit = vector / |vector|, with |vector| taken to be at least 1e-12; returns 1 / |vector|. */
static double vectors_unit(const float *vector, int64_t count, float *unit)
{
	double squares = 0;
	for (int64_t i = 0; i < count; i++)
		squares += (double)vector[i] * (double)vector[i];
	double inverse = 1 / fmax(sqrt(squares), 1e-12);
	for (int64_t i = 0; i < count; i++)
		unit[i] = (float)((double)vector[i] * inverse);
	return inverse;
}

/* to += factor * from */
static void add_scaled(float *to, double factor, const float *from, int64_t count)
{
	float f = (float)factor;
	for (int64_t i = 0; i < count; i++)
		to[i] += f * from[i];
}

/* The state of computing a loss. */
struct work {
	const struct contrastive_step *step;
	struct contrastive_scratch *scratch;
	double scale; /* 1 / temperature */
	float *gradients;
};

static void run(struct pool *pool, int64_t count, pool_task *task, struct work *work)
{
	if (pool)
		pool_run(pool, count, task, work);
	for (int64_t i = 0; !pool && i < count; i++)
		task(work, i, 0);
}

static const float *unit_of(const struct work *work, int64_t text)
{
	return (work->step->by_dot ? work->step->vectors : work->scratch->units) + text * work->step->width;
}

static double cosine(const struct work *work, int64_t a, int64_t b)
{
	return vectors_dot(unit_of(work, a), unit_of(work, b), work->step->width);
}

static void normalize(void *context, int64_t text, int worker)
{
	struct work *work = context;
	int64_t width = work->step->width;
	(void)worker;
	work->scratch->inverses[text] =
		vectors_unit(work->step->vectors + text * width, width, work->scratch->units + text * width);
}

/* The gradient of a vector from that of its unit vector u: (g - u (u g)) / length. */
static void normalize_backward(void *context, int64_t text, int worker)
{
	struct work *work = context;
	int64_t width = work->step->width;
	const float *unit = unit_of(work, text);
	float *gradient = work->gradients + text * width;
	double along = vectors_dot(unit, gradient, width), inverse = work->scratch->inverses[text];
	(void)worker;
	for (int64_t i = 0; i < width; i++)
		gradient[i] = (float)(((double)gradient[i] - along * (double)unit[i]) * inverse);
}

/* ---- In-batch negatives ---- */

static bool is_anchor(const struct work *work, int64_t text)
{
	return work->step->starts[work->scratch->examples[text]] == text;
}

/* Is the text part of the sum for this example's anchor? Its own positive is; texts that may be right, too, are not. */
static bool is_counted(const struct work *work, int64_t example, int64_t text)
{
	const struct contrastive_step *step = work->step;
	int64_t anchor = step->starts[example], positive = anchor + 1;
	int64_t other = step->starts[work->scratch->examples[text]];
	if (text == positive)
		return true;
	if (step->texts[text] == step->texts[positive] || step->texts[text] == step->texts[anchor])
		return false;
	return !(text == other + 1 && step->texts[other] == step->texts[anchor]);
}

static const float *guide_of(const struct work *work, int64_t text)
{
	const struct contrastive_step *step = work->step;
	int64_t example = work->scratch->examples[text];
	int64_t place = step->guide_starts[(int64_t)step->scores[example]] + text - step->starts[example];
	return step->guides + place * step->guide_width;
}

/* How near a text is to an anchor, as the guide sees it; `own` is their cosine. */
static double guided(const struct work *work, int64_t anchor, int64_t text, double own)
{
	if (!work->step->guides)
		return own;
	return vectors_dot(guide_of(work, anchor), guide_of(work, text), work->step->guide_width);
}

/* Is a text that has this cosine with the anchor a negative that is probably right? */
static bool is_false(const struct work *work, int64_t example, int64_t text, double own)
{
	const struct contrastive_step *step = work->step;
	return step->has_gap && text != step->starts[example] + 1 &&
	       guided(work, step->starts[example], text, own) > work->scratch->nearness[example] + step->gap;
}

/* Computes the loss of an anchor, the log-sum-exp of its counted logits and, if wanted, its gradient. */
static void anchor_loss(void *context, int64_t example, int worker)
{
	struct work *work = context;
	const struct contrastive_step *step = work->step;
	int64_t anchor = step->starts[example], positive = anchor + 1;
	double *row = work->scratch->rows + worker * step->count;
	double largest = -INFINITY, sum = 0, right = 0;
	work->scratch->nearness[example] = guided(work, anchor, positive, cosine(work, anchor, positive));
	for (int64_t t = 0; t < step->count; t++) {
		row[t] = -INFINITY;
		if (is_anchor(work, t) || !is_counted(work, example, t))
			continue;
		double nearness = cosine(work, anchor, t);
		if (is_false(work, example, t, nearness))
			continue;
		row[t] = nearness * work->scale;
		largest = row[t] > largest ? row[t] : largest;
		right = t == positive ? row[t] : right;
	}
	for (int64_t t = 0; t < step->count; t++)
		sum += exp(row[t] - largest);
	double lse = largest + log(sum);
	work->scratch->numbers[example] = lse;
	work->scratch->losses[example] = lse - right;
	if (!work->gradients)
		return;
	float *gradient = work->gradients + anchor * step->width;
	double factor = work->scale / (double)step->example_count;
	memset(gradient, 0, (size_t)step->width * sizeof *gradient);
	for (int64_t t = 0; t < step->count; t++)
		if (row[t] != -INFINITY)
			add_scaled(gradient, factor * (exp(row[t] - lse) - (t == positive)), unit_of(work, t), step->width);
}

/* The gradient of a positive or negative, summed over all anchors. Cosines are recomputed, so that no table of all of them need
 * be kept. */
static void candidate_gradient(void *context, int64_t text, int worker)
{
	struct work *work = context;
	const struct contrastive_step *step = work->step;
	(void)worker;
	if (is_anchor(work, text))
		return;
	float *gradient = work->gradients + text * step->width;
	double factor = work->scale / (double)step->example_count;
	memset(gradient, 0, (size_t)step->width * sizeof *gradient);
	for (int64_t e = 0; e < step->example_count; e++) {
		if (!is_counted(work, e, text))
			continue;
		double nearness = cosine(work, step->starts[e], text);
		if (is_false(work, e, text, nearness))
			continue;
		double share = exp(nearness * work->scale - work->scratch->numbers[e]) - (text == step->starts[e] + 1);
		add_scaled(gradient, factor * share, unit_of(work, step->starts[e]), step->width);
	}
}

static double mean_of_losses(const struct work *work)
{
	double sum = 0;
	for (int64_t e = 0; e < work->step->example_count; e++)
		sum += work->scratch->losses[e];
	return sum / (double)work->step->example_count;
}

/* ---- Scored pairs ---- */

/* log(exp(a) + exp(b)) */
static double log_add(double a, double b)
{
	double most = a > b ? a : b, least = a > b ? b : a;
	return most == -INFINITY ? most : most + log1p(exp(least - most));
}

struct by_score {
	float score;
	int64_t example;
};

static int compare_scores(const void *left, const void *right)
{
	const struct by_score *a = left, *b = right;
	if (a->score != b->score)
		return a->score < b->score ? -1 : 1;
	return a->example < b->example ? -1 : 1;
}

static enum status sort_by_score(const struct work *work, int64_t *order)
{
	int64_t count = work->step->example_count;
	struct by_score *sorted;
	TRY(memory_new(&sorted, count, sizeof *sorted, "scores of a step"));
	for (int64_t e = 0; e < count; e++)
		sorted[e] = (struct by_score){work->step->scores[e], e};
	qsort(sorted, (size_t)count, sizeof *sorted, compare_scores);
	for (int64_t e = 0; e < count; e++)
		order[e] = sorted[e].example;
	free(sorted);
	return OK;
}

/* The end of the run of equal scores that begins at position `first` of the order. */
static int64_t equal_end(const struct work *work, const int64_t *order, int64_t first)
{
	int64_t end = first + 1;
	while (end < work->step->example_count && work->step->scores[order[end]] == work->step->scores[order[first]])
		end++;
	return end;
}

/* Returns the loss. `s` [E] are cosines divided by the temperature, `derivatives` [E] those of the loss with respect to `s`. A
 * pass by ascending score keeps in `below` the log of the sum of exp(s_j) over all examples with a lower score, from which each
 * example's terms as the higher one of a pair follow. A pass from the other end does the same with `above` for its terms as the
 * lower one. */
static double cosent(const struct work *work, const int64_t *order, double *s, double *derivatives)
{
	int64_t count = work->step->example_count;
	double below = -INFINITY, above = -INFINITY, total = 0; /* log(1 + an empty sum) */
	for (int64_t first = 0, end; first < count; first = end) {
		end = equal_end(work, order, first);
		for (int64_t i = first; i < end; i++) {
			total = log_add(total, below - s[order[i]]);
			derivatives[order[i]] = below;
		}
		for (int64_t i = first; i < end; i++)
			below = log_add(below, s[order[i]]);
	}
	for (int64_t last = count; last > 0;) {
		int64_t first = last - 1;
		while (first > 0 && work->step->scores[order[first - 1]] == work->step->scores[order[last - 1]])
			first--;
		for (int64_t i = first; i < last; i++) {
			double own = s[order[i]];
			derivatives[order[i]] = exp(own + above - total) - exp(derivatives[order[i]] - own - total);
		}
		for (int64_t i = first; i < last; i++)
			above = log_add(above, -s[order[i]]);
		last = first;
	}
	return total;
}

/* The gradients of both texts of an example from the derivative of their cosine. */
static void pair_gradient(void *context, int64_t example, int worker)
{
	struct work *work = context;
	int64_t first = work->step->starts[example], width = work->step->width;
	(void)worker;
	memset(work->gradients + first * width, 0, (size_t)(2 * width) * sizeof(float));
	add_scaled(work->gradients + first * width, work->scratch->losses[example], unit_of(work, first + 1), width);
	add_scaled(work->gradients + (first + 1) * width, work->scratch->losses[example], unit_of(work, first), width);
}

/* Puts the derivatives into scratch->losses. */
static enum status scored_loss(struct work *work, enum contrastive_kind kind, double *out)
{
	const struct contrastive_step *step = work->step;
	double *cosines = work->scratch->numbers, *derivatives = work->scratch->losses, sum = 0;
	for (int64_t e = 0; e < step->example_count; e++)
		cosines[e] = cosine(work, step->starts[e], step->starts[e] + 1);
	if (kind == CONTRASTIVE_COSENT) {
		TRY(sort_by_score(work, work->scratch->order));
		for (int64_t e = 0; e < step->example_count; e++)
			cosines[e] *= work->scale;
		*out = cosent(work, work->scratch->order, cosines, derivatives);
		for (int64_t e = 0; e < step->example_count; e++)
			derivatives[e] *= work->scale;
		return OK;
	}
	for (int64_t e = 0; e < step->example_count; e++) {
		double off = cosines[e] - (double)step->scores[e];
		sum += off * off;
		derivatives[e] = 2 * off / (double)step->example_count;
	}
	*out = sum / (double)step->example_count;
	return OK;
}

/* ---- Regressions within an example ---- */

/* The numbers over which a mean is taken. */
static double mean_count(const struct work *work, enum contrastive_kind kind)
{
	const struct contrastive_step *step = work->step;
	return kind == CONTRASTIVE_MARGIN ? (double)(step->count - 2 * step->example_count)
					  : (double)step->count * (double)step->width;
}

static float *zero_gradient(const struct work *work, int64_t text)
{
	float *gradient = work->gradients + text * work->step->width;
	memset(gradient, 0, (size_t)work->step->width * sizeof *gradient);
	return gradient;
}

static void margin_loss(void *context, int64_t example, int worker)
{
	struct work *work = context;
	const struct contrastive_step *step = work->step;
	int64_t anchor = step->starts[example], positive = anchor + 1, width = step->width;
	const float *marks = step->marks + step->mark_starts[(int64_t)step->scores[example]];
	double near = cosine(work, anchor, positive), sum = 0, count = mean_count(work, CONTRASTIVE_MARGIN);
	(void)worker;
	for (int64_t t = anchor; work->gradients && t < step->starts[example + 1]; t++)
		zero_gradient(work, t);
	for (int64_t t = positive + 1; t < step->starts[example + 1]; t++) {
		double off = near - cosine(work, anchor, t) - ((double)marks[0] - (double)marks[t - positive]);
		double factor = 2 * off / count;
		sum += off * off;
		if (!work->gradients)
			continue;
		add_scaled(work->gradients + anchor * width, factor, unit_of(work, positive), width);
		add_scaled(work->gradients + anchor * width, -factor, unit_of(work, t), width);
		add_scaled(work->gradients + positive * width, factor, unit_of(work, anchor), width);
		add_scaled(work->gradients + t * width, -factor, unit_of(work, anchor), width);
	}
	work->scratch->losses[example] = sum / count;
}

static void target_loss(void *context, int64_t example, int worker)
{
	struct work *work = context;
	const struct contrastive_step *step = work->step;
	const float *target = step->targets + (int64_t)step->scores[example] * step->width;
	double squares = 0, sum = 0, count = mean_count(work, CONTRASTIVE_TARGET);
	(void)worker;
	for (int64_t i = 0; i < step->width; i++)
		squares += (double)target[i] * (double)target[i];
	double scale = 1 / fmax(sqrt(squares), 1e-12);
	for (int64_t t = step->starts[example]; t < step->starts[example + 1]; t++) {
		float *gradient = work->gradients ? zero_gradient(work, t) : NULL;
		for (int64_t i = 0; i < step->width; i++) {
			double off = (double)unit_of(work, t)[i] - (double)target[i] * scale;
			sum += off * off;
			if (gradient)
				gradient[i] = (float)(2 * off / count);
		}
	}
	work->scratch->losses[example] = sum / count;
}

/* ---- All losses ---- */

static enum status make_room(struct contrastive_scratch *s, const struct contrastive_step *step, int64_t workers)
{
	static const char what[] = "vectors of a step";
	int64_t numbers = step->by_dot ? 0 : step->count * step->width;
	TRY(memory_grow(&s->units, &s->units_capacity, numbers, sizeof *s->units, what));
	TRY(memory_grow(&s->rows, &s->rows_capacity, workers * step->count, sizeof *s->rows, what));
	TRY(memory_grow(&s->inverses, &s->inverses_capacity, step->count, sizeof *s->inverses, what));
	TRY(memory_grow(&s->numbers, &s->numbers_capacity, step->count, sizeof *s->numbers, what));
	TRY(memory_grow(&s->losses, &s->losses_capacity, step->example_count, sizeof *s->losses, what));
	TRY(memory_grow(&s->nearness, &s->nearness_capacity, step->example_count, sizeof *s->nearness, what));
	TRY(memory_grow(&s->examples, &s->examples_capacity, step->count, sizeof *s->examples, what));
	return memory_grow(&s->order, &s->order_capacity, step->example_count, sizeof *s->order, what);
}

void contrastive_scratch_release(struct contrastive_scratch *scratch)
{
	free(scratch->units);
	free(scratch->rows);
	free(scratch->inverses);
	free(scratch->numbers);
	free(scratch->losses);
	free(scratch->nearness);
	free(scratch->examples);
	free(scratch->order);
	free(scratch->part);
	free(scratch->part_gradients);
	*scratch = (struct contrastive_scratch){0};
}

enum status contrastive_loss(enum contrastive_kind kind, double temperature, const struct contrastive_step *step,
			     struct pool *pool, struct contrastive_scratch *scratch, double *out_loss, float *gradients)
{
	struct work work = {.step = step, .scratch = scratch, .scale = 1 / temperature, .gradients = gradients};
	TRY(make_room(scratch, step, pool ? pool_threads(pool) : 1));
	for (int64_t e = 0; e < step->example_count; e++) {
		int64_t texts = step->starts[e + 1] - step->starts[e];
		bool is_pair = kind == CONTRASTIVE_COSENT || kind == CONTRASTIVE_COSINE;
		BUG_IF(is_pair ? texts != 2 : texts < (kind == CONTRASTIVE_TARGET ? 1 : kind == CONTRASTIVE_MARGIN ? 3 : 2));
		for (int64_t t = step->starts[e]; t < step->starts[e + 1]; t++)
			scratch->examples[t] = e;
	}
	if (!step->by_dot)
		run(pool, step->count, normalize, &work);
	if (kind == CONTRASTIVE_IN_BATCH) {
		run(pool, step->example_count, anchor_loss, &work);
		*out_loss = mean_of_losses(&work);
		if (gradients)
			run(pool, step->count, candidate_gradient, &work);
	} else if (kind == CONTRASTIVE_MARGIN || kind == CONTRASTIVE_TARGET) {
		run(pool, step->example_count, kind == CONTRASTIVE_MARGIN ? margin_loss : target_loss, &work);
		*out_loss = mean_of_losses(&work) * (double)step->example_count;
	} else {
		TRY(scored_loss(&work, kind, out_loss));
		if (gradients)
			run(pool, step->example_count, pair_gradient, &work);
	}
	if (gradients && !step->by_dot)
		run(pool, step->count, normalize_backward, &work);
	return OK;
}

enum status contrastive_flops(const struct contrastive_step *step, double first, double others,
			      struct contrastive_scratch *scratch, double *loss, float *gradients)
{
	const double factors[] = {first, others};
	TRY(memory_grow(&scratch->part, &scratch->part_capacity, step->width, sizeof *scratch->part, "weights of a step"));
	for (int kind = 0; kind < 2; kind++) {
		int64_t count = kind == 0 ? step->example_count : step->count - step->example_count;
		double squares = 0;
		memset(scratch->part, 0, (size_t)step->width * sizeof *scratch->part);
		for (int64_t t = 0; t < step->count; t++)
			if ((step->starts[scratch->examples[t]] != t) == kind)
				add_scaled(scratch->part, 1 / (double)count, step->vectors + t * step->width, step->width);
		for (int64_t i = 0; i < step->width; i++)
			squares += (double)scratch->part[i] * (double)scratch->part[i];
		*loss += factors[kind] * squares;
		for (int64_t t = 0; gradients && t < step->count; t++)
			if ((step->starts[scratch->examples[t]] != t) == kind)
				add_scaled(gradients + t * step->width, 2 * factors[kind] / (double)count, scratch->part,
					   step->width);
	}
	return OK;
}

enum status contrastive_nested_loss(enum contrastive_kind kind, double temperature, const struct nested_widths *nested,
				    const struct contrastive_step *step, struct pool *pool, struct contrastive_scratch *scratch,
				    double *out_loss, float *gradients)
{
	int64_t numbers = step->count * step->width;
	if (nested->count == 0)
		return contrastive_loss(kind, temperature, step, pool, scratch, out_loss, gradients);
	TRY(memory_grow(&scratch->part, &scratch->part_capacity, numbers, sizeof *scratch->part, "vectors of a step"));
	TRY(memory_grow(&scratch->part_gradients, &scratch->part_gradients_capacity, numbers, sizeof *scratch->part_gradients,
			"vectors of a step"));
	*out_loss = 0;
	if (gradients)
		memset(gradients, 0, (size_t)numbers * sizeof *gradients);
	for (int64_t k = 0; k < nested->count; k++) {
		struct contrastive_step part = *step;
		double loss;
		part.width = nested->widths[k];
		part.vectors = scratch->part;
		for (int64_t t = 0; t < step->count; t++)
			memcpy(scratch->part + t * part.width, step->vectors + t * step->width,
			       (size_t)part.width * sizeof *scratch->part);
		TRY(contrastive_loss(kind, temperature, &part, pool, scratch, &loss, gradients ? scratch->part_gradients : NULL));
		*out_loss += nested->weights[k] * loss;
		for (int64_t t = 0; gradients && t < step->count; t++)
			add_scaled(gradients + t * step->width, nested->weights[k], scratch->part_gradients + t * part.width,
				   part.width);
	}
	return OK;
}
