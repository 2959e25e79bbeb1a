/* The folder `data` of a run: who it belongs to, and when it is made again. */
#include "test.h"
#include "run/data_folder.h"

static const struct name_list none;

static void write_in(const char *name)
{
	assert_ok(file_write(test_path(name), "text", 4));
}

static void a_folder_of_the_same_settings_stays(void **state)
{
	const char *folder = test_path("same/data");
	assert_ok(folder_make(test_path("same")));
	assert_ok(data_folder_claim(folder, "vocab_size 100\n", false, &none));
	assert_true(file_exists(test_path("same/" RUN_FOLDER_MARK)));
	write_in("same/data/vocab.txt");
	assert_ok(data_folder_claim(folder, "vocab_size 100\n", false, &none));
	assert_true(file_exists(test_path("same/data/vocab.txt")));
	/* Made for other settings, it is removed unless a checkpoint depends on it. */
	assert_ok(data_folder_claim(folder, "vocab_size 200\n", true, &none));
	assert_true(file_exists(test_path("same/data/vocab.txt")));
	assert_ok(data_folder_claim(folder, "vocab_size 200\n", false, &none));
	assert_false(file_exists(test_path("same/data/vocab.txt")));
	write_in("same/data/vocab.txt");
	assert_ok(data_folder_claim(folder, "vocab_size 200\n", false, &none));
	assert_true(file_exists(test_path("same/data/vocab.txt")));
}

/* What the run reads is not removed with what was made for other settings. */
static void what_the_run_reads_stays(void **state)
{
	const char *folder = test_path("read/data");
	struct name_list inputs = {0};
	assert_ok(folder_make(test_path("read")));
	assert_ok(data_folder_claim(folder, "vocab_size 100\n", false, &none));
	write_in("read/data/vocab.txt");
	assert_ok(name_list_add(&inputs, test_path("nowhere/vocab.txt")));
	assert_ok(name_list_add(&inputs, test_path("read/data/vocab.txt")));
	assert_error(ERR_USAGE, "would be replaced", data_folder_claim(folder, "vocab_size 200\n", false, &inputs));
	assert_true(file_exists(test_path("read/data/vocab.txt")));
	assert_ok(data_folder_claim(folder, "vocab_size 100\n", false, &inputs));
	name_list_release(&inputs);
}

static void what_is_the_users_stays(void **state)
{
	assert_ok(folder_make(test_path("users")));
	assert_ok(folder_make(test_path("users/data")));
	write_in("users/data/thesis.txt");
	assert_error(ERR_USAGE, "was not made by bertc", data_folder_claim(test_path("users/data"), "", false, &none));
	assert_error(ERR_USAGE, "was not made by bertc", data_folder_claim(test_path("users/data"), "", true, &none));
	assert_true(file_exists(test_path("users/data/thesis.txt")));
	assert_false(file_exists(test_path("users/data/" DATA_FOLDER_MARK)));
	/* An empty one can be used. */
	assert_ok(folder_make(test_path("empty")));
	assert_ok(data_folder_claim(test_path("empty"), "", false, &none));
	assert_true(file_exists(test_path("empty/" DATA_FOLDER_MARK)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_folder_of_the_same_settings_stays),
		cmocka_unit_test(what_is_the_users_stays),
		cmocka_unit_test(what_the_run_reads_stays),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
