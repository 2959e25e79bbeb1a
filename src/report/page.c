#include "report/page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

static void element(struct buffer *out, const char *begin, const char *text, const char *end)
{
	buffer_text(out, begin);
	html_text(out, text);
	buffer_text(out, end);
}

/* Text with the names of options kept in one piece. */
static void put_advice(struct buffer *out, const char *text)
{
	const char *option;
	while ((option = strstr(text, "--"))) {
		size_t size = 2 + strspn(option + 2, "abcdefghijklmnopqrstuvwxyz_0123456789");
		char before[512], name[64];
		snprintf(before, sizeof(before), "%.*s", (int)(option - text), text);
		snprintf(name, sizeof(name), "%.*s", (int)size, option);
		html_text(out, before);
		element(out, "<code class=\"w\">", name, "</code>");
		text = option + size;
	}
	html_text(out, text);
}

static void tile(struct buffer *out, const char *value, const char *what)
{
	element(out, "<div class=\"tile\"><b>", value, "</b><span>");
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

static void put_verdict(const struct report_page *page, struct buffer *out)
{
	static const char *const classes[] = {"plain", "good", "warn", "bad"};
	static const char *const signs[] = {"\xE2\x80\xA6", "\xE2\x9C\x93", "!", "\xE2\x9C\x95"};
	const struct report *report = page->report;
	struct verdict verdict;
	bool finished = !page->running && page->status == OK;
	diagnosis_verdict(&report->diagnosis, finished, &verdict);
	bool failed = !page->running && page->status != OK && page->status != STOPPED;
	if (failed && verdict.colour != VERDICT_BAD) {
		verdict.colour = VERDICT_BAD;
		snprintf(verdict.headline, sizeof(verdict.headline), "This run ended with an error");
	}
	buffer_format(out, "<section class=\"verdict %s\">\n<h2><span class=\"sign\" aria-hidden=\"true\">%s</span>",
		      classes[verdict.colour], signs[verdict.colour]);
	html_text(out, verdict.headline);
	if (finished && verdict.finding >= 0)
		buffer_text(out, " (it has finished)");
	if (!page->running && page->status == STOPPED)
		buffer_text(out, " (stopped on request; the same command goes on)");
	buffer_text(out, "</h2>\n");
	if (failed && page->reason)
		element(out, "<p>", page->reason, "</p>\n");
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
	} else if (*verdict.text) {
		element(out, "<p>", verdict.text, "</p>\n");
	}
	const struct history_row *held_out = history_last_evaluation(&report->history, history_main_set(&report->history));
	if (held_out && isfinite(held_out->value[HISTORY_MLM_LOSS])) {
		buffer_format(out, "<p>On text it has not seen: loss %.3f (perplexity %.4g), %.1f %% of masked words right",
			      held_out->value[HISTORY_MLM_LOSS], exp(held_out->value[HISTORY_MLM_LOSS]),
			      100 * held_out->value[HISTORY_MLM_ACCURACY]);
		if (isfinite(report->facts.frequent_share) && report->facts.frequent_token) {
			buffer_text(out, "; always saying \xE2\x80\x9C");
			html_text(out, report->facts.frequent_token);
			buffer_format(out, "\xE2\x80\x9D would give %.1f %%", 100 * report->facts.frequent_share);
		}
		buffer_text(out, ".</p>\n");
	}
	buffer_text(out, "</section>\n");
}

