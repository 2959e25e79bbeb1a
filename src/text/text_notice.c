/* Notices tables and headings in files that are read as running text. */
#include "text/text_notice.h"

#include <stdio.h>
#include <string.h>
#include "formats/table.h"
#include "text/utf8.h"

#define TABLE_BYTES ((size_t)64 << 10) /* of the beginning are tried as a table */
#define TABLE_ROWS 3                   /* with the header; fewer are not enough to tell */
#define HEADINGS 2
#define NAMES_SHOWN (TEXT_TABLE_BYTES - 64)

/* Malformed rows (the sample may end within a quoted field) are skipped. */
enum status text_find_table(const char *path, const char *beginning, size_t size, char out[TEXT_TABLE_BYTES])
{
	static const char *const names_of_columns[] = {"text", "sentence", "content", "title", "label", "labels", "id", NULL};
	struct bad_records bad = {.skip = true};
	struct table table;
	struct buffer names = {0};
	out[0] = '\0';
	if (size > TABLE_BYTES) {
		const char *last = memrchr(beginning, '\n', TABLE_BYTES);
		size = last ? (size_t)(last - beginning) + 1 : TABLE_BYTES;
	}
	enum status status = table_read_piece(&table, &(struct table_piece){.name = path, .text = beginning, .size = size},
					      &(struct table_options){.bad = &bad, .known_names = names_of_columns});
	if (status != OK) /* not a table, then */
		return status == ERR_RESOURCE ? status : OK;
	bool is_table = table.form == TABLE_DELIMITED && table.delimiter && table.column_count > 1 &&
			table.row_count + table.has_header >= TABLE_ROWS && bad.count * 10 <= table.row_count;
	const char *form = table.separator ? "fields between separators" : table.delimiter == '\t' ? "TSV" : "CSV";
	if (is_table) {
		table_list_columns(&table, &names);
		status = buffer_status(&names);
		snprintf(out, TEXT_TABLE_BYTES, "%s, columns %.*s%s", form, NAMES_SHOWN, buffer_string(&names),
			 names.size > NAMES_SHOWN ? "..." : "");
	}
	buffer_release(&names);
	table_release(&table);
	return status;
}

/* Reports headings such as "= Title =" or "= = Section = =" on lines of their own. */
static void notice_headings(const char *path, const char *beginning, size_t size, char out[TEXT_NOTICE_BYTES])
{
	int count = 0;
	char first[80] = "";
	for (size_t at = 0; at < size && count < HEADINGS;) {
		const char *newline = memchr(beginning + at, '\n', size - at);
		if (!newline)
			break;
		size_t begin = at, end = (size_t)(newline - beginning);
		at = end + 1;
		utf8_trim(beginning, &begin, &end);
		size_t length = end - begin;
		bool heading = length > 4 && memcmp(beginning + begin, "= ", 2) == 0 && memcmp(beginning + end - 2, " =", 2) == 0;
		if (heading && count++ == 0)
			snprintf(first, sizeof first, "%.*s", (int)(length < 79 ? length : 79), beginning + begin);
	}
	if (count == HEADINGS)
		snprintf(out, TEXT_NOTICE_BYTES,
			 "'%.200s' has headings between equals signs (\"%s\"), as WikiText does: they are read as sentences of "
			 "the text. To leave them out, remove these lines first, for instance with grep -v '^ *= .* = *$'",
			 path, first);
}

enum status text_notice(const char *path, const char *beginning, size_t size, char out[TEXT_NOTICE_BYTES])
{
	char table[TEXT_TABLE_BYTES];
	out[0] = '\0';
	TRY(text_find_table(path, beginning, size, table));
	if (table[0])
		snprintf(out, TEXT_NOTICE_BYTES,
			 "'%.200s' looks like a table (%s): its lines are read as text unchanged, with all columns and "
			 "separators. If that is not what you want, write the text column to a separate file, or give JSON "
			 "lines and --text_key",
			 path, table);
	else
		notice_headings(path, beginning, size, out);
	return OK;
}
