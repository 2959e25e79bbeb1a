/* Recorded graphs on the emulated device: the same bits as without graphs, whatever happens; and batches padded so that
 * their shapes repeat. */
#include <math.h>
#include <string.h>
#include "data/pretraining/instances.h"
#include "test.h"
#include "backend/cuda/fill.h"
#include "backend/cuda/graphs.h"
#include "base/rng.h"
#include "emulation.h"
#include "run/benchmark.h"
#include "model/waves.h"
#include "backend/open.h"

static struct pool *pool;

static struct backend *open_device(const char *device, enum dtype dtype)
{
	struct backend *be;
	assert_ok(backend_open(&be, &(struct backend_settings){.device = device, .dtype = dtype, .pool = pool}));
	return be;
}

static struct cuda_state *state_of(const struct backend *be)
{
	return be->state;
}

/* ---- Padding ---- */

static int32_t even_rows[1]; /* not empty, but not read here */

/* Every batch finds room when it is padded; each inert sequence has a token and is not too long; padding again changes
 * nothing. */
static void shapes_are_filled_up(void **state)
{
	struct rng rng = rng_start(1, RNG_TEST, 0);
	for (int i = 0; i < 200000; i++) {
		int32_t limit = 1 + (int32_t)rng_below(&rng, i % 3 ? 600 : 40);
		int32_t tokens = (int32_t)rng_below(&rng, 1u << (1 + rng_below(&rng, 17)));
		struct batch own = {.token_count = tokens};
		own.labels[HEAD_MASKED_WORDS] = (struct batch_labels){.row_width = 1, .rows = even_rows};
		own.longest = tokens == 0 ? 0 : 1 + (int32_t)rng_below(&rng, (uint32_t)(tokens < limit ? tokens : limit));
		if (tokens > 0) {
			int32_t least = (tokens + own.longest - 1) / own.longest, more = tokens - own.longest - least;
			own.sequence_count = least + (int32_t)rng_below(&rng, (uint32_t)(more > 0 ? more : 1));
		}
		own.labels[HEAD_MASKED_WORDS].count = (int32_t)rng_below(&rng, (uint32_t)tokens + 1);
		struct batch filled = own, again;
		int32_t more_tokens = (int32_t)rng_below(&rng, 500), more_sequences = (int32_t)rng_below(&rng, 50);
		struct batch_capacity capacity =
			instance_capacity(own.token_count + more_tokens, own.sequence_count + more_sequences,
					  own.labels[HEAD_MASKED_WORDS].count + (int32_t)rng_below(&rng, 50));
		struct batch_capacity room = fill_room(capacity);
		fill_shape(&filled, limit);
		again = filled;
		fill_shape(&again, limit);
		int32_t inert = filled.token_count - tokens, sequences = filled.sequence_count - own.sequence_count;
		bool sound = inert >= sequences && (inert == 0) == (sequences == 0) && filled.longest <= limit &&
			     sequences >= 0 && filled.longest >= own.longest && inert <= (int64_t)sequences * filled.longest &&
			     filled.labels[HEAD_MASKED_WORDS].count >= own.labels[HEAD_MASKED_WORDS].count &&
			     filled.labels[HEAD_MASKED_WORDS].count <= filled.token_count && filled.token_count <= room.tokens &&
			     filled.sequence_count <= room.sequences &&
			     filled.labels[HEAD_MASKED_WORDS].count <= room.labels[HEAD_MASKED_WORDS].count &&
			     again.token_count == filled.token_count && again.sequence_count == filled.sequence_count &&
			     again.longest == filled.longest &&
			     again.labels[HEAD_MASKED_WORDS].count == filled.labels[HEAD_MASKED_WORDS].count;
		if (!sound)
			fail_msg("T=%d B=%d P=%d longest=%d limit=%d: T=%d B=%d P=%d longest=%d, room %d %d %d", tokens,
				 own.sequence_count, own.labels[HEAD_MASKED_WORDS].count, own.longest, limit, filled.token_count,
				 filled.sequence_count, filled.labels[HEAD_MASKED_WORDS].count, filled.longest, room.tokens,
				 room.sequences, room.labels[HEAD_MASKED_WORDS].count);
		/* Large batches get almost no padding. */
		if (tokens >= 8192 && limit >= 128 && own.sequence_count < tokens / 64)
			assert_true(inert < tokens / 40);
	}
	struct batch even = {.token_count = 264 * 128, .sequence_count = 264, .longest = 128};
	even.labels[HEAD_MASKED_WORDS] = (struct batch_labels){.count = 264 * 20, .row_width = 1, .rows = even_rows};
	fill_shape(&even, 128);
	assert_int_equal(even.token_count, 264 * 128);
	assert_int_equal(even.sequence_count, 264);
	assert_int_equal(even.labels[HEAD_MASKED_WORDS].count, 5312);
}

