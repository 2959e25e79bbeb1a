/* Recognizes the format and encoding of a file by its first bytes. */
#include "text/input_form.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "base/log.h"
#include "formats/records.h"
#include "text/gutenberg.h"
#include "text/utf8.h"

#define NUL_SHARE 1000      /* a file with more than one NUL per this many bytes is binary */
#define INVALID_SHARE 10    /* a file with more than one invalid byte per this many is not UTF-8 */
#define INVALID_FEW 3       /* so many may occur anywhere */
#define LETTER_SHARE 1000   /* so may one per this many, even if it is a letter */
#define WARNING_SHARE 10000 /* warn of more than one invalid byte per this many */

const char *const input_form_names[] = {"auto", "text", "gutenberg", "wiki_xml", "cirrus", "wikiextractor", "json", "warc", NULL};

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
	return error_hinted(
		error_set(ERR_DATA, "'%s': not UTF-8 text: %zu of its first %zu bytes are NUL", path, nuls.count, size),
		UTF16_HINT);
}

/* The characters of a text that is said to be UTF-8. */
struct encoding_survey {
	int64_t valid, invalid; /* valid characters of several bytes; bytes that belong to no character */
	int64_t by_letters;     /* of those, single ones beside a letter of ASCII */
	int64_t controls;       /* of those, from 0x80 to 0x9F, which are characters in Windows' encodings only */
	size_t first;           /* offset of the first invalid byte */
};

static bool is_letter_at(const char *text, size_t size, size_t at)
{
	return at < size && isalpha((unsigned char)text[at]) && (unsigned char)text[at] < 0x80;
}

static struct encoding_survey survey_encoding(const char *text, size_t size)
{
	struct encoding_survey survey = {.first = size};
	size_t length;
	for (size_t at = 0; at < size; at += length) {
		uint32_t c;
		length = utf8_decode(text + at, size - at, &c);
		survey.valid += length > 1 && c != UTF8_INVALID;
		if (c != UTF8_INVALID || at + length == size) /* the sample may end within a character */
			continue;
		survey.first = survey.invalid ? survey.first : at;
		survey.invalid += (int64_t)length;
		survey.by_letters += length == 1 && (is_letter_at(text, size, at - 1) || is_letter_at(text, size, at + 1));
		survey.controls += length == 1 && (unsigned char)text[at] < 0xA0;
	}
	return survey;
}

/* Invalid bytes are allowed, as damage, unless they are many, or are letters: in German or French, one byte in a hundred is a
 * letter of Latin-1, and lies within a word. */
enum status input_check_characters(const char *path, const char *text, size_t size)
{
	const struct encoding_survey survey = survey_encoding(text, size);
	bool many = (size_t)survey.invalid * INVALID_SHARE > size;
	bool letters = (size_t)survey.invalid * LETTER_SHARE > size && survey.by_letters * 2 >= survey.invalid &&
		       survey.valid * 10 <= survey.invalid;
	if (survey.invalid <= INVALID_FEW || !(many || letters))
		return OK;
	enum status status = error_set(ERR_DATA, "'%s': not UTF-8 text: %lld of its first %zu bytes%s, the first at byte %zu",
				       path, (long long)survey.invalid, size,
				       many ? "" : ", most of them letters of another encoding", survey.first);
	if (many)
		error_hint("convert it, for instance with `iconv -f GB18030 -t UTF-8` or `iconv -f LATIN1 -t UTF-8`");
	else
		error_hint("convert it: iconv -f %s -t UTF-8 FILE > NEW_FILE (or from whichever encoding it has); if these bytes "
			   "are damage, `iconv -c -f UTF-8 -t UTF-8` leaves them out",
			   survey.controls > 0 ? "CP1252" : "LATIN1");
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
	return input_check_characters(path, text, size);
}

void input_warn_invalid(int64_t invalid, int64_t bytes)
{
	if (invalid > INVALID_FEW && invalid > bytes / WARNING_SHARE)
		log_warning(
			"%.2g %% of the bytes of the text are not UTF-8: if they are letters in another encoding, they are lost; "
			"convert the text first, for instance with `iconv -f LATIN1 -t UTF-8`",
			100 * (double)invalid / (double)bytes);
}

enum status input_refuse_markup(const char *path, const char *beginning, size_t size)
{
	static const char *const marks[] = {"<!doctype html", "<html"};
	size_t begin = 0, end = size;

	utf8_trim(beginning, &begin, &end);
	if (size >= 11 && memcmp(beginning, "filedesc://", 11) == 0)
		return error_hinted(error_set(ERR_DATA, "'%s': an ARC file, WARC's predecessor, which is not read", path),
				    "convert it with `warcio recompress`");
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		size_t length = strlen(marks[i]);
		if (end - begin < length || strncasecmp(beginning + begin, marks[i], length) != 0)
			continue;
		return error_hinted(error_set(ERR_DATA, "'%s': an HTML page, not text: it begins with '%s'", path, marks[i]),
				    "extract its text first, for instance with `lynx -dump` or trafilatura, or say "
				    "--input_form text");
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

	if (records_recognize(beginning, size, &form))
		return inputs[form];
	return gutenberg_recognize(beginning, size) ? INPUT_GUTENBERG : INPUT_TEXT;
}
