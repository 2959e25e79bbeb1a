/* Vocabulary, shards and instances of `bertc pretrain`. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "cmd/pretrain.h"

/* A phase may have other text, but not other tokens. */
static enum status check_vocabulary(const struct pretrain *run)
{
	const char *recorded = NULL;
	TRY(json_get_string(run->record.root, run->checkpoint, "vocab_hash", &recorded));
	if (!recorded || strtoull(recorded, NULL, 16) == run->data.vocab.hash)
		return OK;
	enum status status = error_set(ERR_STATE, "the vocabulary is not that of '%s'", run->checkpoint);
	error_hint("all phases have one: leave --vocab_file out, or give the one of the first");
	return status;
}

static bool is_recorded(const struct pretrain *run, const char *name)
{
	return options_origin(run->options, name) == ORIGIN_RESUMED;
}

/* A recorded list gives way to another kind of data, where one is given. */
static const struct option_list *text_source(const struct pretrain *run, const char *name, const struct option_list *list,
					     const char *other, const char *another)
{
	static const struct option_list none;
	bool given = options_given(run->options, other) || options_given(run->options, another);
	return is_recorded(run, name) && given ? &none : list;
}

/* Static instances of a phase. */
static const struct option_list *phase_files(const struct pretrain *run, int64_t index)
{
	static const struct option_list none;
	const struct pretrain_phase *phase = &run->phases[index];
	bool recorded = options_origin(phase->options, "input_file") == ORIGIN_RESUMED;
	bool given = options_given(run->options, "corpus") || options_given(run->options, "data");
	return recorded && given ? &none : &phase->settings->input_file;
}

static bool same_list(const struct option_list *a, const struct option_list *b)
{
	bool same = a->count == b->count;
	for (int64_t i = 0; same && i < a->count; i++)
		same = strcmp(a->values[i], b->values[i]) == 0;
	return same;
}

/* Instances of a length suit one phase: each may have files of its own. Those of the phase that comes first, or goes
 * on, are open already. */
static enum status open_phase_files(struct pretrain *run, const struct run_data_settings *settings)
{
	int64_t current = run->training.state.phase.index;
	for (int64_t i = current; i < run->phase_count; i++) {
		struct pretrain_phase *phase = &run->phases[i], *before = phase - 1;
		const struct option_list *list = phase_files(run, i);
		phase->data_hash = run->data.hash;
		if (i == current) {
			phase->files = run->data.train_files;
			phase->file_count = run->data.train_file_count;
			continue;
		}
		if ((list->count > 0) != (before->file_count > 0)) {
			enum status status = error_set(ERR_USAGE, "phase %d has --input_file, phase %d has not",
						       (int)i + (list->count > 0), (int)i + (list->count == 0));
			error_hint("all phases train on static instances, or none");
			return status;
		}
		if (list->count == 0)
			continue;
		if (same_list(list, phase_files(run, i - 1))) {
			phase->files = before->files;
			phase->file_count = before->file_count;
			phase->data_hash = before->data_hash;
			continue;
		}
		phase->owns_files = true;
		TRY(run_data_static(&run->data, settings, list, &phase->files, &phase->file_count));
		phase->data_hash = run->data.vocab.hash;
		for (int64_t k = 0; k < phase->file_count; k++)
			phase->data_hash = hash64_combine(phase->data_hash, phase->files[k].content_hash);
	}
	return OK;
}

/* One kind of training data. */
static enum status check_sources(const struct run_data_settings *data)
{
	int kinds = (data->corpus->count > 0) + (data->data->count > 0) + (data->input_file->count > 0);
	if (kinds <= 1)
		return OK;
	enum status status = error_set(ERR_USAGE, "more than one of --corpus, --data and --input_file");
	error_hint("a run trains on text, or on token shards, or on static instances");
	return status;
}

/* A mistyped name, and sequences too long for the model, are said now, not when the text is prepared. Models that are
 * chosen later are of a named size. */
