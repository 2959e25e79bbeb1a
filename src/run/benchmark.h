/* Steps of a model with random weights, for measuring what a training step itself costs, without data, loop and files. Used by
 * bertc bench and bench/step.c. */
#ifndef RUN_BENCHMARK_H
#define RUN_BENCHMARK_H

#include "train/loop.h"

struct benchmark {
	struct backend *backend;
	bool training;
	bool encoder_only; /* without training: no heads */
	struct model *model;
	struct replica replica;
	struct activations *activations;
	struct optimizer *optimizer; /* NULL without training, as is `objective` */
	struct objective *objective; /* the pre-training objective */
	struct training loop;        /* the state that the loop's steps work on */
	struct batch batch;          /* without training: the batch on the device */
};

/* Makes a model with initial weights, and allocates memory for micro-batches of `capacity` whose sequences have up to `longest`
 * tokens. The optimizer is AdamW with clipping. */
MUST_USE enum status benchmark_open(struct benchmark *out, struct backend *be, const struct model_config *config,
				    struct batch_capacity capacity, int32_t longest, bool training);
void benchmark_close(struct benchmark *benchmark);

/* With training: makes one step over the micro-batches, just as the loop does (train/step.h). Without: computes forward pass and
 * loss of each. Waits until all of it is done; *out_loss (may be NULL) is the loss of the masked words. ERR_RESOURCE: the device
 * failed; ERR_NUMERIC: the loss is not finite, so the step's time means nothing. */
MUST_USE enum status benchmark_step(struct benchmark *benchmark, const struct batch *batches, int64_t count, double *out_loss);

/* How long sequences are: all of `length`; distributed as in Wikipedia's instances (a quarter have `length`, the average is half
 * of it); or as English sentences, 29 tokens on average and `length` at most. */
enum benchmark_lengths { LENGTHS_FULL, LENGTHS_WIKIPEDIA, LENGTHS_SENTENCES };

/* Makes sequences of random words, of which 15 % are predicted. To be freed by batch_release(). */
MUST_USE enum status benchmark_batch(struct batch *out, const struct model_config *config, int32_t sequences, int32_t length,
				     enum benchmark_lengths lengths);
/* Fills id_order from ids. */
MUST_USE enum status benchmark_order(struct batch *batch);

#endif
