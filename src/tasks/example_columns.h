/* Which columns of a table hold what. Part of tasks/examples.h. */
#ifndef TASKS_EXAMPLE_COLUMNS_H
#define TASKS_EXAMPLE_COLUMNS_H

#include "tasks/examples.h"

/* Indices of columns; -1: there is none. */
struct example_columns {
	int64_t text, pair, label, id;
	int64_t filter;                 /* only rows with this value there are part of the task */
	const char *only;               /* the value; borrowed from a constant */
	bool filters_labels;            /* other rows are part of the task, but without their labels */
	int64_t choice_list;            /* a list of choices in one column */
	int64_t *choices, choice_count; /* or a column for each; to be freed */
	int64_t *flags, flag_count;     /* for several labels: a column of 0 and 1 for each label; to be freed */
};

/* Finds them, in this order: by options; by their names in the training set; by the published layout; as in the previous file
 * (`before`, NULL for the first); by names that files of that kind commonly use; without a header, by the contents of two
 * columns. If none of these decides, the error lists the columns. */
MUST_USE enum status example_columns_find(struct example_columns *out, const struct table *table,
					  const struct example_options *options, const struct column_choice *before);

/* The columns that files of a published task have, in the place of those that are still -1. */
void example_columns_of_layout(const struct table *table, const struct layout *layout, struct example_columns *columns);

#endif
