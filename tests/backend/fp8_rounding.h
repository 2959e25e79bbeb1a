/* Checks that a back end rounds the operands of its products to FP8 as backend/fp8.h says: with the identity as the
 * weight, a product is its rounded operand. Covers every finite bf16 number within the range of the format. */
#ifndef TESTS_BACKEND_FP8_ROUNDING_H
#define TESTS_BACKEND_FP8_ROUNDING_H

#include "data/pretraining/instances.h"
#include "test.h"
#include "backend/fp8.h"
#include "backend/ops.h"

enum { FP8_ROWS = 4096, FP8_WIDTH = 16, FP8_VALUES = FP8_ROWS * FP8_WIDTH };

static inline struct tensor fp8_tensor(struct backend *be, enum dtype dtype, int64_t rows, const float *values)
{
	struct tensor out = {.dtype = dtype, .rows = rows, .columns = FP8_WIDTH};
	size_t count = (size_t)(rows * FP8_WIDTH), bytes = count * dtype_bytes(dtype);
	assert_int_equal(be->functions->allocate(be, &out.data,
						 (size_t)round_up(rows, ROW_MULTIPLE) * FP8_WIDTH * dtype_bytes(dtype), "a test"),
			 OK);
	unsigned char *host = calloc(count, dtype_bytes(dtype));
	assert_non_null(host);
	for (size_t i = 0; values && i < count; i++) {
		double wide = (double)values[i];
		uint16_t narrow = float_to_bf16(values[i]);
		const void *from = dtype == DTYPE_F64   ? (const void *)&wide
				   : dtype == DTYPE_F32 ? (const void *)&values[i]
							: &narrow;
		memcpy(host + i * dtype_bytes(dtype), from, dtype_bytes(dtype));
	}
	be->functions->to_device(be, out.data, host, bytes);
	free(host);
	return out;
}

static inline void expect_fp8_rounding(struct backend *be, struct replica *r, enum dtype format, const struct tensor *y,
				       const float *values)
{
	size_t element = dtype_bytes(y->dtype);
	unsigned char *host = malloc(FP8_VALUES * element);
	assert_non_null(host);
	assert_int_equal(be->functions->synchronize(r), OK);
	be->functions->to_host(be, host, y->data, FP8_VALUES * element);
	for (int i = 0; i < FP8_VALUES; i++) {
		double wide = 0;
		float single = 0;
		uint16_t narrow = 0;
		memcpy(&wide, host + (size_t)i * element, y->dtype == DTYPE_F64 ? 8 : 0);
		memcpy(&single, host + (size_t)i * element, y->dtype == DTYPE_F32 ? 4 : 0);
		memcpy(&narrow, host + (size_t)i * element, y->dtype == DTYPE_BF16 ? 2 : 0);
		double actual = y->dtype == DTYPE_F64   ? wide
				: y->dtype == DTYPE_F32 ? (double)single
							: (double)bf16_to_float(narrow);
		if (actual != (double)fp8_rounded(format, values[i]))
			fail_msg("%s: %a became %a instead of %a", dtype_names[format], (double)values[i], actual,
				 (double)fp8_rounded(format, values[i]));
	}
	free(host);
}

/* `be` must have been opened with fp8. */
static inline void check_fp8_rounding(struct backend *be)
{
	static float values[FP8_VALUES], identity[FP8_WIDTH * FP8_WIDTH];
	for (int i = 0; i < FP8_WIDTH; i++)
		identity[i * FP8_WIDTH + i] = 1;
	struct shape_limits limits = {.batch = INSTANCE_CAPACITY(FP8_ROWS, 1, 1),
				      .longest = 1,
				      .hidden = FP8_WIDTH,
				      .heads = 1,
				      .intermediate = FP8_WIDTH,
				      .vocab = 2,
				      .training = true};
	struct replica r;
	assert_int_equal(be->functions->replica_create(be, &r, &limits), OK);
	struct weight w = {.use = WEIGHT_LINEAR, .master = fp8_tensor(be, be->master_dtype, FP8_WIDTH, identity)}, *weights = &w;
	w.gradient = fp8_tensor(be, be->master_dtype, FP8_WIDTH, NULL);
	assert_true(weight_in_fp8(be, &w));
	w.copy_bytes = (int64_t)be->functions->weight_copy_bytes(be, &w);
	assert_int_equal(be->functions->allocate(be, &w.copy, (size_t)w.copy_bytes, "a test"), OK);
	be->functions->weights_refresh(&r, &weights, 1);
	for (int f = 0; f < 2; f++) {
		enum dtype format = f == 0 ? DTYPE_E4M3 : DTYPE_E5M2;
		float largest = fp8_largest(format);
		for (uint32_t i = 0; i < FP8_VALUES; i++) {
			float x = fp8_float_of(i << 16);
			/* The largest value is included, so that the scale is 1. Below fp32's normal range, GPUs and CPUs
			 * may treat values as 0. */
			values[i] = x >= -largest && x <= largest ? x : largest;
		}
		struct tensor in = fp8_tensor(be, be->dtype, FP8_ROWS, values), out = fp8_tensor(be, be->dtype, FP8_ROWS, NULL);
		struct tensor x = fp8_tensor(be, be->dtype, FP8_ROWS, NULL);
		if (format == DTYPE_E4M3)
			linear_fwd(&r, &(struct linear_fwd){.w = &w, .x = in, .y = out});
		else
			linear_bwd(&r, &(struct linear_bwd){.w = &w, .dy = in, .x = x, .dx = out, .overwrite = true});
		expect_fp8_rounding(be, &r, format, &out, values);
		be->functions->release(be, in.data);
		be->functions->release(be, out.data);
		be->functions->release(be, x.data);
	}
	be->functions->release(be, w.copy);
	be->functions->release(be, w.gradient.data);
	be->functions->release(be, w.master.data);
	be->functions->replica_release(&r);
}

#endif
