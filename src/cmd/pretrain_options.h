/* The options of `bertc pretrain`: its settings, one member for each option, and the table that declares them. */
#ifndef CMD_PRETRAIN_OPTIONS_H
#define CMD_PRETRAIN_OPTIONS_H

#include "base/option.h"
#include "cmd/command.h"
#include "cmd/model_size_options.h"
#include "run/training_options.h"
#include "text/input_options.h"

struct pretrain_settings {
	struct training_options training; /* first, as run/training_options.h asks */
	const char *recipe;
	/* text */
	struct option_list corpus, data, input_file, eval_corpus, eval_data, eval_file;
	const char *vocab_file;
	struct input_options input;
	int64_t vocab_size, min_frequency;
	bool cased;
	bool drop_copied_documents;
	double held_out_fraction;
	/* model */
	struct model_sizes sizes;
	const char *model, *init_checkpoint, *init_vocab, *init_tokens, *init_positions, *init_attention;
	bool remap_vocab;
	/* phases */
	int64_t eval_instances;
	const char *time;
	bool phase2, resume_phase2;
	int64_t phase1_end_step;
	/* instances */
	int64_t min_seq_length, max_predictions_per_seq, max_ngram;
	double masked_lm_prob, short_seq_prob;
	bool whole_word_mask, shuffle;
	const char *next_sentence;
};

/* Rows that `bertc plan` has as well. `place`: the offset of the value in the command's settings. */
#define MASKED_LM_PROB_OPTION(place)                                                                                             \
	{                                                                                                                        \
		.name = "masked_lm_prob", .section = "phase", .type = OPTION_NUMBER, .field = place, .range = "0.01..0.9",       \
		.fallback = "0.15", .role = ROLE_RESULT, .value_name = "P", .alias = "mlm_probability mask_prob",                \
		.help = "share of tokens to mask and predict; evaluations always mask 0.15"                                      \
	}
#define MAX_PREDICTIONS_OPTION(place)                                                                                            \
	{                                                                                                                        \
		.name = "max_predictions_per_seq", .section = "phase", .type = OPTION_INTEGER, .field = place,                   \
		.range = "0..65536", .fallback = "0", .role = ROLE_RESULT, .value_name = "N",                                    \
		.help = "maximum number of masked tokens per instance; 0 = no limit"                                             \
	}

extern const struct option pretrain_options[];
extern const struct command_text pretrain_text;
extern const struct option_foreign pretrain_foreign[]; /* pretrain_foreign.c */

#endif
