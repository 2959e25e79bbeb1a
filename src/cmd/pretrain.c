/* bertc pretrain: raw text to a trained model folder. Builds everything the loop borrows, in the order of the data
 * flow: folder, settings of a resumed run, vocabulary and shards, model, plan, weights, loop. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "cmd/command.h"
#include "cmd/session.h"
#include "cmd/text_options.h"
#include "train/loop.h"
#include "train/model_folder.h"
#include "train/plan.h"
#include "train/pretraining.h"
#include "train/run_data.h"

struct pretrain_settings {
	/* text */
	struct option_list corpus, data, eval_corpus, eval_data;
	const char *text_form, *vocab_file;
	int64_t vocab_size, min_frequency;
	bool cased;
	double held_out_fraction;
	/* model */
	const char *model, *init_checkpoint;
	double hidden_dropout_prob, attention_probs_dropout_prob;
	/* run */
	const char *out;
	bool fresh, plan;
	int64_t num_train_steps, train_batch_size, gradient_accumulation_steps, micro_batch_tokens, stop_at_step;
	double num_train_epochs;
	int64_t save_checkpoints_steps, keep_checkpoints, eval_steps, eval_instances, log_steps, seed;
	/* instances */
	int64_t max_seq_length, max_predictions_per_seq;
	double masked_lm_prob, short_seq_prob;
	bool whole_word_mask, shuffle;
	const char *next_sentence;
	/* optimiser */
	const char *optimizer, *schedule;
	double learning_rate, weight_decay, max_grad_norm, adam_beta1, adam_beta2, adam_epsilon;
	int64_t num_warmup_steps;
	struct device_settings device;
};

#define FIELD(name) offsetof(struct pretrain_settings, name)