/* A capacity chosen for the waves of its padded shape: no micro-batch below the limit is padded beyond it. */
static void filling_pushes_nothing_over_a_wave(void **state)
{
	static const struct wave_model models[] = {{132, 1024, 4096}, {132, 768, 3072}, {108, 1024, 4096}, {114, 768, 3072}};
	for (int i = 0; i < 4; i++) {
		for (int32_t most = 8192; most <= 65536; most += 8192) {
			struct wave_work work = {
				.instances = 4096, .longest = 512, .mean = i % 2 ? 480 : 256, .most = most, .filled = fill_count};
			int32_t capacity = (int32_t)waves_choose(&models[i], &work), shape = waves_shape(&work, capacity);
			for (int32_t tokens = capacity - 600; tokens <= capacity; tokens++) {
				for (int tenths = 9; tenths <= 11; tenths++) {
					int32_t sequences = (int32_t)(tokens * tenths / (10 * work.mean));
					if (fill_count(tokens, sequences, 512) > shape)
						fail_msg("%d tokens in %d sequences: %d, beyond %d", tokens, sequences,
							 fill_count(tokens, sequences, 512), shape);
				}
			}
			assert_true(waves_filled(&models[i], shape) > 0.95);
		}
	}
}

/* ---- A small model's steps ---- */

static const struct model_config tiny = {.vocab_size = 90,
					 .hidden_size = 64,
					 .num_hidden_layers = 2,
					 .num_attention_heads = 2,
					 .intermediate_size = 96,
					 .hidden_act = ACTIVATION_GELU_ERF,
					 .hidden_dropout_prob = 0.1,
					 .attention_probs_dropout_prob = 0.1,
					 .max_position_embeddings = 48,
					 .type_vocab_size = 2,
					 .layer_norm_eps = 1e-12,
					 .initializer_range = 0.02};

enum { SHAPES = 3 };
static struct batch batches[SHAPES];
static const struct batch_capacity capacity = INSTANCE_CAPACITY(150, 8, 40);

static void make_batches(void)
{
	static const int32_t sequences[SHAPES] = {3, 5, 3}, lengths[SHAPES] = {40, 17, 24};
	for (int i = 0; i < SHAPES; i++)
		assert_ok(benchmark_batch(&batches[i], &tiny, sequences[i], lengths[i], i > 0));
}

struct outcome {
	double losses[8];
	float *weights, *gradients;
	int64_t recorded, launched;
};

/* Steps of two micro-batches, whose shapes repeat. */
static struct outcome train_steps(const char *device, enum dtype dtype, int steps, bool graphs)
{
	struct outcome out = {.weights = NULL};
	struct benchmark run;
	setenv("BERTC_GRAPHS", graphs ? "1" : "0", 1);
	struct backend *be = open_device(device, dtype);
	assert_ok(benchmark_open(&run, be, &tiny, capacity, 48, true));
	for (int i = 0; i < steps; i++) {
		struct batch two[2] = {batches[i % 2], batches[i % SHAPES]};
		assert_ok(benchmark_step(&run, two, 2, &out.losses[i]));
	}
	assert_ok(be->functions->synchronize(&run.replica));
	size_t bytes = (size_t)run.model->slab_count * sizeof(float);
	out.weights = malloc(bytes);
	out.gradients = malloc(bytes);
	be->functions->to_host(be, out.weights, run.model->slab.data, bytes);
	be->functions->to_host(be, out.gradients, run.model->gradients.data, bytes);
	if (strcmp(device, "cuda") == 0)
		graphs_counts(state_of(be), &out.recorded, &out.launched);
	benchmark_close(&run);
	backend_close(be);
	return out;
}

