/* Puts report.html together from charts, verdict, tables, and preview. */
#include "report/page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "report/html.h"

/* Appends text in which option names are not broken across lines. */
static void put_advice(struct buffer *out, const char *text)
{
	const char *option;
	while ((option = strstr(text, "--"))) {
		size_t size = 2 + strspn(option + 2, "abcdefghijklmnopqrstuvwxyz_0123456789");
		char before[512], name[64];
		snprintf(before, sizeof before, "%.*s", (int)(option - text), text);
		snprintf(name, sizeof name, "%.*s", (int)size, option);
		html_text(out, before);
		html_element(out, "<code class=\"w\">", name, "</code>");
		text = option + size;
	}
	html_text(out, text);
}

static void tile(struct buffer *out, const char *value, const char *what)
{
	html_element(out, "<div class=\"tile\"><b>", value, "</b><span>");
	html_text(out, what);
	buffer_text(out, "</span></div>\n");
}

static const struct history_event *last_finding(const struct history *history, const char *kind)
{
	for (int64_t i = history->event_count; i-- > 0;)
		if (strcmp(history->events[i].kind, kind) == 0 && !history->events[i].over)
			return &history->events[i];
	return NULL;
}

void report_judge(const struct report *report, bool finished, struct verdict *out)
{
	report_verdict(&(struct verdict_facts){.diagnosis = &report->diagnosis,
					       .history = &report->history,
					       .task = &report->task,
					       .epoch_tokens = report->facts.epoch_tokens,
					       .finished = finished},
		       out);
}

static void put_verdict(const struct report_page *page, struct buffer *out)
{
	static const char *const classes[] = {"plain", "good", "warn", "bad"};
	static const char *const signs[] = {"\xE2\x80\xA6", "\xE2\x9C\x93", "!", "\xE2\x9C\x95"};
	const struct report *report = page->report;
	struct verdict verdict;
	bool finished = !page->running && page->status == OK;
	report_judge(report, finished, &verdict);
	bool failed = !page->running && page->status != OK && page->status != STOPPED;
	if (failed && verdict.color != VERDICT_BAD) {
		verdict.color = VERDICT_BAD;
		snprintf(verdict.headline, sizeof verdict.headline, "This run ended with an error");
	}
	buffer_format(out, "<section class=\"verdict %s\">\n<h2><span class=\"sign\" aria-hidden=\"true\">%s</span>",
		      classes[verdict.color], signs[verdict.color]);
	html_text(out, verdict.headline);
	if (finished && verdict.finding >= 0)
		buffer_text(out, " (the run has finished)");
	if (!page->running && page->status == STOPPED)
		buffer_text(out, " (stopped on request; run the same command again to resume)");
	buffer_text(out, "</h2>\n");
	if (failed && page->reason)
		html_element(out, "<p>", page->reason, "</p>\n");
	const struct history_event *event =
		verdict.finding >= 0 ? last_finding(&report->history, finding_names[verdict.finding]) : NULL;
	if (event) {
		buffer_format(out, "<p>Step %" PRId64 ": ", event->step);
		html_text(out, event->text);
		buffer_text(out, "</p>\n");
		if (*event->advice) {
			buffer_text(out, "<p><b>What to do:</b> ");
			put_advice(out, event->advice);
			buffer_text(out, "</p>\n");
		}
	}
	const struct history_event *end = finished ? history_early_end(&report->history, page->state->step) : NULL;
	if (end)
		html_element(out, "<p>", end->text, "</p>\n");
	const char *const sentences[] = {verdict.text, verdict.side, verdict.stage, verdict.more};
	for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
		if (*sentences[i])
			html_element(out, "<p>", sentences[i], "</p>\n");
	buffer_text(out, "</section>\n");
}

