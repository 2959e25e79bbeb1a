/* Fills the blanks of a sample with a model in training: a forward pass over one sequence gives the most probable tokens for each
 * [MASK]. Saved models are used through infer/text_model.h. */
#ifndef INFER_PREDICTOR_H
#define INFER_PREDICTOR_H

#include <stdint.h>
#include "model/model.h"
#include "text/vocab.h"

struct predictor {
	const struct model *model; /* borrowed, like the next three */
	struct activations *activations;
	struct replica *replica;
	const struct vocab *vocab;
	int32_t k;                /* number of most probable tokens kept, at most the vocabulary's size */
	int32_t capacity;         /* tokens of a sequence, including [CLS] and [SEP] */
	struct batch host, batch; /* the text on the host and on the device */
	void *device_ids, *device_probabilities;
	/* Results for the last text: */
	int32_t blanks;
	int32_t *ids;          /* [blanks][k], most probable first */
	double *probabilities; /* [blanks][k] */
};

/* `activations` must have room for one sequence of `capacity` tokens, all of them blanks. Zero-initialize *predictor, and release
 * it even after a failure. */
MUST_USE enum status predictor_open(struct predictor *predictor, const struct model *model, struct activations *activations,
				    struct replica *replica, const struct vocab *vocab, int32_t capacity, int32_t k);
void predictor_release(struct predictor *predictor);

/* Fills in the [MASK]s of [CLS] ids [SEP]. Returns ERR_USAGE, quoting `text`, if it is too long or has no blank. */
MUST_USE enum status predictor_fill(struct predictor *predictor, const int32_t *ids, int64_t count, const char *text);

#endif
