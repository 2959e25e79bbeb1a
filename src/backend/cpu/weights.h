/* Compute copies of weights: the fp32 master in the activations' type, packed as oneDNN's products, or our own on AMX
 * (gemm_rows), expect it; once for forward (y = x w') and once for dgrad (dx = dy w). */
#ifndef BACKEND_CPU_WEIGHTS_H
#define BACKEND_CPU_WEIGHTS_H

#include "backend/cpu/state.h"
#include "backend/cpu/gemm.h"

/* A matrix (k,n) divided into blocks. Blocks along n give separate tiles; blocks along k (the vocabulary's dgrad) are summed
 * into one tile. */
struct packing {
	int64_t n, k, n_width, k_width, n_blocks, k_blocks;
	int64_t k_stride, n_stride;           /* of the master */
	const struct gemm_kernels *own;       /* our products; NULL: oneDNN's, which are in: */
	const struct product *products[2][2]; /* [last block along k][last along n] */
	size_t block_bytes;
	unsigned char *data; /* block (i along k, j along n) at (i n_blocks + j) block_bytes */
};

/* The contents of weight->copy. */
struct weight_copy {
	struct packing forward, dgrad;
};

size_t cpu_weight_copy_bytes(struct backend *be, const struct weight *weight);
void cpu_weights_refresh(struct replica *replica, struct weight *const *weights, int64_t count);

static inline const struct weight_copy *weight_copy(const struct weight *weight)
{
	return weight->copy;
}

/* Columns of tile j. */
static inline int64_t packing_width(const struct packing *p, int64_t j)
{
	return j + 1 < p->n_blocks ? p->n_width : p->n - j * p->n_width;
}

/* Block (i along k, j along n). */
static inline const void *packing_block(const struct packing *p, int64_t i, int64_t j)
{
	return p->data + (size_t)(i * p->n_blocks + j) * p->block_bytes;
}

/* tile (rows, width of j) = or += x times block (i, j); x has dense rows as wide as block i's k. `blocks`: the worker's
 * scratch. oneDNN always takes ROW_MULTIPLE rows, whatever `rows` is; our own products take up to gemm_rows_best(). */
void packing_multiply(const struct packing *p, int64_t i, int64_t j, bool accumulate, const void *x, int64_t rows, float *tile,
		      void *blocks, int worker);

#endif
