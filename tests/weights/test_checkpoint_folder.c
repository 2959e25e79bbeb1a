/* The folders of checkpoints, with simple values: their names, which one is the newest sound one, which ones are kept. */
#include <sys/stat.h>
#include <unistd.h>
#include "base/json.h"
#include "base/log.h"
#include "test.h"
#include "weights/checkpoint_folder.h"
#include "weights/manifest.h"

/* A run folder with a checkpoint of one file; its manifest says step `listed`. */
static void make(const char *run, int64_t step, int64_t listed)
{
	char name[64], folder[160];
	struct folder_files files = {0};
	checkpoint_name(name, step);
	snprintf(folder, sizeof folder, "%s/%s", run, name);
	assert_ok(folder_make(test_path(folder)));
	snprintf(folder + strlen(folder), 16, "/a.txt");
	assert_ok(file_write(test_path(folder), "text", 4));
	*strrchr(folder, '/') = 0;
	assert_ok(folder_files_measure(&files, test_path(folder), "a.txt"));
	assert_ok(manifest_write(test_path(folder), listed, &files));
	free(files.files);
}

static void assert_steps(const char *run, const int64_t *expected, int64_t count)
{
	int64_t *steps, found;
	assert_ok(checkpoint_list(test_path(run), &steps, &found));
	assert_int_equal(found, count);
	for (int64_t i = 0; i < count; i++)
		assert_int_equal(steps[i], expected[i]);
	free(steps);
}

