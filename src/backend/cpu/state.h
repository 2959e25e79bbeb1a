/* What the files of the CPU back end share: its state, a replica's scratch memory, and the operations that its table names. */
#ifndef BACKEND_CPU_STATE_H
#define BACKEND_CPU_STATE_H

#include "backend/cpu/kernels.h"
#include "backend/cpu/onednn.h"
#include "backend/ops.h"
#include "base/memory.h"

struct cpu_state {
	struct onednn *dnnl;
	const struct cpu_kernels *kernels;
	struct operations operations; /* the back end's, and */
	struct backend_functions functions;
	struct arena *blocks; /* handed out by allocate */
	int64_t block_count, block_capacity;
	char numerics[112], description[136];
};

/* Columns of a tile at most, and of a block of the vocabulary. */
#define TILE_COLUMNS 512
/* Our own products: rows of a task whose sums are kept for all its columns, and its columns, at most (but a norm needs
 * all of its row). */
#define KEPT_ROWS 256
#define KEPT_COLUMNS 1024
#define VOCABULARY_BLOCK 512
/* Rows of predictions whose logits are in memory at a time, at most. */
#define VOCABULARY_ROWS 1024
/* A range of parameters is cut into this many parts, whose sums are then added in order. */
#define RANGE_PARTS 1024

/* Rows of predictions whose logits are in memory at a time in inference, at most. */
enum { VOCABULARY_CHUNK = 64 };

/* What inference has of the workspace besides (inference.h). */
struct inference_scratch {
	int64_t sum_floats;
	float *sums; /* products of few rows that a norm follows */
	int64_t operand_bytes;
	unsigned char *operand;   /* int8 rows of a tensor without a twin */
	unsigned char *attention; /* of each worker */
	struct {
		int64_t rows, columns; /* of a chunk; of whole panels of the vocabulary */
		float *logits;         /* (rows, columns) */
	} vocabulary;
};

/* Pieces of replica->workspace. Attention and the vocabulary's weight gradient use it from its beginning: what lies under
 * `vocabulary` alone outlives a call of theirs. A linear's weight gradient uses what lies behind the first `bytes`. */
struct cpu_scratch {
	size_t bytes;   /* of all but `vocabulary` */
	int64_t slices; /* of the longest operand */
	int64_t tile_floats, row_floats, part_floats;
	int64_t bits_bytes, blocks_bytes;
	float *tiles, *rows;   /* one piece of tile_floats, row_floats for each worker */
	unsigned char *blocks; /* of blocks_bytes: rows laid out for our own products (gemm_rows) */
	uint8_t *bits;
	float *parts;            /* partial sums: part_floats for each slice */
	double *range_sums;      /* [RANGE_PARTS] */
	double *slice_sums;      /* two for each slice */
	unsigned char *operands; /* rounded to FP8: two of operand_bytes; outlive any call */
	size_t operand_bytes;
	struct {
		int64_t rows;                      /* of a chunk, whole slices */
		float *logits;                     /* (blocks of the vocabulary, rows, VOCABULARY_BLOCK) */
		void *dlogits;                     /* the same in the activations' type */
		float *max, *sum;                  /* (blocks, rows) */
		int32_t *best;                     /* (blocks, rows) */
		float *lse, *factor, *label_logit; /* (rows) */
		double *loss, *correct;            /* (rows) */
	} vocabulary;                              /* in training and evaluation; in inference: */
	struct inference_scratch inference;
};

/* backend_functions.gemm_rate: of a product of BERT-base's shape, all threads. */
double cpu_gemm_rate(struct backend *be);
/* backend_functions.whole_product. */
enum status cpu_whole_product(struct backend *be, enum whole_product product, int64_t rows, int64_t outputs, int64_t inputs,
			      double (*clock)(void), double *out_seconds);

static inline struct cpu_state *cpu_state(const struct replica *r)
{
	return r->backend->state;
}

