/* Computes the scores of tasks. */
#include "tasks/measures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

static void add(struct measures *out, const char *name, enum measure_unit unit, enum measure_direction direction, double value)
{
	measures_add(out, &(struct measure){.name = name, .unit = unit, .direction = direction, .value = value});
}

static void add_share(struct measures *out, const char *name, double value)
{
	add(out, name, UNIT_SHARE, DIRECTION_HIGHER, value);
}

static double quotient(double numerator, double denominator)
{
	return denominator == 0 ? 0 : numerator / denominator;
}

static struct class_score class_score(int64_t correct, int64_t predicted, int64_t support)
{
	return (struct class_score){
		.precision = quotient((double)correct, (double)predicted),
		.recall = quotient((double)correct, (double)support),
		.f1 = quotient(2.0 * (double)correct, (double)(predicted + support)),
		.support = support,
		.predicted = predicted,
		.correct = correct,
	};
}

/* ---- Classes ---- */

enum status confusion_make(struct confusion *out, int32_t classes, const int32_t *gold, const int32_t *predicted, int64_t count)
{
	BUG_IF(classes < 1);
	out->classes = classes;
	TRY(memory_new(&out->counts, (int64_t)classes * (classes + 1), sizeof *out->counts, "confusion counts"));
	for (int64_t i = 0; i < count; i++) {
		if (gold[i] < 0)
			continue;
		BUG_IF(gold[i] >= classes || predicted[i] >= classes);
		out->counts[predicted[i] < 0 ? (int64_t)classes * classes + gold[i]
					     : (int64_t)gold[i] * classes + predicted[i]]++;
	}
	return OK;
}

void confusion_release(struct confusion *confusion)
{
	free(confusion->counts);
	*confusion = (struct confusion){.classes = 0};
}

struct class_score confusion_class(const struct confusion *confusion, int32_t class_id)
{
	int64_t classes = confusion->classes, support = confusion->counts[classes * classes + class_id], predicted = 0;
	BUG_IF(class_id < 0 || class_id >= classes);
	for (int64_t other = 0; other < classes; other++) {
		support += confusion->counts[class_id * classes + other];
		predicted += confusion->counts[other * classes + class_id];
	}
	return class_score(confusion->counts[class_id * classes + class_id], predicted, support);
}

/* (c s - sum p t) / sqrt((s s - sum p p) (s s - sum t t)): c correct, s all, and per class p predicted and t gold. */
static double matthews(double correct, double all, double predicted_gold, double predicted_squares, double gold_squares)
{
	double product = (all * all - predicted_squares) * (all * all - gold_squares);
	return product == 0 ? 0 : (correct * all - predicted_gold) / sqrt(product);
}

void measure_classes(const struct confusion *confusion, int32_t negative, struct measures *out)
{
	double all = 0, correct = 0, answered = 0, predicted_gold = 0, predicted_squares = 0, gold_squares = 0;
	struct class_score sum = {0};
	int64_t present = 0, micro_correct = 0, micro_support = 0, micro_predicted = 0;
	for (int32_t i = 0; i < confusion->classes; i++) {
		struct class_score score = confusion_class(confusion, i);
		double support = (double)score.support, predicted = (double)score.predicted;
		all += support;
		correct += (double)score.correct;
		answered += predicted;
		predicted_gold += support * predicted;
		predicted_squares += predicted * predicted;
		gold_squares += support * support;
		sum.precision += score.precision;
		sum.recall += score.recall;
		sum.f1 += score.f1;
		present += score.support + score.predicted > 0;
		if (i != negative) {
			micro_correct += score.correct;
			micro_support += score.support;
			micro_predicted += score.predicted;
		}
	}
	if (confusion->classes == 2)
		sum = confusion_class(confusion, 1);
	else
		sum = (struct class_score){quotient(sum.precision, (double)present),
					   quotient(sum.recall, (double)present),
					   quotient(sum.f1, (double)present),
					   0,
					   0,
					   0};
	bool empty = all == 0;
	predicted_squares += (all - answered) * (all - answered); /* no answer is like a class of its own */
	add_share(out, "accuracy", correct / all);
	add_share(out, "precision", empty ? NAN : sum.precision);
	add_share(out, "recall", empty ? NAN : sum.recall);
	add_share(out, "f1", empty ? NAN : sum.f1);
	struct class_score micro = class_score(micro_correct, micro_predicted, micro_support);
	if (negative >= 0) { /* otherwise both equal the accuracy */
		add_share(out, "precision_micro", empty ? NAN : micro.precision);
		add_share(out, "recall_micro", empty ? NAN : micro.recall);
	}
	add_share(out, "f1_micro", empty ? NAN : micro.f1);
	add(out, "matthews_correlation", UNIT_NUMBER, DIRECTION_HIGHER,
	    empty ? NAN : matthews(correct, all, predicted_gold, predicted_squares, gold_squares));
}

/* ---- Several labels per example ---- */

