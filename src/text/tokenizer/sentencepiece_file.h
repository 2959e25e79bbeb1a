/* The vocabulary of a folder whose tokenizer is in sentencepiece's file alone. */
#ifndef TEXT_TOKENIZER_SENTENCEPIECE_FILE_H
#define TEXT_TOKENIZER_SENTENCEPIECE_FILE_H

#include <stdbool.h>
#include "base/buffer.h"
#include "base/error.h"
#include "text/vocab.h"

/* Whether the path names such a file. */
bool sentencepiece_file_is(const char *path);
/* Makes a tokenizer.json of its entries, in the order of the model that tokenizer_config.json or config.json beside it name, of
 * their special tokens, and of their templates. */
MUST_USE enum status sentencepiece_file_read(const char *path, struct buffer *out);
/* Makes `vocab`, which was read from it, split texts in sentencepiece's way, and keeps the file. */
MUST_USE enum status sentencepiece_file_take(struct vocab *vocab, const char *path);

#endif
