/* Work that comes again is recorded as a graph, whose launch costs the host what a kernel's does. */
#ifndef BACKEND_CUDA_GRAPHS_H
#define BACKEND_CUDA_GRAPHS_H

#include "backend/cuda/state.h"

/* BERTC_GRAPHS=0: none are recorded. */
MUST_USE enum status graphs_open(struct cuda_state *state);
void graphs_close(struct cuda_state *state);
/* Drops all graphs: memory that they may name is being released. */
void graphs_forget(struct cuda_state *state);
/* How often work was recorded, and how often a recording was queued. */
void graphs_counts(const struct cuda_state *state, int64_t *out_recorded, int64_t *out_launched);

/* The first time work is queued as it is, which measures the products of its shapes; the second
 * time it is recorded. */
void graphs_queue(struct cuda_state *state, const struct work_key *key, void (*work)(void *context), void *context);

#endif
