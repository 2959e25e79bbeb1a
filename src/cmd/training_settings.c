#include "cmd/training_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/foreign_rows.h"
#include "run/phases.h"
#include "tasks/set_list.h"

/* True if the option was not set and has no default. */
static bool is_open(const struct options *options, const char *name)
{
	return options->text[options_find(options, name)] == NULL;
}

static int flag(const struct options *options, const char *name, bool value)
{
	return is_open(options, name) ? -1 : value;
}

static int64_t integer(const struct options *options, const char *name, int64_t value)
{
	return is_open(options, name) ? -1 : value;
}

double training_number(const struct options *options, const char *name, double value)
{
	return is_open(options, name) ? -1 : value;
}

struct machine_settings training_machine(const struct training_settings *settings)
{
	return (struct machine_settings){
		.ranks = settings->ranks,
		.n_gpus = settings->n_gpus,
		.replicas = settings->replicas_per_gpu,
		.max_restarts = settings->max_restarts,
		.watchdog_seconds = settings->watchdog_seconds,
		.device = settings->device,
	};
}

static struct recipe recipe_of(const struct options *options, const struct training_settings *settings)
{
	return (struct recipe){
		.optimizer = settings->optimizer,
		.weight_decay = settings->weight_decay,
		.max_grad_norm = settings->max_grad_norm,
		.beta1 = settings->adam_beta1,
		.beta2 = settings->adam_beta2,
		.epsilon = settings->adam_epsilon,
		.bias_correction = flag(options, "bias_correction", settings->bias_correction),
		.undecayed = settings->exclude_from_weight_decay,
		.trust_ratio = settings->trust_ratio,
		.max_trust_ratio = training_number(options, "max_trust_ratio", settings->max_trust_ratio),
		.unadapted = settings->exclude_from_layer_adaptation,
		.gradient_normalization = settings->gradient_normalization,
		.gradient_averaging = flag(options, "gradient_averaging", settings->gradient_averaging),
	};
}

struct run_settings training_run(const struct options *options, const struct training_settings *settings)
{
	bool scale_is_open = options_origin(options, "loss_scale") == ORIGIN_DEFAULT;
	return (struct run_settings){
		.folder =
			{
				.out = settings->out,
				.fresh = settings->fresh,
				.plan = settings->plan,
				.resume_from = settings->resume_from,
				.resume_step = settings->resume_step,
				.options = options,
			},
		.max_time = settings->max_time,
		.seed = (uint64_t)settings->seed,
		.recipe = recipe_of(options, settings),
		.stop_at_step = settings->stop_at_step,
		.steps_this_run = settings->steps_this_run,
		.keep_checkpoints = settings->keep_checkpoints,
		.save_best = settings->save_best,
		.best_by = settings->best_by,
		.reduce_every_batch = !settings->allreduce_post_accumulation,
		.wire_fp16 = settings->allreduce_post_accumulation_fp16,
		.wire_bf16 = settings->allreduce_post_accumulation_bf16,
		.check_weights_steps = settings->check_weights_steps,
		.skip_spikes = settings->skip_spikes,
		.loss_scale = scale_is_open ? -1 : settings->loss_scale,
		.init_loss_scale = settings->init_loss_scale,
	};
}

