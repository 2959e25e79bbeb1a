/* Whole training steps on made-up batches, for comparison with a peer on the same shapes.
 *
 *   step CONFIG.json|SIZE PRECISION THREADS SEQUENCES LENGTH [natural]
 *
 * Reads numbers from standard input; for each number N runs N steps (forward, loss, backward, clipping, AdamW,
 * dropout 0.1) and prints the seconds of each on one line. All sequences have LENGTH tokens, or with `natural` lengths
 * drawn uniformly from LENGTH/8 to LENGTH. 15 % of positions are predicted. Build: make build/bench/step
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "model/model.h"
#include "train/model_folder.h"
#include "train/optimizer.h"

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static enum status batch_make(struct batch *batch, const struct model_config *config, int32_t sequences,
			      int32_t length, bool natural, int64_t *out_tokens)
{
	struct batch_capacity capacity = {
		.tokens = sequences * length, .sequences = sequences, .predictions = sequences * (length * 15 / 100 + 1)};
	TRY(batch_create(batch, capacity));
	struct rng rng = rng_start(1, RNG_TEST, 0);
	int32_t t = 0, p = 0;
	for (int32_t s = 0; s < sequences; s++) {
		int32_t tokens = natural ? length / 8 + (int32_t)rng_below(&rng, (uint32_t)(length - length / 8 + 1)) : length;
		batch->starts[s] = t;
		batch->samples[s] = (uint32_t)s;
		batch->next_labels[s] = s & 1;
		for (int32_t i = 0; i < tokens; i++, t++) {
			batch->ids[t] = (int32_t)rng_below(&rng, (uint32_t)config->vocab_size);
			batch->types[t] = i > tokens / 2;
			batch->positions[t] = i;
			batch->token_samples[t] = (uint32_t)s;
			if (i % 20 == 3 || i % 20 == 9 || i % 20 == 16) {
				batch->prediction_rows[p] = t;
				batch->prediction_labels[p] = (int32_t)rng_below(&rng, (uint32_t)config->vocab_size);
				batch->prediction_weights[p++] = 1.0f;
			}
		}
		batch->longest = tokens > batch->longest ? tokens : batch->longest;
	}
	batch->starts[sequences] = t;
	batch->token_count = t;
	batch->sequence_count = sequences;
	batch->prediction_count = p;
	uint64_t *order;
	TRY(memory_new(&order, t, sizeof(*order), "order"));
	for (int32_t i = 0; i < t; i++)
		order[i] = (uint64_t)batch->ids[i] << 32 | (uint32_t)i;
	qsort(order, (size_t)t, sizeof(*order), compare_ids);
	for (int32_t i = 0; i < t; i++)
		batch->id_order[i] = (int32_t)order[i];
	free(order);
	*out_tokens = t;
	return OK;
}

static enum status bench(int argc, char **argv)
{
	struct model_config config;
	struct pool *pool;
	struct backend *be;
	struct model *model;
	struct replica replica;
	struct activations *activations;
	struct optimizer *optimizer;
	struct batch batch = {0};
	int32_t sequences = atoi(argv[4]), length = atoi(argv[5]);
	int64_t tokens;
	TRY(model_folder_config(argv[1], &config));
	if (config.vocab_size == 0)
		config.vocab_size = 30522;
	TRY(pool_create(&pool, atoi(argv[3])));
	enum dtype dtype = strcmp(argv[2], "bf16") == 0 ? DTYPE_BF16 : DTYPE_F32;
	TRY(backend_open(&be, &(struct backend_settings){.device = "cpu", .dtype = dtype, .pool = pool}));
	TRY(batch_make(&batch, &config, sequences, length, argc > 6, &tokens));
	struct batch_capacity capacity = {sequences * length, sequences, batch.prediction_count};
	struct shape_limits limits = {.batch = capacity,
				      .longest = length,
				      .hidden = config.hidden_size,
				      .heads = config.num_attention_heads,
				      .intermediate = config.intermediate_size,
				      .vocab = config.vocab_size,
				      .training = true};
	struct optimizer_settings settings = {.kind = OPTIMIZER_ADAMW,
					      .beta1 = 0.9,
					      .beta2 = 0.999,
					      .epsilon = 1e-6,
					      .weight_decay = 0.01,
					      .max_grad_norm = 1.0,
					      .bias_correction = true};
	TRY(model_create(&model, be, &config, HEADS_PRETRAINING));
	TRY(model_allocate(model, true));
	TRY(be->functions->replica_create(be, &replica, &limits));
	TRY(activations_create(&activations, model, capacity, true));
	TRY(optimizer_create(&optimizer, model, &settings));
	TRY(model_initialize(model, &replica, 1));
	double flops = model_training_flops(&config, &batch);
	fprintf(stderr, "%s, %s, %d sequences, %lld tokens, %.3f TFLOP a step\n", be->description, argv[2], sequences,
		(long long)tokens, flops * 1e-12);
	char line[64];
	while (fgets(line, sizeof(line), stdin)) {
		for (int steps = atoi(line); steps > 0; steps--) {
			double started = clock_seconds();
			struct accumulators zero = {0};
			struct scalars scalars = {.seed = 1,
						  .learning_rate = 1e-4,
						  .inverse_predictions = 1.0 / batch.prediction_count,
						  .inverse_instances = 1.0 / sequences,
						  .loss_scale = 1.0,
						  .finite = 1};
			optimizer_prepare(optimizer, &scalars);
			be->functions->to_device(be, replica.scalars, &scalars, sizeof(scalars));
			be->functions->to_device(be, replica.accumulators, &zero, sizeof(zero));
			model_forward(model, activations, &replica, &batch, true);
			model_pretraining_loss(model, activations, &replica, &batch, true, true);
			model_backward(model, activations, &replica, &batch, true, NULL, NULL);
			optimizer_measure(optimizer, &replica);
			optimizer_update(optimizer, &replica);
			TRY(be->functions->synchronize(&replica));
			optimizer->update_count++;
			printf("%.6f ", clock_seconds() - started);
		}
		printf("\n");
		fflush(stdout);
	}
	return OK;
}

int main(int argc, char **argv)
{
	if (argc < 6) {
		fprintf(stderr, "usage: step CONFIG|SIZE fp32|bf16 THREADS SEQUENCES LENGTH [natural]\n");
		return 2;
	}
	enum status status = bench(argc, argv);
	if (status != OK)
		fprintf(stderr, "step: %s\n", error_last()->message);
	return (int)status;
}
