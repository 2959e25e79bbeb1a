/* The contents of a run's metrics.jsonl in memory: for the report, for the diagnosis of a resumed run, and for comparing two
 * runs. Columns have the names used in metrics.jsonl: a few that every run has, and those that its task adds. */
#ifndef REPORT_HISTORY_H
#define REPORT_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"

/* The columns that every run has. A task's columns follow from HISTORY_COMMON on, in order of appearance. */
enum history_common {
	HISTORY_STEP,
	HISTORY_TOKENS,
	HISTORY_SECONDS,
	HISTORY_SKIPPED_STEPS,
	HISTORY_PHASE,
	HISTORY_LOSS,
	HISTORY_LEARNING_RATE,
	HISTORY_GRAD_NORM,
	HISTORY_TOKENS_PER_SECOND,
	HISTORY_SHARE_OF_GEMM,
	HISTORY_COMMON,
};
#define HISTORY_COLUMNS 64 /* maximum; further columns are ignored */
#define HISTORY_NAME 48    /* bytes of a name; columns with longer names are ignored */

/* Rows of numbers, column by column. NaN: absent. */
struct history_table {
	int64_t count, capacity;
	double *values[HISTORY_COLUMNS]; /* [count] each; NULL: absent in every row */
};

/* The kind of event for a process that resumed the run. */
#define REPORT_RESUMED "resumed"

/* The kind of event for a run that ended before its last step, because its evaluations no longer improved. */
#define REPORT_EARLY_END "early_stop"

/* Sizes of a finding's description and of its advice. */
#define FINDING_TEXT_BYTES 320
#define FINDING_ADVICE_BYTES 480

/* Something that was reported or happened at a step. */
struct history_event {
	int64_t step;
	double phase; /* NaN: not recorded */
	double tokens, seconds;
	char kind[24]; /* "resumed", "early_stop", "straggler", or a finding's name (diagnosis.h) */
	bool over;     /* the finding no longer holds */
	char text[FINDING_TEXT_BYTES], advice[FINDING_ADVICE_BYTES];
};

#define HISTORY_SETS 256
#define HISTORY_SET_NAME 256
struct history {
	char names[HISTORY_COLUMNS][HISTORY_NAME];
	int column_count;
	struct history_table steps;       /* the logged steps */
	struct history_table evaluations; /* column names lack "eval_" and the set's name */
	int *evaluation_sets;             /* [evaluations.count] index into `sets` */
	int64_t evaluation_set_capacity;
	struct history_event *events;
	int64_t event_count, event_capacity;
	char sets[HISTORY_SETS][HISTORY_SET_NAME]; /* names of evaluation sets; "" = the unnamed one, which runs are judged by */
	int set_count;
};

/* Reads a metrics.jsonl into a zero-initialized history; a missing file counts as empty. Lines of other programs and an
 * incomplete last line are skipped. */
MUST_USE enum status history_read(struct history *history, const char *path);
void history_release(struct history *history);

/* Adds one line's object. */
MUST_USE enum status history_add(struct history *history, const struct json *object);
/* Index of the column of this name, or -1. */
int history_column(const struct history *history, const char *name);
/* A number of a table; NaN if it is absent or `column` is -1. */
double history_value(const struct history_table *table, int64_t row, int column);
/* Whether any row has a finite number in this column. */
bool history_has(const struct history_table *table, int column);
/* Index of an evaluation set, which is added if new; HISTORY_SETS for new ones when there are so many: they are left out. */
int history_set(struct history *history, const char *name);
/* The set to judge a run by: the one without a name, or else the first. */
int history_main_set(const struct history *history);
/* The row of a set's last evaluation, or -1. */
int64_t history_last_evaluation(const struct history *history, int set);
/* The event that the run ended early at this step; NULL: it did not. */
const struct history_event *history_early_end(const struct history *history, int64_t step);

#endif