static void release(struct outcome *out)
{
	free(out->weights);
	free(out->gradients);
}

static int64_t slab_count(void)
{
	struct model *model;
	struct backend *be = open_device("cpu", DTYPE_F32);
	assert_ok(model_create(&model, be, &tiny, &model_heads_pretraining));
	int64_t count = model->slab_count;
	model_free(model);
	backend_close(be);
	return count;
}

static void recorded_steps_have_the_same_bits(void **state)
{
	static const enum dtype types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F16};
	size_t bytes = (size_t)slab_count() * sizeof(float);
	for (int i = 0; i < 3; i++) {
		struct outcome with = train_steps("cuda", types[i], 7, true), without = train_steps("cuda", types[i], 7, false);
		assert_memory_equal(with.losses, without.losses, sizeof with.losses);
		assert_memory_equal(with.weights, without.weights, bytes);
		assert_memory_equal(with.gradients, without.gradients, bytes);
		/* Two first micro-batches, three others, the update; each was queued once before. */
		assert_int_equal(with.recorded, 6);
		assert_true(with.launched > with.recorded);
		assert_int_equal(without.recorded, 0);
		assert_int_equal(without.launched, 0);
		release(&with);
		release(&without);
	}
}

/* Padding changes no gradient: the CPU uses none. */
static void inert_rows_change_nothing(void **state)
{
	struct outcome gpu = train_steps("cuda", DTYPE_F32, 1, true), cpu = train_steps("cpu", DTYPE_F32, 1, true);
	double off = 0, all = 0;
	for (int64_t i = 0; i < slab_count(); i++) {
		off += pow((double)gpu.gradients[i] - (double)cpu.gradients[i], 2);
		all += pow((double)cpu.gradients[i], 2);
	}
	assert_near(gpu.losses[0], cpu.losses[0], 1e-6 * cpu.losses[0]);
	assert_true(all > 0 && off < 1e-11 * all);
	release(&gpu);
	release(&cpu);
}

/* If there is no memory for graphs, everything still works. */
static void graphs_that_find_no_memory_are_not_missed(void **state)
{
	emulated_graphs_left = 1;
	struct outcome with = train_steps("cuda", DTYPE_BF16, 7, true);
	assert_int_equal(with.recorded, 1);
	emulated_graphs_left = INT64_MAX;
	struct outcome without = train_steps("cuda", DTYPE_BF16, 7, false);
	assert_memory_equal(with.weights, without.weights, (size_t)slab_count() * sizeof(float));
	release(&with);
	release(&without);
}

/* The update leaves the copies that products read. */
static void expect_copies(struct benchmark *run)
{
	struct backend *be = run->backend;
	int64_t count = run->model->slab_count, moved = 0;
	float *masters = malloc((size_t)count * sizeof(float));
	uint16_t *copies = malloc((size_t)count * sizeof(uint16_t));
	be->functions->to_host(be, masters, run->model->slab.data, (size_t)count * sizeof(float));
	be->functions->to_host(be, copies, run->model->mirror.data, (size_t)count * sizeof(uint16_t));
	for (int64_t p = 0; p < run->model->parameter_count; p++) {
		const struct parameter *parameter = &run->model->parameters[p];
		for (int64_t i = parameter->offset; i < parameter->offset + parameter->count; i++) {
			uint16_t expected = be->dtype == DTYPE_BF16 ? float_to_bf16(masters[i]) : float_to_f16(masters[i]);
			if (copies[i] != expected)
				fail_msg("%s: element %lld of '%s' is %x, not %x", be->description,
					 (long long)(i - parameter->offset), parameter->name, copies[i], expected);
			moved += expected != 0;
		}
	}
	assert_true(moved > 0);
	free(masters);
	free(copies);
}

