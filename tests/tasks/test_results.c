/* Result files, byte for byte as the programs that people migrate from write them. */
#include "tasks/results.h"
#include <float.h>
#include <math.h>
#include "base/log.h"
#include "test.h"

static void expect_file(const char *name, const char *expected)
{
	struct buffer text = {0};
	assert_ok(file_read(test_path(name), 1 << 20, &text));
	assert_string_equal(buffer_string(&text), expected);
	buffer_release(&text);
}

/* Expected texts: str(numpy.float32(x)) in NumPy 1.26. */
static void floats_are_printed_as_numpy_prints_them(void **state)
{
	static const struct {
		float value;
		const char *text;
	} cases[] = {
		{0.0f, "0.0"},
		{-0.0f, "-0.0"},
		{1.0f, "1.0"},
		{0.1f, "0.1"},
		{1.0f / 3, "0.33333334"},
		{0.99987f, "0.99987"},
		{0.0001f, "1e-04"},
		{0.00012345f, "0.00012345"},
		{9.9999e-5f, "9.9999e-05"},
		{1e-5f, "1e-05"},
		{16777216.0f, "16777216.0"},
		{123456.789f, "123456.79"},
		{1e15f, "1000000000000000.0"},
		{1e16f, "1e+16"},
		{-2.5e-10f, "-2.5e-10"},
		{FLT_MAX, "3.4028235e+38"},
		{FLT_MIN, "1.1754944e-38"},
		{1e-45f, "1e-45"},
		{NAN, "nan"},
		{-INFINITY, "-inf"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct buffer text = {0};
		results_put_float(&text, cases[i].value);
		assert_string_equal(buffer_string(&text), cases[i].text);
		buffer_release(&text);
	}
}

static void evaluations_are_sorted(void **state)
{
	struct measures first = {0}, second = {0};
	measures_add(&first, &(struct measure){.name = "loss", .value = 0.5});
	measures_add(&first, &(struct measure){.name = "accuracy", .value = 0.8401826484018264});
	measures_add(&first, &(struct measure){.name = "examples", .unit = UNIT_COUNT, .value = 408});
	measures_add(&second, &(struct measure){.name = "f1", .value = NAN});
	struct class_score score = {.precision = 0.5, .recall = 1, .f1 = 0.6666666666666666, .support = 3};
	const char *label = "good";
	const struct class_scores classes = {.count = 1, .names = &label, .scores = &score}, none = {.count = 0};
	const struct result_set sets[] = {{"", &first, &classes}, {"mismatched", &second, &none}};
	assert_ok(results_write_evaluation(
		test_folder,
		&(struct result_facts){
			.sets = sets, .count = 2, .kind = "eval", .global_step = 343, .loss = 0.25, .selected_on = "dev.tsv"}));
	expect_file("eval_results.json",
		    "{\n    \"eval_accuracy\": 0.8401826484018264,\n    \"eval_classes\": {\n        \"good\": {\n            "
		    "\"precision\": 0.5,\n            \"recall\": 1.0,\n            \"f1\": 0.6666666666666666,\n            "
		    "\"support\": 3\n        }\n    },\n    \"eval_examples\": 408,\n"
		    "    \"eval_loss\": 0.5,\n    \"eval_mismatched_f1\": null,\n    \"global_step\": 343,\n"
		    "    \"loss\": 0.25,\n    \"selected_on\": \"dev.tsv\"\n}\n");
	expect_file("eval_results.txt", "eval_accuracy = 0.8401826484018264\neval_examples = 408\neval_loss = 0.5\n"
					"eval_mismatched_f1 = null\nglobal_step = 343\nloss = 0.25\n");
}

static void predictions_are_rows(void **state)
{
	assert_ok(results_write_classes(test_path("predict.txt"), (const int32_t[]){2, 0, 11}, 3));
	expect_file("predict.txt", "2\n0\n11\n");
	assert_ok(results_write_values(test_path("test_results.tsv"), (const float[]){0.25f, 0.75f, 1e-5f, 0.99999f}, 2, 2));
	expect_file("test_results.tsv", "0.25\t0.75\n1e-05\t0.99999\n");
	assert_ok(results_write_values(test_path("test_results.tsv"), NULL, 0, 2));
	expect_file("test_results.tsv", "");
	assert_ok(results_write_submission(test_path("RTE.tsv"), NULL, (const char *const[]){"entailment", "not_entailment"}, 2));
	expect_file("RTE.tsv", "index\tprediction\n0\tentailment\n1\tnot_entailment\n");
	assert_ok(results_write_submitted_numbers(test_path("STS-B.tsv"), (const char *const[]){"7", "9"},
						  (const float[]){2.0f, 3.14159f}, 2));
	expect_file("STS-B.tsv", "index\tprediction\n7\t2.000\n9\t3.142\n");
}

static void read_words(struct conll *out, const char *text)
{
	struct text_file file;
	struct bad_records bad = {0};
	put_file("in.txt", text);
	assert_ok(text_file_read(&file, test_path("in.txt"), TEXT_FILE_LIMIT));
	assert_ok(conll_parse(out, &file, &(struct conll_options){.bad = &bad}));
}

static void tags_stand_behind_the_columns_of_the_file(void **state)
{
	struct conll conll;
	static const char *const tags[] = {"I-X", "O", "B-X"};
	read_words(&conll, "-DOCSTART- (1)\n\na\tx\tO\nb\ty\tI-X\n\n\n-DOCSTART- (2)\nc\tz\tO\n-DOCSTART- (3)\n");
	assert_ok(results_write_tags(test_path("out.txt"), &conll, tags));
	expect_file("out.txt",
		    "-DOCSTART- (1)\n\na\tx\tO\tI-X\nb\ty\tI-X\tO\n\n-DOCSTART- (2)\n\nc\tz\tO\tB-X\n\n-DOCSTART- (3)\n\n");
	conll_release(&conll);
	read_words(&conll, "a\nb\n\nc\n");
	assert_ok(results_write_tags(test_path("out.txt"), &conll, tags));
	expect_file("out.txt", "a I-X\nb O\n\nc B-X\n\n");
	conll_release(&conll);
}

/* The files of all tasks are known by their names, and nothing else in a run's folder is. */
static void files_of_results_are_known(void **state)
{
	static const char *const results[] = {
		"eval_results.json", "eval_results.txt",  "test_results.tsv", "predict.txt",
		"predictions.txt",   "predictions_2.txt", "predictions.json", "nbest_predictions.json",
		"null_odds.json",    "MRPC.tsv",          "MNLI-mm.tsv"};
	static const char *const others[] = {"settings.json",
					     "metrics.jsonl",
					     "report.html",
					     "final",
					     "predictions",
					     "train.tsv",
					     "predictions_x.txt",
					     "my_predictions.json",
					     "predict.txt.bak",
					     "eval_results",
					     ""};
	for (size_t i = 0; i < sizeof results / sizeof *results; i++)
		assert_true(results_is_file(results[i]));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(results_is_file(others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_of_results_are_known),
		cmocka_unit_test(floats_are_printed_as_numpy_prints_them),
		cmocka_unit_test(evaluations_are_sorted),
		cmocka_unit_test(predictions_are_rows),
		cmocka_unit_test(tags_stand_behind_the_columns_of_the_file),
	};
	log_level = LOG_QUIET;
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
