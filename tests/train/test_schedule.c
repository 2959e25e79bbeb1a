#include "test.h"
#include "train/schedule.h"

static void test_linear(void **state)
{
	(void)state;
	struct schedule schedule = {.peak = 1e-3, .warmup_steps = 10, .total_steps = 100};
	assert_near(schedule_rate(&schedule, 1), 1e-4, 1e-18);
	assert_near(schedule_rate(&schedule, 10), 1e-3, 0);
	/* Straight and continuous: the step after the peak is one 91st below it. */
	assert_near(schedule_rate(&schedule, 11), 1e-3 * 90 / 91, 1e-18);
	assert_near(schedule_rate(&schedule, 100), 1e-3 / 91, 1e-18);
	assert_near(schedule_rate(&schedule, 101), 0, 0);
}

static void test_edges(void **state)
{
	(void)state;
	struct schedule none = {.peak = 1, .warmup_steps = 0, .total_steps = 4};
	assert_near(schedule_rate(&none, 1), 0.8, 1e-15);
	struct schedule all = {.peak = 1, .warmup_steps = 4, .total_steps = 4};
	assert_near(schedule_rate(&all, 4), 1, 0);
	struct schedule constant = {.peak = 1, .warmup_steps = 2, .total_steps = 4, .decay = DECAY_CONSTANT};
	assert_near(schedule_rate(&constant, 1), 0.5, 0);
	assert_near(schedule_rate(&constant, 4), 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_linear),
		cmocka_unit_test(test_edges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
