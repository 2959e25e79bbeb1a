/* Shared by the targets for record files: reads the bytes twice, in one piece and in pieces of odd sizes, which must give
 * the same records. */
#ifndef TESTS_FUZZ_RECORDS_H
#define TESTS_FUZZ_RECORDS_H

#include "base/buffer.h"
#include "formats/records.h"
#include "fuzz.h"

struct fuzz_read {
	struct buffer text;
	bool open, skip;
	int64_t kept, damaged;
};

static enum status fuzz_begin(void *context)
{
	struct fuzz_read *read = context;
	BUG_IF(read->open);
	read->open = true;
	return OK;
}

static enum status fuzz_text(void *context, const char *bytes, size_t size)
{
	struct fuzz_read *read = context;
	BUG_IF(!read->open);
	buffer_append(&read->text, bytes, size);
	return OK;
}

static enum status fuzz_end(void *context, const char *title, bool keep)
{
	struct fuzz_read *read = context;
	BUG_IF(!read->open);
	read->open = false;
	read->kept += keep;
	buffer_format(&read->text, "|%s|%d\n", title ? title : "", keep);
	return OK;
}

static enum status fuzz_damaged(void *context)
{
	struct fuzz_read *read = context;
	BUG_IF(error_last()->status != ERR_DATA || read->open);
	read->damaged++;
	return read->skip ? OK : ERR_DATA;
}

static enum status fuzz_namespace(void *context, int64_t key, const char *name)
{
	struct fuzz_read *read = context;
	buffer_format(&read->text, "%lld %s\n", (long long)key, name);
	return OK;
}

static enum status fuzz_read_records(struct fuzz_read *read, enum record_form form, const char *text_key, const char *bytes,
				     size_t count, size_t piece)
{
	struct record_settings settings = {form, "fuzz", text_key};
	struct record_sink sink = {read, fuzz_begin, fuzz_text, fuzz_end, fuzz_damaged, fuzz_namespace};
	struct records *records;

	BUG_IF(records_open(&records, &settings, &sink) != OK);
	enum status status = OK;
	for (size_t at = 0; at < count && status == OK; at += piece)
		status = records_feed(records, bytes + at, count - at < piece ? count - at : piece);
	if (status == OK)
		status = records_finish(records);
	records_close(records);
	return status;
}

/* The first byte chooses whether damage is skipped, and the size of the pieces. */
static void fuzz_records(enum record_form form, const char *text_key, const uint8_t *bytes, size_t count)
{
	static struct fuzz_read whole, pieces;
	if (count == 0)
		return;
	bool skip = bytes[0] & 1;
	size_t piece = 1 + bytes[0] / 2;
	char *text = fuzz_copy(bytes + 1, --count);

	buffer_clear(&whole.text);
	buffer_clear(&pieces.text);
	whole = (struct fuzz_read){.text = whole.text, .skip = skip};
	pieces = (struct fuzz_read){.text = pieces.text, .skip = skip};
	enum status first = fuzz_read_records(&whole, form, text_key, text, count, count ? count : 1);
	enum status second = fuzz_read_records(&pieces, form, text_key, text, count, piece);
	BUG_IF(first != second);
	BUG_IF(skip && first != OK);
	if (form != RECORDS_WIKI_XML || !whole.damaged) /* what expat sees before damage depends on the pieces */
		BUG_IF(whole.text.size != pieces.text.size ||
		       memcmp(buffer_string(&whole.text), buffer_string(&pieces.text), whole.text.size) != 0 ||
		       whole.kept != pieces.kept);
	free(text);
}

#endif
