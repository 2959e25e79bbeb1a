/* What a model's head gives for every example of a set. */
#ifndef INFER_OUTPUTS_H
#define INFER_OUTPUTS_H

#include "comm/comm.h"
#include "data/source.h"
#include "model/model.h"
#include "tasks/task.h"

struct output_pass {
	const struct model *model; /* borrowed, as the next three */
	struct activations *activations;
	struct replica *replica;
	struct comm *comm;              /* its ranks share the examples; NULL: one rank */
	struct batch_capacity capacity; /* of a batch; within that of the activations */
	/* Called now and then with the examples done; not OK ends the pass with that status. May be NULL. */
	enum status (*progress)(void *context, int64_t done);
	void *context;
};

/* Computes the outputs of head 0 for all examples of `instances`, a source in the order of its set, without dropout, into
 * `out`, which task_outputs_create() has made for that set. All ranks get all outputs. *out_loss (may be NULL) is the mean loss
 * over labels, NaN without any. STOPPED if that is asked for; ERR_NUMERIC if an output is not finite. [all] */
MUST_USE enum status outputs_compute(const struct output_pass *pass, struct instances *instances, struct task_outputs *out,
				     double *out_loss);

#endif
