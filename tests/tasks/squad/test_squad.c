/* Questions about paragraphs from files to results, with made-up logits; windows and answers are compared with Google's
 * code in test_squad_answers.c. */
#include <math.h>
#include "base/json.h"
#include "tasks/record.h"
#include "tasks/task_options.h"
#include "tasks/task_world.h"

/* "anna likes red tea": the answer "tea" starts at 15. */
#define PARAGRAPH "anna likes red tea"
#define ANSWER(id, question, text, start)                                                                                        \
	"{\"id\": \"" id "\", \"question\": \"" question "\", \"answers\": [{\"text\": \"" text "\", \"answer_start\": " start   \
	"}]}"
#define IMPOSSIBLE(id, question) "{\"id\": \"" id "\", \"question\": \"" question "\", \"is_impossible\": true, \"answers\": []}"
#define FILE_OF(questions)                                                                                                       \
	"{\"version\": \"1\", \"data\": [{\"paragraphs\": [{\"context\": \"" PARAGRAPH "\", \"qas\": [" questions "]}]}]}"

static int setup(void **state)
{
	static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
					      "anna",  "likes", "red",   "tea",   "what"};
	return task_world_make(state, &task_squad, "questions.json", entries, 10);
}

static struct squad_settings *own_of(const struct task_state *task)
{
	return task->own;
}

/* A window of seven tokens holds three of the paragraph after a question of one; the next window begins one later. */
static struct task_state open_questions(bool version_2)
{
	struct task_state task = open_state(7);
	*own_of(&task) = (struct squad_settings){.doc_stride = 1, .version_2_with_negative = version_2};
	return task;
}

static void windows_have_targets(void **state)
{
	struct task_state task = open_questions(true);
	struct task_set set = {0};
	assert_ok(open_set(&task, &set, TASK_TRAIN, FILE_OF(ANSWER("a", "what", "red tea", "11") "," IMPOSSIBLE("b", "tea"))));
	static const int32_t ids[] = {2, 9, 3, 5, 6, 7, 3, 2, 9, 3, 6, 7, 8, 3, 2, 8, 3, 5, 6, 7, 3, 2, 8, 3, 6, 7, 8, 3};
	static const int32_t rows[] = {0, 0, 4, 5, 0, 0, 0, 0}, seconds[] = {3, 3, 3, 3};
	assert_int_equal(set.encoded.example_count, 4);
	assert_int_equal(task_answers(&set), 2);
	assert_memory_equal(set.encoded.ids, ids, sizeof ids);
	assert_memory_equal(set.encoded.seconds, seconds, sizeof seconds);
	assert_memory_equal(set.encoded.items[0].classes, rows, sizeof rows);
	for (int i = 0; i < 4; i++)
		assert_near(set.encoded.items[0].weights[i], 1, 0);
	task_set_release(&task, &set);
	task_state_release(&task);
}

/* Room for the outputs of a set: all 0 except [window][row] of starts and ends. */
static void outputs_of(const struct task_state *task, const struct task_set *set, struct task_outputs *out)
{
	struct model_heads heads;
	task_squad.heads(task, &heads);
	assert_false(heads.pooler);
	assert_int_equal(heads.head[0].loss, LOSS_SEGMENT);
	assert_ok(task_outputs_create(out, &set->encoded, &heads.head[0]));
	assert_int_equal(out->starts[out->count], 2 * set->encoded.token_count);
}

static void set_answer(struct task_outputs *outputs, int64_t window, int32_t start, int32_t end, float logit)
{
	outputs->values[outputs->starts[window] + 2 * start] = logit;
	outputs->values[outputs->starts[window] + 2 * end + 1] = logit;
}

static void windows_of_a_question_answer_together(void **state)
{
	struct task_state task = open_questions(false);
	struct task_set set = {0};
	struct task_outputs outputs;
	struct measures measures = {0};
	struct buffer text = {0};
	assert_ok(open_set(&task, &set, TASK_SCORE,
			   FILE_OF(ANSWER("a", "what", "red tea", "11") "," ANSWER("b", "tea", "anna likes", "0"))));
	outputs_of(&task, &set, &outputs);
	set_answer(&outputs, 0, 3, 4, 3); /* "anna likes", scored lower than the answer of another window */
	set_answer(&outputs, 1, 4, 5, 5); /* "red tea" */
	set_answer(&outputs, 2, 3, 3, 6); /* "anna" */
	assert_ok(task_squad.score(&task, &set, &outputs, &measures));
	assert_near(measures_get(&measures, "exact_match"), 50, 1e-12);
	assert_near(measures_get(&measures, "f1"), 100 * (1 + 2 * 0.5 / 1.5) / 2, 1e-9);
	assert_non_null(measures_find(&measures, task_squad.decides));
	assert_ok(task_squad.write(&task, &set, &outputs, test_folder));
	expect_file("predictions.json", "{\n    \"a\": \"red tea\",\n    \"b\": \"anna\"\n}\n");
	assert_true(file_exists(test_path("nbest_predictions.json")));
	assert_false(file_exists(test_path("null_odds.json")));
	assert_ok(task_squad.put(&task, &set, &outputs, 0, &text));
	static const char expected[] = "{\"id\":\"a\",\"answer\":\"red tea\",\"start\":11,\"end\":18,\"score\":0.";
	assert_memory_equal(buffer_string(&text), expected, sizeof expected - 1);
	buffer_release(&text);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
}

