/* A document: the form in which text is passed from whatever reads it to whatever uses it. */
#ifndef TEXT_DOCUMENT_H
#define TEXT_DOCUMENT_H

#include <stddef.h>
#include <stdint.h>

struct sentence_bounds {
	size_t begin, end;
};

/* One document. Sentences are slices of `text`, which is all of them joined by '\n'. Each is trimmed, at most
 * 64 KiB long (longer ones are cut, and the cuts counted) and otherwise unchanged: control characters,
 * NUL and invalid UTF-8 are left to the tokenizer. Valid until the next corpus_next(). */
struct document {
	const char *path;
	const char *text;
	size_t text_size;
	const struct sentence_bounds *sentences;
	int64_t sentence_count;
	uint64_t hash; /* hash64 of its sentences joined by '\n': the same document has the same hash anywhere */
};

/* What has been read, and any oddities in it. */
struct corpus_counts {
	int64_t files, empty_files; /* empty_files: those without a single sentence */
	int64_t bytes, lines;       /* of text, decompressed */
	int64_t documents, sentences;
	int64_t nul_bytes, invalid_utf8_bytes;
	int64_t sentence_cuts;          /* cuts in sentences over 64 KiB */
	int64_t document_cuts;          /* cuts in documents over 16 MiB */
	int64_t records, other_records; /* in files of records: all; those that are not text (redirects, talk
					   pages, …) */
	int64_t damaged;                /* damaged places skipped with SKIP_BAD_RECORD */
};

#endif
