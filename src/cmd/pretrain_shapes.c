/* Shapes of `bertc pretrain`: how many tokens are computed at a time, and what holds them. */
#include <inttypes.h>
#include <math.h>

#include "base/log.h"
#include "cmd/pretrain.h"
#include "model/flops.h"
#include "run/plan.h"

static int32_t larger(int32_t a, int32_t b)
{
	return a > b ? a : b;
}

static struct shape_limits limits_of(const struct pretrain *run, struct batch_capacity capacity, int64_t longest)
{
	return (struct shape_limits){
		.batch = capacity,
		.longest = (int32_t)longest,
		.hidden = run->config.hidden_size,
		.heads = run->config.num_attention_heads,
		.intermediate = run->config.intermediate_size,
		.vocab = run->config.vocab_size,
		.training = true,
	};
}

/* Shapes of a phase's micro-batches of up to `tokens`, for training and for evaluation. */
static void shape_phase(struct pretrain *run, struct pretrain_phase *phase, int64_t tokens)
{
	struct example_bounds training = instance_bounds(&phase->instance_settings);
	struct example_bounds evaluation = instance_bounds(&phase->evaluation_settings);
	phase->steps.capacity = batch_capacity_for(&training, step_part_examples(&phase->steps), phase->steps.accumulation_steps,
						   phase->steps.accumulation_steps > 0 ? 0 : tokens);
	phase->evaluation_capacity = batch_capacity_for(&evaluation, 64, 0, tokens);
	for (int64_t k = 0; k < run->data.evaluation_count; k++) {
		const struct run_data_set *set = &run->data.evaluation[k];
		struct instance_settings own = phase->evaluation_settings;
		if (set->file_count == 0)
			continue;
		instances_static_bounds(set->files, set->file_count, &own);
		struct example_bounds bounds = instance_bounds(&own);
		struct batch_capacity one = batch_capacity_for(&bounds, 64, 0, tokens);
		batch_capacity_grow(&phase->evaluation_capacity, &one);
	}
}

#define USUAL_TOKENS 8192
#define GPU_TOKENS 65536 /* more at a time make a GPU no faster */
/* Of the memory a device has left, so much is given out: the rest is for libraries, and for what pages cost. */
#define USED_SHARE 0.92

/* Does the phase find room in so many bytes of the device? */
static bool fits(struct pretrain *run, struct pretrain_phase *phase, int64_t tokens, double bytes)
{
	int64_t length = phase->settings->max_seq_length;
	shape_phase(run, phase, tokens);
	struct batch_capacity capacity = phase->steps.capacity;
	batch_capacity_grow(&capacity, &phase->evaluation_capacity);
	struct shape_limits limits = limits_of(run, capacity, larger(pretrain_longest_evaluated(run), (int32_t)length));
	struct memory_plan plan = plan_training(run->model, &limits, phase->settings->train_batch_size, (int32_t)length, 0,
						run->ranks, pretrain_wire(run->settings) != COMM_F32);
	return (double)plan.device <= bytes;
}

/* The smaller of what the ranks' devices have: of memory left, and of multiprocessors. */
static enum status ask_devices(struct pretrain *run, double *out_left, int32_t *out_processors)
{
	struct backend *be = run->backend;
	size_t left = 0, all;
	TRY(ranks_agree(run->comm, be->functions->memory_left(be, &left, &all)));
	double least[2] = {-(double)left, -(double)be->processors};
	if (run->comm)
		TRY(comm_max(run->comm, least, 2));
	*out_left = -least[0];
	*out_processors = (int32_t)-least[1];
	return OK;
}

