/* Texts that look alike: their common form, and the code points in which they differ. */
#include "text/look_alike.h"
#include "test.h"

static void look_alikes_have_one_form(void **state)
{
	static const char *const alike[][2] = {
		{"caf\xC3\xA9", "cafe\xCC\x81"},
		{"a b", "a\xC2\xA0 b"},
		{"c", "\xE2\x80\x8B"
		      "c"},
		{"12", "\xEF\xBC\x91\xEF\xBC\x92"},
		{"d", "\xEF\xBB\xBF"
		      "d"},
		{"f-g", "f\xE2\x80\x93g"},
		{"h", "h\xC2\xAD"},
		{"\xEF\xAC\x81", "fi"},
		{"i", " i\xE3\x80\x80"},
		{"j", "j\xEF\xB8\x8F"},
		{"cop\xC3\xAB", "\xD1\x81\xD0\xBE\xD1\x80\xD1\x91"},
		{"\"ou\"", "\xE2\x80\x9C\xD6\x85\xD5\xBD\xE2\x80\x9D"},
		{"BOX", "\xCE\x92\xD0\x9E\xCE\xA7"},
		{"GOD", "\xE1\x8F\x80O\xE1\x8E\xA0"},
		{"fish", "f\xC4\xB1sh"},
		{"payoff", "\xCF\x81\xCE\xB1\xCE\xB3\xCF\x83\xD6\x84\xD6\x84"},
		{"33", "\xD0\x97\xD0\x97"},
		{"LISU", "\xEA\x93\xA1\xEA\x93\xB2\xEA\x93\xA2\xEA\x93\xB4"},
		{"it's", "it\xE2\x80\x99s"},
		{"1000", "1,000"},
		{"1000000.5", "1 000\xE2\x80\xAF"
			      "000.5"},
	};
	static const char *const different[][2] = {{"e", "\xC3\xA9"}, {"e", "\xD1\x8D"}, {"A", "\xD0\xB0"}, {"\xD0\xB2", "B"},
						   {"a", "A"},        {"1", "2"},        {"1,00", "100"},   {"1,0000", "10000"},
						   {"a,000", "a000"}, {"ab", "a b"}};
	struct buffer a = {0}, b = {0};
	for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) {
		buffer_clear(&a);
		buffer_clear(&b);
		look_alike_form(alike[i][0], &a);
		look_alike_form(alike[i][1], &b);
		assert_string_equal(buffer_string(&a), buffer_string(&b));
	}
	for (size_t i = 0; i < sizeof different / sizeof *different; i++) {
		buffer_clear(&a);
		buffer_clear(&b);
		look_alike_form(different[i][0], &a);
		look_alike_form(different[i][1], &b);
		assert_string_not_equal(buffer_string(&a), buffer_string(&b));
	}
	buffer_release(&a);
	buffer_release(&b);
}

static void differences_are_code_points(void **state)
{
	static const struct {
		const char *text, *other, *points;
	} cases[] = {
		{"caf\xC3\xA9s", "cafe\xCC\x81s", "U+00E9"},
		{"cafe\xCC\x81s", "caf\xC3\xA9s", "U+0065 U+0301"},
		{"\xE2\x80\x8B"
		 "bad",
		 "bad", "U+200B"},
		{"bad",
		 "\xE2\x80\x8B"
		 "bad",
		 "nothing"},
		{"a a",
		 "a\xC2\xA0"
		 "a",
		 "U+0020"},
		{"aa", "a", "U+0061"},
	};
	struct buffer out = {0};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		buffer_clear(&out);
		look_alike_difference(cases[i].text, cases[i].other, &out);
		assert_string_equal(buffer_string(&out), cases[i].points);
	}
	buffer_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(look_alikes_have_one_form),
		cmocka_unit_test(differences_are_code_points),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
