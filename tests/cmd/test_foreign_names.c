/* Every flag of the programs that people come from is known to `bertc pretrain`: as an option, or with a line that says
 * what becomes of it. */
#include "base/option.h"
#include "cmd/pretrain_options.h"
#include "cmd/program.h"

/* By program, as their parsers declare them. */
static const char *const google[] = {"bert_config_file",
				     "input_file",
				     "output_dir",
				     "init_checkpoint",
				     "max_seq_length",
				     "max_predictions_per_seq",
				     "do_train",
				     "do_eval",
				     "train_batch_size",
				     "eval_batch_size",
				     "learning_rate",
				     "num_train_steps",
				     "num_warmup_steps",
				     "save_checkpoints_steps",
				     "iterations_per_loop",
				     "max_eval_steps",
				     "use_tpu",
				     "tpu_name",
				     "tpu_zone",
				     "gcp_project",
				     "master",
				     "num_tpu_cores",
				     NULL};
static const char *const google_data[] = {"input_file",
					  "output_file",
					  "vocab_file",
					  "do_lower_case",
					  "do_whole_word_mask",
					  "max_seq_length",
					  "max_predictions_per_seq",
					  "random_seed",
					  "dupe_factor",
					  "masked_lm_prob",
					  "short_seq_prob",
					  NULL};
static const char *const nvidia[] = {"input_dir",
				     "config_file",
				     "output_dir",
				     "vocab_file",
				     "init_checkpoint",
				     "max_seq_length",
				     "max_predictions_per_seq",
				     "train_batch_size",
				     "learning_rate",
				     "num_train_epochs",
				     "max_steps",
				     "warmup_proportion",
				     "local_rank",
				     "seed",
				     "gradient_accumulation_steps",
				     "fp16",
				     "amp",
				     "loss_scale",
				     "log_freq",
				     "checkpoint_activations",
				     "resume_from_checkpoint",
				     "resume_step",
				     "num_steps_per_checkpoint",
				     "skip_checkpoint",
				     "phase2",
				     "resume_phase2",
				     "allreduce_post_accumulation",
				     "allreduce_post_accumulation_fp16",
				     "phase1_end_step",
				     "init_loss_scale",
				     "do_train",
				     "json-summary",
				     "use_env",
				     "disable_progress_bar",
				     "steps_this_run",
				     "profile",
				     "profile-start",
				     "num_workers",
				     "no_dense_sequence_output",
				     "disable_jit_fusions",
				     "cuda_graphs",
				     "bert_model",
				     NULL};
static const char *const nvidia_tensorflow[] = {"input_files_dir",
						"eval_files_dir",
						"dllog_path",
						"optimizer_type",
						"num_accumulation_steps",
						"display_loss_steps",
						"verbose_logging",
						"horovod",
						"report_loss",
						"manual_fp16",
						"use_xla",
						NULL};
static const char *const transformers[] = {"model_name_or_path",
					   "overwrite_output_dir",
					   "per_device_train_batch_size",
					   "per_device_eval_batch_size",
					   "weight_decay",
					   "adam_beta1",
					   "adam_beta2",
					   "adam_epsilon",
					   "max_grad_norm",
					   "lr_scheduler_type",
					   "warmup_ratio",
					   "warmup_steps",
					   "logging_steps",
					   "save_steps",
					   "save_total_limit",
					   "eval_steps",
					   "bf16",
					   "mlm_probability",
					   "train_file",
					   "validation_file",
					   "early_stopping_patience",
					   "early_stopping_threshold",
					   "dataloader_num_workers",
					   "report_to",
					   "no_cuda",
					   "gradient_checkpointing",
					   NULL};
static const char *const megatron[] = {"seq-length",   "mask-prob",        "train-iters",         "global-batch-size",
				       "lr",           "min-lr",           "lr-decay-style",      "lr-warmup-fraction",
				       "clip-grad",    "adam-eps",         "save-interval",       "eval-interval",
				       "log-interval", "micro-batch-size", "bert-no-binary-head", NULL};
static const char *const *const programs[] = {google, google_data, nvidia, nvidia_tensorflow, transformers, megatron};

/* Options of every command are not in its table. */
static bool is_common(const char *name)
{
	return !strcmp(name, "disable_progress_bar");
}

static const struct option_foreign *find_foreign(const char *name)
{
	for (const struct option_foreign *row = pretrain_foreign; row->name; row++) {
		char list[512], *save;
		snprintf(list, sizeof list, "%s", row->name);
		for (char *one = strtok_r(list, " ", &save); one; one = strtok_r(NULL, " ", &save)) {
			size_t i = 0;
			for (; one[i] && (one[i] == name[i] || (one[i] == '_' && name[i] == '-')); i++)
				;
			if (!one[i] && !name[i])
				return row;
		}
	}
	return NULL;
}

