/* SQuAD's JSON files: what is read from them, and what is refused. */
#include "tasks/squad/squad_file.h"
#include "base/log.h"
#include "test.h"

static struct bad_records bad;

static enum status read_text(struct squad_set *set, const char *text, enum squad_use use, bool allow_impossible, bool skip)
{
	const char *path = test_path("squad.json");
	bad = (struct bad_records){.skip = skip};
	assert_ok(file_write(path, text, strlen(text)));
	return squad_read(set, path, &(struct squad_options){.use = use, .allow_impossible = allow_impossible, .bad = &bad});
}

#define QUESTION(id, answers) "{\"id\": " id ", \"question\": \"Who?\", \"answers\": [" answers "]}"
#define ANSWER(text, start) "{\"text\": \"" text "\", \"answer_start\": " start "}"
#define FILE_OF(context, questions)                                                                                              \
	"{\"version\": \"1.1\", \"data\": [{\"title\": \"T\", \"paragraphs\": [{\"context\": \"" context                         \
	"\", \"qas\": [" questions "]}]}]}"

static void everything_keeps_its_order(void **state)
{
	struct squad_set set;
	assert_ok(read_text(
		&set,
		"\xEF\xBB\xBF{\"data\": [{\"title\": \"A\", \"paragraphs\": ["
		"{\"context\": \"\xC3\xA9t\xC3\xA9 \xF0\x9F\x98\x80 Ann\", \"qas\": ["
		"{\"id\": \"x\", \"question\": \"q\\u0031?\", \"answers\": [" ANSWER("Ann", "6") ", " ANSWER(
			"\xF0\x9F\x98\x80",
			"4") "], \"extra\": 1},"
			     "{\"id\": 7, \"question\": \"\", \"answers\": [], \"is_impossible\": true}]},"
			     "{\"context\": \"\", \"qas\": []}]},"
			     "{\"paragraphs\": [{\"context\": \"Bob\", \"qas\": [" QUESTION("\"y\"", ANSWER("Bob", "0")) "]}]}]}",
		SQUAD_TRAIN, true, false));
	assert_int_equal(set.article_count, 2);
	assert_int_equal(set.paragraph_count, 3);
	assert_int_equal(set.question_count, 3);
	assert_int_equal(set.answer_count, 3);
	assert_int_equal(set.impossible_count, 1);
	assert_string_equal(set.version, "");
	assert_int_equal(set.paragraphs[0].text_size, 14);
	assert_int_equal(set.paragraphs[0].length, 9);
	assert_string_equal(set.paragraphs[1].title, "A");
	assert_int_equal(set.paragraphs[1].question_count, 0);
	assert_int_equal(set.paragraphs[2].article, 1);
	assert_string_equal(set.paragraphs[2].title, "");
	assert_int_equal(set.paragraphs[2].first_question, 2);
	assert_string_equal(set.questions[0].text, "q1?");
	assert_int_equal(set.questions[0].answer_count, 2);
	assert_string_equal(set.answers[0].text, "Ann");
	assert_int_equal(set.answers[0].start, 6);
	assert_int_equal(set.answers[0].start_byte, 11);
	assert_int_equal(set.answers[1].start_byte, 6);
	assert_string_equal(set.questions[1].id, "7");
	assert_true(set.questions[1].is_impossible);
	assert_int_equal(set.questions[2].paragraph, 2);
	assert_int_equal(set.questions[2].first_answer, 2);
	squad_release(&set);
}

