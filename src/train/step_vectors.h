/* The vectors of a whole step, for losses that see all of them at once: gradient caching (Gao et al. 2021).
 *
 * A forward pass of every micro-batch computes the vectors, which all ranks gather; every rank computes the same loss over all
 * of them, which gives the gradient of each vector; with these gradients, each micro-batch goes forward again, and backward.
 * Dropout masks are functions of sample and position, so both forward passes are the same. So the result of a step does not
 * depend on how it is divided into micro-batches and ranks. */
#ifndef TRAIN_STEP_VECTORS_H
#define TRAIN_STEP_VECTORS_H

#include "comm/comm.h"
#include "data/step_reader.h"
#include "model/model.h"
#include "tasks/task.h"

/* All pointers are borrowed. */
struct step_vectors_settings {
	const struct task_state *task;
	const struct task_set *train;
	const struct model *model;
	struct activations *activations;
	struct comm *comm; /* NULL: a single rank */
	const struct step_settings *steps;
	int32_t sequences; /* maximum per example */
};

struct step_vectors;
/* Allocates all large memory. */
MUST_USE enum status step_vectors_create(struct step_vectors **out, const struct step_vectors_settings *settings);
void step_vectors_free(struct step_vectors *vectors); /* NULL is fine */
/* Bytes of host memory that one takes. */
size_t step_vectors_bytes(const struct step_settings *steps, int32_t sequences, int32_t width, size_t master_bytes);
/* Computes the forward passes of this rank's micro-batches, the loss of the step, and its gradients. `owner` is the owner of
 * the recorded work. *out_loss: the mean loss over the examples of all ranks. [all] */
MUST_USE enum status step_vectors_compute(struct step_vectors *vectors, struct replica *replica, const struct step *step,
					  const void *owner, double *out_loss);
/* Sends the gradients of this rank's micro-batch `number` to the device; `batch` is that micro-batch on the device. */
void step_vectors_send(struct step_vectors *vectors, int32_t number, const struct batch *batch);

#endif
