/* Rows of the options that say what is fine-tuned, and with which files. */
#include "run/labeled_options.h"

#define ROW(member, role, value) OPTION_ROW(struct labeled_options, member, role, value)
#define MOST(member, names, sets)                                                                                                \
	{                                                                                                                        \
		ROW(member, ROLE_RESULT, "N"),                                                                                   \
			.range = "1..", .fallback_text = "all", .alias = names,                                                  \
			.help = "use only the first N examples of " sets " (questions, sentences), for a quick try"              \
	}

/* clang-format off */
const struct option labeled_rows[] = {
	{ROW(task, ROLE_RESULT, "NAME"), .alias = "task_name",
	 .help = "what to learn: classification, pair, regression, multilabel, multiple_choice, tagging, relation, squad, "
	 "embedding, reranking, rewriting, or a published task: cola, sst-2, mrpc, qqp, sts-b, mnli, qnli, rte, wnli, xnli, "
	 "swag, chemprot, scicite"},
	{ROW(train, ROLE_SOURCE, "[NAME=]FILE..."), .alias = "train_file",
	 .help = "labeled training examples: TSV, CSV, or JSON lines, detected from the content; for embeddings, each NAME= "
	 "starts a set with batches of its own"},
	{ROW(dev, ROLE_SOURCE, "[NAME=]FILE..."), .alias = "validation_file eval_file",
	 .help = "examples to evaluate on; each NAME= starts a separate set"},
	{ROW(test, ROLE_SOURCE, "[NAME=]FILE..."), .alias = "test_file predict_file",
	 .help = "examples to predict after training; labels are optional"},
	MOST(max_train_samples, NULL, "the training files"),
	MOST(max_eval_samples, "max_val_samples", "each dev set"),
	MOST(max_predict_samples, "max_test_samples", "each test set"),
	{ROW(data_dir, ROLE_SOURCE, "FOLDER"),
	 .help = "a folder with the task's files under their usual names (train.tsv, dev_matched.tsv, ...); replaces "
	 "whichever of --train, --dev, and --test are not given"},
	{ROW(do_train, ROLE_PLACE, NULL), .fallback_text = "true without do_eval and do_predict",
	 .help = "train the model; if false, it is evaluated and used as it is"},
	{ROW(do_eval, ROLE_PLACE, NULL), .fallback_text = "true where there are dev sets", .help = "evaluate the dev sets"},
	{ROW(do_predict, ROLE_PLACE, NULL), .fallback_text = "true with --test, false for the test files of --data_dir",
	 .help = "predict the test sets"},
	{.group = column_rows, .field = offsetof(struct labeled_options, columns)},
	{.reworded = true, .name = "text_column", .alias = "text_column_name"},
	{.reworded = true, .name = "label_column", .alias = "label_column_name"},
	{ROW(negative_column, ROLE_RESULT, "COLUMN[,COLUMN...]"),
	 .help = "columns with texts that do not match the text (hard negatives), for embeddings and rerankers"},
	{ROW(labels, ROLE_RESULT, "A,B,C"), .help = "all labels in the order of their class numbers"},
	{ROW(class_weights, ROLE_RESULT, "WEIGHTS"),
	 .help = "class weights in the loss: label:weight,label:weight,..., or balanced; with several labels, weights of the "
	 "examples that have a label"},
	{ROW(label_smoothing, ROLE_RESULT, "E"), .alias = "label_smoothing_factor", .range = "0..0.99", .fallback = "0",
	 .help = "spread this share of each class label evenly over all classes, so that the model becomes less certain"},
	{ROW(negative_label, ROLE_RESULT, "LABEL"), .help = "the class that means \"no relation\", which micro F1 leaves out"},
	{ROW(metric, ROLE_RESULT, "NAME"), .alias = "metric_for_best_model",
	 .help = "dev set measure that selects the best checkpoint and triggers early stopping, such as accuracy, f1, or loss"},
	{ROW(on_bad_record, ROLE_RESULT, "WHAT"), .range = "stop|skip", .fallback = "stop",
	 .help = "on a row that cannot be used: stop with an error, or skip and count it"},
	{.group = fold_rows, .field = offsetof(struct labeled_options, folds)},
	{.group = window_rows, .field = offsetof(struct labeled_options, windows)},
	{.group = calibration_rows, .field = offsetof(struct labeled_options, calibration)},
	{.reworded = true, .name = "calibrate",
	 .help = "after training, find on the first dev set the temperature that calibrates the probabilities of classes or "
	 "labels (of answers given with 90 %, 90 % are right)"},
	{.reworded = true, .name = "thresholds",
	 .help = "after training, choose on the first dev set the probability that each label must reach: for the best F1 "
	 "(several labels, or two classes), or for a precision P from 0 to 1"},
	{.group = task_rows, .field = offsetof(struct labeled_options, own)},
	{0},
};

const struct option labeled_model_rows[] = {
	{ROW(model, ROLE_START, "FOLDER"), .alias = "model_name_or_path init_checkpoint",
	 .help = "pre-trained model: a bertc run or checkpoint, or any BERT folder with its vocabulary"},
	{ROW(config_file, ROLE_START, "FILE"), .alias = "bert_config_file", .fallback_text = "beside the weights",
	 .help = "the model's config.json or bert_config.json"},
	{ROW(vocab_file, ROLE_START, "FILE"), .fallback_text = "beside the weights",
	 .help = "the model's vocabulary: vocab.txt or tokenizer.json, or a folder with one"},
	{ROW(cased, ROLE_RESULT, NULL), .fallback_text = "as the model's folder says",
	 .help = "keep upper-case letters and accents"},
	{ROW(init_layers, ROLE_RESULT, "N,N,..."),
	 .help = "start with only these layers of the model, counted from 0, such as 0,2,4"},
	{ROW(shuffle, ROLE_RESULT, NULL), .fallback = "true",
	 .help = "shuffle the examples in every epoch; false: keep the order of the files"},
	{0},
};
