/* A back end: memory, weights, and the operations of ops.h, behind one table of functions.
 *
 *   ref   float64, plain loops: the definition of every operation
 *   cpu   oneDNN and our fused loops; fp32 and bf16
 *   cuda  cuBLASLt and our own kernels; FP8, bf16, fp16, fp32 and TF32
 *
 * A back end knows no model. Model code calls the wrappers in ops.h, which check shapes and types once and then
 * dispatch.
 */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "backend/tensor.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/pool.h"
#include "data/batch.h"

struct operations; /* ops.h */
struct backend;

/* Scalars of a step, in device memory; operations take a pointer to it (replica->scalars), never host values. */
struct scalars {
	/* Written by the host for every step: SCALARS_OF_STEP bytes. */
	uint64_t seed; /* dropout's key */
	double learning_rate;
	double inverse_weight[BATCH_HEADS]; /* per head: its coefficient over the sum of its labels' weights in the whole step,
					       across all ranks and micro-batches */
	double inverse_tokens;              /* 1 over the number of tokens in the whole step */
	double max_grad_norm;               /* clip to this global norm; 0 = no clipping */
	double bias_correction1, bias_correction2; /* 1 - beta^t, or 1 for Google's AdamW */
	/* Kept on the device between steps (loss_scale.h); the host sets the initial values. */
	double loss_scale;     /* factor applied to losses before backward: 1 unless fp16 */
	int64_t clean_steps;   /* steps without an overflow since the scale last changed */
	int64_t dynamic_scale; /* 1: the scale follows the gradients' range; 0: it is fixed */
	/* Results of sumsq_finite over a step's gradients; read by the optimizer on the device. */
	double gradient_square_sum; /* of the gradients as stored, loss scale included */
	double gradient_scale;      /* the loss scale that they carry */
	int64_t losses_finite;      /* 1 if every loss is finite */
	int64_t finite;             /* 1 if every gradient and every loss is finite; otherwise the optimizer does nothing */
};
#define SCALARS_OF_STEP offsetof(struct scalars, loss_scale)

/* Sums of a step's losses, in device memory (replica->accumulators). The objective decides what each one means. */
#define ACCUMULATOR_COUNT 16
struct accumulators {
	double value[ACCUMULATOR_COUNT];
};

/* How a weight is used; determines which compute copies the back end keeps. */
enum weight_use {
	WEIGHT_VECTOR, /* bias, gamma, beta: (1, n) */
	WEIGHT_LINEAR, /* (O, I): y = x w', dx = dy w */
	WEIGHT_HEAD,   /* the same, but in a task head: never in FP8 */
	WEIGHT_TABLE,  /* (rows, H): looked up */
	WEIGHT_TIED,   /* (V, H): looked up, and also used as the output layer's weight */
	WEIGHT_OUTPUT, /* (V, H): an output layer's weight of its own */
};

/* A weight as the model sees it: the fp32 master (float64 on ref), its gradient (at the same offset in another slab; data is
 * NULL when not training) and the back end's compute copies, which weights_refresh() updates after an optimizer step or a
 * load. */
struct weight {
	enum weight_use use;
	struct tensor master, gradient;
	void *copy;       /* owned by the back end */
	bool unquantized; /* with int8: products with this weight stay in the activations' type */
	int64_t copy_bytes;
	int64_t first_row; /* of a table: where master and gradient begin within the copy (0: with its first row) */
};

/* One trainer on a device: a queue, workspace and scalars. The replicas on a device share its weights. */
struct replica {
	struct backend *backend;
	const struct operations *operations;
	struct scalars *scalars;           /* device memory */
	struct accumulators *accumulators; /* device memory */
	void *workspace;
	size_t workspace_bytes;
	void *state; /* the back end's own */
};

/* The largest shapes that operations will see; the workspace is sized for them. */
struct shape_limits {
	struct batch_capacity batch;
	int32_t longest; /* tokens in the longest sequence */
	int32_t hidden, heads, intermediate, vocab;
	int32_t embedding; /* columns of the embeddings and of the rows that meet the vocabulary; 0: hidden */
	bool training;
	bool exact; /* batches are not padded (backend_functions.room) */
};

/* Columns of the widest rows with a norm. */
static inline int32_t widest_norm(const struct shape_limits *limits)
{
	return limits->embedding > limits->hidden ? limits->embedding : limits->hidden;
}

/* Identifies a run of operations. Equal keys mean the same operations with the same arguments; only the contents of device
 * memory may differ. */
enum work_part { WORK_TRAINING_FIRST, WORK_TRAINING_NEXT, WORK_BACKWARD, WORK_LOSS, WORK_PREDICTIONS, WORK_UPDATE };
struct work_key {
	const void *owner; /* whose memory they use: activations, an objective, an optimizer */
	enum work_part part;
	int32_t tokens, sequences, examples, longest, labels[BATCH_HEADS];
	int32_t hooks; /* 0: none; work that calls hooks (`hook` below) has another number for each set of them */
};

