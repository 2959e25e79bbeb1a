/* The recipe of a run: optimizer and schedule. What the user left open is chosen here, whatever is trained. */
#ifndef RUN_RECIPE_H
#define RUN_RECIPE_H

#include "base/option.h"
#include "comm/comm.h"
#include "run/choices.h"
#include "train/optimizer.h"
#include "train/schedule.h"

#define OPTIMIZER_NAMES "adamw|google_adamw|lamb|nvlamb"

/* For the whole run. Where something is open, flags are -1, names NULL and numbers negative. */
struct recipe {
	const char *optimizer; /* one of OPTIMIZER_NAMES */
	double weight_decay, max_grad_norm, beta1, beta2, epsilon;
	int bias_correction;
	struct option_list undecayed; /* parts of parameter names; just "none": all decay; empty: the model's own rule */
	/* For LAMB only; an error if given with another optimizer. */
	const char *trust_ratio; /* "decayed", "all" */
	double max_trust_ratio;
	struct option_list unadapted;
	const char *gradient_normalization; /* "clip", "always" */
	int gradient_averaging;
};

/* For a phase whose length and batch size are known. */
struct rate_settings {
	double learning_rate;
	double usual_learning_rate; /* what is chosen if learning_rate is open */
	double min_learning_rate;   /* 0: the schedule's own */
	const char *scale;          /* "none", "linear", "sqrt": how it scales with the batch size */
	int64_t scale_batch_size;   /* the batch size that learning_rate is meant for; 0 = open */
	const char *schedule;       /* one of SCHEDULE_NAMES */
	double poly_degree, warmup_proportion;
	int64_t warmup_steps;
	int64_t min_warmup_steps; /* lower bound on a number chosen here; at most a third of all steps */
	int64_t new_layers;  /* of a new model: the bound is for four, for others in proportion, and if a third of all steps is
				fewer, a rate chosen here is lower in proportion. 0: the model's weights are trained */
	int64_t decay_steps; /* for the schedule wsd; 0 = open */
};

bool recipe_is_lamb(const struct recipe *recipe);
/* Fills in what is open. ERR_USAGE if a setting was given that the optimizer does not use. */
MUST_USE enum status recipe_choose(struct recipe *recipe, struct choices *choices);
struct optimizer_settings recipe_optimizer(const struct recipe *recipe);

/* The batch that a rate is used with: `size` instances per update; `per_device`: for each rank and replica, 0 = not given. */
struct rate_batch {
	int64_t size, per_device;
};
MUST_USE enum status rate_choose(struct rate_settings *rate, const struct recipe *recipe, int64_t steps, struct rate_batch batch,
				 struct choices *choices);
struct schedule rate_schedule(const struct rate_settings *rate, int64_t steps, int64_t batch_size);

#endif
