/* tests/cuda/few_rows_cases.h on the emulated device, and when the kernels for few rows are used. */
#include "few_rows_cases.h"
#include "emulation.h"

static int64_t launches(void)
{
	return emulated_launches;
}

static void before_case(int number, bool races)
{
	emulated_order = (uint64_t)number % 3;
	emulated_race_check = races;
}

/* The number of kernels that a layer with a norm launches on a device with such choices. Sizes that the kernels do not take, and
 * training, use the usual way. */
static int64_t kernels_of(struct backend *be, const char *line, bool training)
{
	struct both b = {0};
	struct test_case c;
	struct bound bound;
	struct replica replica;
	b.ref = open_backend("ref", DTYPE_F32, 0, &b.ref_pool);
	open_reference_replica(b.ref, &b.replica);
	case_create(&c, line, DTYPE_BF16, &b.replica);
	c.limits.training = training;
	or_abort(be->functions->replica_create(be, &replica, &c.limits));
	bound_create(&bound, &c, be, &replica);
	int64_t before = 0;
	for (int i = 0; i < 2; i++) { /* the first time, it chooses */
		assert_ok(be->functions->synchronize(&replica));
		before = emulated_launches;
		bound_run(&bound);
		assert_ok(be->functions->synchronize(&replica));
	}
	bound_release(&bound);
	be->functions->replica_release(&replica);
	case_release(&c);
	b.ref->functions->replica_release(&b.replica);
	backend_close(b.ref);
	pool_free(b.ref_pool);
	return emulated_launches - before;
}

static void it_is_a_choice(void **state)
{
	before_case(0, true);
	static const char layer[] = "linear_norm_fwd M=40 H=128 I=128 train=0";
	struct pool *pool;
	struct buffer lines = {0};
	struct backend *be = open_backend("cuda", DTYPE_BF16, 1, &pool);
	/* Both ways take equally long on this device: ours is taken. */
	assert_int_equal(kernels_of(be, layer, false), 2);
	assert_int_equal(kernels_of(be, layer, true), 1); /* the library's product is not a kernel here */
	assert_int_equal(kernels_of(be, "linear_norm_fwd M=257 H=128 I=128 train=0", false), 1);
	assert_int_equal(kernels_of(be, "linear_norm_fwd M=40 H=128 I=72 train=0", false), 1);
	assert_int_equal(kernels_of(be, "linear_norm_fwd M=40 H=128 I=128 p=0.1", false), 1);
	be->functions->choices(be, &lines);
	backend_close(be);
	pool_free(pool);
	char *at = strstr(buffer_string(&lines), "few rows 64 128 128 bf16 norm bias residual = ");
	assert_non_null(at);
	at = strstr(at, "= 0000000000000001 ");
	assert_non_null(at);
	at[strlen("= 000000000000000")] = '0'; /* to the contrary */
	be = open_backend("cuda", DTYPE_BF16, 1, &pool);
	assert_true(be->functions->use_choices(be, buffer_string(&lines)));
	assert_int_equal(kernels_of(be, layer, false), 1);
	backend_close(be);
	pool_free(pool);
	buffer_release(&lines);
	struct backend_settings wrong = {.device = "cuda", .dtype = DTYPE_BF16};
	setenv("BERTC_FEW_ROWS", "2", 1);
	assert_ok(pool_create(&wrong.pool, 1));
	assert_error(ERR_USAGE, "BERTC_FEW_ROWS is '2'", backend_open(&be, &wrong));
	pool_free(wrong.pool);
	unsetenv("BERTC_FEW_ROWS");
	assert_int_equal(emulated_blocks(), 0);
}

int main(void)
{
	setenv("BERTC_CACHE", "", 1); /* no cache file */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length),
		cmocka_unit_test(every_width),
		cmocka_unit_test(it_is_a_choice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
