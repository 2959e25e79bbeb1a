#include "train/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* Weight of the newest step in the bar's running means. */
#define SMOOTHING 0.05

/* Keeps the lines up to the state, and of evaluations (they have "eval_seconds") those up to its last one; a torn last
 * line (kill in mid-write) goes too. */
static enum status metrics_cut(const char *path, const struct train_state *state)
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

enum status report_start(struct report *report, const struct train_state *state)
{
	TRY(metrics_cut(report->metrics_path, state));
	progress_start(&report->progress, "training", state->step, report->total_steps, "steps");
	return OK;
}

void report_phase(struct report *report, const struct phase *phases, int64_t phase_count,
		  const struct train_state *state)
{
	report->phase_count = phase_count;
	report->log_steps = phases[state->phase.index].log_steps;
	report->total_steps = state->phase.first_step;
	for (int64_t i = state->phase.index; i < phase_count; i++)
		report->total_steps += phases[i].steps;
	report->progress.total = report->total_steps;
	report->smoothed.count = 0;
}

/* "loss 5.123  MLM 21.3 %  NSP 61.0 %": the shown metrics' running means. */
static void smoothed_text(struct report *report, const struct metrics *metrics, char *out, size_t size)
{
	out[0] = 0;
	size_t used = 0;
	for (int i = 0; i < metrics->count; i++) {
		double *mean = &report->smoothed.item[i].value;
		double value = metrics->item[i].value;
		if (isfinite(value)) /* one bad step is not to spoil the mean for good */
			*mean = i < report->smoothed.count ? *mean + SMOOTHING * (value - *mean) : value;
		if (!metrics->item[i].label)
			continue;
		bool share = strstr(metrics->item[i].name, "accuracy") != NULL;
		int wrote = snprintf(out + used, size - used, share ? "%s %.1f %%  " : "%s %.3f  ",
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

enum status report_step(struct report *report, const struct step_report *step)
{
	const struct train_state *state = step->state;
	report->interval_seconds += step->seconds;
	report->interval_flops += step->flops;
	report->interval_tokens += step->data->token_count;
	double rate = (double)report->interval_tokens / report->interval_seconds;
	double share = report->gemm_rate > 0
			       ? report->interval_flops / report->interval_seconds / report->gemm_rate
			       : 0.0;

	char phase_text[32] = "", metrics_text[96], share_text[32] = "", rate_text[FORMAT_BYTES];
	smoothed_text(report, step->metrics, metrics_text, sizeof(metrics_text));
	if (share > 0)
		snprintf(share_text, sizeof(share_text), "  %.0f %% of GEMM", 100.0 * share);
	if (report->phase_count > 1)
		snprintf(phase_text, sizeof(phase_text), "phase %d/%d  ", (int)state->phase.index + 1,
			 (int)report->phase_count);
	progress_update(&report->progress, state->step, "%s%s%s tokens/s%s", phase_text, metrics_text,
			format_count(rate_text, (int64_t)rate), share_text);

	if (state->step % report->log_steps != 0 && state->step != 1 && state->step != report->total_steps)
		return OK;
	struct buffer line = {0};
	struct json_writer writer = {.out = &line};
	json_open(&writer, NULL, '{');
	json_put_integer(&writer, "step", state->step);
	json_put_integer(&writer, "phase", state->phase.index + 1);
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
	return append_metrics(report->metrics_path, &line);
}

enum status report_evaluation(struct report *report, const struct train_state *state, const char *set,
			      const struct metrics *metrics, double seconds)
{
	char text[256];
	size_t used = 0;
	text[0] = 0;
	struct buffer line = {0};
	struct json_writer writer = {.out = &line};
	json_open(&writer, NULL, '{');
	json_put_integer(&writer, "step", state->step);
	json_put_integer(&writer, "phase", state->phase.index + 1);
	if (set)
		json_put_string(&writer, "eval_set", set);
	for (int i = 0; i < metrics->count; i++) {
		char name[128];
		const char *plain = metrics->item[i].name;
		double value = metrics->item[i].value;
		snprintf(name, sizeof(name), "eval_%s%s%s", set ? set : "", set ? "_" : "", plain);
		json_put_double(&writer, name, value);
		bool share = strstr(plain, "accuracy") != NULL;
		if (used < sizeof(text) && (metrics->item[i].label || strstr(plain, "perplexity"))) {
			int wrote = snprintf(text + used, sizeof(text) - used, share ? ", %s %.2f %%" : ", %s %.4g",
					     plain, share ? 100.0 * value : value);
			used += wrote > 0 ? (size_t)wrote : 0;
		}
	}
	json_put_integer(&writer, "tokens", state->tokens);
	json_put_double(&writer, "seconds", state->seconds);
	json_put_double(&writer, "eval_seconds", seconds);
	json_close(&writer);
	log_note("step %lld, %s%s", (long long)state->step, set ? set : "held-out documents", text);
	return append_metrics(report->metrics_path, &line);
}

enum status report_evaluated(struct report *report, const struct train_state *state)
{
	(void)report;
	(void)state;
	return OK;
}

void report_finish(struct report *report, const struct train_state *state, enum status status)
{
	(void)state;
	(void)status;
	progress_finish(&report->progress);
}
