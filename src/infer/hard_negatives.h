/* Chooses hard negatives for a query from the texts nearest to it: texts that are similar but do not belong to it. The rules are
 * those of sentence-transformers' mine_hard_negatives(). */
#ifndef INFER_HARD_NEGATIVES_H
#define INFER_HARD_NEGATIVES_H

#include <stdbool.h>
#include <stdint.h>

struct negative_rules {
	/* Limits of a negative's score; NaN: none. Margins: by how much the score must be below that of the query's lowest
	 * positive, as it is, and as a share of that positive's magnitude. */
	double max_score, min_score, absolute_margin, relative_margin;
	int64_t range_min, range_max; /* of the remaining ones, those before range_min and from range_max on are skipped */
	int64_t count;                /* negatives per query */
	bool random;                  /* drawn from the range, instead of the best of it */
	uint64_t seed;
};

/* A text near a query. */
struct negative_candidate {
	double score;
	int32_t document;
};

/* How many candidates were left out, and why. */
struct negative_counts {
	int64_t positives, absolute_margin, relative_margin, max_score, min_score;
};

/* The positives of a query: numbers of documents, and the lowest of their scores. */
struct query_positives {
	const int32_t *documents;
	int64_t count;
	double lowest; /* read only if there is a margin */
	int32_t self;  /* the document with the query's own text, which is not a negative either; -1: none */
};

/* Sorts the candidates, best first, and moves those chosen for query number `query` to the front, best first; returns how many.
 */
int64_t negatives_choose(const struct negative_rules *rules, int64_t query, const struct query_positives *positives,
			 struct negative_candidate *candidates, int64_t count, struct negative_counts *counts);

#endif
