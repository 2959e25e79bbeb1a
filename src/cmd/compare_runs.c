/* `bertc compare` for two runs: settings, curves at the same place, speed, and the first step at which they differ. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/compare.h"
#include "report/page.h"
#include "text/vocab.h"
#include "weights/tokenizer_file.h"

/* One of the runs compared. */
struct run {
	const char *path;
	char name[64], settings_path[PATH_BYTES];
	struct history history;
	int set;             /* the evaluation set to compare by */
	bool is_pretraining; /* its figures concern masked words */
	char task[64];       /* of a fine-tuning run, from settings.json; "" if not known */
	uint64_t vocab_hash; /* 0: not known */
	int32_t vocab_count;
	char held_out[32]; /* checksum of the text held out of its corpus; "": none, or another set is evaluated */
};

/* Finds the vocabulary beside the run's data, or that of its finished model. */
static enum status find_vocab(struct run *run)
{
	static const char *const places[] = {"data", "final"};
	char folder[PATH_BYTES], path[PATH_BYTES];
	struct vocab vocab;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		TRY(path_join(folder, run->path, places[i]));
		TRY(vocab_file_find(folder, path));
		if (!path[0])
			continue;
		TRY(vocab_file_read(&vocab, path));
		run->vocab_hash = vocab.hash;
		run->vocab_count = vocab.count;
		vocab_release(&vocab);
		break;
	}
	return OK;
}

/* Finds the run's task, if its settings name one. */
static enum status find_task(struct run *run)
{
	struct json_document document;
	const char *task = "";
	if (!file_exists(run->settings_path))
		return OK;
	TRY(json_read(&document, run->settings_path, (size_t)64 << 20));
	enum status status = json_get_string(document.root, run->settings_path, "task", &task);
	snprintf(run->task, sizeof run->task, "%.60s", status == OK ? task : "");
	json_release(&document);
	return status;
}

/* Finds the checksum of the text that was held out of the run's corpus. */
static enum status find_held_out(struct run *run)
{
	struct json_document document;
	char path[PATH_BYTES];
	const char *checksum = "";
	TRY(path_join(path, run->path, "data/train.held_out.json"));
	if (!file_exists(path))
		return OK;
	TRY(json_read(&document, path, (size_t)1 << 20));
	enum status status = json_get_string(document.root, path, "bin_crc32c", &checksum);
	snprintf(run->held_out, sizeof run->held_out, "%.16s", status == OK ? checksum : "");
	json_release(&document);
	return status;
}

static enum status open_run(struct run *run, const char *path, const char *page)
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
	TRY(command_check_input(metrics, "out", page));
	TRY(command_check_input(run->settings_path, "out", page));
	TRY(history_read(&run->history, metrics));
	if (run->history.steps.count == 0 && run->history.evaluations.count == 0)
		return error_hinted(error_set(ERR_DATA, "'%s': no logged step", metrics),
				    "give the folder of a run that has begun, or its metrics.jsonl");
	run->set = history_main_set(&run->history);
	run->is_pretraining = history_column(&run->history, "mlm_loss") >= 0;
	if (run->settings_path[0]) {
		TRY(find_vocab(run));
		TRY(find_task(run));
		TRY(find_held_out(run));
	}
	while (size > 1 && path[size - 1] == '/')
		size--;
	snprintf(folder, sizeof folder, "%.*s", (int)(size < 4000 ? size : 4000), path);
	const char *slash = strrchr(folder, '/');
	snprintf(run->name, sizeof run->name, "%.40s", slash && slash[1] ? slash + 1 : folder);
	return OK;
}

static const char *set_of(const struct run *run)
{
	return run->history.sets[run->set];
}

/* Compares by the set that A is judged by or, if B has none of that name, by the first that both have. */
static void choose_sets(struct run *a, struct run *b)
{
	for (int i = -1; i < a->history.set_count; i++)
		for (int k = 0; k < b->history.set_count; k++)
			if (strcmp(a->history.sets[i < 0 ? a->set : i], b->history.sets[k]) == 0) {
				a->set = i < 0 ? a->set : i;
				b->set = k;
				return;
			}
}

static double last_of(const struct run *run, int column)
{
	const struct history *history = &run->history;
	int64_t evaluation = history_last_evaluation(history, run->set), steps = history->steps.count;
	double row = steps ? history_value(&history->steps, steps - 1, column) : 0;
	double evaluated = evaluation >= 0 ? history_value(&history->evaluations, evaluation, column) : 0;
	return row > evaluated ? row : evaluated;
}

