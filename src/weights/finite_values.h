/* Detects non-finite numbers in host memory: they must not be written to files, loaded as weights, or returned as answers. */
#ifndef WEIGHTS_FINITE_VALUES_H
#define WEIGHTS_FINITE_VALUES_H

#include <stdint.h>
#include "backend/tensor.h"
#include "base/error.h"
#include "formats/stored_tensor.h"

/* The index of the first of `count` values (floats of any size) that is NaN or infinite; -1: all are finite. */
int64_t first_not_finite(const void *values, enum dtype dtype, int64_t count);
/* Sets and returns ERR_DATA, naming the file, the tensor, and the position of the first such value. `parameter`: the weight of
 * the model that row and column refer to; NULL: they refer to the tensor itself. */
enum status tensor_not_finite(const struct stored_tensor *tensor, double value, int64_t row, int64_t column,
			      const char *parameter);
/* Sets and returns ERR_NUMERIC: `what` ("the model's answer to 'some text'"), computed from finite weights, is not finite. */
enum status answer_not_finite(const char *what);

#endif
