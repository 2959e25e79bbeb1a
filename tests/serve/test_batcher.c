/* The queue: what is combined into a batch, in which order, and what clients are told. */
#include <pthread.h>
#include <stdatomic.h>
#include "base/log.h"
#include "serve/batcher.h"
#include "test.h"

/* A model that records its batches and waits for permission to proceed. */
#define BATCHES 64
struct model {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int64_t allowed; /* batches that may still be computed; -1: any number */
	int entered, batches;
	int models[BATCHES];
	int64_t parts[BATCHES], items[BATCHES], tokens[BATCHES];
	int fail; /* the batch that fails, counted from 1; 0: none */
};

static struct model model;

struct job {
	struct batch_job job;
	int32_t tokens[16];
	int64_t computed;
	atomic_int told;
};

static enum status compute(void *context, int number, const struct batch_part *parts, int64_t part_count)
{
	struct model *own = context;
	pthread_mutex_lock(&own->lock);
	own->entered++;
	pthread_cond_broadcast(&own->changed);
	while (own->allowed == 0)
		pthread_cond_wait(&own->changed, &own->lock);
	own->allowed -= own->allowed > 0;
	int batch = own->batches++;
	own->models[batch] = number;
	own->parts[batch] = part_count;
	for (int64_t i = 0; i < part_count; i++) {
		struct job *job = (struct job *)parts[i].job;
		assert_int_equal(parts[i].first, job->computed); /* in order, each once */
		job->computed += parts[i].count;
		own->items[batch] += parts[i].count;
		for (int64_t k = 0; k < parts[i].count; k++)
			own->tokens[batch] += job->tokens[parts[i].first + k];
	}
	bool fails = own->batches == own->fail;
	pthread_mutex_unlock(&own->lock);
	return fails ? error_set(ERR_RESOURCE, "the device is on fire") : OK;
}

static void allow(int64_t batches)
{
	pthread_mutex_lock(&model.lock);
	model.allowed = batches;
	pthread_cond_broadcast(&model.changed);
	pthread_mutex_unlock(&model.lock);
}

static void told(struct batch_job *job)
{
	atomic_fetch_add(&((struct job *)job)->told, 1);
}

