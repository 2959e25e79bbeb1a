/* Sections of a report's page about a labeled task: the model's answers compared with the right ones. All are pure functions of
 * plain data. Texts may contain anything: they are escaped, and cut if long. struct task_preview keeps the data of the latest
 * evaluation for a report. */
#ifndef REPORT_PREVIEW_H
#define REPORT_PREVIEW_H

#include "base/measures.h"
#include "report/task.h"

/* The whole matrix for up to this many classes; for more, the pairs confused most often. */
#define CONFUSION_WHOLE 20
void report_confusion_html(const struct report_confusion *confusion, struct buffer *out);

/* Counts for one class: with a single label per example, with several, or of entities. */
struct report_class {
	const char *label;
	int64_t right, predicted, both; /* examples that have it; that the model gives it; both */
};
/* Precision, recall, F1, and examples of each class, in the order given, or lowest F1 first if there are more than
 * CONFUSION_WHOLE. */
void report_classes_html(const struct report_class *classes, int64_t count, struct buffer *out);
/* The same from a confusion matrix. */
void report_confusion_classes_html(const struct report_confusion *confusion, struct buffer *out);

/* A part of a text that was to be found, or that the model has found. */
struct report_span {
	size_t begin, end; /* bytes */
	const char *label; /* borrowed for as long as the preview lives */
	bool predicted;    /* by the model; false: it is a right one */
	bool agrees;       /* it is both */
};

/* An example that the model gets wrong. */
struct report_error {
	int64_t number;        /* of the example in its file, from 1; 0: do not show */
	const char *text;      /* NUL-terminated; any bytes */
	const char *pair;      /* its second text, or NULL */
	const char *right;     /* label, value, or answer, as text */
	const char *predicted; /* the same from the model */
	double loss;           /* of this example; NaN: do not show */
	/* In place of `right` and `predicted`: spans of the text, in its order; NULL: there are none. */
	const struct report_span *spans;
	int64_t span_count;
};
/* Lists errors in the order given. `total` is how many of all `examples` were wrong; negative: unknown. */
void report_errors_html(const struct report_error *errors, int64_t count, int64_t total, int64_t examples, struct buffer *out);

/* A right value and the predicted one. */
struct report_point {
	double right, predicted;
};
/* A chart of predicted against right values. */
void report_scatter_html(const struct report_point *points, int64_t count, struct buffer *out);

/* Probabilities of answers, right or wrong, as the model gives them and with a temperature. */
#define PREVIEW_STEPS 600
struct report_scores {
	struct score_bins plain, calibrated; /* calibrated: empty if there is no temperature */
	double temperature;
	/* The plain ones in steps of equal width of their logits, for precision and recall at each: wrong, right. */
	int64_t steps[PREVIEW_STEPS][2];
};
/* Charts of how often probabilities are right, and of precision against recall. */
void report_scores_html(const struct report_scores *scores, struct buffer *out);

/* One run of a sweep, which repeats a training with different settings. */
struct report_sweep_run {
	const char *name;          /* name of its folder */
	const char *const *values; /* [setting_count] values as given on the command line */
	double score;              /* the deciding measure; NaN: none yet */
	const char *status;        /* "finished", "running", "failed: ..." */
	bool over;                 /* finished or failed: if there is no score, there will be none */
};
struct report_sweep {
	const char *const *settings; /* [setting_count] names: "learning_rate", "seed" */
	int setting_count;
	const struct report_sweep_run *runs; /* [run_count] */
	int64_t run_count;
	struct report_column measure; /* what `score` is, its direction, and baselines */
	const char *set;              /* the set it was measured on: "dev set" */
};
/* Whether this setting repeats a training: the seed, or the fold that is held out. */
bool report_sweep_repeats(const char *setting);
/* A setting: the runs that differ only in what repeats them. If nothing does, each run is a setting of its own. */
struct report_sweep_group {
	int64_t first, runs;    /* index of its first run; number of its runs with a score */
	bool lacks;             /* a run ended without a score */
	double mean, deviation; /* of the scores (divisor n - 1); NaN without any score, or with fewer than two */
};
/* Gets all settings, best mean first; those with a run that ended without a score come last. The caller frees *out. */
MUST_USE enum status report_sweep_groups(const struct report_sweep *sweep, struct report_sweep_group **out, int64_t *out_count);
/* The best run of the best setting, since one lucky seed does not make a setting better; -1 if no run has a score. */
int64_t report_sweep_best(const struct report_sweep *sweep);
/* How many other runs have exactly the same score as run `best`, in a setting with the same mean. */
int64_t report_sweep_ties(const struct report_sweep *sweep, int64_t best);
/* A page: a chart for each setting that varies; all runs, best first; and, if seeds vary, means over them. */
void report_sweep_page(const struct report_sweep *sweep, const char *title, struct buffer *out);

/* The latest evaluation of the set that a run is judged by. Zero-initialize; data are copied, except for labels. */
#define PREVIEW_ERRORS 24
#define PREVIEW_POINTS 2000
struct task_preview {
	const char *const *labels; /* [classes] borrowed; NULL: answers are not classes */
	int32_t classes;
	/* Of the latest evaluation: */
	int64_t step;
	struct report_confusion confusion; /* counts are owned; classes 0: none */
	struct report_class *per_class;    /* [per_class_count] labels borrowed; for tasks without a confusion matrix */
	int64_t per_class_count;
	struct report_error errors[PREVIEW_ERRORS]; /* highest loss first; texts are owned */
	int error_count;
	int64_t wrong, examples;
	struct report_scores scores;
	struct report_point *points; /* if there are more than PREVIEW_POINTS, every point_stride-th */
	int64_t point_count, point_stride, point_number;
};
/* Begins a new evaluation and discards the previous one. */
void task_preview_begin(struct task_preview *preview, int64_t step);
/* Sets the confusion matrix from counts[classes][classes], as in struct report_confusion. */
MUST_USE enum status task_preview_confusion(struct task_preview *preview, const int64_t *counts);
/* Sets the figures of each class. */
MUST_USE enum status task_preview_classes(struct task_preview *preview, const struct report_class *classes, int64_t count);
/* Adds an example. `error` NULL: it was right. The errors with the highest losses are kept. */
MUST_USE enum status task_preview_example(struct task_preview *preview, const struct report_error *error);
/* Adds a value and its prediction. */
MUST_USE enum status task_preview_point(struct task_preview *preview, struct report_point point);
/* Adds a probability, and whether its answer was right. */
void task_preview_score(struct task_preview *preview, double score, bool right);
void task_preview_release(struct task_preview *preview);
/* The preview for a report; `preview` is borrowed. */
struct report_preview task_preview_of(struct task_preview *preview);

#endif