static const struct option pretrain_options[] = {
	{.help = "Text"},
	CORPUS_OPTION(FIELD(corpus), "text to train on"),
	{.name = "data", .type = OPTION_LIST, .field = FIELD(data), .role = ROLE_PLACE, .value_name = "PREFIX...",
	 .help = "token shards of `bertc prepare` instead of text"},
	TEXT_FORM_OPTION(FIELD(text_form)),
	{.name = "held_out_fraction", .type = OPTION_NUMBER, .field = FIELD(held_out_fraction), .fallback = "0.01",
	 .range = "0..0.5", .role = ROLE_RESULT, .value_name = "X",
	 .help = "share of documents kept out of training and evaluated, chosen by content"},
	{.name = "eval_corpus", .type = OPTION_LIST, .field = FIELD(eval_corpus), .role = ROLE_PLACE,
	 .value_name = "PATH...", .help = "text to evaluate on instead of held-out documents"},
	{.name = "eval_data", .type = OPTION_LIST, .field = FIELD(eval_data), .role = ROLE_PLACE,
	 .value_name = "PREFIX...", .help = "token shards to evaluate on"},
	{.name = "vocab_file", .type = OPTION_TEXT, .field = FIELD(vocab_file), .role = ROLE_PLACE,
	 .value_name = "PATH", .fallback_text = "the model folder's, or learned from the corpus",
	 .help = "vocabulary, one WordPiece a line"},
	{.name = "vocab_size", .type = OPTION_INTEGER, .field = FIELD(vocab_size), .range = "0..1000000",
	 .role = ROLE_PLACE, .value_name = "N", .fallback_text = "from the amount of text",
	 .help = "entries of the vocabulary to learn"},
	{.name = "min_frequency", .type = OPTION_INTEGER, .field = FIELD(min_frequency), .fallback = "2",
	 .range = "1..", .role = ROLE_PLACE, .value_name = "N",
	 .help = "merges seen less often than this are not learned"},
	{.name = "cased", .type = OPTION_FLAG, .field = FIELD(cased), .fallback = "false", .role = ROLE_RESULT,
	 .help = "keep upper case and accents, where no tokenizer_config.json beside the vocabulary says"},

	{.help = "Model"},
	{.name = "model", .type = OPTION_TEXT, .field = FIELD(model), .role = ROLE_RESULT, .value_name = "WHAT",
	 .alias = "bert_config_file config_file", .fallback_text = "from the amount of text",
	 .help = "tiny, mini, small, medium, base, large, a config.json, or a model folder to go on from"},
	{.name = "init_checkpoint", .type = OPTION_TEXT, .field = FIELD(init_checkpoint), .role = ROLE_PLACE,
	 .value_name = "FOLDER", .help = "weights to begin with: a model folder"},
	{.name = "hidden_dropout_prob", .type = OPTION_NUMBER, .field = FIELD(hidden_dropout_prob),
	 .range = "0..0.9", .role = ROLE_RESULT, .value_name = "P", .fallback_text = "the configuration's",
	 .help = "dropout after embeddings and both sub-layers"},
	{.name = "attention_probs_dropout_prob", .type = OPTION_NUMBER, .field = FIELD(attention_probs_dropout_prob),
	 .range = "0..0.9", .role = ROLE_RESULT, .value_name = "P", .fallback_text = "the configuration's",
	 .help = "dropout on attention probabilities"},

	{.help = "Run"},
	{.name = "out", .letter = 'o', .type = OPTION_TEXT, .field = FIELD(out), .role = ROLE_PLACE,
	 .value_name = "FOLDER", .alias = "output_dir",
	 .help = "run folder: checkpoints, metrics, the finished model; run again, it goes on where it was"},
	{.name = "fresh", .type = OPTION_FLAG, .field = FIELD(fresh), .fallback = "false", .role = ROLE_PLACE,
	 .help = "remove what an earlier run left in the folder and begin again"},
	{.name = "plan", .type = OPTION_FLAG, .field = FIELD(plan), .fallback = "false", .role = ROLE_PLACE,
	 .alias = "dry_run", .help = "print settings and memory plan, then stop"},
	{.name = "num_train_steps", .type = OPTION_INTEGER, .field = FIELD(num_train_steps), .range = "1..",
	 .role = ROLE_RESULT, .value_name = "N", .alias = "max_steps", .fallback_text = "from num_train_epochs",
	 .help = "optimiser updates"},
	{.name = "num_train_epochs", .type = OPTION_NUMBER, .field = FIELD(num_train_epochs), .range = "0.001..",
	 .role = ROLE_RESULT, .value_name = "X", .fallback_text = "from the amount of text",
	 .help = "passes over the text, instead of steps"},
	{.name = "train_batch_size", .type = OPTION_INTEGER, .field = FIELD(train_batch_size), .range = "1..1048576",
	 .role = ROLE_RESULT, .value_name = "N", .alias = "global_batch_size", .fallback_text = "from the model",
	 .help = "instances an update, accumulation included"},
	{.name = "gradient_accumulation_steps", .type = OPTION_INTEGER, .field = FIELD(gradient_accumulation_steps),
	 .range = "0..65536", .fallback = "0", .role = ROLE_RESULT, .value_name = "N",
	 .help = "micro-batches an update; 0 = as few as micro_batch_tokens allows"},
	{.name = "micro_batch_tokens", .type = OPTION_INTEGER, .field = FIELD(micro_batch_tokens),
	 .range = "128..1048576", .fallback = "8192", .role = ROLE_RESULT, .value_name = "N",
	 .help = "most tokens computed at a time, without gradient_accumulation_steps"},
	{.name = "save_checkpoints_steps", .type = OPTION_INTEGER, .field = FIELD(save_checkpoints_steps),
	 .range = "0..", .role = ROLE_RUN, .value_name = "N", .alias = "save_steps",
	 .fallback_text = "a twentieth of the run", .help = "steps between checkpoints; 0 = only at the end"},
	{.name = "keep_checkpoints", .type = OPTION_INTEGER, .field = FIELD(keep_checkpoints), .range = "0..",
	 .fallback = "2", .role = ROLE_RUN, .value_name = "N", .alias = "save_total_limit keep_checkpoint_max",
	 .help = "newest checkpoints kept; 0 = all"},
	{.name = "eval_steps", .type = OPTION_INTEGER, .field = FIELD(eval_steps), .range = "0..", .role = ROLE_RUN,
	 .value_name = "N", .fallback_text = "a twentieth of the run",
	 .help = "steps between evaluations; 0 = only at the end"},
	{.name = "eval_instances", .type = OPTION_INTEGER, .field = FIELD(eval_instances), .range = "0..",
	 .fallback = "1000", .role = ROLE_RUN, .value_name = "N",
	 .help = "held-out instances scored, always the same ones; 0 = all"},
	{.name = "log_steps", .type = OPTION_INTEGER, .field = FIELD(log_steps), .range = "1..", .fallback = "10",
	 .role = ROLE_RUN, .value_name = "N", .alias = "logging_steps", .help = "steps between lines of metrics.jsonl"},
	{.name = "stop_at_step", .type = OPTION_INTEGER, .field = FIELD(stop_at_step), .range = "0..",
	 .fallback = "0", .role = ROLE_PLACE, .value_name = "N",
	 .help = "save and stop there, the schedule unchanged; 0 = at the end"},
	{.name = "seed", .type = OPTION_INTEGER, .field = FIELD(seed), .range = "0..", .fallback = "12345",
	 .role = ROLE_RESULT, .value_name = "N", .alias = "random_seed",
	 .help = "of initial weights, sample order, masks and dropout"},

	{.help = "Instances"},
	{.name = "max_seq_length", .type = OPTION_INTEGER, .field = FIELD(max_seq_length), .range = "8..65536",
	 .fallback = "128", .role = ROLE_RESULT, .value_name = "N", .help = "most tokens of an instance"},
	{.name = "masked_lm_prob", .type = OPTION_NUMBER, .field = FIELD(masked_lm_prob), .range = "0.01..0.9",
	 .fallback = "0.15", .role = ROLE_RESULT, .value_name = "P", .alias = "mlm_probability",
	 .help = "share of tokens to predict"},
	{.name = "max_predictions_per_seq", .type = OPTION_INTEGER, .field = FIELD(max_predictions_per_seq),
	 .range = "0..65536", .fallback = "0", .role = ROLE_RESULT, .value_name = "N",
	 .help = "most predictions of an instance; 0 = no cap"},
	{.name = "short_seq_prob", .type = OPTION_NUMBER, .field = FIELD(short_seq_prob), .range = "0..1",
	 .fallback = "0.1", .role = ROLE_RESULT, .value_name = "P", .help = "share of instances cut short"},
	{.name = "whole_word_mask", .type = OPTION_FLAG, .field = FIELD(whole_word_mask), .fallback = "false",
	 .role = ROLE_RESULT, .alias = "do_whole_word_mask", .help = "mask all pieces of a word together"},
	{.name = "next_sentence", .type = OPTION_CHOICE, .field = FIELD(next_sentence), .fallback = "pairs",
	 .range = "pairs|none", .role = ROLE_RESULT, .value_name = "HOW",
	 .help = "pairs: BERT's next-sentence task; none: single segments of running text"},
	{.name = "shuffle", .type = OPTION_FLAG, .field = FIELD(shuffle), .fallback = "true", .role = ROLE_RESULT,
	 .help = "permute the instances of an epoch"},

	{.help = "Optimiser"},
	{.name = "optimizer", .type = OPTION_CHOICE, .field = FIELD(optimizer), .fallback = "adamw",
	 .range = "adamw|google_adamw", .role = ROLE_RESULT, .value_name = "NAME",
	 .help = "adamw as PyTorch has it, or google_adamw without bias correction"},
	{.name = "learning_rate", .letter = 0, .type = OPTION_NUMBER, .field = FIELD(learning_rate), .range = "0..1",
	 .role = ROLE_RESULT, .value_name = "X", .fallback_text = "from the model", .help = "peak learning rate"},
	{.name = "num_warmup_steps", .type = OPTION_INTEGER, .field = FIELD(num_warmup_steps), .range = "0..",
	 .role = ROLE_RESULT, .value_name = "N", .alias = "warmup_steps", .fallback_text = "a tenth of the run, at most 10000",
	 .help = "steps over which the rate rises from 0"},
	{.name = "schedule", .type = OPTION_CHOICE, .field = FIELD(schedule), .fallback = "linear",
	 .range = "linear|constant", .role = ROLE_RESULT, .value_name = "NAME",
	 .help = "what the rate does after the warm-up"},
	{.name = "weight_decay", .type = OPTION_NUMBER, .field = FIELD(weight_decay), .range = "0..1",
	 .fallback = "0.01", .role = ROLE_RESULT, .value_name = "X",
	 .help = "decoupled decay of all weights but biases and layer norms"},
	{.name = "max_grad_norm", .type = OPTION_NUMBER, .field = FIELD(max_grad_norm), .range = "0..",
	 .fallback = "1.0", .role = ROLE_RESULT, .value_name = "X", .alias = "clip_norm",
	 .help = "clip the global gradient to this norm; 0 = do not clip"},
	{.name = "adam_beta1", .type = OPTION_NUMBER, .field = FIELD(adam_beta1), .range = "0..1",
	 .fallback = "0.9", .role = ROLE_RESULT, .value_name = "X", .help = "decay of the first moment"},
	{.name = "adam_beta2", .type = OPTION_NUMBER, .field = FIELD(adam_beta2), .range = "0..1",
	 .fallback = "0.999", .role = ROLE_RESULT, .value_name = "X", .help = "decay of the second moment"},
	{.name = "adam_epsilon", .type = OPTION_NUMBER, .field = FIELD(adam_epsilon), .range = "0..1",
	 .fallback = "1e-6", .role = ROLE_RESULT, .value_name = "X", .help = "added to the root of the second moment"},

	{.help = "Device"},
	DEVICE_OPTIONS(struct pretrain_settings, device),
	{.name = NULL},
};

