/* What `bertc pretrain` chooses where the user left it open: model, batch, length of the run, rate. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"
#include "cmd/pretrain.h"
#include "weights/model_folder.h"

enum status pretrain_choose(struct options *options, const char *name, const char *format, ...)
{
	char text[64];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return options_set(options, name, text, ORIGIN_CHOSEN);
}

bool pretrain_unset(const struct options *options, const char *name)
{
	return options->text[options_find(options, name)] == NULL;
}

static int32_t larger(int32_t a, int32_t b)
{
	return a > b ? a : b;
}

int32_t pretrain_longest_evaluated(const struct pretrain *run)
{
	int32_t longest = 0;
	for (int64_t i = 0; i < run->data.evaluation_count; i++)
		for (int64_t k = 0; k < run->data.evaluation[i].file_count; k++)
			longest = larger(longest, run->data.evaluation[i].files[k].summary.max_length);
	return longest;
}

/* Static instances are as long as they are: the longest one is the sequence length. */
static enum status fit_static_length(struct pretrain *run, struct pretrain_phase *phase)
{
	int32_t longest = 0;
	for (int64_t i = 0; i < phase->file_count; i++)
		longest = larger(longest, phase->files[i].summary.max_length);
	if (run->phase_count == 1)
		longest = larger(longest, pretrain_longest_evaluated(run));
	bool chosen = options_origin(phase->options, "max_seq_length") == ORIGIN_DEFAULT;
	if (phase->file_count > 0 && chosen)
		return pretrain_choose(phase->options, "max_seq_length", "%d", longest < 8 ? 8 : longest);
	if (longest <= phase->settings->max_seq_length)
		return OK;
	enum status status = error_set(ERR_USAGE, "a static instance has %d tokens, more than --max_seq_length %" PRId64, longest,
				       phase->settings->max_seq_length);
	error_hint("static instances are used as they are: leave --max_seq_length out, or raise it");
	return status;
}

enum status pretrain_check_length(const struct pretrain *run, int64_t length, const struct model_config *config)
{
	if (length <= config->max_position_embeddings)
		return OK;
	enum status status = error_set(ERR_USAGE, "--max_seq_length %" PRId64 " is beyond the model's %d positions", length,
				       config->max_position_embeddings);
	error_hint(run->initial.path ? "lower it, or say where more positions come from: --init_positions tile|draw"
				     : "lower it, or raise max_position_embeddings in config.json");
	return status;
}

/* The model's shape: given, or chosen from the amount of text (about 20 tokens of text a parameter would be
 * ideal; the steps below are what a few hours on the machine at hand can use). */
enum status pretrain_choose_model(struct pretrain *run)
{
	struct pretrain_settings *settings = run->settings;
	int64_t tokens = pretrain_train_tokens(run);
	if (pretrain_unset(run->options, "model") && run->initial.path)
		TRY(options_set(run->options, "model", run->initial.path, ORIGIN_CHOSEN));
	if (pretrain_unset(run->options, "model"))
		TRY(pretrain_choose(run->options, "model", "%s",
				    tokens < 1000000     ? "tiny"
				    : tokens < 20000000  ? "mini"
				    : tokens < 300000000 ? "small"
							 : "base"));
	struct model_config *config = &run->config;
	/* A checkpoint has all of it: what --model named may have moved or changed since. */
	TRY(model_folder_config(run->resumed ? run->checkpoint : settings->model, config));
	TRY(pretrain_initial_config(run, config));
	if (config->vocab_size == 0)
		config->vocab_size = run->data.vocab.count;
	if (config->vocab_size < run->data.vocab.count) {
		enum status status = error_set(ERR_STATE, "'%s' has vocab_size %d, the vocabulary has %d entries",
					       settings->model, config->vocab_size, run->data.vocab.count);
		error_hint("give the --vocab_file that belongs to this model");
		return status;
	}
	if (pretrain_unset(run->options, "hidden_dropout_prob"))
		TRY(pretrain_choose(run->options, "hidden_dropout_prob", "%g", config->hidden_dropout_prob));
	if (pretrain_unset(run->options, "attention_probs_dropout_prob"))
		TRY(pretrain_choose(run->options, "attention_probs_dropout_prob", "%g", config->attention_probs_dropout_prob));
	config->hidden_dropout_prob = settings->hidden_dropout_prob;
	config->attention_probs_dropout_prob = settings->attention_probs_dropout_prob;
	for (int64_t i = 0; i < run->phase_count; i++) {
		TRY(fit_static_length(run, &run->phases[i]));
		int64_t length = larger((int32_t)run->phases[i].settings->max_seq_length, pretrain_longest_evaluated(run));
		TRY(pretrain_check_length(run, length, config));
	}
	return OK;
}

