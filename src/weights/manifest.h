/* MANIFEST.json: what a finished folder holds, each file with size and CRC-32C, and a checksum of the manifest
 * itself. Written last, it is what says that a folder is whole. */
#ifndef WEIGHTS_MANIFEST_H
#define WEIGHTS_MANIFEST_H

#include <stdint.h>
#include "base/error.h"
#include "weights/folder_file.h"

#define MANIFEST_NAME "MANIFEST.json"

/* `step` is the checkpoint's, or the last of a finished model. */
MUST_USE enum status manifest_write(const char *folder, int64_t step, const struct folder_files *files);

/* Reads every file to its end and compares. Anything missing, of another size or with other bytes, in the manifest
 * too, is ERR_DATA "damaged"; what the machine does not let us read is ERR_RESOURCE. The counts may be NULL. */
MUST_USE enum status manifest_verify(const char *folder, int64_t *out_files, int64_t *out_bytes);

/* "'PATH': damaged: reason" as ERR_DATA. */
MUST_USE enum status folder_damaged(const char *folder, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
