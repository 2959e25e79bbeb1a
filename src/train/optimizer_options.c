/* The option rows of the optimizers. */
#include "train/optimizer_options.h"

/* clang-format off */
#define ROW(member, role, value) OPTION_ROW(struct optimizer_options, member, role, value)
const struct option optimizer_rows[] = {
	{ROW(optimizer, ROLE_RESULT, "NAME"), .range = "adamw|google_adamw|lamb|nvlamb", .fallback = "adamw",
	 .alias = "optimizer_type",
	 .help = "adamw: as in PyTorch; google_adamw: without bias correction; lamb: as in NVIDIA's code, for batches of "
	 "thousands; nvlamb: with the trust ratio for every tensor"},
	{ROW(weight_decay, ROLE_RESULT, "X"), .range = "0..1", .fallback = "0.01",
	 .help = "decoupled weight decay of all weights except biases and layer norms"},
	{ROW(exclude_from_weight_decay, ROLE_RESULT, "NAME..."), .fallback_text = "bias LayerNorm", .rare = true,
	 .help = "do not decay weights whose names contain one of these; none: decay all"},
	{ROW(max_grad_norm, ROLE_RESULT, "X"), .range = "0..", .fallback = "1.0", .alias = "clip_norm clip_grad", .rare = true,
	 .help = "clip the global gradient norm to this; 0 = do not clip"},
	{ROW(adam_beta1, ROLE_RESULT, "X"), .range = "0..0.999999", .fallback = "0.9", .rare = true,
	 .help = "decay of the first moment"},
	{ROW(adam_beta2, ROLE_RESULT, "X"), .range = "0..0.999999", .fallback = "0.999", .rare = true,
	 .help = "decay of the second moment"},
	{ROW(adam_epsilon, ROLE_RESULT, "X"), .range = "1e-20..1", .fallback = "1e-6", .alias = "adam_eps", .rare = true,
	 .help = "added to the square root of the second moment"},
	{ROW(bias_correction, ROLE_RESULT, NULL), .fallback_text = "true; google_adamw false", .rare = true,
	 .help = "divide the moments by 1 - beta^t"},
	{ROW(trust_ratio, ROLE_RESULT, "WHICH"), .range = "decayed|all", .fallback_text = "lamb decayed, nvlamb all",
	 .rare = true,
	 .help = "LAMB: which tensors have a trust ratio"},
	{ROW(exclude_from_layer_adaptation, ROLE_RESULT, "NAME..."), .fallback_text = "none", .rare = true,
	 .help = "LAMB: no trust ratio for weights whose names contain one of these"},
	{ROW(max_trust_ratio, ROLE_RESULT, "X"), .range = "0..", .fallback_text = "no limit", .rare = true,
	 .help = "LAMB: largest trust ratio; 0 = no limit"},
	{ROW(gradient_normalization, ROLE_RESULT, "WHEN"), .range = "clip|always", .fallback_text = "clip", .rare = true,
	 .help = "LAMB: divide gradients by their global norm if it exceeds max_grad_norm (clip), or always, as in NVLAMB's "
	 "formula"},
	{ROW(gradient_averaging, ROLE_RESULT, NULL), .alias = "grad_averaging", .fallback_text = "true", .rare = true,
	 .help = "LAMB: the first moment is an average, beta1 m + (1 - beta1) g, not a sum, beta1 m + g"},
	{0},
};
