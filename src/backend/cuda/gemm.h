/* Products of matrices by cuBLASLt. The algorithm of a shape is the fastest of those that the library proposes, measured
 * with the operands of its first use, and remembered on disk for this GPU and version of the library. What the library
 * cannot do (rows that are not aligned) a plain kernel of ours does. */
#ifndef BACKEND_CUDA_GEMM_H
#define BACKEND_CUDA_GEMM_H

#include "backend/cuda/state.h"

/* What is done to the sums before they are rounded, by the library: the tanh form only, which is all it has. */
enum product_epilogue {
	PRODUCT_PLAIN,
	PRODUCT_GELU,  /* y = gelu(a b + bias); pre gets what gelu is of */
	PRODUCT_DGELU, /* y = (a b) gelu'(pre) */
};

/* y = op(a) op(b) [+ bias] [+ add], everything row-major: y (rows, columns), op(a) (rows, depth), op(b) (depth, columns).
 * Strides are elements from row to row of what lies in memory. fp32 sums whatever the types. */
struct product {
	const char *operation;              /* for messages */
	enum dtype inputs;                  /* of a and b; E4M3 is FP8 */
	bool a_is_gradient;                 /* FP8: a is E5M2 */
	const float *a_inverse, *b_inverse; /* FP8, device: sums are multiplied by both */
	enum dtype output;                  /* of y and add: that of the inputs, or F32 */
	int64_t rows, columns, depth;
	const void *a, *b;
	int64_t a_stride, b_stride;
	bool a_transposed; /* in memory a is (depth, rows) */
	bool b_transposed; /* in memory b is (columns, depth), as a weight is */
	const void *bias;  /* optional (columns), in the type of y */
	const void *add;   /* optional (rows, columns), stride of y; may be y itself */
	enum product_epilogue epilogue;
	void *pre; /* optional with GELU: out; with DGELU: in. Laid out like y */
	void *y;
	int64_t y_stride;
	uint32_t *largest; /* with GELU: of y (kernels.h) */
};

/* Queues the product. Without rows or columns nothing is done; with depth 0 y becomes bias + add. */
void cuda_product(const struct replica *r, const struct product *p);

/* The product with its epilogue by the library, where that is right (16 bits, tanh) and faster; false: nothing is done, it is
 * left to cuda_product() of the plain one, which writes what the epilogue would take, and a kernel behind it. */
bool cuda_product_fused(const struct replica *r, const struct product *p, enum activation activation);
struct product product_without_epilogue(const struct product *p);

MUST_USE enum status gemm_open(struct gemm **out, struct cuda_state *state);
void gemm_close(struct gemm *gemm);
/* "cuBLASLt 13.1" */
const char *gemm_version(const struct gemm *gemm);
/* backend_functions.choices and use_choices: the algorithm of every shape seen so far, and of those that use_choices named. */
void cuda_choices(struct backend *be, struct buffer *out);
bool cuda_use_choices(struct backend *be, const char *lines);
/* Shapes seen so far, and how many of them had to be measured. */
void gemm_counts(const struct gemm *gemm, int64_t *out_plans, int64_t *out_measured);
/* backend_functions.gemm_rate. */
double cuda_gemm_rate(struct backend *be);
/* backend_functions.copy_rate. */
double cuda_copy_rate(struct backend *be);
/* backend_functions.whole_product. */
MUST_USE enum status cuda_whole_product(struct backend *be, enum whole_product product, int64_t rows, int64_t outputs,
					int64_t inputs, double (*clock)(void), double *out_seconds);

#endif
