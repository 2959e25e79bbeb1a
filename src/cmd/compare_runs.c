#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/compare.h"
#include "report/page.h"

/* One run as it is compared. */
struct run {
	const char *path;
	char name[64], settings_path[PATH_BYTES];
	struct history history;
	int set; /* the evaluation set to compare by */
};

static enum status open_run(struct run *run, const char *path)
{
	char metrics[PATH_BYTES], folder[PATH_BYTES];
	size_t size = strlen(path);
	run->path = path;
	if (file_is_folder(path)) {
		TRY(path_join(metrics, path, "metrics.jsonl"));
		TRY(path_join(run->settings_path, path, "settings.json"));
	} else {
		snprintf(metrics, sizeof metrics, "%.4000s", path);
	}
	TRY(history_read(&run->history, metrics));
	if (run->history.count == 0 && run->history.evaluation_count == 0) {
		enum status status = error_set(ERR_DATA, "'%s': no logged step", metrics);
		error_hint("give the folder of a run that has begun, or its metrics.jsonl");
		return status;
	}
	run->set = history_main_set(&run->history);
	while (size > 1 && path[size - 1] == '/')
		size--;
	snprintf(folder, sizeof folder, "%.*s", (int)(size < 4000 ? size : 4000), path);
	const char *slash = strrchr(folder, '/');
	snprintf(run->name, sizeof run->name, "%.40s", slash && slash[1] ? slash + 1 : folder);
	return OK;
}

static double last_of(const struct run *run, enum history_column column)
{
	const struct history *history = &run->history;
	const struct history_row *evaluation = history_last_evaluation(history, run->set);
	double row = history->count ? history->rows[history->count - 1].value[column] : 0;
	double evaluated = evaluation ? evaluation->value[column] : 0;
	return row > evaluated ? row : evaluated;
}

/* Mean of a training column around `place`, within `reach` on either side. */
static double training_at(const struct run *run, enum history_column by, double place, double reach, enum history_column column)
{
	double sum = 0;
	int64_t count = 0;
	if (place > last_of(run, by) + reach)
		return NAN;
	for (int64_t i = 0; i < run->history.count; i++) {
		const double *value = run->history.rows[i].value;
		if (fabs(value[by] - place) <= reach && isfinite(value[column])) {
			sum += value[column];
			count++;
		}
	}
	return count ? sum / (double)count : NAN;
}

/* A held-out column at `place`, on the line between the evaluations around it; NaN outside of them. */
static double held_out_at(const struct run *run, enum history_column by, double place, enum history_column column)
{
	const double *before = NULL;
	for (int64_t i = 0; i < run->history.evaluation_count; i++) {
		const struct history_evaluation *evaluation = &run->history.evaluations[i];
		const double *value = evaluation->row.value;
		if (evaluation->set != run->set)
			continue;
		if (value[by] == place)
			return value[column];
		if (value[by] > place) {
			if (!before)
				return NAN;
			double share = (place - before[by]) / (value[by] - before[by]);
			return before[column] + share * (value[column] - before[column]);
		}
		before = value;
	}
	return NAN;
}

/* The first place where a run's held-out loss is at or below `loss`; NaN if it never is. */
static double reaches(const struct run *run, enum history_column by, double loss)
{
	const double *before = NULL;
	for (int64_t i = 0; i < run->history.evaluation_count; i++) {
		const struct history_evaluation *evaluation = &run->history.evaluations[i];
		const double *value = evaluation->row.value;
		if (evaluation->set != run->set)
			continue;
		if (value[HISTORY_MLM_LOSS] <= loss) {
			if (!before || before[HISTORY_MLM_LOSS] <= loss)
				return value[by];
			double share = (before[HISTORY_MLM_LOSS] - loss) / (before[HISTORY_MLM_LOSS] - value[HISTORY_MLM_LOSS]);
			return before[by] + share * (value[by] - before[by]);
		}
		before = value;
	}
	return NAN;
}

/* Columns that two equal runs share: all but speed and time. */
static bool same_row(const struct history_row *a, const struct history_row *b)
{
	for (int c = 0; c < HISTORY_COLUMNS; c++) {
		bool timing = c == HISTORY_SECONDS || c == HISTORY_TOKENS_PER_SECOND || c == HISTORY_SHARE_OF_GEMM;
		double x = a->value[c], y = b->value[c];
		if (!timing && x != y && !(isnan(x) && isnan(y)))
			return false;
	}
	return true;
}

