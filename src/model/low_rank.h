/* Low-rank additions to weights (LoRA, Hu et al. 2021): the encoder stays as it is, and for each matrix W (O,I) that is adapted,
 * two small ones learn, A (r,I) and B (O,r). Forward and backward use W + s B A like any other weight; the gradients of A and B
 * follow from that of the sum. */
#ifndef MODEL_LOW_RANK_H
#define MODEL_LOW_RANK_H

#include "model/model.h"

/* s: alpha / r, or alpha / sqrt(r). */
double low_rank_scale(const struct low_rank *low_rank);
/* w (rows,columns) += s B A. Everything that merges an adapter does it in this order, so that all get the same bits. */
void low_rank_add(double *w, const double *a, const double *b, int64_t rows, int64_t columns, int64_t rank, double scale);

/* Lists the targets of all layers of a model whose encoder is complete. */
MUST_USE enum status low_rank_find(struct model *model);
/* Memory besides slab and gradients: for the sums, and for one layer's gradients of frozen weights, which serve those of A and
 * B. */
size_t low_rank_bytes(const struct model *model);
MUST_USE enum status low_rank_allocate(struct model *model);
void low_rank_free(struct model *model);
/* Computes W + s B A for a layer's targets and refreshes their compute copies. */
void low_rank_apply(struct model *model, struct replica *replica, int32_t layer);
void low_rank_apply_all(struct model *model, struct replica *replica);
/* The gradients of a layer's A and B, after its backward pass. `overwrite`: first micro-batch of a step. */
void low_rank_backward(const struct model *model, int32_t layer, bool overwrite);

#endif
