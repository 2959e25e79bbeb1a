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
#include "backend/open.h"

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

/* A number format and an instruction set. */
struct level {
	enum { F32, BF16, FP8 } kind;
	enum cpu_isa isa;
};

/* All cases in a process of its own. */
static enum outcome run_apart(enum cpu_isa isa, enum dtype dtype, bool fp8)
{
	prepare(dtype, fp8);
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit((int)run_cases(cpu_isa_names[isa], dtype, fp8));
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	for (int i = 0; i < case_count; i++)
		case_release(&cases[i]);
	return WIFEXITED(status) ? (enum outcome)WEXITSTATUS(status) : FAILED;
}

/* Skipped where the machine lacks the instruction set. FP8 is simulated, against the reference with the same operands rounded
 * to FP8, and the limits are those of the other activations, whose type depends on the instruction set. */
static void test_level(void **state)
{
	const struct level *level = *state;
	enum outcome first, second = NOT_HERE;
	if (level->kind == FP8) {
		first = run_apart(level->isa, DTYPE_F32, true);
		second = run_apart(level->isa, DTYPE_BF16, true);
	} else {
		first = run_apart(level->isa, level->kind == BF16 ? DTYPE_BF16 : DTYPE_F32, false);
	}
	if (first == NOT_HERE && second == NOT_HERE)
		skip();
	assert_true(first == PASSED || first == NOT_HERE);
	assert_true(second == PASSED || second == NOT_HERE);
}

#define LEVEL(name, kind, isa)                                                                                                   \
	{                                                                                                                        \
		name, test_level, NULL, NULL, &(struct level)                                                                    \
		{                                                                                                                \
			kind, isa                                                                                                \
		}                                                                                                                \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LEVEL("f32_avx2", F32, CPU_ISA_AVX2),
		LEVEL("f32_avx512", F32, CPU_ISA_AVX512),
		LEVEL("f32_avx512_bf16", F32, CPU_ISA_AVX512_BF16),
		LEVEL("f32_amx", F32, CPU_ISA_AMX),
		LEVEL("bf16_avx512", BF16, CPU_ISA_AVX512),
		LEVEL("bf16_avx512_bf16", BF16, CPU_ISA_AVX512_BF16),
		LEVEL("bf16_amx", BF16, CPU_ISA_AMX),
		LEVEL("fp8_avx2", FP8, CPU_ISA_AVX2),
		LEVEL("fp8_avx512", FP8, CPU_ISA_AVX512),
		LEVEL("fp8_avx512_bf16", FP8, CPU_ISA_AVX512_BF16),
		LEVEL("fp8_amx", FP8, CPU_ISA_AMX),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
