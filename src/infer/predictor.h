/* What a model in training puts into the blanks of a sample: a forward of one sequence on its own replica, and the most probable
 * tokens of each [MASK]. Saved models are asked through infer/text_model.h. */
#ifndef INFER_PREDICTOR_H
#define INFER_PREDICTOR_H

#include <stdint.h>
#include "model/model.h"
#include "text/vocab.h"

struct predictor {
	const struct model *model; /* borrowed, as the next three */
	struct activations *activations;
	struct replica *replica;
	const struct vocab *vocab;
	int32_t k;                /* most probable tokens kept, at most the vocabulary's size */
	int32_t capacity;         /* tokens of a sequence, with [CLS] and [SEP] */
	struct batch host, batch; /* the text, and on the device */
	void *device_ids, *device_probabilities;
	/* Of the last text: */
	int32_t blanks;
	int32_t *ids;          /* [blanks][k], most probable first */
	double *probabilities; /* [blanks][k] */
};

/* `activations` have room for one sequence of `capacity` tokens, all of them blanks. Zero-initialise; released also
 * after a failure. */
MUST_USE enum status predictor_open(struct predictor *predictor, const struct model *model, struct activations *activations,
				    struct replica *replica, const struct vocab *vocab, int32_t capacity, int32_t k);
void predictor_release(struct predictor *predictor);

/* Fills in the [MASK]s of [CLS] ids [SEP]. A text that is too long or has no blank is ERR_USAGE that quotes `text`. */
MUST_USE enum status predictor_fill(struct predictor *predictor, const int32_t *ids, int64_t count, const char *text);

#endif
