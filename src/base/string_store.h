/* Many small strings that are released together: copies packed into large blocks, which never move. */
#ifndef BASE_STRING_STORE_H
#define BASE_STRING_STORE_H

#include <stddef.h>
#include "base/error.h"

/* Zero-initialize; release when done. */
struct string_store {
	struct string_block *last;
	size_t bytes; /* of all copies, including their NULs */
};

/* *out: a copy of `size` bytes followed by a NUL, valid until the store is released. */
MUST_USE enum status string_store_copy(struct string_store *store, const char *bytes, size_t size, const char **out);
void string_store_release(struct string_store *store);

#endif
