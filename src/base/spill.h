/* Temporary files for data that does not fit in memory: written and read back sequentially, where a disk is fast. A file has no
 * name and ends with the process. */
#ifndef BASE_SPILL_H
#define BASE_SPILL_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* Where to spill, and when. */
struct spill_settings {
	const char *folder;   /* for the files; NULL: TMPDIR or /tmp */
	int64_t memory_limit; /* bytes that the user of these settings may keep in memory; 0: no limit */
};

/* Creates a file in the settings' folder, open for reading and writing. */
MUST_USE enum status spill_file(const struct spill_settings *settings, int *out_descriptor);
/* Writes all `size` bytes at `offset`. A full disk is ERR_RESOURCE. */
MUST_USE enum status spill_write(int descriptor, const void *bytes, size_t size, int64_t offset);
/* Frees the disk space of a range, where the file system supports it. */
void spill_forget(int descriptor, int64_t offset, int64_t end);

/* Reads a range of a file sequentially. */
struct spill_reader {
	int descriptor;
	int64_t offset, end; /* of the part not yet in the buffer */
	char *buffer;        /* [SPILL_BUFFER] */
	size_t begin, filled;
};
#define SPILL_BUFFER ((size_t)64 << 10)

MUST_USE enum status spill_reader_open(struct spill_reader *reader, int descriptor, int64_t offset, int64_t end);
/* *out: the next bytes, at least `wanted` (<= SPILL_BUFFER) of them unless the range ends first; valid until the next call. */
MUST_USE enum status spill_reader_see(struct spill_reader *reader, size_t wanted, const char **out, size_t *out_size);
/* Consumes bytes that were seen. */
void spill_reader_skip(struct spill_reader *reader, size_t size);
void spill_reader_close(struct spill_reader *reader); /* a zeroed one is allowed */

#endif
