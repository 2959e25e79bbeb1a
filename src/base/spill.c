/* Temporary files without names, written and read sequentially in large pieces. */
#include "base/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
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

enum status spill_write(int descriptor, const void *bytes, size_t size, int64_t offset)
{
	const char *at = bytes;
	while (size > 0) {
		ssize_t wrote = pwrite(descriptor, at, size, (off_t)offset);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return error_hinted(error_set_errno(ERR_RESOURCE, "cannot write a temporary file"),
					    "free some space, or set TMPDIR to a folder on a larger disk");
		at += wrote;
		size -= (size_t)wrote;
		offset += wrote;
	}
	return OK;
}

void spill_forget(int descriptor, int64_t offset, int64_t end)
{
	(void)fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)(end - offset));
}

enum status spill_reader_open(struct spill_reader *reader, int descriptor, int64_t offset, int64_t end)
{
	*reader = (struct spill_reader){.descriptor = descriptor, .offset = offset, .end = end};
	return memory_new(&reader->buffer, (int64_t)SPILL_BUFFER, 1, "a temporary file");
}

enum status spill_reader_see(struct spill_reader *reader, size_t wanted, const char **out, size_t *out_size)
{
	BUG_IF(wanted > SPILL_BUFFER);
	if (reader->filled - reader->begin < wanted && reader->offset < reader->end) {
		memmove(reader->buffer, reader->buffer + reader->begin, reader->filled - reader->begin);
		reader->filled -= reader->begin;
		reader->begin = 0;
	}
	while (reader->filled - reader->begin < wanted && reader->offset < reader->end) {
		size_t room = SPILL_BUFFER - reader->filled;
		if ((int64_t)room > reader->end - reader->offset)
			room = (size_t)(reader->end - reader->offset);
		ssize_t got = pread(reader->descriptor, reader->buffer + reader->filled, room, (off_t)reader->offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return error_set_errno(ERR_RESOURCE, "cannot read a temporary file back");
		reader->filled += (size_t)got;
		reader->offset += got;
	}
	*out = reader->buffer + reader->begin;
	*out_size = reader->filled - reader->begin;
	return OK;
}

void spill_reader_skip(struct spill_reader *reader, size_t size)
{
	BUG_IF(size > reader->filled - reader->begin);
	reader->begin += size;
}

void spill_reader_close(struct spill_reader *reader)
{
	free(reader->buffer);
	*reader = (struct spill_reader){0};
}
