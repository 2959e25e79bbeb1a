/* vocab.json and merges.txt, the files of byte-level BPE from before tokenizer.json. */
#ifndef TEXT_TOKENIZER_PAIR_FILES_H
#define TEXT_TOKENIZER_PAIR_FILES_H

#include <stdbool.h>
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "text/tokenizer/token_files.h"

/* Whether the path names one of them. */
bool pair_files_are(const char *path);
/* Makes the tokenizer.json that transformers makes from the two files in the folder of `path` for RoBERTa. */
MUST_USE enum status pair_files_read(const char *path, struct buffer *out);
/* The same for the entries and ids of a vocab.json (`path` is for messages), the text of a merges.txt, and what `files` say. */
MUST_USE enum status pair_files_join(const struct json *vocab, const char *path, const char *merges,
				     const struct token_files *files, struct buffer *out);
/* Writes the two files of the BPE "model" of a tokenizer.json, which was read without an error. */
MUST_USE enum status pair_files_write(const struct json *model, const char *folder);

#endif
