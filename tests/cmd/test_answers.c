/* What people see of the answers of small models: the report's list of wrong ones, and `bertc predict` in all formats.
 * The answers themselves are compared with those of transformers elsewhere (tests/tasks). */
#include "cmd/small_run.h"
#include "infer/small_model.h"

static int setup(void **state)
{
	if (small_run_make(state, 5) != 0)
		return -1;
	put_file("tags.txt", "the O\ncat B-WHO\nsees O\nthe O\nmoon B-WHAT\n\na O\ndog B-WHO\nlikes O\nsome O\nbread B-WHAT\n");
	put_file("choices.jsonl",
		 "{\"sent1\": \"the cat\", \"sent2\": \"sees\", \"ending0\": \"the moon\", \"ending1\": \"a river\", "
		 "\"ending2\": \"nobody\", \"ending3\": \"some bread\", \"label\": 2}\n"
		 "{\"sent1\": \"a dog\", \"sent2\": \"likes\", \"ending0\": \"the moon\", \"ending1\": \"a river\", "
		 "\"ending2\": \"nobody\", \"ending3\": \"some bread\", \"label\": 1}\n");
	put_file("questions.json",
		 "{\"version\": \"1.1\", \"data\": [{\"title\": \"t\", \"paragraphs\": [{\"context\": \"the cat sees the moon "
		 ".\", "
		 "\"qas\": [{\"id\": \"q1\", \"question\": \"who sees the moon\", \"answers\": [{\"text\": \"the cat\", "
		 "\"answer_start\": 0}]}, {\"id\": \"q2\", \"question\": \"what\", \"answers\": [{\"text\": \"sees\", "
		 "\"answer_start\": 8}]}]}]}]}");
	put_file("classes.tsv", "sentence\tlabel\nthe cat sees the moon\tsee\na dog likes bread\tlike\n");
	put_file("numbers.tsv", "sentence\tscore\nthe cat sees the moon\t1.5\na dog likes bread\t0.5\n");
	return program("pretrain --corpus %s --model %s --out %s/base --vocab_size 80 --train_batch_size 16 --max_seq_length 32 "
		       "--num_train_steps 2 --precision fp32 --threads 1",
		       corpus, config, test_folder);
}

/* Trains a task for `steps` updates on a file that also serves as its dev set, into test_folder/<task>. */
#define TRAIN(task, file, more)                                                                                                  \
	program("finetune --task " task " --model %s/base --train %s/" file " --dev %s/" file " --out %s/" task                  \
		" --max_seq_length 32 --precision fp32 --threads 1 --no_progress --train_batch_size 2 " more,                    \
		test_folder, test_folder, test_folder, test_folder)

static void reports_list_wrong_answers(void **state)
{
	/* Untrained, and therefore wrong somewhere. */
	assert_int_equal(TRAIN("tagging", "tags.txt", "--num_train_steps 1 --learning_rate 0"), 0);
	assert_holds("tagging/report.html", "Answers at step 1<");
	assert_holds("tagging/report.html", "cat<sub>WHO</sub></mark> sees the <mark class=\"span");
	assert_int_equal(TRAIN("multiple_choice", "choices.jsonl", "--num_train_steps 1 --learning_rate 0"), 0);
	assert_holds("multiple_choice/report.html", "Answers at step 1<");
	assert_int_equal(TRAIN("squad", "questions.json", "--num_train_steps 1 --learning_rate 0"), 0);
	assert_holds("squad/report.html", "Answers at step 1<");
	assert_holds("squad/report.html", "the cat sees the moon .");
}

