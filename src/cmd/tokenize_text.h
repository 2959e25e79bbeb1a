/* From text to lines of ids, entries, or offsets: the work of `bertc tokenize`. */
#ifndef CMD_TOKENIZE_TEXT_H
#define CMD_TOKENIZE_TEXT_H

#include "base/option.h"
#include "text/tokenizer.h"

enum output_format { FORMAT_IDS, FORMAT_TOKENS, FORMAT_OFFSETS };

struct tokenize_counts {
	int64_t lines, bytes, unknown_words, invalid_bytes;
};

/* Prints a line for each line of the files (none: standard input) on standard output, in order, whatever the number of threads
 * (0: one per core). A line may have any length: long ones are tokenized in pieces that end where no token can cross. More than
 * 16 MiB without such a place is ERR_DATA. */
MUST_USE enum status tokenize_text(const struct tokenizer *tokenizer, enum output_format format, int threads,
				   const struct option_list *paths, struct tokenize_counts *out);

#endif
