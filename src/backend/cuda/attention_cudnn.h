/* Attention by cuDNN, for --attention cudnn: uses the graphs of cudnn_graph.h, each made when its shape is first used. Dropout
 * uses cuDNN's own random number stream, with a seed that one of our kernels computes from the step's scalars, the layer's
 * site and the batch's first sample; the fraction that it keeps is counted before a shape is first used. */
#ifndef BACKEND_CUDA_ATTENTION_CUDNN_H
#define BACKEND_CUDA_ATTENTION_CUDNN_H

#include "backend/cuda/state.h"
#include "base/library_list.h"

/* Loads the library. ERR_USAGE: this build has no cuDNN, or the device or type is unsupported; ERR_RESOURCE: the library was
 * not found. */
MUST_USE enum status attention_cudnn_open(struct attention_cudnn **out, struct cuda_state *state, enum dtype dtype);
void attention_cudnn_close(struct attention_cudnn *cudnn); /* NULL is allowed */
/* "cuDNN 9.19.0" */
const char *attention_cudnn_name(const struct attention_cudnn *cudnn);
/* Reports whether it is on this machine, and which version. */
void attention_cudnn_library(struct library_list *list);
/* ERR_USAGE: head sizes or shapes that cuDNN does not support. */
MUST_USE enum status attention_cudnn_check(const struct attention_cudnn *cudnn, const struct shape_limits *limits);
/* Lays out the memory that a replica needs for it. */
void attention_cudnn_lay_out(const struct shape_limits *limits, struct cudnn_scratch *out, struct arena *arena);
/* The operations; failures are kept for synchronize. The log-sum-exp is stored token by token, with the heads of a token side
 * by side. */
void attention_cudnn_fwd(struct replica *r, const struct attention_fwd *a);
void attention_cudnn_bwd(struct replica *r, const struct attention_bwd *a);

#endif
