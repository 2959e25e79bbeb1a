/* Detects problems of a run from its numbers alone, while it is running, and reports each finding once, in words and with advice.
 * The section "Unhealthy runs" of docs/reliability.md gives the thresholds and the reasons for them.
 *
 * All rules use means over a window of steps, so that one odd batch does not matter; only spikes are judged by single steps. */
#ifndef REPORT_DIAGNOSIS_H
#define REPORT_DIAGNOSIS_H

#include <stdbool.h>
#include <stdint.h>
#include "report/history.h"
#include "report/task.h"

/* A run has begun to learn when its loss is this far below the prior loss, in units of the task's scale, or its share of right
 * answers this far above the prior's. */
#define BEGUN_LOSS 0.1
#define BEGUN_SHARE 0.03

enum finding_kind {
	FINDING_SPIKE,       /* one loss far above those before it */
	FINDING_DIVERGED,    /* the loss is far above where it was, or above guessing */
	FINDING_RISING,      /* the loss is rising: the learning rate is too high */
	FINDING_UNSTABLE,    /* the gradient norm grows while the loss does not fall */
	FINDING_STUCK,       /* the model has learned only how frequent each answer is */
	FINDING_SLOW,        /* the model does not even learn that: the learning rate is too low */
	FINDING_COLLAPSED,   /* the model gives the same answer to every held-out example */
	FINDING_OVERFITTING, /* results on held-out examples get worse while the training loss falls */
	FINDING_REPEATED,    /* there is too little data: the model memorizes it */
	FINDING_WAITING,     /* the processors wait for data */
	FINDING_SLOWER,      /* steps take much longer than before */
	FINDING_NON_FINITE,  /* updates skipped because a gradient was not finite */
	FINDING_KINDS,
};
extern const char *const finding_names[FINDING_KINDS]; /* as in metrics.jsonl */

enum finding_weight { FINDING_NOTE, FINDING_WARNING, FINDING_SERIOUS };
extern const enum finding_weight finding_weights[FINDING_KINDS];

/* One thing to report. `over`: the earlier finding of this kind no longer holds. */
struct finding {
	enum finding_kind kind;
	bool over;
	char text[FINDING_TEXT_BYTES], advice[FINDING_ADVICE_BYTES]; /* sentences; advice may be empty */
};
#define FINDINGS_AT_ONCE 8
struct findings {
	int count;
	struct finding item[FINDINGS_AT_ONCE];
};

/* What is known before the first step; unknown values are NaN or 0, and rules that need them stay silent. */
struct diagnosis_facts {
	const struct report_task *task; /* borrowed; its baseline losses, scale, and words are used */
	double epoch_tokens;            /* tokens of one pass over the data */
	int64_t total_steps;
	double peak_rate; /* of the learning-rate schedule */
};

struct diagnosis_step {
	int64_t step, tokens; /* totals after this step, since the beginning of the run */
	double loss;          /* the task's `loss` */
	double share;         /* its `share` of right answers, or NaN */
	double grad_norm, learning_rate;
	double seconds; /* of this step, 0 if unknown */
	double waited;  /* of these seconds, those spent waiting for data */
	int64_t skipped_steps;
};

struct diagnosis_evaluation {
	int set;          /* index of the evaluation set */
	const char *name; /* "" or NULL for the one without a name */
	int64_t step;
	double loss;                              /* the task's `loss`, or NaN */
	double score;                             /* the measure that decides */
	double examples;                          /* number of examples behind the score; 0 if unknown */
	const struct report_confusion *confusion; /* or NULL */
};

/* A sliding window over the latest values. */
#define WINDOW_MOST 128
struct window {
	double value[WINDOW_MOST];
	int size, count, next; /* `count` values, at most `size`; `next` is replaced next */
};

#define DIAGNOSIS_SETS 16
struct diagnosis {
	struct diagnosis_facts facts;
	bool active[FINDING_KINDS];
	int64_t said[FINDING_KINDS];
	int64_t first_step, step, tokens;    /* first_step: where the current phase began */
	struct window loss, share, log_norm; /* their means are what the rules use */
	struct window trained;               /* the losses that evaluations are compared with */
	struct window recent;                /* losses without spikes */
	int above;                           /* consecutive losses judged to be spikes */
	int64_t spike_step;
	double first_loss, best_loss; /* loss of the first step; lowest mean */
	double best_norm;             /* mean gradient norm at the best loss */
	int64_t best_step;
	bool was_prior;                       /* the mean loss has come close to the prior loss */
	double counted_steps, counted_tokens; /* spent without progress, weighted by the learning rate */
	double half_loss;                     /* the best mean loss when half of the patience was spent */
	struct window rates;                  /* tokens per second of recent spans */
	double span_seconds, span_waited;
	int64_t span_steps, span_tokens;
	int slow_spans;
	int64_t skipped_steps;
	struct {
		int64_t step;             /* of the best evaluation */
		double score, train_loss; /* at that evaluation */
		double early_gap;         /* held-out minus training loss in the first pass over the text */
		bool told_apart;          /* the model once gave its examples different answers */
		int worse;                /* consecutive evaluations that were worse */
	} sets[DIAGNOSIS_SETS];
	int overfitting_set; /* the set that FINDING_OVERFITTING refers to */
};

void diagnosis_start(struct diagnosis *diagnosis, const struct diagnosis_facts *facts);
/* A new phase begins (other lengths, batches, or schedule): earlier levels no longer count. */
void diagnosis_phase(struct diagnosis *diagnosis, int64_t step);
/* Sets the run's length and peak learning rate, which may not have been known at the start. */
void diagnosis_plan(struct diagnosis *diagnosis, int64_t total_steps, double peak_rate);

/* Process a step or an evaluation and append new findings. */
void diagnosis_step(struct diagnosis *diagnosis, const struct diagnosis_step *step, struct findings *out);
void diagnosis_evaluation(struct diagnosis *diagnosis, const struct diagnosis_evaluation *evaluation, struct findings *out);

/* For a resumed run: process earlier logged steps, evaluations, and findings, in order, without reporting anything. */
void diagnosis_replay_step(struct diagnosis *diagnosis, const struct diagnosis_step *step);
void diagnosis_replay_evaluation(struct diagnosis *diagnosis, const struct diagnosis_evaluation *evaluation);
void diagnosis_replay_finding(struct diagnosis *diagnosis, const char *name, bool over);

/* The gravest active finding that describes the state of the run; -1: none. For a finished run, findings about speed are
 * ignored. */
int diagnosis_gravest(const struct diagnosis *diagnosis, bool finished);

#endif
