/* Reads the vocabulary in a tokenizer.json of Hugging Face's tokenizers library. */
#ifndef TEXT_VOCAB_JSON_H
#define TEXT_VOCAB_JSON_H

#include "text/vocab.h"

/* Called by vocab_read for a path that ends in ".json". A model other than WordPiece, a duplicate id or a gap between ids
 * is ERR_DATA. */
MUST_USE enum status vocab_read_json(struct vocab *out, const char *path);

#endif
