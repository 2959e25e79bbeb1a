/* What a run allocates on its device before the first step, and gives back. */
#ifndef RUN_MEMORY_H
#define RUN_MEMORY_H

#include "model/model.h"
#include "run/machine.h"
#include "train/average.h"
#include "train/optimizer.h"

/* Zero-initialise. */
struct run_memory {
	struct model *model;
	void *slabs[2]; /* its weights and gradients, of many ranks: the comm's */
	struct replica replica;
	struct activations *activations;
	struct optimizer *optimizer;
	struct average average;
};

/* The model's tables: it needs no memory of the device yet. */
MUST_USE enum status run_memory_describe(struct run_memory *memory, const struct machine *machine,
					 const struct model_config *config, const struct model_heads *heads);
/* All the rest, in all ranks or none: what one of them lacks is the error of all. `averages`: the weights' mean, too. [all] */
MUST_USE enum status run_memory_allocate(struct run_memory *memory, const struct machine *machine,
					 const struct shape_limits *limits, const struct optimizer_settings *optimizer,
					 bool averages);
/* After a failure, too; the model is then to be described anew. */
void run_memory_release(struct run_memory *memory, const struct machine *machine);

#endif
