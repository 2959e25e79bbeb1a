/* What decides which checkpoint is best and when a run ends: it must exist before anything is trained, and what it decided is
 * said. */
#include <unistd.h>
#include "cmd/labeled_files.h"

static int setup(void **state)
{
	return small_run_make(state, 21) == 0 ? labeled_files_make("cpu") : -1;
}

/* A mistyped measure would otherwise cost the training before the first evaluation. */
static void measures_are_known_before_training(void **state)
{
	for (int i = 0; i < ALL_LABELED_TASKS; i++) {
		const char *task = labeled_tasks[i];
		char path[128];
		assert_int_equal(finetune(task, "acc", "--metric acc"), 2);
		assert_said("--metric acc: the evaluation has no such measure to choose a checkpoint by");
		assert_said("its measures are: loss, ");
		snprintf(path, sizeof path, "%s-acc", task);
		assert_false(file_exists(test_path(path)));
		assert_int_equal(finetune(task, "acc", "--metric acc --plan"), 2);
		assert_int_equal(finetune(task, "acc", "--metric acc --sweep seed=1,2"), 2);
		assert_said("its measures are: loss, ");
		assert_int_equal(finetune(task, "acc", "--metric loss --plan"), 0);
	}
	/* What was mistyped binds nobody. */
	assert_int_equal(finetune("classification", "acc", "--metric f1_macro"), 2);
	assert_int_equal(finetune("classification", "acc", "--metric f1"), 0);
}

/* Vectors and rankings of nothing must be harmless. */
static void measures_of_vectors_and_rankings(void **state)
{
	put_file("pairs.tsv", "query\tdocument\nthe cat sees\tthe house\na dog finds\ta river\nnobody likes\tsome bread\n");
	put_file("scores.tsv", "sentence1\tsentence2\tscore\nthe cat sees\tthe house\t1.5\na dog finds\ta river\t4\n"
			       "nobody likes\tsome bread\t2\n");
	put_file("ranks.tsv", "query\tdocument\tlabel\nthe cat sees\tthe house\t1\nthe cat sees\ta river\t0\n"
			      "nobody likes\tsome bread\t1\n");
	static const char *const runs[][2] = {
		{"embedding", "pairs"}, {"embedding", "scores"}, {"regression", "scores"}, {"reranking", "ranks"}};
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		const char *task = runs[i][0], *file = runs[i][1];
		assert_program(
			2, "its measures are: loss, ",
			"finetune -q --task %s --model %s/base --train %s/%s.tsv --dev %s/%s.tsv --out %s/x --max_seq_length 24 "
			"--threads 1 --metric acc --plan",
			task, test_folder, test_folder, file, test_folder, file, test_folder);
	}
}

#define SETS "--train %s/classification.train --dev easy=%s/classification.dev "
#define MODEL "finetune -q --task classification --model %s/base --max_seq_length 24 --threads 1 --num_train_steps 2 "

static void sets_are_known_before_training(void **state)
{
	assert_program(2, "--best_by hard: there is no evaluation set of this name",
		       MODEL SETS "--out %s/sets --best_by hard --plan", test_folder, test_folder, test_folder, test_folder);
	assert_said("the sets with names are: easy");
	assert_program(2, "no evaluation set of this name", MODEL SETS "--out %s/sets --best_by hard --metric acc", test_folder,
		       test_folder, test_folder, test_folder);
	assert_false(file_exists(test_path("sets")));
	assert_program(0, "", MODEL SETS "--out %s/sets --best_by easy", test_folder, test_folder, test_folder, test_folder);
	put_file("held.txt",
		 "the cat sees the house.\na dog finds a river.\n\nnobody likes some bread.\nthe cat sees the moon.\n");
	assert_program(2, "--best_by hard: there is no evaluation set of this name",
		       "pretrain --corpus %s --model %s --out %s/pre --vocab_size 80 --max_seq_length 16 --num_train_steps 2 "
		       "--eval_corpus easy=%s/held.txt --best_by hard --plan --threads 1",
		       corpus, config, test_folder, test_folder);
}

