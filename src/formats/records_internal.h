/* The interface of each form of records: how it starts and takes bytes. */
#ifndef FORMATS_RECORDS_INTERNAL_H
#define FORMATS_RECORDS_INTERNAL_H

#include "base/buffer.h"
#include "formats/records.h"

#define TITLE_LIMIT 1024 /* bytes; anything longer is not a title */

struct records {
	const struct record_kind *kind;
	struct record_settings settings;
	struct record_sink sink;
	int64_t offset; /* of the next byte to be fed */
	struct buffer title;
	void *state; /* private to the kind */
};

struct record_kind {
	enum status (*open)(struct records *records);
	enum status (*feed)(struct records *records, const char *bytes, size_t size);
	enum status (*finish)(struct records *records);
	void (*close)(struct records *records); /* `state` may be NULL */
};

extern const struct record_kind wiki_xml_records, json_records, wikiextractor_records, warc_records;

static inline enum status record_begin(struct records *records)
{
	buffer_clear(&records->title);
	return records->sink.begin(records->sink.context);
}

static inline enum status record_text(struct records *records, const char *bytes, size_t size)
{
	return size ? records->sink.text(records->sink.context, bytes, size) : OK;
}

static inline enum status record_end(struct records *records, bool keep)
{
	const char *title = records->title.size ? buffer_string(&records->title) : NULL;
	return records->sink.end(records->sink.context, title, keep);
}

/* After error_set(): notifies the sink and returns its decision. */
static inline enum status record_damaged(struct records *records)
{
	return records->sink.damaged(records->sink.context);
}

#endif
