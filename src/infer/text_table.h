/* Files whose texts are not lines: tables (TSV, CSV), of which a column holds the texts, and lists of JSON objects, which are
 * refused. */
#ifndef INFER_TEXT_TABLE_H
#define INFER_TEXT_TABLE_H

#include "formats/table.h"
#include "infer/text_chunk.h"

/* A file that is read as a table; it is the `form` of the file's chunks. */
struct text_table {
	struct table form;      /* without rows */
	int64_t text, pair, id; /* columns; pair, id -1: none */
	struct text_table *next;
};

/* For line_stream_settings.begin_file: a file that is not JSON lines is a table if the settings name a column. If they do not,
 * one that looks like a table is read line by line, with a warning. `list` keeps the tables of all files. */
MUST_USE enum status text_table_find(struct text_table **list, const struct line_chunk *chunk,
				     const struct text_settings *settings, const void **out);
/* Reads the rows of a chunk. */
MUST_USE enum status text_table_read(struct table *out, const struct line_chunk *chunk, const struct text_settings *settings);
void text_tables_free(struct text_table *list);

#endif
