/* report.html: a run in pictures and words, one file that needs no network. A pure function of what it is given. */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "base/buffer.h"
#include "formats/chart.h"
#include "report/report.h"

struct report_page {
	const struct report *report;
	const struct report_progress *state;
	bool running;
	enum status status;  /* how the loop ended, when not running */
	const char *reason;  /* of a failure, or NULL */
	const char *written; /* time of writing, as text */
};

void report_page_html(const struct report_page *page, struct buffer *out);

/* charts.c: the charts of the page, each against tokens, time and steps. */
void report_charts(const struct report *report, struct buffer *out);

/* Means of a column of the logged steps over at most CURVE_POINTS stretches, with the lowest and highest value of each. */
#define CURVE_POINTS 240
struct curve {
	double x[CURVE_POINTS], y[CURVE_POINTS], low[CURVE_POINTS], high[CURVE_POINTS];
	int64_t count;
	bool is_mean; /* points stand for several rows each: low and high say something */
};
void curve_of_steps(const struct history *history, int x, int y, struct curve *out);
/* Evaluations of one set; of more than CURVE_POINTS, evenly spaced ones and the last. */
void curve_of_evaluations(const struct history *history, int set, int x, int y, struct curve *out);

#endif
