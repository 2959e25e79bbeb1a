/* Settings and memory of a run, shown before it begins. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "cmd/pretrain.h"
#include "run/plan.h"

/* Memory for the largest of the phases that are still to come. */
static struct memory_plan largest_plan(const struct pretrain *run)
{
	size_t batches = 0;
	for (int64_t i = run->training.state.phase.index; i < run->phase_count; i++) {
		const struct pretrain_phase *phase = &run->phases[i];
		struct example_bounds bounds = instance_bounds(&phase->instance_settings);
		size_t bytes = step_reader_bytes(&bounds, &phase->steps);
		batches = bytes > batches ? bytes : batches;
	}
	const struct pretrain_settings *last = run->phases[run->phase_count - 1].settings;
	return plan_training(run->model, &run->limits, last->train_batch_size, (int32_t)last->max_seq_length, batches, run->ranks,
			     pretrain_wire(run->settings) != COMM_F32);
}

/* "  phase 2: 100 steps of 8 x 512 tokens, 1.2 TFLOP each". */
static void show_phases(const struct pretrain *run, struct buffer *out)
{
	for (int64_t i = 0; i < run->phase_count; i++) {
		const struct pretrain_settings *settings = run->phases[i].settings;
		double flops = plan_step_flops(&run->config, &run->model->heads, settings->train_batch_size,
					       (int32_t)settings->max_seq_length);
		char count[FORMAT_BYTES];
		buffer_format(out, "  phase %-6" PRId64 " %10s  %s of %" PRId64 " x %" PRId64 " tokens, %.3g TFLOP each%s\n",
			      i + 1, format_count(count, settings->num_train_steps),
			      settings->num_train_steps == 1 ? "step" : "steps", settings->train_batch_size,
			      settings->max_seq_length, flops * 1e-12, i < run->training.state.phase.index ? " (over)" : "");
	}
}

/* "batch: 400 instances an update = 4 ranks x 100 = 2 replicas x 50, micro-batches of up to 8,192 tokens". */
static void show_split(const struct pretrain *run, struct buffer *out)
{
	int64_t replicas = run->settings->replicas_per_gpu;
	if (run->ranks * replicas == 1)
		return;
	for (int64_t i = run->training.state.phase.index; i < run->phase_count; i++) {
		const struct pretrain_phase *phase = &run->phases[i];
		int64_t part = step_part_examples(&phase->steps), all = phase->settings->train_batch_size;
		char tokens[FORMAT_BYTES], about[8] = "";
		if (part * run->ranks * replicas != all)
			snprintf(about, sizeof(about), "up to ");
		buffer_format(out, "batch%s: %" PRId64 " instances an update = %d rank%s x %s%" PRId64,
			      run->phase_count > 1 ? " of a phase" : "", all, run->ranks, run->ranks > 1 ? "s" : "", about,
			      part * replicas);
		if (replicas > 1)
			buffer_format(out, " = %" PRId64 " replicas x %" PRId64 ", one after the other", replicas, part);
		buffer_format(out, "; micro-batches of up to %d sequences, %s tokens\n", phase->steps.capacity.sequences,
			      format_count(tokens, phase->steps.capacity.tokens));
	}
	if (run->comm)
		buffer_format(out, "ranks: %d by %s\n", run->ranks, comm_description(run->comm));
	buffer_char(out, '\n');
}

/* Why micro-batches are as large as they are: "micro-batches of up to 33,760 tokens, 33,792 as they are filled up: a layer's
 * products fill 100 % of their waves on 132 multiprocessors; memory has room for 40,960, which would fill 97 %". */
static void show_micro_batches(const struct pretrain *run, struct buffer *out)
{
	for (int64_t i = run->training.state.phase.index; i < run->phase_count; i++) {
		const struct pretrain_phase *phase = &run->phases[i];
		const struct wave_work *work = &phase->work;
		int64_t tokens = phase->settings->micro_batch_tokens;
		char count[3][FORMAT_BYTES];
		if (work->most == 0)
			continue;
		buffer_format(out, "micro-batches%s of up to %s tokens", run->phase_count > 1 ? " of a phase" : "",
			      format_count(count[0], tokens));
		if (tokens >= work->instances * work->longest) {
			buffer_format(out, ": a rank's whole share of a batch\n");
			continue;
		}
		int32_t shape = waves_shape(work, tokens);
		buffer_format(out,
			      ", %s as they are filled up: a layer's products fill %.0f %% of their waves on %d multiprocessors",
			      format_count(count[1], shape), 100 * waves_filled(&phase->waves, shape), phase->waves.processors);
		if (tokens < work->most)
			buffer_format(out, "; memory has room for %s, which would fill %.0f %%",
				      format_count(count[2], work->most),
				      100 * waves_filled(&phase->waves, waves_shape(work, work->most)));
		buffer_char(out, '\n');
	}
}

enum status pretrain_show_plan(struct pretrain *run)
{
	struct buffer text = {0};
	struct memory_plan plan = largest_plan(run);
	if (run->phase_count > 1) {
		const struct options *phases[100];
		for (int64_t i = 0; i < run->phase_count; i++)
			phases[i] = run->phases[i].options;
		options_settings_table(run->options, SCOPE_GENERAL, log_has_colour(), &text);
		options_section_table(phases, run->phase_count, log_has_colour(), &text);
	} else {
		options_settings_table(run->options, SCOPE_ALL, log_has_colour(), &text);
	}
	buffer_char(&text, '\n');
	show_split(run, &text);
	show_micro_batches(run, &text);
	plan_print(&plan, run->model, &run->limits, &text);
	if (run->phase_count > 1)
		show_phases(run, &text);
	enum status status = buffer_status(&text);
	if (status == OK) {
		log_note("%s", buffer_string(&text));
		log_note("device: %s", run->backend->description);
	}
	buffer_release(&text);
	TRY(status);
	/* Every rank looks before any of them takes its memory. */
	return ranks_agree(run->comm,
			   plan_check(&plan, run->backend, run->place.ranks.size > 1 ? run->place.ranks.local_size : run->ranks));
}
