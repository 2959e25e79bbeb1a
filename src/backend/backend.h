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
	/* From the host, for every step: SCALARS_OF_STEP bytes. */
	uint64_t seed; /* dropout's key */
	double learning_rate;
	double inverse_weight[BATCH_HEADS]; /* of each head: its coefficient over the sum of its labels' weights in the whole
					       step, of all ranks and micro-batches */
	double inverse_tokens;              /* 1 over the tokens of the whole step */
	double max_grad_norm;               /* clip to this global norm; 0 = no clipping */
	double bias_correction1, bias_correction2; /* 1 - beta^t, or 1 for Google's AdamW */
	/* Kept on the device from step to step (loss_scale.h); from the host before the first. */
	double loss_scale;     /* what losses are multiplied by before backward: 1 unless fp16 */
	int64_t clean_steps;   /* without an overflow, since it last changed */
	int64_t dynamic_scale; /* 1: it follows the gradients' range; 0: it stays */
	/* What a step's gradients are, from sumsq_finite; read by the optimiser on the device. */
	double gradient_square_sum; /* of gradients as they lie, loss scale included */
	double gradient_scale;      /* the loss scale they carry */
	int64_t losses_finite;      /* 1 if every loss is finite */
	int64_t finite;             /* 1 if every gradient and every loss is finite: else the optimiser does nothing */
};
#define SCALARS_OF_STEP offsetof(struct scalars, loss_scale)

/* Sums of a step's losses, in device memory (replica->accumulators). Which is which is the objective's business. */
#define ACCUMULATOR_COUNT 16
struct accumulators {
	double value[ACCUMULATOR_COUNT];
};

/* How a weight is used; says which compute copies the back end keeps. */
enum weight_use {
	WEIGHT_VECTOR, /* bias, gamma, beta: (1, n) */
	WEIGHT_LINEAR, /* (O, I): y = x w', dx = dy w */
	WEIGHT_HEAD,   /* the same, but of a head: never in FP8 */
	WEIGHT_TABLE,  /* (rows, H): looked up */
	WEIGHT_TIED,   /* (V, H): looked up, and multiplied as the output layer */
};

/* A weight as the model sees it: the fp32 master (float64 on ref), its gradient (same offsets in another slab; NULL
 * data without training) and the back end's compute copies, refreshed by weights_refresh() after an update or a
 * load. */
struct weight {
	enum weight_use use;
	struct tensor master, gradient;
	void *copy;       /* owned by the back end */
	bool unquantised; /* in int8: products with this weight stay in the activations' type */
	int64_t copy_bytes;
};

/* One trainer on a device: a queue, workspace and scalars. Weights are shared by the replicas of a device. */
struct replica {
	struct backend *backend;
	const struct operations *operations;
	struct scalars *scalars;           /* device memory */
	struct accumulators *accumulators; /* device memory */
	void *workspace;
	size_t workspace_bytes;
	void *state; /* the back end's own */
};

/* Largest shapes that operations will see: sizes the workspace. */
struct shape_limits {
	struct batch_capacity batch;
	int32_t longest; /* tokens of the longest sequence */
	int32_t hidden, heads, intermediate, vocab;
	bool training;
	bool exact; /* batches are not filled up (backend_functions.room) */
};

/* What a stretch of operations depends on. Of equal keys the operations are the same, with the same arguments; only what
 * lies in device memory is another. */
enum work_part { WORK_TRAINING_FIRST, WORK_TRAINING_NEXT, WORK_BACKWARD, WORK_LOSS, WORK_PREDICTIONS, WORK_UPDATE };
struct work_key {
	const void *owner; /* whose memory they work on: activations, an objective, an optimiser */
	enum work_part part;
	int32_t tokens, sequences, examples, longest, labels[BATCH_HEADS];
};

struct backend_settings {
	const char *device; /* "cpu", "cuda" or "ref" */
	enum dtype dtype;   /* of activations: F32 or BF16 on cpu, F16 too on cuda; ref always computes in F64 */
	bool tf32;          /* cuda, F32: products in TF32 */
	bool cudnn;         /* cuda, BF16 and F16: attention by cuDNN */
	bool fp8;           /* with BF16: linear layers multiply in FP8 (cuda), or as if they did (cpu, ref) */
	bool inference;     /* forward passes only; on the CPU with products of their own, after which no master is read again */
	bool int8;          /* with inference: linear layers multiply in int8 (cpu, ref); dtype is that of all else */
	struct pool *pool;  /* borrowed */
};

