/* Files mapped into memory. */
#ifndef BASE_FILE_MAP_H
#define BASE_FILE_MAP_H

#include <stddef.h>
#include "base/error.h"

/* A read-only map of a whole file. An empty file gives data NULL, size 0. */
struct file_map {
	const unsigned char *data;
	size_t size;
};
MUST_USE enum status file_map_open(struct file_map *out, const char *path);
void file_map_close(struct file_map *map);
/* Lets the system take back the memory that a part of the map occupies, for a caller that has used it. The bytes stay readable,
 * and are then read from the file again. */
void file_map_drop(const struct file_map *map, const void *from, size_t bytes);
/* Path of the mapped file that holds this address, or NULL. A signal handler may ask: a file that became shorter while
 * mapped, or that the disk cannot read, is SIGBUS at such an address. */
const char *file_map_path(const void *address);

#endif