static void a_report_keeps_its_answers_over_a_resume(void **state)
{
	assert_int_equal(TRAIN("classification", "classes.tsv", "--num_train_steps 3 --eval_steps 2 --save_checkpoints_steps 1"),
			 0);
	assert_holds("classification/report.html", "Answers at step 3<");
	/* There is nothing left to train; the page is written once more. */
	assert_int_equal(TRAIN("classification", "classes.tsv", "--num_train_steps 3 --eval_steps 2 --save_checkpoints_steps 1"),
			 0);
	assert_holds("classification/report.html", "Answers at step 3<");
	assert_holds("classification/eval_results.txt", "\nloss = ");
	/* The mean of the three losses that were logged. */
	double sum = 0, loss = NAN;
	assert_int_equal(TRAIN("regression", "numbers.tsv", "--num_train_steps 3 --log_steps 1 --stop_at_step 2"), 75);
	assert_int_equal(TRAIN("regression", "numbers.tsv", "--num_train_steps 3 --log_steps 1"), 0);
	for (int step = 1; step <= 3; step++)
		sum += metric_at(test_path("regression/metrics.jsonl"), step, "loss");
	struct json_document document;
	assert_ok(json_read(&document, test_path("regression/eval_results.json"), 1 << 20));
	assert_ok(json_get_number(document.root, "eval_results.json", "loss", &loss));
	json_release(&document);
	assert_near(loss, sum / 3, 1e-6);
}

/* The members of an object, in order, as "a b c". */
static void assert_members(const struct json *object, const char *expected)
{
	char names[200] = "";
	assert_int_equal(object->kind, JSON_OBJECT);
	for (const struct json *item = object->first_child; item; item = item->next)
		snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? " " : "", item->key);
	assert_string_equal(names, expected);
}

/* The first line that a model answers for a file, in the format of transformers' pipelines. */
static struct json_document answer_to(const char *task, const char *file)
{
	struct buffer text = {0};
	struct json_document document;
	assert_program(0, "", "predict --model %s/%s %s/%s --format pipeline --precision fp32 --out %s/answers", test_folder,
		       task, test_folder, file, test_folder);
	assert_ok(file_read(test_path("answers"), 1 << 20, &text));
	const char *end = strchr(buffer_string(&text), '\n');
	assert_non_null(end);
	assert_ok(json_parse(&document, "answers", text.data, (size_t)(end - text.data)));
	buffer_release(&text);
	return document;
}

static void pipelines_are_imitated(void **state)
{
	struct json_document answer = answer_to("classification", "classes.tsv");
	assert_int_equal(answer.root->kind, JSON_ARRAY);
	assert_members(answer.root->first_child, "label score");
	json_release(&answer);
	answer = answer_to("regression", "numbers.tsv");
	assert_members(answer.root->first_child, "label score");
	assert_string_equal(json_member(answer.root->first_child, "label")->text, "LABEL_0");
	json_release(&answer);
	answer = answer_to("squad", "questions.json");
	assert_members(answer.root, "score start end answer");
	json_release(&answer);
	/* Some of the random tags are entities. */
	answer = answer_to("tagging", "tags.txt");
	assert_int_equal(answer.root->kind, JSON_ARRAY);
	for (const struct json *entity = answer.root->first_child; entity; entity = entity->next)
		assert_members(entity, "start end entity_group score word");
	json_release(&answer);
	assert_program(ERR_USAGE, "transformers has no pipeline for multiple_choice",
		       "predict --model %s/multiple_choice %s/choices.jsonl --format pipeline", test_folder, test_folder);
}

/* What a model answers for a file with --format tsv, a line for each element of `lines`. */
static int64_t columns_for(const char *task, const char *file, struct buffer *text, char *lines[8])
{
	int64_t count = 0;
	assert_program(0, "", "predict --model %s/%s %s/%s --format tsv --precision fp32 --out %s/columns", test_folder, task,
		       test_folder, file, test_folder);
	assert_ok(file_read(test_path("columns"), 1 << 20, text));
	for (char *line = text->data; line < text->data + text->size && count < 8; count++) {
		lines[count] = line;
		line += strcspn(line, "\n");
		*line++ = '\0';
	}
	return count;
}

