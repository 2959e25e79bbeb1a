/* Tagged words from files to results, with made-up logits. Scores are compared with those of seqeval in test_measures.c. */
#include <math.h>
#include <time.h>
#include "base/json.h"
#include "tasks/record.h"
#include "tasks/tagging/tag_text.h"
#include "tasks/task_world.h"

static int setup(void **state)
{
	static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "anna",
					      "lives", "in",    "new",   "york",  "##s"};
	return task_world_make(state, &task_tagging, "words.txt", entries, 11);
}

/* Outputs in which the largest logit, 2 above the others, is that of labels[item]. */
static void outputs_of(const struct task_state *task, const struct task_set *set, const char *const *labels,
		       struct task_outputs *out)
{
	struct model_heads heads;
	task_tagging.heads(task, &heads);
	assert_int_equal(heads.head[0].input, INPUT_CHOSEN_ROWS);
	assert_ok(task_outputs_create(out, &set->encoded, &heads.head[0]));
	assert_int_equal(out->starts[out->count], set->encoded.items[0].count * task->labels.count);
	for (int64_t i = 0; i < set->encoded.items[0].count; i++) {
		int64_t id = label_set_find(&task->labels, labels[i]);
		assert_true(id >= 0);
		out->values[i * task->labels.count + id] = 2;
	}
}

/* Each entity's score must be that of the only possible answer here; it is written as '?' in `expected`. */
static void expect_put(const struct task_state *task, const struct task_set *set, const struct task_outputs *outputs,
		       int64_t sentence, const char *expected)
{
	static const char key[] = "\"score\":";
	struct buffer got = {0};
	char text[1024], *end;
	assert_ok(task_tagging.put(task, set, outputs, sentence, &got));
	const char *score = strstr(buffer_string(&got), key);
	snprintf(text, sizeof text, "%s", buffer_string(&got));
	if (score) {
		score += strlen(key);
		assert_near(strtod(score, &end), exp(2) / (exp(2) + 3), 1e-12);
		snprintf(text, sizeof text, "%.*s?%s", (int)(score - got.data), got.data, end);
	}
	assert_string_equal(text, expected);
	buffer_release(&got);
}

/* Two sentences in BIOES; the soft hyphen has no tokens. */
#define BIOES_TEXT "Annas S-PER\nlives O\nin O\n\xC2\xAD O\nNew B-LOC\nYork E-LOC\n\nAnna S-PER\n"

static void words_are_read_off_their_first_pieces(void **state)
{
	struct task_state task = open_state(16);
	struct task_set set;
	assert_ok(open_set(&task, &set, TASK_TRAIN, BIOES_TEXT));
	static const char *const labels[] = {"B-LOC", "B-PER", "I-LOC", "O"};
	static const int32_t ids[] = {2, 5, 10, 6, 7, 8, 9, 3, 2, 5, 3};
	static const int32_t rows[] = {1, 3, 4, 5, 6, 1}, classes[] = {1, 3, 3, 0, 2, 1};
	assert_int_equal(tagging_settings(&task)->tags.scheme, TAGS_BIOES);
	assert_int_equal(task.labels.count, 4);
	for (int i = 0; i < 4; i++)
		assert_string_equal(task.labels.labels[i].name, labels[i]);
	assert_int_equal(set.encoded.example_count, 2);
	assert_int_equal(task_answers(&set), 2);
	assert_memory_equal(set.encoded.ids, ids, sizeof ids);
	assert_int_equal(set.encoded.seconds[0], 8);
	assert_int_equal(set.encoded.items[0].count, 6);
	assert_memory_equal(set.encoded.items[0].rows, rows, sizeof rows);
	assert_memory_equal(set.encoded.items[0].classes, classes, sizeof classes);
	assert_string_equal(task_decides(&task), "f1");
	task_set_release(&task, &set);
	task_state_release(&task);
}

static void results_are_in_the_scheme_of_the_file(void **state)
{
	struct task_state task = open_state(16);
	struct task_set train, set;
	struct task_outputs outputs;
	struct measures measures = {0};
	struct class_scores types;
	assert_ok(open_set(&task, &train, TASK_TRAIN, BIOES_TEXT));
	assert_ok(open_set(&task, &set, TASK_SCORE, BIOES_TEXT));
	static const char *const predicted[] = {"B-PER", "O", "O", "B-LOC", "B-LOC", "B-PER"}; /* York on its own: wrong */
	outputs_of(&task, &set, predicted, &outputs);
	assert_ok(task_tagging.score(&task, &set, &outputs, &measures));
	assert_near(measures_get(&measures, "accuracy"), 6.0 / 7, 1e-12);
	assert_near(measures_get(&measures, "precision"), 2.0 / 4, 1e-12);
	assert_near(measures_get(&measures, "recall"), 2.0 / 3, 1e-12);
	assert_near(measures_get(&measures, "f1"), 4.0 / 7, 1e-12);
	assert_ok(task_tagging.score_classes(&task, &set, &outputs, &types));
	assert_int_equal(types.count, 2);
	assert_string_equal(types.names[0], "LOC");
	assert_int_equal(types.scores[0].predicted, 2);
	assert_string_equal(types.names[1], "PER");
	assert_int_equal(types.scores[1].correct, 2);
	assert_ok(task_tagging.write(&task, &set, &outputs, test_folder));
	expect_file("predictions.txt", "Annas S-PER S-PER\nlives O O\nin O O\n\xC2\xAD O O\nNew B-LOC S-LOC\nYork E-LOC S-LOC\n\n"
				       "Anna S-PER S-PER\n\n");
	expect_put(
		&task, &set, &outputs, 1,
		"{\"tags\":[\"S-PER\"],\"entities\":[{\"start\":0,\"end\":4,\"label\":\"PER\",\"score\":?,\"text\":\"Anna\"}]}");
	class_scores_release(&types);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_set_release(&task, &train);
	task_state_release(&task);
}

