/* report.html: a run in charts and words, in one file that needs no network. A pure function of its input. */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "base/buffer.h"
#include "formats/chart.h"
#include "report/report.h"
#include "report/verdict.h"

struct report_page {
	const struct report *report;
	const struct report_progress *state;
	bool running;
	enum status status;  /* how the loop ended, if not running */
	const char *reason;  /* message of a failure, or NULL */
	const char *written; /* time of writing, as text */
};

/* Appends the whole page. */
void report_page_html(const struct report_page *page, struct buffer *out);

/* What the page says of the run as a whole. */
void report_judge(const struct report *report, bool finished, struct verdict *out);

/* The charts of the page (charts.c), each against tokens, time, and steps. */
void report_charts(const struct report *report, struct buffer *out);

/* A curve from the logged steps: means of a column over at most CURVE_POINTS intervals, with the lowest and highest values. */
#define CURVE_POINTS 240
struct curve {
	double x[CURVE_POINTS], y[CURVE_POINTS], low[CURVE_POINTS], high[CURVE_POINTS];
	int64_t count;
	bool is_mean; /* each point stands for several rows, so low and high are meaningful */
};
void curve_of_steps(const struct history *history, int x, int y, struct curve *out);
/* A curve from one set's evaluations; if there are more than CURVE_POINTS, evenly spaced ones, including the last. */
void curve_of_evaluations(const struct history *history, int set, int x, int y, struct curve *out);

#endif
