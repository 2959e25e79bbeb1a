/* A request on its way through a model: it is encoded, computed in batches with others, and its answer written. Any number of
 * threads may encode and write at the same time, but only one computes. */
#ifndef SERVE_MODEL_WORK_H
#define SERVE_MODEL_WORK_H

#include "serve/batcher.h"
#include "serve/models.h"

/* Requests to the tokenizer have nothing to compute: job.count is 0, and the answer can be written at once. */
struct model_work {
	struct batch_job job; /* first member: a pointer to it is cast to the model_work */
	struct served_model *model;
	const struct api_request *request;
	struct encoded_inputs inputs;
	int32_t *tokens; /* [job.count] number of tokens of each text */
	int64_t token_count;
	int64_t dimensions; /* API_EMBED: dimensions of a vector */
	/* Results: */
	struct task_outputs outputs; /* `count`, `starts`, and `values` only, if there is no task */
	int32_t *words;              /* API_FILL: ids, parallel to outputs.values */
};

/* Lanes of the batcher per model: work that is computed differently must not share a batch. */
#define MODEL_LANES 3

/* What one request may cost. */
struct work_limits {
	int64_t tokens; /* most tokens computed for it */
	int64_t bytes;  /* most bytes of text tokenized for it: both texts of a pair; a ranking's query once for each text */
};

/* Finds the model and encodes the request, which is borrowed. If its length alone shows that a request exceeds the limits, it is
 * refused before it is tokenized. `truncates`: whether to cut texts that are too long if the request does not say. False: *error
 * says why. Zero-initialize *out; release it in either case. */
bool model_work_make(struct model_work *out, const struct models *models, const struct api_request *request, bool truncates,
		     const struct work_limits *limits, struct api_error *error);
void model_work_release(struct model_work *work);
/* For batcher_settings.compute, with struct models as the context and struct model_work as the jobs. */
MUST_USE enum status models_compute(void *models, int lane, const struct batch_part *parts, int64_t part_count);
/* Appends the answer once everything is computed. False: *error says why. */
bool model_work_write(struct model_work *work, struct buffer *out, struct api_error *error);

#endif
