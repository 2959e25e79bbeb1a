/* Files whose labels are not what they seem: lists, look-alikes, numbers too large, one class left. */
#include "cmd/short_training.h"

static void lists_of_0_and_1_need_names(void **state)
{
	put_file("flags.jsonl", "{\"text\": \"wai\", \"labels\": [1, 0, 1]}\n{\"text\": \"waj\", \"labels\": [0, 0, 0]}\n"
				"{\"text\": \"wak\", \"labels\": [0, 1, 0]}\n{\"text\": \"wal\", \"labels\": [1, 1, 1]}\n");
	assert_program(3, "a list of 3 times 0 or 1, but the names of 0 labels", TRAIN("flags", "multilabel", "flags.jsonl", ""));
	assert_said("name them in this order with --labels a,b,c");
	assert_program(0, "3 labels: c 2, a 2, b 2 (as given by --labels)",
		       TRAIN("flags", "multilabel", "flags.jsonl", "--labels c,a,b"));
	put_file("flags.csv", "text,labels\nwai,\"[1, 0, 1]\"\nwaj,[0. 1. 0.]\n");
	assert_program(0, "", EVALUATE("flags", "flags.csv"));
	put_file("columns.csv", "text,toxic,insult\nwai,1.0,0.0\nwaj,0.0,1.0\nwak,1.0,1.0\n");
	assert_program(0, "2 labels: insult 2, toxic 2", TRAIN("columns", "multilabel", "columns.csv", ""));
	put_file("gone.csv", "text,labels\nwai,\"['x', 'y']\"\nwaj,[nan]\nwak,['y']\n");
	assert_program(3, "gone.csv', line 3: a label is missing in '[nan]'", TRAIN("gone", "multilabel", "gone.csv", ""));
	assert_said("write [] where no label applies");
	put_file("gone.jsonl", "{\"text\": \"wai\", \"labels\": [\"x\", null]}\n{\"text\": \"waj\", \"labels\": [\"y\"]}\n");
	assert_program(3, "gone.jsonl', line 1: a label is missing in", TRAIN("gone", "multilabel", "gone.jsonl", ""));
	put_file("lists.csv", "text,labels\nwai,\"['x', 'y']\"\nwaj,[]\nwak,['x']\nwal,\"['y', 'x']\"\n");
	assert_program(0, "2 labels: x 3, y 2", TRAIN("lists", "multilabel", "lists.csv", ""));
	assert_program(0, "each label is a list, such as", TRAIN("named", "classification", "flags.csv", ""));
	put_file("bits.csv", "text,labels\nwai,101\nwaj,000\nwak,010\n");
	assert_program(3, "bits.csv', line 2: '101', as every other label, looks like a value",
		       TRAIN("bits", "multilabel", "bits.csv", ""));
	assert_said("write 0 or 1 for each label as a list, [1, 0, 1]");
	assert_program(0, "3 labels: 000 1, 010 1, 101 1", TRAIN("bits", "multilabel", "bits.csv", "--labels 000,010,101"));
	put_file("shares.csv", "text,labels\nwai,\"[0.9, 0.1]\"\nwaj,\"[0.2, 0.8]\"\n");
	assert_program(3, "shares.csv', line 2: '0.9', as every other label, looks",
		       TRAIN("shares", "multilabel", "shares.csv", ""));
	put_file("postgres.csv", "text,labels\nwai,\"{x,y}\"\nwaj,{}\nwak,{x}\n");
	assert_program(0, "2 labels: x 2, y 1", TRAIN("postgres", "multilabel", "postgres.csv", ""));
	put_file("fast.txt", "__label__pos the cat is good\n__label__neg a dog is bad\n");
	assert_program(3, "which column has the texts?", TRAIN("fast", "classification", "fast.txt", ""));
	assert_said("these are fastText's lines");
	put_file("twice.csv", "text,labels\nwai,\"a, b\"\nwaj,\"a, a\"\n");
	assert_program(3, "twice.csv', line 3: the label 'a' is given twice", TRAIN("twice", "multilabel", "twice.csv", ""));
}