/* The first step whose figures differ, -1 if none does. */
static int64_t first_difference(const struct history *a, const struct history *b)
{
	double first = INFINITY;
	int64_t rows = a->count < b->count ? a->count : b->count;
	for (int64_t i = 0; i < rows && isinf(first); i++)
		if (!same_row(&a->rows[i], &b->rows[i]))
			first = fmin(a->rows[i].value[HISTORY_STEP], b->rows[i].value[HISTORY_STEP]);
	if (isinf(first) && a->count != b->count)
		first = (a->count > rows ? a : b)->rows[rows].value[HISTORY_STEP];
	rows = a->evaluation_count < b->evaluation_count ? a->evaluation_count : b->evaluation_count;
	for (int64_t i = 0; i < rows; i++)
		if (!same_row(&a->evaluations[i].row, &b->evaluations[i].row) ||
		    strcmp(a->sets[a->evaluations[i].set], b->sets[b->evaluations[i].set]) != 0) {
			first = fmin(first,
				     fmin(a->evaluations[i].row.value[HISTORY_STEP], b->evaluations[i].row.value[HISTORY_STEP]));
			break;
		}
	if (isinf(first) && a->evaluation_count != b->evaluation_count)
		first = (a->evaluation_count > rows ? a : b)->evaluations[rows].row.value[HISTORY_STEP];
	return isinf(first) ? -1 : (int64_t)first;
}

static const enum history_column shown_columns[] = {HISTORY_MLM_LOSS, HISTORY_MLM_ACCURACY, HISTORY_NSP_LOSS,
						    HISTORY_NSP_ACCURACY};
#define SHOWN (sizeof shown_columns / sizeof *shown_columns)

struct comparison {
	struct run a, b;
	enum history_column by;
	struct chart_axis axis;
	double end, reach;
	int64_t points, first;
	struct compare_differences settings;
};

static double place_of(const struct comparison *comparison, int64_t point)
{
	double place = comparison->end * (double)point / (double)comparison->points;
	return comparison->by == HISTORY_STEP ? round(place) : place;
}

static void print_number(double value, bool share)
{
	if (isnan(value))
		printf("  %9s", "-");
	else if (share)
		printf("  %7.2f %%", 100 * value);
	else
		printf("  %9.4f", value);
}

static void print_place(const struct comparison *comparison, double place)
{
	char number[CHART_NUMBER_BYTES];
	if (comparison->by == HISTORY_STEP)
		printf("  %12s", format_count(number, (int64_t)place));
	else
		printf("  %12s", chart_number(number, place, comparison->axis.number, 0));
}

static void print_table(const struct comparison *comparison, bool held_out)
{
	const struct run *a = &comparison->a, *b = &comparison->b;
	printf("\n%s\n  %12s  %20s  %9s  %20s  %9s\n", held_out ? "held out" : "training", comparison->axis.label,
	       "MLM loss: A        B", "B - A", "accuracy: A        B", "B - A");
	for (int64_t i = 1; i <= comparison->points; i++) {
		double place = place_of(comparison, i), value[2][2];
		for (int c = 0; c < 2; c++)
			for (int r = 0; r < 2; r++)
				value[c][r] = held_out ? held_out_at(r ? b : a, comparison->by, place, shown_columns[c])
						       : training_at(r ? b : a, comparison->by, place, comparison->reach,
								     shown_columns[c]);
		if (isnan(value[0][0]) && isnan(value[0][1]))
			continue;
		print_place(comparison, place);
		for (int c = 0; c < 2; c++) {
			print_number(value[c][0], c == 1);
			print_number(value[c][1], c == 1);
			print_number(value[c][1] - value[c][0], c == 1);
		}
		printf("\n");
	}
}

static void print_reach(const struct comparison *comparison, const struct run *fast, char fast_letter, const struct run *slow,
			char slow_letter)
{
	const struct history_row *last = history_last_evaluation(&slow->history, slow->set);
	char number[CHART_NUMBER_BYTES];
	if (!last)
		return;
	double place = reaches(fast, comparison->by, last->value[HISTORY_MLM_LOSS]), own = last->value[comparison->by];
	if (isfinite(place) && place < own)
		printf("%c reaches %c's last held-out loss, %.4f, after %s %s: %.2f of what %c needed\n", fast_letter,
		       slow_letter, last->value[HISTORY_MLM_LOSS],
		       comparison->by == HISTORY_STEP ? format_count(number, (int64_t)place)
						      : chart_number(number, place, comparison->axis.number, 0),
		       comparison->by == HISTORY_SECONDS ? "of training" : comparison->axis.label, place / own, slow_letter);
}

static void print_person(const struct comparison *comparison)
{
	printf("A  %s\nB  %s\n", comparison->a.path, comparison->b.path);
	if (comparison->first < 0)
		printf("every logged figure is equal\n");
	else
		printf("the first logged figures that differ are of step %lld\n", (long long)comparison->first);
	print_table(comparison, false);
	print_table(comparison, true);
	printf("\n");
	print_reach(comparison, &comparison->a, 'A', &comparison->b, 'B');
	print_reach(comparison, &comparison->b, 'B', &comparison->a, 'A');
	compare_print_settings(&comparison->settings);
}

