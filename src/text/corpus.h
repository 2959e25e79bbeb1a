/* Text files to documents of sentences. */
#ifndef TEXT_CORPUS_H
#define TEXT_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"

enum text_form {
	TEXT_FORM_AUTO,
	TEXT_FORM_SENTENCES,  /* a sentence a line, a blank line between documents */
	TEXT_FORM_PARAGRAPHS, /* running text, a paragraph a line, a blank line between documents */
	TEXT_FORM_WRAPPED,    /* running text broken at a column; a blank line between paragraphs, a file a document */
	TEXT_FORM_DOCUMENTS,  /* a document a line */
};
extern const char *const text_form_names[]; /* "auto", "sentences", …; index = enum */

/* One document. Sentences are slices of `text`; valid until the next corpus_next(). */
struct document {
	const char *path;
	char *text;
	size_t text_size;
	struct { size_t begin, end; } *sentences;
	int64_t sentence_count;
	uint64_t hash; /* hash64 of its sentences joined by '\n': the same document has the same hash anywhere */
};

struct corpus_counts {
	int64_t files, bytes, lines, documents, sentences;
	int64_t empty_documents, binary_files, nul_bytes, invalid_utf8_bytes, split_lines;
};

/* Reads files one after the other. */
struct corpus;
/* `patterns`: files, folders, globs, "-". With TEXT_FORM_AUTO the form of each file is found from its first
 * megabyte; corpus_form() tells the form of the current file and why. A file with NUL bytes in its beginning is
 * binary: ERR_DATA naming it. Folders are read whole; nothing found is ERR_USAGE. */
MUST_USE enum status corpus_open(struct corpus **out, const char *const *patterns, int64_t pattern_count,
				 enum text_form form);
/* The next document with at least one sentence; *out = NULL at the end. */
MUST_USE enum status corpus_next(struct corpus *corpus, const struct document **out);
/* Form of the file that the last document came from, with the reason in words ("2.1 sentences a line, 312 blank
 * lines"). */
enum text_form corpus_form(const struct corpus *corpus, const char **out_reason);
const struct corpus_counts *corpus_counts(const struct corpus *corpus);
/* Bytes of all (compressed) files, and read so far; -1 if unknown (standard input). */
int64_t corpus_total_bytes(const struct corpus *corpus);
int64_t corpus_done_bytes(const struct corpus *corpus);
/* Names, sizes and modification times of all files, hashed: tells whether a corpus has changed. */
uint64_t corpus_fingerprint(const struct corpus *corpus);
void corpus_close(struct corpus *corpus);

/* Splits running text (UTF-8) into sentences: calls emit for each, trimmed. English abbreviations, initials,
 * decimals, closing quotes; Chinese and Japanese marks; other scripts' full stops. */
MUST_USE enum status sentences_split(const char *text, size_t size,
				     enum status (*emit)(void *context, size_t begin, size_t end), void *context);

#endif