struct phase_settings training_phase(const struct options *phase, const struct training_settings *settings)
{
	return (struct phase_settings){
		.num_train_steps = settings->num_train_steps,
		.num_train_epochs = settings->num_train_epochs,
		.patience = settings->early_stopping_patience,
		.patience_margin = settings->early_stopping_threshold,
		.train_batch_size = settings->train_batch_size,
		.train_batch_size_per_gpu = settings->train_batch_size_per_gpu,
		.gradient_accumulation_steps = settings->gradient_accumulation_steps,
		.micro_batch_tokens = settings->micro_batch_tokens,
		.save_steps = integer(phase, "save_checkpoints_steps", settings->save_checkpoints_steps),
		.eval_steps = integer(phase, "eval_steps", settings->eval_steps),
		.log_steps = settings->log_steps,
		.max_seq_length = settings->max_seq_length,
		.rate =
			{
				.learning_rate = training_number(phase, "learning_rate", settings->learning_rate),
				.min_learning_rate = settings->min_learning_rate,
				.scale = settings->scale_learning_rate,
				.scale_batch_size = settings->learning_rate_batch_size,
				.schedule = settings->schedule,
				.poly_degree = training_number(phase, "poly_degree", settings->poly_degree),
				.warmup_proportion = training_number(phase, "warmup_proportion", settings->warmup_proportion),
				.decay_steps = settings->num_decay_steps,
				.min_warmup_steps = settings->min_warmup_steps,
				.warmup_steps = integer(phase, "num_warmup_steps", settings->num_warmup_steps),
			},
	};
}

/* Pairs of options that are two ways to say the same thing. */
static const struct {
	const char *one, *other;
} alternatives[] = {
	{"num_train_steps", "num_train_epochs"},
	{"train_batch_size", "train_batch_size_per_gpu"},
	{"train_batch_size_per_gpu", "per_device_train_batch_size"},
	{"num_warmup_steps", "warmup_proportion"},
};
/* In transformers, an update consists of gradient_accumulation_steps micro-batches per device. Megatron-LM's micro_batch_size
 * accompanies the global batch and only divides it, which bertc does by the number of tokens. */
static enum status settle_micro_batches(struct options *phase)
{
	const char *name = "per_device_train_batch_size";
	char text[32];
	struct buffer scratch = {0};
	if (!options_given(phase, name))
		return OK;
	int64_t size = strtoll(options_value(phase, name, &scratch), NULL, 10);
	int64_t accumulation = strtoll(options_value(phase, "gradient_accumulation_steps", &scratch), NULL, 10);
	enum option_origin origin = options_origin(phase, name);
	buffer_release(&scratch);
	options_forget(phase, name);
	if (options_given(phase, "train_batch_size") && options_origin(phase, "train_batch_size") >= origin) {
		log_warning("--%s is ignored: --train_batch_size is the batch, which bertc cuts by its tokens", name);
		return OK;
	}
	snprintf(text, sizeof text, "%lld", (long long)(size * (accumulation > 0 ? accumulation : 1)));
	return options_set(phase, "train_batch_size_per_gpu", text, origin);
}

/* NVIDIA's scripts are started once for each GPU, and their train_batch_size is that of the process: with PyTorch the batch of an
 * update, which the script divides by the accumulation steps; with TensorFlow (Horovod) a micro-batch. */
static enum status settle_foreign_batch(struct options *phase)
{
	const char *name = "train_batch_size", *per_gpu = "train_batch_size_per_gpu", *program = phase->foreign_program;
	const char *shown_by = phase->foreign_name;
	struct buffer scratch = {0};
	char text[32];
	if (!program || options_origin(phase, name) != ORIGIN_COMMAND || options_given(phase, per_gpu) ||
	    options_given(phase, "per_device_train_batch_size"))
		return OK;
	int64_t size = strtoll(options_value(phase, name, &scratch), NULL, 10);
	int64_t accumulation = strtoll(options_value(phase, "gradient_accumulation_steps", &scratch), NULL, 10);
	buffer_release(&scratch);
	if (strcmp(program, NVIDIA_TENSORFLOW) == 0 && accumulation > 1)
		size *= accumulation;
	snprintf(text, sizeof text, "%lld", (long long)size);
	log_warning("--%s means --%s %s here: --%s is an option of %s, whose batch is that of one GPU", name, per_gpu, text,
		    shown_by, program);
	options_forget(phase, name);
	return options_set(phase, per_gpu, text, ORIGIN_COMMAND);
}

#define ALTERNATIVES (sizeof alternatives / sizeof *alternatives)

/* Was it set by the user or by a recipe? What a record says was settled when the run started. */
static bool is_said(const struct options *options, const char *name)
{
	enum option_origin origin = options_origin(options, name);
	return origin == ORIGIN_RECIPE || origin >= ORIGIN_FILE;
}

