/* A fine-tuned model's folder, and what it gives for files of its task. */
#ifndef INFER_TASK_SESSION_H
#define INFER_TASK_SESSION_H

#include "infer/outputs.h"
#include "infer/session.h"
#include "tasks/task.h"
#include "weights/model_files.h"
#include "weights/sentence_folder.h"

struct task_session_settings {
	const char *model;                /* a run of bertc finetune, its final/, or any task folder of transformers */
	struct column_choice columns;     /* NULL: as in training, or found */
	int32_t max_seq_length;           /* 0: as in training, else the model's positions */
	int64_t micro_batch_tokens;       /* computed at a time */
	struct squad_task_settings squad; /* what is given stands over what training recorded */
	bool skip_bad;
	struct device_settings device;
};

/* Zero-initialise; closed also after a failure. */
struct task_session {
	const struct task_session_settings *settings; /* borrowed */
	struct model_source source;
	struct folder_tokenizer folder_tokenizer;
	struct tokenizer *tokenizer;
	struct task_config config;
	struct json_document record; /* bertc_task.json; empty: there is none */
	struct task_state state;
	struct bad_records bad;
	struct sentence_folder sentences; /* of embeddings: where their pooling or prompts come from it */
	struct model_heads heads;
	struct model_files files; /* before any was read; whoever opens `session` checks that it is of the same */
	struct session session;   /* with the first set */
	bool is_open;
};

/* Finds out which task the folder's head is for. A folder without one is ERR_USAGE. */
MUST_USE enum status task_session_open(struct task_session *session, const struct task_session_settings *settings);
/* Reads files and computes the head's outputs for them. `out` and `outputs` are released by the caller. *out_loss (may be NULL):
 * the mean loss, NaN without labels. */
MUST_USE enum status task_session_run(struct task_session *session, const char *const *paths, int64_t count, enum task_use use,
				      struct task_set *out, struct task_outputs *outputs, double *out_loss);
void task_session_close(struct task_session *session);

#endif
