/* Makes documents of sentences from lines. Internal to src/text; other code reads documents through corpus.h.
 *
 * Lines come one at a time. Running text is collected until its line or paragraph ends or reaches a megabyte, and then
 * split into sentences; if a paragraph continues, its last sentence waits for the rest. So memory use is
 * that of the documents begun or finished since the last reset. */
#ifndef TEXT_DOCUMENT_BUILDER_H
#define TEXT_DOCUMENT_BUILDER_H

#include "base/buffer.h"
#include "text/document.h"
#include "text/text_form.h"

#ifndef TEXT_LINE_LIMIT
#define TEXT_LINE_LIMIT ((size_t)1 << 20) /* longer lines come in pieces */
#endif
#define DOCUMENT_LIMIT ((size_t)16 << 20)

struct built_document {
	size_t text_begin, text_size; /* in `text` */
	int64_t first_sentence, sentence_count;
};

struct document_builder {
	enum text_form form;
	bool whole;      /* blank lines do not end a document; builder_end() does */
	bool anew;       /* a document ended, or would have ended, before the first sentence since the reset */
	bool unfinished; /* the last of `documents` will be continued; set by builder_pause() */
	struct corpus_counts *counts;
	/* Documents finished since the last reset, then the open one. Sentence bounds are relative to the text of
	 * their document. */
	char *text;
	int64_t text_size, text_capacity;
	struct sentence_bounds *sentences;
	int64_t sentence_count, sentence_capacity;
	struct built_document *documents;
	int64_t document_count, document_capacity;
	int64_t open_text, open_sentence; /* where text and sentences of the open document begin */
	struct buffer paragraph;
	bool within_line; /* the next piece continues a line */
	int blank_lines;  /* consecutive blank lines before this line, in wrapped text */
};

/* Forgets all documents and the state between lines; no document may be open. */
void builder_reset(struct document_builder *builder);
/* Adds a line without its '\n', or a piece of a long line that `continues`. */
MUST_USE enum status builder_line(struct document_builder *builder, const char *line, size_t size, bool continues);
/* Adds all lines of a text, and counts its NUL and invalid bytes. */
MUST_USE enum status builder_text(struct document_builder *builder, const char *text, size_t size);
/* Ends the open document; if it has no sentences, it is dropped. */
MUST_USE enum status builder_end(struct document_builder *builder);
/* To be called if the lines continue elsewhere: the sentences of the open document so far become the last of `documents`. */
MUST_USE enum status builder_pause(struct document_builder *builder);
/* Appends the sentences of another builder's document to the open document. */
MUST_USE enum status builder_append(struct document_builder *builder, const struct document_builder *from, int64_t index);
/* Size of the open document's text so far; 0 if none has begun. */
size_t builder_open_bytes(const struct document_builder *builder);
void builder_release(struct document_builder *builder);
/* Counts NUL and invalid bytes. */
void builder_count_bytes(struct document_builder *builder, const char *text, size_t size);

#endif
