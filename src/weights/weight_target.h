/* Where the weights of a file go while they are read: into a slab of floats, or packed at once into the compute copies of a model
 * that has no masters (backend_functions.weight_pack), matrices straight from the mapped file where its numbers lie as the model
 * has them. */
#ifndef WEIGHTS_WEIGHT_TARGET_H
#define WEIGHTS_WEIGHT_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "formats/stored_tensor.h"
#include "model/model.h"

struct weight_target {
	const struct model *model;
	float *slab; /* [model->slab_count]; NULL: weights are packed */
	/* Of packing: */
	struct parameter_place *places; /* [parameter_count] */
	float *vectors;                 /* all vectors, in the order of the parameters */
	int64_t *vector_starts;         /* [parameter_count] */
	float *matrix;                  /* one that has to be put together */
	int64_t matrix_capacity;
	bool *packed; /* [parameter_count] */
};

/* `slab` NULL: the model's weights are packed, whose memory model_allocate_copies() has made. */
MUST_USE enum status weight_target_open(struct weight_target *out, const struct model *model, float *slab);
void weight_target_close(struct weight_target *target);
/* Room for a parameter's values, which hold what the model had before (zeros where weights are packed). */
MUST_USE enum status weight_target_values(struct weight_target *target, int64_t parameter, float **out);
/* The values are there. */
void weight_target_put(struct weight_target *target, int64_t parameter, const float *values);
/* Can a matrix be taken from the file as it lies there? Then weight_target_take() does so. */
bool weight_target_takes(const struct weight_target *target, int64_t parameter, const struct stored_tensor *tensor);
MUST_USE enum status weight_target_take(struct weight_target *target, int64_t parameter, const struct stored_tensor *tensor);
/* All weights of the file have been put: vectors are packed, and what the file lacked becomes zeros. */
MUST_USE enum status weight_target_finish(struct weight_target *target);

#endif
