/* Checked allocation, arenas, and how much memory the machine has left. */
#include "base/memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/cgroup.h"
#include "base/log.h"

#define HUGE_PAGE ((size_t)2 << 20)

static enum status out_of_memory(const char *what, double bytes)
{
	char needed[FORMAT_BYTES], available[FORMAT_BYTES];
	return error_set(ERR_RESOURCE, "not enough memory for %s: %s needed, %s available", what, format_size(needed, bytes),
			 format_size(available, (double)memory_available()));
}

/* From this size on, it is worth looking whether there is room: a system that promises more than it has kills the process when
 * the memory is used. What it has promised and nobody has used yet is not seen, so that some must remain. */
#define LARGE ((size_t)4 << 20)
#define REMAINING ((size_t)16 << 20)

bool memory_has_room(size_t bytes)
{
	int64_t available = bytes < LARGE ? -1 : memory_available();
	return available < 0 || bytes + REMAINING <= (size_t)available;
}

/* calloc rather than malloc: large blocks come zeroed from the system at no cost, and no run depends on stale bytes. */
enum status memory_new(void *out, int64_t count, size_t size, const char *what)
{
	size_t bytes;
	BUG_IF(count < 0);
	if (__builtin_mul_overflow((size_t)count, size, &bytes) || bytes > PTRDIFF_MAX)
		return out_of_memory(what, (double)count * (double)size);
	void *block = memory_has_room(bytes) ? calloc(1, bytes ? bytes : 1) : NULL;
	if (!block)
		return out_of_memory(what, (double)bytes);
	*(void **)out = block;
	return OK;
}

enum status memory_grow(void *array, int64_t *capacity, int64_t needed, size_t size, const char *what)
{
	if (needed <= *capacity)
		return OK;
	int64_t larger = *capacity > INT64_MAX / 2 ? needed : *capacity * 2;
	if (larger < needed)
		larger = needed;
	if (larger < 8)
		larger = 8;
	size_t bytes;
	if (__builtin_mul_overflow((size_t)larger, size, &bytes) || bytes > PTRDIFF_MAX)
		return out_of_memory(what, (double)larger * (double)size);
	size_t now = (size_t)*capacity * size;
	if (!memory_has_room(bytes - now) && larger > needed) { /* a smaller reserve, but not one by one, which would never end */
		int64_t least = *capacity + (int64_t)(LARGE / size) + 1;
		larger = needed > least ? needed : least;
		bytes = (size_t)larger * size;
	}
	void *block = memory_has_room(bytes - now) ? realloc(*(void **)array, bytes ? bytes : 1) : NULL;
	if (!block)
		return out_of_memory(what, (double)bytes);
	*(void **)array = block;
	*capacity = larger;
	return OK;
}

static size_t round_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

enum status arena_create(struct arena *arena, size_t bytes, const char *what)
{
	*arena = (struct arena){0};
	if (bytes > PTRDIFF_MAX / 2)
		return out_of_memory(what, (double)bytes);
	/* The kernel overcommits memory. Since everything planned will be touched, too large a request is rejected here instead
	 * of getting the process killed in the middle of a run. */
	int64_t available = memory_available();
	if (available >= 0 && bytes > (size_t)available)
		return out_of_memory(what, (double)bytes);

	size_t capacity = round_up(bytes ? bytes : 1, (size_t)sysconf(_SC_PAGESIZE));
	size_t slack = capacity >= HUGE_PAGE ? HUGE_PAGE : 0;
	unsigned char *map = mmap(NULL, capacity + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return out_of_memory(what, (double)bytes);
	if (slack) {
		/* Huge pages need a base aligned to their size: map too much and unmap the ends. */
		unsigned char *base = (unsigned char *)round_up((size_t)map, HUGE_PAGE);
		size_t head = (size_t)(base - map), tail = slack - head;
		if (head)
			munmap(map, head);
		if (tail)
			munmap(base + capacity, tail);
		madvise(base, capacity, MADV_HUGEPAGE); /* only advice: without huge pages it is merely slower */
		map = base;
	}
	arena->base = map;
	arena->capacity = capacity;
	return OK;
}

void *arena_take(struct arena *arena, size_t bytes)
{
	size_t start = round_up(arena->used, ARENA_ALIGNMENT);
	BUG_IF(bytes > PTRDIFF_MAX - start);
	arena->used = start + bytes;
	if (!arena->base)
		return NULL;
	BUG_IF(arena->used > arena->capacity);
	return arena->base + start;
}

void arena_forget(struct arena *arena)
{
	if (arena->base)
		madvise(arena->base, arena->capacity, MADV_DONTNEED);
}

void arena_release(struct arena *arena)
{
	if (arena->base)
		munmap(arena->base, arena->capacity);
	*arena = (struct arena){0};
}

/* The value of a "Name: 123 kB" line of a /proc file, in bytes; -1 if there is none. */
static int64_t proc_kilobytes(const char *path, const char *name)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return -1;
	char line[256];
	int64_t bytes = -1, kilobytes;
	size_t length = strlen(name);
	while (bytes < 0 && fgets(line, sizeof line, file)) {
		if (!strncmp(line, name, length) && sscanf(line + length, ": %" SCNd64, &kilobytes) == 1)
			bytes = kilobytes * 1024;
	}
	fclose(file);
	return bytes;
}

int64_t memory_available(void)
{
	int64_t available = proc_kilobytes("/proc/meminfo", "MemAvailable");
	if (available < 0)
		available = (int64_t)sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
	int64_t group = cgroup_memory_left();
	if (group >= 0 && group < available)
		available = group;
	struct rlimit limit;
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) { /* ulimit -v */
		int64_t used = proc_kilobytes("/proc/self/status", "VmSize");
		int64_t left = (int64_t)limit.rlim_cur - (used > 0 ? used : 0);
		if (left < available)
			available = left > 0 ? left : 0;
	}
	return available;
}
