/* What bertc writes as a config file (settings.json of a run, --print_config) is read by --config, and gives the same settings.
 */
#include <unistd.h>
#include "cmd/labeled_files.h"

static char folder[128]; /* the test folder, short for command lines */

static int setup(void **state)
{
	if (small_run_make(state, 31) != 0)
		return -1;
	snprintf(folder, sizeof folder, "%.120s", test_folder);
	if (labeled_files_make("cpu") != 0)
		return -1;
	/* A vocabulary that keeps upper case, as the file beside it says, not as an option does. */
	struct buffer vocabulary = {0};
	static const char keeps[] = "{\"do_lower_case\": false}";
	assert_ok(folder_make(test_path("cased")));
	assert_ok(file_read(test_path("base/data/vocab.txt"), 1 << 16, &vocabulary));
	assert_ok(file_write(test_path("cased/vocab.txt"), vocabulary.data, vocabulary.size));
	assert_ok(file_write(test_path("cased/tokenizer_config.json"), keeps, strlen(keeps)));
	buffer_release(&vocabulary);
	return 0;
}

#define COMMON "--threads 1 --precision fp32 --no_progress "

/* Without the comments, which say where a value is from. */
static void printed_settings(struct buffer *out)
{
	buffer_clear(out);
	for (char *rest = program_output.data, *line; (line = strtok_r(rest, "\n", &rest));) {
		const char *comment = strstr(line, "  # ");
		if (*line != '#')
			buffer_append(out, line, comment ? (size_t)(comment - line) : strlen(line));
		buffer_char(out, '\n');
	}
}

static void assert_same_runs(const char *a, const char *b)
{
	static const char *const names[] = {"settings.json", "final/model.safetensors"};
	char left[512], right[512];
	for (int i = 0; i < 2; i++) {
		snprintf(left, sizeof left, "%s/%s/%s", folder, a, names[i]);
		snprintf(right, sizeof right, "%s/%s/%s", folder, b, names[i]);
		assert_same_file(left, right);
	}
}

/* Reads a config file in place of a command's options: the run must be the same as `out`. */
static void assert_repeats(const char *name, const char *file, const char *out, const char *again)
{
	assert_program(0, "memory plan", "%s --config %s/%s --out %s/%s --plan", name, folder, file, folder, again);
	assert_program(0, "finished", "%s --config %s/%s --out %s/%s --no_progress", name, folder, file, folder, again);
	assert_same_runs(out, again);
}

/* Keeps what --print_config has printed as printed.conf, which must print the same. */
static void keep_printed(const char *name)
{
	struct buffer first = {0}, second = {0};
	assert_ok(file_write(test_path("printed.conf"), program_output.data, program_output.size));
	printed_settings(&first);
	assert_program(0, "", "%s --config %s/printed.conf --print_config", name, folder);
	printed_settings(&second);
	assert_string_equal(buffer_string(&first), buffer_string(&second));
	buffer_release(&first);
	buffer_release(&second);
}

/* Runs a command into FOLDER/<out>, and again from settings.json, from what --print_config makes of the command line, and from
 * what it makes of settings.json. */
static void assert_read_back(const char *command, const char *out, const char *options)
{
	char name[16], settings[64], again[3][64];
	assert_int_equal(sscanf(command, "%15s", name), 1);
	snprintf(settings, sizeof settings, "%s/settings.json", out);
	for (int i = 0; i < 3; i++)
		snprintf(again[i], sizeof again[i], "%s-%d", out, i);
	assert_program(0, "finished", "%s --out %s/%s %s " COMMON, command, folder, out, options);
	assert_repeats(name, settings, out, again[0]);
	assert_program(0, "", "%s %s " COMMON "--print_config", command, options);
	keep_printed(name);
	assert_repeats(name, "printed.conf", out, again[1]);
	assert_program(0, "", "%s --config %s/%s --print_config", name, folder, settings);
	keep_printed(name);
	assert_repeats(name, "printed.conf", out, again[2]);
}

