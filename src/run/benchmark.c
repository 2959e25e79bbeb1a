/* Runs training and scoring steps on random batches, with the lengths that real text has. */
#include "run/benchmark.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/rng.h"
#include "data/pretraining/instances.h"
#include "model/forms.h"
#include "train/pretraining.h"
#include "train/step.h"

void benchmark_close(struct benchmark *benchmark)
{
	if (benchmark->objective)
		benchmark->objective->close(benchmark->objective);
	optimizer_free(benchmark->optimizer);
	activations_free(benchmark->activations);
	if (benchmark->replica.backend)
		benchmark->backend->functions->replica_release(&benchmark->replica);
	model_free(benchmark->model);
	*benchmark = (struct benchmark){0};
}

/* Sets up everything that the steps of a loop borrow. */
static enum status loop_open(struct benchmark *benchmark)
{
	struct training *loop = &benchmark->loop;
	TRY(pretraining_create(&benchmark->objective, &(struct pretraining_settings){
							      .model = benchmark->model,
							      .activations = benchmark->activations,
						      }));
	*loop = (struct training){
		.settings = {.seed = 1},
		.objective = benchmark->objective,
		.model = benchmark->model,
		.replica = &benchmark->replica,
		.optimizer = benchmark->optimizer,
		.guard = {.loss_scale = 1},
	};
	TRY(reduction_open(&loop->reduction, &benchmark->optimizer->buckets, benchmark->model, COMM_F32));
	guard_start(&loop->state.guard, &loop->guard);
	step_start(loop);
	return OK;
}

enum status benchmark_open(struct benchmark *out, struct backend *be, const struct model_config *config,
			   struct batch_capacity capacity, int32_t longest, bool training)
{
	struct shape_limits limits = model_shape_limits(config, capacity, longest, training);
	struct optimizer_options options = {.optimizer = OPTIMIZER_ADAMW,
					    .adam_beta1 = 0.9,
					    .adam_beta2 = 0.999,
					    .adam_epsilon = 1e-6,
					    .weight_decay = 0.01,
					    .max_grad_norm = 1.0,
					    .bias_correction = true};
	enum status status;
	*out = (struct benchmark){.backend = be, .training = training};
	TRY_GOTO(model_create(&out->model, be, config, model_heads_of_words(config)), fail);
	TRY_GOTO(model_allocate(out->model, training), fail);
	TRY_GOTO(be->functions->replica_create(be, &out->replica, &limits), fail);
	TRY_GOTO(activations_create(&out->activations, out->model, capacity, longest, training), fail);
	if (training) {
		TRY_GOTO(optimizer_create(&out->optimizer, out->model, NULL, &options), fail);
		TRY_GOTO(loop_open(out), fail);
	}
	TRY_GOTO(model_initialize(out->model, &out->replica, 1), fail);
	return OK;
fail:
	benchmark_close(out);
	return status;
}

/* The batches as a step for the loop, which does not change them. */
static struct step step_of(const struct benchmark *benchmark, const struct batch *batches, int64_t count)
{
	struct step step = {
		.number = benchmark->loop.state.step + 1,
		.batch_count = (int32_t)count,
		.most_batches = (int32_t)count,
		.fewest_batches = (int32_t)count,
		.batches = (struct batch *)(uintptr_t)batches,
	};
	for (int64_t i = 0; i < count; i++) {
		step.example_count += batches[i].example_count;
		step.token_count += batches[i].token_count;
		for (int h = 0; h < BATCH_HEADS; h++) {
			step.labeled[h] += batches[i].labels[h].count;
			step.weights[h] += batches[i].labels[h].count; /* a weight of 1 each */
		}
	}
	return step;
}

#define LEARNING_RATE 1e-4

static enum status train_step(struct benchmark *benchmark, const struct step *step, double *out_loss)
{
	struct training *loop = &benchmark->loop;
	struct step_result result = {0};
	step_begin(loop, step, LEARNING_RATE);
	TRY(step_gradients(loop, step, &result));
	TRY(step_measure(loop, step, &result));
	loop->optimizer->update_count++;
	loop->state.step++;
	*out_loss = measures_get(&result.metrics, "mlm_loss");
	return OK;
}

static void queue_losses(void *context)
{
	struct benchmark *r = context;
	model_forward(r->model, r->activations, &r->replica, &r->batch, false);
	if (r->encoder_only)
		return;
	model_losses(r->model, r->activations, &r->replica, &r->batch, false, false);
}

