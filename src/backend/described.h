/* A stand-in for a device that is absent or not built in: a back end that only answers questions about sizes. Models and
 * activations are laid out with it as with any other, so a plan adds up the same items. Compute copies are those of the cuda
 * back end; the workspace is an estimate. */
#ifndef BACKEND_DESCRIBED_H
#define BACKEND_DESCRIBED_H

#include "backend/backend.h"

/* `dtype` is that of activations; masters are fp32. */
void backend_describe(struct backend *out, enum dtype dtype, bool fp8);

#endif
