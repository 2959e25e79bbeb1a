/* The charts of report.html: what is drawn for each column, with phases, findings, and checkpoints marked. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "report/page.h"

void curve_of_steps(const struct history *history, int x, int y, struct curve *out)
{
	/* At least four rows per point if there are enough: a mean says more than a single noisy step. */
	const struct history_table *steps = &history->steps;
	int64_t points = steps->count >= 4 * CURVE_POINTS ? CURVE_POINTS : steps->count / 4;
	points = points > 60 ? points : steps->count < 60 ? steps->count : 60;
	*out = (struct curve){.is_mean = 2 * points <= steps->count};
	for (int64_t p = 0; p < points; p++) {
		int64_t from = p * steps->count / points, to = (p + 1) * steps->count / points, count = 0;
		double sum = 0, place = 0, low = INFINITY, high = -INFINITY;
		for (int64_t i = from; i < to; i++) {
			double value = history_value(steps, i, y);
			if (!isfinite(value))
				continue;
			sum += value;
			place += history_value(steps, i, x);
			low = fmin(low, value);
			high = fmax(high, value);
			count++;
		}
		if (count == 0)
			continue;
		out->x[out->count] = place / (double)count;
		out->y[out->count] = sum / (double)count;
		out->low[out->count] = low;
		out->high[out->count++] = high;
	}
}

void curve_of_evaluations(const struct history *history, int set, int x, int y, struct curve *out)
{
	const struct history_table *table = &history->evaluations;
	int64_t total = 0, seen = 0;
	*out = (struct curve){0};
	for (int64_t i = 0; i < table->count; i++)
		total += history->evaluation_sets[i] == set;
	int64_t every = total / CURVE_POINTS + 1;
	for (int64_t i = 0; i < table->count; i++) {
		double value = history_value(table, i, y);
		if (history->evaluation_sets[i] != set)
			continue;
		seen++;
		if ((total - seen) % every != 0 || !isfinite(value) || out->count == CURVE_POINTS)
			continue;
		out->x[out->count] = history_value(table, i, x);
		out->y[out->count++] = value;
	}
}

/* The position of a step on the x axis. */
static double place_of_step(const struct history *history, int64_t step, int x)
{
	for (int64_t i = 0; i < history->steps.count; i++)
		if (history_value(&history->steps, i, HISTORY_STEP) >= (double)step)
			return history_value(&history->steps, i, x);
	return NAN;
}

static void add_phases(struct chart *chart, const struct report *report, int x, char labels[][16])
{
	const struct history_table *steps = &report->history.steps;
	int found = 0;
	for (int64_t i = 1; i < steps->count && found < 8; i++) {
		double phase = history_value(steps, i, HISTORY_PHASE);
		if (phase > history_value(steps, i - 1, HISTORY_PHASE)) {
			snprintf(labels[found], 16, "phase %.0f", phase);
			chart_add_mark(chart, CHART_MARK_PHASE, history_value(steps, i, x), labels[found++]);
		}
	}
}

/* Marks findings, and where the run was resumed. */
static void add_events(struct chart *chart, const struct report *report, int x)
{
	const struct history *history = &report->history;
	for (int64_t i = 0; i < history->event_count; i++) {
		const struct history_event *event = &history->events[i];
		double place = x == HISTORY_TOKENS ? event->tokens : x == HISTORY_SECONDS ? event->seconds : (double)event->step;
		bool resumed = strcmp(event->kind, REPORT_RESUMED) == 0;
		if (!event->over && strcmp(event->kind, REPORT_EARLY_END) != 0)
			chart_add_mark(chart, resumed ? CHART_MARK_RESUMED : CHART_MARK_TROUBLE, place, event->text);
	}
}

/* Marks the checkpoints in the run folder, newest first. */
static void add_checkpoints(struct chart *chart, const struct report *report, int x, const struct name_list *names)
{
	for (int64_t i = names->count; i-- > 0;)
		chart_add_mark(chart, CHART_MARK_SAVED,
			       place_of_step(&report->history, strtoll(names->names[i] + 11, NULL, 10), x), names->names[i]);
}

/* Lists the checkpoint folders, sorted by step. */
static void list_checkpoints(const char *folder, struct name_list *out)
{
	struct name_list entries = {0};
	if (folder && folder_list(folder, &entries) == OK)
		for (int64_t i = 0; i < entries.count; i++)
			if (strncmp(entries.names[i], "checkpoint-", 11) == 0 &&
			    strspn(entries.names[i] + 11, "0123456789") == strlen(entries.names[i] + 11) &&
			    name_list_add(out, entries.names[i]) != OK)
				break;
	name_list_release(&entries);
	for (int64_t i = 1; i < out->count; i++)
		for (int64_t k = i; k > 0 && atoll(out->names[k] + 11) < atoll(out->names[k - 1] + 11); k--) {
			char *other = out->names[k];
			out->names[k] = out->names[k - 1];
			out->names[k - 1] = other;
		}
}

