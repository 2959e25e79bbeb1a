/* Text files to documents of sentences. */
#ifndef TEXT_CORPUS_H
#define TEXT_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"

/* What a line of text is; the last ones are found forms of files that are not lines of text (enum
 * input_form). */
enum text_form {
	TEXT_FORM_AUTO,
	TEXT_FORM_SENTENCES,  /* a sentence a line, a blank line between documents */
	TEXT_FORM_PARAGRAPHS, /* running text, a paragraph a line, a blank line between documents */
	TEXT_FORM_WRAPPED,    /* running text broken at a column; a blank line between paragraphs; a file is a
				 document, or each part of it that ends with three blank lines or more (the
				 chapters of a book) */
	TEXT_FORM_DOCUMENTS,  /* a document a line */
	TEXT_FORM_GUTENBERG,
	TEXT_FORM_WIKI_XML,
	TEXT_FORM_CIRRUS,
	TEXT_FORM_WIKIEXTRACTOR,
	TEXT_FORM_JSON,
	TEXT_FORM_WARC,
	TEXT_FORM_COUNT
};
extern const char *const text_form_names[];       /* "auto", "sentences", …; index = enum; ends with NULL */
enum text_form text_form_named(const char *name); /* the name is one of them */

/* What stands around the text of a file; found from its beginning. */
enum input_form {
	INPUT_AUTO,
	INPUT_TEXT,          /* nothing: lines */
	INPUT_GUTENBERG,     /* a Project Gutenberg book: licence before and after it */
	INPUT_WIKI_XML,      /* a MediaWiki export; articles only, markup to text */
	INPUT_CIRRUS,        /* a CirrusSearch dump; articles only */
	INPUT_WIKIEXTRACTOR, /* <doc> elements */
	INPUT_JSON,          /* objects, a line each or in an array, text under a key */
	INPUT_WARC,          /* plain text of a web crawl: WET */
};
extern const char *const input_form_names[];        /* "auto", "text", …; index = enum; ends with NULL */
enum input_form input_form_named(const char *name); /* the name is one of them */

struct corpus_settings {
	enum input_form input_form;
	enum text_form text_form; /* AUTO to DOCUMENTS; also of the texts in JSON and WARC records */
	const char *text_key;     /* of JSON, "a.b" for b within a; NULL: the usual ones */
	bool skip_bad_records;    /* leave out what is damaged, count it and go on, instead of ERR_DATA */
	int threads;              /* that may work ahead of corpus_next(); 0: one for each core */
};

struct sentence_bounds {
	size_t begin, end;
};

/* One document. Sentences are slices of `text`, which is all of them joined by '\n'; each is trimmed, at most
 * 64 KiB long (longer ones are cut and counted) and as it stood in the file otherwise: control characters,
 * NUL and invalid UTF-8 are left to the tokenizer. Valid until the next corpus_next(). */
struct document {
	const char *path;
	const char *text;
	size_t text_size;
	const struct sentence_bounds *sentences;
	int64_t sentence_count;
	uint64_t hash; /* hash64 of its sentences joined by '\n': the same document has the same hash anywhere
			*/
};

struct corpus_counts {
	int64_t files, empty_files; /* empty: without a single sentence */
	int64_t bytes, lines;       /* of text, decompressed */
	int64_t documents, sentences;
	int64_t nul_bytes, invalid_utf8_bytes;
	int64_t sentence_cuts;          /* made in sentences over 64 KiB */
	int64_t document_cuts;          /* made in documents over 16 MiB */
	int64_t records, other_records; /* of files of records: all; those that are no text (redirects, talk
					   pages, …) */
	int64_t damaged;                /* places passed over with skip_bad_records */
};

/* Reads files one after the other, with bounded memory: a document, some megabytes of lines or records for
 * each thread, the decoder. Documents come in the order of the files, whatever the number of threads. */
struct corpus;
/* `patterns`: files, folders, globs, "-". `settings` NULL: all found out, damage is an error. With INPUT_AUTO
 * and TEXT_FORM_AUTO the form of each file is found from its first megabyte, and said (log_note, once for
 * each form met). Nothing found is ERR_USAGE, a file that may not be read ERR_RESOURCE. While reading, a
 * binary file (more than one NUL in a thousand bytes of its first megabyte), one that is not UTF-8 (more than
 * a tenth of these bytes) and damaged data are ERR_DATA naming file and offset. */
MUST_USE enum status corpus_open(struct corpus **out, const char *const *patterns, int64_t pattern_count,
				 const struct corpus_settings *settings);
/* Forms found are told with --verbose only: for text that is read a second time. */
void corpus_quiet(struct corpus *corpus);
/* The next document, which has at least one sentence; *out = NULL at the end. A document ends with its file.
 */
MUST_USE enum status corpus_next(struct corpus *corpus, const struct document **out);
/* Form of the file that the last document came from, with the reason in words ("2.1 sentences a line, 312
 * blank lines"). */
enum text_form corpus_form(const struct corpus *corpus, const char **out_reason);
const struct corpus_counts *corpus_counts(const struct corpus *corpus);
/* One line of what was dropped, cut or odd ("3 files without text, 12 bytes that are not UTF-8"); "" if
 * nothing. */
void corpus_describe_oddities(const struct corpus *corpus, struct buffer *out);
/* Bytes of all (compressed) files, and read so far; -1 if unknown (standard input). */
int64_t corpus_total_bytes(const struct corpus *corpus);
int64_t corpus_done_bytes(const struct corpus *corpus);
/* Names, sizes and modification times of all files, hashed: tells whether a corpus has changed. */
uint64_t corpus_fingerprint(const struct corpus *corpus);
void corpus_close(struct corpus *corpus); /* NULL is fine */

/* Finds the form of a text from its beginning. `whole`: the text ends there; `file_count`: files of the
 * corpus (a small file among many is taken for one document). The reason goes into `reason`. The rules stand
 * in text_form.c. */
#define TEXT_FORM_REASON_BYTES 160
/* Are the lines of this text broken at a column? */
MUST_USE enum status text_is_wrapped(const char *text, size_t size, bool *out);
MUST_USE enum status text_form_detect(const char *text, size_t size, bool whole, int64_t file_count, enum text_form *out,
				      char reason[TEXT_FORM_REASON_BYTES]);

/* Splits running text (UTF-8) into sentences: calls emit for each, trimmed, in order, never an empty one.
 * English abbreviations, initials, decimals, closing quotes; Chinese and Japanese marks; other scripts' full
 * stops. */
MUST_USE enum status sentences_split(const char *text, size_t size, enum status (*emit)(void *context, size_t begin, size_t end),
				     void *context);

#endif