/* Nine pieces in windows of four, two apart, the last one at the end. */
static void long_sentences_are_windows(void **state)
{
	struct task_state task = open_state(6);
	struct task_set set;
	struct task_outputs outputs;
	assert_ok(open_set(&task, &set, TASK_TRAIN,
			   "anna N\nlives V\nin P\nnew N\nyork N\nanna N\nlives V\nin P\nnew N\n\nyork N\n"));
	static const int32_t ids[] = {2, 5, 6, 7, 8, 3, 2, 7, 8, 9, 5, 3, 2, 9, 5, 6, 7, 3, 2, 5, 6, 7, 8, 3, 2, 9, 3};
	static const int32_t rows[] = {1, 2, 3, 2, 3, 2, 3, 3, 4, 1}, classes[] = {0, 2, 1, 0, 0, 0, 2, 1, 0, 0};
	static const int64_t starts[] = {0, 3, 5, 7, 9, 10};
	assert_int_equal(set.encoded.example_count, 5);
	assert_int_equal(task_answers(&set), 2);
	assert_memory_equal(set.encoded.ids, ids, sizeof ids);
	assert_memory_equal(set.encoded.items[0].rows, rows, sizeof rows);
	assert_memory_equal(set.encoded.items[0].classes, classes, sizeof classes);
	assert_memory_equal(set.encoded.items[0].starts, starts, sizeof starts);
	static const char *const predicted[] = {"N", "V", "P", "N", "N", "V", "V", "P", "P", "V"};
	outputs_of(&task, &set, predicted, &outputs);
	expect_put(&task, &set, &outputs, 0, "{\"tags\":[\"N\",\"V\",\"P\",\"N\",\"N\",\"V\",\"V\",\"P\",\"P\"]}");
	expect_put(&task, &set, &outputs, 1, "{\"tags\":[\"V\"]}");
	struct measures measures = {0};
	assert_ok(task_tagging.score(&task, &set, &outputs, &measures));
	assert_near(measures_get(&measures, "accuracy"), 0.7, 1e-12);
	assert_null(measures_find(&measures, "f1"));
	assert_string_equal(task_decides(&task), "accuracy");
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
}

static void lines_of_text_are_tagged(void **state)
{
	struct task_state task = open_state(16);
	struct task_set train, set;
	struct task_outputs outputs;
	assert_ok(open_set(&task, &train, TASK_TRAIN, "Anna I-PER\nlives O\nin O\nNew I-LOC\nYork I-LOC\nAnna B-LOC\n"));
	assert_int_equal(tagging_settings(&task)->tags.scheme, TAGS_IOB1);
	assert_ok(open_set(&task, &set, TASK_PREDICT, "\xC3\x84nna  lives in\tNew York\n\nin \xC2\xAD\n"));
	assert_int_equal(set.encoded.example_count, 2);
	assert_int_equal(task_answers(&set), 3);
	assert_near(set.encoded.items[0].weights[0], 0, 0);
	static const char *const predicted[] = {"O", "O", "O", "B-LOC", "I-LOC", "O"};
	outputs_of(&task, &set, predicted, &outputs);
	expect_put(&task, &set, &outputs, 0,
		   "{\"tags\":[\"O\",\"O\",\"O\",\"I-LOC\",\"I-LOC\"],"
		   "\"words\":[\"\xC3\x84nna\",\"lives\",\"in\",\"New\",\"York\"],"
		   "\"entities\":[{\"start\":15,\"end\":23,\"label\":\"LOC\",\"score\":?,\"text\":\"New York\"}]}");
	expect_put(&task, &set, &outputs, 1, "{\"tags\":[],\"words\":[],\"entities\":[]}");
	expect_put(&task, &set, &outputs, 2, "{\"tags\":[\"O\"],\"words\":[\"in\"],\"entities\":[]}");
	assert_ok(task_tagging.write(&task, &set, &outputs, test_folder));
	expect_file("predictions.txt", "\xC3\x84nna\tO\nlives\tO\nin\tO\nNew\tI-LOC\nYork\tI-LOC\n\n\nin\tO\n\n");
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	/* One word per line, with or without tags, is not plain text. */
	assert_ok(open_set(&task, &set, TASK_PREDICT, "Anna\nlives\n\nin\nNew\nYork\n"));
	assert_int_equal(task_answers(&set), 2);
	assert_false(set.has_labels);
	task_set_release(&task, &set);
	assert_ok(open_set(&task, &set, TASK_PREDICT, "Anna I-XYZ\nlives O\nin O\n"));
	assert_int_equal(task_answers(&set), 1);
	assert_int_equal(set.encoded.items[0].count, 3);
	task_set_release(&task, &set);
	task_set_release(&task, &train);
	task_state_release(&task);
}

