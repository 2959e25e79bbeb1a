/* A megabyte or so of records of one file, and the documents made of them. Batches are filled by the reader,
 * converted by any thread, and given out in order. Inside src/text. */
#ifndef TEXT_RECORD_BATCH_H
#define TEXT_RECORD_BATCH_H

#include "text/document_builder.h"
#include "text/wiki_markup.h"

#define BATCH_BYTES ((size_t)1 << 20)

struct raw_record {
	size_t begin, size;             /* in `raw` */
	size_t title_begin, title_size; /* likewise */
};

struct record_batch {
	const char *path;
	enum input_form input;
	enum text_form asked; /* what the user says a line is */
	char reason[TEXT_FORM_REASON_BYTES];
	struct wiki_names names;
	bool last; /* of its file */
	struct buffer raw;
	struct raw_record *records;
	int64_t record_count, record_capacity;
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
void record_batch_reset(struct record_batch *batch);
MUST_USE enum status record_batch_add(struct record_batch *batch, const char *text, size_t size,
                                      const char *title);
/* Makes documents of all records; `context` is the batch. Errors are left in it. */
void record_batch_convert(void *context);
void record_batch_release(struct record_batch *batch);

#endif
