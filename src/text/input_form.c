#include "text/input_form.h"

#include <string.h>
#include <strings.h>
#include "formats/records.h"
#include "text/gutenberg.h"
#include "text/utf8.h"

#define NUL_SHARE 1000   /* a file with more than one NUL per this many bytes is binary */
#define INVALID_SHARE 10 /* a file with more than one invalid byte per this many is not UTF-8 */

const char *const input_form_names[] = {"auto", "text", "gutenberg", "wiki_xml", "cirrus", "wikiextractor", "json", "warc", NULL};

enum input_form input_form_named(const char *name)
{
	int form = 0;
	while (input_form_names[form] && strcmp(input_form_names[form], name) != 0)
		form++;
	BUG_IF(!input_form_names[form]);
	return (enum input_form)form;
}

struct nuls {
	size_t count, first;
	bool utf16; /* byte order mark, or NULs as in Western text: many, all at even or all at odd offsets */
};

static struct nuls find_nuls(const char *text, size_t size)
{
	struct nuls nuls = {.first = size};
	size_t even = 0;
	for (const char *at = text, *end = text + size; (at = memchr(at, 0, (size_t)(end - at))); at++) {
		size_t offset = (size_t)(at - text);
		nuls.first = nuls.count++ ? nuls.first : offset;
		even += offset % 2 == 0;
	}
	bool marked = size >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
	nuls.utf16 = nuls.count > 0 && (marked || (nuls.count * 5 > size && (even == 0 || even == nuls.count)));
	return nuls;
}

#define UTF16_HINT "it looks like UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`"

enum status input_refuse_utf16(const char *path, const char *text, size_t size)
{
	struct nuls nuls = find_nuls(text, size);
	if (!nuls.utf16 || nuls.count < 8) /* a few may occur anywhere */
		return OK;
	enum status status =
		error_set(ERR_DATA, "'%s': not UTF-8 text: %zu of its first %zu bytes are NUL", path, nuls.count, size);
	error_hint(UTF16_HINT);
	return status;
}

enum status input_check_encoding(const char *path, const char *text, size_t size)
{
	struct nuls nuls = find_nuls(text, size);
	enum status status;

	if (nuls.count * NUL_SHARE > size || nuls.utf16) {
		status = error_set(ERR_DATA, "'%s': a binary file, not text: NUL at byte %zu (%zu in its first %zu bytes)", path,
				   nuls.first, nuls.count, size);
		if (nuls.utf16)
			error_hint(UTF16_HINT);
		else
			error_hint("leave it out, or extract its text first (a tar archive must be unpacked)");
		return status;
	}
	/* The sample may end within a character. */
	int64_t invalid = utf8_count_invalid(text, size);
	if (invalid > 3 && (size_t)invalid * INVALID_SHARE > size) {
		size_t at = 0;
		for (uint32_t c = 0; at < size; at += utf8_decode(text + at, size - at, &c))
			if (c == UTF8_INVALID)
				break;
		status = error_set(ERR_DATA, "'%s': not UTF-8 text: %lld of its first %zu bytes, the first before byte %zu", path,
				   (long long)invalid, size, at);
		error_hint("convert it, for instance with `iconv -f GB18030 -t UTF-8` or `iconv -f LATIN1 -t "
			   "UTF-8`");
		return status;
	}
	return OK;
}

enum status input_refuse_markup(const char *path, const char *beginning, size_t size)
{
	static const char *const marks[] = {"<!doctype html", "<html"};
	size_t begin = 0, end = size;

	utf8_trim(beginning, &begin, &end);
	if (size >= 11 && memcmp(beginning, "filedesc://", 11) == 0) {
		enum status status = error_set(ERR_DATA, "'%s': an ARC file, WARC's predecessor, which is not read", path);
		error_hint("convert it with `warcio recompress`");
		return status;
	}
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		size_t length = strlen(marks[i]);
		if (end - begin < length || strncasecmp(beginning + begin, marks[i], length) != 0)
			continue;
		enum status status = error_set(ERR_DATA, "'%s': an HTML page, not text: it begins with '%s'", path, marks[i]);
		error_hint("extract its text first, for instance with `lynx -dump` or trafilatura, or say "
			   "--input_form text");
		return status;
	}
	return OK;
}

enum input_form input_form_find(const char *beginning, size_t size)
{
	static const enum input_form inputs[] = {[RECORDS_WIKI_XML] = INPUT_WIKI_XML,
						 [RECORDS_JSON] = INPUT_JSON,
						 [RECORDS_CIRRUS] = INPUT_CIRRUS,
						 [RECORDS_WIKIEXTRACTOR] = INPUT_WIKIEXTRACTOR,
						 [RECORDS_WARC] = INPUT_WARC};
	enum record_form form;

	if (records_recognise(beginning, size, &form))
		return inputs[form];
	return gutenberg_recognise(beginning, size) ? INPUT_GUTENBERG : INPUT_TEXT;
}
