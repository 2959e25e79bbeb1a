/* Exact search among vectors: for each query, the documents with the largest cosine or dot product. */
#ifndef INFER_VECTOR_SEARCH_H
#define INFER_VECTOR_SEARCH_H

#include "backend/nearest.h"

/* Vectors, all borrowed: those of all rows or, with `rows`, of some. */
struct vectors {
	const float *values;
	int64_t width, count;
	const int32_t *rows; /* [count] their places in `values`, ascending; NULL: 0, 1, ... */
};

static inline const float *vector_at(const struct vectors *vectors, int64_t i)
{
	return vectors->values + (vectors->rows ? vectors->rows[i] : i) * vectors->width;
}

enum similarity { SIMILARITY_COSINE, SIMILARITY_DOT };

/* The similarity of two vectors, computed in double; a zero vector has the cosine 0 with any other. */
double vectors_similarity(enum similarity similarity, const float *a, const float *b, int64_t width);

/* ERR_NUMERIC if one of the vectors [first, first + count) is not finite; the message names it ("query" 3). */
MUST_USE enum status vectors_check(const struct vectors *vectors, int64_t first, int64_t count, const char *what);

struct vector_search {
	struct backend *backend; /* one for inference */
	nearest_search *nearest; /* backend_nearest(backend) */
	enum similarity similarity;
	int64_t most;                      /* documents per query, K */
	struct vectors queries, documents; /* of the same width; at most INT32_MAX documents */
	const char *title;                 /* of the progress bar */
};

/* Finds the K nearest documents of each query: out [queries, K], best first, of equal similarities the earlier document first.
 * Fewer than K documents leave rows -1. `row` counts documents, as vector_at() does, and scores are those of
 * vectors_similarity().
 *
 * The products are computed in the back end's type, and a few more than K documents of each query then in double. In bf16, the
 * rounding of each vector is measured: queries for which it could have hidden a document are searched again in fp32. STOPPED if a
 * stop was requested. A vector that is not finite is ERR_NUMERIC, which names it. */
MUST_USE enum status vector_search_run(const struct vector_search *search, struct nearest_row *out);

#endif
