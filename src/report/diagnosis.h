/* Finds what is wrong with a run, from its numbers alone, while it runs, and reports each finding once, in words, with advice.
 * docs/reliability.md, "Unhealthy runs", has the thresholds and the reasons for them.
 *
 * All rules use means over a window of steps, so that one odd batch does not matter; only a spike is judged by itself. */
#ifndef REPORT_DIAGNOSIS_H
#define REPORT_DIAGNOSIS_H

#include <stdbool.h>
#include <stdint.h>
#include "report/history.h"
#include "report/task.h"

enum finding_kind {
	FINDING_SPIKE,       /* one loss far above those before it */
	FINDING_DIVERGED,    /* the loss is far above where it was, or above guessing */
	FINDING_RISING,      /* the loss goes up: the learning rate is too high */
	FINDING_UNSTABLE,    /* the gradient norm grows while the loss does not fall */
	FINDING_STUCK,       /* it has learned only how frequent each answer is */
	FINDING_SLOW,        /* it does not even learn that: the learning rate is too low */
	FINDING_COLLAPSED,   /* it gives the same answer to every held-out example */
	FINDING_OVERFITTING, /* results on held-out examples get worse while the training loss falls */
	FINDING_REPEATED,    /* there is too little data: the model learns it by heart */
	FINDING_WAITING,     /* the processors wait for data */
	FINDING_SLOWER,      /* steps take much longer than before */
	FINDING_NON_FINITE,  /* updates skipped because a gradient was not finite */
	FINDING_KINDS,
};
extern const char *const finding_names[FINDING_KINDS]; /* as in metrics.jsonl */

enum finding_weight { FINDING_NOTE, FINDING_WARNING, FINDING_SERIOUS };
extern const enum finding_weight finding_weights[FINDING_KINDS];

/* One thing to say; `over`: what was said of this kind no longer holds. */
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

/* What is known before the first step; NaN or 0 where it is not, and then rules that need it stay silent. */
struct diagnosis_facts {
	const struct report_task *task; /* borrowed: its losses to compare with, its scale, its words */
	double epoch_tokens;            /* tokens of one pass over the data */
	int64_t total_steps;
	double peak_rate; /* of the schedule */
};

struct diagnosis_step {
	int64_t step, tokens; /* after the step, since the run's first */
	double loss;          /* the task's `loss` */
	double share;         /* its `share` of right answers, or NaN */
	double grad_norm, learning_rate;
	double seconds; /* of this step, 0 if unknown */
	double waited;  /* of these, for data */
	int64_t skipped_steps;
};

struct diagnosis_evaluation {
	int set;          /* number of the evaluation set */
	const char *name; /* "" or NULL for the one without a name */
	int64_t step;
	double loss;                              /* the task's `loss`, or NaN */
	double score;                             /* the measure that decides */
	double examples;                          /* on how many that rests; 0 if unknown */
	const struct report_confusion *confusion; /* or NULL */
};

/* The last values of something, and their mean and deviation. */
#define WINDOW_MOST 128
struct window {
	double value[WINDOW_MOST];
	int size, count, next; /* of at most `size` */
};

#define DIAGNOSIS_SETS 16
struct diagnosis {
	struct diagnosis_facts facts;
	bool active[FINDING_KINDS];
	int64_t said[FINDING_KINDS];
	int64_t first_step, step, tokens;    /* first_step: where the present phase began */
	struct window loss, share, log_norm; /* means the rules look at */
	struct window recent;                /* losses without spikes */
	int above;                           /* losses in a row taken for spikes */
	int64_t spike_step;
	double first_loss, best_loss; /* of the means */
	double best_norm;             /* mean of the norms at the best loss */
	int64_t best_step;
	bool was_prior;                       /* the mean has come near the prior loss */
	double counted_steps, counted_tokens; /* without progress, weighted by the learning rate */
	double half_loss;                     /* the best mean when half of them were counted */
	struct window rates;                  /* tokens per second of spans */
	double span_seconds, span_waited;
	int64_t span_steps, span_tokens;
	int slow_spans;
	int64_t skipped_steps;
	struct {
		int64_t step;             /* of the best evaluation */
		double score, train_loss; /* there */
		double early_gap;         /* held-out above training loss in the first pass over the text */
		bool told_apart;          /* its examples once had different answers */
		int worse;                /* evaluations in a row that were worse */
	} sets[DIAGNOSIS_SETS];
	int overfitting_set; /* that FINDING_OVERFITTING speaks of */
};

void diagnosis_start(struct diagnosis *diagnosis, const struct diagnosis_facts *facts);
/* The task changed (another length, batch or schedule): levels before do not count from here on. */
void diagnosis_phase(struct diagnosis *diagnosis, int64_t step);
/* Length and rate of the run from here on, where the facts did not have them. */
void diagnosis_plan(struct diagnosis *diagnosis, int64_t total_steps, double peak_rate);

/* Takes in a step or an evaluation and adds what is to be said. */
void diagnosis_step(struct diagnosis *diagnosis, const struct diagnosis_step *step, struct findings *out);
void diagnosis_evaluation(struct diagnosis *diagnosis, const struct diagnosis_evaluation *evaluation, struct findings *out);

/* A resumed run: logged steps and findings of before, in order; nothing is said. */
void diagnosis_replay_step(struct diagnosis *diagnosis, const struct diagnosis_step *step);
void diagnosis_replay_finding(struct diagnosis *diagnosis, const char *name, bool over);

/* The finding that says most about the state of the run, gravest first; -1: there is none. Of a finished run the speed no longer
 * matters. */
int diagnosis_gravest(const struct diagnosis *diagnosis, bool finished);

#endif
