/* How much a run computes at a time: the micro-batches of each phase, and what holds them all. All ranks choose the same. */
#ifndef RUN_SHAPES_H
#define RUN_SHAPES_H

#include "model/flops.h"
#include "run/phases.h"
#include "run/plan.h"

/* What only the source of the data knows. `phase` is the index of one. */
struct shape_source {
	void *context;
	/* Micro-batches of up to `tokens`, or as phase->steps.accumulation_steps cuts the batch if that is not 0: sets
	 * phase->steps.capacity and phase->evaluation_capacity. */
	void (*shape)(void *context, int64_t index, struct run_phase *phase, int64_t tokens);
	/* Mean tokens of what it trains on. */
	enum status (*mean_length)(void *context, int64_t index, double *out);
	/* Bytes of the host that batches read ahead take. */
	size_t (*reader_bytes)(void *context, int64_t index, const struct run_phase *phase);
	/* Bytes of the device that a teacher takes beside batches of these limits. NULL: nobody teaches. */
	size_t (*teacher_bytes)(void *context, const struct shape_limits *limits);
	/* FLOPs that it adds to those of training. NULL: nobody teaches. */
	double (*teacher_flops)(void *context, const struct model_work *work);
};

struct shapes {
	/* Of the run, borrowed: */
	const struct machine *machine;
	const struct model *model;
	struct run_phase *phases; /* [phase_count] */
	int64_t phase_count;
	int64_t first_phase;       /* those before it are over and need no room */
	int32_t longest_evaluated; /* tokens, where that may be above max_seq_length; else 0 */
	bool narrow;               /* gradients travel in 16 bits */
	bool averages;             /* the first rank keeps a mean of the weights */
	struct shape_source source;
	/* Chosen: */
	double memory_share;        /* of a device's memory that would be planned with: less after each allocation that failed */
	struct shape_limits limits; /* hold the batches of all phases, of both kinds */
};

/* With the phases' batches known; micro_batch_tokens that is open becomes a choice of the phase. [all] */
MUST_USE enum status shapes_choose(struct shapes *shapes);
/* After an allocation that failed: smaller ones, where they were not the user's; `*out_smaller` false: there are none. [all] */
MUST_USE enum status shapes_choose_smaller(struct shapes *shapes, bool *out_smaller);

/* FLOPs that a teacher adds to a step of so many sequences of `length` tokens; 0: nobody teaches. */
double shapes_teacher_flops(const struct shape_source *source, int64_t batch_size, int32_t length);
/* The memory that these shapes take. */
struct memory_plan shapes_memory(const struct shapes *shapes);
/* How each phase's batch is cut into ranks, replicas and micro-batches, and why; for people. */
void shapes_print(const struct shapes *shapes, struct buffer *out);

#endif