static struct batcher *open_batcher(int models, double wait)
{
	struct batcher *batcher;
	const struct batcher_settings settings = {.models = models,
						  .max_batch_tokens = 100,
						  .max_batch_items = 8,
						  .max_queue_tokens = 1000,
						  .max_wait_seconds = wait,
						  .compute = compute,
						  .context = &model};
	model = (struct model){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	assert_ok(batcher_open(&batcher, &settings));
	return batcher;
}

static void make_job(struct job *job, int number, int64_t count, int32_t tokens)
{
	*job = (struct job){.job = {.model = number, .count = count, .tokens = job->tokens, .done = told}};
	for (int64_t i = 0; i < count; i++)
		job->tokens[i] = tokens;
}

static void wait_for(struct job *job)
{
	for (int i = 0; i < 10000 && !atomic_load(&job->told); i++)
		clock_pause(0.001);
	assert_int_equal(atomic_load(&job->told), 1);
}

static int batches_so_far(void)
{
	pthread_mutex_lock(&model.lock);
	int batches = model.batches;
	pthread_mutex_unlock(&model.lock);
	return batches;
}

/* Occupies the model with a first batch, so that what follows waits in the queue. */
static void hold(struct batcher *batcher, struct job *first)
{
	make_job(first, 0, 1, 1);
	assert_true(batcher_add(batcher, &first->job));
	pthread_mutex_lock(&model.lock);
	while (model.entered == 0)
		pthread_cond_wait(&model.changed, &model.lock);
	pthread_mutex_unlock(&model.lock);
}

static void requests_share_batches(void **state)
{
	struct batcher *batcher = open_batcher(1, 0);
	struct job first, large, small;
	hold(batcher, &first);
	make_job(&large, 0, 16, 20); /* 320 tokens */
	make_job(&small, 0, 2, 20);
	assert_true(batcher_add(batcher, &large.job));
	assert_true(batcher_add(batcher, &small.job));
	assert_int_equal(batcher_waiting(batcher), 361);
	allow(-1);
	wait_for(&large);
	/* Half of the first batch belongs to the small job, though it came later; no batch is larger than allowed. */
	assert_int_equal(model.batches, 5);
	assert_int_equal(model.parts[1], 2);
	assert_int_equal(model.items[1], 5);
	assert_int_equal(model.tokens[1], 100);
	assert_int_equal(model.items[4], 3);
	assert_int_equal(atomic_load(&small.told), 1);
	assert_int_equal(atomic_load(&first.told), 1);
	assert_true(small.job.ended <= large.job.ended && large.job.begun >= large.job.added);
	assert_int_equal(batcher_waiting(batcher), 0);
	batcher_close(batcher);
}

static void one_large_text_is_a_batch(void **state)
{
	struct batcher *batcher = open_batcher(1, 0);
	struct job first, huge, small;
	hold(batcher, &first);
	make_job(&huge, 0, 2, 300);
	make_job(&small, 0, 16, 1);
	assert_true(batcher_add(batcher, &huge.job));
	assert_true(batcher_add(batcher, &small.job));
	allow(-1);
	wait_for(&huge);
	wait_for(&small);
	assert_int_equal(model.tokens[1], 300);
	for (int b = 2; b < model.batches; b++)
		assert_true(model.tokens[b] <= 100 || model.items[b] == 1);
	for (int b = 0; b < model.batches; b++)
		assert_true(model.items[b] <= 8);
	batcher_close(batcher);
}

static void models_take_turns(void **state)
{
	struct batcher *batcher = open_batcher(2, 0);
	struct job first, one, other;
	hold(batcher, &first);
	make_job(&one, 0, 16, 20);
	make_job(&other, 1, 8, 20);
	assert_true(batcher_add(batcher, &one.job));
	assert_true(batcher_add(batcher, &other.job));
	allow(-1);
	wait_for(&one);
	wait_for(&other);
	/* No batch mixes models; while both have jobs waiting, they alternate. */
	assert_int_equal(model.models[1], 1);
	assert_int_equal(model.models[2], 0);
	assert_int_equal(model.models[3], 1);
	assert_int_equal(one.computed, 16);
	assert_int_equal(other.computed, 8);
	batcher_close(batcher);
}

static void a_full_queue_refuses(void **state)
{
	struct batcher *batcher = open_batcher(1, 0);
	struct job first, jobs[3];
	hold(batcher, &first);
	for (int i = 0; i < 3; i++)
		make_job(&jobs[i], 0, 16, 60); /* 960 tokens */
	assert_true(batcher_add(batcher, &jobs[0].job));
	assert_true(batcher_add(batcher, &jobs[1].job)); /* begins below the limit */
	assert_false(batcher_add(batcher, &jobs[2].job));
	allow(-1);
	wait_for(&jobs[1]);
	assert_int_equal(atomic_load(&jobs[2].told), 0);
	assert_true(batcher_add(batcher, &jobs[2].job));
	wait_for(&jobs[2]);
	batcher_close(batcher);
}

static void a_failed_batch_fails_its_requests_alone(void **state)
{
	struct batcher *batcher = open_batcher(1, 0);
	struct job first, one, later;
	model.fail = 3;
	hold(batcher, &first);
	make_job(&one, 0, 16, 20);
	assert_true(batcher_add(batcher, &one.job));
	allow(-1);
	wait_for(&one);
	assert_int_equal(one.job.error.status, ERR_RESOURCE);
	assert_string_equal(one.job.error.message, "the device is on fire");
	assert_int_equal(one.computed, 10); /* the rest is not attempted */
	assert_int_equal(first.job.error.status, OK);
	assert_int_equal(batcher_waiting(batcher), 0);
	make_job(&later, 0, 1, 1);
	assert_true(batcher_add(batcher, &later.job));
	wait_for(&later);
	assert_int_equal(later.job.error.status, OK);
	batcher_close(batcher);
}

static void a_batch_may_wait_for_more(void **state)
{
	struct batcher *batcher = open_batcher(1, 0.3);
	struct job one, other;
	allow(-1);
	make_job(&one, 0, 1, 10);
	make_job(&other, 0, 1, 10);
	assert_true(batcher_add(batcher, &one.job));
	clock_pause(0.05);
	assert_int_equal(batches_so_far(), 0);
	assert_true(batcher_add(batcher, &other.job));
	wait_for(&one);
	wait_for(&other);
	assert_int_equal(model.batches, 1);
	assert_true(one.job.begun - one.job.added >= 0.299);
	/* A full batch does not wait, and neither does the last one. */
	make_job(&one, 0, 5, 20);
	double before = clock_seconds();
	assert_true(batcher_add(batcher, &one.job));
	wait_for(&one);
	assert_true(one.job.begun - before < 0.25);
	make_job(&other, 0, 1, 10);
	assert_true(batcher_add(batcher, &other.job));
	batcher_close(batcher);
	assert_int_equal(atomic_load(&other.told), 1);
}

static void closing_computes_what_waits(void **state)
{
	struct batcher *batcher = open_batcher(2, 0);
	struct job jobs[4];
	for (int i = 0; i < 4; i++) {
		make_job(&jobs[i], i % 2, 16, 5);
		assert_true(batcher_add(batcher, &jobs[i].job));
	}
	allow(-1);
	batcher_close(batcher);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(atomic_load(&jobs[i].told), 1);
		assert_int_equal(jobs[i].computed, 16);
	}
}

/* Many clients at once: every item of every job is computed once, in order. */
static void *ask(void *context)
{
	struct batcher *batcher = context;
	for (int i = 0; i < 200; i++) {
		struct job job;
		make_job(&job, i % 3, 1 + i % 16, 1 + i % 7);
		while (!batcher_add(batcher, &job.job))
			clock_pause(0.001);
		while (!atomic_load(&job.told))
			sched_yield();
		assert_int_equal(job.computed, job.job.count);
		assert_int_equal(atomic_load(&job.told), 1);
	}
	return NULL;
}

static enum status compute_quickly(void *context, int number, const struct batch_part *parts, int64_t part_count)
{
	(void)context;
	(void)number;
	for (int64_t i = 0; i < part_count; i++)
		((struct job *)parts[i].job)->computed += parts[i].count;
	return OK;
}

static void many_clients_are_served(void **state)
{
	struct batcher *batcher;
	const struct batcher_settings settings = {
		.models = 3, .max_batch_tokens = 50, .max_batch_items = 8, .max_queue_tokens = 200, .compute = compute_quickly};
	pthread_t threads[8];
	assert_ok(batcher_open(&batcher, &settings));
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask, batcher), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(batcher_waiting(batcher), 0);
	batcher_close(batcher);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_share_batches),
		cmocka_unit_test(one_large_text_is_a_batch),
		cmocka_unit_test(models_take_turns),
		cmocka_unit_test(a_full_queue_refuses),
		cmocka_unit_test(a_failed_batch_fails_its_requests_alone),
		cmocka_unit_test(a_batch_may_wait_for_more),
		cmocka_unit_test(closing_computes_what_waits),
		cmocka_unit_test(many_clients_are_served),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
