/* Which columns of a table hold what: part of tasks/examples.h. */
#ifndef TASKS_EXAMPLE_COLUMNS_H
#define TASKS_EXAMPLE_COLUMNS_H

#include "tasks/examples.h"

/* Indices of columns; -1: there is none. */
struct example_columns {
	int64_t text, pair, label, id, filter;
	int64_t choice_list;            /* a list of choices in one column */
	int64_t *choices, choice_count; /* or a column each; to be freed */
	int64_t *flags, flag_count;     /* of several labels: a column of 0 and 1 for each; to be freed */
};

/* Finds them: by options; by the names that training had; by the published layout; as in the file before (`before`, NULL if this
 * is the first); by the names that files of that kind use; without a header, by the contents of two columns. Where
 * that does not decide, the error lists the columns. */
MUST_USE enum status example_columns_find(struct example_columns *out, const struct table *table,
					  const struct example_options *options, const struct column_choice *before);

/* 0 or 1, false or true; returns false for anything else. */
bool example_flag(const char *field, bool *out);

#endif
