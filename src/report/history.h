/* The numbers of a run as metrics.jsonl holds them, in memory: for the report, for the diagnosis of a resumed run, and
 * for comparing two runs. */
#ifndef REPORT_HISTORY_H
#define REPORT_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"

/* What a logged step holds; the names in metrics.jsonl are in history_columns. Absent values are NaN. */
enum history_column {
	HISTORY_STEP,
	HISTORY_TOKENS,
	HISTORY_SECONDS,
	HISTORY_LOSS,
	HISTORY_MLM_LOSS,
	HISTORY_MLM_ACCURACY,
	HISTORY_NSP_LOSS,
	HISTORY_NSP_ACCURACY,
	HISTORY_LEARNING_RATE,
	HISTORY_GRAD_NORM,
	HISTORY_TOKENS_PER_SECOND,
	HISTORY_SHARE_OF_GEMM,
	HISTORY_SKIPPED_STEPS,
	HISTORY_PHASE,
	HISTORY_COLUMNS,
};
extern const char *const history_columns[HISTORY_COLUMNS];

struct history_row {
	double value[HISTORY_COLUMNS];
};

/* An evaluation has the columns up to NSP accuracy, of one set. */
struct history_evaluation {
	int set; /* index into `sets` */
	struct history_row row;
};

/* Something that was said or done at a step. */
struct history_event {
	int64_t step;
	double tokens, seconds;
	char kind[24]; /* "phase", or the name of a finding (diagnosis.h) */
	bool over;     /* the finding no longer holds */
	char text[320], advice[320];
};

#define HISTORY_SETS 16
struct history {
	struct history_row *rows;
	int64_t count, capacity;
	struct history_evaluation *evaluations;
	int64_t evaluation_count, evaluation_capacity;
	struct history_event *events;
	int64_t event_count, event_capacity;
	char sets[HISTORY_SETS][48]; /* names of evaluation sets; "" = documents held out of the training text */
	int set_count;
};

/* Zero-initialise; reads a metrics.jsonl (a missing file is an empty one). Lines of other programs' making, and a torn
 * last one, are passed over. */
MUST_USE enum status history_read(struct history *history, const char *path);
void history_release(struct history *history);

/* One line's object. */
MUST_USE enum status history_add(struct history *history, const struct json *object);
MUST_USE enum status history_add_row(struct history *history, const struct history_row *row);
/* Index of an evaluation set, added if new; past HISTORY_SETS all share the last. */
int history_set(struct history *history, const char *name);
/* The set to judge a run by, documents held out of its text or else the first; its last evaluation, or NULL. */
int history_main_set(const struct history *history);
const struct history_row *history_last_evaluation(const struct history *history, int set);

#endif