/* The same values as in the JSON objects. */
static void columns_have_the_values_of_objects(void **state)
{
	struct buffer text = {0}, objects = {0};
	char *lines[8];
	static const char *const tasks[][2] = {{"classification", "classes.tsv"}, {"multiple_choice", "choices.jsonl"}};
	for (int i = 0; i < 2; i++) {
		struct json_document document;
		assert_int_equal(columns_for(tasks[i][0], tasks[i][1], &text, lines), 2);
		assert_program(0, "", "predict --model %s/%s %s/%s --precision fp32 --out %s/answers", test_folder, tasks[i][0],
			       test_folder, tasks[i][1], test_folder);
		assert_ok(file_read(test_path("answers"), 1 << 20, &objects));
		for (char *rest = objects.data, *line = lines[0], *object; (object = strtok_r(rest, "\n", &rest));
		     line = lines[1]) {
			assert_ok(json_parse(&document, "answers", object, strlen(object)));
			const struct json *share = json_member(document.root, "probabilities")->first_child;
			for (; share; share = share->next, line += *line == '\t')
				assert_near(strtod(line, &line), strtod(share->text, NULL), 1e-6);
			assert_int_equal(*line, '\0');
			json_release(&document);
		}
	}
	assert_int_equal(columns_for("regression", "numbers.tsv", &text, lines), 2);
	assert_null(strchr(lines[0], '\t'));
	assert_int_equal(columns_for("squad", "questions.json", &text, lines), 2);
	assert_int_equal(strncmp(lines[0], "q1\t", 3), 0);
	assert_int_equal(strncmp(lines[1], "q2\t", 3), 0);
	/* A word and its tag on a line, and an empty line after the sentence. */
	assert_int_equal(columns_for("tagging", "tags.txt", &text, lines), 8);
	static const char *const words[] = {"the\t", "cat\t", "sees\t", "the\t", "moon\t", "", "a\t", "dog\t"};
	for (int i = 0; i < 8; i++)
		assert_int_equal(strncmp(lines[i], words[i], strlen(words[i])), 0);
	assert_string_equal(lines[5], "");
	buffer_release(&text);
	buffer_release(&objects);
}

static double number_in(const char *file, const char *key)
{
	struct json_document document;
	double number = NAN;
	assert_ok(json_read(&document, test_path(file), 1 << 20));
	if (json_member(document.root, key))
		assert_ok(json_get_number(document.root, file, key, &number));
	json_release(&document);
	return number;
}

/* The number of rows with a label, by the scores of a file. */
static double support_in(const char *file, const char *key, const char *label)
{
	struct json_document document;
	double number = NAN;
	assert_ok(json_read(&document, test_path(file), 1 << 20));
	const struct json *classes = json_member(document.root, key), *one = classes ? json_member(classes, label) : NULL;
	assert_non_null(one);
	assert_members(one, "precision recall f1 support");
	assert_ok(json_get_number(one, file, "support", &number));
	json_release(&document);
	return number;
}

/* A labeled test set is scored like a dev set; placeholders are no labels. */
static void labeled_test_sets_are_scored(void **state)
{
	put_file("more.tsv", "sentence\tlabel\nthe cat sees bread\tsee\na dog sees the moon\tsee\nnobody likes a river\tlike\n");
	put_file("placeholders.tsv", "sentence\tlabel\nthe cat sees bread\tsee\na dog likes the moon\tsee\n");
	put_file("five.tsv", "sentence\tlabel\nthe cat\tsee\na dog\tlike\nnobody\tsee\nbread\tlike\na river\tsee\n");
	put_file("blanks.tsv", "sentence\tlabel\nthe cat sees bread\t-1\na dog likes the moon\t-1\n");
	assert_program(
		0, "predictions for the test set more: in '",
		"finetune --task classification --model %s/base --train %s/classes.tsv --dev %s/more.tsv --test more=%s/more.tsv "
		"same=%s/placeholders.tsv none=%s/blanks.tsv --out %s/tested --num_train_steps 1 --max_seq_length 32 --precision "
		"fp32 "
		"--threads 1",
		test_folder, test_folder, test_folder, test_folder, test_folder, test_folder, test_folder);
	assert_printed("test more accuracy ");
	assert_true(number_in("tested/eval_results.json", "eval_accuracy") ==
		    number_in("tested/more/test_results.json", "test_accuracy"));
	assert_true(number_in("tested/more/test_results.json", "test_examples") == 3);
	assert_true(support_in("tested/more/test_results.json", "test_classes", "see") == 2);
	assert_true(support_in("tested/eval_results.json", "eval_classes", "like") == 1);
	assert_false(file_exists(test_path("tested/same/test_results.json")));
	assert_false(file_exists(test_path("tested/none/test_results.json")));
	assert_true(file_exists(test_path("tested/none/test_results.tsv")));
	/* The same without training, and by evaluate. */
	assert_program(0, "",
		       "finetune --task classification --model %s/tested --test %s/more.tsv --do_predict --out %s/later "
		       "--precision fp32 --threads 1",
		       test_folder, test_folder, test_folder);
	assert_printed("test accuracy ");
	assert_true(number_in("later/test_results.json", "test_accuracy") ==
		    number_in("tested/more/test_results.json", "test_accuracy"));
	assert_true(support_in("later/test_results.json", "test_classes", "see") == 2);
	/* Nothing stale stays. */
	assert_program(0, "predictions for the test set: in '",
		       "finetune --task classification --model %s/tested --test %s/blanks.tsv --do_predict --out %s/later "
		       "--precision fp32 "
		       "--threads 1",
		       test_folder, test_folder, test_folder);
	assert_false(file_exists(test_path("later/test_results.json")) || file_exists(test_path("later/test_results.txt")));
	assert_program(0, "", "evaluate --model %s/tested --test %s/more.tsv --json --precision fp32 --threads 1", test_folder,
		       test_folder);
	put_file("evaluated", buffer_string(&program_output));
	assert_true(support_in("evaluated", "classes", "see") == 2);
	assert_program(0, "", "evaluate --model %s/tagging --test %s/tags.txt --json --precision fp32 --threads 1", test_folder,
		       test_folder);
	put_file("evaluated", buffer_string(&program_output));
	assert_true(support_in("evaluated", "classes", "WHO") == 2);
}

