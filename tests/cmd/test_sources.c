/* The files that a run reads: how they may be named, that a resumed run finds the same ones again, and that a run never removes
 * them. */
#include <unistd.h>
#include "cmd/small_run.h"

static char folder[128], eval[160], other[160]; /* the test folder, and two texts to evaluate on */

#define OPTIONS                                                                                                                  \
	"--train_batch_size 4 --max_seq_length 16 --precision fp32 --threads 1 --no_progress --vocab_size 80 --num_train_steps " \
	"4 --eval_steps 2 --save_checkpoints_steps 2 "
#define RUN(out, more) "pretrain --corpus %s --model %s --out %s/" out " " OPTIONS more, corpus, config, folder

static int setup(void **state)
{
	if (small_run_make(state, 9) != 0)
		return -1;
	snprintf(folder, sizeof folder, "%.120s", test_folder);
	snprintf(eval, sizeof eval, "%s/eval.txt", folder);
	snprintf(other, sizeof other, "%s/other.txt", folder);
	assert_ok(file_write(eval, "the cat sees a river.\na dog likes the moon.\n", 44));
	assert_ok(file_write(other, "nobody finds some bread.\nmy sister paints the house.\n", 52));
	return 0;
}

/* A run prepared as instances and as shards, to have files of both kinds. */
static void prepared(void **state)
{
	assert_program(0, "", RUN("first", "--eval_corpus %s"), eval);
	for (int i = 1; i <= 2; i++)
		assert_program(0, "",
			       "instances --corpus %s --vocab_file %s/first/data/vocab.txt --max_seq_length 16 --seed %d --out "
			       "%s/%d.tfrecord",
			       corpus, folder, i, folder, i);
	assert_program(0, "", "prepare --corpus %s --vocab_file %s/first/data/vocab.txt --out %s/shards", corpus, folder, folder);
}

/* --fresh does not remove what it is to read, whatever names it. */
static void fresh_keeps_sources(void **state)
{
	static const char *const named[] = {"--data %s/first/data/train",
					    "--data %s/first/data/train:0.5",
					    "--eval_data x=%s/first/data/evaluation",
					    "--eval_corpus %s/first/data/vocab.txt",
					    "--input_file %s/first/data/vocab.txt",
					    "--eval_file a=%s/first/data/vocab.txt"};
	for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
		char option[256];
		snprintf(option, sizeof option, named[i], folder);
		assert_program(2, "is the folder that --fresh clears, or inside it",
			       "pretrain --vocab_file %s/corpus.txt --model %s --out %s/first --fresh %s " OPTIONS, folder,
			       config, folder, option);
		assert_true(file_exists(test_path("first/data/train.bin")));
	}
	struct buffer text = {0};
	buffer_format(&text, "[phase 1]\nnum_train_steps = 1\n[phase 2]\ninput_file = %s/first/data/vocab.txt\n", folder);
	assert_ok(file_write(test_path("phases.conf"), text.data, text.size));
	buffer_release(&text);
	assert_program(2, "is the folder that --fresh clears, or inside it",
		       "pretrain --config %s/phases.conf --corpus %s --model %s --out %s/first --fresh --threads 1", folder,
		       corpus, config, folder);
	assert_true(file_exists(test_path("first/data/train.bin")));
	assert_program(2, "is the folder that --fresh clears, or inside it",
		       RUN("first", "--init_checkpoint %s/first/final/.. --fresh"), folder);
	assert_true(file_exists(test_path("first/final/model.safetensors")));
}

/* Nor does a run that makes its data folder again. */
static void remaking_keeps_sources(void **state)
{
	assert_program(0, "nothing was trained", RUN("planned", "--plan"));
	assert_program(2, "would be replaced", RUN("planned", "--vocab_file %s/planned/data/vocab.txt"), folder);
	assert_program(
		2, "would be replaced",
		"pretrain --data %s/planned/data/train --vocab_file %s/first/data/vocab.txt --model %s --out %s/planned " OPTIONS,
		folder, folder, config, folder);
	assert_program(0, "finished", RUN("planned", ""));
}

/* Google's flags take lists with commas; a resumed run finds the files from any folder. */
/* Runs the program in a folder of the test folder, so that relative paths are those of files there. */
static void assert_program_in(const char *inside, int expected, const char *command)
{
	char here[PATH_BYTES], *path = realpath(getenv("BERTC") ? getenv("BERTC") : "build/bertc", NULL);
	const char *before = getenv("BERTC");
	assert_true(path && getcwd(here, sizeof here) && chdir(test_path(inside)) == 0);
	setenv("BERTC", path, 1);
	int status = program("%s", command);
	assert_int_equal(chdir(here), 0);
	if (before)
		setenv("BERTC", before, 1);
	else
		unsetenv("BERTC");
	free(path);
	if (status != expected)
		fail_msg("%s\nexit status %d:\n%s", command, status, buffer_string(&program_errors));
}

