/* Recognizes files that are tables, and finds their column of texts. */
#include "infer/text_table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "formats/records.h"
#include "text/text_notice.h"

/* Names, but not numbers, of columns tell that a table has a header. */
static void add_name(const char **names, const char *name)
{
	while (*names)
		names++;
	if (name && !isdigit((unsigned char)name[0]))
		*names = name;
}

enum status text_table_read(struct table *out, const struct line_chunk *chunk, const struct text_settings *settings)
{
	const struct text_table *table = chunk->form;
	const char *names[3] = {NULL};
	struct bad_records bad = {.skip = false};
	*out = (struct table){0};
	TRY(line_chunk_check(chunk));
	add_name(names, settings->text_key);
	add_name(names, settings->pair_key);
	enum status status = table_read_piece(out,
					      &(struct table_piece){.name = chunk->path,
								    .text = chunk->text.data,
								    .size = chunk->text.size,
								    .first_line = chunk->first_line,
								    .like = chunk->begins_file ? NULL : &table->form},
					      &(struct table_options){.bad = &bad, .given_names = names});
	if (status == ERR_DATA)
		error_hint("--text_column and --pair_column read '%s' as a table: correct the line, or leave them out and give "
			   "texts alone, one per line",
			   chunk->path);
	return status;
}

static enum status choose_columns(struct text_table *out, const struct text_settings *settings)
{
	const struct table *form = &out->form;
	out->pair = -1;
	if (form->column_count == 1 && !form->has_header)
		return error_hinted(
			error_set(ERR_USAGE, "'%s' holds neither JSON lines nor a table, so its texts have no names", form->name),
			"if each line is a text, leave out --text_column and --pair_column, or say --input text; a table "
			"begins with a line of column names, with a tab or a comma between them");
	TRY(table_choose_column(form, settings->text_key ? settings->text_key : "text", &out->text));
	if (settings->pair_key)
		TRY(table_choose_column(form, settings->pair_key, &out->pair));
	out->id = form->has_header ? table_find_column(form, "id") : -1;
	return OK;
}

static enum status open_table(struct text_table **list, const struct line_chunk *chunk, const struct text_settings *settings)
{
	struct text_table *table;
	struct table rows;
	TRY(text_table_read(&rows, chunk, settings));
	enum status status = memory_new(&table, 1, sizeof *table, "table");
	if (status == OK) {
		table->next = *list;
		*list = table;
		status = table_copy_form(&table->form, &rows);
	}
	table_release(&rows);
	return status == OK ? choose_columns(table, settings) : status;
}

/* Text may begin with a bracket, too. */
static enum status refuse_objects(const struct line_chunk *chunk)
{
	enum record_form form;
	if (!records_recognize(chunk->text.data, chunk->text.size, &form) || (form != RECORDS_JSON && form != RECORDS_CIRRUS))
		return OK;
	return error_hinted(
		error_set(ERR_USAGE, "'%s' holds JSON objects in a list or over several lines, which cannot be read line by line",
			  chunk->path),
		"write one object per line, for instance a list with `jq -c '.[]'`; or give --input text if its lines "
		"are texts as they stand");
}

/* Warns about lines that seem to be rows of a table. Pairs of texts look so, too. */
static enum status warn_of_table(const struct line_chunk *chunk, const struct text_settings *settings)
{
	char table[TEXT_TABLE_BYTES];
	const char *separator = settings->pair_separator;
	if (separator && memmem(chunk->text.data, chunk->lines[0].size, separator, strlen(separator)))
		return OK;
	TRY(text_find_table(chunk->path, chunk->text.data, chunk->text.size, table));
	if (table[0])
		log_warning("'%.200s' looks like a table (%s), but each of its lines is read as a text, with all columns "
			    "and separators: name the column of the text with --text_column, or give --input text if that "
			    "is what you want",
			    chunk->path, table);
	return OK;
}

enum status text_table_find(struct text_table **list, const struct line_chunk *chunk, const struct text_settings *settings,
			    const void **out)
{
	*out = NULL;
	if (settings->plain || chunk->json_lines)
		return OK;
	TRY(refuse_objects(chunk));
	if (!settings->text_key && !settings->pair_key)
		return chunk->done ? OK : warn_of_table(chunk, settings);
	TRY(open_table(list, chunk, settings));
	*out = *list;
	return OK;
}

void text_tables_free(struct text_table *list)
{
	for (struct text_table *next; list; list = next) {
		next = list->next;
		table_release(&list->form);
		free(list);
	}
}
