/* Files of tagged words: one word per line in columns, a blank line between sentences, as CoNLL's shared tasks introduced them.
 * Columns are separated by tabs, or by runs of spaces and tabs where not every line has a tab. Lines that begin with
 * -DOCSTART- separate documents. A line with '#' in front of a sentence is a comment if it does not fit as a word. */
#ifndef FORMATS_CONLL_H
#define FORMATS_CONLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "base/string_store.h"
#include "formats/bad_records.h"
#include "formats/text_file.h"

struct conll_options {
	int word_column, tag_column; /* from 1; negative: from the end, -1 is the last. 0: the first, the last */
	bool needs_tags;             /* a file with words alone is ERR_DATA */
	struct bad_records *bad;     /* a record is a sentence: a bad line takes the whole sentence with it */
};

struct conll_document {
	int64_t first_sentence;
	const char *line; /* its -DOCSTART- line */
};

struct conll {
	const char *name; /* of the file, for messages */
	char separator;   /* '\t', or ' ' for white space */
	int32_t column_count, word_column;
	int32_t tag_column; /* -1: there are words alone */
	int64_t sentence_count, token_count, document_count;
	int64_t *sentence_starts;         /* [sentence_count + 1] first token of each */
	int64_t *lines;                   /* [token_count] from 1 */
	const char **fields;              /* [token_count * column_count] UTF-8; words and tags are never empty */
	struct conll_document *documents; /* [document_count] those that begin with a -DOCSTART- line */
	int64_t comment_count;
	/* Private from here. */
	struct buffer text;
	struct string_store strings;
	int64_t start_capacity, line_capacity, field_capacity, document_capacity;
};

/* Reads all of `path` ("-": standard input). ERR_DATA names file and line: another number of columns than most lines have,
 * an empty word or tag, invalid UTF-8, a NUL, no sentence at all. ERR_USAGE: no such column. */
MUST_USE enum status conll_read(struct conll *out, const char *path, const struct conll_options *options);
/* The same from a file that was read already (formats/text_file.h), whose text it takes. */
MUST_USE enum status conll_parse(struct conll *out, struct text_file *file, const struct conll_options *options);
void conll_release(struct conll *conll);

static inline const char *conll_word(const struct conll *conll, int64_t token)
{
	return conll->fields[token * conll->column_count + conll->word_column];
}

/* Only if tag_column >= 0. */
static inline const char *conll_tag(const struct conll *conll, int64_t token)
{
	return conll->fields[token * conll->column_count + conll->tag_column];
}

/* Appends what was detected: "4 columns between tabs (word 1, tag 4), 3,942 sentences, 94,000 words, 500 documents". */
void conll_describe(const struct conll *conll, struct buffer *out);
/* Does text begin as such a file with tags? Nearly all lines have the same number of columns, at least two, and end in what
 * looks like a tag: O, or a prefix like B-, I-, E-, S-, L-, U- and a type. */
bool conll_recognise(const char *text, size_t size);
/* Does it look like a tag? */
bool conll_is_tag(const char *text, size_t size);

#endif