enum status measure_multilabel(const uint8_t *gold, const uint8_t *predicted, int64_t count, int32_t labels,
			       struct class_score *per_label, struct measures *out)
{
	struct class_score *own = per_label, sum = {0};
	int64_t all_right = 0;
	if (!own)
		TRY(memory_new(&own, labels, sizeof *own, "scores of labels"));
	memset(own, 0, (size_t)labels * sizeof *own);
	for (int64_t i = 0; i < count; i++) {
		const uint8_t *g = gold + i * labels, *p = predicted + i * labels;
		all_right += memcmp(g, p, (size_t)labels) == 0;
		for (int32_t label = 0; label < labels; label++) {
			BUG_IF(g[label] > 1 || p[label] > 1);
			own[label].support += g[label];
			own[label].predicted += p[label];
			own[label].correct += g[label] & p[label];
		}
	}
	for (int32_t label = 0; label < labels; label++) {
		own[label] = class_score(own[label].correct, own[label].predicted, own[label].support);
		sum.precision += own[label].precision / labels;
		sum.recall += own[label].recall / labels;
		sum.f1 += own[label].f1 / labels;
		sum.support += own[label].support;
		sum.predicted += own[label].predicted;
		sum.correct += own[label].correct;
	}
	if (own != per_label)
		free(own);
	bool empty = count == 0;
	add_share(out, "accuracy", (double)all_right / (double)count);
	add_share(out, "precision", empty ? NAN : sum.precision);
	add_share(out, "recall", empty ? NAN : sum.recall);
	add_share(out, "f1", empty ? NAN : sum.f1);
	add_share(out, "f1_micro", empty ? NAN : class_score(sum.correct, sum.predicted, sum.support).f1);
	return OK;
}

/* ---- Numbers ---- */

struct ranked {
	double value;
	int64_t index;
};

static int ascending(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;
	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
}

/* Sorts values in ascending order, with the indices they came from. If one is NaN, which has no order, *out_nan is set and
 * nothing is sorted. */
static enum status sort_values(const double *values, int64_t count, struct ranked **out, bool *out_nan)
{
	*out_nan = false;
	TRY(memory_new(out, count, sizeof **out, "ranks"));
	for (int64_t i = 0; i < count; i++) {
		(*out)[i] = (struct ranked){values[i], i};
		*out_nan |= isnan(values[i]);
	}
	if (!*out_nan)
		qsort(*out, (size_t)count, sizeof **out, ascending);
	return OK;
}

/* The end of the run of equal values that begins at `first`. */
static int64_t ties_end(const struct ranked *sorted, int64_t count, int64_t first)
{
	int64_t end = first + 1;
	while (end < count && sorted[end].value == sorted[first].value)
		end++;
	return end;
}

enum status area_under_roc(const double *scores, const int32_t *positive, int64_t count, double *out)
{
	struct ranked *sorted;
	bool has_nan;
	double right = 0, negatives_below = 0, positives = 0;
	TRY(sort_values(scores, count, &sorted, &has_nan));
	for (int64_t first = 0, end; first < count; first = end) {
		double tied_positives = 0, tied_negatives = 0;
		end = ties_end(sorted, count, first);
		for (int64_t i = first; i < end; i++)
			*(positive[sorted[i].index] ? &tied_positives : &tied_negatives) += 1;
		right += tied_positives * (negatives_below + tied_negatives / 2);
		negatives_below += tied_negatives;
		positives += tied_positives;
	}
	free(sorted);
	double pairs = positives * negatives_below;
	*out = has_nan || pairs == 0 ? NAN : right / pairs;
	return OK;
}

enum status measure_auc(const double *scores, const int32_t *positive, int64_t count, struct measures *out)
{
	double area;
	TRY(area_under_roc(scores, positive, count, &area));
	add_share(out, "auc", area);
	return OK;
}

static bool is_constant(const double *x, int64_t count)
{
	for (int64_t i = 1; i < count; i++)
		if (x[i] != x[0])
			return false;
	return true;
}

static double mean(const double *x, int64_t count)
{
	double sum = 0;
	for (int64_t i = 0; i < count; i++)
		sum += x[i];
	return sum / (double)count;
}

double pearson_correlation(const double *x, const double *y, int64_t count)
{
	if (count < 2 || is_constant(x, count) || is_constant(y, count))
		return NAN;
	double mean_x = mean(x, count), mean_y = mean(y, count), xx = 0, yy = 0, xy = 0;
	for (int64_t i = 0; i < count; i++) {
		double dx = x[i] - mean_x, dy = y[i] - mean_y;
		xx += dx * dx;
		yy += dy * dy;
		xy += dx * dy;
	}
	double r = xy / (sqrt(xx) * sqrt(yy));
	return r > 1 ? 1 : r < -1 ? -1 : r;
}

/* The rank of each value, from 1; equal values share their mean rank. All are NaN if a value is. */
static enum status average_ranks(const double *values, int64_t count, double *ranks)
{
	struct ranked *sorted;
	bool has_nan;
	TRY(sort_values(values, count, &sorted, &has_nan));
	for (int64_t first = 0, end; first < count; first = end) {
		end = ties_end(sorted, count, first);
		for (int64_t i = first; i < end; i++)
			ranks[sorted[i].index] = has_nan ? NAN : (double)(first + 1 + end) / 2;
	}
	free(sorted);
	return OK;
}

