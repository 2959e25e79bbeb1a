/* What a run allocates on its device before the first step, and frees at the end. */
#ifndef RUN_MEMORY_H
#define RUN_MEMORY_H

#include "model/model.h"
#include "run/machine.h"
#include "train/average.h"
#include "train/optimizer.h"

/* Zero-initialize. */
struct run_memory {
	struct model *model;
	void *slabs[2]; /* weights and gradients when there are several ranks: owned by the comm */
	struct replica replica;
	struct activations *activations;
	struct optimizer *optimizer;
	struct average average;
};

/* Makes the model's tables, which need no device memory yet. */
MUST_USE enum status run_memory_describe(struct run_memory *memory, const struct machine *machine,
					 const struct model_config *config, const struct model_heads *heads);
/* Allocates everything else, on all ranks or on none: if one of them runs out of memory, all return the error. `averages`: also
 * the mean of the weights. [all] */
MUST_USE enum status run_memory_allocate(struct run_memory *memory, const struct machine *machine,
					 const struct shape_limits *limits, const struct optimizer_options *optimizer,
					 bool averages);
/* Call it after a failure, too; the model must then be described again. */
void run_memory_release(struct run_memory *memory, const struct machine *machine);

#endif
