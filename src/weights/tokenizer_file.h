/* A vocabulary and the settings beside it, read by their paths: as text/vocab.h and text/tokenizer.h read them, but in a
 * folder with a manifest (weights/manifest.h) only what the manifest says was written there. */
#ifndef WEIGHTS_TOKENIZER_FILE_H
#define WEIGHTS_TOKENIZER_FILE_H

#include <stdbool.h>
#include "base/error.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

/* vocab_read of a file that is what its manifest says; a damaged one is ERR_DATA. */
MUST_USE enum status vocab_file_read(struct vocab *out, const char *path);
/* Warns, where nothing says how text is split and it is made lower case, if entries of the vocabulary then never occur. */
void vocab_warn_of_lower_case(const struct vocab *vocab, const char *path);
/* tokenizer_settings_read with tokenizer_config.json and tokenizer.json verified in the same way. */
MUST_USE enum status tokenizer_file_settings(const char *vocab_path, struct tokenizer_settings *settings, bool *out_found);

#endif
