/* Resuming a run: on another number of threads, in another precision, on another device, from an older checkpoint, in
 * another folder, after a kill, within a time limit. */
#include <math.h>
#include <sys/time.h>
#include <unistd.h>
#include "base/json.h"
#include "base/rng.h"
#include "cmd/small_run.h"

static int setup(void **state)
{
	return small_run_make(state, 3);
}

/* A small run into test_folder/<out>; `more` are further options. */
#define RUN(out, more)                                                                                                           \
	"pretrain --corpus %s --model %s --out %s/" out " --vocab_size 80 --train_batch_size 8 "                                 \
	"--max_seq_length 32 --num_train_steps 12 --learning_rate 1e-2 --num_warmup_steps 2 --log_steps 1 "                      \
	"--eval_steps 4 --save_checkpoints_steps 4 " more,                                                                       \
		corpus, config, test_folder

static double loss_at(const char *path, int64_t step)
{
	return metric_at(path, step, "loss");
}

/* Each step's loss is that of an uninterrupted run, within the tolerance of the number format. */
static void assert_same_course(const char *run, double tolerance)
{
	char path[160];
	snprintf(path, sizeof path, "%s/metrics.jsonl", run);
	for (int step = 1; step <= 12; step++)
		assert_near(loss_at(test_path("straight/metrics.jsonl"), step), loss_at(test_path(path), step), tolerance);
}

static void expect_said(const char *part, bool expected)
{
	bool said = strstr(buffer_string(&program_errors), part) != NULL;
	if (said != expected)
		fail_msg("'%s' was %ssaid:\n%s", part, said ? "" : "not ", buffer_string(&program_errors));
}

/* A model with sizes that FP8 does not accept. */
static const char *narrow_config(void)
{
	static char path[160];
	snprintf(path, sizeof path, "%s", test_path("narrow.json"));
	static const char text[] = "{\"model_type\": \"bert\", \"hidden_size\": 24, \"num_hidden_layers\": 1, "
				   "\"num_attention_heads\": 2, \"intermediate_size\": 64}";
	assert_ok(file_write(path, text, sizeof text - 1));
	return path;
}

static void test_other_threads_are_exact(void **state)
{
	assert_program(0, "finished", RUN("straight", "--precision fp32 --threads 2"));
	assert_program(75, "", RUN("threads", "--precision fp32 --threads 2 --stop_at_step 5"));
	assert_program(0, "resuming from", RUN("threads", "--precision fp32 --threads 1"));
	expect_said("to rounding", false);
	assert_same_file(test_path("straight/checkpoint-12/model.safetensors"),
			 test_path("threads/checkpoint-12/model.safetensors"));
	assert_same_file(test_path("straight/checkpoint-12/optimizer.safetensors"),
			 test_path("threads/checkpoint-12/optimizer.safetensors"));
	assert_same_course("threads", 0);
}

/* A run whose vocabulary is not a vocab.txt. */
static void test_bpe_is_exact(void **state)
{
#define RUN_BPE(out, more)                                                                                                       \
	"pretrain --corpus %s --model tiny --form roberta --out %s/" out " --vocab_size 290 --train_batch_size 8 "               \
	"--max_seq_length 32 --num_train_steps 8 --learning_rate 1e-2 --save_checkpoints_steps 4 " more,                         \
		corpus, test_folder
	static const char *const names[] = {"tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json"};
	struct buffer manifest = {0};
	assert_program(0, "finished", RUN_BPE("pairs", "--precision fp32"));
	assert_program(75, "", RUN_BPE("pairs2", "--precision fp32 --stop_at_step 3"));
	assert_program(0, "resuming from", RUN_BPE("pairs2", "--precision fp32"));
	assert_same_file(test_path("pairs/checkpoint-8/model.safetensors"), test_path("pairs2/checkpoint-8/model.safetensors"));
	assert_ok(file_read(test_path("pairs/final/MANIFEST.json"), 1 << 16, &manifest));
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[160];
		snprintf(path, sizeof path, "pairs/final/%s", names[i]);
		assert_true(file_exists(test_path(path)));
		assert_non_null(strstr(buffer_string(&manifest), names[i]));
	}
	assert_program(2, "no evaluation set of this name", RUN_BPE("none", "--held_out_fraction 0 --best_by x --plan"));
	/* It keeps upper case. */
	assert_ok(file_read(test_path("pairs/final/README.md"), 1 << 16, &manifest));
	assert_non_null(strstr(buffer_string(&manifest), ", a vocabulary of 290 entries"));
	assert_non_null(strstr(buffer_string(&manifest), "| cased | true |"));
	buffer_release(&manifest);
}

