/* What people see of the answers of small models: the report's list of wrong ones, and `bertc predict` in both formats.
 * The answers themselves are compared with those of transformers elsewhere (tests/tasks). */
#include "cmd/small_run.h"

static void put_file(const char *name, const char *text)
{
	assert_ok(file_write(test_path(name), text, strlen(text)));
}

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

static void assert_holds(const char *name, const char *part)
{
	struct buffer text = {0};
	assert_ok(file_read(test_path(name), 1 << 24, &text));
	if (!strstr(buffer_string(&text), part))
		fail_msg("'%s' is not in '%s'", part, name);
	buffer_release(&text);
}

static void reports_list_wrong_answers(void **state)
{
	(void)state;
	/* Untrained, and therefore wrong somewhere. */
	assert_int_equal(TRAIN("tagging", "tags.txt", "--num_train_steps 1 --learning_rate 0"), 0);
	assert_holds("tagging/report.html", "Answers at step 1<");
	assert_holds("tagging/report.html", "the cat sees the moon");
	assert_holds("tagging/report.html", "/O");
	assert_int_equal(TRAIN("multiple_choice", "choices.jsonl", "--num_train_steps 1 --learning_rate 0"), 0);
	assert_holds("multiple_choice/report.html", "Answers at step 1<");
	assert_int_equal(TRAIN("squad", "questions.json", "--num_train_steps 1 --learning_rate 0"), 0);
	assert_holds("squad/report.html", "Answers at step 1<");
	assert_holds("squad/report.html", "the cat sees the moon .");
}

static void a_report_keeps_its_answers_over_a_resume(void **state)
{
	(void)state;
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
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", *names ? " " : "", item->key);
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
	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_list_wrong_answers),
		cmocka_unit_test(a_report_keeps_its_answers_over_a_resume),
		cmocka_unit_test(pipelines_are_imitated),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
