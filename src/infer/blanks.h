/* The words a model fills into the blanks of a text, as JSON. */
#ifndef INFER_BLANKS_H
#define INFER_BLANKS_H

#include <stdint.h>
#include "base/json.h"
#include "text/vocab.h"

/* A vocabulary entry as a person reads it, without the space that tokenizers other than WordPiece keep before a word. A model may
 * have more rows than the vocabulary has entries: those get a placeholder. Valid while `room` is not used. */
const char *blank_word(const struct vocab *vocab, int32_t id, struct buffer *room);

/* Writes an object with a text and the words that fill its blanks: [blanks][k] words, most probable first, with their
 * probabilities. */
void blanks_put_json(struct json_writer *writer, const char *text, const struct vocab *vocab, int32_t blanks, int32_t k,
		     const int32_t *words, const float *probabilities);

#endif
