/* The vocabulary that a command was given, and how to split text for it. */
#ifndef CMD_VOCAB_TOKENIZER_H
#define CMD_VOCAB_TOKENIZER_H

#include "base/option.h"
#include "text/tokenizer.h"

struct vocab_choice {
	const char *vocab_file;
	bool cased;
};
extern const struct option vocab_choice_rows[];

/* Follows the tokenizer_config.json or tokenizer.json beside the vocabulary, from which `vocab` was read. Without one, follows
 * --cased, with a warning if it was not given and the vocabulary looks cased. ERR_STATE if --cased was given and contradicts that
 * file. */
MUST_USE enum status vocab_tokenizer_settings(const struct options *options, const struct vocab *vocab,
					      const struct vocab_choice *choice, struct tokenizer_settings *out);

#endif
