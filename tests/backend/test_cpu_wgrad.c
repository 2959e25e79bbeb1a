/* The weight gradient and the choice of instruction sets, for each instruction set of this machine, each in a process of
 * its own (the choice is made once per process). */
#include <math.h>
#include "backend/cpu/wgrad.h"
#include "base/pool.h"
#include "base/rng.h"
#include "each_isa.h"

static int detect_named(void)
{
	enum cpu_isa isa;
	if (cpu_isa_detect(&isa) != OK)
		return error_last()->status == ERR_USAGE && strstr(error_last()->message, "only has") ? LACKING : 1;
	return strcmp(cpu_levels[isa].name, getenv("BERTC_ISA")) != 0 || cpu_isa() != isa;
}

static int detect_unknown(void)
{
	enum cpu_isa isa;
	return cpu_isa_detect(&isa) != ERR_USAGE || !strstr(error_last()->message, "BERTC_ISA=sse9");
}

/* Levels are ordered: if one is available, so are those below it. */
static void names_lower_the_level(void **state)
{
	bool lacking = false;
	for (int i = 0; i < CPU_ISA_COUNT; i++) {
		int result = in_child(cpu_levels[i].name, detect_named);
		assert_true(result == 0 || (result == LACKING && i > 0));
		assert_false(lacking && result == 0);
		lacking = result == LACKING;
	}
}

static void unknown_name_is_a_usage_error(void **state)
{
	assert_int_equal(in_child("sse9", detect_unknown), 0);
}

struct shape {
	int64_t rows, outputs, inputs;
};

/* Below, at and above the blocks of 32 and the runs of 128 and 512; the last ones take two chunks of tokens.
 */
static const struct shape shapes[] = {{0, 40, 33},   {1, 1, 1},      {2, 32, 32},     {31, 7, 65},     {129, 96, 128},
				      {513, 33, 31}, {1050, 64, 40}, {128, 800, 520}, {2100, 4000, 8}, {3000, 8, 4000}};
enum { SHAPE_COUNT = sizeof shapes / sizeof shapes[0] };

static void *allocate(size_t bytes)
{
	void *memory = malloc(bytes ? bytes : 1);
	if (!memory)
		abort();
	return memory;
}

/* Random numbers, followed by NaN up to the next multiple of 128 rows, which must not be read. */
static struct tensor random_matrix(struct rng *rng, enum dtype dtype, int64_t rows, int64_t columns)
{
	int64_t count = rows * columns, full = round_up(rows + 1, ROW_MULTIPLE) * columns;
	struct tensor t = {.dtype = dtype, .rows = rows, .columns = columns};
	t.data = allocate((size_t)full * dtype_bytes(dtype));
	for (int64_t i = 0; i < full; i++) {
		float value = i < count ? (float)(2 * rng_double(rng) - 1) : NAN;
		if (dtype == DTYPE_F32)
			((float *)t.data)[i] = value;
		else
			((uint16_t *)t.data)[i] = float_to_bf16(value);
	}
	return t;
}

static double element(struct tensor t, int64_t row, int64_t column)
{
	int64_t i = row * t.columns + column;
	return t.dtype == DTYPE_F32 ? (double)((float *)t.data)[i] : (double)bf16_to_float(((uint16_t *)t.data)[i]);
}

/* |got - start - sum| against the rounding of fp32 sums: `size` is the sum of the terms' absolute values. */
static int differs(float got, double start, double sum, double size)
{
	return !(fabs(got - start - sum) <= 1e-6 * (size + fabs(start)));
}

static int compare_with_loops(const struct cpu_wgrad *a, const float *start, const float *start_sums)
{
	int64_t outputs = a->dy.columns, inputs = a->x.columns;
	double *sums = allocate((size_t)inputs * 2 * sizeof(double)), *sizes = sums + inputs;
	int wrong = 0;
	int64_t stride = outputs > 1000 ? 13 : 1; /* where there are many, a sample is enough */
	for (int64_t o = 0; o < outputs; o += stride) {
		double column = 0, column_size = 0;
		memset(sums, 0, (size_t)inputs * 2 * sizeof(double));
		for (int64_t t = 0; t < a->dy.rows; t++) {
			double dy = element(a->dy, t, o);
			column += dy;
			column_size += fabs(dy);
			for (int64_t i = 0; i < inputs; i++) {
				double term = dy * element(a->x, t, i);
				sums[i] += term;
				sizes[i] += fabs(term);
			}
		}
		for (int64_t i = 0; i < inputs; i++)
			wrong += differs(a->dw[o * inputs + i], a->overwrite ? 0 : (double)start[o * inputs + i], sums[i],
					 sizes[i]);
		wrong += differs(a->column_sums[o], a->overwrite ? 0 : (double)start_sums[o], column, column_size);
	}
	free(sums);
	return wrong;
}

/* Hands dy over in pieces, last piece first. */
static void hand_over(struct replica *replica, const struct cpu_wgrad *a)
{
	enum { ROWS = 96, COLUMNS = 64 };
	for (int64_t row = (a->dy.rows - 1) / ROWS * ROWS; row >= 0; row -= ROWS)
		for (int64_t column = 0; column < a->dy.columns; column += COLUMNS)
			cpu_wgrad_take_dy(replica, a, row, a->dy.rows - row < ROWS ? a->dy.rows - row : ROWS, column,
					  a->dy.columns - column < COLUMNS ? a->dy.columns - column : COLUMNS);
}

