/* The files of a folder with their sizes and checksums, collected while they are written, for the folder's manifest. */
#ifndef WEIGHTS_FOLDER_FILE_H
#define WEIGHTS_FOLDER_FILE_H

#include <stdint.h>
#include "base/error.h"

struct folder_file {
	char name[64];
	int64_t bytes;
	uint32_t crc32c;
};
/* Zero-initialize; the owner frees `files`. */
struct folder_files {
	struct folder_file *files;
	int64_t count, capacity;
};
/* Appends a file. Its name must fit into folder_file.name. */
MUST_USE enum status folder_files_add(struct folder_files *list, const char *name, int64_t bytes, uint32_t crc32c);
/* The same for an existing file in `folder`, which is read to get its size and checksum. */
MUST_USE enum status folder_files_measure(struct folder_files *list, const char *folder, const char *name);

#endif
