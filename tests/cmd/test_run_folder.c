/* What belongs to a run in its folder and what belongs to the user, and what --fresh makes of a run that has hardly begun. */
#include <unistd.h>
#include "cmd/labeled_files.h"

static char folder[128]; /* the test folder, short for command lines */

static void put_table(const char *name)
{
	struct buffer table = {0};
	buffer_text(&table, "sentence\tlabel\n");
	for (int i = 0; i < 24; i++)
		buffer_format(&table, "the cat %s the moon.\t%s\n", i % 2 ? "sees" : "likes", i % 2 ? "see" : "like");
	assert_ok(file_write(test_path(name), table.data, table.size));
	buffer_release(&table);
}

#define COMMON "--train_batch_size 8 --max_seq_length 16 --precision fp32 --threads 1 --no_progress "
#define PRETRAIN(out, more)                                                                                                      \
	"pretrain --corpus %s --model %s --out %s/" out " --vocab_size 80 --num_train_steps 2 " COMMON more, corpus, config,     \
		folder
#define TUNE(out, more)                                                                                                          \
	"finetune --task classification --model %s/base --train %s/table.tsv --dev own=%s/dev.tsv --out %s/" out                 \
	" --learning_rate 1e-3 " COMMON more,                                                                                    \
		folder, folder, folder, folder

static int setup(void **state)
{
	if (small_run_make(state, 12) != 0)
		return -1;
	snprintf(folder, sizeof folder, "%.120s", test_folder);
	put_table("table.tsv");
	put_table("dev.tsv");
	return program(PRETRAIN("base", ""));
}

static void assert_refused(const char *name)
{
	assert_program(2, "exists and was not made by bertc", TUNE("mine", ""));
	assert_said(name);
	assert_said("choose another --out, or move it elsewhere");
	assert_program(2, "exists and was not made by bertc", TUNE("mine", "--plan"));
	assert_program(2, "exists and was not made by bertc", TUNE("mine", "--fresh"));
	assert_program(2, "exists and was not made by bertc", TUNE("mine", "--sweep seed=1,2"));
	assert_program(2, "exists and was not made by bertc", PRETRAIN("mine", ""));
	assert_false(file_exists(test_path("mine/settings.json")));
}

/* `final` and `best` are replaced in the end, which must not cost the user anything. */
static void what_the_user_keeps_under_our_names(void **state)
{
	assert_ok(folder_make(test_path("mine/final/sub")));
	put_file("mine/final/mine.txt", "mine");
	assert_refused("/mine/final'");
	assert_true(file_exists(test_path("mine/final/mine.txt")));
	assert_ok(folder_remove(test_path("mine/final")));

	assert_ok(folder_make(test_path("mine/best/sub")));
	assert_refused("/mine/best'");
	assert_ok(folder_remove(test_path("mine/best")));
	assert_int_equal(symlink("/nowhere/at_all", test_path("mine/best")), 0);
	assert_refused("/mine/best'");
	assert_int_equal(unlink(test_path("mine/best")), 0);

	/* Nothing is lost with an empty folder, and a report is replaced with a warning. */
	assert_ok(folder_make(test_path("mine/final")));
	put_file("mine/report.html", "mine");
	assert_program(0, "mine/report.html' does not belong to a run in this folder, and will be replaced",
		       TUNE("mine", "--num_train_steps 2 --save_best"));
	assert_true(file_exists(test_path("mine/final/MANIFEST.json")));
	assert_true(file_exists(test_path("mine/best")));
	assert_program(0, "finished", TUNE("mine", "--num_train_steps 2 --fresh"));
	assert_null(strstr(buffer_string(&program_errors), "does not belong to a run"));
}

/* A run that ends before it has logged anything leaves settings, and nothing of them may count after --fresh. */
static void a_run_that_hardly_began(void **state)
{
	assert_program(75, "", TUNE("dead", "--num_train_steps 2 --seed 5 --stop_at_step 1"));
	assert_ok(folder_remove(test_path("dead/checkpoint-1")));
	assert_int_equal(unlink(test_path("dead/metrics.jsonl")), 0);
	assert_program(ERR_STATE, "--metric is 'loss', but", TUNE("dead", "--num_train_steps 2 --metric loss"));
	assert_program(0, "finished", TUNE("dead", "--num_train_epochs 1 --metric loss --fresh"));
	assert_null(strstr(buffer_string(&program_errors), "starting over with the settings"));
	struct json_document record;
	const char *seed = NULL;
	assert_ok(json_read(&record, test_path("dead/settings.json"), 1 << 20));
	assert_ok(json_get_string(record.root, "settings.json", "seed", &seed));
	assert_string_not_equal(seed, "5");
	json_release(&record);

	/* Nor may a checkpoint whose settings are gone. */
	assert_program(75, "", TUNE("orphan", "--num_train_steps 2 --stop_at_step 1"));
	assert_int_equal(unlink(test_path("orphan/settings.json")), 0);
	assert_int_equal(unlink(test_path("orphan/metrics.jsonl")), 0);
	assert_program(0, "finished", TUNE("orphan", "--num_train_steps 2 --metric loss --fresh"));
	assert_null(strstr(buffer_string(&program_errors), "resuming from"));

	/* Settings of another program are left alone. */
	assert_ok(folder_make(test_path("other")));
	put_file("other/settings.json", "{\"seed\": 3}");
	put_file("other/samples.jsonl", "{}\n");
	assert_program(2, "is not the record of a run", TUNE("other", "--fresh"));
	assert_true(file_exists(test_path("other/samples.jsonl")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_user_keeps_under_our_names),
		cmocka_unit_test(a_run_that_hardly_began),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
