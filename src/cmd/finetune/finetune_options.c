/* The option table of `bertc finetune`, and its help. */
#include "cmd/finetune/finetune_options.h"

#define FIELD(name) offsetof(struct finetune_settings, name)

/* clang-format off */
const struct option finetune_options[] = {
	{.help = "Task"},
	{.group = labeled_rows, .field = FIELD(labeled)},
	{.help = "Model"},
	{.group = labeled_model_rows, .only = "model config_file vocab_file cased", .field = FIELD(labeled)},
	{.group = training_rows, .only = "max_seq_length hidden_dropout_prob attention_probs_dropout_prob", .unsectioned = true,
	 .field = FIELD(training)},
	{.reworded = true, .name = "max_seq_length", .alias = "max_length", .fallback_text = "128; 384 for squad",
	 .help = "maximum number of tokens per example; longer texts are truncated"},
	{.group = labeled_model_rows, .only = "init_layers", .field = FIELD(labeled)},

	{.help = "Distillation"},
	{.group = distillation_rows, .field = FIELD(distillation)},

	{.help = "Run"},
	{.group = folder_rows, .field = FIELD(training.folder)},
	{.group = length_rows, .only = "num_train_steps num_train_epochs early_stopping_patience early_stopping_threshold",
	 .unsectioned = true, .field = FIELD(training.length)},
	{.reworded = true, .name = "num_train_epochs", .fallback_text = "3; up to 10 for small models and few examples"},
	{.group = batch_rows, .unsectioned = true, .field = FIELD(training.batch)},
	{.reworded = true, .name = "train_batch_size", .fallback_text = "32",
	 .help = "examples per update, over all ranks, replicas, and micro-batches"},
	{.reworded = true, .name = "train_batch_size_per_gpu",
	 .help = "examples per update for each rank and replica, micro-batches included (BERT-GPU's train_batch_size); replaces "
	 "train_batch_size"},
	{.reworded = true, .name = "per_device_train_batch_size",
	 .help = "the batch in transformers' terms: examples per micro-batch of each rank and replica, of which an update has "
	 "gradient_accumulation_steps"},
	{.group = saving_rows, .unsectioned = true, .field = FIELD(training.saving)},
	{.reworded = true, .name = "save_checkpoints_steps", .fallback_text = "an epoch"},
	{.reworded = true, .name = "eval_steps", .fallback_text = "an epoch"},
	{.reworded = true, .name = "save_best", .fallback = "false", .alias = "load_best_model_at_end",
	 .help = "make the checkpoint that is best on the dev set the finished model; by default it is the last one, as in "
	 "published recipes, so that the dev scores are not biased by a choice made on the dev set"},
	{.reworded = true, .name = "best_by", .help = "the dev set that selects the best checkpoint"},
	{OPTION_ROW(struct finetune_settings, sweep, ROLE_PLACE, "NAME=A,B..."),
	 .help = "train with each value of each list, and keep the best on the dev set: \"learning_rate=2e-5,3e-5 seed=1,2,3\""},
	{.group = stopping_rows, .field = FIELD(training.stopping)},
	{.group = training_rows, .only = "seed", .field = FIELD(training)},
	{.reworded = true, .name = "seed", .help = "seed of the head's initial weights, example order, and dropout"},
	{.group = labeled_model_rows, .only = "shuffle", .field = FIELD(labeled)},

	{.help = "Ranks"},
	{.group = ranks_rows, .field = FIELD(training.ranks)},

	{.help = "Numbers"},
	{.group = safeguard_rows, .field = FIELD(training.numbers)},

	{.help = "Optimizer"},
	{.group = optimizer_rows, .only = "optimizer", .field = FIELD(training.optimizer)},
	{.group = rate_rows, .except = "average_weights", .unsectioned = true, .field = FIELD(training.rate)},
	{.reworded = true, .name = "learning_rate", .fallback_text = "3e-5; up to 5e-4 for models narrower than 768"},
	{.group = layer_rows, .field = FIELD(labeled.layers)},
	{.group = adapter_rows, .field = FIELD(labeled.adapter)},
	{.group = optimizer_rows, .except = "optimizer", .field = FIELD(training.optimizer)},

	{.help = "Device"},
	{.group = device_rows, .field = FIELD(training.device)},
	{.name = NULL},
};
/* clang-format on */

const struct command_text finetune_text = {
	.name = "finetune",
	.synopsis = "--task NAME --model FOLDER (--train FILE... | --data_dir FOLDER) --out FOLDER [options]",
	.summary = "fine-tune a pre-trained model on labeled data",
	.description = "Reads labeled examples, adds a head for the task to a pre-trained model, and trains both. FOLDER/final "
		       "is a Hugging Face model folder with labels and problem type in its config.json; eval_results.json and "
		       "eval_results.txt hold the measures on the dev sets, test_results.tsv and predict.txt the predictions for "
		       "--test.\n\n"
		       "Command lines of run_classifier.py, run_squad.py, run_glue.py, and run_qa.py work unchanged; those of "
		       "run_classification.py, run_ner.py, and run_swag.py need --task in addition. Their options are "
		       "understood, or an error says what to use instead.\n\n"
		       "Columns are detected by their usual names (sentence1 and sentence2, text, label, ...) and reported; "
		       "options override them. To resume an interrupted run, run the same command again, or give --out alone.",
	.common = "task model train dev test data_dir out text_column pair_column label_column labels num_train_epochs "
		  "learning_rate train_batch_size max_seq_length save_best metric sweep seed plan",
	.examples =
		"bertc finetune --task classification --model runs/mine --train train.tsv --dev dev.tsv --out runs/task\t"
		"fine-tune a model on a table of texts and labels\n"
		"bertc finetune --task mnli --model bert_base --data_dir glue/MNLI --out runs/mnli\t"
		"a GLUE task from its folder\n"
		"bertc finetune --task squad --model bert_base --train train-v2.0.json --dev dev-v2.0.json "
		"--version_2_with_negative --find_threshold --out runs/qa\tSQuAD 2.0, with a threshold chosen on the dev set\n",
};
