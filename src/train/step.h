/* One step on the device, for loop.c: its scalars, its gradients, what they came to, and why they are not finite. */
#ifndef TRAIN_STEP_H
#define TRAIN_STEP_H

#include "train/loop.h"

/* What the gradients of a step came to. */
struct step_result {
	struct measures metrics;
	struct guard_reading reading;
	struct accumulators own; /* of this rank's micro-batches, as the operations left them */
	double gradient_square_sum;
	bool finite;  /* losses and gradients: what the update goes by */
	bool updated; /* the update is queued: the device has left it out if the step is not finite */
	double flops; /* model FLOPs of its forward and backward passes, in all ranks */
};

/* The next step with the counts of all ranks. What fails in one rank fails in all. */
MUST_USE enum status step_next(struct training *training, const struct step **out);

/* Sets what the device keeps from step to step, before the first. */
void step_start(struct training *training);
/* Sets what the operations of this step read on the device. */
void step_begin(struct training *training, const struct step *step, double learning_rate);
/* Forward and backward of every micro-batch of this rank; gradients add up over them, and over ranks, each of which then
 * has its share of the sum. STOPPED when that is asked for between two micro-batches: nothing has happened then. */
MUST_USE enum status step_gradients(struct training *training, const struct step *step, struct step_result *result);
/* Waits for them, and reads sums and gradient norm, of all ranks. All ranks get the same bits. Where the device knows all that an
 * update depends on (no other ranks, no limit for spikes) the update is queued before: what the host then decides is what the
 * device has decided. */
MUST_USE enum status step_measure(struct training *training, const struct step *step, struct step_result *result);
/* Every hundred steps: what the seconds of all ranks went into, gathered and reported. */
MUST_USE enum status step_report_times(struct training *training);
/* Does anyone ask to stop after the newest step? All ranks get the same answer. */
bool step_stop(const struct training *training);
/* For a step that is not finite: runs it once more with checks after every micro-batch and says where it went wrong and
 * whether it does so again. A warning; ERR_NUMERIC when it has happened too often. The gradients are lost. */
MUST_USE enum status step_explain(struct training *training, const struct step *step, const struct step_result *result);

#endif
