/* Runs of several ranks, each with an emulated device of its own, connected by the emulated NCCL: their curves compared
 * with those of one rank, the same bits again, ranks that fail. */
#include <unistd.h>
#include "base/log.h"
#include "cuda_runtime_api.h"
#include "emulated_run.h"

static int setup(void **state)
{
	setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3", 1);
	return emulated_run_setup(state);
}

#define STEPS 6
#define RUN                                                                                                                      \
	"pretrain -q --corpus %s --model %s --vocab_size 100 --num_train_steps 6 --train_batch_size 8 --max_seq_length 32 "      \
	"--learning_rate 2e-3 --num_warmup_steps 2 --log_steps 1 --eval_steps 3 --save_checkpoints_steps 2 --seed 3 "            \
	"--device cuda --out %s/%s %s"

static void train(const char *name, const char *options)
{
	assert_program(0, "", RUN, corpus, config, test_folder, name, options);
}

/* The moments of all ranks are gathered for the checkpoint: they equal those of one rank up to rounding, and a run resumes
 * from them on any number of ranks. */
static void ranks_have_the_curve_of_one(void **state)
{
	static const struct {
		const char *name, *options, *beside;
		double limit;
	} runs[] = {
		{"two", "--precision fp32 --n_gpus 2", "one", 1e-7},
		{"three", "--precision fp32 --n_gpus 3", "one", 1e-7}, /* unequal shares */
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
		double off = distance(runs[i].name, runs[i].beside, STEPS);
		if (getenv("BERTC_TEST_MARGINS"))
			print_error("%s: %.2g of %.2g\n", runs[i].name, off, runs[i].limit);
		if (!(off <= runs[i].limit))
			fail_msg("%s is %.2g off, limit %.2g", runs[i].name, off, runs[i].limit);
	}
}

/* More GPUs than there are: replicas on the existing ones. */
static void more_gpus_than_there_are(void **state)
{
	setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
	train("shared", "--precision fp32 --n_gpus 4");
	assert_same_end("replicas", "shared");
	assert_program(ERR_USAGE, "--n_gpus 3: this process sees 2 GPUs", RUN, corpus, config, test_folder, "odd", "--n_gpus 3");
	/* The number of ranks from another launcher is what that launcher says. */
	static const char *const started[] = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"};
	for (int i = 0; i < 4; i++)
		setenv(started[i], i < 2 ? "0" : "2", 1);
	assert_program(ERR_USAGE, "--n_gpus 4, but this process was started as one of 2", RUN, corpus, config, test_folder, "odd",
		       "--n_gpus 4");
	for (int i = 0; i < 4; i++)
		unsetenv(started[i]);
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	assert_program(ERR_USAGE,
		       "--n_gpus 3: this process has no GPU to use\nhint: to train on CPUs with that many "
		       "processes, give --ranks 3",
		       RUN, corpus, config, test_folder, "odd", "--n_gpus 3");
	/* Without the variable the driver counts them. */
	unsetenv("CUDA_VISIBLE_DEVICES");
	setenv("EMULATED_DEVICE", "2,13000,90,16000000000", 1);
	train("counted", "--precision fp32 --n_gpus 4");
	assert_same_end("replicas", "counted");
	assert_program(ERR_USAGE, "--n_gpus 3: this process sees 2 GPUs", RUN, corpus, config, test_folder, "odd", "--n_gpus 3");
	unsetenv("EMULATED_DEVICE");
	setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3", 1);
}

static void the_same_ranks_give_the_same_bits(void **state)
{
	train("again", "--precision fp32 --n_gpus 2");
	assert_same_end("two", "again");
	train("narrow-again", "--precision fp32 --n_gpus 2 --allreduce_post_accumulation_fp16");
	assert_same_end("narrow", "narrow-again");
	/* The others were recorded in pieces, with collectives between them. */
	setenv("BERTC_GRAPHS", "0", 1);
	train("ungraphed", "--precision fp32 --n_gpus 2");
	assert_same_end("two", "ungraphed");
	train("each-ungraphed",
	      "--precision fp32 --n_gpus 2 --gradient_accumulation_steps 2 --allreduce_post_accumulation false");
	assert_same_end("each", "each-ungraphed");
	unsetenv("BERTC_GRAPHS");
}

