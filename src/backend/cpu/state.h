/* Shared by the files of the CPU back end: its state, a replica's scratch memory, and the operations in its table. */
#ifndef BACKEND_CPU_STATE_H
#define BACKEND_CPU_STATE_H

#include "backend/cpu/kernels.h"
#include "backend/cpu/onednn.h"
#include "backend/ops.h"
#include "base/memory.h"

struct cpu_state {
	struct onednn *dnnl;
	const struct cpu_kernels *kernels;
	struct operations operations; /* the back end's own copies of both tables */
	struct backend_functions functions;
	struct arena *blocks; /* handed out by allocate */
	int64_t block_count, block_capacity;
	char numerics[112], description[136];
};

/* Maximum columns of a tile, and of a block of the vocabulary. */
#define TILE_COLUMNS 512
#define VOCABULARY_BLOCK 512
/* Limits for our own products: rows per task whose sums are kept for all its columns, and columns per task (a norm, however,
 * needs its whole row). */
#define KEPT_ROWS 256
#define KEPT_COLUMNS 1024
/* Maximum number of prediction rows whose logits are in memory at a time; in inference. */
#define VOCABULARY_ROWS 1024
enum { VOCABULARY_CHUNK = 64 };
/* A range of parameters is divided into this many parts, whose sums are then added in order. */
#define RANGE_PARTS 1024

/* Additional workspace areas for inference (inference.h). */
struct inference_scratch {
	int64_t sum_floats;
	float *sums; /* products with few rows that are followed by a norm */
	int64_t operand_bytes;
	unsigned char *operand;   /* int8 rows of a tensor without a twin */
	unsigned char *attention; /* one piece per worker */
	struct {
		int64_t rows, columns; /* rows of a chunk; columns in whole panels of the vocabulary */
		float *logits;         /* (rows, columns) */
	} vocabulary;
};

/* Pieces of replica->workspace. Attention and the vocabulary's weight gradient use the workspace from its beginning: only what
 * is in `vocabulary` survives a call to them. A linear's weight gradient uses what follows the first `bytes`. */
struct cpu_scratch {
	size_t bytes;   /* of everything but `vocabulary` */
	int64_t slices; /* of the longest operand */
	int64_t tile_floats, row_floats, part_floats;
	int64_t bits_bytes, blocks_bytes;
	float *tiles, *rows;   /* one piece of tile_floats or row_floats per worker */
	unsigned char *blocks; /* blocks_bytes per worker: rows packed for our own products (gemm_rows) */
	uint8_t *bits;
	float *parts;            /* partial sums: part_floats per slice */
	double *range_sums;      /* [RANGE_PARTS] */
	double *slice_sums;      /* two per slice */
	unsigned char *operands; /* rounded to FP8: two of operand_bytes; preserved across calls */
	size_t operand_bytes;
	struct {
		int64_t rows;                      /* of a chunk, in whole slices */
		float *logits;                     /* (blocks of the vocabulary, rows, VOCABULARY_BLOCK) */
		void *dlogits;                     /* the same in the activations' type */
		float *max, *sum;                  /* (blocks, rows) */
		int32_t *best;                     /* (blocks, rows) */
		float *lse, *factor, *label_logit; /* (rows) */
		double *loss, *correct;            /* (rows) */
	} vocabulary;                              /* for training and evaluation; for inference: */
	struct inference_scratch inference;
};

/* Logits of some rows and words, without bias. */
struct vocabulary_part {
	int64_t first_row, rows, first_column, columns;
	const float *logits, *bias; /* (rows, columns), rows `stride` apart; (columns) */
	int64_t stride;
};
/* For vocab_max_fwd: parts follow one another in the order of rows, after this. */
void cpu_vocabulary_max_start(struct replica *r, const struct vocab_max_fwd *a);
void cpu_vocabulary_max(const struct vocab_max_fwd *a, const struct vocabulary_part *part);

/* backend_functions.gemm_rate: for a product of BERT-base's shape, on all threads. */
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

/* Number of valid rows in a slice. */
static inline int64_t slice_rows(int64_t rows, int64_t slice)
{
	int64_t left = rows - slice * ROW_MULTIPLE;
	return left < ROW_MULTIPLE ? left : ROW_MULTIPLE;
}

/* Too large to still be in a cache when it is read again: written past the caches. */
static inline bool tensor_is_large(const struct tensor *t)
{
	return t->rows * t->columns * (int64_t)dtype_bytes(t->dtype) >= (int64_t)4 << 20;
}

/* Address of an element; NULL stays NULL. */
static inline void *tensor_at(const struct tensor *t, int64_t row, int64_t column)
{
	return t->data ? (char *)t->data + (row * t->columns + column) * (int64_t)dtype_bytes(t->dtype) : NULL;
}

/* A vector that may be absent. */
static inline const float *cpu_vector(const struct weight *weight)
{
	return weight ? weight->master.data : NULL;
}

/* Dropout for a slice's rows, with the worker's scratch. */
struct dropout_rows cpu_dropout(const struct replica *r, const struct dropout *dropout, const struct batch *batch,
				int64_t first_row, int worker);

/* out[c] = or += the sum over slices of parts[slice * stride + c], for c < columns. */
void cpu_add_parts(struct replica *r, const float *parts, int64_t slices, int64_t stride, int64_t columns, float *out,
		   bool overwrite);
/* Zeroes memory with all workers. */
void cpu_zero(struct replica *r, void *memory, size_t bytes);

/* The operations of ops.h, except those in attention.h. */
void cpu_embed_fwd(struct replica *r, const struct embed_fwd *a);
void cpu_embed_bwd(struct replica *r, const struct embed_bwd *a);
void cpu_linear_fwd(struct replica *r, const struct linear_fwd *a);
void cpu_linear_gelu_fwd(struct replica *r, const struct linear_gelu_fwd *a);
void cpu_gated_fwd(struct replica *r, const struct gated_fwd *a);
void cpu_gated_bwd(struct replica *r, const struct gated_bwd *a);
void cpu_linear_norm_fwd(struct replica *r, const struct linear_norm_fwd *a);
void cpu_norm_bwd(struct replica *r, const struct norm_bwd *a);
void cpu_linear_bwd(struct replica *r, const struct linear_bwd *a);
void cpu_gather_fwd(struct replica *r, const struct gather_fwd *a);
void cpu_gather_bwd(struct replica *r, const struct gather_bwd *a);
void cpu_pooling_fwd(struct replica *r, const struct pooling_fwd *a);
void cpu_pooling_bwd(struct replica *r, const struct pooling_bwd *a);
void cpu_vocab_xent(struct replica *r, const struct vocab_xent *a);
void cpu_vocab_topk(struct replica *r, const struct vocab_topk *a);
void cpu_vocab_max_fwd(struct replica *r, const struct vocab_max_fwd *a);
void cpu_vocab_max_bwd(struct replica *r, const struct vocab_max_bwd *a);
void cpu_xent(struct replica *r, const struct xent *a);
void cpu_squared_error(struct replica *r, const struct squared_error *a);
void cpu_binary_xent(struct replica *r, const struct binary_xent *a);
void cpu_group_xent(struct replica *r, const struct group_xent *a);
void cpu_list_loss(struct replica *r, const struct list_loss *a);
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