static const struct command_text pretrain_text = {
	.name = "pretrain",
	.synopsis = "--corpus PATH... --out FOLDER [options]",
	.summary = "train a BERT on text",
	.description =
		"Learns a vocabulary if none is given, cuts the text into tokens, trains with masked words and next "
		"sentences, evaluates on held-out documents, saves checkpoints, and leaves FOLDER/final, a Hugging Face "
		"model folder. --corpus and --out alone make a good run; the settings table at the start shows every "
		"value and where it came from.\n\n"
		"The same command run again goes on from the newest checkpoint. Ctrl-C finishes the step, saves and exits "
		"with status 75.",
	.examples =
		"bertc pretrain --corpus 'text/*.txt.zst' --out runs/mine\tthe whole job with chosen settings\n"
		"bertc pretrain --corpus text/ --model base --out runs/base --plan\tsettings and memory, no training\n"
		"bertc pretrain --out runs/mine\tgo on with a run that was stopped",
};

/* Sets an option the user left open, as the program's choice. */
static enum status choose(struct options *options, const char *name, const char *format, ...) PRINTF_LIKE(3, 4);
static enum status choose(struct options *options, const char *name, const char *format, ...)
{
	char text[64];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return options_set(options, name, text, ORIGIN_CHOSEN);
}

