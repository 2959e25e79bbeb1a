/* Fine-tuning on the emulated device compared with the CPU, for tasks of every shape. */
#include "emulated_run.h"
#include "../cmd/labeled_files.h"

static int setup(void **state)
{
	return emulated_run_setup(state) == 0 ? labeled_files_make("cpu") : -1;
}

#define SHORT "--num_train_steps 3 --train_batch_size 4 --eval_steps 0 "

static void curves_are_those_of_the_cpu(void **state)
{
	static const struct {
		const char *name, *options;
		double loss, gradients;
	} runs[] = {
		{"fp32", SHORT "--device cuda --precision fp32", 1e-6, 1e-5},
		{"tf32", SHORT "--device cuda --precision tf32", 1e-4, 1e-2},
		{"bf16", SHORT "--device cuda --precision bf16", 2e-3, 5e-2},
	};
	for (int i = 0; i < LABELED_TASKS; i++) {
		const char *task = labeled_tasks[i];
		assert_int_equal(finetune(task, "cpu", SHORT "--device cpu --precision fp32"), 0);
		for (size_t r = 0; r < sizeof runs / sizeof runs[0]; r++) {
			assert_int_equal(finetune(task, runs[r].name, runs[r].options), 0);
			double loss = curve_distance(task, "cpu", runs[r].name, "loss", 3),
			       gradients = curve_distance(task, "cpu", runs[r].name, "grad_norm", 3);
			if (getenv("BERTC_TEST_MARGINS"))
				print_error("%s in %s: loss %.2g of %.2g, gradients %.2g of %.2g\n", task, runs[r].name, loss,
					    runs[r].loss, gradients, runs[r].gradients);
			if (!(loss <= runs[r].loss && gradients <= runs[r].gradients))
				fail_msg("%s in %s: loss %.2g off, gradients %.2g", task, runs[r].name, loss, gradients);
		}
	}
}

/* Layers that are not trained keep nothing for a backward pass. With both frozen, no product in FP8 follows the last norm, which
 * has rounded its output for one. */
static void layers_are_frozen_in_fp8(void **state)
{
	static const double limits[] = {5e-3, 1e-3};
	for (int frozen = 1; frozen <= 2; frozen++) {
		for (int i = 0; i < 2; i++) {
			const char *device = i == 0 ? "cpu" : "cuda";
			char options[160];
			snprintf(options, sizeof options, SHORT "--precision fp8 --fresh --device %s --freeze_layers %d", device,
				 frozen);
			assert_int_equal(finetune("tagging", device, options), 0);
		}
		double off = curve_distance("tagging", "cpu", "cuda", "grad_norm", 3);
		if (!(off <= limits[frozen - 1]))
			fail_msg("%d layers: gradients %.2g off", frozen, off);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(curves_are_those_of_the_cpu),
		cmocka_unit_test(layers_are_frozen_in_fp8),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
