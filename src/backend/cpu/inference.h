/* Inference on the CPU: forward operations for any number of rows, which replace the training ones when a back end is opened
 * with backend_settings.inference.
 *
 * Every weight is packed once (inference_weights.c) and its master is not read again. A product with few rows is divided among
 * threads by panels of outputs, so that the weight passes through the caches once and each thread reads its part; a product
 * with many rows is divided by rows. Whatever follows a product is applied to the sums of some rows while they are in the
 * cache; layer norm, which needs a whole row, takes a second pass if the product was divided by panels. Every row of the
 * result is a function of that row of x alone, with one order of summation: an answer does not depend on the rest of its
 * batch, nor on the number of threads.
 *
 * In int8 (backend/int8.h) the products of the encoder's linear layers multiply int8 rows. If a tensor has a twin, the rows
 * are stored there by the operation that writes the tensor; otherwise they are made when they are needed. */
#ifndef BACKEND_CPU_INFERENCE_H
#define BACKEND_CPU_INFERENCE_H

#include "backend/cpu/state.h"
#include "backend/cpu/kernels/inference_kernels.h"

/* The kernels for the process's instruction set (cpu_isa()). */
const struct inference_kernels *inference_kernels(void);

/* Replaces the entries in a back end's tables with those of inference. */
void inference_use(struct operations *operations, struct backend_functions *functions);

/* The contents of weight->copy. */
struct packed_weight {
	enum dtype dtype; /* element type of the panels or rows */
	int64_t outputs, inputs, panel_bytes;
	unsigned char *panels; /* for weights used in products */
	float *scales;         /* int8: one per output, padded to whole panels */
	int32_t *sums;
	void *rows; /* for tables, and vectors in fp32 */
};

static inline const struct packed_weight *packed(const struct weight *weight)
{
	return weight->copy;
}

/* inference_weights.c: entries of backend_functions. */
size_t inference_weight_bytes(struct backend *be, const struct weight *weight);
void inference_weight_pack(struct backend *be, struct weight *weight, const struct weight_rows *rows);
void inference_weights_refresh(struct replica *replica, struct weight *const *weights, int64_t count);

/* The rows that a product multiplies by a weight: activations in the type of its panels. */
struct product_rows {
	const void *x;
	int64_t row_bytes, rows;
};

/* The rows of x in the form that products with `weight` need; int8 rows are x's twin, or are made in the workspace. */
struct product_rows inference_rows(struct replica *r, const struct packed_weight *weight, const struct tensor *x);

/* y = rows [first_row, first_row + rows) of x times the outputs of a panel, with rows y_row floats apart. All columns of the
 * panel are written. */
void inference_multiply(const struct packed_weight *weight, const struct product_rows *x, int64_t first_row, int64_t rows,
			int64_t panel, float *y, int64_t y_row);

/* Lays out inference's part of the workspace, after what has already been taken from `arena`. */
void inference_lay_out(struct backend *be, const struct shape_limits *limits, struct inference_scratch *out, struct arena *arena);

/* backend_functions.gemm_rate: for the linear layers' products, in their type. */
double inference_gemm_rate(struct backend *be);
void inference_vocab_xent(struct replica *r, const struct vocab_xent *a);
void inference_vocab_topk(struct replica *r, const struct vocab_topk *a);
void inference_vocab_max_fwd(struct replica *r, const struct vocab_max_fwd *a);

#endif
