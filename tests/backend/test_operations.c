/* Every operation of the CPU back end against the reference: each type of activations and each instruction
 * set that this machine has. The instruction set is decided once in a process, so each runs in a child; the
 * parent computes what the reference gives once for all of them. */
#include <sys/wait.h>
#include <unistd.h>
#include "test.h"
#include "backend/cpu/isa.h"
#include "cases.h"
#include "check.h"
#include "operations.h"

#ifdef __SANITIZE_THREAD__
#define SMALL_ONLY                                                                                                               \
	true /* the thread sanitizer is 20 times as slow, and races do not wait for large sizes                                  \
	      */
#else
#define SMALL_ONLY false
#endif

static struct test_case cases[CASE_COUNT];
static int case_count;

static void prepare(enum dtype dtype, bool fp8)
{
	struct pool *pool;
	struct backend *ref = open_backend_as((struct backend_settings){.device = "ref", .fp8 = fp8}, 2, &pool);
	struct replica replica;
	open_reference_replica(ref, &replica);
	case_count = 0;
	for (int i = 0; i < CASE_COUNT; i++) {
		if (SMALL_ONLY && !is_small(case_lines[i]))
			continue;
		case_create(&cases[case_count], case_lines[i], dtype, &replica);
		case_expect(&cases[case_count++], ref);
	}
	ref->functions->replica_release(&replica);
	backend_close(ref);
	pool_free(pool); /* threads do not survive a fork */
}

enum outcome { PASSED, FAILED, NOT_HERE };

/* In the child: all cases on one instruction set. */
static enum outcome run_cases(const char *isa, enum dtype dtype, bool fp8)
{
	setenv("BERTC_ISA", isa, 1);
	struct pool *two, *one;
	struct checker k = {0};
	or_abort(pool_create(&two, 2));
	or_abort(pool_create(&one, 1));
	struct backend_settings settings = {.device = "cpu", .dtype = dtype, .fp8 = fp8, .pool = two};
	if (backend_open(&k.backend, &settings) != OK)
		return NOT_HERE;
	if (k.backend->dtype != dtype) /* FP8 is simulated with the other type here */
		return NOT_HERE;
	settings.pool = one;
	or_abort(backend_open(&k.other, &settings));
	for (int i = 0; i < case_count; i++)
		check_case(&k, &cases[i]);
	char title[64];
	snprintf(title, sizeof(title), "%s %s", isa, fp8 ? "fp8" : dtype_names[dtype]);
	print_margins(&k, title);
	if (k.failures > 0)
		fprintf(stderr, "%s: %d failures\n", title, k.failures);
	return k.failures > 0 ? FAILED : PASSED;
}

/* How many instruction sets were there; all of them must pass. */
static int test_dtype(enum dtype dtype, bool fp8)
{
	prepare(dtype, fp8);
	int passed = 0, failed = 0;
	for (int isa = 0; isa < CPU_ISA_COUNT; isa++) {
		fflush(NULL);
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0)
			_exit((int)run_cases(cpu_isa_names[isa], dtype, fp8));
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE)
			fprintf(stderr, "%s %s: not on this machine\n", cpu_isa_names[isa], fp8 ? "fp8" : dtype_names[dtype]);
		else if (WIFEXITED(status) && WEXITSTATUS(status) == PASSED)
			passed++;
		else
			failed++;
	}
	for (int i = 0; i < case_count; i++)
		case_release(&cases[i]);
	assert_int_equal(failed, 0);
	return passed;
}

static void test_f32(void **state)
{
	(void)state;
	assert_true(test_dtype(DTYPE_F32, false) > 0);
}

static void test_bf16(void **state)
{
	(void)state;
	int passed = test_dtype(DTYPE_BF16, false);
	if (passed == 0 && backend_best_dtype("cpu") != DTYPE_BF16)
		skip(); /* no instruction set of this machine has it */
	assert_true(passed > 0);
}

/* Simulated, against the reference with the same operands rounded to FP8: the limits are those of the activations' type. */
static void test_fp8(void **state)
{
	(void)state;
	assert_true(test_dtype(DTYPE_F32, true) + test_dtype(DTYPE_BF16, true) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_f32),
		cmocka_unit_test(test_bf16),
		cmocka_unit_test(test_fp8),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
