/* Every operation of the CUDA back end on the emulated device against the reference, in every type; the emulation stops at
 * any access that a GPU would punish (docs/cuda.md). */
#include "each_operation.h"
#include "emulation.h"

/* Two of three cases run their blocks and warps in another order. */
static void shuffle(int number)
{
	emulated_order = number % 3 == 0 ? 0 : (uint64_t)number;
}

static void test_dtype(enum dtype dtype, bool tf32)
{
	run_operations(&(struct operation_run){
		.dtype = dtype, .tf32 = tf32, .lines = case_lines, .count = CASE_COUNT, .before = shuffle});
	assert_int_equal(emulated_blocks(), 0); /* all memory is given back */
/* A norm over one column multiplies what its rounded sum is off by with 1e12: fp16 has no such numbers. */
static bool leaves_range(const char *line, enum dtype dtype)
{
	return dtype == DTYPE_F16 && strcmp(line, "embed_bwd T=1 H=1 V=2 S=1") == 0;
}

/* Cases of one type; every third order of blocks and warps is shuffled. */
static void test_dtype(enum dtype dtype)
{
	struct pool *pool, *ref_pool;
	struct backend *ref = open_backend("ref", DTYPE_F64, 2, &ref_pool);
	struct checker k = {.backend = open_backend("cuda", dtype, 1, &pool)};
	struct replica replica;
	open_reference_replica(ref, &replica);
	int run = 0;
	for (int i = 0; i < CASE_COUNT; i++) {
		struct test_case c;
		const char *only = getenv("BERTC_TEST_CASES"); /* beginning of the lines to run */
		if ((only && strncmp(case_lines[i], only, strlen(only)) != 0) || !has(k.backend, case_lines[i]) ||
		    leaves_range(case_lines[i], dtype))
			continue;
		case_create(&c, case_lines[i], dtype, &replica);
		case_expect(&c, ref);
		emulated_order = i % 3 == 0 ? 0 : (uint64_t)i;
		check_case(&k, &c);
		case_release(&c);
		run++;
	}
	print_margins(&k, dtype_names[dtype]);
	ref->functions->replica_release(&replica);
	backend_close(k.backend);
	backend_close(ref);
	pool_free(pool);
	pool_free(ref_pool);
	assert_int_equal(k.failures, 0);
	assert_true(run > 0);
	assert_int_equal(emulated_blocks(), 0);
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
