/* A run's output: progress bar, metrics.jsonl, TensorBoard events, report.html, and findings about problems. The training loop
 * passes each step and evaluation as plain numbers. Nothing here influences training, or knows more of the task than its
 * objective says in struct report_task. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/error.h"
#include "base/log.h"
#include "base/option.h"
#include "base/measures.h"
#include "formats/event_file.h"
#include "report/diagnosis.h"
#include "report/history.h"
#include "report/progress.h"
#include "report/task.h"
#include "report/times.h"

/* What is known about the run before its first step; 0, NaN, or NULL if unknown. Strings are borrowed. */
struct report_facts {
	const char *device;
	const char *form; /* of the encoder: config.json's model_type */
	int32_t layers, hidden;
	int64_t parameters;
	int32_t vocab_size;
	double epoch_tokens; /* tokens of one pass over the training data */
};

/* Histogram of the lengths of training sequences: LENGTH_BINS bins of `width` tokens. */
#define LENGTH_BINS 32
struct length_counts {
	int32_t width;
	int64_t count[LENGTH_BINS], sequences, tokens, longest;
};

struct report {
	/* Set by the command: */
	bool silent;              /* write and show nothing: this rank is not the first */
	const char *folder;       /* run folder, for events and page; NULL: write neither */
	const char *metrics_path; /* metrics.jsonl */
	double gemm_rate;         /* measured FLOP/s of this machine's matrix products; 0 = unknown */
	struct report_facts facts;
	struct report_task task;       /* the task, as described by the objective */
	const struct options *options; /* for the page's table of settings; NULL: no table */

	/* Private: */
	int64_t total_steps, log_steps; /* of all phases, as far as known; of the current phase */
	int64_t phase_count;
	struct progress progress;
	double interval_seconds, interval_flops; /* since the last logged line */
	int64_t interval_tokens;
	struct measures smoothed; /* running means for the bar */
	struct history history;
	struct diagnosis diagnosis;
	struct event_file *events;
	struct length_counts lengths;
	double waited;                  /* total seconds spent waiting for data, as last reported */
	double page_written, page_cost; /* when the page was last written, and how many seconds that took */
	bool page_failed;
	int32_t straggler;            /* the rank last reported as slow, plus one; 0 = none */
	struct report_progress start; /* where this process started */
	bool resume_logged;
};

/* Appends a line to metrics.jsonl and to the history. Releases the line. */
MUST_USE enum status report_append_line(struct report *report, struct buffer *line);
/* Appends an event: `kind` began to hold, or is over. `advice` may be empty. */
MUST_USE enum status report_append_event(struct report *report, const struct report_progress *state, const char *kind, bool over,
					 const char *text, const char *advice);

/* Cuts metrics.jsonl after `state->step` (a killed run may have logged more than it saved), reads what is left, opens this
 * process's event file, and starts the progress bar. */
MUST_USE enum status report_start(struct report *report, const struct report_progress *state);

/* What a report knows of a phase. */
struct report_phase {
	int64_t count;       /* number of the run's phases */
	bool begins;         /* it begins at this step, after another phase */
	int64_t log_steps;   /* interval between logged steps */
	int64_t total_steps; /* of the run, as far as known */
	double peak_rate;    /* of the learning-rate schedule */
};
/* Updates the expected number of steps of a run that is limited by time. */
void report_expect(struct report *report, int64_t total_steps);
/* A phase begins or is resumed. */
void report_phase(struct report *report, const struct report_phase *phase, const struct report_progress *state);

struct step_report {
	const struct report_progress *state; /* after the step */
	const struct measures *metrics;
	const char *set;                 /* the training set it took its examples from; NULL: there is one */
	double learning_rate, grad_norm; /* norm before clipping */
	double seconds, flops;           /* of this step */
	double waited;                   /* seconds spent waiting for data since the objective was opened */
	/* What was trained on: */
	int64_t token_count, sequence_count;
	const int32_t *lengths; /* [sequence_count] tokens of each, or NULL */
};
/* Shows, diagnoses, and logs a step. */
MUST_USE enum status report_step(struct report *report, const struct step_report *step);

/* Reports one evaluation set's scores. `set` is its name, or NULL for the set that the run is judged by. In metrics.jsonl, the
 * names begin with "eval_" or, for a named set, with "eval_<set>_"; then "eval_set" holds the name. */
MUST_USE enum status report_evaluation(struct report *report, const struct report_progress *state, const char *set,
				       const struct measures *metrics, double seconds);
/* Call after the scores of all sets have been reported. */
MUST_USE enum status report_evaluated(struct report *report, const struct report_progress *state);
/* Logs how `ranks` ranks spent their time to metrics.jsonl, and reports a rank that is slower than the others. */
MUST_USE enum status report_times(struct report *report, const struct report_progress *state, const struct rank_times *all,
				  int32_t ranks);
/* The run ends at this step, earlier than planned, as `text` says. A run that is started again says it again, but logs it once.
 */
MUST_USE enum status report_early_end(struct report *report, const struct report_progress *state, const char *text);
/* Writes the final page and releases what the report owns. `status` is how the loop ended. */
void report_finish(struct report *report, const struct report_progress *state, enum status status);

#endif