static inline const struct cpu_scratch *cpu_scratch(const struct replica *r)
{
	return r->state;
}

static inline void *cpu_blocks(const struct replica *r, int worker)
{
	const struct cpu_scratch *scratch = cpu_scratch(r);
	return scratch->blocks + worker * scratch->blocks_bytes;
}

static inline int64_t slice_count(int64_t rows)
{
	return (rows + ROW_MULTIPLE - 1) / ROW_MULTIPLE;
}

/* Valid rows of a slice. */
static inline int64_t slice_rows(int64_t rows, int64_t slice)
{
	int64_t left = rows - slice * ROW_MULTIPLE;
	return left < ROW_MULTIPLE ? left : ROW_MULTIPLE;
}

/* Too large to be in a cache when it is read again: written past them. */
static inline bool tensor_is_large(const struct tensor *t)
{
	return t->rows * t->columns * (int64_t)dtype_bytes(t->dtype) >= (int64_t)4 << 20;
}

/* Address of an element; NULL stays NULL. */
static inline void *tensor_at(const struct tensor *t, int64_t row, int64_t column)
{
	return t->data ? (char *)t->data + (row * t->columns + column) * (int64_t)dtype_bytes(t->dtype) : NULL;
}

/* Dropout of a slice's rows, with the worker's scratch. */
struct dropout_rows cpu_dropout(const struct replica *r, const struct dropout *dropout, const struct batch *batch,
				int64_t first_row, int worker);

/* out[c] = or += the sum over slices of parts[slice * stride + c], for c < columns. */
void cpu_add_parts(struct replica *r, const float *parts, int64_t slices, int64_t stride, int64_t columns, float *out,
		   bool overwrite);
/* Zeroes memory with all workers. */
void cpu_zero(struct replica *r, void *memory, size_t bytes);

/* The operations of ops.h that are not in attention.h. */
void cpu_embed_fwd(struct replica *r, const struct embed_fwd *a);
void cpu_embed_bwd(struct replica *r, const struct embed_bwd *a);
void cpu_linear_fwd(struct replica *r, const struct linear_fwd *a);
void cpu_linear_gelu_fwd(struct replica *r, const struct linear_gelu_fwd *a);
void cpu_linear_norm_fwd(struct replica *r, const struct linear_norm_fwd *a);
void cpu_norm_bwd(struct replica *r, const struct norm_bwd *a);
void cpu_linear_bwd(struct replica *r, const struct linear_bwd *a);
void cpu_gather_fwd(struct replica *r, const struct gather_fwd *a);
void cpu_gather_bwd(struct replica *r, const struct gather_bwd *a);
void cpu_pooling_fwd(struct replica *r, const struct pooling_fwd *a);
void cpu_pooling_bwd(struct replica *r, const struct pooling_bwd *a);
void cpu_vocab_xent(struct replica *r, const struct vocab_xent *a);
void cpu_vocab_topk(struct replica *r, const struct vocab_topk *a);
void cpu_xent(struct replica *r, const struct xent *a);
void cpu_squared_error(struct replica *r, const struct squared_error *a);
void cpu_binary_xent(struct replica *r, const struct binary_xent *a);
void cpu_group_xent(struct replica *r, const struct group_xent *a);
void cpu_segment_xent(struct replica *r, const struct segment_xent *a);
void cpu_pointer_xent(struct replica *r, const struct pointer_xent *a);
void cpu_soft_loss(struct replica *r, const struct soft_loss *a);
void cpu_hidden_error(struct replica *r, const struct hidden_error *a);
void cpu_row_dropout(struct replica *r, const struct row_dropout *a);
void cpu_sumsq_finite(struct replica *r, const struct sumsq_finite *a);
void cpu_adamw(struct replica *r, const struct adamw *a);
void cpu_lamb_norms(struct replica *r, const struct lamb_norms *a);
void cpu_lamb_apply(struct replica *r, const struct lamb_apply *a);

#endif
