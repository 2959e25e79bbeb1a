/* Training on several ranks as a user runs it: with one flag. The curve is that of one rank; a run resumes with another
 * number of ranks; batch sizes are counted the way each flag's program of origin counts them; a difference or failure in
 * one rank ends all of them. */
#include <unistd.h>
#include "backend/backend.h"
#include "cmd/small_run.h"

static int setup(void **state)
{
	return small_run_make(state, 6);
}

#define SETTINGS                                                                                                                 \
	"--vocab_size 80 --precision fp32 --threads 1 --max_seq_length 24 --micro_batch_tokens 128 --num_train_steps 8 "         \
	"--log_steps 1 --eval_steps 4 --save_checkpoints_steps 4 --learning_rate 5e-3 --no_progress"
/* A run into test_folder/<out>. */
#define RUN(out, more) "pretrain --corpus %s --model %s --out %s/" out " " SETTINGS " " more, corpus, config, test_folder

static double at(const char *run, int64_t step, const char *name)
{
	char path[64];
	snprintf(path, sizeof path, "%s/metrics.jsonl", run);
	return metric_at(test_path(path), step, name);
}

static void same_curve(const char *a, const char *b)
{
	for (int64_t step = 1; step <= 8; step++) {
		assert_near(at(a, step, "loss"), at(b, step, "loss"), 2e-5);
		assert_near(at(a, step, "grad_norm"), at(b, step, "grad_norm"), 2e-4);
		assert_true(at(a, step, "tokens") == at(b, step, "tokens"));
	}
	assert_near(at(a, 8, "eval_loss"), at(b, 8, "eval_loss"), 2e-5);
	assert_true(at(a, 8, "eval_predictions") == at(b, 8, "eval_predictions"));
}

static void ranks_train_as_one(void **state)
{
	assert_program(0, "", RUN("one", "--train_batch_size 12"));
	assert_program(0, "batch: 12 instances per update = 3 ranks x 4", RUN("three", "--train_batch_size 12 --ranks 3"));
	assert_non_null(strstr(buffer_string(&program_errors), "of each rank"));
	same_curve("one", "three");
	/* Again: the same bits. */
	assert_program(0, "", RUN("again", "--train_batch_size 12 --ranks 3"));
	assert_same_file(test_path("three/final/model.safetensors"), test_path("again/final/model.safetensors"));
	assert_same_file(test_path("three/checkpoint-8/optimizer.safetensors"),
			 test_path("again/checkpoint-8/optimizer.safetensors"));
	/* Files that only the first rank writes exist, and only once. */
	assert_true(file_exists(test_path("three/report.html")));
	assert_true(file_exists(test_path("three/logs/rank-2.log")));
	assert_int_equal(program("verify %s/three", test_folder), 0);
}

/* A timeout with more seconds than 64 bits of nanoseconds hold means that the watchdog never triggers. */
static void a_watchdog_may_wait_for_ever(void **state)
{
	assert_program(75, "", RUN("patient", "--ranks 2 --watchdog_seconds 1e10 --stop_at_step 2"));
	assert_program(75, "", RUN("patient", "--ranks 2 --watchdog_seconds 1e300 --stop_at_step 4"));
}

static void batches_of_devices(void **state)
{
	assert_program(0, "batch: 12 instances per update = 2 ranks x 6 = 2 replicas x 3, one after the other",
		       RUN("replicas", "--train_batch_size_per_gpu 3 --ranks 2 --replicas_per_gpu 2"));
	same_curve("one", "replicas");
	assert_program(2, "give either --train_batch_size or --train_batch_size_per_gpu",
		       RUN("both", "--train_batch_size 12 --train_batch_size_per_gpu 3"));
	/* Notes about other programs' options are printed once, not by each rank. */
	assert_program(75, "--fp16 is ignored", RUN("said", "--fp16 --ranks 2 --stop_at_step 1"));
	assert_null(strstr(strstr(program_errors.data, "--fp16 is ignored") + 1, "--fp16 is ignored"));
	/* As transformers counts: each of two ranks has two micro-batches of three per update. */
	assert_program(0, "batch: 12 instances per update = 2 ranks x 6;",
		       RUN("foreign", "--per_device_train_batch_size 3 --gradient_accumulation_steps 2 --ranks 2"));
}

