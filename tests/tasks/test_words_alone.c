/* What words alone tell, against scikit-learn: the numbers are those of TfidfVectorizer(ngram_range=(1, 2)) with
 * LogisticRegression and Ridge. */
#include "tasks/words_alone.h"
#include "tasks/task_world.h"

extern const struct task task_classification, task_regression, task_multilabel, task_embedding, task_reranking, task_choice;

static int setup(void **state)
{
	static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "a",
					      "cat",   "dog",   "sat",   "birds", "fly",    "he",  "ran"};
	return task_world_make(state, &task_classification, "table.tsv", entries, sizeof entries / sizeof *entries);
}

static struct measures measure(const struct task *task, const char *training, const char *text)
{
	tested = task;
	struct task_state state = open_state(16);
	struct task_set train, set;
	struct measures measures = {0};
	assert_ok(open_set(&state, &train, TASK_TRAIN, training));
	assert_ok(open_set(&state, &set, TASK_SCORE, text));
	assert_ok(task->baseline(&state, &train, &set, &measures));
	task_set_release(&state, &set);
	task_set_release(&state, &train);
	task_state_release(&state);
	return measures;
}

/* Words are lower case, marks are words, and pairs of neighbors count, too. */
static void classes(void **state)
{
	(void)state;
	struct measures got =
		measure(&task_classification,
			"text\tlabel\nGood food, good room\tpos\nbad room\tneg\nthe food was bad\tneg\n"
			"not good at all\tneg\nnot bad\tpos\nthe room was good\tpos\nawful\tneg\n",
			"text\tlabel\ngood\tpos\nnot good\tneg\nawful food\tneg\nthe room\tpos\na bad bad room\tneg\n"
			"not awful\tpos\n");
	assert_near(measures_get(&got, "accuracy"), 0.5, 1e-12);
	assert_near(measures_get(&got, "auc"), 7.0 / 9, 1e-12);
}

static void labels(void **state)
{
	(void)state;
	struct measures got = measure(
		&task_multilabel,
		"text\tlabel\nGood food, good room\tpos,room\nbad room\troom\nthe food was bad\t\n"
		"not good at all\t\nnot bad\tpos\nthe room was good\tpos,room\nawful\t\n",
		"text\tlabel\ngood\tpos\nnot good\t\nawful food\t\nthe room\tpos,room\na bad bad room\troom\nnot awful\tpos\n");
	assert_near(measures_get(&got, "f1_micro"), 1.0 / 3, 1e-12);
}

static void numbers_of_pairs(void **state)
{
	(void)state;
	struct measures got =
		measure(&task_regression,
			"sentence1\tsentence2\tscore\nthe cat sat\ta cat sat\t4\nthe dog ran away\ta bird flew\t0\n"
			"birds fly\tthe birds fly\t5\nthe cat sat\tthe dog sat down\t2\nhe ran away\tshe ran home\t3\n"
			"good food\tbad food\t1\n",
			"sentence1\tsentence2\tscore\nthe dog sat\ta dog sat\t4\nshe flew home\tbirds fly south\t1\n"
			"bad dog\tgood cat\t2\nhe sat down\the ran\t3\n");
	assert_near(measures_get(&got, "pearson"), 0.446744, 2e-4);
	assert_near(measures_get(&got, "mse"), 1.007154, 2e-4);
}

/* Tasks that compare texts: cosines of the vectors of the set's own texts. */
static void texts_of_embeddings(void **state)
{
	(void)state;
	struct measures got =
		measure(&task_embedding, "anchor\tpositive\nthe cat sat\ta cat sat\nbad room\tgood room\n",
			"sentence1\tsentence2\tscore\nthe dog sat\ta dog sat\t4\nshe flew home\tbirds fly south\t1\n"
			"bad dog\tgood dog\t2\nhe sat down\tthe man sat down\t5\n");
	assert_near(measures_get(&got, "pearson"), 0.939766, 1e-5);
	got = measure(&task_embedding, "anchor\tpositive\nthe cat sat\ta cat sat\nbad room\tgood room\n",
		      "anchor\tpositive\nthe cat sat\ta cat sat\nbirds fly\tthe birds sat\nhe ran\ta dog\n");
	assert_near(measures_get(&got, "ndcg@10"), 0.903437, 1e-5);
}

static void lists_and_choices(void **state)
{
	(void)state;
	struct measures got =
		measure(&task_reranking, "query\tpassage\tscore\nq\ta\t1\nq\tb\t0\n",
			"query\tpassage\tscore\nq one\tthe dog sat down\t1\nq one\tone q one\t0\nq one\tnothing\t0\n"
			"a cat\tthe dog sat\t0\na cat\tthe cat sat\t1\n");
	assert_near(measures_get(&got, "words_alone"), 0.782732, 1e-5);
	got = measure(&task_choice, "question\tchoice1\tchoice2\tchoice3\tlabel\nwho\ta\tb\tc\t1\n",
		      "question\tchoice1\tchoice2\tchoice3\tlabel\nwho sat\tthe dog ran\tthe cat sat\tbirds fly\t1\n"
		      "what flew\the ran\twho flew what\ta bird flew\t2\n");
	assert_near(measures_get(&got, "accuracy"), 0.5, 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes),           cmocka_unit_test(labels),
		cmocka_unit_test(numbers_of_pairs),  cmocka_unit_test(texts_of_embeddings),
		cmocka_unit_test(lists_and_choices),
	};
	return cmocka_run_group_tests(tests, setup, task_world_drop);
}
