/* What a run shows: progress bar, metrics.jsonl, TensorBoard events, report.html, and what seems wrong with it. The loop hands
 * over each step and evaluation in plain numbers; nothing here changes a number of the training, and nothing here knows a task
 * beyond what its objective says in struct report_task. */
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

/* What is known of the run before its first step; strings are borrowed, NULL or NaN where unknown. */
struct report_facts {
	const char *device;
	int32_t layers, hidden;
	int64_t parameters;
	int32_t vocab_size;
	double epoch_tokens; /* of one pass over the training data */
};

/* Lengths of the sequences trained on: LENGTH_BINS bins of `width` tokens. */
#define LENGTH_BINS 32
struct length_counts {
	int32_t width;
	int64_t count[LENGTH_BINS], sequences, tokens, longest;
};

struct report {
	/* Set by the command: */
	bool silent;              /* of a rank that is not the first: nothing is written or shown */
	const char *folder;       /* of the run, for events and page; NULL: neither */
	const char *metrics_path; /* metrics.jsonl */
	double gemm_rate;         /* FLOP/s of matrix products measured on this machine; 0 = unknown */
	struct report_facts facts;
	struct report_task task;       /* what the run trains on, in the objective's words */
	const struct options *options; /* for the page's table of settings; NULL: without */

	/* The report's own: */
	int64_t total_steps, log_steps; /* of all phases, as far as is known; of the phase */
	int64_t phase_count;
	struct progress progress;
	double interval_seconds, interval_flops; /* since the last logged line */
	int64_t interval_tokens;
	struct measures smoothed; /* running means for the bar */
	struct history history;
	struct diagnosis diagnosis;
	struct event_file *events;
	struct length_counts lengths;
	double waited;                  /* for data, in all, as last reported */
	double page_written, page_cost; /* when, and how many seconds it took */
	bool page_failed;
	int32_t straggler;            /* the rank that was said to be slow, plus one; 0 = none */
	struct report_progress start; /* of this process */
	bool resume_logged;
};

/* A line of metrics.jsonl, which is also taken into the history. Releases the line. */
MUST_USE enum status report_append_line(struct report *report, struct buffer *line);

/* Cuts metrics.jsonl to the steps up to `state->step` (a killed run may have logged more than it saved), takes in what
 * it holds, opens this process's event file and starts the bar. */
MUST_USE enum status report_start(struct report *report, const struct report_progress *state);

/* A phase as a report knows it. */
struct report_phase {
	int64_t count;       /* of the run's phases */
	bool begins;         /* at this very step, after another phase */
	int64_t log_steps;   /* steps between two logged ones */
	int64_t total_steps; /* of the run, as far as is known */
	double peak_rate;    /* of the learning rate's schedule */
};
/* A phase begins or is resumed. */
/* The run will have so many steps, as it looks now: of one whose end the clock decides. */
void report_expect(struct report *report, int64_t total_steps);
void report_phase(struct report *report, const struct report_phase *phase, const struct report_progress *state);

struct step_report {
	const struct report_progress *state; /* after the step */
	const struct measures *metrics;
	double learning_rate, grad_norm; /* norm before clipping */
	double seconds, flops;           /* of this step */
	double waited;                   /* seconds for data since the objective was opened */
	/* What was trained on: */
	int64_t token_count, sequence_count;
	const int32_t *lengths; /* [sequence_count] tokens of each, or NULL */
};
MUST_USE enum status report_step(struct report *report, const struct step_report *step);

/* One evaluation set's scores. `set` is its name; NULL for the one to judge the run by. In metrics.jsonl
 * the names begin with "eval_", those of a named set with "eval_<set>_", and "eval_set" says so. */
MUST_USE enum status report_evaluation(struct report *report, const struct report_progress *state, const char *set,
				       const struct measures *metrics, double seconds);
/* After the scores of all sets. */
MUST_USE enum status report_evaluated(struct report *report, const struct report_progress *state);
/* What the seconds of `ranks` ranks went into: a line of metrics.jsonl, and a word about a rank that is slower than the
 * others. */
MUST_USE enum status report_times(struct report *report, const struct report_progress *state, const struct rank_times *all,
				  int32_t ranks);
/* The last word: `status` is how the loop ended. Releases what the report owns. */
void report_finish(struct report *report, const struct report_progress *state, enum status status);

#endif
