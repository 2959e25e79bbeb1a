/* The CUDA back end: cuBLASLt for products, our own kernels for everything else; FP8, bf16, fp16, fp32 and TF32.
 * docs/developers/cuda.md describes how it is built, its rules and how it is tested without a GPU. */
#ifndef BACKEND_CUDA_CUDA_H
#define BACKEND_CUDA_CUDA_H

#include "backend/backend.h"
#include "base/library_list.h"

/* Fills the zeroed `be`. ERR_USAGE: no CUDA in this build, or a precision that the GPU does not support; ERR_RESOURCE: no
 * driver, no GPU, or one that is too old. */
MUST_USE enum status cuda_backend_open(struct backend *be, const struct backend_settings *settings);
/* Whether this is the real back end, not the stub of a build without CUDA. */
bool cuda_is_built(void);
/* How many GPUs there are; 0 without a driver that this build can use. */
int cuda_count_gpus(void);
/* The NVIDIA libraries that this build would use; loads them. */
void cuda_libraries(struct library_list *list);
/* BF16 from sm_80 on, F16 on sm_75; F32 if there is no GPU. */
enum dtype cuda_best_dtype(void);

#endif