static void look_alikes_are_named(void **state)
{
	put_file("alike.tsv", "text\tlabel\nwai\tcaf\xC3\xA9\nwaj\tcafe\xCC\x81\nwak\ttea\n");
	assert_program(0, "look alike, but differ in code points: U+00E9, and U+0065 U+0301; they are taken as two classes",
		       TRAIN("alike", "classification", "alike.tsv", ""));
	put_file("scripts.tsv", "text\tlabel\nwai\tsport\nwaj\t\xD1\x95port\nwak\ttea\n");
	assert_program(0, "look alike, but differ in code points: U+0073, and U+0455; they are taken as two classes",
		       TRAIN("scripts", "classification", "scripts.tsv", ""));
	put_file("dev.tsv", "text\tlabel\nwai\tt\xD0\xB5"
			    "a\n");
	assert_program(3, "it looks like 'tea', but has U+0435 in place of U+0065: write the label in one way",
		       TRAIN("other", "classification", "scripts.tsv", "--dev %s/dev.tsv"), test_folder);
}

/* Ratings and missing values, which pandas turns into names. */
static void numbers_as_classes_are_named(void **state)
{
	put_file("ratings.tsv", "text\tlabel\nwai\t0.0\nwaj\t3.4\nwak\t5.0\n");
	assert_program(0, "each label is a number, such as '0.0', and taken as the name of a class: --task regression",
		       TRAIN("ratings", "classification", "ratings.tsv", ""));
	put_file("whole.tsv", "text\tlabel\nwai\t0.0\nwaj\t1.0\nwak\t2.0\n");
	assert_program(0, "", TRAIN("whole", "classification", "whole.tsv", ""));
	assert_null(strstr(buffer_string(&program_errors), "--task regression"));
	put_file("nan.csv", "text,label\nwai,good\nwaj,bad\nwak,nan\n");
	assert_program(0, "the label 'nan' ('", TRAIN("nan", "classification", "nan.csv", ""));
	assert_said("is what programs print where a label is missing");
}

static void numbers_beyond_floats_are_refused(void **state)
{
	put_file("fine.tsv", "text\tscore\nwai\t1.5\nwaj\t2.5\n");
	put_file("large.tsv", "text\tscore\nwai\t1.5\nwaj\t1e39\n");
	assert_program(3, "large.tsv', line 3: the label '1e39' is too large", TRAIN("large", "regression", "large.tsv", ""));
	assert_program(3, "line 3: the label '1e39' is too large", TRAIN("large", "regression", "fine.tsv", "--dev %s/large.tsv"),
		       test_folder);
}

static void nothing_to_learn_is_said(void **state)
{
	put_file("sorted.tsv", "text\tlabel\nwai\ta\nwaj\ta\nwak\ta\nwal\tb\nwam\tb\n");
	assert_program(0, "all of the first 2 examples have the label 'a'",
		       TRAIN("sorted", "classification", "sorted.tsv", "--max_train_samples 2"));
	assert_said("2 labels: a 2, b 0");
	assert_program(0, "--learning_rate 0: the weights stay as they are",
		       TRAIN("still", "classification", "sorted.tsv", "--learning_rate 0 --class_weights a:0,b:0"));
	assert_said("--class_weights gives every class with examples the weight 0");
	assert_program(0, "--learning_rate 1e-30: the weights stay as they are",
		       TRAIN("still", "classification", "sorted.tsv", "--fresh --learning_rate 1e-30 --class_weights a:0"));
	assert_said("gives every class with examples but 'b' the weight 0: nothing else is learned");
	assert_program(2, "--class_weights gives 'a' two weights",
		       TRAIN("twice", "classification", "sorted.tsv", "--class_weights a:1,b:1,a:2"));
	put_file("offset.tsv", "text\tscore\nwai\t16777217\nwaj\t16777218\nwak\t16777219\n");
	assert_program(0, "all numbers to learn are 1.67772e+07 in single precision",
		       TRAIN("offset", "regression", "offset.tsv", ""));
	put_file("missing.tsv", "text\tlabel\nwai\ta\nwaj\t#N/A\nwak\ta\n");
	assert_program(0, "the label '#N/A' ", TRAIN("missing", "classification", "missing.tsv", ""));
	assert_said("is what programs print where a label is missing");
}

