/* Adds rows, fields, and columns to a table while its text is being read. */
#include "base/memory.h"
#include "formats/table/table_internal.h"

enum status table_add_row(struct table *table, int64_t line)
{
	TRY(memory_grow(&table->rows, &table->row_capacity, table->row_count + 1, sizeof *table->rows, "rows of a table"));
	table->rows[table->row_count++] = (struct table_row){.line = line, .first_field = table->field_total};
	return OK;
}

enum status table_add_field(struct table *table, const char *text, int32_t column)
{
	int64_t total = table->field_total;
	TRY(memory_grow(&table->fields, &table->field_capacity, total + 1, sizeof *table->fields, "fields of a table"));
	if (table->form != TABLE_DELIMITED) {
		TRY(memory_grow(&table->field_columns, &table->field_column_capacity, total + 1, sizeof *table->field_columns,
				"fields of a table"));
		TRY(memory_grow(&table->field_kinds, &table->field_kind_capacity, total + 1, sizeof *table->field_kinds,
				"fields of a table"));
		table->field_columns[total] = column;
		table->field_kinds[total] = FIELD_TEXT;
	}
	table->fields[total] = text;
	table->rows[table->row_count - 1].field_count++;
	table->field_total++;
	return OK;
}

enum status table_add_column(struct table *table, const char *name)
{
	TRY(memory_grow(&table->columns, &table->column_capacity, table->column_count + 1, sizeof *table->columns,
			"columns of a table"));
	table->columns[table->column_count++] = name;
	return OK;
}
