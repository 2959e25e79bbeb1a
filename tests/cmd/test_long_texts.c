/* Texts read in windows, from the command line: in training, and as recorded afterwards. */
#include "cmd/labeled_files.h"

/* Texts of 25 words, whose class is what is done in the last sentence. */
static void put_long(const char *name, int count, uint64_t seed)
{
	struct buffer text = {0};
	struct rng rng = rng_start(seed, RNG_TEST, 3);
	buffer_text(&text, "text\tlabel\n");
	for (int i = 0; i < count; i++) {
		struct said said = {0};
		for (int k = 0; k < 5; k++) {
			said = draw_sentence(&rng);
			buffer_format(&text, "%s %s %s. ", said.who, said.does, said.what);
		}
		buffer_format(&text, "\t%s\n", said.does);
	}
	assert_ok(file_write(test_path(name), text.data, text.size));
	buffer_release(&text);
}

static int setup(void **state)
{
	if (small_run_make(state, 3) != 0 || labeled_files_make("cpu") != 0)
		return -1;
	put_long("long.train", 60, 5);
	put_long("long.dev", 20, 6);
	return 0;
}

static bool said(const struct buffer *text, const char *what)
{
	return strstr(buffer_string(text), what) != NULL;
}

static void windows_are_read_as_in_training(void **state)
{
	double of_run, later;
	assert_int_equal(program("finetune --task classification --model %s/base --train %s/long.train --dev %s/long.dev --out "
				 "%s/long --max_seq_length 12 --long_texts mean --num_train_steps 6 --threads 1 --precision fp32",
				 test_folder, test_folder, test_folder, test_folder),
			 0);
	assert_true(said(&program_errors, "60 of 60 texts are longer than 12 tokens and are read in"));
	assert_int_equal(
		program("evaluate --model %s/long --test %s/long.dev --threads 1 --precision fp32", test_folder, test_folder), 0);
	assert_true(said(&program_output, "examples                   20"));
	assert_int_equal(sscanf(strstr(buffer_string(&program_output), "loss"), "loss %lf", &later), 1);
	struct buffer results = {0};
	assert_ok(file_read(test_path("long/eval_results.txt"), 1 << 16, &results));
	assert_int_equal(sscanf(strstr(buffer_string(&results), "eval_loss"), "eval_loss = %lf", &of_run), 1);
	assert_near(of_run, later, 1e-4);
	buffer_release(&results);
	assert_int_equal(program("evaluate --model %s/long --test %s/long.dev --doc_stride 50", test_folder, test_folder), 0);
	assert_true(said(&program_errors, "--doc_stride 50 is more than a window holds"));
	/* Line by line, and as a whole with the files of results. */
	assert_int_equal(program("predict --model %s/long %s/long.dev --format tsv --threads 1 --precision fp32", test_folder,
				 test_folder),
			 0);
	struct buffer lines = {0};
	buffer_text(&lines, buffer_string(&program_output));
	assert_int_equal(program("predict --model %s/long %s/long.dev --out %s/results/ --threads 1 --precision fp32",
				 test_folder, test_folder, test_folder),
			 0);
	struct buffer whole = {0};
	assert_ok(file_read(test_path("results/test_results.tsv"), 1 << 16, &whole));
	double a, b;
	assert_int_equal(sscanf(buffer_string(&lines), "%lf", &a), 1);
	assert_int_equal(sscanf(buffer_string(&whole), "%lf", &b), 1);
	assert_near(a, b, 1e-5);
	buffer_release(&lines);
	buffer_release(&whole);
}

static void other_tasks_have_none(void **state)
{
	assert_int_equal(finetune("tagging", "long", "--long_texts mean"), ERR_USAGE);
	assert_true(said(&program_errors, "not for tagging"));
	assert_int_equal(finetune("classification", "long", "--long_texts middle"), ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_are_read_as_in_training),
		cmocka_unit_test(other_tasks_have_none),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
