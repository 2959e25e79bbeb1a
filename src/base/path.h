/* Paths: what lies there, whether it is still the same file, joined names, the file system below. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

bool file_exists(const char *path);
bool file_is_folder(const char *path);
int64_t file_size(const char *path); /* -1 if it is unknown */

/* What tells whether a file is still the one that was looked at before. All zero: no regular file, of which nothing can be
 * said. */
struct file_stamp {
	int64_t size, nanoseconds; /* of the last change of its bytes */
	uint64_t device, inode;
};
struct file_stamp file_stamp_of(int descriptor);
struct file_stamp file_stamp_at(const char *path);
/* Are both the same file, by whatever names? Not if either is unknown. */
static inline bool file_stamp_is_same_file(const struct file_stamp *a, const struct file_stamp *b)
{
	return a->inode != 0 && a->inode == b->inode && a->device == b->device;
}
/* ERR_STATE that says how the file has changed, if it has: cut, grown, written to, replaced, gone. `when` ends the sentence
 * "'x' was cut ...": "while it was read". A zero stamp `before` is never changed. */
MUST_USE enum status file_stamp_check(const char *path, const struct file_stamp *before, const struct file_stamp *now,
				      const char *when);

/* Flushes a folder's entries to the disk. */
MUST_USE enum status folder_sync(const char *path);
/* Free bytes of the file system that holds `path`; -1 if unknown. */
int64_t folder_free_bytes(const char *path);

/* Writes into out (a char[PATH_BYTES]) "folder/name". Too long is ERR_USAGE. */
#define PATH_BYTES 4096
MUST_USE enum status path_join(char *out, const char *folder, const char *name);

#endif
