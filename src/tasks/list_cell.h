/* Lists in cells of tables, as programs print them: JSON ["a", "b"]; Python and pandas ['a', "it's"], ('a',), {'a', 'b'}, [1, 0],
 * [True]; NumPy ['a' 'b'], [1. 0.], array(['a'], dtype=object), [np.str_('a')]; R c("a", "b"); and plain [a, b] and {a, b}. */
#ifndef TASKS_LIST_CELL_H
#define TASKS_LIST_CELL_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/string_store.h"

enum list_cell_kind {
	CELL_NO_LIST,
	CELL_LIST,       /* whose items are quoted or numbers, or which is empty: surely a list */
	CELL_PLAIN_LIST, /* [a, b] or {a, b}, which may also be a name in brackets */
	CELL_BROKEN_LIST /* it begins like a list, with a quote or number, but is not one or was cut */
};

struct list_cell {
	const char **items;
	int64_t count, capacity;
	bool missing; /* an item is what programs print where there is no value: nan, None, null, <NA>; not quoted */
};

/* The items of a list, with strings in `store`; to be released whatever the kind. ERR_RESOURCE: no memory. */
MUST_USE enum status list_cell_read(struct list_cell *out, const char *cell, struct string_store *store,
				    enum list_cell_kind *out_kind);
void list_cell_release(struct list_cell *list);
/* What the cell is; CELL_NO_LIST if there is no memory. */
enum list_cell_kind list_cell_kind(const char *cell);

#endif
