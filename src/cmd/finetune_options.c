#include "cmd/finetune_options.h"

#include "train/schedule.h"

#define FIELD(name) offsetof(struct finetune_settings, name)
#define TEXT(option, place, names, value, text)                                                                                  \
	{                                                                                                                        \
		.name = option, .type = OPTION_TEXT, .field = FIELD(place), .role = ROLE_RESULT, .value_name = value,            \
		.alias = names, .help = text                                                                                     \
	}
#define FILES(option, place, names, text)                                                                                        \
	{                                                                                                                        \
		.name = option, .type = OPTION_LIST, .field = FIELD(place), .role = ROLE_SOURCE, .value_name = "[NAME=]FILE...", \
		.alias = names, .help = text                                                                                     \
	}

const struct option finetune_options[] = {
	{.help = "Task"},
	TEXT("task", task, "task_name", "NAME",
	     "what is to be learned: classification, pair, regression, multilabel, multiple_choice, tagging, relation, squad, "
	     "or a published task such as mrpc or mnli"),
	FILES("train", train, "train_file", "labelled examples to train on: TSV, CSV or JSON lines, told apart by content"),
	FILES("dev", dev, "validation_file eval_file", "examples to evaluate on; each name begins a set of its own"),
	FILES("test", test, "test_file predict_file", "examples to predict when training is done; labels may be absent"),
	TEXT("text_column", text_column, NULL, "COLUMN", "the column with the text, by name or by number from 1"),
	TEXT("pair_column", pair_column, NULL, "COLUMN", "the column with the second text of a pair"),
	TEXT("label_column", label_column, NULL, "COLUMN", "the column with the label"),
	TEXT("labels", labels, NULL, "A,B,C", "all labels, in the order of their numbers"),
	TEXT("class_weights", class_weights, NULL, "WEIGHTS",
	     "weights of the classes in the loss: label:weight,label:weight, or balanced"),
	TEXT("metric", metric, "metric_for_best_model", "NAME",
	     "the measure of the dev set that says which checkpoint is best and when to stop, such as accuracy, f1 or loss"),
	{.name = "on_bad_record",
	 .type = OPTION_CHOICE,
	 .field = FIELD(on_bad_record),
	 .fallback = "stop",
	 .range = "stop|skip",
	 .role = ROLE_RESULT,
	 .value_name = "WHAT",
	 .help = "a row that cannot be used ends the run, or is left out and counted"},
	{.help = "Relations"},
	TEXT("negative_label", negative_label, NULL, "LABEL",
	     "the class that says that there is nothing: it is left out of micro F1"),
	TEXT("markers", markers, NULL, "A,B,C,D",
	     "what stands before and behind the first and the second mention; otherwise found: << >> [[ ]], [E1] [/E1] [E2] "
	     "[/E2], "
	     "<e1> </e1> <e2> </e2>"),
	{.name = "marker_tokens",
	 .type = OPTION_CHOICE,
	 .field = FIELD(marker_tokens),
	 .fallback = "auto",
	 .range = "auto|text|vocabulary",
	 .role = ROLE_RESULT,
	 .value_name = "WHAT",
	 .help = "markers are read as text, or as entries of the vocabulary, which take free rows ([unused...]) if they have to; "
		 "auto: entries if the vocabulary has them"},
	{.name = "relation_head",
	 .type = OPTION_CHOICE,
	 .field = FIELD(relation_head),
	 .fallback = "cls",
	 .range = "cls|markers",
	 .role = ROLE_RESULT,
	 .value_name = "WHAT",
	 .help = "what the head reads: [CLS], or both opening markers side by side, for which transformers has no class"},
	SQUAD_OPTIONS(struct finetune_settings, squad, ROLE_RESULT, NULL),
	{.name = "find_threshold",
	 .type = OPTION_FLAG,
	 .field = FIELD(find_threshold),
	 .fallback = "false",
	 .role = ROLE_RUN,
	 .help = "SQuAD 2.0: choose null_score_diff_threshold on the first dev set when training is done"},
	{.help = "Model"},
	{.name = "model",
	 .type = OPTION_TEXT,
	 .field = FIELD(model),
	 .role = ROLE_SOURCE,
	 .value_name = "FOLDER",
	 .alias = "model_name_or_path init_checkpoint",
	 .help = "the pre-trained model: a run or checkpoint of bertc, or any BERT folder with its vocabulary"},
	{.name = "max_seq_length",
	 .type = OPTION_INTEGER,
	 .field = FIELD(training.max_seq_length),
	 .range = "8..65536",
	 .role = ROLE_RESULT,
	 .value_name = "N",
	 .alias = "max_length",
	 .fallback_text = "128; 384 for squad",
	 .help = "tokens of an example at most; longer texts are cut"},
	DROPOUT_OPTIONS(struct finetune_settings, training),

	{.help = "Run"},
	RUN_FOLDER_OPTIONS(struct finetune_settings, training),
	LENGTH_OPTIONS(struct finetune_settings, training, NULL, "3"),
	BATCH_OPTIONS(struct finetune_settings, training, NULL, "examples", "32", " per_device_train_batch_size"),
	SAVING_OPTIONS(struct finetune_settings, training, NULL, "an epoch"),
	{.name = "save_best",
	 .type = OPTION_FLAG,
	 .field = FIELD(training.save_best),
	 .fallback = "false",
	 .role = ROLE_RUN,
	 .alias = "load_best_model_at_end",
	 .help = "the finished model is the checkpoint that is best on the first dev set instead of the last"},
	{.name = "best_by",
	 .type = OPTION_TEXT,
	 .field = FIELD(training.best_by),
	 .role = ROLE_RUN,
	 .value_name = "NAME",
	 .fallback_text = "the first",
	 .help = "the dev set that decides"},
	STOPPING_OPTIONS(struct finetune_settings, training),
	SEED_OPTION(struct finetune_settings, training, "the head's initial weights, the order of examples, and dropout"),
	{.name = "shuffle",
	 .type = OPTION_FLAG,
	 .field = FIELD(shuffle),
	 .fallback = "true",
	 .role = ROLE_RESULT,
	 .help = "examples in another order in every epoch; false: in the order of the files"},

	{.help = "Ranks"},
	RANK_OPTIONS(struct finetune_settings, training),

	{.help = "Numbers"},
	NUMBER_OPTIONS(struct finetune_settings, training),

	{.help = "Optimiser"},
	OPTIMIZER_OPTIONS(struct finetune_settings, training, NULL, "3e-5; 1e-4 for small models"),

	{.help = "Device"},
	DEVICE_OPTIONS(struct finetune_settings, training.device),
	{.name = NULL},
};

const struct command_text finetune_text = {
	.name = "finetune",
	.synopsis = "--task NAME --model FOLDER --train FILE... --out FOLDER [options]",
	.summary = "train a pre-trained model for a task with labels",
	.description =
		"Reads labelled examples, puts a head for the task on a pre-trained model and trains both. FOLDER/final is a "
		"Hugging Face folder with labels and problem type in its config.json; eval_results.json and eval_results.txt "
		"hold the measures of the dev sets, test_results.tsv and predict.txt the predictions for --test.\n\n"
		"Columns are found by their usual names (sentence1 and sentence2, text, label, ...) and reported; options "
		"override. An interrupted run resumes when the same command is run again.",
	.examples = "bertc finetune --task classification --model runs/mine --train train.tsv --dev dev.tsv --out runs/task\t"
		    "fine-tune a model on a table of texts and labels\n",
};
