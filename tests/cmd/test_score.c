/* bertc score as a user runs it: what it prints, and what it refuses. Its numbers are tested in infer/test_word_losses.c. */
#include <math.h>
#include "base/json.h"
#include "cmd/program.h"
#include "infer/small_model.h"

static int setup(void **state)
{
	if (test_folder_make(state) != 0)
		return -1;
	small_model_make(test_path("model"), &model_heads_pretraining, NULL, NULL);
	small_model_make(test_path("encoder"), &model_heads_encoder, NULL, NULL);
	return 0;
}

#define SCORE "score --model %s/model --precision fp32 --no_progress "

/* Line `number` of the output; the caller releases it. */
static void printed_line(int number, struct json_document *out)
{
	const char *line = buffer_string(&program_output);
	for (int i = 0; i < number; i++)
		line = strchr(line, '\n') + 1;
	assert_ok(json_parse(out, "output", line, strcspn(line, "\n")));
}

static void objects_are_printed(void **state)
{
	static const char text[] = "{\"text\": \"wai wajs\", \"id\": 3}\n{\"text\": \"\", \"id\": \"x\"}\n";
	for (int whole = 0; whole < 2; whole++) {
		struct json_document document;
		double sum = 0, said = 0, perplexity = 0;
		assert_ok(file_write(test_path("texts.jsonl"), text, strlen(text)));
		assert_program(0, "1 text was empty", SCORE "%s/texts.jsonl %s", test_folder, test_folder,
			       whole ? "--whole_word" : "");
		printed_line(0, &document);
		assert_int_equal(json_member(document.root, "id")->integer, 3);
		assert_string_equal(json_member(document.root, "tokens")->first_child->next->next->text, "##s");
		assert_int_equal(json_member(document.root, "losses")->child_count, 3);
		for (const struct json *loss = json_member(document.root, "losses")->first_child; loss; loss = loss->next)
			sum += loss->number;
		assert_ok(json_get_number(document.root, "", "sum", &said));
		assert_ok(json_get_number(document.root, "", "pseudo_perplexity", &perplexity));
		assert_near(said, sum, 1e-5);
		assert_near(perplexity / exp(sum / (whole ? 2 : 3)), 1, 1e-5);
		json_release(&document);
		printed_line(1, &document);
		assert_string_equal(json_member(document.root, "id")->text, "x");
		assert_int_equal(json_member(document.root, "pseudo_perplexity")->kind, JSON_NULL);
		json_release(&document);
	}
}

static void a_column_of_a_table_is_scored(void **state)
{
	struct json_document document;
	static const char table[] = "id\ttext\na\twai wajs\nb\twak\nc\twal\n";
	assert_ok(file_write(test_path("t.tsv"), table, strlen(table)));
	assert_program(0, "", SCORE "%s/t.tsv --text_column text", test_folder, test_folder);
	printed_line(0, &document);
	assert_string_equal(json_member(document.root, "id")->text, "a");
	assert_int_equal(json_member(document.root, "tokens")->child_count, 3);
	json_release(&document);
	assert_program(0, "(TSV, columns 1 id, 2 text)", SCORE "%s/t.tsv", test_folder, test_folder);
}

static void what_cannot_be_scored_is_refused(void **state)
{
	char pair[1024] = "wai ||| ";
	for (int i = 0; i < 60; i++)
		strcat(pair, "waj ");
	assert_ok(file_write(test_path("pair.txt"), pair, strlen(pair)));
	assert_program(3, "line 1: a pair of 64 tokens, but a sequence can have at most 48",
		       SCORE "%s/pair.txt --pair_separator ' ||| '", test_folder, test_folder);
	assert_program(0, "taken in windows", SCORE "%s/pair.txt", test_folder, test_folder);
	assert_program(2, "--model is missing", "score %s/pair.txt", test_folder);
	/* An encoder has no head that predicts words. */
	assert_program(4, "cls.predictions", "score --model %s/encoder %s/pair.txt", test_folder, test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_are_printed),
		cmocka_unit_test(a_column_of_a_table_is_scored),
		cmocka_unit_test(what_cannot_be_scored_is_refused),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
