/* Training from Python, where there is Python 3: python/tests/test_train.py, which needs nothing but the program. What needs
 * NumPy is tested by make test-python. */
#include "cmd/program.h"

static void training_from_python(void **state)
{
	(void)state;
	if (system("python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null") != 0)
		skip();
	assert_int_equal(system("cd python/tests && BERTC_PROGRAM=$(realpath ../../${BERTC:-build/bertc}) PYTHONPATH=.. "
				"PYTHONDONTWRITEBYTECODE=1 python3 -m unittest -q test_train"),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(training_from_python),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
