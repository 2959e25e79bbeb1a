/* The shortest of examples/ as it stands, with a small model; tests/long/examples.sh runs all of them. */
#include "cmd/small_run.h"

static int setup(void **state)
{
	if (small_run_make(state, 11) != 0)
		return -1;
	return program(
		"pretrain -q --corpus %s --model %s --out %s/base --vocab_size 80 --num_train_steps 1 --train_batch_size 4 "
		"--max_seq_length 32 --precision fp32 --threads 1",
		corpus, config, test_folder);
}

static void a_classifier_from_a_csv(void **state)
{
	(void)state;
	static char command[1024];
	struct buffer answers = {0};
	snprintf(command, sizeof command,
		 "BERTC=\"${BERTC:-build/bertc}\" MODEL=%s/base OUT=%s/feedback EPOCHS=1 sh examples/classifier.sh >%s/answers "
		 "2>&1",
		 test_folder, test_folder, test_folder);
	assert_int_equal(system(command), 0);
	assert_ok(file_read(test_path("answers"), 1 << 24, &answers));
	assert_non_null(strstr(buffer_string(&answers), "examples                   60"));
	assert_non_null(strstr(buffer_string(&answers), "{\"label\":\""));
	buffer_release(&answers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_classifier_from_a_csv),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
