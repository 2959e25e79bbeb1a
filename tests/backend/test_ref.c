/* The reference back end, against which everything else is tested: its backward operations against finite differences of
 * its forward operations, all of it against PyTorch in float64, dropout against Philox's known answers and its rate. */
#include "test.h"
#include "cases.h"
#include "check.h"
#include "formats/safetensors.h"
#include "operations.h"
#include "backend/open.h"

static struct pool *pool;
static struct backend *ref;
static struct replica replica; /* for forward operations on a case's own arrays */

static int set_up(void **state)
{
	ref = open_backend("ref", DTYPE_F64, 1, &pool);
	open_reference_replica(ref, &replica);
	return 0;
}

static int tear_down(void **state)
{
	ref->functions->replica_release(&replica);
	backend_close(ref);
	pool_free(pool);
	return 0;
}

/* ---- Finite differences ---- */

/* Every backward operation with every option that changes the formula. */
static const char *const gradient_lines[] = {
	"embed_bwd T=9 H=7 V=6 S=5 B=3 longest=5",
	"embed_bwd T=12 H=19 V=6 S=9 B=2 longest=9 p=0.3",
	"embed_bwd T=9 H=7 V=6 S=5 B=3 longest=5 position=0 type=0 beta=0",
	"gated_bwd M=5 F=7 act=gelu_erf",
	"gated_bwd M=6 F=9 act=gelu_tanh p=0.3",
	"norm_bwd M=6 H=17 bias=1 p=0.3 add=1 beta=0",
	"norm_bwd M=6 H=8 dx=0 add=1",
	"norm_bwd M=5 H=7 bias=1",
	"norm_bwd M=5 H=1 eps=0.5",
	"norm_bwd M=6 H=17 bias=1 p=0.3",
	"norm_bwd M=6 H=8 bias=1 dx=0",
	"norm_bwd M=6 H=8 bias=1 pre=gelu_erf",
	"norm_bwd M=6 H=8 bias=1 pre=gelu_tanh",
	"norm_bwd M=6 H=8 bias=1 pre=silu",
	"linear_bwd M=5 O=3 I=7",
	"linear_bwd M=5 O=3 I=7 b=0 dx=0",
	"linear_bwd M=5 O=3 I=7 tanh=1 add=1",
	"linear_bwd M=5 O=6 I=7 pre=gelu_erf producer=1",
	"linear_bwd M=5 O=6 I=7 pre=gelu_tanh producer=1 add=1",
	"linear_bwd M=5 O=6 I=7 pre=silu producer=1 add=1",
	"linear_bwd M=5 O=6 I=7 pre=relu producer=1",
	"attention_bwd T=13 H=6 heads=2 B=3 longest=7 bias=1",
	"attention_bwd T=21 H=9 heads=3 B=2 longest=12 bias=1 p=0.3",
	"attention_bwd T=3 H=4 heads=1 B=3 longest=1",
	"attention_bwd T=21 H=9 heads=3 B=2 longest=12 bias=1 p=0.3 window=2",
	"gather_bwd T=9 P=4 H=3",
	"vocab_xent P=6 V=13 H=5",
	"vocab_max_bwd T=9 V=13 H=5 B=2",
	"xent N=7 C=2",
	"xent N=5 C=4",
	"xent N=5 C=4 smoothing=0.2",
	"squared_error N=7 C=3",
	"binary_xent N=7 C=3",
	"binary_xent N=7 C=3 positive=1",
	"group_xent E=5 B=17",
	"list_loss E=5 B=17",
	"list_loss E=5 B=17 kind=margins",
	"segment_xent T=23 B=4",
	"pointer_xent T=17 B=3 C=3 K=2 D=3",
	"soft_loss M=5 C=4 temperature=2",
	"soft_loss M=17 C=2 N=3 kind=rows temperature=3",
	"soft_loss M=5 C=3 kind=sigmoids temperature=2",
	"soft_loss M=5 C=3 kind=numbers",
	"hidden_error T=7 H=5 factor=3",
};

static double objective_at(struct test_case *c, double *variable, double value)
{
	*variable = value;
	*replica.scalars = c->scalars;
	double result = c->operation->objective(c, &replica);
	free_temporaries();
	return result;
}

