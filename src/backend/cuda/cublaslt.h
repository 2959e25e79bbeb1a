/* The cuBLASLt functions that we call: the library is loaded when a device is opened, not when the program starts. */
#ifndef BACKEND_CUDA_CUBLASLT_H
#define BACKEND_CUDA_CUBLASLT_H

#include <cublasLt.h>
#include "base/error.h"

/* Each with the type declared in cublasLt.h. */
struct cublaslt {
	__typeof__(cublasLtCreate) *create;
	__typeof__(cublasLtDestroy) *destroy;
	__typeof__(cublasLtGetVersion) *version;
	__typeof__(cublasLtMatmulDescCreate) *operation_create;
	__typeof__(cublasLtMatmulDescSetAttribute) *operation_set;
	__typeof__(cublasLtMatmulDescDestroy) *operation_destroy;
	__typeof__(cublasLtMatrixLayoutCreate) *layout_create;
	__typeof__(cublasLtMatrixLayoutDestroy) *layout_destroy;
	__typeof__(cublasLtMatmulPreferenceCreate) *preference_create;
	__typeof__(cublasLtMatmulPreferenceSetAttribute) *preference_set;
	__typeof__(cublasLtMatmulPreferenceDestroy) *preference_destroy;
	__typeof__(cublasLtMatmulAlgoGetHeuristic) *propose;
	__typeof__(cublasLtMatmulAlgoCheck) *check;
	__typeof__(cublasLtMatmul) *multiply;
};

/* Loads it for the lifetime of the process, because the library has threads and handlers of its own. ERR_RESOURCE: it was not
 * found. */
MUST_USE enum status cublaslt_load(struct cublaslt *out);

#endif
