/* Chooses which linear layers of a model can run in int8. Each layer is tried alone on some texts; layers that change the
 * encoder's output too much stay in bf16. */
#ifndef INFER_INT8_LAYERS_H
#define INFER_INT8_LAYERS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "infer/saved_model.h"

/* The largest change that int8 may make to the encoder's output rows: root mean square of the change, relative to that of the
 * rows. docs/export.md explains the choice. */
#define INT8_ERROR_MOST 0.05

/* The result for each weight of the model. */
struct int8_layers {
	int64_t count;  /* number of weights */
	bool *fits;     /* [count] whether it is a linear layer of the encoder */
	bool *kept;     /* [count] whether it stays in bf16 */
	double *errors; /* [count] error with only this layer in int8 */
	int64_t tried, kept_count;
	double error;   /* measured with all chosen layers in int8 together */
	int64_t tokens; /* of all texts tried */
};

/* Tries every layer on the first texts of the file `calibrate`, one per line, or, if that is NULL, on random sequences of
 * vocabulary entries. Everything else is computed in fp32, on `threads` threads (0: all cores). A file without text is ERR_DATA.
 * The caller releases *out with int8_layers_release, even after a failure. */
MUST_USE enum status int8_layers_choose(struct int8_layers *out, const struct saved_model *saved, const char *calibrate,
					int64_t threads);
void int8_layers_release(struct int8_layers *layers);

#endif
