/* Shared by the host files of the CUDA back end. CUDA's own headers are included in this folder only. */
#ifndef BACKEND_CUDA_STATE_H
#define BACKEND_CUDA_STATE_H

#include <cuda_runtime_api.h>
#include "backend/cuda/kernels.h"
#include "backend/ops.h"
#include "base/memory.h"

/* Pinned memory that copies are staged through, used in rotation. */
#define STAGE_COUNT 4
#define STAGE_BYTES ((size_t)4 << 20)

struct stage {
	unsigned char *memory;
	cudaEvent_t done; /* completion of the copy from or to it */
};

struct gemm;   /* gemm.h */
struct graphs; /* graphs.h */

/* BERTC_FEW_ROWS: when few_rows.c uses its kernels. */
enum few_rows { FEW_ROWS_MEASURED, FEW_ROWS_NEVER, FEW_ROWS_ALWAYS };

struct cuda_state {
	int device, major, minor, processors;
	cudaStream_t stream; /* all work, in order */
	struct stage stages[STAGE_COUNT];
	int next_stage;
	struct gemm *gemm;
	struct graphs *graphs;
	bool wgmma; /* attention of heads of 64 columns with wgmma */
	bool tf32;
	enum few_rows few_rows;
	bool weights_written; /* by a kernel that may be the last one so far */
	size_t shared_limit;  /* maximum bytes of shared memory per block */
	/* The first call that failed: operations cannot return an error, so cuda_synchronize does. */
	cudaError_t failed;
	const char *failed_call;
	/* The first error from a library, kept for the same reason. */
	enum status refused;
	struct error refusal;
	void **blocks; /* handed out by allocate */
	int64_t block_count, block_capacity;
	char name[64], numerics[192], description[288];
};

/* A micro-batch on its way to the device; two are used in turn. */
struct pinned_batch {
	void *memory;
	cudaEvent_t copied; /* the copy to the device is done */
	bool cleared;
};

/* Header of an FP8 matrix, or of any weight's copy, in device memory: its scale, and what the scale is computed from
 * (kernels.h). */
struct fp8_head {
	_Alignas(ARENA_ALIGNMENT) uint32_t largest[LARGEST_WORDS];
	struct fp8_sizes sizes;              /* of a weight */
	float bound;                         /* no row of the tensor has a larger norm, or no element a larger magnitude */
	_Alignas(16) struct fp8_scale scale; /* cuBLASLt refuses an inverse at any other address */
};

/* Operands rounded to FP8, for the product that is running. */
struct cuda_fp8 {
	int64_t operand_bytes;     /* of each of the two */
	unsigned char *rows;       /* x in forward; in backward dy, then x' if x has no twin */
	unsigned char *dy_columns; /* dy', in backward */
	const void *written;       /* the twin of the tensor that its producer has written there, for the product that is next */
	struct fp8_head *x, *dy;   /* headers for operands without a twin */
};

/* Pieces of replica->workspace. */
struct cuda_scratch {
	void *gemm; /* cuBLASLt's workspace */
	size_t gemm_bytes;
	float *parts; /* ROW_PARTS x part_floats: partial sums over rows */
	int64_t part_floats;
	float *attention_sums; /* (sequences, 3H): column sums of dqkv for each sequence */
	float *embedding;      /* sums of word chunks, or of parts of the position gradient */
	double *sums;          /* partial sums: squares, LAMB */
	double *losses;        /* (2, loss_rows): each row's loss and whether it is correct */
	int64_t loss_rows;
	float *logits; /* (logit_rows, logit_stride); replaced by their gradients in place */
	int64_t logit_rows, logit_stride;
	struct cuda_fp8 fp8; /* only with FP8 */
};
/* Tensors per launch of lamb_norms. */
#define LAMB_TENSORS 256
#define VOCABULARY_PARTS 16 /* minimum, for column sums over the vocabulary */
/* Predictions whose logits are in memory at a time. */
#define LOGIT_ROWS 2048
/* The number of parts that the sequences are divided into for the position gradient. */
int32_t cuda_position_parts(int32_t sequences, int32_t longest);

