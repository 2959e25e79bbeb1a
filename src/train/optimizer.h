/* AdamW over the parameter slab, in PyTorch's fashion (bias-corrected) or Google's (not), with global-norm clipping. */
#ifndef TRAIN_OPTIMIZER_H
#define TRAIN_OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/ops.h"
#include "base/error.h"
#include "model/model.h"

enum optimizer_kind { OPTIMIZER_ADAMW, OPTIMIZER_GOOGLE_ADAMW };

struct optimizer_settings {
	enum optimizer_kind kind;
	double beta1, beta2, epsilon, weight_decay;
	double max_grad_norm; /* 0 = no clipping */
};

/* A run of neighbouring parameters that decay alike. */
struct optimizer_range {
	int64_t offset, count; /* elements of the slab */
	bool decays;
};

struct optimizer {
	struct optimizer_settings settings;
	struct model *model;
	struct tensor m, v;    /* moments (1, slab_count), master dtype, device memory */
	struct optimizer_range *ranges;
	int64_t range_count;
	int64_t update_count;  /* updates applied so far: t of the bias correction */
};

/* Device memory for the moments. */
size_t optimizer_bytes(const struct model *model);
MUST_USE enum status optimizer_create(struct optimizer **out, struct model *model,
				      const struct optimizer_settings *settings);
void optimizer_free(struct optimizer *optimizer);

/* Sets the scalars that the update reads (bias corrections, clipping), for the update after `update_count`. */
void optimizer_prepare(const struct optimizer *optimizer, struct scalars *scalars);
/* Norm and finite check of all gradients, update of masters and moments (skipped on the device when a gradient is
 * not finite), refresh of the compute copies. Queued; the caller counts the update when it knows it was
 * finite. */
void optimizer_update(struct optimizer *optimizer, struct replica *replica);

#endif
