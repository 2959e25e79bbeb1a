/* Zip archives of stored entries, as torch.save writes them: the directory is verified against the file before anything is read,
 * entries must not overlap, and compressed or encrypted ones are rejected, so that a small file cannot expand into a large one.
 * Zip64 is supported. */
#ifndef FORMATS_ZIP_H
#define FORMATS_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct zip_entry {
	const char *name;          /* owned by the archive */
	const unsigned char *data; /* points into the bytes given */
	uint64_t size, offset;     /* of the data; offset in the file */
	uint32_t crc32;            /* 0 if the writer omitted it */
};

struct zip {
	struct zip_entry *entries; /* sorted by name; folders are left out */
	int64_t count;
	char *names;
};

/* Whether the bytes begin like a zip archive. */
bool zip_is(const unsigned char *bytes, size_t size);
/* `bytes` is borrowed; `path` is used in messages. Violations of the format are ERR_DATA with the offset; on failure there is
 * nothing to close. */
MUST_USE enum status zip_open(struct zip *out, const char *path, const unsigned char *bytes, size_t size);
void zip_close(struct zip *zip);
const struct zip_entry *zip_find(const struct zip *zip, const char *name); /* NULL if there is none */
/* ERR_DATA if the entry's checksum is wrong. An entry without a checksum passes. */
MUST_USE enum status zip_entry_check(const struct zip_entry *entry, const char *path);

#endif
