#include "text/word_counts.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/memory.h"

#define PARTS 64              /* of the shared table; a power of two */
#define LOCAL_SLOTS (1 << 16) /* 1.5 MiB: within a second-level cache */
#define LOCAL_TEXT_BYTES (1 << 20)

/* Open addressing, linear probing, at most 5/8 full; the words' bytes lie one after the other in `text`. */
struct slot {
	uint64_t hash;
	int64_t count;  /* 0: free */
	uint64_t place; /* offset of the word in `text` << 13 | its bytes */
};
#define PLACE_BITS 13
_Static_assert(WORD_COUNTS_LONGEST < 1 << PLACE_BITS, "a word's size fits its slot");

struct table {
	struct slot *slots;
	int64_t slot_count, used; /* slot_count: a power of two */
	char *text;
	int64_t text_size, text_capacity;
};

struct word_counts {
	struct part {
		pthread_mutex_t lock;
		struct table table;
	} parts[PARTS];
};

struct word_counter {
	struct word_counts *counts;
	struct table table;
};

static enum status table_create(struct table *table, int64_t slot_count)
{
	table->slot_count = slot_count;
	return memory_new(&table->slots, slot_count, sizeof *table->slots, "word counts");
}

static void table_release(struct table *table)
{
	free(table->slots);
	free(table->text);
}

/* The slot of a word, or the free one where it belongs. The top bits of the hash choose a part, the low ones
 * here. */
static struct slot *table_find(const struct table *table, uint64_t hash, const char *word, size_t size)
{
	uint64_t mask = (uint64_t)table->slot_count - 1;
	for (uint64_t i = hash & mask;; i = (i + 1) & mask) {
		struct slot *slot = &table->slots[i];
		if (slot->count == 0)
			return slot;
		if (slot->hash == hash && (slot->place & ((1 << PLACE_BITS) - 1)) == size &&
		    memcmp(table->text + (slot->place >> PLACE_BITS), word, size) == 0)
			return slot;
	}
}

static bool table_is_full(const struct table *table)
{
	return table->used * 8 >= table->slot_count * 5;
}

static enum status table_double(struct table *table)
{
	struct table larger = *table;

	TRY(table_create(&larger, table->slot_count * 2));
	for (int64_t i = 0; i < table->slot_count; i++) {
		const struct slot *slot = &table->slots[i];
		if (slot->count == 0)
			continue;
		uint64_t mask = (uint64_t)larger.slot_count - 1, k = slot->hash & mask;
		while (larger.slots[k].count)
			k = (k + 1) & mask;
		larger.slots[k] = *slot;
	}
	free(table->slots);
	*table = larger;
	return OK;
}

static enum status table_add(struct table *table, uint64_t hash, const char *word, size_t size, int64_t count)
{
	struct slot *slot = table_find(table, hash, word, size);
	if (slot->count == 0) {
		TRY(memory_grow(&table->text, &table->text_capacity, table->text_size + (int64_t)size, 1,
		                "words"));
		memcpy(table->text + table->text_size, word, size);
		slot->hash = hash;
		slot->place = (uint64_t)table->text_size << PLACE_BITS | size;
		table->text_size += (int64_t)size;
		table->used++;
	}
	slot->count += count;
	return OK;
}

enum status word_counts_create(struct word_counts **out)
{
	struct word_counts *counts;

	*out = NULL;
	TRY(memory_new(&counts, 1, sizeof *counts, "word counts"));
	for (int i = 0; i < PARTS; i++) {
		pthread_mutex_init(&counts->parts[i].lock, NULL);
		if (table_create(&counts->parts[i].table, 256) != OK) {
			word_counts_free(counts);
			return error_last()->status;
		}
	}
	*out = counts;
	return OK;
}

void word_counts_free(struct word_counts *counts)
{
	if (!counts)
		return;
	for (int i = 0; i < PARTS; i++) {
		pthread_mutex_destroy(&counts->parts[i].lock);
		table_release(&counts->parts[i].table);
	}
	free(counts);
}

enum status word_counter_create(struct word_counter **out, struct word_counts *counts)
{
	struct word_counter *counter;

	*out = NULL;
	TRY(memory_new(&counter, 1, sizeof *counter, "word counts"));
	counter->counts = counts;
	enum status status = table_create(&counter->table, LOCAL_SLOTS);
	if (status != OK) {
		word_counter_free(counter);
		return status;
	}
	*out = counter;
	return OK;
}

void word_counter_free(struct word_counter *counter)
{
	if (!counter)
		return;
	table_release(&counter->table);
	free(counter);
}

enum status word_counter_add(struct word_counter *counter, const char *word, size_t size)
{
	BUG_IF(size == 0 || size > WORD_COUNTS_LONGEST);
	if (table_is_full(&counter->table) || counter->table.text_size > LOCAL_TEXT_BYTES)
		TRY(word_counter_flush(counter));
	return table_add(&counter->table, hash64(word, size), word, size, 1);
}

enum status word_counter_flush(struct word_counter *counter)
{
	struct table *local = &counter->table;
	enum status status = OK;

	for (int64_t i = 0; i < local->slot_count && status == OK; i++) {
		struct slot *slot = &local->slots[i];
		if (slot->count == 0)
			continue;
		struct part *part = &counter->counts->parts[slot->hash / (UINT64_MAX / PARTS + 1)];
		pthread_mutex_lock(&part->lock);
		if (table_is_full(&part->table))
			status = table_double(&part->table);
		if (status == OK)
			status =
			        table_add(&part->table, slot->hash, local->text + (slot->place >> PLACE_BITS),
			                  slot->place & ((1 << PLACE_BITS) - 1), slot->count);
		pthread_mutex_unlock(&part->lock);
	}
	memset(local->slots, 0, (size_t)local->slot_count * sizeof *local->slots);
	local->used = 0;
	local->text_size = 0;
	return status;
}

enum status word_counts_visit(const struct word_counts *counts,
                              enum status (*visit)(void *context, const char *word, size_t size,
                                                   int64_t count),
                              void *context)
{
	for (int k = 0; k < PARTS; k++) {
		const struct table *table = &counts->parts[k].table;
		for (int64_t i = 0; i < table->slot_count; i++) {
			const struct slot *slot = &table->slots[i];
			if (slot->count)
				TRY(visit(context, table->text + (slot->place >> PLACE_BITS),
				          slot->place & ((1 << PLACE_BITS) - 1), slot->count));
		}
	}
	return OK;
}

int64_t word_counts_distinct(const struct word_counts *counts)
{
	int64_t distinct = 0;
	for (int k = 0; k < PARTS; k++)
		distinct += counts->parts[k].table.used;
	return distinct;
}
