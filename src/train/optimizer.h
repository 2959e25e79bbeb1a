/* AdamW in PyTorch's fashion (bias-corrected) or Google's (not), and LAMB, over the parameter slab.
 *
 *   AdamW    Loshchilov and Hutter 2019
 *   LAMB     You et al. 2020: AdamW's update of each tensor, scaled to the norm of the tensor. NVIDIA's code adapts decayed
 *            tensors only; NVLAMB all of them.
 *
 * The formulas stand in docs/math.md, the operations in backend/ops.h. */
#ifndef TRAIN_OPTIMIZER_H
#define TRAIN_OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/ops.h"
#include "base/error.h"
#include "model/model.h"
#include "train/buckets.h"

enum optimizer_kind { OPTIMIZER_ADAMW, OPTIMIZER_LAMB };

/* Substrings of parameter names. */
struct name_patterns {
	const char *const *patterns;
	int64_t count;
};

struct optimizer_settings {
	enum optimizer_kind kind;
	double beta1, beta2, epsilon, weight_decay;
	double max_grad_norm; /* 0 = no clipping */
	bool bias_correction;
	bool has_undecayed; /* `undecayed` replaces the model's own rule: biases and layer norms */
	struct name_patterns undecayed;
	/* LAMB */
	bool adapts_all;                /* trust ratio for tensors without decay, too (NVLAMB) */
	struct name_patterns unadapted; /* no trust ratio for these */
	double max_trust_ratio;         /* 0 = no limit */
	bool normalize_gradients;       /* to norm 1 always, instead of clipping to max_grad_norm */
	bool no_gradient_averaging;     /* m = b1 m + g */
};

/* Neighbouring weights that are updated and refreshed together; of many ranks a bucket. */
struct optimizer_group {
	int64_t offset, count; /* elements of the slab that this rank updates */
	int64_t moments;       /* where theirs begin */
	int64_t first_tensor, tensor_count;
	int64_t first_weight, weight_count; /* of model->weights */
};

struct optimizer {
	struct optimizer_settings settings;
	struct model *model;
	struct buckets buckets; /* what this rank owns */
	struct tensor m, v;     /* moments of it (1, own_elements), master dtype, device memory */
	struct optimizer_group *groups;
	int64_t group_count;
	double *weight_decay;        /* [parameter_count] */
	struct decay_range *ranges;  /* [parameter_count]: of the group that is updated */
	struct lamb_tensor *tensors; /* [parameter_count] device: what is this rank's of each, offsets within the group */
	double *norms;               /* [parameter_count][2] device */
	double *norm_sums;           /* the same on the host, of many ranks */
	/* Weights of buckets on their way from other ranks: [buckets] */
	struct {
		bool under_way;
		comm_ticket ticket;
	} * gathers;
	struct replica *replica; /* that updates, and makes them ready */
	struct error error;      /* what went wrong with them */
	int64_t update_count;    /* updates applied since the start or optimizer_restart: t of the bias correction is one more */
};

/* Device memory for moments, table and norms of a rank of so many. */
size_t optimizer_bytes(const struct model *model, int32_t ranks);
/* Collective with many ranks; comm is borrowed, NULL: alone. The pattern lists are used only here. */
MUST_USE enum status optimizer_create(struct optimizer **out, struct model *model, struct comm *comm,
				      const struct optimizer_settings *settings);
void optimizer_free(struct optimizer *optimizer);

/* A new phase: t begins again at 1 on the moments as they are, as NVIDIA's phase 2 does. */
void optimizer_restart(struct optimizer *optimizer);

/* Sets the scalars that the update reads (bias corrections, clipping), for the update after `update_count`. */
void optimizer_prepare(const struct optimizer *optimizer, struct scalars *scalars);
/* Norm of the gradients that this rank owns, and whether they and the sums of its losses are finite, into the scalars;
 * of one rank also the loss scale of the next step (backend/loss_scale.h). Queued, as all here. */
void optimizer_measure(const struct optimizer *optimizer, struct replica *replica);
/* After optimizer_measure: update of masters and moments (skipped on the device when a gradient or a loss is not finite), refresh
 * of the compute copies. The caller counts the update. Of many ranks each updates what it owns, and all begin to gather the
 * weights; model_forward waits for those of a layer before it reads them, and refreshes them then. */
MUST_USE enum status optimizer_update(struct optimizer *optimizer, struct replica *replica);
/* Waits for all weights: before anything but model_forward reads them. A failing peer is ERR_PEER. */
MUST_USE enum status optimizer_settle(struct optimizer *optimizer);

#endif
