/* Repeated work is recorded as a graph, which costs the host no more to launch than one kernel. */
#ifndef BACKEND_CUDA_GRAPHS_H
#define BACKEND_CUDA_GRAPHS_H

#include "backend/cuda/state.h"

/* With BERTC_GRAPHS=0 nothing is recorded. */
MUST_USE enum status graphs_open(struct cuda_state *state);
void graphs_close(struct cuda_state *state);
/* Drops all graphs, because memory that they may refer to is being released. */
void graphs_forget(struct cuda_state *state);
/* How many recordings were made, and how many times one was queued. */
void graphs_counts(const struct cuda_state *state, int64_t *out_recorded, int64_t *out_launched);

/* The first time, work is queued directly, which measures the products of its shapes; the second time it is recorded. */
void graphs_queue(struct cuda_state *state, const struct work_key *key, void (*work)(void *context), void *context);
/* backend_functions.hook */
void graphs_hook(struct cuda_state *state, void (*call)(void *context, int32_t layer), void *context, int32_t layer);

#endif