static void no_answer_is_an_answer(void **state)
{
	struct task_state task = open_questions(true);
	struct task_set set = {0};
	struct task_outputs outputs;
	struct measures measures = {0};
	struct buffer text = {0};
	assert_ok(open_set(&task, &set, TASK_SCORE, FILE_OF(ANSWER("a", "what", "tea", "15") "," IMPOSSIBLE("b", "tea"))));
	outputs_of(&task, &set, &outputs);
	for (int64_t w = 0; w < 4; w++)
		set_answer(&outputs, w, 0, 0, 4);
	set_answer(&outputs, 1, 5, 5, 5); /* 10 against 8: by 2 */
	set_answer(&outputs, 2, 3, 3, 3); /* 6 against 8 */
	assert_ok(task_squad.score(&task, &set, &outputs, &measures));
	assert_near(measures_get(&measures, "exact"), 100, 1e-12);
	assert_near(measures_get(&measures, "NoAns_exact"), 100, 1e-12);
	assert_ok(task_squad.write(&task, &set, &outputs, test_folder));
	expect_file("predictions.json", "{\n    \"a\": \"tea\",\n    \"b\": \"\"\n}\n");
	expect_file("null_odds.json", "{\n    \"a\": -2.0,\n    \"b\": 2.0\n}\n");
	assert_ok(task_squad.put(&task, &set, &outputs, 1, &text));
	static const char expected[] = "{\"id\":\"b\",\"answer\":\"\",\"start\":0,\"end\":0,\"score\":0.";
	assert_memory_equal(buffer_string(&text), expected, sizeof expected - 1);
	own_of(&task)->null_score_diff_threshold = -3; /* now the lead of 2 is not enough */
	assert_ok(task_squad.write(&task, &set, &outputs, test_folder));
	expect_file("predictions.json", "{\n    \"a\": \"\",\n    \"b\": \"\"\n}\n");
	buffer_release(&text);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
}

/* The threshold between an answer and none is chosen on a set, recorded, and read back; options override the record. */
static void a_threshold_is_chosen_and_recorded(void **state)
{
	struct task_state task = open_questions(true), later = open_questions(false);
	struct task_set set = {0};
	struct task_outputs outputs;
	struct measures measures = {0};
	struct buffer text = {0};
	struct json_document document;
	assert_ok(open_set(&task, &set, TASK_SCORE, FILE_OF(ANSWER("a", "what", "tea", "15") "," IMPOSSIBLE("b", "tea"))));
	outputs_of(&task, &set, &outputs);
	for (int64_t w = 0; w < 4; w++)
		set_answer(&outputs, w, 0, 0, 6);
	set_answer(&outputs, 1, 5, 5, 5); /* 10 against 12: null odds 2 */
	set_answer(&outputs, 2, 3, 3, 3); /* 6 against 12: 6 */
	assert_false(task_squad.tunes(&task));
	assert_ok(task_squad.score(&task, &set, &outputs, &measures));
	assert_near(measures_get(&measures, "f1"), 50, 1e-12);
	own_of(&task)->find_threshold = true;
	assert_true(task_squad.tunes(&task));
	assert_ok(task_squad.tune(&task, &set, &outputs));
	measures = (struct measures){0};
	assert_ok(task_squad.score(&task, &set, &outputs, &measures));
	assert_near(measures_get(&measures, "f1"), 100, 1e-12);
	assert_near(own_of(&task)->null_score_diff_threshold, 2, 0);
	own_of(&task)->max_query_length = 9;
	own_of(&task)->scorer = SQUAD_SCORER_SQUAD;
	assert_ok(task_record_write(&task, &text));
	assert_ok(json_parse(&document, "record", text.data, text.size));
	assert_ok(task_record_read(document.root, "record", &later));
	struct squad_settings *read = own_of(&later);
	assert_true(read->version_2_with_negative);
	assert_near(read->null_score_diff_threshold, 2, 0);
	assert_int_equal(read->doc_stride, 1);
	assert_int_equal(read->max_query_length, 9);
	assert_int_equal(read->n_best_size, 0);
	assert_int_equal(read->scorer, SQUAD_SCORER_SQUAD);
	/* What is given for a finished model overrides its record. */
	static const char *words[] = {"--doc_stride=3", "--null_score_diff_threshold=0", "--no_version_2_with_negative"};
	struct task_options given = {0};
	struct options options;
	assert_ok(options_init(&options, task_answer_rows, &given));
	assert_ok(options_parse(&options, 3, (char **)(uintptr_t)words));
	options_copy_given(&options, task_options_of(&given, &task_squad), task_squad.settings_bytes, read);
	assert_int_equal(read->doc_stride, 3);
	assert_int_equal(read->max_query_length, 9);
	assert_near(read->null_score_diff_threshold, 0, 0);
	assert_int_equal(read->scorer, SQUAD_SCORER_SQUAD);
	assert_false(read->version_2_with_negative);
	options_release(&options);
	json_release(&document);
	buffer_release(&text);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
	task_state_release(&later);
}

