/* What a run says of itself: progress bar, metrics.jsonl. The loop hands over each step; nothing here changes a
 * number of the training. */
#ifndef TRAIN_REPORT_H
#define TRAIN_REPORT_H

#include "base/error.h"
#include "base/log.h"
#include "train/checkpoint.h"
#include "train/objective.h"

struct report {
	const char *metrics_path;       /* metrics.jsonl */
	int64_t total_steps, log_steps;
	double gemm_rate;               /* FLOP/s of matrix products measured on this machine; 0 = unknown */
	struct progress progress;
	/* Since the last logged line: */
	double interval_seconds, interval_flops;
	int64_t interval_tokens;
	/* Running means for the bar. */
	struct metrics smoothed;
};

/* Cuts metrics.jsonl to the steps up to `state->step` (a killed run may have logged more than it saved) and starts
 * the bar. */
MUST_USE enum status report_start(struct report *report, const struct train_state *state);

struct step_report {
	const struct train_state *state;  /* after the step */
	const struct metrics *metrics;
	double learning_rate, grad_norm;  /* norm before clipping */
	double seconds, flops;            /* of this step */
	int64_t tokens;
};
MUST_USE enum status report_step(struct report *report, const struct step_report *step);
MUST_USE enum status report_evaluation(struct report *report, const struct train_state *state,
				       const struct metrics *metrics, double seconds);
void report_finish(struct report *report);

#endif
