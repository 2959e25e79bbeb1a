/* Temporary files for what is too much for memory: written and read back in order, since a disk is as fast as that and
 * no faster. A file has no name and ends with the process. */
#ifndef BASE_SPILL_H
#define BASE_SPILL_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* Where and when. */
struct spill_settings {
	const char *folder;   /* of the files; NULL: TMPDIR or /tmp */
	int64_t memory_limit; /* bytes that whoever is given this keeps in memory; 0: any number */
};

/* A file in the settings' folder, open for reading and writing. */
MUST_USE enum status spill_file(const struct spill_settings *settings, int *out_descriptor);
/* Writes all `size` bytes at `offset`. A full disk is ERR_RESOURCE. */
MUST_USE enum status spill_write(int descriptor, const void *bytes, size_t size, int64_t offset);
/* Gives the room of a range back to the disk, where the file system can. */
void spill_forget(int descriptor, int64_t offset, int64_t end);

/* A range of a file, read in order. */
struct spill_reader {
	int descriptor;
	int64_t offset, end; /* of what is not in the buffer yet */
	char *buffer;        /* [SPILL_BUFFER] */
	size_t begin, filled;
};
#define SPILL_BUFFER ((size_t)64 << 10)

MUST_USE enum status spill_reader_open(struct spill_reader *reader, int descriptor, int64_t offset, int64_t end);
/* *out: the next bytes, at least `wanted` (<= SPILL_BUFFER) unless the range ends before; valid until the next call. */
MUST_USE enum status spill_reader_see(struct spill_reader *reader, size_t wanted, const char **out, size_t *out_size);
/* Goes past bytes that were seen. */
void spill_reader_skip(struct spill_reader *reader, size_t size);
void spill_reader_close(struct spill_reader *reader); /* zeroed is fine */

#endif
