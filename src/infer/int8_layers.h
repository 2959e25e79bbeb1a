/* Which linear layers of a model bear int8: each is tried alone, on texts, and one that changes what the encoder gives by too
 * much stays in bf16. */
#ifndef INFER_INT8_LAYERS_H
#define INFER_INT8_LAYERS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "infer/saved_model.h"

/* What int8 may do to the rows that the encoder gives: root mean square of the change, as a share of that of the rows.
 * docs/export.md has what the limit was chosen by. */
#define INT8_ERROR_MOST 0.05

/* Of each weight of the model. */
struct int8_layers {
	int64_t count;  /* weights */
	bool *fits;     /* [count] it is a linear layer of the encoder */
	bool *kept;     /* [count] stays in bf16 */
	double *errors; /* [count] of a layer alone in int8 */
	int64_t tried, kept_count;
	double error; /* of all together that are in int8, as computed */
	int64_t tokens;
};

/* Tries every layer on the first texts of the file `calibrate`, one a line, or, where that is NULL, on sequences of entries drawn
 * from the vocabulary. Everything else is computed in fp32, by `threads` threads (0: all cores). A file without text is ERR_DATA.
 * The caller releases *out with int8_layers_release, also after a failure. */
MUST_USE enum status int8_layers_choose(struct int8_layers *out, const struct saved_model *saved, const char *calibrate,
					int64_t threads);
void int8_layers_release(struct int8_layers *layers);

#endif
