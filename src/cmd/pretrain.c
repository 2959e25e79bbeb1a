/* bertc pretrain: raw text to a trained model folder. Builds everything the loop borrows, in the order of the data
 * flow: folder, settings of a resumed run, vocabulary and shards, model, plan, weights, loop. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "cmd/pretrain.h"

/* The settings as every checkpoint records them; the run folder's are the first rank's. */
static enum status write_settings(struct pretrain *run)
{
	char path[PATH_BYTES];
	struct json_writer writer = {.out = &run->record_text, .indent = 2};
	buffer_clear(&run->record_text);
	pretrain_write_record(run, &writer);
	TRY(ranks_agree(run->comm, buffer_status(&run->record_text)));
	TRY(pretrain_agree(run));
	if (!is_first_rank(run->comm))
		return OK;
	TRY(path_join(path, run->settings->out, "settings.json"));
	return file_write(path, run->record_text.data, run->record_text.size);
}

/* Says where the run goes on, and whether it can do so bit for bit. */
static enum status note_resumption(struct pretrain *run)
{
	const char *before = NULL;
	char split[64] = "";
	if (run->ranks * run->settings->replicas_per_gpu > 1)
		snprintf(split, sizeof(split), ", %d ranks x %d replicas", run->ranks, (int)run->settings->replicas_per_gpu);
	snprintf(run->computed_on, sizeof(run->computed_on), "bertc " VERSION ", %s%s", run->backend->numerics, split);
	if (!run->resumed)
		return OK;
	log_note("going on from %s", run->checkpoint);
	TRY(json_get_string(run->record.root, run->checkpoint, "computed_on", &before));
	if (before && strcmp(before, run->computed_on) != 0)
		log_note("computed there with %s, here with %s: it goes on to rounding, not bit for bit", before,
			 run->computed_on);
	return OK;
}

static enum status locate(void *context, struct train_state *state)
{
	struct pretrain *run = context;
	struct instances *instances = run->phases[state->phase.index].instances;
	return instances_locate(instances, state->samples, &state->epoch, &state->epoch_first_sample);
}

static void close_phase(struct pretrain *run)
{
	if (run->open_phase < 0)
		return;
	if (run->objective)
		run->objective->close(run->objective);
	run->objective = NULL;
	pretrain_close_evaluation(run);
	struct pretrain_phase *phase = &run->phases[run->open_phase];
	instances_close(phase->instances);
	phase->instances = NULL;
	run->open_phase = -1;
}

/* Which of the evaluation sets decides. */
static enum status find_best_set(struct pretrain *run)
{
	const char *name = run->settings->best_by;
	run->training.settings.best_set = 0;
	for (int64_t i = 0; name && i < run->evaluation_count; i++) {
		if (run->evaluation_sets[i].name && strcmp(run->evaluation_sets[i].name, name) == 0) {
			run->training.settings.best_set = i;
			return OK;
		}
	}
	if (!name)
		return OK;
	enum status status = error_set(ERR_USAGE, "--best_by %s: there is no evaluation set of this name", name);
	error_hint("name sets with --eval_corpus %s=PATH or --eval_data %s=PREFIX", name, name);
	return status;
}

/* What the phase of `state` reads. It begins with an epoch of its own, so that no sample number stands for two
 * instances. */
static enum status open_phase(void *context, const struct train_state *state, struct objective **out)
{
	struct pretrain *run = context;
	struct pretrain_phase *phase = &run->phases[state->phase.index];
	bool begins = state->samples == state->phase.first_sample && state->samples > 0;
	close_phase(run);
	run->open_phase = state->phase.index;
	run->training.checkpoints.data_hash = phase->data_hash;
	TRY(pretrain_open_instances(run, phase));
	if (begins)
		TRY(instances_hint(phase->instances, state->epoch + 1, state->samples));
	else if (state->samples > 0)
		TRY(instances_hint(phase->instances, state->epoch, state->epoch_first_sample));
	TRY(pretrain_open_evaluation(run, phase));
	TRY(find_best_set(run));
	phase->steps.first_step = state->step + 1;
	phase->steps.last_step = state->phase.first_step + phase->settings->num_train_steps;
	phase->steps.steps_before = state->phase.first_step;
	phase->steps.samples_before = state->phase.first_sample;
	TRY(pretraining_create(&run->objective, &(struct pretraining_settings){
							.model = run->model,
							.activations = run->activations,
							.comm = run->comm,
							.train = phase->instances,
							.steps = phase->steps,
							.evaluation_sets = run->evaluation_sets,
							.evaluation_count = run->evaluation_count,
							.evaluation_instances = phase->settings->eval_instances,
							.evaluation_capacity = phase->evaluation_capacity,
						}));
	*out = run->objective;
	return OK;
}

