/* A fine-tuning run: a pre-trained model, the files of a labeled task, and the objective made from them. */
#ifndef RUN_LABELED_RUN_H
#define RUN_LABELED_RUN_H

#include "run/distillation_run.h"
#include "run/labeled_options.h"
#include "run/run.h"
#include "tasks/task.h"
#include "train/labeled.h"
#include "weights/model_files.h"
#include "weights/model_folder.h"
#include "weights/sentence_folder.h"

/* What the finished model scored on the dev set that decides which checkpoint is best. */
struct labeled_result {
	int64_t step;
	const char *set; /* its name; "": the only one; NULL: there is no dev set */
	double score;    /* by the measure task.decides */
};

/* Zero-initialize; released also after a failure. */
struct labeled_run {
	const struct labeled_options *given; /* of the run's options; borrowed */
	struct run *run;                     /* borrowed, including its one phase */
	struct run_task task;
	struct task_state state;
	struct bad_records bad;
	struct string_store strings;
	struct model_heads heads;
	struct task_config config;       /* for config.json */
	struct sentence_folder sentence; /* for embeddings: what the model's folder says, then what is written */
	struct task_config folder;       /* what the model's folder says about its head */
	struct folder_tokenizer tokenizer;
	struct tokenizer *encoder;
	struct model_source source;
	struct model_files files; /* of the initial model, as they were when it was found */
	struct task_set train;
	struct task_set *dev, *test; /* [dev_count], [test_count] */
	int64_t dev_count, test_count;
	int64_t *fold_rows; /* with --folds: where in the training files the dev set's examples are, from 1 */
	const char **names; /* of sets; owned by strings */
	struct instances *instances;
	struct task_preview preview;
	const char **preview_labels;
	struct distillation_run distillation;
	int32_t *init_layers; /* [config.num_hidden_layers] the layer of the source model that each layer's weights are read from;
				 NULL: the same one */
	int32_t source_layers;        /* number of layers of that model */
	bool continues_head;          /* the folder's head has the task's labels */
	struct labeled_result result; /* set by labeled_run_finish() */
};

/* Fills in out->task, with which `run` is then opened. */
void labeled_run_begin(struct labeled_run *out, struct run *run);
/* Call it after run_open_device(). Reads the model's tokenizer and the task's files, and chooses whatever must be settled before
 * run_plan(). `given` is a part of the run's own options. [all] */
MUST_USE enum status labeled_run_prepare(struct labeled_run *labeled, const struct labeled_options *given,
					 const struct distillation_options *distillation);
/* Would these options also work for a run on the same files? Call it once the run is prepared. Whatever is open in them is chosen
 * as for the run itself, but the result is discarded. */
MUST_USE enum status labeled_run_check(const struct labeled_run *labeled, const struct options *options);
/* Call it after run_train(). Scores the sets with the finished model (with save_best, the best one, which becomes final/), and
 * writes the result files. [all] */
MUST_USE enum status labeled_run_finish(struct labeled_run *labeled);
void labeled_run_release(struct labeled_run *labeled);

#endif
