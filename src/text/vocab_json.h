/* What a tokenizer.json of Hugging Face's tokenizers library adds to the vocabulary in a vocab.txt. */
#ifndef TEXT_VOCAB_JSON_H
#define TEXT_VOCAB_JSON_H

#include "base/buffer.h"
#include "text/vocab.h"

struct token_files;
/* Makes a vocabulary of the text of a tokenizer.json (`path` is for messages) and of the files beside it. */
MUST_USE enum status vocab_from_json(struct vocab *out, const char *path, const struct buffer *text,
				     const struct token_files *files);
/* Adds what the tokenizer.json that belongs to a vocab.txt says: lists its added tokens, of which some may be new entries, and
 * takes over its normalizer, pre-tokenizer, and template. ERR_STATE: its WordPiece model has other entries than the vocabulary
 * (the message names the first one). ERR_DATA: it cannot be used; *out_refused: because it has parts or values that bertc does
 * not have, so that the vocabulary without it would be another tokenizer. After an error, the vocabulary is as it was. */
MUST_USE enum status vocab_add_json(struct vocab *vocab, const char *path, bool *out_refused);
/* The same for a folder without a tokenizer.json: lists the special tokens of the files beside the vocab.txt at `path`. ERR_DATA
 * as above; without *out_refused, also for tokens that are not entries. */
MUST_USE enum status vocab_add_special(struct vocab *vocab, const char *path, bool *out_refused);

#endif
