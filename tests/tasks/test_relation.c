/* Relation classification from files to results: markers as text and as entries of the vocabulary, texts that are too
 * long, both heads, what is recorded. */
#include "base/json.h"
#include "tasks/record.h"
#include "tasks/relation.h"
#include "tasks/task_world.h"

#define ROW(text, label) "{\"text\": \"" text "\", \"label\": \"" label "\"}\n"
#define TRAIN_TEXT ROW("a << b >> c [[ d ]] e", "likes") ROW("[[ b ]] c << a >>", "none")

/* Ids: a 10, b 11, ... f 15; < 16, > 17, [ 18, ] 19. */
static int setup(void **state)
{
	static const char *const entries[] = {"[PAD]",     "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
					      "[unused2]", "[unused3]", "x",         "a",     "b",     "c",     "d",
					      "e",         "f",         "<",         ">",     "[",     "]"};
	return task_world_make(state, &task_relation, "relations.jsonl", entries, 20);
}

static struct relation_settings *own_of(const struct task_state *task)
{
	return task->own;
}

static struct task_state open_relations(int32_t most, enum relation_head head)
{
	struct task_state task = open_state(most);
	own_of(&task)->relation_head = head;
	return task;
}

static void expect_ids(const struct task_set *set, const int32_t *ids, int64_t count)
{
	assert_int_equal(set->encoded.token_count, count);
	assert_memory_equal(set->encoded.ids, ids, (size_t)count * sizeof *ids);
}

static void markers_are_text(void **state)
{
	struct task_state task = open_relations(32, RELATION_MARKERS);
	struct task_set set;
	struct model_heads heads;
	assert_ok(open_set(&task, &set, TASK_TRAIN, TRAIN_TEXT));
	static const int32_t ids[] = {4, 10, 16, 16, 11, 17, 17, 12, 18, 18, 13, 19, 19, 14,
				      5, 4,  18, 18, 11, 19, 19, 12, 16, 16, 10, 17, 17, 5};
	static const int32_t rows[] = {2, 8, 7, 1}; /* the rows of << and [[, whichever comes first */
	expect_ids(&set, ids, 28);
	assert_memory_equal(set.encoded.items[0].rows, rows, sizeof rows);
	assert_int_equal(set.encoded.items[0].classes[1], 1);
	task_relation.heads(&task, &heads);
	assert_int_equal(heads.head[0].joined, 2);
	assert_false(heads.pooler);
	assert_string_equal(heads.architecture, "BertForRelationExtraction");
	task_set_release(&task, &set);
	task_state_release(&task);
	/* The head on [CLS] is that of a text classification. */
	task = open_relations(32, RELATION_CLS);
	assert_ok(open_set(&task, &set, TASK_TRAIN, TRAIN_TEXT));
	task_relation.heads(&task, &heads);
	assert_string_equal(heads.architecture, "BertForSequenceClassification");
	assert_true(heads.head[0].pooled);
	assert_null(set.encoded.items[0].rows);
	task_set_release(&task, &set);
	task_state_release(&task);
}

/* What is left of "a a a << b >> c c c c [[ d ]] e e e" in `most` tokens; the rows of the markers. */
static void expect_cut(int32_t most, const char *expected, int32_t first, int32_t second)
{
	static const char letters[] = "......-..xabcdef<>[]";
	struct task_state task = open_relations(most, RELATION_MARKERS);
	struct task_set set;
	struct buffer got = {0};
	assert_ok(open_set(&task, &set, TASK_TRAIN, ROW("a a a << b >> c c c c [[ d ]] e e e", "x") ROW("<< a >> [[ b ]]", "y")));
	for (int64_t i = 1; i < set.encoded.sequences[1] - 1; i++)
		buffer_char(&got, letters[set.encoded.ids[i]]);
	assert_string_equal(buffer_string(&got), expected);
	assert_int_equal(set.encoded.items[0].rows[0], first);
	assert_int_equal(set.encoded.items[0].rows[1], second);
	assert_int_equal(set.cut_count, (int)(20 - (int)strlen(expected) > 0) + (most < 12));
	buffer_release(&got);
	task_set_release(&task, &set);
	task_state_release(&task);
}

