/* Runs of several ranks, each with an emulated device of its own, joined by the emulated NCCL: curves beside one rank's, the
 * same bits again, ranks that fail. */
#include <unistd.h>
#include "../cmd/small_run.h"
#include "base/log.h"

static char emulated[256];

static int setup(void **state)
{
	const char *build = getenv("BUILD");
	snprintf(emulated, sizeof emulated, "%s/emulated/bertc", build ? build : "build");
	setenv("BERTC", emulated, 1);
	setenv("BERTC_CACHE", "", 1);
	setenv("EMULATED_RACES", "0", 1); /* test_operations looks for them */
	setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3", 1);
	return small_run_make(state, 5);
}

#define STEPS 6
#define RUN                                                                                                                    \
	"pretrain -q --corpus %s --model %s --vocab_size 100 --num_train_steps 6 --train_batch_size 8 --max_seq_length 32 "    \
	"--learning_rate 2e-3 --num_warmup_steps 2 --log_steps 1 --eval_steps 3 --save_checkpoints_steps 2 --seed 3 "          \
	"--device cuda --out %s/%s %s"

static void train(const char *name, const char *options)
{
	assert_program(0, "", RUN, corpus, config, test_folder, name, options);
}

/* Largest relative difference of the losses of all steps. */
static double distance(const char *a, const char *b)
{
	char left[PATH_BYTES], right[PATH_BYTES];
	double most = 0;
	snprintf(left, sizeof left, "%s/%s/metrics.jsonl", test_folder, a);
	snprintf(right, sizeof right, "%s/%s/metrics.jsonl", test_folder, b);
	for (int64_t step = 1; step <= STEPS; step++) {
		double x = metric_at(left, step, "loss"), y = metric_at(right, step, "loss");
		assert_true(isfinite(x) && isfinite(y));
		most = fmax(most, fabs(x - y) / x);
	}
	return most;
}

static void assert_same_end(const char *a, const char *b)
{
	char left[PATH_BYTES], right[PATH_BYTES];
	snprintf(left, sizeof left, "%s/%s/final/model.safetensors", test_folder, a);
	snprintf(right, sizeof right, "%s/%s/final/model.safetensors", test_folder, b);
	assert_same_file(left, right);
}

/* The moments of all ranks are gathered for the checkpoint: they are those of one rank, to rounding, and a run goes on from
 * them on any number of ranks. */
static void ranks_have_the_curve_of_one(void **state)
{
	(void)state;
	static const struct {
		const char *name, *options, *beside;
		double limit;
	} runs[] = {
		{"two", "--precision fp32 --n_gpus 2", "one", 1e-7},
		{"three", "--precision fp32 --n_gpus 3", "one", 1e-7}, /* shares that are not equal */
		{"four", "--precision fp32 --n_gpus 4", "one", 1e-7},
		{"replicas", "--precision fp32 --n_gpus 2 --replicas_per_gpu 2", "one", 1e-7},
		{"each", "--precision fp32 --n_gpus 2 --gradient_accumulation_steps 2 --allreduce_post_accumulation false", "one",
		 1e-7},
		{"narrow", "--precision fp32 --n_gpus 2 --allreduce_post_accumulation_fp16", "one", 1e-5},
		{"narrow-bf16", "--precision fp32 --n_gpus 2 --allreduce_post_accumulation_bf16", "one", 1e-4},
		{"bf16", "--precision bf16 --n_gpus 2", "one", 5e-4},
		{"lamb", "--precision fp32 --optimizer lamb --n_gpus 2", "lamb-one", 1e-7},
	};
	train("one", "--precision fp32 --n_gpus 1");
	train("lamb-one", "--precision fp32 --optimizer lamb --n_gpus 1");
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		train(runs[i].name, runs[i].options);
		double off = distance(runs[i].name, runs[i].beside);
		if (getenv("BERTC_TEST_MARGINS"))
			print_error("%s: %.2g of %.2g\n", runs[i].name, off, runs[i].limit);
		if (!(off <= runs[i].limit))
			fail_msg("%s is %.2g off, limit %.2g", runs[i].name, off, runs[i].limit);
	}
}

