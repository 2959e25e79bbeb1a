/* Finding copies in a list of hashes, against a plain search, with memory for all hashes and for only a few. */
#include "test.h"

#include <stdbool.h>

#include "base/hash.h"
#include "data/copies.h"

#define COUNT 20000

static void test_find(void **state)
{
	static uint64_t hashes[COUNT];
	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t value = i * i % 9001; /* many occur more than once */
		hashes[i] = hash64(&value, sizeof value);
	}
	assert_ok(file_write(test_path("hashes"), hashes, sizeof hashes));
	static const int64_t memories[] = {COPIES_MEMORY, 20000, 1000};
	for (int m = 0; m < 3; m++) {
		uint8_t *map;
		int64_t found, expected = 0;
		assert_ok(copies_find(test_path("hashes"), COUNT, memories[m], &map, &found));
		for (int64_t i = 0; i < COUNT; i += 7) {
			bool before = false;
			for (int64_t k = 0; k < i && !before; k++)
				before = hashes[k] == hashes[i];
			assert_int_equal(map[i / 8] >> (i % 8) & 1, before);
		}
		for (int64_t i = 0; i < COUNT; i++)
			expected += map[i / 8] >> (i % 8) & 1;
		assert_int_equal(found, expected);
		free(map);
	}
	uint8_t *map;
	int64_t found;
	assert_ok(copies_find(test_path("hashes"), 0, COPIES_MEMORY, &map, &found));
	assert_int_equal(found, 0);
	free(map);
	assert_error(ERR_RESOURCE, "read it back", copies_find(test_path("hashes"), COUNT + 1, COPIES_MEMORY, &map, &found));
	assert_null(map);
	map = (uint8_t *)hashes; /* a pointer that the function must not free */
	assert_error(ERR_RESOURCE, "cannot read", copies_find(test_path("none"), 1, COPIES_MEMORY, &map, &found));
	assert_null(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_find)};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
