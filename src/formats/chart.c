/* Draws axes, series, levels, and marks as SVG, and chooses ticks that people find round. */
#include "formats/chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* In the drawing's own units; the page scales it to the column width. Small enough that text stays legible on a phone. */
#define WIDTH 480.0
#define HEIGHT 270.0
#define TOP 26.0
#define BOTTOM 42.0
#define LEFT 46.0
#define LARGEST 1e30 /* larger than any quantity shown; differences and ratios of smaller numbers stay finite */
#define LETTER 7.2   /* mean width of a letter at the larger font size used on phones */

void chart_add_series(struct chart *chart, struct chart_series series)
{
	if (chart->series_count < CHART_SERIES && series.count > 0)
		chart->series[chart->series_count++] = series;
}

void chart_add_level(struct chart *chart, double y, const char *label)
{
	if (chart->level_count < CHART_LEVELS && fabs(y) <= LARGEST)
		chart->levels[chart->level_count++] = (struct chart_level){y, label};
}

void chart_add_mark(struct chart *chart, enum chart_mark_kind kind, double x, const char *label)
{
	if (chart->mark_count < CHART_MARKS && isfinite(x))
		chart->marks[chart->mark_count++] = (struct chart_mark){kind, x, label};
}

/* The smallest of the usual clock steps that is at least `wanted` seconds; above a day, round numbers of days. */
static double duration_step(double wanted)
{
	static const double steps[] = {0.1, 0.2, 0.5, 1,    2,    5,    10,    15,    30,    60,   120,
				       300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400};
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		if (steps[i] >= wanted)
			return steps[i];
	double days = wanted / 86400, power = pow(10, floor(log10(days))), digit = days / power;
	return 86400 * power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

static double round_step(double wanted)
{
	double power = pow(10, floor(log10(wanted))), digit = wanted / power;
	return power * (digit <= 1.0001 ? 1 : digit <= 2.0001 ? 2 : digit <= 5.0001 ? 5 : 10);
}

static int logarithmic_ticks(double low, double high, int most, double out[CHART_TICKS])
{
	int first = (int)floor(log10(low)), last = (int)ceil(log10(high)), count = 0;
	int stride = (last - first) / most + 1;
	bool between = high / low <= 100; /* few decades: add 2 and 5 times each power */
	for (int decade = first; decade <= last; decade += stride)
		for (int digit = 1; digit <= (between ? 5 : 1); digit += digit == 1 ? 1 : 3) {
			double tick = digit * pow(10, decade);
			if (tick >= low * 0.999 && tick <= high * 1.001 && count < CHART_TICKS)
				out[count++] = tick;
		}
	return count;
}

int chart_ticks(double low, double high, const struct chart_axis *axis, int most, double out[CHART_TICKS])
{
	if (!(high > low) || most < 2)
		return 0;
	if (axis->logarithmic && !(low > 0))
		return 0;
	if (axis->logarithmic && high / low > 8)
		return logarithmic_ticks(low, high, most, out);
	double wanted = (high - low) / most;
	double step = axis->number == CHART_DURATION ? duration_step(wanted) : round_step(wanted);
	int count = 0;
	for (double i = ceil(low / step - 1e-9); i * step <= high + 1e-9 * step && count < CHART_TICKS; i++)
		out[count++] = i * step + 0.0; /* avoids -0 */
	return count;
}

/* Digits after the decimal point needed to distinguish numbers `step` apart; without a step, three significant digits. */
static int decimals(double value, double step)
{
	double magnitude = step > 0 ? step : fabs(value) > 0 ? fabs(value) / 100 : 1;
	int digits = (int)ceil(-log10(magnitude) - 1e-9);
	return digits < 0 ? 0 : digits > 6 ? 6 : digits;
}

/* Removes trailing zeros after the decimal point. */
static void trim_zeros(char *text)
{
	if (!strchr(text, '.'))
		return;
	size_t size = strlen(text);
	while (text[size - 1] == '0')
		size--;
	if (text[size - 1] == '.')
		size--;
	text[size] = 0;
}

static void scaled(char *out, double value, double step, double unit, const char *name)
{
	char digits[CHART_NUMBER_BYTES];
	snprintf(digits, sizeof digits, "%.*f", decimals(value / unit, step / unit), value / unit);
	if (step == 0 || unit > 1) /* ticks in plain units have the same number of digits: 6.10 and 6.15 */
		trim_zeros(digits);
	snprintf(out, CHART_NUMBER_BYTES, "%.20s%s%s", digits, *name ? " " : "", name);
}

const char *chart_number(char out[CHART_NUMBER_BYTES], double value, enum chart_number number, double step)
{
	double size = fabs(value) > step ? fabs(value) : step;
	int exponent;
	switch (number) {
	case CHART_PLAIN: scaled(out, value, step, 1, ""); break;
	case CHART_SHARE: scaled(out, value, step, 0.01, "%"); break;
	case CHART_COUNT:
		if (value == 0)
			snprintf(out, CHART_NUMBER_BYTES, "0");
		else if (size >= 1e9)
			scaled(out, value, step, 1e9, "G");
		else if (size >= 1e6)
			scaled(out, value, step, 1e6, "M");
		else if (size >= 1e4 || step >= 1000)
			scaled(out, value, step, 1e3, "k");
		else
			scaled(out, value, step, 1, "");
		break;
	case CHART_DURATION:
		if (value == 0)
			snprintf(out, CHART_NUMBER_BYTES, "0");
		else if (size >= 2 * 86400)
			scaled(out, value, step, 86400, "d");
		else if (size >= 2 * 3600)
			scaled(out, value, step, 3600, "h");
		else if (size >= 120)
			scaled(out, value, step, 60, "min");
		else
			scaled(out, value, step, 1, "s");
		break;
	case CHART_POWER:
		if (value == 0) {
			snprintf(out, CHART_NUMBER_BYTES, "0");
			break;
		}
		exponent = (int)floor(log10(step > 0 ? step : fabs(value)) + 1e-9); /* all ticks of an axis have the same form */
		if (exponent >= -2 && exponent <= 3) {
			scaled(out, value, step, 1, "");
			break;
		}
		exponent = (int)floor(log10(fabs(value)) + 1e-9);
		snprintf(out, CHART_NUMBER_BYTES, "%.2f", value / pow(10, exponent));
		trim_zeros(out);
		snprintf(out + strlen(out), 8, "e%d", exponent);
		break;
	}
	return out;
}

/* Maps values to positions in the drawing. */
struct scale {
	double low, high; /* values at the ends */
	double from, to;  /* their positions */
	bool logarithmic;
};

static double place(const struct scale *scale, double value)
{
	double share = scale->logarithmic ? log(value / scale->low) / log(scale->high / scale->low)
					  : (value - scale->low) / (scale->high - scale->low);
	return scale->from + share * (scale->to - scale->from);
}

static bool drawable(const struct scale *scale, double value)
{
	return fabs(value) <= LARGEST && (!scale->logarithmic || value >= 1 / LARGEST);
}

static void widen(struct scale *scale, double value)
{
	if (!drawable(scale, value))
		return;
	if (!(scale->low <= value))
		scale->low = value;
	if (!(scale->high >= value))
		scale->high = value;
}

/* Sets the ends of the axis: a little beyond the values, and a reasonable range if they are all the same. */
static void settle(struct scale *scale, const struct chart_axis *axis)
{
	if (!isfinite(scale->low))
		return;
	if (axis->from_zero && !scale->logarithmic && scale->low > 0)
		scale->low = 0;
	if (scale->logarithmic) {
		double room = pow(scale->high / scale->low, 0.06);
		room = room < 1.1 ? 1.1 : room;
		scale->low /= room;
		scale->high *= room;
		return;
	}
	if (scale->high - scale->low < 1e-9 * (fabs(scale->high) + 1e-12)) {
		double room = fabs(scale->high) > 1 / LARGEST ? 0.1 * fabs(scale->high) : 1;
		scale->high += room;
		scale->low -= axis->from_zero && scale->low >= 0 && scale->low < room ? scale->low : room;
		if (axis->number == CHART_SHARE && scale->high > 1 && scale->high - room <= 1)
			scale->high = 1;
	}
	double room = 0.05 * (scale->high - scale->low);
	scale->high += room;
	if (!(axis->from_zero && scale->low == 0))
		scale->low -= room;
}

/* Counts characters: UTF-8 continuation bytes do not count. */
static double text_width(const char *text)
{
	double letters = 0;
	for (; *text; text++)
		letters += ((unsigned char)*text & 0xC0) != 0x80;
	return letters * LETTER;
}

static void figure_begin(struct buffer *out, const char *title, const char *description)
{
	buffer_text(out, "<figure><figcaption>");
	html_text(out, title);
	buffer_text(out, "</figcaption>\n");
	if (!description)
		return;
	buffer_format(out, "<svg class=\"chart\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
	html_text(out, title);
	buffer_text(out, ". ");
	html_text(out, description);
	buffer_char(out, '"');
}

static void text_at(struct buffer *out, const char *kind, double x, double y, const char *anchor, const char *text)
{
	buffer_format(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", kind, x, y, anchor);
	html_text(out, text);
	buffer_text(out, "</text>\n");
}

static void line_at(struct buffer *out, const char *kind, double x1, double y1, double x2, double y2)
{
	buffer_format(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", kind, x1, y1, x2, y2);
}

static double tick_step(const double *ticks, int count, const struct chart_axis *axis)
{
	bool even = !axis->logarithmic || (count > 2 && ticks[2] - ticks[1] < 1.5 * (ticks[1] - ticks[0]));
	return count > 1 && even ? ticks[1] - ticks[0] : 0;
}

static void draw_axes(struct buffer *out, const struct scale *x, const struct scale *y, const struct chart_axis *x_axis,
		      const struct chart_axis *y_axis)
{
	double ticks[CHART_TICKS];
	char number[CHART_NUMBER_BYTES];
	int count = chart_ticks(y->low, y->high, y_axis, 5, ticks);
	double step = tick_step(ticks, count, y_axis);
	for (int i = 0; i < count; i++) {
		double at = place(y, ticks[i]);
		line_at(out, "rule", x->from, at, x->to, at);
		text_at(out, "tick", x->from - 6, at + 4, "end", chart_number(number, ticks[i], y_axis->number, step));
	}
	line_at(out, "axis", x->from, y->from, x->to, y->from);
	count = chart_ticks(x->low, x->high, x_axis, 5, ticks);
	step = tick_step(ticks, count, x_axis);
	for (int i = 0; i < count; i++) {
		double at = place(x, ticks[i]);
		line_at(out, "axis", at, y->from, at, y->from + 4);
		text_at(out, "tick", at, y->from + 17, "middle", chart_number(number, ticks[i], x_axis->number, step));
	}
	text_at(out, "label", x->to, y->from + 34, "end", x_axis->label);
	text_at(out, "label", 2, 13, "start", y_axis->label);
}

static void draw_band(struct buffer *out, const struct chart_series *series, const struct scale *x, const struct scale *y)
{
	if (!series->low || !series->high)
		return;
	for (int64_t i = 0; i < series->count;) {
		int64_t end = i;
		while (end < series->count && drawable(y, series->low[end]) && drawable(y, series->high[end]))
			end++;
		if (end > i + 1) {
			buffer_format(out, "<path class=\"band f%d\" d=\"", series->color);
			for (int64_t k = i; k < end; k++)
				buffer_format(out, "%c%.1f %.1f", k == i ? 'M' : 'L', place(x, series->x[k]),
					      place(y, series->high[k]));
			for (int64_t k = end; k-- > i;)
				buffer_format(out, "L%.1f %.1f", place(x, series->x[k]), place(y, series->low[k]));
			buffer_text(out, "Z\"/>\n");
		}
		i = end + 1;
	}
}

static void draw_curve(struct buffer *out, const struct chart_series *series, const struct scale *x, const struct scale *y)
{
	bool pen_down = false;
	buffer_format(out, "<path class=\"curve%s s%d\" data-label=\"", series->thin ? " thin" : "", series->color);
	html_text(out, series->label ? series->label : "value");
	buffer_text(out, "\" d=\"");
	for (int64_t i = 0; i < series->count; i++) {
		bool good = drawable(y, series->y[i]);
		if (good)
			buffer_format(out, "%c%.1f %.1f", pen_down ? 'L' : 'M', place(x, series->x[i]), place(y, series->y[i]));
		pen_down = good;
	}
	buffer_text(out, "\"/>\n");
	/* A curve of a single point has no length, so it would be invisible. */
	for (int64_t i = 0; i < series->count; i++)
		if (drawable(y, series->y[i]) && (series->dots || series->count == 1))
			buffer_format(out, "<circle class=\"dot f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"/>\n", series->color,
				      place(x, series->x[i]), place(y, series->y[i]), series->count > 40 ? "1.8" : "2.6");
}

/* Labels to the right of the curves: names of curves and levels, moved apart so that they do not overlap. */
struct end_label {
	const char *text;
	int color; /* 0: a level */
	double y;
};

static int collect_labels(const struct chart *chart, const struct scale *y, struct end_label *labels)
{
	int count = 0;
	for (int i = 0; i < chart->level_count; i++)
		if (drawable(y, chart->levels[i].y))
			labels[count++] = (struct end_label){chart->levels[i].label, 0, place(y, chart->levels[i].y)};
	for (int i = 0; i < chart->series_count; i++) {
		const struct chart_series *series = &chart->series[i];
		for (int64_t k = series->count; k-- > 0;)
			if (drawable(y, series->y[k])) {
				if (series->label)
					labels[count++] =
						(struct end_label){series->label, series->color, place(y, series->y[k])};
				break;
			}
	}
	for (int i = 1; i < count; i++) /* by position, top to bottom */
		for (int k = i; k > 0 && labels[k].y < labels[k - 1].y; k--) {
			struct end_label other = labels[k];
			labels[k] = labels[k - 1];
			labels[k - 1] = other;
		}
	return count;
}

static void draw_labels(struct buffer *out, struct end_label *labels, int count, double x, double top, double bottom)
{
	const double line = 14;
	for (int i = 0; i < count; i++) {
		double least = i ? labels[i - 1].y + line : top;
		if (labels[i].y < least)
			labels[i].y = least;
	}
	for (int i = count; i-- > 0;) {
		double most = i + 1 < count ? labels[i + 1].y - line : bottom;
		if (labels[i].y > most)
			labels[i].y = most;
	}
	for (int i = 0; i < count; i++) {
		char kind[16];
		snprintf(kind, sizeof kind, labels[i].color ? "end t%d" : "level-label", labels[i].color);
		text_at(out, kind, x, labels[i].y + 4, "start", labels[i].text);
	}
}

static void draw_marks(struct buffer *out, const struct chart *chart, const struct scale *x, const struct scale *y)
{
	for (int i = 0; i < chart->mark_count; i++) {
		const struct chart_mark *mark = &chart->marks[i];
		if (!(mark->x >= x->low && mark->x <= x->high))
			continue;
		double at = place(x, mark->x);
		switch (mark->kind) {
		case CHART_MARK_PHASE:
			line_at(out, "phase", at, y->from, at, y->to);
			text_at(out, "tick", at + 4, y->to - 3, "start", mark->label);
			break;
		case CHART_MARK_RESUMED:
			buffer_format(out, "<g><title>");
			html_text(out, mark->label);
			buffer_text(out, "</title>");
			line_at(out, "resumed", at, y->from, at, y->to);
			text_at(out, "resumed-sign", at, y->from - 4, "middle", "\xE2\x86\xBB");
			buffer_text(out, "</g>\n");
			break;
		case CHART_MARK_TROUBLE:
			line_at(out, "trouble", at, y->from, at, y->to);
			buffer_format(out, "<text class=\"trouble-sign\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">!<title>",
				      at + 5, y->to + 11);
			html_text(out, mark->label);
			buffer_text(out, "</title></text>\n");
			break;
		case CHART_MARK_SAVED:
			buffer_format(out, "<path class=\"saved\" d=\"M%.1f %.1fl4 -6h-8Z\"><title>", at, y->from);
			html_text(out, mark->label);
			buffer_text(out, "</title></path>\n");
			break;
		}
	}
}

static void draw_legend(struct buffer *out, const struct chart *chart)
{
	bool saved = false, band = false, resumed = false;
	for (int i = 0; i < chart->mark_count; i++) {
		saved |= chart->marks[i].kind == CHART_MARK_SAVED;
		resumed |= chart->marks[i].kind == CHART_MARK_RESUMED;
	}
	for (int i = 0; i < chart->series_count; i++)
		band |= chart->series[i].low != NULL;
	if (chart->series_count < 2 && !saved && !band && !resumed)
		return;
	buffer_text(out, "<p class=\"legend\">");
	for (int i = 0; i < chart->series_count; i++) {
		const struct chart_series *series = &chart->series[i];
		if (!series->label)
			continue;
		buffer_format(out, "<span><i class=\"key%s b%d\"></i>", series->dots ? " dotted" : "", series->color);
		html_text(out, series->label);
		if (series->low)
			buffer_text(out, " (mean, lowest to highest shaded)");
		buffer_text(out, "</span> ");
	}
	if (saved)
		buffer_text(out, "<span><i class=\"key triangle\"></i>checkpoint</span> ");
	if (resumed)
		buffer_text(out, "<span><b class=\"resumed-key\">\xE2\x86\xBB</b>resumed</span>");
	buffer_text(out, "</p>\n");
}

void chart_svg(const struct chart *chart, struct buffer *out)
{
	struct scale x = {.low = NAN, .high = NAN}, y = {.low = NAN, .high = NAN, .logarithmic = chart->y.logarithmic};
	for (int i = 0; i < chart->series_count; i++) {
		const struct chart_series *series = &chart->series[i];
		for (int64_t k = 0; k < series->count; k++) {
			if (!drawable(&y, series->y[k]))
				continue;
			widen(&x, series->x[k]);
			widen(&y, series->y[k]);
			if (series->low && series->high) {
				widen(&y, series->low[k]);
				widen(&y, series->high[k]);
			}
		}
	}
	if (!isfinite(x.low)) {
		figure_begin(out, chart->title, NULL);
		buffer_text(out, "<p class=\"nothing\">nothing measured yet</p></figure>\n");
		return;
	}
	for (int i = 0; i < chart->level_count; i++)
		widen(&y, chart->levels[i].y);
	if (x.low > 0)
		x.low = 0;
	if (x.high <= x.low)
		x.high = x.low + 1;
	settle(&y, &chart->y);

	struct end_label labels[CHART_SERIES + CHART_LEVELS];
	y.from = HEIGHT - BOTTOM;
	y.to = TOP;
	int label_count = collect_labels(chart, &y, labels);
	double right = 12;
	for (int i = 0; i < label_count; i++)
		right = fmax(right, text_width(labels[i].text) + 12);
	x.from = LEFT;
	x.to = WIDTH - fmin(right, 150);

	figure_begin(out, chart->title, chart->description ? chart->description : "");
	buffer_format(out,
		      " data-x0=\"%.9g\" data-x1=\"%.9g\" data-y0=\"%.9g\" data-y1=\"%.9g\" data-box=\"%.1f %.1f %.1f %.1f\""
		      " data-log=\"%d\" data-kinds=\"%d %d\">\n",
		      x.low, x.high, y.low, y.high, x.from, x.to, y.from, y.to, y.logarithmic, chart->x.number, chart->y.number);
	draw_axes(out, &x, &y, &chart->x, &chart->y);
	for (int i = 0; i < chart->level_count; i++)
		if (drawable(&y, chart->levels[i].y))
			line_at(out, "level", x.from, place(&y, chart->levels[i].y), x.to, place(&y, chart->levels[i].y));
	for (int i = 0; i < chart->series_count; i++)
		draw_band(out, &chart->series[i], &x, &y);
	draw_marks(out, chart, &x, &y);
	for (int i = 0; i < chart->series_count; i++)
		draw_curve(out, &chart->series[i], &x, &y);
	draw_labels(out, labels, label_count, x.to + 6, y.to, y.from);
	buffer_text(out, "</svg>\n");
	draw_legend(out, chart);
	buffer_text(out, "</figure>\n");
}

static void put_note(struct buffer *out, const char *note)
{
	if (!note)
		return;
	buffer_text(out, "<p class=\"legend note\">");
	html_text(out, note);
	buffer_text(out, "</p>");
}

void chart_bars_svg(const struct chart_bars *bars, struct buffer *out)
{
	struct scale x = {.low = bars->first, .high = bars->first + bars->width * (double)bars->count};
	struct scale y = {.low = 0, .high = NAN};
	for (int64_t i = 0; i < bars->count; i++)
		widen(&y, bars->values[i]);
	if (!(y.high > 0) || bars->count == 0) {
		figure_begin(out, bars->title, NULL);
		buffer_text(out, "<p class=\"nothing\">nothing measured yet</p></figure>\n");
		return;
	}
	settle(&y, &bars->y);
	y.low = 0;
	y.from = HEIGHT - BOTTOM;
	y.to = TOP;
	x.from = LEFT;
	x.to = WIDTH - 12;
	figure_begin(out, bars->title, bars->description ? bars->description : "");
	buffer_text(out, ">\n");
	draw_axes(out, &x, &y, &bars->x, &bars->y);
	for (int64_t i = 0; i < bars->count; i++) {
		if (!(bars->values[i] > 0))
			continue;
		double from = place(&x, bars->first + bars->width * (double)i);
		double to = place(&x, bars->first + bars->width * (double)(i + 1)), top = place(&y, bars->values[i]);
		char number[CHART_NUMBER_BYTES];
		buffer_format(out, "<rect class=\"f1\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"1.5\"><title>",
			      from + 1, top, fmax(to - from - 2, 0.5), y.from - top);
		buffer_format(out, "%.0f to %.0f: %s</title></rect>\n", bars->first + bars->width * (double)i,
			      bars->first + bars->width * (double)(i + 1) - 1,
			      chart_number(number, bars->values[i], bars->y.number, 0));
	}
	buffer_text(out, "</svg>\n");
	put_note(out, bars->note);
	buffer_text(out, "</figure>\n");
}

void chart_scatter_svg(const struct chart_scatter *scatter, struct buffer *out)
{
	struct scale x = {.low = NAN, .high = NAN}, y = {.low = NAN, .high = NAN};
	int64_t drawn = 0;
	for (int64_t i = 0; i < scatter->count; i++) {
		const double *point = scatter->points + i * scatter->stride;
		if (!drawable(&x, point[0]) || !drawable(&y, point[1]))
			continue;
		widen(&x, point[0]);
		widen(&y, point[1]);
		drawn++;
	}
	if (drawn == 0) {
		figure_begin(out, scatter->title, NULL);
		buffer_text(out, "<p class=\"nothing\">nothing measured yet</p></figure>\n");
		return;
	}
	if (scatter->diagonal) {
		widen(&x, y.low);
		widen(&x, y.high);
		y.low = x.low;
		y.high = x.high;
	}
	settle(&x, &scatter->x);
	settle(&y, &scatter->y);
	y.from = HEIGHT - BOTTOM;
	y.to = TOP;
	x.from = LEFT;
	x.to = WIDTH - 12;
	figure_begin(out, scatter->title, scatter->description ? scatter->description : "");
	buffer_text(out, ">\n");
	draw_axes(out, &x, &y, &scatter->x, &scatter->y);
	if (scatter->diagonal)
		line_at(out, "level", place(&x, x.low), place(&y, x.low), place(&x, x.high), place(&y, x.high));
	const char *size = drawn > 400 ? "1.8" : "2.8";
	for (int64_t i = 0; i < scatter->count; i++) {
		const double *point = scatter->points + i * scatter->stride;
		if (drawable(&x, point[0]) && drawable(&y, point[1]))
			buffer_format(out, "<circle class=\"point f1\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"/>\n", place(&x, point[0]),
				      place(&y, point[1]), size);
	}
	buffer_text(out, "</svg>\n");
	put_note(out, scatter->note);
	buffer_text(out, "</figure>\n");
}

void chart_categories_svg(const struct chart_categories *chart, struct buffer *out)
{
	struct scale x = {.low = -0.5, .high = chart->category_count - 0.5}, y = {.low = NAN, .high = NAN};
	char number[CHART_NUMBER_BYTES];
	double ticks[CHART_TICKS];
	for (int64_t i = 0; i < chart->count; i++)
		widen(&y, chart->values[i]);
	if (!isfinite(y.low) || chart->category_count < 1) {
		figure_begin(out, chart->title, NULL);
		buffer_text(out, "<p class=\"nothing\">nothing measured yet</p></figure>\n");
		return;
	}
	widen(&y, chart->level.y);
	settle(&y, &chart->y);
	y.from = HEIGHT - BOTTOM;
	y.to = TOP;
	x.from = LEFT;
	x.to = WIDTH - (drawable(&y, chart->level.y) ? fmin(text_width(chart->level.label) + 14, 150) : 12);
	figure_begin(out, chart->title, chart->description ? chart->description : "");
	buffer_text(out, ">\n");
	int count = chart_ticks(y.low, y.high, &chart->y, 5, ticks);
	double step = tick_step(ticks, count, &chart->y);
	for (int i = 0; i < count; i++) {
		line_at(out, "rule", x.from, place(&y, ticks[i]), x.to, place(&y, ticks[i]));
		text_at(out, "tick", x.from - 6, place(&y, ticks[i]) + 4, "end",
			chart_number(number, ticks[i], chart->y.number, step));
	}
	line_at(out, "axis", x.from, y.from, x.to, y.from);
	/* Show as many names as fit. */
	double longest = 1;
	for (int i = 0; i < chart->category_count; i++)
		longest = fmax(longest, text_width(chart->categories[i]) + 8);
	int every = (int)ceil(longest * chart->category_count / (x.to - x.from));
	for (int i = 0; i < chart->category_count; i++)
		if (every <= 1 || i % every == 0)
			text_at(out, "tick", place(&x, i), y.from + 17, "middle", chart->categories[i]);
	text_at(out, "label", x.to, y.from + 34, "end", chart->x_label);
	text_at(out, "label", 2, 13, "start", chart->y.label);
	if (drawable(&y, chart->level.y)) {
		line_at(out, "level", x.from, place(&y, chart->level.y), x.to, place(&y, chart->level.y));
		text_at(out, "level-label", x.to + 6, place(&y, chart->level.y) + 4, "start", chart->level.label);
	}
	for (int64_t i = 0; i < chart->count; i++) {
		bool best = i == chart->best;
		if (!drawable(&y, chart->values[i]))
			continue;
		buffer_format(out, "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"><title>", best ? "f2" : "f1",
			      place(&x, chart->category[i]), place(&y, chart->values[i]), best ? "5.5" : "4");
		html_text(out, chart->categories[chart->category[i]]);
		buffer_format(out, ": %s%s</title></circle>\n", chart_number(number, chart->values[i], chart->y.number, 0),
			      best ? " (best)" : "");
	}
	buffer_text(out, "</svg>\n</figure>\n");
}
