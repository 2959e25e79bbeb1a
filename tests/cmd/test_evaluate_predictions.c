/* bertc evaluate --predictions: what it prints, and options that cannot be combined. */
#include "program.h"
#include "base/json.h"

#define ANSWER(text) "[{\"text\": \"" text "\", \"answer_start\": 0}]"

static void write_text(const char *name, const char *text)
{
	assert_ok(file_write(test_path(name), text, strlen(text)));
}

static int write_files(void **state)
{
	if (test_folder_make(state) != 0)
		return -1;
	write_text("dev.json",
		   "{\"data\": [{\"paragraphs\": [{\"context\": \"The red cat.\", \"qas\": ["
		   "{\"id\": \"a\", \"question\": \"Who?\", \"answers\": " ANSWER(
			   "The red cat") "},"
					  "{\"id\": \"b\", \"question\": \"What?\", \"answers\": " ANSWER("red") "}]}]}]}");
	write_text("dev2.json", "{\"data\": [{\"paragraphs\": [{\"context\": \"The red cat.\", \"qas\": ["
				"{\"id\": \"a\", \"question\": \"Who?\", \"answers\": " ANSWER(
					"The red cat") "},"
						       "{\"id\": \"b\", \"question\": \"When?\", \"answers\": [], "
						       "\"is_impossible\": true}]}]}]}");
	write_text("zh.json", "{\"data\": [{\"paragraphs\": [{\"context\": \"\xE4\xB8\xAD\xE5\x9B\xBD\", \"qas\": ["
			      "{\"id\": \"a\", \"question\": \"?\", \"answers\": " ANSWER("\xE4\xB8\xAD\xE5\x9B\xBD") "}]}]}]}");
	write_text("p.json", "{\"a\": \"red Cat!\", \"b\": \"\", \"other\": \"x\"}");
	write_text("zh_p.json", "{\"a\": \"\xE5\x9B\xBD\"}");
	write_text("odds.json", "{\"a\": -3, \"b\": -1}");
	write_text("nbest.json", "{\"a\": [{\"text\": \"\"}, {\"text\": \"red cat\"}], \"b\": [{\"text\": \"cat\"}]}");
	return 0;
}

static void expect_output(const char *expected)
{
	assert_string_equal(buffer_string(&program_output), expected);
}

static void measures_are_printed(void **state)
{
	const char *f = test_folder;
	assert_program(0, "1 answers are to questions that are not in", "evaluate --predictions %s/p.json --test %s/dev.json", f,
		       f);
	expect_output("exact_match        50.0\nf1                 50.0\n");
	assert_program(0, "", "evaluate --predictions %s/p.json --test dev=%s/dev.json --json", f, f);
	expect_output("{\"exact_match\":50.0,\"f1\":50.0}\n");
	assert_program(0, "", "evaluate --predictions %s/p.json --test %s/dev2.json --version_2_with_negative --json", f, f);
	expect_output("{\"exact\":100.0,\"f1\":100.0,\"total\":2,\"HasAns_exact\":100.0,\"HasAns_f1\":100.0,\"HasAns_total\":1,"
		      "\"NoAns_exact\":100.0,\"NoAns_f1\":100.0,\"NoAns_total\":1}\n");
	assert_program(0, "the measures are CMRC 2018's", "evaluate --predictions %s/zh_p.json --test %s/zh.json --json", f, f);
	expect_output("{\"exact_match\":0.0,\"f1\":66.66666666666666,\"average\":33.33333333333333,\"total\":1,\"skip\":0}\n");
	assert_program(0, "", "evaluate --predictions %s/zh_p.json --test %s/zh.json --scorer squad --json", f, f);
	expect_output("{\"exact_match\":0.0,\"f1\":0.0}\n");
}

/* No scores are lost under a name that two sets of one JSON object would have. */
static void sets_have_names_of_their_own(void **state)
{
	const char *f = test_folder;
	assert_program(2, "a set is called 'test'", "evaluate --json --model %s --test %s/dev.json test=%s/dev2.json", f, f, f);
}

static void thresholds_are_found(void **state)
{
	const char *f = test_folder;
	assert_program(0, "lists of answers: the first that is not empty is taken",
		       "evaluate --predictions %s/nbest.json --test %s/dev2.json --version_2_with_negative --na_prob_file "
		       "%s/odds.json --na_prob_thresh=-2 --find_threshold --json",
		       f, f, f);
	expect_output(
		"{\"exact\":100.0,\"f1\":100.0,\"total\":2,\"HasAns_exact\":100.0,\"HasAns_f1\":100.0,\"HasAns_total\":1,"
		"\"NoAns_exact\":100.0,\"NoAns_f1\":100.0,\"NoAns_total\":1,\"best_exact\":100.0,\"best_exact_thresh\":-3.0,"
		"\"best_f1\":100.0,\"best_f1_thresh\":-3.0,\"found_exact\":100.0,\"found_exact_thresh\":-3.0,"
		"\"found_f1\":100.0,\"found_f1_thresh\":-3.0}\n");
}

static void what_does_not_fit_is_refused(void **state)
{
	const char *f = test_folder;
	assert_program(2, "--test is missing", "evaluate --predictions %s/p.json", f);
	assert_program(2, "one --test file", "evaluate --predictions %s/p.json --test a b", f);
	assert_program(2, "--na_prob_file needs --version_2_with_negative",
		       "evaluate --predictions %s/p.json --test %s/dev.json --na_prob_file x", f, f);
	assert_program(2, "--find_threshold needs --na_prob_file",
		       "evaluate --predictions %s/p.json --test %s/dev2.json --version_2_with_negative --find_threshold", f, f);
	assert_program(2, "has no measures for", "evaluate --predictions x --test y --version_2_with_negative --scorer cmrc");
	assert_program(2, "--model and --predictions", "evaluate --predictions x --test y --model z");
	assert_program(2, "--test and text to pre-train on", "evaluate --model x --corpus y --test z");
	assert_program(3, "question 'b' has no answer", "evaluate --predictions %s/p.json --test %s/dev2.json", f, f);
	assert_program(3, "1 question without a prediction: 'b'",
		       "evaluate --predictions %s/zh_p.json --test %s/dev2.json --version_2_with_negative", f, f);
	assert_program(4, "answers none of the 1 questions", "evaluate --predictions %s/odds2.json --test %s/zh.json", f, f);
}

static int write_more(void **state)
{
	write_text("odds2.json", "{\"z\": \"x\"}");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measures_are_printed),
		cmocka_unit_test(sets_have_names_of_their_own),
		cmocka_unit_test(thresholds_are_found),
		cmocka_unit_test_setup(what_does_not_fit_is_refused, write_more),
	};
	return cmocka_run_group_tests(tests, write_files, program_teardown);
}
