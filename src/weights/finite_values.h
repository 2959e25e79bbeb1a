/* Numbers that are not finite, in host memory: they never enter files, nor weights from files. */
#ifndef WEIGHTS_FINITE_VALUES_H
#define WEIGHTS_FINITE_VALUES_H

#include <stdint.h>
#include "backend/tensor.h"

/* The index of the first of `count` values (DTYPE_F32 or DTYPE_F64) that is NaN or infinite; -1: all are finite. */
int64_t first_not_finite(const void *values, enum dtype dtype, int64_t count);

#endif
