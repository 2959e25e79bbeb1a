/* Memory: checked allocation on the host, and arenas for data that lives as long as a run or a step. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* Allocates count * size zeroed bytes and stores the pointer in *(void **)out. Overflow and lack of memory are ERR_RESOURCE, with
 * `what` and the size in the message. A count of 0 gives a pointer that can be freed. */
MUST_USE enum status memory_new(void *out, int64_t count, size_t size, const char *what);

/* Grows a dynamic array in place: makes *(void **)array hold at least `needed` elements of `size` bytes, doubling *capacity. New
 * bytes are not zeroed. */
MUST_USE enum status memory_grow(void *array, int64_t *capacity, int64_t needed, size_t size, const char *what);

/* Whether this many more bytes are available; small requests are not checked. memory_new() and memory_grow() call it. */
bool memory_has_room(size_t bytes);

/* A block whose pieces are handed out but never returned individually. With base == NULL it only measures: arena_take() returns
 * NULL and `used` counts, so the code that lays out memory also plans it. */
struct arena {
	unsigned char *base;
	size_t capacity, used;
};

#define ARENA_ALIGNMENT 256

/* Reserves `bytes` zeroed bytes (in huge pages where the system provides them). `what` names the arena in the error message. */
MUST_USE enum status arena_create(struct arena *arena, size_t bytes, const char *what);
/* Takes `bytes` bytes aligned to ARENA_ALIGNMENT. An arena that is too small is a bug, since it was planned with the same
 * calls. */
void *arena_take(struct arena *arena, size_t bytes);
/* Returns the memory behind an arena to the system but keeps its addresses, which then read as zeros. */
void arena_forget(struct arena *arena);
void arena_release(struct arena *arena);

/* Bytes of memory that this process can still use on this machine (MemAvailable, cgroup limit, ulimit -v). */
int64_t memory_available(void);

#endif