/* The phases as the loop wants them. */
static enum status make_schedules(struct pretrain *run)
{
	TRY(memory_new(&run->schedules, run->phase_count, sizeof(*run->schedules), "phases"));
	for (int64_t i = 0; i < run->phase_count; i++) {
		const struct pretrain_settings *settings = run->phases[i].settings;
		run->schedules[i] = (struct phase){
			.schedule = pretrain_schedule(settings),
			.steps = settings->num_train_steps,
			.tokens = settings->num_train_tokens,
			.patience = settings->early_stopping_patience,
			.patience_margin = settings->early_stopping_threshold,
			.save_steps = settings->save_checkpoints_steps,
			.eval_steps = settings->eval_steps,
			.log_steps = settings->log_steps,
		};
	}
	return OK;
}

/* Before each save: the folder must still be this run's alone, and the tokens it was trained on those that were prepared. */
static enum status may_save(void *context)
{
	struct pretrain *run = context;
	TRY(folder_lock_check(run->settings->out, &run->lock_taken));
	return shard_check_status(run->data.check);
}

static enum status start_training(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	struct training *training = &run->training;
	TRY(make_schedules(run));
	training->settings = (struct loop_settings){
		.seed = (uint64_t)settings->seed,
		.stop_at_step = settings->stop_at_step,
		.save_best = settings->save_best,
		.reduce_every_batch = !settings->allreduce_post_accumulation,
		.wire = pretrain_wire(settings),
		.compare_weights_steps = settings->check_weights_steps,
	};
	if (settings->steps_this_run > 0)
		training->settings.stop_at_step = training->state.step + settings->steps_this_run;
	/* Gradients are below what fp16 can hold as they are. */
	bool unset = options_origin(run->options, "loss_scale") == ORIGIN_DEFAULT;
	bool dynamic = settings->loss_scale == 0 || (unset && settings->allreduce_post_accumulation_fp16 && run->ranks > 1);
	training->guard = (struct guard_settings){
		.skip_spikes = settings->skip_spikes,
		.dynamic = dynamic,
		.loss_scale = dynamic ? settings->init_loss_scale : settings->loss_scale,
	};
	training->saved_step = run->resumed && run->own_checkpoint ? training->state.step : -1;
	training->phases = run->schedules;
	training->phase_count = run->phase_count;
	training->model = run->model;
	training->replica = &run->replica;
	training->comm = run->comm;
	training->optimizer = run->optimizer;
	training->checkpoints = (struct checkpoint_context){
		.folder = settings->out,
		.comm = run->comm,
		.vocab = &run->data.vocab,
		.tokenizer = &run->data.tokenizer,
		.max_seq_length = run->config.max_position_embeddings,
		.data_hash = run->data.hash,
		.settings_json = buffer_string(&run->record_text),
		.computed_on = run->computed_on,
		.resumed_from = run->resumed_from[0] ? run->resumed_from : NULL,
		.keep = settings->keep_checkpoints,
		.may_save = may_save,
		.may_save_context = run,
	};
	TRY(pretrain_open_report(run));
	training->open_phase = open_phase;
	training->locate = locate;
	training->context = run;
	return train(training);
}

/* How often an allocation may fail. */
#define ATTEMPTS 4

/* Memory for everything. Another program may have taken some of the device's since it was planned with: then again with smaller
 * micro-batches, in all ranks. */
static enum status find_room(struct pretrain *run)
{
	for (int attempt = 1;; attempt++) {
		enum status status = pretrain_allocate(run);
		if (status != ERR_RESOURCE || attempt == ATTEMPTS)
			return status;
		struct error error = *error_last();
		int32_t tokens = run->capacity.tokens;
		bool smaller = false;
		char counts[2][FORMAT_BYTES];
		pretrain_release_memory(run);
		TRY(model_create(&run->model, run->backend, &run->config, &model_heads_pretraining));
		if (pretrain_choose_smaller_shapes(run, &smaller) != OK || !smaller)
			return error_restore(&error);
		log_warning("%s: again with micro-batches of up to %s tokens instead of %s", error.message,
			    format_count(counts[0], run->capacity.tokens), format_count(counts[1], tokens));
		TRY(write_settings(run));
	}
}

/* A scheduler's SIGUSR1 while text is still being prepared: there is nothing to save, but the job is to be run again all
 * the same. */
static void stop_before_training(int number)
{
	static const char text[] = "\nbertc: stopped before the first step\nhint: run the same command again to go on\n";
	(void)number;
	ssize_t written = write(2, text, sizeof(text) - 1);
	(void)written; /* there may be nobody to tell */
	_exit(STOPPED);
}

