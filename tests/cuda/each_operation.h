/* All cases of tests/backend on the CUDA back end: shared by the tests on the emulated device and those on a GPU. */
#ifndef TESTS_CUDA_EACH_OPERATION_H
#define TESTS_CUDA_EACH_OPERATION_H

#include <time.h>
#include "test.h"
#include "cases.h"
#include "check.h"
#include "fp8_rounding.h"
#include "operations.h"
#include "backend/open.h"

/* The arithmetic that a test program uses, one after another. */
struct arithmetic {
	enum dtype dtype;
	bool tf32, fp8;
};

struct operation_run {
	struct arithmetic in;
	const char *const *lines;
	int count;
	bool (*wanted)(const struct arithmetic *in, const char *line); /* or NULL: every line */
	void (*before)(int number);                                    /* called before each case; may be NULL */
	void (*before_again)(void);                                    /* called before its second run; may be NULL */
};

/* A norm over one column multiplies the rounding error of its sum by 1e12: fp16 cannot represent such numbers. */
static inline bool leaves_range(const char *line, enum dtype dtype)
{
	return dtype == DTYPE_F16 && strcmp(line, "embed_bwd T=1 H=1 V=2 S=1") == 0;
}

/* TF32 rounds the inputs once more, so that words with nearly the same probability swap places. */
static inline bool has_ties(const char *line, bool tf32)
{
	return tf32 && strncmp(line, "vocab_topk", strlen("vocab_topk")) == 0;
}

/* FP8: only linear layers, since everything else is the same as in bf16. */
static inline bool is_left_out(const struct arithmetic *in, const char *line)
{
	return (in->fp8 && strncmp(line, "linear_", strlen("linear_")) != 0) || leaves_range(line, in->dtype) ||
	       has_ties(line, in->tf32);
}

static inline bool same_operation(const char *a, const char *b)
{
	size_t length = strcspn(a, " ");
	return strcspn(b, " ") == length && strncmp(a, b, length) == 0;
}

/* Fails the test if any result exceeds its limit or differs when run again, or if no line of an operation is wanted. With
 * BERTC_TEST_CASES=norm_bwd, only lines that begin with that run. */
static inline void run_operations(const struct operation_run *run)
{
	struct pool *pool, *ref_pool;
	/* The reference rounds the same operands to FP8. */
	struct backend *ref = open_backend_as((struct backend_settings){.device = "ref", .fp8 = run->in.fp8}, 0, &ref_pool);
	struct backend *be = open_backend_as(
		(struct backend_settings){.device = "cuda", .dtype = run->in.dtype, .tf32 = run->in.tf32, .fp8 = run->in.fp8}, 1,
		&pool);
	struct checker k = {.backend = be, .tf32 = run->in.tf32, .tensor_fp8 = run->in.fp8, .before_again = run->before_again};
	struct replica replica;
	open_reference_replica(ref, &replica);
	const char *only = getenv("BERTC_TEST_CASES"), *last = "";
	int done = 0;
	for (int i = 0; i < run->count; i++) {
		const char *line = run->lines[i];
		struct test_case c;
		if ((only && strncmp(line, only, strlen(only)) != 0) || is_left_out(&run->in, line))
			continue;
		if (run->wanted && !run->wanted(&run->in, line)) {
			bool is_last = i + 1 == run->count || !same_operation(line, run->lines[i + 1]);
			if (is_last && !same_operation(line, last) && !only)
				fail_msg("no line of %s is wanted", line);
			continue;
		}
		last = line;
		case_create(&c, line, run->in.dtype, &replica);
		case_expect(&c, ref);
		if (run->before)
			run->before(i);
		check_case(&k, &c);
		case_release(&c);
		done++;
	}
	if (run->in.fp8 && !only)
		check_fp8_rounding(be);
	print_margins(&k, run->in.fp8 ? "fp8" : run->in.tf32 ? "tf32" : dtype_names[run->in.dtype]);
	ref->functions->replica_release(&replica);
	backend_close(be);
	backend_close(ref);
	pool_free(pool);
	pool_free(ref_pool);
	assert_int_equal(k.failures, 0);
	assert_true(done > 0 || only);
}

/* The whole main() of a test program: runs `test` once for each arithmetic, to which *state points; BERTC_TEST_TYPE=bf16 runs
 * it for that one only. */
static inline int run_each_arithmetic(CMUnitTestFunction test)
{
	static struct arithmetic f32 = {.dtype = DTYPE_F32}, tf32 = {.dtype = DTYPE_F32, .tf32 = true},
				 bf16 = {.dtype = DTYPE_BF16}, f16 = {.dtype = DTYPE_F16},
				 fp8 = {.dtype = DTYPE_BF16, .fp8 = true};
	const struct CMUnitTest tests[] = {
		{"f32", test, NULL, NULL, &f32}, {"tf32", test, NULL, NULL, &tf32}, {"bf16", test, NULL, NULL, &bf16},
		{"f16", test, NULL, NULL, &f16}, {"fp8", test, NULL, NULL, &fp8},
	};
	setenv("BERTC_CACHE", "", 1); /* no cache file */
	if (getenv("BERTC_TEST_TYPE"))
		cmocka_set_test_filter(getenv("BERTC_TEST_TYPE"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