static void answers_elsewhere_are_told_from_absent_ones(void **state)
{
	struct squad_set set;
	const char *text =
		FILE_OF("Ann and Bob",
			QUESTION("\"a\"", ANSWER("Bob", "0")) "," QUESTION("\"b\"", ANSWER("Bob", "8")) "," QUESTION(
				"\"c\"", ANSWER("bob", "8") "," ANSWER("Ann", "0")) "," QUESTION("\"d\"", ANSWER("Eve", "99")));
	assert_ok(read_text(&set, text, SQUAD_SCORE, false, false));
	assert_int_equal(set.question_count, 4);
	assert_int_equal(set.elsewhere_count, 1);
	assert_int_equal(set.absent_count, 2);
	assert_int_equal(set.answers[0].place, SQUAD_ELSEWHERE);
	assert_int_equal(set.answers[2].place, SQUAD_ABSENT);
	assert_int_equal(set.answers[4].place, SQUAD_ABSENT);
	squad_release(&set);

	assert_error(ERR_DATA, "question 'a': the answer 'Bob' is not at character 0",
		     read_text(&set, text, SQUAD_TRAIN, false, false));
	assert_non_null(strstr(error_last()->hint, "--on_bad_record skip"));
	assert_null(set.questions);

	assert_ok(read_text(&set, text, SQUAD_TRAIN, false, true));
	assert_int_equal(bad.count, 2);
	assert_int_equal(set.question_count, 2);
	assert_int_equal(set.answer_count, 2);
	assert_string_equal(set.questions[1].id, "c");
	assert_string_equal(set.answers[set.questions[1].first_answer].text, "Ann");
	squad_release(&set);
}

/* By Google's rule: whole words around the characters, ignoring white space. */
static void answers_may_be_a_little_beside_their_place(void **state)
{
	static const struct {
		const char *context, *answer, *start;
		enum squad_place place;
	} cases[] = {
		{"see Ann and Bob", "Ann", "4", SQUAD_FOUND},
		{"see Ann and Bob", "Ann", "3", SQUAD_NEAR}, /* from "see" to "Ann" */
		{"see Ann and Bob", "Ann", "0", SQUAD_ELSEWHERE},
		{"see Ann and Bob", "nn", "4", SQUAD_NEAR},
		{"see Ann and Bob", " and Bob", "7", SQUAD_FOUND},
		{"see Ann and Bob", "and  Bob ", "6", SQUAD_NEAR},
		{"see Ann and Bob", "Bob", "13", SQUAD_SHIFTED}, /* past the end */
		{"see Ann\\u202fand Bob", "see", "4", SQUAD_ELSEWHERE},
		{"see Ann\\u202fand Bob", "nn\\u202Fa", "4", SQUAD_SHIFTED}, /* its last character belongs to "Ann" */
		{"see Ann\\u202fand Bob", "nn\\u202Fa", "5", SQUAD_FOUND},
		{"see Ann\\u202fand Bob", "Ann a", "5", SQUAD_NEAR},
		{"\xE4\xB8\xAD\xE6\x96\x87", "\xE6\x96\x87", "0", SQUAD_NEAR}, /* a run of ideographs is one word */
		{"\xE4\xB8\xAD\xE6\x96\x87", "x", "0", SQUAD_ABSENT},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct squad_set set;
		char text[512];
		snprintf(text, sizeof text, FILE_OF("%s", QUESTION("\"a\"", ANSWER("%s", "%s"))), cases[i].context,
			 cases[i].answer, cases[i].start);
		assert_ok(read_text(&set, text, SQUAD_SCORE, false, false));
		if (set.answers[0].place != cases[i].place)
			fail_msg("case %zu: place %d", i, set.answers[0].place);
		squad_release(&set);
	}
}

/* An answer that is a few characters off is taken from its actual position, the nearest one first; answers elsewhere are
 * distinguished from offsets that count bytes or UTF-16 units. */
static void shifted_answers_are_mended(void **state)
{
	struct squad_set set;
	assert_ok(read_text(&set, FILE_OF("a b a b a", QUESTION("\"a\"", ANSWER("b a b", "1"))), SQUAD_TRAIN, false, false));
	assert_int_equal(set.shifted_count, 1);
	assert_int_equal(set.answers[0].start, 2);
	assert_int_equal(set.answers[0].start_byte, 2);
	squad_release(&set);
	assert_ok(read_text(&set,
			    FILE_OF("\xF0\x9F\x98\x80\xF0\x9F\x98\x80\xF0\x9F\x98\x80\xF0\x9F\x98\x80 see Bob",
				    QUESTION("\"a\"", ANSWER("Bob", "13")) "," QUESTION("\"b\"", ANSWER("Bob", "21"))),
			    SQUAD_SCORE, false, false));
	assert_int_equal(set.elsewhere_count, 2);
	assert_int_equal(set.utf16_count, 1);
	assert_int_equal(set.byte_count, 1);
	squad_release(&set);
}

