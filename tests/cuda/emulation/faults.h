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
	FAULT_COUNT
};

/* One launch of `blocks` blocks of 64 threads; data: `count` floats of device memory; out: one float per thread. */
cudaError_t fault_launch(cudaStream_t stream, enum fault fault, const float *data, int count, float *out, int blocks);

#ifdef __cplusplus
}
#endif

#endif
