/* Copies strings into large blocks. */
#include "base/string_store.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define BLOCK_BYTES ((size_t)64 << 10)
/* Each time that so many bytes have come together, it is looked whether there is room for as many more. */
#define LOOK_BYTES ((size_t)8 << 20)

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
		size_t looked = store->bytes / LOOK_BYTES, looks = (store->bytes + room) / LOOK_BYTES;
		block = looks == looked || memory_has_room((looks - looked) * LOOK_BYTES) ? malloc(sizeof *block + room) : NULL;
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
