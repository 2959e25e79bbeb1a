/* What a report knows about a run's task. The objective fills it in: columns, baselines to compare them with, the deciding
 * measure, words to describe the task, and a preview of the model's answers. */
#ifndef REPORT_TASK_H
#define REPORT_TASK_H

#include "base/buffer.h"
#include "base/error.h"
#include "report/columns.h"
#include "report/progress.h"

/* The words in which the report describes the task, and the options it recommends changing. All are string literals. */
struct report_words {
	const char *subject;     /* what the loss is about, after "the loss of": "masked words"; "" = nothing to add */
	const char *data;        /* what training reads repeatedly: "text", "training data" */
	const char *held_out;    /* the evaluation set without a name: "held-out text", "dev set" */
	const char *prior;       /* all a model knows that gives every input the same best answer: "word frequencies" */
	const char *frequent;    /* that answer: "the most frequent word", "the mean" */
	const char *warmup;      /* the option for the warm-up: "--num_warmup_steps" */
	const char *length;      /* the option for the length: "--num_train_steps" */
	const char *usual_rates; /* usual learning rates: "1e-4 to 1e-3" */
	const char *why_stuck;   /* why a run does not learn, up to the advice to start again at a lower learning rate */
	const char *check_data;  /* a sentence: what to check in the data then */
	const char *remedy;      /* what helps a model that memorizes its data: "more text, a smaller model, or more dropout" */
};

/* A second thing that the model learns besides its main task, such as next sentences besides masked words. */
struct report_side {
	const char *subject;        /* "next sentences"; NULL: no second task */
	const char *loss, *score;   /* names of columns; the score is a share where higher is better */
	double chance;              /* the score of guessing */
	const char *not_yet;        /* a sentence for a score at the level of guessing */
	const char *nearly_perfect; /* a sentence for a score of at least 98 % */
};

/* What a loss means: answers questions like "is 7.3 normal?" */
struct report_stage {
	double loss;       /* the stage covers losses above this, up to that of the stage before */
	const char *means; /* sentences; NULL ends the list */
};

/* Predicted classes against the right ones. */
struct report_confusion {
	int32_t classes;
	const char *const *labels; /* [classes] */
	const int64_t *counts;     /* [classes][classes]: row = right class, column = predicted class */
};

/* What the model does with examples, shown below the charts. Any function may be NULL. */
struct report_preview {
	/* Called after all sets of an evaluation have been scored. */
	enum status (*update)(void *context, const struct report_progress *progress);
	/* Returns the latest confusion matrix of a set (NULL: the unnamed one), or NULL. */
	const struct report_confusion *(*confusion)(const void *context, const char *set);
	/* Appends sections of the page. */
	void (*write)(const void *context, struct buffer *html);
	void *context;
};

#define REPORT_COLUMNS 24
#define REPORT_STAGES 5
struct report_task {
	struct report_words words;
	struct report_column columns[REPORT_COLUMNS]; /* in the order of the charts */
	int column_count;
	const char *loss;    /* the column that training is judged by; every step has it */
	const char *share;   /* the column with the share of right answers, or NULL */
	const char *decides; /* the evaluation measure that says which model is better; NULL: `loss` */
	/* Baselines to compare with; NaN: unknown, and rules that need them stay silent. */
	double chance_loss;       /* loss of giving every answer the same probability */
	double prior_loss;        /* loss of knowing only how frequent each answer is */
	double prior_share;       /* share of right answers of always giving the most frequent one */
	const char *prior_answer; /* that answer, or NULL */
	/* Scaling of the rules for unhealthy runs (docs/reliability.md). */
	double scale;        /* of losses: 1, or for labeled tasks the loss to be overcome */
	double least_tokens; /* a run that has seen fewer is not reported as stuck */
	double spike_floor;  /* lower losses are never spikes; NaN: no floor */
	bool judges_repeats; /* warn if the data are read too often */
	struct report_side side;
	struct report_stage stages[REPORT_STAGES]; /* from the highest loss to the lowest; may be empty */
	struct report_preview preview;
};

/* Appends a column with the description of this name. More than REPORT_COLUMNS are a bug. */
struct report_column *report_task_add(struct report_task *task, const char *name);
/* The task's description of a column, or NULL. */
const struct report_column *report_task_column(const struct report_task *task, const char *name);

/* Describes a task whose answers are classes. `counts` says how many training examples have each of them; `labels` are borrowed.
 * The loss is cross entropy. Adds the columns loss and accuracy with baselines; the caller adds other measures and sets
 * `decides`. */
void report_task_classes(struct report_task *task, const int64_t *counts, const char *const *labels, int32_t classes);
/* Describes a task whose answers are numbers. `variance` is that of the training examples' values: the squared error of always
 * predicting the mean. Adds the column loss. */
void report_task_values(struct report_task *task, double variance);
/* Describes a task whose answers are any number of labels. `counts` says how many training examples have each of them. The loss
 * is the mean of the labels' binary cross entropies. Adds the columns loss and f1_micro. */
void report_task_labels(struct report_task *task, const int64_t *counts, int32_t labels, int64_t examples);
/* Describes a task of choosing among several options, from the loss and the share of right answers of guessing. Adds the columns
 * loss and accuracy. */
void report_task_choices(struct report_task *task, double chance_loss, double chance_share);
/* Describes a task about which nothing else is known: answer spans, rankings, embeddings. `chance_loss` is the loss of guessing,
 * or NaN. Adds the column loss. */
void report_task_plain(struct report_task *task, double chance_loss);

#endif