static void long_texts_keep_their_mentions(void **state)
{
	expect_cut(32, "aaa<<b>>cccc[[d]]eee", 4, 13);
	expect_cut(20, "aaa<<b>>cccc[[d]]e", 4, 13);
	expect_cut(18,
		   "aa<<b>>cccc[[d]]"
		   "",
		   3, 12);
	expect_cut(16, "<<b>>cccc[[d]]", 1, 10);
	expect_cut(14, "<<b>>cc[[d]]", 1, 8);
	expect_cut(12, "<<b>>[[d]]", 1, 6);
	expect_cut(10, "<<b>[[d]", 1, 5);
}

static void markers_become_entries(void **state)
{
	struct vocab own;
	struct tokenizer *encoder;
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct task_state task = open_relations(32, RELATION_CLS);
	struct task_set set;
	assert_ok(vocab_from_entries(&own, vocab.text, vocab.count));
	assert_ok(tokenizer_open(&encoder, &own, &settings));
	task.settings.tokenizer = encoder;
	task.settings.vocab = &own;
	own_of(&task)->marker_tokens = MARKERS_VOCABULARY;
	assert_ok(open_set(&task, &set, TASK_TRAIN,
			   "{\"text\": \"a b\", \"e1\": [0, 1], \"e2\": [2, 3], \"relation\": \"r\"}\n"
			   "{\"text\": \"a b\", \"e2\": [0, 1], \"e1\": [2, 3], \"relation\": \"s\"}\n"));
	static const int32_t ids[] = {4, 1, 10, 2, 7, 11, 8, 5, 4, 7, 10, 8, 1, 11, 2, 5};
	expect_ids(&set, ids, 16);
	assert_string_equal(own.text[8], "[/E2]");
	assert_true(own.hash != vocab.hash);
	task_set_release(&task, &set);
	task_state_release(&task);
	/* The vocabulary has them now: they are used as entries without being requested, and no other rows are taken. */
	task = open_relations(32, RELATION_CLS);
	task.settings.tokenizer = encoder;
	task.settings.vocab = &own;
	assert_ok(open_set(&task, &set, TASK_TRAIN, ROW("[E1]a[/E1] [E2]b[/E2]", "r") ROW("[E1]b[/E1] [E2]b[/E2]", "s")));
	expect_ids(&set, (const int32_t[]){4, 1, 10, 2, 7, 11, 8, 5, 4, 1, 11, 2, 7, 11, 8, 5}, 16);
	assert_int_equal(own.added_count, 4);
	task_set_release(&task, &set);
	task_state_release(&task);
	/* No rows are left for other markers. */
	task = open_relations(32, RELATION_CLS);
	task.settings.tokenizer = encoder;
	task.settings.vocab = &own;
	own_of(&task)->marker_tokens = MARKERS_VOCABULARY;
	assert_error(ERR_USAGE, "no entry '<<', and no free row", open_set(&task, &set, TASK_TRAIN, TRAIN_TEXT));
	task_set_release(&task, &set);
	task_state_release(&task);
	tokenizer_close(encoder);
	vocab_release(&own);
}

static void scores_leave_the_negative_class_out(void **state)
{
	struct task_state task = open_relations(32, RELATION_MARKERS);
	struct task_set set;
	struct task_outputs outputs;
	struct model_heads heads;
	struct measures measures = {0};
	task.settings.negative_label = "none";
	assert_ok(open_set(&task, &set, TASK_TRAIN,
			   TRAIN_TEXT ROW("<< a >> [[ b ]]", "none") ROW("<< a >> [[ b ]]", "likes")
				   ROW("<< a >> [[ b ]]", "hates")));
	task_relation.heads(&task, &heads);
	assert_ok(task_outputs_create(&outputs, &set.encoded, &heads.head[0]));
	/* columns: hates, likes, none; gold: likes, none, none, likes, hates */
	static const float logits[] = {0, 2, 1, 0, 1, 2, 0, 2, 1, 0, 1, 2, 2, 1, 0};
	memcpy(outputs.values, logits, sizeof logits);
	assert_ok(task_relation.score(&task, &set, &outputs, &measures));
	/* likes: 1 right, 2 predicted, 2 in the gold labels; hates: 1, 1, 1. */
	assert_near(measures_get(&measures, "f1_micro"), 2.0 * 2 / (3 + 3), 1e-12);
	assert_near(measures_get(&measures, "precision_micro"), 2.0 / 3, 1e-12);
	assert_near(measures_get(&measures, "accuracy"), 0.6, 1e-12);
	assert_string_equal(task_decides(&task), "f1_micro");
	task.settings.negative_label = NULL;
	measures = (struct measures){0};
	assert_ok(task_relation.score(&task, &set, &outputs, &measures));
	assert_near(measures_get(&measures, "f1_micro"), 0.6, 1e-12);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
	task = open_relations(32, RELATION_MARKERS);
	task.settings.negative_label = "Other";
	assert_error(ERR_USAGE, "--negative_label Other", open_set(&task, &set, TASK_TRAIN, TRAIN_TEXT));
	task_set_release(&task, &set);
	task_state_release(&task);
}

