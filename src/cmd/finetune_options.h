/* The options of `bertc finetune`: its settings, one member for each option, and the table that declares them. */
#ifndef CMD_FINETUNE_OPTIONS_H
#define CMD_FINETUNE_OPTIONS_H

#include "cmd/command.h"
#include "cmd/squad_options.h"
#include "cmd/training_options.h"

struct finetune_settings {
	/* task */
	const char *task, *data_dir, *text_column, *pair_column, *label_column, *labels, *class_weights, *metric, *on_bad_record;
	struct option_list train, dev, test, sweep;
	int64_t max_train_samples, max_eval_samples, max_predict_samples;
	const char *negative_label, *markers, *marker_tokens, *relation_head;
	struct squad_settings squad;
	bool find_threshold;
	bool do_train, do_eval, do_predict;
	double temperature;
	const char *pooling, *score_loss, *negative_column, *query_prompt, *document_prompt;
	/* model */
	const char *model, *config_file, *vocab_file;
	bool cased;
	const char *init_layers;
	/* teacher */
	const char *teacher, *distill_layers;
	double distill_alpha, distill_temperature, distill_hidden_weight;
	/* examples */
	bool shuffle;
	struct training_settings training;
};

extern const struct option finetune_options[];
extern const struct option_foreign finetune_foreign[];
extern const struct command_text finetune_text;

#endif
