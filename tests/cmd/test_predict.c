/* Models as transformers leaves them, without a record of training, used on files as people have them: labels that are only
 * placeholders, columns of flags, published test sets, numbered tags; and pipes that pause anywhere. */
#include <math.h>
#include "base/json.h"
#include "cmd/program.h"
#include "infer/small_model.h"
#include "tasks/task.h"

/* Makes the folder `name` with a head for the task, with `count` labels, which are named or not. */
static void put_model(const char *name, const struct task *task, const char *const *labels, int32_t count, bool named)
{
	struct task_state state = {.task = task};
	struct model_heads heads;
	struct task_config config;
	if (named)
		assert_ok(task_state_labels(&state, labels, count));
	task->heads(&state, &heads);
	assert_ok(task_config_make(&config, task->architecture, task->problem_type, named ? labels : NULL, count));
	small_model_write(test_path(name), &heads, &config, NULL, NULL);
	task_config_release(&config);
	task_state_release(&state);
}

static int setup(void **state)
{
	static const char *const classes[] = {"0", "1"}, *const flags[] = {"toxic", "insult"},
				 *const inferences[] = {"contradiction", "entailment", "neutral"},
				 *const tags[] = {"O", "B-PER", "B-LOC"};
	if (test_folder_make(state) != 0)
		return -1;
	put_model("classes", &task_classification, classes, 2, true);
	put_model("flags", &task_multilabel, flags, 2, true);
	put_model("pairs", &task_classification, inferences, 3, true);
	put_model("tags", &task_tagging, tags, 3, true);
	put_model("choices", &task_choice, NULL, 2, false);
	struct task numbers = task_classification;
	numbers.problem_type = "regression";
	put_model("numbers", &numbers, inferences, 3, true);
	put_file("train.tsv", "sentence\tlabel\nwai waj\t1\nwak\t0\n");
	return 0;
}

#define CPU "--device cpu --precision fp32 --threads 1 "
#define PREDICT "predict " CPU "--model %s/"
#define EVALUATE "evaluate --json " CPU "--model %s/"
#define ASK "finetune --no_progress " CPU "--max_seq_length 32 --out %s/out --model %s/"

static void assert_lines(const char *text, int expected)
{
	int count = 0;
	for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		count++;
	if (count != expected)
		fail_msg("%d lines, not %d:\n%s", count, expected, text);
}

static void assert_answers(int expected)
{
	assert_lines(buffer_string(&program_output), expected);
}

static void several_numbers_are_refused(void **state)
{
	(void)state;
	put_file("texts.txt", "wai waj\n");
	assert_program(2, "predicts 3 numbers for each text; bertc has regression of one number", PREDICT "numbers %s/texts.txt",
		       test_folder, test_folder);
}

/* In sets to be predicted, as Hugging Face exports GLUE's test sets. */
static void labels_may_be_placeholders(void **state)
{
	put_file("test.tsv", "sentence\tlabel\nwai waj\t-1\nwak\t1\nwal\t-1\n");
	assert_program(0, "2 labels are taken as absent", PREDICT "classes %s/test.tsv", test_folder, test_folder);
	assert_said("the first because: '");
	assert_said("test.tsv', line 2: the label '-1' does not occur in training");
	assert_answers(3);
	put_file("test.json", "[{\"sentence\": \"wai\", \"label\": -1}, {\"sentence\": \"waj\", \"label\": 0}]");
	assert_program(0, "1 label is taken as absent, since it cannot be read: '", PREDICT "classes %s/test.json", test_folder,
		       test_folder);
	assert_answers(2);
	assert_program(3, "line 2: the label '-1' does not occur", EVALUATE "classes --test %s/test.tsv", test_folder,
		       test_folder);
	assert_program(0, "2 labels are taken as absent",
		       ASK "classes --task classification --num_train_steps 1 --train_batch_size 2 --train %s/train.tsv "
			   "--test %s/test.tsv",
		       test_folder, test_folder, test_folder, test_folder);
	assert_ok(folder_remove(test_path("out")));
	put_file("choices.jsonl", "{\"context\": \"wai\", \"choices\": [\"waj\", \"wak\"], \"label\": -1}\n");
	assert_program(0, "1 label is taken as absent", PREDICT "choices %s/choices.jsonl", test_folder, test_folder);
	assert_answers(1);
}

