/* What is wrong with a run, from its numbers alone, while it goes on: named in words, with advice, once each. The
 * thresholds and why they are as they are stand in docs/reliability.md, "Sick runs".
 *
 * Losses here are those of masked words (nats a prediction). All rules look at means over a window of steps, so that one
 * odd batch is no news; only a spike is judged by itself. */
#ifndef REPORT_DIAGNOSIS_H
#define REPORT_DIAGNOSIS_H

#include <stdbool.h>
#include <stdint.h>

enum finding_kind {
	FINDING_SPIKE,       /* one loss far above those before it */
	FINDING_DIVERGED,    /* the loss is far above where it was, or above guessing */
	FINDING_RISING,      /* the loss goes up: the learning rate is too high */
	FINDING_UNSTABLE,    /* the gradient norm grows while the loss does not fall */
	FINDING_STUCK,       /* it predicts word frequencies and nothing more */
	FINDING_SLOW,        /* it does not even learn word frequencies: the learning rate is too low */
	FINDING_OVERFITTING, /* held-out loss rises while training loss falls */
	FINDING_REPEATED,    /* the text is too small: learned by heart */
	FINDING_WAITING,     /* the processors wait for data */
	FINDING_SLOWER,      /* steps take much longer than before */
	FINDING_NON_FINITE,  /* updates left out because a gradient was not finite */
	FINDING_KINDS,
};
extern const char *const finding_names[FINDING_KINDS]; /* as in metrics.jsonl */

enum finding_weight { FINDING_NOTE, FINDING_WARNING, FINDING_SERIOUS };
extern const enum finding_weight finding_weights[FINDING_KINDS];

/* One thing to say; `over`: what was said of this kind no longer holds. */
struct finding {
	enum finding_kind kind;
	bool over;
	char text[320], advice[320]; /* sentences; advice may be empty */
};
#define FINDINGS_AT_ONCE 8
struct findings {
	int count;
	struct finding item[FINDINGS_AT_ONCE];
};

/* What is known before the first step; NaN or 0 where it is not, and rules that need it then hold their peace. */
struct diagnosis_facts {
	double unigram_entropy;   /* of the training tokens, nats: the loss of knowing frequencies alone */
	double frequent_accuracy; /* share of the most frequent token: the accuracy of always saying it */
	double vocab_size;
	double epoch_tokens; /* tokens of one pass over the text */
	int64_t total_steps;
	double peak_rate; /* of the schedule */
};

struct diagnosis_step {
	int64_t step, tokens; /* after the step, since the run's first */
	double mlm_loss, mlm_accuracy, grad_norm, learning_rate;
	double seconds; /* of this step, 0 if unknown */
	double waited;  /* of these, for data */
	int64_t skipped_steps;
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
	int64_t first_step, step, tokens;       /* first_step: where the present phase began */
	struct window loss, accuracy, log_norm; /* means the rules look at */
	struct window recent;                   /* losses without spikes */
	int above;                              /* losses in a row taken for spikes */
	int64_t spike_step;
	double first_loss, best_loss, best_norm; /* of the means */
	int64_t best_step;
	bool was_frequencies;                 /* the mean has come near the unigram entropy */
	double counted_steps, counted_tokens; /* without progress, weighted by the learning rate */
	double half_loss;                     /* the best mean when half of them were counted */
	struct window rates;                  /* tokens a second of spans */
	double span_seconds, span_waited;
	int64_t span_steps, span_tokens;
	int slow_spans;
	int64_t skipped_steps;
	struct {
		int64_t step;            /* of the best evaluation */
		double loss, train_loss; /* there */
		double early_gap;        /* held-out above training loss in the first pass over the text */
		int above;               /* evaluations in a row above it */
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
/* `set` numbers the evaluation sets; `name` is "" or NULL for documents held out of the training text. */
void diagnosis_evaluation(struct diagnosis *diagnosis, int set, const char *name, int64_t step, double mlm_loss,
			  struct findings *out);

/* A resumed run: logged steps and findings of before, in order; nothing is said. */
void diagnosis_replay_step(struct diagnosis *diagnosis, const struct diagnosis_step *step);
void diagnosis_replay_finding(struct diagnosis *diagnosis, const char *name, bool over);

/* The state of things in words for the head of a report. */
enum verdict_colour { VERDICT_PLAIN, VERDICT_GOOD, VERDICT_WARNING, VERDICT_BAD };
struct verdict {
	enum verdict_colour colour;
	char headline[160], text[640];
	int finding; /* kind the verdict rests on, -1 = none */
};
void diagnosis_verdict(const struct diagnosis *diagnosis, bool finished, struct verdict *out);

#endif
