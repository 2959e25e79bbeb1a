/* What a given amount of time buys on a machine: which model to train, the batch size, and roughly how many updates.
 * docs/quality.md has the rule, the runs it is based on, and its error. */
#ifndef RUN_BUDGET_H
#define RUN_BUDGET_H

#include "model/flops.h"
#include "run/machine.h"

/* The share of the rate of large matrix products that whole training steps usually reach. Narrower models reach less,
 * above all on a GPU. */
double budget_share(int32_t hidden_size, bool on_gpu);
/* Number of floating-point operations that the machine's matrix products could do in `seconds` at their full rate, which is
 * measured first. Training achieves budget_share() of it. [all] */
MUST_USE enum status budget_flops(struct machine *machine, double seconds, double *out);
/* The named model size on which to spend them: the one whose number of encoder parameters is nearest to sqrt(C / 120), where C is
 * the number of operations that its training achieves; it then sees about 20 tokens per parameter (Hoffmann et al. 2022). */
const char *budget_model(double flops, bool on_gpu);
/* Number of tokens that a model of this shape sees for `flops`, in sequences of `length` tokens, a share `masked` of which is
 * predicted. */
double budget_tokens(double flops, bool on_gpu, const struct model_config *config, const struct model_heads *heads, double length,
		     double masked);
/* Instances per update: `usual`, halved (down to 16 at the least) as long as there would be fewer than 4,000 updates. */
int64_t budget_batch(double tokens, double length, int64_t usual);

#endif