static void assert_program_there(int expected, const char *command)
{
	assert_program_in(".", expected, command);
}

static void lists_with_commas(void **state)
{
	char command[1200], more[900];
	snprintf(more, sizeof more, "--vocab_file %s/first/data/vocab.txt --model %s " OPTIONS, folder, config);
	assert_program(0, "finished", "pretrain --input_file %s/1.tfrecord,%s/2.tfrecord --out %s/whole %s", folder, folder,
		       folder, more);
	snprintf(command, sizeof command,
		 "pretrain --input_file 1.tfrecord,2.tfrecord --eval_file 1.tfrecord,2.tfrecord --eval_data wiki.v1=shards "
		 "--stop_at_step 2 --out part %s",
		 more);
	assert_program_there(75, command);
	assert_program(0, "finished", "pretrain --out %s/part --threads 1", folder);
	assert_same_file(test_path("whole/final/model.safetensors"), test_path("part/final/model.safetensors"));
	/* The same for one phase, also where --fresh looks at what the run reads. */
	snprintf(command, sizeof command,
		 "pretrain --phase1.input_file 1.tfrecord,2.tfrecord --fresh --stop_at_step 2 --out part %s", more);
	assert_program_there(75, command);
	assert_program(0, "finished", "pretrain --out %s/part --threads 1", folder);
	assert_same_file(test_path("whole/final/model.safetensors"), test_path("part/final/model.safetensors"));
}

/* A folder called lang=en is no evaluation set called lang. */
static void equals_signs_in_folders(void **state)
{
	char command[1200];
	assert_ok(folder_make(test_path("lang=en")));
	assert_int_equal(symlink("../corpus.txt", test_path("lang=en/text.txt")), 0);
	snprintf(command, sizeof command, "pretrain --corpus lang=en/*.txt --stop_at_step 2 --out hive --model %s " OPTIONS,
		 config);
	assert_program_there(75, command);
	assert_program(0, "finished", "pretrain --out %s/hive --corpus '%s/lang=en/*.txt' --threads 1", folder, folder);
}

/* The same file under another path is the same text; what comes through a pipe cannot be compared, and a warning says that it is
 * not read again. */
static void other_spellings(void **state)
{
	assert_program(75, "", RUN("spelled", "--stop_at_step 1"));
	assert_program(75, "", "pretrain --corpus %s/./corpus.txt --out %s/spelled --stop_at_step 2 --threads 1", folder, folder);
	assert_program(75, "", "pretrain --corpus %s/first/../corpus.txt --out %s/spelled --stop_at_step 3 --threads 1", folder,
		       folder);
	assert_program(4, "the corpus has changed", "pretrain --corpus %s --out %s/spelled --threads 1", eval, folder);
	assert_said("leave --corpus out to resume");
	assert_program(0, "finished", "pretrain --out %s/spelled --threads 1", folder);
	assert_program(
		75, "",
		"pretrain --corpus - --vocab_file %s/first/data/vocab.txt --model %s --out %s/piped --stop_at_step 1 " OPTIONS
		"<%s",
		folder, config, folder, corpus);
	assert_program(0, "--corpus -: not reading standard input", "pretrain --corpus - --out %s/piped --threads 1 <%s", folder,
		       eval);
}

/* "*" stands for the run's own folder, too, whether a shell or the program expands it. */
static void runs_among_the_texts(void **state)
{
	static const char *const patterns[] = {"*", "'*'"};
	char command[1200], name[32];
	assert_ok(folder_make(test_path("texts")));
	assert_int_equal(symlink("../corpus.txt", test_path("texts/text.txt")), 0);
	for (int i = 0; i < 2; i++) {
		for (int start = 0; start < 2; start++) {
			static const char *const more[] = {"--stop_at_step 2", ""};
			snprintf(command, sizeof command, "pretrain --corpus %s --model ../config.json --out run%d %s " OPTIONS,
				 patterns[i], i, more[start]);
			assert_program_in("texts", start == 0 ? 75 : 0, command); /* the second resumes */
		}
		snprintf(name, sizeof name, "texts/run%d/data/train.bin", i);
		assert_same_file(test_path("spelled/data/train.bin"), test_path(name));
	}
	assert_ok(folder_remove(test_path("texts")));
}