/* Columns taken for each other show as many labels on few texts; as many labels on as many texts are a user's own affair. */
static void swapped_columns_are_refused(void **state)
{
	struct buffer swapped = {0}, many = {0};
	buffer_text(&swapped, "text\tlabel\n");
	buffer_text(&many, "text\tlabel\n");
	for (int i = 0; i < 30; i++) {
		buffer_format(&swapped, "%s\twai %d\n", i % 2 ? "good" : "bad", i);
		buffer_format(&many, "wai %d\tc%d\n", i, i);
	}
	put_file("swapped.tsv", buffer_string(&swapped));
	put_file("many.tsv", buffer_string(&many));
	buffer_release(&swapped);
	buffer_release(&many);
	assert_program(3, "swapped.tsv': 30 different labels for 2 different texts: are the columns swapped?",
		       TRAIN("swapped", "classification", "swapped.tsv", ""));
	assert_said("'text' was read as the text and 'label' as the label");
	assert_program(3, "30 different labels for 2 different texts", TRAIN("several", "multilabel", "swapped.tsv", ""));
	assert_program(0, "", TRAIN("many", "classification", "many.tsv", ""));
}

/* A copy under another name, a file given twice, a text with both labels, a model scored on what it learned. */
static void texts_on_both_sides_are_counted(void **state)
{
	put_file("own.tsv", "text\tlabel\nwai\ta\nwaj\tb\nwak wal\ta\nwam\tb\nwan\ta\n");
	put_file("copy.csv", "label,text\nb,waj\na,wak wal\na,wai wai\n");
	put_file("both.tsv", "text\tlabel\nwai\ta\nwaj\tb\nwai\tb\n");
	put_file("new.tsv", "text\tlabel\nwai waj\ta\nwaj wai\tb\n");
	assert_program(0, "2 of 3 examples of the dev set are in the training files as well",
		       TRAIN("own", "classification", "own.tsv", "--dev %s/copy.csv"), test_folder);
	assert_program(0, "5 of 5 examples of", EVALUATE("own", "own.tsv"));
	assert_said("own.tsv are in the training files as well: their scores say little about new texts");
	assert_program(0, "", EVALUATE("own", "new.tsv"));
	assert_null(strstr(buffer_string(&program_errors), "in the training files as well"));
	assert_program(0, "5 of 10 training examples repeat another one, text and label",
		       TRAIN("again", "classification", "own.tsv", "%s/own.tsv"), test_folder);
	assert_program(0, "2 of 3 training examples have a text that occurs with another label, too",
		       TRAIN("both", "classification", "both.tsv", ""));
	assert_program(0, "", TRAIN("fine", "classification", "own.tsv", "--dev %s/new.tsv"), test_folder);
	assert_null(strstr(buffer_string(&program_errors), "training files as well"));
	assert_null(strstr(buffer_string(&program_errors), "training examples"));
}

