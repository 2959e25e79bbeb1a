/* A saved model in the host's memory, with all that its folder says: what the writers of other forms begin with. */
#ifndef INFER_SAVED_MODEL_H
#define INFER_SAVED_MODEL_H

#include <stdbool.h>
#include "backend/backend.h"
#include "base/error.h"
#include "model/model.h"
#include "tasks/task.h"
#include "weights/model_folder.h"
#include "weights/sentence_folder.h"

/* Zero-initialise; released also after a failure. */
struct saved_model {
	struct model_source source;
	struct model_config config;
	struct task_config task; /* as its config.json has it; without a head BertModel */
	struct folder_tokenizer tokenizer;
	struct model_heads heads;
	struct backend names; /* nothing is computed: a model has names and shapes of it */
	struct model *model;
	float *slab; /* [model->slab_count] */
	bool has_pooler, has_next_sentence;
	struct sentence_folder sentences; /* how texts become vectors; not found: the model says nothing of it */
};

/* Reads what `path` means (weights/model_folder.h), or a sentence-transformers folder. The head is that of its task, or the one
 * for masked words; with `with_head` false, where there is no head, and where texts become vectors, the encoder alone, with its
 * pooler if the weights have one. A head that config.json names and the weights lack is ERR_STATE that names what is missing. */
MUST_USE enum status saved_model_read(struct saved_model *saved, const char *path, bool with_head);
void saved_model_release(struct saved_model *saved);

#endif