static void put_tiles(const struct report_page *page, struct buffer *out)
{
	const struct report *report = page->report;
	const struct history *history = &report->history;
	const struct report_progress *state = page->state;
	const struct history_row *held_out = history_last_evaluation(history, history_main_set(history));
	const struct history_row *row = history->count ? &history->rows[history->count - 1] : NULL;
	char number[CHART_NUMBER_BYTES], text[160];
	buffer_text(out, "<div class=\"tiles\">\n");
	const struct history_row *shown = held_out ? held_out : row;
	if (shown && isfinite(shown->value[HISTORY_MLM_LOSS])) {
		snprintf(number, sizeof(number), "%.3f", shown->value[HISTORY_MLM_LOSS]);
		tile(out, number, held_out ? "loss of masked words, held out" : "loss of masked words, training");
		snprintf(number, sizeof(number), "%.1f %%", 100 * shown->value[HISTORY_MLM_ACCURACY]);
		tile(out, number, "of masked words right");
		if (report->facts.next_sentence && isfinite(shown->value[HISTORY_NSP_ACCURACY])) {
			snprintf(number, sizeof(number), "%.1f %%", 100 * shown->value[HISTORY_NSP_ACCURACY]);
			tile(out, number, "of next sentences right");
		}
	}
	char step[FORMAT_BYTES], steps[FORMAT_BYTES];
	snprintf(text, sizeof(text), "tokens in %s of %s steps", format_count(step, state->step),
		 format_count(steps, report->total_steps));
	tile(out, chart_number(number, (double)state->tokens, CHART_COUNT, 0), text);
	if (report->facts.text_tokens > 0) {
		snprintf(number, sizeof(number), "%.*f", (double)state->tokens < 10 * report->facts.text_tokens ? 1 : 0,
			 (double)state->tokens / report->facts.text_tokens);
		tile(out, number, "times through the text");
	}
	if (row && isfinite(row->value[HISTORY_TOKENS_PER_SECOND]))
		tile(out, chart_number(number, row->value[HISTORY_TOKENS_PER_SECOND], CHART_COUNT, 0), "tokens a second");
	bool unfinished = state->step < report->total_steps && state->step > 0;
	if (page->running && unfinished) {
		double left = state->seconds / (double)state->step * (double)(report->total_steps - state->step);
		snprintf(text, sizeof(text), "left, after %s", chart_number(number, state->seconds, CHART_DURATION, 0));
		tile(out, chart_number(number, left, CHART_DURATION, 0), text);
	} else {
		tile(out, chart_number(number, state->seconds, CHART_DURATION, 0), "of training");
	}
	if (state->skipped_steps > 0) {
		snprintf(number, sizeof(number), "%" PRId64, state->skipped_steps);
		tile(out, number, "updates left out, gradient not finite");
	}
	buffer_text(out, "</div>\n");
}

struct spelling {
	struct buffer *out;
	const struct vocab *vocab;
	const struct sample_sentence *sentence;
	int32_t blank;
};

/* A token of a sentence; a blank shows the word that was masked. */
static void put_token(void *context, const char *text, int32_t id, bool glued)
{
	struct spelling *spelling = context;
	if (!glued)
		buffer_char(spelling->out, ' ');
	if (id != spelling->vocab->mask) {
		html_text(spelling->out, text);
		return;
	}
	element(spelling->out, "<span class=\"blank\">",
		predictor_token(spelling->vocab, spelling->sentence->answers[spelling->blank++]), "</span>");
}

static void put_guesses(const struct vocab *vocab, const struct sample_blank *blank, int32_t answer, struct buffer *out)
{
	for (int i = 0; i < SAMPLE_SHOWN && i < vocab->count; i++) {
		buffer_text(out, "<span class=\"w\">");
		element(out, blank->ids[i] == answer ? "<span class=\"right\">" : "<span>", predictor_token(vocab, blank->ids[i]),
			"</span>");
		double percent = 100 * (double)blank->probabilities[i];
		buffer_format(out, " <span class=\"p\">%.*f %%</span></span> ", percent < 9.5 ? 1 : 0, percent);
	}
	if (blank->place == 0)
		buffer_format(out, "<small class=\"w\">right word: beyond %dth</small>", SAMPLE_RANKS);
	else if (blank->place > SAMPLE_SHOWN)
		buffer_format(out, "<small class=\"w\">right word: %dth</small>", blank->place);
}

/* At most eight evaluations, more of the early ones: there things change fastest. */
#define SAMPLES_SHOWN 8
static int choose_evaluations(int64_t count, int64_t chosen[SAMPLES_SHOWN])
{
	int shown = 0;
	for (int i = 0; i < SAMPLES_SHOWN; i++) {
		double share = (double)i / (SAMPLES_SHOWN - 1);
		int64_t at = (int64_t)llround(exp(share * log((double)count))) - 1;
		if (count <= SAMPLES_SHOWN)
			at = i;
		if (at < count && (shown == 0 || at > chosen[shown - 1]))
			chosen[shown++] = at;
	}
	return shown;
}

