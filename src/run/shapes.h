/* How much a run computes at a time: the micro-batches of each phase, and limits that hold all of them. All ranks make the same
 * choices. */
#ifndef RUN_SHAPES_H
#define RUN_SHAPES_H

#include "model/flops.h"
#include "run/phases.h"
#include "run/plan.h"

/* What only the source of the data knows. `index` is a phase's number. */
struct shape_source {
	void *context;
	/* Makes micro-batches of up to `tokens`, or, if phase->steps.accumulation_steps is not 0, as it divides the batch: sets
	 * phase->steps.capacity and phase->evaluation_capacity. */
	void (*shape)(void *context, int64_t index, struct run_phase *phase, int64_t tokens);
	/* Mean number of tokens of the phase's training sequences. */
	enum status (*mean_length)(void *context, int64_t index, double *out);
	/* Bytes of host memory that batches read ahead take, and answers that are scored. */
	size_t (*reader_bytes)(void *context, int64_t index, const struct run_phase *phase);
	/* Bytes of device memory that a teacher takes for batches within these limits. NULL: there is no teacher. */
	size_t (*teacher_bytes)(void *context, const struct shape_limits *limits);
	/* FLOPs that it adds to those of training. NULL: there is no teacher. */
	double (*teacher_flops)(void *context, const struct model_work *work);
};

struct shapes {
	/* Borrowed from the run: */
	const struct machine *machine;
	const struct model *model;
	struct run_phase *phases; /* [phase_count] */
	int64_t phase_count;
	int64_t first_phase;       /* those before it are over and need no memory */
	int32_t longest_evaluated; /* tokens, if it may exceed max_seq_length; else 0 */
	bool narrow;               /* gradients are sent in 16 bits */
	bool averages;             /* the first rank keeps a mean of the weights */
	struct shape_source source;
	/* Chosen: */
	double memory_share;        /* share of the device memory otherwise planned with; reduced after each failed allocation */
	struct shape_limits limits; /* large enough for the training and evaluation batches of all phases */
};

/* Call it once the phases' batch sizes are known. If micro_batch_tokens is open, it becomes a choice of the phase. [all] */
MUST_USE enum status shapes_choose(struct shapes *shapes);
/* Call it after a failed allocation. Chooses smaller shapes, where the user did not set them; `*out_smaller` false: there are no
 * smaller ones. [all] */
MUST_USE enum status shapes_choose_smaller(struct shapes *shapes, bool *out_smaller);

/* FLOPs that a teacher adds to a step of `batch_size` sequences of `length` tokens; 0: there is no teacher. */
double shapes_teacher_flops(const struct shape_source *source, int64_t batch_size, int32_t length);
/* The memory that these shapes need. */
struct memory_plan shapes_memory(const struct shapes *shapes);
/* Describes how each phase's batch is divided into ranks, replicas and micro-batches, and why. */
void shapes_print(const struct shapes *shapes, struct buffer *out);

#endif
