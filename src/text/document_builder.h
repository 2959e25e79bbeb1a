/* Lines to documents of sentences. Inside src/text; others read documents through corpus.h.
 *
 * Lines come one at a time; running text collects until its line, block or megabyte is full, then goes
 * through the sentence splitter; when a paragraph continues, its last sentence waits for the rest. So memory
 * is that of the documents begun or finished since the last reset. */
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
	bool whole;      /* blank lines end no document: builder_end() does */
	bool anew;       /* a document ended, or would have, before the first sentence since the reset */
	bool unfinished; /* the last of `documents` will be continued: builder_pause() */
	struct corpus_counts *counts;
	/* Documents finished since the last reset, then the open one. Sentences are relative to their
	 * document's text. */
	char *text;
	int64_t text_size, text_capacity;
	struct sentence_bounds *sentences;
	int64_t sentence_count, sentence_capacity;
	struct built_document *documents;
	int64_t document_count, document_capacity;
	int64_t open_text, open_sentence; /* where the open document begins */
	struct buffer paragraph;
	bool within_line; /* the next piece continues a line */
	int blank_lines;  /* in a row before this line, in wrapped text */
};

/* Forgets documents and the state between lines; none may be open. */
void builder_reset(struct document_builder *builder);
/* A line without its '\n', or a piece of a long one that `continues`. */
MUST_USE enum status builder_line(struct document_builder *builder, const char *line, size_t size, bool continues);
/* All lines of a text, counted for odd bytes. */
MUST_USE enum status builder_text(struct document_builder *builder, const char *text, size_t size);
/* Ends the open document; one without a sentence is none. */
MUST_USE enum status builder_end(struct document_builder *builder);
/* The lines will be continued elsewhere: the sentences of the open document so far become the last of `documents`. */
MUST_USE enum status builder_pause(struct document_builder *builder);
/* Appends the sentences of another builder's document to the open one. */
MUST_USE enum status builder_append(struct document_builder *builder, const struct document_builder *from, int64_t index);
/* Is a document begun, and how long is it? */
size_t builder_open_bytes(const struct document_builder *builder);
void builder_release(struct document_builder *builder);
/* Counts NUL and invalid bytes. */
void builder_count_bytes(struct document_builder *builder, const char *text, size_t size);

#endif