static bool unset(const struct options *options, const char *name)
{
	return options->text[options_find(options, name)] == NULL;
}

/* Everything a run owns, so that one function can release it. */
struct pretrain {
	struct options *options;
	struct pretrain_settings *settings;
	int lock;
	char data_folder[PATH_BYTES], metrics_path[PATH_BYTES], checkpoint[PATH_BYTES];
	bool resumed;
	struct json_document record; /* training_state.json of the checkpoint resumed */
	uint64_t recorded_data_hash;
	struct pool *pool;
	struct backend *backend;
	struct run_data data;
	struct model_config config;
	struct instance_settings instance_settings, evaluation_settings;
	struct instances *train_instances, *held_out_instances;
	struct step_settings steps;
	struct batch_capacity evaluation_capacity, capacity; /* `capacity` holds both kinds of batches */
	struct shape_limits limits;
	struct model *model;
	struct replica replica;
	struct activations *activations;
	struct optimizer *optimizer;
	struct objective *objective;
	struct buffer record_text;
	struct training training;
};

/* True if `path` exists and lies in `folder`. */
static bool lies_within(const char *folder, const char *path)
{
	char *outer = realpath(folder, NULL), *inner = path ? realpath(path, NULL) : NULL;
	size_t size = outer ? strlen(outer) : 0;
	bool within = outer && inner && strncmp(outer, inner, size) == 0 && inner[size] == '/';
	free(outer);
	free(inner);
	return within;
}

/* --model names a folder to go on from. A size is a size, whatever folders lie about. */
static bool model_is_folder(const char *model)
{
	struct model_config config;
	return model && model_config_named(&config, model) != OK && file_is_folder(model);
}

/* What --fresh would need afterwards must be there and must not be what it removes. */
static enum status check_fresh(const struct pretrain_settings *settings)
{
	struct name_list files = {0};
	const char *needed[] = {settings->vocab_file, settings->model, settings->init_checkpoint};
	if (settings->plan)
		return error_set(ERR_USAGE, "--fresh and --plan exclude each other: a plan removes nothing");
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		if (lies_within(settings->out, needed[i])) {
			enum status status = error_set(ERR_USAGE, "'%s' lies in the folder that --fresh clears", needed[i]);
			error_hint("copy it elsewhere, or give another --out");
			return status;
		}
	enum status status = OK;
	for (int64_t i = 0; status == OK && i < settings->corpus.count; i++)
		status = path_expand(settings->corpus.values[i], &files);
	for (int64_t i = 0; status == OK && i < files.count; i++)
		if (lies_within(settings->out, files.names[i]))
			status = error_set(ERR_USAGE, "'%s' lies in the folder that --fresh clears", files.names[i]);
	name_list_release(&files);
	return status;
}