static void updates_write_copies(void **state)
{
	struct optimizer_options settings = {.optimizer = OPTIMIZER_LAMB,
					     .adam_beta1 = 0.9,
					     .adam_beta2 = 0.99,
					     .adam_epsilon = 1e-6,
					     .weight_decay = 0.1,
					     .gradient_averaging = true};
	for (int half = 0; half < 2; half++) {
		struct benchmark run;
		struct optimizer *lamb;
		struct backend *be = open_device("cuda", half ? DTYPE_F16 : DTYPE_BF16);
		assert_ok(benchmark_open(&run, be, &tiny, capacity, 48, true));
		assert_ok(optimizer_create(&lamb, run.model, NULL, &settings));
		assert_ok(benchmark_step(&run, batches, 1, NULL));
		expect_copies(&run);
		optimizer_measure(lamb, &run.replica);
		assert_ok(optimizer_update(lamb, &run.replica));
		expect_copies(&run);
		optimizer_free(lamb);
		benchmark_close(&run);
		backend_close(be);
	}
}

/* ---- The recordings ---- */

struct numbers {
	struct replica *replica;
	float *out;
	uint64_t seed;
	int calls;
	bool allocates;
};

enum { NUMBERS = 8 };

static void draw(void *context)
{
	struct numbers *n = context;
	void *memory;
	n->calls++;
	if (n->allocates && cudaMalloc(&memory, 16) == cudaSuccess)
		cudaFree(memory);
	cuda_run(n->replica, kernel_random(cuda_stream(n->replica), DTYPE_F32, NUMBERS, n->seed, 1, n->out), "random");
}

static void expect_numbers(struct backend *be, const struct numbers *n)
{
	float got[NUMBERS], expected[NUMBERS];
	be->functions->to_host(be, got, n->out, sizeof got);
	cuda_run(n->replica, kernel_random(cuda_stream(n->replica), DTYPE_F32, NUMBERS, n->seed, 1, n->out), "random");
	be->functions->to_host(be, expected, n->out, sizeof expected);
	assert_memory_equal(got, expected, sizeof got);
	assert_ok(be->functions->synchronize(n->replica));
}

static void recordings_are_kept_and_forgotten(void **state)
{
	setenv("BERTC_GRAPHS", "1", 1);
	struct shape_limits limits = {
		.batch = {64, 2, 8}, .longest = 32, .hidden = 64, .heads = 2, .intermediate = 64, .vocab = 10};
	struct backend *be = open_device("cuda", DTYPE_F32);
	struct replica replica;
	void *memory, *other;
	assert_ok(be->functions->replica_create(be, &replica, &limits));
	assert_ok(be->functions->allocate(be, &memory, NUMBERS * sizeof(float), "a test"));
	struct numbers n = {.replica = &replica, .out = memory};
	int64_t recorded, launched;
	/* More kinds of work than are kept, in several rounds. */
	for (int round = 0; round < 4; round++) {
		for (int32_t kind = 0; kind < 100; kind++) {
			struct work_key key = {.owner = &n, .tokens = kind / 3, .longest = kind % 3};
			n.seed = (uint64_t)kind;
			for (int again = 0; again < 3; again++) {
				int calls = n.calls;
				work_queue(&replica, &key, draw, &n);
				assert_int_equal(n.calls - calls, again < 2 ? 1 : 0);
			}
			expect_numbers(be, &n);
		}
	}
	graphs_counts(state_of(be), &recorded, &launched);
	assert_int_equal(recorded, 400);

	/* Memory that a graph may refer to has been freed. */
	struct work_key key = {.owner = &n, .part = WORK_UPDATE};
	for (int i = 0; i < 3; i++)
		work_queue(&replica, &key, draw, &n);
	assert_ok(be->functions->allocate(be, &other, NUMBERS * sizeof(float), "a test"));
	be->functions->release(be, n.out);
	n.out = other;
	int calls = n.calls;
	work_queue(&replica, &key, draw, &n);
	assert_int_equal(n.calls, calls + 1);
	expect_numbers(be, &n);

	/* Work that cannot be recorded is queued, and recording is not tried again. */
	key.part = WORK_LOSS;
	n.allocates = true;
	graphs_counts(state_of(be), &recorded, &launched);
	int64_t before = recorded;
	for (int i = 0; i < 4; i++) {
		calls = n.calls;
		work_queue(&replica, &key, draw, &n);
		assert_int_equal(n.calls - calls, i == 1 ? 2 : 1);
		expect_numbers(be, &n);
	}
	graphs_counts(state_of(be), &recorded, &launched);
	assert_int_equal(recorded, before);
	be->functions->release(be, n.out);
	be->functions->replica_release(&replica);
	backend_close(be);
	assert_int_equal(emulated_blocks(), 0);
}