/* Five-point central difference: error of order h^4. */
static double difference(struct test_case *c, double *variable)
{
	const double h = 1e-3;
	double near = objective_at(c, variable, h) - objective_at(c, variable, -h);
	double far = objective_at(c, variable, 2 * h) - objective_at(c, variable, -2 * h);
	*variable = 0;
	return (8 * near - far) / (12 * h);
}

static double worst_difference;

static void check_gradient_array(struct test_case *c, struct array *a)
{
	double scale = root_mean_square(a->expected, array_size(a));
	for (int64_t i = 0; i < array_size(a); i++) {
		double expected = difference(c, &a->value[i]), error = fabs(a->expected[i] - expected);
		/* An array of zeros (scores of a single key have no gradient) must be zero up to rounding. */
		error /= fmax(scale, 1e-3);
		worst_difference = fmax(worst_difference, error);
		if (!(error < 1e-8))
			fail_msg("%s: '%s'[%lld] is %.12g, finite difference %.12g", c->line, a->name, (long long)i,
				 a->expected[i], expected);
	}
}

static void test_finite_differences(void **state)
{
	for (size_t l = 0; l < sizeof gradient_lines / sizeof gradient_lines[0]; l++) {
		struct test_case c;
		case_create(&c, gradient_lines[l], DTYPE_F64, &replica);
		case_expect(&c, ref);
		for (int i = 0; i < c.count; i++) /* no displacements yet */
			if (c.arrays[i].role == OUTPUT || c.arrays[i].role == ACCUMULATED)
				memset(c.arrays[i].value, 0, (size_t)array_size(&c.arrays[i]) * sizeof(double));
		int checked = 0;
		for (int i = 0; i < c.count; i++) {
			/* Arrays in double hold losses, not gradients; a softmax's sum is not a gradient, either. */
			if ((c.arrays[i].role != OUTPUT && c.arrays[i].role != ACCUMULATED) || c.arrays[i].kind == DOUBLE ||
			    strcmp(c.arrays[i].name, "lse") == 0)
				continue;
			check_gradient_array(&c, &c.arrays[i]);
			checked++;
		}
		assert_true(checked > 0);
		case_release(&c);
	}
	if (getenv("BERTC_TEST_MARGINS") != NULL)
		fprintf(stderr, "finite differences: largest error %.2e of the rms\n", worst_difference);
}

/* ---- PyTorch ---- */

static const char golden_path[] = "tests/golden/operations.safetensors";
static struct safetensors golden;

/* "k/in/x" as doubles, or NULL; must have `count` elements. */
static double *golden_values(const char *k, const char *way, const char *name, int64_t count)
{
	char full[64];
	snprintf(full, sizeof full, "%s/%s/%s", k, way, name);
	const struct safetensors_entry *entry = safetensors_find(&golden, full);
	if (entry == NULL)
		return NULL;
	if (entry->count != count)
		fail_msg("'%s' has %lld numbers instead of %lld", full, (long long)entry->count, (long long)count);
	double *out = new_doubles(count);
	assert_int_equal(safetensors_to_double(entry, golden_path, out), OK);
	return out;
}

static void golden_integers(const char *k, const char *name, int64_t count, int32_t *out)
{
	char full[64];
	snprintf(full, sizeof full, "batch.%s", name);
	double *values = golden_values(k, "in", full, count);
	assert_non_null(values);
	for (int64_t i = 0; i < count; i++)
		out[i] = (int32_t)(uint32_t)values[i];
	free(values);
}

static void golden_batch(const char *k, struct batch *b)
{
	golden_integers(k, "ids", b->token_count, b->ids);
	golden_integers(k, "types", b->token_count, b->types);
	golden_integers(k, "positions", b->token_count, b->positions);
	golden_integers(k, "token_samples", b->token_count, (int32_t *)b->token_samples);
	golden_integers(k, "starts", b->sequence_count + 1, b->starts);
	golden_integers(k, "samples", b->sequence_count, (int32_t *)b->samples);
	sort_ids = b->ids;
	qsort(b->id_order, (size_t)b->token_count, sizeof *b->id_order, compare_ids);
}