/* A set to predict in the form of training, whose tags have no prefixes; texts that end in what may be a tag. */
static void tags_without_prefixes_are_known(void **state)
{
	struct task_state task = open_state(16);
	struct task_set train, set;
	static const char rows[] = "Anna\tNNP\nlives\tVBZ\nin\tIN\n.\t.\n\nNew\tNNP\nYork\tNNP\n";
	assert_ok(open_set(&task, &train, TASK_TRAIN, rows));
	assert_int_equal(tagging_settings(&task)->tags.scheme, TAGS_PLAIN);
	assert_ok(open_set(&task, &set, TASK_PREDICT, rows));
	assert_int_equal(task_answers(&set), 2);
	assert_int_equal(((const struct tag_text *)set.own)->word_count, 6);
	task_set_release(&task, &set);
	static const char texts[] = "Anna lives in York .\nNew York lives in .\nAnna\n";
	assert_ok(open_set(&task, &set, TASK_PREDICT, texts));
	assert_int_equal(task_answers(&set), 3);
	task_set_release(&task, &set);
	assert_ok(open_set(&task, &set, TASK_PREDICT, "Anna lives .\n"));
	assert_int_equal(((const struct tag_text *)set.own)->word_count, 3);
	task_set_release(&task, &set);
	task_set_release(&task, &train);
	task_state_release(&task);
	/* Tags in the column that training named. */
	static const char columns[] = "1\tanna\tPER\tx\n2\tlives\tO\ty\n\n1\tin\tO\tz\n";
	task = open_state(16);
	task.settings.columns = (struct column_choice){.text = "2", .label = "3"};
	assert_ok(open_set(&task, &train, TASK_TRAIN, columns));
	task.settings.trained = train.examples.columns;
	task.settings.columns = (struct column_choice){.text = NULL};
	assert_ok(open_set(&task, &set, TASK_PREDICT, columns));
	assert_int_equal(task_answers(&set), 2);
	assert_int_equal(((const struct tag_text *)set.own)->word_count, 3);
	task_set_release(&task, &set);
	task_set_release(&task, &train);
	task_state_release(&task);
}

static void tags_that_training_never_had(void **state)
{
	struct task_state task = open_state(16);
	struct task_set train, set;
	struct task_outputs outputs;
	struct measures measures = {0};
	assert_ok(open_set(&task, &train, TASK_TRAIN, "Anna B-PER\nlives O\nin O\nNew B-LOC\nYork I-LOC\n"));
	/* Another prefix counts as an error, and is not part of the loss. */
	assert_ok(open_set(&task, &set, TASK_SCORE, "Anna B-PER\nYork I-PER\nlives O\n"));
	static const int32_t classes[] = {1, -1, 3};
	static const float weights[] = {1, 0, 1};
	assert_memory_equal(set.encoded.items[0].classes, classes, sizeof classes);
	assert_memory_equal(set.encoded.items[0].weights, weights, sizeof weights);
	static const char *const predicted[] = {"B-PER", "O", "O"};
	outputs_of(&task, &set, predicted, &outputs);
	assert_ok(task_tagging.score(&task, &set, &outputs, &measures));
	assert_near(measures_get(&measures, "accuracy"), 2.0 / 3, 1e-12);
	assert_near(measures_get(&measures, "recall"), 0, 0);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	assert_error(ERR_DATA, "words.txt', line 2: the label 'B-XYZ' does not occur in training",
		     open_set(&task, &set, TASK_SCORE, "Anna B-PER\nYork B-XYZ\n"));
	task_set_release(&task, &set);
	assert_error(ERR_DATA, "words.txt', line 2: the tag 'PER' has no prefix of IOB2",
		     open_set(&task, &set, TASK_SCORE, "Anna B-PER\nYork PER\n"));
	task_set_release(&task, &set);
	task_set_release(&task, &train);
	task_state_release(&task);
}

static void mistakes_have_their_line(void **state)
{
	struct task_state task = open_state(16);
	struct task_set set;
	assert_error(ERR_DATA, "words.txt', line 4: the tag 'PER' has no prefix of IOB2",
		     open_set(&task, &set, TASK_TRAIN, "Anna B-PER\nlives I-PER\n\nin PER\nNew B-LOC\nYork I-LOC\n"));
	task_set_release(&task, &set);
	assert_error(ERR_DATA, "there are words but no tags", open_set(&task, &set, TASK_TRAIN, "Anna\nlives\n\nin\n"));
	task_set_release(&task, &set);
	task.settings.columns.label = "ner";
	assert_error(ERR_USAGE, "--label_column 'ner'", open_set(&task, &set, TASK_TRAIN, "Anna O\n"));
	task_set_release(&task, &set);
	task_state_release(&task);
}

/* Columns by number; label weights; a model from elsewhere, of which only its labels are recorded. */
static void settings_decide(void **state)
{
	struct task_state task = open_state(16);
	struct task_set set;
	struct task_outputs outputs;
	task.settings.columns = (struct column_choice){.text = "2", .label = "-2"};
	task.settings.class_weights = "N:3";
	assert_ok(open_set(&task, &set, TASK_TRAIN, "1 anna N x\n2 lives V x\n"));
	static const float weights[] = {3, 1};
	assert_memory_equal(set.encoded.items[0].weights, weights, sizeof weights);
	assert_int_equal(set.encoded.ids[1], 5);
	task_set_release(&task, &set);
	task_state_release(&task);

	task = open_state(16);
	static const char *const names[] = {"O", "B-PER", "I-PER", "L-PER", "U-PER"};
	for (int i = 0; i < 5; i++)
		assert_ok(label_set_add(&task.labels, names[i], "config.json", 1));
	assert_ok(label_set_order(&task.labels, &(struct label_rules){.given = {names, 5}}));
	assert_ok(open_set(&task, &set, TASK_SCORE, "anna B-PER\nlives L-PER\nin U-PER\n"));
	static const char *const predicted[] = {"B-PER", "L-PER", "O"};
	struct measures measures = {0};
	outputs_of(&task, &set, predicted, &outputs);
	assert_ok(task_tagging.score(&task, &set, &outputs, &measures));
	assert_near(measures_get(&measures, "recall"), 0.5, 1e-12);
	assert_near(measures_get(&measures, "precision"), 1, 1e-12);
	assert_ok(task_tagging.write(&task, &set, &outputs, test_folder));
	expect_file("predictions.txt", "anna B-PER B-PER\nlives L-PER L-PER\nin U-PER O\n\n");
	assert_ptr_equal(task_of_architecture("BertForTokenClassification", NULL, 2), &task_tagging);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
}

