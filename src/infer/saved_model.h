/* A saved model in host memory, with everything its folder says about it: the starting point for exports to other formats. */
#ifndef INFER_SAVED_MODEL_H
#define INFER_SAVED_MODEL_H

#include <stdbool.h>
#include "backend/backend.h"
#include "base/error.h"
#include "model/model.h"
#include "tasks/task.h"
#include "weights/model_folder.h"
#include "weights/sentence_folder.h"

/* Zero-initialize; release even after a failure. */
struct saved_model {
	struct model_source source;
	struct model_config config;
	struct task_config task; /* as in its config.json; BertModel or BertForMaskedLM if heads were left out */
	struct folder_tokenizer tokenizer;
	struct model_heads heads;
	struct backend names; /* a back end that computes nothing: the model needs one for names and shapes */
	struct model *model;
	float *slab;                      /* [model->slab_count] */
	struct sentence_folder sentences; /* how texts become vectors; `found` is false if the model does not say */
};

/* Reads the model that `path` means (weights/model_folder.h), or a sentence-transformers folder. The head is the one for its task
 * or for masked words. If `with_head` is false, the model has no head, or texts become vectors, only the encoder is read. The
 * model has a pooler and a next-sentence head only if the weights do. If config.json names a head that the weights lack, returns
 * ERR_STATE and names what is missing. */
MUST_USE enum status saved_model_read(struct saved_model *saved, const char *path, bool with_head);
void saved_model_release(struct saved_model *saved);

#endif
