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
	int64_t total_steps, log_steps; /* of all phases, as far as is known; of the phase */
	int64_t phase_count;
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

/* A phase begins or goes on. */
void report_phase(struct report *report, const struct phase *phases, int64_t phase_count,
		  const struct train_state *state);

struct step_report {
	const struct train_state *state;  /* after the step */
	const struct metrics *metrics;
	double learning_rate, grad_norm;  /* norm before clipping */
	double seconds, flops;            /* of this step */
	const struct step *data;          /* what was trained on */
};
MUST_USE enum status report_step(struct report *report, const struct step_report *step);

/* One evaluation set's scores. `set` is its name; NULL for documents held out of the training text. In metrics.jsonl
 * the names begin with "eval_", those of a named set with "eval_<set>_", and "eval_set" says so. */
MUST_USE enum status report_evaluation(struct report *report, const struct train_state *state, const char *set,
				       const struct metrics *metrics, double seconds);
/* After the scores of all sets. */
MUST_USE enum status report_evaluated(struct report *report, const struct train_state *state);
/* The last word: `status` is how the loop ended. */
void report_finish(struct report *report, const struct train_state *state, enum status status);

#endif
