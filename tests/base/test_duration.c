/* Forms of durations that are understood, and those that are refused. */
#include "test.h"
#include "base/duration.h"

static void test_forms(void **state)
{
	static const struct {
		const char *text;
		double seconds;
	} cases[] = {
		{"5400", 5400},        {"0.5", 0.5},           {"90s", 90},        {"1h30m", 5400}, {"1H30M", 5400},
		{"2d", 172800},        {"1d12h", 129600},      {"1.5h", 5400},     {"45:00", 2700}, {"1:30:00", 5400},
		{"100:00:00", 360000}, {"1-12:00:00", 129600}, {"0-00:00:30", 30},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		double seconds = -1;
		assert_ok(duration_parse(cases[i].text, &seconds));
		assert_near(seconds, cases[i].seconds, 1e-9);
	}
}

static void test_refused(void **state)
{
	static const char *const cases[] = {"",      "0",       "-5",  "h",     "5x",    "30m1h",    "1h1h",   "1h30",
					    "1:60",  "1:2:3:4", ":30", "1-12",  "1-2:3", "1e3",      "0x10",   "nan",
					    "1.2.3", " 5",      "5 ",  "1:30:", "inf",   "00:00:00", "1-:1:1", "."};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		double seconds;
		assert_error(ERR_USAGE, "not a length of time", duration_parse(cases[i], &seconds));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
