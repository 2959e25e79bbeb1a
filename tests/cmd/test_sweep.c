/* `bertc finetune --sweep` as a user runs it: all runs, the best of them, a sweep that is interrupted, changed, or run on
 * ranks, and wrong commands. */
#include <unistd.h>
#include "cmd/small_run.h"

static void put_table(const char *name, int rows, int first)
{
	static const char *const who[] = {"the cat", "a dog", "the old man", "my sister", "nobody", "the sailor"};
	struct buffer text = {0};
	buffer_text(&text, "sentence\tlabel\n");
	for (int i = first; i < first + rows; i++)
		buffer_format(&text, "%s %s the moon.\t%s\n", who[i * 7 % 6], i % 2 ? "sees" : "likes", i % 2 ? "see" : "feel");
	assert_ok(file_write(test_path(name), text.data, text.size));
	buffer_release(&text);
}

static int setup(void **state)
{
	if (small_run_make(state, 3) != 0)
		return -1;
	if (program("pretrain --corpus %s --model %s --out %s/base --vocab_size 80 --train_batch_size 16 --max_seq_length 32 "
		    "--num_train_steps 2 --precision fp32 --threads 1",
		    corpus, config, test_folder) != 0)
		return -1;
	put_table("train.tsv", 32, 0);
	put_table("dev.tsv", 16, 3);
	put_table("test.tsv", 8, 1);
	return 0;
}

/* Two epochs of two steps per run. */
#define BASE                                                                                                                     \
	"finetune --task classification --model %s/base --train %s/train.tsv --max_seq_length 32 --precision fp32 --threads 1 "  \
	"--train_batch_size 16 --num_train_epochs 2 --log_steps 1 --no_progress "
#define SWEEP(out, lists, more)                                                                                                  \
	BASE "--dev %s/dev.tsv --test %s/test.tsv --out %s/" out " --sweep '" lists "' " more, test_folder, test_folder,         \
		test_folder, test_folder, test_folder
#define LISTS "lr=1e-2,0.00001 seed=1,2"

static void read_text(const char *name, struct buffer *out)
{
	assert_ok(file_read(test_path(name), 1 << 24, out));
}

static void assert_same_files(const char *one, const char *other)
{
	struct buffer a = {0}, b = {0};
	read_text(one, &a);
	read_text(other, &b);
	assert_int_equal(a.size, b.size);
	assert_memory_equal(a.data, b.data, a.size);
	buffer_release(&a);
	buffer_release(&b);
}

/* A member of sweep.json. */
static const char *recorded(const char *sweep, const char *key, char out[200])
{
	struct json_document document;
	const char *text = NULL;
	char path[PATH_BYTES];
	assert_ok(path_join(path, test_path(sweep), "sweep.json"));
	assert_ok(json_read(&document, path, 1 << 20));
	assert_ok(json_get_string(document.root, path, key, &text));
	snprintf(out, 200, "%s", text ? text : "");
	json_release(&document);
	return out;
}

static const char *const names[] = {"learning_rate=0.01,seed=1", "learning_rate=0.01,seed=2", "learning_rate=1e-5,seed=1",
				    "learning_rate=1e-5,seed=2"};

static double score_of(const char *sweep, const char *run, const char *measure)
{
	struct json_document document;
	double score = NAN;
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "%s/%s/eval_results.json", test_path(sweep), run);
	assert_ok(json_read(&document, path, 1 << 20));
	assert_ok(json_get_number(document.root, path, measure, &score));
	json_release(&document);
	return score;
}

static bool holds(const char *sweep, const char *run, const char *name)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "%s/%s/%s", test_path(sweep), run, name);
	return file_exists(path);
}

