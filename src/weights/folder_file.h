/* The files of a folder with their sizes and checksums, as they are written: what its manifest will hold. */
#ifndef WEIGHTS_FOLDER_FILE_H
#define WEIGHTS_FOLDER_FILE_H

#include <stdint.h>
#include "base/error.h"

struct folder_file {
	char name[64];
	int64_t bytes;
	uint32_t crc32c;
};
/* Zero-initialise; the owner frees `files`. */
struct folder_files {
	struct folder_file *files;
	int64_t count, capacity;
};
MUST_USE enum status folder_files_add(struct folder_files *list, const char *name, int64_t bytes, uint32_t crc32c);
/* The same for a file that lies in `folder`, which is read to the end. */
MUST_USE enum status folder_files_measure(struct folder_files *list, const char *folder, const char *name);

#endif
