/* The steps of attention between its products: one table of functions for each instruction set and activation type.
 *
 * Scores, probabilities and their gradients are stored transposed, in stripes of 32 queries: each row is a key, with 32
 * queries side by side (ATTENTION_STRIPE). Softmax is therefore vertical, each query's statistics stay in one lane, and a
 * block of 8 keys shares a dropout counter. Probabilities are output as blocks of gemm.h, in the layout that the next product
 * needs.
 */
#ifndef BACKEND_CPU_KERNELS_ATTENTION_KERNELS_H
#define BACKEND_CPU_KERNELS_ATTENTION_KERNELS_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/cpu/gemm.h"

enum { ATTENTION_STRIPE = GEMM_BLOCK };

/* Dropout of a stripe: see backend/dropout.h. */
struct attention_dropout {
	uint32_t threshold; /* 0: none */
	uint64_t seed;
	uint32_t site, sample, head;
};

/* One stripe against `keys` keys: online softmax (Milakov and Gimelshein 2018; Dao et al. 2022). */
struct attention_softmax {
	float *scores; /* (keys rounded up to 32, 32); rows beyond `keys` are overwritten */
	int64_t keys;
	uint32_t first_key, first_query; /* in the sequence; first_key a multiple of 8 */
	float scale;                     /* factor for scores, including log2(e) */
	bool first;                      /* there are no keys before these */
	struct attention_dropout dropout;
	float *largest, *sum; /* [32] in and out: largest score so far; sum of exp2(scale (score - largest)) */
	float *correction;    /* [32] out: factor for earlier sums */
	void *probabilities;  /* out: right blocks (k = key, n = query): exp2(...) after dropout, not scaled */
	struct gemm_fetch fetch[3];
};

/* One stripe of the backward pass. */
struct attention_gradient {
	float *scores;               /* as above */
	const float *dprobabilities; /* (keys rounded up to 32, 32): dy v' */
	int64_t keys;
	uint32_t first_key, first_query;
	float scale;
	struct attention_dropout dropout;
	float dropout_scale;
	const float *lse;   /* [32] log2 of the sum of 2^(scale score) */
	const float *delta; /* [32] row sums of dy y */
	/* Out. Left blocks (m = key, k = query), `left_m` bytes from one group of 32 keys to the next: probabilities after
	 * dropout, not scaled, and dscores (without the scale of scores). Right blocks (k = key, n = query): dscores again. */
	void *probabilities, *dscores;
	int64_t left_m;
	void *dscores_right;
	struct gemm_fetch fetch[3];
};

/* Output of results: rows of `columns` elements, multiplied by `factor` and rounded to the output type. */
struct attention_rows {
	const float *from;
	int64_t from_row; /* floats */
	int64_t rows, columns;
	const float *factors; /* store_transposed: [32], one per row */
	float factor;         /* store */
	void *to;
	int64_t to_row;     /* elements */
	bool past;          /* bypass the caches (store_two) */
	float *column_sums; /* optional [columns]: values before rounding are added */
};

struct attention_kernels {
	void (*softmax)(const struct attention_softmax *a);
	void (*gradient)(const struct attention_gradient *a);
	/* x (count, 32) *= factors[32]. */
	void (*scale)(float *x, int64_t count, const float *factors);
	/* Rows stored as rows. */
	void (*store)(const struct attention_rows *a);
	/* At most 32 rows from a stripe (columns rounded up to 32, 32), transposed on output. */
	void (*store_transposed)(const struct attention_rows *a);
	/* delta[i] = sum of dy(i, c) y(i, c), i < rows; in both, rows are `row` elements apart. */
	void (*delta)(const void *dy, const void *y, int64_t row, int64_t rows, int64_t columns, float *delta);
};

#endif
