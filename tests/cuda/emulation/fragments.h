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

/* c (128,32) = the product by wgmma of a (64,16) and b (16,columns), columns 32 (then c has 16 for each thread) or 64. a comes
 * from the registers a_registers (128,4) if they are not NULL; else a, like b, is the last part of a tile (64,64), as in shared
 * memory: its last 16 columns, or its last 16 rows if that operand is `summed`. out_descriptor: of b's tile. */
struct fragment_product {
	enum fragment_type type;
	int columns, a_summed, b_summed;
	const uint16_t *a, *b;
	const uint32_t *a_registers;
	float *c;
	uint64_t *out_descriptor;
};
cudaError_t fragment_group_multiply(cudaStream_t stream, const struct fragment_product *product);

#ifdef __cplusplus
}
#endif

#endif