static void put_columns(const struct comparison *comparison, const struct run *run, double place, const char *key,
			struct json_writer *writer)
{
	json_open(writer, key, '{');
	for (size_t c = 0; c < SHOWN; c++) {
		char name[64];
		enum history_column column = shown_columns[c];
		json_put_double(writer, history_columns[column],
				training_at(run, comparison->by, place, comparison->reach, column));
		snprintf(name, sizeof name, "eval_%s", history_columns[column]);
		json_put_double(writer, name, held_out_at(run, comparison->by, place, column));
	}
	json_close(writer);
}

static enum status print_json(const struct comparison *comparison)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "kind", "runs");
	json_put_bool(&writer, "equal", comparison->first < 0 && comparison->settings.count == 0);
	if (comparison->first >= 0)
		json_put_integer(&writer, "first_different_step", comparison->first);
	json_put_string(&writer, "by", comparison->axis.label);
	json_open(&writer, "points", '[');
	for (int64_t i = 1; i <= comparison->points; i++) {
		double place = place_of(comparison, i);
		json_open(&writer, NULL, '{');
		json_put_double(&writer, "at", place);
		put_columns(comparison, &comparison->a, place, "a", &writer);
		put_columns(comparison, &comparison->b, place, "b", &writer);
		json_close(&writer);
	}
	json_close(&writer);
	compare_put_settings(&comparison->settings, &writer);
	json_close(&writer);
	enum status status = buffer_status(&text);
	if (status == OK)
		printf("%s\n", buffer_string(&text));
	buffer_release(&text);
	return status;
}

struct pair {
	struct chart chart;
	struct curve training[2], held_out[2];
	char labels[4][80];
};

/* One quantity of both runs, against tokens, time and steps. */
static void draw_pair(const struct comparison *comparison, const struct chart *base, enum history_column column, bool evaluated,
		      struct buffer *out)
{
	static const struct {
		const char *name;
		enum history_column by;
		struct chart_axis axis;
	} axes[] = {
		{"tokens", HISTORY_TOKENS, {.label = "tokens trained on", .number = CHART_COUNT}},
		{"time", HISTORY_SECONDS, {.label = "time of training", .number = CHART_DURATION}},
		{"steps", HISTORY_STEP, {.label = "steps", .number = CHART_COUNT}},
	};
	struct pair *pair = malloc(sizeof *pair);
	if (!pair) {
		out->failed = true;
		return;
	}
	for (size_t axis = 0; axis < sizeof axes / sizeof *axes; axis++) {
		struct chart *chart = &pair->chart;
		*chart = *base;
		chart->x = axes[axis].axis;
		for (int r = 0; r < 2; r++) {
			const struct run *run = r ? &comparison->b : &comparison->a;
			struct curve *curve = &pair->training[r];
			snprintf(pair->labels[r], sizeof pair->labels[r], "%c", 'A' + r);
			curve_of_rows(&run->history, axes[axis].by, column, curve);
			chart_add_series(chart, (struct chart_series){.label = pair->labels[r],
								      .colour = 1 + r,
								      .thin = evaluated,
								      .x = curve->x,
								      .y = curve->y,
								      .low = curve->is_mean && !evaluated ? curve->low : NULL,
								      .high = curve->is_mean && !evaluated ? curve->high : NULL,
								      .count = curve->count});
		}
		for (int r = 0; r < 2 && evaluated; r++) {
			const struct run *run = r ? &comparison->b : &comparison->a;
			struct curve *curve = &pair->held_out[r];
			snprintf(pair->labels[2 + r], sizeof pair->labels[2 + r], "%c held out", 'A' + r);
			curve_of_evaluations(&run->history, run->set, axes[axis].by, column, curve);
			chart_add_series(chart, (struct chart_series){.label = pair->labels[2 + r],
								      .colour = 1 + r,
								      .dots = true,
								      .x = curve->x,
								      .y = curve->y,
								      .count = curve->count});
		}
		buffer_format(out, "<div class=\"%s\">\n", axes[axis].name);
		chart_svg(chart, out);
		buffer_text(out, "</div>\n");
	}
	free(pair);
}

