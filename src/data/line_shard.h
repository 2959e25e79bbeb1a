/* Converts lines to a token shard, for instances whose text must be read differently from corpus.h. */
#ifndef DATA_LINE_SHARD_H
#define DATA_LINE_SHARD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "text/tokenizer.h"

struct line_shard_settings {
	const char *const *paths; /* files, folders, globs, "-" */
	int64_t path_count;
	const struct tokenizer *tokenizer;
	const char *prefix; /* of the shard's files */
	/* Words are separated by white space, and the tokens of a word are masked together (Chinese text processed by a
	 * word segmenter): tokens that continue a word are written as vocabulary size + id. */
	bool segmented_words;
};

struct line_shard_counts {
	int64_t documents, sentences, tokens, unknown_tokens;
	int64_t text_bytes, invalid_bytes;
};

/* Reads text as Google's create_pretraining_data.py does: each line is a sentence; a line that Python's strip() leaves empty
 * ends a document; the end of a file does not. No sentences at all is ERR_DATA, and so is a line longer than 64 MiB. */
MUST_USE enum status line_shard_write(const struct line_shard_settings *settings, struct line_shard_counts *out);

#endif
