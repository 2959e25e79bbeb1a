/* Named evaluation sets as they are written on the command line. */
#include "test.h"
#include <unistd.h>
#include "run/evaluation_groups.h"

static enum status parse(struct evaluation_groups *out, int64_t count, const char **values)
{
	struct option_list list = {.values = values, .count = count};
	return evaluation_groups_parse(out, &list);
}

static void values_belong_to_the_name_before(void **state)
{
	(void)state;
	struct evaluation_groups groups;
	const char *values[] = {"plain.txt", "old=a.txt", "b.txt", "new=c.txt", "old=d.txt", "e=mc2/f.txt"};
	assert_ok(parse(&groups, 6, values));
	assert_int_equal(groups.count, 4);
	assert_string_equal(groups.groups[0].name, "");
	assert_int_equal(groups.groups[0].count, 1);
	assert_string_equal(groups.groups[1].name, "old");
	assert_int_equal(groups.groups[1].count, 3);
	assert_string_equal(groups.groups[1].values[0], "a.txt");
	assert_string_equal(groups.groups[1].values[1], "b.txt");
	assert_string_equal(groups.groups[1].values[2], "d.txt");
	assert_string_equal(groups.groups[2].name, "new");
	assert_string_equal(groups.groups[2].values[0], "c.txt");
	assert_string_equal(groups.groups[3].name, "e");
	evaluation_groups_release(&groups);
	assert_ok(parse(&groups, 0, NULL));
	assert_int_equal(groups.count, 0);
	evaluation_groups_release(&groups);
}

static void a_file_that_exists_is_no_name(void **state)
{
	(void)state;
	struct evaluation_groups groups;
	assert_ok(file_write(test_path("x=y.txt"), "a", 1));
	assert_int_equal(chdir(test_folder), 0);
	const char *values[] = {"x=y.txt"};
	assert_ok(parse(&groups, 1, values));
	assert_string_equal(groups.groups[0].name, "");
	assert_string_equal(groups.groups[0].values[0], "x=y.txt");
	evaluation_groups_release(&groups);
}

static void what_is_wrong_is_said(void **state)
{
	(void)state;
	struct evaluation_groups a, b;
	const char *empty[] = {"name="};
	const char *long_name[] = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=x"};
	assert_error(ERR_USAGE, "path is missing", parse(&a, 1, empty));
	assert_error(ERR_USAGE, "at most 63", parse(&a, 1, long_name));
	const char *pattern[] = {"a *lang=en*"}, *path[] = {"./a *lang=en*"};
	assert_error(ERR_USAGE, "letters, digits", parse(&a, 1, pattern));
	assert_non_null(strstr(error_last()->hint, "write ./ before it"));
	assert_ok(parse(&a, 1, path));
	assert_string_equal(a.groups[0].name, "");
	evaluation_groups_release(&a);
	const char *left[] = {"p", "n=q"}, *right[] = {"m=r", "n=s"}, *plain[] = {"t"};
	assert_ok(parse(&a, 2, left));
	assert_ok(parse(&b, 2, right));
	assert_error(ERR_USAGE, "'n' is given by two options", evaluation_groups_check(&a, &b));
	evaluation_groups_release(&b);
	assert_ok(parse(&b, 1, plain));
	assert_error(ERR_USAGE, "need names", evaluation_groups_check(&a, &b));
	evaluation_groups_release(&a);
	assert_ok(evaluation_groups_check(&a, &b));
	evaluation_groups_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_belong_to_the_name_before),
		cmocka_unit_test(a_file_that_exists_is_no_name),
		cmocka_unit_test(what_is_wrong_is_said),
	};
	return cmocka_run_group_tests_name("evaluation groups", tests, test_folder_make, test_folder_drop);
}