/* ---- Hooks ---- */

struct hooked {
	struct numbers first, second;
	float *kept; /* what the hook has found */
	int hooks;
};

static void keep(void *context, int32_t layer)
{
	struct hooked *h = context;
	cudaStream_t stream = cuda_stream(h->first.replica);
	assert_int_equal(layer, 7);
	h->hooks++;
	assert_int_equal(cudaMemcpyAsync(h->kept, h->first.out, NUMBERS * sizeof(float), cudaMemcpyDeviceToDevice, stream), 0);
}

static void draw_twice(void *context)
{
	struct hooked *h = context;
	draw(&h->first);
	work_hook(h->first.replica->backend, keep, h, 7);
	draw(&h->second);
}

/* A hook is called each time, between the operations before and after it, also if there is no memory for a recording's second
 * piece, so that nothing is recorded. */
static void hooks_are_called_between_pieces(void **state)
{
	setenv("BERTC_GRAPHS", "1", 1);
	struct shape_limits limits = {
		.batch = {64, 2, 8}, .longest = 32, .hidden = 64, .heads = 2, .intermediate = 64, .vocab = 10};
	struct backend *be = open_device("cuda", DTYPE_F32);
	struct replica replica;
	void *memory;
	assert_ok(be->functions->replica_create(be, &replica, &limits));
	assert_ok(be->functions->allocate(be, &memory, 2 * NUMBERS * sizeof(float), "a test"));
	struct hooked h = {.first = {.replica = &replica, .out = memory, .seed = 1}, .kept = (float *)memory + NUMBERS};
	h.second = h.first;
	h.second.seed = 2;
	struct numbers kept = h.first;
	kept.out = h.kept;
	for (int refused = 0; refused < 2; refused++) {
		static const int calls[2][4] = {{1, 1, 0, 0}, {1, 2, 1, 1}};
		struct work_key key = {.owner = &h, .hooks = 1, .tokens = refused};
		emulated_graphs_left = refused ? 1 : INT64_MAX;
		for (int again = 0; again < 4; again++) {
			kept.seed = 3;
			draw(&kept);
			kept.seed = 1;
			h.first.calls = h.hooks = 0;
			work_queue(&replica, &key, draw_twice, &h);
			assert_int_equal(h.first.calls, calls[refused][again]);
			assert_int_equal(h.hooks, 1);
			expect_numbers(be, &h.second);
			expect_numbers(be, &kept);
		}
	}
	emulated_graphs_left = INT64_MAX;
	be->functions->release(be, memory);
	be->functions->replica_release(&replica);
	backend_close(be);
	assert_int_equal(emulated_blocks(), 0);
}

int main(void)
{
	setenv("BERTC_CACHE", "", 1); /* no cache file */
	emulated_race_check = false;  /* test_operations looks for them */
	assert_ok(pool_create(&pool, 1));
	make_batches();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_are_filled_up),
		cmocka_unit_test(filling_pushes_nothing_over_a_wave),
		cmocka_unit_test(recorded_steps_have_the_same_bits),
		cmocka_unit_test(inert_rows_change_nothing),
		cmocka_unit_test(graphs_that_find_no_memory_are_not_missed),
		cmocka_unit_test(updates_write_copies),
		cmocka_unit_test(recordings_are_kept_and_forgotten),
		cmocka_unit_test(hooks_are_called_between_pieces),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	for (int i = 0; i < SHAPES; i++)
		batch_release(&batches[i]);
	pool_free(pool);
	return failed;
}
