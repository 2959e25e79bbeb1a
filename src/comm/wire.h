/* The form in which numbers travel between ranks, and their sums. */
#ifndef COMM_WIRE_H
#define COMM_WIRE_H

#include "comm/comm.h"

size_t comm_type_bytes(enum comm_type type);

/* Adds values[i], rounded to `wire`, to sum[i]; with `first`, sets sum[i] to it. `type` is F32 or F64; `wire` is the same
 * type, or BF16 or F16. Numbers are rounded to the nearest, ties to even; NaN stays NaN, and overflow gives infinity. */
void wire_add(void *sum, const void *values, int64_t count, enum comm_type type, enum comm_type wire, bool first);

/* The same in two steps, for numbers that are actually sent. */
void wire_pack(void *out, const void *values, int64_t count, enum comm_type type, enum comm_type wire);
void wire_add_packed(void *sum, const void *packed, int64_t count, enum comm_type type, enum comm_type wire, bool first);

#endif
