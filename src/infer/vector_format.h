/* File formats for vectors: JSON lines, NumPy arrays, TSV, and the JSON lines of Google's extract_features.py. */
#ifndef INFER_VECTOR_FORMAT_H
#define INFER_VECTOR_FORMAT_H

#include <stdint.h>
#include "base/buffer.h"
#include "text/vocab.h"

/* {"id": ..., "embedding": [...]} and a newline. `id` is JSON text; `id_size` is 0 if there is none. */
void vector_put_json(struct buffer *out, const char *id, size_t id_size, const float *vector, int64_t count);
/* {"id": ..., "embedding": {"word": weight, ...}} and a newline, with the weights of these words in this order. */
void vector_put_weights(struct buffer *out, const char *id, size_t id_size, const float *weights, const int32_t *words,
			int64_t count, const struct vocab *vocab);
/* Numbers separated by tabs, and a newline. */
void vector_put_tsv(struct buffer *out, const float *vector, int64_t count);
/* Little-endian float32, as in an array file. */
void vector_put_binary(struct buffer *out, const float *vector, int64_t count);
/* A byte for each number, which is from -128 to 255. */
void vector_put_bytes(struct buffer *out, const float *vector, int64_t count);

/* The header of a NumPy array file (format 1.0) in row-major order, of NumPy's type `type` ("<f4" is float32). It is always
 * NPY_HEADER_BYTES long, so that it can be rewritten once the number of rows is known. */
#define NPY_HEADER_BYTES 128
void vector_put_npy_header(struct buffer *out, const char *type, int64_t rows, int64_t columns);

/* One text as extract_features.py writes it: {"linex_index": n, "features": [{"token": ..., "layers": [{"index": -1, "values":
 * [...]}]}]} and a newline, with numbers rounded to six decimals as Python prints them. `rows` is (layer_count, count, hidden);
 * `indices` are the layer numbers as the user gave them. */
void vector_put_google(struct buffer *out, int64_t number, const struct vocab *vocab, const int32_t *ids, int32_t count,
		       const float *rows, int64_t hidden, const int32_t *indices, int32_t layer_count);

#endif
