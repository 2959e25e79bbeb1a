/* What errors of CUDA mean. */
#ifndef BACKEND_CUDA_ERROR_H
#define BACKEND_CUDA_ERROR_H

#include <cuda_runtime_api.h>
#include "base/error.h"

/* What an error means for a user: message and hint. `call` names where it was seen. */
MUST_USE enum status cuda_error(cudaError_t error, const char *call);

#endif