/* CMRC 2018's measures if the answers are Chinese, or if they are requested. */
static void the_scorer_follows_the_answers(void **state)
{
	struct task_state task = open_questions(false);
	struct task_set set = {0};
	struct task_outputs outputs;
	struct measures measures = {0};
	assert_ok(open_set(&task, &set, TASK_SCORE, FILE_OF(ANSWER("a", "what", "tea", "15"))));
	outputs_of(&task, &set, &outputs);
	assert_ok(task_squad.score(&task, &set, &outputs, &measures));
	assert_null(measures_find(&measures, "average"));
	own_of(&task)->scorer = SQUAD_SCORER_CMRC;
	assert_ok(task_squad.score(&task, &set, &outputs, &measures));
	assert_non_null(measures_find(&measures, "average"));
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
}

static void what_is_not_known_has_no_weight(void **state)
{
	struct task_state task = open_questions(false);
	struct task_set set = {0};
	/* The first answer is not in the paragraph: scores count it, the loss cannot. */
	assert_ok(open_set(&task, &set, TASK_SCORE,
			   FILE_OF(ANSWER("a", "what", "coffee", "3") "," ANSWER("b", "tea", "anna", "0"))));
	static const float weights[] = {0, 0, 1, 1};
	assert_memory_equal(set.encoded.items[0].weights, weights, sizeof weights);
	assert_int_equal(set.encoded.items[0].classes[0], -1);
	task_set_release(&task, &set);
	assert_ok(open_set(&task, &set, TASK_PREDICT, FILE_OF(ANSWER("a", "what", "tea", "15"))));
	assert_false(set.has_labels);
	assert_near(set.encoded.items[0].weights[0], 0, 0);
	task_set_release(&task, &set);
	assert_error(ERR_DATA, "question 'b' has no answer in its paragraph",
		     open_set(&task, &set, TASK_TRAIN, FILE_OF(IMPOSSIBLE("b", "tea"))));
	task_set_release(&task, &set);
	const char *paths[] = {"one.json", "two.json"};
	set.use = TASK_SCORE;
	assert_error(ERR_USAGE, "from one file at a time", task_squad.read(&task, &set, paths, 2));
	task_set_release(&task, &set);
	task_state_release(&task);
}

static void several_files_train(void **state)
{
	struct task_state task = open_questions(false);
	struct task_set set = {.use = TASK_TRAIN};
	const char *paths[] = {test_path("one.json"), test_path("two.json")};
	const char *texts[] = {FILE_OF(ANSWER("a", "what", "tea", "15")), FILE_OF(ANSWER("a", "red", "anna", "0"))};
	for (int i = 0; i < 2; i++)
		assert_ok(file_write(paths[i], texts[i], strlen(texts[i])));
	assert_ok(task_squad.read(&task, &set, paths, 2));
	assert_ok(task_squad.encode(&task, &set));
	static const int32_t rows[] = {0, 0, 5, 5, 3, 3, 0, 0};
	assert_int_equal(set.encoded.example_count, 4);
	assert_memory_equal(set.encoded.items[0].classes, rows, sizeof rows);
	assert_ptr_equal(task_of_architecture("BertForQuestionAnswering", NULL, 2), &task_squad);
	task_set_release(&task, &set);
	task_state_release(&task);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_have_targets),
		cmocka_unit_test(windows_of_a_question_answer_together),
		cmocka_unit_test(no_answer_is_an_answer),
		cmocka_unit_test(a_threshold_is_chosen_and_recorded),
		cmocka_unit_test(the_scorer_follows_the_answers),
		cmocka_unit_test(what_is_not_known_has_no_weight),
		cmocka_unit_test(several_files_train),
	};
	return cmocka_run_group_tests(tests, setup, task_world_drop);
}
