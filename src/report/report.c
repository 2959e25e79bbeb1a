/* Receives each step and evaluation, and writes them to the terminal, to metrics.jsonl, to event files, and to the page. */
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/json.h"
#include "base/owned_files.h"
#include "report/page.h"

/* Weight of the newest step in the bar's running means. */
#define SMOOTHING 0.05
/* The page is written after evaluations, and at logged steps once this many seconds have passed; but writing it may take no more
 * than a 200th of the time since it was last written. */
#define PAGE_SECONDS 15.0
#define PAGE_SHARE 200.0
/* After this many findings of a kind, the console shows only those whose number is a power of two. */
#define FINDINGS_SAID 3

/* Keeps the lines up to state->step, and those of evaluations (which have "eval_seconds") up to state->evaluated_step. An
 * incomplete last line, from a run killed while writing, is also dropped. */
static enum status metrics_cut(const char *path, const struct report_progress *state)
{
	if (!file_exists(path))
		return OK;
	struct buffer old = {0}, kept = {0};
	enum status status;
	TRY_GOTO(file_read(path, (size_t)1 << 32, &old), done);
	const char *line = buffer_string(&old), *end = line + old.size;
	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		if (!newline)
			break;
		size_t size = (size_t)(newline - line);
		struct json_document document;
		int64_t step = INT64_MAX;
		if (json_parse(&document, path, line, size) == OK) {
			enum status typed = json_get_integer(document.root, path, "step", 0, INT64_MAX, &step);
			int64_t last = json_member(document.root, "eval_seconds") ? state->evaluated_step : state->step;
			if (typed == OK && step <= last)
				buffer_append(&kept, line, size + 1);
			json_release(&document);
		}
		line = newline + 1;
	}
	TRY_GOTO(buffer_status(&kept), done);
	if (kept.size != old.size)
		TRY_GOTO(file_write(path, buffer_string(&kept), kept.size), done);
done:
	buffer_release(&old);
	buffer_release(&kept);
	return status;
}

/* Failures of auxiliary output do not end a run; they are only reported. */
static void side_failure(const char *what)
{
	log_warning("%s: %s; training continues without it", what, error_last()->message);
}

static void flush_events(struct report *report)
{
	if (report->events && event_file_flush(report->events) != OK) {
		side_failure("TensorBoard events");
		event_file_close(report->events);
		report->events = NULL;
	}
}

/* One of the task's numbers, or the plain loss if the objective does not provide it. */
static double metric_or_loss(const struct measures *measures, const char *name)
{
	const struct measure *found = measures_find(measures, name);
	return found ? found->value : measures_get(measures, "loss");
}

static double metric(const struct measures *measures, const char *name)
{
	return name ? measures_get(measures, name) : NAN;
}

static int64_t whole(double value)
{
	return isfinite(value) ? (int64_t)value : 0;
}

/* Restores one logged step for the diagnosis. */
static void replay_step(struct report *report, int64_t row)
{
	const struct history *history = &report->history;
	const struct history_table *steps = &history->steps;
	const struct report_task *task = &report->task;
	double own = history_value(steps, row, history_column(history, task->loss));
	int share = task->share ? history_column(history, task->share) : -1;
	diagnosis_replay_step(&report->diagnosis,
			      &(struct diagnosis_step){
				      .step = whole(history_value(steps, row, HISTORY_STEP)),
				      .tokens = whole(history_value(steps, row, HISTORY_TOKENS)),
				      .loss = isfinite(own) ? own : history_value(steps, row, HISTORY_LOSS),
				      .share = history_value(steps, row, share),
				      .grad_norm = history_value(steps, row, HISTORY_GRAD_NORM),
				      .skipped_steps = whole(history_value(steps, row, HISTORY_SKIPPED_STEPS)),
			      });
}