/* The columns of training are named by options, and the files to be predicted have no labels. */
static void files_to_predict_need_no_labels(void **state)
{
	put_file("named.tsv", "Kommentar\tBewertung\nwai\ta\nwaj\tb\n");
	put_file("unlabeled.tsv", "Kommentar\nwai\nwaj\n");
	assert_program(0, "text: Kommentar; label: none",
		       TRAIN("unlabeled", "classification", "named.tsv",
			     "--text_column Kommentar --label_column Bewertung --test %s/unlabeled.tsv"),
		       test_folder);
	assert_program(2, "unlabeled.tsv' has no column 'Bewertung'",
		       TRAIN("unscored", "classification", "named.tsv",
			     "--text_column Kommentar --label_column Bewertung --dev %s/unlabeled.tsv"),
		       test_folder);
	put_file("tags.txt", "wai x B-A\nwaj x O\n\nwak x O\nwal x B-A\n");
	put_file("words.txt", "wai\nwaj\n\nwak\n");
	assert_program(0, "1 column between spaces (word 1, no tags)",
		       TRAIN("words", "tagging", "tags.txt", "--label_column 3 --test %s/words.txt"), test_folder);
}

static void options_without_effect_are_refused(void **state)
{
	put_file("two.tsv", "text\tlabel\nwai\ta\nwaj\tb\n");
	put_file("tags.txt", "wai B-A\nwaj O\n\nwak O\nwal B-A\n");
	assert_program(2, "--negative_label is for tasks that choose one class for each text, not for tagging",
		       TRAIN("refused", "tagging", "tags.txt", "--negative_label O"));
	assert_program(2, "--negative_label is for tasks that choose one class for each text, not for multilabel",
		       TRAIN("refused", "multilabel", "two.tsv", "--negative_label a"));
	assert_program(2, "--relation_head is for --task relation, not classification",
		       TRAIN("refused", "classification", "two.tsv", "--relation_head markers"));
	assert_program(2, "--max_query_length is for --task squad, not classification",
		       TRAIN("refused", "classification", "two.tsv", "--max_query_length 5"));
	assert_program(2, "--doc_stride has no effect without --long_texts",
		       TRAIN("refused", "classification", "two.tsv", "--doc_stride 5"));
	assert_program(0, "", TRAIN("two", "classification", "two.tsv", ""));
	static const char *const options[] = {"calibrate", "thresholds f1", "folds 2", "negative_label a"};
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		assert_program(2, "has no effect without training",
			       "finetune --task classification --do_eval --model %s/two --dev %s/two.tsv --out %s/asked --%s",
			       test_folder, test_folder, test_folder, options[i]);
	assert_program(
		0, "predictions for the test set",
		"finetune --task classification --do_predict --model %s/two --test %s/two.tsv --out %s/asked --min_score 1 " CPU,
		test_folder, test_folder, test_folder);
	assert_holds("asked/predict.txt", "-1\n-1\n");
}

/* Words that consist of characters that the tokenizer leaves out. */
static void sets_without_tokens(void **state)
{
	put_file("tags.txt", "wai B-A\nwaj O\n\nwak O\nwal B-A\n");
	put_file("nothing.txt", "\xE2\x80\x8B O\n\n\xE2\x80\x8B B-A\n");
	assert_program(3, "nothing.txt': there is no text in it that the model could read",
		       TRAIN("empty", "tagging", "nothing.txt", ""));
	assert_program(3, "nothing.txt': there is no text in it that the model could read",
		       TRAIN("empty", "tagging", "tags.txt", "--dev %s/nothing.txt"), test_folder);
	assert_program(0, "predictions for the test set", TRAIN("some", "tagging", "tags.txt", "--test %s/nothing.txt"),
		       test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_of_0_and_1_need_names),  cmocka_unit_test(look_alikes_are_named),
		cmocka_unit_test(numbers_as_classes_are_named), cmocka_unit_test(numbers_beyond_floats_are_refused),
		cmocka_unit_test(nothing_to_learn_is_said),     cmocka_unit_test(texts_on_both_sides_are_counted),
		cmocka_unit_test(swapped_columns_are_refused),  cmocka_unit_test(files_to_predict_need_no_labels),
		cmocka_unit_test(sets_without_tokens),          cmocka_unit_test(options_without_effect_are_refused),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
