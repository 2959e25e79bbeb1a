/* TensorFlow V2 checkpoints ("tensor bundles"): PREFIX.index, a sorted table of names, and the numbers in files
 * PREFIX.data-00000-of-0000N. */
#ifndef FORMATS_TF_BUNDLE_H
#define FORMATS_TF_BUNDLE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "formats/stored_tensor.h"

struct tf_bundle {
	struct stored_tensor *tensors; /* sorted by name */
	int64_t count, capacity;
	struct name_list others; /* names of entries that are not numbers, such as strings */
	struct tf_shard *shards;
	int64_t shard_count;
};

/* Reads the index, whose path must end in ".index", and maps the data files it names. Damage is ERR_DATA with file and offset, a
 * missing data file ERR_USAGE; on failure there is nothing to close. Checksums of tensors are verified by
 * stored_tensor_verify(). */
MUST_USE enum status tf_bundle_open(struct tf_bundle *out, const char *index_path);
void tf_bundle_close(struct tf_bundle *bundle);
/* Only the index, from memory: names, types, shapes, offsets; the tensors' `data` stays NULL. For tests. */
MUST_USE enum status tf_bundle_parse(struct tf_bundle *out, const char *index_path, const unsigned char *bytes, size_t size);

#endif
