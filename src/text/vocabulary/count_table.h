/* A hash table from byte strings to counts, for use by one thread. */
#ifndef TEXT_VOCABULARY_COUNT_TABLE_H
#define TEXT_VOCABULARY_COUNT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

#define COUNT_TABLE_LONGEST 65535 /* most bytes of a string */

/* Open addressing with linear probing; the bytes of the strings are stored one after the other in `text`. */
struct count_slot {
	uint64_t hash;
	int64_t count;  /* 0: free */
	uint64_t place; /* offset of the string in `text` << 16 | its size */
};

/* Zero-initialized, it may be released; count_table_create() makes it usable. */
struct count_table {
	struct count_slot *slots; /* [slot_count], a power of two */
	int64_t slot_count, used;
	char *text;
	int64_t text_size, text_capacity;
};

MUST_USE enum status count_table_create(struct count_table *table, int64_t slot_count);
void count_table_release(struct count_table *table);
void count_table_clear(struct count_table *table); /* keeps its memory */
/* True if 5/8 of the slots are used: check before adding, and if so double or clear the table. */
bool count_table_is_full(const struct count_table *table);
MUST_USE enum status count_table_double(struct count_table *table);
/* `hash` is hash64() of the string. count >= 1. */
MUST_USE enum status count_table_add(struct count_table *table, uint64_t hash, const char *string, size_t size, int64_t count);

static inline const char *count_table_string(const struct count_table *table, const struct count_slot *slot)
{
	return table->text + (slot->place >> 16);
}

static inline size_t count_slot_size(const struct count_slot *slot)
{
	return slot->place & COUNT_TABLE_LONGEST;
}

#endif
