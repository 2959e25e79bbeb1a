/* The recipe of a run: optimizer and schedule. What the user left open is chosen here, whatever is trained. */
#ifndef RUN_RECIPE_H
#define RUN_RECIPE_H

#include "base/option.h"
#include "train/optimizer_options.h"
#include "train/rate_options.h"

/* ERR_USAGE if something was given that the optimizer does not use. */
MUST_USE enum status recipe_choose(struct options *options, const struct optimizer_options *optimizer);

/* What the choices for a phase depend on. */
struct rate_facts {
	int64_t steps, batch_size;
	int64_t batch_size_per_gpu; /* 0: not given */
	double usual_learning_rate; /* what is chosen if learning_rate is open */
	int64_t new_layers; /* layers of a new model: scales min_warmup_steps (given for four layers) and, if the run is too
			       short for that warm-up, a rate chosen here. 0: the model already has trained weights */
};
MUST_USE enum status rate_choose(struct options *phase, const struct rate_options *rate,
				 const struct optimizer_options *optimizer, const struct rate_facts *facts);
struct schedule rate_schedule(const struct rate_options *rate, int64_t steps, int64_t batch_size);

#endif
