/* Exact search for nearest neighbors: which rows have the largest products with a query, block of rows by block of rows.
 * Of no use to a model, it is not among a back end's functions. */
#ifndef BACKEND_NEAREST_H
#define BACKEND_NEAREST_H

#include "backend/backend.h"

struct nearest_row {
	float score; /* -infinity: there is no row yet */
	int32_t row;
};

/* Of two rows, the one with the lower score is worse; of equal scores, the later row. */
static inline bool nearest_is_worse(struct nearest_row a, struct nearest_row b)
{
	return a.score < b.score || (a.score == b.score && a.row > b.row);
}

/* Offers the rows of x to all queries: best[q] keeps the K rows with the largest products x q' seen so far. */
struct nearest {
	const struct weight *queries; /* (Q,H) WEIGHT_HEAD, packed */
	struct tensor x;              /* (N,H) in the activations' type, host memory; rows are offered in ascending order */
	int32_t first;                /* number of x's first row */
	int32_t most;                 /* K */
	struct nearest_row *best;     /* (Q,K) in and out: a heap for each query, its worst row first */
};

typedef void nearest_search(struct backend *be, const struct nearest *a);
/* The search of a back end that was opened for inference; NULL: it has none. */
nearest_search *backend_nearest(const struct backend *be);

#endif
