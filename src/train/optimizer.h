/* AdamW as in PyTorch (bias-corrected) or as in Google's code (not corrected), and LAMB, over the parameter slab.
 *
 *   AdamW    Loshchilov and Hutter 2019
 *   LAMB     You et al. 2020: AdamW's update of each tensor, scaled to the norm of the tensor. NVIDIA's code adapts only
 *            tensors with weight decay; NVLAMB adapts all tensors.
 *
 * The formulas are in docs/developers/math.md, the operations in backend/ops.h. */
#ifndef TRAIN_OPTIMIZER_H
#define TRAIN_OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/ops.h"
#include "base/error.h"
#include "model/model.h"
#include "train/buckets.h"
#include "train/optimizer_options.h"

/* Adjacent weights that are updated and refreshed together; with several ranks, those of a bucket. */
struct optimizer_group {
	int64_t offset, count; /* elements of the slab updated by this rank */
	int64_t moments;       /* where their moments begin */
	int64_t first_tensor, tensor_count;
	int64_t first_weight, weight_count; /* of model->weights */
};

struct optimizer {
	struct optimizer_options options; /* without its lists */
	struct model *model;
	struct buckets buckets; /* what this rank owns */
	struct tensor m, v;     /* its moments (1, own_elements), master dtype, device memory */
	struct optimizer_group *groups;
	int64_t group_count;
	double *weight_decay;        /* [parameter_count], like what follows; nothing is kept of frozen ones */
	struct decay_range *ranges;  /* [parameter_count]: of the group being updated */
	struct lamb_tensor *tensors; /* [parameter_count] device: this rank's part of each, offsets within the group */
	double *norms;               /* [parameter_count][2] device */
	double *norm_sums;           /* the same on the host, for several ranks */
	/* Weights of buckets that are being gathered from other ranks: [buckets] */
	struct {
		bool under_way;
		comm_ticket ticket;
	} * gathers;
	struct replica *replica; /* the replica that updates the weights and refreshes gathered ones */
	struct error error;      /* the error of a gather */
	int64_t update_count;    /* updates applied since the start or optimizer_restart; the bias correction's t is one more */
};

/* Bytes of device memory for moments, tensor table, and norms of a rank, one of `ranks`. */
size_t optimizer_bytes(const struct model *model, int32_t ranks);
/* Collective with several ranks; comm is borrowed, NULL: a single rank. The lists of `options` are used only during this call. */
MUST_USE enum status optimizer_create(struct optimizer **out, struct model *model, struct comm *comm,
				      const struct optimizer_options *options);
void optimizer_free(struct optimizer *optimizer);

/* For a new phase: t starts again at 1 while the moments stay as they are, as in NVIDIA's phase 2. */
void optimizer_restart(struct optimizer *optimizer);

/* Sets the scalars that the update after `update_count` reads (bias corrections, clipping). */
void optimizer_prepare(const struct optimizer *optimizer, struct scalars *scalars);
/* Puts into the scalars the norm of the gradients that this rank owns, and whether they and the sums of its losses are finite;
 * with a single rank also the next step's loss scale (backend/loss_scale.h). Queued, like everything here. */
void optimizer_measure(const struct optimizer *optimizer, struct replica *replica);
/* After optimizer_measure, once norm and flags are those of all ranks: sets the next step's loss scale. */
void optimizer_decide(const struct optimizer *optimizer, struct replica *replica);
/* After optimizer_measure: updates masters and moments (the device skips this if a gradient or a loss is not finite) and
 * refreshes the compute copies. The caller counts the update. With several ranks, each updates what it owns, and all begin to
 * gather the weights; model_forward waits for a layer's weights before it reads them, and refreshes them then. */
MUST_USE enum status optimizer_update(struct optimizer *optimizer, struct replica *replica);
/* Waits for all weights that model_forward reads. A failing peer is ERR_PEER. */
MUST_USE enum status optimizer_settle(struct optimizer *optimizer);
/* The same, and gathers the masters of which other ranks had only the copies (bucket.narrow). Call it before anything other than
 * model_forward reads weights. [all] */
MUST_USE enum status optimizer_gather_masters(struct optimizer *optimizer);

#endif
