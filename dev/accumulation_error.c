/* The error of accumulating the gradients of many micro-batches in fp32: the gradient of one step as training accumulates
 * it, compared with the double-precision sum of the gradients of its micro-batches, each computed separately.
 *
 *   accumulation_error PREFIX VOCAB MODEL_FOLDER MAX_SEQ_LENGTH MICRO_BATCHES SEQUENCES fp32|bf16 THREADS
 *
 * SEQUENCES is the number of sequences in a micro-batch. Dropout is that of the folder's config.json. Prints, at every
 * doubling of the number of micro-batches, |difference| / |sum| over all weights and for the worst tensor.
 * Build: make build/dev/accumulation_error */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/pretraining/instances.h"
#include "data/step_reader.h"
#include "text/vocab.h"
#include "weights/model_folder.h"
#include "backend/open.h"

struct run {
	struct pool *pool;
	struct backend *be;
	struct model *model;
	struct activations *activations;
	struct replica replica;
	struct shard shard;
	struct vocab vocab;
	struct instances *instances;
	struct step_reader *reader;
	float *single, *total; /* gradients on the host: of one micro-batch, and accumulated */
	double *exact;
};

static enum status open_run(struct run *run, char **argv)
{
	struct model_config config;
	int32_t length = atoi(argv[4]), batches = atoi(argv[5]), sequences = atoi(argv[6]);
	TRY(vocab_read(&run->vocab, argv[2]));
	TRY(shard_open(&run->shard, argv[1]));
	struct instance_settings settings = {
		.seed = 1,
		.max_seq_length = length,
		.masked_lm_prob = 0.15,
		.short_seq_prob = 0.1,
		.shuffle = true,
		.vocab_size = run->vocab.count,
		.cls = run->vocab.cls,
		.sep = run->vocab.sep,
		.mask = run->vocab.mask,
		.is_continuation = run->vocab.is_continuation,
	};
	TRY(instances_open(&run->instances, &run->shard, 1, &settings));
	int64_t batch_size = (int64_t)batches * sequences;
	struct step_settings steps = {
		.batch_size = batch_size,
		.accumulation_steps = batches,
		.capacity = batch_capacity_for(instances_bounds(run->instances), batch_size, batches, 0),
		.first_step = 1,
		.last_step = 1,
	};
	TRY(step_reader_open(&run->reader, run->instances, &steps));
	TRY(pool_create(&run->pool, atoi(argv[8])));
	TRY(backend_open(&run->be, &(struct backend_settings){.device = "cpu",
							      .dtype = strcmp(argv[7], "bf16") == 0 ? DTYPE_BF16 : DTYPE_F32,
							      .pool = run->pool}));
	TRY(model_size_or_folder_config(argv[3], &config));
	TRY(model_create(&run->model, run->be, &config, &model_heads_pretraining));
	TRY(model_allocate(run->model, true));
	struct shape_limits limits = {.batch = steps.capacity,
				      .longest = length,
				      .hidden = config.hidden_size,
				      .heads = config.num_attention_heads,
				      .intermediate = config.intermediate_size,
				      .vocab = config.vocab_size,
				      .training = true};
	TRY(run->be->functions->replica_create(run->be, &run->replica, &limits));
	TRY(activations_create(&run->activations, run->model, steps.capacity, true));
	int64_t count = run->model->slab_count;
	TRY(memory_new(&run->single, count, sizeof(float), "gradients"));
	TRY(memory_new(&run->total, count, sizeof(float), "gradients"));
	TRY(memory_new(&run->exact, count, sizeof(double), "gradients"));
	TRY(model_folder_load(argv[3], run->model, MISSING_NOTHING, run->single, NULL));
	return model_set_weights(run->model, &run->replica, run->single);
}

static void gradients(struct run *run, const struct batch *batch, bool first)
{
	struct batch device;
	run->be->functions->upload(&run->replica, batch, &device);
	model_forward(run->model, run->activations, &run->replica, &device, true);
	model_losses(run->model, run->activations, &run->replica, &device, true, first);
	model_backward(run->model, run->activations, &run->replica, &device, first, NULL, NULL);
}

static void print_errors(const struct run *run, int32_t batches)
{
	double square = 0, whole = 0, worst = 0;
	const char *where = "";
	for (int64_t p = 0; p < run->model->parameter_count; p++) {
		const struct parameter *parameter = &run->model->parameters[p];
		double own_square = 0, own_whole = 0;
		for (int64_t i = parameter->offset; i < parameter->offset + parameter->count; i++) {
			double difference = run->total[i] - run->exact[i];
			own_square += difference * difference;
			own_whole += run->exact[i] * run->exact[i];
		}
		square += own_square;
		whole += own_whole;
		bool is_rounding = strstr(parameter->name, "key.bias") != NULL; /* its exact gradient is zero */
		if (!is_rounding && own_whole > 0 && sqrt(own_square / own_whole) > worst) {
			worst = sqrt(own_square / own_whole);
			where = parameter->name;
		}
	}
	printf("%5d micro-batches: %.2e of |g| = %.4g, worst tensor %.2e (%s)\n", batches, sqrt(square / whole), sqrt(whole),
	       worst, where);
	fflush(stdout);
}

static enum status measure(struct run *run)
{
	const struct step *step;
	size_t bytes = (size_t)run->model->slab_count * sizeof(float);
	TRY(step_reader_next(run->reader, &step));
	struct scalars scalars = {.seed = 1,
				  .inverse_weight[HEAD_MASKED_WORDS] = 1.0 / step->weights[HEAD_MASKED_WORDS],
				  .inverse_weight[HEAD_NEXT_SENTENCE] = 1.0 / (double)step->labeled[HEAD_NEXT_SENTENCE],
				  .loss_scale = 1};
	const struct backend_functions *f = run->be->functions;
	f->to_device(run->be, run->replica.scalars, &scalars, sizeof scalars);
	for (int32_t i = 0; i < step->batch_count; i++) {
		gradients(run, &step->batches[i], i == 0); /* as training does */
		f->to_host(run->be, run->total, run->model->gradients.data, bytes);
		gradients(run, &step->batches[i], true); /* separately */
		f->to_host(run->be, run->single, run->model->gradients.data, bytes);
		f->to_device(run->be, run->model->gradients.data, run->total, bytes);
		for (int64_t j = 0; j < run->model->slab_count; j++)
			run->exact[j] += run->single[j];
		if (((i + 1) & i) == 0 || i + 1 == step->batch_count)
			print_errors(run, i + 1);
	}
	return OK;
}

int main(int argc, char **argv)
{
	if (argc != 9) {
		fprintf(stderr, "usage: accumulation_error PREFIX VOCAB MODEL_FOLDER MAX_SEQ_LENGTH MICRO_BATCHES SEQUENCES "
				"fp32|bf16 THREADS\n");
		return 2;
	}
	struct run run = {0};
	enum status status = open_run(&run, argv);
	if (status == OK)
		status = measure(&run);
	if (status != OK)
		fprintf(stderr, "accumulation_error: %s\n", error_last()->message);
	return (int)status;
}
