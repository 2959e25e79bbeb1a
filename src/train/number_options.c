/* The option rows for spikes and the loss scale. */
#include "train/number_options.h"

/* clang-format off */
#define ROW(member, role, value) OPTION_ROW(struct number_options, member, role, value)
const struct option number_rows[] = {
	{ROW(skip_spikes, ROLE_RUN, "Z"), .range = "0..", .fallback = "0", .rare = true,
	 .help = "skip updates whose loss or gradient norm is Z standard deviations above the previous 128; 0 = skip none"},
	{ROW(loss_scale, ROLE_RUN, "X"), .range = "0..", .fallback = "1", .rare = true,
	 .help = "multiply the loss by this before the backward pass; 0 = dynamic, the default with --precision fp16"},
	{ROW(init_loss_scale, ROLE_RUN, "X"), .range = "1..", .fallback = "65536", .alias = "initial_loss_scale", .rare = true,
	 .help = "initial value of a dynamic loss scale"},
	{0},
};
