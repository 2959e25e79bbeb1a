/* Every operation of the CPU back end against the reference: each type of activations and each instruction set that this
 * machine has. The instruction set is decided once per process, so each runs in a child; the parent computes the reference
 * results once for all consecutive runs of the same type. */
#include <sys/wait.h>
#include <unistd.h>
#include "test.h"
#include "cases.h"
#include "check.h"
#include "each_isa.h"
#include "operations.h"
#include "backend/open.h"

#ifdef __SANITIZE_THREAD__
#define SMALL_ONLY true /* the thread sanitizer is 20 times slower, and races do not need large sizes to show up */
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

/* In a child: whether this machine has the instruction set, and the instruction set supports the type. */
static enum outcome look(const char *isa, enum dtype dtype, bool fp8)
{
	setenv("BERTC_ISA", isa, 1);
	struct pool *pool;
	struct backend *be;
	or_abort(pool_create(&pool, 1));
	struct backend_settings settings = {.device = "cpu", .dtype = dtype, .fp8 = fp8, .pool = pool};
	if (backend_open(&be, &settings) != OK)
		return NOT_HERE;
	return be->dtype == dtype ? PASSED : NOT_HERE; /* otherwise FP8 is simulated with the other type here */
}

/* In a child: all cases on one instruction set. */
static enum outcome run_cases(const char *isa, enum dtype dtype, bool fp8)
{
	setenv("BERTC_ISA", isa, 1);
	struct pool *two, *one;
	struct backend_settings settings = {.device = "cpu", .dtype = dtype, .fp8 = fp8};
	struct checker k = {.backend = open_backend_as(settings, 2, &two), .other = open_backend_as(settings, 1, &one)};
	for (int i = 0; i < case_count; i++)
		check_case(&k, &cases[i]);
	char title[64];
	snprintf(title, sizeof title, "%s %s", isa, fp8 ? "fp8" : dtype_names[dtype]);
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

static enum outcome outcome_apart(enum outcome (*run)(const char *isa, enum dtype dtype, bool fp8), enum cpu_isa isa,
				  enum dtype dtype, bool fp8)
{
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit((int)run(cpu_levels[isa].name, dtype, fp8));
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? (enum outcome)WEXITSTATUS(status) : FAILED;
}

/* What the current cases were prepared for. */
static struct {
	bool prepared, fp8;
	enum dtype dtype;
} at_hand;

/* Runs all cases in a process of its own. */
static enum outcome run_apart(enum cpu_isa isa, enum dtype dtype, bool fp8)
{
	if (outcome_apart(look, isa, dtype, fp8) != PASSED)
		return NOT_HERE;
	if (!at_hand.prepared || at_hand.fp8 != fp8 || at_hand.dtype != dtype) {
		for (int i = 0; at_hand.prepared && i < case_count; i++)
			case_release(&cases[i]);
		prepare(dtype, fp8);
		at_hand.prepared = true;
		at_hand.fp8 = fp8;
		at_hand.dtype = dtype;
	}
	return outcome_apart(run_cases, isa, dtype, fp8);
}

/* Skipped where the machine lacks the instruction set. FP8 is simulated, against the reference with the same operands rounded
 * to FP8, and the limits are those of the other activations, whose type depends on the instruction set. */
static void test_level(void **state)
{
	const struct level *level = *state;
	enum outcome first, second = NOT_HERE;
	if (level->kind == FP8) {
		bool bf16_first = at_hand.fp8 && at_hand.dtype == DTYPE_BF16;
		first = run_apart(level->isa, bf16_first ? DTYPE_BF16 : DTYPE_F32, true);
		second = run_apart(level->isa, bf16_first ? DTYPE_F32 : DTYPE_BF16, true);
	} else {
		first = run_apart(level->isa, level->kind == BF16 ? DTYPE_BF16 : DTYPE_F32, false);
	}
	if (first == NOT_HERE && second == NOT_HERE)
		skip();
	assert_true(first == PASSED || first == NOT_HERE);
	assert_true(second == PASSED || second == NOT_HERE);
}

int main(void)
{
	static const char *const kinds[] = {[F32] = "f32", [BF16] = "bf16", [FP8] = "fp8"};
	static struct level levels[3 * CPU_ISA_COUNT];
	static char names[3 * CPU_ISA_COUNT][32];
	struct CMUnitTest tests[3 * CPU_ISA_COUNT];
	size_t count = 0;
	for (int kind = F32; kind <= FP8; kind++)
		for (int isa = 0; isa < CPU_ISA_COUNT; isa++) {
			if (repeats_floats((enum cpu_isa)isa) || (kind == BF16 && !cpu_levels[isa].computes_bf16))
				continue;
			levels[count].kind = kind;
			levels[count].isa = (enum cpu_isa)isa;
			snprintf(names[count], sizeof names[count], "%s_%s", kinds[kind], cpu_levels[isa].name);
			tests[count] = (struct CMUnitTest){names[count], test_level, NULL, NULL, &levels[count]};
			count++;
		}
	return _cmocka_run_group_tests("operations", tests, count, NULL, NULL);
}
