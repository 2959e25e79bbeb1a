/* Option names from google-research/bert's run_classifier.py and run_squad.py, NVIDIA's run_glue.py, run_squad.py, and
 * run_swag.py, and transformers' run_glue.py, run_classification.py, run_xnli.py, run_qa.py, run_ner.py, and run_swag.py that are
 * not options here: what happens to each, and what to use instead. Names that mean the same as one of our options are its aliases
 * (finetune_options.c). */
#include "cmd/finetune/finetune_options.h"
#include "cmd/foreign_rows.h"

/* clang-format off */
const struct option_foreign finetune_foreign[] = {
	/* Folders */
	FLAG_MEANS("overwrite_output_dir", "fresh", "true"),
	FLAG_LEFT_OUT("skip_cache", "the examples are read again in every run"),

	/* Model */
	VALUE_REFUSED_BUT("model_type", "bert", "--model names the model, whose config.json has its type"),
	VALUE_REFUSED("config_name", "--config_file names a config.json"),
	VALUE_REFUSED("tokenizer_name", "--vocab_file names a vocabulary"),
	FLAG_LEFT_OUT("ignore_mismatched_sizes", "a head with other classes is replaced by a new one, with a message"),

	/* Data */
	VALUE_REFUSED("text_column_names",
		"--text_column names the column of the text and --pair_column that of a second text; to learn from several "
		"columns as one text, join them in the file"),
	VALUE_LEFT_OUT("text_column_delimiter", "columns are not joined: --text_column names the column of the text"),
	VALUE_LEFT_OUT("metric_name",
		"all measures of the task are computed; --metric names the one that selects the best checkpoint"),
	FLAG_MEANS("do_regression", "task", "regression"),
	FLAG_LEFT_OUT("shuffle_train_dataset",
		"examples are shuffled in every epoch, unless --shuffle is false; --max_train_samples takes the first ones of "
		"the file, so shuffle the file itself for that"),
	VALUE_REFUSED("train_split_name validation_split_name test_split_name remove_splits",
		"--train, --dev and --test name the files to use"),
	VALUE_REFUSED("language train_language", "--train, --dev and --test name the files of each language"),
	VALUE_LEFT_OUT("remove_columns", "columns that are not used are not read"),
	VALUE_LEFT_OUT("max_eval_steps", "the dev sets are always evaluated as a whole"),
	FLAG_REFUSED("label_all_tokens", "a word's tag is learned and predicted at its first piece only"),
	FLAG_LEFT_OUT("return_entity_level_metrics", "eval_results.json and the report list each type of entity"),

	/* Steps */
	VALUE_LEFT_OUT("eval_batch_size predict_batch_size per_device_eval_batch_size per_gpu_eval_batch_size",
		"the result does not depend on how much is computed at a time"),
	FLAG_LEFT_OUT("evaluate_during_training eval_all_checkpoints", "the dev sets are evaluated every --eval_steps"),
	VALUE_LEFT_OUT("save_strategy logging_strategy evaluation_strategy eval_strategy",
		"use --save_checkpoints_steps, --log_steps and --eval_steps; by default bertc saves and evaluates after every "
		"epoch"),

	/* Machine and reports */
	VALUE_REFUSED("dataset_name dataset_config_name",
		"training downloads nothing: --train and --dev name files, --data_dir a folder; `bertc download` fetches some "
		"data sets by name"),
	VALUE_LEFT_OUT("eval_script", "bertc computes the measures of the official scripts itself"),
	VALUE_LEFT_OUT("server_ip server_port", "it attaches a Python debugger"),
	{.rest = training_foreign},
};
