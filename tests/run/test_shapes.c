/* Micro-batches that fit a device's memory, for a device that this machine does not have. */
#include "memory_limit.h"
#include "test.h"
#include "backend/described.h"
#include "base/memory.h"
#include "run/shapes.h"

#define LENGTH 128

static size_t memory; /* left on the device */

static enum status memory_left(struct backend *be, size_t *out_left, size_t *out_all)
{
	(void)be;
	*out_left = *out_all = memory;
	return OK;
}

static void batch_bytes_of(struct backend *be, const struct shape_limits *limits, size_t *out_device, size_t *out_host)
{
	(void)be;
	*out_device = *out_host = (size_t)limits->batch.tokens * 16;
}

static const struct option table[] = {
	{.group = batch_rows, .field = offsetof(struct training_options, batch)},
	{.group = training_rows},
	{0},
};

/* A run of one phase, whose sequences all have full length. */
struct world {
	struct backend backend;
	struct backend_functions functions;
	struct machine machine;
	struct model_config config;
	struct model *model;
	struct training_options values;
	struct run_phase phase;
	struct shapes shapes;
};

static void say(struct run_phase *phase, const char *name, int64_t value)
{
	char text[32];
	snprintf(text, sizeof text, "%lld", (long long)value);
	assert_ok(options_set(phase->options, name, text, ORIGIN_COMMAND));
}

static void open_phase(struct run_phase *phase, struct training_options *values)
{
	phase->options = &phase->own;
	phase->values = values;
	assert_ok(options_init(&phase->own, table, values));
	say(phase, "train_batch_size", 256);
	say(phase, "max_seq_length", LENGTH);
}

static void shape(void *context, int64_t index, struct run_phase *phase, int64_t tokens)
{
	(void)context;
	(void)index;
	int64_t part = step_part_examples(&phase->steps) * LENGTH;
	phase->steps.capacity.tokens = (int32_t)(tokens < part ? tokens : part);
	phase->steps.capacity.sequences = phase->steps.capacity.tokens / LENGTH;
	phase->evaluation_capacity = (struct batch_capacity){.tokens = LENGTH, .sequences = 1};
}

static enum status mean_length(void *context, int64_t index, double *out)
{
	(void)context;
	(void)index;
	*out = LENGTH;
	return OK;
}

static size_t reader_bytes(void *context, int64_t index, const struct run_phase *phase)
{
	(void)context;
	(void)index;
	return (size_t)phase->steps.capacity.tokens;
}

static void open_world(struct world *world, bool gpu)
{
	*world = (struct world){.machine = {.place = {.ranks = {.size = 1}}, .ranks = 1, .replicas = 1}};
	backend_describe(&world->backend, DTYPE_BF16, false);
	world->functions = *world->backend.functions;
	if (gpu) {
		world->functions.memory_left = memory_left;
		world->functions.batch_bytes = batch_bytes_of;
		world->backend.processors = 132;
	}
	world->backend.functions = &world->functions;
	world->machine.backend = &world->backend;
	assert_ok(model_config_named(&world->config, "base"));
	world->config.vocab_size = 30522;
	assert_ok(model_create(&world->model, &world->backend, &world->config, &model_heads_pretraining));
	open_phase(&world->phase, &world->values);
	world->shapes = (struct shapes){
		.machine = &world->machine,
		.model = world->model,
		.phases = &world->phase,
		.phase_count = 1,
		.source = {.shape = shape, .mean_length = mean_length, .reader_bytes = reader_bytes},
	};
}

static void close_world(struct world *world)
{
	options_release(&world->phase.own);
	model_free(world->model);
}

static void a_share_of_the_batch_that_fits_is_one(void **state)
{
	struct world world;
	bool smaller;
	open_world(&world, true);
	memory = (size_t)500 << 30;
	assert_ok(shapes_choose(&world.shapes));
	assert_int_equal(world.values.batch.micro_batch_tokens, 256 * LENGTH);
	assert_int_equal(world.shapes.limits.batch.tokens, 256 * LENGTH);
	assert_int_equal(world.shapes.limits.longest, LENGTH);
	assert_int_equal(world.shapes.limits.intermediate, world.config.intermediate_size);
	/* With two ranks, each has half; for a wide teacher or many labels, a layer that is wider than the model's own. */
	world.model->heads.projection = 4096;
	options_forget(world.phase.options, "micro_batch_tokens");
	world.machine.ranks = 2;
	assert_ok(shapes_choose(&world.shapes));
	assert_int_equal(world.shapes.limits.batch.tokens, 128 * LENGTH);
	assert_int_equal(world.shapes.limits.intermediate, 4096);
	world.model->heads.head[1].outputs = 5000;
	assert_ok(shapes_choose(&world.shapes));
	assert_int_equal(world.shapes.limits.intermediate, 5000);
	assert_ok(shapes_choose_smaller(&world.shapes, &smaller));
	assert_true(smaller);
	close_world(&world);
}