static void test_other_devices_go_on(void **state)
{
	assert_program(75, "", RUN("device", "--precision fp32 --stop_at_step 4"));
	assert_program(75, "to rounding, not bit for bit", RUN("device", "--device ref --stop_at_step 8"));
	assert_program(0, "to rounding, not bit for bit", RUN("device", "--device cpu --precision fp32"));
	assert_same_course("device", 2e-4);
}

static void test_other_precisions_go_on(void **state)
{
	assert_program(75, "", RUN("precision", "--precision fp32 --stop_at_step 4"));
	int status = program(RUN("precision", "--precision bf16 --stop_at_step 8"));
	if (status == 2) {
		expect_said("bf16", true); /* this processor does not support it */
		skip();
	}
	assert_int_equal(status, 75);
	expect_said("to rounding, not bit for bit", true);
	assert_program(0, "to rounding, not bit for bit", RUN("precision", "--precision fp32"));
	assert_same_course("precision", 0.1);
	/* A start without the option uses what the first start requested. */
	assert_program(75, "", RUN("recorded", "--precision fp32 --stop_at_step 4"));
	assert_program(0, "resuming from", RUN("recorded", ""));
	expect_said("to rounding", false);
	assert_same_course("recorded", 0);
}

/* Scales are computed from the values that they scale: a resumed run needs nothing but the weights. */
static void test_fp8_is_exact(void **state)
{
	assert_program(0, "FP8 simulated", RUN("fp8", "--device cpu --precision fp8 --threads 2"));
	assert_program(75, "", RUN("fp8-halves", "--device cpu --precision fp8 --threads 2 --stop_at_step 5"));
	assert_program(0, "resuming from", RUN("fp8-halves", "--device cpu --precision fp8 --threads 1"));
	expect_said("to rounding", false);
	assert_same_file(test_path("fp8/checkpoint-12/model.safetensors"),
			 test_path("fp8-halves/checkpoint-12/model.safetensors"));
	/* It differs from fp32. */
	assert_same_course("fp8", 0.2);
	assert_true(loss_at(test_path("straight/metrics.jsonl"), 12) != loss_at(test_path("fp8/metrics.jsonl"), 12));
	assert_program(2, "multiples of 16, but 'hidden_size' is 24",
		       "pretrain --corpus %s --model %s --out %s/narrow --device cpu --precision fp8 --num_train_steps 1", corpus,
		       narrow_config(), test_folder);
}

static void test_from_an_older_checkpoint(void **state)
{
	assert_program(0, "finished", RUN("older", "--precision fp32"));
	/* Nothing is set aside for a run that cannot start. */
	assert_program(4, "seed", RUN("older", "--seed 9 --resume_from %s/older/checkpoint-8"), test_folder);
	assert_true(file_exists(test_path("older/checkpoint-12/MANIFEST.json")));
	assert_program(75, "superseded-checkpoint-12", RUN("older", "--resume_from %s/older/checkpoint-8 --stop_at_step 10"),
		       test_folder);
	assert_true(file_exists(test_path("older/superseded-checkpoint-12/MANIFEST.json")));
	/* The same command again resumes where the run stopped, not from step 8 again. */
	assert_program(0, "checkpoint-10", RUN("older", "--resume_from %s/older/checkpoint-8"), test_folder);
	assert_same_file(test_path("straight/checkpoint-12/model.safetensors"),
			 test_path("older/checkpoint-12/model.safetensors"));
	assert_same_course("older", 0);
	/* Even if the checkpoint that it began from has been removed since. */
	assert_ok(folder_remove(test_path("older/checkpoint-8")));
	assert_program(0, "finished", RUN("older", "--resume_from %s/older/checkpoint-8"), test_folder);
}

