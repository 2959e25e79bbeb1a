/* Names of sets in [NAME=]PATH. */
#include <unistd.h>
#include "base/set_list.h"
#include "test.h"

static void names_are_told_from_paths(void **state)
{
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
	assert_non_null(getcwd(here, sizeof here));
	assert_int_equal(chdir(test_folder), 0);
	snprintf(own, sizeof own, "%s", set_path("a=b.tsv"));
	assert_int_equal(set_name_size("a=b.tsv"), 0);
	assert_int_equal(chdir(here), 0);
	assert_string_equal(own, "a=b.tsv");
	assert_string_equal(set_path("a=b.tsv"), "b.tsv");
}

static enum status parse(struct set_list *out, int64_t count, const char **values)
{
	struct option_list list = {.values = values, .count = count};
	return set_list_parse(out, &list);
}

static void values_belong_to_the_name_before(void **state)
{
	struct set_list list = {0};
	const char *values[] = {"plain.txt", "old=a.txt", "b.txt", "new=c.txt", "old=d.txt", "e=mc2/f.txt"};
	assert_ok(parse(&list, 6, values));
	assert_int_equal(list.count, 4);
	assert_string_equal(list.sets[0].name, "");
	assert_int_equal(list.sets[0].count, 1);
	assert_string_equal(list.sets[1].name, "old");
	assert_int_equal(list.sets[1].count, 3);
	assert_string_equal(list.sets[1].paths[0], "a.txt");
	assert_string_equal(list.sets[1].paths[1], "b.txt");
	assert_string_equal(list.sets[1].paths[2], "d.txt");
	assert_string_equal(list.sets[2].name, "new");
	assert_string_equal(list.sets[2].paths[0], "c.txt");
	assert_string_equal(list.sets[3].name, "e");
	set_list_release(&list);
	assert_ok(parse(&list, 0, NULL));
	assert_int_equal(list.count, 0);
	set_list_release(&list);
}

static void a_file_that_exists_is_no_name(void **state)
{
	struct set_list list = {0};
	assert_ok(file_write(test_path("x=y.txt"), "a", 1));
	assert_int_equal(chdir(test_folder), 0);
	const char *values[] = {"x=y.txt"};
	assert_ok(parse(&list, 1, values));
	assert_string_equal(list.sets[0].name, "");
	assert_string_equal(list.sets[0].paths[0], "x=y.txt");
	set_list_release(&list);
}

static void what_is_wrong_is_said(void **state)
{
	struct set_list a = {0}, b = {0};
	const char *empty[] = {"name="};
	const char *long_name[] = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=x"};
	assert_error(ERR_USAGE, "path is missing", parse(&a, 1, empty));
	set_list_release(&a);
	assert_ok(parse(&a, 1, long_name));
	assert_error(ERR_USAGE, "at most 63", set_list_check_names(&a));
	set_list_release(&a);
	const char *pattern[] = {"a *lang=en*"}, *path[] = {"./a *lang=en*"};
	assert_ok(parse(&a, 1, pattern));
	assert_error(ERR_USAGE, "letters, digits", set_list_check_names(&a));
	assert_non_null(strstr(error_last()->hint, "write ./ before it"));
	set_list_release(&a);
	assert_ok(parse(&a, 1, path));
	assert_string_equal(a.sets[0].name, "");
	set_list_release(&a);
	const char *left[] = {"p", "n=q"}, *right[] = {"m=r", "n=s"}, *plain[] = {"t"};
	assert_ok(parse(&a, 2, left));
	assert_ok(parse(&b, 2, right));
	assert_error(ERR_USAGE, "'n' is given by two options", set_list_check_apart(&a, &b));
	set_list_release(&b);
	assert_ok(parse(&b, 1, plain));
	assert_error(ERR_USAGE, "need names", set_list_check_apart(&a, &b));
	set_list_release(&a);
	assert_ok(set_list_check_apart(&a, &b));
	set_list_release(&b);
}

static void results_need_folders_of_their_own(void **state)
{
	const char *values[] = {"final=a.tsv", "checkpoint-3=b.tsv", "..=b.tsv", "one=c.tsv"};
	for (int i = 0; i < 4; i++) {
		struct set_list list = {0};
		assert_ok(parse(&list, 1, &values[i]));
		if (i < 3)
			assert_error(ERR_USAGE, "a run has a folder of that name", set_list_check_folders(&list, "test"));
		else
			assert_ok(set_list_check_folders(&list, "test"));
		set_list_release(&list);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_told_from_paths),         cmocka_unit_test(values_belong_to_the_name_before),
		cmocka_unit_test(a_file_that_exists_is_no_name),     cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(results_need_folders_of_their_own),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
