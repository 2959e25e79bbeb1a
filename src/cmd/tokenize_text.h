/* Text to lines of ids, entries or offsets: the work of `bertc tokenize`. */
#ifndef CMD_TOKENIZE_TEXT_H
#define CMD_TOKENIZE_TEXT_H

#include "base/option.h"
#include "text/tokenizer.h"

enum output_format { FORMAT_IDS, FORMAT_TOKENS, FORMAT_OFFSETS };

struct tokenize_counts {
	int64_t lines, unknown_words, invalid_bytes;
};

/* Prints a line for each line of the files (none: standard input) on standard output, in order, whatever the number of
 * threads (0: one for each core). A line of any length passes in pieces that end at white space, where words end anyway.
 * A gigabyte without white space is ERR_DATA. */
MUST_USE enum status tokenize_text(const struct tokenizer *tokenizer, enum output_format format, int threads,
				   const struct option_list *paths, struct tokenize_counts *out);

#endif