/* Whether or not the program has CUDA, the message says what to do instead. */
static void gpus_where_there_are_none(void **state)
{
	assert_program(0, "", "version");
	bool has_cuda = strstr(buffer_string(&program_output), "devices: cpu, cuda");
	assert_program(
		2,
		has_cuda ? "--n_gpus 2: there is no GPU here that this process may use\nhint: to train on CPUs in as many "
			   "processes, give --ranks 2; for GPUs see what nvidia-smi"
			 : "--n_gpus 2: this program was built without CUDA\nhint: to train on CPUs with that many processes, "
			   "give --ranks 2; for GPUs build with make CUDA=1",
		RUN("gpus", "--train_batch_size 12 --n_gpus 2"));
	assert_program(
		2,
		"--n_gpus 2 and --device cpu cannot be combined\nhint: to train on CPUs with that many processes, give --ranks 2",
		RUN("gpus", "--train_batch_size 12 --n_gpus 2 --device cpu"));
	assert_false(file_exists(test_path("gpus")));
}

/* A rank of a run on two machines without an address, where the loader finds only damaged MPI libraries. */
static void mpi_that_is_not_here_is_named(void **state)
{
	static const char *const variables[][2] = {
		{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}};
	libraries_hidden((const char *const[]){"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", NULL});
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		setenv(variables[i][0], variables[i][1], 1);
	assert_program(5, "Open MPI is not installed on this machine", RUN("mpi", "--train_batch_size 12"));
	assert_said("packages libopenmpi3 and openmpi-bin");
	assert_said("or set MASTER_ADDR and MASTER_PORT");
	/* What MPICH's mpirun sets, and what the user sets. */
	setenv("PMI_SIZE", "2", 1);
	assert_program(5, "MPICH is not installed on this machine", RUN("mpi", "--train_batch_size 12"));
	setenv("BERTC_MPI", "openmpi", 1);
	assert_program(5, "Open MPI is not installed on this machine", RUN("mpi", "--train_batch_size 12"));
	setenv("BERTC_MPI", "lam", 1);
	assert_program(2, "the variable BERTC_MPI is 'lam': not openmpi or mpich", RUN("mpi", "--train_batch_size 12"));
	unsetenv("BERTC_MPI");
	unsetenv("PMI_SIZE");
	libraries_shown();
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		unsetenv(variables[i][0]);
}

static void rates_follow_the_batch(void **state)
{
	assert_program(0, "learning rate: 0.005 for a batch of 3, linear: 0.02 for 12",
		       RUN("linear", "--train_batch_size_per_gpu 3 --ranks 2 --replicas_per_gpu 2 --scale_learning_rate linear "
				     "--num_warmup_steps 0 --schedule constant"));
	assert_near(at("linear", 3, "learning_rate"), 0.02, 1e-12);
	assert_program(0, "sqrt: 0.01 for 12",
		       RUN("sqrt", "--train_batch_size 12 --scale_learning_rate sqrt "
				   "--learning_rate_batch_size 3 --num_warmup_steps 0 --schedule constant"));
	assert_near(at("sqrt", 3, "learning_rate"), 0.01, 1e-12);
	assert_program(2, "has no effect without --scale_learning_rate", RUN("without", "--learning_rate_batch_size 3"));
}

static void gradients_travel_narrow(void **state)
{
	assert_program(0, "", RUN("narrow", "--train_batch_size 12 --ranks 2 --allreduce_post_accumulation_bf16"));
	assert_program(0, "", RUN("half", "--train_batch_size 12 --ranks 2 --allreduce_post_accumulation_fp16"));
	assert_true(at("one", 1, "grad_norm") != at("narrow", 1, "grad_norm"));
	for (int64_t step = 1; step <= 8; step++) {
		assert_near(at("one", step, "loss"), at("narrow", step, "loss"), 2e-2);
		assert_near(at("one", step, "loss"), at("half", step, "loss"), 5e-3);
	}
	/* The loss scale has been divided out of the gradients again. */
	assert_near(at("one", 1, "grad_norm"), at("half", 1, "grad_norm"), 1e-3 * at("one", 1, "grad_norm"));
	assert_program(2, "allreduce_post_accumulation_bf16",
		       RUN("none", "--ranks 2 --allreduce_post_accumulation_fp16 --allreduce_post_accumulation_bf16"));
}

static void goes_on_on_other_ranks(void **state)
{
	static const char *const commands[] = {"--ranks 4 --stop_at_step 2", "--ranks 2 --stop_at_step 4", "--stop_at_step 6",
					       "--ranks 8"};
	for (int i = 0; i < 4; i++)
		assert_program(i < 3 ? 75 : 0, i > 0 ? "continues up to rounding, not bit for bit" : "",
			       "pretrain --corpus %s --model %s --out %s/parts " SETTINGS " --train_batch_size 12 %s", corpus,
			       config, test_folder, commands[i]);
	same_curve("one", "parts");
	/* The batch stays the same, however large a device's share was said to be. */
	assert_program(75, "", RUN("shares", "--train_batch_size_per_gpu 6 --ranks 2 --stop_at_step 4"));
	assert_program(0, "12 instances per update, as this run began, not 18",
		       RUN("shares", "--train_batch_size_per_gpu 6 --ranks 3"));
	same_curve("one", "shares");
	/* With the same number of ranks, the bits are those of an uninterrupted run. */
	assert_program(75, "", RUN("twice", "--train_batch_size 12 --ranks 3 --stop_at_step 3"));
	assert_program(0, "", RUN("twice", "--train_batch_size 12 --ranks 3"));
	assert_same_file(test_path("three/final/model.safetensors"), test_path("twice/final/model.safetensors"));
}

