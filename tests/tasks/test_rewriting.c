/* Text rewriting from files to results, with made-up logits. */
#include <math.h>
#include "base/json.h"
#include "base/memory.h"
#include "base/rng.h"
#include "tasks/record.h"
#include "tasks/task_world.h"

/* The head's outputs (tasks/rewriting.c): two classes, and a query and a key of 64 numbers for each pointer. */
enum { OUTPUTS = 2 + 4 * 64, FIRST_QUERY = 2, FIRST_KEY = 66, LAST_QUERY = 130, LAST_KEY = 194 };

static int setup(void **state)
{
	static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]",  "[SEP]", "[MASK]", "who", "wrote",
					      "emma",  "jane",  "austen", "did",   "?",      "and", "it"};
	return task_world_make(state, &task_rewriting, "dialogue.txt", entries, 14);
}

#define DIALOGUE                                                                                                                 \
	"who wrote emma ?\t\tjane austen\t\tand who is it\t\tand who is jane austen\n"                                           \
	"who wrote emma ?\t\tjane austen\t\tdid it ?\t\tdid emma swim ?\n"

static void targets_become_edits(void **state)
{
	struct task_state task = open_state(32);
	struct task_set set;
	assert_ok(open_set(&task, &set, TASK_TRAIN, DIALOGUE));
	/* [CLS] who wrote emma ? [SEP] jane austen [SEP] and who is(unknown) it [SEP] */
	static const int32_t ids[] = {2, 5, 6, 7, 11, 3, 8, 9, 3, 12, 5, 1, 13, 3};
	assert_memory_equal(set.encoded.ids, ids, sizeof ids);
	assert_int_equal(set.encoded.seconds[0], 9);
	const struct labeled_items *items = &set.encoded.items[0];
	static const int32_t rows[] = {9, 10, 11, 12, 13, 9, 10, 11, 12};
	/* kept, kept, kept, deleted with rows 6 and 7 before it, the end; then: kept, "it" deleted, and what must be
	 * inserted before it occurs nowhere, ... */
	static const int32_t labels[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 6, 7, 0, 0, 0};
	assert_int_equal(items->count, 9);
	assert_memory_equal(items->rows, rows, sizeof rows);
	assert_memory_equal(items->classes, labels, sizeof labels);
	int unknown = 0;
	for (int i = 5; i < 9; i++)
		unknown += items->classes[3 * i + 1] < 0 && items->classes[3 * i] >= 0;
	assert_int_equal(unknown, 1);
	assert_string_equal(task.settings.trained.pair, "column 1,column 2");
	task_set_release(&task, &set);
	task_state_release(&task);
}

/* Makes row `row` of an example point at `first` and `last`: its queries match their keys. */
static void point(float *logits, int32_t row, int32_t first, int32_t last, bool deleted)
{
	float *own = logits + (int64_t)row * OUTPUTS;
	own[deleted] = 4;
	own[FIRST_QUERY + first] = own[LAST_QUERY + last] = 100;
}

/* Each row's keys have a direction of their own, as far as there are directions. */
static void safeguard_rows(float *logits, int32_t count)
{
	for (int32_t row = 0; row < count && row < FIRST_KEY - FIRST_QUERY; row++)
		logits[(int64_t)row * OUTPUTS + FIRST_KEY + row] = logits[(int64_t)row * OUTPUTS + LAST_KEY + row] = 1;
}

static void open_outputs(const struct task_state *task, const struct task_set *set, struct task_outputs *out)
{
	struct model_heads heads;
	task_rewriting.heads(task, &heads);
	assert_int_equal(heads.head[0].loss, LOSS_POINTERS);
	assert_int_equal(heads.head[0].outputs, OUTPUTS);
	assert_ok(task_outputs_create(out, &set->encoded, &heads.head[0]));
	for (int64_t e = 0; e < out->count; e++)
		safeguard_rows(out->values + out->starts[e], (int32_t)((out->starts[e + 1] - out->starts[e]) / OUTPUTS));
}

static enum status note_answer(void *context, const struct task_answer *answer)
{
	buffer_format(context, "%lld %s | %s -> %s (%s)%s; ", (long long)answer->number, answer->pair, answer->text,
		      answer->predicted, answer->right, answer->wrong ? " wrong" : "");
	assert_true(answer->loss > 0 && answer->loss < 0.2); /* the part of the second answer that can be expressed is right */
	return buffer_status(context);
}

