/* One step on the device, for loop.c: its scalars, its gradients, their results, and why they are not finite. */
#ifndef TRAIN_STEP_H
#define TRAIN_STEP_H

#include "train/loop.h"

/* The results of a step's gradients. */
struct step_result {
	struct measures metrics;
	struct guard_reading reading;
	struct accumulators own; /* of this rank's micro-batches, as the operations left them */
	double gradient_square_sum;
	bool finite;  /* losses and gradients are finite: the condition for the update */
	bool updated; /* the update is queued; the device has skipped it if the step is not finite */
	double flops; /* FLOPs of its forward and backward passes, in all ranks */
};

/* The next step, with the counts of all ranks. If it fails in one rank, it fails in all. */
MUST_USE enum status step_next(struct training *training, const struct step **out);

/* Sets the values that the device keeps from step to step, before the first step. */
void step_start(struct training *training);
/* Sets the values that the operations of this step read on the device. */
void step_begin(struct training *training, const struct step *step, double learning_rate);
/* Forward and backward of every micro-batch of this rank; gradients add up over the micro-batches, and over ranks, each of
 * which then has its share of the sum. STOPPED if that was requested between two micro-batches: the step then counts as not
 * made. */
MUST_USE enum status step_gradients(struct training *training, const struct step *step, struct step_result *result);
/* Waits for the gradients, and reads sums and gradient norm over all ranks. All ranks get the same bits. If the device knows
 * everything that the update depends on (a single rank, no limit for spikes), the update is queued first: the host then
 * decides as the device has already decided. */
MUST_USE enum status step_measure(struct training *training, const struct step *step, struct step_result *result);
/* Every hundred steps: gathers and reports how all ranks spent their time. */
MUST_USE enum status step_report_times(struct training *training);
/* Has any rank been asked to stop after the newest step? All ranks get the same answer. */
bool step_stop(const struct training *training);
/* For a step that is not finite: runs it once more with checks after every micro-batch, and reports in a warning where it went
 * wrong and whether that is reproducible. ERR_NUMERIC if it has happened too often. The gradients are lost. */
MUST_USE enum status step_explain(struct training *training, const struct step *step, const struct step_result *result);

#endif
