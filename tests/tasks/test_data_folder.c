/* The files of a task in a folder, and lists of named sets. */
#include <unistd.h>
#include "tasks/data_folder.h"
#include "tasks/set_list.h"
#include "tasks/squad.h"
#include "test.h"

static void put(const char *name)
{
	assert_ok(file_write(test_path(name), "x\n", 2));
}

static enum status find(struct data_folder *out, const char *name, bool version_2, const char *folder)
{
	const struct task *task;
	const struct layout *layout;
	assert_ok(task_find(name, &task, &layout));
	data_folder_release(out);
	const struct squad_settings own = {.version_2_with_negative = version_2};
	return data_folder_find(out, task, layout, &own, test_path(folder));
}

static void expect(const char *value, const char *name, const char *file)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof(path), "%s%s", name, test_path(file));
	assert_non_null(value);
	assert_string_equal(value, path);
}

static void published_files(void **state)
{
	(void)state;
	static const char *const files[] = {
		"m/train.tsv.gz", "m/dev_matched.tsv", "m/dev_mismatched.tsv", "m/test_matched.tsv", "m/test_mismatched.tsv",
		"r/train.tsv",    "r/test.tsv",        "s/train-v2.0.json",    "s/dev-v2.0.json",    "s/dev-v1.1.json",
		"n/train.txt",    "n/devel.txt",       "n/test.conll"};
	static const char *const folders[] = {"m", "r", "s", "n", "empty"};
	struct data_folder found = {.train = NULL};
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		assert_ok(folder_make(test_path(folders[i])));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		put(files[i]);
	assert_ok(find(&found, "MNLI", false, "m"));
	expect(found.train, "", "m/train.tsv.gz");
	expect(found.dev[0], "", "m/dev_matched.tsv");
	expect(found.dev[1], "mismatched=", "m/dev_mismatched.tsv");
	expect(found.test[0], "", "m/test_matched.tsv");
	expect(found.test[1], "mismatched=", "m/test_mismatched.tsv");
	assert_ok(find(&found, "RTE", false, "r"));
	assert_null(found.dev[0]);
	expect(found.test[0], "", "r/test.tsv");
	assert_ok(find(&found, "squad", true, "s"));
	expect(found.train, "", "s/train-v2.0.json");
	expect(found.dev[0], "", "s/dev-v2.0.json");
	assert_ok(find(&found, "squad", false, "s"));
	assert_null(found.train);
	expect(found.dev[0], "", "s/dev-v1.1.json");
	assert_ok(find(&found, "NER", false, "n"));
	expect(found.train, "", "n/train.txt");
	expect(found.dev[0], "", "n/devel.txt");
	expect(found.test[0], "", "n/test.conll");
	assert_error(ERR_USAGE, "there are no files of the task in the folder", find(&found, "mnli", false, "empty"));
	assert_non_null(strstr(error_last()->hint, "train.tsv, dev_matched.tsv"));
	assert_error(ERR_USAGE, "there is no such folder", find(&found, "tagging", false, "nowhere"));
	data_folder_release(&found);
}

static void parse(const char *const *values, int64_t count, struct set_list *out)
{
	const struct option_list list = {.values = (const char **)values, .count = count};
	assert_ok(set_list_parse(out, "dev", &list, true));
}

static void named_sets(void **state)
{
	(void)state;
	struct set_list sets = {0};
	static const char *const values[] = {"a.tsv", "b.tsv", "two=c/x=y.tsv", "d.tsv", "three=e.tsv"};
	parse(values, 5, &sets);
	assert_int_equal(sets.count, 3);
	assert_string_equal(sets.sets[0].name, "");
	assert_int_equal(sets.sets[0].count, 2);
	assert_string_equal(sets.sets[0].paths[1], "b.tsv");
	assert_string_equal(sets.sets[1].name, "two");
	assert_string_equal(sets.sets[1].paths[0], "c/x=y.tsv");
	assert_string_equal(sets.sets[1].paths[1], "d.tsv");
	assert_string_equal(sets.sets[2].paths[0], "e.tsv");
	set_list_release(&sets);
	static const char *const named[] = {"one=a.tsv"};
	parse(named, 1, &sets);
	assert_int_equal(sets.count, 1);
	assert_string_equal(sets.sets[0].name, "one");
	set_list_release(&sets);
	parse(NULL, 0, &sets);
	assert_int_equal(sets.count, 0);
	/* A file whose own name contains an equals sign. */
	char odd[PATH_BYTES];
	snprintf(odd, sizeof(odd), "%s", "odd=name.tsv");
	assert_int_equal(chdir(test_folder), 0);
	put("odd=name.tsv");
	const char *const files[] = {odd};
	parse(files, 1, &sets);
	assert_string_equal(sets.sets[0].paths[0], "odd=name.tsv");
	set_list_release(&sets);
}

static void names_that_cannot_be(void **state)
{
	(void)state;
	static const struct {
		const char *values[2], *message;
	} cases[] = {
		{{"one=a.tsv", "one=b.tsv"}, "--test: two sets are called 'one'"},
		{{"final=a.tsv", "b.tsv"}, "a run has a folder of that name"},
		{{"a.tsv", "checkpoint-3=b.tsv"}, "--test checkpoint-3=...: a run has a folder"},
		{{"a.tsv", "..=b.tsv"}, "a run has a folder"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct set_list sets = {0};
		const struct option_list list = {.values = (const char **)cases[i].values, .count = 2};
		assert_error(ERR_USAGE, cases[i].message, set_list_parse(&sets, "test", &list, true));
		set_list_release(&sets);
	}
	struct set_list sets = {0};
	static const char *const values[] = {"final=a.tsv"};
	const struct option_list list = {.values = (const char **)values, .count = 1};
	assert_ok(set_list_parse(&sets, "dev", &list, false));
	set_list_release(&sets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_files),
		cmocka_unit_test(names_that_cannot_be),
		cmocka_unit_test(named_sets),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
