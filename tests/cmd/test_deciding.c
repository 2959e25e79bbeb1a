/* What decides which checkpoint is best and when a run ends: it must exist before anything is trained, and what it decided is
 * said. */
#include <unistd.h>
#include "cmd/labelled_files.h"

static int setup(void **state)
{
	return small_run_make(state, 21) == 0 ? labelled_files_make("cpu") : -1;
}

/* A mistyped measure would otherwise cost the training before the first evaluation. */
static void measures_are_known_before_training(void **state)
{
	(void)state;
	for (int i = 0; i < ALL_LABELLED_TASKS; i++) {
		const char *task = labelled_tasks[i];
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

static void put(const char *name, const char *text)
{
	assert_ok(file_write(test_path(name), text, strlen(text)));
}

/* Vectors and rankings of nothing must be harmless. */
static void measures_of_vectors_and_rankings(void **state)
{
	(void)state;
	put("pairs.tsv", "query\tdocument\nthe cat sees\tthe house\na dog finds\ta river\nnobody likes\tsome bread\n");
	put("scores.tsv", "sentence1\tsentence2\tscore\nthe cat sees\tthe house\t1.5\na dog finds\ta river\t4\n"
			  "nobody likes\tsome bread\t2\n");
	put("ranks.tsv", "query\tdocument\tlabel\nthe cat sees\tthe house\t1\nthe cat sees\ta river\t0\n"
			 "nobody likes\tsome bread\t1\n");
	static const char *const runs[][2] = {
		{"embedding", "pairs"}, {"embedding", "scores"}, {"regression", "scores"}, {"reranking", "ranks"}};
	for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
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
	(void)state;
	assert_program(2, "--best_by hard: there is no evaluation set of this name",
		       MODEL SETS "--out %s/sets --best_by hard --plan", test_folder, test_folder, test_folder, test_folder);
	assert_said("the sets with names are: easy");
	assert_program(2, "no evaluation set of this name", MODEL SETS "--out %s/sets --best_by hard --metric acc", test_folder,
		       test_folder, test_folder, test_folder);
	assert_false(file_exists(test_path("sets")));
	assert_program(0, "", MODEL SETS "--out %s/sets --best_by easy", test_folder, test_folder, test_folder, test_folder);
	put("held.txt", "the cat sees the house.\na dog finds a river.\n\nnobody likes some bread.\nthe cat sees the moon.\n");
	assert_program(2, "--best_by hard: there is no evaluation set of this name",
		       "pretrain --corpus %s --model %s --out %s/pre --vocab_size 80 --max_seq_length 16 --num_train_steps 2 "
		       "--eval_corpus easy=%s/held.txt --best_by hard --plan --threads 1",
		       corpus, config, test_folder, test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measures_are_known_before_training),
		cmocka_unit_test(measures_of_vectors_and_rankings),
		cmocka_unit_test(sets_are_known_before_training),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
