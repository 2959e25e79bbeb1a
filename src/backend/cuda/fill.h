/* Filling a batch up: inert sequences and predictions behind its own, so that few shapes come back often, each with its
 * recorded graph (graphs.h). An inert token is like any other, but nothing asks for it: no prediction has weight there, no
 * label is its sequence's, and so its gradients are zeros, which change no sum. */
#ifndef BACKEND_CUDA_FILL_H
#define BACKEND_CUDA_FILL_H

#include "data/batch.h"

/* The least that holds every batch of up to `capacity`, filled up. */
struct batch_capacity fill_room(struct batch_capacity capacity);

/* T, B, P and longest that a batch of these is filled up to; no sequence is longer than `limit`. What is filled up once
 * stays as it is. */
void fill_shape(struct batch *shape, int32_t limit);

/* The tokens of it. */
int32_t fill_count(int32_t tokens, int32_t sequences, int32_t longest);

/* Fills a batch whose arrays hold what `own` counts, and have room for more, up to what `batch` counts. */
void fill_batch(const struct batch *batch, const struct batch *own);

#endif
