/* Attention by cuDNN, where --attention cudnn asks for it: the graphs of cudnn_graph.h, made for a shape at its first use.
 * Its dropout is cuDNN's own stream of random numbers, from a seed that a kernel of ours makes of the step's scalars, the
 * layer's site and the batch's first sample; what it keeps is counted before a shape is first used. */
#ifndef BACKEND_CUDA_ATTENTION_CUDNN_H
#define BACKEND_CUDA_ATTENTION_CUDNN_H

#include "backend/cuda/state.h"
#include "base/library_list.h"

/* Loads the library. ERR_USAGE: this build has no cuDNN, or the device or type is none for it; ERR_RESOURCE: the library is
 * not here. */
MUST_USE enum status attention_cudnn_open(struct attention_cudnn **out, struct cuda_state *state, enum dtype dtype);
void attention_cudnn_close(struct attention_cudnn *cudnn); /* NULL is fine */
/* "cuDNN 9.19.0" */
const char *attention_cudnn_name(const struct attention_cudnn *cudnn);
/* Whether it is on this machine, and which version. */
void attention_cudnn_library(struct library_list *list);
/* ERR_USAGE: heads or sizes that cuDNN does not take. */
MUST_USE enum status attention_cudnn_check(const struct attention_cudnn *cudnn, const struct shape_limits *limits);
/* Lays out a replica's memory for it. */
void attention_cudnn_lay_out(const struct shape_limits *limits, struct cudnn_scratch *out, struct arena *arena);
/* The operations; what fails is kept for synchronize. The log-sum-exp lies token by token, the heads of a token side by
 * side. */
void attention_cudnn_fwd(struct replica *r, const struct attention_fwd *a);
void attention_cudnn_bwd(struct replica *r, const struct attention_bwd *a);

#endif
