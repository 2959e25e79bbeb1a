/* Writing a TensorFlow V2 checkpoint: PREFIX.index and PREFIX.data-00000-of-00001 (formats/tf_bundle.h reads them). */
#ifndef FORMATS_TF_BUNDLE_WRITER_H
#define FORMATS_TF_BUNDLE_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct tf_bundle_entry {
	const char *name;
	bool is_int64; /* else F32 */
	int rank;
	int64_t shape[2];
	bool transposed;  /* the numbers lie as (shape[1], shape[0]) */
	const void *data; /* borrowed */
};

/* Writes the entries, which it puts in the order of their names; no two have the same. The index appears last. */
MUST_USE enum status tf_bundle_write(const char *prefix, struct tf_bundle_entry *entries, int64_t count);

#endif
