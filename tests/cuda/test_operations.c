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

static void test_operations(void **state)
{
	struct arithmetic in = *(struct arithmetic *)*state;
	looks_for_races = in.dtype != DTYPE_F16 && !in.tf32;
	run_operations(&(struct operation_run){.in = in, .lines = case_lines, .count = CASE_COUNT, .before = shuffle});
	assert_int_equal(emulated_blocks(), 0); /* all memory is given back */
}

int main(void)
{
	return run_each_arithmetic(test_operations);
}