/* "Loss: from 9.72 to 6.03." for readers who cannot see the curve. */
static void describe(char *out, size_t size, const struct chart *chart)
{
	size_t used = 0;
	char first[CHART_NUMBER_BYTES], last[CHART_NUMBER_BYTES];
	out[0] = 0;
	for (int i = 0; i < chart->series_count && used < size; i++) {
		const struct chart_series *series = &chart->series[i];
		int wrote = snprintf(out + used, size - used, "%s: from %s to %s. ", series->label ? series->label : chart->title,
				     chart_number(first, series->y[0], chart->y.number, 0),
				     chart_number(last, series->y[series->count - 1], chart->y.number, 0));
		used += wrote > 0 ? (size_t)wrote : 0;
	}
	for (int i = 0; i < chart->level_count && used < size; i++) {
		int wrote = snprintf(out + used, size - used, "%s: %s. ", chart->levels[i].label,
				     chart_number(first, chart->levels[i].y, chart->y.number, 0));
		used += wrote > 0 ? (size_t)wrote : 0;
	}
}

static const struct {
	const char *name;
	int column;
	struct chart_axis axis;
} x_axes[] = {
	{"tokens", HISTORY_TOKENS, {.label = "tokens trained on", .number = CHART_COUNT}},
	{"time", HISTORY_SECONDS, {.label = "time spent training", .number = CHART_DURATION}},
	{"steps", HISTORY_STEP, {.label = "steps", .number = CHART_COUNT}},
};

/* Colors of evaluation sets; training has color 1. */
static const int set_colors[] = {2, 3, 4, 5, 6, 7, 8};

#define SET_CURVES 7
struct drawing {
	struct chart chart;
	struct curve train, sets[SET_CURVES];
	char phases[8][16], description[1024];
};

/* Draws one quantity against tokens, time, and steps; the page's switch shows one of the three. */
static void draw(const struct report *report, const struct chart *base, int column, bool evaluated,
		 const struct name_list *checkpoints, struct buffer *out)
{
	const struct history *history = &report->history;
	struct drawing *drawing = malloc(sizeof *drawing);
	if (!drawing) {
		out->failed = true;
		return;
	}
	for (size_t axis = 0; axis < sizeof x_axes / sizeof *x_axes; axis++) {
		struct chart *chart = &drawing->chart;
		int x = x_axes[axis].column;
		*chart = *base;
		chart->x = x_axes[axis].axis;
		curve_of_steps(history, x, column, &drawing->train);
		chart_add_series(chart, (struct chart_series){
						.label = evaluated ? "training" : NULL,
						.color = 1,
						.thin = evaluated,
						.x = drawing->train.x,
						.y = drawing->train.y,
						.low = drawing->train.is_mean ? drawing->train.low : NULL,
						.high = drawing->train.is_mean ? drawing->train.high : NULL,
						.count = drawing->train.count,
					});
		for (int s = 0; evaluated && s < history->set_count && s < SET_CURVES; s++) {
			curve_of_evaluations(history, s, x, column, &drawing->sets[s]);
			chart_add_series(chart,
					 (struct chart_series){
						 .label = *history->sets[s] ? history->sets[s] : report->task.words.held_out,
						 .color = set_colors[s],
						 .dots = true,
						 .x = drawing->sets[s].x,
						 .y = drawing->sets[s].y,
						 .count = drawing->sets[s].count,
					 });
		}
		add_phases(chart, report, x, drawing->phases);
		add_events(chart, report, x);
		if (checkpoints)
			add_checkpoints(chart, report, x, checkpoints);
		describe(drawing->description, sizeof drawing->description, chart);
		chart->description = drawing->description;
		buffer_format(out, "<div class=\"%s\">\n", x_axes[axis].name);
		chart_svg(chart, out);
		buffer_text(out, "</div>\n");
	}
	free(drawing);
}

/* Losses that span orders of magnitude, such as those of a diverged run, need a logarithmic axis. */
static bool spans_widely(const struct history *history, int column)
{
	double low = INFINITY, high = 0;
	for (int64_t i = 0; i < history->steps.count; i++) {
		double value = history_value(&history->steps, i, column);
		if (isfinite(value) && value > 0) {
			low = fmin(low, value);
			high = fmax(high, value);
		}
	}
	return high > 30 * low && low > 0.05;
}

/* Whether a share, in its evaluations or else in its training steps, comes so close to 0 that the axis should start there. */
static bool is_near_zero(const struct history *history, int column)
{
	bool evaluated = history_has(&history->evaluations, column);
	const struct history_table *table = evaluated ? &history->evaluations : &history->steps;
	double low = INFINITY, high = 0;
	for (int64_t i = 0; i < table->count; i++) {
		double value = history_value(table, i, column);
		low = isfinite(value) ? fmin(low, value) : low;
		high = isfinite(value) ? fmax(high, value) : high;
	}
	return low == high ? low == 0 : low < 0.6 * high;
}

