/* The fitted rule that says which model, batch, and number of tokens suit a given time. */
#include "run/budget.h"

#include <math.h>

#include "base/log.h"
#include "base/numbers.h"
#include "model/forms.h"
#include "run/benchmark.h"
#include "train/ranks.h"

/* FLOP/s of plain loops, assumed where a back end cannot tell its rate. */
#define UNKNOWN_RATE 1e9
/* With fewer updates, a model stays on the plateau where it has learned little more than word frequencies. */
#define FEWEST_UPDATES 4000
#define SMALLEST_BATCH 16
/* Layers of the model whose steps are timed, which all cost the same, and how often at least. */
#define MEASURED_LAYERS 4
#define MEASURED_ROUNDS 3

/* Processors: fitted to two cores of a Zen 4 in bf16 on an otherwise idle machine: 0.48 to 0.51 for 128 columns, 0.61 to 0.64
 * for 256, and 0.76 for 512. GPUs: to an H200 in bf16, 0.61 for 768 columns and 0.70 for 1,024. An error makes --time choose a
 * somewhat too large or too small model; on processors, a measurement corrects batch and number of steps. */
static double budget_share(int32_t hidden_size, bool on_gpu)
{
	return on_gpu ? 1.26 * hidden_size / (hidden_size + 818.0) : 0.88 * hidden_size / (hidden_size + 100.0);
}

enum status budget_flops(struct machine *machine, double seconds, double *out)
{
	TRY(machine_measure_rate(machine));
	*out = seconds * (machine->gemm_rate > 0 ? machine->gemm_rate : UNKNOWN_RATE);
	return OK;
}

double budget_rate(const struct machine *machine, int32_t hidden_size)
{
	double products = machine->gemm_rate > 0 ? machine->gemm_rate : UNKNOWN_RATE;
	double usual = products * budget_share(hidden_size, machine_on_gpu(machine));
	return machine->training_rate > 0 ? fmin(machine->training_rate, usual) : usual;
}

static enum status time_step(struct benchmark *benchmark, const struct batch *batches, int64_t count, double *out)
{
	double started = clock_seconds();
	TRY(benchmark_step(benchmark, batches, count, NULL));
	*out = clock_seconds() - started;
	return OK;
}

/* What a step of three micro-batches takes longer than a step of one is the time of two; the rest of it is the update of the
 * weights, of which a run has one for each batch: short runs, which need the estimate most, for SMALLEST_BATCH sequences.
 * Measures for `seconds`, because the pace of a few steps on a busy machine says little about that of a run. */
static enum status time_batch(struct benchmark *benchmark, const struct batch *batch, double seconds, double *out)
{
	const struct batch batches[] = {*batch, *batch, *batch};
	double one, three, ones = 0, threes = 0;
	int rounds = 0;
	TRY(time_step(benchmark, batches, 1, &one)); /* warms up */
	for (; rounds < MEASURED_ROUNDS || ones + threes < seconds; rounds++) {
		TRY(time_step(benchmark, batches, 1, &one));
		TRY(time_step(benchmark, batches, 3, &three));
		ones += one;
		threes += three;
	}
	double each = (threes - ones) / 2;
	*out = (each + fmax(0, ones - each) * batch->sequence_count / SMALLEST_BATCH) / rounds;
	return OK;
}

/* This rank's FLOP/s. */
static enum status measure_rank(const struct machine *machine, const struct model_config *config, int32_t length, double seconds,
				double *out)
{
	struct model_config shape = *config;
	struct benchmark benchmark = {0};
	struct batch batch = {0};
	double taken = 0, room = fmin(fmax(seconds / 200, 0.01), 0.4);
	enum status status;
	shape.num_hidden_layers = smaller(config->num_hidden_layers, MEASURED_LAYERS);
	struct model_work work = {.tokens = length, .sequences = 1, .squares = (double)length * length};
	double sequence = model_flops_of(&shape, model_heads_of_words(&shape), &work);
	double wanted = room * budget_rate(machine, config->hidden_size) / ranks_count(machine->comm) / sequence;
	/* No more than a short run's batch: on a busy machine, what a step takes however small it is counts. */
	int32_t sequences = (int32_t)fmin(fmax(wanted, 1), SMALLEST_BATCH);
	TRY_GOTO(benchmark_batch(&batch, &shape, sequences, length, LENGTHS_FULL), done);
	TRY_GOTO(benchmark_open(&benchmark, machine->backend, &shape, batch_capacity_of(&batch), length, true), done);
	TRY_GOTO(time_batch(&benchmark, &batch, 12 * room, &taken), done);
	*out = taken > 0 ? model_training_flops(benchmark.model, &batch) / taken : 0;
done:
	benchmark_close(&benchmark);
	batch_release(&batch);
	return status;
}

enum status budget_measure(struct machine *machine, const struct model_config *config, int32_t length, double seconds)
{
	double rate = 0;
	if (machine->gemm_rate <= 0 || machine_on_gpu(machine))
		return OK;
	TRY(ranks_agree(machine->comm, measure_rank(machine, config, length, seconds, &rate)));
	if (machine->comm)
		TRY(comm_sum(machine->comm, &rate, 1));
	machine->training_rate = rate;
	return OK;
}

/* Only the encoder's matrices count, as they do the work. */
static double encoder_parameters(const struct model_config *config)
{
	double hidden = config->hidden_size, inner = config->intermediate_size;
	return config->num_hidden_layers * (4 * hidden * hidden + 2 * hidden * inner);
}

const char *budget_model(double flops, bool on_gpu)
{
	double least = INFINITY;
	const char *nearest = NULL, *name;
	for (int i = 0; (name = model_size_name(i)); i++) {
		struct model_config config;
		BUG_IF(model_config_named(&config, name) != OK);
		double wanted = sqrt(flops * budget_share(config.hidden_size, on_gpu) / 120);
		double distance = fabs(log(encoder_parameters(&config) / wanted));
		if (!nearest || distance < least) {
			least = distance;
			nearest = name;
		}
	}
	return nearest;
}

double budget_tokens(double flops, const struct model_config *config, const struct model_heads *heads, double length,
		     double masked)
{
	struct model_work sequence = {
		.tokens = length,
		.sequences = 1,
		.predictions = masked * length,
		.squares = length * length,
	};
	return flops / model_flops_of(config, heads, &sequence) * length;
}

int64_t budget_batch(double tokens, double length, int64_t usual)
{
	while (usual / 2 >= SMALLEST_BATCH && tokens / length / (double)usual < FEWEST_UPDATES)
		usual /= 2;
	return usual;
}