static void flags_are_lists_of_labels(void **state)
{
	put_file("flags.tsv", "text\ttoxic\tinsult\nwai waj\t1\t0\nwak\t0\t1\nwal\t0\t0\n");
	put_file("lists.jsonl",
		 "{\"text\": \"wai\", \"labels\": [\"insult\", \"toxic\"]}\n{\"text\": \"waj\", \"labels\": []}\n");
	assert_program(0, "", EVALUATE "flags --test %s/flags.tsv", test_folder, test_folder);
	assert_program(0, "", EVALUATE "flags --test %s/lists.jsonl", test_folder, test_folder);
	assert_program(0, "", PREDICT "flags %s/flags.tsv", test_folder, test_folder);
	assert_answers(3);
	if (strstr(buffer_string(&program_errors), "taken as absent"))
		fail_msg("%s", buffer_string(&program_errors));
}

/* A set that lacks one of the columns of labels would count it as absent everywhere. */
static void a_column_of_labels_may_be_missing(void **state)
{
	const char *train = "text\ttoxic\tinsult\tthreat\nwai waj\t1\t0\t1\nwak\t0\t1\t0\nwal\t0\t0\t0\n";
	put_file("flags3.tsv", train);
	put_file("flags2.tsv", "text\ttoxic\tinsult\nwai waj\t1\t0\nwak\t0\t1\nwal\t0\t0\n");
	assert_program(0, "", ASK "flags --task multilabel --num_train_steps 1 --train %s/flags3.tsv", test_folder, test_folder,
		       test_folder);
	assert_program(3, "flags2.tsv' has no column 'threat', which is one of the columns of labels: toxic,insult,threat",
		       EVALUATE "out --test %s/flags2.tsv", test_folder, test_folder);
	assert_program(0, "", EVALUATE "out --test %s/flags3.tsv", test_folder, test_folder);
	assert_program(0, "", PREDICT "out %s/flags2.tsv", test_folder, test_folder);
	assert_answers(3);
	assert_program(3, "flags3.tsv' has no column 'other', which is one of the columns of labels: other,another",
		       EVALUATE "out --test %s/flags3.tsv --label_column other,another", test_folder, test_folder);
	assert_ok(folder_remove(test_path("out")));
	/* A test set that lacks one is predicted, and not scored. */
	assert_program(0, "", ASK "flags --task multilabel --num_train_steps 1 --train %s/flags3.tsv --test %s/flags2.tsv",
		       test_folder, test_folder, test_folder, test_folder);
	assert_true(file_exists(test_path("out/test_results.tsv")));
	assert_false(file_exists(test_path("out/test_results.json")));
	assert_ok(folder_remove(test_path("out")));
}

/* A file that calls its columns something else than training's. */
static void columns_may_be_named(void **state)
{
	put_file("other.csv", "satz,urteil,text\nwai waj,1,a\nwak,0,b\nwal,0,c\n");
	put_file("same.tsv", "sentence\tlabel\nwai waj\t1\nwak\t0\nwal\t0\n");
	assert_program(0, "", EVALUATE "classes --test %s/same.tsv", test_folder, test_folder);
	struct buffer same = {0};
	buffer_append(&same, buffer_string(&program_output), program_output.size);
	assert_program(0, "", EVALUATE "classes --test %s/other.csv --text_column satz --label_column urteil", test_folder,
		       test_folder);
	assert_string_equal(buffer_string(&program_output), buffer_string(&same));
	buffer_release(&same);
	assert_program(2, "--text_column only applies to --test", EVALUATE "classes --corpus %s/same.tsv --text_column 1",
		       test_folder, test_folder);
}