static void replay_evaluation(struct report *report, int64_t row)
{
	const struct history *history = &report->history;
	const struct history_table *table = &history->evaluations;
	const struct report_task *task = &report->task;
	double own = history_value(table, row, history_column(history, task->loss));
	double loss = isfinite(own) ? own : history_value(table, row, HISTORY_LOSS);
	double examples = history_value(table, row, history_column(history, "examples"));
	int set = history->evaluation_sets[row];
	diagnosis_replay_evaluation(
		&report->diagnosis,
		&(struct diagnosis_evaluation){
			.set = set,
			.name = history->sets[set],
			.step = whole(history_value(table, row, HISTORY_STEP)),
			.loss = loss,
			.score = task->decides ? history_value(table, row, history_column(history, task->decides)) : loss,
			.examples = isfinite(examples) ? examples : 0,
		});
}

/* Restores the diagnosis of what was logged before the run was stopped, in the order in which it happened: at one step, its
 * losses, then its evaluations, then what was found. `state`: where the run resumes. */
static void replay(struct report *report, const struct report_progress *state)
{
	const struct history *history = &report->history;
	const struct history_table *steps = &history->steps, *evaluations = &history->evaluations;
	double phase = NAN, last = 0;
	for (int64_t s = 0, e = 0, v = 0; s < steps->count || e < evaluations->count || v < history->event_count;) {
		double at_step = s < steps->count ? history_value(steps, s, HISTORY_STEP) : INFINITY;
		double at_evaluation = e < evaluations->count ? history_value(evaluations, e, HISTORY_STEP) : INFINITY;
		double at_event = v < history->event_count ? (double)history->events[v].step : INFINITY;
		bool step = at_step <= at_evaluation && at_step <= at_event, evaluation = !step && at_evaluation <= at_event;
		double at = step ? at_step : evaluation ? at_evaluation : at_event;
		double now = step         ? history_value(steps, s, HISTORY_PHASE)
			     : evaluation ? history_value(evaluations, e, HISTORY_PHASE)
					  : history->events[v].phase;
		if (now > phase)
			diagnosis_phase(&report->diagnosis, whole(last));
		phase = isfinite(now) ? now : phase;
		last = at;
		if (step)
			replay_step(report, s++);
		else if (evaluation)
			replay_evaluation(report, e++);
		else
			diagnosis_replay_finding(&report->diagnosis, history->events[v].kind, history->events[v].over), v++;
	}
	if ((double)state->phase > phase) /* nothing of this phase has been logged */
		diagnosis_phase(&report->diagnosis, whole(last));
}

