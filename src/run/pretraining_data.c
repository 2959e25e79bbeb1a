/* Opens the vocabulary, the text, and the instances of every phase of a pre-training run. */
#include "model/forms.h"
#include "run/pretraining_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "run/run_static.h"
#include "train/ranks.h"
#include "weights/tokenizer_file.h"

/* ---- Vocabulary and text ---- */

/* A phase may have different text, but not a different vocabulary. */
static enum status check_vocabulary(const struct pretraining_data *data)
{
	const struct run_start *start = &data->run->start;
	const char *recorded = NULL;
	TRY(json_get_string(start->record.root, start->checkpoint, "vocab_hash", &recorded));
	if (!recorded || strtoull(recorded, NULL, 16) == data->data.vocab.hash)
		return OK;
	return error_hinted(error_set(ERR_STATE, "the vocabulary is not that of '%s'", start->checkpoint),
			    "all phases share one vocabulary: leave --vocab_file out, or give that of the first phase");
}

bool pretraining_length_is_open(const struct run_phase *phase)
{
	return options_origin_of(phase->options, &phase->values->max_seq_length) == ORIGIN_DEFAULT;
}

/* A recorded list gives way if another kind of data is given. */
static struct option_list source(const struct run *run, const struct options *of, const struct option_list *list,
				 const char *other, const char *another)
{
	bool given = options_given(&run->options, other) || options_given(&run->options, another);
	return options_origin_of(of, list) == ORIGIN_RESUMED && given ? (struct option_list){0} : *list;
}

enum status pretraining_data_begin(struct pretraining_data *data, struct run *run, const struct initial_weights *initial)
{
	*data = (struct pretraining_data){.run = run, .initial = initial};
	TRY(memory_new(&data->phases, run->phase_count, sizeof *data->phases, "phases"));
	data->phase_count = run->phase_count;
	for (int64_t i = 0; i < data->phase_count; i++) {
		const struct options *options = run->phases[i].options;
		const struct pretraining_options *given = options->settings;
		data->phases[i].input_file = source(run, options, &given->text.input_file, "corpus", "data");
	}
	return OK;
}

static bool same_list(const struct option_list *a, const struct option_list *b)
{
	bool same = a->count == b->count;
	for (int64_t i = 0; same && i < a->count; i++)
		same = strcmp(a->values[i], b->values[i]) == 0;
	return same;
}

/* Pairs become instances of the phase's length or, if that is open, of bert-ad's. */
#define PAIR_LENGTH 128
static void set_pairs(const struct pretraining_data *data, int64_t index, struct run_data_settings *out)
{
	const struct run_phase *phase = &data->run->phases[index];
	const struct pretraining_options *given = phase->options->settings;
	out->pair_length = pretraining_length_is_open(phase) ? PAIR_LENGTH : (int32_t)phase->values->max_seq_length;
	out->pair_predictions = (int32_t)given->instances.max_predictions_per_seq;
}

/* Would this phase's instances be the same as those of an earlier phase? Only pairs are converted with settings of the phase. */
static bool made_alike(const struct pretraining_phase *before, const struct run_data_settings *a,
		       const struct run_data_settings *b)
{
	bool has_pairs = false;
	for (int64_t i = 0; i < before->file_count; i++)
		has_pairs |= before->files[i].summary.has_pairs;
	return !has_pairs || (a->pair_length == b->pair_length && a->pair_predictions == b->pair_predictions);
}

/* Each phase may have its own files, as instances are made for one sequence length. The files of the phase that is first, or is
 * being resumed, are open already. */