static enum status check_model(const struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	const char *model = !pretrain_unset(run->options, "model") ? settings->model : run->initial.path;
	struct model_config config;
	TRY(model_folder_config(model ? model : "base", &config));
	bool fixed = strcmp(settings->init_positions, "same") == 0;
	for (int64_t i = 0; fixed && i < run->phase_count; i++)
		if (run->phases[i].settings->input_file.count == 0) /* else they are as long as they are */
			TRY(pretrain_check_length(run, run->phases[i].settings->max_seq_length, &config));
	return OK;
}

/* Vocabulary and shards. A model folder to go on from brings its vocabulary. */
static enum status open_data(struct pretrain *run)
{
	struct pretrain_settings *settings = run->settings;
	char vocab_beside[PATH_BYTES];
	const char *vocab_file;
	TRY(pretrain_find_initial(run));
	TRY(pretrain_initial_text(run, &vocab_file));
	if (!run->resumed)
		TRY(check_model(run));
	bool begins = !run->resumed || !run->own_checkpoint;
	if (!vocab_file && run->resumed) {
		/* Another run's checkpoint, or a data folder that was lost: the vocabulary is the checkpoint's. */
		TRY(path_join(vocab_beside, run->data_folder, "vocab.txt"));
		if (!file_exists(vocab_beside)) {
			TRY(path_join(vocab_beside, run->checkpoint, "vocab.txt"));
			vocab_file = vocab_beside;
		}
	}
	struct run_data_settings data = {
		.folder = run->data_folder,
		.corpus = text_source(run, "corpus", &settings->corpus, "data", "input_file"),
		.data = text_source(run, "data", &settings->data, "corpus", "input_file"),
		.input_file = phase_files(run, run->training.state.phase.index),
		.eval_corpus = text_source(run, "eval_corpus", &settings->eval_corpus, "eval_data", "eval_file"),
		.eval_data = text_source(run, "eval_data", &settings->eval_data, "eval_corpus", "eval_file"),
		.eval_file = text_source(run, "eval_file", &settings->eval_file, "eval_corpus", "eval_data"),
		.corpus_recorded = is_recorded(run, "corpus"),
		.eval_recorded = is_recorded(run, "eval_corpus"),
		.input = input_corpus_settings(&settings->input, settings->device.threads),
		.held_out_fraction = settings->held_out_fraction,
		.vocab_file = vocab_file,
		.vocab_size = settings->vocab_size,
		.min_frequency = settings->min_frequency,
		.cased = settings->cased,
		.cased_given = options_given(run->options, "cased"),
		.prove_contents = is_first_rank(run->comm),
		.pool = run->pool,
		.resumed = !begins,
	};
	TRY(check_sources(&data));
	TRY(run_data_open(&run->data, &data));
	TRY(open_phase_files(run, &data));
	TRY(pretrain_check_initial_vocab(run));
	if (run->begins_phase)
		return check_vocabulary(run);
	if (run->resumed && run->data.hash != run->recorded_data_hash && run->data.older_hash != run->recorded_data_hash) {
		enum status status = error_set(ERR_STATE, "the training data are not those of '%s'", run->checkpoint);
		error_hint("give the same --corpus, --data or --input_file as before, or --fresh to begin again");
		return status;
	}
	return OK;
}

/* What must be made is made by the first rank; the others find it. */
enum status pretrain_open_data(struct pretrain *run)
{
	bool first = is_first_rank(run->comm);
	TRY(ranks_agree(run->comm, first ? open_data(run) : OK));
	return ranks_agree(run->comm, first ? OK : open_data(run));
}

int64_t pretrain_train_tokens(const struct pretrain *run)
{
	int64_t tokens = 0;
	for (int64_t i = 0; i < run->data.train_count; i++)
		tokens += run->data.train[i].token_count;
	for (int64_t i = 0; i < run->data.train_file_count; i++)
		tokens += run->data.train_files[i].summary.token_count;
	return tokens;
}