/* Options of another kind of evaluation would change nothing. */
static void options_belong_to_an_evaluation(void **state)
{
	static const char *const cases[][2] = {
		{"--test %s/same.tsv --run_out x", "--run_out only applies to --retrieval"},
		{"--test %s/same.tsv --find_threshold", "--find_threshold only applies to --predictions"},
		{"--test %s/same.tsv --eval_instances 1", "--eval_instances only applies to text"},
		{"--test %s/same.tsv --text_key body", "--text_key only applies to text"},
		{"--retrieval %s --thresholds f1", "--thresholds only applies to --test"},
		{"--retrieval %s --rerank_top 1", "--rerank_top only applies to --reranker"},
		{"--retrieval %s --calibration_vectors x.npy", "--calibration_vectors only applies to --corpus_vectors"},
		{"--predictions %s/same.tsv --retrieval x", "--predictions and --retrieval do not go together"},
		{"--predictions %s/same.tsv --run_out x", "--run_out only applies to --retrieval"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char command[200];
		snprintf(command, sizeof command, EVALUATE "classes %s", "%s", cases[i][0]);
		assert_program(2, cases[i][1], command, test_folder, test_folder);
	}
	assert_program(2, "--n_best_size is for --task squad, not classification",
		       "predict --model %s/classes %s/same.tsv --n_best_size 3", test_folder, test_folder);
	/* Nor may an output replace a file that is read, or one that is not bertc's. */
	assert_ok(folder_make(test_path("mine")));
	put_file("mine/predict.txt", "mine\n");
	assert_program(2, "mine/predict.txt' exists and was not made by bertc",
		       "predict --model %s/classes %s/same.tsv --out %s/mine", test_folder, test_folder, test_folder);
	assert_program(2, "is the same file as --model's", "predict --model %s/classes %s/same.tsv --out %s/classes/config.json",
		       test_folder, test_folder, test_folder);
	assert_program(2, "--run_out '", EVALUATE "classes --retrieval %s --qrels %s/same.tsv --run_out %s/same.tsv", test_folder,
		       test_folder, test_folder, test_folder);
}

/* What an annotator rejected or skipped in Prodigy is no label; to be predicted, it is a text like any other. */
static void rejected_labels_are_left_out(void **state)
{
	put_file("answers.jsonl", "{\"text\": \"wai\", \"label\": \"1\", \"answer\": \"accept\"}\n"
				  "{\"text\": \"waj\", \"label\": \"1\", \"answer\": \"reject\"}\n"
				  "{\"text\": \"wak\", \"label\": \"0\", \"answer\": \"ignore\"}\n");
	assert_program(0, "2 rows left out, whose 'answer' is not 'accept'", EVALUATE "classes --test %s/answers.jsonl",
		       test_folder, test_folder);
	assert_printed("\"examples\":1,");
	assert_program(0, "", PREDICT "classes %s/answers.jsonl", test_folder, test_folder);
	assert_answers(3);
}

static void ids_are_repeated_as_they_are(void **state)
{
	put_file("ids.jsonl", "{\"text\": \"wai\", \"id\": 0}\n{\"text\": \"waj\", \"id\": \"0\"}\n"
			      "{\"text\": \"wak\", \"id\": 1.50}\n{\"text\": \"wak\"}\n");
	assert_program(0, "", PREDICT "classes %s/ids.jsonl", test_folder, test_folder);
	assert_printed("{\"id\":0,\"label\"");
	assert_printed("{\"id\":\"0\",\"label\"");
	assert_printed("{\"id\":1.50,\"label\"");
	assert_printed("\n{\"label\"");
	assert_program(0, "", PREDICT "tags %s/ids.jsonl", test_folder, test_folder);
	assert_printed("{\"id\":0,\"tags\"");
	assert_printed("{\"id\":\"0\",\"tags\"");
	assert_printed("\n{\"tags\"");
}

/* The layout of the task that is named, though the model has no record of it. */
static void files_of_a_named_task(void **state)
{
	put_file("xnli.tsv", "language\tgold_label\tsentence1\tsentence2\tpairID\n"
			     "en\tneutral\twai\twaj\t1\nzh\tcontradictory\twai\twaj\t2\nzh\tentailment\twai\twak\t3\n"
			     "de\tneutral\twai\twaj\t4\n");
	assert_program(0, "", ASK "pairs --task xnli --do_eval --dev %s/xnli.tsv", test_folder, test_folder, test_folder);
	assert_holds("out/eval_results.json", "\"eval_examples\": 2");
	assert_ok(folder_remove(test_path("out")));
	put_file("mnli.tsv", "index\tsentence1\tsentence2\n7\twai\twaj\n9\twai\twak\n");
	assert_program(0, "", ASK "pairs --task mnli --do_predict --test %s/mnli.tsv", test_folder, test_folder, test_folder);
	assert_holds("out/MNLI-m.tsv", "index\tprediction\n7\t");
	assert_ok(folder_remove(test_path("out")));
	/* CoLA's files have no header. */
	put_file("cola.tsv", "gj04\t1\t\twai waj\ngj04\t0\t*\twak wai\n");
	assert_program(0, "", ASK "classes --task cola --do_eval --dev %s/cola.tsv", test_folder, test_folder, test_folder);
	assert_holds("out/eval_results.json", "\"eval_matthews_correlation\"");
	assert_ok(folder_remove(test_path("out")));
	assert_program(3, "which column has the first texts", ASK "pairs --task pair --do_eval --dev %s/train.tsv", test_folder,
		       test_folder, test_folder);
	assert_ok(folder_remove(test_path("out")));
}

/* Numbers of tags are those of the model's labels. */
static void tags_may_be_numbers(void **state)
{
	put_file("tags.jsonl", "{\"tokens\": [\"wai\", \"waj\", \"wak\"], \"ner_tags\": [1, 0, 2]}\n");
	assert_program(0, "tags are numbers, taken as those of the model's labels: 0 is O, 2 is B-LOC; if",
		       EVALUATE "tags --test %s/tags.jsonl", test_folder, test_folder);
	assert_said("warning: ");
	assert_program(0, "", PREDICT "tags %s/tags.jsonl", test_folder, test_folder);
	assert_answers(1);
	put_file("tags.jsonl", "{\"tokens\": [\"wai\", \"waj\"], \"ner_tags\": [3, -100]}\n");
	assert_program(3, "line 1: the number of a tag is not that of a label", EVALUATE "tags --test %s/tags.jsonl", test_folder,
		       test_folder);
	assert_program(0, "", PREDICT "tags %s/tags.jsonl", test_folder, test_folder);
	assert_answers(1);
}

/* transformers writes no number of outputs for it, or that of the labels, which its class ignores. */
static void the_head_for_choices_is_kept(void **state)
{
	put_file("choices.jsonl", "{\"context\": \"wai\", \"choices\": [\"waj\", \"wak\"], \"label\": 1}\n"
				  "{\"context\": \"waj\", \"choices\": [\"wak\", \"wal\"], \"label\": 0}\n");
	assert_program(0, "the model has a head for this task: training continues with it",
		       ASK "choices --task multiple_choice --num_train_steps 1 --train_batch_size 2 --train %s/choices.jsonl",
		       test_folder, test_folder, test_folder);
	assert_ok(folder_remove(test_path("out")));
}

#define WORDS "wai waj wak wal wam wan wao wap "

/* The same answers as for each set alone, though the model is opened when only the first is known. */
static void a_later_set_may_be_longer(void **state)
{
	struct json_document both, alone;
	double one = NAN, two = NAN;
	/* Batches of both have the same capacity. */
	put_file("short.tsv", "sentence\tlabel\n" WORDS WORDS "\t1\nwak\t0\n");
	put_file("long.tsv", "sentence\tlabel\n" WORDS WORDS WORDS WORDS WORDS "\t1\nwak\t0\n");
	assert_program(0, "", EVALUATE "classes --micro_batch_tokens 128 --test long=%s/long.tsv", test_folder, test_folder);
	assert_ok(json_parse(&alone, "alone", buffer_string(&program_output), program_output.size));
	assert_program(0, "", EVALUATE "classes --micro_batch_tokens 128 --test short=%s/short.tsv --test long=%s/long.tsv",
		       test_folder, test_folder, test_folder);
	assert_ok(json_parse(&both, "both", buffer_string(&program_output), program_output.size));
	const struct json *set = json_member(both.root, "long"), *same = json_member(alone.root, "long");
	assert_ok(json_get_number(set ? set : both.root, "both", "loss", &one));
	assert_ok(json_get_number(same ? same : alone.root, "alone", "loss", &two));
	assert_true(one == two);
	json_release(&both);
	json_release(&alone);
}

/* Runs a script in the test folder, with the program as $BERTC, and reads the file `answers` that it leaves. */
static void run_script(const char *script)
{
	char command[3 * PATH_BYTES], bertc[PATH_BYTES];
	const char *named = getenv("BERTC");
	assert_non_null(realpath(named ? named : "build/bertc", bertc));
	snprintf(command, sizeof command, "cd %s && BERTC='%s' && %s", test_folder, bertc, script);
	assert_int_equal(system(command), 0);
	buffer_clear(&program_output);
	assert_ok(file_read(test_path("answers"), 1 << 20, &program_output));
}

#define ANSWER " | $BERTC predict " CPU "--model classes -q >answers"

/* Wherever the sender pauses, the answers are those to the same bytes without a pause. */
static void pauses_change_no_answer(void **state)
{
	static const struct {
		const char *before, *after;
		int rows;
	} cases[] = {
		{"label,sentence\\n", "1,wai waj\\n0,wak\\n", 2},
		{"label\\tsentence\\n", "1\\twai waj\\n0\\twak\\n", 2},
		{"sentence\\n", "wai waj\\nwak\\n", 2},
		{"label,sentence\\n1,\"wai\\n", "waj\"\\n0,wak\\n", 2},
		{"sentence\\tlabel\\n\"wai\\n", "waj\"\\t1\\n\"wak\"\\t0\\n", 2},
		{"label\\tsentence\\n1\\twai \" waj\\n", "0\\twak\\n", 2},
		{"wai waj\\n", "label,sentence\\n", 2},
		{"\\n", "label,sentence\\n1,wai\\n", 1},
		{"\\n", "wai waj\\n", 2},
	};
	char script[1024];
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct buffer whole = {0};
		snprintf(script, sizeof script, "printf '%s%s'" ANSWER, cases[i].before, cases[i].after);
		run_script(script);
		assert_answers(cases[i].rows);
		buffer_append(&whole, program_output.data, program_output.size);
		snprintf(script, sizeof script, "{ printf '%s'; sleep 0.3; printf '%s'; }" ANSWER, cases[i].before,
			 cases[i].after);
		run_script(script);
		assert_string_equal(buffer_string(&program_output), buffer_string(&whole));
		buffer_release(&whole);
	}
	put_file("header", "label,sentence\n");
	assert_program(ERR_DATA, "there are no rows", PREDICT "classes <%s/header", test_folder, test_folder);
}

