/* Libraries that are loaded at run time, and the messages when they are missing or too old. */
#include "test.h"
#include <dlfcn.h>
#include <unistd.h>
#include "base/shared_library.h"

static double (*cosine)(double);
static int (*absent)(void);

static const struct shared_library maths = {
	.name = "Maths", .files = {"libm.so.6"}, .package = "the package libc6", .instead = "give --by_hand"};

static void functions_of_a_library_can_be_called(void **state)
{
	void *handle;
	const struct shared_library_function functions[] = {{"cos", &cosine}};
	assert_ok(shared_library_open(&handle, &maths, functions, 1));
	assert_non_null(handle);
	assert_true(cosine(0) == 1);
}

static void a_missing_library_is_named_with_its_package(void **state)
{
	void *handle = &cosine;
	struct shared_library missing = maths;
	missing.files[0] = "libnowhere.so.1";
	const struct shared_library_function functions[] = {{"cos", &cosine}};
	assert_error(ERR_RESOURCE, "Maths is not installed on this machine: libnowhere.so.1: cannot open",
		     shared_library_open(&handle, &missing, functions, 1));
	assert_string_equal(error_last()->hint,
			    "install the package libc6, add the folder of libnowhere.so.1 to LD_LIBRARY_PATH, or give --by_hand");
	assert_null(handle);
}

static void a_library_without_a_function_is_too_old(void **state)
{
	void *handle = &cosine;
	const struct shared_library_function functions[] = {{"cos", &cosine}, {"cos_of_tomorrow", &absent}};
	assert_error(ERR_RESOURCE, "Maths on this machine is too old: it has no cos_of_tomorrow",
		     shared_library_open(&handle, &maths, functions, 2));
	assert_string_equal(error_last()->hint, "install a newer version of the package libc6, or give --by_hand");
	assert_null(handle);
}

static void the_first_file_that_is_here_is_loaded(void **state)
{
	void *handle;
	struct shared_library library = maths;
	library.files[0] = "libnowhere.so.1";
	library.files[1] = "libm.so.6";
	const struct shared_library_function functions[] = {{"cos", &cosine}};
	assert_ok(shared_library_open(&handle, &library, functions, 1));
}

static void a_folder_is_looked_into_that_the_loader_does_not_know(void **state)
{
	void *handle;
	Dl_info maths_file;
	struct shared_library library = maths;
	const struct shared_library_function functions[] = {{"cos", &cosine}};
	assert_ok(shared_library_open(&handle, &maths, functions, 1));
	assert_true(dladdr((void *)(uintptr_t)cosine, &maths_file) != 0);
	assert_int_equal(symlink(maths_file.dli_fname, test_path("libours.so.1")), 0);
	library.files[0] = "libours.so.1";
	assert_error(ERR_RESOURCE, "Maths is not installed", shared_library_open(&handle, &library, functions, 1));
	library.folder = test_folder;
	assert_ok(shared_library_open(&handle, &library, functions, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_a_library_can_be_called),
		cmocka_unit_test(a_missing_library_is_named_with_its_package),
		cmocka_unit_test(a_library_without_a_function_is_too_old),
		cmocka_unit_test(the_first_file_that_is_here_is_loaded),
		cmocka_unit_test(a_folder_is_looked_into_that_the_loader_does_not_know),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
