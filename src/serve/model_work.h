/* A request on its way through a model: encoded, computed with others, written. Any number of threads encode and write at a time;
 * one computes. */
#ifndef SERVE_MODEL_WORK_H
#define SERVE_MODEL_WORK_H

#include "serve/batcher.h"
#include "serve/models.h"

struct model_work {
	struct batch_job job; /* first: the batcher's */
	struct served_model *model;
	const struct api_request *request;
	struct encoded_inputs inputs;
	int32_t *tokens; /* [job.count] of each text */
	int64_t token_count;
	int64_t dimensions; /* API_EMBED: numbers of a vector */
	/* What has been computed. */
	struct task_outputs outputs; /* of a task; of the others `starts` and `values` alone */
	int32_t *words;              /* API_FILL: beside values */
};

/* Lanes of the batcher: what is computed in different ways is not in one batch. */
#define MODEL_LANES 2

/* What one request may cost. */
struct work_limits {
	int64_t tokens; /* computed for it at most */
	int64_t bytes;  /* of text tokenised for it at most: of a pair both texts, the query of a ranking once for each text */
};

/* Finds the model and encodes the request, which is borrowed. A request beyond the limits is refused before it is tokenised, as
 * far as its length tells. `truncates`: what a request that does not say wants done with texts that are too long. False: *error
 * says why not. Zero-initialise; released in either case. */
bool model_work_make(struct model_work *out, const struct models *models, const struct api_request *request, bool truncates,
		     const struct work_limits *limits, struct api_error *error);
void model_work_release(struct model_work *work);
/* As batcher_settings.compute, with struct models as its context, for jobs that are struct model_work. */
MUST_USE enum status models_compute(void *models, int lane, const struct batch_part *parts, int64_t part_count);
/* Appends the answer, once all is computed. False: *error says why not. */
bool model_work_write(struct model_work *work, struct buffer *out, struct api_error *error);

#endif
