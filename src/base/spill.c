#include "base/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

enum status spill_file(const struct spill_settings *settings, int *out_descriptor)
{
	const char *folder = settings->folder;
	char path[PATH_BYTES];
	if (!folder || !*folder)
		folder = getenv("TMPDIR");
	if (!folder || !*folder)
		folder = "/tmp";
	TRY(path_join(path, folder, ".bertc-XXXXXX"));
	*out_descriptor = mkostemp(path, O_CLOEXEC);
	if (*out_descriptor < 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot make a file there", folder);
	(void)unlink(path);
	return OK;
}

/* From memory to a file of `bytes`, or from a file to a larger one. Room is taken now: a disk that is full later would
 * end the process with SIGBUS. */
static enum status move_to_file(struct spill *spill, void **array, size_t held, size_t bytes, const char *what)
{
	if (spill->mapped == 0)
		TRY(spill_file(spill->settings, &spill->descriptor));
	int failure = posix_fallocate(spill->descriptor, 0, (off_t)bytes);
	void *map = MAP_FAILED;
	if (failure == 0) {
		map = spill->mapped > 0 ? mremap(*array, spill->mapped, bytes, MREMAP_MAYMOVE)
					: mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, spill->descriptor, 0);
		failure = map == MAP_FAILED ? errno : 0;
	}
	if (failure != 0) {
		if (spill->mapped == 0)
			close(spill->descriptor);
		errno = failure;
		enum status status = error_set_errno(ERR_RESOURCE, "%s: no room for %zu MB in a temporary file", what, bytes >> 20);
		error_hint("make room, or set TMPDIR to a folder on a larger disk");
		return status;
	}
	if (spill->mapped == 0 && *array) {
		memcpy(map, *array, held);
		free(*array);
	}
	*array = map;
	spill->mapped = bytes;
	return OK;
}

enum status spill_grow(struct spill *spill, void *array, int64_t needed, size_t size, const char *what)
{
	void **data = array;
	if (needed <= spill->capacity)
		return OK;
	int64_t limit = spill->settings ? spill->settings->memory_limit : 0;
	if (limit == 0 || (double)needed * (double)size * 2 <= (double)limit)
		return memory_grow(array, &spill->capacity, needed, size, what);
	/* By halves: what doubles may be the last room of a disk. */
	int64_t capacity = needed > spill->capacity + spill->capacity / 2 ? needed : spill->capacity + spill->capacity / 2;
	if (capacity > INT64_MAX / 2 / (int64_t)size)
		return error_set(ERR_RESOURCE, "%s: too many", what);
	TRY(move_to_file(spill, data, (size_t)spill->capacity * size, (size_t)capacity * size, what));
	spill->capacity = capacity;
	return OK;
}

void spill_release(struct spill *spill, void *array)
{
	void **data = array;
	if (spill->mapped > 0) {
		munmap(*data, spill->mapped);
		close(spill->descriptor);
	} else {
		free(*data);
	}
	*data = NULL;
	*spill = (struct spill){.settings = spill->settings};
}