/* A program that sends the next text when it has the answer to the one before. The file of answers is opened before the pipe,
 * so it exists when the first text is sent. */
static void texts_are_answered_one_by_one(void **state)
{
	run_script("rm -f in answers && mkfifo in && { $BERTC predict " CPU
		   "--model classes -q >answers <in & } && pid=$! && exec 3>in && "
		   "i=0; for text in 'wai waj' 'Well, wak' '\"wal wam' '5\" wan' 'a,b c'; do i=$((i+1)); "
		   "printf '%s\\n' \"$text\" >&3; n=0; "
		   "while [ $n -lt 100 ] && [ $(wc -l <answers) -lt $i ]; do sleep 0.1; n=$((n+1)); done; "
		   "[ $(wc -l <answers) = $i ] || { kill $pid; break; }; done; exec 3>&-; wait $pid");
	assert_answers(5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_may_be_placeholders),   cmocka_unit_test(several_numbers_are_refused),
		cmocka_unit_test(flags_are_lists_of_labels),    cmocka_unit_test(files_of_a_named_task),
		cmocka_unit_test(tags_may_be_numbers),          cmocka_unit_test(the_head_for_choices_is_kept),
		cmocka_unit_test(a_later_set_may_be_longer),    cmocka_unit_test(a_column_of_labels_may_be_missing),
		cmocka_unit_test(rejected_labels_are_left_out), cmocka_unit_test(ids_are_repeated_as_they_are),
		cmocka_unit_test(columns_may_be_named),         cmocka_unit_test(options_belong_to_an_evaluation),
		cmocka_unit_test(pauses_change_no_answer),      cmocka_unit_test(texts_are_answered_one_by_one),
	};
	return cmocka_run_group_tests(tests, setup, test_folder_drop);
}
