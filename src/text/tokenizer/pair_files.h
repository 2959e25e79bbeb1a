/* vocab.json and merges.txt, the files of byte-level BPE from before tokenizer.json. */
#ifndef TEXT_TOKENIZER_PAIR_FILES_H
#define TEXT_TOKENIZER_PAIR_FILES_H

#include <stdbool.h>
#include "base/buffer.h"
#include "base/error.h"

/* Whether the path names one of them. */
bool pair_files_are(const char *path);
/* Makes the tokenizer.json that transformers makes from the two files in the folder of `path` for RoBERTa. */
MUST_USE enum status pair_files_read(const char *path, struct buffer *out);

#endif
