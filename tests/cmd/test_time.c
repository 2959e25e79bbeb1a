/* --time: a run that ends when its time is up, with a schedule that follows the time, even after interruptions and on
 * several ranks; and the choices made for it. */
#include "cmd/small_run.h"
#include "run/budget.h"
#include "weights/checkpoint_folder.h"

#define SMALL "--vocab_size 80 --max_seq_length 32 --learning_rate 1e-3 --log_steps 1 --precision fp32 --threads 1 --no_progress "

static int setup(void **state)
{
	return small_run_make(state, 5);
}

/* A number in the record of the newest checkpoint. */
static double recorded(const char *run, const char *key)
{
	char folder[PATH_BYTES], path[PATH_BYTES];
	bool found = false;
	double value = NAN;
	struct json_document document;
	assert_ok(checkpoint_latest(test_path(run), folder, &found));
	assert_true(found);
	assert_ok(path_join(path, folder, "training_state.json"));
	assert_ok(json_read(&document, path, 1 << 20));
	assert_ok(json_get_number(document.root, path, key, &value));
	json_release(&document);
	return value;
}

static double last_rate(const char *run)
{
	char metrics[64];
	snprintf(metrics, sizeof metrics, "%s/metrics.jsonl", run);
	return metric_at(test_path(metrics), (int64_t)recorded(run, "step"), "learning_rate");
}

/* Whatever the speed, the run has used up its time, and the rate has decayed. */
static void assert_ended_by_time(const char *run, double seconds)
{
	double elapsed = recorded(run, "elapsed");
	if (!(elapsed > 0.2 * seconds && elapsed < seconds + 20))
		fail_msg("%s: %g of %g seconds", run, elapsed, seconds);
	/* Of 1e-3. On a busy machine, the last of a few steps may begin long before the end. */
	if (!(last_rate(run) < 6e-4))
		fail_msg("%s: rate %g", run, last_rate(run));
	char final[64];
	snprintf(final, sizeof final, "%s/final/model.safetensors", run);
	assert_true(file_exists(test_path(final)));
}

static void ends_with_the_time(void **state)
{
	assert_program(0, "finished", "pretrain --corpus %s --model %s --out %s/whole --time %ds " SMALL, corpus, config,
		       test_folder, 3 * SLOWNESS);
	assert_ended_by_time("whole", 3 * SLOWNESS);
	assert_program(0, "finished", "pretrain --out %s/whole", test_folder); /* and stays so */
	assert_null(strstr(buffer_string(&program_errors), "time:"));
	assert_null(strstr(buffer_string(&program_output), "memory"));
	assert_program(4, "--time is '10s'", "pretrain --out %s/whole --time 20s", test_folder);
}

/* The time used by an earlier process counts, the time between two processes does not. */
static void goes_on_with_the_rest(void **state)
{
	assert_program(75, "", "pretrain --corpus %s --model %s --out %s/parts --time %ds --max_time %ds " SMALL, corpus, config,
		       test_folder, 6 * SLOWNESS, 4 * SLOWNESS);
	double before = recorded("parts", "elapsed"), rate = last_rate("parts");
	assert_true(before > 0 && rate > 0);
	assert_program(0, "finished", "pretrain --out %s/parts", test_folder);
	/* If the first part were forgotten, it would have trained for longer than the time allowed. */
	assert_true(recorded("parts", "elapsed") >= before && recorded("parts", "seconds") < recorded("parts", "elapsed"));
	assert_ended_by_time("parts", 6 * SLOWNESS);
}

/* Warm-up has at least its number of updates, however long the text took to prepare and however slow the first ones were,
 * unless they take a third of the time. */
static void warms_up_by_updates(void **state)
{
	assert_program(75, "",
		       "pretrain --corpus %s --model %s --out %s/warm --time %ds --num_warmup_steps 20 --stop_at_step 5 " SMALL,
		       corpus, config, test_folder, 20 * SLOWNESS);
	assert_true(recorded("warm", "begun") > 0);
	for (int step = 1; step <= 5; step++)
		assert_true(metric_at(test_path("warm/metrics.jsonl"), step, "learning_rate") < 5.001e-5 * step);
}

/* The number after `key` in the settings table. */
static int64_t setting(const char *key)
{
	const char *row = strstr(program_errors.data, key);
	assert_non_null(row);
	return strtoll(row + strlen(key), NULL, 10);
}

/* Scoring a sequence costs a third of training on it: a short run does not spend its time on that. */
static void evaluations_take_a_tenth(void **state)
{
	assert_program(0, "",
		       "pretrain --corpus %s --model small --out %s/few --time 3s --plan --held_out_fraction 0.5 "
		       "--train_batch_size 1 " SMALL,
		       corpus, test_folder);
	int64_t steps = setting("\n  num_train_steps "), apart = setting("\n  eval_steps ");
	assert_true(apart >= 1 && steps < 15 * apart);
	assert_int_equal(apart, setting("\n  save_checkpoints_steps "));
}

static void ranks_go_by_one_clock(void **state)
{
	assert_program(0, "finished", "pretrain --corpus %s --model %s --out %s/ranks --time %ds --ranks 2 " SMALL, corpus,
		       config, test_folder, 4 * SLOWNESS);
	assert_ended_by_time("ranks", 4 * SLOWNESS);
}

static void does_not_go_with_a_length(void **state)
{
	assert_program(2, "either --time or --num_train_steps", "pretrain --corpus %s --out %s/no --time 1h --num_train_steps 5",
		       corpus, test_folder);
	assert_program(2, "how much of it each phase gets",
		       "pretrain --corpus %s --out %s/no --time 1h --phase2.max_seq_length 64", corpus, test_folder);
	assert_program(2, "time", "pretrain --corpus %s --out %s/no --time soon", corpus, test_folder);
	assert_program(2, "--time 3 means seconds", "pretrain --corpus %s --out %s/no --time 3", corpus, test_folder);
}

/* About 20 tokens per parameter: a minute and a day on two cores, and days on GPUs. */
static void more_buys_a_larger_model(void **state)
{
	static const struct {
		double flops;
		const char *model;
	} rows[] = {{0, "tiny"},      {2e13, "tiny"}, {1e15, "mini"}, {2e16, "small"},
		    {1e17, "medium"}, {1e18, "base"}, {1e20, "large"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_string_equal(budget_model(rows[i].flops, false), rows[i].model);

	/* 128 tokens of BERT-base with 20 words masked take 69.9 GFLOP (docs/developers/math.md). */
	struct model_config base;
	assert_ok(model_config_named(&base, "base"));
	base.vocab_size = 30522;
	assert_near(budget_tokens(69.9e12, &base, &model_heads_pretraining, 128, 20.0 / 128), 128e3, 100);

	assert_int_equal(budget_batch(1e9, 100, 64), 64);
	assert_int_equal(budget_batch(100.0 * 64 * 3000, 100, 64), 32);
	assert_int_equal(budget_batch(1, 100, 64), 16);
	assert_int_equal(budget_batch(1, 100, 8), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_with_the_time),       cmocka_unit_test(goes_on_with_the_rest),
		cmocka_unit_test(warms_up_by_updates),      cmocka_unit_test(evaluations_take_a_tenth),
		cmocka_unit_test(ranks_go_by_one_clock),    cmocka_unit_test(does_not_go_with_a_length),
		cmocka_unit_test(more_buys_a_larger_model),
	};
	return cmocka_run_group_tests_name("time", tests, setup, program_teardown);
}