#define FLAT(id, context, question, texts, starts)                                                                               \
	"{\"id\": \"" id "\", \"title\": \"t\", \"context\": \"" context "\", \"question\": \"" question                         \
	"\", \"answers\": {\"text\": [" texts "], \"answer_start\": [" starts "]}}"

static void flat_records(void **state)
{
	static const char *const files[] = {
		FLAT("x", "Ann and Bob", "who", "\"Ann\", \"Bob\"", "0, 8") "\n" FLAT(
			"y", "Ann and Bob", "who", "", "") "\n\n"
							   "{\"context\": \"Eve\", \"question\": \"who\", \"answers\": "
							   "[{\"text\": \"Eve\", \"answer_start\": 0}]}\n",
		"{\"version\": \"9\", \"data\": [" FLAT("x", "Ann and Bob", "who", "\"Ann\", \"Bob\"", "0, 8") "," FLAT(
			"y", "Ann and Bob", "who", "", "") ", {\"context\": \"Eve\", \"question\": \"who\", \"answers\": "
							   "[{\"text\": \"Eve\", \"answer_start\": 0}]}]}",
	};
	for (int i = 0; i < 2; i++) {
		struct squad_set set;
		assert_ok(read_text(&set, files[i], SQUAD_TRAIN, true, false));
		assert_int_equal(set.question_count, 3);
		assert_int_equal(set.paragraph_count, 2);
		assert_int_equal(set.paragraphs[0].question_count, 2);
		assert_int_equal(set.questions[0].answer_count, 2);
		assert_string_equal(set.answers[1].text, "Bob");
		assert_true(set.questions[1].is_impossible);
		assert_string_equal(set.questions[2].id, "2");
		squad_release(&set);
	}
	struct squad_set set;
	/* A single record on a line without an end, after a blank one. */
	assert_ok(read_text(&set, "\n" FLAT("x", "Ann", "who", "\"Ann\"", "0"), SQUAD_TRAIN, true, false));
	assert_int_equal(set.question_count, 1);
	squad_release(&set);
	assert_error(ERR_DATA, "record 2: question 'y': \"answers\" must have lists",
		     read_text(&set, FLAT("x", "Ann", "who", "\"Ann\"", "0") "\n" FLAT("y", "Ann", "who", "\"Ann\"", "0, 8") "\n",
			       SQUAD_TRAIN, true, false));
	assert_error(ERR_DATA, "line 2",
		     read_text(&set, FLAT("x", "Ann", "who", "\"Ann\"", "0") "\n{\"context\": \n", SQUAD_TRAIN, true, false));
	assert_error(
		ERR_DATA, "record 2 must have strings",
		read_text(&set, FLAT("x", "Ann", "who", "\"Ann\"", "0") "\n{\"context\": \"a\"}\n", SQUAD_TRAIN, true, false));
}

static void what_a_use_needs_is_asked_for(void **state)
{
	struct squad_set set;
	const char *bare = FILE_OF("Ann", "{\"id\": \"a\", \"question\": \"q\"}");
	const char *impossible = FILE_OF("Ann", "{\"id\": \"a\", \"question\": \"q\", \"answers\": [], \"is_impossible\": true}");
	assert_ok(read_text(&set, bare, SQUAD_PREDICT, false, false));
	assert_int_equal(set.unlabeled_count, 1);
	squad_release(&set);
	assert_error(ERR_DATA, "question 'a' has no answer", read_text(&set, bare, SQUAD_SCORE, false, false));
	assert_error(ERR_DATA, "no question in it that can be used", read_text(&set, bare, SQUAD_SCORE, false, true));
	static const enum squad_use uses[] = {SQUAD_TRAIN, SQUAD_SCORE};
	for (int i = 0; i < 2; i++) {
		assert_ok(read_text(&set, impossible, uses[i], true, false));
		squad_release(&set);
		assert_error(ERR_DATA, "question 'a' has no answer in its paragraph",
			     read_text(&set, impossible, uses[i], false, false));
		assert_non_null(strstr(error_last()->hint, "--version_2_with_negative"));
		assert_error(ERR_DATA, "no question in it that can be used", read_text(&set, impossible, uses[i], false, true));
	}
	/* Hugging Face's columns say so without a word. */
	assert_error(ERR_DATA, "question 'a' has no answer in its paragraph (\"is_impossible\", or empty lists of answers)",
		     read_text(&set,
			       "{\"id\": \"a\", \"context\": \"Ann\", \"question\": \"q\", \"answers\": {\"text\": [], "
			       "\"answer_start\": []}}\n",
			       SQUAD_SCORE, false, false));
	assert_ok(read_text(&set, impossible, SQUAD_PREDICT, false, false));
	squad_release(&set);
}

