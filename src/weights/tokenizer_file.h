/* Reads a vocabulary and the tokenizer settings beside it like text/vocab.h and text/tokenizer.h, but in a folder with a
 * manifest, verifies the files first (weights/manifest.h). */
#ifndef WEIGHTS_TOKENIZER_FILE_H
#define WEIGHTS_TOKENIZER_FILE_H

#include <stdbool.h>
#include "base/error.h"
#include "base/file.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

/* The path of the vocabulary in a folder, the first of the files that tokenizers are read from; "": there is none. */
MUST_USE enum status vocab_file_find(const char *folder, char out[PATH_BYTES]);
/* vocab_read, after verifying the file; ERR_DATA if it is damaged. If a tokenizer.json beside a vocab.txt has the same entries
 * first, its added tokens are read, too; if it has others, or cannot be read, a warning says so. */
MUST_USE enum status vocab_file_read(struct vocab *out, const char *path);
/* Call if text is lowercased by default, without settings that say so: warns if the vocabulary looks cased. */
void vocab_warn_of_lower_case(const struct vocab *vocab, const char *path);
/* tokenizer_settings_read, after verifying tokenizer_config.json and tokenizer.json. */
MUST_USE enum status tokenizer_file_settings(const char *vocab_path, struct tokenizer_settings *settings, bool *out_found);

#endif
