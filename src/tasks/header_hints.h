/* Which names show that the first row of a table is its header: those that the user gave, those that training recorded, and the
 * usual ones. */
#ifndef TASKS_HEADER_HINTS_H
#define TASKS_HEADER_HINTS_H

#include "tasks/examples.h"

/* Zero-initialize; release when the table has been read. */
struct header_hints {
	const char **given; /* ends with NULL */
	/* Private from here. */
	int64_t count, capacity;
	struct string_store strings;
};

/* Sets the names in `out`. `given`, `trained`, and `more` (which may be NULL) have names or numbers, each one or several between
 * commas. If all that are given are numbers, the rows of a table with tabs may have more fields than there are columns, as in STS
 * benchmark's files (out->least_fields). */
MUST_USE enum status header_hints_find(struct header_hints *hints, const struct column_choice *given,
				       const struct column_choice *trained, const char *more, const char *const *usual,
				       struct table_options *out);
void header_hints_release(struct header_hints *hints);
/* Appends what may be in doubt: what a first row with a usual name was taken for, and rows with more fields than columns. */
void header_hints_describe(const struct table *table, struct buffer *out);

#endif
