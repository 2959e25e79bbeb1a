/* The kernels' host interface: one launch function each, which queues its kernels on a stream and returns at once. All
 * pointers are to device memory. The operations are defined in backend/ops.h. */
#ifndef BACKEND_CUDA_KERNELS_H
#define BACKEND_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include "backend/fp8.h"
#include "backend/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rows of a matrix are divided into at most this many parts, whose sums are then added in order. The division depends on
 * the shape alone, so the bits do not depend on the GPU. */
#define ROW_PARTS 256
#define PART_ROWS 64 /* minimum rows per part */
static inline int64_t row_parts(int64_t rows)
{
	int64_t parts = (rows + PART_ROWS - 1) / PART_ROWS;
	return parts < ROW_PARTS ? parts : ROW_PARTS;
}
/* First row of a part; for part row_parts(rows), the end. */
#ifdef __CUDACC__
__host__ __device__
#endif
	static inline int64_t
	part_begin(int64_t rows, int64_t parts, int64_t part)
{
	return rows * part / parts;
}
/* Widest row that a norm supports. */
#define NORM_WIDTH_LIMIT 2048

/* The largest magnitude of a kernel's output, if FP8 rounds that output next: its bit pattern, which orders as magnitudes do,
 * with NaN above all. Warps update LARGEST_WORDS words by atomicMax, whose result does not depend on the order; only one word
 * per cache sector is used, so that warps rarely collide. The words start at 0; kernel_fp8 reads them and resets them to 0.
 * NULL: not wanted; only bf16 activations have them. */
#define LARGEST_SLOTS 64
#define LARGEST_STRIDE 8
#define LARGEST_WORDS (LARGEST_SLOTS * LARGEST_STRIDE)

/* What a kernel rounds to FP8 itself, with a scale from a bound known in advance (docs/developers/math.md): factor a [b] [+ add].
 */
struct kernel_fp8_output {
	enum dtype format;             /* E4M3 or E5M2 */
	unsigned char *rows, *columns; /* out (rows rounded up to 16, columns), and transposed; rows NULL: not wanted */
	float factor;                  /* of the bound */
	const float *a, *b, *add;      /* b, add: optional */
	float *bound;                  /* out */
	struct fp8_scale *scale;       /* out */
};

/* Dropout of rows that are tokens; threshold 0: none. */
struct kernel_dropout {
	uint32_t threshold, site;
	float scale;
	const struct scalars *scalars; /* for the seed */
	const int32_t *positions;      /* of each row */
	const uint32_t *samples;
};

/* pooling.cu: one vector per sequence, the mean of its rows or (`first`) its first row; and the gradient of all rows. */
struct kernel_pooling {
	enum dtype dtype, vectors_dtype; /* vectors_dtype: F32, or dtype */
	bool first, scaled;              /* scaled: the loss scale has been applied to vectors */
	int sequences, columns;
	const int32_t *starts;
	void *rows;    /* (T,H) */
	void *vectors; /* (B,H) */
	const struct scalars *scalars;
};
cudaError_t kernel_pooling_fwd(cudaStream_t stream, const struct kernel_pooling *a);
cudaError_t kernel_pooling_bwd(cudaStream_t stream, const struct kernel_pooling *a);

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
	const float *bias, *gamma, *beta; /* beta may be NULL */
	float epsilon;
	struct kernel_dropout dropout;
	void *sum, *y;
	float *mean, *rstd;
	struct kernel_fp8_output fp8; /* of y */
};
cudaError_t kernel_norm_fwd(cudaStream_t stream, const struct kernel_norm_fwd *a);

/* Backward of the norm: dresidual = dLN(dy) [+ add]; dx = dresidual after dropout, times gelu'(pre). With drops_dy, dropout
 * applies to dy instead. dx NULL: not wanted. Column sums over each part of the rows (for the gradients of gamma and beta and,
 * with sums_bias, of the last output) are stored side by side: parts (row_parts(rows), 3 columns). dresidual may be dy. */
