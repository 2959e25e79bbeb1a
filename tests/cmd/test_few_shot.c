/* Learning from few examples, and heads that read the mean of a text's rows. */
#include "cmd/small_run.h"

#define COMMON "--model %s/base --max_seq_length 32 --precision fp32 --threads 1 --no_progress "
#define FEEDBACK "--train examples/feedback_dev.csv --dev examples/feedback.csv "

static int setup(void **state)
{
	static const char labels[] = "text\tlabels\nthe cat sees a river\tcat|river\na dog sees the moon\tdog\n"
				     "the cat likes the house\tcat\na dog finds a river\tdog|river\nnobody sees it\t\n";
	static const char pairs[] = "sentence1\tsentence2\tlabel\na cat\tthe cat\tsame\na cat\tthe moon\tother\n";
	if (small_run_make(state, 12) != 0)
		return -1;
	assert_ok(file_write(test_path("labels.tsv"), labels, sizeof labels - 1));
	assert_ok(file_write(test_path("pairs.tsv"), pairs, sizeof pairs - 1));
	return program(
		"pretrain -q --corpus %s --model %s --out %s/base --vocab_size 80 --num_train_steps 1 --train_batch_size 4 "
		"--max_seq_length 32 --precision fp32 --threads 1",
		corpus, config, test_folder);
}

static void read_weights(const char *name, struct buffer *out)
{
	buffer_clear(out);
	assert_ok(file_read(test_path(name), 1 << 24, out));
}

static void a_folder_that_answers(void **state)
{
	(void)state;
	struct buffer first = {0}, second = {0};
	for (int i = 0; i < 2; i++) {
		assert_program(0, "the model is in",
			       "finetune --task classification --few_shot " COMMON FEEDBACK "--num_train_steps 2 --out %s/few",
			       test_folder, test_folder);
		assert_printed("examples                  150");
		assert_null(strstr(buffer_string(&program_errors), "no dev set"));
		read_weights("few/final/model.safetensors", i == 0 ? &first : &second);
	}
	assert_int_equal(first.size, second.size);
	assert_memory_equal(first.data, second.data, first.size);
	assert_int_equal(program("evaluate --model %s/few --test examples/feedback.csv --precision fp32 --json", test_folder), 0);
	read_weights("few/eval_results.json", &first);
	const char *accuracy = strstr(buffer_string(&first), "\"eval_accuracy\": ") + strlen("\"eval_accuracy\": ");
	char *end = strchr(accuracy, ',');
	*end = '\0';
	assert_non_null(strstr(buffer_string(&program_output), accuracy));
	assert_int_equal(program("verify %s/few/final", test_folder), 0);
	buffer_release(&first);
	buffer_release(&second);
}

#define SEVERAL                                                                                                                  \
	"finetune --task multilabel --few_shot " COMMON "--score_loss cosent --train %s/labels.tsv --num_train_steps 2 "         \
	"--out %s/several "

static void several_labels(void **state)
{
	struct buffer before = {0}, after = {0};
	(void)state;
	assert_program(0, "the model is in", SEVERAL "--dev %s/labels.tsv --vocab_file %s/base/final/vocab.txt", test_folder,
		       test_folder, test_folder, test_folder, test_folder);
	/* What is in the folder belongs to its model. */
	assert_true(file_exists(test_path("several/eval_results.json")));
	assert_program(0, "the model is in", SEVERAL "--fresh", test_folder, test_folder, test_folder);
	assert_false(file_exists(test_path("several/eval_results.json")));
	read_weights("several/pairs.jsonl", &before);
	assert_program(ERR_STATE, "the training examples have changed since", SEVERAL "--max_train_samples 4", test_folder,
		       test_folder, test_folder);
	read_weights("several/pairs.jsonl", &after);
	assert_int_equal(before.size, after.size);
	buffer_release(&before);
	buffer_release(&after);
	assert_program(0, "taken as scored pairs", SEVERAL "--plan", test_folder, test_folder, test_folder);
	assert_program(0, "taken as scored pairs", SEVERAL "--out %s/new --plan", test_folder, test_folder, test_folder,
		       test_folder);
	assert_false(file_exists(test_path("new")));
	assert_int_equal(program("predict --model %s/several %s/labels.tsv", test_folder, test_folder), 0);
	assert_non_null(strstr(buffer_string(&program_output), "\"probabilities\":{\"cat\":"));
}

static void heads_on_means(void **state)
{
	(void)state;
	assert_program(0, "finished",
		       "finetune --task classification --classifier_pooling mean " COMMON FEEDBACK
		       "--num_train_steps 2 --out %s/mean",
		       test_folder, test_folder);
	assert_program(0, "", "export --model %s/mean --to onnx --out %s/mean.onnx", test_folder, test_folder);
	assert_program(0, "", "predict --model %s/mean examples/feedback.csv", test_folder);
}

static void refusals(void **state)
{
	static const char *const ignored[][2] = {{"--class_weights balanced", "weighs all examples alike"},
						 {"--classifier_pooling cls", "pools as the embedding model does"},
						 {"--label_smoothing 0.1", "fits its head to the labels as they are"},
						 {"--min_score 0.9", "does not calibrate"},
						 {"--folds 2 --fold 1", "is a single run"},
						 {"--pooling splade", "needs vectors, and SPLADE weighs words"},
						 {"--metric f1", "chooses no checkpoint"},
						 {"--best_by dev", "chooses no checkpoint"},
						 {"--save_best", "chooses no checkpoint"},
						 {"--early_stopping_patience 2", "chooses no checkpoint"}};
	(void)state;
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		assert_program(2, ignored[i][1], "finetune --task classification --few_shot %s " COMMON FEEDBACK "--out %s/no",
			       ignored[i][0], test_folder, test_folder);
	assert_program(2, "--few_shot is a single run",
		       "finetune --task classification --few_shot --sweep seed=1,2 " COMMON FEEDBACK "--out %s/no", test_folder,
		       test_folder);
	assert_program(2, "--few_shot is for --task classification, not regression",
		       "finetune --task regression --few_shot " COMMON FEEDBACK "--out %s/no", test_folder, test_folder);
	assert_program(2, "--few_shot has no teacher",
		       "finetune --task classification --few_shot --teacher %s/few " COMMON FEEDBACK "--out %s/no", test_folder,
		       test_folder, test_folder);
	assert_program(2, "--few_shot cuts long texts",
		       "finetune --task classification --few_shot --long_texts mean " COMMON FEEDBACK "--out %s/no", test_folder,
		       test_folder);
	assert_program(2, "--few_shot is for texts, not for pairs of texts",
		       "finetune --task classification --few_shot " COMMON "--train %s/pairs.tsv --out %s/no", test_folder,
		       test_folder, test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_folder_that_answers),
		cmocka_unit_test(several_labels),
		cmocka_unit_test(heads_on_means),
		cmocka_unit_test(refusals),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