#define SENTENCES "{\"id\": \"1\", \"tokens\": [\"anna\", \"lives\"], \"ner_tags\": [\"B-PER\", \"O\"]}"

/* One object per sentence, as run_ner.py reads them. */
static void json_lines_have_words_and_tags(void **state)
{
	struct task_state task;
	struct task_set set;
	static const char *const files[] = {SENTENCES "\n\n{\"words\": [\"new\", \"york\"], \"tags\": [\"B-LOC\", \"I-LOC\"]}\n",
					    "[" SENTENCES ", {\"words\": [\"new\", \"york\"], \"tags\": [\"B-LOC\", \"I-LOC\"]}]",
					    "{\"tokens\": [\"anna\", \"lives\"], \"ner_tags\": [3, 2]}\n{\"tokens\": [\"new\", "
					    "\"york\"], \"ner_tags\": [0, 1]}\n"};
	static const char *const names[] = {"B-LOC", "I-LOC", "O", "B-PER"};
	static const int32_t ids[] = {2, 5, 6, 3, 2, 8, 9, 3};
	for (int i = 0; i < 3; i++) {
		task = open_state(16);
		if (i == 2)
			task.settings.given = (struct label_list){names, 4};
		assert_ok(open_set(&task, &set, TASK_TRAIN, files[i]));
		assert_int_equal(set.answer_count, 2);
		assert_memory_equal(set.encoded.ids, ids, sizeof ids);
		assert_int_equal(set.encoded.items[0].classes[0], label_set_find(&task.labels, "B-PER"));
		assert_int_equal(set.encoded.items[0].classes[3], label_set_find(&task.labels, "I-LOC"));
		assert_int_equal(tagging_settings(&task)->tags.scheme, TAGS_IOB2);
		task_set_release(&task, &set);
		task_state_release(&task);
	}
	/* A set to be predicted only repeats its tags, which may be placeholders. */
	task = open_state(16);
	assert_ok(open_set(&task, &set, TASK_TRAIN, files[0]));
	task_set_release(&task, &set);
	for (int i = 0; i < 2; i++) {
		task.settings.given = (struct label_list){names, i == 0 ? 4 : 0};
		assert_ok(open_set(&task, &set, TASK_PREDICT, "{\"tokens\": [\"anna\", \"lives\"], \"ner_tags\": [3, -100]}\n"));
		const struct conll *file = &((const struct tag_text *)set.own)->files[0];
		assert_string_equal(conll_tag(file, 0), i == 0 ? "B-PER" : "3");
		assert_string_equal(conll_tag(file, 1), "-100");
		task_set_release(&task, &set);
	}
	task_state_release(&task);
	static const struct {
		const char *text, *message;
	} cases[] = {
		{SENTENCES "\n{\"tokens\": [\"anna\"], \"tags\": []}\n", "words.txt', line 2: 1 word, but 0 tags"},
		{"the soup was cold\tbad\nfine tea\tgood\n",
		 "has texts where a word or its tag is expected, such as 'the soup was"},
		{"bad\tthe soup was cold\ngood\tfine tea\nbad\tno\n", "such as 'the soup was cold'"},
		{SENTENCES "\n{\"tags\": []}\n", "line 2: there is no list of words"},
		{SENTENCES "\n{\"tokens\": [\"anna\"]}\n", "line 2: there is no list of tags"},
		{SENTENCES "\n{\"tokens\": [3], \"tags\": [\"O\"]}\n", "line 2: a word is not a string, or empty"},
		{SENTENCES "\n{\"tokens\": [\"a\"], \"tags\": [1]}\n", "line 2: tags are numbers, whose names are not known"},
		{SENTENCES "\n{\"tokens\": \n", "line 2"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		task = open_state(16);
		assert_error(ERR_DATA, cases[i].message, open_set(&task, &set, TASK_TRAIN, cases[i].text));
		task_set_release(&task, &set);
		task_state_release(&task);
	}
}

/* Places in a long text are counted from one entity to the next. */
static void many_entities_are_soon_placed(void **state)
{
	enum { ENTITIES = 100000 };
	struct task_state task = open_state(4000);
	struct task_set set;
	struct task_outputs outputs;
	struct buffer lines = {0}, got = {0};
	for (int i = 0; i < ENTITIES; i++)
		buffer_text(&lines, "\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4 B-LOC\n");
	assert_ok(open_set(&task, &set, TASK_TRAIN, buffer_string(&lines)));
	assert_ok(task_outputs_create(&outputs, &set.encoded, &(struct head){.input = INPUT_CHOSEN_ROWS, .outputs = 1}));
	clock_t began = clock(); /* of the processor, which others may be using too */
	assert_ok(task_tagging.put(&task, &set, &outputs, 0, &got));
	assert_true(clock() - began < SLOWNESS * CLOCKS_PER_SEC);
	char last[64];
	snprintf(last, sizeof last, "{\"start\":%d,\"end\":%d,", 5 * (ENTITIES - 1), 5 * ENTITIES - 1);
	assert_non_null(strstr(buffer_string(&got), last));
	buffer_release(&lines);
	buffer_release(&got);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
}

/* A text and the entities in it, as bertc predict, doccano, and Prodigy write them, gives the same as its words and tags. */
static void texts_have_spans(void **state)
{
	static const char *const files[] = {
		"{\"text\": \" anna lives\\tin new york\", \"entities\": [{\"start\": 15, \"end\": 23, \"label\": \"LOC\", "
		"\"score\": 1}, "
		"{\"start\": 1, \"end\": 5, \"label\": \"PER\"}]}\n{\"text\": \"\\u00fcs anna\", \"entities\": [{\"start\": 3, "
		"\"end\": 7, "
		"\"label\": \"PER\"}]}\n",
		"[{\"text\": \"anna lives in new york\", \"label\": [[0, 4, \"PER\"], [14, 22, \"LOC\"]]}, "
		"{\"text\": \"\\u00fcs anna\", \"label\": [[3, 7, \"PER\"]]}]",
		"{\"text\": \"anna lives in new york\", \"spans\": [{\"start_offset\": 1, \"end_offset\": 4, \"label\": "
		"\"PER\"}, "
		"[14, 20, \"LOC\"]]}\n{\"text\": \"\\u00fcs anna\", \"spans\": [[3, 7, \"PER\"]]}\n",
		"{\"text\": \"anna lives in new york\", \"tokens\": [{\"text\": \"anna\", \"start\": 0, \"end\": 4, \"id\": 0}], "
		"\"spans\": [{\"start\": 0, \"end\": 4, \"token_start\": 0, \"token_end\": 0, \"label\": \"PER\"}, "
		"{\"start\": 14, \"end\": 22, \"label\": \"LOC\"}]}\n{\"text\": \"\\u00fcs anna\", \"tokens\": [], \"spans\": "
		"[[3, 7, \"PER\"]]}\n",
		"{\"text\": \"anna lives in new york\", \"spans\": [{\"start\": 0, \"end\": 4, \"label\": \"PER\"}, "
		"{\"start\": 14, \"end\": 22, \"label\": \"LOC\"}], \"answer\": \"accept\"}\n"
		"{\"text\": \"new york\", \"spans\": [[0, 3, \"PER\"]], \"answer\": \"reject\"}\n"
		"{\"text\": \"\\u00fcs anna\", \"spans\": [[3, 7, \"PER\"]], \"answer\": \"accept\"}\n"
		"{\"text\": \"lives\", \"answer\": \"ignore\"}\n",
		"{\"tokens\": [\"anna\", \"lives\", \"in\", \"new\", \"york\"], \"tags\": [\"B-PER\", \"O\", \"O\", \"B-LOC\", "
		"\"I-LOC\"]}\n{\"tokens\": [\"\\u00fcs\", \"anna\"], \"tags\": [\"O\", \"B-PER\"]}\n"};
	static const char *const tags[] = {"B-PER", "O", "O", "B-LOC", "I-LOC", "O", "B-PER"};
	struct task_set set;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct task_state task = open_state(16);
		assert_ok(open_set(&task, &set, TASK_TRAIN, files[i]));
		const struct tag_text *text = set.own;
		assert_int_equal(text->word_count, 7);
		assert_int_equal(tagging_settings(&task)->tags.scheme, TAGS_IOB2);
		for (int w = 0; w < 7; w++)
			assert_string_equal(text->tags[w], tags[w]);
		assert_string_equal(text->words[1], "lives");
		assert_int_equal(text->begins[1], i == 0 ? 6 : 5);
		assert_int_equal(text->begins[6], 4);
		task_set_release(&task, &set);
		task_state_release(&task);
	}
	static const struct {
		const char *spans, *message;
	} cases[] = {
		{"[[0, 4, \"A\"], [3, 6, \"B\"]]", "line 2: the spans from 0 to 4 (A) and from 3 to 6 (B) overlap"},
		{"[[0, 11, \"A\"]]", "line 2: the span from 0 to 11 is not within the text of 10 characters"},
		{"[[-1, 4, \"A\"]]", "line 2: the span from -1 to 4 is not within the text"},
		{"[[4, 5, \"A\"]]", "line 2: the span from 4 to 5 holds no word"},
		{"[[4, 3, \"A\"]]", "line 2: the span from 4 to 3 holds no word"},
		{"[[0, 4]]", "line 2: a span is neither {\"start\", \"end\", \"label\"} nor [start, end, label]"},
		{"[[0, 4, 1]]", "line 2: the span from 0 to 4 has no label"},
		{"3", "line 2: there is no list of entities"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct task_state task = open_state(16);
		char lines[512];
		snprintf(lines, sizeof lines, "{\"text\": \"anna\", \"label\": []}\n{\"text\": \"anna lives\", \"label\": %s}\n",
			 cases[i].spans);
		assert_error(ERR_DATA, cases[i].message, open_set(&task, &set, TASK_TRAIN, lines));
		task_set_release(&task, &set);
		task_state_release(&task);
	}
}

/* Spans have no prefixes, so they can be scored whatever the scheme of the training files, and are shown in it. */
static void spans_are_scored_in_every_scheme(void **state)
{
	static const struct {
		const char *train;
		enum tag_scheme scheme;
		const char *shown[5];
	} cases[] = {
		{"anna I-PER\nlives O\nnew I-LOC\nyork I-LOC\n", TAGS_IO, {"I-PER", "O", "O", "I-LOC", "I-LOC"}},
		{"anna I-PER\nlives O\nnew I-LOC\nyork I-LOC\nin B-LOC\n", TAGS_IOB1, {"I-PER", "O", "O", "I-LOC", "I-LOC"}},
		{"anna B_PER\nlives O\nnew B_LOC\nyork I_LOC\n", TAGS_IOB2, {"B_PER", "O", "O", "B_LOC", "I_LOC"}},
		{"anna S-PER\nlives O\nnew B-LOC\nyork E-LOC\n", TAGS_BIOES, {"S-PER", "O", "O", "B-LOC", "E-LOC"}},
		{"anna U-PER\nlives O\nnew B-LOC\nyork L-LOC\n", TAGS_BILOU, {"U-PER", "O", "O", "B-LOC", "L-LOC"}},
		{"anna S-PER\nlives O\nnew B-LOC\nin M-LOC\nyork E-LOC\n", TAGS_BMES, {"S-PER", "O", "O", "B-LOC", "E-LOC"}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct task_state task = open_state(16);
		struct task_set set;
		const struct tag_text *text;
		assert_ok(open_set(&task, &set, TASK_TRAIN, cases[i].train));
		assert_int_equal(tagging_settings(&task)->tags.scheme, cases[i].scheme);
		task_set_release(&task, &set);
		assert_ok(open_set(&task, &set, TASK_SCORE,
				   "{\"text\": \"anna lives in new york\", \"label\": [[0, 4, \"PER\"], [14, 22, \"LOC\"]]}\n"));
		text = set.own;
		for (int w = 0; w < 5; w++)
			assert_string_equal(conll_tag(&text->files[0], w), cases[i].shown[w]);
		assert_int_equal(text->gold[0], label_set_find(&task.labels, i == 2 ? "B_PER" : "B-PER"));
		assert_int_equal(text->gold[3], label_set_find(&task.labels, i == 2 ? "B_LOC" : "B-LOC"));
		assert_int_equal(text->gold[4], label_set_find(&task.labels, i == 2 ? "I_LOC" : "I-LOC"));
		task_set_release(&task, &set);
		task_state_release(&task);
	}
}

/* Words in JSON may have what separates columns and rows. */
static void results_have_a_row_for_each_word(void **state)
{
	struct task_state task = open_state(16);
	struct task_set train, set;
	struct task_outputs outputs;
	struct buffer text = {0};
	static const char *const predicted[] = {"B-PER", "O"};
	assert_ok(open_set(&task, &train, TASK_TRAIN, "anna B-PER\nlives O\n"));
	assert_ok(open_set(&task, &set, TASK_PREDICT, "{\"tokens\": [\"anna\\tlives\", \"new\\nyork\"]}\n"));
	outputs_of(&task, &set, predicted, &outputs);
	assert_ok(task_tagging.put_tsv(&task, &set, &outputs, 0, &text));
	assert_string_equal(buffer_string(&text), "anna lives\tB-PER\nnew york\tO\n");
	assert_ok(task_tagging.write(&task, &set, &outputs, test_folder));
	expect_file("predictions.txt", "anna lives\tB-PER\nnew york\tO\n\n");
	buffer_release(&text);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_set_release(&task, &train);
	task_state_release(&task);
}

/* Two entities without a space between them; a word of ideographs; spans are ignored in predictions, which give places in the
 * text. */
static void words_of_texts(void **state)
{
	struct task_set set;
	struct task_state task = open_state(32);
	assert_ok(open_set(&task, &set, TASK_TRAIN,
			   "{\"text\": \"anna/york new in\", \"entities\": [[0, 4, \"PER\"], [5, 13, \"LOC\"]]}\n"
			   "{\"text\": \"\\u4e2d\\u56fd\\u5317\\u4eac\", \"entities\": [[2, 4, \"LOC\"]]}\n"));
	const struct tag_text *text = set.own;
	static const char *const tags[] = {"B-PER", "O", "B-LOC", "I-LOC", "O", "O", "O", "B-LOC", "I-LOC"};
	assert_int_equal(text->word_count, 9);
	for (int w = 0; w < 9; w++)
		assert_string_equal(text->tags[w], tags[w]);
	assert_int_equal(tagging_settings(&task)->words, WORDS_TOKENS);
	task_set_release(&task, &set);
	assert_ok(open_set(&task, &set, TASK_PREDICT, "{\"text\": \" anna  lives\", \"entities\": 3}\n{\"text\": \"\"}\n"));
	text = set.own;
	assert_int_equal(text->sentence_count, 2);
	assert_int_equal(text->word_count, 2);
	assert_int_equal(text->begins[1], 7);
	assert_string_equal(text->texts[0], " anna  lives");
	task_set_release(&task, &set);
	task_state_release(&task);
}

/* Entities end where words do, although no space follows, and so do those that training finds in texts. */
static void entities_leave_punctuation_out(void **state)
{
	struct task_state task = open_state(32);
	struct task_set set;
	struct task_outputs outputs;
	static const char *const tags[] = {"B-PER", "O", "O", "O", "B-LOC", "I-LOC", "O", "O"};
	assert_ok(open_set(&task, &set, TASK_TRAIN,
			   "{\"text\": \"anna, in (New York).\", \"entities\": [[0, 4, \"PER\"], [10, 18, \"LOC\"]]}\n"));
	const struct tag_text *text = set.own;
	assert_int_equal(text->word_count, 8);
	for (int w = 0; w < 8; w++)
		assert_string_equal(text->tags[w], tags[w]);
	task_set_release(&task, &set);
	assert_ok(open_set(&task, &set, TASK_PREDICT, "in (New York).\n"));
	outputs_of(&task, &set, tags + 2, &outputs);
	expect_put(&task, &set, &outputs, 0,
		   "{\"tags\":[\"O\",\"O\",\"B-LOC\",\"I-LOC\",\"O\",\"O\"],"
		   "\"words\":[\"in\",\"(\",\"New\",\"York\",\")\",\".\"],"
		   "\"entities\":[{\"start\":4,\"end\":12,\"label\":\"LOC\",\"score\":?,\"text\":\"New York\"}]}");
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	/* Words that were split by somebody stay as they are. */
	assert_ok(open_set(&task, &set, TASK_PREDICT, "(Anna), O\nin O\n\n"));
	assert_int_equal(((const struct tag_text *)set.own)->word_count, 2);
	task_set_release(&task, &set);
	task_state_release(&task);
}

static enum status check_spans(void *context, const struct task_answer *answer)
{
	static const struct task_span expected[] = {{0, 4, "PER", false, true},
						    {10, 18, "LOC", false, false},
						    {0, 4, "PER", true, true},
						    {10, 13, "LOC", true, false}};
	int *calls = context;
	++*calls;
	assert_true(answer->wrong);
	assert_int_equal(answer->span_count, 4);
	for (int i = 0; i < 4; i++) {
		const struct task_span *span = &answer->spans[i];
		assert_int_equal(span->begin, expected[i].begin);
		assert_int_equal(span->end, expected[i].end);
		assert_string_equal(span->label, expected[i].label);
		assert_int_equal(span->predicted, expected[i].predicted);
		assert_int_equal(span->agrees, expected[i].agrees);
	}
	return OK;
}

/* What a report marks in the text: one entity is found, half of the other. */
static void answers_have_spans(void **state)
{
	struct task_state task = open_state(32);
	struct task_set set;
	struct task_outputs outputs;
	int calls = 0;
	static const char *const predicted[] = {"B-PER", "O", "O", "O", "B-LOC", "O", "O", "O"};
	assert_ok(open_set(&task, &set, TASK_TRAIN,
			   "{\"text\": \"anna, in (New York).\", \"entities\": [[0, 4, \"PER\"], [10, 18, \"LOC\"]]}\n"));
	outputs_of(&task, &set, predicted, &outputs);
	assert_ok(task_tagging.examine(&task, &set, &outputs, (struct task_answer_reader){check_spans, &calls}));
	assert_int_equal(calls, 1);
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
}

/* Accuracy is that of the tags as they stand in the file that is scored, whatever the rules of their scheme. */
static void scored_tags_stay_as_they_are(void **state)
{
	struct task_state task = open_state(32);
	struct task_set train, set;
	assert_ok(open_set(&task, &train, TASK_TRAIN, "anna B-PER\nyork I-PER\nlives O\n"));
	assert_ok(open_set(&task, &set, TASK_SCORE, "anna I-PER\nyork I-PER\nlives O\n"));
	const struct tag_text *text = set.own;
	assert_string_equal(text->names[text->gold[0]], "I-PER");
	task_set_release(&task, &set);
	task_set_release(&task, &train);
	task_state_release(&task);
}

/* "anna" is PER twice of three times, "new" always LOC; "york" is unknown. */
static void words_alone_have_tags(void **state)
{
	struct task_state task = open_state(32);
	struct task_set train, set;
	struct measures measures = {0};
	assert_ok(open_set(&task, &train, TASK_TRAIN, "anna B-PER\nlives O\nanna O\nanna B-PER\nnew B-LOC\n"));
	assert_ok(open_set(&task, &set, TASK_SCORE, "anna B-PER\nlives O\nanna O\nnew B-LOC\nyork B-LOC\n"));
	assert_ok(task_tagging.baseline(&task, &train, &set, &measures));
	assert_near(measures_get(&measures, "precision"), 2.0 / 3, 1e-12);
	assert_near(measures_get(&measures, "recall"), 2.0 / 3, 1e-12);
	task_set_release(&task, &set);
	task_set_release(&task, &train);
	task_state_release(&task);
}

/* However few or many ideographs the texts of training have, those of later sets are cut in the same way. */
static void texts_are_cut_as_in_training(void **state)
{
	static const char *const trains[] = {
		"{\"text\": \"anna lives in new york anna lives in new york \\u4e2d\", \"entities\": [[0, 4, \"PER\"]]}\n",
		"{\"text\": \"\\u4e2d\\u56fd\\u5317\\u4eac\", \"entities\": [[0, 2, \"PER\"]]}\n"};
	for (int i = 0; i < 2; i++) {
		struct task_state task = open_state(32);
		struct task_set set;
		assert_ok(open_set(&task, &set, TASK_TRAIN, trains[i]));
		assert_int_equal(tagging_settings(&task)->words, WORDS_TOKENS);
		task_set_release(&task, &set);
		assert_ok(open_set(&task, &set, TASK_SCORE,
				   "{\"text\": \"\\u4e2d\\u56fd anna\", \"entities\": [[0, 2, \"PER\"]]}\n"));
		assert_int_equal(((const struct tag_text *)set.own)->word_count, 3);
		task_set_release(&task, &set);
		assert_ok(open_set(&task, &set, TASK_PREDICT, "\xE4\xB8\xAD\xE5\x9B\xBD anna\n"));
		assert_int_equal(((const struct tag_text *)set.own)->word_count, 3);
		task_set_release(&task, &set);
		task_state_release(&task);
	}
}

/* The words of plain text are the tokenizer's, or characters if those of training were. */
static void plain_text_is_cut_into_words(void **state)
{
	static const struct {
		const char *train, *line;
		int64_t words;
	} cases[] = {
		{"\xE4\xB8\xAD\tO\n\xE6\x96\x87\tB-X\nA\tO\n\n\xE4\xB8\xAD\tO\n", "\xE4\xB8\xAD\xE6\x96\x87 ab\xE6\x96\x87\n", 5},
		{"\xE4\xB8\xAD\tO\n\xE6\x96\x87\tB-X\nABC\tO\n\n\xE4\xB8\xAD\tO\n", "\xE4\xB8\xAD\xE6\x96\x87 ab\xE6\x96\x87\n",
		 4},
		{"\xE4\xB8\xAD\xE6\x96\x87\tB-X\n\xE4\xB8\xAD\tO\n\nab\tO\n", "\xE4\xB8\xAD\xE6\x96\x87 ab\xE6\x96\x87\n", 4},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct task_state task = open_state(16), later = open_state(16);
		struct task_set set;
		struct buffer text = {0};
		struct json_document document;
		assert_ok(open_set(&task, &set, TASK_TRAIN, cases[i].train));
		task_set_release(&task, &set);
		assert_ok(task_record_write(&task, &text));
		assert_ok(json_parse(&document, "record", text.data, text.size));
		assert_ok(task_record_read(document.root, "record", &later));
		tagging_settings(&task)->words = tagging_settings(&later)->words;
		assert_ok(open_set(&task, &set, TASK_PREDICT, cases[i].line));
		assert_int_equal(((const struct tag_text *)set.own)->word_count, cases[i].words);
		task_set_release(&task, &set);
		json_release(&document);
		buffer_release(&text);
		task_state_release(&task);
		task_state_release(&later);
	}
}

/* Later files use the columns of training. */
static void columns_are_recorded(void **state)
{
	struct task_state task = open_state(16);
	struct task_set set;
	static const char rows[] = "1\tanna\tB-PER\tNN\n2\tlives\tO\tVB\n\n";
	task.settings.columns = (struct column_choice){.text = "2", .label = "3"};
	assert_ok(open_set(&task, &set, TASK_TRAIN, rows));
	task.settings.trained = set.examples.columns;
	task.settings.columns = (struct column_choice){.text = NULL};
	assert_string_equal(task.settings.trained.label, "3");
	task_set_release(&task, &set);
	assert_ok(open_set(&task, &set, TASK_SCORE, rows));
	static const int32_t ids[] = {2, 5, 6, 3};
	assert_memory_equal(set.encoded.ids, ids, sizeof ids);
	task_set_release(&task, &set);
	/* A file of words alone is another kind of file. */
	assert_ok(open_set(&task, &set, TASK_PREDICT, "anna lives\n"));
	assert_memory_equal(set.encoded.ids, ids, sizeof ids);
	task_set_release(&task, &set);
	task_state_release(&task);
}

static void several_files_are_one_set(void **state)
{
	struct task_state task = open_state(16);
	struct task_set set = {.use = TASK_TRAIN};
	struct task_outputs outputs;
	const char *paths[] = {test_path("one.txt"), test_path("two.txt")};
	const char *texts[] = {"anna B-PER\nlives O\n", "in\tx\tO\n\nnew\tx\tB-LOC\nyork\tx\tI-LOC\n"};
	for (int i = 0; i < 2; i++)
		assert_ok(file_write(paths[i], texts[i], strlen(texts[i])));
	assert_ok(task_tagging.read(&task, &set, paths, 2));
	assert_ok(task_tagging.encode(&task, &set));
	assert_int_equal(task_answers(&set), 3);
	static const char *const predicted[] = {"B-PER", "O", "O", "B-LOC", "I-LOC"};
	outputs_of(&task, &set, predicted, &outputs);
	assert_ok(task_tagging.write(&task, &set, &outputs, test_folder));
	expect_file("predictions.txt", "anna B-PER B-PER\nlives O O\n\n");
	expect_file("predictions_2.txt", "in\tx\tO\tO\n\nnew\tx\tB-LOC\tB-LOC\nyork\tx\tI-LOC\tI-LOC\n\n");
	task_outputs_release(&outputs);
	task_set_release(&task, &set);
	task_state_release(&task);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_read_off_their_first_pieces),
		cmocka_unit_test(results_are_in_the_scheme_of_the_file),
		cmocka_unit_test(long_sentences_are_windows),
		cmocka_unit_test(lines_of_text_are_tagged),
		cmocka_unit_test(tags_without_prefixes_are_known),
		cmocka_unit_test(tags_that_training_never_had),
		cmocka_unit_test(mistakes_have_their_line),
		cmocka_unit_test(settings_decide),
		cmocka_unit_test(json_lines_have_words_and_tags),
		cmocka_unit_test(many_entities_are_soon_placed),
		cmocka_unit_test(texts_have_spans),
		cmocka_unit_test(spans_are_scored_in_every_scheme),
		cmocka_unit_test(results_have_a_row_for_each_word),
		cmocka_unit_test(words_of_texts),
		cmocka_unit_test(entities_leave_punctuation_out),
		cmocka_unit_test(answers_have_spans),
		cmocka_unit_test(scored_tags_stay_as_they_are),
		cmocka_unit_test(words_alone_have_tags),
		cmocka_unit_test(texts_are_cut_as_in_training),
		cmocka_unit_test(plain_text_is_cut_into_words),
		cmocka_unit_test(columns_are_recorded),
		cmocka_unit_test(several_files_are_one_set),
	};
	return cmocka_run_group_tests(tests, setup, task_world_drop);
}
