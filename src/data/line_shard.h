/* Lines to a token shard, for instances whose text must be read in another way than corpus.h does. */
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
	const char *prefix; /* of the shard */
	/* Words are separated by white space, and a word's tokens are to be masked together (Chinese text that a segmenter
	 * has gone over): tokens that continue a word are written as vocabulary size + id. */
	bool segmented_words;
};

struct line_shard_counts {
	int64_t documents, sentences, tokens, unknown_tokens;
	int64_t text_bytes, invalid_bytes;
};

/* Reads text as Google's create_pretraining_data.py does: a line is a sentence, a line of nothing but what Python's
 * strip() takes away ends a document, the end of a file does not. No sentence at all is ERR_DATA, a line of 64 MiB or
 * more too. */
MUST_USE enum status line_shard_write(const struct line_shard_settings *settings, struct line_shard_counts *out);

#endif