/* Hands dy over beforehand where that is possible, and leaves the workspace's first `offset` bytes alone. */
static void run_with(const struct cpu_wgrad *plain, int threads, bool beforehand, size_t offset)
{
	struct cpu_wgrad copy = *plain, *a = &copy;
	struct pool *pool;
	if (pool_create(&pool, threads) != OK)
		abort();
	struct backend backend = {.pool = pool};
	struct replica replica = {.backend = &backend};
	copy.offset = offset;
	copy.has_dy = beforehand && a->dy.rows > 0 && cpu_wgrad_takes_dy(a);
	replica.workspace_bytes = offset + cpu_wgrad_workspace_bytes(a->dy.rows, a->dy.columns, a->x.columns, threads);
	replica.workspace = aligned_alloc(256, (replica.workspace_bytes + 511) / 256 * 256);
	if (!replica.workspace)
		abort();
	memset(replica.workspace, 0xff, replica.workspace_bytes); /* NaN */
	if (a->has_dy)
		hand_over(&replica, a);
	cpu_wgrad(&replica, a);
	for (size_t i = 0; i < offset; i++)
		if (((unsigned char *)replica.workspace)[i] != 0xff)
			abort();
	free(replica.workspace);
	pool_free(pool);
}

static void run(const struct cpu_wgrad *a, int threads)
{
	run_with(a, threads, false, 0);
}

static int check_shape(struct rng *rng, enum dtype dtype, struct shape shape, bool overwrite)
{
	struct cpu_wgrad a = {.dy = random_matrix(rng, dtype, shape.rows, shape.outputs),
			      .x = random_matrix(rng, dtype, shape.rows, shape.inputs),
			      .overwrite = overwrite};
	size_t bytes = (size_t)(shape.outputs * shape.inputs) * sizeof(float);
	size_t sum_bytes = (size_t)shape.outputs * sizeof(float);
	float *start = random_matrix(rng, DTYPE_F32, shape.outputs, shape.inputs + 1).data, *start_sums = start;
	float *dw[2], *sums[2];
	for (int i = 0; i < 2; i++) {
		a.dw = dw[i] = allocate(bytes);
		a.column_sums = sums[i] = allocate(sum_bytes);
		memcpy(a.dw, start, bytes);
		memcpy(a.column_sums, start_sums, sum_bytes);
		run(&a, i == 0 ? 1 : 3);
	}
	int wrong = compare_with_loops(&a, start, start_sums);
	if (wrong)
		fprintf(stderr, "%s %s M=%ld O=%ld I=%ld overwrite=%d: %d wrong\n", cpu_level()->name,
			dtype == DTYPE_F32 ? "f32" : "bf16", (long)shape.rows, (long)shape.outputs, (long)shape.inputs, overwrite,
			wrong);
	if (memcmp(dw[0], dw[1], bytes) != 0 || memcmp(sums[0], sums[1], sum_bytes) != 0) {
		fprintf(stderr, "M=%ld O=%ld I=%ld: threads change bits\n", (long)shape.rows, (long)shape.outputs,
			(long)shape.inputs);
		wrong++;
	}
	/* It does not matter who lays out dy, either. */
	memcpy(dw[1], start, bytes);
	memcpy(sums[1], start_sums, sum_bytes);
	run_with(&a, 2, true, 512);
	if (memcmp(dw[0], dw[1], bytes) != 0 || memcmp(sums[0], sums[1], sum_bytes) != 0) {
		fprintf(stderr, "M=%ld O=%ld I=%ld: handing dy over changes bits\n", (long)shape.rows, (long)shape.outputs,
			(long)shape.inputs);
		wrong++;
	}
	/* Without column sums the rest is the same. */
	memcpy(dw[1], start, bytes);
	a.dw = dw[1];
	a.column_sums = NULL;
	run(&a, 2);
	wrong += memcmp(dw[0], dw[1], bytes) != 0;

	for (int i = 0; i < 2; i++) {
		free(dw[i]);
		free(sums[i]);
	}
	free(start);
	free(a.dy.data);
	free(a.x.data);
	return wrong;
}

static int check_all_shapes(void)
{
	enum cpu_isa isa;
	if (cpu_isa_detect(&isa) != OK)
		return LACKING;
	struct rng rng = rng_start(7, RNG_TEST, 0);
	int wrong = 0;
	for (int i = 0; i < SHAPE_COUNT; i++)
		for (int bf16 = 0; bf16 < 2; bf16++)
			wrong += check_shape(&rng, bf16 ? DTYPE_BF16 : DTYPE_F32, shapes[i], (i + bf16) % 2 == 0);
	return wrong != 0;
}

/* Skipped if the machine lacks the best level, which comes last. */
static void each_level_equals_loops(void **state)
{
	for (int isa = 0; isa < CPU_ISA_COUNT; isa++)
		if (!repeats_floats((enum cpu_isa)isa))
			check_level((enum cpu_isa)isa, check_all_shapes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_lower_the_level),
		cmocka_unit_test(unknown_name_is_a_usage_error),
		cmocka_unit_test(each_level_equals_loops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
