/* The form in which numbers travel between ranks, and sums of them. */
#ifndef COMM_WIRE_H
#define COMM_WIRE_H

#include "comm/comm.h"

size_t comm_type_bytes(enum comm_type type);

/* sum[i] += what values[i] becomes by travelling as `wire`; with `first`, sum[i] becomes that. `type` is F32 or F64, and
 * `wire` the same or BF16 or F16; 16-bit numbers are rounded to nearest even, NaN stays NaN, and what is too large
 * becomes infinite. */
void wire_add(void *sum, const void *values, int64_t count, enum comm_type type, enum comm_type wire, bool first);

/* The same in two halves, for numbers that do travel. */
void wire_pack(void *out, const void *values, int64_t count, enum comm_type type, enum comm_type wire);
void wire_add_packed(void *sum, const void *packed, int64_t count, enum comm_type type, enum comm_type wire, bool first);

#endif
