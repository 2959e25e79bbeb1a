/* Folds as scikit-learn's StratifiedKFold and StratifiedGroupKFold promise them: labels spread evenly, groups undivided. */
#include "tasks/folds.h"
#include "tasks/task_world.h"

static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"};
enum { ROWS = 97, CLASSES = 3, GROUPS = 20 };
static int fold_of[ROWS + 1];

static int setup(void **state)
{
	return task_world_make(state, &task_classification, "texts.tsv", entries, 6);
}

static int class_of(int row)
{
	return row % 7 == 0 ? 2 : row % 3 == 0;
}

static int group_of(int row)
{
	return row * row % GROUPS;
}

static void put_rows(struct buffer *text)
{
	buffer_text(text, "text\tlabel\tauthor\n");
	for (int i = 1; i <= ROWS; i++)
		buffer_format(text, "a text %d\tclass %d\tauthor %d\n", i, class_of(i), group_of(i));
}

/* Each of 6 texts occurs 4 times. A model would be scored on what it was trained on if they were in several folds. */
static void test_equal_rows_stay_together(void **state)
{
	const char *path = test_path(tested_file);
	struct buffer text = {0};
	int rows[3] = {0}, fold_of_text[6] = {0};
	buffer_text(&text, "text\tlabel\n");
	for (int i = 0; i < 24; i++)
		buffer_format(&text, "a text %d\tclass %d\n", i % 6, i % 2);
	assert_ok(file_write(path, text.data, text.size));
	buffer_release(&text);
	for (int fold = 1; fold <= 3; fold++) {
		struct task_state own = open_state(8);
		struct task_set set = {.name = "", .use = TASK_TRAIN};
		assert_ok(tested->read(&own, &set, &path, 1));
		assert_error(ERR_USAGE, "there are only 6 different examples",
			     folds_keep(&(struct fold_options){.folds = 7, .fold = 1}, &own, &set.examples, true, NULL));
		assert_ok(folds_keep(&(struct fold_options){.folds = 3, .fold = fold}, &own, &set.examples, true, NULL));
		for (int64_t i = 0; i < set.examples.count; i++) {
			int *place = &fold_of_text[set.examples.examples[i].text[7] - '0'];
			assert_true(*place == 0 || *place == fold);
			*place = fold;
			rows[fold - 1]++;
		}
		task_set_release(&own, &set);
		task_state_release(&own);
	}
	for (int f = 0; f < 3; f++)
		assert_int_equal(rows[f], 8);
}

/* Divides the rows; each is held out by one fold, and kept by all others. */
static void divide(struct fold_options options)
{
	struct buffer text = {0};
	const char *path = test_path(tested_file);
	put_rows(&text);
	assert_ok(file_write(path, text.data, text.size));
	memset(fold_of, 0, sizeof fold_of);
	int64_t held = 0;
	for (options.fold = 1; options.fold <= options.folds; options.fold++)
		for (int part = 0; part < 2; part++) {
			struct task_state own = open_state(8);
			struct task_set set = {.name = "", .use = TASK_TRAIN};
			int64_t *rows;
			assert_ok(tested->read(&own, &set, &path, 1));
			assert_ok(folds_keep(&options, &own, &set.examples, part == 0, &rows));
			for (int64_t i = 0; i < set.examples.count; i++) {
				char expected[32];
				snprintf(expected, sizeof expected, "a text %d", (int)rows[i]);
				assert_string_equal(set.examples.examples[i].text, expected);
				assert_true((fold_of[rows[i]] == options.fold) == 0 || part == 0);
				if (part == 0)
					fold_of[rows[i]] = (int)options.fold;
			}
			held += part == 0 ? set.examples.count : 0;
			if (part == 1)
				assert_true(set.examples.count < ROWS);
			free(rows);
			task_set_release(&own, &set);
			task_state_release(&own);
		}
	assert_int_equal(held, ROWS);
	buffer_release(&text);
}

/* Of a class, and of all (class -1), the difference between the fold with the most rows and the one with the fewest. */
static int spread(int folds, int class_id)
{
	int most = 0, least = ROWS;
	for (int f = 1; f <= folds; f++) {
		int count = 0;
		for (int i = 1; i <= ROWS; i++)
			count += fold_of[i] == f && (class_id < 0 || class_of(i) == class_id);
		most = count > most ? count : most;
		least = count < least ? count : least;
	}
	return most - least;
}

static void test_labels_are_spread(void **state)
{
	for (int folds = 2; folds <= 10; folds += 4) {
		divide((struct fold_options){.folds = folds});
		for (int c = -1; c < CLASSES; c++)
			assert_in_range(spread(folds, c), 0, 1);
	}
}

static void test_groups_are_whole(void **state)
{
	int fold_of_group[GROUPS] = {0};
	divide((struct fold_options){.folds = 4, .group_column = "author"});
	for (int i = 1; i <= ROWS; i++) {
		int *own = &fold_of_group[group_of(i)];
		assert_true(*own == 0 || *own == fold_of[i]);
		*own = fold_of[i];
	}
	for (int c = 0; c < CLASSES; c++) /* the largest group has 10 rows */
		assert_in_range(spread(4, c), 0, 10);
}

static void test_what_cannot_be_divided(void **state)
{
	struct buffer text = {0};
	const char *path = test_path(tested_file);
	struct task_state own = open_state(8);
	struct task_set set = {.name = "", .use = TASK_TRAIN};
	put_rows(&text);
	assert_ok(file_write(path, text.data, text.size));
	assert_ok(tested->read(&own, &set, &path, 1));
	assert_error(ERR_USAGE, "there are only 97 different examples",
		     folds_keep(&(struct fold_options){.folds = 98, .fold = 1}, &own, &set.examples, true, NULL));
	assert_error(ERR_USAGE, "groups",
		     folds_keep(&(struct fold_options){.folds = 90, .fold = 1, .group_column = "author"}, &own, &set.examples,
				true, NULL));
	assert_error(ERR_USAGE, "has no column 'writer'; its columns are 1 ",
		     folds_keep(&(struct fold_options){.folds = 2, .fold = 1, .group_column = "writer"}, &own, &set.examples,
				true, NULL));
	assert_error(ERR_USAGE, "--fold 4: there are 3", folds_check(&(struct fold_options){.folds = 3, .fold = 4}, &own));
	assert_error(ERR_USAGE, "--group_column has no effect without --folds",
		     folds_check(&(struct fold_options){.group_column = "author"}, &own));
	task_set_release(&own, &set);
	own.task = &task_tagging;
	assert_error(ERR_USAGE, "not for tagging", folds_check(&(struct fold_options){.folds = 3}, &own));
	own.task = &task_classification;
	task_state_release(&own);
	buffer_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_rows_stay_together),
		cmocka_unit_test(test_labels_are_spread),
		cmocka_unit_test(test_groups_are_whole),
		cmocka_unit_test(test_what_cannot_be_divided),
	};
	return cmocka_run_group_tests(tests, setup, task_world_drop);
}
