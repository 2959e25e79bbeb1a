/* Files of tagged words: one word per line in columns, a blank line between sentences, as CoNLL's shared tasks introduced them.
 * Columns are separated by tabs or, if not every line has a tab, by runs of spaces and tabs. Lines that begin with -DOCSTART-
 * separate documents. A line before a sentence that begins with '#' is a comment if it cannot be a word. Treebanks in CoNLL-U
 * have ten columns between tabs, of which the first counts the words (lines numbered "1-2" or "1.1" are skipped): words are in
 * column 2, and tags in column 4 (UPOS). A first line with usual names of both ("word", "tag", ...) is a header. */
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
	int word_column, tag_column; /* from 1; negative: from the end (-1: last). 0: first (word), last (tag), or CoNLL-U's */
	bool needs_tags;             /* a file with only words is ERR_DATA */
	struct bad_records *bad;     /* a record is a sentence: a bad line makes the whole sentence bad */
};

struct conll_document {
	int64_t first_sentence;
	const char *line; /* its -DOCSTART- line */
};

struct conll {
	const char *name; /* of the file, for messages */
	char separator;   /* '\t', or ' ' for white space */
	bool treebank;    /* CoNLL-U */
	bool has_header;
	bool counts_sentences; /* by its header, a column has the number of the sentence */
	bool word_lines;       /* each word has a line of its own, as in the files that conll_parse() takes */
	int32_t column_count, word_column;
	int32_t tag_column; /* -1: there are only words */
	int64_t sentence_count, token_count, document_count;
	int64_t *sentence_starts;         /* [sentence_count + 1] first token of each sentence */
	int64_t *lines;                   /* [token_count] from 1 */
	const char **fields;              /* [token_count * column_count] UTF-8; words and tags are never empty */
	struct conll_document *documents; /* [document_count] only those that begin with a -DOCSTART- line */
	int64_t comment_count;
	/* Private from here. */
	struct buffer text;
	struct string_store strings;
	int64_t start_capacity, line_capacity, field_capacity, document_capacity;
};

/* Parses a file that has been read, and takes over its text. ERR_DATA, naming file and line: a number of columns other than most
 * lines have, an empty word or tag, invalid UTF-8, a NUL, or no sentence at all. ERR_USAGE: there is no such column. */
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
/* Whether the text looks like the beginning of such a file with tags: nearly all lines have the same number of columns, at least
 * two, and end in what looks like a tag: O, or a prefix such as B-, I-, E-, S-, L-, U- followed by a type. */
bool conll_recognize(const char *text, size_t size);
/* The same for given tags, in a column as in conll_options.tag_column. */
bool conll_recognize_tags(const char *text, size_t size, int tag_column,
			  bool (*is_tag)(void *context, const char *text, size_t size), void *context);
/* Whether the first line is a header with usual names of columns of words and tags. */
bool conll_has_header(const char *text, size_t size);
/* Whether the text is a treebank in CoNLL-U. */
bool conll_is_treebank(const char *text, size_t size);
/* Whether the text looks like a tag. */
bool conll_is_tag(const char *text, size_t size);

#endif