static void names_say_steps(void **state)
{
	static const struct {
		const char *path;
		int64_t step;
	} cases[] = {
		{"checkpoint-0", 0},
		{"runs/mine/checkpoint-120", 120},
		{"runs/mine/checkpoint-120//", 120},
		{"checkpoint-999999999999999999", 999999999999999999},
		{"checkpoint-9999999999999999999", -1},
		{"checkpoint-12a", -1},
		{"checkpoint--1", -1},
		{"checkpoint-", -1},
		{"runs/checkpoint-5/final", -1},
		{"superseded-checkpoint-5", -1},
		{"", -1},
		{"/", -1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (checkpoint_path_step(cases[i].path) != cases[i].step)
			fail_msg("'%s' is %lld", cases[i].path, (long long)checkpoint_path_step(cases[i].path));
	char name[64];
	checkpoint_name(name, 77);
	assert_string_equal(name, "checkpoint-77");
}

static void the_newest_whole_one_is_found(void **state)
{
	char path[PATH_BYTES];
	bool found;
	assert_ok(folder_make(test_path("run/checkpoint-x")));
	assert_ok(checkpoint_latest(test_path("run"), path, &found));
	assert_false(found);
	make("run", 9, 9);
	make("run", 10, 10);
	make("run", 11, 12); /* a copy under the name of another step */
	make("run", 100, 100);
	assert_ok(file_write(test_path("run/checkpoint-100/a.txt"), "next", 4));
	assert_steps("run", (int64_t[]){100, 11, 10, 9}, 4);
	assert_ok(checkpoint_latest(test_path("run"), path, &found));
	assert_true(found);
	assert_string_equal(path, test_path("run/checkpoint-10"));
	assert_error(ERR_DATA, "MANIFEST.json is of step 12", checkpoint_verify(test_path("run/checkpoint-11")));
	assert_error(ERR_DATA, "wrong checksum", checkpoint_verify(test_path("run/checkpoint-100/")));
	assert_ok(file_write(test_path("run/checkpoint-10/a.txt"), "next", 4));
	assert_ok(file_write(test_path("run/checkpoint-9/a.txt"), "longer", 6));
	assert_error(ERR_DATA, "none of its 4 checkpoints is intact", checkpoint_latest(test_path("run"), path, &found));
}

static void the_newest_and_the_best_are_kept(void **state)
{
	for (int64_t step = 1; step <= 6; step++)
		make("kept", step, step);
	assert_ok(checkpoint_prune(test_path("kept"), 0, 5, 0));
	assert_steps("kept", (int64_t[]){6, 5, 4, 3, 2, 1}, 6);
	/* Nothing is known about step 6 when step 5 has just been saved: it does not count. */
	assert_ok(checkpoint_prune(test_path("kept"), 2, 5, 1));
	assert_steps("kept", (int64_t[]){6, 5, 4, 1}, 4);
	assert_ok(checkpoint_supersede(test_path("kept"), 4));
	assert_steps("kept", (int64_t[]){4, 1}, 2);
	assert_true(file_is_folder(test_path("kept/superseded-checkpoint-6")));
}

static void the_best_is_marked(void **state)
{
	struct json_document document;
	double loss = 0;
	char link[64] = "";
	make("marked", 3, 3);
	assert_ok(checkpoint_mark_best(test_path("marked"), 3, "loss", 1.25));
	assert_ok(json_read(&document, test_path("marked/best.json"), 1000));
	assert_ok(json_get_number(document.root, "best.json", "loss", &loss));
	assert_true(loss == 1.25);
	json_release(&document);
	assert_int_equal(readlink(test_path("marked/best"), link, sizeof link - 1), 12);
	assert_string_equal(link, "checkpoint-3");
	/* If the link cannot be renamed into place, nothing of it is left; the record counts. */
	assert_ok(file_fault_set("rename:4:EIO"));
	assert_ok(checkpoint_mark_best(test_path("marked"), 2, "loss", 1));
	assert_true(file_fault_hit());
	assert_ok(file_fault_set(NULL));
	struct stat facts;
	assert_int_equal(lstat(test_path("marked/.tmp-best"), &facts), -1);
	assert_ok(checkpoint_unmark_best(test_path("marked")));
	assert_false(file_exists(test_path("marked/best")));
	assert_false(file_exists(test_path("marked/best.json")));
	assert_ok(checkpoint_unmark_best(test_path("marked")));
}

/* Files left by a killed save are removed; other people's files stay. */
static void leftovers_go(void **state)
{
	static const char *const gone[] = {"clean/.tmp-checkpoint-3-77", "clean/.trash-checkpoint-1", "clean/.tmp-final"};
	static const char *const stays[] = {"clean/.tmp-mine", "clean/.trash", "clean/tmp-checkpoint-3"};
	for (int i = 0; i < 3; i++) {
		assert_ok(folder_make(test_path(gone[i])));
		assert_ok(folder_make(test_path(stays[i])));
	}
	make("clean", 2, 2);
	assert_ok(folder_make(test_path("clean/.tmp-next")));
	assert_ok(file_write(test_path("clean/.tmp-next/a.txt"), "new", 3));
	assert_ok(checkpoint_folder_publish(test_path("clean"), test_path("clean/.tmp-next"), "checkpoint-2"));
	assert_int_equal(file_size(test_path("clean/checkpoint-2/a.txt")), 3);
	assert_ok(checkpoint_clean(test_path("clean")));
	for (int i = 0; i < 3; i++) {
		assert_false(file_exists(test_path(gone[i])));
		assert_true(file_exists(test_path(stays[i])));
	}
	assert_ok(checkpoint_folder_check(test_path("clean")));
	assert_error(ERR_RESOURCE, "is gone", checkpoint_folder_check(test_path("nowhere")));
}

/* Only an empty folder gives way. */
static void a_new_folder_replaces_nothing(void **state)
{
	assert_ok(folder_make(test_path("out/.tmp-new")));
	assert_ok(file_write(test_path("out/.tmp-new/a.txt"), "new", 3));
	assert_ok(folder_make(test_path("out/full")));
	assert_ok(file_write(test_path("out/full/a.txt"), "mine", 4));
	assert_ok(file_write(test_path("out/file"), "mine", 4));
	static const char *const taken[] = {"full", "file"};
	for (int i = 0; i < 2; i++)
		assert_error(ERR_USAGE, "was made by another program",
			     checkpoint_folder_publish_new(test_path("out"), test_path("out/.tmp-new"), taken[i]));
	assert_int_equal(file_size(test_path("out/full/a.txt")), 4);
	assert_int_equal(file_size(test_path("out/file")), 4);
	assert_ok(folder_make(test_path("out/empty")));
	assert_ok(checkpoint_folder_publish_new(test_path("out"), test_path("out/.tmp-new"), "empty"));
	assert_int_equal(file_size(test_path("out/empty/a.txt")), 3);
	assert_false(file_exists(test_path("out/.tmp-new")));
}

static int setup(void **state)
{
	log_level = LOG_QUIET;
	return test_folder_make(state);
}

static void a_missing_checkpoint_names_the_others(void **state)
{
	static const struct {
		const char *path, *message, *hint;
	} cases[] = {
		{"missing/checkpoint-50", "the run has no checkpoint-50", "has checkpoint-7, checkpoint-100 (the best);"},
		{"missing/checkpoint-50/", "the run has no checkpoint-50", "checkpoint-7"},
		{"missing/final", "the run has no final", "checkpoint-7"},
		{"missing/other", "no such file or folder", "advice"},
		{"begun/checkpoint-1", "the run has no checkpoint-1", "has no checkpoint yet"},
		{"nowhere/checkpoint-1", "no such file or folder", "advice"},
	};
	make("missing", 7, 7);
	make("missing", 100, 100);
	assert_ok(checkpoint_mark_best(test_path("missing"), 100, "loss", 2.5));
	assert_ok(folder_make(test_path("begun/data")));
	assert_ok(file_write(test_path("begun/" RUN_FOLDER_MARK), "x", 1));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(checkpoint_missing(test_path(cases[i].path), "advice"), ERR_USAGE);
		assert_non_null(strstr(error_last()->message, cases[i].message));
		if (!strstr(error_last()->hint, cases[i].hint))
			fail_msg("%s: hint '%s'", cases[i].path, error_last()->hint);
	}
	/* A long run is not listed back to its beginning. */
	for (int64_t step = 1000; step < 1014; step++)
		make("missing", step, step);
	assert_int_equal(checkpoint_missing(test_path("missing/checkpoint-50"), ""), ERR_USAGE);
	assert_non_null(strstr(error_last()->hint, "4 older ones, checkpoint-1002, "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_say_steps),
		cmocka_unit_test(the_newest_whole_one_is_found),
		cmocka_unit_test(the_newest_and_the_best_are_kept),
		cmocka_unit_test(the_best_is_marked),
		cmocka_unit_test(leftovers_go),
		cmocka_unit_test(a_new_folder_replaces_nothing),
		cmocka_unit_test(a_missing_checkpoint_names_the_others),
	};
	return cmocka_run_group_tests(tests, setup, test_folder_drop);
}
