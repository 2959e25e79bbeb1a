/* The option rows for the learning rate. */
#include "train/rate_options.h"

/* clang-format off */
#define ROW(member, role, value) OPTION_ROW(struct rate_options, member, role, value)
const struct option rate_rows[] = {
	{ROW(learning_rate, ROLE_RESULT, "X"), .section = "phase", .range = "0..1", .alias = "lr",
	 .fallback_text = "from the model, or LAMB's batch",
	 .help = "peak learning rate"},
	{ROW(scale_learning_rate, ROLE_RESULT, "HOW"), .section = "phase", .range = "none|linear|sqrt", .fallback = "none",
	 .rare = true,
	 .help = "multiply learning_rate and min_learning_rate by train_batch_size / learning_rate_batch_size, or by its square "
	 "root"},
	{ROW(learning_rate_batch_size, ROLE_RESULT, "N"), .section = "phase", .range = "1..1048576",
	 .fallback_text = "train_batch_size_per_gpu if given, else 256", .rare = true,
	 .help = "with scale_learning_rate: the batch size that learning_rate is meant for"},
	{ROW(schedule, ROLE_RESULT, "NAME"), .section = "phase", .range = SCHEDULE_NAMES,
	 .alias = "lr_scheduler_type lr_decay_style", .synonym = "constant_with_warmup=constant cosine_with_restarts=cosine",
	 .fallback_text = "linear; with LAMB poly",
	 .advice = "transformers' polynomial is --schedule poly --min_learning_rate 1e-7, its cosine_with_min_lr is --schedule "
	 "cosine with --min_learning_rate, and in place of warmup_stable_decay there is wsd with --num_decay_steps",
	 .help = "how the rate decays after the warm-up; google_linear and nvidia_poly reproduce those programs exactly, jumps "
	 "included"},
	{ROW(num_warmup_steps, ROLE_RESULT, "N"), .section = "phase", .range = "0..", .alias = "warmup_steps lr_warmup_iters",
	 .follows = "warmup_proportion", .fallback_text = "a tenth of the run, at most 10000",
	 .advice = "a share of all steps is given as --warmup_proportion",
	 .help = "number of steps over which the rate rises from 0"},
	{ROW(warmup_proportion, ROLE_RESULT, "X"), .section = "phase", .range = "0..1",
	 .alias = "warmup_ratio lr_warmup_fraction", .fallback_text = "not used", .rare = true,
	 .help = "warm-up as a share of all steps, instead of num_warmup_steps"},
	{ROW(min_warmup_steps, ROLE_RESULT, "N"), .section = "phase", .range = "0..", .fallback = "0", .rare = true,
	 .help = "minimum warm-up if num_warmup_steps is not given; for a new model, scaled by its layers (N is for "
	 "four); never more than a third of the run"},
	{ROW(num_decay_steps, ROLE_RESULT, "N"), .section = "phase", .range = "1..", .alias = "lr_wsd_decay_iters",
	 .fallback_text = "with wsd a fifth of the run", .rare = true,
	 .help = "with the schedule wsd: number of steps at the end over which the rate falls"},
	{ROW(poly_degree, ROLE_RESULT, "X"), .section = "phase", .range = "0.01..10", .alias = "poly_power",
	 .fallback_text = "1, with LAMB 0.5", .rare = true,
	 .help = "exponent of the polynomial schedules"},
	{ROW(min_learning_rate, ROLE_RESULT, "X"), .section = "phase", .range = "0..1",
	 .alias = "min_lr end_learning_rate lr_end", .fallback_text = "0; slanted_triangular: 1/32 of the peak", .rare = true,
	 .help = "final learning rate"},
	{ROW(average_weights, ROLE_RESULT, "SHARE"), .section = "phase", .range = "0..1", .fallback = "0",
	 .help = "end with the mean of the weights over this last share of the updates (0.1: the last tenth); the last "
	 "evaluation scores this mean, and final contains it; 0 = keep the weights of the last update"},
	{0},
};
