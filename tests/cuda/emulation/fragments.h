/* A single matrix instruction of kernels/device.cuh on registers prepared by a test (tests/cuda/test_fragments.c): lane
 * after lane, all in device memory. */
#ifndef EMULATION_FRAGMENTS_H
#define EMULATION_FRAGMENTS_H

#include <stdint.h>
#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

enum fragment_type { FRAGMENT_BF16, FRAGMENT_F16, FRAGMENT_TF32 };

/* c (32,4) += the product of the registers a (32,4) and b (32,2). */
cudaError_t fragment_mma(cudaStream_t stream, enum fragment_type type, const uint32_t *a, const uint32_t *b, float *c);

/* Loads 2 or 4 matrices (count,8,8), one after another in shared memory, into the registers out (32,count). */
cudaError_t fragment_load(cudaStream_t stream, int count, int transposed, const uint16_t *matrices, uint32_t *out);

/* c (128,32) = the product of 16 columns of the tile a (64,64), or of the registers a_registers (128,4) if they are not NULL, and
 * 16 columns of the tile b (64,64), or 16 of its rows if `summed`; the last 16 in each case. All tiles as in shared memory.
 * out_descriptor: that of b. */
cudaError_t fragment_group_multiply(cudaStream_t stream, enum fragment_type type, int summed, const uint16_t *a,
				    const uint32_t *a_registers, const uint16_t *b, float *c, uint64_t *out_descriptor);

#ifdef __cplusplus
}
#endif

#endif
