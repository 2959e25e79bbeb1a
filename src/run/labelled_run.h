/* A fine-tuning run: a pre-trained model, a labelled task's files, and the objective made of them. */
#ifndef RUN_LABELLED_RUN_H
#define RUN_LABELLED_RUN_H

#include "base/option.h"
#include "run/distillation_run.h"
#include "run/run.h"
#include "tasks/task.h"
#include "train/labelled.h"
#include "weights/model_files.h"
#include "weights/model_folder.h"
#include "weights/sentence_folder.h"

/* All borrowed; NULL or empty: not given. */
struct labelled_run_settings {
	const char *task;                             /* --task */
	const char *model;                            /* what the encoder comes from */
	const char *config_file, *vocab_file;         /* instead of those beside the model's weights */
	bool cased, cased_is_given;                   /* instead of what its folder says */
	const struct option_list *train, *dev, *test; /* paths; of dev and test [NAME=]PATH */
	struct column_choice columns;
	const char *labels, *class_weights, *metric;
	const char *negative_label;
	struct relation_task_settings relation;
	struct squad_task_settings squad;
	struct embedding_task_settings embedding;
	struct distillation_options distillation;
	const char *init_layers; /* "0,2,4": layers of the model that make up a smaller one, from 0; NULL: all */
	bool skip_bad, shuffle, save_best;
	double hidden_dropout_prob, attention_probs_dropout_prob; /* negative: the model's */
};

/* What the finished model reached on the dev set that decides. */
struct labelled_result {
	int64_t step;
	const char *set; /* its name; "": the only one; NULL: there is no dev set */
	double score;    /* by task.decides */
};

/* Zero-initialise; released also after a failure. */
struct labelled_run {
	const struct labelled_run_settings *settings; /* borrowed */
	struct run *run;                              /* borrowed, with its one phase */
	struct run_task task;
	struct task_state state;
	struct bad_records bad;
	struct string_store strings;
	struct model_heads heads;
	struct task_config config;       /* for config.json */
	struct sentence_folder sentence; /* of embeddings: what the model's folder says, then what is written */
	struct task_config folder;       /* what the model's folder says of its head */
	struct folder_tokenizer tokenizer;
	struct tokenizer *encoder;
	struct model_source source;
	struct model_files files; /* of the model that it begins with, when it was found */
	struct task_set train;
	struct task_set *dev, *test; /* [dev_count], [test_count] */
	int64_t dev_count, test_count;
	const char **names; /* of sets; owned by strings */
	struct instances *instances;
	struct task_preview preview;
	const char **preview_labels;
	struct distillation_run distillation;
	int32_t *init_layers;          /* [config.num_hidden_layers] of the model that weights are read from; NULL: its own */
	int32_t source_layers;         /* of that model */
	bool continues_head;           /* the folder's head has the task's labels */
	struct labelled_result result; /* set by labelled_run_finish() */
};

/* Makes out->task: that of `run`, which is opened with it. */
void labelled_run_begin(struct labelled_run *out, struct run *run);
/* After run_open_device(): reads the model's tokenizer and the task's files, and chooses what is open up to run_plan(). [all] */
MUST_USE enum status labelled_run_prepare(struct labelled_run *labelled, const struct labelled_run_settings *settings);
/* Would a run on the same files, once prepared, do with these settings instead? They are chosen as those of the run are, into
 * nothing. */
MUST_USE enum status labelled_run_check(const struct labelled_run *labelled, const struct recipe *recipe,
					const struct phase_settings *phase);
/* After run_train(): scores the sets with the finished model (with save_best the best one, which becomes final/), and writes
 * result files. [all] */
MUST_USE enum status labelled_run_finish(struct labelled_run *labelled);
void labelled_run_release(struct labelled_run *labelled);

#endif
