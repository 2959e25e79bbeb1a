/* How to split text for the vocabulary that a command was given. */
#ifndef CMD_VOCAB_TOKENIZER_H
#define CMD_VOCAB_TOKENIZER_H

#include "base/option.h"
#include "text/tokenizer.h"

/* Follows the tokenizer_config.json or tokenizer.json beside vocab_file, from which `vocab` was read. Without one, follows
 * `cased`, the value of --cased, with a warning if it was not given and the vocabulary looks cased. ERR_STATE if --cased was
 * given and contradicts that file. */
MUST_USE enum status vocab_tokenizer_settings(const struct options *options, const struct vocab *vocab, const char *vocab_file,
					      bool cased, struct tokenizer_settings *out);

#endif
