/* bertc plan: memory, time, and scaling of a training run before there is a machine for it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/memory.h"
#include "cmd/plan/plan_result.h"
#include "cmd/pretrain/pretrain_options.h"
#include "cmd/recipes.h"
#include "backend/open.h"

/* Only one of several ways to say the same thing may be used. */
static enum status check_ways(const struct plan_phase *phase)
{
	const struct plan_settings *settings = phase->settings;
	int given = (settings->training.length.num_train_steps > 0) + (settings->training.length.num_train_tokens > 0) +
		    (settings->num_train_samples > 0);
	if (given > 1)
		return error_set(ERR_USAGE, "--num_train_steps, --num_train_tokens, --num_train_samples: give one of them");
	if (phase->per_device && options_given(phase->options, "train_batch_size"))
		return error_set(ERR_USAGE, "--train_batch_size and --train_batch_size_per_gpu: give one of them");
	return OK;
}

static enum status open_phase(struct plan *plan, int64_t index)
{
	struct plan_phase *phase = &plan->phases[index];
	phase->options = plan->options;
	phase->settings = plan->options->settings;
	phase->scale = 1;
	if (plan->options->section_count > 0) {
		TRY(memory_new(&phase->settings, 1, sizeof *phase->settings, "settings"));
		TRY(options_derive(&phase->own, plan->options, index, phase->settings));
		phase->options = &phase->own;
	}
	double longest = (double)phase->settings->training.max_seq_length;
	phase->mean_length = phase->settings->mean_seq_length > 0 ? phase->settings->mean_seq_length : longest;
	if (phase->mean_length > longest)
		return error_set(ERR_USAGE, "--mean_seq_length %g is above --max_seq_length %g", phase->mean_length, longest);
	phase->per_device = phase->settings->training.batch.train_batch_size_per_gpu > 0;
	phase->batch_size = phase->per_device ? phase->settings->training.batch.train_batch_size_per_gpu
					      : phase->settings->training.batch.train_batch_size;
	return check_ways(phase);
}

static enum status check_phase(const struct plan *plan, const struct plan_phase *phase)
{
	const struct plan_settings *settings = phase->settings;
	int64_t parts = plan->topology.ranks * settings->training.ranks.replicas_per_gpu,
		batch = plan_batch_size(plan, phase, plan->topology.ranks);
	int64_t local = (batch + parts - 1) / parts;
	if (batch < parts)
		return error_hinted(error_set(ERR_USAGE,
					      "%" PRId64 " devices for %" PRId64
					      " sequences per step: some would have nothing to do",
					      parts, batch),
				    "raise --train_batch_size or use fewer devices");
	if (settings->training.batch.gradient_accumulation_steps > local)
		return error_set(ERR_USAGE,
				 "--gradient_accumulation_steps %" PRId64 ", but a device has %" PRId64 " sequences per step",
				 settings->training.batch.gradient_accumulation_steps, local);
	if (settings->training.batch.gradient_accumulation_steps > 0 &&
	    local / settings->training.batch.gradient_accumulation_steps > INT32_MAX / 2 / settings->training.max_seq_length)
		return error_set(ERR_USAGE, "micro-batches of %" PRId64 " sequences are too large",
				 local / settings->training.batch.gradient_accumulation_steps);
	return OK;
}

/* Applies a known throughput of one device: everything it computes is scaled to it. */
static enum status scale_phase(struct plan *plan, struct plan_phase *phase, int64_t number)
{
	struct plan_result result;
	double rate = phase->settings->device_rate;
	if (rate <= 0)
		return OK;
	TRY(plan_compute(plan, phase, plan->topology.ranks, &result));
	double alone = plan_alone(plan, phase, &result, phase->settings->device_rate_batch);
	phase->scale = (double)plan_batch_size(plan, phase, plan->topology.ranks) / rate / alone;
	char name[40], value[64];
	if (plan->phase_count > 1)
		snprintf(name, sizeof name, "one device, phase %" PRId64, number);
	else
		snprintf(name, sizeof name, "one device alone");
	snprintf(value, sizeof value, "%g sequences/s", rate);
	plan_assume(&plan->assumptions, FIGURE_GIVEN, name, value, "--device_rate; %.2f of what the rates above give",
		    1 / phase->scale);
	return OK;
}

static enum status make_plan(struct plan *plan)
{
	const struct plan_settings *settings = plan->settings;
	int64_t count = plan->options->section_count > 0 ? plan->options->section_count : 1, wanted_devices = 0;
	double wanted_seconds = 0, best = 0;
	struct plan_result *results = NULL;
	TRY(memory_new(&plan->phases, count, sizeof *plan->phases, "phases"));
	plan->phase_count = count;
	for (int64_t i = 0; i < count; i++)
		TRY(open_phase(plan, i));
	TRY(plan_open_machine(plan));
	for (int64_t i = 0; i < count; i++) {
		TRY(check_phase(plan, &plan->phases[i]));
		TRY(scale_phase(plan, &plan->phases[i], i + 1));
	}
	if (settings->within) {
		TRY(duration_parse(settings->within, &wanted_seconds));
		for (int64_t i = 0; i < count; i++)
			if (plan_steps(plan, &plan->phases[i], 1) == 0)
				return error_set(ERR_USAGE, "--within needs to know how long the run is: give --num_train_steps, "
							    "--num_train_tokens or --num_train_samples");
		TRY(plan_find_devices(plan, wanted_seconds, &wanted_devices, &best));
		bool fixed = settings->gpus > 0 || settings->ranks > 0;
		if (wanted_devices > 0 && !fixed)
			plan->topology.ranks = wanted_devices;
	}
	enum status status;
	TRY(memory_new(&results, count, sizeof *results, "results"));
	for (int64_t i = 0; i < count; i++)
		TRY_GOTO(plan_compute(plan, &plan->phases[i], plan->topology.ranks, &results[i]), done);
	status = settings->json ? plan_show_json(plan, results, wanted_devices, wanted_seconds)
				: plan_show(plan, results, wanted_devices, wanted_seconds);
done:
	free(results);
	return status;
}

static enum status run_plan(struct options *options)
{
	struct plan plan = {.options = options, .settings = options->settings};
	enum status status = make_plan(&plan);
	for (int64_t i = 0; plan.phases && i < plan.phase_count; i++) {
		struct plan_phase *phase = &plan.phases[i];
		if (phase->options == &phase->own)
			options_release(&phase->own);
		if (phase->settings != options->settings)
			free(phase->settings);
	}
	free(plan.phases);
	model_free(plan.model);
	if (plan.backend && plan.backend != &plan.described)
		backend_close(plan.backend);
	pool_free(plan.pool);
	return status;
}

const struct command command_plan = {
	.text = &plan_text,
	.options = plan_options,
	.foreign = plan_removed,
	.aside = pretrain_options,
	.settings_bytes = sizeof(struct plan_settings),
	.complete = recipes_read,
	.run = run_plan,
};