static void every_setting_is_tried_and_the_best_kept(void **state)
{
	char best[200], path[PATH_BYTES], other[PATH_BYTES];
	assert_program(0, "run 4 of 4: learning_rate=1e-5,seed=2", SWEEP("whole", LISTS, "--metric loss"));
	assert_said(": its model is in ");
	/* By the mean dev loss over the seeds, then the better seed; computed from the runs' own results. */
	double scores[4];
	for (int i = 0; i < 4; i++)
		scores[i] = score_of("whole", names[i], "eval_loss");
	int setting = scores[0] + scores[1] < scores[2] + scores[3] ? 0 : 2;
	int wanted = scores[setting] <= scores[setting + 1] ? setting : setting + 1;
	assert_string_equal(recorded("whole", "best", best), names[wanted]);
	assert_said(names[wanted]);
	for (int i = 0; i < 4; i++) {
		assert_false(holds("whole", names[i], "checkpoint-4"));
		assert_true(holds("whole", names[i], "final/config.json"));
	}
	snprintf(path, sizeof path, "whole/%s/final/model.safetensors", best);
	assert_same_files("whole/final/model.safetensors", path);
	snprintf(path, sizeof path, "whole/%s/test_results.tsv", best);
	assert_same_files("whole/test_results.tsv", path);
	snprintf(path, sizeof path, "whole/%s/eval_results.json", best);
	assert_same_files("whole/eval_results.json", path);
	assert_int_equal(program("verify %s/whole/final", test_folder), 0);
	struct buffer page = {0};
	read_text("whole/report.html", &page);
	assert_non_null(strstr(buffer_string(&page), "Means over the seeds"));
	assert_non_null(strstr(buffer_string(&page), "<svg"));
	buffer_release(&page);
	/* Again: nothing is trained. */
	assert_program(0, "4 of 4 runs are done", SWEEP("whole", LISTS, ""));
	/* A run of a sweep equals the same run alone. */
	assert_program(0, "", BASE "--dev %s/dev.tsv --out %s/alone --learning_rate 1e-5 --seed 2", test_folder, test_folder,
		       test_folder, test_folder);
	snprintf(other, sizeof other, "whole/%s/final/model.safetensors", names[3]);
	assert_same_files("alone/final/model.safetensors", other);
}

/* A file of the best run's model cannot be copied. */
static void a_failed_end_leaves_nothing(void **state)
{
	char best[200], link[PATH_BYTES];
	recorded("whole", "best", best);
	snprintf(link, sizeof link, "%s/%s/final/dangling", test_path("whole"), best);
	assert_int_equal(symlink("nowhere", link), 0);
	assert_ok(folder_remove(test_path("whole/final")));
	assert_program(2, "dangling': cannot open", SWEEP("whole", LISTS, "--metric loss"));
	assert_false(file_exists(test_path("whole/.tmp-final")));
	assert_false(file_exists(test_path("whole/final")));
	assert_int_equal(unlink(link), 0);
	assert_program(0, "4 of 4 runs are done", SWEEP("whole", LISTS, "--metric loss"));
	assert_int_equal(program("verify %s/whole/final", test_folder), 0);
}

static void an_interrupted_sweep_goes_on(void **state)
{
	char path[PATH_BYTES];
	/* Three steps at a time: stops within a run, and in the next one. */
	for (int i = 0; i < 4; i++) {
		assert_program(75, "saved", SWEEP("parts", LISTS, "--metric loss --steps_this_run 3"));
		assert_true(holds("parts", names[i], "checkpoint-3"));
	}
	assert_program(0, "3 of 4 runs are done", SWEEP("parts", LISTS, "--metric loss"));
	for (int i = 0; i < 4; i++) {
		char whole[PATH_BYTES];
		snprintf(path, sizeof path, "parts/%s/final/model.safetensors", names[i]);
		snprintf(whole, sizeof whole, "whole/%s/final/model.safetensors", names[i]);
		assert_same_files(path, whole);
	}
	assert_same_files("parts/final/model.safetensors", "whole/final/model.safetensors");
}

