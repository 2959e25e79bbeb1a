/* The part of `bertc inspect` that looks into files of weights. */
#ifndef CMD_INSPECT_WEIGHTS_H
#define CMD_INSPECT_WEIGHTS_H

#include <stdbool.h>
#include "base/error.h"
#include "base/json.h"
#include "formats/stored_tensor.h"

/* Whether `path` is a file, prefix or folder that weights_file_open may read. */
bool is_weights(const char *path);
/* Writes members: kind, files, tensor_count, elements, notes and, if asked for, every tensor with its range; those are read,
 * and so verified, too. Of a TensorFlow checkpoint whose data are missing, only the index is shown. */
MUST_USE enum status inspect_weights(const char *path, bool tensors, struct json_writer *writer);
/* tensor_count and elements; with `all` every tensor as above. */
MUST_USE enum status inspect_tensors(const struct stored_tensor *tensors, int64_t count, bool all, struct json_writer *writer);

#endif
