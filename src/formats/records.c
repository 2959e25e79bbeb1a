/* What all forms of records share: selecting one, and recognizing which one a file has. */
#include "formats/records.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "formats/records_internal.h"

static const struct record_kind *const kinds[] = {
	[RECORDS_WIKI_XML] = &wiki_xml_records,           [RECORDS_JSON] = &json_records, [RECORDS_CIRRUS] = &json_records,
	[RECORDS_WIKIEXTRACTOR] = &wikiextractor_records, [RECORDS_WARC] = &warc_records,
};

enum status records_open(struct records **out, const struct record_settings *settings, const struct record_sink *sink)
{
	struct records *records;

	*out = NULL;
	TRY(memory_new(&records, 1, sizeof *records, "record reader"));
	records->kind = kinds[settings->form];
	records->settings = *settings;
	records->sink = *sink;
	enum status status = records->kind->open(records);
	if (status != OK)
		records_close(records);
	else
		*out = records;
	return status;
}

enum status records_feed(struct records *records, const char *bytes, size_t size)
{
	TRY(records->kind->feed(records, bytes, size));
	records->offset += (int64_t)size;
	return OK;
}

enum status records_finish(struct records *records)
{
	return records->kind->finish(records);
}

void records_close(struct records *records)
{
	if (!records)
		return;
	records->kind->close(records);
	buffer_release(&records->title);
	free(records);
}

static bool starts(const char *text, size_t size, const char *prefix)
{
	return size >= strlen(prefix) && memcmp(text, prefix, strlen(prefix)) == 0;
}

static size_t skip_blanks(const char *text, size_t size, size_t at)
{
	while (at < size && strchr(" \t\r\n\x1E", text[at]) && text[at])
		at++;
	return at;
}

/* In a CirrusSearch dump, an object whose first key is "index" begins a pair. */
static bool is_cirrus(const char *text, size_t size)
{
	size_t at = skip_blanks(text, size, 1); /* past '{' */
	return starts(text + at, size - at, "\"index\"");
}

bool records_recognize(const char *beginning, size_t size, enum record_form *out)
{
	size_t at = starts(beginning, size, "\xef\xbb\xbf") ? 3 : 0;
	at = skip_blanks(beginning, size, at);
	const char *text = beginning + at;
	size -= at;

	if (starts(text, size, "<?xml")) {
		const char *end = memchr(text, '>', size);
		size_t next = end ? skip_blanks(text, size, (size_t)(end + 1 - text)) : size;
		text += next;
		size -= next;
	}
	if (starts(text, size, "<mediawiki") || starts(text, size, "<page>")) {
		*out = RECORDS_WIKI_XML;
	} else if (starts(text, size, "<doc id=")) {
		*out = RECORDS_WIKIEXTRACTOR;
	} else if (starts(text, size, "WARC/")) {
		*out = RECORDS_WARC;
	} else if (size > 0 && (text[0] == '{' || text[0] == '[')) {
		/* Plain text may also begin with a bracket, so an object must follow, with a key in quotes or nothing in it. */
		size_t next = text[0] == '[' ? skip_blanks(text, size, 1) : 0;
		if (next >= size || text[next] != '{')
			return false;
		text += next;
		size -= next;
		next = skip_blanks(text, size, 1);
		if (next >= size || (text[next] != '"' && text[next] != '}'))
			return false;
		*out = is_cirrus(text, size) ? RECORDS_CIRRUS : RECORDS_JSON;
	} else {
		return false;
	}
	return true;
}