/* The files that grow with the run. */
static enum status list_files(const struct report *report)
{
	static const char *const names[] = {"metrics.jsonl", "samples.jsonl", "report.html"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		TRY(owned_files_add(report->folder, names[i], OWNED_UNKNOWN));
	return OK;
}

enum status report_start(struct report *report, const struct report_progress *state)
{
	if (report->silent)
		return OK;
	if (!report->task.loss) /* the objective gives no description: judge its loss alone */
		report_task_plain(&report->task, NAN);
	TRY(metrics_cut(report->metrics_path, state));
	TRY(history_read(&report->history, report->metrics_path));
	diagnosis_start(&report->diagnosis,
			&(struct diagnosis_facts){.task = &report->task, .epoch_tokens = report->facts.epoch_tokens});
	replay(report, state);
	if (report->folder)
		TRY(list_files(report));
	if (report->folder && event_file_open(&report->events, report->folder, state->step + 1) != OK)
		side_failure("TensorBoard events");
	report->start = *state;
	report->resume_logged = state->step == 0;
	progress_start(&report->progress, "training", state->step, report->total_steps, "steps");
	return OK;
}

void report_expect(struct report *report, int64_t total_steps)
{
	report->total_steps = total_steps;
	report->progress.total = total_steps;
	report->diagnosis.facts.total_steps = total_steps;
}

void report_phase(struct report *report, const struct report_phase *phase, const struct report_progress *state)
{
	report->phase_count = phase->count;
	report->log_steps = phase->log_steps;
	report->total_steps = phase->total_steps;
	report->progress.total = report->total_steps;
	report->smoothed.count = 0;
	report->waited = 0;
	if (phase->begins)
		diagnosis_phase(&report->diagnosis, state->step);
	diagnosis_plan(&report->diagnosis, report->total_steps, phase->peak_rate);
}

/* "loss 5.123  MLM 21.3 %  NSP 61.0 %": running means of the metrics shown. */
static void smoothed_text(struct report *report, const struct measures *metrics, char *out, size_t size)
{
	out[0] = 0;
	size_t used = 0;
	for (int i = 0; i < metrics->count; i++) {
		double *mean = &report->smoothed.item[i].value;
		double value = metrics->item[i].value;
		if (isfinite(value)) /* one bad step must not spoil the mean permanently */
			*mean = i < report->smoothed.count ? *mean + SMOOTHING * (value - *mean) : value;
		if (!metrics->item[i].label)
			continue;
		bool share = metrics->item[i].unit == UNIT_SHARE;
		int wrote = snprintf(out + used, size - used, share ? "%s%s %.1f %%" : "%s%s %.3f", used > 0 ? "  " : "",
				     metrics->item[i].label, share ? 100.0 * *mean : *mean);
		if (wrote < 0 || (size_t)wrote >= size - used)
			break;
		used += (size_t)wrote;
	}
	report->smoothed.count = metrics->count;
}

static enum status append_metrics(const char *path, struct buffer *line)
{
	buffer_char(line, '\n');
	enum status status = buffer_status(line);
	if (status == OK)
		status = file_append_line(path, buffer_string(line));
	buffer_release(line);
	return status;
}

/* Adds the line's object to the history too, so that the page and metrics.jsonl never disagree. */
enum status report_append_line(struct report *report, struct buffer *line)
{
	struct json_document document;
	enum status status;
	TRY_GOTO(buffer_status(line), done);
	TRY_GOTO(json_parse(&document, report->metrics_path, buffer_string(line), line->size), done);
	status = history_add(&report->history, document.root);
	json_release(&document);
	if (status == OK)
		return append_metrics(report->metrics_path, line);
done:
	buffer_release(line);
	return status;
}

enum status report_append_event(struct report *report, const struct report_progress *state, const char *kind, bool over,
				const char *text, const char *advice)
{
	struct buffer line = {0};
	struct json_writer writer = {.out = &line};
	json_open(&writer, NULL, '{');
	json_put_integer(&writer, "step", state->step);
	json_put_integer(&writer, "phase", state->phase);
	json_put_string(&writer, "event", kind);
	if (over)
		json_put_bool(&writer, "over", true);
	json_put_string(&writer, "text", text);
	if (*advice)
		json_put_string(&writer, "advice", advice);
	json_put_integer(&writer, "tokens", state->tokens);
	json_put_double(&writer, "seconds", state->seconds);
	json_close(&writer);
	return report_append_line(report, &line);
}

/* Reports findings on the console, in metrics.jsonl, and in the events. */
static enum status say(struct report *report, const struct report_progress *state, const struct findings *findings)
{
	for (int i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->item[i];
		int64_t said = report->diagnosis.said[finding->kind];
		const char *name = finding_names[finding->kind];
		/* The loop and its guard report these themselves, step by step. */
		bool spoken = finding->kind == FINDING_SPIKE || finding->kind == FINDING_NON_FINITE;
		if (!spoken && (said <= FINDINGS_SAID || (said & (said - 1)) == 0)) {
			bool note = finding->over || finding_weights[finding->kind] == FINDING_NOTE;
			(note ? log_note : log_warning)("step %lld: %s%s%s", (long long)state->step, finding->text,
							*finding->advice ? " " : "", finding->advice);
		}
		TRY(report_append_event(report, state, name, finding->over, finding->text, finding->advice));
		if (report->events)
			event_file_text(report->events, state->step, "diagnosis", finding->text);
	}
	return OK;
}

enum status report_early_end(struct report *report, const struct report_progress *state, const char *text)
{
	if (report->silent)
		return OK;
	log_note("%s", text);
	return history_early_end(&report->history, state->step)
		       ? OK
		       : report_append_event(report, state, REPORT_EARLY_END, false, text, "");
}

static void write_page(struct report *report, const struct report_page *page)
{
	double started = clock_seconds();
	char path[PATH_BYTES];
	struct buffer html = {0};
	report_page_html(page, &html);
	enum status status = buffer_status(&html);
	if (status == OK)
		status = path_join(path, report->folder, "report.html");
	if (status == OK)
		status = file_write(path, html.data, html.size);
	if (status != OK && !report->page_failed)
		side_failure("report.html");
	report->page_failed = status != OK;
	report->page_written = clock_seconds();
	report->page_cost = report->page_written - started;
	char size[FORMAT_BYTES];
	log_detail("report.html: %s in %.1f ms", format_size(size, (double)html.size), 1e3 * report->page_cost);
	buffer_release(&html);
}

static const char *time_text(char out[48])
{
	time_t now = time(NULL);
	struct tm parts;
	if (!gmtime_r(&now, &parts) || strftime(out, 48, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0)
		out[0] = 0;
	return out;
}

/* Writes the current page if the last one is old enough. */
static void refresh_page(struct report *report, const struct report_progress *state, double least_seconds)
{
	char now[48];
	double age = clock_seconds() - report->page_written;
	if (!report->folder || (report->page_written > 0 && (age < least_seconds || age < PAGE_SHARE * report->page_cost)))
		return;
	write_page(report, &(struct report_page){
				   .report = report,
				   .state = state,
				   .running = true,
				   .written = time_text(now),
			   });
}

static void count_lengths(struct length_counts *lengths, const struct step_report *step)
{
	for (int64_t i = 0; step->lengths && i < step->sequence_count; i++) {
		int32_t length = step->lengths[i];
		if (lengths->width == 0)
			lengths->width = 4;
		while (length > lengths->width * LENGTH_BINS - 1) { /* double the width of the bins */
			for (int k = 0; k < LENGTH_BINS; k++)
				lengths->count[k] = k < LENGTH_BINS / 2 ? lengths->count[2 * k] + lengths->count[2 * k + 1] : 0;
			lengths->width *= 2;
		}
		lengths->count[length / lengths->width]++;
		lengths->sequences++;
		lengths->tokens += length;
		lengths->longest = length > lengths->longest ? length : lengths->longest;
	}
}

static enum status diagnose(struct report *report, const struct step_report *step)
{
	struct findings findings = {0};
	double waited = step->waited - report->waited;
	report->waited = step->waited;
	diagnosis_step(&report->diagnosis,
		       &(struct diagnosis_step){
			       .step = step->state->step,
			       .tokens = step->state->tokens,
			       .loss = metric_or_loss(step->metrics, report->task.loss),
			       .share = metric(step->metrics, report->task.share),
			       .grad_norm = step->grad_norm,
			       .learning_rate = step->learning_rate,
			       .seconds = step->seconds,
			       .waited = waited > 0 ? waited : 0,
			       .skipped_steps = step->state->skipped_steps,
		       },
		       &findings);
	return say(report, step->state, &findings);
}

/* Writes the logged step's scalars to the event file. */
static void log_events(struct report *report, const struct step_report *step, double rate, double share)
{
	struct event_file *events = report->events;
	int64_t number = step->state->step;
	if (!events)
		return;
	for (int i = 0; i < step->metrics->count; i++) {
		char tag[128];
		snprintf(tag, sizeof tag, "train/%s", step->metrics->item[i].name);
		event_file_scalar(events, number, tag, step->metrics->item[i].value);
	}
	event_file_scalar(events, number, "train/learning_rate", step->learning_rate);
	event_file_scalar(events, number, "train/grad_norm", step->grad_norm);
	event_file_scalar(events, number, "train/tokens", (double)step->state->tokens);
	event_file_scalar(events, number, "train/skipped_steps", (double)step->state->skipped_steps);
	event_file_scalar(events, number, "speed/tokens_per_second", rate);
	if (share > 0)
		event_file_scalar(events, number, "speed/share_of_gemm", share);
	flush_events(report);
}

/* Logs where this process resumed the run, before its first step. */
static enum status log_resume(struct report *report)
{
	char text[96];
	report->resume_logged = true;
	snprintf(text, sizeof text, "Resumed after step %lld.", (long long)report->start.step);
	return report_append_event(report, &report->start, REPORT_RESUMED, false, text, "");
}

enum status report_step(struct report *report, const struct step_report *step)
{
	if (report->silent)
		return OK;
	const struct report_progress *state = step->state;
	if (!report->resume_logged)
		TRY(log_resume(report));
	report->interval_seconds += step->seconds;
	report->interval_flops += step->flops;
	report->interval_tokens += step->token_count;
	count_lengths(&report->lengths, step);
	double rate = (double)report->interval_tokens / report->interval_seconds;
	double share = report->gemm_rate > 0 ? report->interval_flops / report->interval_seconds / report->gemm_rate : 0.0;

	char phase_text[32] = "", metrics_text[96], share_text[32] = "", rate_text[FORMAT_BYTES];
	smoothed_text(report, step->metrics, metrics_text, sizeof metrics_text);
	if (share > 0)
		snprintf(share_text, sizeof share_text, "  %.0f %% of peak", 100.0 * share);
	if (report->phase_count > 1)
		snprintf(phase_text, sizeof phase_text, "  phase %d/%d", (int)state->phase, (int)report->phase_count);
	/* Loss and speed come first: a narrow terminal has no room for more. */
	const char *rest = strstr(metrics_text, "  ");
	int loss = rest ? (int)(rest - metrics_text) : (int)strlen(metrics_text);
	progress_update(&report->progress, state->step, "%.*s  %s tokens/s%s%s%s", loss, metrics_text,
			format_count(rate_text, (int64_t)rate), rest ? rest : "", share_text, phase_text);

	TRY(diagnose(report, step));
	if (state->step % report->log_steps != 0 && state->step != 1 && state->step != report->total_steps)
		return OK;
	struct buffer line = {0};
	struct json_writer writer = {.out = &line};
	json_open(&writer, NULL, '{');
	json_put_integer(&writer, "step", state->step);
	json_put_integer(&writer, "phase", state->phase);
	if (step->set)
		json_put_string(&writer, "train_set", step->set);
	for (int i = 0; i < step->metrics->count; i++)
		json_put_double(&writer, step->metrics->item[i].name, step->metrics->item[i].value);
	json_put_double(&writer, "learning_rate", step->learning_rate);
	json_put_double(&writer, "grad_norm", step->grad_norm);
	json_put_integer(&writer, "samples", state->samples);
	json_put_integer(&writer, "tokens", state->tokens);
	json_put_double(&writer, "tokens_per_second", rate);
	if (share > 0)
		json_put_double(&writer, "share_of_gemm", share);
	json_put_integer(&writer, "skipped_steps", state->skipped_steps);
	json_put_double(&writer, "seconds", state->seconds);
	json_close(&writer);
	report->interval_seconds = report->interval_flops = 0;
	report->interval_tokens = 0;
	TRY(report_append_line(report, &line));
	log_events(report, step, rate, share);
	refresh_page(report, state, PAGE_SECONDS);
	return OK;
}

/* Writes an evaluation's numbers to metrics.jsonl and to TensorBoard's events. */
static enum status log_evaluation(struct report *report, const struct report_progress *state, const char *set,
				  const struct measures *metrics, double seconds)
{
	struct buffer line = {0};
	struct json_writer writer = {.out = &line};
	json_open(&writer, NULL, '{');
	json_put_integer(&writer, "step", state->step);
	json_put_integer(&writer, "phase", state->phase);
	if (set)
		json_put_string(&writer, "eval_set", set);
	for (int i = 0; i < metrics->count; i++) {
		char name[128];
		const struct measure *measure = &metrics->item[i];
		snprintf(name, sizeof name, "eval_%s%s%s", set ? set : "", set ? "_" : "", measure->name);
		json_put_double(&writer, name, measure->value);
		if (report->events) {
			snprintf(name, sizeof name, "eval%s%s/%s", set ? "_" : "", set ? set : "", measure->name);
			event_file_scalar(report->events, state->step, name, measure->value);
		}
	}
	json_put_integer(&writer, "tokens", state->tokens);
	json_put_double(&writer, "seconds", state->seconds);
	json_put_double(&writer, "eval_seconds", seconds);
	json_close(&writer);
	return report_append_line(report, &line);
}

/* "held-out text: loss 5.123, accuracy 21.3 %": logs the measures that matter most to readers. */
static void say_evaluation(const struct report *report, const struct report_progress *state, const char *set,
			   const struct measures *metrics)
{
	char text[256] = "";
	size_t used = 0;
	for (int i = 0; i < metrics->count && used < sizeof text; i++) {
		const struct measure *measure = &metrics->item[i];
		const struct report_column *found = report_task_column(&report->task, measure->name);
		struct report_column column = found ? *found : report_column(measure->name);
		bool decides = report->task.decides && strcmp(measure->name, report->task.decides) == 0;
		char number[REPORT_NUMBER_BYTES];
		if (!measure->label && !decides && !strstr(measure->name, "perplexity"))
			continue;
		int wrote = snprintf(text + used, sizeof text - used, "%s %s %s", used ? "," : ":", column.heading,
				     report_number(number, measure->value, measure->unit));
		used += wrote > 0 ? (size_t)wrote : 0;
	}
	log_note("step %lld, %s%s", (long long)state->step, set ? set : report->task.words.held_out, text);
}

/* Makes sure that the deciding measure has a column, with the unit and direction that the evaluation reports: the F1 of questions
 * is in points, and the table of columns does not know all names. */
static void add_deciding_column(struct report_task *task, const struct measures *metrics)
{
	const struct measure *measure = task->decides ? measures_find(metrics, task->decides) : NULL;
	if (!measure || report_task_column(task, task->decides) || task->column_count == REPORT_COLUMNS)
		return;
	struct report_column *column = report_task_add(task, measure->name);
	column->unit = measure->unit;
	column->direction = measure->direction;
}

enum status report_evaluation(struct report *report, const struct report_progress *state, const char *set,
			      const struct measures *metrics, double seconds)
{
	if (report->silent)
		return OK;
	const struct report_task *task = &report->task;
	const struct report_preview *preview = &task->preview;
	add_deciding_column(&report->task, metrics);
	say_evaluation(report, state, set, metrics);
	TRY(log_evaluation(report, state, set, metrics, seconds));
	struct findings findings = {0};
	double loss = metric_or_loss(metrics, task->loss), examples = measures_get(metrics, "examples");
	diagnosis_evaluation(&report->diagnosis,
			     &(struct diagnosis_evaluation){
				     .set = history_set(&report->history, set ? set : ""),
				     .name = set,
				     .step = state->step,
				     .loss = loss,
				     .score = task->decides ? measures_get(metrics, task->decides) : loss,
				     .examples = isfinite(examples) ? examples : 0,
				     .confusion = preview->confusion ? preview->confusion(preview->context, set) : NULL,
			     },
			     &findings);
	return say(report, state, &findings);
}

enum status report_evaluated(struct report *report, const struct report_progress *state)
{
	const struct report_preview *preview = &report->task.preview;
	if (report->silent)
		return OK;
	if (preview->update)
		TRY(preview->update(preview->context, state));
	flush_events(report);
	refresh_page(report, state, 0);
	return OK;
}

/* Running a finished run again adds nothing, so the page of the process that trained is kept. */
static bool keeps_page(const struct report *report, const struct report_progress *state, enum status status)
{
	char path[PATH_BYTES];
	return status == OK && state->step == report->progress.first && report->page_written == 0 &&
	       path_join(path, report->folder, "report.html") == OK && file_exists(path);
}

/* Says what the page begins with. */
static void say_verdict(const struct report *report)
{
	struct verdict verdict;
	report_judge(report, true, &verdict);
	if (verdict.grade != GRADE_EARLY)
		log_note("%s. %s%s%s", verdict.headline, verdict.text, *verdict.more ? " " : "", verdict.more);
}

void report_finish(struct report *report, const struct report_progress *state, enum status status)
{
	if (report->silent)
		return;
	char now[48];
	struct error error = *error_last(); /* the error that the caller will pass on */
	progress_finish(&report->progress);
	bool kept = report->folder && keeps_page(report, state, status);
	if (report->folder && !kept)
		write_page(report, &(struct report_page){
					   .report = report,
					   .state = state,
					   .status = status,
					   .reason = status != OK && status != STOPPED ? error.message : NULL,
					   .written = time_text(now),
				   });
	if (status == OK && !kept)
		say_verdict(report);
	flush_events(report);
	event_file_close(report->events);
	report->events = NULL;
	history_release(&report->history);
	if (error.status != OK)
		status = error_restore(&error);
}
