/* Scores compared with the official scripts (dev/squad_score_golden.py), and input that makes those fail. */
#include "tasks/squad/squad_score.h"
#include <math.h>
#include "base/log.h"
#include "base/memory.h"
#include "tasks/squad/word_tokenize.h"
#include "test.h"

/* Another, larger file of the same format can be named in the environment. */
static const char *golden_path(void)
{
	const char *named = getenv("SQUAD_SCORE_GOLDEN");
	return named ? named : "tests/golden/squad_scores.json";
}

static void read_set(const char *text, struct squad_set *out)
{
	static struct bad_records bad;
	const char *path = test_path("dataset.json");
	assert_ok(file_write(path, text, strlen(text)));
	assert_ok(squad_read(out, path, &(struct squad_options){.use = SQUAD_PREDICT, .allow_impossible = true, .bad = &bad}));
}

static void put_again(struct json_writer *writer, const struct json *value)
{
	if (value->kind == JSON_STRING)
		json_put_text(writer, value->key, value->text, value->text_size);
	else
		json_put_double(writer, value->key, value->number);
}

/* Writes an object of the golden file to a file of its own. */
static const char *object_file(const struct json *object)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	const char *path = test_path("object.json");
	json_open(&writer, NULL, '{');
	for (const struct json *child = object->first_child; child; child = child->next)
		put_again(&writer, child);
	json_close(&writer);
	assert_ok(file_write(path, text.data, text.size));
	buffer_release(&text);
	return path;
}

/* Expects exactly these measures, in this order. */
static void expect_measures(const struct json *expected, const struct measures *measures, const char *what)
{
	int i = 0;
	assert_int_equal(measures->count, expected->child_count);
	for (const struct json *child = expected->first_child; child; child = child->next, i++) {
		assert_string_equal(measures->item[i].name, child->key);
		if (!(fabs(measures->item[i].value - child->number) <= 1e-9))
			fail_msg("%s: %s is %.17g, expected %.17g", what, child->key, measures->item[i].value, child->number);
	}
}

static void check_answered(const struct json *row)
{
	struct squad_set set;
	struct squad_predictions predictions;
	struct measures measures = {0}, chinese = {0};
	read_set(json_member(row, "answered")->text, &set);
	assert_ok(squad_predictions_read(&predictions, object_file(json_member(row, "some")), &set));
	assert_true(predictions.unknown_count > 0);
	assert_ok(squad_score_1(&set, predictions.texts, &measures));
	expect_measures(json_member(row, "version_1"), &measures, "version 1");
	assert_ok(squad_score_chinese(&set, predictions.texts, &chinese));
	expect_measures(json_member(row, "chinese"), &chinese, "CMRC 2018");
	squad_predictions_release(&predictions);
	squad_release(&set);
}

static void check_all(const struct json *row)
{
	struct squad_set set;
	struct squad_predictions predictions;
	struct squad_null_scores null_scores;
	struct squad_thresholds thresholds;
	struct measures measures = {0}, with_null = {0}, chosen = {0};
	read_set(json_member(row, "dataset")->text, &set);
	assert_ok(squad_predictions_read(&predictions, object_file(json_member(row, "predictions")), &set));
	assert_int_equal(predictions.missing_count, 0);
	assert_ok(squad_score_2(&set, predictions.texts, NULL, 1, &measures));
	expect_measures(json_member(row, "version_2"), &measures, "version 2");
	assert_ok(squad_null_scores_read(&null_scores, object_file(json_member(row, "na_probs")), &set));
	assert_ok(squad_score_2(&set, predictions.texts, &null_scores, json_member(row, "threshold")->number, &with_null));
	expect_measures(json_member(row, "version_2_null"), &with_null, "version 2 with null scores");

	/* The threshold is the best possible, and gives the score that it promises. */
	assert_ok(squad_find_thresholds(&set, predictions.texts, null_scores.by_question, &thresholds));
	assert_near(thresholds.exact, json_member(json_member(row, "best"), "exact")->number, 1e-9);
	assert_near(thresholds.f1, json_member(json_member(row, "best"), "f1")->number, 1e-9);
	assert_ok(squad_score_2(&set, predictions.texts, &null_scores, thresholds.f1_threshold, &chosen));
	assert_true(measures_get(&chosen, "f1") >= measures_get(&with_null, "f1"));
	squad_null_scores_release(&null_scores);
	squad_predictions_release(&predictions);
	squad_release(&set);
}

