/* Zip archives of stored entries, as torch.save writes them: the directory is verified against the file before anything
 * is read, entries may not overlap, and compressed or encrypted ones are refused, so that no small file becomes a large
 * one. Zip64 is understood. */
#ifndef FORMATS_ZIP_H
#define FORMATS_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct zip_entry {
	const char *name;          /* owned by the archive */
	const unsigned char *data; /* into the bytes given */
	uint64_t size, offset;     /* of the data, in the file */
	uint32_t crc32;            /* 0 where the writer left it out */
};

struct zip {
	struct zip_entry *entries; /* sorted by name; folders are left out */
	int64_t count;
	char *names;
};

/* True if the bytes begin as a zip archive does. */
bool zip_is(const unsigned char *bytes, size_t size);
/* `bytes` is borrowed, `path` for messages. What breaks a rule is ERR_DATA with the offset; on failure there is nothing
 * to close. */
MUST_USE enum status zip_open(struct zip *out, const char *path, const unsigned char *bytes, size_t size);
void zip_close(struct zip *zip);
const struct zip_entry *zip_find(const struct zip *zip, const char *name); /* NULL if there is none */
/* ERR_DATA if the entry's bytes do not have its checksum. One without a checksum passes. */
MUST_USE enum status zip_entry_check(const struct zip_entry *entry, const char *path);

#endif
