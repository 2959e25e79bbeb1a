/* Incorrect kernels, each with a single error that the emulation must notice (tests/cuda/test_emulation.c). */
#ifndef EMULATION_FAULTS_H
#define EMULATION_FAULTS_H

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

enum fault {
	FAULT_NONE,
	FAULT_BEYOND_BLOCK,    /* reads element `count` */
	FAULT_HOST_MEMORY,     /* reads through a host pointer */
	FAULT_MISALIGNED,      /* a vector load at an odd address */
	FAULT_BEYOND_SHARED,   /* writes beyond the requested shared memory */
	FAULT_OTHERS_VARIABLE, /* reads another thread's variable */
	FAULT_DIVERGENT_BARRIER,
	FAULT_TWO_BARRIERS,    /* threads wait at two different barriers */
	FAULT_LANE_MISSING,    /* a shuffle that one lane never reaches */
	FAULT_RACE_IN_WARP,    /* lanes exchange through shared memory without __syncwarp */
	FAULT_RACE_IN_BLOCK,   /* warps exchange without __syncthreads */
	FAULT_RACE_OF_BLOCKS,  /* all blocks write to one place */
	FAULT_COPY_NOT_WAITED, /* a cp.async whose thread ends first */
	FAULT_COPY_TOO_EARLY,  /* data used before they have arrived */
	/* Kernels that start early, after one that has written `out`: */
	FAULT_EARLY_READ,       /* reads `out` before waiting */
	FAULT_EARLY_WRITE,      /* writes to it before waiting */
	FAULT_EARLY_NOT_WAITED, /* ends without having waited */
	/* Products of a warpgroup: */
	FAULT_PRODUCT_NOT_WAITED,  /* threads end first */
	FAULT_PRODUCT_SUMS,        /* sums are written before it has been waited for */
	FAULT_PRODUCT_OVERWRITTEN, /* its tile is written before it has been waited for */
	FAULT_PRODUCT_NO_BARRIER,  /* between writing its tile and the product */
	FAULT_PRODUCT_RACE,        /* its tile is written without a barrier after the wait */
	FAULT_PRODUCT_UNFENCED,    /* its tile was written without a fence */
	FAULT_PRODUCT_REGISTERS,   /* no fence of the registers */
	FAULT_PRODUCT_MISPLACED,   /* its tile is not at a multiple of 1024 bytes */
	FAULT_PRODUCT_WARP_MISSING,
	FAULT_PRODUCT_DIFFERENT, /* for one warp, another product */
	FAULT_COUNT,
	FAULT_PRODUCT_NONE,
	FAULT_EARLY_NONE,
	FAULT_PRODUCT_READ_EARLY /* gives NaN */
};

/* One launch of `blocks` blocks of 64 threads (of 128 for the products, of which 64 write); data: `count` floats of device
 * memory; out: a float for each of 64 threads. */
cudaError_t fault_launch(cudaStream_t stream, enum fault fault, const float *data, int count, float *out, int blocks);

#ifdef __cplusplus
}
#endif

#endif
