/* Which files in a folder are ours: FOLDER/.bertc-files lists what bertc wrote there, with checksums, so that it replaces nothing
 * of anybody else's, and `bertc verify` can tell whether the files are those that were written. Not for files inside folders that
 * have a manifest of their own. */
#ifndef BASE_OWNED_FILES_H
#define BASE_OWNED_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"

#define OWNED_FILES_NAME ".bertc-files"

/* A checksum that is unknown: the file is still growing, or a process was killed while writing it. */
#define OWNED_UNKNOWN (-1)

struct owned_file {
	char *name;
	int64_t crc32c; /* or OWNED_UNKNOWN */
};

struct owned_files {
	struct owned_file *files;
	int64_t count, capacity;
	bool exists; /* the folder has such a list */
};

/* Reads the list of a folder; an empty one if there is none. A damaged one is ERR_DATA. Release it also after a failure. */
MUST_USE enum status owned_files_read(struct owned_files *out, const char *folder);
void owned_files_release(struct owned_files *files);
/* The entry of that name, or NULL. */
const struct owned_file *owned_files_find(const struct owned_files *files, const char *name);

/* Lists an entry of the folder, before or after it is made. */
MUST_USE enum status owned_files_add(const char *folder, const char *name, int64_t crc32c);
/* file_write() of a file that is listed, with its checksum. */
MUST_USE enum status owned_file_write(const char *path, const void *bytes, size_t count);
/* Removes a file, if it exists, and takes it off the list. */
MUST_USE enum status owned_file_remove(const char *path);
/* Lists a file that is about to be made. */
MUST_USE enum status owned_file_claim(const char *path);
/* Takes a file off the list without removing it. */
MUST_USE enum status owned_file_forget(const char *path);
/* OK if bertc may replace this entry: there is none, or it is listed and not a link. Else ERR_USAGE; `advice` is the hint. */
MUST_USE enum status owned_files_check(const char *folder, const char *name, const char *advice);

#endif
