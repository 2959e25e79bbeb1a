/* The state of a run in words, for the head of its report: what is wrong if something is, or else how far it has come, and what
 * more time or more data would bring. Judged from everything the run has logged, across resumes. */
#ifndef REPORT_VERDICT_H
#define REPORT_VERDICT_H

#include "report/diagnosis.h"
#include "report/history.h"

enum verdict_colour { VERDICT_PLAIN, VERDICT_GOOD, VERDICT_WARNING, VERDICT_BAD };
enum verdict_grade {
	GRADE_EARLY,   /* too few steps to say */
	GRADE_NOT_YET, /* no better than knowing how frequent each answer is */
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
	enum verdict_colour colour;
	enum verdict_grade grade;
	char headline[160];
	char text[480];  /* where it stands */
	char side[320];  /* what it learns besides; may be empty */
	char stage[480]; /* what others have seen at such a loss; may be empty */
	char more[480];  /* what more steps or more data would bring; may be empty */
	int finding;     /* the kind of finding that the verdict rests on; -1 = none */
};
void report_verdict(const struct verdict_facts *facts, struct verdict *out);

/* How fast a curve moves: the change that twice as many tokens bring, from a straight line of the values over ln(tokens). */
struct trend {
	int64_t points;
	double doubling; /* NaN: too few points */
	double error;    /* standard error of it */
};
/* Of the second half of the steps (of the present phase) that are in the table, one set's evaluations if `set` is not negative.
 */
struct trend report_trend(const struct history *history, int column, int set);
/* Mean of a column of the logged steps over the last `steps` steps of the run, or the last five rows if they reach further. */
double report_recent(const struct history *history, int column, int64_t steps);

#endif
