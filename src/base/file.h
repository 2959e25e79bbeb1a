/* Files: bounded whole-file reads, atomic writes, folders, globs, run locks. */
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
 * ERR_USAGE, one larger than `limit` bytes ERR_DATA, an unreadable one ERR_RESOURCE. */
MUST_USE enum status file_read(const char *path, size_t limit, struct buffer *out);

/* Size and CRC-32C of a regular file. The file is read rather than mapped, so that a file that shrinks meanwhile or a failing
 * disk is an error. A path that is missing or not a regular file is ERR_USAGE, unreadable bytes are ERR_DATA, and missing
 * permission is ERR_RESOURCE. */
MUST_USE enum status file_checksum(const char *path, int64_t *out_bytes, uint32_t *out_crc32c);
/* The same, but stops early, with an arbitrary result, once `cancelled` (may be NULL) returns true. */
MUST_USE enum status file_checksum_until(const char *path, bool (*cancelled)(const void *context), const void *context,
					 int64_t *out_bytes, uint32_t *out_crc32c);

/* Creates a folder and its parents; succeeds if it exists. */
MUST_USE enum status folder_make(const char *path);
/* Removes a folder and everything in it. */
MUST_USE enum status folder_remove(const char *path);
/* Removes temporary files of file_writer that a killed process left in a folder. Call it only where no other process of ours is
 * writing. */
MUST_USE enum status folder_clean(const char *path);
/* A list of names in insertion order. */
struct name_list {
	char **names;
	int64_t count, capacity;
};
MUST_USE enum status name_list_add(struct name_list *list, const char *name);
/* Adds [NAME=]PATH; or, if no file has that path, its parts between commas, as Google's flags accept lists. Commas in braces are
 * part of a pattern. */
MUST_USE enum status name_list_add_parts(struct name_list *list, const char *value);
/* A name that is more than once among those from `first` on; NULL: there is none. */
MUST_USE enum status name_list_repeated(const struct name_list *list, int64_t first, const char **out);
void name_list_release(struct name_list *list);
/* Lists the entries of a folder in byte order, without "." and "..". */
MUST_USE enum status folder_list(const char *path, struct name_list *out);
/* The file that marks a folder as that of a run. */
#define RUN_FOLDER_MARK "data/.bertc"
/* Expands a file, a folder (all regular files below it, except hidden files and folders of runs), a glob, or "-" into files,
 * appended to `out` in byte order. If nothing is found, the result is ERR_USAGE naming the pattern. */
MUST_USE enum status path_expand(const char *pattern, struct name_list *out);
/* Expands each of a list. Folders of runs that a glob matches, or that are among several names, as those a shell makes of "*",
 * are left out. A file that occurs twice stays, with a warning. */
MUST_USE enum status path_expand_all(const char *const *patterns, int64_t count, struct name_list *out);

/* A file under construction: written next to its target under a temporary name, then fsynced and renamed, so that a reader sees
 * either the old file or the complete new one. Buffered. */
struct file_writer;
MUST_USE enum status file_writer_open(struct file_writer **out, const char *path);
MUST_USE enum status file_writer_write(struct file_writer *writer, const void *bytes, size_t count);
/* Number of bytes written so far, and their CRC-32C. */
int64_t file_writer_offset(const struct file_writer *writer);
uint32_t file_writer_crc32c(const struct file_writer *writer);
/* Flushes, fsyncs, renames, and fsyncs the folder; frees the writer in any case. */
MUST_USE enum status file_writer_commit(struct file_writer *writer);
/* Removes the temporary file and frees the writer; NULL is allowed. */
void file_writer_abandon(struct file_writer *writer);

/* A file under construction that outlives the process: its bytes are in PATH.part, and another process can resume it from the
 * state that file_writer_save() returned (all zero: nothing saved yet). Bytes after that state are cut off; if earlier ones have
 * changed, it is ERR_DATA. One process at a time: a part that another process holds is ERR_LOCKED. A failed commit leaves the
 * part. file_writer_suspend() closes the file and leaves the part; NULL is allowed. */
struct file_writer_state {
	int64_t offset;
	uint32_t crc32c; /* 0: unknown */
};
MUST_USE enum status file_writer_resume(struct file_writer **out, const char *path, struct file_writer_state state);
MUST_USE enum status file_writer_save(struct file_writer *writer, struct file_writer_state *out); /* flush, fsync */
void file_writer_suspend(struct file_writer *writer);
/* Changes the name that commit will give the file; it must be in the same folder. */
void file_writer_retarget(struct file_writer *writer, const char *path);
/* Overwrites bytes written earlier, such as a header whose numbers are known only at the end. After that, the checksum is no
 * longer that of the file. */
MUST_USE enum status file_writer_patch(struct file_writer *writer, int64_t offset, const void *bytes, size_t count);
/* Path of the part. */
const char *file_writer_part(const struct file_writer *writer);

/* Writes a whole file at once. */
MUST_USE enum status file_write(const char *path, const void *bytes, size_t count);
/* Copies a regular file, writing it as file_write() does. */
MUST_USE enum status file_copy(const char *from, const char *to);
/* Appends one line (including its '\n') to a log file; written to the system but not fsynced. */
MUST_USE enum status file_append_line(const char *path, const char *line);

/* Locks a run folder with an flock on PATH/.lock, which holds host, pid, and start time. If another live process owns it, the
 * result is ERR_LOCKED naming the owner. The lock ends with the process. Returns a descriptor for folder_unlock. */
MUST_USE enum status folder_lock(const char *path, int *out_descriptor);
/* Checks that the lock is still the one that was taken: if its file was removed or replaced, it excludes nobody, which is
 * ERR_LOCKED. */
MUST_USE enum status folder_lock_check(const char *path, const struct file_stamp *taken);
/* The stamp of the lock taken by this process or, if descriptor is -1, by the parent it works for. */
struct file_stamp folder_lock_stamp(const char *path, int descriptor);
void folder_unlock(int descriptor);
/* The process on this machine that holds the lock of a run folder; 0 if there is none. It touches nothing, so it does not disturb
 * a run that starts meanwhile. */
long folder_lock_holder(const char *path);

#endif
