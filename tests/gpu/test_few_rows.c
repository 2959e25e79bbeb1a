/* tests/cuda/few_rows_cases.h on a GPU. */
#include "../cuda/few_rows_cases.h"

static int64_t launches(void)
{
	return 0;
}

static void before_case(int number, bool races)
{
	(void)number;
	(void)races;
}

int main(void)
{
	setenv("BERTC_CACHE", "", 1); /* no cache file */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length),
		cmocka_unit_test(every_width),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
