/* MANIFEST.json: what a finished folder holds, each file with size and CRC-32C, and a checksum of the manifest
 * itself. It is written last: a folder that has one is complete. Every reader of a file in such a folder checks it. */
#ifndef WEIGHTS_MANIFEST_H
#define WEIGHTS_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "weights/folder_file.h"

#define MANIFEST_NAME "MANIFEST.json"

/* `step` is the checkpoint's, or the last of a finished model. */
MUST_USE enum status manifest_write(const char *folder, int64_t step, const struct folder_files *files);

/* Adds a file to a finished folder, or replaces it: the manifest lists it in the end, and at no time does it list bytes that are
 * not there. Errors as of manifest_verify(). */
MUST_USE enum status manifest_put_file(const char *folder, const char *name, const void *bytes, size_t size);

/* What a manifest says about its folder. */
struct manifest_facts {
	int64_t step, files, bytes;
};
/* Reads every file to its end and compares. Anything missing, of another size or with other bytes, in the manifest
 * too, is ERR_DATA "damaged"; what the machine does not let us read is ERR_RESOURCE; a manifest of a newer bertc is
 * ERR_STATE. `facts` may be NULL. */
MUST_USE enum status manifest_verify(const char *folder, struct manifest_facts *facts);

/* The step that the manifest of a folder names, without reading the other files. Errors as above. */
MUST_USE enum status manifest_step(const char *folder, int64_t *out_step);

/* Verifies one file of any folder, named by its path, against the manifest beside it, or the one of the folder above. Without a
 * manifest (a folder of another program), and where it does not list the file, there is nothing to verify; a file that it lists
 * and that is not there is damage, so that a file that need not be there is verified before it is looked for. Errors as above. */
MUST_USE enum status manifest_verify_file(const char *path);

/* The same for a file whose bytes are used meanwhile, so that each is fetched from memory once: begun before the first is
 * used, advanced as the reader proceeds, and ended before the result is trusted. */
struct file_check {
	bool active; /* false: nothing to verify */
	char path[PATH_BYTES];
	int64_t bytes; /* of the file */
	uint32_t expected, crc32c;
	int64_t checked; /* bytes that crc32c covers */
};
MUST_USE enum status file_check_begin(struct file_check *check, const char *path);
/* The reader is about to use bytes of the mapped file up to the offset `end`. */
void file_check_advance(struct file_check *check, const struct file_map *file, int64_t end);
/* Verifies what is left. A damaged file is ERR_DATA; otherwise `status` is returned, what the reading came to: an error that
 * damage brought about is replaced by the damage. `file` is NULL where it is not mapped: then it is read from the disk. */
MUST_USE enum status file_check_end(struct file_check *check, const struct file_map *file, enum status status);

/* "'PATH': damaged: reason" as ERR_DATA. */
MUST_USE enum status folder_damaged(const char *folder, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
