/* Every operation of the CUDA back end on the emulated device against the reference, in every type; the emulation stops at
 * any access that would fail on a GPU (docs/developers/cuda.md). */
#include "each_operation.h"
#include "emulation.h"

/* Looking for races takes most of the time: fp16 and TF32 run the kernels of bf16 and fp32; test_attention.c looks for
 * races in those of attention; and large sizes have more of the same blocks. BERTC_TEST_RACES=all looks at every line. */
static bool looks_for_races, in_all;

/* Large sizes take most of the rest: they run in bf16, and attention's in fp32 too, which has other kernels. Which
 * elements a kernel processes does not depend on the type, and tests/gpu runs every line in every type. FP8 keeps the
 * longest sums, which determine its limits. */
static bool is_wanted(const struct arithmetic *in, const char *line)
{
	bool is_bf16 = in->dtype == DTYPE_BF16 && !in->fp8, is_f32 = in->dtype == DTYPE_F32 && !in->tf32;
	return is_bf16 || is_small(line) || (is_f32 && strncmp(line, "attention_", strlen("attention_")) == 0) ||
	       (in->fp8 && strncmp(line, "linear_fwd", strlen("linear_fwd")) == 0);
}

/* Two out of three cases run their blocks and warps in another order. */
static void shuffle(int number)
{
	emulated_order = number % 3 == 0 ? 0 : (uint64_t)number;
	const char *line = case_lines[number];
	emulated_race_check = in_all || (looks_for_races && is_small(line) && strncmp(line, "attention_", 10) != 0);
}

/* The second run only compares bits. */
static void look_no_more(void)
{
	emulated_race_check = false;
}

static void test_operations(void **state)
{
	struct arithmetic in = *(struct arithmetic *)*state;
	looks_for_races = in.dtype != DTYPE_F16 && !in.tf32;
	run_operations(&(struct operation_run){.in = in,
					       .lines = case_lines,
					       .count = CASE_COUNT,
					       .wanted = is_wanted,
					       .before = shuffle,
					       .before_again = look_no_more});
	assert_int_equal(emulated_blocks(), 0); /* all memory has been freed */
}

int main(void)
{
	in_all = getenv("BERTC_TEST_RACES") != NULL;
	return run_each_arithmetic(test_operations);
}
