/* Cross-validation from the command line: all folds, an interruption, and what comes of them together. */
#include "cmd/labeled_files.h"

static int setup(void **state)
{
	return small_run_make(state, 3) == 0 ? labeled_files_make("cpu") : -1;
}

static int folds(const char *name, const char *options)
{
	return program("finetune -q --task classification --model %s/base --train %s/classification.train --out %s/%s --folds 3 "
		       "--max_seq_length 24 --num_train_steps 4 --threads 1 --precision fp32 %s",
		       test_folder, test_folder, test_folder, name, options);
}

static void read_file(struct buffer *out, const char *name)
{
	buffer_clear(out);
	assert_ok(file_read(test_path(name), 1 << 20, out));
}

static void every_row_is_answered_once(void **state)
{
	struct buffer text = {0};
	double values[3], mean = 0;
	assert_int_equal(folds("folds", ""), 0);
	read_file(&text, "folds/fold_predictions.jsonl");
	int row = 0;
	for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n")) {
		char expected[32];
		snprintf(expected, sizeof expected, "{\"row\":%d,\"fold\":", ++row);
		assert_true(strncmp(line, expected, strlen(expected)) == 0);
		assert_non_null(strstr(line, "\"right\":\""));
		assert_non_null(strstr(line, "\"answer\":{\"label\":\""));
	}
	assert_int_equal(row, 96);
	for (int i = 0; i < 3; i++) {
		char name[64];
		snprintf(name, sizeof name, "folds/fold=%d/eval_results.txt", i + 1);
		read_file(&text, name);
		assert_int_equal(sscanf(strstr(buffer_string(&text), "eval_loss"), "eval_loss = %lf", &values[i]), 1);
		mean += values[i] / 3;
	}
	read_file(&text, "folds/fold_results.json");
	double found;
	assert_int_equal(sscanf(strstr(strstr(buffer_string(&text), "eval_loss"), "\"mean\""), "\"mean\": %lf", &found), 1);
	assert_near(found, mean, 1e-6);
	buffer_release(&text);
}

static void an_interruption_changes_nothing(void **state)
{
	char whole[PATH_BYTES], halves[PATH_BYTES];
	assert_int_equal(folds("halves", "--stop_at_step 2"), STOPPED);
	assert_int_equal(folds("halves", ""), 0);
	static const char *const names[] = {"fold_predictions.jsonl", "fold_results.json"};
	for (int i = 0; i < 2; i++) {
		snprintf(whole, sizeof whole, "%s/folds/%s", test_folder, names[i]);
		snprintf(halves, sizeof halves, "%s/halves/%s", test_folder, names[i]);
		assert_same_file(whole, halves);
	}
}

/* One fold alone, on another machine perhaps; and what does not go together. */
static void single_folds_and_refusals(void **state)
{
	char all[PATH_BYTES], one[PATH_BYTES];
	assert_int_equal(folds("second", "--fold 2"), 0);
	snprintf(all, sizeof all, "%s/folds/fold=2/fold_predictions.jsonl", test_folder);
	snprintf(one, sizeof one, "%s/second/fold_predictions.jsonl", test_folder);
	assert_same_file(all, one);
	assert_int_equal(folds("bad", "--fold 4"), ERR_USAGE);
	assert_int_equal(folds("bad", "--sweep seed=1,2"), ERR_USAGE);
	assert_int_equal(folds("bad", "--on_bad_record skip"), ERR_USAGE);
	assert_int_equal(folds("bad", "--group_column nobody"), ERR_USAGE);
}

/* The dev set of a published task's folder is not one that was given. */
static void folds_of_a_folder(void **state)
{
	static const char table[] = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\tthe cat sees it\tit sees the cat\n"
				    "0\t3\t4\ta dog\tthe moon\n1\t5\t6\ta dog\tthe dog\n0\t7\t8\tthe cat\ta river\n";
	assert_ok(folder_make(test_path("MRPC")));
	put_file("MRPC/train.tsv", table);
	put_file("MRPC/dev.tsv", table);
	assert_program(0, "2 of 2",
		       "finetune --task mrpc --model %s/base --data_dir %s/MRPC --out %s/mrpc --folds 2 --num_train_steps 1 "
		       "--train_batch_size 2 --max_seq_length 24 --threads 1 --precision fp32",
		       test_folder, test_folder, test_folder);
}

/* Correlations are undefined where all labels are equal. */
static void a_measure_of_one_fold(void **state)
{
	static const char *const words[] = {"cat", "dog", "river", "moon"};
	struct buffer text = {0};
	(void)state;
	for (int varied = 0; varied < 2; varied++) {
		struct buffer table = {0};
		buffer_text(&table, "sentence\tlabel\tgroup\n");
		for (int row = 0; row < 16; row++)
			buffer_format(&table, "the %s sees a %s\t%d\t%d\n", words[row / 2 % 4], words[row / 8 + row % 2],
				      row % 2 == varied ? row : 1, row % 2);
		put_file("groups.tsv", buffer_string(&table));
		buffer_release(&table);
		assert_program(
			0, "",
			"finetune -q --task regression --model %s/base --train %s/groups.tsv --folds 2 --group_column group "
			"--out %s/groups%d --num_train_steps 2 --max_seq_length 24 --threads 1 --precision fp32",
			test_folder, test_folder, test_folder, varied);
		read_file(&text, varied ? "groups1/fold_results.json" : "groups0/fold_results.json");
		const char *measure = strstr(buffer_string(&text), "\"eval_spearmanr\"");
		double mean;
		assert_non_null(measure);
		assert_int_equal(sscanf(strstr(measure, "\"mean\""), "\"mean\": %lf", &mean), 1);
	}
	buffer_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_answered_once), cmocka_unit_test(an_interruption_changes_nothing),
		cmocka_unit_test(single_folds_and_refusals),  cmocka_unit_test(folds_of_a_folder),
		cmocka_unit_test(a_measure_of_one_fold),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
