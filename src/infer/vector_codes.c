/* Codes numbers by NumPy's float32 arithmetic, so that codes are equal to the last bit. */
#include "infer/vector_codes.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

enum status code_ranges_find(struct code_ranges *out, const struct vectors *vectors)
{
	if (vectors->count < 2)
		return error_set(ERR_USAGE, "the ranges of numbers cannot be found in fewer than two vectors");
	TRY(memory_new(&out->starts, vectors->width, sizeof *out->starts, "ranges of numbers"));
	TRY(memory_new(&out->steps, vectors->width, sizeof *out->steps, "ranges of numbers"));
	for (int64_t k = 0; k < vectors->width; k++) {
		float low = INFINITY, high = -INFINITY;
		for (int64_t i = 0; i < vectors->count; i++) {
			low = fminf(low, vector_at(vectors, i)[k]);
			high = fmaxf(high, vector_at(vectors, i)[k]);
		}
		out->starts[k] = low;
		out->steps[k] = (high - low) / 255;
		if (out->steps[k] == 0)
			out->steps[k] = 1;
	}
	return OK;
}

void code_ranges_release(struct code_ranges *ranges)
{
	free(ranges->starts);
	free(ranges->steps);
	*ranges = (struct code_ranges){.starts = NULL};
}

const char *vector_code_type(enum vector_code code)
{
	return code == CODE_FLOAT32 ? "<f4" : code == CODE_UINT8 || code == CODE_UBINARY ? "|u1" : "|i1";
}

int64_t vector_code_count(enum vector_code code, int64_t width)
{
	return code == CODE_BINARY || code == CODE_UBINARY ? (width + 7) / 8 : width;
}

void vector_code(enum vector_code code, const struct code_ranges *ranges, const float *vector, int64_t width, float *out)
{
	const bool has_sign = code == CODE_INT8 || code == CODE_BINARY;
	int64_t count = vector_code_count(code, width);
	for (int64_t i = 0; i < count; i++) {
		float value = 0;
		if (code == CODE_INT8 || code == CODE_UINT8)
			value = fminf(fmaxf(floorf((vector[i] - ranges->starts[i]) / ranges->steps[i]), 0), 255);
		else
			for (int64_t bit = 0; bit < 8; bit++)
				value = 2 * value + (8 * i + bit < width && vector[8 * i + bit] > 0);
		out[i] = has_sign ? value - 128 : value;
	}
}
