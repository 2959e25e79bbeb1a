/* Files: whole-file reads with a bound, atomic writes, folders, globs, run locks. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "base/file_map.h"
#include "base/file_operations.h"
#include "base/path.h"

/* Reads a whole regular file or pipe into `out` (cleared first; after a failure nothing is left to release). A missing file is
 * ERR_USAGE, one larger than `limit` bytes ERR_DATA, unreadable ERR_RESOURCE. */
MUST_USE enum status file_read(const char *path, size_t limit, struct buffer *out);

/* Size and CRC-32C of a regular file, read to its end: not mapped, so that a file that shrinks meanwhile and a disk
 * that fails are errors. Missing or no regular file is ERR_USAGE, bytes that cannot be read ERR_DATA, no permission
 * ERR_RESOURCE. */
MUST_USE enum status file_checksum(const char *path, int64_t *out_bytes, uint32_t *out_crc32c);
/* The same, ended early, with any result, once `cancelled` (may be NULL) says so. */
MUST_USE enum status file_checksum_until(const char *path, bool (*cancelled)(const void *context), const void *context,
					 int64_t *out_bytes, uint32_t *out_crc32c);

/* Makes a folder and its parents; fine if it exists. */
MUST_USE enum status folder_make(const char *path);
/* Removes a folder and all in it. */
MUST_USE enum status folder_remove(const char *path);
/* Removes the temporary files of file_writer that a killed process left in a folder. Only where no other process of
 * ours writes. */
MUST_USE enum status folder_clean(const char *path);
/* A list of names, in the order in which they were added. */
struct name_list {
	char **names;
	int64_t count, capacity;
};
MUST_USE enum status name_list_add(struct name_list *list, const char *name);
/* Adds a path, or, unless there is a file of that name, its parts between commas: lists as Google's flags take them. */
MUST_USE enum status name_list_add_parts(struct name_list *list, const char *value);
void name_list_release(struct name_list *list);
/* Entries of a folder, sorted by bytes, without "." and "..". */
MUST_USE enum status folder_list(const char *path, struct name_list *out);
/* What a run leaves in its folder to say that this is one. */
#define RUN_FOLDER_MARK "data/.bertc"
/* Expands a file, a folder (all regular files below it; hidden ones and folders of runs in it are left out), a glob, or
 * "-" into files, in byte order, appended to `out`. Nothing found is ERR_USAGE that names the pattern. */
MUST_USE enum status path_expand(const char *pattern, struct name_list *out);

/* A file under construction: written beside its target under a temporary name, then fsynced and renamed, so that
 * a reader sees the old file or the whole new one. Buffered. */
struct file_writer;
MUST_USE enum status file_writer_open(struct file_writer **out, const char *path);
MUST_USE enum status file_writer_write(struct file_writer *writer, const void *bytes, size_t count);
/* Bytes written so far and the CRC-32C of them. */
int64_t file_writer_offset(const struct file_writer *writer);
uint32_t file_writer_crc32c(const struct file_writer *writer);
/* Flush, fsync, rename, fsync of the folder; frees the writer whatever happens. */
MUST_USE enum status file_writer_commit(struct file_writer *writer);
/* Removes the temporary file and frees; NULL is fine. */
void file_writer_abandon(struct file_writer *writer);

/* A file under construction that outlives the process: its bytes lie in PATH.part, and what file_writer_save() said
 * of them (zero: nothing yet) lets another process go on there; later bytes are cut off, and earlier ones that were changed are
 * ERR_DATA. One process at a time: another's part is ERR_LOCKED. A failed commit leaves the part. file_writer_suspend() closes
 * and leaves the part; NULL is fine.
 */
struct file_writer_state {
	int64_t offset;
	uint32_t crc32c; /* 0: not known */
};
MUST_USE enum status file_writer_resume(struct file_writer **out, const char *path, struct file_writer_state state);
MUST_USE enum status file_writer_save(struct file_writer *writer, struct file_writer_state *out); /* flush, fsync */
void file_writer_suspend(struct file_writer *writer);
/* The name that commit will give; in the same folder. */
void file_writer_retarget(struct file_writer *writer, const char *path);
/* Bytes that were written before become others: a header whose numbers are known at the end. The checksum is then no longer that
 * of the file. */
MUST_USE enum status file_writer_patch(struct file_writer *writer, int64_t offset, const void *bytes, size_t count);
/* Name of the part. */
const char *file_writer_part(const struct file_writer *writer);

/* A whole file at once. */
MUST_USE enum status file_write(const char *path, const void *bytes, size_t count);
/* A copy of a regular file under another name, written as file_write() writes. */
MUST_USE enum status file_copy(const char *from, const char *to);
/* Appends one line (with its '\n') to a log file, flushed to the system, not fsynced. */
MUST_USE enum status file_append_line(const char *path, const char *line);

/* Takes the lock of a run folder (an flock on PATH/.lock that holds host, pid and start time). Another live
 * owner is ERR_LOCKED and named. The lock ends with the process. Returns a descriptor for folder_unlock. */
MUST_USE enum status folder_lock(const char *path, int *out_descriptor);
/* Is the lock still the one that was taken? One whose file was removed or replaced keeps nobody out: ERR_LOCKED. */
MUST_USE enum status folder_lock_check(const char *path, const struct file_stamp *taken);
/* The lock that was taken: by this process, or (descriptor -1) by the parent for which it works. */
struct file_stamp folder_lock_stamp(const char *path, int descriptor);
void folder_unlock(int descriptor);
/* The process on this machine that holds the lock of a run folder; 0: none. Nothing is touched, so a run that starts meanwhile is
 * not disturbed. */
long folder_lock_holder(const char *path);

#endif
