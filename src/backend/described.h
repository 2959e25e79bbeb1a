/* A device that is not here, or was not built in: a back end that can be asked for sizes and for nothing else. Models and
 * activations are laid out with it as on any other, so a plan adds up the same things. Compute copies are those of the
 * cuda back end; the workspace is an estimate. */
#ifndef BACKEND_DESCRIBED_H
#define BACKEND_DESCRIBED_H

#include "backend/backend.h"

/* `dtype` of activations; masters are fp32. */
void backend_describe(struct backend *out, enum dtype dtype, bool fp8);

#endif
