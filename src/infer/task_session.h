/* Opens a fine-tuned model's folder and computes its outputs for files of its task. */
#ifndef INFER_TASK_SESSION_H
#define INFER_TASK_SESSION_H

#include "infer/outputs.h"
#include "infer/session.h"
#include "tasks/task.h"
#include "tasks/task_options.h"
#include "weights/model_files.h"
#include "weights/sentence_folder.h"

struct task_session_settings {
	const char *model;                   /* a run of bertc finetune, its final/, or any task folder of transformers */
	const char *task;                    /* the task whose files are read; NULL: the model's own */
	const struct column_choice *columns; /* NULL: as in training, or detected */
	int64_t max_seq_length;              /* 0: as in training, or the model's positions if unknown */
	int64_t micro_batch_tokens;          /* tokens computed at a time; 0: as suits the device */
	/* Options of the task override what was recorded in training. NULL: there are none. */
	const struct options *options;
	const struct task_options *own;
	const struct calibration_options *calibration; /* for task.tune(), and its least score; NULL: as recorded */
	const struct window_options *windows;          /* NULL: as recorded */
	enum on_bad_record on_bad_record;
	const struct device_options *device; /* may be NULL if no outputs are computed */
};

/* Zero-initialize; close even after a failure. */
struct task_session {
	const struct task_session_settings *settings; /* borrowed */
	struct model_source source;
	struct folder_tokenizer folder_tokenizer;
	struct tokenizer *tokenizer;
	struct task_config config;
	struct json_document record; /* bertc_task.json; empty if there is none */
	struct task_state state;
	struct bad_records bad;
	struct sentence_folder sentences; /* embeddings: read if their pooling or prompts come from it */
	struct model_heads heads;
	struct model_files files; /* state before anything was read; checked again where `session` is opened */
	struct session session;   /* opened with the first set */
	bool is_open;
};

/* Determines which task the folder's head is for. Returns ERR_USAGE if it has no such head, or none for settings->task. */
MUST_USE enum status task_session_open(struct task_session *session, const struct task_session_settings *settings);
/* Reads files and computes the head's outputs for them. The caller releases `out` and `outputs`. *out_loss (may be NULL) becomes
 * the mean loss, NaN without labels. */
MUST_USE enum status task_session_run(struct task_session *session, const char *const *paths, int64_t count, enum task_use use,
				      struct task_set *out, struct task_outputs *outputs, double *out_loss);
/* Writes the record anew, with what task.tune() has found, into the model's folder. */
MUST_USE enum status task_session_save_record(struct task_session *session);
void task_session_close(struct task_session *session);

#endif
