/* What a report knows of the task that a run trains on. The objective fills it in: its columns, what to compare them with, which
 * measure decides, the words for it, and a preview of what the model does. */
#ifndef REPORT_TASK_H
#define REPORT_TASK_H

#include "base/buffer.h"
#include "base/error.h"
#include "report/columns.h"
#include "report/progress.h"

/* The terms in which the report describes the task, and the options to change. All are literals. */
struct report_words {
	const char *subject;     /* what the loss is about, after "the loss of": "masked words"; "" = nothing to add */
	const char *data;        /* "text", "training data": what is read again and again */
	const char *held_out;    /* the evaluation set without a name: "held-out text", "dev set" */
	const char *prior;       /* what a model knows that gives every input the same best answer: "word frequencies" */
	const char *frequent;    /* that answer: "the most frequent word", "the mean" */
	const char *warmup;      /* the option for the warm-up: "--num_warmup_steps" */
	const char *length;      /* the option for the length: "--num_train_steps" */
	const char *usual_rates; /* of learning: "1e-4 to 1e-3" */
	const char *check_data;  /* a sentence: what to look at in the data when a run does not learn */
	const char *remedy; /* what helps a model that learns its data by heart: "more text, a smaller model, or more dropout" */
};

/* Something that the model learns besides what its loss is judged by, as next sentences beside masked words. */
struct report_side {
	const char *subject;        /* "next sentences"; NULL: there is none */
	const char *loss, *score;   /* names of columns; the score is a share, and higher is better */
	double chance;              /* score of guessing */
	const char *not_yet;        /* a sentence for a score at the level of guessing */
	const char *nearly_perfect; /* a sentence for a score of 98 % and more */
};

/* What a loss means: "is 7.3 normal?" */
struct report_stage {
	double loss;       /* it is above this, and not above that of the stage before */
	const char *means; /* sentences; NULL ends the list */
};

/* Predicted classes beside the right ones. */
struct report_confusion {
	int32_t classes;
	const char *const *labels; /* [classes] */
	const int64_t *counts;     /* [classes][classes]: row = right class, column = predicted class */
};

/* What the model does with examples, shown below the curves. Every function may be NULL. */
struct report_preview {
	/* After the scores of all sets of an evaluation. */
	enum status (*update)(void *context, const struct report_progress *progress);
	/* The newest classes predicted for a set (NULL: the one without a name), or NULL. */
	const struct report_confusion *(*confusion)(const void *context, const char *set);
	/* Sections of the page. */
	void (*write)(const void *context, struct buffer *html);
	void *context;
};

#define REPORT_COLUMNS 24
#define REPORT_STAGES 5
struct report_task {
	struct report_words words;
	struct report_column columns[REPORT_COLUMNS]; /* in the order of their charts */
	int column_count;
	const char *loss;    /* the column by which training is judged; every step has it */
	const char *share;   /* the column beside it that holds the share of right answers, or NULL */
	const char *decides; /* the measure of evaluations that says which model is better; NULL: `loss` */
	/* What the numbers are compared with; NaN: unknown, and rules that need it stay silent. */
	double chance_loss;       /* of giving every answer the same probability */
	double prior_loss;        /* of knowing how frequent each answer is, and nothing else */
	double prior_share;       /* of right answers, always giving the most frequent one */
	const char *prior_answer; /* that answer, or NULL */
	/* How the rules for unhealthy runs are scaled (docs/reliability.md). */
	double scale;        /* of losses: 1, or for tasks the loss to be overcome */
	double least_tokens; /* a run that has seen fewer is not called stuck */
	double spike_floor;  /* losses below are no spikes; NaN: no floor */
	bool judges_repeats; /* warn when the data are read too often */
	struct report_side side;
	struct report_stage
		stages[REPORT_STAGES]; /* from the highest loss to the lowest; none: nothing is known to compare with */
	struct report_preview preview;
};

/* Appends a column. More than REPORT_COLUMNS is a bug. */
struct report_column *report_task_add(struct report_task *task, const char *name);
/* The task's description of a column, or NULL. */
const struct report_column *report_task_column(const struct report_task *task, const char *name);

/* A task whose answers are classes, from how often the training examples have each of them; `labels` are borrowed. Loss is cross
 * entropy. Adds the columns loss and accuracy with their baselines; the caller adds its other measures and sets `decides`. */
void report_task_classes(struct report_task *task, const int64_t *counts, const char *const *labels, int32_t classes);
/* A task whose answers are numbers, from the variance of the training examples' values: the loss, a squared error, of always
 * saying the mean. Adds the column loss. */
void report_task_values(struct report_task *task, double variance);
/* A task whose answers are any number of labels, from how many of the training examples have each of them. The loss is the mean
 * of the labels' binary cross entropies. Adds the columns loss and f1_micro. */
void report_task_labels(struct report_task *task, const int64_t *counts, int32_t labels, int64_t examples);
/* A task of choosing among some: loss and share of right answers of guessing. Adds the columns loss and accuracy. */
void report_task_choices(struct report_task *task, double chance_loss, double chance_share);
/* A task of which nothing else is known: answer spans, rankings, embeddings. Adds the column loss. `chance_loss`: of guessing, or
 * NaN. */
void report_task_plain(struct report_task *task, double chance_loss);

#endif
