/* Computes the outputs of a model's head for every example of a set. */
#ifndef INFER_OUTPUTS_H
#define INFER_OUTPUTS_H

#include "comm/comm.h"
#include "data/source.h"
#include "model/model.h"
#include "tasks/task.h"

struct output_pass {
	const struct model *model; /* borrowed, like the next three */
	struct activations *activations;
	struct replica *replica;
	struct comm *comm;              /* examples are divided among its ranks; NULL: a single rank */
	struct batch_capacity capacity; /* of a batch; at most that of the activations */
	/* Called now and then with the number of examples done; a status other than OK ends the pass. May be NULL. */
	enum status (*progress)(void *context, int64_t done);
	void *context;
};

/* Computes, without dropout, the outputs of head 0 for all examples of `instances`, a source in the order of its set, into `out`,
 * which task_outputs_create() has made for that set. All ranks get all outputs. *out_loss (may be NULL) becomes the mean loss
 * over labels, NaN if there are none. Returns STOPPED if a stop was requested, ERR_NUMERIC if an output is not finite. [all] */
MUST_USE enum status outputs_compute(const struct output_pass *pass, struct instances *instances, struct task_outputs *out,
				     double *out_loss);

#endif