/* The figures that the task wants at the top of the page: held-out values after an evaluation, otherwise training values. */
static void put_measures(const struct report *report, struct buffer *out)
{
	const struct history *history = &report->history;
	const struct report_task *task = &report->task;
	int64_t row = history_last_evaluation(history, history_main_set(history)), last = history->steps.count - 1;
	for (int c = 0; c < task->column_count; c++) {
		const struct report_column *column = &task->columns[c];
		int index = history_column(history, column->name);
		double held_out = row >= 0 ? history_value(&history->evaluations, row, index) : NAN;
		double value = isfinite(held_out) ? held_out : last >= 0 ? history_value(&history->steps, last, index) : NAN;
		char number[REPORT_NUMBER_BYTES], what[160];
		if (!column->tile || !isfinite(value))
			continue;
		const char *set = history->sets[history_main_set(history)];
		snprintf(what, sizeof what, "%s, %s", column->tile,
			 !isfinite(held_out) ? "training"
			 : *set              ? set
					     : task->words.held_out);
		tile(out, report_number(number, value, column->unit), what);
	}
}

static void put_tiles(const struct report_page *page, struct buffer *out)
{
	const struct report *report = page->report;
	const struct history_table *steps = &report->history.steps;
	const struct report_progress *state = page->state;
	char number[CHART_NUMBER_BYTES], text[160];
	buffer_text(out, "<div class=\"tiles\">\n");
	put_measures(report, out);
	char step[FORMAT_BYTES], total[FORMAT_BYTES];
	snprintf(text, sizeof text, "tokens in %s of %s steps", format_count(step, state->step),
		 format_count(total, report->total_steps));
	tile(out, chart_number(number, (double)state->tokens, CHART_COUNT, 0), text);
	if (report->facts.epoch_tokens > 0) {
		double times = (double)state->tokens / report->facts.epoch_tokens;
		snprintf(number, sizeof number, "%.*f", times < 10 ? 1 : 0, times);
		snprintf(text, sizeof text, "passes over the %s", report->task.words.data);
		tile(out, number, text);
	}
	double rate = steps->count ? history_value(steps, steps->count - 1, HISTORY_TOKENS_PER_SECOND) : NAN;
	if (isfinite(rate))
		tile(out, chart_number(number, rate, CHART_COUNT, 0), "tokens per second");
	bool unfinished = state->step < report->total_steps && state->step > 0;
	if (page->running && unfinished) {
		double left = state->seconds / (double)state->step * (double)(report->total_steps - state->step);
		snprintf(text, sizeof text, "left, after %s", chart_number(number, state->seconds, CHART_DURATION, 0));
		tile(out, chart_number(number, left, CHART_DURATION, 0), text);
	} else {
		tile(out, chart_number(number, state->seconds, CHART_DURATION, 0), "of training");
	}
	if (state->skipped_steps > 0) {
		snprintf(number, sizeof number, "%" PRId64, state->skipped_steps);
		tile(out, number, "updates skipped, gradient not finite");
	}
	buffer_text(out, "</div>\n");
}

#define EVENTS_SHOWN 60
static void put_events(const struct history *history, struct buffer *out)
{
	if (history->event_count == 0)
		return;
	int64_t first = history->event_count > EVENTS_SHOWN ? history->event_count - EVENTS_SHOWN : 0;
	buffer_text(out, "<h2>What happened</h2>\n<div class=\"scroll\"><table class=\"events\"><tr><th "
			 "class=\"n\">step</th><th>what</th></tr>\n");
	for (int64_t i = first; i < history->event_count; i++) {
		const struct history_event *event = &history->events[i];
		char number[FORMAT_BYTES];
		buffer_format(out, "<tr><td class=\"n\">%s</td><td>", format_count(number, event->step));
		html_text(out, event->text);
		if (*event->advice) {
			buffer_text(out, "<br><small>");
			put_advice(out, event->advice);
			buffer_text(out, "</small>");
		}
		buffer_text(out, "</td></tr>\n");
	}
	buffer_text(out, "</table></div>\n");
}