struct kernel_norm_bwd {
	enum dtype dtype;
	int64_t rows, columns;
	const void *dy, *sum, *pre, *add; /* add may be NULL or dresidual */
	const float *mean, *rstd, *gamma;
	enum activation pre_activation;
	struct kernel_dropout dropout;
	bool drops_dy;
	void *dresidual, *dx;
	uint32_t *largest; /* of the last output */
	bool sums_bias;
	float *parts;
};
cudaError_t kernel_norm_bwd(cudaStream_t stream, const struct kernel_norm_bwd *a);

/* embed.cu. In all kernels, dimensions that grow with the batch go along x, because a grid may have 2^31 - 1 blocks along x,
 * but only 65,535 along y and z. */
struct kernel_embed_fwd {
	enum dtype dtype;
	int64_t tokens, columns; /* columns at most NORM_WIDTH_LIMIT */
	const int32_t *ids, *types, *positions;
	const float *word, *position, *type, *gamma, *beta; /* position, type, beta may be NULL */
	float epsilon;
	struct kernel_dropout dropout;
	void *sum, *y;
	float *mean, *rstd;
	uint32_t *largest; /* of y */
};
cudaError_t kernel_embed_fwd(cudaStream_t stream, const struct kernel_embed_fwd *a);

/* gradient[ids[t]] += dy[t], in token order; order: tokens sorted by (id, token). */
#define WORD_CHUNK 32 /* tokens */
struct kernel_word_gradient {
	enum dtype dtype;
	int64_t tokens, columns;
	const void *dy;
	const int32_t *ids, *order;
	float *gradient;
	float *edges; /* scratch (chunks, 2, columns) */
};
cudaError_t kernel_word_gradient(cudaStream_t stream, const struct kernel_word_gradient *a);

/* Sums of dy over the sequences of each part, for every position below `longest`: parts (part_count, longest, columns). */
struct kernel_position_gradient {
	enum dtype dtype;
	int32_t sequences, longest, part_count;
	int64_t columns;
	const void *dy;
	const int32_t *starts;
	float *parts;
};
cudaError_t kernel_position_gradient(cudaStream_t stream, const struct kernel_position_gradient *a);

/* Sums of dy over the tokens of type 0 and over those of type 1 in each part of the tokens: parts (row_parts(tokens), kinds,
 * columns). */
struct kernel_type_gradient {
	enum dtype dtype;
	int64_t tokens, columns;
	int kinds; /* 1 or 2: segment types that tokens may have; each part has the sums of each */
	const void *dy;
	const int32_t *types;
	float *parts;
};
cudaError_t kernel_type_gradient(cudaStream_t stream, const struct kernel_type_gradient *a);

/* xent.cu: replaces logits (rows, stride), which exclude the bias, with their gradients in the type of activations, with the
 * same distance in bytes between rows; rows and bias are aligned to 16 bytes. */
struct kernel_vocab_xent {
	int head;
	enum dtype dtype; /* of the gradients */
	int64_t rows, stride;
	int vocab;
	float *logits;
	const float *bias, *weights;
	const int32_t *labels;
	bool training;
	const struct scalars *scalars;
	double *losses, *corrects; /* (rows): each row's contribution */
	double *loss, *correct;    /* added to */
};
cudaError_t kernel_vocab_xent(cudaStream_t stream, const struct kernel_vocab_xent *a);

struct kernel_vocab_topk {
	int64_t rows, stride;
	int vocab, k;
	const float *logits, *bias;
	int32_t *ids;
	double *probabilities;
};
cudaError_t kernel_vocab_topk(cudaStream_t stream, const struct kernel_vocab_topk *a);

/* vocabulary_max.cu: the weights y of sequences over the vocabulary, from the logits (without bias) of rows [first,
 * first + count); chunks follow one another. */
struct kernel_vocab_max {
	int first, count, sequences, vocab;
	int64_t stride;
	const int32_t *starts;
	const float *logits, *bias;
	float *y;      /* (B,V) */
	int32_t *rows; /* optional (B,V) */
};
cudaError_t kernel_vocab_max(cudaStream_t stream, const struct kernel_vocab_max *a);

struct kernel_vocab_max_bwd {
	enum dtype dtype; /* of x, table, and dx */
	bool overwrite;
	int tokens, sequences, vocab, columns;
	const int32_t *starts, *rows;
	const void *x, *table;
	const float *dy, *y;
	void *dx;
	float *table_gradient, *bias_gradient;
	const struct scalars *scalars;
};
cudaError_t kernel_vocab_max_bwd(cudaStream_t stream, const struct kernel_vocab_max_bwd *a);

