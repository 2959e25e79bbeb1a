/* The measured speed of an operation is based on processor time: other load on the machine does not lower it. */
#include "test.h"
#include "backend/cpu/rate.h"
#include <time.h>
#include "base/log.h"

#define THREADS 2
#define FLOPS 1e6
/* Each call computes for one millisecond and is without the processor for ten. */
#define BUSY 1e-3
#define AWAY 10e-3

static double processor_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void busy_and_away(void *context, int64_t index, int worker)
{
	(void)context;
	(void)index;
	(void)worker;
	double end = processor_seconds() + BUSY;
	while (processor_seconds() < end)
		;
	clock_pause(AWAY);
}

static void test_waiting_is_not_counted(void **state)
{
	struct pool *pool;
	assert_int_equal(pool_create(&pool, THREADS), OK);
	double rate = measured_rate(pool, 2, busy_and_away, NULL, FLOPS);
	assert_true(rate <= THREADS * FLOPS / BUSY);
	assert_true(rate > 0.7 * THREADS * FLOPS / BUSY);
	pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_waiting_is_not_counted)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