/* --fresh: what an earlier run left goes, nothing else in the folder is touched. A folder without the mark of a run's
 * data holds no run. */
static enum status remove_earlier_run(const char *out)
{
	char mark[PATH_BYTES];
	TRY(path_join(mark, out, "data/" RUN_DATA_MARK));
	if (!file_exists(mark))
		return OK;
	static const char *const names[] = {"data", "final", "metrics.jsonl", "settings.json"};
	struct name_list entries = {0};
	enum status status;
	TRY_GOTO(folder_list(out, &entries), done);
	for (int64_t i = 0; i < entries.count; i++) {
		const char *name = entries.names[i];
		bool ours = strncmp(name, "checkpoint-", 11) == 0 && name[11] &&
			    strspn(name + 11, "0123456789") == strlen(name + 11);
		for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
			ours |= strcmp(name, names[k]) == 0;
		char path[PATH_BYTES];
		TRY_GOTO(path_join(path, out, name), done);
		if (!ours)
			continue;
		if (file_is_folder(path))
			TRY_GOTO(folder_remove(path), done);
		else if (file_operations.unlink(path) != 0) {
			status = error_set_errno(ERR_RESOURCE, "'%s': cannot remove", path);
			goto done;
		}
	}
done:
	name_list_release(&entries);
	return status;
}

/* The run folder, its lock, and the checkpoint to go on from with its settings. */
static enum status open_folder(struct pretrain *run)
{
	struct pretrain_settings *settings = run->settings;
	if (!settings->out) {
		enum status status = error_set(ERR_USAGE, "--out is missing");
		error_hint("name the run folder: bertc pretrain --corpus PATH --out FOLDER");
		return status;
	}
	if (settings->corpus.count > 0 && settings->data.count > 0)
		return error_set(ERR_USAGE, "--corpus and --data exclude each other");
	TRY(folder_make(settings->out));
	TRY(folder_lock(settings->out, &run->lock));
	if (settings->fresh) {
		TRY(check_fresh(settings));
		TRY(remove_earlier_run(settings->out));
	}
	TRY(path_join(run->data_folder, settings->out, "data"));
	TRY(path_join(run->metrics_path, settings->out, "metrics.jsonl"));
	TRY(checkpoint_clean(settings->out));
	TRY(checkpoint_latest(settings->out, run->checkpoint, &run->resumed));
	if (!run->resumed)
		return OK;
	TRY(checkpoint_read_state(run->checkpoint, &run->record, &run->training.state, &run->recorded_data_hash));
	const struct json *record = json_member(run->record.root, "settings");
	if (!record)
		return error_set(ERR_DATA, "'%s': training_state.json records no settings", run->checkpoint);
	return options_resume(run->options, record, run->checkpoint);
}

/* The model folder that a new run begins with, or NULL. */
static const char *initial_weights_source(const struct pretrain_settings *settings)
{
	if (settings->init_checkpoint)
		return settings->init_checkpoint;
	return model_is_folder(settings->model) ? settings->model : NULL;
}

/* Vocabulary and shards. A model folder to go on from brings its vocabulary. */
static enum status open_data(struct pretrain *run)
{
	struct pretrain_settings *settings = run->settings;
	char vocab_beside[PATH_BYTES], source_folder[PATH_BYTES];
	const char *vocab_file = settings->vocab_file;
	const char *source = initial_weights_source(settings);
	if (!vocab_file && source && !run->resumed) {
		TRY(session_model_folder(source, source_folder));
		TRY(path_join(vocab_beside, source_folder, "vocab.txt"));
		if (file_exists(vocab_beside))
			vocab_file = vocab_beside;
	}
	TRY(run_data_open(&run->data, &(struct run_data_settings){
					      .folder = run->data_folder,
					      .corpus = &settings->corpus,
					      .data = &settings->data,
					      .eval_corpus = &settings->eval_corpus,
					      .eval_data = &settings->eval_data,
					      .text_form = text_form_named(settings->text_form),
					      .held_out_fraction = settings->held_out_fraction,
					      .vocab_file = vocab_file,
					      .vocab_size = settings->vocab_size,
					      .min_frequency = settings->min_frequency,
					      .cased = settings->cased,
					      .pool = run->pool,
					      .resumed = run->resumed,
				      }));
	if (run->resumed && run->data.hash != run->recorded_data_hash) {
		enum status status = error_set(ERR_STATE, "the training data are not those of '%s'", run->checkpoint);
		error_hint("give the same --corpus or --data as before, or --fresh to begin again");
		return status;
	}
	return OK;
}

