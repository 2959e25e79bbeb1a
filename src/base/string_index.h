/* A hash table from strings to numbers. Its keys are borrowed. */
#ifndef BASE_STRING_INDEX_H
#define BASE_STRING_INDEX_H

#include <stdint.h>
#include "base/error.h"

/* Zero-initialize; release when done. */
struct string_index {
	struct string_index_entry *entries;
	int64_t capacity, count;
};

/* The value of `key`, or -1. */
int64_t string_index_find(const struct string_index *index, const char *key);
/* Adds `key`, which must outlive the index, with `value` (>= 0) unless it is already there. *out_value is the value it now has:
 * one other than that given means that the key was already there. */
MUST_USE enum status string_index_add(struct string_index *index, const char *key, int64_t value, int64_t *out_value);
void string_index_release(struct string_index *index);

#endif
