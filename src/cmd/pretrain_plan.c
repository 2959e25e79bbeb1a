/* Settings and memory of a run, shown before it begins. */
#include <inttypes.h>

#include "base/log.h"
#include "cmd/pretrain.h"
#include "train/plan.h"

/* Memory for the largest of the phases that are still to come. */
static struct memory_plan largest_plan(const struct pretrain *run)
{
	size_t batches = 0;
	for (int64_t i = run->training.state.phase.index; i < run->phase_count; i++) {
		const struct pretrain_phase *phase = &run->phases[i];
		size_t bytes = step_reader_bytes(&phase->instance_settings, &phase->steps);
		batches = bytes > batches ? bytes : batches;
	}
	const struct pretrain_settings *last = run->phases[run->phase_count - 1].settings;
	return plan_training(run->model, &run->limits, last->train_batch_size, (int32_t)last->max_seq_length, batches,
			     ranks_count(run->comm));
}

/* "  phase 2: 100 steps of 8 x 512 tokens, 1.2 TFLOP each". */
static void show_phases(const struct pretrain *run, struct buffer *out)
{
	for (int64_t i = 0; i < run->phase_count; i++) {
		const struct pretrain_settings *settings = run->phases[i].settings;
		double flops = plan_step_flops(&run->config, settings->train_batch_size, (int32_t)settings->max_seq_length);
		char count[FORMAT_BYTES];
		buffer_format(out, "  phase %-6" PRId64 " %10s  steps of %" PRId64 " x %" PRId64 " tokens, %.3g TFLOP each%s\n",
			      i + 1, format_count(count, settings->num_train_steps), settings->train_batch_size,
			      settings->max_seq_length, flops * 1e-12,
			      i < run->training.state.phase.index ? " (over)" : "");
	}
}

enum status pretrain_show_plan(struct pretrain *run)
{
	struct buffer text = {0};
	TRY(model_create(&run->model, run->backend, &run->config, HEADS_PRETRAINING));
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
	return ranks_agree(run->comm, plan_check(&plan, run->comm ? comm_place(run->comm)->local_size : 1));
}
