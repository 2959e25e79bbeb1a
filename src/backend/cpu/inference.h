/* Inference on the CPU: operations of their own for forward passes of any number of rows, which take the places of the
 * training ones when a back end is opened with backend_settings.inference.
 *
 * Every weight is packed once (inference_weights.c) and its master is not read again. A product of few rows is shared out by
 * panels of outputs, so that the weight passes through the caches once and all threads read their part of it; a product of
 * many rows is shared out by rows. What follows a product is done on the sums of some rows while they are in the cache; layer
 * norm, which needs a whole row, in a second pass where panels were shared out. All numbers of a row of the result are
 * functions of that row of x alone, with one order of summation: an answer does not depend on what else is in its batch, nor
 * on the number of threads.
 *
 * In int8 (backend/int8.h) the products of the encoder's linear layers multiply int8 rows. A tensor with a twin has them
 * there, written by the operation that writes the tensor; of others they are made when they are needed. */
#ifndef BACKEND_CPU_INFERENCE_H
#define BACKEND_CPU_INFERENCE_H

#include "backend/cpu/state.h"
#include "backend/cpu/kernels/inference_kernels.h"

/* The kernels of this process (cpu_isa()). */
const struct inference_kernels *inference_kernels(void);

/* Puts inference's entries into the tables of a back end. */
void inference_use(struct operations *operations, struct backend_functions *functions);

/* What weight->copy points to. */
struct packed_weight {
	enum dtype dtype; /* of panels or rows */
	int64_t outputs, inputs, panel_bytes;
	unsigned char *panels; /* weights that are multiplied */
	float *scales;         /* int8: of each output, whole panels */
	int32_t *sums;
	void *rows; /* tables, and vectors in fp32 */
};

static inline const struct packed_weight *packed(const struct weight *weight)
{
	return weight->copy;
}

/* inference_weights.c: entries of backend_functions. */
size_t inference_weight_bytes(struct backend *be, const struct weight *weight);
void inference_weight_pack(struct backend *be, struct weight *weight, const struct weight_rows *rows);
void inference_weights_refresh(struct replica *replica, struct weight *const *weights, int64_t count);

/* Rows that a product multiplies with a weight: activations in the type of its panels. */
struct product_rows {
	const void *x;
	int64_t row_bytes, rows;
};

/* The rows of x as products with `weight` take them; int8 rows are x's twin, or are made in the workspace. */
struct product_rows inference_rows(struct replica *r, const struct packed_weight *weight, const struct tensor *x);

/* y = rows [first_row, first_row + rows) of x times the outputs of a panel, rows y_row floats apart. All columns of the panel
 * are written. */
void inference_multiply(const struct packed_weight *weight, const struct product_rows *x, int64_t first_row, int64_t rows,
			int64_t panel, float *y, int64_t y_row);

/* Lays inference's pieces of the workspace out behind what is taken of `arena`. */
void inference_lay_out(struct backend *be, const struct shape_limits *limits, struct inference_scratch *out, struct arena *arena);

/* backend_functions.gemm_rate: of the linear layers' products, in their type. */
double inference_gemm_rate(struct backend *be);
void inference_vocab_xent(struct replica *r, const struct vocab_xent *a);
void inference_vocab_topk(struct replica *r, const struct vocab_topk *a);

#endif