static void bad_rows_and_the_record(void **state)
{
	struct task_state task = open_relations(32, RELATION_MARKERS), other = open_relations(32, RELATION_CLS);
	struct task_set set, train; /* its columns have the names that were used in training */
	struct buffer text = {0};
	struct json_document document;
	assert_error(ERR_DATA, "its texts have no marked mentions",
		     open_set(&task, &set, TASK_TRAIN, ROW("a b", "x") ROW("c", "y")));
	task_set_release(&task, &set);
	task_state_release(&task);
	task = open_relations(32, RELATION_MARKERS);
	task.settings.negative_label = "none";
	assert_ok(open_set(&task, &train, TASK_TRAIN, TRAIN_TEXT));
	assert_ok(task_record_write(&task, &text));
	assert_ok(json_parse(&document, "record", text.data, text.size));
	assert_ok(task_record_read(document.root, "record", &other));
	assert_int_equal(own_of(&other)->relation_head, RELATION_MARKERS);
	assert_int_equal(own_of(&other)->marker_tokens, MARKERS_TEXT);
	assert_memory_equal(&own_of(&other)->form, &own_of(&task)->form, sizeof(struct mention_form));
	assert_string_equal(other.settings.negative_label, "none");
	/* --on_bad_record skip leaves bad rows out, of sets to predict as well. */
	static const char rows[] = ROW("<< a >> [[ b ]]", "none") ROW("<< a >>", "none");
	assert_error(ERR_DATA, "relations.jsonl', line 2: the text has no marker '[['",
		     open_set(&task, &set, TASK_PREDICT, rows));
	task_set_release(&task, &set);
	bad.skip = true;
	assert_ok(open_set(&task, &set, TASK_PREDICT, rows));
	assert_int_equal(set.examples.count, 1);
	assert_int_equal(bad.count, 1);
	bad.count = 0;
	task_set_release(&task, &set);
	assert_ok(open_set(&task, &set, TASK_SCORE, ROW("<< a >> [[ b ]]", "likes") ROW("<< a >>", "none")));
	assert_int_equal(set.examples.count, 1);
	assert_int_equal(bad.count, 1);
	task_set_release(&task, &set);
	/* A folder that was not made by bertc. */
	struct task_state foreign = open_relations(32, RELATION_CLS);
	assert_error(ERR_STATE, "does not say how mentions are marked", open_set(&foreign, &set, TASK_PREDICT, TRAIN_TEXT));
	task_set_release(&foreign, &set);
	task_state_release(&foreign);
	task_set_release(&task, &train);
	json_release(&document);
	buffer_release(&text);
	task_state_release(&other);
	task_state_release(&task);
}

static void the_table_has_the_row(void **state)
{
	const struct task *task;
	const struct layout *layout;
	assert_ok(task_find("relation", &task, &layout));
	assert_ptr_equal(task, &task_relation);
	assert_ok(task_find("ChemProt", &task, &layout));
	assert_ptr_equal(task, &task_relation);
	assert_ptr_equal(task_of_architecture("BertForSequenceClassification", "single_label_classification", 2),
			 &task_classification);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(markers_are_text),        cmocka_unit_test(long_texts_keep_their_mentions),
		cmocka_unit_test(markers_become_entries),  cmocka_unit_test(scores_leave_the_negative_class_out),
		cmocka_unit_test(bad_rows_and_the_record), cmocka_unit_test(the_table_has_the_row),
	};
	return cmocka_run_group_tests(tests, setup, task_world_drop);
}