/* Mean of a training column around `place`, within `reach` on either side. */
static double training_at(const struct run *run, int by, double place, double reach, const char *name)
{
	const struct history_table *steps = &run->history.steps;
	double sum = 0;
	int64_t count = 0;
	int column = history_column(&run->history, name);
	if (place > last_of(run, by) + reach)
		return NAN;
	for (int64_t i = 0; i < steps->count; i++) {
		double value = history_value(steps, i, column);
		if (fabs(history_value(steps, i, by) - place) <= reach && isfinite(value)) {
			sum += value;
			count++;
		}
	}
	return count ? sum / (double)count : NAN;
}

/* A held-out column at `place`, interpolated linearly between evaluations; NaN outside their range. */
static double held_out_at(const struct run *run, int by, double place, const char *name)
{
	const struct history_table *table = &run->history.evaluations;
	int column = history_column(&run->history, name);
	int64_t before = -1;
	for (int64_t i = 0; i < table->count; i++) {
		double at = history_value(table, i, by), value = history_value(table, i, column);
		if (run->history.evaluation_sets[i] != run->set)
			continue;
		if (at == place)
			return value;
		if (at > place) {
			if (before < 0)
				return NAN;
			double from = history_value(table, before, by), first = history_value(table, before, column);
			return first + (place - from) / (at - from) * (value - first);
		}
		before = i;
	}
	return NAN;
}

/* The first place where a run's held-out loss is at or below `loss`; NaN if it never is. */
static double reaches(const struct run *run, int by, const char *name, double loss)
{
	const struct history_table *table = &run->history.evaluations;
	int column = history_column(&run->history, name);
	int64_t before = -1;
	for (int64_t i = 0; i < table->count; i++) {
		double at = history_value(table, i, by), value = history_value(table, i, column);
		if (run->history.evaluation_sets[i] != run->set)
			continue;
		if (value <= loss) {
			double first = before >= 0 ? history_value(table, before, column) : NAN;
			if (!(first > loss))
				return at;
			double from = history_value(table, before, by);
			return from + (first - loss) / (first - value) * (at - from);
		}
		before = i;
	}
	return NAN;
}

/* Do two rows hold the same numbers? Speed and time are ignored. */
static bool same_row(const struct history *a, const struct history_table *in_a, const struct history *b,
		     const struct history_table *in_b, int64_t row)
{
	for (int c = 0; c < a->column_count; c++) {
		bool timing = c == HISTORY_SECONDS || c == HISTORY_TOKENS_PER_SECOND || c == HISTORY_SHARE_OF_GEMM;
		double x = history_value(in_a, row, c), y = history_value(in_b, row, history_column(b, a->names[c]));
		if (!timing && x != y && !(isnan(x) && isnan(y)))
			return false;
	}
	return true;
}

/* The first row in which two tables differ; -1 if none does. */
static int64_t first_different_row(const struct history *a, const struct history_table *in_a, const struct history *b,
				   const struct history_table *in_b)
{
	int64_t rows = in_a->count < in_b->count ? in_a->count : in_b->count;
	for (int64_t i = 0; i < rows; i++) {
		bool evaluation = in_a == &a->evaluations;
		if (!same_row(a, in_a, b, in_b, i) || !same_row(b, in_b, a, in_a, i) ||
		    (evaluation && strcmp(a->sets[a->evaluation_sets[i]], b->sets[b->evaluation_sets[i]]) != 0))
			return i;
	}
	return in_a->count == in_b->count ? -1 : rows;
}

/* The first step at which figures differ; -1 if none do. */
static int64_t first_difference(const struct history *a, const struct history *b)
{
	const struct history_table *const tables[2][2] = {{&a->steps, &b->steps}, {&a->evaluations, &b->evaluations}};
	double first = INFINITY;
	for (int t = 0; t < 2; t++) {
		int64_t row = first_different_row(a, tables[t][0], b, tables[t][1]);
		for (int r = 0; row >= 0 && r < 2; r++)
			if (row < tables[t][r]->count)
				first = fmin(first, history_value(tables[t][r], row, HISTORY_STEP));
	}
	return isinf(first) ? -1 : (int64_t)first;
}