static int64_t train_tokens(const struct run_data *data)
{
	int64_t tokens = 0;
	for (int64_t i = 0; i < data->train_count; i++)
		tokens += data->train[i].token_count;
	return tokens;
}

/* The model's shape: given, or chosen from the amount of text (about 20 tokens of text a parameter would be
 * ideal; the steps below are what a few hours on the machine at hand can use). */
static enum status choose_model(struct pretrain *run)
{
	struct pretrain_settings *settings = run->settings;
	int64_t tokens = train_tokens(&run->data);
	if (unset(run->options, "model"))
		TRY(choose(run->options, "model", "%s",
			   tokens < 1000000 ? "tiny" : tokens < 20000000 ? "mini" : tokens < 300000000 ? "small" : "base"));
	struct model_config *config = &run->config;
	/* A checkpoint has all of it: what --model named may have moved or changed since. */
	TRY(model_folder_config(run->resumed ? run->checkpoint : settings->model, config));
	if (config->vocab_size == 0)
		config->vocab_size = run->data.vocab.count;
	if (config->vocab_size < run->data.vocab.count) {
		enum status status =
			error_set(ERR_STATE, "'%s' has vocab_size %d, the vocabulary has %d entries", settings->model,
				  config->vocab_size, run->data.vocab.count);
		error_hint("give the --vocab_file that belongs to this model");
		return status;
	}
	if (unset(run->options, "hidden_dropout_prob"))
		TRY(choose(run->options, "hidden_dropout_prob", "%g", config->hidden_dropout_prob));
	if (unset(run->options, "attention_probs_dropout_prob"))
		TRY(choose(run->options, "attention_probs_dropout_prob", "%g", config->attention_probs_dropout_prob));
	config->hidden_dropout_prob = settings->hidden_dropout_prob;
	config->attention_probs_dropout_prob = settings->attention_probs_dropout_prob;
	if (settings->max_seq_length > config->max_position_embeddings) {
		enum status status = error_set(ERR_USAGE, "--max_seq_length %" PRId64 " is beyond the model's %d positions",
					       settings->max_seq_length, config->max_position_embeddings);
		error_hint("lower it, or raise max_position_embeddings in config.json");
		return status;
	}
	return OK;
}

static enum status open_instances(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	const struct vocab *vocab = &run->data.vocab;
	run->instance_settings = (struct instance_settings){
		.seed = (uint64_t)settings->seed,
		.max_seq_length = (int32_t)settings->max_seq_length,
		.masked_lm_prob = settings->masked_lm_prob,
		.max_predictions_per_seq = (int32_t)settings->max_predictions_per_seq,
		.short_seq_prob = settings->short_seq_prob,
		.whole_word_mask = settings->whole_word_mask,
		.next_sentence =
			strcmp(settings->next_sentence, "none") == 0 ? NEXT_SENTENCE_NONE : NEXT_SENTENCE_PAIRS,
		.shuffle = settings->shuffle,
		.vocab_size = vocab->count,
		.cls = vocab->cls,
		.sep = vocab->sep,
		.mask = vocab->mask,
		.is_continuation = vocab->is_continuation,
	};
	TRY(instances_open(&run->train_instances, run->data.train, run->data.train_count, &run->instance_settings));
	run->evaluation_settings = run->instance_settings;
	run->evaluation_settings.seed = EVALUATION_SEED;
	run->evaluation_settings.shuffle = true;
	if (run->data.held_out_count > 0)
		TRY(instances_open(&run->held_out_instances, run->data.held_out, run->data.held_out_count,
				   &run->evaluation_settings));
	if (run->held_out_instances && instances_per_epoch(run->held_out_instances) == 0) {
		log_warning("the held-out documents are too short for an instance: the run is not evaluated");
		instances_close(run->held_out_instances);
		run->held_out_instances = NULL;
	}
	return OK;
}

