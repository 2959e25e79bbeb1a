/* The parameter slab, divided among several ranks. A bucket is what is reduced and gathered at once: the tensors of a layer that
 * learn, of which there may be none. Each rank owns one share of each bucket (ZeRO-1, Rajbhandari et al. 2020): for this share it
 * gets the gradients' sum over the ranks, keeps the moments, and updates the weights, which all ranks then gather. A single rank
 * owns everything. */
#ifndef TRAIN_BUCKETS_H
#define TRAIN_BUCKETS_H

#include "comm/comm.h"
#include "model/model.h"

struct bucket {
	int64_t offset, count;              /* elements of the slab, including gaps between tensors */
	int64_t own_offset, own_count;      /* the part of them that this rank owns */
	int64_t moments;                    /* where the share begins in this rank's moments */
	int64_t first_tensor, tensor_count; /* of model->parameters */
	int64_t first_weight, weight_count; /* of model->weights */
	/* Only the 16-bit copies of its weights are gathered after an update, and the masters of its vectors, in pieces. Those of
	 * its matrices are up to date in their owner alone. */
	bool narrow;
	int64_t first_piece, piece_count; /* of buckets->pieces */
};

/* In slab order: embeddings, encoder layers, then pooler and heads. */
struct buckets {
	struct comm *comm; /* borrowed; NULL: a single rank */
	int32_t rank, ranks;
	struct bucket *items;
	int64_t count;
	int64_t own_elements; /* of all of this rank's shares */
	struct comm_piece *pieces;
	int64_t piece_count, piece_capacity;
};

/* Needs no device memory. */
MUST_USE enum status buckets_create(struct buckets *out, const struct model *model, struct comm *comm);
void buckets_release(struct buckets *buckets);
/* The bucket of a layer as model_backward() numbers it; -1: the embeddings. */
static inline const struct bucket *bucket_of(const struct buckets *buckets, int32_t layer)
{
	return &buckets->items[layer + 1];
}

/* The part of the slab of gradients that belongs to elements [offset, offset + count) of the slab; without data if they have
 * none. */
struct tensor buckets_gradients(const struct model *model, int64_t offset, int64_t count);

/* The largest number of elements that any rank owns; `ranks` may exceed the number running now. */
int64_t buckets_own_most(const struct model *model, int32_t ranks);

/* Number of elements of the longest bucket. */
int64_t buckets_longest(const struct model *model);

/* The comm's name for the type of masters and gradients. */
enum comm_type buckets_type(const struct model *model);

#endif
