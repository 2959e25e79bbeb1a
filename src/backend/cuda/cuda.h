/* The CUDA back end: cuBLASLt for products, our own kernels for all else; bf16, fp16, fp32 and TF32.
 * docs/cuda.md says how it is built, what its rules are and how it is tested without a GPU. */
#ifndef BACKEND_CUDA_CUDA_H
#define BACKEND_CUDA_CUDA_H

#include "backend/backend.h"
#include "base/library_list.h"

/* Fills the zeroed `be`. ERR_USAGE: no CUDA in this build, or a precision that the GPU does not have; ERR_RESOURCE: no
 * driver, no GPU, or one that is too old. */
MUST_USE enum status cuda_backend_open(struct backend *be, const struct backend_settings *settings);
/* Is this the back end, and not what a build without CUDA has in its place? */
bool cuda_is_built(void);
/* Is there a GPU, and a driver that this build can use? */
bool cuda_is_here(void);
/* NVIDIA's libraries that this build would use; loads them. */
void cuda_libraries(struct library_list *list);
/* BF16 from sm_80 on, F16 on sm_75; F32 where there is no GPU. */
enum dtype cuda_best_dtype(void);

#endif