struct backend_settings {
	const char *device; /* "cpu", "cuda" or "ref" */
	enum dtype dtype;   /* of activations: F32 or BF16 on cpu, F16 too on cuda; ref always computes in F64 */
	bool tf32;          /* cuda, F32: products in TF32 */
	bool fp8;           /* with BF16: linear layers multiply in FP8 (cuda), or as if they did (cpu, ref) */
	bool inference; /* forward passes only; the CPU uses products specialized for it, and reads no master once it is packed */
	bool int8;      /* with inference: linear layers multiply in int8 (cpu, ref); dtype applies to everything else */
	struct pool *pool; /* borrowed */
};

/* Rows of a weight as the host holds them: the input of weight_pack. */
struct weight_rows {
	int64_t first, count; /* which rows of the weight */
	enum dtype dtype;     /* F32, F16, BF16 or S8 */
	const void *data;     /* (count, columns), dense */
	const float *scales;  /* S8: (count) */
};

/* The products of a linear layer x (rows, inputs), w (outputs, inputs): y = x w', dx = dy w, dw = dy' x. */
enum whole_product { WHOLE_FORWARD, WHOLE_DGRAD, WHOLE_WGRAD };

/* The functions a back end supplies. All sizes are queried before anything is allocated. */
struct backend_functions {
	/* Memory is zeroed. */
	enum status (*allocate)(struct backend *be, void **out, size_t bytes, const char *what);
	void (*release)(struct backend *be, void *memory);
	void (*to_device)(struct backend *be, void *device, const void *host, size_t bytes);
	void (*to_host)(struct backend *be, void *host, const void *device, size_t bytes); /* blocks until the copy is done */

	/* Bytes of compute copies that this weight needs; weights_refresh() fills the copies in weight->copy (aligned to
	 * ARENA_ALIGNMENT). */
	size_t (*weight_copy_bytes)(struct backend *be, const struct weight *weight);
	void (*weights_refresh)(struct replica *replica, struct weight *const *weights, int64_t count);
	/* Inference only, an alternative to weights_refresh: converts some rows of a weight straight from host memory into its
	 * compute copy, so that no master (nor master.data) is needed. A weight is complete when all its rows have been
	 * packed. NULL: only weights_refresh is available. */
	void (*weight_pack)(struct backend *be, struct weight *weight, const struct weight_rows *rows);

