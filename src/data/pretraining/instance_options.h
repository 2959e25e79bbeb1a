/* How instances are made of text: options of pre-training, for each phase. */
#ifndef DATA_PRETRAINING_INSTANCE_OPTIONS_H
#define DATA_PRETRAINING_INSTANCE_OPTIONS_H

#include "base/option.h"
#include "data/pretraining/instances.h"
#include "text/vocab.h"

struct instance_options {
	int64_t min_seq_length;
	double masked_lm_prob;
	int64_t max_predictions_per_seq; /* 0 = no limit */
	double short_seq_prob;
	bool whole_word_mask;
	int64_t max_ngram;
	enum next_sentence next_sentence;
	double running_text_share;
};
extern const struct option instance_rows[];

/* The same as settings, without seed, length, and vocabulary, which are the run's. */
struct instance_settings instance_options_settings(const struct instance_options *options);
/* ERR_DATA if the vocabulary lacks a special token that instances need. */
MUST_USE enum status instance_vocab_check(const struct vocab *vocab);
/* Fills in what instances know of their vocabulary, which has been checked. */
void instance_settings_take_vocab(struct instance_settings *settings, const struct vocab *vocab);

#endif
