/* Pieces of a report's page about a labelled task: what the model answers, beside what is right. Each is a pure function of plain
 * data; all text may hold anything (it is escaped, and cut where it is long). struct task_preview keeps the newest evaluation's
 * data for a report. */
#ifndef REPORT_PREVIEW_H
#define REPORT_PREVIEW_H

#include "report/task.h"

/* The whole matrix up to this many classes; of more, the pairs that are confused most often. */
#define CONFUSION_WHOLE 20
void report_confusion_html(const struct report_confusion *confusion, struct buffer *out);

/* One class in counts: of single-label classes, of labels that may be several, or of entities. */
struct report_class {
	const char *label;
	int64_t right, predicted, both; /* examples that have it, that are given it, and both at once */
};
/* Precision, recall, F1 and examples of each class, in the order given; of more than CONFUSION_WHOLE, worst F1 first. */
void report_classes_html(const struct report_class *classes, int64_t count, struct buffer *out);
/* The same from a confusion matrix. */
void report_confusion_classes_html(const struct report_confusion *confusion, struct buffer *out);

/* An example that the model gets wrong. */
struct report_error {
	int64_t number;        /* of the example in its file, from 1; 0: not shown */
	const char *text;      /* NUL-terminated; any bytes */
	const char *pair;      /* its second text, or NULL */
	const char *right;     /* label, value or answer, as text */
	const char *predicted; /* the same of the model */
	double loss;           /* of this example, NaN: not shown */
};
/* In the order given. `total` is how many examples were wrong in all, of `examples`; negative: unknown. */
void report_errors_html(const struct report_error *errors, int64_t count, int64_t total, int64_t examples, struct buffer *out);

/* A value that was to be predicted. */
struct report_point {
	double right, predicted;
};
void report_scatter_html(const struct report_point *points, int64_t count, struct buffer *out);

/* A sweep: the same training with several settings. */
struct report_sweep_run {
	const char *name;          /* of its folder */
	const char *const *values; /* [setting_count] as given on the command line */
	double score;              /* the measure that decides; NaN: none yet */
	const char *status;        /* "finished", "running", "failed: ..." */
	bool over;                 /* finished or failed: a score that is not there will not come */
};
struct report_sweep {
	const char *const *settings; /* [setting_count] names: "learning_rate", "seed" */
	int setting_count;
	const struct report_sweep_run *runs; /* [run_count] */
	int64_t run_count;
	struct report_column measure; /* what `score` is, its direction, and baselines */
	const char *set;              /* that it was measured on: "dev set" */
};
/* A setting: the runs that differ in their seed alone. Without seeds among the settings each run is one. */
struct report_sweep_group {
	int64_t first, runs;    /* its first run; how many have a score */
	bool lacks;             /* a run is over without one */
	double mean, deviation; /* of the scores; NaN: of none, of fewer than two (n - 1 below) */
};
/* All settings, best first: by their mean, those that lack a score last. The caller frees. */
MUST_USE enum status report_sweep_groups(const struct report_sweep *sweep, struct report_sweep_group **out, int64_t *out_count);
/* The best run of the best setting, since one lucky seed is no better setting; -1 if none has a score. */
int64_t report_sweep_best(const struct report_sweep *sweep);
/* How many other runs did exactly as well as that one, with a setting that did as well. */
int64_t report_sweep_ties(const struct report_sweep *sweep, int64_t best);
/* A picture for each setting that varies; all runs, best first; and where seeds vary, means over them. */
void report_sweep_html(const struct report_sweep *sweep, struct buffer *out);
/* The same as a page of its own. */
void report_sweep_page(const struct report_sweep *sweep, const char *title, struct buffer *out);

/* The newest evaluation of the set to judge a run by. Zero-initialise; everything is copied. */
#define PREVIEW_ERRORS 24
#define PREVIEW_POINTS 2000
struct task_preview {
	const char *const *labels; /* [classes] borrowed; NULL: answers are no classes */
	int32_t classes;
	/* Of the newest evaluation: */
	int64_t step;
	struct report_confusion confusion; /* counts are owned; classes 0: none */
	struct report_class *per_class;    /* [per_class_count], labels borrowed; of tasks without a confusion matrix */
	int64_t per_class_count;
	struct report_error errors[PREVIEW_ERRORS]; /* highest loss first; texts are owned */
	int error_count;
	int64_t wrong, examples;
	struct report_point *points; /* of more than PREVIEW_POINTS every so-manyth */
	int64_t point_count, point_stride, point_number;
};
/* A new evaluation begins: forgets the one before. */
void task_preview_begin(struct task_preview *preview, int64_t step);
/* counts[classes][classes], as in struct report_confusion. */
MUST_USE enum status task_preview_confusion(struct task_preview *preview, const int64_t *counts);
MUST_USE enum status task_preview_classes(struct task_preview *preview, const struct report_class *classes, int64_t count);
/* One example. `error` NULL: it was right. The examples with the highest losses are kept. */
MUST_USE enum status task_preview_example(struct task_preview *preview, const struct report_error *error);
MUST_USE enum status task_preview_point(struct task_preview *preview, struct report_point point);
void task_preview_release(struct task_preview *preview);
/* As a report wants it; `preview` is borrowed. */
struct report_preview task_preview_of(struct task_preview *preview);

#endif
