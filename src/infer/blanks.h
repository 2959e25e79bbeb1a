/* What a model puts into the blanks of a text, as programs read it. */
#ifndef INFER_BLANKS_H
#define INFER_BLANKS_H

#include <stdint.h>
#include "base/json.h"
#include "text/vocab.h"

/* An entry's text; a model may have more rows than the vocabulary has entries. */
const char *blank_word(const struct vocab *vocab, int32_t id);

/* A text and what fills its blanks, as an object: [blanks][k] words, most probable first, with their probabilities. */
void blanks_put_json(struct json_writer *writer, const char *text, const struct vocab *vocab, int32_t blanks, int32_t k,
		     const int32_t *words, const float *probabilities);

#endif
