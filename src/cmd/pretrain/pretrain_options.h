/* The options of `bertc pretrain`: its settings, one member for each option, and the table that declares them. */
#ifndef CMD_PRETRAIN_PRETRAIN_OPTIONS_H
#define CMD_PRETRAIN_PRETRAIN_OPTIONS_H

#include "base/option.h"
#include "cmd/command.h"
#include "model/model_size_options.h"
#include "cmd/recipes.h"
#include "data/pretraining/instance_options.h"
#include "run/initial_weights.h"
#include "run/run_data.h"
#include "run/training_options.h"

struct pretrain_settings {
	struct training_options training; /* first, as run/training_options.h asks */
	enum recipe_name recipe;
	/* text */
	struct option_list corpus, data, input_file, eval_corpus, eval_data, eval_file;
	const char *vocab_file;
	struct text_options text;
	bool cased;
	/* model */
	struct model_sizes sizes;
	const char *model;
	struct initial_options initial;
	/* phases */
	int64_t eval_instances;
	const char *time;
	bool phase2, resume_phase2;
	int64_t phase1_end_step;
	/* instances */
	struct instance_options instances;
	bool shuffle;
};

extern const struct option pretrain_options[];
extern const struct command_text pretrain_text;
extern const struct option_foreign pretrain_foreign[]; /* pretrain_foreign.c */

#endif
