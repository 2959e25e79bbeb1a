/* Vocabulary, shards and instances of `bertc pretrain`. */
#include <string.h>

#include "base/log.h"
#include "cmd/pretrain.h"

/* Vocabulary and shards. A model folder to go on from brings its vocabulary. */
enum status pretrain_open_data(struct pretrain *run)
{
	struct pretrain_settings *settings = run->settings;
	char vocab_beside[PATH_BYTES], source_folder[PATH_BYTES];
	const char *vocab_file = settings->vocab_file;
	const char *source = pretrain_initial_weights(settings);
	if (!vocab_file && source && !run->resumed) {
		TRY(session_model_folder(source, source_folder));
		TRY(path_join(vocab_beside, source_folder, "vocab.txt"));
		if (file_exists(vocab_beside))
			vocab_file = vocab_beside;
	}
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

int64_t pretrain_train_tokens(const struct pretrain *run)
{
	int64_t tokens = 0;
	for (int64_t i = 0; i < run->data.train_count; i++)
		tokens += run->data.train[i].token_count;
	return tokens;
}

enum status pretrain_open_instances(struct pretrain *run)
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