static void outputs_become_texts(void **state)
{
	struct task_state task = open_state(32);
	struct task_set set;
	struct task_outputs outputs;
	struct measures measures = {0};
	struct buffer text = {0};
	assert_ok(open_set(&task, &set, TASK_SCORE, DIALOGUE));
	open_outputs(&task, &set, &outputs);
	for (int32_t row = 9; row < 14; row++)
		point(outputs.values, row, row == 12 ? 6 : 0, row == 12 ? 7 : 0, row == 12);
	for (int32_t row = 9; row < 13; row++) /* "swim" cannot be copied from anywhere */
		point(outputs.values + outputs.starts[1], row, row == 10 ? 3 : 0, row == 10 ? 3 : 0, row == 10);
	assert_ok(task_rewriting.score(&task, &set, &outputs, &measures));
	assert_near(measures_get(&measures, "exact_match"), 50, 1e-12);
	assert_near(measures_get(&measures, "copy_exact_match"), 0, 0);
	assert_non_null(measures_find(&measures, task_rewriting.decides));
	assert_true(measures_get(&measures, "rouge_l") > measures_get(&measures, "copy_rouge_l"));
	assert_ok(task_rewriting.write(&task, &set, &outputs, test_folder));
	assert_ok(file_read(test_path("predict.txt"), 1000, &text));
	assert_string_equal(buffer_string(&text), "and who is jane austen\ndid emma ?\n");
	buffer_clear(&text);
	assert_ok(file_read(test_path("rewritten.tsv"), 1000, &text));
	assert_string_equal(buffer_string(&text),
			    "source\trewritten\ttarget\nand who is it\tand who is jane austen\tand who is jane "
			    "austen\ndid it ?\tdid emma ?\tdid emma swim ?\n");
	buffer_clear(&text);
	assert_ok(task_rewriting.put(&task, &set, &outputs, 0, &text));
	assert_string_equal(buffer_string(&text), "{\"text\":\"and who is jane austen\",\"edits\":[{\"start\":11,\"end\":13,"
						  "\"text\":\"jane austen\"}]}");
	buffer_clear(&text);
	assert_ok(task_rewriting.examine(&task, &set, &outputs, (struct task_answer_reader){note_answer, &text}));
	assert_string_equal(
		buffer_string(&text),
		"1 who wrote emma ? | jane austen | and who is it -> and who is jane austen (and who is jane austen); "
		"2 who wrote emma ? | jane austen | did it ? -> did emma ? (did emma swim ?) wrong; ");
	buffer_release(&text);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
}

/* A run ends within its text, and does not end before it begins. */
static void runs_stay_within_a_text(void **state)
{
	struct task_state task = open_state(32);
	struct task_set set;
	struct task_outputs outputs;
	struct buffer text = {0};
	assert_ok(open_set(&task, &set, TASK_PREDICT, "{\"context\": [\"emma ?\", \"jane austen\"], \"source\": \"who\"}\n"));
	/* [CLS] emma ? [SEP] jane austen [SEP] who [SEP] */
	assert_int_equal(set.encoded.token_count, 9);
	open_outputs(&task, &set, &outputs);
	float *logits = outputs.values;
	point(logits, 7, 5, 4, false); /* austen ... jane: in the wrong order; the best choice is one of them */
	logits[7 * OUTPUTS + FIRST_QUERY + 4] = 99;
	point(logits, 8, 1, 5, false); /* emma ... austen spans two texts: rather from jane, which is better than nothing */
	logits[8 * OUTPUTS + FIRST_QUERY + 4] = 1;
	assert_ok(task_rewriting.put(&task, &set, &outputs, 0, &text));
	/* The edits make the text of the source, spaces included. */
	assert_string_equal(buffer_string(&text), "{\"text\":\"jane who jane austen\",\"edits\":[{\"start\":0,\"end\":0,\"text\":"
						  "\"jane \"},{\"start\":3,\"end\":3,\"text\":\" jane austen\"}]}");
	buffer_release(&text);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
}

/* What is deleted takes the space along that is gone from the text. */
static void edits_make_the_text(void **state)
{
	struct task_state task = open_state(32);
	struct task_set set;
	struct task_outputs outputs;
	struct buffer text = {0};
	assert_ok(open_set(&task, &set, TASK_PREDICT, "{\"context\": [\"emma\"], \"source\": \"and who did  it ?\"}\n"));
	open_outputs(&task, &set, &outputs); /* [CLS] emma [SEP] and who did it ? [SEP] */
	for (int32_t row = 3; row < 9; row++)
		point(outputs.values, row, row == 6 ? 1 : 0, row == 6 ? 1 : 0, row == 3 || row == 5 || row == 6);
	assert_ok(task_rewriting.put(&task, &set, &outputs, 0, &text));
	assert_string_equal(buffer_string(&text), "{\"text\":\"who  emma ?\",\"edits\":[{\"start\":0,\"end\":4,\"text\":\"\"},"
						  "{\"start\":8,\"end\":15,\"text\":\" emma\"}]}");
	buffer_release(&text);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
}

