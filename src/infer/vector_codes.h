/* Vectors in fewer bytes: a byte or a bit for each number, as sentence-transformers' quantize_embeddings() writes them. */
#ifndef INFER_VECTOR_CODES_H
#define INFER_VECTOR_CODES_H

#include "infer/vector_search.h"

enum vector_code {
	CODE_FLOAT32,
	CODE_INT8, /* 256 steps from the lowest to the highest value that a number has in other vectors; from -128 */
	CODE_UINT8,
	CODE_BINARY, /* a bit, whether it is above 0, eight to a byte, the first one highest; bytes from -128 */
	CODE_UBINARY,
};

/* What the steps of CODE_INT8 and CODE_UINT8 are. Zero-initialize; release when done. */
struct code_ranges {
	float *starts, *steps; /* [width] */
};
/* From vectors like those that will be coded. ERR_USAGE if there are fewer than two. */
MUST_USE enum status code_ranges_find(struct code_ranges *out, const struct vectors *vectors);
void code_ranges_release(struct code_ranges *ranges);

/* NumPy's name of the type of an array of codes: "<f4", "|i1", "|u1". */
const char *vector_code_type(enum vector_code code);
/* The number of codes of a vector of `width` numbers. */
int64_t vector_code_count(enum vector_code code, int64_t width);
/* Codes a vector, other than as CODE_FLOAT32: the values of its codes, out [vector_code_count()]. */
void vector_code(enum vector_code code, const struct code_ranges *ranges, const float *vector, int64_t width, float *out);

#endif
