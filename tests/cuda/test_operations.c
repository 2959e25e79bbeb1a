/* Every operation of the CUDA back end on the emulated device against the reference, in every type; the emulation stops at
 * any access that a GPU would punish (docs/cuda.md). */
#include "each_operation.h"
#include "emulation.h"

/* Looking for races takes most of the time: fp16 and TF32 run the kernels of bf16 and fp32, and test_attention.c looks for
 * those of attention, whose lines are the longest. */
static bool looks_for_races;

/* Two of three cases run their blocks and warps in another order. */
static void shuffle(int number)
{
	emulated_order = number % 3 == 0 ? 0 : (uint64_t)number;
	emulated_race_check = looks_for_races && strncmp(case_lines[number], "attention_", 10) != 0;
}

static void test_dtype(enum dtype dtype, bool tf32)
{
	looks_for_races = dtype != DTYPE_F16 && !tf32;
	run_operations(&(struct operation_run){
		.dtype = dtype, .tf32 = tf32, .lines = case_lines, .count = CASE_COUNT, .before = shuffle});
	assert_int_equal(emulated_blocks(), 0); /* all memory is given back */
}

static void test_f32(void **state)
{
	(void)state;
	test_dtype(DTYPE_F32, false);
}

static void test_tf32(void **state)
{
	(void)state;
	test_dtype(DTYPE_F32, true);
}

static void test_bf16(void **state)
{
	(void)state;
	test_dtype(DTYPE_BF16, false);
}

static void test_f16(void **state)
{
	(void)state;
	test_dtype(DTYPE_F16, false);
}

int main(void)
{
	setenv("BERTC_CACHE", "", 1); /* no file */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_f32),
		cmocka_unit_test(test_tf32),
		cmocka_unit_test(test_bf16),
		cmocka_unit_test(test_f16),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