static enum status open_phase_files(struct pretraining_data *data, const struct run_data_settings *settings)
{
	struct run_data_settings own = *settings, last;
	int64_t current = data->run->start.state.phase.index;
	for (int64_t i = current; i < data->phase_count; i++) {
		struct pretraining_phase *phase = &data->phases[i];
		struct run_phase *of_run = &data->run->phases[i];
		const struct option_list *list = &phase->input_file;
		of_run->data_hash = data->data.hash;
		last = own;
		set_pairs(data, i, &own);
		if (i == current) {
			phase->files = data->data.train_files;
			phase->file_count = data->data.train_file_count;
			continue;
		}
		const struct pretraining_phase *before = phase - 1;
		if ((list->count > 0) != (before->file_count > 0))
			return error_hinted(error_set(ERR_USAGE, "phase %d has --input_file, but phase %d does not",
						      (int)i + (list->count > 0), (int)i + (list->count == 0)),
					    "either all phases train on static instances or none");
		if (list->count == 0)
			continue;
		if (same_list(list, &before->input_file) && made_alike(before, &own, &last)) {
			phase->files = before->files;
			phase->file_count = before->file_count;
			of_run->data_hash = data->run->phases[i - 1].data_hash;
			continue;
		}
		phase->owns_files = true;
		TRY(run_data_static(&data->data, &own, list, &phase->files, &phase->file_count));
		for (int64_t k = 0; settings->first_rank && k < phase->file_count; k++) {
			struct shard_contents contents = static_contents(&phase->files[k]);
			TRY(contents.verify(contents.file, NULL, NULL));
		}
		of_run->data_hash = data->data.vocab.hash;
		for (int64_t k = 0; k < phase->file_count; k++)
			of_run->data_hash = hash64_combine(of_run->data_hash, phase->files[k].content_hash);
	}
	return OK;
}

/* There must be at most one kind of training data. */
static enum status check_sources(const struct text_options *text)
{
	int kinds = (text->corpus.count > 0) + (text->data.count > 0) + (text->input_file.count > 0);
	if (kinds <= 1)
		return OK;
	return error_hinted(error_set(ERR_USAGE, "only one of --corpus, --data, and --input_file can be given"),
			    "a run trains either on text, on token shards, or on static instances");
}

/* The hash of the sets' names and contents, in order. */
static uint64_t evaluation_hash(const struct run_data *data, double masked_lm_prob)
{
	uint64_t hash = 0;
	/* Evaluations mask this share whatever the run does. Checkpoints have it in the hash only where the two differ. */
	if (masked_lm_prob != EVALUATION_MASKED)
		hash = hash64_combine(hash, (uint64_t)(100 * EVALUATION_MASKED));
	for (int64_t i = 0; i < data->evaluation_count; i++) {
		const struct run_data_set *set = &data->evaluation[i];
		hash = hash64_combine(hash, hash64(set->name, strlen(set->name)));
		for (int64_t k = 0; k < set->shard_count; k++)
			hash = hash64_combine(hash, set->shards[k].content_hash);
		for (int64_t k = 0; k < set->file_count; k++)
			hash = hash64_combine(hash, set->files[k].content_hash);
	}
	return hash;
}

/* Number of tokens in the longest static instance of the evaluation sets. */
static int32_t longest_evaluated(const struct run_data *data)
{
	int32_t longest = 0;
	for (int64_t i = 0; i < data->evaluation_count; i++)
		for (int64_t k = 0; k < data->evaluation[i].file_count; k++) {
			int32_t length = data->evaluation[i].files[k].summary.max_length;
			longest = length > longest ? length : longest;
		}
	return longest;
}

/* The vocabulary of a resumed run: the data folder's; or the checkpoint's, if it is another run's or the data folder was lost.
 * Another run's is taken even if the data folder has one by now, so that every rank and every start names the same. */
static enum status resumed_vocab(const struct run *run, char beside[PATH_BYTES], const char **out)
{
	TRY(vocab_file_find(run->folder.data, beside));
	if (run->start.own && beside[0])
		return OK;
	TRY(vocab_file_find(run->start.checkpoint, beside));
	*out = beside;
	return OK;
}

