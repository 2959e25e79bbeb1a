/* Which candidates become hard negatives, case by case as sentence-transformers' mine_hard_negatives() decides them. */
#include <math.h>
#include "test.h"
#include "infer/hard_negatives.h"

static const struct negative_candidate near[] = {{0.2, 9}, {0.9, 3}, {0.8, 5}, {0.7, 1}, {0.95, 2}, {0.5, 4}, {-0.4, 6}};
enum { NEAR = sizeof near / sizeof *near };

static const struct negative_rules open_rules = {
	.max_score = NAN, .min_score = NAN, .absolute_margin = NAN, .relative_margin = NAN, .range_max = 100, .count = 2};

/* `expected`: documents, up to -1. */
static void check(const struct negative_rules *rules, double lowest, const int32_t *expected)
{
	static const int32_t positives[] = {3, 7};
	struct negative_candidate candidates[NEAR];
	struct negative_counts counts = {0};
	struct query_positives with = {.documents = positives, .count = 2, .lowest = lowest, .self = 2};
	memcpy(candidates, near, sizeof near);
	int64_t count = negatives_choose(rules, 0, &with, candidates, NEAR, &counts), i = 0;
	assert_int_equal(counts.positives, 2); /* one, and the text itself */
	for (; i < count; i++)
		assert_int_equal(candidates[i].document, expected[i]);
	assert_int_equal(expected[i], -1);
}

#define CHECK(rules, lowest, ...) check(&(rules), lowest, (const int32_t[]){__VA_ARGS__, -1})

static void rules_leave_out(void **state)
{
	struct negative_rules rules = open_rules;
	(void)state;
	CHECK(rules, 0.85, 5, 1);
	rules.range_min = 1;
	CHECK(rules, 0.85, 1, 4);
	rules.range_max = 2;
	CHECK(rules, 0.85, 1);
	rules = open_rules;
	rules.absolute_margin = 0.1; /* 0.75 at most */
	CHECK(rules, 0.85, 1, 4);
	rules.range_min = 1; /* counted among those that are left */
	CHECK(rules, 0.85, 4, 9);
	rules = open_rules;
	rules.relative_margin = 0.3; /* 0.595 at most */
	CHECK(rules, 0.85, 4, 9);
	CHECK(rules, -0.5, -1); /* -0.65 at most, not -0.35 */
	rules = open_rules;
	rules.max_score = 0.7;
	rules.min_score = 0.5;
	rules.count = 5;
	CHECK(rules, 0.85, 1, 4);
}

static void draws_from_the_range(void **state)
{
	struct negative_rules rules = open_rules;
	struct query_positives none = {.self = -1};
	struct negative_counts counts = {0};
	int chosen[10] = {0};
	(void)state;
	rules.random = true;
	rules.range_max = 4;
	for (int64_t query = 0; query < 300; query++) {
		struct negative_candidate candidates[NEAR];
		memcpy(candidates, near, sizeof near);
		assert_int_equal(negatives_choose(&rules, query, &none, candidates, NEAR, &counts), 2);
		assert_true(candidates[0].score > candidates[1].score);
		chosen[candidates[0].document]++;
		chosen[candidates[1].document]++;
	}
	assert_int_equal(chosen[1] + chosen[2] + chosen[3] + chosen[5], 600);
	assert_true(chosen[1] > 100 && chosen[2] > 100 && chosen[3] > 100 && chosen[5] > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(rules_leave_out), cmocka_unit_test(draws_from_the_range)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