/* With other evaluation data a finished run has nothing to choose anew, and must not publish its last model as the best. */
static void a_finished_run_keeps_its_best(void **state)
{
#define BEST(dev, more)                                                                                                          \
	"finetune --task classification --model %s/base --train %s/classification.train --dev %s/" dev " --out %s/best "         \
	"--max_seq_length 24 --train_batch_size 16 --learning_rate 0.7 --num_warmup_steps 7 --metric loss --num_train_steps 8 "  \
	"--eval_steps 1 --seed 4 "                                                                                               \
	"--save_checkpoints_steps 0 --save_best --threads 1 --precision fp32 --no_progress " more,                               \
		test_folder, test_folder, test_folder, test_folder
	struct json_document record;
	int64_t step = 0;
	/* So that the best checkpoint is not the last one: the gradients are useless at such a rate. */
	assert_program(0, "finished", BEST("classification.dev", ""));
	assert_ok(json_read(&record, test_path("best/best.json"), 1 << 20));
	assert_ok(json_get_integer(record.root, "best.json", "step", 0, INT64_MAX, &step));
	json_release(&record);
	assert_in_range(step, 1, 7);
	assert_int_equal(program("help >/dev/null && cp -r %s/best/final %s/kept", test_folder, test_folder), 0);
	put_labeled("classification", "other.dev", 12, 7);
	assert_program(0, "but nothing is left to train: the best checkpoint is still the one of step", BEST("other.dev", ""));
	assert_said("the best checkpoint is the one of step");
	assert_same_file(test_path("kept/model.safetensors"), test_path("best/final/model.safetensors"));
	assert_true(file_exists(test_path("best/best/model.safetensors")));
}

static void assert_file_says(const char *path, const char *text)
{
	struct buffer content = {0};
	assert_ok(file_read(test_path(path), 1 << 24, &content));
	if (!strstr(buffer_string(&content), text))
		fail_msg("%s lacks: %s", path, text);
	buffer_release(&content);
}

/* A run that ends early would otherwise look like one that was cut short. */
static void an_early_end_is_explained(void **state)
{
#define PATIENT(out, more)                                                                                                       \
	"finetune --task classification --model %s/base --train %s/classification.train --dev %s/classification.dev --out "      \
	"%s/" out                                                                                                                \
	" --max_seq_length 24 --train_batch_size 16 --learning_rate 0.7 --num_warmup_steps 19 --num_train_steps 20 --seed 4 "    \
	"--eval_steps 1 --save_checkpoints_steps 1 --keep_checkpoints 0 --metric loss --early_stopping_patience 2 --threads 1 "  \
	"--precision fp32 --no_progress " more,                                                                                  \
		test_folder, test_folder, test_folder, test_folder
	static const char text[] = "of 20: loss has not improved since step";
	assert_program(0, "Stopped early after step", PATIENT("early", ""));
	assert_said(text);
	assert_said("in 2 evaluations (--early_stopping_patience)");
	assert_said("it is the model of step");
	assert_said("(--save_best makes it the model)");
	assert_file_says("early/report.html", text);
	assert_program(0, "", "inspect %s/early", test_folder);
	assert_non_null(strstr(buffer_string(&program_output), "stopped_early"));
	assert_non_null(strstr(buffer_string(&program_output), text));
	/* Again: said again, logged once. */
	assert_program(0, "Stopped early after step", PATIENT("early", ""));
	assert_int_equal(program("help >/dev/null && grep -c early_stop\\\" %s/early/metrics.jsonl", test_folder), 0);
	assert_string_equal(buffer_string(&program_output), "1\n");
	assert_program(0, "Stopped early after step", PATIENT("chosen", "--save_best"));
	assert_null(strstr(buffer_string(&program_errors), "it is the model of step"));
	/* A run that goes its whole way says nothing of this. */
	assert_program(0, "finished", PATIENT("late", "--early_stopping_patience 100"));
	assert_null(strstr(buffer_string(&program_errors), "Stopped early"));
	assert_program(0, "", "inspect %s/late", test_folder);
	assert_null(strstr(buffer_string(&program_output), "stopped_early"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measures_are_known_before_training), cmocka_unit_test(measures_of_vectors_and_rankings),
		cmocka_unit_test(sets_are_known_before_training),     cmocka_unit_test(a_finished_run_keeps_its_best),
		cmocka_unit_test(an_early_end_is_explained),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
