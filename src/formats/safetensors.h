/* safetensors: named tensors in one file. The reader enforces every rule of the reference implementation and more
 * (docs/formats.md): nothing is allocated according to a number in the header before the header has been verified against the
 * size of the file. The writer orders tensors as the reference does and writes atomically. */
#ifndef FORMATS_SAFETENSORS_H
#define FORMATS_SAFETENSORS_H

#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

/* In the order of the format's own list: the writer puts the last ones first, so that the largest alignments come first. */
enum safetensors_dtype {
	ST_BOOL,
	ST_U8,
	ST_I8,
	ST_F8_E5M2,
	ST_F8_E4M3,
	ST_I16,
	ST_U16,
	ST_F16,
	ST_BF16,
	ST_I32,
	ST_U32,
	ST_F32,
	ST_F64,
	ST_I64,
	ST_U64,
};

struct safetensors_entry {
	const char *name;
	enum safetensors_dtype dtype;
	int rank;
	int64_t shape[8];
	int64_t count;    /* elements */
	const void *data; /* reading: into the map; writing: the source */
	uint64_t bytes;
};

struct safetensors {
	struct safetensors_entry *entries; /* sorted by name */
	int64_t count;
	struct name_list metadata; /* "key=value" */
	struct file_map map;
	struct json_document header; /* owns the names */
};

/* A file that violates a rule is ERR_DATA saying which; on failure there is nothing to close. Data may be unaligned. */
MUST_USE enum status safetensors_open(struct safetensors *out, const char *path);
void safetensors_close(struct safetensors *file);
const struct safetensors_entry *safetensors_find(const struct safetensors *file, const char *name);
/* The type's name as used in files ("F32"). */
const char *safetensors_dtype_name(enum safetensors_dtype dtype);
/* Converts an F64, F32, F16 or BF16 entry to float or double. ERR_DATA for other types; `path` is for the message. */
MUST_USE enum status safetensors_to_float(const struct safetensors_entry *entry, const char *path, float *out);
MUST_USE enum status safetensors_to_double(const struct safetensors_entry *entry, const char *path, double *out);

/* Writes entries (in any order; data is borrowed; `bytes` must match shape and type) with __metadata__ {"format": "pt", …};
 * `metadata` is a list of "key=value" or NULL. *out_crc32c and *out_bytes (either may be NULL) describe the file written. */
MUST_USE enum status safetensors_write(const char *path, const struct safetensors_entry *entries, int64_t count,
				       const struct name_list *metadata, uint32_t *out_crc32c, int64_t *out_bytes);

#endif
