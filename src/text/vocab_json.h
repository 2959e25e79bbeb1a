/* The vocabulary in a tokenizer.json of Hugging Face's tokenizers. */
#ifndef TEXT_VOCAB_JSON_H
#define TEXT_VOCAB_JSON_H

#include "text/vocab.h"

/* What vocab_read does with a path that ends in ".json". A model other than WordPiece, an id twice or a gap between ids
 * is ERR_DATA. */
MUST_USE enum status vocab_read_json(struct vocab *out, const char *path);

#endif
