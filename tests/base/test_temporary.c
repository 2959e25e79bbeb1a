/* Folders that exist only while a command runs. */
#include "base/temporary.h"

#include <stdlib.h>
#include <sys/time.h>
#include "test.h"

static int setup(void **state)
{
	return test_folder_make(state) == 0 ? setenv("TMPDIR", test_folder, 1) : -1;
}

static void made_and_removed(void **state)
{
	struct temporary_folder folder;
	char inner[PATH_BYTES];
	assert_ok(temporary_folder_make(&folder, "test"));
	assert_non_null(strstr(folder.path, "/bertc-test-"));
	assert_ok(path_join(inner, folder.path, "a/b"));
	assert_ok(folder_make(inner));
	assert_error(ERR_DATA, "what went wrong", error_set(ERR_DATA, "what went wrong"));
	temporary_folder_remove(&folder);
	assert_false(file_exists(folder.path));
	assert_string_equal(error_last()->message, "what went wrong");
	setenv("TMPDIR", test_path("none"), 1);
	assert_error(ERR_RESOURCE, "cannot make a temporary folder", temporary_folder_make(&folder, "test"));
	setenv("TMPDIR", test_folder, 1);
}

/* Of the folders left behind by others, only those for this purpose that are old and not in use are removed. */
static void left_behind(void **state)
{
	static const struct {
		const char *name;
		bool old, locked, goes;
	} cases[] = {
		{"bertc-test-killed", true, false, true}, {"bertc-test-recent", false, false, false},
		{"bertc-test-in_use", true, true, false}, {"bertc-other-killed", true, false, false},
		{"bertc-test-mine", true, false, false},
	};
	struct temporary_folder folder;
	int locks[5], empty;
	for (int i = 0; i < 5; i++) {
		assert_ok(folder_make(test_path(cases[i].name)));
		assert_ok(folder_lock(test_path(cases[i].name), &locks[i]));
		if (!cases[i].locked)
			folder_unlock(locks[i]);
		if (cases[i].old)
			assert_int_equal(utimes(test_path(cases[i].name), (struct timeval[]){{1000, 0}, {1000, 0}}), 0);
	}
	/* Neither is locked: one may belong to a process that was killed right away, the other holds somebody's file. */
	assert_ok(folder_make(test_path("bertc-test-silent")));
	assert_ok(folder_make(test_path("bertc-test-filled")));
	assert_ok(file_write(test_path("bertc-test-filled/x"), "x", 1));
	for (empty = 0; empty < 2; empty++)
		assert_int_equal(utimes(test_path(empty ? "bertc-test-silent" : "bertc-test-filled"),
					(struct timeval[]){{1000, 0}, {1000, 0}}),
				 0);
	assert_ok(temporary_folder_make(&folder, "test"));
	temporary_folder_remove(&folder);
	for (int i = 0; i < 5; i++)
		assert_int_equal(!file_exists(test_path(cases[i].name)), cases[i].goes);
	assert_false(file_exists(test_path("bertc-test-silent")));
	assert_true(file_exists(test_path("bertc-test-filled/x")));
	folder_unlock(locks[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_and_removed),
		cmocka_unit_test(left_behind),
	};
	return cmocka_run_group_tests(tests, setup, test_folder_drop);
}
