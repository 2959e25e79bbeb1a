/* Names of sets in [NAME=]PATH. */
#include <unistd.h>
#include "tasks/set_list.h"
#include "test.h"

static void names_are_told_from_paths(void **state)
{
	(void)state;
	char own[PATH_BYTES], here[PATH_BYTES];
	assert_int_equal(set_name_size("dev.tsv"), 0);
	assert_string_equal(set_path("dev.tsv"), "dev.tsv");
	assert_int_equal(set_name_size("easy=dev.tsv"), 4);
	assert_string_equal(set_path("easy=dev.tsv"), "dev.tsv");
	assert_string_equal(set_path("easy=a=b.tsv"), "a=b.tsv");
	/* A path may contain the sign in one of its folders, or in its file name. */
	assert_int_equal(set_name_size("runs/seed=1/dev.tsv"), 0);
	assert_string_equal(set_path("runs/seed=1/dev.tsv"), "runs/seed=1/dev.tsv");
	assert_ok(file_write(test_path("a=b.tsv"), "x", 1));
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(test_folder), 0);
	snprintf(own, sizeof(own), "%s", set_path("a=b.tsv"));
	assert_int_equal(set_name_size("a=b.tsv"), 0);
	assert_int_equal(chdir(here), 0);
	assert_string_equal(own, "a=b.tsv");
	assert_string_equal(set_path("a=b.tsv"), "b.tsv");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_told_from_paths),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
