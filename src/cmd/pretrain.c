/* bertc pretrain: raw text to a trained model folder. Builds everything the loop borrows, in the order of the data
 * flow: folder, settings of a resumed run, vocabulary and shards, model, plan, weights, loop. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/log.h"
#include "base/stop.h"
#include "cmd/pretrain.h"
#include "train/plan.h"

/* Shows what will be done, before hour one. */
static enum status show_plan(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	struct buffer text = {0};
	TRY(model_create(&run->model, run->backend, &run->config, HEADS_PRETRAINING));
	int64_t batches = run->steps.accumulation_steps > 0
				  ? run->steps.accumulation_steps
				  : (settings->train_batch_size * settings->max_seq_length + run->steps.capacity.tokens - 1) /
					    run->steps.capacity.tokens;
	struct memory_plan plan = plan_training(run->model, &run->limits, settings->train_batch_size,
						(int32_t)settings->max_seq_length, batches);
	options_settings_table(run->options, SCOPE_ALL, log_has_colour(), &text);
	buffer_char(&text, '\n');
	plan_print(&plan, run->model, &run->limits, &text);
	enum status status = buffer_status(&text);
	if (status == OK) {
		log_note("%s", buffer_string(&text));
		log_note("device: %s", run->backend->description);
	}
	buffer_release(&text);
	TRY(status);
	return plan_check(&plan);
}

static enum status write_settings(struct pretrain *run)
{
	char path[PATH_BYTES];
	struct json_writer writer = {.out = &run->record_text, .indent = 2};
	options_write_json(run->options, &writer, NULL, SCOPE_ALL);
	TRY(buffer_status(&run->record_text));
	TRY(path_join(path, run->settings->out, "settings.json"));
	return file_write(path, run->record_text.data, run->record_text.size);
}

/* Says where the run goes on, and whether it can do so bit for bit. */
static enum status note_resumption(struct pretrain *run)
{
	const char *before = NULL;
	snprintf(run->computed_on, sizeof(run->computed_on), "bertc " VERSION ", %s", run->backend->numerics);
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
	return instances_locate(run->train_instances, state->samples, &state->epoch, &state->epoch_first_sample);
}

static enum status open_phase(void *context, const struct train_state *state, struct objective **out)
{
	struct pretrain *run = context;
	const struct pretrain_settings *settings = run->settings;
	run->steps.first_step = state->step + 1;
	run->evaluation_set = (struct evaluation_set){.instances = run->held_out_instances};
	TRY(pretraining_create(&run->objective, &(struct pretraining_settings){
							.model = run->model,
							.activations = run->activations,
							.train = run->train_instances,
							.steps = run->steps,
							.evaluation_sets = &run->evaluation_set,
							.evaluation_count = run->held_out_instances != NULL,
							.evaluation_instances = settings->eval_instances,
							.evaluation_capacity = run->evaluation_capacity,
						}));
	*out = run->objective;
	return OK;
}

static enum status start_training(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	struct training *training = &run->training;
	double (*gemm_rate)(struct backend *) = run->backend->functions->gemm_rate;
	training->settings = (struct loop_settings){
		.seed = (uint64_t)settings->seed,
		.stop_at_step = settings->stop_at_step,
		.save_best = settings->save_best,
	};
	training->guard = (struct guard_settings){
		.skip_spikes = settings->skip_spikes,
		.dynamic = settings->loss_scale == 0,
		.loss_scale = settings->loss_scale == 0 ? settings->init_loss_scale : settings->loss_scale,
	};
	training->saved_step = run->resumed && run->own_checkpoint ? training->state.step : -1;
	run->phase = (struct phase){
		.schedule = pretrain_schedule(settings),
		.steps = settings->num_train_steps,
		.save_steps = settings->save_checkpoints_steps,
		.eval_steps = settings->eval_steps,
		.log_steps = settings->log_steps,
	};
	training->phases = &run->phase;
	training->phase_count = 1;
	training->model = run->model;
	training->replica = &run->replica;
	training->optimizer = run->optimizer;
	training->checkpoints = (struct checkpoint_context){
		.folder = settings->out,
		.vocab = &run->data.vocab,
		.tokenizer = &run->data.tokenizer,
		.max_seq_length = run->config.max_position_embeddings,
		.data_hash = run->data.hash,
		.settings_json = buffer_string(&run->record_text),
		.computed_on = run->computed_on,
		.resumed_from = run->resumed_from[0] ? run->resumed_from : NULL,
		.keep = settings->keep_checkpoints,
	};
	training->report = (struct report){
		.metrics_path = run->metrics_path,
		.gemm_rate = gemm_rate ? gemm_rate(run->backend) : 0.0,
	};
	training->open_phase = open_phase;
	training->locate = locate;
	training->context = run;
	return train(training);
}

static enum status pretrain(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	if (settings->max_time) {
		double seconds;
		TRY(duration_parse(settings->max_time, &seconds));
		stop_deadline(clock_seconds() + seconds);
	}
	TRY(pretrain_open_folder(run));
	TRY(device_open(&settings->device, &run->pool, &run->backend));
	if (pretrain_unset(run->options, "precision") && run->backend->dtype != DTYPE_F64)
		TRY(pretrain_choose(run->options, "precision", "%s", run->backend->dtype == DTYPE_BF16 ? "bf16" : "fp32"));
	TRY(pretrain_open_data(run));
	if (pretrain_unset(run->options, "vocab_size"))
		TRY(pretrain_choose(run->options, "vocab_size", "%d", run->data.vocab.count));
	TRY(pretrain_choose_model(run));
	TRY(pretrain_open_instances(run));
	TRY(pretrain_choose_training(run));
	pretrain_choose_shapes(run);
	TRY(show_plan(run));
	if (settings->plan)
		return OK;
	TRY(write_settings(run));
	TRY(note_resumption(run));
	TRY(pretrain_open_model(run));
	stop_install();
	enum status status = start_training(run);
	if (status == STOPPED) {
		const char *reason = stop_reason();
		status = error_set(STOPPED, "stopped at step %" PRId64 " of %" PRId64 "%s%s, saved",
				   run->training.state.step, settings->num_train_steps, reason ? " by " : "",
				   reason ? reason : "");
		error_hint("run the same command again to go on");
		return status;
	}
	TRY(status);
	TRY(checkpoint_save_final(&run->training.checkpoints, run->model, run->training.state.step));
	log_note("finished: the model is in %s/final", settings->out);
	return OK;
}

static void pretrain_release(struct pretrain *run)
{
	if (run->objective)
		run->objective->close(run->objective);
	optimizer_free(run->optimizer);
	activations_free(run->activations);
	if (run->replica.backend)
		run->backend->functions->replica_release(&run->replica);
	model_free(run->model);
	instances_close(run->train_instances);
	instances_close(run->held_out_instances);
	run_data_close(&run->data);
	if (run->backend)
		backend_close(run->backend);
	pool_free(run->pool);
	json_release(&run->record);
	buffer_release(&run->record_text);
	if (run->lock >= 0)
		folder_unlock(run->lock);
}

static enum status run_pretrain(struct options *options)
{
	struct pretrain run = {.options = options, .settings = options->settings, .lock = -1};
	enum status status = pretrain(&run);
	pretrain_release(&run);
	return status;
}

const struct command command_pretrain = {
	.text = &pretrain_text,
	.options = pretrain_options,
	.settings_bytes = sizeof(struct pretrain_settings),
	.run = run_pretrain,
};
