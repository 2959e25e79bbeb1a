/* What a tokenizer.json of Hugging Face's tokenizers library adds to the vocabulary in a vocab.txt. */
#ifndef TEXT_VOCAB_JSON_H
#define TEXT_VOCAB_JSON_H

#include "text/vocab.h"

/* Adds the added tokens of the tokenizer.json that belongs to a vocab.txt: lists those that are entries of it, and appends the
 * others. ERR_STATE: its WordPiece model has other entries than the vocabulary (the message names the first one). ERR_DATA: it
 * cannot be used. After an error, the vocabulary is as it was. */
MUST_USE enum status vocab_add_json(struct vocab *vocab, const char *path);

#endif