void pretrain_set_instances(struct pretrain *run, struct pretrain_phase *phase)
{
	const struct pretrain_settings *settings = phase->settings;
	const struct vocab *vocab = &run->data.vocab;
	phase->instance_settings = (struct instance_settings){
		.seed = (uint64_t)run->settings->seed,
		.max_seq_length = (int32_t)settings->max_seq_length,
		.min_seq_length = (int32_t)settings->min_seq_length,
		.masked_lm_prob = settings->masked_lm_prob,
		.max_predictions_per_seq = (int32_t)settings->max_predictions_per_seq,
		.short_seq_prob = settings->short_seq_prob,
		.whole_word_mask = settings->whole_word_mask,
		.max_ngram = (int32_t)settings->max_ngram,
		.next_sentence = next_sentence_named(settings->next_sentence),
		.shuffle = run->settings->shuffle,
		.vocab_size = vocab->count,
		.cls = vocab->cls,
		.sep = vocab->sep,
		.mask = vocab->mask,
		.is_continuation = vocab->is_continuation,
	};
	phase->evaluation_settings = phase->instance_settings;
	phase->evaluation_settings.seed = EVALUATION_SEED;
	phase->evaluation_settings.shuffle = true;
	if (phase->file_count > 0)
		instances_static_bounds(phase->files, phase->file_count, &phase->instance_settings);
}

/* A source for each shard, mixed by their weights. Each has a seed of its own. */
static enum status open_mixture(const struct run_data *data, const struct instance_settings *settings, struct instances **out)
{
	struct instances **sources;
	enum status status = OK;
	TRY(memory_new(&sources, data->train_count, sizeof(*sources), "mixture"));
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

enum status pretrain_open_instances(struct pretrain *run, struct pretrain_phase *phase)
{
	if (phase->instances)
		return OK;
	const struct run_data *data = &run->data;
	const struct instance_settings *settings = &phase->instance_settings;
	if (phase->file_count > 0)
		return instances_open_static(&phase->instances, phase->files, phase->file_count, settings);
	instances_warn_of_pairs(data->train, data->train_count, settings);
	if (data->weights)
		return open_mixture(data, settings, &phase->instances);
	return instances_open(&phase->instances, data->train, data->train_count, settings);
}

enum status pretrain_open_evaluation(struct pretrain *run, const struct pretrain_phase *phase)
{
	TRY(memory_new(&run->evaluation_sets, run->data.evaluation_count, sizeof(*run->evaluation_sets), "evaluation sets"));
	for (int64_t i = 0; i < run->data.evaluation_count; i++) {
		const struct run_data_set *set = &run->data.evaluation[i];
		const char *name = set->name[0] ? set->name : NULL;
		struct evaluation_set *out = &run->evaluation_sets[run->evaluation_count];
		out->name = name;
		struct instance_settings settings = phase->evaluation_settings;
		if (set->file_count > 0) {
			settings.shuffle = false; /* as they are, and all of them unless told otherwise */
			out->whole = options_origin(phase->options, "eval_instances") == ORIGIN_DEFAULT;
			TRY(instances_open_static(&out->instances, set->files, set->file_count, &settings));
		} else
			TRY(instances_open(&out->instances, set->shards, set->shard_count, &settings));
		run->evaluation_count++;
		if (instances_per_epoch(out->instances) > 0)
			continue;
		log_warning("%s is too short for an instance: not evaluated", name ? name : "the held-out text");
		instances_close(out->instances);
		run->evaluation_count--;
	}
	return OK;
}

void pretrain_close_evaluation(struct pretrain *run)
{
	for (int64_t i = 0; i < run->evaluation_count; i++)
		instances_close(run->evaluation_sets[i].instances);
	free(run->evaluation_sets);
	run->evaluation_sets = NULL;
	run->evaluation_count = 0;
}