static enum status check_alternative(const struct options *options, const char *one, const char *other)
{
	bool both = is_said(options, one) && is_said(options, other);
	if (both && options_origin(options, one) == options_origin(options, other))
		return error_set(ERR_USAGE, "give either --%s or --%s, not both", one, other);
	return OK;
}

enum status training_check(struct options *options)
{
	TRY(options_require(options, "out", "give the run folder: --out FOLDER"));
	for (size_t i = 0; i < ALTERNATIVES; i++)
		TRY(options_blame(options, check_alternative(options, alternatives[i].one, alternatives[i].other)));
	return OK;
}

enum status training_settle(struct options *phase)
{
	TRY(settle_foreign_batch(phase));
	TRY(settle_micro_batches(phase));
	for (size_t i = 0; i < ALTERNATIVES; i++) {
		const char *one = alternatives[i].one, *other = alternatives[i].other;
		TRY(check_alternative(phase, one, other));
		if (is_said(phase, one) && is_said(phase, other))
			options_forget(phase, options_origin(phase, one) < options_origin(phase, other) ? one : other);
	}
	return OK;
}

enum status training_note_finished(struct options *options, const struct run_start *start, const char *folder,
				   const char *model_option)
{
	char model[PATH_BYTES];
	struct buffer hint = {0};
	if (!start->resumed || !start->own)
		return OK;
	TRY(path_join(model, folder, "final"));
	if (!file_is_folder(model))
		return OK;
	buffer_format(&hint, "to train its model further, give --%s %s and another --out; to start over, give --fresh",
		      model_option, folder);
	enum status status = buffer_status(&hint);
	if (status == OK)
		status = options_note_finished(options, buffer_string(&hint));
	buffer_release(&hint);
	return status;
}

enum status training_note_edits(const struct options *options, const struct run_start *start, const char *folder)
{
	char path[PATH_BYTES];
	struct json_document shown;
	const struct json *record = phases_record(start);
	if (!start->resumed || !start->own || start->begins_phase || options->silent)
		return OK;
	TRY(path_join(path, folder, "settings.json"));
	if (!file_exists(path))
		return OK;
	if (json_read(&shown, path, (size_t)16 << 20) != OK) {
		log_warning("%s; it is now written again", error_last()->message);
		return OK;
	}
	enum status status = options_note_edits(options, record, shown.root, path);
	bool listed = json_member(record, "phases") && json_member(shown.root, "phases");
	for (int64_t i = 0; listed && status == OK && i < phases_recorded(record) && i < phases_recorded(shown.root); i++)
		status = options_note_edits(options, phases_recorded_at(record, i), phases_recorded_at(shown.root, i), path);
	json_release(&shown);
	return status;
}

/* The existing files of a list; whoever reads the files reports what is wrong with the list. */
static void expand(const struct options *options, const char *name, struct name_list *out)
{
	const char *fields = options->settings;
	const struct option_list *list = (const void *)(fields + options->table[options_find(options, name)].field);
	for (int64_t i = 0; i < list->count; i++) {
		const char *path = set_path(list->values[i]);
		if (strcmp(path, "-") != 0 && path_expand(path, out) != OK)
			return;
	}
}

void training_note_shared(const struct options *options, const char *train, const char *other)
{
	struct name_list trained = {0}, scored = {0};
	if (options->silent)
		return;
	expand(options, train, &trained);
	expand(options, other, &scored);
	for (int64_t i = 0; i < scored.count; i++) {
		struct file_stamp file = file_stamp_at(scored.names[i]);
		for (int64_t k = 0; k < trained.count; k++) {
			struct file_stamp own = file_stamp_at(trained.names[k]);
			if (!file_stamp_is_same_file(&own, &file))
				continue;
			log_warning("--%s '%s' is also one of the files of --%s: scores on it say nothing about other texts",
				    other, scored.names[i], train);
			break;
		}
	}
	name_list_release(&trained);
	name_list_release(&scored);
}
