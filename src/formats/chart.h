/* Charts as SVG, and the HTML page around them: no libraries, network access, or custom fonts. Colors are CSS variables that the
 * page's style sets for light and dark mode; every chart includes a text description for people who cannot see it. */
#ifndef FORMATS_CHART_H
#define FORMATS_CHART_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"

/* How the numbers of an axis are written. */
enum chart_number {
	CHART_PLAIN,    /* 6.25 */
	CHART_SHARE,    /* 0.153 as 15.3 % */
	CHART_COUNT,    /* 29,800,000 as 29.8 M */
	CHART_DURATION, /* seconds as s, min, h, d */
	CHART_POWER,    /* 0.00025 as 2.5e-4 */
};

struct chart_axis {
	const char *label; /* with the unit: "tokens trained on" */
	enum chart_number number;
	bool logarithmic; /* y only; values <= 0 are left out */
	bool from_zero;
};

/* A curve: `count` points with ascending x; a NaN in y is a gap. `low` and `high` define a band behind it, or are NULL. */
struct chart_series {
	const char *label; /* in the legend and at the curve's end; NULL: neither */
	int color;         /* 1 to 8, the color slots of the page's style */
	bool dots;         /* a mark at every point, for a few measurements rather than a stream */
	bool thin;
	const double *x, *y, *low, *high;
	int64_t count;
};

/* A horizontal reference level. */
struct chart_level {
	double y;
	const char *label;
};

/* A mark on the x axis. */
enum chart_mark_kind { CHART_MARK_PHASE, CHART_MARK_TROUBLE, CHART_MARK_SAVED, CHART_MARK_RESUMED };
struct chart_mark {
	enum chart_mark_kind kind;
	double x;
	const char *label;
};

#define CHART_SERIES 20
#define CHART_LEVELS 4
#define CHART_MARKS 64
struct chart {
	const char *title, *description;
	struct chart_axis x, y;
	struct chart_series series[CHART_SERIES];
	int series_count;
	struct chart_level levels[CHART_LEVELS];
	int level_count;
	struct chart_mark marks[CHART_MARKS];
	int mark_count;
};

/* Add what is finite and not empty, as long as there is room. */
void chart_add_series(struct chart *chart, struct chart_series series);
void chart_add_level(struct chart *chart, double y, const char *label);
void chart_add_mark(struct chart *chart, enum chart_mark_kind kind, double x, const char *label);

/* Appends a <figure> with the chart and its legend; without any finite point it says so instead. */
void chart_svg(const struct chart *chart, struct buffer *out);

/* Bars of equal width: bar i covers [first + i * width, first + (i + 1) * width). */
struct chart_bars {
	const char *title, *description;
	const char *note; /* a sentence below, or NULL */
	struct chart_axis x, y;
	double first, width;
	const double *values;
	int64_t count;
};
void chart_bars_svg(const struct chart_bars *bars, struct buffer *out);

/* Points: pairs of numbers, `stride` doubles apart. */
struct chart_scatter {
	const char *title, *description;
	const char *note; /* a sentence below, or NULL */
	struct chart_axis x, y;
	const double *points; /* x, y of the first */
	int64_t stride, count;
	bool diagonal; /* draw the line y = x; both axes then have the same range */
};
void chart_scatter_svg(const struct chart_scatter *scatter, struct buffer *out);

/* Points above the names of categories. */
struct chart_categories {
	const char *title, *description;
	const char *x_label;
	struct chart_axis y;
	const char *const *categories;
	int category_count;
	const int *category; /* [count] the category of each point */
	const double *values;
	int64_t count, best;      /* best: the point to mark, or -1 */
	struct chart_level level; /* a reference level; NaN: none */
};
void chart_categories_svg(const struct chart_categories *chart, struct buffer *out);

/* Writes round tick values for [low, high], up to about `most` of them, ascending, to out; returns how many. Durations use clock
 * steps; a logarithmic axis with a wide range uses powers of ten, perhaps with 2 and 5 times them. */
#define CHART_TICKS 12
int chart_ticks(double low, double high, const struct chart_axis *axis, int most, double out[CHART_TICKS]);
/* Formats a number as on an axis. `step` is the distance between ticks (0: three significant digits). */
#define CHART_NUMBER_BYTES 64 /* as many as FORMAT_BYTES of base/log.h: callers share buffers */
const char *chart_number(char out[CHART_NUMBER_BYTES], double value, enum chart_number number, double step);

/* The beginning and end of a page: the style for light and dark mode, desktops, and phones; and, at the end, a short script that
 * shows the values under the pointer. `title` is escaped. */
void html_begin(struct buffer *out, const char *title);
void html_end(struct buffer *out);
/* Appends text with < > & " escaped; bytes that are not UTF-8 and control characters become U+FFFD. */
void html_text(struct buffer *out, const char *text);

#endif