static void fine_tuning(void **state)
{
	char command[512];
	snprintf(command, sizeof command,
		 "finetune --task classification --model %s/base --train %s/classification.train --dev %s/classification.dev "
		 "--max_seq_length 24",
		 folder, folder, folder);
	assert_read_back(command, "epochs", "--num_train_epochs 1");
	assert_read_back(command, "batches",
			 "--per_device_train_batch_size 4 --gradient_accumulation_steps 2 --max_steps 3 "
			 "--warmup_proportion 0.4");
	char teacher[256];
	snprintf(teacher, sizeof teacher, "--teacher %s/epochs --distill_alpha 0.7 --num_train_steps 2", folder);
	assert_read_back(command, "taught", teacher);
	/* What is given still wins over what is read, and two ways to say the same are refused where a person wrote both. */
	assert_program(0, "for 3 steps", "finetune --config %s/epochs/settings.json --num_train_steps 3 --out %s/x --plan",
		       folder, folder);
	assert_program(0, "for 6 steps", "finetune --config %s/epochs/settings.json --num_train_epochs 2 --out %s/x --plan",
		       folder, folder);
	assert_ok(file_write(test_path("both.conf"), "num_train_steps = 3\nnum_train_epochs = 2\n", 41));
	assert_program(2, "give either --num_train_steps or --num_train_epochs, not both", "%s --config %s/both.conf --out %s/x",
		       command, folder, folder);
	assert_program(2, "--distill_alpha has no effect without --teacher", "%s --distill_alpha 0.7 --out %s/x", command,
		       folder);
}

static void pre_training(void **state)
{
	char command[512], options[512];
	snprintf(command, sizeof command,
		 "pretrain --corpus %s --model %s --vocab_size 80 --train_batch_size 8 --max_seq_length 16", corpus, config);
	assert_read_back(command, "part", "--num_train_epochs 0.05 --warmup_proportion 0.5");
	snprintf(options, sizeof options, "--init_checkpoint %s/base --recipe fast --num_train_steps 2", folder);
	snprintf(command, sizeof command, "pretrain --corpus %s --train_batch_size 8 --max_seq_length 16", corpus);
	assert_read_back(command, "further", options);
	snprintf(command, sizeof command, "pretrain --corpus %s --model %s --train_batch_size 8 --vocab_file %s/cased/vocab.txt",
		 corpus, config, folder);
	assert_read_back(command, "phases",
			 "--phase1.max_seq_length 16 --phase1.num_train_epochs 0.05 --phase2.max_seq_length 24 "
			 "--phase2.num_train_steps 2 --phase2.warmup_proportion 0.5");
}

/* Nobody asked for what a recipe says about a text, or for the size of a vocabulary that was given. */
static void a_recipe_with_shards(void **state)
{
	assert_program(75, "",
		       "pretrain --data %s/part/data/train --vocab_file %s/part/data/vocab.txt --model %s --recipe fast "
		       "--num_train_steps 2 --max_seq_length 16 --stop_at_step 1 --out %s/shards " COMMON,
		       folder, folder, config, folder);
	assert_program(0, "", "pretrain --config %s/shards/settings.json --out %s/shards-0 --plan", folder, folder);
	assert_null(strstr(buffer_string(&program_errors), "has no effect"));
	assert_program(2, "--drop_copied_documents has no effect on --data",
		       "pretrain --config %s/shards/settings.json --drop_copied_documents --out %s/shards-0 --plan", folder,
		       folder);
}

/* Its steps follow from the clock, so only the settings that somebody gave are the same. A slow machine needs all of the time for
 * its preparations. */
static void a_run_for_a_given_time(void **state)
{
	assert_program(0, "finished",
		       "pretrain --corpus %s --model %s --vocab_size 80 --max_seq_length 16 --time 5s --out %s/timed " COMMON,
		       corpus, config, folder);
	assert_program(0, "  time                         2.5s      2.5s",
		       "pretrain --config %s/timed/settings.json --out %s/timed-0 --plan", folder, folder);
	assert_program(0, "", "pretrain --config %s/timed/settings.json --out %s/timed-1 --print_config", folder, folder);
	assert_ok(file_write(test_path("printed.conf"), program_output.data, program_output.size));
	assert_program(0, "  time                         2.5s      2.5s", "pretrain --config %s/printed.conf --plan", folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fine_tuning),
		cmocka_unit_test(pre_training),
		cmocka_unit_test(a_recipe_with_shards),
		cmocka_unit_test(a_run_for_a_given_time),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