/* Batch, length of the run, rate: what fits this model and this amount of text, where the user left it open. */
static enum status choose_training(struct pretrain *run)
{
	struct options *options = run->options;
	struct pretrain_settings *settings = run->settings;
	int64_t hidden = run->config.hidden_size, tokens = train_tokens(&run->data);
	if (unset(options, "train_batch_size"))
		TRY(choose(options, "train_batch_size", "%d", hidden < 512 ? 64 : hidden < 768 ? 128 : 256));
	if (unset(options, "learning_rate"))
		TRY(choose(options, "learning_rate", "%s",
			   hidden < 512 ? "1e-3" : hidden < 768 ? "5e-4" : hidden < 1024 ? "2e-4" : "1e-4"));
	int64_t an_epoch = instances_per_epoch(run->train_instances);
	if (an_epoch == 0) {
		enum status status = error_set(ERR_DATA, "the training text gives no instance");
		error_hint("its documents are too short; give more text");
		return status;
	}
	bool epochs_given = !unset(options, "num_train_epochs"), steps_given = !unset(options, "num_train_steps");
	if (!steps_given) {
		if (!epochs_given)
			TRY(choose(options, "num_train_epochs", "%d",
				   tokens < 5000000 ? 40 : tokens < 50000000 ? 20 : tokens < 500000000 ? 10 : 4));
		double steps = ceil(settings->num_train_epochs * (double)an_epoch / (double)settings->train_batch_size);
		TRY(choose(options, "num_train_steps", "%.0f", steps < 1 ? 1 : steps));
	}
	int64_t steps = settings->num_train_steps, twentieth = steps / 20 > 0 ? steps / 20 : 1;
	if (unset(options, "num_warmup_steps"))
		TRY(choose(options, "num_warmup_steps", "%" PRId64, steps / 10 < 10000 ? steps / 10 : 10000));
	if (unset(options, "save_checkpoints_steps"))
		TRY(choose(options, "save_checkpoints_steps", "%" PRId64, twentieth < 5000 ? twentieth : 5000));
	if (unset(options, "eval_steps"))
		TRY(choose(options, "eval_steps", "%" PRId64, twentieth < 5000 ? twentieth : 5000));
	if (settings->num_warmup_steps > steps)
		return error_set(ERR_USAGE, "--num_warmup_steps %" PRId64 " is more than the %" PRId64 " steps of the run",
				 settings->num_warmup_steps, steps);
	return OK;
}

static int32_t larger(int32_t a, int32_t b)
{
	return a > b ? a : b;
}

/* Shapes of micro-batches, for training and for evaluation. */
static void choose_shapes(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	run->steps = (struct step_settings){
		.batch_size = settings->train_batch_size,
		.accumulation_steps = (int32_t)settings->gradient_accumulation_steps,
		.first_step = run->training.state.step + 1,
		.last_step = settings->num_train_steps,
	};
	run->steps.capacity = batch_capacity_for(
		&run->instance_settings, settings->train_batch_size, run->steps.accumulation_steps,
		run->steps.accumulation_steps > 0 ? 0 : settings->micro_batch_tokens);
	run->evaluation_capacity = batch_capacity_for(&run->evaluation_settings, 64, 0, settings->micro_batch_tokens);
	run->capacity = (struct batch_capacity){
		.tokens = larger(run->steps.capacity.tokens, run->evaluation_capacity.tokens),
		.sequences = larger(run->steps.capacity.sequences, run->evaluation_capacity.sequences),
		.predictions = larger(run->steps.capacity.predictions, run->evaluation_capacity.predictions),
	};
	run->limits = (struct shape_limits){
		.batch = run->capacity,
		.longest = (int32_t)settings->max_seq_length,
		.hidden = run->config.hidden_size,
		.heads = run->config.num_attention_heads,
		.intermediate = run->config.intermediate_size,
		.vocab = run->config.vocab_size,
		.training = true,
	};
}

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
	options_settings_table(run->options, log_has_colour(), &text);
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
	options_write_json(run->options, &writer, NULL);
	TRY(buffer_status(&run->record_text));
	TRY(path_join(path, run->settings->out, "settings.json"));
	return file_write(path, run->record_text.data, run->record_text.size);
}

static void log_names(const char *what, const struct name_list *names)
{
	for (int64_t i = 0; i < names->count; i++)
		log_note("  %s: %s", what, names->names[i]);
}

/* --init_checkpoint, or --model FOLDER: its weights over the initial ones, with a report of every tensor that is not
 * in both. */
