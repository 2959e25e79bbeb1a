/* Adds rows. */
#include "backend/cpu/kernels/table.h"

INLINE void add_row(float *sum, const void *row, int64_t count, enum dtype dtype)
{
	for (int64_t i = 0; i < count; i += LANES)
		store_floats(sum, i, count - i, load_floats(sum, i, count - i) + load(row, i, count - i, dtype));
}

void KERNEL(add_row)(float *sum, const void *row, int64_t count, enum dtype dtype)
{
	if (dtype == DTYPE_BF16)
		add_row(sum, row, count, DTYPE_BF16);
	else
		add_row(sum, row, count, DTYPE_F32);
}

INLINE void add_row_into(void *out, const void *row, int64_t count, enum dtype dtype)
{
	for (int64_t i = 0; i < count; i += LANES) {
		vector sum = load(out, i, count - i, dtype) + load(row, i, count - i, dtype);
		store(out, i, count - i, sum, dtype);
	}
}

void KERNEL(add_row_into)(void *out, const void *row, int64_t count, enum dtype dtype)
{
	if (dtype == DTYPE_BF16)
		add_row_into(out, row, count, DTYPE_BF16);
	else
		add_row_into(out, row, count, DTYPE_F32);
}
