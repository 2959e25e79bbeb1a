/* The option table of `bertc finetune`, and its help. */
#include "cmd/finetune/finetune_options.h"

#define FIELD(name) offsetof(struct finetune_settings, name)
#define ROW(member, role, value) OPTION_ROW(struct finetune_settings, member, role, value)
#define TEXT(option, place, names, value, text)                                                                                  \
	{                                                                                                                        \
		.name = option, .type = OPTION_TEXT, .field = FIELD(place), .role = ROLE_RESULT, .value_name = value,            \
		.alias = names, .help = text                                                                                     \
	}
#define MOST(place, names, sets)                                                                                                 \
	{                                                                                                                        \
		.name = #place, .type = OPTION_INTEGER, .field = FIELD(place), .range = "1..", .role = ROLE_RESULT,              \
		.value_name = "N", .fallback_text = "all", .alias = names,                                                       \
		.help = "use only the first N examples of " sets " (questions, sentences), for a quick try"                      \
	}
#define FILES(option, place, names, text)                                                                                        \
	{                                                                                                                        \
		.name = option, .type = OPTION_LIST, .field = FIELD(place), .role = ROLE_SOURCE, .value_name = "[NAME=]FILE...", \
		.alias = names, .help = text                                                                                     \
	}

/* clang-format off */
const struct option finetune_options[] = {
	{.help = "Task"},
	TEXT("task", task, "task_name", "NAME",
	     "what to learn: classification, pair, regression, multilabel, multiple_choice, tagging, relation, squad, embedding, "
	     "reranking, rewriting, or a published task: cola, sst-2, mrpc, qqp, sts-b, mnli, qnli, rte, wnli, xnli, swag, "
	     "chemprot, scicite"),
	FILES("train", train, "train_file", "labeled training examples: TSV, CSV, or JSON lines, detected from the content"),
	FILES("dev", dev, "validation_file eval_file", "examples to evaluate on; each NAME= starts a separate set"),
	FILES("test", test, "test_file predict_file", "examples to predict after training; labels are optional"),
	MOST(max_train_samples, NULL, "the training files"),
	MOST(max_eval_samples, "max_val_samples", "each dev set"),
	MOST(max_predict_samples, "max_test_samples", "each test set"),
	{ROW(data_dir, ROLE_SOURCE, "FOLDER"),
	 .help = "a folder with the files of the task under their usual names (train.tsv, dev_matched.tsv, ...), "
	 "for those of --train, --dev and --test that are not given"},
	{ROW(do_train, ROLE_PLACE, NULL), .fallback_text = "true without do_eval and do_predict",
	 .help = "train the model; if false, it is evaluated and used as it is"},
	{ROW(do_eval, ROLE_PLACE, NULL), .fallback_text = "true where there are dev sets",
	 .help = "evaluate the dev sets"},
	{ROW(do_predict, ROLE_PLACE, NULL), .fallback_text = "true with --test, false for the test files of --data_dir",
	 .help = "predict the test sets"},
	TEXT("text_column", text_column, "text_column_name", "COLUMN", "column of the text, by name or by number from 1"),
	TEXT("pair_column", pair_column, NULL, "COLUMN", "column of the second text of a pair"),
	TEXT("label_column", label_column, "label_column_name", "COLUMN", "column of the label"),
	TEXT("negative_column", negative_column, NULL, "COLUMN[,COLUMN...]",
	     "columns with texts that do not match the text (hard negatives), for embeddings and rerankers"),
	TEXT("labels", labels, NULL, "A,B,C", "all labels in the order of their class numbers"),
	TEXT("class_weights", class_weights, NULL, "WEIGHTS",
	     "class weights in the loss: label:weight,label:weight,..., or balanced"),
	TEXT("negative_label", negative_label, NULL, "LABEL", "the class that means \"no relation\", which micro F1 leaves out"),
	TEXT("metric", metric, "metric_for_best_model", "NAME",
	     "dev set measure that selects the best checkpoint and triggers early stopping, such as accuracy, f1, or loss"),
	{ROW(on_bad_record, ROLE_RESULT, "WHAT"), .range = "stop|skip", .fallback = "stop",
	 .help = "on a row that cannot be used: stop with an error, or skip and count it"},
	{.group = task_rows, .field = FIELD(own)},
	{.help = "Model"},
	{ROW(model, ROLE_START, "FOLDER"), .alias = "model_name_or_path init_checkpoint",
	 .help = "pre-trained model: a bertc run or checkpoint, or any BERT folder with its vocabulary"},
	{ROW(config_file, ROLE_START, "FILE"), .alias = "bert_config_file", .fallback_text = "beside the weights",
	 .help = "the model's config.json or bert_config.json"},
	{ROW(vocab_file, ROLE_START, "FILE"), .fallback_text = "beside the weights",
	 .help = "the model's vocabulary: vocab.txt or tokenizer.json, or a folder with one"},
	{ROW(cased, ROLE_RESULT, NULL), .fallback_text = "as the model's folder says",
	 .help = "keep upper-case letters and accents"},
	{.group = training_rows, .only = "max_seq_length hidden_dropout_prob attention_probs_dropout_prob", .unsectioned = true,
	 .field = FIELD(training)},
	{.reworded = true, .name = "max_seq_length", .alias = "max_length", .fallback_text = "128; 384 for squad",
	 .help = "maximum number of tokens per example; longer texts are truncated"},
	TEXT("init_layers", init_layers, NULL, "N,N,...",
	     "start with only these layers of the model, counted from 0, such as 0,2,4"),

	{.help = "Distillation"},
	{ROW(teacher, ROLE_SOURCE, "FOLDER"), .alias = "teacher_model teacher_name_or_path",
	 .help = "a model fine-tuned for the same task; training uses its answers in addition to the labels"},
	{ROW(distill_alpha, ROLE_RESULT, "A"), .range = "0..1", .fallback = "0.5", .alias = "alpha_ce",
	 .help = "weight of the loss against the teacher's answers; that of the labels has weight 1 - A"},
	{ROW(distill_temperature, ROLE_RESULT, "T"), .range = "0.01..1000", .fallback = "2",
	 .help = "divide the logits of both models by this before the softmax; the loss is multiplied by its square"},
	TEXT("distill_layers", distill_layers, NULL, "S:T,S:T...",
	     "pairs of the model's and the teacher's layers whose outputs are matched, 0 being the embeddings: 1:3,2:6; uniform: "
	     "all, spread evenly over the teacher's"),
	{ROW(distill_hidden_weight, ROLE_RESULT, "W"), .range = "0..1e6", .fallback = "1",
	 .help = "weight of the layers' mean squared errors, which are added up"},

	{.help = "Run"},
	{.group = folder_rows, .field = FIELD(training.folder)},
	{.group = length_rows, .only = "num_train_steps num_train_epochs early_stopping_patience early_stopping_threshold",
	 .unsectioned = true, .field = FIELD(training.length)},
	{.reworded = true, .name = "num_train_epochs", .fallback_text = "3"},
	{.group = batch_rows, .unsectioned = true, .field = FIELD(training.batch)},
	{.reworded = true, .name = "train_batch_size", .fallback_text = "32",
	 .help = "examples per update, over all ranks, replicas, and micro-batches"},
	{.reworded = true, .name = "train_batch_size_per_gpu",
	 .help = "examples per update for each rank and replica, including micro-batches, instead of for all "
	 "(BERT-GPU's train_batch_size)"},
	{.reworded = true, .name = "per_device_train_batch_size",
	 .help = "the batch in transformers' terms: examples per micro-batch of each rank and replica, of which an "
	 "update has gradient_accumulation_steps"},
	{.group = saving_rows, .unsectioned = true, .field = FIELD(training.saving)},
	{.reworded = true, .name = "save_checkpoints_steps", .fallback_text = "an epoch"},
	{.reworded = true, .name = "eval_steps", .fallback_text = "an epoch"},
	{.reworded = true, .name = "save_best", .fallback = "false", .alias = "load_best_model_at_end",
	 .help = "make the checkpoint that is best on the dev set the finished model; by default it is the last one, "
	 "as in published recipes, so that the dev scores are not biased by a choice made on the dev set"},
	{.reworded = true, .name = "best_by", .help = "the dev set that selects the best checkpoint"},
	{ROW(sweep, ROLE_PLACE, "NAME=A,B..."),
	 .help = "train with each value of each list, and keep the best on the dev set: \"learning_rate=2e-5,3e-5 "
	 "seed=1,2,3\""},
	{.group = stopping_rows, .field = FIELD(training.stopping)},
	{.group = training_rows, .only = "seed", .field = FIELD(training)},
	{.reworded = true, .name = "seed", .help = "seed of the head's initial weights, example order, and dropout"},
	{ROW(shuffle, ROLE_RESULT, NULL), .fallback = "true",
	 .help = "shuffle the examples in every epoch; false: keep the order of the files"},

	{.help = "Ranks"},
	{.group = ranks_rows, .field = FIELD(training.ranks)},

	{.help = "Numbers"},
	{.group = number_rows, .field = FIELD(training.numbers)},

	{.help = "Optimizer"},
	{.group = optimizer_rows, .only = "optimizer", .field = FIELD(training.optimizer)},
	{.group = rate_rows,
	 .only = "learning_rate scale_learning_rate learning_rate_batch_size schedule num_warmup_steps warmup_proportion "
		 "min_warmup_steps num_decay_steps poly_degree min_learning_rate",
	 .unsectioned = true, .field = FIELD(training.rate)},
	{.reworded = true, .name = "learning_rate", .fallback_text = "3e-5; 1e-4 for small models"},
	{.group = optimizer_rows,
	 .only = "weight_decay exclude_from_weight_decay max_grad_norm adam_beta1 adam_beta2 adam_epsilon bias_correction "
		 "trust_ratio exclude_from_layer_adaptation max_trust_ratio gradient_normalization gradient_averaging",
	 .field = FIELD(training.optimizer)},

	{.help = "Device"},
	{.group = device_rows, .field = FIELD(training.device)},
	{.name = NULL},
};
/* clang-format on */

const struct command_text finetune_text = {
	.name = "finetune",
	.synopsis = "--task NAME --model FOLDER (--train FILE... | --data_dir FOLDER) --out FOLDER [options]",
	.summary = "fine-tune a pre-trained model on labeled data",
	.description =
		"Reads labeled examples, adds a head for the task to a pre-trained model, and trains both. FOLDER/final is a "
		"Hugging Face model folder with labels and problem type in its config.json; eval_results.json and "
		"eval_results.txt hold the measures on the dev sets, test_results.tsv and predict.txt the predictions for "
		"--test.\n\n"
		"Command lines of run_classifier.py, run_squad.py, run_glue.py and run_qa.py work as they are, those of "
		"run_classification.py, run_ner.py and run_swag.py with --task added: their options are understood, or the "
		"answer says what to use "
		"instead.\n\n"
		"Columns are detected by their usual names (sentence1 and sentence2, text, label, ...) and reported; options "
		"override them. To resume an interrupted run, run the same command again, or give --out alone.",
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
