/* Element-wise kernels of the CPU back end: one table of functions per instruction set, chosen at run time. A kernel processes
 * the rows of one slice in one thread; the operations decide how slices are divided among threads.
 *
 * `dtype` is that of activations (F32 or BF16). Weights, statistics, products and sums are fp32. `rows` counts valid rows
 * only: tail rows are neither read nor written.
 */
#ifndef BACKEND_CPU_KERNELS_H
#define BACKEND_CPU_KERNELS_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/ops.h"

/* Rows of a product in tiles of `width` columns, `tile` floats apart. A tile's rows are `row` floats apart; 0: they are dense,
 * as oneDNN writes them, and the last tile may be narrower. */
struct tiles {
	const float *data;
	int64_t width, tile, row;
};

/* The operations after a linear's product, for one tile: columns [0, columns) of rows `stride` elements apart. */
struct linear_rows {
	int64_t rows, columns, stride;
	enum dtype dtype;
	enum activation activation;
	bool past;      /* y and pre bypass the caches (store_two) */
	const float *x; /* (rows, columns): the product, rows x_row floats apart */
	int64_t x_row;
	const float *bias; /* optional (columns) */
	void *pre;         /* gelu_fwd: out, optional; linear_bwd: in, optional */
	const void *add;   /* linear_bwd: optional */
	void *y;           /* out */
	float *sums;       /* linear_bwd: out, optional (columns) */
};

/* Which elements of a row dropout keeps. */
struct dropout_rows {
	uint32_t threshold; /* 0: no dropout; the other fields are not read */
	float scale;
	uint32_t site;
	uint64_t seed;
	const int32_t *positions; /* from the first row on */
	const uint32_t *samples;
	uint8_t *bits; /* scratch: DROPOUT_BYTES(columns) */
};
#define DROPOUT_BYTES(columns) (((columns) + 127) / 128 * 16)

/* y = dropout(gelu(a) g) with pre = (a, g); or, with dpre, its backward from dy. */
struct gated_rows {
	int64_t rows, columns;
	enum dtype dtype;
	enum activation activation;
	struct dropout_rows dropout;
	const void *pre, *dy; /* (rows, 2 columns) (rows, columns) */
	void *y, *dpre;
};

/* The rotation of ops.h, in place, of `heads` heads of `size` columns at the beginning of each row. */
struct rotary_rows {
	int64_t rows, stride, heads, size;
	enum dtype dtype;
	bool back;
	const int32_t *positions; /* from the first row on */
	const float *frequencies; /* (size / 2) */
	float *row;               /* scratch (2, size / 2 rounded up to 16) */
	void *qkv;
};

/* sum = residual + dropout(x + bias), y = LN(sum). */
struct norm_rows {
	int64_t rows, columns;
	enum dtype dtype;
	struct tiles product;      /* x from a product, or else: */
	const void *x;             /* rows of activations */
	const float *bias;         /* optional */
	const void *residual;      /* optional */
	const float *gamma, *beta; /* beta optional */
	float epsilon;
	struct dropout_rows dropout;
	float *row; /* scratch (columns rounded up to 16) */
	bool past;  /* sum and y bypass the caches (store_two) */
	void *sum;  /* optional out, together with: */
	float *mean, *rstd;
	void *y;
};

/* sum = word + position + type rows, y = dropout(LN(sum)). */
struct embed_rows {
	int64_t rows, columns;
	enum dtype dtype;  /* of sum and y */
	enum dtype tables; /* of word, position, type */
	const int32_t *ids, *positions, *types;
	const void *word, *position, *type; /* position, type optional */
	const float *gamma, *beta;
	float epsilon;
	struct dropout_rows dropout;
	float *row;
	void *sum;
	float *mean, *rstd;
	void *y;
};

/* Backward of norm_rows and embed_rows. */
struct norm_bwd_rows {
	int64_t rows, columns;
	enum dtype dtype;
	bool dropout_first;               /* the mask applies to dy (embeddings), not to dx */
	enum activation activation;       /* applied to `pre` */
	const void *dy, *sum, *pre, *add; /* pre, add optional */
	const float *mean, *rstd, *gamma;
	struct dropout_rows dropout;
	float *row;                    /* scratch (2, columns rounded up to 16) */
	bool past;                     /* both outputs bypass the caches (store_two) */
	void *dresidual, *dx;          /* dx optional */
	float *dgamma, *dbeta, *dbias; /* out (columns): sums over the rows; dbias optional: of dx, or of dresidual */
};