	size_t (*workspace_bytes)(struct backend *be, const struct shape_limits *limits);
	/* With fp8 in training, or with int8: bytes of tensor.twin, zeroed memory that accompanies activations (rows, columns)
	 * used as FP8 or int8 operands: an x, or a dy if `gradient` is set. The operation that writes the tensor and the
	 * product that multiplies it cache there what need not be recomputed; if x has a twin, backward reads only the twin. A
	 * tensor without one gives the same result, but more slowly. NULL: tensors have no twins. */
	size_t (*twin_bytes)(struct backend *be, int64_t rows, int64_t columns, bool gradient);
	/* Bytes of lse's twin in training with dropout on attention probabilities, where forward saves the dropout mask for
	 * backward, for up to `longest` tokens per sequence. NULL or 0: backward generates the mask again. */
	size_t (*kept_bytes)(struct backend *be, int64_t heads, int64_t head_size, int64_t longest,
			     const struct batch_capacity *capacity);
	/* For devices with memory of their own: bytes of device memory that replica_create takes besides the workspace, and
	 * bytes of host memory used for staging; free and total device memory. NULL: the device uses host memory. */
	void (*batch_bytes)(struct backend *be, const struct shape_limits *limits, size_t *out_device, size_t *out_host);
	enum status (*memory_left)(struct backend *be, size_t *out_left, size_t *out_all);
	enum status (*replica_create)(struct backend *be, struct replica *replica, const struct shape_limits *limits);
	void (*replica_release)(struct replica *replica);
	/* The capacity that batches may be padded to by upload: activations need room for it. NULL: batches are not padded. */
	struct batch_capacity (*room)(struct batch_capacity capacity);
	/* The number of tokens that upload pads a batch of this shape to. NULL: batches are not padded. */
	int32_t (*filled)(int32_t tokens, int32_t sequences, int32_t longest);
	/* Copies a host batch to the device, padded with sequences and predictions that change no loss and no gradient; on the
	 * CPU the host's arrays are used in place. Invalidates the batch returned by the previous upload. */
	void (*upload)(struct replica *replica, const struct batch *host, struct batch *device);
	/* Queues the operations that `work` calls; `work` must do nothing else. Repeated work may be recorded once and from
	 * then on queued without calling `work`. NULL: nothing is recorded. Call it through work_queue() (ops.h). */
	void (*queue_work)(struct replica *replica, const struct work_key *key, void (*work)(void *context), void *context);
	/* For a function that such work must call every time, between its operations, although it is not an operation itself:
	 * a recording whose key has hooks is made in pieces, between which it is called. Call it through work_hook() (ops.h). */
	void (*hook)(struct backend *be, void (*call)(void *context, int32_t layer), void *context, int32_t layer);
	/* Waits for all queued work; reports the first asynchronous error. */
	enum status (*synchronize)(struct replica *replica);
	/* The queue that operations run on, for callers that queue work of their own alongside them; NULL where operations are
	 * complete when they return. convert() is for such callers: it converts numbers between types (F32 to BF16 or F16, or
	 * back) on a queue of the caller's. */
	void *(*queue)(struct backend *be);
	enum status (*convert)(struct backend *be, void *queue, void *out, enum dtype to, const void *in, enum dtype from,
			       int64_t count);
	/* Also for such callers: turns an error code that the device's library returned into a status, message and hint. */
	enum status (*explain)(int error, const char *call);
	/* FLOP/s of large matrix products in the back end's dtype, measured now (in well under a second) with the library's
	 * own products: the denominator of "share of the GEMM rate". NULL: not measured. */
	double (*gemm_rate)(struct backend *be);
	/* Memory bandwidth in bytes per second while copying large ranges, counting both reads and writes, measured now. NULL:
	 * not measured. */
	double (*copy_rate)(struct backend *be);
	/* Bytes of the device's memory in use by all programs. NULL: the device uses host memory. */
	size_t (*memory_used)(struct backend *be);
	/* Seconds, by `clock`, that a whole-matrix product takes in the library's own call, with all threads and the weight
	 * packed in advance: the baseline for operations. NULL: there is no library. */
	enum status (*whole_product)(struct backend *be, enum whole_product product, int64_t rows, int64_t outputs,
				     int64_t inputs, double (*clock)(void), double *out_seconds);
	/* Choices that this back end made by measuring, since its bits depend on them: appended as lines, the first of which
	 * names the device and library. NULL: nothing is chosen by measuring. */
	void (*choices)(struct backend *be, struct buffer *out);
	/* Applies such lines from an earlier run instead of measuring; if lines contradict each other, the first one wins.
	 * Returns false and does nothing if they come from another device or library. */
	bool (*use_choices)(struct backend *be, const char *lines);
	void (*close)(struct backend *be);
};

struct backend {
	const char *name;        /* "cpu" */
	const char *description; /* "oneDNN 2.6.3, AMX bf16, 2 threads", for the settings table */
	const char *numerics;    /* what its bits depend on: "oneDNN 2.6.3, AMX bf16"; the thread count is not part of it */
	bool queues;             /* operations return before they are complete */
	enum dtype dtype;        /* of activations */
	enum dtype master_dtype; /* of master weights, gradients, moments: F32, or F64 on ref */
	bool fp8;                /* products with weights for which weight_in_fp8() is true are in FP8 */
	bool inference;          /* backend_settings.inference */
	bool int8;               /* products with weights for which weight_in_int8() is true are in int8 */
	const struct backend_functions *functions;
	const struct operations *operations;
	/* A weight's copy is its master in `dtype`, and all copies lie in one block in the same layout as the masters in their
	 * slab, so that an update writes them along with the masters (adamw, lamb_apply). */
	bool mirrors_masters;
	/* Preferred number of elements per update, if the weights allow it: what fits in the caches, or a whole model where
	 * launches dominate the cost. */
	int64_t update_elements;
	int32_t processors; /* multiprocessors of a GPU, which products are divided among; 0: not a GPU */
	struct pool *pool;
	void *state;
};

/* FP8 products need rows whose length is a multiple of 16 bytes. */
#define FP8_MULTIPLE 16
/* Whether products with a weight round both operands to FP8 (fp8.h): x and w to E4M3, dy to E5M2. Sums, biases, bias gradients
 * and everything after a product are unaffected. */
static inline bool weight_in_fp8(const struct backend *be, const struct weight *weight)
{
	return be->fp8 && weight->use == WEIGHT_LINEAR && weight->master.rows % FP8_MULTIPLE == 0 &&
	       weight->master.columns % FP8_MULTIPLE == 0;
}

/* With more inputs, int8 sums could overflow (int8.h). */
#define INT8_INPUTS_MOST 131072
/* Whether products with a weight multiply int8 numbers (int8.h). Sums, biases and everything after a product are unaffected. */
static inline bool weight_in_int8(const struct backend *be, const struct weight *weight)
{
	return be->int8 && weight->use == WEIGHT_LINEAR && !weight->unquantized && weight->master.columns <= INT8_INPUTS_MOST;
}

#endif
