/* Vocabulary, shards and instances of `bertc pretrain`. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
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

/* A recorded list gives way to the other kind of text, where that one is given. */
static const struct option_list *text_source(const struct pretrain *run, const char *name, const struct option_list *list,
					const char *other)
{
	static const struct option_list none;
	return is_recorded(run, name) && options_given(run->options, other) ? &none : list;
}

/* Vocabulary and shards. A model folder to go on from brings its vocabulary. */
enum status pretrain_open_data(struct pretrain *run)
{
	struct pretrain_settings *settings = run->settings;
	char vocab_beside[PATH_BYTES];
	const char *vocab_file;
	TRY(pretrain_find_initial(run));
	TRY(pretrain_initial_text(run, &vocab_file));
	bool begins = !run->resumed || !run->own_checkpoint;
	if (!vocab_file && run->resumed) {
		/* Another run's checkpoint, or a data folder that was lost: the vocabulary is the checkpoint's. */
		TRY(path_join(vocab_beside, run->data_folder, "vocab.txt"));
		if (!file_exists(vocab_beside)) {
			TRY(path_join(vocab_beside, run->checkpoint, "vocab.txt"));
			vocab_file = vocab_beside;
		}
	}
	TRY(run_data_open(&run->data, &(struct run_data_settings){
					      .folder = run->data_folder,
					      .corpus = text_source(run, "corpus", &settings->corpus, "data"),
					      .data = text_source(run, "data", &settings->data, "corpus"),
					      .eval_corpus = text_source(run, "eval_corpus", &settings->eval_corpus, "eval_data"),
					      .eval_data = text_source(run, "eval_data", &settings->eval_data, "eval_corpus"),
					      .corpus_recorded = is_recorded(run, "corpus"),
					      .eval_recorded = is_recorded(run, "eval_corpus"),
					      .input = input_corpus_settings(&settings->input, settings->device.threads),
					      .held_out_fraction = settings->held_out_fraction,
					      .vocab_file = vocab_file,
					      .vocab_size = settings->vocab_size,
					      .min_frequency = settings->min_frequency,
					      .cased = settings->cased,
					      .pool = run->pool,
					      .resumed = !begins,
				      }));
	TRY(pretrain_check_initial_vocab(run));
	if (run->begins_phase)
		return check_vocabulary(run);
	if (run->resumed && run->data.hash != run->recorded_data_hash) {
		enum status status = error_set(ERR_STATE, "the training data are not those of '%s'", run->checkpoint);
		error_hint("give the same --corpus or --data as before, or --fresh to begin again");
		return status;
	}
	return OK;
}

int64_t pretrain_train_tokens(const struct pretrain *run)
{
	int64_t tokens = 0;
	for (int64_t i = 0; i < run->data.train_count; i++)
		tokens += run->data.train[i].token_count;
	return tokens;
}

void pretrain_set_instances(struct pretrain *run, struct pretrain_phase *phase)
{
	const struct pretrain_settings *settings = phase->settings;
	const struct vocab *vocab = &run->data.vocab;
	phase->instance_settings = (struct instance_settings){
		.seed = (uint64_t)run->settings->seed,
		.max_seq_length = (int32_t)settings->max_seq_length,
		.masked_lm_prob = settings->masked_lm_prob,
		.max_predictions_per_seq = (int32_t)settings->max_predictions_per_seq,
		.short_seq_prob = settings->short_seq_prob,
		.whole_word_mask = settings->whole_word_mask,
		.next_sentence =
			strcmp(settings->next_sentence, "none") == 0 ? NEXT_SENTENCE_NONE : NEXT_SENTENCE_PAIRS,
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
}

enum status pretrain_open_instances(struct pretrain *run, struct pretrain_phase *phase)
{
	if (phase->instances)
		return OK;
	return instances_open(&phase->instances, run->data.train, run->data.train_count, &phase->instance_settings);
}

enum status pretrain_open_evaluation(struct pretrain *run, const struct pretrain_phase *phase)
{
	TRY(memory_new(&run->evaluation_sets, run->data.evaluation_count, sizeof(*run->evaluation_sets),
		       "evaluation sets"));
	for (int64_t i = 0; i < run->data.evaluation_count; i++) {
		const struct run_data_set *set = &run->data.evaluation[i];
		const char *name = set->name[0] ? set->name : NULL;
		struct evaluation_set *out = &run->evaluation_sets[run->evaluation_count];
		out->name = name;
		TRY(instances_open(&out->instances, set->shards, set->shard_count, &phase->evaluation_settings));
		run->evaluation_count++;
		if (instances_per_epoch(out->instances) > 0)
			continue;
		log_warning("%s%s too short for an instance: not evaluated", name ? name : "the held-out documents",
			    name ? " is" : " are");
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
