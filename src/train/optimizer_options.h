/* What updates the weights: options of AdamW and of LAMB. */
#ifndef TRAIN_OPTIMIZER_OPTIONS_H
#define TRAIN_OPTIMIZER_OPTIONS_H

#include "base/option.h"

/* The words of --optimizer, --trust_ratio and --gradient_normalization, in their order. */
enum optimizer_kind { OPTIMIZER_ADAMW, OPTIMIZER_GOOGLE_ADAMW, OPTIMIZER_LAMB, OPTIMIZER_NVLAMB };
enum trust_ratio { TRUST_RATIO_DECAYED, TRUST_RATIO_ALL };
enum gradient_normalization { NORMALIZE_CLIP, NORMALIZE_ALWAYS };

struct optimizer_options {
	enum optimizer_kind optimizer;
	double weight_decay;
	struct option_list exclude_from_weight_decay; /* parts of parameter names; "none": all decay; empty: biases and norms */
	double max_grad_norm;                         /* 0 = no clipping */
	double adam_beta1, adam_beta2, adam_epsilon;
	bool bias_correction;
	/* Only LAMB has these: */
	enum trust_ratio trust_ratio;                       /* of tensors with weight decay, or also of those without (NVLAMB) */
	struct option_list exclude_from_layer_adaptation;   /* tensors without a trust ratio */
	double max_trust_ratio;                             /* 0 = no limit */
	enum gradient_normalization gradient_normalization; /* ALWAYS: to norm 1, instead of clipping to max_grad_norm */
	bool gradient_averaging;                            /* m = b1 m + (1 - b1) g, not b1 m + g */
};
extern const struct option optimizer_rows[];

static inline bool optimizer_is_lamb(const struct optimizer_options *options)
{
	return options->optimizer >= OPTIMIZER_LAMB;
}

#endif
