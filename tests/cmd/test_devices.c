/* A program that can compute on GPUs starts on a machine without any of NVIDIA's libraries, and names what is missing. */
#include "small_run.h"

static void the_program_needs_no_library_of_nvidias(void **state)
{
	const char *bertc = getenv("BERTC");
	char command[512];
	snprintf(command, sizeof command, "readelf -d %s >%s/needed", bertc ? bertc : "build/bertc", test_folder);
	assert_int_equal(system(command), 0);
	struct buffer needed = {0};
	assert_ok(file_read(test_path("needed"), 1 << 16, &needed));
	assert_non_null(strstr(buffer_string(&needed), "Shared library: [libc.so"));
	static const char *const libraries[] = {"[libcuda", "[libcublas", "[libnccl", "[libnv"};
	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
		assert_null(strstr(buffer_string(&needed), libraries[i]));
	buffer_release(&needed);
}

static void a_device_that_is_not_here_is_named(void **state)
{
	assert_program(0, "", "version");
	bool has_cuda = strstr(buffer_string(&program_output), "devices: cpu, cuda");
	assert_program(has_cuda ? 5 : 2, "--device cpu",
		       "pretrain --corpus %s --model %s --out %s/gpu --vocab_size 100 --max_seq_length 32 --device cuda", corpus,
		       config, test_folder);
	const char *said = buffer_string(&program_errors);
	bool named = has_cuda ? strstr(said, "there is no NVIDIA driver on this machine") ||
					strstr(said, "there is no GPU that CUDA can use")
			      : strstr(said, "this program was built without CUDA") != NULL;
	if (!named)
		fail_msg("%s", said);
	assert_program(0, "", "bench --model tiny --max_seq_length 16 --train_batch_size 1 --steps 1 --device cpu");
}

static int setup(void **state)
{
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	return small_run_make(state, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_program_needs_no_library_of_nvidias),
		cmocka_unit_test(a_device_that_is_not_here_is_named),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
