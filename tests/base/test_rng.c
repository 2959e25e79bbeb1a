/* Random numbers by known answers, and the distributions made from them. */
#include "test.h"
#include <math.h>
#include "base/rng.h"

/* Known-answer vectors of the authors' Random123 distribution (kat_vectors). */
static void philox_known_answers(void **state)
{
	static const struct {
		int rounds;
		uint32_t counter[4], key[2], expected[4];
	} rows[] = {
		{10, {0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{10,
		 {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
		 {0xffffffff, 0xffffffff},
		 {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{10,
		 {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
		 {0xa4093822, 0x299f31d0},
		 {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
		{7, {0, 0, 0, 0}, {0, 0}, {0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}},
		{7,
		 {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
		 {0xffffffff, 0xffffffff},
		 {0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}},
		{7,
		 {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
		 {0xa4093822, 0x299f31d0},
		 {0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const uint32_t *c = rows[i].counter;
		uint64_t key = (uint64_t)rows[i].key[1] << 32 | rows[i].key[0];
		struct philox got = philox4x32(key, c[0], c[1], c[2], c[3], rows[i].rounds);
		for (int k = 0; k < 4; k++)
			assert_int_equal(got.word[k], rows[i].expected[k]);
	}
}

/* A stream is the blocks (n, purpose, index) in order, and shares nothing with neighboring streams. */
static void streams_are_functions_of_their_index(void **state)
{
	struct rng rng = rng_start(42, RNG_MASK, 0x123456789);
	for (uint32_t block = 0; block < 5; block++) {
		struct philox expected = philox4x32(42, block, RNG_MASK, 0x23456789, 1, 10);
		for (int k = 0; k < 4; k++)
			assert_int_equal(rng_u32(&rng), expected.word[k]);
	}
	struct rng a = rng_start(42, RNG_MASK, 1), b = rng_start(42, RNG_DOCUMENT, 1), c = rng_start(43, RNG_MASK, 1);
	uint32_t first = rng_u32(&a);
	assert_int_not_equal(first, rng_u32(&b));
	assert_int_not_equal(first, rng_u32(&c));
}

static void uniform_draws(void **state)
{
	struct rng rng = rng_start(1, RNG_TEST, 0);
	double sum = 0, squares = 0;
	enum { N = 200000 };
	for (int i = 0; i < N; i++) {
		double x = rng_double(&rng);
		assert_true(x >= 0 && x < 1);
		sum += x;
		squares += x * x;
	}
	assert_true(fabs(sum / N - 0.5) < 0.003); /* five standard errors */
	assert_true(fabs(squares / N - 1.0 / 3) < 0.0035);

	/* Bounds that do not divide 2^32, and one where a draw without rejection would be visibly biased. */
	int counts[7] = {0};
	for (int i = 0; i < 70000; i++)
		counts[rng_below(&rng, 7)]++;
	for (int i = 0; i < 7; i++)
		assert_in_range(counts[i], 9500, 10500);
	int thirds = 0; /* without rejection every third value would come twice as often as the others */
	for (int i = 0; i < 30000; i++) {
		uint32_t x = rng_below(&rng, 0xC0000000);
		assert_true(x < 0xC0000000);
		thirds += x % 3 == 0;
	}
	assert_in_range(thirds, 9600, 10400);
	assert_int_equal(rng_below(&rng, 1), 0);
}

/* A normal distribution truncated at +-2 has the variance 1 - 4 phi(2) / (2 Phi(2) - 1) = 0.774. */
static void truncated_normal_draws(void **state)
{
	struct rng rng = rng_start(2, RNG_TEST, 0);
	double sum = 0, squares = 0, inner = 0;
	enum { N = 200000 };
	for (int i = 0; i < N; i++) {
		double x = rng_truncated_normal(&rng);
		assert_true(fabs(x) <= 2);
		sum += x;
		squares += x * x;
		inner += fabs(x) < 1;
	}
	assert_true(fabs(sum / N) < 0.01);
	assert_true(fabs(squares / N - 0.7737) < 0.01);
	assert_true(fabs(inner / N - 0.68269 / 0.9545) < 0.006);
}

/* Bulk draws are the same as single draws, and both are what the C library's functions give. */
static void truncated_normals_in_bulk(void **state)
{
	enum { N = 20000 };
	static double bulk[N];
	for (uint64_t index = 0; index < 3; index++) {
		struct rng start = rng_start(5, RNG_TEST, index << 32 | 7), rng = start, again = start;
		rng_truncated_normals(&start, bulk, N);
		for (int i = 0; i < N; i++)
			assert_true(bulk[i] == rng_truncated_normal(&rng));
		for (int i = 0; i < N; i++) {
			double expected;
			do {
				double radius = sqrt(-2 * log(1 - rng_double(&again)));
				double angle = 6.283185307179586 * rng_double(&again);
				expected = radius * cos(angle);
				if (fabs(expected) > 2)
					expected = radius * sin(angle);
			} while (fabs(expected) > 2);
			assert_true(fabs(bulk[i] - expected) < 4e-15);
		}
		double few[5];
		rng_truncated_normals(&start, few, 5);
		assert_memory_equal(few, bulk, sizeof few);
	}
}

static void permutations_hit_each_once(void **state)
{
	static const uint64_t counts[] = {1, 2, 3, 4, 5, 16, 17, 255, 1000, 4096, 4097, 70000};
	for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
		uint64_t count = counts[c];
		bool *seen = calloc(count, 1);
		uint64_t fixed = 0;
		for (uint64_t i = 0; i < count; i++) {
			uint64_t to = rng_permute(7, RNG_SHUFFLE, 3, count, i);
			assert_true(to < count && !seen[to]);
			seen[to] = true;
			fixed += to == i;
		}
		assert_true(count < 100 || fixed < 10);
		free(seen);
	}
	/* Large counts, for which a list would not fit in memory. */
	uint64_t huge = ((uint64_t)1 << 40) + 12345;
	for (uint64_t i = 0; i < 100; i++)
		assert_true(rng_permute(7, RNG_SHUFFLE, 0, huge, i * 1000003) < huge);
}

/* Over many rounds each of 5 values occurs equally often at each place (chi-square, 16 degrees of freedom), and neighbors
 * are separated. */
static void permutations_are_even(void **state)
{
	enum { N = 5, ROUNDS = 20000 };
	int counts[N][N] = {{0}}, ascents = 0;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint64_t last = 0;
		for (uint64_t i = 0; i < N; i++) {
			uint64_t to = rng_permute(11, RNG_SHUFFLE, round, N, i);
			counts[i][to]++;
			ascents += i > 0 && to > last;
			last = to;
		}
	}
	double chi = 0, expected = (double)ROUNDS / N;
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < N; j++)
			chi += (counts[i][j] - expected) * (counts[i][j] - expected) / expected;
	}
	assert_true(chi < 45); /* p = 0.0001 */
	assert_in_range(ascents, ROUNDS * 2 - 700, ROUNDS * 2 + 700);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(philox_known_answers),
		cmocka_unit_test(streams_are_functions_of_their_index),
		cmocka_unit_test(uniform_draws),
		cmocka_unit_test(truncated_normal_draws),
		cmocka_unit_test(truncated_normals_in_bulk),
		cmocka_unit_test(permutations_hit_each_once),
		cmocka_unit_test(permutations_are_even),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
