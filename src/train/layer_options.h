/* Which layers of a model learn, and how fast: options that become factors of the learning rate in its table of parameters. */
#ifndef TRAIN_LAYER_OPTIONS_H
#define TRAIN_LAYER_OPTIONS_H

#include "base/error.h"
#include "base/option.h"
#include "model/model.h"

struct layer_options {
	const char *freeze_layers;            /* "embeddings", or a number of layers; NULL: everything learns */
	double layerwise_learning_rate_decay; /* factor from each layer to the one below it */
	double head_learning_rate;            /* 0: learning_rate */
};
extern const struct option layer_rows[];

/* ERR_USAGE if a model of this configuration does not have that many layers, or if nothing would learn. `vectors`: the encoder's
 * output is all that the model has. */
MUST_USE enum status layer_options_check(const struct layer_options *options, const struct model_config *config, bool vectors);
/* Sets the factors of all parameters, relative to `learning_rate`; ERR_USAGE if a rate cannot be relative to it, since it is 0.
 */
MUST_USE enum status layer_options_apply(const struct layer_options *options, double learning_rate, struct model *model);

#endif
