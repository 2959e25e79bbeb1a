/* Weights of texts over a vocabulary, nearly all of them zero: those that are not, and exact search among them by dot product. */
#ifndef INFER_SPARSE_VECTORS_H
#define INFER_SPARSE_VECTORS_H

#include <stdint.h>
#include "backend/nearest.h"
#include "base/error.h"
#include "base/pool.h"

/* Vector i has weights[k] for words[k], from k = starts[i] to starts[i + 1] - 1, by ascending word. Zero-initialize. */
struct sparse_vectors {
	int64_t count, *starts;
	int32_t *words;
	float *weights;
	int64_t starts_capacity, words_capacity, weights_capacity; /* private */
};
/* Appends one of `width` numbers. */
MUST_USE enum status sparse_vectors_add(struct sparse_vectors *vectors, const float *numbers, int64_t width);
void sparse_vectors_release(struct sparse_vectors *vectors);
/* The mean number of weights of a vector. */
double sparse_vectors_active(const struct sparse_vectors *vectors);

/* The words of a vector's weights in `out` [width], the largest weight first, of equal ones the lower word; at most `most` of
 * them. Returns how many. */
int64_t sparse_words(const float *numbers, int64_t width, int64_t most, int32_t *out);

/* Finds the `most` documents with the largest dot product for each query, as vector_search_run() does. STOPPED if a stop was
 * requested. */
MUST_USE enum status sparse_search(struct pool *pool, const struct sparse_vectors *queries,
				   const struct sparse_vectors *documents, int64_t width, int64_t most, struct nearest_row *out);

#endif