/* Rows of a weight as a host has them: what weight_pack takes. */
struct weight_rows {
	int64_t first, count; /* rows of the weight */
	enum dtype dtype;     /* F32, F16, BF16 or S8 */
	const void *data;     /* (count, columns), dense */
	const float *scales;  /* S8: (count) */
};

/* The products of a linear layer x (rows, inputs), w (outputs, inputs): y = x w', dx = dy w, dw = dy' x. */
enum whole_product { WHOLE_FORWARD, WHOLE_DGRAD, WHOLE_WGRAD };

/* The functions a back end supplies. All sizes are asked before anything is allocated. */
struct backend_functions {
	/* Memory, zeroed. */
	enum status (*allocate)(struct backend *be, void **out, size_t bytes, const char *what);
	void (*release)(struct backend *be, void *memory);
	void (*to_device)(struct backend *be, void *device, const void *host, size_t bytes);
	void (*to_host)(struct backend *be, void *host, const void *device, size_t bytes); /* waits */

	/* Bytes of compute copies this weight needs, and laying them into `memory` (aligned to ARENA_ALIGNMENT). */
	size_t (*weight_copy_bytes)(struct backend *be, const struct weight *weight);
	void (*weights_refresh)(struct replica *replica, struct weight *const *weights, int64_t count);
	/* In inference, beside weights_refresh: some rows of a weight go straight from the host into its compute copy, which
	 * needs no master then (nor master.data). A weight is complete when all its rows have been packed. NULL: only
	 * weights_refresh. */
	void (*weight_pack)(struct backend *be, struct weight *weight, const struct weight_rows *rows);

	size_t (*workspace_bytes)(struct backend *be, const struct shape_limits *limits);
	/* With fp8 in training, or with int8: bytes of tensor.twin, zeroed memory beside activations (rows, columns) that
	 * products in FP8 or int8 multiply: an x, or with `gradient` a dy. The operation that writes the tensor and the product
	 * that multiplies it leave there what need not be computed again; of an x with a twin backward reads the twin alone. A
	 * tensor without one is multiplied with the same result, but not as fast. NULL: tensors have none. */
	size_t (*twin_bytes)(struct backend *be, int64_t rows, int64_t columns, bool gradient);
	/* Bytes of lse's twin in training with dropout of attention's probabilities, where forward leaves what dropout kept for
	 * backward: of up to `longest` tokens per sequence. NULL or 0: backward draws it again. */
	size_t (*kept_bytes)(struct backend *be, int64_t heads, int64_t head_size, int64_t longest,
			     const struct batch_capacity *capacity);
	/* Where memory is a device's: bytes of it that replica_create takes besides the workspace, and bytes of the host's that
	 * copies go through; what it has left, and has in all. NULL: memory is the host's. */
	void (*batch_bytes)(struct backend *be, const struct shape_limits *limits, size_t *out_device, size_t *out_host);
	enum status (*memory_left)(struct backend *be, size_t *out_left, size_t *out_all);
	enum status (*replica_create)(struct backend *be, struct replica *replica, const struct shape_limits *limits);
	void (*replica_release)(struct replica *replica);
	/* What batches of up to a capacity may be filled up to by upload: activations need room for it. NULL: they stay as they
	 * are. */
	struct batch_capacity (*room)(struct batch_capacity capacity);
	/* The tokens that upload makes of a batch's so many. NULL: they stay as they are. */
	int32_t (*filled)(int32_t tokens, int32_t sequences, int32_t longest);
	/* Copies a host batch to the device, filled up with sequences and predictions that change no loss and no gradient; on the
	 * CPU the host's arrays are used as they are. What the upload before gave is then no longer valid. */
	void (*upload)(struct replica *replica, const struct batch *host, struct batch *device);
	/* Queues the operations that `work` calls; it must do nothing else. What comes again may be recorded once, and from then
	 * on queued without calling `work`. NULL: nothing is recorded. ops.h's work_queue() is what one calls. */
	void (*queue_work)(struct replica *replica, const struct work_key *key, void (*work)(void *context), void *context);
	/* Waits for everything queued; reports the first asynchronous error. */
	enum status (*synchronize)(struct replica *replica);
	/* Where operations are queued, for who queues work of their own beside them; NULL where operations are done when they
	 * return. And what such a one needs: numbers of one type become another's (F32 to BF16 or F16, or back), on a queue of
	 * the caller's. */
	void *(*queue)(struct backend *be);
	enum status (*convert)(struct backend *be, void *queue, void *out, enum dtype to, const void *in, enum dtype from,
			       int64_t count);
	/* And what an error of the device means that a call of its library returned to such a one: status, message and hint. */
	enum status (*explain)(int error, const char *call);
	/* FLOP/s of large matrix products in the back end's dtype, measured now (well under a second) with the
	 * library's own products: what "share of the GEMM rate" is a share of. NULL: not measured. */
	double (*gemm_rate)(struct backend *be);
	/* Bytes a second that pass through memory while large ranges are copied, read and written ones, measured now. NULL: not
	 * measured. */
	double (*copy_rate)(struct backend *be);
	/* Bytes of the device's memory in use, by whatever program. NULL: it is the host's. */
	size_t (*memory_used)(struct backend *be);
	/* Seconds by `clock` that the library's own call for whole matrices takes for a product, with all threads and the
	 * weight packed before: what operations are measured against. NULL: there is no library. */
	enum status (*whole_product)(struct backend *be, enum whole_product product, int64_t rows, int64_t outputs,
				     int64_t inputs, double (*clock)(void), double *out_seconds);
	/* What this back end chose by measuring, since its bits depend on it: appended as lines, the first of which says on what
	 * device and with what library. NULL: nothing is chosen so. */
	void (*choices)(struct backend *be, struct buffer *out);
	/* Such lines of an earlier run: from now on they hold where this one would measure; of several that contradict each
	 * other the first. False, and nothing done: they come from another device or library. */
	bool (*use_choices)(struct backend *be, const char *lines);
	void (*close)(struct backend *be);
};

