/* WikiExtractor's output: <doc id="12" url="..." title="...">, the title, the text with '<', '>', and '&' as entities, </doc>.
 * Lines are processed one at a time; one of more than a megabyte is text and is passed on in pieces. */
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "formats/records_internal.h"

#define LINE_LIMIT ((size_t)1 << 20)

struct wikiextractor {
	struct buffer line;
	int64_t line_offset;
	bool within, long_line;
};

static enum status damage(struct records *records, int64_t offset, const char *reason)
{
	struct wikiextractor *reader = records->state;

	if (reader->within)
		TRY(records->sink.end(records->sink.context, NULL, false));
	reader->within = false;
	enum status status =
		error_set(ERR_DATA, "'%s': damaged at byte %lld: %s", records->settings.name, (long long)offset, reason);
	error_hint("make the file again, or give --on_bad_record skip to leave out what is damaged");
	(void)status;
	return record_damaged(records);
}

/* Passes on text, decoding the entities that WikiExtractor writes. */
static enum status take_text(struct records *records, const char *text, size_t size)
{
	static const struct {
		const char *name;
		char character;
	} entities[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}};
	const char *end = text + size;

	while (text < end) {
		const char *amp = memchr(text, '&', (size_t)(end - text));
		if (!amp)
			return record_text(records, text, (size_t)(end - text));
		TRY(record_text(records, text, (size_t)(amp - text)));
		char c = '&';
		size_t used = 1;
		for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
			size_t length = strlen(entities[i].name);
			if ((size_t)(end - amp) >= length && memcmp(amp, entities[i].name, length) == 0) {
				c = entities[i].character;
				used = length;
			}
		}
		TRY(record_text(records, &c, 1));
		text = amp + used;
	}
	return OK;
}

static bool begins_with(const struct buffer *line, const char *prefix)
{
	return line->size >= strlen(prefix) && memcmp(line->data, prefix, strlen(prefix)) == 0;
}

static enum status begin_document(struct records *records)
{
	struct wikiextractor *reader = records->state;
	static const char mark[] = "title=\"";

	if (reader->within)
		TRY(damage(records, reader->line_offset, "a <doc> begins before the one before it ended"));
	TRY(record_begin(records));
	reader->within = true;
	const char *line = buffer_string(&reader->line), *title = strstr(line, mark);
	if (title) {
		title += sizeof mark - 1;
		const char *end = strstr(title, "\">");
		if (end && end - title <= TITLE_LIMIT)
			buffer_append(&records->title, title, (size_t)(end - title));
	}
	return buffer_status(&records->title);
}

static enum status take_line(struct records *records)
{
	struct wikiextractor *reader = records->state;
	struct buffer *line = &reader->line;
	bool whole = !reader->long_line;

	TRY(buffer_status(line));
	reader->long_line = false;
	if (whole && begins_with(line, "<doc id="))
		return begin_document(records);
	if (whole && begins_with(line, "</doc>") && reader->within) {
		reader->within = false;
		return record_end(records, true);
	}
	if (reader->within) {
		TRY(take_text(records, line->data, line->size));
		return record_text(records, "\n", 1);
	}
	for (size_t i = 0; i < line->size; i++)
		if (!strchr(" \t\r", line->data[i]) || !line->data[i])
			return damage(records, reader->line_offset, "text outside of <doc> ... </doc>");
	return OK;
}

static enum status wikiextractor_feed(struct records *records, const char *bytes, size_t size)
{
	struct wikiextractor *reader = records->state;
	size_t at = 0;

	while (at < size) {
		const char *newline = memchr(bytes + at, '\n', size - at);
		size_t piece = newline ? (size_t)(newline - bytes) - at : size - at;
		if (reader->line.size == 0)
			reader->line_offset = records->offset + (int64_t)at;
		if (piece > LINE_LIMIT)
			piece = LINE_LIMIT;
		buffer_append(&reader->line, bytes + at, piece);
		at += piece;
		if (newline && bytes + at == newline) {
			at++;
			TRY(take_line(records));
			buffer_clear(&reader->line);
		} else if (reader->line.size >= LINE_LIMIT) {
			TRY(buffer_status(&reader->line));
			if (reader->within)
				TRY(take_text(records, reader->line.data, reader->line.size));
			reader->long_line = true;
			buffer_clear(&reader->line);
		}
	}
	return OK;
}

static enum status wikiextractor_finish(struct records *records)
{
	struct wikiextractor *reader = records->state;
	if (reader->line.size)
		TRY(take_line(records));
	return reader->within ? damage(records, records->offset, "the file ends within a <doc>") : OK;
}

static enum status wikiextractor_open(struct records *records)
{
	return memory_new(&records->state, 1, sizeof(struct wikiextractor), "reader of WikiExtractor's output");
}

static void wikiextractor_close(struct records *records)
{
	struct wikiextractor *reader = records->state;
	if (reader)
		buffer_release(&reader->line);
	free(reader);
}

const struct record_kind wikiextractor_records = {wikiextractor_open, wikiextractor_feed, wikiextractor_finish,
						  wikiextractor_close};
