/* A megabyte or so of lines or records of one file, and the documents made of them. Batches are filled by the reader,
 * converted by any thread, and given out in order. Inside src/text.
 *
 * Documents made of records end with their batch; one made of lines may continue in the next batch. Lines are cut into batches
 * where nothing but the open document passes from one to the next. Where there is no such place for a long time (a
 * line of megabytes, wrapped text without a blank line), the next batch `goes_on`: it waits for the state that the one
 * before leaves. Where batches are cut depends on the text alone, so documents do not depend on the threads. */
#ifndef TEXT_TEXT_BATCH_H
#define TEXT_TEXT_BATCH_H

#include "text/document_builder.h"
#include "text/input_form.h"
#include "text/wiki_markup.h"

#ifndef TEXT_BATCH_BYTES /* fuzzing makes it small, and the limits of lines and records */
#define TEXT_BATCH_BYTES ((size_t)1 << 20)
#endif

struct raw_record {
	size_t begin, size;             /* in `raw` */
	size_t title_begin, title_size; /* likewise */
};

struct text_batch {
	const char *path;
	enum input_form input;
	enum text_form form;  /* of lines */
	enum text_form asked; /* of records: what the user says a line is */
	char reason[TEXT_FORM_REASON_BYTES];
	struct wiki_names names;
	bool first, last; /* of its file */
	bool goes_on;
	struct buffer raw; /* lines, each with its '\n' but a piece of a longer one; or records */
	struct raw_record *records;
	int64_t record_count, record_capacity;
	int64_t ahead_bytes; /* counted as read ahead */
	/* Results. */
	struct document_builder builder;
	struct corpus_counts counts;
	enum status status;
	struct error error;
	/* Scratch memory. */
	struct wiki_scratch wiki;
	struct buffer text;
};

/* Empties it for records of another file or the next of the same. */
void text_batch_reset(struct text_batch *batch);
MUST_USE enum status text_batch_add(struct text_batch *batch, const char *text, size_t size, const char *title);
/* Makes documents of all records, or of all lines unless the batch is continued; `context` is the batch. Errors are left
 * in it. */
void text_batch_convert(void *context);
/* The same for a batch that continues the one before it, from where that stopped. */
struct line_state {
	struct buffer paragraph;
	bool within_line;
	int blank_lines;
};
void text_batch_go_on(struct text_batch *batch, struct line_state *state);
/* Takes the state that a batch of lines leaves. */
void text_batch_stop(struct text_batch *batch, struct line_state *state);
void text_batch_release(struct text_batch *batch);

#endif
