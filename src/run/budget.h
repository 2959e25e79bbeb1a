/* What an amount of time buys on a machine: the model to train, the batch and about how many updates. docs/quality.md has the
 * rule, the runs behind it, and how far it is off. */
#ifndef RUN_BUDGET_H
#define RUN_BUDGET_H

#include "model/flops.h"
#include "run/machine.h"

/* The share of the rate of large matrix products that whole training steps usually reach: the narrower the model, the smaller. */
double budget_share(int32_t hidden_size);
/* Floating-point operations that the machine's matrix products could do in so many seconds at their full rate, which is measured
 * first. Training does budget_share() of them. [all] */
MUST_USE enum status budget_flops(struct machine *machine, double seconds, double *out);
/* The model of a named size to spend them on: the one whose encoder has nearest to sqrt(C / 120) parameters, where C is what its
 * training does of them, so that it sees about 20 tokens for each (Hoffmann et al. 2022). */
const char *budget_model(double flops);
/* Tokens that a model of this shape sees, in sequences of `length` of which a share `masked` is predicted. */
double budget_tokens(double flops, const struct model_config *config, const struct model_heads *heads, double length,
		     double masked);
/* Instances an update: `usual`, or half of it again and again, down to 16, while there were fewer than 4,000 updates. */
int64_t budget_batch(double tokens, double length, int64_t usual);

#endif
