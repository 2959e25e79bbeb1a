/* Leaves out candidates rule by rule, and chooses from those that are left. */
#include "infer/hard_negatives.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

static int compare_candidates(const void *left, const void *right)
{
	const struct negative_candidate *a = left, *b = right;
	if (a->score != b->score)
		return a->score > b->score ? -1 : 1;
	return a->document < b->document ? -1 : a->document > b->document;
}

static bool is_positive(const struct query_positives *positives, int32_t document)
{
	bool found = document == positives->self;
	for (int64_t i = 0; i < positives->count && !found; i++)
		found = positives->documents[i] == document;
	return found;
}

/* Comparisons with NaN are false: what has no limit leaves out nothing. */
static bool is_left_out(const struct negative_rules *rules, const struct query_positives *positives,
			const struct negative_candidate *candidate, struct negative_counts *counts)
{
	int64_t *why = NULL;
	if (is_positive(positives, candidate->document))
		why = &counts->positives;
	else if (candidate->score + rules->absolute_margin > positives->lowest)
		why = &counts->absolute_margin;
	else if (candidate->score > positives->lowest - fabs(positives->lowest) * rules->relative_margin)
		why = &counts->relative_margin;
	else if (candidate->score > rules->max_score)
		why = &counts->max_score;
	else if (candidate->score < rules->min_score)
		why = &counts->min_score;
	if (why)
		++*why;
	return why != NULL;
}

/* Draws `wanted` of `count` candidates to the front (Fisher and Yates's shuffle, ended early). */
static void draw(const struct negative_rules *rules, int64_t query, struct negative_candidate *candidates, int64_t count,
		 int64_t wanted)
{
	struct rng rng = rng_start(rules->seed, RNG_NEGATIVES, (uint64_t)query);
	for (int64_t i = 0; i < wanted; i++) {
		int64_t other = i + rng_below(&rng, (uint32_t)(count - i));
		struct negative_candidate drawn = candidates[other];
		candidates[other] = candidates[i];
		candidates[i] = drawn;
	}
	qsort(candidates, (size_t)wanted, sizeof *candidates, compare_candidates);
}

int64_t negatives_choose(const struct negative_rules *rules, int64_t query, const struct query_positives *positives,
			 struct negative_candidate *candidates, int64_t count, struct negative_counts *counts)
{
	int64_t left = 0, kept = 0;
	qsort(candidates, (size_t)count, sizeof *candidates, compare_candidates);
	for (int64_t i = 0; i < count; i++) {
		if (is_left_out(rules, positives, &candidates[i], counts))
			continue;
		if (left >= rules->range_min && left < rules->range_max)
			candidates[kept++] = candidates[i];
		left++;
	}
	int64_t wanted = kept < rules->count ? kept : rules->count;
	if (rules->random)
		draw(rules, query, candidates, kept, wanted);
	return wanted;
}