/* One dense tile of logits. */
struct softmax_rows {
	int64_t rows, columns;
	float *logits;
	const float *bias; /* first added in place */
	float *max, *sum;  /* out (rows): maximum, and sum of exp(x - maximum) */
	int32_t *best;     /* out (rows): index of the maximum, lowest index on ties */
};

/* dlogits = factor (exp(logit - lse) - [column = label]); rows with factor 0 become 0, whatever their logits. */
struct softmax_bwd_rows {
	int64_t rows, columns;
	enum dtype dtype; /* of dlogits */
	const float *logits;
	const float *lse, *factor; /* (rows) */
	const int32_t *labels;     /* (rows), relative to the first column */
	void *dlogits;             /* out, dense */
};

struct adamw_range {
	int64_t count;
	float *w, *m, *v;
	const float *g;
	float beta1, beta2, one_minus_beta1, one_minus_beta2;
	float gradient_scale; /* clipping and loss scale combined */
	float step_size;      /* learning rate / bias_correction1 */
	float root_scale;     /* 1 / sqrt(bias_correction2) */
	float epsilon, decay; /* decay: learning rate * weight_decay */
};

/* A piece of one tensor. */
struct lamb_range {
	int64_t count;
	float *w, *m, *v;
	const float *g;
	float beta1, beta2, beta3, one_minus_beta2;
	float gradient_scale; /* clipping and loss scale combined */
	float moment_scale;   /* 1 / bias_correction1 */
	float root_scale;     /* 1 / sqrt(bias_correction2) */
	float epsilon, decay;
	float step_size; /* learning rate * trust ratio */
};

/* A piece (k,n) of an fp32 master, and its packed form: see kernels/pack.c. Not with AVX2. */
struct pack_piece {
	int64_t k, n, k_stride, n_stride; /* one of the strides is 1 */
	int64_t k_padded;                 /* rows of k to write, zero-padded from k on */
	int64_t panel, panel_stride;      /* columns per panel, a multiple of 16; elements from one panel to the next */
	bool pairs;                       /* bf16 (on arm64 in groups of four) */
	const float *master;
	void *packed;
};

struct cpu_kernels {
	void (*linear_fwd)(const struct linear_rows *a); /* activation NONE or TANH */
	void (*gelu_fwd)(const struct linear_rows *a);
	void (*linear_bwd)(const struct linear_rows *a);
	void (*gated)(const struct gated_rows *a);
	void (*rotary)(const struct rotary_rows *a);
	void (*tanh_bwd)(void *dy, const void *y, int64_t count, enum dtype dtype); /* dy *= 1 - y^2 */
	void (*norm_fwd)(const struct norm_rows *a);
	void (*embed_fwd)(const struct embed_rows *a);
	void (*norm_bwd)(const struct norm_bwd_rows *a);
	void (*softmax_fwd)(const struct softmax_rows *a);
	void (*softmax_bwd)(const struct softmax_bwd_rows *a);
	/* sum += row; sum += factor row; out += row with out in the activations' type. */
	void (*add_row)(float *sum, const void *row, int64_t count, enum dtype dtype);
	void (*add_scaled_row)(float *sum, float factor, const void *row, int64_t count, enum dtype dtype);
	void (*add_row_into)(void *out, const void *row, int64_t count, enum dtype dtype);
	/* Sum of squares; not finite if any element is not. */
	double (*sum_squares)(const float *x, int64_t count);
	void (*adamw)(const struct adamw_range *a);
	/* Updates m and v; sums: the squared norms of w and of the update. */
	void (*lamb_norms)(const struct lamb_range *a, double sums[2]);
	void (*lamb_apply)(const struct lamb_range *a); /* updates w */
	void (*pack)(const struct pack_piece *a);
};

/* The table for cpu_isa(). */
const struct cpu_kernels *cpu_kernels(void);

#endif