static enum status take_word(void *context, const char *word, size_t size)
{
	struct buffer *out = context;
	buffer_append(out, word, size);
	buffer_char(out, '\n');
	return OK;
}

static void check_words(const struct json *row)
{
	struct buffer got = {0}, expected = {0};
	const struct json *text = row->first_child;
	for (const struct json *word = text->next->first_child; word; word = word->next) {
		buffer_append(&expected, word->text, word->text_size);
		buffer_char(&expected, '\n');
	}
	assert_ok(word_tokenize(text->text, text->text_size, take_word, &got));
	if (strcmp(buffer_string(&got), buffer_string(&expected)) != 0)
		fail_msg("'%s':\n%s-- expected --\n%s", text->text, buffer_string(&got), buffer_string(&expected));
	buffer_release(&got);
	buffer_release(&expected);
}

static void equal_to_the_scripts(void **state)
{
	struct json_document document;
	int64_t words = 0, cases = 0;
	log_level = LOG_QUIET;
	assert_ok(json_read(&document, golden_path(), 1 << 30));
	for (const struct json *row = json_member(document.root, "words")->first_child; row; row = row->next, words++)
		check_words(row);
	for (const struct json *row = json_member(document.root, "cases")->first_child; row; row = row->next, cases++) {
		check_answered(row);
		check_all(row);
	}
	assert_true(words > 0 && cases > 0);
	print_message("%lld texts cut into words, %lld sets scored\n", (long long)words, (long long)cases);
	json_release(&document);
}

#define SET(questions) "{\"data\": [{\"paragraphs\": [{\"context\": \"c\", \"qas\": [" questions "]}]}]}"
#define WITH_ANSWER(id, text)                                                                                                    \
	"{\"id\": \"" id "\", \"question\": \"q\", \"answers\": [{\"text\": \"" text "\", \"answer_start\": 0}]}"
#define WITHOUT(id) "{\"id\": \"" id "\", \"question\": \"q\", \"answers\": []}"

static enum status read_predictions(struct squad_predictions *out, const char *text, const struct squad_set *set)
{
	const char *path = test_path("predictions.json");
	assert_ok(file_write(path, text, strlen(text)));
	return squad_predictions_read(out, path, set);
}

static enum status read_null_scores(struct squad_null_scores *out, const char *text, const struct squad_set *set)
{
	const char *path = test_path("null.json");
	assert_ok(file_write(path, text, strlen(text)));
	return squad_null_scores_read(out, path, set);
}

/* Where the official scripts fail, or silently answer 0. */
static void what_is_missing_is_named(void **state)
{
	struct squad_set set;
	struct squad_predictions predictions;
	struct squad_null_scores scores;
	struct measures measures = {0};
	read_set(SET(WITH_ANSWER("a", "x") "," WITHOUT("b") "," WITH_ANSWER("c", "y")), &set);
	assert_ok(read_predictions(&predictions, "{\"c\": \"y\"}", &set));
	assert_error(ERR_DATA, "2 questions without a prediction: 'a', 'b'",
		     squad_score_2(&set, predictions.texts, NULL, 1, &measures));
	assert_error(ERR_DATA, "question 'b' has no answer", squad_score_1(&set, predictions.texts, &measures));
	assert_error(ERR_DATA, "question 'b' has no answer", squad_score_chinese(&set, predictions.texts, &measures));
	squad_predictions_release(&predictions);
	assert_error(ERR_DATA, "the answer to 'a' must be a string", read_predictions(&predictions, "{\"a\": 1}", &set));
	assert_error(ERR_DATA, "the answer to 'a' must be a string",
		     read_predictions(&predictions, "{\"a\": \"\\u0000\"}", &set));
	assert_error(ERR_DATA, "but not an object", read_predictions(&predictions, "[\"a\"]", &set));
	assert_error(ERR_DATA, "the answer to 'a' must be a string",
		     read_predictions(&predictions, "{\"a\": [{\"probability\": 1}]}", &set));
	assert_error(ERR_DATA, "scores for 1 of 3 questions; the first without: 'a'",
		     read_null_scores(&scores, "{\"b\": 1}", &set));
	assert_error(ERR_DATA, "the score of 'b' must be a number", read_null_scores(&scores, "{\"b\": \"1\"}", &set));
	squad_release(&set);
}

