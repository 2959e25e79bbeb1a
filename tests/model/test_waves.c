/* Waves of tiles, and the capacity chosen from them. */
#include "test.h"
#include "model/waves.h"

static const int64_t base[2] = {768, 3072}, large[2] = {1024, 4096};

static struct wave_model model_of(int32_t processors, const int64_t widths[2])
{
	return (struct wave_model){.processors = processors, .hidden = widths[0], .intermediate = widths[1]};
}

/* By hand: the columns of tiles are 3H / 256, H / 256, F / 256 (large 12, 4, 16; base 9, 3, 12); the rows of tiles must
 * make each product a multiple of the number of multiprocessors. */
static void whole_waves_by_hand(void **state)
{
	static const struct {
		int32_t processors;
		const int64_t *widths;
		int64_t rows;
	} cases[] = {
		{132, large, 33}, /* 4 rows: 33; 12: 11; 16: 33 */
		{132, base, 44},  /* 3: 44; 9: 44; 12: 11 */
		{108, large, 27}, /* 4: 27; 12: 9; 16: 27 */
		{108, base, 36},  /* 3: 36; 9: 12; 12: 9 */
		{114, large, 57}, /* 4: 57; 12: 19; 16: 57 */
		{114, base, 38},  /* 3: 38; 9: 38; 12: 19 */
		{1, large, 1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct wave_model model = model_of(cases[i].processors, cases[i].widths);
		int64_t quantum = 128 * cases[i].rows;
		for (int64_t k = 1; k <= 3; k++)
			assert_true(waves_filled(&model, k * quantum) == 1);
		/* No smaller number does. */
		for (int64_t tokens = 128; tokens < quantum; tokens += 128)
			assert_true(waves_filled(&model, tokens) < 1);
	}
}

/* One row of tiles more than whole waves costs every product another wave, except that the products for the weight
 * gradients grow evenly. */
static void the_last_wave_is_a_whole_one(void **state)
{
	struct wave_model model = model_of(132, large);
	double h = 1024, f = 4096, weights = 4 * h * h + 2 * h * f, wave = 2.0 * 128 * 256 * 132;
	/* Terms of the sums: H, 3H; H, H; H, F; F, H. */
	double all = wave * (h + 3 * h + h + h + h + f + f + h);
	assert_near(waves_cost(&model, 4225) - waves_cost(&model, 4224), all + 2 * weights, 1);
	assert_near(waves_cost(&model, 4352) - waves_cost(&model, 4225), 127 * 2 * weights, 1);
	/* 33 rows of 4, 12 and 16 columns are 1, 3 and 4 waves. */
	double filled = wave * (1 * (3 * h + h + h + f + f) + 3 * h + 4 * (h + h));
	assert_near(waves_cost(&model, 4224) - waves_cost(&model, 0), filled + 4224 * 2 * weights, 1);
	assert_near(filled, 2 * 2 * 4224 * weights, 1); /* nothing is lost */
	/* 64 rows: 256, 768 and 1,024 tiles in 2, 6 and 8 waves. */
	assert_near(waves_filled(&model, 8192), 64 / 66.0, 1e-12);
}

/* 88 rows of tiles are 2 quanta of 44, 66 are 2 of 33; 97 processors, a prime, are never all busy. */
static void batches_of_answers_fill_whole_waves(void **state)
{
	struct wave_model on_h100 = model_of(132, base), wide = model_of(132, large), odd = model_of(97, base);
	assert_int_equal(waves_fullest(&on_h100, 8192), 88 * 128);
	assert_int_equal(waves_fullest(&wide, 8192), 66 * 128);
	int64_t tokens = waves_fullest(&odd, 8192);
	assert_true(tokens % 128 == 0 && tokens >= 8192 && tokens <= 16384);
	for (int64_t other = 8192; other <= 16384; other += 128)
		assert_true(waves_filled(&odd, other) <= waves_filled(&odd, tokens));
}

/* Like the GPU's back end: up to a multiple of 128, with at least one token for an added sequence. */
static int32_t to_128(int32_t tokens, int32_t sequences, int32_t longest)
{
	(void)sequences, (void)longest;
	return tokens % 128 == 0 ? tokens : (tokens + 1 + 127) / 128 * 128;
}

static int64_t chosen(int32_t processors, const int64_t widths[2], int64_t instances, double mean, int64_t most)
{
	struct wave_model model = model_of(processors, widths);
	struct wave_work work = {.instances = instances, .longest = 128, .mean = mean, .most = most, .filled = to_128};
	int64_t capacity = waves_choose(&model, &work);
	assert_true(capacity >= 128 && capacity <= most);
	/* A micro-batch below the capacity is never padded beyond the shape. */
	for (int64_t tokens = capacity - 128; tokens <= capacity; tokens++)
		assert_true(mean == 128 || to_128((int32_t)tokens, 1, 128) <= waves_shape(&work, capacity));
	return capacity;
}

static void capacities_fill_whole_waves(void **state)
{
	/* All sequences have 128 tokens: nothing is lost to varying lengths, so the most that fit. */
	assert_int_equal(chosen(132, large, 4096, 128, 16000), 3 * 4224);
	assert_int_equal(chosen(132, base, 4096, 128, 16000), 2 * 5632);
	assert_int_equal(chosen(108, large, 4096, 128, 16000), 4 * 3456);
	assert_int_equal(chosen(114, base, 4096, 128, 16000), 3 * 4864);
	/* Lengths vary: the padded shape has whole waves. */
	struct wave_work work = {.instances = 4096, .longest = 128, .mean = 64, .most = 16000, .filled = to_128};
	struct wave_model model = model_of(132, large);
	int64_t capacity = waves_choose(&model, &work);
	assert_int_equal(waves_shape(&work, capacity), 3 * 4224);
	assert_in_range(capacity, 3 * 4224 - 64, 3 * 4224);
}

/* The gain from whole waves is weighed against its cost. */
static void whole_waves_are_not_all(void **state)
{
	/* 2 x 4,096 tokens are 64 rows of the 66 for which the waves have room; 4,224 and the remainder would take one
	 * more micro-batch to save 12 waves. */
	struct wave_model model = model_of(132, large);
	assert_int_equal(chosen(132, large, 128, 128, 8192), 8192);
	assert_true(waves_cost(&model, 8192) + waves_cost(&model, 8192) <
		    3 * waves_cost(&model, 4224) + waves_cost(&model, 3712));
	assert_int_equal(chosen(132, large, 128, 128, 8320), 8192);
	/* If a wave is most of a micro-batch, saving waves is worth another micro-batch. */
	assert_int_equal(chosen(132, base, 4096, 128, 8192), 5632);
	/* One multiprocessor: all waves are whole, and the smallest number of micro-batches wins. */
	assert_int_equal(chosen(1, base, 96, 128, 8192), 6144);
	/* No room for a choice. */
	assert_int_equal(chosen(132, base, 96, 128, 128), 128);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_waves_by_hand),
		cmocka_unit_test(the_last_wave_is_a_whole_one),
		cmocka_unit_test(batches_of_answers_fill_whole_waves),
		cmocka_unit_test(capacities_fill_whole_waves),
		cmocka_unit_test(whole_waves_are_not_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