static void micro_batches_fit_into_what_is_left(void **state)
{
	struct world world;
	int64_t before = 0;
	open_world(&world, true);
	for (size_t gigabytes = 6; gigabytes <= 24; gigabytes += 6) {
		memory = gigabytes << 30;
		options_forget(world.phase.options, "micro_batch_tokens");
		assert_ok(shapes_choose(&world.shapes));
		int64_t tokens = world.values.batch.micro_batch_tokens;
		struct memory_plan plan = shapes_memory(&world.shapes);
		assert_true(plan.device <= memory);
		assert_true(plan.batches == (size_t)world.phase.steps.capacity.tokens);
		assert_true(tokens > before || tokens == 256 * LENGTH);
		before = tokens;
	}
	/* A failed allocation: less each time, and the planned amount falls with it. */
	memory = (size_t)6 << 30;
	options_forget(world.phase.options, "micro_batch_tokens");
	assert_ok(shapes_choose(&world.shapes));
	double share = 0.92;
	for (int attempt = 0; attempt < 3; attempt++) {
		bool smaller;
		int32_t tokens = world.shapes.limits.batch.tokens;
		assert_ok(shapes_choose_smaller(&world.shapes, &smaller));
		assert_int_equal(smaller, world.shapes.limits.batch.tokens < tokens);
		assert_true(smaller);
		share *= 0.85;
		struct memory_plan plan = shapes_memory(&world.shapes);
		assert_true((double)plan.device <= share * (double)memory);
	}
	close_world(&world);
}

/* What the user requested is used, or is an error later; it is not changed silently. */
static void given_sizes_stay(void **state)
{
	struct world world;
	bool smaller;
	open_world(&world, true);
	memory = (size_t)2 << 30;
	say(&world.phase, "micro_batch_tokens", 1024);
	assert_ok(shapes_choose(&world.shapes));
	assert_ok(shapes_choose_smaller(&world.shapes, &smaller));
	assert_false(smaller);
	assert_int_equal(world.values.batch.micro_batch_tokens, 1024);
	assert_int_equal(options_origin(world.phase.options, "micro_batch_tokens"), ORIGIN_COMMAND);
	close_world(&world);

	/* On the host there is a default size. */
	open_world(&world, false);
	assert_ok(shapes_choose(&world.shapes));
	assert_int_equal(world.values.batch.micro_batch_tokens, 8192);
	assert_int_equal(options_origin(world.phase.options, "micro_batch_tokens"), ORIGIN_CHOSEN);
	assert_ok(shapes_choose_smaller(&world.shapes, &smaller));
	assert_false(smaller);
	close_world(&world);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* their shadow memory exceeds any limit */
static size_t host_bytes(struct world *world, int64_t tokens)
{
	options_forget(world->phase.options, "micro_batch_tokens");
	if (tokens > 0)
		say(&world->phase, "micro_batch_tokens", tokens);
	assert_ok(shapes_choose(&world->shapes));
	struct memory_plan plan = shapes_memory(&world->shapes);
	return plan_host_bytes(&plan, 1);
}

/* The default size is halved until the machine has room for it. */
static void the_host_has_room_for_them(void **state)
{
	struct world world;
	struct rlimit before;
	open_world(&world, false);
	size_t half = host_bytes(&world, 4096), usual = host_bytes(&world, 8192);
	assert_true(half < usual && memory_available() > (int64_t)half);
	limit_memory(&before, (half + usual) / 2);
	assert_int_equal(host_bytes(&world, 0), half);
	assert_int_equal(world.values.batch.micro_batch_tokens, 4096);
	assert_int_equal(host_bytes(&world, 8192), usual); /* as requested */
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	close_world(&world);
}
#endif

/* The room is that of the largest phase that is still to come. */
static void phases_that_are_over_need_no_room(void **state)
{
	struct world world;
	open_world(&world, false);
	struct training_options values[2] = {{.seed = 0}};
	struct run_phase phases[2] = {{.options = NULL}};
	for (int i = 0; i < 2; i++)
		open_phase(&phases[i], &values[i]);
	say(&phases[0], "micro_batch_tokens", 16 * LENGTH);
	say(&phases[0], "max_seq_length", 4 * LENGTH);
	say(&phases[1], "micro_batch_tokens", 2 * LENGTH);
	world.shapes.phases = phases;
	world.shapes.phase_count = 2;
	assert_ok(shapes_choose(&world.shapes));
	assert_int_equal(world.shapes.limits.batch.tokens, 16 * LENGTH);
	assert_int_equal(world.shapes.limits.longest, 4 * LENGTH);
	world.shapes.first_phase = 1;
	assert_ok(shapes_choose(&world.shapes));
	assert_int_equal(world.shapes.limits.batch.tokens, 2 * LENGTH);
	assert_int_equal(world.shapes.limits.longest, LENGTH);
	world.shapes.longest_evaluated = 3 * LENGTH;
	assert_ok(shapes_choose(&world.shapes));
	assert_int_equal(world.shapes.limits.longest, 3 * LENGTH);
	for (int i = 0; i < 2; i++)
		options_release(&phases[i].own);
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_share_of_the_batch_that_fits_is_one),
		cmocka_unit_test(micro_batches_fit_into_what_is_left),
		cmocka_unit_test(given_sizes_stay),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		cmocka_unit_test(the_host_has_room_for_them),
#endif
		cmocka_unit_test(phases_that_are_over_need_no_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