#define SHOWN 16
struct comparison {
	struct run a, b;
	int by; /* HISTORY_STEP, HISTORY_TOKENS, or HISTORY_SECONDS */
	struct chart_axis axis;
	struct report_column columns[SHOWN]; /* the first is a loss */
	int column_count;
	double end, reach;
	bool other_kind; /* one is pre-training, the other fine-tuning: no figures in common */
	int64_t points, first;
	struct compare_differences settings;
};

static bool has_column(const struct comparison *comparison, const char *name)
{
	return history_column(&comparison->a.history, name) >= 0 || history_column(&comparison->b.history, name) >= 0;
}

static void add_column(struct comparison *comparison, const char *name)
{
	for (int c = 0; c < comparison->column_count; c++)
		if (strcmp(comparison->columns[c].name, name) == 0)
			return;
	if (comparison->column_count < SHOWN)
		comparison->columns[comparison->column_count++] = report_column(name);
}

/* Chooses the figures by which the runs were evaluated: for pre-training, those of masked words and next sentences; otherwise the
 * loss and every measure on which either run was evaluated. */
static void choose_columns(struct comparison *comparison)
{
	static const char *const pretraining[] = {"mlm_loss", "mlm_accuracy", "nsp_loss", "nsp_accuracy"};
	const struct history *histories[] = {&comparison->a.history, &comparison->b.history};
	if (has_column(comparison, pretraining[0])) {
		for (size_t i = 0; i < sizeof pretraining / sizeof *pretraining; i++)
			add_column(comparison, pretraining[i]);
		return;
	}
	add_column(comparison, "loss");
	for (int r = 0; r < 2; r++)
		for (int c = HISTORY_COMMON; c < histories[r]->column_count; c++)
			if (report_column_is_known(histories[r]->names[c]) &&
			    report_column(histories[r]->names[c]).direction != DIRECTION_NONE)
				add_column(comparison, histories[r]->names[c]);
}

/* "pre-training", "fine-tuning (mrpc)" */
static const char *kind_text(char out[96], const struct run *run)
{
	snprintf(out, 96, "%s%s%s%s", run->is_pretraining ? "pre-training" : "fine-tuning",
		 !run->is_pretraining && *run->task ? " (" : "", run->is_pretraining ? "" : TEXT_SHOWN(run->task),
		 !run->is_pretraining && *run->task ? ")" : "");
	return out;
}

static bool have_other_vocabularies(const struct comparison *comparison)
{
	const struct run *a = &comparison->a, *b = &comparison->b;
	return a->vocab_hash && b->vocab_hash && a->vocab_hash != b->vocab_hash;
}

static bool have_other_held_out_texts(const struct comparison *comparison)
{
	const struct run *a = &comparison->a, *b = &comparison->b;
	return *a->held_out && *b->held_out && strcmp(a->held_out, b->held_out) != 0;
}

static bool train_other_tasks(const struct comparison *comparison)
{
	return !comparison->a.is_pretraining && strcmp(comparison->a.task, comparison->b.task) != 0;
}

static bool have_other_sets(const struct comparison *comparison)
{
	const struct run *a = &comparison->a, *b = &comparison->b;
	return a->history.set_count > 0 && b->history.set_count > 0 && strcmp(set_of(a), set_of(b)) != 0;
}

/* Can the figures of the two runs be compared? */
static bool is_comparable(const struct comparison *comparison)
{
	if (comparison->other_kind || have_other_held_out_texts(comparison) || have_other_sets(comparison))
		return false;
	return comparison->a.is_pretraining ? !have_other_vocabularies(comparison) : !train_other_tasks(comparison);
}

/* Warns about figures that look alike but measure different things. */
static void warn_of_differences(const struct comparison *comparison)
{
	const struct run *a = &comparison->a, *b = &comparison->b;
	if (comparison->other_kind)
		return;
	if (a->is_pretraining && have_other_vocabularies(comparison))
		log_warning("the runs have different vocabularies (%d and %d entries): words are cut into different numbers "
			    "of tokens, so losses and accuracies of masked words say nothing about which model is better",
			    a->vocab_count, b->vocab_count);
	else if (have_other_held_out_texts(comparison))
		log_warning("the runs were evaluated on different held-out texts, each on part of its own corpus: their "
			    "losses say nothing about which model is better; `bertc evaluate` measures both on one text");
	else if (train_other_tasks(comparison))
		log_warning("the runs train different tasks (%s and %s): their losses and measures are not comparable",
			    *a->task ? a->task : "not recorded", *b->task ? b->task : "not recorded");
	else if (have_other_sets(comparison))
		log_warning("the runs have no evaluation set of the same name (%s and %s): if these hold other examples, their "
			    "held-out figures say nothing about which model is better",
			    *set_of(a) ? set_of(a) : "one without a name", *set_of(b) ? set_of(b) : "one without a name");
}

