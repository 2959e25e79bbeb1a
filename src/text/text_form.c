/* Determines the form of a text from its beginning.
 *
 * - wrapped: of the lines that are followed by another line, at least half end within a sentence, and at least three in
 *   five reach three quarters of a common width. (Text wrapped by hand or machine gives nine in ten; a sentence or
 *   paragraph per line gives one or two.)
 * - sentences: fewer than 1.2 sentences per line.
 * - paragraphs: more, with blank lines.
 * - documents: more, without any blank lines.
 *
 * Taking a file of one sentence per line for paragraphs does little harm (a sentence splits into itself), but the reverse
 * makes "sentences" of whole paragraphs: hence 1.2 and not 2. Blank lines after every single line say little by
 * themselves: in one of many small files (8 or more) they separate the paragraphs of one document, otherwise documents.
 * The same goes for lines of several sentences without any blank lines.
 */
#include "text/text_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/sentences.h"
#include "text/utf8.h"

#define SENTENCES_A_LINE 1.2
#define MANY_FILES 8
#define NARROWEST 40 /* in columns; text with narrower lines is lists or verse */
#define WIDEST 250

const char *const text_form_names[] = {"auto",     "sentences", "paragraphs",    "wrapped", "documents", "gutenberg",
				       "wiki_xml", "cirrus",    "wikiextractor", "json",    "warc",      NULL};

struct line {
	int32_t columns; /* an East Asian character takes two */
	bool ends_sentence;
	bool inner; /* followed by a line of the same block */
};

struct survey {
	struct line *lines;
	int64_t count, capacity;
	int64_t blocks; /* groups of lines with no blank line between them */
	int64_t sentences;
	bool lines_only; /* do not count sentences */
};

