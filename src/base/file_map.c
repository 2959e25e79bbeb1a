/* Mapped files, and finding the one that contains an address: a mapped file that is truncated shows up as a signal at some
 * address. */
#include "base/file_map.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/path.h"
#include "base/path_internal.h"
#include "base/memory.h"

/* Entries are reused but never freed, so that a signal handler can walk them at any time. `data` is set last. */
struct mapped {
	_Atomic(const unsigned char *) data; /* NULL: free */
	size_t size;
	char path[PATH_BYTES];
	struct mapped *next;
};
static _Atomic(struct mapped *) all_mapped;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for all writers */

static enum status remember(const struct file_map *map, const char *path)
{
	enum status status = OK;
	pthread_mutex_lock(&lock);
	struct mapped *entry = atomic_load(&all_mapped);
	while (entry && atomic_load(&entry->data))
		entry = entry->next;
	if (!entry) {
		TRY_GOTO(memory_new(&entry, 1, sizeof *entry, "list of mapped files"), done);
		entry->next = atomic_load(&all_mapped);
		atomic_store(&all_mapped, entry);
	}
	entry->size = map->size;
	snprintf(entry->path, sizeof entry->path, "%s", path);
	atomic_store(&entry->data, map->data);
done:
	pthread_mutex_unlock(&lock);
	return status;
}

static void forget(const struct file_map *map)
{
	pthread_mutex_lock(&lock);
	struct mapped *entry = atomic_load(&all_mapped);
	while (entry && atomic_load(&entry->data) != map->data)
		entry = entry->next;
	if (entry)
		atomic_store(&entry->data, NULL);
	pthread_mutex_unlock(&lock);
}

const char *file_map_path(const void *address)
{
	uintptr_t wanted = (uintptr_t)address, page = (uintptr_t)sysconf(_SC_PAGESIZE);
	for (struct mapped *entry = atomic_load(&all_mapped); entry; entry = entry->next) {
		uintptr_t begin = (uintptr_t)atomic_load(&entry->data);
		/* The last page is mapped as a whole. */
		if (begin && wanted >= begin && wanted - begin < entry->size + page)
			return entry->path;
	}
	return NULL;
}

enum status file_map_open(struct file_map *out, const char *path)
{
	struct stat facts;
	int fd;
	*out = (struct file_map){0};
	TRY(file_open_for_reading(path, &fd, &facts));
	enum status status = OK;
	if (!S_ISREG(facts.st_mode)) {
		status = error_set(ERR_USAGE, "'%s': not a regular file", path);
	} else if (facts.st_size > 0) {
		void *data = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (data == MAP_FAILED) {
			status = error_set_errno(ERR_RESOURCE, "'%s': cannot map", path);
		} else {
			*out = (struct file_map){data, (size_t)facts.st_size};
			status = remember(out, path);
			if (status != OK)
				file_map_close(out);
		}
	}
	close(fd);
	return status;
}

void file_map_drop(const struct file_map *map, const void *from, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), base = (uintptr_t)map->data;
	uintptr_t begin = ((uintptr_t)from + page - 1) & ~(page - 1), end = ((uintptr_t)from + bytes) & ~(page - 1);
	if (begin < base || end > base + map->size || begin >= end)
		return;
	madvise((void *)begin, end - begin, MADV_DONTNEED); /* only advice: if it fails, more memory stays in use */
}

void file_map_close(struct file_map *map)
{
	if (map->data) {
		forget(map);
		munmap((void *)(uintptr_t)map->data, map->size);
	}
	*map = (struct file_map){0};
}