/* replica->state. */
struct cuda_replica {
	struct batch_capacity room; /* of batches as operations see them: padded, unless */
	bool exact;                 /* `exact`: batches are used as they are */
	bool answers;               /* never trains */
	int32_t longest;
	void *batch; /* the micro-batch's arrays, on the device */
	size_t batch_bytes;
	struct pinned_batch pinned[2];
	int next_pinned;
	struct cuda_scratch scratch;
};

static inline struct cuda_state *cuda_state(const struct replica *r)
{
	return r->backend->state;
}

static inline struct cuda_scratch *cuda_scratch(const struct replica *r)
{
	return &((struct cuda_replica *)r->state)->scratch;
}

static inline cudaStream_t cuda_stream(const struct replica *r)
{
	return cuda_state(r)->stream;
}

/* Whether kernels may be launched early (kernels/device.cuh): in answers, whose kernels are short. */
static inline bool cuda_starts_early(const struct replica *r)
{
	return ((const struct cuda_replica *)r->state)->answers && cuda_state(r)->major >= 9;
}

/* A vector or table that may be absent. */
static inline const float *cuda_vector(const struct weight *weight)
{
	return weight ? weight->master.data : NULL;
}

/* error.c. Records the first call that failed; `call` names it in the message. Returns true if this one succeeded. */
bool cuda_check(struct cuda_state *state, cudaError_t error, const char *call);
/* The same, for use within an operation. */
static inline void cuda_run(const struct replica *r, cudaError_t error, const char *call)
{
	cuda_check(cuda_state(r), error, call);
}
/* Turns a CUDA error into a message and hint for the user. */
MUST_USE enum status cuda_error(cudaError_t error, const char *call);
MUST_USE enum status cuda_explain(int error, const char *call); /* the same, for backend_functions */

/* The dropout arguments for an operation's rows. */
struct kernel_dropout cuda_dropout(const struct replica *r, const struct dropout *dropout, const struct batch *batch);

/* memory.c: entries of backend_functions. */
MUST_USE enum status cuda_allocate(struct backend *be, void **out, size_t bytes, const char *what);
void cuda_release(struct backend *be, void *memory);
void cuda_to_device(struct backend *be, void *device, const void *host, size_t bytes);
void cuda_to_host(struct backend *be, void *host, const void *device, size_t bytes);
MUST_USE enum status cuda_stages_create(struct cuda_state *state);
void cuda_stages_release(struct cuda_state *state);

/* batches.c: likewise. */
void cuda_upload(struct replica *replica, const struct batch *host, struct batch *device);
MUST_USE enum status cuda_batches_create(struct replica *replica);
void cuda_batches_release(struct replica *replica);
/* Clears the block that the next batch will be written to, if the copy from it is done: the host has time for this while the
 * device works, but not between two steps, when the device waits for the batch. */
void cuda_batches_clear_next(struct replica *replica);
void cuda_batch_bytes(struct backend *be, const struct shape_limits *limits, size_t *out_device, size_t *out_host);

/* weights.c */
size_t cuda_weight_copy_bytes(struct backend *be, const struct weight *weight);
void cuda_weights_refresh(struct replica *replica, struct weight *const *weights, int64_t count);
MUST_USE enum status cuda_convert(struct backend *be, void *queue, void *out, enum dtype to, const void *in, enum dtype from,
				  int64_t count);
/* attention.c */
size_t cuda_kept_bytes(struct backend *be, int64_t heads, int64_t head_size, int64_t longest,
		       const struct batch_capacity *capacity);
/* fp8.c: a tensor's twin (backend_functions.twin_bytes) is an fp8_head, followed, if the tensor is an x, by x' in E4M3 (I,
 * rows rounded up). cuda_largest() is for kernels that write the tensor; cuda_largest_pass() follows kernels that do not
 * support it, and does nothing without a twin. */
size_t cuda_twin_bytes(struct backend *be, int64_t rows, int64_t columns, bool gradient);
uint32_t *cuda_largest(const struct tensor *tensor);
void cuda_largest_pass(const struct replica *r, const char *operation, const struct tensor *tensor);

/* The operand of products: the copy in the activations' type, or the master if that is fp32. */
const void *cuda_weight_operand(const struct replica *r, const struct weight *weight);