static bool is_wide(uint32_t c)
{
	return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
	       (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
	       (c >= 0x20000 && c <= 0x3FFFF);
}

static enum status count_sentence(void *context, size_t begin, size_t end)
{
	struct survey *survey = context;
	(void)begin;
	(void)end;
	survey->sentences++;
	return OK;
}

static bool ends_sentence(const char *text, size_t size)
{
	uint32_t c = 0;
	while (size > 0) {
		size -= utf8_decode_last(text, size, &c);
		/* Skip closing quotes and brackets. */
		if (c != '"' && c != '\'' && c != ')' && c != ']' && c != 0x2019 && c != 0x201D && c != 0x300D && c != 0xFF09)
			break;
	}
	return c == '.' || c == '!' || c == '?' || c == ':' || c == 0x2026 || c == 0x3002 || c == 0xFF01 || c == 0xFF1F ||
	       c == 0xFF1A || c == 0xFF1B || c == 0x0964 || c == 0x061F || c == 0x06D4;
}

static enum status survey_line(struct survey *survey, const char *text, size_t size)
{
	struct line line = {.ends_sentence = ends_sentence(text, size)};

	for (size_t at = 0; at < size;) {
		uint32_t c;
		at += utf8_decode(text + at, size - at, &c);
		line.columns += is_wide(c) ? 2 : 1;
	}
	TRY(memory_grow(&survey->lines, &survey->capacity, survey->count + 1, sizeof line, "lines of a text's beginning"));
	survey->lines[survey->count++] = line;
	return survey->lines_only ? OK : sentences_split(text, size, count_sentence, survey);
}

static enum status survey_text(struct survey *survey, const char *text, size_t size, bool whole)
{
	bool in_block = false;

	for (size_t at = 0; at < size;) {
		size_t end = at;
		while (end < size && text[end] != '\n')
			end++;
		/* The last line may be cut off; it counts only if there is no other. */
		if (end == size && !whole && survey->count > 0)
			break;
		size_t first = at, last = end;
		utf8_trim(text, &first, &last);
		at = end + 1;
		if (first == last) {
			in_block = false;
			continue;
		}
		if (in_block)
			survey->lines[survey->count - 1].inner = true;
		else
			survey->blocks++;
		in_block = true;
		TRY(survey_line(survey, text + first, last - first));
	}
	return OK;
}

static int compare_columns(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
	return (x > y) - (x < y);
}

/* Finds the column at which the text is wrapped; 0 if it is not. */
static enum status find_wrap_column(const struct survey *survey, int32_t *out)
{
	int32_t *columns;
	int64_t inner = 0, reaching = 0, open = 0;

	*out = 0;
	TRY(memory_new(&columns, survey->count, sizeof *columns, "line widths"));
	for (int64_t i = 0; i < survey->count; i++)
		if (survey->lines[i].inner)
			columns[inner++] = survey->lines[i].columns;
	if (inner >= 2 && inner * 3 >= survey->count) {
		/* Not the widest line, which may be an exception (an address, a table). */
		qsort(columns, (size_t)inner, sizeof *columns, compare_columns);
		int32_t width = columns[(inner - 1) * 95 / 100];
		for (int64_t i = 0; i < survey->count; i++) {
			const struct line *line = &survey->lines[i];
			reaching += line->inner && line->columns * 4 >= width * 3;
			open += line->inner && !line->ends_sentence;
		}
		if (width >= NARROWEST && width <= WIDEST && reaching * 5 >= inner * 3 && open * 2 >= inner)
			*out = width;
	}
	free(columns);
	return OK;
}

static const char *plural(int64_t count)
{
	return count == 1 ? "" : "s";
}

enum status text_form_detect(const char *text, size_t size, bool whole, int64_t file_count, enum text_form *out,
			     char reason[TEXT_FORM_REASON_BYTES])
{
	struct survey survey = {0};
	int32_t wrap = 0;
	enum status status;

	*out = TEXT_FORM_SENTENCES;
	snprintf(reason, TEXT_FORM_REASON_BYTES, "no text");
	TRY_GOTO(survey_text(&survey, text, size, whole), done);
	if (survey.count == 0)
		goto done;
	TRY_GOTO(find_wrap_column(&survey, &wrap), done);

	double rate = (double)survey.sentences / (double)survey.count;
	long long gaps = survey.blocks - 1;
	bool small_of_many = whole && file_count >= MANY_FILES, apart = survey.blocks == survey.count;
	char measured[80];
	snprintf(measured, sizeof measured, "%.1f sentences per line, %lld gap%s of blank lines", rate, gaps, plural(gaps));
	if (wrap) {
		*out = TEXT_FORM_WRAPPED;
		snprintf(reason, TEXT_FORM_REASON_BYTES, "lines are broken within sentences near column %d", (int)wrap);
	} else if (survey.count == 1) {
		*out = TEXT_FORM_DOCUMENTS;
		snprintf(reason, TEXT_FORM_REASON_BYTES, "a single line%s", whole ? "" : " of more than a megabyte");
	} else if (apart && small_of_many) {
		*out = TEXT_FORM_WRAPPED;
		snprintf(reason, TEXT_FORM_REASON_BYTES, "%s, one after each line; one of many small files", measured);
	} else if (rate < SENTENCES_A_LINE) {
		*out = TEXT_FORM_SENTENCES;
		snprintf(reason, TEXT_FORM_REASON_BYTES, "%s", measured);
	} else if (gaps > 0 || small_of_many) {
		*out = TEXT_FORM_PARAGRAPHS;
		snprintf(reason, TEXT_FORM_REASON_BYTES, "%s%s", measured, gaps > 0 ? "" : ", one of many small files");
	} else {
		*out = TEXT_FORM_DOCUMENTS;
		snprintf(reason, TEXT_FORM_REASON_BYTES, "%s", measured);
	}
done:
	free(survey.lines);
	return status;
}

enum status text_is_wrapped(const char *text, size_t size, bool *out)
{
	struct survey survey = {.lines_only = true};
	int32_t column = 0;

	enum status status = survey_text(&survey, text, size, true);
	if (status == OK && survey.count > 2)
		status = find_wrap_column(&survey, &column);
	*out = column > 0;
	free(survey.lines);
	return status;
}
