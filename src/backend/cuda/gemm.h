/* Matrix products by cuBLASLt. The algorithm for a shape is the fastest of those that the library proposes, measured with the
 * operands of its first use, and remembered on disk for this GPU and library version. A plain kernel of ours computes what the
 * library cannot (unaligned rows). */
#ifndef BACKEND_CUDA_GEMM_H
#define BACKEND_CUDA_GEMM_H

#include "backend/cuda/state.h"

/* The library's fast kernels take only multiples of this; with BERT's 30,522 words in one product, an H200 needs 2.4 times as
 * long. */
#define WORD_MULTIPLE 8

/* What the library does to the sums before they are rounded: the tanh form only, the only one it has. */
enum product_epilogue {
	PRODUCT_PLAIN,
	PRODUCT_GELU,  /* y = gelu(a b + bias); pre receives the argument of gelu */
	PRODUCT_DGELU, /* y = (a b) gelu'(pre) */
};

/* y = op(a) op(b) [+ bias] [+ add], everything row-major: y (rows, columns), op(a) (rows, depth), op(b) (depth, columns).
 * Strides are elements between rows as stored. Sums are in fp32 for all types. */
struct product {
	const char *operation;              /* for error messages */
	enum dtype inputs;                  /* of a and b; E4M3 is FP8 */
	bool a_is_gradient;                 /* FP8: a is E5M2 */
	const float *a_inverse, *b_inverse; /* FP8, device: sums are multiplied by both */
	enum dtype output;                  /* of y and add: same as the inputs, or F32 */
	int64_t rows, columns, depth;
	const void *a, *b;
	int64_t a_stride, b_stride;
	bool a_transposed; /* stored as (depth, rows) */
	bool b_transposed; /* stored as (columns, depth), as weights are */
	const void *bias;  /* optional (columns), in the type of y */
	const void *add;   /* optional (rows, columns), same stride as y; may be y itself */
	enum product_epilogue epilogue;
	void *pre; /* optional with GELU: out; with DGELU: in. Same layout as y */
	void *y;
	int64_t y_stride;
};

/* Queues the product. Does nothing if there are no rows or columns; with depth 0, y becomes bias + add. */
void cuda_product(const struct replica *r, const struct product *p);

/* The product with its epilogue in the library, if that is correct (16 bits, tanh) and faster; false: nothing was done, and
 * the caller must use cuda_product() on product_without_epilogue(), which writes the epilogue's input, followed by a kernel. */
bool cuda_product_fused(const struct replica *r, const struct product *p, enum activation activation);
struct product product_without_epilogue(const struct product *p);

MUST_USE enum status gemm_open(struct gemm **out, struct cuda_state *state);
void gemm_close(struct gemm *gemm);
/* "cuBLASLt 13.1" */
const char *gemm_version(const struct gemm *gemm);
/* backend_functions.choices and use_choices: the algorithm of every shape seen so far, and of those named by use_choices. */
void cuda_choices(struct backend *be, struct buffer *out);
bool cuda_use_choices(struct backend *be, const char *lines);
/* A choice between two other ways to compute something, remembered with those of algorithms: 1, 0, or -1 if it has not been made.
 * gemm_choose() makes it, and returns the one that holds from now on. */
int gemm_choice(struct gemm *gemm, const char *key);
bool gemm_choose(struct gemm *gemm, const char *key, bool choice);
/* The number of shapes seen so far, and how many of them had to be measured. */
void gemm_counts(const struct gemm *gemm, int64_t *out_plans, int64_t *out_measured);
/* backend_functions.gemm_rate. */
double cuda_gemm_rate(struct backend *be);
/* backend_functions.copy_rate. */
double cuda_copy_rate(struct backend *be);
/* backend_functions.whole_product. */
MUST_USE enum status cuda_whole_product(struct backend *be, enum whole_product product, int64_t rows, int64_t outputs,
					int64_t inputs, double (*clock)(void), double *out_seconds);

#endif