static void best_answers_come_from_n_best_lists(void **state)
{
	struct squad_set set;
	struct squad_predictions predictions;
	read_set(SET(WITH_ANSWER("a", "x") "," WITHOUT("b")), &set);
	assert_ok(read_predictions(&predictions, "{\"a\": [{\"text\": \"\"}, {\"text\": \"x\"}, {\"text\": \"y\"}], \"b\": []}",
				   &set));
	assert_string_equal(predictions.texts[0], "x");
	assert_string_equal(predictions.texts[1], "");
	squad_predictions_release(&predictions);
	squad_release(&set);
}

/* Odds may be negative, where the official search stays at 0; and "" cannot be turned back into an answer. */
static void thresholds_of_odds(void **state)
{
	struct squad_set set;
	struct squad_thresholds best;
	const char *texts[] = {"x", "wrong", "y", NULL};
	const double odds[] = {-5, -1, -3, -9};
	read_set(SET(WITH_ANSWER("a", "x") "," WITHOUT("b") "," WITH_ANSWER("c", "y") "," WITHOUT("d")), &set);
	assert_ok(squad_find_thresholds(&set, texts, odds, &best));
	assert_near(best.exact, 100, 0);
	assert_near(best.exact_threshold, -3, 0);
	assert_near(best.f1_threshold, -3, 0);
	const char *wrong[] = {"no", "no", "no", "no"};
	assert_ok(squad_find_thresholds(&set, wrong, odds, &best));
	assert_near(best.exact, 50, 0);
	assert_true(best.exact_threshold < -9);
	assert_error(ERR_DATA, "1 question without a null score: 'c'",
		     squad_find_thresholds(&set, texts, (const double[]){1, 2, NAN, 4}, &best));
	squad_release(&set);
}

static void single_answers(void **state)
{
	struct squad_set set;
	struct measures measures = {0};
	read_set(SET(WITH_ANSWER("a", "The red cat") "," WITHOUT("b") "," WITH_ANSWER("c", "\xE4\xB8\xAD\xE5\x9B\xBD")), &set);
	assert_ok(squad_score_2(&set, (const char *const[]){"a CAT!", "the", ""}, NULL, 0, &measures));
	assert_near(measures_get(&measures, "HasAns_exact"), 0, 0);
	assert_near(measures_get(&measures, "HasAns_f1"), 100 * (2.0 / 3 + 0) / 2, 1e-12);
	assert_near(measures_get(&measures, "NoAns_exact") + measures_get(&measures, "NoAns_f1"), 200, 0);
	assert_false(squad_is_chinese(&set));
	squad_release(&set);
	read_set(SET(WITH_ANSWER("c", "\xE4\xB8\xAD\xE5\x9B\xBD"
				      "1990")),
		 &set);
	assert_true(squad_is_chinese(&set));
	squad_release(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_to_the_scripts),
		cmocka_unit_test(what_is_missing_is_named),
		cmocka_unit_test(best_answers_come_from_n_best_lists),
		cmocka_unit_test(thresholds_of_odds),
		cmocka_unit_test(single_answers),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
