/* Padding a batch: inert sequences and predictions are appended to its own, so that a small number of shapes recur often, each
 * with its recorded graph (graphs.h). An inert token is computed like any other, but nothing depends on it: it has no
 * prediction with weight and its sequence has no label, so its gradients are zeros, which change no sum. */
#ifndef BACKEND_CUDA_FILL_H
#define BACKEND_CUDA_FILL_H

#include "data/batch.h"

/* The smallest capacity that holds every padded batch of up to `capacity`. */
struct batch_capacity fill_room(struct batch_capacity capacity);

/* T, B, P and longest that a batch of this shape is padded to; no sequence may be longer than `limit`. Padding a padded shape
 * leaves it unchanged. */
void fill_shape(struct batch *shape, int32_t limit);

/* Its number of tokens. */
int32_t fill_count(int32_t tokens, int32_t sequences, int32_t longest);

/* Pads a batch whose arrays hold the counts of `own`, and have room for more, to the counts of `batch`. */
void fill_batch(const struct batch *batch, const struct batch *own);

#endif