static enum status score_step(struct benchmark *benchmark, const struct step *step, double *out_loss)
{
	struct backend *be = benchmark->backend;
	struct replica *replica = &benchmark->replica;
	struct accumulators sums = {0};
	const struct scalars scalars = {.loss_scale = 1.0, .inverse_weight = {1, 1, 1, 1}, .finite = 1};
	be->functions->to_device(be, replica->scalars, &scalars, sizeof scalars);
	be->functions->to_device(be, replica->accumulators, &sums, sizeof sums);
	for (int32_t i = 0; i < step->batch_count; i++) {
		be->functions->upload(replica, &step->batches[i], &benchmark->batch);
		struct work_key key = work_key(benchmark->activations, WORK_LOSS, &benchmark->batch);
		work_queue(replica, &key, queue_losses, benchmark);
	}
	TRY(be->functions->synchronize(replica));
	be->functions->to_host(be, &sums, replica->accumulators, sizeof sums);
	double weight = step->weights[HEAD_MASKED_WORDS];
	*out_loss = weight > 0 ? sums.value[sum_of_loss(HEAD_MASKED_WORDS)] / weight : 0;
	return OK;
}

enum status benchmark_step(struct benchmark *benchmark, const struct batch *batches, int64_t count, double *out_loss)
{
	struct step step = step_of(benchmark, batches, count);
	double loss;
	TRY(benchmark->training ? train_step(benchmark, &step, &loss) : score_step(benchmark, &step, &loss));
	if (!isfinite(loss))
		return error_set(ERR_NUMERIC, "a step of a new model on random text has a loss of %g", loss);
	if (out_loss)
		*out_loss = loss;
	return OK;
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

enum status benchmark_order(struct batch *batch)
{
	uint64_t *order;
	TRY(memory_new(&order, batch->token_count, sizeof *order, "the order of a batch"));
	for (int32_t i = 0; i < batch->token_count; i++)
		order[i] = (uint64_t)batch->ids[i] << 32 | (uint32_t)i;
	qsort(order, (size_t)batch->token_count, sizeof *order, compare_ids);
	for (int32_t i = 0; i < batch->token_count; i++)
		batch->id_order[i] = (int32_t)order[i];
	free(order);
	return OK;
}

/* Three of every 20 positions are predicted. */
static bool is_predicted(int32_t position)
{
	int32_t place = position % 20;
	return place == 3 || place == 9 || place == 16;
}

/* Quantile u of the length in tokens of the instances that Google's data script makes from Wikipedia at 512, following the
 * histogram of Krell et al. 2021 (Efficient sequence packing without cross-contamination): 23.4 % are full, the others have 20 to
 * 512 tokens with a long tail. Mean and mean square agree with theirs, 255.8 and 98,826, to within a quarter of a percent. */
static double wikipedia_length(double u)
{
	const double whole = 0.234;
	double v = u / (1 - whole);
	return v >= 1 ? 512 : 20 + 492 * (0.4 * v + 0.6 * v * v * v * v);
}

/* Quantile u of the length of English sentences, with [CLS] and [SEP]: a log-logistic distribution with a mean of 29, where one
 * in a hundred is shorter than 8 and one in a hundred longer than 88. */
static double sentence_length(double u)
{
	return 25.65 * pow(u / (1 - u), 0.27);
}

enum status benchmark_batch(struct batch *out, const struct model_config *config, int32_t sequences, int32_t length,
			    enum benchmark_lengths lengths)
{
	struct batch_capacity capacity = instance_capacity(sequences * length, sequences, sequences * (length * 3 / 20 + 3));
	TRY(batch_create(out, &capacity));
	struct batch_labels *words = &out->labels[HEAD_MASKED_WORDS], *next = &out->labels[HEAD_NEXT_SENTENCE];
	struct rng rng = rng_start(1, RNG_TEST, 0);
	int32_t t = 0, p = 0;
	double share =
		0.5; /* steps by the golden ratio, so that any number of sequences has nearly the same distribution of lengths */
	for (int32_t s = 0; s < sequences; s++) {
		int32_t tokens = length;
		if (lengths == LENGTHS_WIKIPEDIA)
			tokens = (int32_t)ceil(wikipedia_length(share) * length / 512);
		if (lengths == LENGTHS_SENTENCES)
			tokens = (int32_t)fmin(length, fmax(3, round(sentence_length(share))));
		share = fmod(share + 0.6180339887498949, 1);
		out->starts[s] = t;
		out->samples[s] = (uint32_t)s;
		out->example_starts[s] = s;
		next->classes[s] = s & 1;
		next->weights[s] = 1;
		for (int32_t i = 0; i < tokens; i++, t++) {
			out->ids[t] = (int32_t)rng_below(&rng, (uint32_t)config->vocab_size);
			out->types[t] = config->type_vocab_size > 1 && i > tokens / 2;
			out->positions[t] = i;
			out->token_samples[t] = (uint32_t)s;
			if (!is_predicted(i))
				continue;
			words->rows[p] = t;
			words->classes[p] = (int32_t)rng_below(&rng, (uint32_t)config->vocab_size);
			words->weights[p++] = 1.0f;
		}
		out->longest = tokens > out->longest ? tokens : out->longest;
	}
	out->starts[sequences] = t;
	out->token_count = t;
	out->sequence_count = out->example_count = next->count = sequences;
	out->example_starts[sequences] = sequences;
	words->count = p;
	enum status status = benchmark_order(out);
	if (status != OK)
		batch_release(out);
	return status;
}