/* More GPUs than there are: replicas on them. */
static void more_gpus_than_there_are(void **state)
{
	(void)state;
	setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
	train("shared", "--precision fp32 --n_gpus 4");
	assert_same_end("replicas", "shared");
	assert_program(ERR_USAGE, "--n_gpus 3: this process sees 2 GPUs", RUN, corpus, config, test_folder, "odd", "--n_gpus 3");
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	assert_program(ERR_USAGE, "--n_gpus 3: there is no GPU here that this process may use\nhint: to train on CPUs in as many "
				  "processes, give --ranks 3",
		       RUN, corpus, config, test_folder, "odd", "--n_gpus 3");
	setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3", 1);
}

static void the_same_ranks_give_the_same_bits(void **state)
{
	(void)state;
	train("again", "--precision fp32 --n_gpus 2");
	assert_same_end("two", "again");
	train("narrow-again", "--precision fp32 --n_gpus 2 --allreduce_post_accumulation_fp16");
	assert_same_end("narrow", "narrow-again");
}

/* In two parts, the second on another number of ranks. */
static void goes_on_with_other_ranks(void **state)
{
	(void)state;
	assert_program(STOPPED, "saved", RUN, corpus, config, test_folder, "parts", "--precision fp32 --n_gpus 4 --steps_this_run 3");
	train("parts", "--precision fp32 --n_gpus 2");
	double off = distance("one", "parts");
	if (!(off <= 1e-7))
		fail_msg("%.2g off", off);
}

static int faulty_run(const char *fault, const char *name, const char *options, double *out_seconds)
{
	double started = clock_seconds();
	setenv("BERTC_RANK_FAULT", fault, 1);
	int status = program(RUN, corpus, config, test_folder, name, options);
	unsetenv("BERTC_RANK_FAULT");
	*out_seconds = clock_seconds() - started;
	return status;
}

static void assert_said(const char *part)
{
	if (!strstr(buffer_string(&program_errors), part))
		fail_msg("'%s' is not in:\n%s", part, buffer_string(&program_errors));
}

/* The others' devices wait for what it does not bring; they are let go. */
static void a_rank_that_dies_in_a_reduction_ends_all(void **state)
{
	(void)state;
	char host[64] = "", who[96];
	double seconds;
	gethostname(host, sizeof host - 1);
	double whole = clock_seconds();
	train("straight", "--precision fp32 --n_gpus 2");
	whole = clock_seconds() - whole;
	snprintf(who, sizeof who, "rank 1 on %.60s (process ", host);
	assert_int_equal(faulty_run("1:reduction:5:SIGKILL", "killed", "--precision fp32 --n_gpus 2", &seconds), ERR_PEER);
	assert_true(seconds < whole + 10);
	assert_said(who);
	assert_said("was killed by SIGKILL in 'forward and backward' of step 5");
	assert_said("run the same command again");
	assert_true(file_exists(test_path("killed/checkpoint-4")));
	train("killed", "--precision fp32 --n_gpus 2");
	assert_same_end("straight", "killed");
}

static void a_rank_that_hangs_in_a_reduction_is_named(void **state)
{
	(void)state;
	double seconds;
	assert_int_equal(faulty_run("0:reduction:5:hang", "hung", "--precision fp32 --n_gpus 2 --watchdog_seconds 3", &seconds), ERR_PEER);
	assert_said("rank 0 on ");
	assert_said("hangs in 'forward and backward' of step 5");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_have_the_curve_of_one),
		cmocka_unit_test(more_gpus_than_there_are),
		cmocka_unit_test(the_same_ranks_give_the_same_bits),
		cmocka_unit_test(goes_on_with_other_ranks),
		cmocka_unit_test(a_rank_that_dies_in_a_reduction_ends_all),
		cmocka_unit_test(a_rank_that_hangs_in_a_reduction_is_named),
	};
	return cmocka_run_group_tests(tests, setup, test_folder_drop);
}