static void put_samples(const struct samples *samples, struct buffer *out)
{
	int64_t chosen[SAMPLES_SHOWN];
	if (!samples || samples->count == 0 || samples->evaluation_count == 0)
		return;
	const struct vocab *vocab = samples->predictor.vocab;
	int shown = choose_evaluations(samples->evaluation_count, chosen);
	buffer_text(out,
		    "<h2>What it would put into the blanks</h2>\n<p class=\"note\">Sentences from text it is not trained on, "
		    "always the same ones. The underlined words were masked; below, its five best guesses as it "
		    "learned.</p>\n");
	for (int s = 0; s < samples->count; s++) {
		const struct sample_sentence *sentence = &samples->sentences[s];
		struct spelling spelling = {.out = out, .vocab = vocab, .sentence = sentence};
		buffer_text(out, "<div class=\"guess\"><p>");
		samples_spell(vocab, sentence->ids, sentence->count, put_token, &spelling);
		buffer_text(out, "</p>\n<div style=\"overflow-x:auto\"><table><tr><th class=\"n\">step</th>");
		for (int32_t b = 0; b < sentence->blanks; b++)
			element(out, "<th>for \xE2\x80\x9C", predictor_token(vocab, sentence->answers[b]), "\xE2\x80\x9D</th>");
		buffer_text(out, "</tr>\n");
		for (int i = 0; i < shown; i++) {
			const struct sample_evaluation *evaluation = &samples->evaluations[chosen[i]];
			char number[FORMAT_BYTES];
			buffer_format(out, "<tr><td class=\"n\">%s</td>", format_count(number, evaluation->step));
			for (int32_t b = 0; b < sentence->blanks; b++) {
				buffer_text(out, "<td>");
				put_guesses(vocab, &evaluation->blanks[s][b], sentence->answers[b], out);
				buffer_text(out, "</td>");
			}
			buffer_text(out, "</tr>\n");
		}
		buffer_text(out, "</table></div></div>\n");
	}
}

#define EVENTS_SHOWN 60
static void put_events(const struct history *history, struct buffer *out)
{
	if (history->event_count == 0)
		return;
	int64_t first = history->event_count > EVENTS_SHOWN ? history->event_count - EVENTS_SHOWN : 0;
	buffer_text(out,
		    "<h2>What happened</h2>\n<div class=\"scroll\"><table><tr><th class=\"n\">step</th><th>what</th></tr>\n");
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

static void put_cell(struct buffer *out, double value, int digits, const char *unit)
{
	if (isfinite(value))
		buffer_format(out, "<td class=\"n\">%.*f%s</td>", digits, value, unit);
	else
		buffer_text(out, "<td class=\"n\">\xE2\x80\x93</td>");
}

#define EVALUATIONS_SHOWN 300
static void put_evaluations(const struct report_page *page, struct buffer *out)
{
	const struct history *history = &page->report->history;
	if (history->evaluation_count == 0)
		return;
	bool pairs = page->report->facts.next_sentence;
	int64_t every = history->evaluation_count / EVALUATIONS_SHOWN + 1;
	buffer_format(
		out,
		"<details><summary>All evaluations in figures</summary>\n<div class=\"scroll\"><table><tr><th "
		"class=\"n\">step</th>%s"
		"<th class=\"n\">tokens</th><th class=\"n\">time</th><th class=\"n\">MLM loss</th><th class=\"n\">perplexity</th>"
		"<th class=\"n\">MLM accuracy</th>%s</tr>\n",
		history->set_count > 1 ? "<th>set</th>" : "",
		pairs ? "<th class=\"n\">NSP loss</th><th class=\"n\">NSP accuracy</th>" : "");
	for (int64_t i = 0; i < history->evaluation_count; i++) {
		const struct history_evaluation *evaluation = &history->evaluations[i];
		const double *value = evaluation->row.value;
		char step[FORMAT_BYTES], tokens[CHART_NUMBER_BYTES], time[FORMAT_BYTES];
		if ((history->evaluation_count - 1 - i) % every != 0)
			continue;
		buffer_format(out, "<tr><td class=\"n\">%s</td>", format_count(step, (int64_t)value[HISTORY_STEP]));
		if (history->set_count > 1)
			element(out, "<td>", *history->sets[evaluation->set] ? history->sets[evaluation->set] : "held out",
				"</td>");
		buffer_format(out, "<td class=\"n\">%s</td><td class=\"n\">%s</td>",
			      chart_number(tokens, value[HISTORY_TOKENS], CHART_COUNT, 0),
			      format_duration(time, value[HISTORY_SECONDS]));
		put_cell(out, value[HISTORY_MLM_LOSS], 3, "");
		put_cell(out, exp(value[HISTORY_MLM_LOSS]), 1, "");
		put_cell(out, 100 * value[HISTORY_MLM_ACCURACY], 2, " %");
		if (pairs) {
			put_cell(out, value[HISTORY_NSP_LOSS], 3, "");
			put_cell(out, 100 * value[HISTORY_NSP_ACCURACY], 2, " %");
		}
		buffer_text(out, "</tr>\n");
	}
	buffer_text(out, "</table></div></details>\n");
}

static void put_settings(const struct report *report, struct buffer *out)
{
	static const char *const origins[] = {"default", "chosen for this model and text", "from the run so far", "config file",
					      "command line"};
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
		element(out, "<tr><td>", row->name, "</td><td>");
		html_text(out, value);
		element(out, "</td><td>", origins[options_origin(options, row->name)], "</td></tr>\n");
	}
	buffer_release(&scratch);
	buffer_text(out, "</table></div></details>\n");
}