static void other_files_are_refused(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"", "ends early"},
		{"[]", "no question in it"},
		{"3", "not a SQuAD file"},
		{"[3]", "article 1 has no list"},
		{"{\"data\": {}}", "not a SQuAD file"},
		{"{\"data\": []}", "no question in it"},
		{"{\"data\": [{}]}", "article 1 has no list \"paragraphs\""},
		{"{\"data\": [{\"title\": 3, \"paragraphs\": []}]}", "\"title\" must be a string"},
		{"{\"data\": [{\"paragraphs\": [{\"qas\": []}]}]}", "article 1, paragraph 1: must have a string \"context\""},
		{FILE_OF("Ann", "3"), "('T'), paragraph 1: an entry of \"qas\" is not an object"},
		{FILE_OF("Ann", "{\"question\": \"q\"}"), "without \"id\""},
		{FILE_OF("Ann", QUESTION("\"\"", "")), "without \"id\""},
		{FILE_OF("Ann", QUESTION("1.5", "")), "without \"id\""},
		{FILE_OF("Ann", "{\"id\": \"a\"}"), "question 'a' has no string \"question\""},
		{FILE_OF("Ann", QUESTION("\"a\"", "3")), "question 'a': an answer must be"},
		{FILE_OF("Ann", QUESTION("\"a\"", "{\"text\": \"Ann\", \"answer_start\": \"0\"}")), "an answer must be"},
		{FILE_OF("Ann", "{\"id\": \"a\", \"question\": \"q\", \"answers\": 3}"), "\"answers\" must be a list"},
		{FILE_OF("Ann", "{\"id\": \"a\", \"question\": \"q\", \"answers\": {}}"), "\"answers\" must have lists"},
		{FILE_OF("Ann", "{\"id\": \"a\", \"question\": \"q\", \"is_impossible\": 1}"), "must be true or false"},
		{FILE_OF("Ann", QUESTION("\"a\"", ANSWER("Ann", "0")) "," QUESTION("\"a\"", ANSWER("Ann", "0"))),
		 "a second question has the id 'a'"},
		{FILE_OF("Ann", QUESTION("\"a\"", ANSWER("", "0"))), "the answer '' is not at character 0"},
		{FILE_OF("Ann", QUESTION("\"a\"", ANSWER("Ann", "-1"))), "but elsewhere"},
		{FILE_OF("Ann", QUESTION("\"a\"", ANSWER("Ann", "9223372036854775807"))), "but elsewhere"},
		{FILE_OF("\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC, then Bob and Ann", QUESTION("\"a\"", ANSWER("Bob", "17"))),
		 "but elsewhere in it (where \"answer_start\" says if it counts bytes of UTF-8)"},
		{FILE_OF("An\xFFn", ""), "invalid UTF-8"},
		{"question\tcontext\nwho\tAnn\n", "holds no questions about paragraphs"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct squad_set set;
		assert_error(ERR_DATA, cases[i].message, read_text(&set, cases[i].text, SQUAD_TRAIN, false, false));
		assert_null(set.paragraphs);
	}
	struct squad_set set;
	assert_error(ERR_USAGE, "none.json",
		     squad_read(&set, test_path("none.json"), &(struct squad_options){.use = SQUAD_TRAIN, .bad = &bad}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_keeps_its_order),
		cmocka_unit_test(answers_elsewhere_are_told_from_absent_ones),
		cmocka_unit_test(answers_may_be_a_little_beside_their_place),
		cmocka_unit_test(shifted_answers_are_mended),
		cmocka_unit_test(flat_records),
		cmocka_unit_test(what_a_use_needs_is_asked_for),
		cmocka_unit_test(other_files_are_refused),
	};
	log_level = LOG_QUIET;
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
