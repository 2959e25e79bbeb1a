/* What newcomers meet first: a text where a file belongs, options of other servers, models that do not exist, misspelled
 * labels, sets too small to tell anything, and how results are printed. */
#include "cmd/small_run.h"

static int setup(void **state)
{
	struct buffer rows = {0};
	if (small_run_make(state, 9) != 0)
		return -1;
	buffer_text(&rows, "sentence\tlabel\n");
	for (int i = 0; i < 40; i++)
		buffer_format(&rows, "the cat sees a river %d\t%s\n", i, i % 2 ? "positive" : "negative");
	assert_ok(file_write(test_path("dev.tsv"), rows.data, rows.size));
	buffer_text(&rows, "a dog\tpostive\n");
	assert_ok(file_write(test_path("train.tsv"), rows.data, rows.size));
	buffer_release(&rows);
	return program(
		"pretrain -q --corpus %s --model %s --out %s/base --vocab_size 80 --num_train_steps 1 --train_batch_size 4 "
		"--max_seq_length 32 --precision fp32 --threads 1",
		corpus, config, test_folder);
}

static void texts_are_no_files(void **state)
{
	(void)state;
	assert_program(2, "bertc: 'I love it' is not a file\nhint: ", "predict --model %s/base \"I love it\"", test_folder);
	assert_said("echo \"TEXT\" | bertc predict --model FOLDER");
	assert_program(2, "'I love it' is not a file", "embed --model %s/base \"I love it\"", test_folder);
	/* A name with a typo is a file that does not exist. */
	assert_program(2, "cannot open", "embed --model %s/base nothing.txt", test_folder);
}

/* Only commands that train accept the names of sizes. */
static void models_that_are_not_there(void **state)
{
	(void)state;
	static const char *const commands[] = {
		"predict", "embed", "score", "evaluate --corpus x", "fill", "serve", "export --to onnx --out x"};
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		assert_program(2, "bertc: 'basse': no such file or folder\nhint: give a run folder", "%s --model basse",
			       commands[i]);
		assert_null(strstr(program_errors.data, "tiny"));
	}
	assert_program(2, "'none/final': no such file", "serve --model mail=none/final");
	assert_program(2, "tiny|mini", "pretrain --corpus %s --out %s/x --model basse", corpus, test_folder);
}

static void other_servers_options(void **state)
{
	(void)state;
	assert_program(2, "bertc has no option --port\nhint: --listen 127.0.0.1:8080", "serve --model %s/base --port 8000",
		       test_folder);
	assert_program(2, "--listen", "serve --model %s/base --host 0.0.0.0", test_folder);
}

static void small_sets_slips_and_ties(void **state)
{
	(void)state;
	assert_program(
		0, "the label 'postive' has a single example: is it a mistyped 'positive'?",
		"finetune --task classification --model %s/base --train %s/train.tsv --dev %s/dev.tsv --out %s/sweep --sweep "
		"\"learning_rate=1e-9,2e-9\" --num_train_steps 1 --max_seq_length 16 --precision fp32 --threads 1",
		test_folder, test_folder, test_folder, test_folder);
	assert_said("the dev set has only 40 examples: small differences");
	assert_said("2 runs did equally well: the sweep does not tell which is best");
	assert_null(strstr(program_errors.data, "the best run is"));
	/* The usual rates of a small model, not those of large ones. */
	assert_said("5e-5 to 5e-4 is usual");
	/* The same style of results here and in evaluate: a fraction with four digits, a count with none. */
	assert_said("\naccuracy               0.5000\n");
	assert_said("\nexamples                   40\n");
	assert_int_equal(program("evaluate -q --model %s/sweep/final --test %s/dev.tsv --threads 1", test_folder, test_folder),
			 0);
	assert_non_null(strstr(buffer_string(&program_output), "\naccuracy               0.5000\n"));
	assert_non_null(strstr(buffer_string(&program_output), "\nexamples                   40\n"));
}

/* One term for one thing in all commands; older command lines and runs use another. */
static void bad_records(void **state)
{
	(void)state;
	assert_ok(file_write(test_path("bad.jsonl"), "{\"text\": \"the cat\"}\n{\"text\": 5 7}\n", 34));
	assert_program(3, "line 2", "vocab --corpus %s --out %s/v.txt --on_bad_record fail", test_path("bad.jsonl"), test_folder);
	assert_program(3, "line 2", "vocab --corpus %s --out %s/v.txt --on_bad_record stop", test_path("bad.jsonl"), test_folder);
	assert_int_equal(program("help finetune"), 0);
	assert_int_equal(program("help pretrain"), 0);
	assert_null(strstr(buffer_string(&program_output), "one of fail"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_no_files),    cmocka_unit_test(models_that_are_not_there),
		cmocka_unit_test(other_servers_options), cmocka_unit_test(small_sets_slips_and_ties),
		cmocka_unit_test(bad_records),
	};
	return cmocka_run_group_tests_name("what a first user meets", tests, setup, program_teardown);
}