static void test_from_another_folder(void **state)
{
	assert_program(0, "straight/checkpoint-8", RUN("branch", "--resume_from %s/straight/checkpoint-8"), test_folder);
	assert_same_file(test_path("straight/checkpoint-12/model.safetensors"),
			 test_path("branch/checkpoint-12/model.safetensors"));
	assert_true(isnan(loss_at(test_path("branch/metrics.jsonl"), 8)));
	assert_near(loss_at(test_path("straight/metrics.jsonl"), 9), loss_at(test_path("branch/metrics.jsonl"), 9), 0);
	assert_true(file_exists(test_path("straight/checkpoint-12/MANIFEST.json")));
	/* A run folder stands for its newest checkpoint. */
	assert_program(0, "straight/checkpoint-12", RUN("newest", "--resume_from %s/straight"), test_folder);
	/* A folder that has a run of its own is not mixed with another run. */
	assert_program(4, "another run", RUN("threads", "--resume_from %s/straight/checkpoint-8"), test_folder);
	assert_program(2, "neither a checkpoint", RUN("nothing", "--resume_from %s/corpus.txt"), test_folder);
	assert_program(2, "the run has no checkpoint-9999", RUN("straight", "--resume_step 9999"));
	assert_said("has checkpoint-");
	assert_program(2, "or inside it", RUN("straight", "--fresh --resume_from %s/straight/checkpoint-8"), test_folder);
	/* Settings that would make it another run are refused as always. */
	assert_program(4, "seed", RUN("seed", "--seed 9 --resume_from %s/straight/checkpoint-8"), test_folder);
}

static void test_a_killed_run_leaves_no_lock(void **state)
{
	static char arguments[4096], line[9000];
	snprintf(arguments, sizeof arguments, RUN("killed", "--precision fp32 --num_train_steps 100000 --eval_steps 0"));
	const char *bertc = getenv("BERTC");
	snprintf(line, sizeof line,
		 "%s %s >/dev/null 2>%s/errors & pid=$!; n=0; "
		 "while [ ! -e %s/killed/checkpoint-8 ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done; "
		 "%s %s >/dev/null 2>%s/second; second=$?; kill -KILL $pid; wait $pid; exit $second",
		 bertc ? bertc : "build/bertc", arguments, test_folder, test_folder, bertc ? bertc : "build/bertc", arguments,
		 test_folder);
	int status = system(line);
	assert_int_equal(WEXITSTATUS(status), 8);
	struct buffer said = {0};
	assert_ok(file_read(test_path("second"), 1 << 20, &said));
	assert_non_null(strstr(buffer_string(&said), "in use by process"));
	buffer_release(&said);
	assert_program(75, "resuming from", RUN("killed", "--num_train_steps 100000 --eval_steps 0 --max_time 0.01"));
}

/* The number of lines in a text file that start with `beginning`. */
static int count_lines(const char *path, const char *beginning)
{
	struct buffer text = {0};
	int count = 0;
	assert_ok(file_read(path, 1 << 24, &text));
	for (char *rest = text.data, *line; (line = strtok_r(rest, "\n", &rest));)
		count += strncmp(line, beginning, strlen(beginning)) == 0;
	buffer_release(&text);
	return count;
}

/* Lines logged after the newest checkpoint by a run that was killed in the middle of a line: no step appears twice, or
 * from the abandoned course. */
