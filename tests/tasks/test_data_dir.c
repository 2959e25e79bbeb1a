/* The files of a task in a folder. */
#include "tasks/data_dir.h"
#include "tasks/squad.h"
#include "test.h"

static void put(const char *name)
{
	assert_ok(file_write(test_path(name), "x\n", 2));
}

static enum status find(struct data_dir *out, const char *name, bool version_2, const char *folder)
{
	const struct task *task;
	const struct layout *layout;
	assert_ok(task_find(name, &task, &layout));
	data_dir_release(out);
	const struct squad_settings own = {.version_2_with_negative = version_2};
	return data_dir_find(out, task, layout, &own, test_path(folder));
}

static void expect(const char *value, const char *name, const char *file)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "%s%s", name, test_path(file));
	assert_non_null(value);
	assert_string_equal(value, path);
}

static void published_files(void **state)
{
	static const char *const files[] = {
		"m/train.tsv.gz", "m/dev_matched.tsv", "m/dev_mismatched.tsv", "m/test_matched.tsv", "m/test_mismatched.tsv",
		"r/train.tsv",    "r/test.tsv",        "s/train-v2.0.json",    "s/dev-v2.0.json",    "s/dev-v1.1.json",
		"n/train.txt",    "n/devel.txt",       "n/test.conll"};
	static const char *const folders[] = {"m", "r", "s", "n", "empty"};
	struct data_dir found = {.train = NULL};
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
		assert_ok(folder_make(test_path(folders[i])));
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
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
	data_dir_release(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_files),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