static void a_changed_sweep_keeps_what_it_can(void **state)
{
	assert_program(0, "run 2 of 2: learning_rate=1e-5,seed=3", SWEEP("whole", "learning_rate=0.00001 seed=2,3", ""));
	assert_said("1 of 2 runs are done");
	assert_said("3 earlier runs are no longer part of it");
	/* And back: all four runs are known. */
	assert_program(0, "4 of 4 runs are done", SWEEP("whole", LISTS, ""));
	assert_program(ERR_STATE, "--weight_decay is '0.5'", SWEEP("whole", LISTS, "--weight_decay 0.5"));
	assert_program(ERR_STATE, "--metric is 'accuracy'", SWEEP("whole", LISTS, "--metric accuracy"));
	put_table("dev.tsv", 17, 3);
	assert_program(ERR_STATE, "files that the runs read (training, dev or test sets, or the teacher) have changed",
		       SWEEP("whole", LISTS, ""));
	put_table("dev.tsv", 16, 3);
	assert_program(ERR_STATE, "holds a sweep", BASE "--dev %s/dev.tsv --out %s/whole", test_folder, test_folder, test_folder,
		       test_folder);
	assert_program(ERR_STATE, "holds another run", SWEEP("alone", LISTS, ""));
	/* --fresh removes the sweep and what it published. */
	assert_program(75, "", BASE "--dev %s/dev.tsv --out %s/whole --fresh --stop_at_step 1", test_folder, test_folder,
		       test_folder, test_folder);
	assert_false(file_exists(test_path("whole/sweep.json")));
	assert_false(holds("whole", names[0], ""));
	assert_false(file_exists(test_path("whole/test_results.tsv")));
	assert_false(file_exists(test_path("whole/final")));
}

/* A model that is replaced between the runs: their results could not be compared. */
static void a_sweep_keeps_to_its_model(void **state)
{
	assert_program(75, "saved", SWEEP("model", LISTS, "--steps_this_run 3"));
	assert_int_equal(program("pretrain --corpus %s --model %s --out %s/other --vocab_size 80 --train_batch_size 16 "
				 "--max_seq_length 32 --num_train_steps 2 --seed 9 --precision fp32 --threads 1",
				 corpus, config, test_folder),
			 0);
	assert_int_equal(rename(test_path("base"), test_path("kept")), 0);
	assert_int_equal(rename(test_path("other"), test_path("base")), 0);
	assert_program(ERR_STATE, "/base' has changed since the sweep in", SWEEP("model", LISTS, ""));
	assert_int_equal(rename(test_path("base"), test_path("other")), 0);
	assert_int_equal(rename(test_path("kept"), test_path("base")), 0);
	assert_program(75, "saved", SWEEP("model", LISTS, "--steps_this_run 3"));
	/* The same for other test examples; the dev set is covered by a_changed_sweep_keeps_what_it_can. */
	put_table("test.tsv", 9, 1);
	assert_program(ERR_STATE, "files that the runs read", SWEEP("model", LISTS, ""));
	put_table("test.tsv", 8, 1);
	assert_program(75, "saved", SWEEP("model", LISTS, "--steps_this_run 3"));
}

/* A teacher that is replaced between the runs. */
static void a_sweep_keeps_to_its_teacher(void **state)
{
#define TAUGHT(more)                                                                                                             \
	BASE "--dev %s/dev.tsv --out %s/taught --teacher %s/teacher/final --sweep seed=1,2 " more, test_folder, test_folder,     \
		test_folder, test_folder, test_folder
	assert_program(0, "finished", BASE "--out %s/teacher --seed 1", test_folder, test_folder, test_folder);
	assert_program(75, "saved", TAUGHT("--steps_this_run 3"));
	assert_program(0, "finished", BASE "--out %s/teacher --seed 2 --fresh", test_folder, test_folder, test_folder);
	assert_program(ERR_STATE, "files that the runs read", TAUGHT(""));
}

/* Models to be compared are named in --sweep only. */
static void models_are_compared(void **state)
{
	assert_program(
		0, ": its model is in ",
		"finetune --task classification --train %s/train.tsv --dev %s/dev.tsv --max_seq_length 32 --precision fp32 "
		"--threads 1 --train_batch_size 16 --num_train_epochs 1 --no_progress --out %s/models "
		"--sweep 'model=%s/base,%s/base/final'",
		test_folder, test_folder, test_folder, test_folder, test_folder);
	assert_program(ERR_USAGE, "--model is missing",
		       "finetune --task classification --train %s/train.tsv --dev %s/dev.tsv --out %s/none --sweep seed=1,2",
		       test_folder, test_folder, test_folder);
}

static void ranks_sweep_together(void **state)
{
	assert_program(75, "", SWEEP("ranks", "seed=1,2", "--ranks 2 --steps_this_run 3"));
	assert_program(0, "run 2 of 2: seed=2", SWEEP("ranks", "seed=1,2", "--ranks 2"));
	assert_said(": its model is in ");
	assert_true(file_exists(test_path("ranks/final/model.safetensors")));
	assert_program(0, "2 of 2 runs are done", SWEEP("ranks", "seed=1,2", "--ranks 2"));
}

