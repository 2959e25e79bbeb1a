/* What holds for fine-tuning whatever the task's shape (one class per text, one tag per word, windows of a question,
 * several sequences per example): several ranks train like one, and an interruption changes nothing. */
#include "cmd/labeled_files.h"

static int setup(void **state)
{
	return small_run_make(state, 3) == 0 ? labeled_files_make("cpu") : -1;
}

#define CPU "--device cpu --precision fp32 "

static void ranks_train_as_one(void **state)
{
	for (int i = 0; i < LABELED_TASKS; i++) {
		const char *task = labeled_tasks[i];
		static const char *const measures[] = {"loss", "grad_norm", "learning_rate"};
		assert_int_equal(finetune(task, "one", CPU), 0);
		assert_int_equal(finetune(task, "two", CPU "--ranks 2"), 0);
		bool four_ranks = i == 2 || i == 3; /* where an example or a question has several sequences */
		if (four_ranks)
			assert_int_equal(finetune(task, "four", CPU "--ranks 4"), 0);
		for (size_t m = 0; m < sizeof measures / sizeof measures[0]; m++) {
			double two = curve_distance(task, "one", "two", measures[m], 6),
			       four = four_ranks ? curve_distance(task, "one", "four", measures[m], 6) : 0;
			if (!(two < 1e-5 && four < 1e-5))
				fail_msg("%s, %s: %.2g with two ranks, %.2g with four", task, measures[m], two, four);
		}
	}
}

/* At step 2 of 6, with dropout and in a random order, before the evaluation of step 3. */
static void an_interruption_changes_nothing(void **state)
{
	static const char *const ranks[] = {CPU, CPU "--ranks 2"}, *const whole[] = {"one", "two"};
	static const char *const files[] = {"final/model.safetensors", "checkpoint-6/model.safetensors",
					    "checkpoint-6/optimizer.safetensors", "eval_results.json"};
	static const char *const measures[] = {"loss", "grad_norm", "learning_rate", "tokens"};
	for (int i = 0; i < LABELED_TASKS; i++) {
		for (int r = 0; r < (i == 2 || i == 3 ? 2 : 1); r++) {
			const char *task = labeled_tasks[i];
			char options[96], name[16], a[PATH_BYTES], b[PATH_BYTES];
			snprintf(options, sizeof options, "%s --stop_at_step 2", ranks[r]);
			snprintf(name, sizeof name, "halves%d", r + 1);
			assert_int_equal(finetune(task, name, options), STOPPED);
			assert_int_equal(finetune(task, name, ranks[r]), 0);
			for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
				snprintf(a, sizeof a, "%s/%s-%s/%s", test_folder, task, whole[r], files[f]);
				snprintf(b, sizeof b, "%s/%s-%s/%s", test_folder, task, name, files[f]);
				assert_same_file(a, b);
			}
			for (size_t m = 0; m < sizeof measures / sizeof measures[0]; m++)
				assert_true(curve_distance(task, whole[r], name, measures[m], 6) == 0);
			snprintf(a, sizeof a, "%s/%s-%s/metrics.jsonl", test_folder, task, whole[r]);
			snprintf(b, sizeof b, "%s/%s-%s/metrics.jsonl", test_folder, task, name);
			assert_true(metric_at(a, 3, "eval_loss") == metric_at(b, 3, "eval_loss"));
		}
	}
}

/* What a report shows for each task besides the curves, in the order of labeled_tasks. */
static void assert_reported(int task)
{
	static const char *const parts[] = {"Confusion matrix",
					    "of whole entities",
					    "On the dev set: F1 ",
					    "answering at random would give",
					    "copying",
					    "knowing only the frequency of"};
	static const char *const previews[] = {"Per label",    "Per label",    "Worst errors",
					       "Worst errors", "Worst errors", "Per label"};
	char path[PATH_BYTES];
	struct buffer page = {0};
	snprintf(path, sizeof path, "%s/%s-one/report.html", test_folder, labeled_tasks[task]);
	assert_ok(file_read(path, 1 << 22, &page));
	const char *said = strstr(buffer_string(&page), parts[task]);
	if (!said || !strstr(buffer_string(&page), previews[task]))
		fail_msg("%s: no '%s' or no '%s' in report.html", labeled_tasks[task], parts[task], previews[task]);
	if (task == 2 && memchr(said, '%', strcspn(said, ",")))
		fail_msg("the F1 of questions is in points: %.60s", said);
	buffer_release(&page);
}

/* What the folder records about the task is enough to read the dev set as training did. */
static void a_finished_model_scores_as_its_run_did(void **state)
{
	for (int i = 0; i < ALL_LABELED_TASKS; i++) {
		const char *task = labeled_tasks[i];
		char path[PATH_BYTES];
		struct json_document run, now;
		assert_int_equal(finetune(task, "one", CPU), 0);
		assert_reported(i);
		assert_int_equal(program("evaluate -q --json --model %s/%s-one/final --test %s/%s.dev " CPU, test_folder, task,
					 test_folder, task),
				 0);
		snprintf(path, sizeof path, "%s/%s-one/eval_results.json", test_folder, task);
		assert_ok(json_read(&run, path, 1 << 20));
		assert_ok(json_parse(&now, "evaluate", buffer_string(&program_output), program_output.size));
		static const char *const measures[] = {"loss", "accuracy", "f1", "exact_match", "bleu_4"};
		int found = 0;
		for (size_t m = 0; m < sizeof measures / sizeof measures[0]; m++) {
			char name[32];
			double of_run = NAN, of_now = NAN;
			snprintf(name, sizeof name, "eval_%s", measures[m]);
			if (!json_member(run.root, name))
				continue;
			assert_ok(json_get_number(run.root, path, name, &of_run));
			assert_ok(json_get_number(now.root, "evaluate", measures[m], &of_now));
			if (!(fabs(of_run - of_now) <= 1e-6 * fabs(of_run)))
				fail_msg("%s: %s %.9g, in the run %.9g", task, measures[m], of_now, of_run);
			found++;
		}
		assert_true(found >= 2);
		json_release(&run);
		json_release(&now);
	}
}

/* Counts are worded for one as well. */
static void counts_of_one(void **state)
{
	static const char table[] =
		"sentence\tlabel\nthe cat sees the house.\tsees\nnobody likes some bread.\tlikes\nnobody likes the cat "
		"and the cat likes nobody and nobody likes the cat.\tlikes\n";
	assert_ok(file_write(test_path("one.tsv"), table, strlen(table)));
	assert_program(0, "1 of 3 texts is longer than 12 tokens and was cut, by ",
		       "finetune --task classification --model %s/base --init_layers 0 --train %s/one.tsv --out %s/one "
		       "--num_train_steps 1 --max_seq_length 12 --threads 1 --no_progress",
		       test_folder, test_folder, test_folder);
	struct buffer card = {0};
	assert_ok(file_read(test_path("one/final/README.md"), 1 << 20, &card));
	assert_non_null(strstr(buffer_string(&card), " weights: 1 layer, width 32, 2 attention heads,"));
	assert_non_null(strstr(buffer_string(&card), " for 1 step."));
	buffer_release(&card);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_train_as_one),
		cmocka_unit_test(an_interruption_changes_nothing),
		cmocka_unit_test(a_finished_model_scores_as_its_run_did),
		cmocka_unit_test(counts_of_one),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
