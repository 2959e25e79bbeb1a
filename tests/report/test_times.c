/* The ranks' times: which rank is reported to keep the others waiting. */
#include "report/times.h"
#include "test.h"

/* From measured seconds. */
static void a_straggler_is_named(void **state)
{
	const struct rank_times even[] = {{.computed = 10}, {.computed = 11}, {.computed = 10.5}, {.computed = 9}};
	const struct rank_times slow[] = {{.computed = 10}, {.computed = 11}, {.computed = 22}, {.computed = 10}};
	const struct rank_times pair[] = {{.computed = 15}, {.computed = 10}};
	double ratio;
	assert_int_equal(report_straggler(even, 4, &ratio), -1);
	assert_int_equal(report_straggler(slow, 4, &ratio), 2);
	assert_near(ratio, 2.2, 1e-12);
	assert_int_equal(report_straggler(pair, 2, &ratio), 0);
	assert_near(ratio, 1.5, 1e-12);
	assert_int_equal(report_straggler(pair, 1, &ratio), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_straggler_is_named)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