static void put_words(const struct report *report, struct buffer *out)
{
	buffer_text(out,
		    "<details><summary>How to read this</summary>\n<dl>"
		    "<dt>loss of masked words</dt><dd>Mean of \xE2\x88\x92ln(probability given to the right word), in nats. "
		    "Its exponential is the perplexity.</dd>"
		    "<dt>guessing</dt><dd>The loss of giving every entry of the vocabulary the same probability, where a run "
		    "begins; for next sentences that of a thrown coin.</dd>"
		    "<dt>frequencies</dt><dd>The loss (the unigram entropy) and the accuracy of knowing nothing but how frequent "
		    "each token is in the training text. A run reaches them soon, and is learning language once it is "
		    "past them.</dd>"
		    "<dt>training, held out</dt><dd>Training figures are of the batch of a step, with dropout; held-out ones are "
		    "of documents kept out of training, without dropout, always with the same masks.</dd>");
	if (report->gemm_rate > 0)
		buffer_format(
			out,
			"<dt>share of matrix products</dt><dd>Useful arithmetic of training, divided by what this machine's "
			"matrix products alone reach (%.2f TFLOP/s, measured when the run was started).</dd>",
			report->gemm_rate * 1e-12);
	buffer_text(out, "</dl></details>\n");
}

static void put_head(const struct report_page *page, const char *name, struct buffer *out)
{
	const struct report *report = page->report;
	const struct report_facts *facts = &report->facts;
	char number[CHART_NUMBER_BYTES];
	element(out, "<h1>", name, "</h1>\n<p class=\"sub\">");
	if (facts->layers > 0)
		buffer_format(out, "BERT of %d layers, %d wide, ", facts->layers, facts->hidden);
	if (facts->parameters > 0)
		buffer_format(out, "%s parameters, ", chart_number(number, (double)facts->parameters, CHART_COUNT, 0));
	if (facts->vocab_size > 0)
		buffer_format(out, "vocabulary of %s, ", format_count(number, facts->vocab_size));
	if (facts->text_tokens > 0)
		buffer_format(out, "text of %s tokens. ", chart_number(number, facts->text_tokens, CHART_COUNT, 0));
	if (facts->device) {
		html_text(out, facts->device);
		buffer_text(out, ". ");
	}
	element(out, page->running ? "Written while it runs, " : "Written at the end, ", page->written, ".</p>\n");
}

void report_page_html(const struct report_page *page, struct buffer *out)
{
	const struct report *report = page->report;
	const char *name = report->folder ? report->folder : "run", *slash = strrchr(name, '/');
	char title[256];
	name = slash && slash[1] ? slash + 1 : name;
	snprintf(title, sizeof(title), "%.200s \xE2\x80\x93 bertc", name);
	html_begin(out, title);
	put_head(page, name, out);
	put_verdict(page, out);
	put_tiles(page, out);
	buffer_text(out,
		    "<h2>Curves</h2>\n"
		    "<input class=\"pick\" type=\"radio\" name=\"axis\" id=\"by-tokens\" checked>"
		    "<input class=\"pick\" type=\"radio\" name=\"axis\" id=\"by-time\">\n"
		    "<p class=\"switch\">against <label for=\"by-tokens\">tokens</label><label for=\"by-time\">time</label></p>\n"
		    "<div class=\"grid\">\n");
	report_charts(report, page->state, out);
	buffer_text(out, "</div>\n");
	put_events(&report->history, out);
	put_samples(report->samples, out);
	buffer_text(out, "<h2>More</h2>\n");
	put_evaluations(page, out);
	put_settings(report, out);
	put_words(report, out);
	buffer_format(out,
		      "<footer>bertc %s. The figures are in metrics.jsonl beside this file, and in TensorBoard's event "
		      "files.</footer>\n",
		      VERSION);
	html_end(out);
}
