/* A saved model opened for inference. */
#ifndef INFER_SESSION_H
#define INFER_SESSION_H

#include "infer/device.h"
#include "model/model.h"
#include "weights/model_folder.h"

struct session {
	struct pool *pool;
	bool borrows_pool;
	struct backend *backend;
	struct model *model;
	struct replica replica;
	struct activations *activations;
	struct batch_capacity capacity;
	struct folder_tokenizer tokenizer;
	bool has_next_sentence; /* false: the weights came without that head */
};

/* What a session's model has behind its encoder. */
struct session_heads {
	const struct model_heads *heads;
	enum missing_weights missing; /* what of them the weights may lack */
};

/* A fine-tuned model, whose head answers a task, has no words to predict: ERR_USAGE that says so. */
MUST_USE enum status session_needs_words(const char *model);

/* Opens what `model` means (weights/model_folder.h: a checkpoint, `final`, a run folder, any BERT folder or file of weights
 * with its configuration and vocabulary beside it) with room for batches of `capacity`. */
MUST_USE enum status session_open(struct session *session, const char *model, const struct device_settings *device,
				  struct batch_capacity capacity, int32_t longest);
/* The same for a model with other heads than those of pre-training. */
MUST_USE enum status session_open_heads(struct session *session, const char *model, const struct device_settings *device,
					const struct session_heads *heads, struct batch_capacity capacity, int32_t longest);
/* The same on a pool of the caller's, which several sessions may share: one of them computes at a time. */
MUST_USE enum status session_open_on(struct session *session, struct pool *pool, const char *model,
				     const struct device_settings *device, const struct session_heads *heads,
				     struct batch_capacity capacity, int32_t longest);
void session_close(struct session *session);

#endif