#define EVALUATIONS_SHOWN 300
static void put_evaluations(const struct report *report, struct buffer *out)
{
	const struct history *history = &report->history;
	const struct history_table *table = &history->evaluations;
	const struct report_task *task = &report->task;
	if (table->count == 0)
		return;
	int64_t every = table->count / EVALUATIONS_SHOWN + 1;
	buffer_format(out,
		      "<details><summary>All evaluations in figures</summary>\n<div class=\"scroll\"><table><tr><th "
		      "class=\"n\">step</th>%s<th class=\"n\">tokens</th><th class=\"n\">time</th>",
		      history->set_count > 1 ? "<th>set</th>" : "");
	for (int c = 0; c < task->column_count; c++)
		if (history_has(table, history_column(history, task->columns[c].name)))
			html_element(out, "<th class=\"n\">", task->columns[c].heading, "</th>");
	buffer_text(out, "</tr>\n");
	for (int64_t i = 0; i < table->count; i++) {
		const char *set = history->sets[history->evaluation_sets[i]];
		char number[REPORT_NUMBER_BYTES], tokens[CHART_NUMBER_BYTES], time[FORMAT_BYTES];
		if ((table->count - 1 - i) / history->set_count % every != 0) /* all sets of an evaluation, or none */
			continue;
		buffer_format(out, "<tr><td class=\"n\">%s</td>",
			      format_count(time, (int64_t)history_value(table, i, HISTORY_STEP)));
		if (history->set_count > 1)
			html_element(out, "<td>", *set ? set : task->words.held_out, "</td>");
		buffer_format(out, "<td class=\"n\">%s</td><td class=\"n\">%s</td>",
			      chart_number(tokens, history_value(table, i, HISTORY_TOKENS), CHART_COUNT, 0),
			      format_duration(time, history_value(table, i, HISTORY_SECONDS)));
		for (int c = 0; c < task->column_count; c++) {
			int column = history_column(history, task->columns[c].name);
			if (history_has(table, column))
				html_element(out, "<td class=\"n\">",
					     report_number(number, history_value(table, i, column), task->columns[c].unit),
					     "</td>");
		}
		buffer_text(out, "</tr>\n");
	}
	buffer_text(out, "</table></div></details>\n");
}

static void put_settings(const struct report *report, struct buffer *out)
{
	const struct options *options = report->options;
	if (!options)
		return;
	buffer_text(out, "<details><summary>Settings</summary>\n<div class=\"scroll\"><table><tr><th>setting</th><th>value</th>"
			 "<th>from</th></tr>\n");
	struct buffer scratch = {0};
	for (const struct option *row = options->table; row->name || row->help; row++) {
		if (!row->name)
			continue;
		const char *value = options_value(options, row->name, &scratch);
		if (!*value)
			continue;
		html_element(out, "<tr><td>", row->name, "</td><td>");
		html_text(out, value);
		html_element(out, "</td><td>", option_origins[options_origin(options, row->name)], "</td></tr>\n");
	}
	buffer_release(&scratch);
	buffer_text(out, "</table></div></details>\n");
}