static void test_lines_beyond_the_checkpoint_go(void **state)
{
	char path[160];
	assert_program(75, "saved", RUN("logged", "--stop_at_step 4"));
	snprintf(path, sizeof path, "%s", test_path("logged/metrics.jsonl"));
	FILE *metrics = fopen(path, "a");
	assert_non_null(metrics);
	fputs("{\"step\":5,\"phase\":1,\"loss\":99}\n{\"step\":6,\"phase\":1,\"loss\":99}\n{\"step\":7,\"pha", metrics);
	assert_int_equal(fclose(metrics), 0);
	assert_program(0, "finished", RUN("logged", ""));
	for (int step = 1; step <= 12; step++) {
		char beginning[32];
		snprintf(beginning, sizeof beginning, "{\"step\":%d,\"phase\":1,\"loss\"", step);
		assert_int_equal(count_lines(path, beginning), 1);
		assert_true(loss_at(path, step) < 10);
	}
}

/* Files left by kills, wherever they strike, are removed at the next start. Files that only look similar stay. */
static void test_leftovers_go(void **state)
{
	static const char *const names[] = {"straight/data/.train.bin.tmp-99-0", "straight/.settings.json.tmp-12345-7",
					    "straight/.tmp-checkpoint-77-99/model.safetensors",
					    "straight/.trash-checkpoint-3/model.safetensors", "straight/.tmp-final/config.json"};
	static const char *const others[] = {"straight/.notes.tmp-mine", "straight/notes.tmp-1-2", "straight/.tmp-notes",
					     "straight/data/.x.tmp-1"};
	for (int i = 0; i < 5; i++) {
		char parent[160];
		snprintf(parent, sizeof parent, "%s", test_path(names[i]));
		*strrchr(parent, '/') = '\0';
		assert_ok(folder_make(parent));
		assert_ok(file_write(test_path(names[i]), "x", 1));
	}
	for (int i = 0; i < 4; i++)
		assert_ok(file_write(test_path(others[i]), "x", 1));
	assert_program(0, "finished", RUN("straight", ""));
	for (int i = 0; i < 5; i++)
		assert_false(file_exists(test_path(names[i])));
	for (int i = 0; i < 4; i++) {
		assert_true(file_exists(test_path(others[i])));
		assert_int_equal(unlink(test_path(others[i])), 0);
	}

	/* The folder of a killed evaluation is removed once it is a minute old, but not a younger one, nor one that is in
	 * use. */
	static const char *const folders[] = {"bertc-evaluate-killed", "bertc-evaluate-recent", "bertc-evaluate-in_use"};
	int lock;
	for (int i = 0; i < 3; i++)
		assert_ok(folder_make(test_path(folders[i])));
	assert_ok(folder_lock(test_path(folders[2]), &lock));
	for (int i = 0; i < 3; i += 2)
		assert_int_equal(utimes(test_path(folders[i]), (struct timeval[]){{1000, 0}, {1000, 0}}), 0);
	setenv("TMPDIR", test_folder, 1);
	assert_int_equal(program("evaluate --model %s/straight --corpus %s --max_seq_length 32", test_folder, corpus), 0);
	unsetenv("TMPDIR");
	assert_false(file_exists(test_path(folders[0])));
	assert_true(file_exists(test_path(folders[1])) && file_exists(test_path(folders[2])));
	folder_unlock(lock);
}