/* In two parts, the second one with another number of ranks, or with the same. */
static void goes_on_with_other_ranks(void **state)
{
	assert_program(STOPPED, "saved", RUN, corpus, config, test_folder, "parts",
		       "--precision fp32 --n_gpus 4 --steps_this_run 3");
	train("parts", "--precision fp32 --n_gpus 2");
	double off = distance("one", "parts", STEPS);
	if (!(off <= 1e-7))
		fail_msg("%.2g off", off);
	/* In 16 bits the ranks exchange copies of matrices after an update, and the masters for a checkpoint only. */
	assert_program(STOPPED, "saved", RUN, corpus, config, test_folder, "bf16-parts",
		       "--precision bf16 --n_gpus 2 --steps_this_run 3");
	train("bf16-parts", "--precision bf16 --n_gpus 2");
	assert_same_end("bf16", "bf16-parts");
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

/* The others' devices wait for its contribution, which never comes; the wait is aborted. */
static void a_rank_that_dies_in_a_reduction_ends_all(void **state)
{
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
	double seconds;
	assert_int_equal(faulty_run("0:reduction:5:hang", "hung", "--precision fp32 --n_gpus 2 --watchdog_seconds 3", &seconds),
			 ERR_PEER);
	assert_said("rank 0 on ");
	assert_said("hangs in 'forward and backward' of step 5");
}

/* NCCL refuses the second call of a group, the remainder of a sum or of a gather: the group is ended nevertheless, and so is
 * the run. */
static void an_operation_that_nccl_refuses_ends_all(void **state)
{
	static const char *const refused[] = {"1:8", "1:2"};
	struct buffer log = {0};
	for (int i = 0; i < 2; i++) {
		setenv("EMULATED_NCCL_REFUSES", refused[i], 1);
		assert_program(ERR_PEER, "an error of the emulation", RUN, corpus, config, test_folder, "refused",
			       "--precision fp32 --n_gpus 2");
		assert_said("rank 1 on ");
		assert_ok(file_read(test_path("refused/logs/rank-1.log"), 1 << 16, &log));
		assert_null(strstr(buffer_string(&log), "emulated device: ")); /* NCCL was called as it may be */
		buffer_release(&log);
	}
	unsetenv("EMULATED_NCCL_REFUSES");
}

/* A device that fails in one rank: all ranks end with its exit code, and its rank, host and reason are named; saved
 * checkpoints are kept, and the same command resumes and gives the same bits. */
static void devices_that_fail_in_one_rank(void **state)
{
	static const struct {
		const char *name;
		int ranks, faulty, error;
		const char *message, *hint;
	} cases[] = {
		{"ecc-1", 2, 1, cudaErrorECCUncorrectable, "the GPU failed: uncorrectable ECC error encountered",
		 "the GPU's memory is damaged; the last checkpoint is intact"},
		{"ecc-0", 2, 0, cudaErrorECCUncorrectable, "the GPU failed: uncorrectable ECC error encountered",
		 "the GPU's memory is damaged; the last checkpoint is intact"},
		{"lost-2", 3, 2, cudaErrorUnknown,
		 "the GPU failed: ", "the last checkpoint is intact: run the same command again"},
		{"lost-0", 3, 0, cudaErrorUnknown,
		 "the GPU failed: ", "the last checkpoint is intact: run the same command again"},
		{"launch-1", 3, 1, cudaErrorLaunchFailure, "the GPU failed: unspecified launch failure",
		 "the last checkpoint is intact"},
	};
	char host[64] = "", text[160], options[64];
	double whole = 0;
	int64_t launches = 0;
	gethostname(host, sizeof host - 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(options, sizeof options, "--precision fp32 --n_gpus %d", cases[i].ranks);
		if (i == 0 || cases[i].ranks != cases[i - 1].ranks) {
			whole = clock_seconds();
			report_begin();
			train(cases[i].ranks == 2 ? "sound-2" : "sound-3", options);
			launches = report_read().launches;
			whole = clock_seconds() - whole;
		}
		snprintf(text, sizeof text, "%" PRId64 ":%d", launches * 3 / 4, cases[i].error);
		setenv("EMULATED_FAIL", text, 1);
		snprintf(text, sizeof text, "%d", cases[i].faulty);
		setenv("EMULATED_FAULTY", text, 1);
		double started = clock_seconds();
		int status = program(RUN, corpus, config, test_folder, cases[i].name, options);
		double seconds = clock_seconds() - started;
		unsetenv("EMULATED_FAIL");
		unsetenv("EMULATED_FAULTY");
		if (status != ERR_RESOURCE || seconds > whole + 10)
			fail_msg("%s: exit status %d after %.1f s (a sound run: %.1f s):\n%s", cases[i].name, status, seconds,
				 whole, buffer_string(&program_errors));
		snprintf(text, sizeof text, "rank %d on %.60s", cases[i].faulty, host);
		assert_said(text);
		assert_said(cases[i].message);
		assert_said(cases[i].hint);
		assert_program(0, "", "verify %s/%s", test_folder, cases[i].name);
		train(cases[i].name, options);
		assert_same_end(cases[i].ranks == 2 ? "sound-2" : "sound-3", cases[i].name);
	}
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
		cmocka_unit_test(an_operation_that_nccl_refuses_ends_all),
		cmocka_unit_test(devices_that_fail_in_one_rank),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
