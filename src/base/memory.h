/* Memory: checked allocation of host blocks, and arenas for what lives as long as a run or a step. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* Allocates count * size zeroed bytes into *(void **)out. Overflow and lack of memory are ERR_RESOURCE with
 * `what` and the size in the message. A count of 0 gives a pointer that may be freed. */
MUST_USE enum status memory_new(void *out, int64_t count, size_t size, const char *what);

/* Grows a dynamic array in place: makes *(void **)array hold at least `needed` elements of `size` bytes, doubling
 * *capacity. New bytes are not cleared. */
MUST_USE enum status memory_grow(void *array, int64_t *capacity, int64_t needed, size_t size, const char *what);

/* A block that is only handed out, never taken back piece by piece. With base == NULL it measures: takes
 * return NULL and `used` counts, so the code that lays memory out is also the code that plans it. */
struct arena {
	unsigned char *base;
	size_t capacity, used;
};

#define ARENA_ALIGNMENT 256

/* Reserves `bytes` zeroed bytes (huge pages where the system gives them). `what` names it in the error. */
MUST_USE enum status arena_create(struct arena *arena, size_t bytes, const char *what);
/* `bytes` aligned to ARENA_ALIGNMENT; a bug if the arena is too small (it was planned with the same calls). */
void *arena_take(struct arena *arena, size_t bytes);
/* Gives the memory behind an arena back to the system while keeping its addresses: it reads as zeros afterwards. */
void arena_forget(struct arena *arena);
void arena_release(struct arena *arena);

/* Bytes of memory this process could still use on this machine (MemAvailable, cgroup limit). */
int64_t memory_available(void);

#endif