static void every_name_is_known(void **state)
{
	(void)state;
	static struct pretrain_settings settings;
	struct options options;
	int unknown = 0;
	assert_ok(options_init(&options, pretrain_options, &settings));
	for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
		for (int i = 0; programs[p][i]; i++) {
			const char *name = programs[p][i];
			if (options_find(&options, name) >= 0 || find_foreign(name) || is_common(name))
				continue;
			print_error("--%s is unknown\n", name);
			unknown++;
		}
	}
	options_release(&options);
	assert_int_equal(unknown, 0);
}

static void no_row_is_dead_and_each_says_why(void **state)
{
	(void)state;
	static struct pretrain_settings settings;
	struct options options;
	assert_ok(options_init(&options, pretrain_options, &settings));
	for (const struct option_foreign *row = pretrain_foreign; row->name; row++) {
		char list[512], *save;
		snprintf(list, sizeof list, "%s", row->name);
		for (char *one = strtok_r(list, " ", &save); one; one = strtok_r(NULL, " ", &save)) {
			if (options_find(&options, one) >= 0)
				fail_msg("--%s is an option, too", one);
			if (find_foreign(one) != row)
				fail_msg("--%s has two rows", one);
		}
		assert_true(row->answer == FOREIGN_MEANS || (row->why && strlen(row->why) > 10));
		if (row->option)
			assert_true(options_find(&options, row->option) >= 0);
		/* A name of ours in an explanation exists. */
		for (const char *at = row->why; at && (at = strstr(at, "--")) != NULL; at += 2) {
			char named[64] = "";
			size_t length = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz_0123456789");
			snprintf(named, sizeof named, "%.*s", (int)length, at + 2);
			if (options_find(&options, named) < 0)
				fail_msg("'%s': there is no --%s", row->why, named);
		}
	}
	options_release(&options);
}

/* The program itself, with whole command lines of the others. */
static void command_lines_of_others(void **state)
{
	(void)state;
	assert_program(2, "--held_out_fraction", "pretrain --output_dir %s/x --validation_split_percentage 5", test_folder);
	assert_program(2, "--do_train false: this command does nothing else", "pretrain --output_dir %s/x --do_train=False",
		       test_folder);
	assert_program(2, "--vocab_file names", "pretrain --output_dir %s/x --tokenizer_name bert-base-cased", test_folder);
	assert_program(2, "final is the model of the last step", "pretrain --output_dir %s/x --load_best_model_at_end=True",
		       test_folder);
	assert_program(2, "runs on processors", "pretrain --output_dir %s/x --use_tpu=True", test_folder);
	assert_program(2, "no text to train on",
		       "pretrain --output_dir %s/x --do_train --do_eval=True --use_tpu=False --iterations_per_loop 1000 "
		       "--eval_batch_size=8 --do_lower_case=True --vocab_file %s/vocab.txt --dupe_factor 5",
		       test_folder, test_folder);
	assert_non_null(strstr(buffer_string(&program_errors), "--do_eval is left out"));
	assert_non_null(strstr(buffer_string(&program_errors), "--do_lower_case means --cased false"));
	assert_program(
		2, "no text to train on",
		"pretrain --output_dir=%s/y --vocab_file %s/vocab.txt --fp16 --gradient_accumulation_steps=128 "
		"--log_freq=1 --num_steps_per_checkpoint=200 --warmup_proportion=0.2843 --seed=12439 "
		"--allreduce_post_accumulation --allreduce_post_accumulation_fp16 --do_train "
		"--json-summary %s/dllogger.json --disable_progress_bar --resume_from_checkpoint --max_steps=7038 "
		"--learning_rate=6e-3 --train_batch_size=8192 --num_workers=4 --no_dense_sequence_output --skip_checkpoint",
		test_folder, test_folder, test_folder);
	assert_non_null(strstr(buffer_string(&program_errors), "--save_checkpoints_steps 0"));
}

static int setup(void **state)
{
	static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n";
	if (test_folder_make(state) != 0)
		return -1;
	return file_write(test_path("vocab.txt"), vocab, sizeof vocab - 1) == OK ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_name_is_known),
		cmocka_unit_test(no_row_is_dead_and_each_says_why),
		cmocka_unit_test(command_lines_of_others),
	};
	return cmocka_run_group_tests_name("names from other programs", tests, setup, program_teardown);
}
