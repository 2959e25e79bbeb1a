/* API keys: what a key file may hold, and which Authorization headers it accepts. */
#include "serve/api_keys.h"
#include "base/log.h"
#include "test.h"

static enum status read_keys(struct api_keys *out, const char *text)
{
	const char *path = test_path("keys");
	assert_ok(file_write(path, text, strlen(text)));
	return api_keys_read(out, path);
}

static void keys_are_lines_of_a_file(void **state)
{
	struct api_keys keys;
	assert_ok(read_keys(&keys, "# of the team\n\nfirst-key\r\n  \nsecond \n"));
	assert_int_equal(keys.count, 2);
	assert_true(api_keys_allow(&keys, "Bearer first-key"));
	assert_true(api_keys_allow(&keys, "bearer  second"));
	assert_false(api_keys_allow(&keys, "Bearer second "));
	assert_false(api_keys_allow(&keys, "Bearer secon"));
	assert_false(api_keys_allow(&keys, "Bearer second2"));
	assert_false(api_keys_allow(&keys, "Bearer "));
	assert_false(api_keys_allow(&keys, "Bearer"));
	assert_false(api_keys_allow(&keys, "first-key"));
	assert_false(api_keys_allow(&keys, "Basic first-key"));
	assert_false(api_keys_allow(&keys, ""));
	assert_false(api_keys_allow(&keys, "Bearer # of the team"));
	api_keys_release(&keys);
}

static void without_keys_everybody_may_ask(void **state)
{
	const struct api_keys none = {0};
	assert_true(api_keys_allow(&none, ""));
	assert_true(api_keys_allow(&none, "Bearer x"));
}

static void bad_files_are_refused(void **state)
{
	struct api_keys keys;
	char longest[300];
	assert_error(ERR_DATA, "holds no keys", read_keys(&keys, "# nothing\n\n"));
	assert_error(ERR_DATA, "line 2: a key is made of visible ASCII", read_keys(&keys, "one\ntwo three\n"));
	assert_error(ERR_DATA, "line 1", read_keys(&keys, "schl\xC3\xBCssel\n"));
	memset(longest, 'k', sizeof longest);
	longest[256] = '\0';
	assert_error(ERR_DATA, "255 bytes", read_keys(&keys, longest));
	longest[255] = '\0';
	assert_ok(read_keys(&keys, longest));
	char header[400];
	snprintf(header, sizeof header, "Bearer %s", longest);
	assert_true(api_keys_allow(&keys, header));
	snprintf(header, sizeof header, "Bearer %sk", longest);
	assert_false(api_keys_allow(&keys, header));
	api_keys_release(&keys);
	assert_ok(file_write(test_path("nul"), "a\0b\n", 4));
	assert_error(ERR_DATA, "NUL", api_keys_read(&keys, test_path("nul")));
	assert_error(ERR_USAGE, "none", api_keys_read(&keys, test_path("none")));
}

int main(void)
{
	log_level = LOG_QUIET;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_lines_of_a_file),
		cmocka_unit_test(without_keys_everybody_may_ask),
		cmocka_unit_test(bad_files_are_refused),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
