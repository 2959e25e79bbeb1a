/* Chooses the micro-batches of each phase by the memory that is free. */
#include "run/shapes.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "train/average.h"
#include "train/ranks.h"

#define USUAL_TOKENS 8192
#define FEWEST_TOKENS 512 /* fewer save little memory and cost much time */
#define GPU_TOKENS 65536  /* more at a time do not make a GPU faster */
/* The share of a device's free memory that is used: the rest is for libraries and for rounding up to pages. */
#define USED_SHARE 0.92

static void shape(struct shapes *shapes, int64_t index, int64_t tokens)
{
	shapes->source.shape(shapes->source.context, index, &shapes->phases[index], tokens);
}

double shapes_teacher_flops(const struct shape_source *source, int64_t batch_size, int32_t length)
{
	struct model_work work = model_work_of_full((double)batch_size, length);
	return source->teacher_flops ? source->teacher_flops(source->context, &work) : 0;
}

/* Includes the teacher and the mean of the weights. */
static struct memory_plan plan_of(const struct shapes *shapes, const struct shape_limits *limits,
				  const struct training_options *training, size_t batches)
{
	struct memory_plan plan =
		plan_training(shapes->model, limits, training->batch.train_batch_size, (int32_t)training->max_seq_length, batches,
			      shapes->machine->ranks, shapes->narrow);
	if (shapes->averages)
		plan_add_average(&plan, average_bytes(shapes->model));
	if (shapes->source.teacher_bytes)
		plan_add_teacher(&plan, shapes->source.teacher_bytes(shapes->source.context, limits),
				 shapes_teacher_flops(&shapes->source, training->batch.train_batch_size,
						      (int32_t)training->max_seq_length));
	return plan;
}

/* What the operations of training see. The linear layers of heads and the projection of hidden states for a teacher may be wider
 * than the encoder's. */
static struct shape_limits limits_of(const struct shapes *shapes, struct batch_capacity capacity, int32_t longest)
{
	const struct model_heads *heads = &shapes->model->heads;
	struct shape_limits limits = model_shape_limits(&shapes->model->config, capacity, longest, true);
	limits.intermediate = (int32_t)larger(limits.intermediate, heads->projection);
	for (int h = 0; h < heads->count; h++)
		if (!head_has_words(&heads->head[h]))
			limits.intermediate = (int32_t)larger(limits.intermediate, heads->head[h].outputs);
	return limits;
}

/* The plan of one phase with micro-batches of `tokens`. */
static struct memory_plan plan_of_phase(struct shapes *shapes, int64_t index, int64_t tokens)
{
	struct run_phase *phase = &shapes->phases[index];
	int32_t length = (int32_t)phase->values->max_seq_length;
	shape(shapes, index, tokens);
	struct batch_capacity capacity = phase->steps.capacity;
	batch_capacity_grow(&capacity, &phase->evaluation_capacity);
	model_heads_make_room(&shapes->model->heads, &capacity);
	struct shape_limits limits = limits_of(shapes, capacity, larger(shapes->longest_evaluated, length));
	size_t batches = shapes->source.reader_bytes(shapes->source.context, index, phase);
	return plan_of(shapes, &limits, phase->values, batches);
}

/* Does the phase fit into `bytes` of device memory? */
static bool fits(struct shapes *shapes, int64_t index, int64_t tokens, double bytes)
{
	return (double)plan_of_phase(shapes, index, tokens).device <= bytes;
}

/* Tokens of a micro-batch on the host: the usual number, halved while any machine has too little memory for it. That changes the
 * order in which gradients are summed and hence their rounding, which is better than not running at all. */
static enum status choose_host_tokens(struct shapes *shapes, int64_t index, int64_t *out)
{
	const struct machine *machine = shapes->machine;
	int32_t ranks = machine_local_ranks(machine);
	int64_t left = memory_available(), tokens = USUAL_TOKENS;
	for (; left > 0 && tokens > FEWEST_TOKENS; tokens /= 2) {
		struct memory_plan plan = plan_of_phase(shapes, index, tokens);
		if (plan_host_bytes(&plan, ranks) <= (size_t)left)
			break;
	}
	double least = -(double)tokens;
	if (machine->comm)
		TRY(comm_max(machine->comm, &least, 1));
	*out = (int64_t)-least;
	return OK;
}