static enum status load_initial_weights(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	const char *source = initial_weights_source(settings);
	if (!source)
		return OK;
	float *slab = NULL;
	char folder[PATH_BYTES];
	struct model_folder_report report = {0};
	enum status status;
	TRY_GOTO(session_model_folder(source, folder), done);
	TRY_GOTO(memory_new(&slab, run->model->slab_count, sizeof(*slab), "weights"), done);
	TRY_GOTO(model_get_weights(run->model, slab), done);
	TRY_GOTO(model_folder_load(folder, run->model, MISSING_HEADS, slab, &report), done);
	TRY_GOTO(model_set_weights(run->model, &run->replica, slab), done);
	log_note("initial weights: %" PRId64 " tensors from %s, %" PRId64 " missing, %" PRId64 " unused", report.loaded,
		 folder, report.missing.count, report.unused.count);
	log_names("missing, begins anew", &report.missing);
	log_names("unused", &report.unused);
done:
	model_folder_report_release(&report);
	free(slab);
	return status;
}

/* Memory and weights: from the checkpoint, another model folder, or drawn. */
static enum status open_model(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	struct backend *be = run->backend;
	struct optimizer_settings optimizer = {
		.kind = strcmp(settings->optimizer, "adamw") == 0 ? OPTIMIZER_ADAMW : OPTIMIZER_GOOGLE_ADAMW,
		.beta1 = settings->adam_beta1,
		.beta2 = settings->adam_beta2,
		.epsilon = settings->adam_epsilon,
		.weight_decay = settings->weight_decay,
		.max_grad_norm = settings->max_grad_norm,
	};
	TRY(model_allocate(run->model, true));
	TRY(be->functions->replica_create(be, &run->replica, &run->limits));
	TRY(activations_create(&run->activations, run->model, run->capacity, true));
	TRY(optimizer_create(&run->optimizer, run->model, &optimizer));
	if (run->resumed) {
		TRY(checkpoint_load(run->checkpoint, run->model, &run->replica, run->optimizer));
		return instances_hint(run->train_instances, run->training.state.epoch,
				      run->training.state.epoch_first_sample);
	}
	TRY(model_initialize(run->model, &run->replica, (uint64_t)settings->seed));
	return load_initial_weights(run);
}

static enum status locate(void *context, struct train_state *state)
{
	struct pretrain *run = context;
	return instances_locate(run->train_instances, state->samples, &state->epoch, &state->epoch_first_sample);
}

static enum status start_training(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	TRY(pretraining_create(&run->objective, &(struct pretraining_settings){
							.model = run->model,
							.activations = run->activations,
							.train = run->train_instances,
							.steps = run->steps,
							.held_out = run->held_out_instances,
							.evaluation_instances = settings->eval_instances,
							.evaluation_capacity = run->evaluation_capacity,
						}));
	struct training *training = &run->training;
	double (*gemm_rate)(struct backend *) = run->backend->functions->gemm_rate;
	training->settings = (struct loop_settings){
		.seed = (uint64_t)settings->seed,
		.total_steps = settings->num_train_steps,
		.stop_at_step = settings->stop_at_step,
		.save_steps = settings->save_checkpoints_steps,
		.eval_steps = settings->eval_steps,
		.log_steps = settings->log_steps,
	};
	training->schedule = (struct schedule){
		.peak = settings->learning_rate,
		.warmup_steps = settings->num_warmup_steps,
		.total_steps = settings->num_train_steps,
		.decay = strcmp(settings->schedule, "linear") == 0 ? DECAY_LINEAR : DECAY_CONSTANT,
	};
	training->objective = run->objective;
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
		.keep = settings->keep_checkpoints,
	};
	training->report = (struct report){
		.metrics_path = run->metrics_path,
		.total_steps = settings->num_train_steps,
		.log_steps = settings->log_steps,
		.gemm_rate = gemm_rate ? gemm_rate(run->backend) : 0.0,
	};
	training->locate = locate;
	training->locate_context = run;
	return train(training);
}

static enum status pretrain(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	TRY(open_folder(run));
	TRY(device_open(&settings->device, &run->pool, &run->backend));
	if (unset(run->options, "precision") && run->backend->dtype != DTYPE_F64)
		TRY(choose(run->options, "precision", "%s", run->backend->dtype == DTYPE_BF16 ? "bf16" : "fp32"));
	TRY(open_data(run));
	if (unset(run->options, "vocab_size"))
		TRY(choose(run->options, "vocab_size", "%d", run->data.vocab.count));
	TRY(choose_model(run));
	TRY(open_instances(run));
	TRY(choose_training(run));
	choose_shapes(run);
	TRY(show_plan(run));
	if (settings->plan)
		return OK;
	TRY(write_settings(run));
	if (run->resumed)
		log_note("going on from %s", run->checkpoint);
	TRY(open_model(run));
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
	TRY(checkpoint_save_final(&run->training.checkpoints, run->model));
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
