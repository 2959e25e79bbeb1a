/* The kernels as the host part sees them: one launch function each, which queues its kernels on a stream and returns at
 * once. All pointers are device memory. What the operations mean stands in backend/ops.h. */
#ifndef BACKEND_CUDA_KERNELS_H
#define BACKEND_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include "backend/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of a matrix are cut into at most this many parts, whose sums are then added in order: by shape alone, so that the
 * bits do not depend on the GPU. */
#define ROW_PARTS 256
#define PART_ROWS 64 /* rows worth a part of their own */
static inline int64_t row_parts(int64_t rows)
{
	int64_t parts = (rows + PART_ROWS - 1) / PART_ROWS;
	return parts < ROW_PARTS ? parts : ROW_PARTS;
}
/* First row of a part; of part row_parts(rows) it is the end. */
#ifdef __CUDACC__
__host__ __device__
#endif
static inline int64_t part_begin(int64_t rows, int64_t parts, int64_t part)
{
	return rows * part / parts;
}
/* Widest row of a norm. */
#define NORM_WIDTH_LIMIT 4096

/* Dropout of rows that are tokens; threshold 0: none. */
struct kernel_dropout {
	uint32_t threshold, site;
	float scale;
	const struct scalars *scalars; /* seed */
	const int32_t *positions;      /* of each row */
	const uint32_t *samples;
};

/* gather.cu: y[i] = x[rows[i]]; dx[rows[i]] += dy[i]. */
cudaError_t kernel_gather(cudaStream_t stream, enum dtype dtype, const void *x, const int32_t *rows, int64_t count,
			  int64_t columns, void *y);
cudaError_t kernel_scatter_add(cudaStream_t stream, enum dtype dtype, const void *dy, const int32_t *rows, int64_t count,
			       int64_t columns, void *dx);

/* norm.cu: sum = residual + dropout(x + bias), y = LN(sum). x and y may be the same memory; residual, bias may be NULL; sum,
 * mean and rstd are NULL together outside training. */
struct kernel_norm_fwd {
	enum dtype dtype;
	int64_t rows, columns; /* columns at most NORM_WIDTH_LIMIT */
	const void *x, *residual;
	const float *bias, *gamma, *beta;
	float epsilon;
	struct kernel_dropout dropout;
	void *sum, *y;
	float *mean, *rstd;
};
cudaError_t kernel_norm_fwd(cudaStream_t stream, const struct kernel_norm_fwd *a);

/* cast.cu: copies of weights in the type of products, several ranges in one launch. */
#define CAST_RANGES 64
struct kernel_cast {
	enum dtype dtype; /* of the copies: BF16 or F16 */
	int count;
	struct {
		const float *from;
		void *to;
		int64_t elements;
	} range[CAST_RANGES];
};
cudaError_t kernel_cast(cudaStream_t stream, const struct kernel_cast *a);

/* product.cu: y = (a b [+ bias]) [* gelu'(pre)] [+ add] for what cuBLASLt does not do. Element (i, k) of a is at i a_row + k
 * a_step, (k, j) of b at k b_step + j b_column; pre, add and y have the same stride, and add may be y. */
struct kernel_product {
	enum dtype inputs, output;
	int64_t rows, columns, depth;
	const void *a, *b;
	int64_t a_row, a_step, b_step, b_column;
	const void *bias, *pre, *add;
	enum activation activation; /* with pre */
	void *y;
	int64_t y_stride;
};
cudaError_t kernel_product(cudaStream_t stream, const struct kernel_product *a);

/* elementwise.cu: y = tanh(y); dy *= 1 - y^2; y = gelu(x), which may be the same memory. */
cudaError_t kernel_tanh(cudaStream_t stream, enum dtype dtype, int64_t elements, void *y);
cudaError_t kernel_tanh_backward(cudaStream_t stream, enum dtype dtype, int64_t elements, const void *y, void *dy);
cudaError_t kernel_gelu(cudaStream_t stream, enum dtype dtype, enum activation activation, int64_t elements, const void *x,
			void *y);

/* random.cu: normal numbers of this standard deviation, for measurements. */
cudaError_t kernel_random(cudaStream_t stream, enum dtype dtype, int64_t elements, uint64_t seed, float deviation, void *out);

/* columns.cu: dx = dx [* gelu'(pre)] [+ add], in place, and the sums of its columns over each part of the rows, for
 * kernel_add_parts: parts (row_parts(rows), columns). */
struct kernel_columns {
	enum dtype dtype;
	int64_t rows, columns;
	void *dx;                   /* only read when neither pre nor add is there */
	const void *pre, *add;      /* optional */
	enum activation activation; /* with pre */
	float *parts;               /* optional */
};
cudaError_t kernel_columns(cudaStream_t stream, const struct kernel_columns *a);

/* parts.cu: out[j] = or += sum over parts i, in order, of parts[i * stride + j]. */
cudaError_t kernel_add_parts(cudaStream_t stream, const float *parts, int64_t part_count, int64_t stride, int64_t columns,
			     float *out, bool overwrite);

/* Attention: what its kernels are told. Activations are rows of bf16, f16 or f32; columns as in ops.h. */
struct kernel_attention {
	const int32_t *starts;   /* [sequences + 1]; a sequence that does not grow is empty */
	const int32_t *order;    /* [sequences] in which sequences are taken, or NULL; an entry >= sequences is none */
	const uint32_t *samples; /* [sequences] */
	int32_t sequences, heads, hidden;
	int32_t longest;         /* no sequence is longer */
	int64_t tokens;          /* columns of lse */
	float scale;             /* of scores */
	uint32_t threshold;      /* of dropout; 0: none */
	uint32_t site;
	float dropout_scale;
	const struct scalars *scalars; /* seed */
	const void *qkv;
	void *y;                 /* forward: out */
	float *lse;              /* forward: out, may be NULL */
	const void *dy;          /* backward */
	void *dqkv;              /* backward: out */
	float *sums;             /* backward: out (sequences, 3 hidden), column sums of dqkv; may be NULL */
};

/* With matrix instructions, for bf16 and f16 and heads of 32, 64 or 128 columns. Each needs shared memory for a block. */
bool kernel_attention_has(enum dtype dtype, int32_t head_size);
/* attention_fwd.cu */
size_t kernel_attention_fwd_shared(int32_t head_size);
cudaError_t kernel_attention_fwd(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a);
/* attention_bwd.cu: a block has one head of a whole sequence. */
size_t kernel_attention_bwd_shared(int32_t head_size, int32_t longest);
cudaError_t kernel_attention_bwd(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a);
/* attention_bwd_long.cu: for sequences that are too long for that; leaves `sums` to kernel_attention_sums. */
size_t kernel_attention_bwd_long_shared(int32_t head_size, int32_t longest);
cudaError_t kernel_attention_bwd_long(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a);
/* attention_any.cu: without, for any type and heads of up to 256 columns; leaves `sums` to kernel_attention_sums. */
#define ATTENTION_HEAD_LIMIT 256
size_t kernel_attention_any_shared(int32_t head_size);
cudaError_t kernel_attention_any_fwd(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a);
cudaError_t kernel_attention_any_bwd(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a);
cudaError_t kernel_attention_sums(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a);

#ifdef __cplusplus
}
#endif

#endif
