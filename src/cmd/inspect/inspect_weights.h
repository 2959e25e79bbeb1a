/* The part of `bertc inspect` that looks into weights files. */
#ifndef CMD_INSPECT_INSPECT_WEIGHTS_H
#define CMD_INSPECT_INSPECT_WEIGHTS_H

#include <stdbool.h>
#include "base/error.h"
#include "base/json.h"
#include "formats/stored_tensor.h"

/* Is `path` a file, prefix, or folder that weights_file_open may be able to read? */
bool is_weights(const char *path);
/* Writes the members kind, file, files, metadata, tensor_count, elements, and, if `tensors`, every tensor with its range of
 * values; the data of these is read and thereby verified. If the data files of a TensorFlow checkpoint are missing, only its
 * index is shown. */
MUST_USE enum status inspect_weights(const char *path, bool tensors, struct json_writer *writer);
/* Writes tensor_count and elements; with `all`, every tensor as above. */
MUST_USE enum status inspect_tensors(const struct stored_tensor *tensors, int64_t count, bool all, struct json_writer *writer);

#endif