static enum status open_data(struct pretraining_data *data)
{
	struct run *run = data->run;
	const struct run_start *start = &run->start;
	const struct options *options = &run->options;
	const struct pretraining_options *of_run = options->settings;
	char vocab_beside[PATH_BYTES];
	const char *vocab_file;
	struct text_options text = of_run->text;
	text.corpus = source(run, options, &of_run->text.corpus, "data", "input_file");
	text.data = source(run, options, &of_run->text.data, "corpus", "input_file");
	text.input_file = data->phases[start->state.phase.index].input_file;
	text.eval_corpus = source(run, options, &of_run->text.eval_corpus, "eval_data", "eval_file");
	text.eval_data = source(run, options, &of_run->text.eval_data, "eval_corpus", "eval_file");
	text.eval_file = source(run, options, &of_run->text.eval_file, "eval_corpus", "eval_data");
	TRY(initial_weights_text(data->initial, &run->options, &vocab_file, &text.cased));
	if (!vocab_file && start->resumed)
		TRY(resumed_vocab(run, vocab_beside, &vocab_file));
	struct run_data_settings given = {
		.folder = run->folder.data,
		.text = &text,
		.options = options,
		.input = {.input = text.input, .threads = (int)run->machine->device.threads},
		.vocab_file = vocab_file,
		.first_rank = is_first_rank(data->run->machine->comm),
		.pool = run->machine->pool,
		.resumed = (start->resumed && start->own) || start->begun,
	};
	set_pairs(data, start->state.phase.index, &given);
	TRY(check_sources(&text));
	TRY(run_data_open(&data->data, &given));
	TRY(open_phase_files(data, &given));
	TRY(initial_weights_check_vocab(data->initial, &data->data.vocab));
	if (start->begins_phase)
		return check_vocabulary(data);
	if (start->resumed && data->data.hash != start->data_hash && data->data.dated_hash != start->data_hash)
		return error_hinted(error_set(ERR_STATE, "the training data have changed since '%s'", start->checkpoint),
				    "give the same --corpus, --data, or --input_file as before, or --fresh to start over");
	return OK;
}

enum status pretraining_data_open(struct pretraining_data *data)
{
	struct run *run = data->run;
	const struct pretraining_options *first = run->phases[0].options->settings;
	TRY(open_data(data));
	run->vocab = &data->data.vocab;
	run->tokenizer = &data->data.tokenizer;
	run->data_hash = data->data.hash;
	run->evaluation_hash = evaluation_hash(&data->data, first->instances.masked_lm_prob);
	run->longest_evaluated = longest_evaluated(&data->data);
	char size[32];
	snprintf(size, sizeof size, "%d", run->vocab->count);
	return first->text.vocab_size > 0 ? OK : options_set(&run->options, "vocab_size", size, ORIGIN_CHOSEN);
}

int64_t pretraining_data_tokens(const struct pretraining_data *data)
{
	int64_t tokens = 0;
	for (int64_t i = 0; i < data->data.train_count; i++)
		tokens += data->data.train[i].token_count;
	for (int64_t i = 0; i < data->data.train_file_count; i++)
		tokens += data->data.train_files[i].summary.token_count;
	return tokens;
}

void pretraining_data_close(struct pretraining_data *data)
{
	for (int64_t i = 0; i < data->phase_count; i++) {
		struct pretraining_phase *phase = &data->phases[i];
		instances_close(phase->source);
		if (phase->owns_files)
			run_static_close(phase->files, phase->file_count);
	}
	free(data->phases);
	run_data_close(&data->data);
	*data = (struct pretraining_data){0};
}

/* ---- Instances ---- */