enum status spearman_correlation(const double *x, const double *y, int64_t count, double *out)
{
	enum status status;
	double *ranks;
	TRY(memory_new(&ranks, 2 * count, sizeof *ranks, "ranks"));
	TRY_GOTO(average_ranks(x, count, ranks), out);
	TRY_GOTO(average_ranks(y, count, ranks + count), out);
	*out = pearson_correlation(ranks, ranks + count, count);
out:
	free(ranks);
	return status;
}

enum status measure_correlations(const double *gold, const double *predicted, int64_t count, struct measures *out)
{
	double spearman;
	TRY(spearman_correlation(gold, predicted, count, &spearman));
	add(out, "pearson", UNIT_NUMBER, DIRECTION_HIGHER, pearson_correlation(gold, predicted, count));
	add(out, "spearmanr", UNIT_NUMBER, DIRECTION_HIGHER, spearman);
	return OK;
}

enum status measure_values(const double *gold, const double *predicted, int64_t count, struct measures *out)
{
	double squares = 0;
	TRY(measure_correlations(gold, predicted, count, out));
	for (int64_t i = 0; i < count; i++)
		squares += (gold[i] - predicted[i]) * (gold[i] - predicted[i]);
	add(out, "mse", UNIT_NUMBER, DIRECTION_LOWER, squares / (double)count);
	return OK;
}

/* ---- Rankings ---- */

#define RANKS 10

static double discount(int64_t rank)
{
	return rank > RANKS ? 0 : 1 / log2((double)rank + 1);
}

static int descending(const void *left, const void *right)
{
	return ascending(right, left);
}

/* One query's candidates by descending value. */
struct candidates {
	const struct ranked *sorted;
	int64_t count;
	const double *relevance;
};

/* The discounted cumulative gain of an order; candidates of equal value share the mean of their places' discounts. */
static double cumulative_gain(const struct candidates *c)
{
	double gain = 0;
	for (int64_t first = 0, end; first < c->count && first < RANKS; first = end) {
		double relevance = 0, discounts = 0;
		end = ties_end(c->sorted, c->count, first);
		for (int64_t i = first; i < end; i++) {
			relevance += c->relevance[c->sorted[i].index];
			discounts += discount(i + 1);
		}
		gain += relevance * discounts / (double)(end - first);
	}
	return gain;
}

/* 1 / rank of the first relevant candidate, averaged over all orders of those it ties with: of m tied candidates, r of them
 * relevant, the j-th is the first relevant one with the probability that the j - 1 before it are not relevant and it is. */
static double reciprocal_rank(const struct candidates *c)
{
	for (int64_t first = 0, end; first < c->count && first < RANKS; first = end) {
		double relevant = 0, none_before = 1, value = 0;
		end = ties_end(c->sorted, c->count, first);
		for (int64_t i = first; i < end; i++)
			relevant += c->relevance[c->sorted[i].index] > 0;
		if (relevant == 0)
			continue;
		for (int64_t i = first; i < end && i < RANKS; i++) {
			double left = (double)(end - i);
			value += none_before * relevant / left / (double)(i + 1);
			none_before *= left > relevant ? (left - relevant) / left : 0;
		}
		return value;
	}
	return 0;
}

enum status ranking_of_query(const double *scores, const double *relevance, int64_t count, double *out_ndcg, double *out_mrr)
{
	struct ranked *sorted;
	bool has_nan;
	*out_ndcg = *out_mrr = NAN;
	TRY(sort_values(scores, count, &sorted, &has_nan));
	struct candidates candidates = {sorted, count, relevance};
	if (!has_nan) {
		qsort(sorted, (size_t)count, sizeof *sorted, descending);
		double gain = cumulative_gain(&candidates);
		*out_mrr = reciprocal_rank(&candidates);
		for (int64_t i = 0; i < count; i++) {
			BUG_IF(!(relevance[i] >= 0));
			sorted[i] = (struct ranked){relevance[i], i};
		}
		qsort(sorted, (size_t)count, sizeof *sorted, descending);
		*out_ndcg = quotient(gain, cumulative_gain(&candidates));
	}
	free(sorted);
	return OK;
}

void measure_add_ranking(double ndcg, double mrr, struct measures *out)
{
	add_share(out, "ndcg@10", ndcg);
	add_share(out, "mrr@10", mrr);
}

enum status measure_rankings(const double *scores, const double *relevance, const int64_t *starts, int64_t queries,
			     struct measures *out)
{
	double ndcg = 0, mrr = 0;
	int64_t count = 0;
	for (int64_t q = 0; q < queries; q++) {
		int64_t first = starts[q], candidates = starts[q + 1] - first;
		double own_ndcg, own_mrr;
		if (candidates == 0)
			continue;
		TRY(ranking_of_query(scores + first, relevance + first, candidates, &own_ndcg, &own_mrr));
		ndcg += own_ndcg;
		mrr += own_mrr;
		count++;
	}
	measure_add_ranking(ndcg / (double)count, mrr / (double)count, out);
	return OK;
}
