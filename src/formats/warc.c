/* WARC (ISO 28500): a version line, header fields, an empty line, Content-Length bytes, two empty lines. Records with plain text
 * are kept: those of type `conversion` (Common Crawl's WET files), and resources and responses whose content is text/plain, the
 * latter without their HTTP header. Other records are skipped by their length. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/memory.h"
#include "formats/records_internal.h"

#define HEADER_LIMIT ((size_t)64 << 10)

enum warc_state { WARC_BETWEEN, WARC_HEADER, WARC_HTTP_HEADER, WARC_BODY, WARC_SEARCHING };

struct warc {
	enum warc_state state;
	struct buffer line;
	size_t header_size;
	int64_t record_offset, left; /* bytes of content still to come */
	bool conversion, response, resource, plain, has_length, wanted;
};

static enum status damage(struct records *records, int64_t offset, const char *reason)
{
	struct warc *warc = records->state;

	if (warc->wanted)
		TRY(records->sink.end(records->sink.context, NULL, false));
	warc->wanted = false;
	warc->state = WARC_SEARCHING;
	enum status status = error_set(ERR_DATA, "'%s': damaged WARC record at byte %lld: %s", records->settings.name,
				       (long long)offset, reason);
	error_hint("fetch the file again, or give --on_bad_record skip to leave out what is damaged");
	(void)status;
	return record_damaged(records);
}

/* The value of a header field "name: value", or NULL. */
static const char *field(const char *line, const char *name)
{
	size_t size = strlen(name);
	if (strncasecmp(line, name, size) != 0 || line[size] != ':')
		return NULL;
	line += size + 1;
	return line + strspn(line, " \t");
}

static enum status begin_record(struct records *records, int64_t offset)
{
	struct warc *warc = records->state;

	warc->state = WARC_HEADER;
	warc->record_offset = offset;
	warc->header_size = 0;
	warc->left = 0;
	warc->conversion = warc->response = warc->resource = warc->plain = warc->has_length = warc->wanted = false;
	return OK;
}

static enum status end_body(struct records *records)
{
	struct warc *warc = records->state;
	bool wanted = warc->wanted;

	warc->state = WARC_BETWEEN;
	warc->wanted = false;
	if (!wanted)
		TRY(record_begin(records));
	return record_end(records, wanted);
}

static enum status end_header(struct records *records)
{
	struct warc *warc = records->state;

	if (!warc->has_length)
		return damage(records, warc->record_offset, "no Content-Length");
	warc->wanted = warc->conversion || (warc->resource && warc->plain);
	if (warc->wanted)
		TRY(record_begin(records));
	warc->state = warc->response ? WARC_HTTP_HEADER : WARC_BODY;
	warc->plain = warc->plain && !warc->response;
	return warc->left == 0 ? end_body(records) : OK;
}

static enum status take_header(struct records *records, const char *line)
{
	struct warc *warc = records->state;
	const char *value;

	if (*line == '\0')
		return end_header(records);
	if ((value = field(line, "WARC-Type"))) {
		warc->conversion = strcasecmp(value, "conversion") == 0;
		warc->response = strcasecmp(value, "response") == 0;
		warc->resource = strcasecmp(value, "resource") == 0;
	} else if ((value = field(line, "Content-Type"))) {
		warc->plain = strncasecmp(value, "text/plain", 10) == 0;
	} else if ((value = field(line, "Content-Length"))) {
		char *end;
		long long length = strtoll(value, &end, 10);
		if (*value < '0' || *value > '9' || *end || length > INT64_MAX / 2)
			return damage(records, warc->record_offset, "Content-Length is not a number");
		warc->left = length;
		warc->has_length = true;
	}
	return OK;
}

/* Takes a line outside of content, without its line end. */
static enum status take_line(struct records *records, int64_t offset)
{
	struct warc *warc = records->state;
	struct buffer *line = &warc->line;