/* Gradients that are not finite end a run; the others are still tried, and the failed run is not repeated. */
static void failed_runs_are_remembered(void **state)
{
	assert_program(ERR_NUMERIC, "the run seed=1 failed: step 3: loss ", SWEEP("failed", "seed=1,2", "--loss_scale 1e300"));
	assert_said("the run seed=2 failed");
	assert_said("no run of the sweep has a score");
	assert_program(ERR_NUMERIC, "2 of 2 runs are done", SWEEP("failed", "seed=1,2", ""));
	assert_program(0, "the best run is seed=3", SWEEP("failed", "seed=1,3", "--loss_scale 1"));
	assert_said("1 of 2 runs are done");
}

/* A file whose own name contains an equals sign is that file, as it is without --sweep. */
static void file_names_may_have_equals_signs(void **state)
{
	char here[512], bertc[600];
	const char *own = getenv("BERTC");
	put_table("a=b.tsv", 16, 3);
	assert_non_null(getcwd(here, sizeof here));
	snprintf(bertc, sizeof bertc, "%s/%s", here, own ? own : "build/bertc");
	if (!own || own[0] != '/')
		setenv("BERTC", bertc, 1);
	assert_int_equal(chdir(test_folder), 0);
	assert_program(0, "the best run is seed=1", BASE "--dev a=b.tsv --out %s/equals --sweep seed=1", test_folder, test_folder,
		       test_folder);
	assert_int_equal(chdir(here), 0);
	if (own)
		setenv("BERTC", own, 1);
	else
		unsetenv("BERTC");
}

static void mistakes_are_found_before_the_first_run(void **state)
{
#define WRONG(lists, message) assert_program(ERR_USAGE, message, SWEEP("none", lists, ""))
	WRONG("learning_rat=1", "there is no option 'learning_rat'");
	assert_said("did you mean learning_rate?");
	WRONG("learning_rate", "'learning_rate' is not NAME=VALUE,VALUE");
	WRONG("learning_rate=", "'learning_rate=' has no values");
	WRONG("seed=1,,2", "'seed=1,,2' has an empty value");
	WRONG("lr=1e-4,0.0001", "learning_rate has the value 0.0001 twice");
	WRONG("seed=1 random_seed=2", "seed is listed twice");
	WRONG("lr=0.1,-1", "--learning_rate must lie in 0..1, not '-1'");
	WRONG("task=mrpc,cola", "task cannot be swept");
	WRONG("ranks=1,2", "ranks cannot be swept");
	WRONG("few_shot=false,true", "few_shot cannot be swept");
	WRONG("", "--sweep names no option");
	assert_program(ERR_USAGE, "--sweep and --resume_step cannot be combined", SWEEP("none", "seed=1,2", "--resume_step 2"));
	WRONG("train_batch_size=8,16", "--train_batch_size is given twice");
	WRONG("num_train_steps=3,4", "--num_train_steps or --num_train_epochs");
	/* Errors that only the files and the model reveal. */
	WRONG("num_warmup_steps=0,500", "the run num_warmup_steps=500: --num_warmup_steps 500 is more than the 4 steps");
	assert_program(ERR_USAGE, "--sweep needs a dev set", BASE "--out %s/none --sweep seed=1,2", test_folder, test_folder,
		       test_folder);
	assert_false(file_exists(test_path("none")));
	assert_program(0, "2 runs, of which the first was planned", SWEEP("planned", "seed=1,2", "--plan"));
	assert_false(file_exists(test_path("planned/sweep.json")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_setting_is_tried_and_the_best_kept),
		cmocka_unit_test(a_failed_end_leaves_nothing),
		cmocka_unit_test(an_interrupted_sweep_goes_on),
		cmocka_unit_test(a_changed_sweep_keeps_what_it_can),
		cmocka_unit_test(a_sweep_keeps_to_its_model),
		cmocka_unit_test(a_sweep_keeps_to_its_teacher),
		cmocka_unit_test(models_are_compared),
		cmocka_unit_test(ranks_sweep_together),
		cmocka_unit_test(failed_runs_are_remembered),
		cmocka_unit_test(file_names_may_have_equals_signs),
		cmocka_unit_test(mistakes_are_found_before_the_first_run),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
