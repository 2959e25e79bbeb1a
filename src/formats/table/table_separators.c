/* Separators of more than one character, which some published tables use: "|||" with spaces around it (CFIMDB), and two tabs
 * (utterance rewriting). They are replaced by tabs before the table is read. */
#include <string.h>
#include "formats/table/table_internal.h"

/* Statistics about the separators in the lines of a text. */
struct separator_survey {
	int64_t lines, with_bars;
	int64_t double_tabs, even_tabs, odd_tabs; /* runs of tabs: of length 2; even, 4 or more; odd */
};

static struct separator_survey look(const char *text, size_t size)
{
	struct separator_survey survey = {0};
	for (size_t at = 0; at < size;) {
		const char *newline = memchr(text + at, '\n', size - at);
		size_t end = newline ? (size_t)(newline - text) : size;
		survey.lines += end > at && text[at] != '\r';
		survey.with_bars += memmem(text + at, end - at, "|||", 3) != NULL;
		for (size_t i = at; i < end;) {
			size_t run = 0;
			while (i + run < end && text[i + run] == '\t')
				run++;
			survey.double_tabs += run == 2;
			survey.even_tabs += run > 2 && run % 2 == 0;
			survey.odd_tabs += run % 2;
			i += run + 1;
		}
		at = end + 1;
	}
	return survey;
}

void table_replace_separator(struct table *table)
{
	struct buffer *text = &table->text;
	const char *separator = table->separator;
	size_t size = strlen(separator), to = 0;
	if (text->size == 0)
		return;
	for (size_t from = 0; from < text->size;) {
		if (text->size - from < size || memcmp(text->data + from, separator, size) != 0) {
			text->data[to++] = text->data[from++];
			continue;
		}
		while (to > 0 && text->data[to - 1] == ' ')
			to--;
		text->data[to++] = '\t';
		for (from += size; from < text->size && text->data[from] == ' ';)
			from++;
	}
	text->size = to;
	text->data[to] = '\0';
}

void table_unify_separators(struct table *table)
{
	struct buffer *text = &table->text;
	if (text->size == 0)
		return;
	struct separator_survey survey = look(text->data, text->size);
	int64_t tabs = survey.double_tabs + survey.even_tabs + survey.odd_tabs;
	if (tabs == 0 && survey.with_bars > 0 && survey.with_bars * 10 >= survey.lines * 9)
		table->separator = "|||";
	/* A column that is always empty would leave single tabs elsewhere; an empty field between two double tabs makes four
	 * tabs. */
	if (survey.double_tabs >= survey.lines && survey.double_tabs > 0 && survey.odd_tabs == 0)
		table->separator = "\t\t";
	if (table->separator)
		table_replace_separator(table);
}