/* Puts the golden inputs into the case, runs it, and replaces its expected values by the golden outputs. */
static void golden_case(struct checker *k, const char *number, const char *line)
{
	struct test_case c;
	case_create(&c, line, DTYPE_F64, &replica);
	double *seed = golden_values(number, "in", "seed", 2);
	assert_non_null(seed);
	c.scalars.seed = (uint64_t)seed[1] << 32 | (uint64_t)seed[0];
	free(seed);
	if (c.has_batch)
		golden_batch(number, &c.batch);
	for (int i = 0; i < c.count; i++) {
		struct array *a = &c.arrays[i];
		double *in = golden_values(number, "in", a->name, array_size(a));
		if (in == NULL) {
			bool sum = strcmp(a->name, "loss") == 0 || strcmp(a->name, "correct") == 0;
			if (!sum && a->role != OUTPUT && a->role != ACCUMULATED)
				fail_msg("%s: no golden input '%s'", line, a->name);
			continue;
		}
		free(a->value);
		a->value = in;
	}
	case_expect(&c, ref); /* for the scalars, which are not in the golden file */
	for (int i = 0; i < c.count; i++) {
		struct array *a = &c.arrays[i];
		if (a->role == INPUT || a->role == SCRATCH)
			continue;
		double *out = golden_values(number, "out", a->name, array_size(a));
		if (out == NULL)
			fail_msg("%s: no golden output '%s'", line, a->name);
		free(a->expected);
		a->expected = out;
	}
	check_case(k, &c);
	case_release(&c);
}

static void test_pytorch(void **state)
{
	assert_int_equal(safetensors_open(&golden, golden_path), OK);
	struct checker k = {.backend = ref};
	int64_t cases = 0;
	bool seen[OPERATION_COUNT] = {false};
	assert_int_equal(golden.metadata.count, 1);
	char *lines = golden.metadata.names[0];
	assert_memory_equal(lines, "cases=", 6);
	for (char *line = strtok(lines + 6, "\n"); line != NULL; line = strtok(NULL, "\n"), cases++) {
		char number[24];
		snprintf(number, sizeof number, "%lld", (long long)cases);
		golden_case(&k, number, line);
		seen[find_operation(line, strcspn(line, " ")) - operation_tests] = true;
	}
	assert_int_equal(cases, 91);
	for (size_t i = 0; i < OPERATION_COUNT; i++)
		if (!seen[i] && strcmp(operation_table[i].name, "sumsq_finite") != 0)
			fail_msg("no golden case of %s", operation_table[i].name);
	print_margins(&k, "ref and PyTorch");
	assert_int_equal(k.failures, 0);
	safetensors_close(&golden);
}

/* ---- All cases on the reference itself ---- */

static void test_same_bits(void **state)
{
	struct pool *two_threads;
	struct backend *two = open_backend("ref", DTYPE_F64, 2, &two_threads);
	struct checker k = {.backend = ref, .other = two};
	for (int i = 0; i < CASE_COUNT; i++) {
		struct test_case c;
		case_create(&c, case_lines[i], DTYPE_F64, &replica);
		if (c.limits.hidden < 512 && c.limits.vocab < 10000) { /* large sizes are for faster back ends */
			case_expect(&c, ref);
			check_case(&k, &c);
		}
		case_release(&c);
	}
	backend_close(two);
	pool_free(two_threads);
	assert_int_equal(k.failures, 0);
}

/* The sum of squares of random values: not covered by the golden files. */
static void test_square_sum(void **state)
{
	double first[] = {3, 4}, second[] = {1, 2, 2}, bad[] = {1, INFINITY};
	*replica.scalars = (struct scalars){.gradient_square_sum = 99, .finite = 0};
	sumsq_finite(&replica, &(struct sumsq_finite){.range = f64_tensor(first, 1, 2)});
	assert_true(replica.scalars->gradient_square_sum == 25 && replica.scalars->finite == 1);
	sumsq_finite(&replica, &(struct sumsq_finite){.range = f64_tensor(second, 1, 3), .add = true});
	assert_true(replica.scalars->gradient_square_sum == 34 && replica.scalars->finite == 1);
	sumsq_finite(&replica, &(struct sumsq_finite){.range = f64_tensor(bad, 1, 2), .add = true});
	assert_int_equal(replica.scalars->finite, 0);
	sumsq_finite(&replica, &(struct sumsq_finite){.range = f64_tensor(first, 1, 2), .add = true});
	assert_int_equal(replica.scalars->finite, 0);
}

