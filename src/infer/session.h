/* A saved model opened for inference. */
#ifndef INFER_SESSION_H
#define INFER_SESSION_H

#include "infer/device.h"
#include "model/model.h"
#include "weights/model_folder.h"

/* Tokens computed at a time on a CPU: what its caches hold. */
#define SESSION_TOKENS 4096

struct session {
	struct pool *pool;
	bool borrows_pool;
	struct backend *backend;
	struct model *model;
	struct replica replica;
	struct activations *activations;
	struct batch_capacity capacity;
	struct folder_tokenizer tokenizer;
	char weights[PATH_BYTES]; /* the file they are from */
	bool has_next_sentence;   /* false: the weights lack that head */
};

/* The heads on top of a session's encoder. */
struct session_heads {
	const struct model_heads *heads;
	enum missing_weights missing; /* which of them the weights may lack */
	/* A session that stays open longer, whose weights are used where they are the same: one of an adapter of the same base,
	 * or of that base. NULL: none. */
	const struct session *lender;
};

/* Returns ERR_USAGE, with an explanation, if the model is fine-tuned: its head answers a task and cannot predict words. */
MUST_USE enum status session_needs_words(const char *model);

/* Opens the model that `model` means (weights/model_folder.h: a checkpoint, `final`, a run folder, or any BERT folder or file of
 * weights with its configuration and vocabulary beside it), with room for batches of `capacity`; without tokens: of the size
 * that suits an encoder on this device. `longest` is the maximum number of tokens of a sequence. */
MUST_USE enum status session_open(struct session *session, const char *model, const struct device_options *device,
				  struct batch_capacity capacity, int32_t longest);
/* The same for a model with heads other than those of pre-training. */
MUST_USE enum status session_open_heads(struct session *session, const char *model, const struct device_options *device,
					const struct session_heads *heads, struct batch_capacity capacity, int32_t longest);
/* The same on the caller's pool. Several sessions may share it, but only one of them may compute at a time. */
MUST_USE enum status session_open_on(struct session *session, struct pool *pool, const char *model,
				     const struct device_options *device, const struct session_heads *heads,
				     struct batch_capacity capacity, int32_t longest);
void session_close(struct session *session);

#endif