struct kernel_xent {
	enum dtype dtype;
	int64_t rows;
	int classes;
	const void *logits;
	void *dlogits; /* NULL: not wanted */
	int head;
	float label_smoothing;
	const int32_t *labels;
	const float *weights;
	const struct scalars *scalars;
	double *losses, *corrects; /* scratch (rows) */
	double *loss, *correct;    /* added to */
};
cudaError_t kernel_xent(cudaStream_t stream, const struct kernel_xent *a);

/* losses.cu: the other head losses, item by item. Fields that a kind does not need are NULL. */
enum loss_kind {
	LOSS_KIND_SQUARED,
	LOSS_KIND_BINARY,
	LOSS_KIND_GROUP,
	LOSS_KIND_SHARES,
	LOSS_KIND_MARGINS,
	LOSS_KIND_SEGMENT,
};
struct kernel_loss {
	enum loss_kind kind;
	enum dtype dtype;
	int64_t items; /* rows, groups or segments */
	int columns;
	int head;
	const void *outputs;
	void *gradients;       /* NULL: not wanted */
	const int32_t *starts; /* of groups and segments */
	const int32_t *labels; /* of groups (items), of segments (items,2) */
	const float *values;   /* (items,columns) */
	const float *weights;
	const float *positive_weights; /* (columns) of LOSS_KIND_BINARY; NULL: 1 */
	const struct scalars *scalars;
	double *losses, *corrects; /* scratch (items) */
	double *loss, *correct;    /* added to; correct may be NULL */
};
cudaError_t kernel_loss(cudaStream_t stream, const struct kernel_loss *a);

/* losses.cu: pointer_xent, sequence by sequence. */
struct kernel_pointer_xent {
	enum dtype dtype;
	int sequences, items, columns, classes, pointers, size; /* size: numbers per query */
	int head;
	float scale; /* multiplies the product of a query and a key */
	const void *logits;
	void *gradients; /* NULL: not wanted */
	const int32_t *starts, *rows, *labels;
	const float *weights;
	float *lse;
	const struct scalars *scalars;
	double *losses, *corrects; /* scratch (sequences) */
	double *loss, *correct;    /* added to */
};
cudaError_t kernel_pointer_xent(cudaStream_t stream, const struct kernel_pointer_xent *a);
/* Losses against a teacher's outputs. */
struct kernel_soft_loss {
	enum soft_kind kind;
	enum dtype dtype;
	int64_t items;
	int columns, head;
	const void *teacher, *outputs;
	void *gradients; /* in and out: mixed with the new gradients */
	const int32_t *starts;
	const float *weights;
	double temperature, share;
	const struct scalars *scalars;
	double *losses; /* scratch (items) */
	double *loss;   /* added to */
};
cudaError_t kernel_soft_loss(cudaStream_t stream, const struct kernel_soft_loss *a);

/* Error of hidden states against a teacher's. */
struct kernel_hidden_error {
	enum dtype dtype;
	int64_t tokens, columns;
	const int32_t *own_tokens; /* tokens after this many are padding and are not counted */
	double factor;
	const void *x, *target;
	void *dx;
	const struct scalars *scalars;
	double *parts; /* scratch (SQUARE_PARTS) */
	double *loss;  /* added to */
};
cudaError_t kernel_hidden_error(cudaStream_t stream, const struct kernel_hidden_error *a);

/* y = dropout(x) for rows that are tokens of a batch. */
struct kernel_row_dropout {
	enum dtype dtype;
	int64_t rows;
	int columns;
	uint32_t threshold, site;
	float scale;
	const int32_t *row_tokens; /* NULL: row i is token i */
	const int32_t *positions;
	const uint32_t *token_samples;
	const struct scalars *scalars;
	const void *x;
	void *y;
};
cudaError_t kernel_row_dropout(cudaStream_t stream, const struct kernel_row_dropout *a);

/* optimizer.cu; sums may be NULL. */
#define SQUARE_PARTS 2048
cudaError_t kernel_sumsq_finite(cudaStream_t stream, const float *range, int64_t count, bool add, const struct accumulators *sums,
				bool decides, double *parts, struct scalars *scalars);

