/* Writes a TensorFlow V2 checkpoint: PREFIX.index and PREFIX.data-00000-of-00001 (formats/tf_bundle.h reads them). */
#ifndef FORMATS_TF_BUNDLE_WRITER_H
#define FORMATS_TF_BUNDLE_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct tf_bundle_entry {
	const char *name;
	bool is_int64; /* otherwise F32 */
	int rank;
	int64_t shape[2];
	bool transposed;  /* the numbers are stored as (shape[1], shape[0]) */
	const void *data; /* borrowed */
};

/* Writes the entries, sorting them by name in place; names must be unique. The index is written last. */
MUST_USE enum status tf_bundle_write(const char *prefix, struct tf_bundle_entry *entries, int64_t count);

#endif