/* Draws a column of the task: training values, if the steps have them, evaluations, and the levels to compare with. */
static void draw_column(const struct report *report, const struct report_column *column, const struct name_list *checkpoints,
			struct buffer *out)
{
	const struct history *history = &report->history;
	int index = history_column(history, column->name);
	char label[96];
	struct chart chart = {.title = column->title, .y = {.label = column->axis, .number = report_axis_number(column->unit)}};
	chart.y.logarithmic = column->direction == DIRECTION_LOWER && spans_widely(history, index);
	bool is_part = column->unit == UNIT_SHARE || column->unit == UNIT_POINTS;
	chart.y.from_zero = is_part && is_near_zero(history, index);
	if (chart.y.logarithmic) {
		snprintf(label, sizeof label, "%.60s, logarithmic", column->axis);
		chart.y.label = label;
	}
	for (int l = 0; l < REPORT_LEVELS; l++)
		chart_add_level(&chart, column->levels[l].value, column->levels[l].label);
	draw(report, &chart, index, true, checkpoints, out);
}

static void draw_lengths(const struct report *report, struct buffer *out)
{
	const struct length_counts *lengths = &report->lengths;
	double shares[LENGTH_BINS];
	char description[256], note[400];
	int64_t bins = 0;
	for (int i = 0; i < LENGTH_BINS; i++) {
		shares[i] = lengths->sequences > 0 ? (double)lengths->count[i] / (double)lengths->sequences : 0;
		if (lengths->count[i] > 0)
			bins = i + 1;
	}
	double mean = lengths->sequences > 0 ? (double)lengths->tokens / (double)lengths->sequences : 0;
	char number[FORMAT_BYTES], since[64] = "";
	if (report->start.step > 0) /* lengths are not recorded, so each process counts only its own */
		snprintf(since, sizeof since, " since the run was resumed after step %lld", (long long)report->start.step);
	snprintf(description, sizeof description, "Mean %.1f tokens, longest %lld.", mean, (long long)lengths->longest);
	snprintf(note, sizeof note,
		 "%s sequences%s: %.1f tokens on average, with a maximum of %lld. Padded to that length, %.0f %% of the work "
		 "would be padding; bertc computes no padding.",
		 format_count(number, lengths->sequences), since, mean, (long long)lengths->longest,
		 100 * (1 - mean / (double)lengths->longest));
	buffer_text(out, "<div>");
	chart_bars_svg(
		&(struct chart_bars){
			.title = "Lengths of training sequences",
			.description = description,
			.note = lengths->sequences > 0 ? note : NULL,
			.x = {.label = "tokens per sequence"},
			.y = {.label = "share of sequences", .number = CHART_SHARE, .from_zero = true},
			.width = lengths->width,
			.values = shares,
			.count = bins,
		},
		out);
	buffer_text(out, "</div>\n");
}

void report_charts(const struct report *report, struct buffer *out)
{
	const struct history *history = &report->history;
	const struct report_task *task = &report->task;
	struct name_list checkpoints = {0};
	list_checkpoints(report->folder, &checkpoints);
	for (int c = 0; c < task->column_count; c++) {
		const struct report_column *column = &task->columns[c];
		int index = history_column(history, column->name);
		if (c == 0 || history_has(&history->steps, index) || history_has(&history->evaluations, index))
			draw_column(report, column, c == 0 ? &checkpoints : NULL, out);
	}
	struct chart chart = {.title = "Learning rate", .y = {.label = "per step", .number = CHART_POWER, .from_zero = true}};
	draw(report, &chart, HISTORY_LEARNING_RATE, false, NULL, out);

	chart = (struct chart){.title = "Norm of the gradient, before clipping",
			       .y = {.label = "logarithmic", .number = CHART_POWER, .logarithmic = true}};
	draw(report, &chart, HISTORY_GRAD_NORM, false, NULL, out);

	chart = (struct chart){.title = "Speed", .y = {.label = "tokens per second", .number = CHART_COUNT, .from_zero = true}};
	draw(report, &chart, HISTORY_TOKENS_PER_SECOND, false, NULL, out);
	if (history_has(&history->steps, HISTORY_SHARE_OF_GEMM)) {
		chart = (struct chart){.title = "Share of this machine's peak matmul speed",
				       .y = {.label = "share", .number = CHART_SHARE, .from_zero = true}};
		draw(report, &chart, HISTORY_SHARE_OF_GEMM, false, NULL, out);
	}
	draw_lengths(report, out);
	name_list_release(&checkpoints);
}
