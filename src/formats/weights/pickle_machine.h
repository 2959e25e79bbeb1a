/* The internals of the pickle reader: its machine, shared by pickle.c (opcodes) and pickle_names.c (names and tensors). */
#ifndef FORMATS_WEIGHTS_PICKLE_MACHINE_H
#define FORMATS_WEIGHTS_PICKLE_MACHINE_H

#include <string.h>
#include "formats/weights/pickle.h"

/* A linked list of memory blocks, so that everything is released together. */
struct pickle_block {
	struct pickle_block *next;
	size_t used, capacity;
	_Alignas(16) unsigned char bytes[];
};

struct pickle_machine {
	const char *path;
	uint64_t base;
	const unsigned char *bytes;
	size_t size, at, opcode; /* `opcode`: offset of the one being run */
	struct pickle_block *blocks;
	struct pickle_value **stack;
	int64_t count, capacity;
	int64_t *marks;
	int64_t mark_count, mark_capacity;
	struct pickle_value **memo;
	int64_t memo_count, memo_capacity;
	struct pickle_value *root, *storages;
};

static inline bool pickle_text_is(const char *bytes, size_t size, const char *word)
{
	return strlen(word) == size && memcmp(bytes, word, size) == 0;
}

/* ERR_DATA with the file, the offset, and what is wrong there. */
MUST_USE enum status pickle_fail(const struct pickle_machine *machine, const char *format, ...) PRINTF_LIKE(2, 3);
/* Zeroed memory that lives as long as the pickle; *(void **)out points to it. */
MUST_USE enum status pickle_take(struct pickle_machine *machine, size_t size, void *out);
MUST_USE enum status pickle_new_value(struct pickle_machine *machine, enum pickle_kind kind, struct pickle_value **out);
MUST_USE enum status pickle_push(struct pickle_machine *machine, struct pickle_value *value);
MUST_USE enum status pickle_push_integer(struct pickle_machine *machine, enum pickle_kind kind, int64_t integer);
/* An empty tuple, list or dict, or None. */
MUST_USE enum status pickle_push_container(struct pickle_machine *machine, enum pickle_kind kind);
/* Pops the topmost `count` values; *out points to the first of them and is valid until the next push. */
MUST_USE enum status pickle_pop(struct pickle_machine *machine, int64_t count, struct pickle_value ***out);
/* Takes text from the input up to a line feed, which is consumed, too. */
MUST_USE enum status pickle_need_line(struct pickle_machine *machine, const unsigned char **out, size_t *out_size);

/* pickle_names.c: the opcodes that name a Python object or apply it. */
MUST_USE enum status pickle_run_global(struct pickle_machine *machine);
MUST_USE enum status pickle_run_stack_global(struct pickle_machine *machine);
MUST_USE enum status pickle_run_persistent_id(struct pickle_machine *machine);
MUST_USE enum status pickle_run_reduce(struct pickle_machine *machine);

#endif
