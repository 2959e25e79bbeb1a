/* The options of `bertc finetune`: its settings, one member for each option, and the table that declares them. */
#ifndef CMD_FINETUNE_FINETUNE_OPTIONS_H
#define CMD_FINETUNE_FINETUNE_OPTIONS_H

#include "cmd/command.h"
#include "formats/bad_records.h"
#include "run/training_options.h"
#include "tasks/task_options.h"

struct finetune_settings {
	struct training_options training; /* first, as run/training_options.h asks */
	/* task */
	const char *task, *data_dir, *text_column, *pair_column, *label_column, *labels, *class_weights, *metric;
	enum on_bad_record on_bad_record;
	struct option_list train, dev, test, sweep;
	int64_t max_train_samples, max_eval_samples, max_predict_samples;
	const char *negative_label, *negative_column;
	struct task_options own; /* of each task */
	bool do_train, do_eval, do_predict;
	/* model */
	const char *model, *config_file, *vocab_file;
	bool cased;
	const char *init_layers;
	/* teacher */
	const char *teacher, *distill_layers;
	double distill_alpha, distill_temperature, distill_hidden_weight;
	/* examples */
	bool shuffle;
};

extern const struct option finetune_options[];
extern const struct option_foreign finetune_foreign[];
extern const struct command_text finetune_text;

#endif
