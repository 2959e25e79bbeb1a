/* About a megabyte of lines or records of one file, and the documents made from them. Batches are filled by the reader,
 * converted by any thread, and given out in order. Internal to src/text.
 *
 * Documents made from records end within their batch; one made from lines may continue in the next batch. Lines are divided
 * into batches where only the open document carries over to the next. If there is no such place for a long time (a
 * line of megabytes, wrapped text without a blank line), the next batch `goes_on`: it waits for the state that the previous
 * one leaves. The division depends on the text alone, so documents do not depend on the number of threads. */
#ifndef TEXT_TEXT_BATCH_H
#define TEXT_TEXT_BATCH_H

#include "text/document_builder.h"
#include "text/input_form.h"
#include "text/wiki/wiki_markup.h"

#ifndef TEXT_BATCH_BYTES /* fuzzing makes this small, as well as the limits of lines and records */
#define TEXT_BATCH_BYTES ((size_t)1 << 20)
#endif

struct raw_record {
	size_t begin, size;             /* in `raw` */
	size_t title_begin, title_size; /* likewise */
};

struct text_batch {
	const char *path;
	enum input_form input;
	enum text_form form;  /* form of the lines */
	enum text_form asked; /* for records: the form that the user gave for their lines */
	char reason[TEXT_FORM_REASON_BYTES];
	struct wiki_names names;
	bool first, last; /* whether it is the first or last batch of its file */
	bool goes_on;
	struct buffer raw; /* lines, each with its '\n' unless it is a piece of a longer one; or records */
	struct raw_record *records;
	int64_t record_count, record_capacity;
	int64_t ahead_bytes; /* bytes counted as read ahead */
	/* Results. */
	struct document_builder builder;
	struct corpus_counts counts;
	enum status status;
	struct error error;
	/* Scratch memory. */
	struct wiki_scratch wiki;
	struct buffer text;
};

/* Empties the batch for more lines or records. */
void text_batch_reset(struct text_batch *batch);
/* Adds a record; `title` may be NULL. */
MUST_USE enum status text_batch_add(struct text_batch *batch, const char *text, size_t size, const char *title);
/* Makes documents from all records or lines; does nothing if the batch `goes_on`. `context` is the batch; errors are left
 * in it. */
void text_batch_convert(void *context);
/* The same for a batch that `goes_on`, continuing from the state that the previous batch left. */
struct line_state {
	struct buffer paragraph;
	bool within_line;
	int blank_lines;
};
void text_batch_go_on(struct text_batch *batch, struct line_state *state);
/* Moves the state that a batch of lines leaves to *state. */
void text_batch_stop(struct text_batch *batch, struct line_state *state);
void text_batch_release(struct text_batch *batch);

#endif
