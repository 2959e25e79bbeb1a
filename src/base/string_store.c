/* Copies strings into large blocks. */
#include "base/string_store.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)64 << 10)

struct string_block {
	struct string_block *previous;
	size_t size, used;
	char bytes[];
};

enum status string_store_copy(struct string_store *store, const char *bytes, size_t size, const char **out)
{
	struct string_block *block = store->last;

	*out = NULL;
	if (!block || block->size - block->used <= size) {
		if (size > SIZE_MAX / 2)
			return error_set(ERR_RESOURCE, "a string of %zu bytes is too long", size);
		size_t room = size + 1 > BLOCK_BYTES ? size + 1 : BLOCK_BYTES;
		block = malloc(sizeof *block + room);
		if (!block)
			return error_set(ERR_RESOURCE, "not enough memory for %zu bytes of text", room);
		*block = (struct string_block){.previous = store->last, .size = room};
		store->last = block;
	}
	char *copy = block->bytes + block->used;
	if (size > 0)
		memcpy(copy, bytes, size);
	copy[size] = '\0';
	block->used += size + 1;
	store->bytes += size + 1;
	*out = copy;
	return OK;
}

void string_store_release(struct string_store *store)
{
	while (store->last) {
		struct string_block *previous = store->last->previous;
		free(store->last);
		store->last = previous;
	}
	*store = (struct string_store){0};
}
