/* Multiple choice from files to results, with made-up logits. */
#include <math.h>
#include "base/memory.h"
#include "tasks/task_world.h"

#define FILE_TEXT                                                                                                                \
	"{\"id\": \"q1\", \"context\": \"we eat\", \"choices\": [\"bread\", \"stone\", \"we bread\"], \"label\": 2}\n"           \
	"{\"id\": \"q2\", \"context\": \"we\", \"choices\": [\"eat\", \"stone\"], \"label\": \"B\"}\n"

static int setup(void **state)
{
	static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "we", "eat", "bread", "stone"};
	return task_world_make(state, &task_choice, "choices.jsonl", entries, 9);
}

static void outputs_of(const struct task_state *task, const struct task_set *set, const float *logits, struct task_outputs *out)
{
	struct model_heads heads;
	task_choice.heads(task, &heads);
	assert_int_equal(heads.head[0].loss, LOSS_GROUP);
	assert_ok(task_outputs_create(out, &set->encoded, &heads.head[0]));
	memcpy(out->values, logits, (size_t)out->starts[out->count] * sizeof *logits);
}

static void choices_become_sequences(void **state)
{
	struct task_state task = open_state(16);
	struct task_set set = {0};
	assert_ok(open_set(&task, &set, TASK_TRAIN, FILE_TEXT));
	static const int32_t ids[] = {2, 5, 6, 3, 7, 3, 2, 5, 6, 3, 8, 3, 2, 5, 6, 3, 5, 7, 3, 2, 5, 3, 6, 3, 2, 5, 3, 8, 3};
	static const int64_t examples[] = {0, 3, 5}, sequences[] = {0, 6, 12, 19, 24, 29};
	static const int32_t seconds[] = {4, 4, 4, 3, 3}, right[] = {2, 1};
	assert_true(task.pairs);
	assert_int_equal(set.encoded.example_count, 2);
	assert_memory_equal(set.encoded.examples, examples, sizeof examples);
	assert_memory_equal(set.encoded.sequences, sequences, sizeof sequences);
	assert_memory_equal(set.encoded.seconds, seconds, sizeof seconds);
	assert_memory_equal(set.encoded.ids, ids, sizeof ids);
	assert_memory_equal(set.encoded.items[0].classes, right, sizeof right);
	assert_int_equal(set.encoded.items[0].count, 2);
	task_set_release(&task, &set);
	task_state_release(&task);
}

static void scores_and_results(void **state)
{
	struct task_state task = open_state(16);
	struct task_set set = {0};
	struct task_outputs outputs;
	struct measures measures = {0};
	struct buffer text = {0}, expected = {0};
	const float logits[] = {1, 0, 3, 2, 1}; /* the first is correct */
	assert_ok(open_set(&task, &set, TASK_SCORE, FILE_TEXT));
	outputs_of(&task, &set, logits, &outputs);
	assert_ok(task_choice.score(&task, &set, &outputs, &measures));
	assert_near(measures_get(&measures, "accuracy"), 0.5, 0);
	assert_non_null(measures_find(&measures, task_choice.decides));
	assert_ok(task_choice.write(&task, &set, &outputs, test_folder));
	assert_ok(file_read(test_path("predict.txt"), 100, &text));
	assert_string_equal(buffer_string(&text), "2\n0\n");
	buffer_clear(&text);
	assert_ok(task_choice.put(&task, &set, &outputs, 1, &text));
	buffer_format(&expected, "{\"id\":\"q2\",\"label\":0,\"probabilities\":{\"0\":0.7310585");
	assert_memory_equal(buffer_string(&text), expected.data, expected.size);
	buffer_release(&text);
	buffer_release(&expected);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
}

/* Questions without context: the column that training used as the text is found in later files, too. */
static void questions_may_stand_alone(void **state)
{
	static const char file[] = "{\"question\": \"we eat\", \"choices\": [\"bread\", \"stone\"], \"label\": 0}\n";
	struct task_state task = open_state(16);
	struct task_set train = {0}, dev = {0};
	assert_ok(open_set(&task, &train, TASK_TRAIN, file));
	task.settings.trained = train.examples.columns;
	assert_string_equal(task.settings.trained.text, "question");
	assert_ok(open_set(&task, &dev, TASK_SCORE, file));
	assert_int_equal(dev.encoded.token_count, train.encoded.token_count);
	assert_memory_equal(dev.encoded.ids, train.encoded.ids, (size_t)dev.encoded.token_count * sizeof *dev.encoded.ids);
	task_set_release(&task, &train);
	task_set_release(&task, &dev);
	task_state_release(&task);
}

