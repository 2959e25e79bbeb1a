/* A student and its teacher on the emulated device compared with the CPU: batches on the device are padded with tokens
 * that must not count. */
#include "emulated_run.h"
#include "../cmd/distilled_run.h"

static int setup(void **state)
{
	return emulated_run_setup(state) == 0 ? distilled_run_make("cpu") : -1;
}

#define SHORT "--num_train_steps 3 --train_batch_size 4 --eval_steps 0 "

static void curves_are_those_of_the_cpu(void **state)
{
	static const char *const tasks[] = {"classification", "squad"};
	static const struct {
		const char *name, *options;
		double bound;
	} runs[] = {{"fp32", SHORT "--device cuda --precision fp32", 1e-5},
		    {"bf16", SHORT "--device cuda --precision bf16", 5e-2},
		    {"tf32", SHORT "--device cuda --precision tf32", 5e-3},
		    {"fp16", SHORT "--device cuda --precision fp16", 1e-2},
		    {"fp8", SHORT "--device cuda --precision fp8", 2e-1}};
	for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
		assert_int_equal(distil(tasks[i], "cpu", SHORT "--device cpu --precision fp32"), 0);
		/* For the second task, only the two most important runs. */
		for (size_t r = 0; r < (i == 0 ? sizeof runs / sizeof runs[0] : 2); r++) {
			assert_int_equal(distil(tasks[i], runs[r].name, runs[r].options), 0);
			for (int m = 0; m < DISTILLED_MEASURES; m++) {
				double off = curve_distance(tasks[i], "cpu", runs[r].name, distilled_measures[m], 3);
				/* The divergence itself is small: the models have learned little. */
				double bound =
					strcmp(distilled_measures[m], "soft_loss") == 0 ? 10 * runs[r].bound : runs[r].bound;
				if (!(off <= bound))
					fail_msg("%s in %s: %s is %.2g off", tasks[i], runs[r].name, distilled_measures[m], off);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(curves_are_those_of_the_cpu),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
