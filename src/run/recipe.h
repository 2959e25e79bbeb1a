/* The recipe of a run: optimiser and schedule. What the user left open is chosen here, for whatever is trained. */
#ifndef RUN_RECIPE_H
#define RUN_RECIPE_H

#include "base/option.h"
#include "comm/comm.h"
#include "run/choices.h"
#include "train/optimizer.h"
#include "train/schedule.h"

#define OPTIMIZER_NAMES "adamw|google_adamw|lamb|nvlamb"

/* Of the whole run. Flags are -1, names NULL and numbers negative where they are open. */
struct recipe {
	const char *optimizer; /* of OPTIMIZER_NAMES */
	double weight_decay, max_grad_norm, beta1, beta2, epsilon;
	int bias_correction;
	struct option_list undecayed; /* parts of names; "none" alone: all decay; empty: the model's own rule */
	/* LAMB; given with another optimiser they are an error. */
	const char *trust_ratio; /* "decayed", "all" */
	double max_trust_ratio;
	struct option_list unadapted;
	const char *gradient_normalization; /* "clip", "always" */
	int gradient_averaging;
};

/* Of a phase, whose length and batch are known. */
struct rate_settings {
	double learning_rate;
	double usual_learning_rate; /* what is chosen where it is open */
	double min_learning_rate;   /* 0: the schedule's own */
	const char *scale;          /* "none", "linear", "sqrt": with the batch */
	int64_t scale_batch_size;   /* that learning_rate is meant for; 0 is open */
	const char *schedule;       /* of SCHEDULE_NAMES */
	double poly_degree, warmup_proportion;
	int64_t warmup_steps;
	int64_t min_warmup_steps; /* of what is chosen: at least so many, but no more than a third of all */
	int64_t decay_steps;      /* of the schedule wsd; 0 is open */
};

bool recipe_is_lamb(const struct recipe *recipe);
/* Fills in what is open. ERR_USAGE for what the optimiser has no use for. */
MUST_USE enum status recipe_choose(struct recipe *recipe, struct choices *choices);
struct optimizer_settings recipe_optimizer(const struct recipe *recipe);

/* The batch that a rate is used with: `size` instances an update; `per_device`: of each rank and replica, 0 = not said. */
struct rate_batch {
	int64_t size, per_device;
};
MUST_USE enum status rate_choose(struct rate_settings *rate, const struct recipe *recipe, int64_t steps, struct rate_batch batch,
				 struct choices *choices);
struct schedule rate_schedule(const struct rate_settings *rate, int64_t steps, int64_t batch_size);

#endif
