/* Ends of text. */
#include "base/text.h"
#include "test.h"

static void test_ends(void **state)
{
	(void)state;
	static const char *const ends[] = {".bin", ".index.json"};
	assert_true(text_ends_with("a.bin", ".bin"));
	assert_true(text_ends_with(".bin", ".bin"));
	assert_true(text_ends_with("a", ""));
	assert_false(text_ends_with("bin", ".bin"));
	assert_false(text_ends_with("a.bin ", ".bin"));
	assert_true(text_has_ending("a.index.json", ends, 2));
	assert_false(text_has_ending("a.json", ends, 2));
	assert_false(text_has_ending(".bin", ends, 2)); /* an ending alone is no name */
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_ends)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
