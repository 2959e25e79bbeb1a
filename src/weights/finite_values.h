/* Numbers that are not finite, in host memory: they never enter files, nor weights from files, and are nobody's answer. */
#ifndef WEIGHTS_FINITE_VALUES_H
#define WEIGHTS_FINITE_VALUES_H

#include <stdint.h>
#include "backend/tensor.h"
#include "base/error.h"
#include "formats/stored_tensor.h"

/* The index of the first of `count` values (floats of any size) that is NaN or infinite; -1: all are finite. */
int64_t first_not_finite(const void *values, enum dtype dtype, int64_t count);
/* ERR_DATA that names file, tensor and place of the first such value; `parameter`: of which weight of a model row and column are;
 * NULL: of the tensor itself. */
enum status tensor_not_finite(const struct stored_tensor *tensor, double value, int64_t row, int64_t column,
			      const char *parameter);
/* ERR_NUMERIC: `what` a model of finite weights has computed ("the model's answer to 'some text'") is not finite. */
enum status answer_not_finite(const char *what);

#endif