/* Two ranks that a scheduler starts, each in a folder of its own, where the command contains $r; both end with status 4 before
 * the first step, and the first one says this. */
static void assert_ranks_differ(const char *says, const char *command)
{
	const char *bertc = getenv("BERTC");
	static char line[8192];
	char *program_path = realpath(bertc ? bertc : "build/bertc", NULL);
	snprintf(line, sizeof line,
		 "for r in 0 1; do (mkdir -p %s/host$r && cd %s/host$r && RANK=$r WORLD_SIZE=2 LOCAL_RANK=$r LOCAL_WORLD_SIZE=2 "
		 "MASTER_ADDR=127.0.0.1 MASTER_PORT=%d %s %s --out %s/differ </dev/null >/dev/null 2>%s/differ.$r; "
		 "echo $? >%s/status.$r) & done; wait",
		 test_folder, test_folder, 20000 + (int)(getpid() % 20000), program_path, command, test_folder, test_folder,
		 test_folder);
	free(program_path);
	assert_int_equal(system(line), 0);
	struct buffer said = {0}, status = {0};
	assert_ok(file_read(test_path("differ.0"), 1 << 20, &said));
	if (!strstr(buffer_string(&said), says))
		fail_msg("%s", buffer_string(&said));
	for (int rank = 0; rank < 2; rank++) {
		buffer_clear(&status);
		assert_ok(file_read(test_path(rank == 0 ? "status.0" : "status.1"), 16, &status));
		assert_string_equal(buffer_string(&status), "4\n");
	}
	assert_false(file_exists(test_path("differ/metrics.jsonl")));
	buffer_release(&said);
	buffer_release(&status);
}

#define HERE "/proc/self/cwd/" /* the same path for all ranks, but on each machine another file */

static void ranks_that_differ_do_not_begin(void **state)
{
	static char command[1024];
	snprintf(command, sizeof command, "pretrain --corpus %s --model %s " SETTINGS " --masked_lm_prob 0.1$r", corpus, config);
	assert_ranks_differ("has '\"masked_lm_prob\": \"0.10\",', rank 1", command);
	snprintf(command, sizeof command,
		 "cd %s/host1 && sed 's/gelu/relu/' %s >config.json && cd ../host0 && cp %s . && for r in 0 1; do printf "
		 "'text\\tlabel\\na cat\\t1\\nthe dog\\t%%s\\n' $r >../host$r/test; done && printf "
		 "'text\\tlabel\\na cat\\t1\\nthe dog\\t0\\n' >../train",
		 test_folder, config, config);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof command, "pretrain --corpus %s --model " HERE "config.json " SETTINGS, corpus);
	assert_ranks_differ("has '\"hidden_act\": \"gelu\",', rank 1", command);
	snprintf(command, sizeof command,
		 "finetune --task classification --model %s/one --train %s/train --test " HERE "test --num_train_steps 2",
		 test_folder, test_folder);
	assert_ranks_differ(" has 'test ", command);
}

static void a_plan_counts_ranks(void **state)
{
	assert_program(0, "batch: 12 instances per update = 4 ranks x 3",
		       RUN("planned", "--train_batch_size 12 --ranks 4 --plan"));
	assert_non_null(strstr(buffer_string(&program_errors), "optimizer state, this rank's share"));
	assert_false(file_exists(test_path("planned/metrics.jsonl")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_train_as_one),
		cmocka_unit_test(a_watchdog_may_wait_for_ever),
		cmocka_unit_test(batches_of_devices),
		cmocka_unit_test(gpus_where_there_are_none),
		cmocka_unit_test(mpi_that_is_not_here_is_named),
		cmocka_unit_test(rates_follow_the_batch),
		cmocka_unit_test(gradients_travel_narrow),
		cmocka_unit_test(goes_on_on_other_ranks),
		cmocka_unit_test(ranks_that_differ_do_not_begin),
		cmocka_unit_test(a_plan_counts_ranks),
	};
	return cmocka_run_group_tests_name("cmd/ranks", tests, setup, program_teardown);
}