/* The loss scale, step after step: how many steps of one kind, and the scale after them. */
static void test_loss_scale(void **state)
{
	enum { GOOD, OVERFLOWS, BAD_LOSS };
	static const struct {
		int kind, steps;
		double scale;
		int64_t clean_steps;
	} course[] = {
		{GOOD, 1999, 65536, 1999},   {GOOD, 1, 131072, 0},       {OVERFLOWS, 3, 16384, 0},   {GOOD, 5, 16384, 5},
		{BAD_LOSS, 4, 16384, 5},     {OVERFLOWS, 1, 8192, 0},    {GOOD, 22000, 16777216, 0}, {GOOD, 4000, 16777216, 0},
		{OVERFLOWS, 38, 0x1p-14, 0}, {OVERFLOWS, 1, 0x1p-14, 0}, {GOOD, 2000, 0x1p-13, 0},
	};
	double gradient[] = {1, 2}, overflow[] = {1, INFINITY};
	*replica.scalars = (struct scalars){.loss_scale = 65536, .dynamic_scale = 1};
	struct accumulators fine = {{3}}, bad = {{NAN}};
	for (size_t i = 0; i < sizeof course / sizeof *course; i++) {
		for (int step = 0; step < course[i].steps; step++) {
			double before = replica.scalars->loss_scale;
			sumsq_finite(&replica, &(struct sumsq_finite){
						       .range = f64_tensor(course[i].kind == GOOD ? gradient : overflow, 1, 2),
						       .sums = course[i].kind == BAD_LOSS ? &bad : &fine,
						       .decides = true,
					       });
			assert_true(replica.scalars->gradient_scale == before);
			assert_int_equal(replica.scalars->finite, course[i].kind == GOOD);
		}
		assert_true(replica.scalars->loss_scale == course[i].scale);
		assert_int_equal(replica.scalars->clean_steps, course[i].clean_steps);
	}
}

/* Ties: the lowest index wins. */
static void test_ties(void **state)
{
	double words[] = {1, 2, 2, 0, 2}, no_bias[5] = {0}, one[] = {1}, twice[] = {1, 1}, loss = 0, correct = 0;
	struct weight table = {.master = f64_tensor(words, 5, 1)}, bias = {.master = f64_tensor(no_bias, 1, 5)};
	const float weights[] = {1, 1};
	const int32_t labels[] = {1, 2};
	vocab_xent(&replica, &(struct vocab_xent){.table = &table,
						  .bias = &bias,
						  .labels = labels,
						  .weights = weights,
						  .loss = &loss,
						  .correct = &correct,
						  .x = f64_tensor(twice, 2, 1)});
	assert_true(correct == 1);
	int32_t ids[4];
	double probabilities[4];
	vocab_topk(&replica, &(struct vocab_topk){.table = &table,
						  .bias = &bias,
						  .k = 4,
						  .ids = ids,
						  .probabilities = probabilities,
						  .x = f64_tensor(one, 1, 1)});
	const int32_t best[] = {1, 2, 4, 0};
	assert_memory_equal(ids, best, sizeof best);
	double logits[] = {3, 3, 3, 3};
	const int32_t classes[] = {0, 1};
	const float class_weights[] = {1, 1};
	correct = 0;
	xent(&replica, &(struct xent){.labels = classes,
				      .weights = class_weights,
				      .loss = &loss,
				      .correct = &correct,
				      .logits = f64_tensor(logits, 2, 2)});
	assert_true(correct == 1);
}

/* ---- Dropout ---- */

/* philox4x32-7 from Random123's kat_vectors (Salmon et al.), and how we use its words. */
static void test_philox_known_answers(void **state)
{
	static const struct {
		uint32_t counter[4], key[2], word[4];
	} answers[] = {
		{{0, 0, 0, 0}, {0, 0}, {0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}},
		{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
		 {0xffffffff, 0xffffffff},
		 {0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}},
		{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
		 {0xa4093822, 0x299f31d0},
		 {0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}},
	};
	for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
		const uint32_t *c = answers[i].counter, *word = answers[i].word;
		uint64_t key = (uint64_t)answers[i].key[1] << 32 | answers[i].key[0];
		struct philox block = philox4x32(key, c[0], c[1], c[2], c[3], 7);
		assert_memory_equal(block.word, word, sizeof block.word);
		uint16_t u[8];
		dropout_block(key, c[0], c[1], c[2], c[3], u);
		for (int j = 0; j < 8; j++) /* low half first */
			assert_int_equal(u[j], word[j / 2] >> (j % 2 ? 16 : 0) & 0xffff);
	}
}