static enum status pretrain(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	if (settings->max_time) {
		double seconds;
		TRY(duration_parse(settings->max_time, &seconds));
		stop_deadline(clock_seconds() + seconds);
	}
	if (pretrain_unset(run->options, "device"))
		TRY(pretrain_choose(run->options, "device", "%s", backend_best_device()));
	if (settings->allreduce_post_accumulation_fp16 && settings->allreduce_post_accumulation_bf16)
		return error_set(ERR_USAGE, "--allreduce_post_accumulation_fp16 and --allreduce_post_accumulation_bf16 exclude "
					    "each other");
	TRY(pretrain_open_ranks(run));
	TRY(pretrain_open_folder(run));
	TRY(pretrain_open_phases(run));
	TRY(device_open(&settings->device, &run->pool, &run->backend));
	TRY(ranks_use_device(run->comm, run->backend));
	if (pretrain_unset(run->options, "precision") && run->backend->dtype != DTYPE_F64)
		TRY(pretrain_choose(run->options, "precision", "%s",
				    run->backend->dtype == DTYPE_BF16  ? "bf16"
				    : run->backend->dtype == DTYPE_F16 ? "fp16"
								       : "fp32"));
	/* Gradients of fp16 vanish without a scale that follows them. */
	if (options_origin(run->options, "loss_scale") == ORIGIN_DEFAULT && run->backend->dtype == DTYPE_F16)
		TRY(pretrain_choose(run->options, "loss_scale", "0"));
	TRY(pretrain_open_data(run));
	if (pretrain_unset(run->options, "vocab_size"))
		TRY(pretrain_choose(run->options, "vocab_size", "%d", run->data.vocab.count));
	TRY(pretrain_choose_model(run));
	TRY(pretrain_choose_optimizer(run));
	for (int64_t i = 0; i < run->phase_count; i++) {
		pretrain_set_instances(run, &run->phases[i]);
		TRY(pretrain_choose_training(run, &run->phases[i]));
	}
	TRY(model_create(&run->model, run->backend, &run->config, &model_heads_pretraining));
	TRY(pretrain_choose_shapes(run));
	TRY(pretrain_show_plan(run));
	if (settings->plan)
		return OK;
	TRY(write_settings(run));
	TRY(note_resumption(run));
	TRY(pretrain_measure_rate(run));
	TRY(find_room(run));
	TRY(pretrain_load_weights(run));
	stop_install();
	enum status status = start_training(run);
	if (status == STOPPED) {
		const char *reason = stop_reason();
		status = error_set(STOPPED, "stopped at step %" PRId64 " of %" PRId64 "%s%s, saved", run->training.state.step,
				   run->training.report.total_steps, reason ? " by " : "", reason ? reason : "");
		error_hint("run the same command again to go on");
		return status;
	}
	TRY(status);
	ranks_section(run->comm, "saving the finished model", run->training.state.step);
	if (is_first_rank(run->comm))
		status = shard_check_wait(run->data.check);
	if (is_first_rank(run->comm) && status == OK)
		status = checkpoint_save_final(&run->training.checkpoints, run->model, run->training.state.step);
	TRY(ranks_agree(run->comm, status));
	log_note("finished: the model is in %s/final", settings->out);
	return OK;
}

static void pretrain_release(struct pretrain *run)
{
	close_phase(run);
	samples_release(&run->samples);
	pretrain_release_memory(run);
	pretrain_close_phases(run);
	free(run->schedules);
	run_data_close(&run->data);
	vocab_release(&run->initial.vocab);
	if (run->backend)
		backend_close(run->backend);
	pool_free(run->pool);
	json_release(&run->record);
	buffer_release(&run->record_text);
	comm_close(run->comm);
	if (run->lock >= 0)
		folder_unlock(run->lock);
}

static enum status run_pretrain(struct options *options)
{
	struct pretrain run = {.options = options, .settings = options->settings, .lock = -1, .open_phase = -1};
	bool launches;
	signal(SIGUSR1, stop_before_training); /* until stop_install(), or the launcher */
	enum status status = pretrain_find_ranks(&run, &launches);
	if (status == OK)
		status = launches ? pretrain_launch(&run) : pretrain(&run);
	comm_fail(run.comm, status);
	struct error error = *error_last();
	if (status != OK)
		pretrain_leave_folder(&run);
	pretrain_release(&run);
	return status == OK ? OK : error_restore(&error);
}

const struct command command_pretrain = {
	.text = &pretrain_text,
	.options = pretrain_options,
	.foreign = pretrain_foreign,
	.settings_bytes = sizeof(struct pretrain_settings),
	.run = run_pretrain,
};