/* The smallest free memory and the smallest number of multiprocessors among the ranks' devices. */
static enum status ask_devices(const struct machine *machine, double *out_left, int32_t *out_processors)
{
	struct backend *be = machine->backend;
	size_t left = 0, all;
	TRY(ranks_agree(machine->comm, be->functions->memory_left(be, &left, &all)));
	double least[2] = {-(double)left, -(double)be->processors};
	if (machine->comm)
		TRY(comm_max(machine->comm, least, 2));
	*out_left = -least[0];
	*out_processors = (int32_t)-least[1];
	return OK;
}

/* The largest number of full-length sequences, up to `high`, that fits into `bytes`; at least one. */
static int64_t most_that_fit(struct shapes *shapes, int64_t index, int64_t high, double bytes)
{
	int64_t low = 1, length = shapes->phases[index].values->max_seq_length;
	while (low < high) {
		int64_t middle = (low + high + 1) / 2;
		if (fits(shapes, index, middle * length, bytes))
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* Chooses the tokens of a micro-batch that the user left open, fewer than `below` if that is not 0. On GPUs it is a rank's whole
 * share of a batch if that fits into the memory left on all of them; else the number that keeps their multiprocessors busiest. */
static enum status choose_micro_batch(struct shapes *shapes, int64_t index, int64_t below)
{
	struct run_phase *phase = &shapes->phases[index];
	const struct backend *be = shapes->machine->backend;
	const int64_t *chosen = &phase->values->batch.micro_batch_tokens;
	int64_t length = phase->values->max_seq_length, part = step_part_examples(&phase->steps), high = GPU_TOKENS;
	double left;
	if (phase->steps.accumulation_steps > 0)
		return options_choose_integer(phase->options, chosen, USUAL_TOKENS);
	if (!be->functions->memory_left) {
		int64_t tokens;
		TRY(choose_host_tokens(shapes, index, &tokens));
		return options_choose_integer(phase->options, chosen, tokens);
	}
	TRY(ask_devices(shapes->machine, &left, &phase->waves.processors));
	high = (below > 0 && below - 1 < high ? below - 1 : high) / length;
	high = high < 1 ? 1 : high < part ? high : part;
	int64_t fitting = most_that_fit(shapes, index, high, USED_SHARE * shapes->memory_share * left), tokens = part * length;
	phase->waves.hidden = shapes->model->config.hidden_size;
	phase->waves.intermediate = shapes->model->config.intermediate_size;
	phase->work = (struct wave_work){
		.instances = part,
		.longest = (int32_t)length,
		.mean = (double)length,
		.most = fitting * length,
		.filled = be->functions->filled,
	};
	if (fitting < part) {
		TRY(ranks_agree(shapes->machine->comm,
				shapes->source.mean_length(shapes->source.context, index, &phase->work.mean)));
		tokens = waves_choose(&phase->waves, &phase->work);
	}
	return options_choose_integer(phase->options, chosen, tokens < 128 ? 128 : tokens);
}

/* Chooses the shapes of each phase and limits that hold all of them. `smaller`: smaller than now, where they were chosen here. */
static enum status choose(struct shapes *shapes, bool smaller)
{
	const struct machine *machine = shapes->machine;
	const struct model_config *config = &shapes->model->config;
	struct batch_capacity all = {0};
	int32_t longest = shapes->longest_evaluated;
	for (int64_t i = 0; i < shapes->phase_count; i++) {
		struct run_phase *phase = &shapes->phases[i];
		const struct training_options *training = phase->values;
		const int64_t *tokens = &training->batch.micro_batch_tokens;
		phase->steps = (struct step_settings){
			.batch_size = training->batch.train_batch_size,
			.rank = machine->place.ranks.rank,
			.ranks = machine->ranks,
			.replicas = (int32_t)machine->replicas,
			.linear_work = model_linear_work(config, &shapes->model->heads),
			.accumulation_steps = (int32_t)training->batch.gradient_accumulation_steps,
			.first_step = 1,
		};
		if (options_is_open(phase->options, tokens))
			TRY(choose_micro_batch(shapes, i, 0));
		else if (smaller && phase->work.most > 0)
			TRY(choose_micro_batch(shapes, i, *tokens));
		shape(shapes, i, *tokens);
		if (i < shapes->first_phase)
			continue;
		batch_capacity_grow(&all, &phase->steps.capacity);
		batch_capacity_grow(&all, &phase->evaluation_capacity);
		longest = larger(longest, (int32_t)training->max_seq_length);
	}
	model_heads_make_room(&shapes->model->heads, &all);
	shapes->limits = limits_of(shapes, all, longest);
	return OK;
}

enum status shapes_choose(struct shapes *shapes)
{
	shapes->memory_share = 1;
	return choose(shapes, false);
}

/* After a failed allocation, planning continues with this share of the memory assumed before. */
#define SHARE_AFTER_FAILURE 0.85

enum status shapes_choose_smaller(struct shapes *shapes, bool *out_smaller)
{
	int32_t before = shapes->limits.batch.tokens;
	shapes->memory_share *= SHARE_AFTER_FAILURE;
	TRY(choose(shapes, true));
	*out_smaller = shapes->limits.batch.tokens < before;
	return OK;
}

/* The plan for the largest of the remaining phases. */
struct memory_plan shapes_memory(const struct shapes *shapes)
{
	const struct training_options *last = shapes->phases[shapes->phase_count - 1].values;
	size_t batches = 0;
	for (int64_t i = shapes->first_phase; i < shapes->phase_count; i++) {
		size_t bytes = shapes->source.reader_bytes(shapes->source.context, i, &shapes->phases[i]);
		batches = bytes > batches ? bytes : batches;
	}
	return plan_of(shapes, &shapes->limits, last, batches);
}

/* ---- Output ---- */

/* "batch: 400 instances an update = 4 ranks x 100 = 2 replicas x 50, one after the other; micro-batches of up to 64 sequences,
 * 8,192 tokens". */
static void print_split(const struct shapes *shapes, struct buffer *out)
{
	int64_t replicas = shapes->machine->replicas;
	if (shapes->machine->ranks * replicas == 1)
		return;
	for (int64_t i = shapes->first_phase; i < shapes->phase_count; i++) {
		const struct run_phase *phase = &shapes->phases[i];
		int64_t part = step_part_examples(&phase->steps), all = phase->values->batch.train_batch_size;
		char tokens[FORMAT_BYTES], about[8] = "";
		if (part * shapes->machine->ranks * replicas != all)
			snprintf(about, sizeof about, "up to ");
		buffer_format(out, "batch%s: %" PRId64 " instances per update = %d rank%s x %s%" PRId64,
			      shapes->phase_count > 1 ? " of a phase" : "", all, shapes->machine->ranks,
			      shapes->machine->ranks > 1 ? "s" : "", about, part * replicas);
		if (replicas > 1)
			buffer_format(out, " = %" PRId64 " replicas x %" PRId64 ", one after the other", replicas, part);
		buffer_format(out, "; micro-batches of up to %d sequences, %s tokens\n", phase->steps.capacity.sequences,
			      format_count(tokens, phase->steps.capacity.tokens));
	}
	if (shapes->machine->comm)
		buffer_format(out, "ranks: %d by %s\n", shapes->machine->ranks, comm_description(shapes->machine->comm));
	buffer_char(out, '\n');
}

/* Explains the size of micro-batches: "micro-batches of up to 33,760 tokens, 33,792 with padding: a layer's products fill 100 %
 * of their waves on 132 multiprocessors; memory has room for 40,960, which would fill 97 %". */
static void print_micro_batches(const struct shapes *shapes, struct buffer *out)
{
	for (int64_t i = shapes->first_phase; i < shapes->phase_count; i++) {
		const struct run_phase *phase = &shapes->phases[i];
		const struct wave_work *work = &phase->work;
		int64_t tokens = phase->values->batch.micro_batch_tokens;
		char count[3][FORMAT_BYTES];
		if (work->most == 0)
			continue;
		buffer_format(out, "micro-batches%s of up to %s tokens", shapes->phase_count > 1 ? " of a phase" : "",
			      format_count(count[0], tokens));
		if (tokens >= work->instances * work->longest) {
			buffer_format(out, ": a rank's whole share of a batch\n");
			continue;
		}
		int32_t filled = waves_shape(work, tokens);
		buffer_format(out, ", %s with padding: a layer's products fill %.0f %% of their waves on %d multiprocessors",
			      format_count(count[1], filled), 100 * waves_filled(&phase->waves, filled), phase->waves.processors);
		if (tokens < work->most)
			buffer_format(out, "; memory has room for %s, which would fill %.0f %%",
				      format_count(count[2], work->most),
				      100 * waves_filled(&phase->waves, waves_shape(work, work->most)));
		buffer_char(out, '\n');
	}
}

void shapes_print(const struct shapes *shapes, struct buffer *out)
{
	print_split(shapes, out);
	print_micro_batches(shapes, out);
}
