#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "report/page.h"

void curve_of_rows(const struct history *history, enum history_column x, enum history_column y, struct curve *out)
{
	/* Four rows a point at least, where there are enough: a mean says more than a single noisy step. */
	int64_t points = history->count >= 4 * CURVE_POINTS ? CURVE_POINTS : history->count / 4;
	points = points > 60 ? points : history->count < 60 ? history->count : 60;
	*out = (struct curve){.is_mean = 2 * points <= history->count};
	for (int64_t p = 0; p < points; p++) {
		int64_t from = p * history->count / points, to = (p + 1) * history->count / points, count = 0;
		double sum = 0, place = 0, low = INFINITY, high = -INFINITY;
		for (int64_t i = from; i < to; i++) {
			double value = history->rows[i].value[y];
			if (!isfinite(value))
				continue;
			sum += value;
			place += history->rows[i].value[x];
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

void curve_of_evaluations(const struct history *history, int set, enum history_column x, enum history_column y, struct curve *out)
{
	int64_t total = 0, seen = 0;
	*out = (struct curve){0};
	for (int64_t i = 0; i < history->evaluation_count; i++)
		total += history->evaluations[i].set == set;
	int64_t every = total / CURVE_POINTS + 1;
	for (int64_t i = 0; i < history->evaluation_count; i++) {
		const struct history_evaluation *evaluation = &history->evaluations[i];
		if (evaluation->set != set)
			continue;
		seen++;
		if ((total - seen) % every != 0 || !isfinite(evaluation->row.value[y]) || out->count == CURVE_POINTS)
			continue;
		out->x[out->count] = evaluation->row.value[x];
		out->y[out->count++] = evaluation->row.value[y];
	}
}

/* Where a step lies on the x axis. */
static double place_of_step(const struct history *history, int64_t step, enum history_column x)
{
	for (int64_t i = 0; i < history->count; i++)
		if (history->rows[i].value[HISTORY_STEP] >= (double)step)
			return history->rows[i].value[x];
	return NAN;
}

static void add_phases(struct chart *chart, const struct report *report, enum history_column x, char labels[][16])
{
	const struct history *history = &report->history;
	int found = 0;
	for (int64_t i = 1; i < history->count && found < 8; i++) {
		double phase = history->rows[i].value[HISTORY_PHASE];
		if (phase > history->rows[i - 1].value[HISTORY_PHASE]) {
			snprintf(labels[found], 16, "phase %.0f", phase);
			chart_add_mark(chart, CHART_MARK_PHASE, history->rows[i].value[x], labels[found++]);
		}
	}
}

static void add_troubles(struct chart *chart, const struct report *report, enum history_column x)
{
	const struct history *history = &report->history;
	for (int64_t i = 0; i < history->event_count; i++)
		if (!history->events[i].over)
			chart_add_mark(chart, CHART_MARK_TROUBLE,
				       x == HISTORY_TOKENS ? history->events[i].tokens : history->events[i].seconds,
				       history->events[i].text);
}

/* The checkpoints that lie in the run folder, the newest first. */
static void add_checkpoints(struct chart *chart, const struct report *report, enum history_column x,
			    const struct name_list *names)
{
	for (int64_t i = names->count; i-- > 0;)
		chart_add_mark(chart, CHART_MARK_SAVED,
			       place_of_step(&report->history, strtoll(names->names[i] + 11, NULL, 10), x), names->names[i]);
}

/* Checkpoint folders by step. */
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

/* "From 9.72 to 6.03." for those who cannot see the curve. */
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

static const struct chart_axis x_axes[2] = {
	{.label = "tokens trained on", .number = CHART_COUNT},
	{.label = "time of training", .number = CHART_DURATION},
};
static const enum history_column x_columns[2] = {HISTORY_TOKENS, HISTORY_SECONDS};

/* Colours of evaluation sets; training is 1. */
static const int set_colours[] = {2, 3, 4, 5, 6, 7, 8};

#define SET_CURVES 7
struct drawing {
	struct chart chart;
	struct curve train, sets[SET_CURVES];
	char phases[8][16], description[1024];
};

/* One quantity twice, against tokens and against time; the page's switch shows one of them. */
static void draw(const struct report *report, const struct chart *base, enum history_column column, bool evaluated,
		 const struct name_list *checkpoints, struct buffer *out)
{
	const struct history *history = &report->history;
	struct drawing *drawing = malloc(sizeof(*drawing));
	if (!drawing) {
		out->failed = true;
		return;
	}
	for (int axis = 0; axis < 2; axis++) {
		struct chart *chart = &drawing->chart;
		*chart = *base;
		chart->x = x_axes[axis];
		curve_of_rows(history, x_columns[axis], column, &drawing->train);
		chart_add_series(chart, (struct chart_series){
						.label = evaluated ? "training" : NULL,
						.colour = 1,
						.thin = evaluated,
						.x = drawing->train.x,
						.y = drawing->train.y,
						.low = drawing->train.is_mean ? drawing->train.low : NULL,
						.high = drawing->train.is_mean ? drawing->train.high : NULL,
						.count = drawing->train.count,
					});
		for (int s = 0; evaluated && s < history->set_count && s < SET_CURVES; s++) {
			curve_of_evaluations(history, s, x_columns[axis], column, &drawing->sets[s]);
			chart_add_series(chart, (struct chart_series){
							.label = *history->sets[s] ? history->sets[s] : "held out",
							.colour = set_colours[s],
							.dots = true,
							.x = drawing->sets[s].x,
							.y = drawing->sets[s].y,
							.count = drawing->sets[s].count,
						});
		}
		add_phases(chart, report, x_columns[axis], drawing->phases);
		add_troubles(chart, report, x_columns[axis]);
		if (checkpoints)
			add_checkpoints(chart, report, x_columns[axis], checkpoints);
		describe(drawing->description, sizeof(drawing->description), chart);
		chart->description = drawing->description;
		buffer_format(out, "<div class=\"%s\">\n", axis == 0 ? "tokens" : "time");
		chart_svg(chart, out);
		buffer_text(out, "</div>\n");
	}
	free(drawing);
}

static bool has_values(const struct history *history, enum history_column column)
{
	for (int64_t i = 0; i < history->count; i++)
		if (isfinite(history->rows[i].value[column]))
			return true;
	return false;
}

/* Losses that span orders of magnitude, as of a run that has diverged, need a logarithmic axis. */
static bool spans_widely(const struct history *history, enum history_column column)
{
	double low = INFINITY, high = 0;
	for (int64_t i = 0; i < history->count; i++) {
		double value = history->rows[i].value[column];
		if (isfinite(value) && value > 0) {
			low = fmin(low, value);
			high = fmax(high, value);
		}
	}
	return high > 30 * low && low > 0.05;
}

static void draw_lengths(const struct length_counts *lengths, struct buffer *out)
{
	double shares[LENGTH_BINS];
	char description[256], note[400];
	int64_t bins = 0;
	for (int i = 0; i < LENGTH_BINS; i++) {
		shares[i] = lengths->sequences > 0 ? (double)lengths->count[i] / (double)lengths->sequences : 0;
		if (lengths->count[i] > 0)
			bins = i + 1;
	}
	double mean = lengths->sequences > 0 ? (double)lengths->tokens / (double)lengths->sequences : 0;
	char number[FORMAT_BYTES];
	snprintf(description, sizeof(description), "Mean %.1f tokens, longest %lld.", mean, (long long)lengths->longest);
	snprintf(note, sizeof(note),
		 "%s sequences since the program was started, %.1f tokens on average, the longest %lld. Padded to that length, "
		 "%.0f %% of the work would be padding; none is computed here.",
		 format_count(number, lengths->sequences), mean, (long long)lengths->longest,
		 100 * (1 - mean / (double)lengths->longest));
	buffer_text(out, "<div>");
	chart_bars_svg(
		&(struct chart_bars){
			.title = "Lengths of training sequences",
			.description = description,
			.note = lengths->sequences > 0 ? note : NULL,
			.x = {.label = "tokens of a sequence"},
			.y = {.label = "share of sequences", .number = CHART_SHARE, .from_zero = true},
			.width = lengths->width,
			.values = shares,
			.count = bins,
		},
		out);
	buffer_text(out, "</div>\n");
}

void report_charts(const struct report *report, const struct report_progress *state, struct buffer *out)
{
	const struct history *history = &report->history;
	const struct report_facts *facts = &report->facts;
	struct name_list checkpoints = {0};
	list_checkpoints(report->folder, &checkpoints);
	(void)state;

	struct chart chart = {.title = "Loss of masked words", .y = {.label = "nats a word"}};
	chart.y.logarithmic = spans_widely(history, HISTORY_MLM_LOSS);
	if (chart.y.logarithmic)
		chart.y.label = "nats a word, logarithmic";
	chart_add_level(&chart, facts->unigram_entropy, "frequencies");
	chart_add_level(&chart, facts->vocab_size > 0 ? log(facts->vocab_size) : NAN, "guessing");
	draw(report, &chart, HISTORY_MLM_LOSS, true, &checkpoints, out);

	chart = (struct chart){.title = "Accuracy of masked words",
			       .y = {.label = "share guessed right", .number = CHART_SHARE, .from_zero = true}};
	chart_add_level(&chart, facts->frequent_share, "frequencies");
	draw(report, &chart, HISTORY_MLM_ACCURACY, true, NULL, out);

	if (facts->next_sentence && has_values(history, HISTORY_NSP_LOSS)) {
		chart = (struct chart){.title = "Loss of next sentences", .y = {.label = "nats a pair"}};
		chart.y.logarithmic = spans_widely(history, HISTORY_NSP_LOSS);
		if (chart.y.logarithmic)
			chart.y.label = "nats a pair, logarithmic";
		chart_add_level(&chart, log(2), "guessing");
		draw(report, &chart, HISTORY_NSP_LOSS, true, NULL, out);
		chart = (struct chart){.title = "Accuracy of next sentences",
				       .y = {.label = "share told right", .number = CHART_SHARE}};
		chart_add_level(&chart, 0.5, "guessing");
		draw(report, &chart, HISTORY_NSP_ACCURACY, true, NULL, out);
	}
	chart = (struct chart){.title = "Learning rate", .y = {.label = "per step", .number = CHART_POWER, .from_zero = true}};
	draw(report, &chart, HISTORY_LEARNING_RATE, false, NULL, out);

	chart = (struct chart){.title = "Norm of the gradient, before clipping",
			       .y = {.label = "logarithmic", .number = CHART_POWER, .logarithmic = true}};
	draw(report, &chart, HISTORY_GRAD_NORM, false, NULL, out);

	chart = (struct chart){.title = "Speed", .y = {.label = "tokens a second", .number = CHART_COUNT, .from_zero = true}};
	draw(report, &chart, HISTORY_TOKENS_PER_SECOND, false, NULL, out);
	if (has_values(history, HISTORY_SHARE_OF_GEMM)) {
		chart = (struct chart){.title = "Work done, as a share of this machine's matrix products",
				       .y = {.label = "share", .number = CHART_SHARE, .from_zero = true}};
		draw(report, &chart, HISTORY_SHARE_OF_GEMM, false, NULL, out);
	}
	draw_lengths(&report->lengths, out);
	name_list_release(&checkpoints);
}
