/* The thread pool: every task once, the same bits for any number of threads, and where its threads run. */
#include "test.h"
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/pool.h"

enum { COUNT = 5000 };

struct visits {
	int seen[COUNT];
	int workers;
};

static void visit(void *context, int64_t index, int worker)
{
	struct visits *visits = context;
	visits->seen[index]++; /* not atomic: only one worker has an index */
	if (worker < 0 || worker >= visits->workers)
		visits->seen[index] = 1000;
}

static void every_index_once(void **state)
{
	static struct visits visits;
	for (int threads = 1; threads <= 5; threads++) {
		struct pool *pool;
		assert_ok(pool_create(&pool, threads));
		assert_int_equal(pool_threads(pool), threads);
		visits.workers = threads;
		static const int64_t counts[] = {0, 1, 2, 3, 7, 64, COUNT};
		for (int repeat = 0; repeat < 20; repeat++) {
			for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
				memset(visits.seen, 0, sizeof visits.seen);
				pool_run(pool, counts[c], visit, &visits);
				for (int64_t i = 0; i < COUNT; i++)
					assert_int_equal(visits.seen[i], i < counts[c]);
			}
		}
		pool_free(pool);
	}
}

/* Many short jobs one after another, with pauses in which the workers fall asleep. */
static void many_jobs(void **state)
{
	static struct visits visits = {.workers = 4};
	struct pool *pool;
	memset(visits.seen, 0, sizeof visits.seen);
	assert_ok(pool_create(&pool, 4));
	for (int job = 0; job < 20000; job++) {
		pool_run(pool, 6, visit, &visits);
		if (job % 1000 == 0)
			usleep(2000);
	}
	for (int i = 0; i < 6; i++)
		assert_int_equal(visits.seen[i], 20000);
	pool_free(pool);
}

static void work_slowly(void *context, int64_t index, int worker)
{
	(void)worker;
	usleep(index == 1 ? 30000 : 3000);
	((int *)context)[index] = 1;
}

/* A run ends when the slowest worker does, asleep or not. */
static void the_last_is_waited_for(void **state)
{
	struct pool *pool;
	assert_ok(pool_create(&pool, 3));
	for (int repeat = 0; repeat < 5; repeat++) {
		int done[4] = {0};
		pool_run(pool, 4, work_slowly, done);
		for (int i = 0; i < 4; i++)
			assert_int_equal(done[i], 1);
	}
	pool_free(pool);
}

struct each {
	int calls[8];
	pthread_t threads[8];
};

static void mark(void *context, int64_t index, int worker)
{
	struct each *each = context;
	each->calls[worker] += index == worker ? 1 : 1000;
	each->threads[worker] = pthread_self();
}

static void each_worker_once(void **state)
{
	struct pool *pool;
	assert_ok(pool_create(&pool, 4));
	struct each each = {0};
	for (int repeat = 0; repeat < 200; repeat++)
		pool_run_each(pool, mark, &each);
	for (int i = 0; i < 4; i++)
		assert_int_equal(each.calls[i], 200);
	assert_true(pthread_equal(each.threads[0], pthread_self()));
	for (int i = 1; i < 4; i++) {
		for (int j = 0; j < i; j++)
			assert_false(pthread_equal(each.threads[i], each.threads[j]));
	}
	pool_free(pool);
}

struct sums {
	const float *values;
	double parts[64];
};

static void add_part(void *context, int64_t index, int worker)
{
	(void)worker;
	struct sums *sums = context;
	double sum = 0;
	for (int64_t i = index * 1000; i < (index + 1) * 1000; i++)
		sum += sqrt(sums->values[i]);
	sums->parts[index] = sum;
}

/* Fixed parts added in a fixed order: the same bits for any number of threads. */
static void results_do_not_depend_on_threads(void **state)
{
	static float values[64000];
	for (int i = 0; i < 64000; i++)
		values[i] = (float)(i * 2654435761u) / 1e5f;
	double expected = 0;
	for (int threads = 1; threads <= 4; threads++) {
		struct sums sums = {.values = values};
		struct pool *pool;
		assert_ok(pool_create(&pool, threads));
		pool_run(pool, 64, add_part, &sums);
		pool_free(pool);
		double total = 0;
		for (int i = 0; i < 64; i++)
			total += sums.parts[i];
		if (threads == 1)
			expected = total;
		assert_memory_equal(&total, &expected, sizeof total);
	}
}

static void divide_smallest(void *context, int64_t index, int worker)
{
	(void)worker;
	volatile float small = 1e-38f;
	((float *)context)[index] = small / 16;
}

/* Denormals are flushed to zero in every worker; the caller's own arithmetic is unchanged. */
static void denormals_are_flushed_inside_only(void **state)
{
	struct pool *pool;
	float results[8];
	assert_ok(pool_create(&pool, 3));
	pool_run_each(pool, divide_smallest, results);
	for (int i = 0; i < 3; i++)
		assert_true(results[i] == 0);
	volatile float small = 1e-38f;
	assert_true(small / 16 > 0);
	pool_free(pool);
	assert_ok(pool_create(&pool, 1));
	pool_run(pool, 1, divide_smallest, results);
	assert_true(results[0] == 0 && small / 16 > 0);
	pool_free(pool);
}

static void pool_in_pool(void *context, int64_t index, int worker)
{
	(void)index;
	(void)worker;
	static struct visits visits = {.workers = 2};
	pool_run(context, 2, visit, &visits);
}

static void nesting_is_a_bug(void **state)
{
	pid_t child = fork();
	if (child == 0) {
		struct pool *pool;
		fclose(stderr);
		if (pool_create(&pool, 2) == OK)
			pool_run(pool, 2, pool_in_pool, pool);
		_exit(0);
	}
	int result;
	assert_int_equal(waitpid(child, &result, 0), child);
	assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGABRT);
}

static void cores_follow_affinity(void **state)
{
	cpu_set_t all, one;
	assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
	int cores = pool_available_cores();
	assert_in_range(cores, 1, CPU_COUNT(&all));
	CPU_ZERO(&one);
	for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++) {
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	}
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	assert_int_equal(pool_available_cores(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
	assert_int_equal(pool_available_cores(), cores);

	/* A pool leaves its caller's affinity unchanged, even when it has to move the caller off a worker's CPU. */
	struct pool *pool;
	static struct visits visits = {.workers = 1024};
	assert_ok(pool_create(&pool, 0));
	cpu_set_t last, after;
	CPU_ZERO(&last);
	for (int cpu = CPU_SETSIZE - 1; CPU_COUNT(&last) == 0; cpu--) {
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &last);
	}
	for (int repeat = 0; repeat < 50; repeat++) {
		assert_int_equal(sched_setaffinity(0, sizeof last, &last), 0);
		assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
		pool_run(pool, 100, visit, &visits);
		assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
		assert_true(CPU_EQUAL(&all, &after));
	}
	pool_free(pool);
	pool_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_index_once),
		cmocka_unit_test(many_jobs),
		cmocka_unit_test(the_last_is_waited_for),
		cmocka_unit_test(each_worker_once),
		cmocka_unit_test(results_do_not_depend_on_threads),
		cmocka_unit_test(denormals_are_flushed_inside_only),
		cmocka_unit_test(nesting_is_a_bug),
		cmocka_unit_test(cores_follow_affinity),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