/* For a quick try, only the first examples of each set. */
static void first_examples(void **state)
{
	static const char *const files[][2] = {{"classification", "classes.tsv"},
					       {"tagging", "tags.txt"},
					       {"squad", "questions.json"},
					       {"multiple_choice", "choices.jsonl"}};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char results[64];
		assert_program(
			0, "only the first of 2 is used",
			"finetune --task %s --model %s/base --train %s/%s --dev %s/%s --max_eval_samples 1 --num_train_steps 1 "
			"--max_seq_length 32 --threads 1 --precision fp32 --out %s/first_%s",
			files[i][0], test_folder, test_folder, files[i][1], test_folder, files[i][1], test_folder, files[i][0]);
		snprintf(results, sizeof results, "first_%s/eval_results.json", files[i][0]);
		assert_true(number_in(results, "eval_examples") == 1);
	}
	assert_program(4, "--max_eval_samples is '2', but", "finetune --out %s/first_tagging --max_eval_samples 2", test_folder);
	assert_program(
		0, "five.tsv' and the other files: only the first 3 of 8 are used",
		"finetune --task classification --model %s/base --train %s/five.tsv --train %s/more.tsv --max_train_samples 3 "
		"--dev %s/more.tsv --num_train_steps 1 --max_seq_length 32 --threads 1 --out %s/first_train",
		test_folder, test_folder, test_folder, test_folder, test_folder);
	assert_program(
		0, "more.tsv': only the first 2 of 3 are used",
		"finetune --task classification --model %s/tested --test %s/more.tsv --do_predict --max_predict_samples 2 --out "
		"%s/first_test --threads 1",
		test_folder, test_folder, test_folder);
}

/* Tags without prefixes have scores, too. */
static void plain_tags(void **state)
{
	put_file("plain.txt", "the DET\ncat NOUN\nsees VERB\nthe DET\nmoon NOUN\n\na DET\ndog NOUN\n");
	assert_program(0, "",
		       "finetune --task pos --model %s/base --train %s/plain.txt --dev %s/plain.txt --num_train_steps 1 "
		       "--max_seq_length 32 --threads 1 --precision fp32 --out %s/plain",
		       test_folder, test_folder, test_folder, test_folder);
	assert_true(support_in("plain/eval_results.json", "eval_classes", "DET") == 3);
	assert_true(support_in("plain/eval_results.json", "eval_classes", "VERB") == 1);
}

