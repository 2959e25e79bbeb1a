/* String stores, and tables that map strings to numbers. */
#include "base/string_index.h"
#include "base/string_store.h"
#include "test.h"

static void copies_stay_where_they_are(void **state)
{
	struct string_store store = {0};
	const char *first, *huge, *copies[3000];
	static char long_text[100000];
	memset(long_text, 'x', sizeof long_text);
	assert_ok(string_store_copy(&store, "a\0b", 3, &first));
	for (int i = 0; i < 3000; i++)
		assert_ok(string_store_copy(&store, long_text, (size_t)i % 97, &copies[i]));
	assert_ok(string_store_copy(&store, long_text, sizeof long_text, &huge));
	assert_memory_equal(first, "a\0b", 4);
	for (int i = 0; i < 3000; i++)
		assert_int_equal(strlen(copies[i]), i % 97);
	assert_int_equal(strlen(huge), sizeof long_text);
	string_store_release(&store);
	assert_int_equal(store.bytes, 0);
}

static void an_index_finds_what_was_added(void **state)
{
	struct string_index index = {0};
	static char keys[5000][8];
	int64_t value;
	assert_int_equal(string_index_find(&index, "0"), -1);
	for (int i = 0; i < 5000; i++) {
		snprintf(keys[i], sizeof keys[i], "%d", i);
		assert_ok(string_index_add(&index, keys[i], i, &value));
		assert_int_equal(value, i);
	}
	for (int i = 0; i < 5000; i++)
		assert_int_equal(string_index_find(&index, keys[i]), i);
	assert_int_equal(string_index_find(&index, "5000"), -1);
	assert_int_equal(string_index_find(&index, ""), -1);
	assert_ok(string_index_add(&index, "17", 9, &value));
	assert_int_equal(value, 17);
	assert_int_equal(index.count, 5000);
	string_index_release(&index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_stay_where_they_are),
		cmocka_unit_test(an_index_finds_what_was_added),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