/* A pointer's logit in double precision. */
static double pointed(const float *logits, int32_t row, int query, int32_t at, int key)
{
	double sum = 0;
	for (int i = 0; i < 64; i++)
		sum += (double)logits[(int64_t)row * OUTPUTS + query + i] * (double)logits[(int64_t)at * OUTPUTS + key + i];
	return sum / 8;
}

/* Random outputs: what is inserted before each token is the best of all runs, computed in double precision. */
static void runs_are_the_best_of_all(void **state)
{
	enum { WORDS = 300, CHECKED = 300 };
	struct task_state task = open_state(2 * WORDS + 3);
	struct task_set set;
	struct task_outputs outputs;
	struct buffer text = {0}, got = {0};
	struct json_document document;
	buffer_text(&text, "{\"context\": [\"");
	for (int i = 0; i < WORDS; i++)
		buffer_text(&text, "jane ");
	buffer_text(&text, "\"], \"source\": \"");
	for (int i = 0; i < WORDS; i++)
		buffer_text(&text, "emma ");
	buffer_text(&text, "\"}\n");
	assert_ok(open_set(&task, &set, TASK_PREDICT, buffer_string(&text)));
	assert_int_equal(set.encoded.token_count, 2 * WORDS + 3);
	open_outputs(&task, &set, &outputs);
	struct rng rng = rng_start(7, RNG_TEST, 0);
	for (int64_t i = 0; i < outputs.starts[1]; i++)
		outputs.values[i] = ((float)rng_below(&rng, 2001) - 1000) / 500;
	for (int32_t row = 0; row < 2 * WORDS + 3; row++)
		outputs.values[(int64_t)row * OUTPUTS + 1] = -9; /* nothing is deleted */
	assert_ok(task_rewriting.put(&task, &set, &outputs, 0, &got));
	assert_ok(json_parse(&document, "got", buffer_string(&got), got.size));
	const struct json *edit = json_member(document.root, "edits")->first_child;
	for (int32_t row = WORDS + 2; row < WORDS + 2 + CHECKED; row++, edit = edit->next) {
		const float *o = outputs.values;
		double best = pointed(o, row, FIRST_QUERY, 0, FIRST_KEY) + pointed(o, row, LAST_QUERY, 0, LAST_KEY), begins = 0;
		int32_t first = -1, from = -1, to = -1;
		for (int32_t at = 1; at < 2 * WORDS + 2; at++) {
			double begun = pointed(o, row, FIRST_QUERY, at, FIRST_KEY);
			if (at == WORDS + 1) /* [SEP] */
				continue;
			if (first < 0 || at == WORDS + 2 || begun > begins) {
				first = at;
				begins = begun;
			}
			if (begins + pointed(o, row, LAST_QUERY, at, LAST_KEY) > best) {
				best = begins + pointed(o, row, LAST_QUERY, at, LAST_KEY);
				from = first;
				to = at;
			}
		}
		assert_true(from > 0);
		assert_int_equal(json_member(edit, "start")->integer, 5 * (row - WORDS - 2));
		assert_int_equal(json_member(edit, "text")->text_size, 5 * (to - from + 1)); /* with the space behind it */
	}
	json_release(&document);
	buffer_release(&text);
	buffer_release(&got);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
}

/* The oldest context is dropped first; of a text that is too long itself, the end stays unchanged. */
static void long_texts_lose_context_first(void **state)
{
	struct task_state task = open_state(9);
	struct task_set set;
	struct task_outputs outputs;
	struct buffer text = {0};
	assert_ok(open_set(&task, &set, TASK_PREDICT,
			   "{\"context\": [\"who wrote emma ?\", \"jane austen\"], \"source\": \"and it\"}\n"
			   "{\"context\": \"jane austen\", \"source\": \"who wrote emma ? did it ? and who\"}\n"));
	/* [CLS] ? [SEP] jane austen [SEP] and it [SEP], then [CLS] and seven tokens of the source */
	static const int32_t ids[] = {2, 11, 3, 8, 9, 3, 12, 13, 3, 2, 5, 6, 7, 11, 10, 13, 11, 3};
	assert_int_equal(set.encoded.token_count, 18);
	assert_memory_equal(set.encoded.ids, ids, sizeof ids);
	assert_int_equal(set.cut_count, 2);
	assert_int_equal(set.cut_tokens, 3 + 4);
	open_outputs(&task, &set, &outputs);
	point(outputs.values + outputs.starts[1], 1, 0, 0, true);
	assert_ok(task_rewriting.put(&task, &set, &outputs, 1, &text));
	assert_non_null(strstr(buffer_string(&text), "\"text\":\"wrote emma ? did it ? and who\""));
	buffer_release(&text);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
}