/* Applies dropout to rows of ones. */
static void ones_through_dropout(struct test_case *c, struct dropout dropout, double *out, int64_t rows, int64_t width)
{
	for (int64_t i = 0; i < rows * width; i++)
		out[i] = 1;
	for (int64_t t = 0; t < rows; t++)
		ref_dropout_row(&replica, &dropout, &c->batch, t, out + t * width, width);
}

static void test_dropout_rate(void **state)
{
	enum { TOKENS = 1000, WIDTH = 200 };
	struct test_case c;
	case_create(&c, "attention_fwd T=1000 H=8 heads=1 B=3 longest=400", DTYPE_F64, &replica);
	double *first = new_doubles(TOKENS * WIDTH), *second = new_doubles(TOKENS * WIDTH);
	static const double rates[] = {0.1, 0.25, 0.5, 0.9};
	for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
		double p = rates[r];
		replica.scalars->seed = 77;
		ones_through_dropout(&c, (struct dropout){.p = p, .site = 5}, first, TOKENS, WIDTH);
		double sum = 0, neighbors = 0, below = 0;
		for (int64_t i = 0; i < TOKENS * WIDTH; i++) {
			assert_true(first[i] == 0 || fabs(first[i] * (1 - p) - 1) < 1e-4);
			sum += first[i];
			neighbors += first[i] != 0 && i % WIDTH > 0 && first[i - 1] != 0;
			below += first[i] != 0 && i >= WIDTH && first[i - WIDTH] != 0;
		}
		/* The mean stays 1, and two neighbors are kept independently of each other: within five standard
		 * deviations. */
		double count = TOKENS * WIDTH, keep = 1 - p;
		assert_true(fabs(sum / count - 1) < 5 * sqrt(p / keep / count));
		double pair = 5 * sqrt(keep * keep * (1 - keep * keep) * 3 / count);
		assert_true(fabs(neighbors / (count - TOKENS) - keep * keep) < pair);
		assert_true(fabs(below / (count - WIDTH) - keep * keep) < pair);

		/* Another site, sample or seed gives another mask: as many agreements as by chance. */
		for (int change = 0; change < 3; change++) {
			replica.scalars->seed = change == 0 ? 78 : 77;
			if (change == 1)
				for (int64_t t = 0; t < TOKENS; t++)
					c.batch.token_samples[t]++;
			ones_through_dropout(&c, (struct dropout){.p = p, .site = change == 2 ? 6 : 5}, second, TOKENS, WIDTH);
			double same = 0, chance = keep * keep + p * p;
			for (int64_t i = 0; i < TOKENS * WIDTH; i++)
				same += (first[i] == 0) == (second[i] == 0);
			assert_true(fabs(same / count - chance) < 5 * sqrt(chance * (1 - chance) / count) + 1e-12);
			if (change == 1)
				for (int64_t t = 0; t < TOKENS; t++)
					c.batch.token_samples[t]--;
		}
	}
	free(first);
	free(second);
	case_release(&c);
}

/* The masks of a sequence do not depend on what it is packed with. */
static void test_dropout_packing(void **state)
{
	enum { WIDTH = 24 };
	struct test_case c;
	case_create(&c, "attention_fwd T=50 H=8 heads=1 B=2 longest=30", DTYPE_F64, &replica);
	double together[50 * WIDTH], alone[20 * WIDTH];
	struct dropout dropout = {.p = 0.3, .site = 2};
	ones_through_dropout(&c, dropout, together, 50, WIDTH);
	struct test_case second = c; /* its second sequence, alone */
	second.batch.positions += 30;
	second.batch.token_samples += 30;
	ones_through_dropout(&second, dropout, alone, 20, WIDTH);
	assert_memory_equal(alone, together + 30 * WIDTH, sizeof alone);
	case_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_philox_known_answers),
		cmocka_unit_test(test_dropout_rate),
		cmocka_unit_test(test_dropout_packing),
		cmocka_unit_test(test_finite_differences),
		cmocka_unit_test(test_pytorch),
		cmocka_unit_test(test_square_sum),
		cmocka_unit_test(test_loss_scale),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_same_bits),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
