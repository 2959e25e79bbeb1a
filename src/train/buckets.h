/* The parameter slab cut for many ranks. A bucket is what is reduced and gathered at once: the tensors of a layer. Of each
 * bucket a rank owns one share (ZeRO-1, Rajbhandari et al. 2020): there it gets the gradients' sum over ranks, keeps the
 * moments and updates the weights, which all ranks then gather. A rank that is alone owns everything. */
#ifndef TRAIN_BUCKETS_H
#define TRAIN_BUCKETS_H

#include "comm/comm.h"
#include "model/model.h"

struct bucket {
	int64_t offset, count;              /* elements of the slab, gaps between tensors included */
	int64_t own_offset, own_count;      /* this rank's share of them */
	int64_t moments;                    /* where the share begins in the moments of this rank */
	int64_t first_tensor, tensor_count; /* of model->parameters */
	int64_t first_weight, weight_count; /* of model->weights */
};

/* In the order of the slab: embeddings, encoder layers, pooler and heads. */
struct buckets {
	struct comm *comm; /* borrowed; NULL: alone */
	int32_t rank, ranks;
	struct bucket *items;
	int64_t count;
	int64_t own_elements; /* of all shares together */
};

/* The layout needs no device memory. */
MUST_USE enum status buckets_create(struct buckets *out, const struct model *model, struct comm *comm);
void buckets_release(struct buckets *buckets);
/* The bucket of model_backward's `layer`: -1 the embeddings. */
static inline const struct bucket *bucket_of(const struct buckets *buckets, int32_t layer)
{
	return &buckets->items[layer + 1];
}

/* Of the largest of the ranks' shares; `ranks` may be more than run now. */
int64_t buckets_own_most(const struct model *model, int32_t ranks);

/* Elements of the longest bucket. */
int64_t buckets_longest(const struct model *model);

/* How a comm calls the type of masters and gradients. */
enum comm_type buckets_type(const struct model *model);

#endif