/* Ranges per launch: kernel parameters are limited to 4 KiB. A block updates one part of a range. */
#define ADAMW_RANGES 100
#define ADAMW_PART 8192 /* elements */
struct kernel_adamw {
	float *w, *m, *v;
	const float *g;
	float beta1, beta2, one_minus_beta1, one_minus_beta2, epsilon;
	const struct scalars *scalars;
	enum dtype copy_dtype; /* BF16 or F16; only with copy */
	void *copy;            /* w rounded; may be NULL */
	int range_count;
	struct {
		struct decay_range elements;
		int64_t first_part; /* index over the parts of all ranges in sequence */
	} range[ADAMW_RANGES];
};
cudaError_t kernel_adamw(cudaStream_t stream, const struct kernel_adamw *a);

/* A tensor is divided into at most LAMB_PARTS parts, each of at least LAMB_LEAST elements. */
#define LAMB_PARTS 256
#define LAMB_LEAST 4096
struct kernel_lamb {
	const struct lamb_tensor *tensors;
	int64_t tensor_count, count; /* elements in the range, an upper limit for any tensor */
	float *w, *m, *v;
	const float *g;
	float beta1, beta2, beta3, one_minus_beta2, epsilon;
	double max_trust_ratio;
	bool normalize;
	const struct scalars *scalars;
	double *norms;         /* (tensor_count, 2) */
	double *parts;         /* scratch (tensor_count, at most LAMB_PARTS, 2); lamb_norms only */
	enum dtype copy_dtype; /* BF16 or F16; only with copy */
	void *copy;            /* w rounded; may be NULL; lamb_apply only */
};
cudaError_t kernel_lamb_norms(cudaStream_t stream, const struct kernel_lamb *a);
cudaError_t kernel_lamb_apply(cudaStream_t stream, const struct kernel_lamb *a);

/* cast.cu: copies of weights in the type of products, several ranges per launch. */
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
/* The reverse: `from` in BF16 or F16, converted to fp32. */
cudaError_t kernel_widen(cudaStream_t stream, enum dtype dtype, const void *from, float *to, int64_t elements);

/* What bounds products with a weight. */
struct fp8_sizes {
	float largest, norm; /* its largest magnitude, and the largest norm of a row */
	uint32_t squares;    /* the bits of that norm's square; 0 between uses */
};

/* fp8.cu: rounds several matrices to FP8 (backend/fp8.h) at once; their columns must be a multiple of 16. Rows are padded with
 * zeros to a multiple of 16. */
#define FP8_MATRICES 16
struct kernel_fp8_matrix {
	const void *from; /* (rows, columns) */
	int64_t rows, columns;
	enum dtype format;          /* E4M3 or E5M2 */
	bool known;                 /* `largest` already holds its largest magnitude; otherwise an extra pass finds it */
	uint32_t *largest;          /* consumed: 0 afterwards */
	struct fp8_scale *scale;    /* out */
	struct fp8_sizes *sizes;    /* out, optional, if not known; starts at 0 */
	unsigned char *rows_out;    /* out, optional (rows rounded up, columns) */
	unsigned char *columns_out; /* out, optional (columns, rows rounded up) */
};
struct kernel_fp8 {
	enum dtype dtype; /* of what is rounded */
	int count;
	struct kernel_fp8_matrix matrix[FP8_MATRICES];
};
cudaError_t kernel_fp8(cudaStream_t stream, const struct kernel_fp8 *a);
/* Its first pass alone: fills `largest` for those matrices that are not known. */
cudaError_t kernel_fp8_largest(cudaStream_t stream, const struct kernel_fp8 *a);

/* y = gelu(pre), or with x: y = x gelu'(pre), and its column sums over each part of the rows, for kernel_add_parts: parts
 * (part_count, columns). */
struct kernel_fp8_gelu {
	enum activation activation;
	int64_t rows, columns, part_count;
	const void *x, *pre; /* bf16 */
	float *parts;        /* optional, with x */
	struct kernel_fp8_output y;
};
cudaError_t kernel_fp8_gelu(cudaStream_t stream, const struct kernel_fp8_gelu *a);