void pretraining_set_instances(struct pretraining_data *data, int64_t index)
{
	struct pretraining_phase *phase = &data->phases[index];
	const struct pretraining_options *of_run = data->run->options.settings;
	const struct pretraining_options *given = data->run->phases[index].options->settings;
	const struct vocab *vocab = &data->data.vocab;
	phase->training = instance_options_settings(&given->instances);
	phase->training.seed = (uint64_t)data->run->values->seed;
	phase->training.shuffle = of_run->shuffle;
	phase->training.max_seq_length = (int32_t)data->run->phases[index].values->max_seq_length;
	instance_settings_take_vocab(&phase->training, vocab);
	phase->training.one_segment = !model_takes_pairs(&data->run->config);
	phase->evaluation = phase->training;
	phase->evaluation.seed = EVALUATION_SEED;
	phase->evaluation.shuffle = true;
	phase->evaluation.masked_lm_prob = EVALUATION_MASKED;
	if (phase->file_count > 0)
		instances_static_bounds(phase->files, phase->file_count, &phase->training);
}

/* Opens a source for each shard, with its own seed, and mixes them by weight. */
static enum status open_mixture(const struct run_data *data, const struct instance_settings *settings, struct instances **out)
{
	struct instances **sources;
	enum status status = OK;
	TRY(memory_new(&sources, data->train_count, sizeof *sources, "mixture"));
	for (int64_t i = 0; i < data->train_count && status == OK; i++) {
		struct instance_settings own = *settings;
		own.seed = hash64_combine(settings->seed, (uint64_t)i);
		status = instances_open(&sources[i], &data->train[i], 1, &own);
	}
	if (status == OK)
		status = instances_open_mixture(out, sources, data->weights, data->train_count, settings->seed);
	for (int64_t i = 0; i < data->train_count && status != OK; i++)
		instances_close(sources[i]);
	free(sources);
	return status;
}

enum status pretraining_open_instances(struct pretraining_data *data, int64_t index)
{
	struct pretraining_phase *phase = &data->phases[index];
	const struct run_data *text = &data->data;
	const struct instance_settings *settings = &phase->training;
	if (phase->source)
		return OK;
	if (phase->file_count > 0)
		return instances_open_static(&phase->source, phase->files, phase->file_count, settings);
	instances_warn_of_pairs(text->train, text->train_count, settings);
	if (text->weights)
		return open_mixture(text, settings, &phase->source);
	return instances_open(&phase->source, text->train, text->train_count, settings);
}

enum status pretraining_open_evaluation(struct pretraining_data *data, int64_t index)
{
	const struct pretraining_phase *phase = &data->phases[index];
	const struct run_data *text = &data->data;
	const struct options *options = data->run->phases[index].options;
	if (data->evaluation_sets)
		return OK;
	TRY(memory_new(&data->evaluation_sets, text->evaluation_count, sizeof *data->evaluation_sets, "evaluation sets"));
	for (int64_t i = 0; i < text->evaluation_count; i++) {
		const struct run_data_set *set = &text->evaluation[i];
		const char *name = set->name[0] ? set->name : NULL;
		struct evaluation_set *out = &data->evaluation_sets[data->evaluation_count];
		out->name = name;
		struct instance_settings settings = phase->evaluation;
		if (set->file_count > 0) {
			settings.shuffle = false; /* as they are, and all of them unless options say otherwise */
			out->whole = options_origin(options, "eval_instances") == ORIGIN_DEFAULT;
			TRY(instances_open_static(&out->instances, set->files, set->file_count, &settings));
		} else
			TRY(instances_open(&out->instances, set->shards, set->shard_count, &settings));
		data->evaluation_count++;
		if (instances_per_epoch(out->instances) > 0)
			continue;
		log_warning("%s is too short for an instance and is not evaluated", name ? name : "the held-out text");
		instances_close(out->instances);
		data->evaluation_count--;
	}
	return OK;
}

void pretraining_close_instances(struct pretraining_data *data, int64_t index)
{
	instances_close(data->phases[index].source);
	data->phases[index].source = NULL;
	for (int64_t i = 0; i < data->evaluation_count; i++)
		instances_close(data->evaluation_sets[i].instances);
	free(data->evaluation_sets);
	data->evaluation_sets = NULL;
	data->evaluation_count = 0;
}
