/* Windows on long texts: where they lie, how much each counts, and what becomes of their outputs. */
#include "tasks/windows.h"
#include "tasks/task_world.h"

static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",   "b", "c",
				      "d",     "e",     "f",     "g",     "h",      "yes", "no"};

static int setup(void **state)
{
	return task_world_make(state, &task_classification, "texts.tsv", entries, 15);
}

/* The windows of a set's examples: "abc|cde". */
static void expect_windows(const struct task_set *set, const char *expected)
{
	const struct labeled_set *encoded = &set->encoded;
	char text[256] = "";
	size_t size = 0;
	for (int64_t e = 0; e < encoded->example_count; e++) {
		if (e > 0)
			text[size++] = '|';
		for (int64_t t = encoded->sequences[e] + 1; t < encoded->sequences[e + 1] - 1; t++)
			text[size++] = encoded->ids[t] == vocab.sep ? '/' : (char)('a' + encoded->ids[t] - 5);
	}
	text[size] = '\0';
	assert_string_equal(text, expected);
}

static struct task_state long_state(unsigned long_texts, int64_t doc_stride, int32_t most)
{
	struct task_state state = open_state(most);
	state.settings.long_texts = long_texts;
	state.settings.doc_stride = doc_stride;
	return state;
}

static void test_places(void **state)
{
	static const struct {
		unsigned long_texts;
		int64_t doc_stride;
		int32_t most;
		const char *expected;
	} cases[] = {
		{WINDOWS_OPEN, 2, 6, "abcd|abcd"},           {WINDOWS_NONE, 2, 6, "abcd|abcd"},
		{WINDOWS_MEAN, 4, 6, "abcd|efgh|abcd"},      {WINDOWS_MEAN, 3, 6, "abcd|defg|gh|abcd"},
		{WINDOWS_MEAN, 0, 6, "abcd|cdef|efgh|abcd"}, {WINDOWS_MAX, 99, 7, "abcde|fgh|abcd"},
		{WINDOWS_MAX, 1, 10, "abcdefgh|abcd"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct task_state own = long_state(cases[i].long_texts, cases[i].doc_stride, cases[i].most);
		struct task_set set;
		assert_ok(open_set(&own, &set, TASK_TRAIN, "text\tlabel\na b c d e f g h\tyes\na b c d\tno\n"));
		expect_windows(&set, cases[i].expected);
		assert_int_equal(task_answers(&set), 2);
		assert_int_equal(set.cut_count, cases[i].long_texts <= WINDOWS_NONE);
		task_set_release(&own, &set);
		task_state_release(&own);
	}
}

/* The second text has the windows; the first keeps at most half of the room. */
static void test_pairs(void **state)
{
	struct task_state own = long_state(WINDOWS_MEAN, 2, 9);
	struct task_set set;
	assert_ok(open_set(&own, &set, TASK_TRAIN, "text1\ttext2\tlabel\na b\tc d e f g h\tyes\na b c d e f\tg h\tno\n"));
	expect_windows(&set, "ab/cdef|ab/efgh|abc/gh");
	assert_int_equal(set.cut_count, 1);
	assert_int_equal(set.cut_tokens, 3);
	task_set_release(&own, &set);
	task_state_release(&own);
}

/* A text counts as one example, however many windows it has, and its outputs become one row. */
static void test_weights_and_outputs(void **state)
{
	struct task_state own = long_state(WINDOWS_MEAN, 2, 6);
	struct task_set set;
	struct task_outputs outputs;
	struct measures measures = {0};
	struct head head = {.input = INPUT_FIRST_ROW, .outputs = 2};
	assert_ok(open_set(&own, &set, TASK_TRAIN, "text\tlabel\na b c d e f g h\tyes\na b c d\tno\n"));
	const struct labeled_items *items = &set.encoded.items[0];
	assert_int_equal(items->count, 4);
	for (int i = 0; i < 3; i++)
		assert_near(items->weights[i], 1.0 / 3, 1e-7);
	assert_near(items->weights[3], 1, 0);
	static const float values[] = {1, 5, 2, -1, 3, 2, 7, 8};
	for (unsigned how = WINDOWS_MEAN; how <= WINDOWS_MAX; how++) {
		own.settings.long_texts = how;
		assert_ok(task_outputs_create(&outputs, &set.encoded, &head));
		memcpy(outputs.values, values, sizeof values);
		windows_pool(&own, &set, &outputs);
		assert_int_equal(outputs.count, 2);
		assert_near(task_output(&outputs, 0)[0], how == WINDOWS_MEAN ? 2 : 3, 0);
		assert_near(task_output(&outputs, 0)[1], how == WINDOWS_MEAN ? 2 : 5, 0);
		assert_near(task_output(&outputs, 1)[0], 7, 0);
		assert_near(task_output(&outputs, 1)[1], 8, 0);
		measures.count = 0;
		assert_ok(own.task->score(&own, &set, &outputs, &measures)); /* no = 0, yes = 1 */
		assert_near(measures_get(&measures, "accuracy"), how == WINDOWS_MEAN ? 0 : 0.5, 0);
		task_outputs_release(&outputs);
	}
	task_set_release(&own, &set);
	task_state_release(&own);
}

static void test_other_tasks(void **state)
{
	struct task_state own = {.task = &task_tagging};
	assert_error(ERR_USAGE, "--long_texts mean is for classes, labels, and numbers of whole texts, not for tagging",
		     windows_check(WINDOWS_MEAN, &own));
	assert_ok(windows_check(WINDOWS_NONE, &own));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_weights_and_outputs),
		cmocka_unit_test(test_other_tasks),
	};
	return cmocka_run_group_tests(tests, setup, task_world_drop);
}