/* product.cu: y = (a b [+ bias]) [* gelu'(pre)] [+ add] for what cuBLASLt cannot do. Element (i, k) of a is at i a_row + k
 * a_step, (k, j) of b at k b_step + j b_column; pre, add and y have the same stride, and add may be y. */
struct kernel_product {
	enum dtype inputs, output;
	bool a_is_gradient;                 /* inputs E4M3: a is E5M2 */
	const float *a_inverse, *b_inverse; /* FP8: factors applied to the sums */
	int64_t rows, columns, depth;
	const void *a, *b;
	int64_t a_row, a_step, b_step, b_column;
	const void *bias, *pre, *add;
	enum activation activation; /* with pre */
	void *y;
	int64_t y_stride;
};
cudaError_t kernel_product(cudaStream_t stream, const struct kernel_product *a);

/* few_rows.cu: linear layers of up to FEW_ROWS_LIMIT rows in 16 bits. y = act(x w' + bias); or, with parts, part_count parts of x
 * w' (part_count, rows, columns) and nothing else. `early`: may start before the kernel ahead of it in the stream has ended
 * (compute capability 9.0 and later). */
#define FEW_ROWS_LIMIT 256
struct kernel_few_rows {
	enum dtype dtype;
	bool early;
	int rows, columns, depth, part_count;
	const void *x, *w; /* (rows, depth) (columns, depth) */
	const float *bias; /* optional */
	enum activation activation;
	float *parts;
	void *y;
};
/* y = LN(parts + bias + residual); columns at most NORM_WIDTH_LIMIT. */
struct kernel_few_norm {
	enum dtype dtype;
	bool early;
	int rows, columns, part_count;
	const float *parts, *bias, *gamma, *beta; /* bias, beta: optional */
	const void *residual;                     /* optional */
	float epsilon;
	void *sum, *y;      /* sum: optional */
	float *mean, *rstd; /* optional */
};
/* Whether the kernels take such a product; the number of parts of its sums, which depends on its shape alone. */
bool kernel_few_takes(enum dtype dtype, int64_t rows, int64_t columns, int64_t depth, size_t shared_limit);
int kernel_few_parts(int rows, int columns, int depth);
cudaError_t kernel_few_rows(cudaStream_t stream, const struct kernel_few_rows *a);
cudaError_t kernel_few_norm(cudaStream_t stream, const struct kernel_few_norm *a);

/* elementwise.cu: y = dropout(gelu(a) g) with pre = (a, g); or, with dpre, its backward from dy. */
struct kernel_gated {
	enum dtype dtype;
	enum activation activation;
	int64_t rows;
	int columns;
	struct kernel_dropout dropout;
	const void *pre, *dy; /* (rows, 2 columns) (rows, columns) */
	void *y, *dpre;
};
cudaError_t kernel_gated(cudaStream_t stream, const struct kernel_gated *a);

/* elementwise.cu: the rotation of ops.h, in place, of the heads at the beginning of each row. */
struct kernel_rotary {
	enum dtype dtype;
	bool back;
	int64_t rows, stride;
	int heads, size;
	const int32_t *positions;
	float frequencies[ROTARY_LIMIT / 2];
	void *qkv;
};
cudaError_t kernel_rotary(cudaStream_t stream, const struct kernel_rotary *a);

/* elementwise.cu: y = tanh(y); dy *= 1 - y^2; y = gelu(x), where y may be x. */
cudaError_t kernel_tanh(cudaStream_t stream, enum dtype dtype, int64_t elements, void *y);
cudaError_t kernel_tanh_backward(cudaStream_t stream, enum dtype dtype, int64_t elements, const void *y, void *dy);
cudaError_t kernel_gelu(cudaStream_t stream, enum dtype dtype, enum activation activation, int64_t elements, const void *x,
			void *y);

/* random.cu: normally distributed numbers with this standard deviation, for measurements. */
cudaError_t kernel_random(cudaStream_t stream, enum dtype dtype, int64_t elements, uint64_t seed, float deviation, void *out);

/* columns.cu: dx = dx [* gelu'(pre)], in place, and its column sums over each part of the rows, for kernel_add_parts: parts
 * (part_count, columns). */