/* linear.c: adds up parts (count, columns) in order, into `out`. */
void cuda_add_parts(const struct replica *r, const float *parts, int64_t count, int64_t columns, float *out, bool overwrite,
		    const char *operation);
/* Runs the pass of kernels.h; with `bias`, its column sums become that bias's gradient. */
void cuda_column_sums(const struct replica *r, const struct kernel_columns *pass, const struct weight *bias, bool overwrite,
		      const char *operation);

/* norm.c: runs kernel_norm_bwd with the replica's parts, and turns their sums into gradients. `bias` is optional. */
void cuda_norm_backward(const struct replica *r, const char *operation, const struct weight *gamma, const struct weight *beta,
			const struct weight *bias, bool overwrite, const struct kernel_norm_bwd *a);

/* The operations. */
void cuda_linear_fwd(struct replica *r, const struct linear_fwd *a);
void cuda_linear_gelu_fwd(struct replica *r, const struct linear_gelu_fwd *a);
void cuda_linear_bwd(struct replica *r, const struct linear_bwd *a);
void cuda_embed_fwd(struct replica *r, const struct embed_fwd *a);
void cuda_embed_bwd(struct replica *r, const struct embed_bwd *a);
void cuda_norm_bwd(struct replica *r, const struct norm_bwd *a);
void cuda_vocab_xent(struct replica *r, const struct vocab_xent *a);
void cuda_vocab_topk(struct replica *r, const struct vocab_topk *a);
void cuda_vocab_max_fwd(struct replica *r, const struct vocab_max_fwd *a);
void cuda_vocab_max_bwd(struct replica *r, const struct vocab_max_bwd *a);
void cuda_xent(struct replica *r, const struct xent *a);
void cuda_squared_error(struct replica *r, const struct squared_error *a);
void cuda_binary_xent(struct replica *r, const struct binary_xent *a);
void cuda_group_xent(struct replica *r, const struct group_xent *a);
void cuda_list_loss(struct replica *r, const struct list_loss *a);
void cuda_segment_xent(struct replica *r, const struct segment_xent *a);
void cuda_pointer_xent(struct replica *r, const struct pointer_xent *a);
void cuda_soft_loss(struct replica *r, const struct soft_loss *a);
void cuda_hidden_error(struct replica *r, const struct hidden_error *a);
void cuda_row_dropout(struct replica *r, const struct row_dropout *a);
void cuda_sumsq_finite(struct replica *r, const struct sumsq_finite *a);
void cuda_adamw(struct replica *r, const struct adamw *a);
void cuda_lamb_norms(struct replica *r, const struct lamb_norms *a);
void cuda_lamb_apply(struct replica *r, const struct lamb_apply *a);
void cuda_gated_fwd(struct replica *r, const struct gated_fwd *a);
void cuda_gated_bwd(struct replica *r, const struct gated_bwd *a);
void cuda_linear_norm_fwd(struct replica *r, const struct linear_norm_fwd *a);
/* few_rows.c: the same operations as those without "few". */
MUST_USE enum status cuda_few_rows_open(struct cuda_state *state);
void cuda_few_linear_fwd(struct replica *r, const struct linear_fwd *a);
void cuda_few_linear_gelu_fwd(struct replica *r, const struct linear_gelu_fwd *a);
void cuda_few_linear_norm_fwd(struct replica *r, const struct linear_norm_fwd *a);
/* Reads BERTC_ATTENTION (docs/developers/cuda.md). */
MUST_USE enum status cuda_attention_open(struct cuda_state *state);
/* ERR_USAGE if there are no kernels for heads of this size on this GPU. */
MUST_USE enum status cuda_attention_check(const struct cuda_state *state, const struct shape_limits *limits);
void cuda_rotary(struct replica *r, const struct rotary *a);
void cuda_attention_fwd(struct replica *r, const struct attention_fwd *a);
void cuda_attention_bwd(struct replica *r, const struct attention_bwd *a);
void cuda_gather_fwd(struct replica *r, const struct gather_fwd *a);
void cuda_gather_bwd(struct replica *r, const struct gather_bwd *a);
void cuda_pooling_fwd(struct replica *r, const struct pooling_fwd *a);
void cuda_pooling_bwd(struct replica *r, const struct pooling_bwd *a);

#endif
