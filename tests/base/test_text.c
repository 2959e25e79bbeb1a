/* Endings of names, and escapes. */
#include "base/text.h"
#include "test.h"

static void test_ends(void **state)
{
	static const char *const ends[] = {".bin", ".index.json"};
	assert_true(text_ends_with("a.bin", ".bin"));
	assert_true(text_ends_with(".bin", ".bin"));
	assert_true(text_ends_with("a", ""));
	assert_false(text_ends_with("bin", ".bin"));
	assert_false(text_ends_with("a.bin ", ".bin"));
	assert_true(text_has_ending("a.index.json", ends, 2));
	assert_false(text_has_ending("a.json", ends, 2));
	assert_false(text_has_ending(".bin", ends, 2)); /* an ending alone is not a name */
}

/* Characters that would control a terminal are escaped; other text, in any script, stays. */
static void test_escapes(void **state)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{"plain 'text' \\ \xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80\xC2\xA0",
		 "plain 'text' \\ \xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80\xC2\xA0"},
		{"\033[2J\033]0;title\a", "\\x1b[2J\\x1b]0;title\\x07"},
		{"a\rb\177", "a\\x0db\\x7f"},
		{"\xC2\x9B"
		 "31m",
		 "\\u009b31m"},                                   /* CSI in one character */
		{"\xE2\x80\xAEtxt.exe", "\\u202etxt.exe"},        /* right-to-left override */
		{"\xE2\x81\xA6|\xE2\x80\xA8", "\\u2066|\\u2028"}, /* isolate, line separator */
		{"\xD8\x9C", "\\u061c"},
		{"\xff\xC3", "\\xff\\xc3"},
		{"one\n\ttwo", "one\\x0a\\x09two"},
	};
	char out[128];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_string_equal(text_escape(out, sizeof out, cases[i].text, false), cases[i].expected);
		char again[128];
		assert_string_equal(text_escape(again, sizeof again, out, false), cases[i].expected);
	}
	assert_string_equal(text_escape(out, sizeof out, "one\n\ttwo\r", true), "one\n\ttwo\\x0d");
	/* Cut between characters, never within one or within an escape. */
	assert_string_equal(text_escape(out, 4, "ab\033c", false), "ab");
	assert_string_equal(text_escape(out, 4, "ab\xC3\xA9", false), "ab");
	assert_string_equal(text_escape(out, 5, "ab\xC3\xA9", false), "ab\xC3\xA9");
	assert_string_equal(text_escape(out, 1, "ab", false), "");
	/* Every error message is made this way. */
	assert_int_equal(error_set(ERR_DATA, "'%s': bad", "x\033[31m"), ERR_DATA);
	assert_string_equal(error_last()->message, "'x\\x1b[31m': bad");
	error_hint("see '%s'", "\a");
	assert_string_equal(error_last()->hint, "see '\\x07'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_ends), cmocka_unit_test(test_escapes)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