#define PIPED "pretrain --corpus - --vocab_file %s/first/data/vocab.txt --model %s --out %s/%s " OPTIONS

/* A plan has read other text from its pipe than the run that follows it; its ranks all train on that of the first. */
static void plans_of_pipes(void **state)
{
	assert_program(0, "", PIPED "--plan <%s", folder, config, folder, "piped_plan", corpus);
	assert_program(0, "making it again", PIPED "--ranks 2 <%s", folder, config, folder, "piped_plan", eval);
	assert_null(strstr(buffer_string(&program_errors), "not reading standard input"));
	assert_program(0, "", PIPED "<%s", folder, config, folder, "unplanned_pipe", eval);
	assert_same_file(test_path("piped_plan/data/train.bin"), test_path("unplanned_pipe/data/train.bin"));
	assert_program(0, "", RUN("plan_of_eval", "--eval_corpus - --plan <%s"), other);
	assert_program(0, "making it again", RUN("plan_of_eval", "--eval_corpus - <%s"), eval);
}

/* What was prepared for another evaluation text, by a plan, is not taken for the run's own. */
static void evaluated_on_the_recorded_text(void **state)
{
	assert_program(75, "", RUN("recorded", "--eval_corpus %s --stop_at_step 2"), eval);
	assert_program(0, "its text has changed", "pretrain --out %s/recorded --eval_corpus %s --plan --threads 1", folder,
		       other);
	assert_program(0, "its text has changed", "pretrain --out %s/recorded --threads 1", folder);
	assert_program(0, "finished", RUN("unplanned", "--eval_corpus %s"), eval);
	assert_true(metric_at(test_path("recorded/metrics.jsonl"), 4, "eval_loss") ==
		    metric_at(test_path("unplanned/metrics.jsonl"), 4, "eval_loss"));
	/* Without the text, its shards are used. */
	assert_program(75, "", RUN("gone", "--eval_corpus %s --stop_at_step 2"), other);
	assert_int_equal(unlink(other), 0);
	assert_program(0, "finished", "pretrain --out %s/gone --threads 1", folder);
	assert_program(75, "", RUN("typed", "--eval_corpus - --stop_at_step 2 <%s"), eval);
	assert_program(0, "--eval_corpus -: not reading standard input",
		       "pretrain --out %s/typed --eval_corpus - --threads 1 <%s", folder, corpus);
}

/* A run that continues another one takes its vocabulary, however often and on however many ranks it is started. */
static void the_vocabulary_of_another_run(void **state)
{
	/* Not the vocabulary that would be learned from the corpus. */
	assert_ok(folder_make(test_path("small")));
	assert_program(0, "", "vocab --corpus %s --vocab_size 60 --out %s/small/vocab.txt", corpus, folder);
	assert_program(75, "", RUN("begun", "--vocab_file %s/small/vocab.txt --stop_at_step 2"), folder);
	static const char *const ways[] = {
		"--resume_from %s/begun",
		"--phase2 --phase1_end_step 2 --max_seq_length 16 --num_train_steps 2 --init_checkpoint %s/begun"};
	for (int i = 0; i < 2; i++) {
		char way[300];
		snprintf(way, sizeof way, ways[i], folder);
		assert_program(0, "nothing was trained", "pretrain --corpus %s %s --out %s/next%d --plan --threads 1", corpus,
			       way, folder, i);
		assert_program(0, "", "pretrain --corpus %s %s --out %s/next%d --threads 1", corpus, way, folder, i);
		assert_program(0, "", "pretrain --corpus %s %s --out %s/ranks%d --ranks 2 --threads 1", corpus, way, folder, i);
		char vocab[64];
		snprintf(vocab, sizeof vocab, "ranks%d/final/vocab.txt", i);
		assert_same_file(test_path(vocab), test_path("small/vocab.txt"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prepared),
		cmocka_unit_test(fresh_keeps_sources),
		cmocka_unit_test(remaking_keeps_sources),
		cmocka_unit_test(lists_with_commas),
		cmocka_unit_test(equals_signs_in_folders),
		cmocka_unit_test(other_spellings),
		cmocka_unit_test(runs_among_the_texts),
		cmocka_unit_test(plans_of_pipes),
		cmocka_unit_test(evaluated_on_the_recorded_text),
		cmocka_unit_test(the_vocabulary_of_another_run),
	};
	return cmocka_run_group_tests_name("sources", tests, setup, program_teardown);
}
