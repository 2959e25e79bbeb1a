/* Calibration from the command line: after training or without, recorded in the folder and obeyed. */
#include "cmd/labeled_files.h"

static int setup(void **state)
{
	return small_run_make(state, 3) == 0 ? labeled_files_make("cpu") : -1;
}

static bool record_has(const char *folder, const char *what)
{
	struct buffer text = {0};
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "%s/%s/final/bertc_task.json", test_folder, folder);
	assert_ok(file_read(path, 1 << 20, &text));
	bool has = strstr(buffer_string(&text), what) != NULL;
	buffer_release(&text);
	return has;
}

static bool printed(const char *what)
{
	return strstr(buffer_string(&program_output), what) != NULL;
}

static void training_calibrates(void **state)
{
	assert_int_equal(finetune("multilabel", "tuned", "--calibrate --thresholds f1"), 0);
	assert_true(record_has("multilabel-tuned", "\"temperature\""));
	assert_true(record_has("multilabel-tuned", "\"thresholds\""));
	assert_int_equal(program("evaluate --model %s/multilabel-tuned --test %s/multilabel.dev", test_folder, test_folder), 0);
	assert_true(printed("calibrated_loss"));
	assert_int_equal(finetune("tagging", "tuned", "--calibrate"), ERR_USAGE);
	assert_non_null(strstr(buffer_string(&program_errors), "not for tagging"));
}

/* Without training; the checksums stay right, other options stay as recorded, and the run can still be started over. */
static void a_finished_model_is_calibrated(void **state)
{
	assert_int_equal(finetune("classification", "later", ""), 0);
	assert_false(record_has("classification-later", "calibration"));
	assert_int_equal(program("predict --model %s/classification-later %s/classification.dev", test_folder, test_folder), 0);
	assert_false(printed("null"));
	assert_int_equal(
		program("predict --model %s/classification-later --min_score 1 %s/classification.dev", test_folder, test_folder),
		0);
	assert_true(printed("{\"label\":null,\"probabilities\":{"));
	assert_int_equal(
		program("evaluate --model %s/classification-later --test %s/classification.dev --calibrate --min_score 1 "
			"--max_seq_length 12 --long_texts mean --doc_stride 3",
			test_folder, test_folder),
		0);
	assert_true(printed("coverage               0.0000"));
	assert_true(record_has("classification-later", "\"min_score\": 1"));
	assert_true(record_has("classification-later", "\"max_seq_length\": 24"));
	assert_false(record_has("classification-later", "long_texts"));
	assert_false(record_has("classification-later", "doc_stride"));
	assert_int_equal(program("predict --model %s/classification-later %s/classification.dev", test_folder, test_folder), 0);
	assert_true(printed("{\"label\":null,\"probabilities\":{"));
	assert_int_equal(program("verify %s/classification-later", test_folder), 0);
	assert_int_equal(finetune("classification", "later", "--fresh"), 0);
	assert_false(record_has("classification-later", "calibration"));
	assert_int_equal(program("evaluate --model %s/classification-later --test %s/classification.dev --thresholds f1",
				 test_folder, test_folder),
			 ERR_USAGE);
	assert_non_null(strstr(buffer_string(&program_errors), "two classes"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(training_calibrates),
		cmocka_unit_test(a_finished_model_is_calibrated),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
