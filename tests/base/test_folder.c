/* Folders, paths, patterns, and the lock of a run's folder. */
#include "test.h"
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void touch(const char *name)
{
	assert_ok(file_write(test_path(name), "x", 1));
}

static void paths_join(void **state)
{
	char out[PATH_BYTES], longest[PATH_BYTES];
	assert_ok(path_join(out, "a/b", "c"));
	assert_string_equal(out, "a/b/c");
	assert_ok(path_join(out, "a/", "c"));
	assert_string_equal(out, "a/c");
	assert_ok(path_join(out, "/", "c"));
	assert_string_equal(out, "/c");
	assert_ok(path_join(out, "", "c"));
	assert_string_equal(out, "c");
	memset(longest, 'a', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	assert_error(ERR_USAGE, "too long", path_join(out, longest, "c"));
	longest[PATH_BYTES - 3] = '\0';
	assert_ok(path_join(out, longest, "c"));
	assert_int_equal(strlen(out), PATH_BYTES - 1);
}

static void folders_are_made_and_removed(void **state)
{
	assert_ok(folder_make(test_path("made/a/b//c/")));
	assert_true(file_is_folder(test_path("made/a/b/c")));
	assert_ok(folder_make(test_path("made/a")));
	touch("made/a/file");
	assert_error(ERR_USAGE, "made/a/file' exists and is not", folder_make(test_path("made/a/file")));
	assert_error(ERR_USAGE, "made/a/file' exists and is not", folder_make(test_path("made/a/file/d")));
	char longest[PATH_BYTES + 1];
	memset(longest, 'a', PATH_BYTES);
	longest[PATH_BYTES] = '\0';
	assert_error(ERR_USAGE, "too long", folder_make(longest));
	assert_ok(folder_sync(test_path("made")));
	assert_error(ERR_USAGE, "absent", folder_sync(test_path("absent")));

	/* The target of a link is not removed. */
	assert_ok(folder_make(test_path("outside")));
	touch("outside/file");
	assert_int_equal(symlink("../../outside/file", test_path("made/a/link")), 0);
	assert_int_equal(symlink("../../outside", test_path("made/a/folder")), 0);
	assert_ok(folder_remove(test_path("made")));
	assert_false(file_exists(test_path("made")));
	assert_true(file_exists(test_path("outside/file")));
	assert_ok(folder_remove(test_path("made")));
}

static void faults_are_reported(void **state)
{
	assert_ok(file_fault_set("mkdir:2:ENOSPC"));
	assert_error(ERR_RESOURCE, "x/y': cannot create this folder: No space", folder_make(test_path("x/y/z")));
	assert_ok(file_fault_set("mkdir:1:EINTR"));
	assert_ok(folder_make(test_path("x/y/z")));
	assert_ok(file_fault_set("fsync:1:EIO"));
	assert_error(ERR_RESOURCE, "cannot sync", folder_sync(test_path("x")));
	assert_ok(file_fault_set(NULL));
	touch("x/y/file");
	assert_ok(file_fault_set("unlink:1:EIO"));
	assert_error(ERR_RESOURCE, "x/y/file': cannot remove", folder_remove(test_path("x")));
	assert_ok(file_fault_set(NULL));
	assert_ok(folder_remove(test_path("x")));
}

static void free_space(void **state)
{
	assert_true(folder_free_bytes(test_folder) > 0);
	assert_true(folder_free_bytes(test_path("not/there/yet")) > 0);
	assert_true(folder_free_bytes("not-there-either") > 0);
	assert_true(folder_free_bytes("/") > 0);
}

static void check_expansion(const char *pattern, const char *const *expected)
{
	struct name_list found = {0};
	size_t prefix = strlen(test_folder) + 1;
	assert_ok(path_expand(test_path(pattern), &found));
	int64_t count = 0;
	for (; expected[count]; count++) {
		assert_true(count < found.count);
		assert_string_equal(found.names[count] + prefix, expected[count]);
	}
	assert_int_equal(found.count, count);
	name_list_release(&found);
}

static void patterns_expand(void **state)
{
	assert_ok(folder_make(test_path("t/sub/deep")));
	assert_ok(folder_make(test_path("t/.hidden")));
	static const char *const names[] = {"t/b.txt",          "t/a.txt", "t/B.txt",         "t/a.gz",       "t/sub/c.txt",
					    "t/sub/deep/d.txt", "t/.dot",  "t/.hidden/e.txt", "t/odd[1].txt", "t/\xC3\xA9.txt"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		touch(names[i]);
	assert_int_equal(symlink("..", test_path("t/sub/deep/loop")), 0); /* must not loop forever */
	assert_ok(folder_make(test_path("t/sub/run/data")));              /* belongs to a run and is not text */
	touch("t/sub/run/data/.bertc");
	touch("t/sub/run/data/vocab.txt");
	touch("t/sub/run/metrics.jsonl");
	check_expansion("t/a.txt", (const char *const[]){"t/a.txt", NULL});
	check_expansion("t/odd[1].txt", (const char *const[]){"t/odd[1].txt", NULL});
	check_expansion("t/*.txt",
			(const char *const[]){"t/B.txt", "t/a.txt", "t/b.txt", "t/odd[1].txt", "t/\xC3\xA9.txt", NULL});
	check_expansion("t/{b,a}.txt", (const char *const[]){"t/a.txt", "t/b.txt", NULL});
	check_expansion("t/{b.txt,{sub/c,a}.*,B*}",
			(const char *const[]){"t/B.txt", "t/a.gz", "t/a.txt", "t/b.txt", "t/sub/c.txt", NULL});
	check_expansion("t/[ab].*", (const char *const[]){"t/a.gz", "t/a.txt", "t/b.txt", NULL});
	check_expansion("t/s*", (const char *const[]){"t/sub/c.txt", "t/sub/deep/d.txt", NULL});
	check_expansion("t", (const char *const[]){"t/B.txt", "t/a.gz", "t/a.txt", "t/b.txt", "t/odd[1].txt", "t/sub/c.txt",
						   "t/sub/deep/d.txt", "t/\xC3\xA9.txt", NULL});

	check_expansion("t/sub/run", (const char *const[]){"t/sub/run/data/vocab.txt", "t/sub/run/metrics.jsonl", NULL});

	struct name_list found = {0};
	assert_ok(path_expand("-", &found));
	assert_ok(path_expand("/dev/null", &found));
	assert_int_equal(found.count, 2);
	assert_string_equal(found.names[0], "-");
	assert_string_equal(found.names[1], "/dev/null");
	assert_error(ERR_USAGE, "absent': cannot find or read: No such", path_expand(test_path("absent"), &found));
	assert_error(ERR_USAGE, "t/no.txt': no file matches", path_expand(test_path("t/{a,no}.txt"), &found));
	assert_error(ERR_USAGE, "t/no*': no file matches", path_expand(test_path("t/{b.txt,{a.gz,no*}}"), &found));
	name_list_release(&found);
	assert_error(ERR_USAGE, "x*': no file matches", path_expand(test_path("x*"), &found));
	assert_ok(folder_make(test_path("empty/inner")));
	assert_error(ERR_USAGE, "empty': no files", path_expand(test_path("empty"), &found));
	name_list_release(&found);
	assert_null(found.names);
}

/* As a shell makes it of "*", beside the folders of a run and of one that has just begun. */
static void runs_among_many_are_left_out(void **state)
{
	char text[256], run[256], begun[256];
	assert_ok(folder_make(test_path("many/run/data")));
	assert_ok(folder_make(test_path("many/begun")));
	touch("many/a.txt");
	touch("many/run/data/.bertc");
	touch("many/run/metrics.jsonl");
	touch("many/begun/.lock");
	snprintf(text, sizeof text, "%s", test_path("many/a.txt"));
	snprintf(run, sizeof run, "%s", test_path("many/run"));
	snprintf(begun, sizeof begun, "%s", test_path("many/begun"));
	struct name_list found = {0};
	assert_ok(path_expand_all((const char *const[]){text, run, begun}, 3, &found));
	assert_int_equal(found.count, 1);
	assert_string_equal(found.names[0], text);
	name_list_release(&found);
	check_expansion("many/*", (const char *const[]){"many/a.txt", NULL});
	assert_error(ERR_USAGE, "many/run': no files", path_expand_all((const char *const[]){run, begun}, 2, &found));
	assert_error(ERR_USAGE, "many/[br]*': no file matches", path_expand(test_path("many/[br]*"), &found));
	assert_ok(path_expand_all(&(const char *){run}, 1, &found));
	assert_int_equal(found.count, 1);
	name_list_release(&found);
}

static void repeated_names_are_found(void **state)
{
	static const char *const names[] = {"b", "a", "c", "b"};
	struct name_list list = {0};
	const char *repeated;
	for (int i = 0; i < 4; i++)
		assert_ok(name_list_add(&list, names[i]));
	assert_ok(name_list_repeated(&list, 0, &repeated));
	assert_string_equal(repeated, "b");
	assert_ok(name_list_repeated(&list, 1, &repeated));
	assert_null(repeated);
	name_list_release(&list);
}

static void lists_are_sorted(void **state)
{
	struct name_list names;
	assert_ok(folder_make(test_path("list")));
	touch("list/b");
	touch("list/a");
	touch("list/.c");
	assert_ok(folder_list(test_path("list"), &names));
	assert_int_equal(names.count, 3);
	assert_string_equal(names.names[0], ".c");
	assert_string_equal(names.names[1], "a");
	assert_string_equal(names.names[2], "b");
	name_list_release(&names);
	assert_error(ERR_USAGE, "absent", folder_list(test_path("absent"), &names));
}

static void one_run_in_a_folder(void **state)
{
	int first, second;
	char pid[32];
	assert_ok(folder_lock(test_folder, &first));
	assert_error(ERR_LOCKED, test_folder, folder_lock(test_folder, &second));
	snprintf(pid, sizeof pid, "process %ld on ", (long)getpid());
	assert_non_null(strstr(error_last()->message, pid));
	assert_non_null(strstr(error_last()->message, "since 2"));
	folder_unlock(first);
	assert_ok(folder_lock(test_folder, &second));
	folder_unlock(second);

	/* The lock of a killed process is released. */
	int pipes[2];
	assert_int_equal(pipe(pipes), 0);
	pid_t child = fork();
	if (child == 0) {
		if (folder_lock(test_folder, &first) == OK && write(pipes[1], "l", 1) == 1)
			pause();
		_exit(1);
	}
	char byte;
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	assert_error(ERR_LOCKED, "in use", folder_lock(test_folder, &second));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_ok(folder_lock(test_folder, &second));
	folder_unlock(second);
	close(pipes[0]);
	close(pipes[1]);
	assert_error(ERR_USAGE, "absent", folder_lock(test_path("absent"), &second));
}

static void lists_are_divided_at_commas(void **state)
{
	static const struct {
		const char *value;
		const char *parts[4];
	} cases[] = {
		{"a.txt,b.txt", {"a.txt", "b.txt"}},
		{",{a,b}.txt,,c\\,d,", {"{a,b}.txt", "c\\,d"}},
		{"a}.txt,b.txt", {"a}.txt", "b.txt"}},
		{"{a,b", {"{a,b"}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct name_list found = {0};
		assert_ok(name_list_add_parts(&found, cases[i].value));
		for (int64_t k = 0; k < found.count; k++)
			assert_string_equal(found.names[k], cases[i].parts[k] ? cases[i].parts[k] : "nothing");
		assert_null(cases[i].parts[found.count]);
		name_list_release(&found);
	}
}

static void paths_in_folders(void **state)
{
	char folder[PATH_BYTES];
	assert_ok(folder_make(test_path("within/inner")));
	assert_ok(folder_make(test_path("within2")));
	assert_int_equal(symlink("within", test_path("link")), 0);
	snprintf(folder, sizeof folder, "%s", test_path("within"));
	assert_true(path_lies_within(folder, folder));
	assert_true(path_lies_within(folder, test_path("link/../within/")));
	assert_true(path_lies_within(folder, test_path("link/inner")));
	assert_false(path_lies_within(folder, test_path("within2")));
	assert_false(path_lies_within(folder, test_path("within/absent")));
	assert_false(path_lies_within(folder, test_folder));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_divided_at_commas),
		cmocka_unit_test(paths_in_folders),
		cmocka_unit_test(paths_join),
		cmocka_unit_test(folders_are_made_and_removed),
		cmocka_unit_test(faults_are_reported),
		cmocka_unit_test(free_space),
		cmocka_unit_test(patterns_expand),
		cmocka_unit_test(runs_among_many_are_left_out),
		cmocka_unit_test(repeated_names_are_found),
		cmocka_unit_test(lists_are_sorted),
		cmocka_unit_test(one_run_in_a_folder),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
