/* Work in parallel with results in order, whatever the number of helpers and slots. */
#include <stdatomic.h>
#include <unistd.h>
#include "base/work_line.h"
#include "test.h"

struct slot {
	int64_t number, square;
};

static atomic_int works;

static void square(void *context)
{
	struct slot *slot = context;
	if (slot->number % 7 == 0)
		usleep(100); /* so that later ones finish first */
	slot->square = slot->number * slot->number;
	atomic_fetch_add(&works, 1);
}

static void run(int helpers, int slot_count, int64_t total)
{
	struct work_line *line;
	struct slot slots[16], *slot;
	int64_t filled = 0, taken = 0;

	works = 0;
	assert_ok(work_line_open(&line, helpers, slots, slot_count, sizeof *slots, square));
	assert_null(work_line_take(line));
	while (taken < total) {
		while (filled < total && (slot = work_line_free(line))) {
			slot->number = filled++;
			slot->square = -1;
			work_line_submit(line);
		}
		assert_true(filled - taken <= slot_count && (filled == total || filled - taken == slot_count));
		slot = work_line_take(line);
		assert_non_null(slot);
		assert_ptr_equal(slot, work_line_take(line)); /* the same slot until it is released */
		assert_int_equal(slot->number, taken);
		assert_int_equal(slot->square, taken * taken);
		work_line_release(line);
		taken++;
	}
	assert_null(work_line_take(line));
	assert_int_equal(works, total); /* each one once */
	work_line_close(line);
}

static void test_in_order(void **state)
{
	static const int helpers[] = {0, 1, 3}, counts[] = {1, 2, 7, 16};
	for (size_t h = 0; h < 3; h++)
		for (size_t c = 0; c < 4; c++)
			run(helpers[h], counts[c], 1000);
}

/* Closing does not wait for work that nobody took. */
static void test_closed_early(void **state)
{
	for (int helpers = 0; helpers < 4; helpers++) {
		struct work_line *line;
		struct slot slots[4] = {{0}};
		assert_ok(work_line_open(&line, helpers, slots, 4, sizeof *slots, square));
		while (work_line_free(line))
			work_line_submit(line);
		work_line_close(line);
	}
	work_line_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_closed_early),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
