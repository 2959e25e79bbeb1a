/* Linear layers of few rows, by the kernels made for them and the usual way, against the reference: lengths on both sides of
 * every tile, and hidden sizes from 128 to 1,024. Shared by the tests on the emulated device and those on a GPU. */
#ifndef TESTS_CUDA_FEW_ROWS_CASES_H
#define TESTS_CUDA_FEW_ROWS_CASES_H

#include "each_operation.h"

#define FEW_ROWS_LIMIT 256 /* backend/cuda/kernels.h */

/* Defined by the test: how many kernels have been launched (0: nobody knows); and what precedes a case, in which the emulated
 * device may look for races. */
static int64_t launches(void);
static void before_case(int number, bool races);

enum { WAYS = 2 };

/* The same cases in a type, by our kernels and the usual way. */
struct both {
	struct backend *ref, *be[WAYS];
	struct pool *ref_pool, *pools[WAYS];
	struct checker k[WAYS];
	struct replica replica;
	enum dtype dtype;
};

static void begin(struct both *b, enum dtype dtype)
{
	b->dtype = dtype;
	b->ref = open_backend("ref", DTYPE_F32, 0, &b->ref_pool);
	open_reference_replica(b->ref, &b->replica);
	for (int i = 0; i < WAYS; i++) {
		setenv("BERTC_FEW_ROWS", i == 0 ? "1" : "0", 1);
		b->be[i] = open_backend("cuda", dtype, 1, &b->pools[i]);
		b->k[i] = (struct checker){.backend = b->be[i]};
	}
	unsetenv("BERTC_FEW_ROWS");
}

static void end(struct both *b)
{
	static const char *const names[WAYS] = {"few rows", "the usual way"};
	b->ref->functions->replica_release(&b->replica);
	backend_close(b->ref);
	pool_free(b->ref_pool);
	for (int i = 0; i < WAYS; i++) {
		print_margins(&b->k[i], names[i]);
		backend_close(b->be[i]);
		pool_free(b->pools[i]);
		assert_int_equal(b->k[i].failures, 0);
	}
}

/* Runs a line both ways (and twice, as check_case does). `more`: how many kernels more our way launches, since the library's
 * products are none here; -1: it depends. */
static void check_both(struct both *b, int more, const char *line)
{
	struct test_case c;
	int64_t kernels[WAYS];
	case_create(&c, line, b->dtype, &b->replica);
	case_expect(&c, b->ref);
	c.limits.training = false;
	for (int i = 0; i < WAYS; i++) {
		kernels[i] = launches();
		check_case(&b->k[i], &c);
		kernels[i] = launches() - kernels[i];
	}
	if (more >= 0 && kernels[0] - kernels[1] != 2 * more)
		fail_msg("%s: %d and %d kernels", line, (int)kernels[0], (int)kernels[1]);
	case_release(&c);
}

static void check_lines(struct both *b, int rows, int hidden, const char *more)
{
	char line[160];
	snprintf(line, sizeof line, "linear_norm_fwd M=%d H=%d I=%d train=0%s", rows, hidden, hidden, more);
	check_both(b, 1, line);
	snprintf(line, sizeof line, "linear_gelu_fwd M=%d O=%d I=%d act=gelu_erf train=0", rows, hidden + 8, hidden);
	check_both(b, 0, line);
}

/* Every length of interest. */
static void every_length(void **state)
{
	struct both b = {0};
	begin(&b, DTYPE_BF16);
	for (int rows = 1; rows <= FEW_ROWS_LIMIT; rows += rows % 32 < 2 || rows % 32 == 31 || rows < 32 ? 1 : 7) {
		before_case(rows, rows % 32 == 1 || rows == 100);
		check_lines(&b, rows, 128, rows % 2 ? "" : " residual=0");
	}
	end(&b);
}

/* Sums of one part and of several, unequal ones; rows of every width. */
static void every_width(void **state)
{
	static const int widths[] = {128, 192, 256, 320, 384, 512, 768, 1024};
	for (int f16 = 0; f16 < 2; f16++) {
		struct both b = {0};
		begin(&b, f16 ? DTYPE_F16 : DTYPE_BF16);
		for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
			before_case((int)i, widths[i] == 320 && !f16);
			check_lines(&b, f16 ? 20 : 33, widths[i], i % 3 ? "" : " b=0 beta=0");
		}
		check_both(&b, 1, "linear_fwd M=65 O=2304 I=64 act=none");
		check_both(&b, 1, "linear_fwd M=128 O=2048 I=64 act=none b=0"); /* tiles of 64 columns */
		check_both(&b, 0, "linear_fwd M=3 O=768 I=768 act=tanh");
		check_both(&b, -1, "linear_gelu_fwd M=66 O=64 I=64 act=gelu_tanh train=0 scale=4");
		check_both(&b, 0, "linear_gelu_fwd M=66 O=64 I=64 act=relu train=0");
		check_both(&b, 0, "linear_gelu_fwd M=66 O=64 I=64 act=silu train=0 b=0");
		check_both(&b, 1, "linear_norm_fwd M=20 H=64 I=64 scale=1e-3 eps=1e-5 train=1 p=0");
		check_both(&b, 1, "linear_norm_fwd M=9 H=768 I=3072 train=0");
		/* attention, which starts early, too */
		before_case(0, !f16);
		check_both(&b, 0, "attention_fwd T=140 H=128 heads=2 B=3 longest=130 train=0");
		check_both(&b, 0, "attention_fwd T=40 H=32 heads=1 B=2 train=0");
		end(&b);
	}
}

#endif