static void columns_are_found(void **state)
{
	static const struct {
		const char *text, *source, *target, *contexts;
	} cases[] = {
		{"emma\tjane\twho\twho jane\n", "column 3", "column 4", "column 1,column 2"},
		{"who\twho jane\n", "column 1", "column 2", NULL},
		{"context\tsource\ttarget\nemma\twho\twho emma\n", "source", "target", "context"},
		{"target\tcontext1\tcontext2\tutterance\nwho emma\temma\tjane\twho\n", "utterance", "target",
		 "context1,context2"},
		{"{\"history\": [\"emma\"], \"query\": \"who\", \"rewrite\": \"who emma\"}\n", "query", "rewrite", "history"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct task_state task = open_state(16);
		struct task_set set;
		assert_ok(open_set(&task, &set, TASK_TRAIN, cases[i].text));
		assert_string_equal(set.examples.columns.text, cases[i].source);
		assert_string_equal(set.examples.columns.label, cases[i].target);
		if (cases[i].contexts)
			assert_string_equal(set.examples.columns.pair, cases[i].contexts);
		else
			assert_null(set.examples.columns.pair);
		assert_string_equal(set.examples.examples[0].text, "who");
		task_set_release(&task, &set);
		task_state_release(&task);
	}
	/* Without the target that training had. */
	struct task_state task = open_state(16);
	struct task_set set;
	task.settings.trained = (struct column_choice){.text = "column 3", .pair = "column 1,column 2", .label = "column 4"};
	assert_ok(open_set(&task, &set, TASK_PREDICT, "emma\tjane\twho\n"));
	assert_string_equal(set.examples.examples[0].text, "who");
	assert_int_equal(set.examples.examples[0].choice_count, 2);
	assert_false(set.has_labels);
	task_set_release(&task, &set);
	/* One context where training had two. */
	assert_ok(open_set(&task, &set, TASK_PREDICT, "jane\twho\n"));
	assert_string_equal(set.examples.examples[0].text, "who");
	assert_int_equal(set.examples.examples[0].choice_count, 1);
	task_set_release(&task, &set);
	task.settings.columns = (struct column_choice){.text = "2", .pair = "3", .label = "1"};
	task.settings.trained = (struct column_choice){0};
	assert_ok(open_set(&task, &set, TASK_TRAIN, "who emma\twho\temma\n"));
	assert_string_equal(set.examples.examples[0].text, "who");
	task_set_release(&task, &set);
	task_state_release(&task);
}

static void mistakes_are_told(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"context\tsource\nemma\twho\n", "which column has the rewritten texts?"},
		{"{\"context\": \"emma\", \"target\": \"who\"}\n", "which column has the texts to be rewritten?"},
		{"a\tb\tc\nd\te\t\n", "line 2: the row has no rewritten text (column 'column 3')"},
		{"a\tb\tc\nd\t \tf\n", "line 2: the text is empty"},
		{"{\"context\": [1, {}], \"source\": \"a\", \"target\": \"b\"}\n", "line 1: a context is not a string"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct task_state task = open_state(16);
		struct task_set set;
		assert_error(ERR_DATA, cases[i].message, open_set(&task, &set, TASK_TRAIN, cases[i].text));
		task_set_release(&task, &set);
		task_state_release(&task);
	}
	struct task_state task = open_state(16);
	struct task_set set;
	task.settings.columns = (struct column_choice){.pair = "2"};
	assert_error(ERR_USAGE, "is used both as a context and as something else",
		     open_set(&task, &set, TASK_TRAIN, "a\tb\tc\n"));
	task_set_release(&task, &set);
	task_state_release(&task);
}

static void the_table_has_the_row(void **state)
{
	const struct task *task;
	const struct layout *layout;
	assert_ok(task_find("rewriting", &task, &layout));
	assert_ptr_equal(task, &task_rewriting);
	assert_ptr_equal(task_of_architecture("BertForTextRewriting", NULL, OUTPUTS), &task_rewriting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_become_edits),     cmocka_unit_test(edits_make_the_text),
		cmocka_unit_test(outputs_become_texts),     cmocka_unit_test(runs_stay_within_a_text),
		cmocka_unit_test(runs_are_the_best_of_all), cmocka_unit_test(long_texts_lose_context_first),
		cmocka_unit_test(columns_are_found),        cmocka_unit_test(mistakes_are_told),
		cmocka_unit_test(the_table_has_the_row),
	};
	return cmocka_run_group_tests(tests, setup, task_world_drop);
}