struct kernel_columns {
	enum dtype dtype;
	int64_t rows, columns, stride; /* of dx and pre; 0 = columns */
	int64_t part_count;
	void *dx;                   /* read-only without pre */
	const void *pre;            /* optional */
	enum activation activation; /* with pre */
	float *parts;               /* optional */
};
cudaError_t kernel_columns(cudaStream_t stream, const struct kernel_columns *a);

/* parts.cu: out[k][j] = or += sum over parts i, in order, of parts[i * stride + k * columns + j]. */
#define PART_OUTPUTS 3
struct kernel_add_parts {
	const float *parts;
	int64_t part_count, stride, columns;
	float *out[PART_OUTPUTS]; /* NULL: not wanted */
	bool overwrite;
};
cudaError_t kernel_add_parts(cudaStream_t stream, const struct kernel_add_parts *a);

/* Arguments of the attention kernels. Activations are rows of bf16, f16 or f32; columns as in ops.h. */
struct kernel_attention {
	const int32_t *starts;   /* [sequences + 1]; sequences may be empty */
	const int32_t *order;    /* [sequences] order in which sequences are processed, or NULL: by number */
	const uint32_t *samples; /* [sequences] */
	int32_t sequences, heads, hidden;
	int32_t longest;     /* no sequence is longer */
	int32_t above, upto; /* backward, sums: of sequences of more than `above` tokens, and at most `upto` */
	int32_t window;      /* tokens that a token sees to each side; without a window, more than there are */
	bool windowed;
	bool early;         /* forward with matrix kernels: as kernel_few_rows */
	int64_t tokens;     /* columns of lse */
	float scale;        /* of scores */
	uint32_t threshold; /* of dropout; 0: none */
	uint32_t site;
	float dropout_scale;
	const struct scalars *scalars; /* seed */
	uint16_t *kept; /* dropout mask (attention_kept_count()): written by forward of the matrix kernels unless it is NULL, and
			   read by their backward if there is dropout */
	const void *qkv;
	void *y;           /* forward: out */
	float *lse;        /* forward: out, may be NULL */
	const void *dy;    /* backward */
	void *dqkv;        /* backward: out */
	float *sums;       /* backward: out (sequences, 3 hidden), per-sequence column sums of dqkv; may be NULL */
	uint32_t *largest; /* of y, or of dqkv */
};

/* With matrix instructions, for bf16 and f16 and heads of 32, 64 or 128 columns. The *_shared functions give the shared memory
 * that a block needs. Only these kernels take `largest`. */
bool kernel_attention_has(enum dtype dtype, int32_t head_size);
/* attention_fwd.cu */
size_t kernel_attention_fwd_shared(int32_t head_size);
cudaError_t kernel_attention_fwd(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a);
/* attention_fwd_wgmma.cu: the same for heads of 64 columns, on GPUs of compute capability 9.0 only. */
cudaError_t kernel_attention_fwd_wgmma(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a);
/* attention_bwd.cu: one block handles one head of a whole sequence of at most ..._longest() tokens, 0 if no block can. Blocks of
 * sequences of up to ATTENTION_SHORT tokens share multiprocessors. */
#define ATTENTION_SHORT 128
int32_t kernel_attention_bwd_longest(int32_t head_size, size_t shared_limit);
cudaError_t kernel_attention_bwd(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a);
/* attention_bwd_wgmma.cu: the same for heads of 64 columns, on GPUs of compute capability 9.0 only. */
cudaError_t kernel_attention_bwd_wgmma(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a);
/* attention_bwd_long.cu: for any length, and windows; leaves `sums` to kernel_attention_sums. */
size_t kernel_attention_bwd_long_shared(int32_t head_size);
cudaError_t kernel_attention_bwd_long(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a,
				      size_t shared_limit);
/* attention_any.cu: without matrix instructions, for any type and heads of up to 256 columns; leaves `sums` to
 * kernel_attention_sums. */
#define ATTENTION_HEAD_LIMIT 256
size_t kernel_attention_any_shared(int32_t head_size);
cudaError_t kernel_attention_any_fwd(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a);
cudaError_t kernel_attention_any_bwd(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a);
cudaError_t kernel_attention_sums(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a);

#ifdef __cplusplus
}
#endif

#endif