/* Instances whose lengths stand for all. */
#define LENGTH_SAMPLES 65536

/* Steps that --num_train_tokens will take, by the mean length of instances; a little more, for the end is where the
 * tokens are. */
static enum status steps_for_tokens(struct pretrain_phase *phase, double *out)
{
	double mean;
	TRY(instances_mean_length(phase->instances, LENGTH_SAMPLES, &mean));
	const struct pretrain_settings *settings = phase->settings;
	*out = ceil(1.01 * (double)settings->num_train_tokens / (mean * (double)settings->train_batch_size));
	return OK;
}

/* The phase's length in steps, where it was given in passes over the text, or in tokens, or not at all. */
static enum status choose_steps(struct pretrain *run, struct pretrain_phase *phase)
{
	struct options *options = phase->options;
	const struct pretrain_settings *settings = phase->settings;
	int64_t tokens = pretrain_train_tokens(run);
	double steps;
	TRY(pretrain_open_instances(run, phase));
	int64_t an_epoch = instances_per_epoch(phase->instances);
	if (an_epoch == 0) {
		enum status status = error_set(ERR_DATA, "the training text gives no instance");
		error_hint("its documents are too short; give more text");
		return status;
	}
	if (!pretrain_unset(options, "num_train_steps"))
		return OK;
	/* Hardly what was meant (a list of names, a header alone), unless so many steps are asked for. */
	if (phase->file_count == 0 && tokens < settings->max_seq_length) {
		enum status status =
			error_set(ERR_DATA, "the training text has %" PRId64 " tokens: less than one sequence of %" PRId64,
				  tokens, settings->max_seq_length);
		error_hint("is it the file you meant? Give more text, or a smaller --max_seq_length");
		return status;
	}
	if (!pretrain_unset(options, "num_train_tokens")) {
		TRY(steps_for_tokens(phase, &steps));
	} else {
		if (pretrain_unset(options, "num_train_epochs"))
			TRY(pretrain_choose(options, "num_train_epochs", "%d",
					    tokens < 5000000     ? 40
					    : tokens < 50000000  ? 20
					    : tokens < 500000000 ? 10
								 : 4));
		steps = ceil(settings->num_train_epochs * (double)an_epoch / (double)settings->train_batch_size);
	}
	if (!(steps < 1e15))
		return error_set(ERR_USAGE, "the run would have %.3g steps", steps);
	return pretrain_choose(options, "num_train_steps", "%.0f", steps < 1 ? 1 : steps);
}

/* A device's instances times the devices. A resumed run keeps its batch, on however many devices it goes on. */
static enum status choose_batch_size(struct pretrain *run, struct pretrain_phase *phase)
{
	struct options *options = phase->options;
	const struct pretrain_settings *settings = phase->settings;
	int64_t parts = run->ranks * run->settings->replicas_per_gpu;
	if (pretrain_unset(options, "train_batch_size_per_gpu"))
		return OK;
	int64_t all = settings->train_batch_size_per_gpu * parts;
	if (pretrain_unset(options, "train_batch_size"))
		return pretrain_choose(options, "train_batch_size", "%" PRId64, all);
	if (settings->train_batch_size != all)
		log_note("batch: %" PRId64 " instances an update, as this run began, not %" PRId64
			 " (--train_batch_size_per_gpu %" PRId64 " times %" PRId64 ")",
			 settings->train_batch_size, all, settings->train_batch_size_per_gpu, parts);
	return OK;
}

/* Batch, length, rate: what fits this model and this amount of text, where the user left it open. */
enum status pretrain_choose_training(struct pretrain *run, struct pretrain_phase *phase)
{
	struct options *options = phase->options;
	const struct pretrain_settings *settings = phase->settings;
	int64_t hidden = run->config.hidden_size;
	TRY(choose_batch_size(run, phase));
	if (pretrain_unset(options, "train_batch_size"))
		TRY(pretrain_choose(options, "train_batch_size", "%d", hidden < 512 ? 64 : hidden < 768 ? 128 : 256));
	/* A resumed run knows its length; what it reads is walked when it is read. */
	if (!run->resumed || pretrain_unset(options, "num_train_steps"))
		TRY(choose_steps(run, phase));
	int64_t steps = settings->num_train_steps, twentieth = steps / 20 > 0 ? steps / 20 : 1;
	if (pretrain_unset(options, "save_checkpoints_steps"))
		TRY(pretrain_choose(options, "save_checkpoints_steps", "%" PRId64, twentieth < 5000 ? twentieth : 5000));
	if (pretrain_unset(options, "eval_steps"))
		TRY(pretrain_choose(options, "eval_steps", "%" PRId64, twentieth < 5000 ? twentieth : 5000));
	return pretrain_choose_schedule(run, phase);
}
