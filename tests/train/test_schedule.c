/* Learning rates against those of other programs' code (tests/golden/schedules.json), and the shapes of our own. */
#include "base/json.h"
#include "base/option.h"
#include "test.h"
#include "train/schedule.h"

static const char golden_path[] = "tests/golden/schedules.json";

static double number_of(const struct json *row, const char *key)
{
	double value = 0;
	assert_ok(json_get_number(row, golden_path, key, &value));
	return value;
}

/* Every rate of every schedule, as computed by other people's code (dev/schedule_golden.py). */
static void test_tables(void **state)
{
	struct json_document document;
	assert_ok(json_read(&document, golden_path, 1 << 20));
	bool seen[SCHEDULE_SHAPE_COUNT] = {false};
	for (const struct json *row = document.root->first_child; row; row = row->next) {
		const char *shape = NULL;
		assert_ok(json_get_string(row, golden_path, "shape", &shape));
		struct schedule schedule = {.shape = (unsigned)option_word(SCHEDULE_NAMES, shape),
					    .peak = number_of(row, "peak"),
					    .end = number_of(row, "end"),
					    .warmup_steps = number_of(row, "warmup_steps"),
					    .total_steps = (int64_t)number_of(row, "total_steps"),
					    .degree = number_of(row, "degree"),
					    .decay_steps = (int64_t)number_of(row, "decay_steps")};
		seen[schedule.shape] = true;
		int64_t t = 1;
		for (const struct json *rate = json_member(row, "rates")->first_child; rate; rate = rate->next, t++) {
			double got = schedule_rate(&schedule, t), error = got - rate->number;
			if (!(error <= 1e-13 * schedule.peak && error >= -1e-13 * schedule.peak))
				fail_msg("%s W=%g N=%lld: rate of update %lld is %.17g, expected %.17g", shape,
					 schedule.warmup_steps, (long long)schedule.total_steps, (long long)t, got, rate->number);
		}
		assert_true(t > schedule.total_steps);
	}
	for (int i = 0; i < SCHEDULE_SHAPE_COUNT; i++)
		assert_true(seen[i]);
	json_release(&document);
}

/* The shapes of our own schedules: never 0 during the run, highest at the end of the warm-up, no jumps; past the end of
 * the run, the final value. */
static void test_shapes(void **state)
{
	for (int shape = SCHEDULE_LINEAR; shape < SCHEDULE_SHAPE_COUNT; shape++) {
		if (shape == SCHEDULE_GOOGLE_LINEAR || shape == SCHEDULE_NVIDIA_POLY)
			continue;
		for (int64_t warmup = 0; warmup <= 100; warmup += 25) {
			struct schedule schedule = {.shape = (enum schedule_shape)shape,
						    .peak = 1e-3,
						    .end = 1e-5,
						    .warmup_steps = (double)warmup,
						    .total_steps = 100,
						    .degree = 2,
						    .decay_steps = warmup < 100 ? 25 : 0};
			double before = schedule_rate(&schedule, 1);
			assert_true(before > 0 && before <= 1e-3);
			for (int64_t t = 2; t <= 100; t++) {
				double rate = schedule_rate(&schedule, t), change = rate - before;
				assert_true(rate > 0 && rate <= 1e-3);
				assert_true(t <= warmup ? change > 0 : change <= 0);
				assert_true(change < 1e-4 && change > -1e-4);
				before = rate;
			}
			if (warmup > 0)
				assert_near(schedule_rate(&schedule, warmup), 1e-3, 0);
			if (shape != SCHEDULE_CONSTANT && shape != SCHEDULE_INVERSE_SQRT)
				assert_near(schedule_rate(&schedule, 1000), 1e-5, 0);
		}
	}
}

/* inverse_sqrt never falls below `end`; degree 0 is 1. */
static void test_edges(void **state)
{
	struct schedule root = {.shape = SCHEDULE_INVERSE_SQRT, .peak = 1, .end = 0.25, .warmup_steps = 4, .total_steps = 1000};
	assert_near(schedule_rate(&root, 16), 0.5, 1e-15);
	assert_near(schedule_rate(&root, 1000), 0.25, 0);
	struct schedule poly = {.shape = SCHEDULE_POLY, .peak = 1, .total_steps = 4};
	assert_near(schedule_rate(&poly, 1), 0.8, 1e-15);
	struct schedule nvidia = {
		.shape = SCHEDULE_NVIDIA_POLY, .peak = 6e-3, .warmup_steps = 0.2843 * 7038, .total_steps = 7038, .degree = 0.5};
	/* The jump at the end of the warm-up that the original runs have: from 6e-3 to 0.846 of it. */
	assert_near(schedule_rate(&nvidia, 2000), 6e-3, 3e-6);
	assert_near(schedule_rate(&nvidia, 2001), 0.846 * 6e-3, 3e-6);
	assert_near(schedule_rate(&nvidia, 7038), 0, 0);
	struct schedule google = {.shape = SCHEDULE_GOOGLE_LINEAR, .peak = 1, .warmup_steps = 10, .total_steps = 100};
	assert_near(schedule_rate(&google, 1), 0, 0);
	assert_near(schedule_rate(&google, 10), 0.9, 1e-15);
	assert_near(schedule_rate(&google, 11), 0.9, 1e-15); /* relative to a peak that is never reached */
	assert_near(schedule_rate(&google, 200), 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_edges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