static double place_of(const struct comparison *comparison, int64_t point)
{
	double place = comparison->end * (double)point / (double)comparison->points;
	return comparison->by == HISTORY_STEP ? round(place) : place;
}

static void print_number(double value, enum measure_unit unit)
{
	if (isnan(value))
		printf("  %9s", "-");
	else if (unit == UNIT_SHARE)
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

/* The loss and one measure of both runs, side by side. */
#define PRINTED 2
static void print_table(const struct comparison *comparison, bool held_out)
{
	int columns = comparison->column_count < PRINTED ? comparison->column_count : PRINTED;
	printf("\n%s\n  %12s", held_out ? "held out" : "training", comparison->axis.label);
	for (int c = 0; c < columns; c++) {
		char heading[64];
		snprintf(heading, sizeof heading, "%.30s: A        B", comparison->columns[c].heading);
		printf("  %20s  %9s", heading, "B - A");
	}
	printf("\n");
	for (int64_t i = 1; i <= comparison->points; i++) {
		double place = place_of(comparison, i), value[PRINTED][2];
		for (int c = 0; c < columns; c++)
			for (int r = 0; r < 2; r++) {
				const struct run *run = r ? &comparison->b : &comparison->a;
				const char *name = comparison->columns[c].name;
				value[c][r] = held_out ? held_out_at(run, comparison->by, place, name)
						       : training_at(run, comparison->by, place, comparison->reach, name);
			}
		if (isnan(value[0][0]) && isnan(value[0][1]))
			continue;
		print_place(comparison, place);
		for (int c = 0; c < columns; c++) {
			print_number(value[c][0], comparison->columns[c].unit);
			print_number(value[c][1], comparison->columns[c].unit);
			print_number(value[c][1] - value[c][0], comparison->columns[c].unit);
		}
		printf("\n");
	}
}

static void print_reach(const struct comparison *comparison, const struct run *fast, char fast_letter, const struct run *slow,
			char slow_letter)
{
	const struct history *history = &slow->history;
	const char *name = comparison->columns[0].name;
	int64_t last = history_last_evaluation(history, slow->set);
	char number[CHART_NUMBER_BYTES];
	if (last < 0 || !is_comparable(comparison))
		return;
	double loss = history_value(&history->evaluations, last, history_column(history, name));
	double place = reaches(fast, comparison->by, name, loss),
	       own = history_value(&history->evaluations, last, comparison->by);
	if (isfinite(place) && place < own)
		printf("%c reaches %c's last held-out loss, %.4f, after %s %s: %.2f of what %c needed\n", fast_letter,
		       slow_letter, loss,
		       comparison->by == HISTORY_STEP ? format_count(number, (int64_t)place)
						      : chart_number(number, place, comparison->axis.number, 0),
		       comparison->by == HISTORY_SECONDS ? "of training" : comparison->axis.label, place / own, slow_letter);
}

static void print_person(const struct comparison *comparison)
{
	printf("A  %s\nB  %s\n", TEXT_SHOWN(comparison->a.path), TEXT_SHOWN(comparison->b.path));
	if (comparison->other_kind) {
		char a[96], b[96];
		printf("A is %s, B is %s: they are judged by different figures, which cannot be compared\n",
		       kind_text(a, &comparison->a), kind_text(b, &comparison->b));
		compare_print_settings(&comparison->settings);
		return;
	}
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
	for (int c = 0; c < comparison->column_count; c++) {
		char held_out[HISTORY_NAME + 8];
		const char *name = comparison->columns[c].name;
		json_put_double(writer, name, training_at(run, comparison->by, place, comparison->reach, name));
		snprintf(held_out, sizeof held_out, "eval_%.47s", name);
		json_put_double(writer, held_out, held_out_at(run, comparison->by, place, name));
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
	json_put_bool(&writer, "comparable", is_comparable(comparison));
	json_put_string(&writer, "by", comparison->axis.label);
	json_open(&writer, "points", '[');
	for (int64_t i = 1; i <= comparison->points && !comparison->other_kind; i++) {
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
	buffer_char(&text, '\n');
	return command_print(&text);
}

struct pair {
	struct chart chart;
	struct curve training[2], held_out[2];
	char labels[4][80];
};

/* Draws one quantity of both runs, against tokens, time, and steps. */
static void draw_pair(const struct comparison *comparison, const struct chart *base, const char *name, bool evaluated,
		      struct buffer *out)
{
	static const struct {
		const char *name;
		int by;
		struct chart_axis axis;
	} axes[] = {
		{"tokens", HISTORY_TOKENS, {.label = "tokens trained on", .number = CHART_COUNT}},
		{"time", HISTORY_SECONDS, {.label = "time spent training", .number = CHART_DURATION}},
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
			curve_of_steps(&run->history, axes[axis].by, history_column(&run->history, name), curve);
			chart_add_series(chart, (struct chart_series){.label = pair->labels[r],
								      .color = 1 + r,
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
			curve_of_evaluations(&run->history, run->set, axes[axis].by, history_column(&run->history, name), curve);
			chart_add_series(chart, (struct chart_series){.label = pair->labels[2 + r],
								      .color = 1 + r,
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
		const char *title, *name;
		struct chart_axis axis;
	} charts[] = {
		{"Learning rate", "learning_rate", {.label = "per step", .number = CHART_POWER, .from_zero = true}},
		{"Norm of the gradient, before clipping",
		 "grad_norm",
		 {.label = "logarithmic", .number = CHART_POWER, .logarithmic = true}},
		{"Speed", "tokens_per_second", {.label = "tokens per second", .number = CHART_COUNT, .from_zero = true}},
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
	for (int c = 0; c < comparison->column_count; c++) {
		const struct report_column *column = &comparison->columns[c];
		struct chart chart = {.title = column->title,
				      .y = {.label = column->axis, .number = report_axis_number(column->unit)}};
		draw_pair(comparison, &chart, column->name, true, &html);
	}
	for (size_t i = 0; i < sizeof charts / sizeof *charts; i++) {
		struct chart chart = {.title = charts[i].title, .y = charts[i].axis};
		draw_pair(comparison, &chart, charts[i].name, false, &html);
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
	if (settings->by == BY_TOKENS) {
		comparison.by = HISTORY_TOKENS;
		comparison.axis = (struct chart_axis){.label = "tokens", .number = CHART_COUNT};
	} else if (settings->by == BY_TIME) {
		comparison.by = HISTORY_SECONDS;
		comparison.axis = (struct chart_axis){.label = "time", .number = CHART_DURATION};
	}
	TRY_GOTO(open_run(&comparison.a, a, settings->out), done);
	TRY_GOTO(open_run(&comparison.b, b, settings->out), done);
	choose_sets(&comparison.a, &comparison.b);
	if (comparison.a.settings_path[0] && comparison.b.settings_path[0])
		TRY_GOTO(compare_json_files(comparison.a.settings_path, comparison.b.settings_path, NULL, true,
					    &comparison.settings),
			 done);
	comparison.end = fmax(last_of(&comparison.a, comparison.by), last_of(&comparison.b, comparison.by));
	if (comparison.by == HISTORY_STEP && comparison.end >= 1 && comparison.end < (double)comparison.points)
		comparison.points = (int64_t)comparison.end; /* each step once */
	comparison.reach = comparison.end / (double)comparison.points / 2;
	choose_columns(&comparison);
	comparison.other_kind = comparison.a.is_pretraining != comparison.b.is_pretraining;
	warn_of_differences(&comparison);
	comparison.first = first_difference(&comparison.a.history, &comparison.b.history);
	*out_same = comparison.first < 0 && comparison.settings.count == 0;
	if (settings->json)
		TRY_GOTO(print_json(&comparison), done);
	else
		print_person(&comparison);
	if (settings->out && comparison.other_kind) {
		log_warning("--out: no page is written, since the runs have no curves in common");
	} else if (settings->out) {
		TRY_GOTO(write_page(&comparison, settings->out), done);
		log_note("both curves: %s", settings->out);
	}
done:
	history_release(&comparison.a.history);
	history_release(&comparison.b.history);
	free(comparison.settings.items);
	return status;
}