struct backend {
	const char *name;        /* "cpu" */
	const char *description; /* "oneDNN 2.6.3, AMX bf16, 2 threads" for the settings table */
	const char *numerics;    /* what its bits depend on: "oneDNN 2.6.3, AMX bf16"; not on threads */
	bool queues;             /* operations return before they are done */
	enum dtype dtype;        /* of activations */
	enum dtype master_dtype; /* of master weights, gradients, moments: F32, or F64 on ref */
	bool fp8;                /* products with weights that weight_in_fp8() names are in FP8 */
	bool inference;          /* backend_settings.inference */
	bool int8;               /* products with weights that weight_in_int8() names are in int8 */
	const struct backend_functions *functions;
	const struct operations *operations;
	/* A weight's copy is its master in `dtype`, and all copies lie in one block as the masters lie in the slab: an update
	 * writes them as it goes (adamw, lamb_apply). */
	bool mirrors_masters;
	/* Elements that an update had best take at a time, if weights allow: what caches hold, or all of a model, where a
	 * launch is what costs. */
	int64_t update_elements;
	int32_t processors; /* multiprocessors of a GPU, among which products are cut; 0: not one */
	struct pool *pool;
	void *state;
};

/* FP8's products need rows of whole 16 bytes. */
#define FP8_MULTIPLE 16
/* Whether the products with a weight have both their operands rounded to FP8 (fp8.h): x and w to E4M3, dy to E5M2. Sums,
 * biases, gradients of biases and all that follows a product are as they are without. */
static inline bool weight_in_fp8(const struct backend *be, const struct weight *weight)
{
	return be->fp8 && weight->use == WEIGHT_LINEAR && weight->master.rows % FP8_MULTIPLE == 0 &&
	       weight->master.columns % FP8_MULTIPLE == 0;
}

/* Inputs beyond this would not fit the sums of int8 (int8.h). */
#define INT8_INPUTS_MOST 131072
/* Whether the products with a weight multiply int8 numbers (int8.h). Sums, biases and all that follows a product are as they
 * are without. */
static inline bool weight_in_int8(const struct backend *be, const struct weight *weight)
{
	return be->int8 && weight->use == WEIGHT_LINEAR && !weight->unquantised && weight->master.columns <= INT8_INPUTS_MOST;
}

#endif
