/* Options that change individual sizes of a model. */
#ifndef MODEL_MODEL_SIZE_OPTIONS_H
#define MODEL_MODEL_SIZE_OPTIONS_H

#include "base/option.h"
#include "model/model.h"

extern const struct option model_size_rows[]; /* of a struct model_sizes */

#endif
