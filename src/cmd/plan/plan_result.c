/* Computes a plan's memory, step time, and duration, and finds how many devices a given duration takes. */
#include "cmd/plan/plan_result.h"

#include <math.h>

#include "data/pretraining/instances.h"
#include "data/step_reader.h"
#include "train/checkpoint.h"

/* Usable share of a GPU's memory; the rest is left to other uses. */
#define USABLE 0.94

int64_t plan_batch_size(const struct plan *plan, const struct plan_phase *phase, int64_t devices)
{
	return phase->per_device ? phase->batch_size * devices * plan->settings->training.ranks.replicas_per_gpu
				 : phase->batch_size;
}

static struct example_bounds instances_of(const struct plan_phase *phase)
{
	return instance_bounds(&(struct instance_settings){
		.max_seq_length = (int32_t)phase->settings->training.max_seq_length,
		.masked_lm_prob = phase->settings->instances.masked_lm_prob,
		.max_predictions_per_seq = (int32_t)phase->settings->instances.max_predictions_per_seq,
	});
}

static void fit_memory(const struct plan *plan, const struct plan_phase *phase, int64_t batch_size, int32_t accumulation,
		       int64_t tokens, struct plan_result *out)
{
	struct example_bounds instances = instances_of(phase);
	out->capacity = batch_capacity_for(&instances, batch_size, accumulation, accumulation > 0 ? 0 : tokens);
	struct shape_limits limits = model_shape_limits(&plan->config, out->capacity, instances.max_seq_length, true);
	struct step_settings steps = {
		.batch_size = batch_size,
		.accumulation_steps = accumulation,
		.capacity = out->capacity,
		.first_step = 1,
	};
	out->memory = plan_training(plan->model, &limits, batch_size, instances.max_seq_length,
				    step_reader_bytes(&instances, &steps), (int32_t)out->devices, false);
	if (plan->on_gpus && out->devices > 1) {
		out->memory.communication = COMM_DEVICE_ALLOWANCE;
		out->memory.total += out->memory.communication;
	}
	out->host_bytes = (double)(out->memory.batches + out->memory.checkpoint);
	out->device_bytes = (double)out->memory.total - out->host_bytes;
	int64_t together = out->devices < plan->topology.per_host ? out->devices : plan->topology.per_host;
	/* Only the first rank makes copies for checkpoints. */
	double host = (double)out->memory.total + (double)(together - 1) * (double)(out->memory.total - out->memory.checkpoint);
	out->fits = plan->on_gpus ? out->device_bytes <= USABLE * plan->device_memory : host <= plan->device_memory;
}

/* Chooses micro-batches as requested; otherwise, on GPUs, as large as the memory allows, up to the rank's whole share. */
static void choose_micro_batch(const struct plan *plan, const struct plan_phase *phase, int64_t local, struct plan_result *out)
{
	const struct plan_settings *settings = phase->settings;
	int64_t accumulation = settings->training.batch.gradient_accumulation_steps;
	int64_t longest = settings->training.max_seq_length, tokens = settings->training.batch.micro_batch_tokens;
	if (accumulation > 0) {
		fit_memory(plan, phase, local, (int32_t)accumulation, 0, out);
		out->micro_sequences = (local + accumulation - 1) / accumulation;
		out->micro_tokens = out->capacity.tokens;
		return;
	}
	if (tokens == 0 && !plan->on_gpus)
		tokens = 8192;
	if (tokens == 0) {
		int64_t low = 1, high = local < 1048576 / longest ? local : 1048576 / longest;
		high = high > 0 ? high : 1;
		int64_t most = high;
		fit_memory(plan, phase, local, 0, high * longest, out);
		while (low < high) { /* the largest number of full sequences that fits */
			int64_t middle = (low + high + 1) / 2;
			fit_memory(plan, phase, local, 0, middle * longest, out);
			if (out->fits)
				low = middle;
			else
				high = middle - 1;
		}
		out->memory_bound = low < most;
		tokens = low * longest;
	}
	fit_memory(plan, phase, local, 0, tokens, out);
	out->micro_sequences = (int64_t)floor((double)out->capacity.tokens / phase->mean_length);
	out->micro_sequences = out->micro_sequences > 0 ? out->micro_sequences : 1;
	out->micro_tokens = out->capacity.tokens;
}

