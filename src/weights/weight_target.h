/* Where the weights of a file go as they are read: into a slab of floats, or packed directly into the compute copies of a model
 * without masters (backend_functions.weight_pack). Matrices are packed straight from the mapped file if they are stored in the
 * model's layout. */
#ifndef WEIGHTS_WEIGHT_TARGET_H
#define WEIGHTS_WEIGHT_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "formats/stored_tensor.h"
#include "model/model.h"

struct weight_target {
	const struct model *model;
	float *slab; /* [model->slab_count] NULL: weights are packed */
	/* For packing: */
	struct parameter_place *places; /* [parameter_count] */
	float *vectors;                 /* all vectors, in the order of the parameters */
	int64_t *vector_starts;         /* [parameter_count] */
	float *matrix;                  /* room for a matrix that must be converted first */
	int64_t matrix_capacity;
	bool *packed; /* [parameter_count] matrices packed so far */
};

/* `slab` NULL: packs the weights into the memory that model_allocate_copies() has allocated. */
MUST_USE enum status weight_target_open(struct weight_target *out, const struct model *model, float *slab);
void weight_target_close(struct weight_target *target);
/* Gets room for a parameter's values, holding the model's previous ones (zeros if weights are packed). */
MUST_USE enum status weight_target_values(struct weight_target *target, int64_t parameter, float **out);
/* Call when the values have been written there. */
void weight_target_put(struct weight_target *target, int64_t parameter, const float *values);
/* Whether a parameter is a matrix that weight_target_take() can pack directly from the file. */
bool weight_target_takes(const struct weight_target *target, int64_t parameter, const struct stored_tensor *tensor);
MUST_USE enum status weight_target_take(struct weight_target *target, int64_t parameter, const struct stored_tensor *tensor);
/* Call after all weights of the file: packs vectors, and sets what the file lacked to zeros. */
MUST_USE enum status weight_target_finish(struct weight_target *target);

#endif
