/* Searches numbers of any type for NaN and infinity. */
#include "weights/finite_values.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* Values checked together; a block is still in the fastest cache when it is searched for the culprit. */
#define BLOCK 2048

/* A number is non-finite if all bits of its exponent are set; this test on integers vectorizes. */
static bool has_bad_float(const float *values, int64_t count)
{
	const uint32_t exponent = 0x7f800000;
	uint32_t bad = 0;
	for (int64_t i = 0; i < count; i++) {
		uint32_t bits;
		memcpy(&bits, values + i, sizeof bits);
		bad |= (bits & exponent) == exponent;
	}
	return bad != 0;
}

static bool has_bad_double(const double *values, int64_t count)
{
	const uint64_t exponent = 0x7ff0000000000000;
	uint64_t bad = 0;
	for (int64_t i = 0; i < count; i++) {
		uint64_t bits;
		memcpy(&bits, values + i, sizeof bits);
		bad |= (bits & exponent) == exponent;
	}
	return bad != 0;
}

static bool has_bad_half(const uint16_t *values, uint16_t exponent, int64_t count)
{
	uint16_t bad = 0;
	for (int64_t i = 0; i < count; i++)
		bad |= (values[i] & exponent) == exponent;
	return bad != 0;
}

static bool has_bad(const void *values, enum dtype dtype, int64_t first, int64_t count)
{
	switch (dtype) {
	case DTYPE_F64: return has_bad_double((const double *)values + first, count);
	case DTYPE_BF16: return has_bad_half((const uint16_t *)values + first, 0x7f80, count);
	case DTYPE_F16: return has_bad_half((const uint16_t *)values + first, 0x7c00, count);
	default: return has_bad_float((const float *)values + first, count);
	}
}

int64_t first_not_finite(const void *values, enum dtype dtype, int64_t count)
{
	BUG_IF(dtype != DTYPE_F32 && dtype != DTYPE_F64 && dtype != DTYPE_BF16 && dtype != DTYPE_F16);
	for (int64_t first = 0; first < count; first += BLOCK) {
		int64_t left = count - first, block = left < BLOCK ? left : BLOCK;
		if (!has_bad(values, dtype, first, block))
			continue;
		while (!has_bad(values, dtype, first, 1))
			first++;
		return first;
	}
	return -1;
}

enum status tensor_not_finite(const struct stored_tensor *tensor, double value, int64_t row, int64_t column,
			      const char *parameter)
{
	char of[256] = "";
	if (parameter)
		snprintf(of, sizeof of, " of '%.200s'", parameter);
	return error_hinted(
		error_set(ERR_DATA,
			  "'%s': tensor '%.200s' holds values that are not finite: the first is %g, in row %" PRId64
			  ", column %" PRId64 "%s",
			  tensor->path, tensor->name, value, row, column, of),
		"the training run that wrote this file diverged, or the file is damaged: use an earlier checkpoint, or copy "
		"it again");
}

enum status answer_not_finite(const char *what)
{
	return error_hinted(
		error_set(ERR_NUMERIC, "%s is not finite (NaN or infinite)", what),
		"some of the model's weights are damaged, or too large for the number format it computes in: see what bertc "
		"verify says of the model, or try --precision fp32");
}