double plan_gradient_bytes(const struct plan_settings *settings)
{
	const struct ranks_options *ranks = &settings->training.ranks;
	return ranks->allreduce_post_accumulation_fp16 || ranks->allreduce_post_accumulation_bf16 ? 2 : 4;
}

static struct forecast_setup setup_of(const struct plan *plan, const struct plan_phase *phase, const struct plan_result *result)
{
	const struct plan_settings *settings = plan->settings;
	struct example_bounds instances = instances_of(phase);
	double mean = phase->mean_length, longest = (double)instances.max_seq_length;
	struct forecast_setup setup = {
		.model = plan->model,
		.rates = plan->rates,
		.topology = plan->topology,
		.batch_size = plan_batch_size(plan, phase, result->devices),
		.micro_sequences = result->micro_sequences,
		.mean_length = mean,
		.square_length = mean * (mean + longest) / 2,
		.bucket_bytes = settings->bucket_size * 1e6,
		.gradient_bytes = plan_gradient_bytes(settings),
		.weight_bytes = plan->backend == &plan->described && dtype_bytes(plan->backend->dtype) == 2 && !plan->backend->fp8
					? 2 /* copies */
					: 4,
		.update_bytes = optimizer_is_lamb(&settings->training.optimizer) ? UPDATE_BYTES_LAMB : UPDATE_BYTES_ADAMW,
		.replicas = settings->training.ranks.replicas_per_gpu,
		.reduce_every_batch = !settings->training.ranks.allreduce_post_accumulation,
		.predictions = mean * phase->settings->instances.masked_lm_prob,
	};
	double cap = (double)phase->settings->instances.max_predictions_per_seq;
	if (cap > 0 && setup.predictions > cap)
		setup.predictions = cap;
	setup.topology.ranks = result->devices;
	setup.rates.products_forward /= phase->scale;
	setup.rates.products_backward /= phase->scale;
	setup.rates.head /= phase->scale;
	setup.rates.attention_forward /= phase->scale;
	setup.rates.attention_backward /= phase->scale;
	setup.rates.attention_memory /= phase->scale;
	setup.rates.elements_forward /= phase->scale;
	setup.rates.elements_backward /= phase->scale;
	setup.rates.embeddings /= phase->scale;
	setup.rates.update /= phase->scale;
	setup.rates.gap *= phase->scale;
	return setup;
}

static int64_t times_due(int64_t every, int64_t steps)
{
	return every > 0 ? (steps + every - 1) / every : 1;
}

int64_t plan_steps(const struct plan *plan, const struct plan_phase *phase, int64_t devices)
{
	const struct plan_settings *settings = phase->settings;
	double batch = (double)plan_batch_size(plan, phase, devices);
	if (settings->training.length.num_train_tokens > 0)
		return (int64_t)ceil((double)settings->training.length.num_train_tokens / (batch * phase->mean_length));
	if (settings->num_train_samples > 0)
		return (int64_t)ceil((double)settings->num_train_samples / batch);
	return settings->training.length.num_train_steps;
}

/* Evaluations are forward passes only, divided among the devices; a save waits for its copies. */
static void add_duration(const struct plan *plan, const struct plan_phase *phase, struct plan_result *out)
{
	const struct plan_settings *settings = phase->settings;
	const struct forecast *f = &out->forecast;
	int64_t steps = plan_steps(plan, phase, out->devices), twentieth = steps / 20 > 0 ? steps / 20 : 1;
	int64_t usual = twentieth < 5000 ? twentieth : 5000;
	double elements = (double)plan->model->element_count;
	out->steps = steps;
	out->checkpoint_bytes = checkpoint_disk_bytes(plan->model);
	if (steps == 0)
		return;
	bool saves_given = options_given(phase->options, "save_checkpoints_steps");
	bool evaluations_given = options_given(phase->options, "eval_steps");
	out->saves = times_due(saves_given ? settings->training.saving.save_checkpoints_steps : usual, steps);
	out->evaluations = times_due(evaluations_given ? settings->training.saving.eval_steps : usual, steps);
	out->training_seconds = f->step * (double)steps;
	double one = (f->forward + f->heads / 3) / f->work.sequences;
	double scored = ceil((double)settings->eval_instances / (double)out->devices);
	out->evaluation_seconds = (double)out->evaluations * scored * one;
	out->saving_seconds = (double)out->saves * elements * (4 + 8 / (double)out->devices) / plan->copy_rate;
}

