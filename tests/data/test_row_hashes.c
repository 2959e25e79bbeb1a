/* Hashes of examples: what is found in two sets, what repeats in one, and samples of fixed size. */
#include "data/row_hashes.h"
#include "test.h"

/* Examples of one id each, with the number's last digit as their class. */
static void make_set(struct labeled_set *set, int first, int count, int step)
{
	*set = (struct labeled_set){0};
	labeled_form(set, 0, 1, 0, false);
	for (int i = 0; i < count; i++) {
		const int32_t id = first + i * step, class = id % 10;
		assert_ok(labeled_begin(set));
		assert_ok(labeled_sequence(set, &id, 1, 1));
		assert_ok(labeled_item(set, 0, NULL, &class, NULL, 1));
	}
}

static void shared_texts_are_counted(void **state)
{
	struct labeled_set a, b;
	struct row_hashes all, sample;
	int64_t examined;
	make_set(&a, 0, 5000, 1);
	make_set(&b, 4000, 3000, 1);
	assert_ok(row_hashes_make(&all, &a, 0));
	assert_int_equal(row_hashes_count(&all, &b, &examined), 1000);
	assert_int_equal(examined, 3000);
	/* A third of the texts, in both sets. */
	assert_ok(row_hashes_make(&sample, &a, 500));
	assert_int_equal(sample.count, 500);
	assert_int_equal(row_hashes_count(&sample, &a, &examined), 500);
	assert_int_equal(examined, 500);
	int64_t shared = row_hashes_count(&sample, &b, &examined);
	assert_in_range(examined, 200, 400);
	assert_in_range(shared * 3, examined * 3 / 4, examined * 5 / 4);
	row_hashes_release(&all);
	row_hashes_release(&sample);
	labeled_release(&a);
	labeled_release(&b);
}

static void repeats_are_counted(void **state)
{
	struct row_repeats repeats;
	struct labeled_set set;
	make_set(&set, 7, 4, 0); /* the same four times */
	assert_ok(row_repeats_count(&repeats, &set));
	assert_int_equal(repeats.repeated, 3);
	assert_int_equal(repeats.contradicted, 0);
	set.items[0].classes[2] = 1;
	assert_ok(row_repeats_count(&repeats, &set));
	assert_int_equal(repeats.repeated, 2);
	assert_int_equal(repeats.contradicted, 4);
	labeled_release(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_texts_are_counted),
		cmocka_unit_test(repeats_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
