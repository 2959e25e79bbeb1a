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
	struct row_matches matches;
	make_set(&a, 0, 5000, 1);
	make_set(&b, 4000, 3000, 1);
	assert_ok(row_hashes_make(&all, &a, 0));
	assert_ok(row_hashes_count(&matches, &all, &b));
	assert_int_equal(matches.found, 1000);
	assert_int_equal(matches.examined, 3000);
	assert_int_equal(matches.swapped, 0);
	/* A third of the texts, in both sets. */
	assert_ok(row_hashes_make(&sample, &a, 500));
	assert_int_equal(sample.count, 500);
	assert_ok(row_hashes_count(&matches, &sample, &a));
	assert_int_equal(matches.found, 500);
	assert_int_equal(matches.examined, 500);
	assert_ok(row_hashes_count(&matches, &sample, &b));
	assert_in_range(matches.examined, 200, 400);
	assert_in_range(matches.found * 3, matches.examined * 3 / 4, matches.examined * 5 / 4);
	row_hashes_release(&all);
	row_hashes_release(&sample);
	labeled_release(&a);
	labeled_release(&b);
}

static void add_pair(struct labeled_set *set, const int32_t *ids, int32_t count, int32_t second)
{
	assert_ok(labeled_begin(set));
	assert_ok(labeled_sequence(set, ids, count, second));
}

/* Pairs as BERT's and RoBERTa's templates write them, and in two sequences. */
static void swapped_pairs_are_counted(void **state)
{
	static const int32_t bert[] = {101, 7, 8, 102, 9, 102}, bert_swapped[] = {101, 9, 102, 7, 8, 102};
	static const int32_t roberta[] = {0, 7, 2, 2, 9, 10, 2}, roberta_swapped[] = {0, 9, 10, 2, 2, 7, 2};
	static const int32_t alone[] = {101, 7, 8, 102}, same[] = {101, 5, 102, 5, 102}, other[] = {101, 8, 7, 102, 9, 102};
	struct labeled_set train = {0}, dev = {0};
	struct row_hashes hashes;
	struct row_matches matches;
	add_pair(&train, bert, 6, 4);
	add_pair(&train, roberta, 7, 3);
	add_pair(&train, alone, 4, 4);
	assert_ok(labeled_sequence(&train, other, 4, 4));
	add_pair(&train, same, 5, 3);
	add_pair(&dev, bert_swapped, 6, 3);
	add_pair(&dev, roberta_swapped, 7, 4);
	add_pair(&dev, other, 4, 4);
	assert_ok(labeled_sequence(&dev, alone, 4, 4));
	add_pair(&dev, same, 5, 3);
	add_pair(&dev, other, 6, 4);
	assert_ok(row_hashes_make(&hashes, &train, 0));
	assert_ok(row_hashes_count(&matches, &hashes, &dev));
	assert_int_equal(matches.examined, 5);
	assert_int_equal(matches.found, 1);
	assert_int_equal(matches.swap_examined, 5);
	assert_int_equal(matches.swapped, 3);
	row_hashes_release(&hashes);
	labeled_release(&train);
	labeled_release(&dev);
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
		cmocka_unit_test(swapped_pairs_are_counted),
		cmocka_unit_test(repeats_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
