/* The vectors of a whole step, for losses that see all of them at once: gradient caching (Gao et al. 2021).
 *
 * A forward pass of every micro-batch gives the vectors, which all ranks gather; the loss is computed of all of them, in every
 * rank alike, and gives the gradient of each vector; with that each micro-batch goes forward again, and backward. Masks of
 * dropout are functions of sample and position, so that both forward passes are the same. So a step is the same however it is
 * cut into micro-batches and ranks.
 */
#ifndef TRAIN_STEP_VECTORS_H
#define TRAIN_STEP_VECTORS_H

#include "comm/comm.h"
#include "data/step_reader.h"
#include "model/model.h"
#include "tasks/task.h"

/* All borrowed. */
struct step_vectors_settings {
	const struct task_state *task;
	const struct task_set *train;
	const struct model *model;
	struct activations *activations;
	struct comm *comm; /* NULL: one rank */
	const struct step_settings *steps;
	int32_t sequences; /* of an example at most */
};

struct step_vectors;
/* All large memory is taken here. */
MUST_USE enum status step_vectors_create(struct step_vectors **out, const struct step_vectors_settings *settings);
void step_vectors_free(struct step_vectors *vectors); /* NULL is fine */
/* Bytes of the host's memory that one takes. */
size_t step_vectors_bytes(const struct step_settings *steps, int32_t sequences, int32_t width, size_t master_bytes);
/* Forward passes of this rank's micro-batches, the loss of the step, and its gradients. `owner` is whose work is recorded.
 * *out_loss: the mean loss over the examples of all ranks. [all] */
MUST_USE enum status step_vectors_compute(struct step_vectors *vectors, struct replica *replica, const struct step *step,
					  const void *owner, double *out_loss);
/* Sends the gradients of micro-batch `number` of this rank to the device: `batch` as it lies there. */
void step_vectors_send(struct step_vectors *vectors, int32_t number, const struct batch *batch);

#endif