enum status plan_compute(const struct plan *plan, const struct plan_phase *phase, int64_t devices, struct plan_result *out)
{
	*out = (struct plan_result){.devices = devices};
	int64_t parts = devices * plan->settings->training.ranks.replicas_per_gpu;
	int64_t local = (plan_batch_size(plan, phase, devices) + parts - 1) / parts;
	choose_micro_batch(plan, phase, local, out);
	struct forecast_setup setup = setup_of(plan, phase, out);
	TRY(forecast_compute(&setup, &out->forecast));
	add_duration(plan, phase, out);
	return OK;
}

double plan_alone(const struct plan *plan, const struct plan_phase *phase, const struct plan_result *result,
		  int64_t micro_sequences)
{
	struct forecast_setup setup = setup_of(plan, phase, result);
	return forecast_alone(&setup, micro_sequences > 0 ? (double)micro_sequences : result->forecast.work.sequences);
}

enum status plan_step_with(const struct plan *plan, const struct plan_result *result, const struct plan_phase *phase,
			   double bucket_bytes, double gradient_bytes, double *out_step)
{
	struct forecast forecast;
	struct forecast_setup setup = setup_of(plan, phase, result);
	setup.bucket_bytes = bucket_bytes;
	setup.gradient_bytes = gradient_bytes;
	TRY(forecast_compute(&setup, &forecast));
	*out_step = forecast.step;
	return OK;
}

static enum status plan_duration(const struct plan *plan, int64_t devices, double *out_seconds)
{
	*out_seconds = 0;
	for (int64_t i = 0; i < plan->phase_count; i++) {
		struct plan_result result;
		TRY(plan_compute(plan, &plan->phases[i], devices, &result));
		*out_seconds += result.training_seconds + result.evaluation_seconds + result.saving_seconds;
	}
	return OK;
}

/* Typical numbers of devices: within one host the divisors of its number, beyond that whole hosts in powers of two. */
static int64_t next_number(const struct plan *plan, int64_t devices)
{
	int64_t per_host = plan->topology.per_host;
	if (devices >= per_host)
		return devices * 2;
	do
		devices++;
	while (per_host % devices != 0);
	return devices;
}

enum status plan_find_devices(const struct plan *plan, double seconds, int64_t *out_devices, double *out_best)
{
	int64_t most = 1 << 20;
	*out_devices = 0;
	*out_best = HUGE_VAL;
	for (int64_t i = 0; i < plan->phase_count; i++) {
		const struct plan_settings *settings = plan->phases[i].settings;
		int64_t parts = settings->training.batch.gradient_accumulation_steps > 0
					? settings->training.batch.gradient_accumulation_steps
					: 1;
		int64_t devices = plan->phases[i].batch_size / settings->training.ranks.replicas_per_gpu / parts;
		if (!plan->phases[i].per_device && devices < most)
			most = devices;
	}
	int64_t before = 0;
	for (int64_t devices = 1; devices <= most; devices = next_number(plan, devices)) {
		double time;
		TRY(plan_duration(plan, devices, &time));
		*out_best = time < *out_best ? time : *out_best;
		if (time <= seconds) {
			*out_devices = devices;
			break;
		}
		before = devices;
	}
	/* Between two powers of two, find the fewest whole hosts. */
	int64_t host = plan->topology.per_host, low = before / host, high = *out_devices / host;
	while (*out_devices > host && high - low > 1) {
		int64_t middle = (low + high) / 2;
		double time;
		TRY(plan_duration(plan, middle * host, &time));
		if (time <= seconds)
			high = middle;
		else
			low = middle;
	}
	if (*out_devices > host)
		*out_devices = high * host;
	return OK;
}