static enum status write_page(const struct comparison *comparison, const char *path)
{
	static const struct {
		const char *title;
		enum history_column column;
		bool evaluated;
		struct chart_axis axis;
	} charts[] = {
		{"Loss of masked words", HISTORY_MLM_LOSS, true, {.label = "nats a word"}},
		{"Accuracy of masked words", HISTORY_MLM_ACCURACY, true, {.label = "share guessed right", .number = CHART_SHARE}},
		{"Loss of next sentences", HISTORY_NSP_LOSS, true, {.label = "nats a pair"}},
		{"Accuracy of next sentences", HISTORY_NSP_ACCURACY, true, {.label = "share told right", .number = CHART_SHARE}},
		{"Learning rate", HISTORY_LEARNING_RATE, false, {.label = "per step", .number = CHART_POWER, .from_zero = true}},
		{"Norm of the gradient, before clipping",
		 HISTORY_GRAD_NORM,
		 false,
		 {.label = "logarithmic", .number = CHART_POWER, .logarithmic = true}},
		{"Speed",
		 HISTORY_TOKENS_PER_SECOND,
		 false,
		 {.label = "tokens a second", .number = CHART_COUNT, .from_zero = true}},
	};
	struct buffer html = {0};
	char title[256];
	snprintf(title, sizeof title, "%s and %s \xE2\x80\x93 bertc compare", comparison->a.name, comparison->b.name);
	html_begin(&html, title);
	buffer_text(&html, "<h1>Two runs</h1>\n<p class=\"sub\"><b class=\"mark-a\">A</b> ");
	html_text(&html, comparison->a.path);
	buffer_text(&html, "<br><b class=\"mark-b\">B</b> ");
	html_text(&html, comparison->b.path);
	buffer_text(&html, "</p>\n");
	buffer_text(&html,
		    "<input class=\"pick\" type=\"radio\" name=\"axis\" id=\"by-tokens\" checked>"
		    "<input class=\"pick\" type=\"radio\" name=\"axis\" id=\"by-time\">"
		    "<input class=\"pick\" type=\"radio\" name=\"axis\" id=\"by-steps\">\n"
		    "<p class=\"switch\">against <label for=\"by-tokens\">tokens</label><label for=\"by-time\">time</label>"
		    "<label for=\"by-steps\">steps</label></p>\n<div class=\"grid\">\n");
	for (size_t i = 0; i < sizeof charts / sizeof *charts; i++) {
		struct chart chart = {.title = charts[i].title, .y = charts[i].axis};
		draw_pair(comparison, &chart, charts[i].column, charts[i].evaluated, &html);
	}
	buffer_text(&html, "</div>\n");
	if (comparison->settings.count > 0)
		buffer_text(&html, "<h2>Settings that differ</h2>\n<div class=\"scroll\"><table><tr><th>setting</th><th>A</th>"
				   "<th>B</th></tr>\n");
	for (int64_t i = 0; i < comparison->settings.count; i++) {
		const struct compare_setting *setting = &comparison->settings.items[i];
		buffer_text(&html, "<tr><td>");
		html_text(&html, setting->name);
		buffer_text(&html, "</td><td>");
		html_text(&html, setting->a);
		buffer_text(&html, "</td><td>");
		html_text(&html, setting->b);
		buffer_text(&html, "</td></tr>\n");
	}
	if (comparison->settings.count > 0)
		buffer_text(&html, "</table></div>\n");
	html_end(&html);
	enum status status = buffer_status(&html);
	if (status == OK)
		status = file_write(path, html.data, html.size);
	buffer_release(&html);
	return status;
}

enum status compare_runs(const struct compare_settings *settings, const char *a, const char *b, bool *out_same)
{
	struct comparison comparison = {.points = settings->points, .by = HISTORY_STEP, .axis = {.label = "steps"}};
	enum status status;
	if (strcmp(settings->by, "tokens") == 0) {
		comparison.by = HISTORY_TOKENS;
		comparison.axis = (struct chart_axis){.label = "tokens", .number = CHART_COUNT};
	} else if (strcmp(settings->by, "time") == 0) {
		comparison.by = HISTORY_SECONDS;
		comparison.axis = (struct chart_axis){.label = "time", .number = CHART_DURATION};
	}
	TRY_GOTO(open_run(&comparison.a, a), done);
	TRY_GOTO(open_run(&comparison.b, b), done);
	if (comparison.a.settings_path[0] && comparison.b.settings_path[0])
		TRY_GOTO(compare_json_files(comparison.a.settings_path, comparison.b.settings_path, NULL, &comparison.settings),
			 done);
	comparison.end = fmax(last_of(&comparison.a, comparison.by), last_of(&comparison.b, comparison.by));
	comparison.reach = comparison.end / (double)comparison.points / 2;
	comparison.first = first_difference(&comparison.a.history, &comparison.b.history);
	*out_same = comparison.first < 0 && comparison.settings.count == 0;
	if (settings->json)
		TRY_GOTO(print_json(&comparison), done);
	else
		print_person(&comparison);
	if (settings->out) {
		TRY_GOTO(write_page(&comparison, settings->out), done);
		log_note("both curves: %s", settings->out);
	}
done:
	history_release(&comparison.a.history);
	history_release(&comparison.b.history);
	free(comparison.settings.items);
	return status;
}
