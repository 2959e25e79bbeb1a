/* What a given amount of time buys on a machine: which model to train, the batch size, and roughly how many updates.
 * docs/quality.md has the rule, the runs it is based on, and its error. */
#ifndef RUN_BUDGET_H
#define RUN_BUDGET_H

#include "model/flops.h"
#include "run/machine.h"

/* Number of floating-point operations that the machine's matrix products could do in `seconds` at their full rate, which is
 * measured first. Training achieves budget_share() of it. [all] */
MUST_USE enum status budget_flops(struct machine *machine, double seconds, double *out);
/* The named model size on which to spend them: the one whose number of encoder parameters is nearest to sqrt(C / 120), where C is
 * the number of operations that its training achieves; it then sees about 20 tokens per parameter (Hoffmann et al. 2022). */
const char *budget_model(double flops, bool on_gpu);
/* Times a few steps of a model of this shape (of its first layers) on random sequences of this length, which takes some 3 % of
 * `seconds` and at most about 5 s, and sets machine->training_rate. Does nothing on GPUs, for which the rule was fitted to whole
 * steps, nor before budget_flops(). [all] */
MUST_USE enum status budget_measure(struct machine *machine, const struct model_config *config, int32_t length, double seconds);
/* FLOP/s of training on all ranks together: the usual share of the products' rate or, if a few steps were slower than that, as on
 * a busy machine, theirs. The share was fitted to whole runs, which also evaluate and save. */
double budget_rate(const struct machine *machine, int32_t hidden_size);
/* Number of tokens that a model of this shape sees for `flops` of training, in sequences of `length` tokens, a share `masked` of
 * which is predicted. */
double budget_tokens(double flops, const struct model_config *config, const struct model_heads *heads, double length,
		     double masked);
/* Instances per update: `usual`, halved (to no fewer than 16) as long as there would be fewer than 4,000 updates. */
int64_t budget_batch(double tokens, double length, int64_t usual);

#endif
