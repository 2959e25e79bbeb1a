/* Steps of a model with made-up weights, for measuring: what a training step is made of, without data, loop and files.
 * bertc bench and bench/step.c run it. */
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
	struct optimizer *optimizer; /* NULL without training, as is */
	struct objective *objective; /* that of pre-training */
	struct training loop;        /* what the loop's steps work on */
	struct batch batch;          /* without training: the batch on the device */
};

/* A model with initial weights, and memory for micro-batches of `capacity` whose sequences have up to `longest`
 * tokens. AdamW with clipping. */
MUST_USE enum status benchmark_open(struct benchmark *out, struct backend *be, const struct model_config *config,
				    struct batch_capacity capacity, int32_t longest, bool training);
void benchmark_close(struct benchmark *benchmark);

/* With training one step over the micro-batches, as the loop makes it (train/step.h). Without: forward and loss of each. Waits
 * for all of it; *out_loss (or NULL) is that of the masked words. ERR_RESOURCE: the device failed; ERR_NUMERIC: the loss is not
 * finite. The time of such a step says nothing. */
MUST_USE enum status benchmark_step(struct benchmark *benchmark, const struct batch *batches, int64_t count, double *out_loss);

/* How long sequences are: all `length`; as Wikipedia's instances, of `length` a quarter, half of it on average; or as English
 * sentences, 29 tokens on average, `length` at most. */
enum benchmark_lengths { LENGTHS_FULL, LENGTHS_WIKIPEDIA, LENGTHS_SENTENCES };

/* Sequences of random words, of which 15 % are predicted. batch_release frees it. */
MUST_USE enum status benchmark_batch(struct batch *out, const struct model_config *config, int32_t sequences, int32_t length,
				     enum benchmark_lengths lengths);
/* Fills id_order from ids. */
MUST_USE enum status benchmark_order(struct batch *batch);

#endif
