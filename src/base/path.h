/* Paths: what is there, whether it is still the same file, joining names, and the file system underneath. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

bool file_exists(const char *path);
bool file_is_folder(const char *path);
/* True if `path` exists and is `folder` or inside it. */
bool path_lies_within(const char *folder, const char *path);
int64_t file_size(const char *path); /* -1 if unknown */

/* Identifies a file, to tell whether it is still the one seen before. All zero: not a regular file, so nothing is known about
 * it. */
struct file_stamp {
	int64_t size, nanoseconds; /* of the last modification */
	uint64_t device, inode;
};
struct file_stamp file_stamp_of(int descriptor);
struct file_stamp file_stamp_at(const char *path);
/* Whether both are the same file, under whatever names. False if either is unknown. */
static inline bool file_stamp_is_same_file(const struct file_stamp *a, const struct file_stamp *b)
{
	return a->inode != 0 && a->inode == b->inode && a->device == b->device;
}
/* If the file has changed, ERR_STATE saying how: cut, grown, written to, replaced, gone. `when` ends the sentence "'x' was cut
 * ...": "while it was read". With an all-zero `before` nothing is reported. */
MUST_USE enum status file_stamp_check(const char *path, const struct file_stamp *before, const struct file_stamp *now,
				      const char *when);

/* Flushes a folder's entries to disk. */
MUST_USE enum status folder_sync(const char *path);
/* Free bytes on the file system that holds `path`; -1 if unknown. */
int64_t folder_free_bytes(const char *path);

/* Writes "folder/name" into out (a char[PATH_BYTES]). A path that is too long is ERR_USAGE. */
#define PATH_BYTES 4096
MUST_USE enum status path_join(char *out, const char *folder, const char *name);
/* The last part of a path, within `path`. */
const char *path_name(const char *path);
/* Writes the folder that contains `path` ("." for a bare name) into out, a char[PATH_BYTES], which may be `path` itself. */
void path_folder(char *out, const char *path);
/* Writes the path of the file `name` in the same folder as `path` into out (a char[PATH_BYTES]). */
MUST_USE enum status path_beside(char *out, const char *path, const char *name);
/* Writes the path of the file that writing to `path` makes or replaces into out (a char[PATH_BYTES]): symbolic links are
 * followed, also to a file that is not there yet. */
MUST_USE enum status path_behind_links(char *out, const char *path);

/* Sets of files are listed as [NAME=]PATH... Bytes of NAME; 0: there is none. A value with a slash before its equals sign, or one
 * that is the path of an existing file, is just a path. */
size_t set_name_size(const char *value);
/* PATH in [NAME=]PATH. */
const char *set_path(const char *value);

#endif
