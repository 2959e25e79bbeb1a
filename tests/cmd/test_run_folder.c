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

	/* Nor does --fresh remove a model that is to be read. */
	assert_program(
		2, "is the folder that --fresh clears, or inside it",
		"finetune --task embedding --model %s/base --train %s/table.tsv --out %s/mine --guide %s/mine/final --fresh",
		folder, folder, folder, folder);
	assert_true(file_exists(test_path("mine/final/MANIFEST.json")));
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

static void assert_mine(const char *name)
{
	struct buffer text = {0};
	assert_ok(file_read(test_path(name), 100, &text));
	assert_string_equal(buffer_string(&text), "mine");
	buffer_release(&text);
}

/* Every other name under which a run would write, before it trains anything. */
static void other_names_of_a_run(void **state)
{
	(void)state;
	static const char *const names[] = {"eval_results.json", "eval_results.txt", "test_results.tsv",
					    "predict.txt",       "best.json",        "later/predict.txt"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[64];
		snprintf(path, sizeof path, "named/%s", names[i]);
		assert_ok(folder_make(test_path("named/later")));
		put_file(path, "mine");
		assert_program(2, "exists and was not made by bertc",
			       TUNE("named", "--num_train_steps 2 --test %s/dev.tsv "
					     "--test later=%s/dev.tsv"),
			       folder, folder);
		assert_said(names[i]);
		assert_mine(path);
		assert_false(file_exists(test_path("named/checkpoint-2")));
		assert_ok(folder_remove(test_path("named")));
	}
	/* Checkpoints of another program are neither resumed from nor pruned. */
	assert_ok(folder_make(test_path("named/checkpoint-1")));
	put_file("named/checkpoint-1/trainer_state.json", "mine");
	assert_program(2, "exists and was not made by bertc", TUNE("named", "--num_train_steps 2"));
	assert_mine("named/checkpoint-1/trainer_state.json");
	assert_ok(folder_remove(test_path("named")));
}

static void links_are_not_followed(void **state)
{
	(void)state;
	static const char *const names[] = {"metrics.jsonl", "report.html", "settings.json", "samples.jsonl"};
	put_file("target", "mine");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[64];
		snprintf(path, sizeof path, "linked/%s", names[i]);
		assert_ok(folder_make(test_path("linked")));
		assert_int_equal(symlink("../target", test_path(path)), 0);
		assert_program(2, "is a link, which bertc did not make", TUNE("linked", "--num_train_steps 2"));
		assert_mine("target");
		assert_ok(folder_remove(test_path("linked")));
	}
}

static void put_final_meanwhile(void)
{
	assert_ok(folder_make(test_path("during/final")));
	put_file("during/final/mine.txt", "mine");
}

static void put_results_meanwhile(void)
{
	put_file("during/eval_results.txt", "mine");
}

/* What appears while the run trains is not replaced either; once it is out of the way, the same command finishes. */
static void names_that_appear_during_training(void **state)
{
	(void)state;
	assert_int_equal(program_changed_at("training", put_final_meanwhile, TUNE("during", "--num_train_steps 2")), 2);
	assert_said("during/final' exists and was not made by bertc");
	assert_mine("during/final/mine.txt");
	assert_ok(folder_remove(test_path("during/final")));
	assert_int_equal(program_changed_at("resuming", put_results_meanwhile, TUNE("during", "--num_train_steps 2")), 2);
	assert_said("during/eval_results.txt' exists and was not made by bertc");
	assert_mine("during/eval_results.txt");
	assert_int_equal(unlink(test_path("during/eval_results.txt")), 0);
	assert_program(0, "finished", TUNE("during", "--num_train_steps 2"));
}

/* A run of bertc 0.1.0 has no list of its files: its names count as its own. */
static void a_run_without_a_list(void **state)
{
	(void)state;
	assert_program(0, "finished", TUNE("unlisted", "--num_train_steps 2 --test %s/dev.tsv --test later=%s/dev.tsv"), folder,
		       folder);
	assert_ok(file_write(test_path("unlisted/.bertc-files"), "", 0));
	assert_program(3, ".bertc-files': the list of what bertc wrote is empty", "verify %s/unlisted", folder);
	assert_int_equal(unlink(test_path("unlisted/.bertc-files")), 0);
	assert_int_equal(unlink(test_path("unlisted/later/.bertc-files")), 0);
	assert_program(0, "", TUNE("unlisted", "--num_train_steps 2 --plan"));
	assert_program(0, "had finished before",
		       TUNE("unlisted", "--num_train_steps 2 --test %s/dev.tsv --test later=%s/dev.tsv"), folder, folder);
	assert_int_equal(unlink(test_path("unlisted/.bertc-files")), 0);
	put_file("unlisted/notes.txt", "mine");
	assert_program(0, "finished", TUNE("unlisted", "--num_train_steps 2 --fresh"));
	assert_mine("unlisted/notes.txt");
	assert_false(file_exists(test_path("unlisted/predict.txt")));
	assert_false(file_exists(test_path("unlisted/later")));
}

/* --fresh clears a sweep's runs, and leaves what is beside their files. */
static void notes_in_a_sweep(void **state)
{
	(void)state;
	assert_program(0, "", TUNE("swept", "--num_train_steps 2 --sweep seed=1,2"));
	put_file("swept/seed=1/notes.txt", "mine");
	assert_program(0, "", TUNE("swept", "--num_train_steps 2 --sweep seed=3 --fresh"));
	assert_mine("swept/seed=1/notes.txt");
	assert_false(file_exists(test_path("swept/seed=1/final")));
	assert_false(file_exists(test_path("swept/seed=2")));
}

/* Megatron's shards, and somebody's PREFIX.json. */
static void shards_of_others(void **state)
{
	(void)state;
	static const char *const names[] = {"shards/text.bin", "shards/text.idx", "shards/text.json"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		assert_ok(folder_make(test_path("shards")));
		put_file(names[i], "mine");
		assert_program(2, "exists and was not made by bertc",
			       "prepare --corpus %s --vocab_file %s/base/final/vocab.txt --out %s/shards/text", corpus, folder,
			       folder);
		assert_mine(names[i]);
		assert_ok(folder_remove(test_path("shards")));
	}
	for (int i = 0; i < 2; i++)
		assert_program(0, "", "prepare --corpus %s --vocab_file %s/base/final/vocab.txt --out %s/shards/text", corpus,
			       folder, folder);
	assert_false(file_exists(test_path("shards/.bertc-files")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_user_keeps_under_our_names),
		cmocka_unit_test(a_run_that_hardly_began),
		cmocka_unit_test(other_names_of_a_run),
		cmocka_unit_test(links_are_not_followed),
		cmocka_unit_test(names_that_appear_during_training),
		cmocka_unit_test(a_run_without_a_list),
		cmocka_unit_test(notes_in_a_sweep),
		cmocka_unit_test(shards_of_others),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
