/* An open-addressing hash table of strings and counts. */
#include "text/vocabulary/count_table.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

enum status count_table_create(struct count_table *table, int64_t slot_count)
{
	*table = (struct count_table){.slot_count = slot_count};
	return memory_new(&table->slots, slot_count, sizeof *table->slots, "word counts");
}

void count_table_release(struct count_table *table)
{
	free(table->slots);
	free(table->text);
	*table = (struct count_table){0};
}

void count_table_clear(struct count_table *table)
{
	memset(table->slots, 0, (size_t)table->slot_count * sizeof *table->slots);
	table->used = 0;
	table->text_size = 0;
}

bool count_table_is_full(const struct count_table *table)
{
	return table->used * 8 >= table->slot_count * 5;
}

enum status count_table_double(struct count_table *table)
{
	struct count_slot *slots;
	int64_t slot_count = table->slot_count * 2;

	TRY(memory_new(&slots, slot_count, sizeof *slots, "word counts"));
	for (int64_t i = 0; i < table->slot_count; i++) {
		const struct count_slot *slot = &table->slots[i];
		if (slot->count == 0)
			continue;
		uint64_t mask = (uint64_t)slot_count - 1, k = slot->hash & mask;
		while (slots[k].count)
			k = (k + 1) & mask;
		slots[k] = *slot;
	}
	free(table->slots);
	table->slots = slots;
	table->slot_count = slot_count;
	return OK;
}

/* The slot of a string, or the free slot where it belongs. */
static struct count_slot *find(const struct count_table *table, uint64_t hash, const char *string, size_t size)
{
	uint64_t mask = (uint64_t)table->slot_count - 1;
	for (uint64_t i = hash & mask;; i = (i + 1) & mask) {
		struct count_slot *slot = &table->slots[i];
		if (slot->count == 0 || (slot->hash == hash && count_slot_size(slot) == size &&
					 memcmp(count_table_string(table, slot), string, size) == 0))
			return slot;
	}
}

enum status count_table_add(struct count_table *table, uint64_t hash, const char *string, size_t size, int64_t count)
{
	BUG_IF(size > COUNT_TABLE_LONGEST);
	struct count_slot *slot = find(table, hash, string, size);
	if (slot->count == 0) {
		TRY(memory_grow(&table->text, &table->text_capacity, table->text_size + (int64_t)size, 1, "words"));
		memcpy(table->text + table->text_size, string, size);
		slot->hash = hash;
		slot->place = (uint64_t)table->text_size << 16 | size;
		table->text_size += (int64_t)size;
		table->used++;
	}
	slot->count += count;
	return OK;
}