static void long_texts_are_cut_and_labels_may_be_absent(void **state)
{
	struct task_state task = open_state(5);
	struct task_set set = {0};
	assert_ok(open_set(&task, &set, TASK_PREDICT, "{\"context\": \"we eat\", \"choices\": [\"bread\", \"stone bread\"]}\n"));
	static const int32_t ids[] = {2, 5, 3, 7, 3, 2, 5, 3, 8, 3};
	assert_memory_equal(set.encoded.ids, ids, sizeof ids);
	assert_int_equal(set.cut_count, 1);
	assert_int_equal(set.cut_tokens, 2);
	assert_int_equal(set.encoded.items[0].classes[0], -1);
	assert_near(set.encoded.items[0].weights[0], 0, 0);
	assert_int_equal(task_answers(&set), 1);
	task_set_release(&task, &set);
	assert_ok(
		open_set(&task, &set, TASK_PREDICT, "{\"context\": \"we\", \"choices\": [\"eat\", \"stone\"], \"label\": -1}\n"));
	assert_int_equal(set.encoded.items[0].classes[0], -1);
	assert_null(set.examples.examples[0].label);
	assert_int_equal(set.examples.unread.count, 1);
	task_set_release(&task, &set);
	/* A label may name a choice that the row lacks, or more than one. */
	static const char *const unclear[] = {
		"{\"question\": \"we\", \"choices\": {\"text\": [\"eat\", \"stone\"], \"label\": [\"A\", \"B\", \"C\"]}, "
		"\"answerKey\": \"C\"}\n",
		"{\"context\": \"we\", \"choices\": [\"eat\", \"eat\"], \"label\": \"eat\"}\n"};
	for (int i = 0; i < 2; i++) {
		assert_ok(open_set(&task, &set, TASK_PREDICT, unclear[i]));
		assert_int_equal(set.encoded.items[0].classes[0], -1);
		assert_near(set.encoded.items[0].weights[0], 0, 0);
		assert_null(set.examples.examples[0].label);
		task_set_release(&task, &set);
	}
	assert_error(
		ERR_DATA, "line 1: the label '7' is not one of the row's 2 choices",
		open_set(&task, &set, TASK_TRAIN, "{\"context\": \"we\", \"choices\": [\"eat\", \"stone\"], \"label\": 7}\n"));
	task_set_release(&task, &set);
	task_state_release(&task);
}

static void the_table_has_the_row(void **state)
{
	const struct task *task;
	const struct layout *layout;
	assert_ok(task_find("multiple_choice", &task, &layout));
	assert_ptr_equal(task, &task_choice);
	assert_ok(task_find("swag", &task, &layout));
	assert_ptr_equal(task, &task_choice);
	assert_ptr_equal(task_of_architecture("BertForMultipleChoice", NULL, 2), &task_choice);
	assert_ptr_equal(task_of_architecture("BertForMultipleChoice", "single_label_classification", 2), &task_choice);
	assert_ptr_equal(task_of_architecture("BertForSequenceClassification", "regression", 2), &task_regression);
}

/* The numbers are those of tokenizers' "longest_first". */
static void pairs_are_cut_as_by_tokenizers(void **state)
{
	static const struct {
		int64_t a, b, room, left_a, left_b;
	} cases[] = {{24, 31, 45, 22, 23}, {31, 24, 45, 23, 22}, {30, 30, 45, 22, 23}, {24, 31, 44, 22, 22},
		     {8, 40, 45, 8, 37},   {40, 8, 45, 37, 8},   {23, 22, 45, 23, 22}, {23, 30, 45, 22, 23}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t a = cases[i].a, b = cases[i].b;
		task_cut_pair(&a, &b, cases[i].room);
		assert_int_equal(a, cases[i].left_a);
		assert_int_equal(b, cases[i].left_b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(choices_become_sequences), cmocka_unit_test(questions_may_stand_alone),
		cmocka_unit_test(scores_and_results),       cmocka_unit_test(long_texts_are_cut_and_labels_may_be_absent),
		cmocka_unit_test(the_table_has_the_row),    cmocka_unit_test(pairs_are_cut_as_by_tokenizers),
	};
	return cmocka_run_group_tests(tests, setup, task_world_drop);
}