/* Data truncated during a run: a message with the file's name and exit code 3, not a bare signal. */
static void test_mapped_file_cut_short(void **state)
{
	static char line[8192];
	const char *bertc = getenv("BERTC");
	assert_int_equal(program("prepare --corpus %s --vocab_file %s/straight/data/vocab.txt --out %s/cut", corpus, test_folder,
				 test_folder),
			 0);
	snprintf(
		line, sizeof line,
		"%s pretrain --data %s/cut --vocab_file %s/straight/data/vocab.txt --model %s --out %s/cutrun --max_seq_length "
		"32 "
		"--train_batch_size 8 --num_train_steps 1000000 --eval_steps 0 --log_steps 1 >/dev/null 2>%s/said & pid=$!; n=0; "
		"while [ ! -s %s/cutrun/metrics.jsonl ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done; "
		": >%s/cut.bin; wait $pid",
		bertc ? bertc : "build/bertc", test_folder, test_folder, config, test_folder, test_folder, test_folder,
		test_folder);
	int status = system(line);
	struct buffer said = {0};
	assert_ok(file_read(test_path("said"), 1 << 20, &said));
	if (WEXITSTATUS(status) != 3 || !strstr(buffer_string(&said), "cut.bin': the file was truncated"))
		fail_msg("status %d: %s", WEXITSTATUS(status), buffer_string(&said));
	buffer_release(&said);
}

/* While text is still being read (here from a pipe that nobody writes to) there is nothing to save, but exit code 75 asks
 * to be run again. */
static void test_signal_before_training(void **state)
{
	static char line[2048];
	const char *bertc = getenv("BERTC");
	snprintf(line, sizeof line,
		 "mkfifo %s/pipe; %s pretrain --corpus %s/pipe --vocab_file %s/straight/final/vocab.txt --out %s/early "
		 ">/dev/null 2>%s/said & pid=$!; n=0; "
		 "while [ ! -e %s/early/.lock ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done; kill -USR1 $pid; wait $pid",
		 test_folder, bertc ? bertc : "build/bertc", test_folder, test_folder, test_folder, test_folder, test_folder);
	assert_int_equal(WEXITSTATUS(system(line)), 75);
	/* To learn the vocabulary, it would have to be read a second time. */
	assert_program(2, "a pipe can be read only once", "pretrain --corpus %s/pipe --out %s/learned", test_folder, test_folder);
	assert_program(2, "standard input can be read only once", "pretrain --corpus - --out %s/learned", test_folder);
}

static void test_time_limit(void **state)
{
	assert_program(75, "by the time limit", RUN("limited", "--num_train_steps 1000000 --max_time 2s --eval_steps 0"));
	assert_program(2, "not a length of time", RUN("limited", "--max_time soon"));
}

static void test_loss_scale_changes_nothing_else(void **state)
{
	assert_program(0, "finished", RUN("scaled", "--precision fp32 --loss_scale 0"));
	assert_same_file(test_path("straight/checkpoint-12/model.safetensors"),
			 test_path("scaled/checkpoint-12/model.safetensors"));
	/* A first scale that is far too large is halved until the gradients fit. (Nothing is learned: the inverse of such a
	 * scale is a denormal number, which the CPU's threads flush to 0.) */
	assert_program(0, "finished",
		       RUN("overflow", "--precision fp32 --loss_scale 0 --init_loss_scale 1e40 --num_train_steps 60"));
	double skipped = metric_at(test_path("overflow/metrics.jsonl"), 60, "skipped_steps");
	assert_true(skipped >= 1 && skipped <= 8);
	assert_program(0, "finished", RUN("reference", "--device ref --loss_scale 0"));
	assert_same_course("reference", 2e-4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_threads_are_exact),
		cmocka_unit_test(test_bpe_is_exact),
		cmocka_unit_test(test_other_devices_go_on),
		cmocka_unit_test(test_other_precisions_go_on),
		cmocka_unit_test(test_fp8_is_exact),
		cmocka_unit_test(test_from_an_older_checkpoint),
		cmocka_unit_test(test_from_another_folder),
		cmocka_unit_test(test_a_killed_run_leaves_no_lock),
		cmocka_unit_test(test_leftovers_go),
		cmocka_unit_test(test_lines_beyond_the_checkpoint_go),
		cmocka_unit_test(test_mapped_file_cut_short),
		cmocka_unit_test(test_signal_before_training),
		cmocka_unit_test(test_time_limit),
		cmocka_unit_test(test_loss_scale_changes_nothing_else),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