/* The most full sequences up to `high` that find room in so many bytes; one in any case. */
static int64_t most_that_fit(struct pretrain *run, struct pretrain_phase *phase, int64_t high, double bytes)
{
	int64_t low = 1;
	while (low < high) {
		int64_t middle = (low + high + 1) / 2;
		if (fits(run, phase, middle * phase->settings->max_seq_length, bytes))
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* Instances whose lengths stand for all. */
#define LENGTH_SAMPLES 65536

/* Tokens of a micro-batch where the user left them open, or `below` so many. On GPUs a rank's whole share of a batch, where that
 * finds room in the memory left on all of them; else what keeps their multiprocessors busiest. */
static enum status choose_micro_batch(struct pretrain *run, struct pretrain_phase *phase, int64_t below)
{
	int64_t length = phase->settings->max_seq_length, part = step_part_examples(&phase->steps), high = GPU_TOKENS;
	double left;
	if (!run->backend->functions->memory_left || phase->steps.accumulation_steps > 0)
		return pretrain_choose(phase->options, "micro_batch_tokens", "%d", USUAL_TOKENS);
	TRY(ask_devices(run, &left, &phase->waves.processors));
	high = (below > 0 && below - 1 < high ? below - 1 : high) / length;
	high = high < 1 ? 1 : high < part ? high : part;
	int64_t fitting = most_that_fit(run, phase, high, USED_SHARE * run->memory_share * left), tokens = part * length;
	phase->waves.hidden = run->config.hidden_size;
	phase->waves.intermediate = run->config.intermediate_size;
	phase->work = (struct wave_work){
		.instances = part,
		.longest = (int32_t)length,
		.mean = (double)length,
		.most = fitting * length,
		.filled = run->backend->functions->filled,
	};
	if (fitting < part) {
		TRY(ranks_agree(run->comm, pretrain_open_instances(run, phase)));
		TRY(ranks_agree(run->comm, instances_mean_length(phase->instances, LENGTH_SAMPLES, &phase->work.mean)));
		tokens = waves_choose(&phase->waves, &phase->work);
	}
	return pretrain_choose(phase->options, "micro_batch_tokens", "%" PRId64, tokens < 128 ? 128 : tokens);
}

/* Of each phase, and what holds them all; smaller than they are, where they were chosen here. */
static enum status choose_shapes(struct pretrain *run, bool smaller)
{
	int32_t longest = pretrain_longest_evaluated(run);
	run->capacity = (struct batch_capacity){0};
	for (int64_t i = 0; i < run->phase_count; i++) {
		struct pretrain_phase *phase = &run->phases[i];
		const struct pretrain_settings *settings = phase->settings;
		phase->steps = (struct step_settings){
			.batch_size = settings->train_batch_size,
			.rank = run->place.ranks.rank,
			.ranks = run->ranks,
			.replicas = (int32_t)run->settings->replicas_per_gpu,
			.linear_work = model_linear_work(&run->config, &run->model->heads),
			.accumulation_steps = (int32_t)settings->gradient_accumulation_steps,
			.first_step = 1,
		};
		if (pretrain_unset(phase->options, "micro_batch_tokens"))
			TRY(choose_micro_batch(run, phase, 0));
		else if (smaller && phase->work.most > 0)
			TRY(choose_micro_batch(run, phase, settings->micro_batch_tokens));
		shape_phase(run, phase, settings->micro_batch_tokens);
		/* A phase that is over needs no room. */
		if (i < run->training.state.phase.index)
			continue;
		batch_capacity_grow(&run->capacity, &phase->steps.capacity);
		batch_capacity_grow(&run->capacity, &phase->evaluation_capacity);
		longest = larger(longest, (int32_t)settings->max_seq_length);
	}
	run->limits = limits_of(run, run->capacity, longest);
	return OK;
}

enum status pretrain_choose_shapes(struct pretrain *run)
{
	run->memory_share = 1;
	return choose_shapes(run, false);
}

/* What is planned with after an allocation that failed, of what would have been before. */
#define SHARE_AFTER_FAILURE 0.85

enum status pretrain_choose_smaller_shapes(struct pretrain *run, bool *out_smaller)
{
	int32_t before = run->capacity.tokens;
	run->memory_share *= SHARE_AFTER_FAILURE;
	TRY(choose_shapes(run, true));
	*out_smaller = run->capacity.tokens < before;
	return OK;
}
