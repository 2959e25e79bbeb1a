/* What is fine-tuned, for which task, and with which files: options of `bertc finetune`. */
#ifndef RUN_LABELED_OPTIONS_H
#define RUN_LABELED_OPTIONS_H

#include "base/option.h"
#include "formats/bad_records.h"
#include "tasks/folds.h"
#include "run/adapter_options.h"
#include "tasks/task_options.h"
#include "train/layer_options.h"

/* NULL, 0, or empty: not given. */
struct labeled_options {
	const char *task;
	struct option_list train, dev, test;                              /* paths; for dev and test [NAME=]PATH */
	int64_t max_train_samples, max_eval_samples, max_predict_samples; /* of each set */
	const char *data_dir;                                             /* a folder of a published task's files */
	bool do_train, do_eval, do_predict;
	struct column_choice columns;
	const char *negative_column, *labels, *class_weights, *negative_label, *metric;
	double label_smoothing; /* share of a class label that is spread over all classes */
	enum on_bad_record on_bad_record;
	struct fold_options folds;
	struct window_options windows;
	struct calibration_options calibration;
	struct task_options own; /* of each task */
	/* The model that is trained: */
	const char *model;                    /* where the encoder comes from */
	const char *config_file, *vocab_file; /* in place of those beside the model's weights */
	bool cased;
	const char *init_layers; /* "0,2,4": the layers, counted from 0, of which a smaller model is made */
	bool shuffle;
	struct layer_options layers;
	struct adapter_options adapter;
};
extern const struct option labeled_rows[];       /* of the task and its files */
extern const struct option labeled_model_rows[]; /* of the rest */

#endif
