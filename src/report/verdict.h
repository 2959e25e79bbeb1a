/* The state of a run in words, for the top of its report: what is wrong, if anything; otherwise how far it has come, and what
 * more time or data would bring. Based on everything the run has logged, including before it was resumed. */
#ifndef REPORT_VERDICT_H
#define REPORT_VERDICT_H

#include "report/diagnosis.h"
#include "report/history.h"

enum verdict_color { VERDICT_PLAIN, VERDICT_GOOD, VERDICT_WARNING, VERDICT_BAD };
enum verdict_grade {
	GRADE_EARLY,   /* too few steps to say */
	GRADE_NOT_YET, /* no better than knowing only how frequent each answer is */
	GRADE_BEGUN,   /* better than that */
	GRADE_LEARNED, /* much better */
	GRADE_LEVEL,   /* better, and twice the steps would change next to nothing */
};

struct verdict_facts {
	const struct diagnosis *diagnosis;
	const struct history *history;
	const struct report_task *task;
	double epoch_tokens; /* tokens of one pass over the data; NaN or 0: unknown */
	bool finished;
};

struct verdict {
	enum verdict_color color;
	enum verdict_grade grade;
	char headline[160];
	char text[480];  /* where it stands */
	char side[320];  /* on the task's second part (report_side); may be empty */
	char stage[480]; /* what such a loss means (report_stage); may be empty */
	char more[480];  /* what more steps or more data would bring; may be empty */
	int finding;     /* the kind of finding that the verdict is based on; -1 = none */
};
void report_verdict(const struct verdict_facts *facts, struct verdict *out);

/* How fast a curve changes: the change per doubling of the tokens, from a straight-line fit of the values over log2(tokens). */
struct trend {
	int64_t points;
	double doubling; /* NaN: too few points */
	double error;    /* standard error of `doubling` */
};
/* The trend over the second half of the current phase: of the logged steps or, if `set` is not negative, of that set's
 * evaluations. */
struct trend report_trend(const struct history *history, int column, int set);
/* The mean of a column of the logged steps over the run's last `steps` steps, or over the last five rows if these reach further
 * back. */
double report_recent(const struct history *history, int column, int64_t steps);

#endif
