/* Files mapped into memory. */
#ifndef BASE_FILE_MAP_H
#define BASE_FILE_MAP_H

#include <stddef.h>
#include "base/error.h"

/* A read-only mapping of a whole file. For an empty file data is NULL and size 0. */
struct file_map {
	const unsigned char *data;
	size_t size;
};
MUST_USE enum status file_map_open(struct file_map *out, const char *path);
void file_map_close(struct file_map *map);
/* Lets the system reclaim the memory behind a part of the mapping that the caller has finished with. The bytes stay readable;
 * they are then read from the file again. */
void file_map_drop(const struct file_map *map, const void *from, size_t bytes);
/* Path of the mapped file that contains this address, or NULL. Safe in a signal handler: accessing a mapped file that was
 * truncated, or that the disk cannot read, raises SIGBUS at such an address. */
const char *file_map_path(const void *address);

#endif
