/* Search among vectors that are stored in a byte or a bit for each number (infer/vector_codes.h), in the two stages of
 * sentence-transformers' semantic_search_faiss(): queries in the same codes find candidates, whose codes are then compared with
 * the queries as they are. */
#ifndef INFER_CODE_SEARCH_H
#define INFER_CODE_SEARCH_H

#include "base/option.h"
#include "base/pool.h"
#include "infer/vector_codes.h"

/* Options that commands splice. */
struct code_options {
	const char *calibration_vectors;
	int64_t rescore_multiplier; /* candidates for each document that is wanted */
};
extern const struct option code_rows[];

/* Everything is borrowed. */
struct code_search {
	const struct code_options *options;
	struct pool *pool;
	struct vectors queries;
	enum vector_code code;      /* other than CODE_FLOAT32 */
	const unsigned char *codes; /* [count * vector_code_count()] of the documents; at most INT32_MAX documents */
	int64_t count, most;        /* documents; per query, K */
};

/* Finds K documents for each query: out [queries, K], best first, of equal scores the earlier document first; fewer than K
 * documents leave rows -1. Candidates are those with the largest products of codes, or with the fewest bits that differ; their
 * scores are the products of the query with the lower ends of the steps that bytes stand for, or with the bits. ERR_USAGE: bytes
 * need calibration vectors. STOPPED if a stop was requested. */
MUST_USE enum status code_search_run(const struct code_search *search, struct nearest_row *out);

#endif