static void put_words(const struct report *report, struct buffer *out)
{
	const struct report_task *task = &report->task;
	bool guessing = false, prior = false;
	buffer_text(out, "<details><summary>How to read this</summary>\n<dl>");
	for (int c = 0; c < task->column_count; c++) {
		const struct report_column *column = &task->columns[c];
		for (int l = 0; l < REPORT_LEVELS; l++) {
			guessing |= isfinite(column->levels[l].value) && strcmp(column->levels[l].label, "guessing") == 0;
			prior |= isfinite(column->levels[l].value) && strcmp(column->levels[l].label, "guessing") != 0;
		}
		if (!column->meaning)
			continue;
		html_element(out, "<dt>", column->heading, "</dt><dd>");
		html_element(out, "", column->meaning, "</dd>");
	}
	if (guessing)
		buffer_text(out, "<dt>guessing</dt><dd>What giving every possible answer the same probability would reach.</dd>");
	if (prior) {
		buffer_text(out, "<dt>other dashed lines</dt><dd>What ");
		if (isfinite(task->prior_loss)) {
			buffer_text(out, "a model would reach that knows only ");
			html_text(out, task->words.prior);
		} else {
			buffer_text(out, "is reached without a model, as each line says");
		}
		buffer_text(out, ". A run has begun to learn its task once it is past them.</dd>");
	}
	buffer_text(out, "<dt>training, ");
	html_text(out, task->words.held_out);
	buffer_text(
		out,
		"</dt><dd>Training figures are those of each step's batch, with dropout. Evaluations use examples kept out of "
		"training, without dropout, and always the same ones.</dd>");
	if (report->gemm_rate > 0)
		buffer_format(out,
			      "<dt>share of peak matmul speed</dt><dd>Useful arithmetic of training, divided by the speed this "
			      "machine's matrix products reach by themselves (%.2f TFLOP/s, measured when the run was "
			      "started).</dd>",
			      report->gemm_rate * 1e-12);
	buffer_text(out, "</dl></details>\n");
}

static void put_head(const struct report_page *page, const char *name, struct buffer *out)
{
	const struct report *report = page->report;
	const struct report_facts *facts = &report->facts;
	char number[CHART_NUMBER_BYTES];
	html_element(out, "<h1>", name, "</h1>\n<p class=\"sub\">");
	if (facts->layers > 0)
		buffer_format(out, "Encoder of the form %s, %d layer%s of width %d, ", facts->form, facts->layers,
			      facts->layers == 1 ? "" : "s", facts->hidden);
	if (facts->parameters > 0)
		buffer_format(out, "%s parameters, ", chart_number(number, (double)facts->parameters, CHART_COUNT, 0));
	if (facts->vocab_size > 0)
		buffer_format(out, "vocabulary of %s, ", format_count(number, facts->vocab_size));
	if (facts->epoch_tokens > 0) {
		html_text(out, report->task.words.data);
		buffer_format(out, " of %s tokens. ", chart_number(number, facts->epoch_tokens, CHART_COUNT, 0));
	}
	if (facts->device) {
		html_text(out, facts->device);
		buffer_text(out, ". ");
	}
	html_element(out, page->running ? "Written during the run, " : "Written at the end, ", page->written, ".</p>\n");
}

void report_page_html(const struct report_page *page, struct buffer *out)
{
	const struct report *report = page->report;
	const char *name = report->folder ? report->folder : "run", *slash = strrchr(name, '/');
	char title[256];
	name = slash && slash[1] ? slash + 1 : name;
	snprintf(title, sizeof title, "%.200s \xE2\x80\x93 bertc", name);
	html_begin(out, title);
	put_head(page, name, out);
	put_verdict(page, out);
	put_tiles(page, out);
	buffer_text(out, "<h2>Curves</h2>\n"
			 "<input class=\"pick\" type=\"radio\" name=\"axis\" id=\"by-tokens\" checked>"
			 "<input class=\"pick\" type=\"radio\" name=\"axis\" id=\"by-time\">"
			 "<input class=\"pick\" type=\"radio\" name=\"axis\" id=\"by-steps\">\n"
			 "<p class=\"switch\">against <label for=\"by-tokens\">tokens</label><label for=\"by-time\">time</label>"
			 "<label for=\"by-steps\">steps</label></p>\n"
			 "<div class=\"grid\">\n");
	report_charts(report, out);
	buffer_text(out, "</div>\n");
	put_events(&report->history, out);
	if (report->task.preview.write)
		report->task.preview.write(report->task.preview.context, out);
	buffer_text(out, "<h2>More</h2>\n");
	put_evaluations(report, out);
	put_settings(report, out);
	put_words(report, out);
	buffer_format(out,
		      "<footer>bertc %s. The figures are in metrics.jsonl beside this file, and in TensorBoard's event "
		      "files.</footer>\n",
		      VERSION);
	html_end(out);
}
