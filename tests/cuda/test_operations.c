/* Every operation of the CUDA back end on the emulated device against the reference, in every type; the emulation stops at
 * any access that a GPU would punish (docs/cuda.md). */
#include "test.h"
#include "cases.h"
#include "check.h"
#include "emulation.h"
#include "operations.h"

static bool has(const struct backend *be, const char *line)
{
	if (strncmp(line, "linear_norm_fwd", 15) == 0 && strstr(line, " w=0") == NULL)
		return be->operations->linear_fwd != NULL;
	static const struct {
		const char *name;
		size_t at;
	} table[] = {
#define ROW(name) {#name " ", offsetof(struct operations, name)}
		ROW(embed_fwd), ROW(embed_bwd), ROW(linear_fwd), ROW(linear_gelu_fwd), ROW(linear_norm_fwd), ROW(norm_bwd),
		ROW(linear_bwd), ROW(attention_fwd), ROW(attention_bwd), ROW(gather_fwd), ROW(gather_bwd), ROW(vocab_xent),
		ROW(vocab_topk), ROW(xent), ROW(sumsq_finite), ROW(adamw), ROW(lamb_norms), ROW(lamb_apply),
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strncmp(line, table[i].name, strlen(table[i].name)) == 0)
			return *(void *const *)(const void *)((const char *)be->operations + table[i].at) != NULL;
	return false;
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
		if ((only && strncmp(case_lines[i], only, strlen(only)) != 0) || !has(k.backend, case_lines[i]))
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
	test_dtype(DTYPE_F32);
}

static void test_bf16(void **state)
{
	(void)state;
	test_dtype(DTYPE_BF16);
}

static void test_f16(void **state)
{
	(void)state;
	test_dtype(DTYPE_F16);
}

int main(void)
{
	setenv("BERTC_CACHE", "", 1); /* no file */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_f32),
		cmocka_unit_test(test_bf16),
		cmocka_unit_test(test_f16),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