	TRY(buffer_status(line));
	if (line->size && line->data[line->size - 1] == '\r')
		line->data[--line->size] = '\0';
	const char *text = buffer_string(line);
	switch (warc->state) {
	case WARC_BETWEEN:
	case WARC_SEARCHING:
		if (strncmp(text, "WARC/", 5) == 0)
			return begin_record(records, offset);
		if (*text && warc->state == WARC_BETWEEN)
			return damage(records, offset, "a record should begin here");
		return OK;
	case WARC_HEADER: return take_header(records, text);
	default: break;
	}
	/* The header of an HTTP response, which is part of the content. */
	const char *type = field(text, "Content-Type");
	if (type)
		warc->plain = strncasecmp(type, "text/plain", 10) == 0;
	if (*text == '\0') {
		warc->state = WARC_BODY;
		warc->wanted = warc->plain;
		return warc->wanted ? record_begin(records) : OK;
	}
	return OK;
}

/* Takes bytes of a line; *at moves past what was taken. */
static enum status feed_line(struct records *records, const char *bytes, size_t size, size_t *at)
{
	struct warc *warc = records->state;
	const char *newline = memchr(bytes + *at, '\n', size - *at);
	size_t piece = newline ? (size_t)(newline - bytes) - *at : size - *at, taken;
	bool http = warc->state == WARC_HTTP_HEADER;
	int64_t offset = records->offset + (int64_t)*at - (int64_t)warc->line.size;

	if (http && (int64_t)piece >= warc->left) { /* the content ends inside the HTTP header */
		*at += (size_t)warc->left;
		warc->left = 0;
		buffer_clear(&warc->line);
		return end_body(records);
	}
	taken = piece + (newline != NULL);
	*at += taken;
	warc->left -= http ? (int64_t)taken : 0;
	warc->header_size += taken;
	if (warc->state == WARC_SEARCHING) {
		/* Only the beginning of a line matters. */
		if (warc->line.size < 64)
			buffer_append(&warc->line, bytes + *at - taken, piece < 64 ? piece : 64);
	} else {
		if (warc->state == WARC_BETWEEN)
			warc->header_size = piece;
		if (warc->header_size > HEADER_LIMIT) {
			buffer_clear(&warc->line);
			return damage(records, warc->record_offset, "a header of more than 64 KiB");
		}
		buffer_append(&warc->line, bytes + *at - taken, piece);
	}
	if (!newline)
		return OK;
	enum status status = take_line(records, offset);
	buffer_clear(&warc->line);
	if (status == OK && http && warc->state == WARC_BODY && warc->left == 0)
		status = end_body(records);
	return status;
}

static enum status warc_feed(struct records *records, const char *bytes, size_t size)
{
	struct warc *warc = records->state;
	size_t at = 0;

	while (at < size) {
		if (warc->state != WARC_BODY) {
			TRY(feed_line(records, bytes, size, &at));
			continue;
		}
		size_t piece = (int64_t)(size - at) < warc->left ? size - at : (size_t)warc->left;
		if (warc->wanted)
			TRY(record_text(records, bytes + at, piece));
		at += piece;
		warc->left -= (int64_t)piece;
		if (warc->left == 0)
			TRY(end_body(records));
	}
	return OK;
}

static enum status warc_finish(struct records *records)
{
	struct warc *warc = records->state;
	if (warc->state == WARC_BETWEEN && warc->line.size == 0)
		return OK;
	if (warc->state == WARC_SEARCHING)
		return OK;
	return damage(records, warc->record_offset, "the file ends within it");
}

static enum status warc_open(struct records *records)
{
	return memory_new(&records->state, 1, sizeof(struct warc), "WARC reader");
}

static void warc_close(struct records *records)
{
	struct warc *warc = records->state;
	if (warc)
		buffer_release(&warc->line);
	free(warc);
}

const struct record_kind warc_records = {warc_open, warc_feed, warc_finish, warc_close};
