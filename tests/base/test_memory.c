/* Allocation and arenas. */
#include <stdlib.h>
#include "memory_limit.h"
#include "base/memory.h"

static void new_memory_is_zero(void **state)
{
	int64_t *block;
	assert_ok(memory_new(&block, 1000, sizeof *block, "a test"));
	for (int i = 0; i < 1000; i++)
		assert_int_equal(block[i], 0);
	free(block);
	assert_ok(memory_new(&block, 0, sizeof *block, "a test"));
	assert_non_null(block);
	free(block);
}

static void too_much_is_refused(void **state)
{
	void *block = NULL;
	assert_error(ERR_RESOURCE, "the moon", memory_new(&block, INT64_MAX, 16, "the moon"));
	assert_error(ERR_RESOURCE, "the moon", memory_new(&block, INT64_MAX / 2, 1, "the moon"));
	int64_t capacity = 0;
	assert_error(ERR_RESOURCE, "the moon", memory_grow(&block, &capacity, INT64_MAX / 4, 16, "the moon"));
	assert_null(block);
	struct arena arena;
	assert_error(ERR_RESOURCE, "the moon: ", arena_create(&arena, (size_t)1 << 60, "the moon"));
	assert_error(ERR_RESOURCE, "available", arena_create(&arena, SIZE_MAX, "the moon"));
	arena_release(&arena);
}

static void arrays_grow_by_doubling(void **state)
{
	int32_t *array = NULL;
	int64_t capacity = 0, moves = 0;
	for (int32_t i = 0; i < 100000; i++) {
		int64_t before = capacity;
		assert_ok(memory_grow(&array, &capacity, i + 1, sizeof *array, "a test"));
		moves += capacity != before;
		array[i] = i;
	}
	assert_true(moves < 20);
	for (int32_t i = 0; i < 100000; i++)
		assert_int_equal(array[i], i);
	free(array);
}

/* Where doubling has no room, an array grows by smaller pieces, but not one by one, which took minutes to fail. */
static void arrays_end_before_memory_does(void **state)
{
	struct rlimit before;
	limit_memory(&before, 300 << 20);
	char(*array)[24] = NULL;
	int64_t capacity = 0, moves = 0;
	enum status status = OK;
	for (int64_t count = 1; status == OK && moves < 500; count++) {
		int64_t had = capacity;
		status = memory_grow(&array, &capacity, count, sizeof *array, "a test");
		moves += capacity != had;
	}
	void *block = NULL;
	enum status at_once = memory_new(&block, 280 << 20, 1, "a test");
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(status, ERR_RESOURCE);
	assert_int_equal(at_once, ERR_RESOURCE);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* whose memory does not grow in place */
	assert_in_range(capacity * 24, 200 << 20, 300 << 20);
#endif
	free(array);
}

/* Small and large arenas, planned with the same takes that fill them. */
static void arena_is_planned_then_filled(void **state)
{
	static const size_t sizes[] = {1, 256, 257, 0, 100000, 3 << 20, 7};
	for (int count = 1; count <= 7; count++) {
		struct arena plan = {0}, arena;
		for (int i = 0; i < count; i++)
			assert_null(arena_take(&plan, sizes[i]));
		assert_ok(arena_create(&arena, plan.used, "a test"));
		for (int i = 0; i < count; i++) {
			unsigned char *block = arena_take(&arena, sizes[i]);
			assert_int_equal((uintptr_t)block % ARENA_ALIGNMENT, 0);
			for (size_t k = 0; k < sizes[i]; k++)
				assert_int_equal(block[k], 0);
			memset(block, 0xFF, sizes[i]); /* an overlap would show as a byte that is not zero */
		}
		assert_int_equal(arena.used, plan.used);
		arena_release(&arena);
		assert_null(arena.base);
		arena_release(&arena);
	}
}

static void available_memory_is_plausible(void **state)
{
	int64_t available = memory_available();
	assert_true(available > 16 << 20);
	assert_true(available < (int64_t)1 << 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_memory_is_zero),           cmocka_unit_test(too_much_is_refused),
		cmocka_unit_test(arrays_grow_by_doubling),      cmocka_unit_test(arrays_end_before_memory_does),
		cmocka_unit_test(arena_is_planned_then_filled), cmocka_unit_test(available_memory_is_plausible),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
