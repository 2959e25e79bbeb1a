/* Open addressing; at most half full. */
#include "base/string_index.h"

#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/memory.h"

struct string_index_entry {
	const char *key; /* NULL: free */
	int64_t value;
};

/* The entry with the key, or the free one where it belongs. The capacity is a power of two. */
static struct string_index_entry *place_of(struct string_index_entry *entries, int64_t capacity, const char *key)
{
	uint64_t mask = (uint64_t)capacity - 1, at = hash64(key, strlen(key)) & mask;
	while (entries[at].key && strcmp(entries[at].key, key) != 0)
		at = (at + 1) & mask;
	return &entries[at];
}

int64_t string_index_find(const struct string_index *index, const char *key)
{
	if (index->count == 0)
		return -1;
	const struct string_index_entry *entry = place_of(index->entries, index->capacity, key);
	return entry->key ? entry->value : -1;
}

static enum status grow(struct string_index *index)
{
	struct string_index_entry *entries;
	int64_t capacity = index->capacity ? index->capacity * 2 : 64;
	TRY(memory_new(&entries, capacity, sizeof *entries, "index of strings"));
	for (int64_t i = 0; i < index->capacity; i++)
		if (index->entries[i].key)
			*place_of(entries, capacity, index->entries[i].key) = index->entries[i];
	free(index->entries);
	index->entries = entries;
	index->capacity = capacity;
	return OK;
}

enum status string_index_add(struct string_index *index, const char *key, int64_t value, int64_t *out_value)
{
	BUG_IF(value < 0);
	if ((index->count + 1) * 2 > index->capacity)
		TRY(grow(index));
	struct string_index_entry *entry = place_of(index->entries, index->capacity, key);
	if (!entry->key) {
		*entry = (struct string_index_entry){key, value};
		index->count++;
	}
	*out_value = entry->value;
	return OK;
}

void string_index_release(struct string_index *index)
{
	free(index->entries);
	*index = (struct string_index){0};
}
