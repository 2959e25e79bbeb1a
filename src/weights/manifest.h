/* MANIFEST.json: lists the files of a finished folder with sizes and CRC-32Cs, and has a checksum of itself. It is written last,
 * so a folder that has one is complete. Whenever a file in such a folder is read, it is verified. */
#ifndef WEIGHTS_MANIFEST_H
#define WEIGHTS_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "weights/folder_file.h"

#define MANIFEST_NAME "MANIFEST.json"

/* Writes the manifest. `step` is the checkpoint's step, or the last step of a finished model. */
MUST_USE enum status manifest_write(const char *folder, int64_t step, const struct folder_files *files);

/* Adds a file to a finished folder or replaces it, and updates the manifest, which never lists contents that the file does not
 * have. Errors are as for manifest_verify(). */
MUST_USE enum status manifest_put_file(const char *folder, const char *name, const void *bytes, size_t size);

/* What a manifest says about its folder. */
struct manifest_facts {
	int64_t step, files, bytes;
};
/* Reads every file completely and compares it with the manifest. Anything missing or different, including the manifest itself,
 * gives ERR_DATA "damaged"; files that cannot be read give ERR_RESOURCE; a manifest of a newer bertc gives ERR_STATE. `facts` may
 * be NULL. */
MUST_USE enum status manifest_verify(const char *folder, struct manifest_facts *facts);

/* Adds the names of what is in a folder, but not in its manifest: nobody knows whether it belongs to the model. Hidden files are
 * not counted. */
MUST_USE enum status manifest_unlisted(const char *folder, struct name_list *out);

/* Gets the step from a folder's manifest, without reading the other files. Errors are as above. */
MUST_USE enum status manifest_step(const char *folder, int64_t *out_step);

/* Verifies one file in any folder against the manifest beside it or, for a file of a sentence-transformers module, the one in the
 * parent folder. If there is no manifest (the folder of another program) or it does not list the file, there is nothing to
 * verify. A listed file that does not exist is damage, so verify optional files before looking for them. Errors are as above. */
MUST_USE enum status manifest_verify_file(const char *path);

/* The same for a file that is being read, so that each byte is fetched from memory only once: begin before using the first byte,
 * advance as reading proceeds, and end before trusting the result. */
struct file_check {
	bool active; /* false: nothing to verify */
	char path[PATH_BYTES];
	int64_t bytes; /* of the file, according to the manifest */
	uint32_t expected, crc32c;
	int64_t checked; /* number of bytes that crc32c covers */
};
MUST_USE enum status file_check_begin(struct file_check *check, const char *path);
/* Call before using bytes of the mapped file up to the offset `end`. */
void file_check_advance(struct file_check *check, const struct file_map *file, int64_t end);
/* Verifies the rest of the file. Returns ERR_DATA if it is damaged, even if that has caused another error before; otherwise
 * returns `status`, the result of reading. `file` NULL: the file is not mapped, so it is read from disk. */
MUST_USE enum status file_check_end(struct file_check *check, const struct file_map *file, enum status status);

/* Sets and returns ERR_DATA with "'FOLDER': damaged: REASON". */
MUST_USE enum status folder_damaged(const char *folder, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