/* Nothing is evaluated without a dev set, and options that need one say so. */
static void without_a_dev_set(void **state)
{
#define NO_DEV(out, more)                                                                                                        \
	"finetune --task classification --model %s/base --train %s/classes.tsv --num_train_steps 1 --max_seq_length 32 "         \
	"--threads 1 "                                                                                                           \
	"--out %s/" out " " more,                                                                                                \
		test_folder, test_folder, test_folder
	assert_program(0, "no dev set: the model is not evaluated", NO_DEV("no_dev", ""));
	assert_program(2, "--save_best: there is no dev set", NO_DEV("refused", "--save_best"));
	assert_program(2, "--thresholds: there is no dev set", NO_DEV("no_dev", "--thresholds 0.95"));
	assert_program(2, "--calibrate: there is no dev set", NO_DEV("no_dev", "--calibrate"));
	assert_program(0, "", NO_DEV("no_dev", "--min_score 0.1"));
	assert_program(0, "no dev set: the model is not evaluated", NO_DEV("no_metric", "--metric f1"));
	assert_program(2, "--early_stopping_patience: there is no dev set", NO_DEV("refused", "--early_stopping_patience 2"));
}

/* A tokenizer whose tokens mark the space before them, and that has another name for blanks. */
static void blanks_of_other_tokenizers(void **state)
{
	struct buffer json = {0};
	small_model_make(test_path("blanks"), &model_heads_pretraining, NULL, NULL);
	buffer_format(&json,
		      "{\"added_tokens\": [{\"id\": 4, \"content\": \"<mask>\", \"single_word\": false, \"lstrip\": true, "
		      "\"rstrip\": false, \"normalized\": false, \"special\": true}], \"pre_tokenizer\": {\"type\": "
		      "\"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": true}, \"decoder\": "
		      "{\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {\"<pad>\": 0, "
		      "\"<unk>\": 1, \"<s>\": 2, \"</s>\": 3, \"<mask>\": 4");
	for (int i = 5; i < SMALL_VOCAB; i++)
		buffer_format(&json, ", \"\\u0120w%c%c\": %d", 'a' + i / 26, 'a' + i % 26, i);
	buffer_format(&json, "}}}");
	assert_ok(file_write(test_path("blanks/tokenizer.json"), json.data, json.size));
	buffer_release(&json);
	put_file("blanks/special_tokens_map.json",
		 "{\"pad_token\": \"<pad>\", \"unk_token\": \"<unk>\", \"cls_token\": \"<s>\", \"sep_token\": \"</s>\", "
		 "\"mask_token\": \"<mask>\"}");
	assert_int_equal(remove(test_path("blanks/vocab.txt")), 0);
	assert_int_equal(remove(test_path("blanks/MANIFEST.json")), 0);
	assert_int_equal(remove(test_path("blanks/tokenizer_config.json")), 0);
	assert_program(0, "", "fill --model %s/blanks --threads 1 '<mask>'", test_folder);
	assert_int_equal(strncmp(buffer_string(&program_output), "w", 1), 0); /* in place of the blank, without its mark */
	assert_null(strstr(buffer_string(&program_output), "\xC4\xA0"));
	assert_program(0, "", "fill --model %s/blanks --threads 1 --json '<mask>'", test_folder);
	assert_non_null(strstr(buffer_string(&program_output), "\"token\":\"w"));
	assert_int_equal(program("fill --model %s/blanks --threads 1 --json '<mask>' nothing", test_folder), 2);
	assert_non_null(strstr(buffer_string(&program_output), "}]}\n"));
	assert_program(2, "Google's code has BERT's tokenizer only", "export --model %s/blanks --to tensorflow --out %s/google",
		       test_folder, test_folder);
	assert_program(2, "has no <mask>\nhint: write <mask> where", "fill --model %s/blanks '[MASK]'", test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_list_wrong_answers),
		cmocka_unit_test(a_report_keeps_its_answers_over_a_resume),
		cmocka_unit_test(columns_have_the_values_of_objects),
		cmocka_unit_test(labeled_test_sets_are_scored),
		cmocka_unit_test(without_a_dev_set),
		cmocka_unit_test(first_examples),
		cmocka_unit_test(plain_tags),
		cmocka_unit_test(pipelines_are_imitated),
		cmocka_unit_test(blanks_of_other_tokenizers),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
