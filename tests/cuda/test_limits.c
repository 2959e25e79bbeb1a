/* The program's messages when the device has no room, fails, or does not exist; its last checkpoint is kept; and its
 * memory plan is what it requests from the device. */
#include "cuda_runtime_api.h"
#include "emulated_run.h"

#define RUN                                                                                                                      \
	"pretrain --no_progress --corpus %s --model %s --vocab_size 100 --num_train_steps 6 --max_seq_length 32 "                \
	"--learning_rate 2e-3 --num_warmup_steps 2 --log_steps 1 --eval_steps 3 --save_checkpoints_steps 2 --seed 3 "            \
	"--device cuda --precision fp32 --out %s/%s %s"

static int run(const char *name, const char *options)
{
	return program(RUN, corpus, config, test_folder, name, options);
}

static void expect(int status, const char *message, const char *hint, const char *name)
{
	int got = run(name, "--train_batch_size 8");
	const char *said = buffer_string(&program_errors);
	if (got != status || !strstr(said, message) || !strstr(said, hint))
		fail_msg("exit status %d, expected %d, '%s' and '%s':\n%s", got, status, message, hint, said);
}

static void devices_that_cannot_be_used(void **state)
{
	static const struct {
		const char *device, *message, *hint;
	} cases[] = {
		{"0,0,90,4000000000", "there is no NVIDIA driver on this machine", "--device cpu"},
		{"1,12080,90,4000000000", "the NVIDIA driver is too old: it knows CUDA 12.8, this program needs 13.0",
		 "newer NVIDIA driver"},
		{"0,13000,90,4000000000", "there is no GPU that CUDA can use", "nvidia-smi"},
		{"1,13000,70,4000000000", "is too old: it has compute capability 7.0, 7.5 is needed", "Turing"},
		{"1,13000,90,40000000", "this run needs ", "use a smaller --micro_batch_tokens"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		setenv("EMULATED_DEVICE", cases[i].device, 1);
		expect(ERR_RESOURCE, cases[i].message, cases[i].hint, "none");
	}
	unsetenv("EMULATED_DEVICE");
}

/* The program starts without NVIDIA's libraries, and names those that it needs when it needs them. */
static void libraries_that_are_not_here(void **state)
{
	setenv("EMULATED_LACKS", "libcublasLt.so.13", 1);
	expect(ERR_RESOURCE, "cuBLASLt is not installed on this machine: /nowhere/libcublasLt.so.13: cannot open",
	       "install NVIDIA's package libcublas-13-0", "none");
	setenv("EMULATED_LACKS", "libnccl.so.2", 1);
	assert_int_equal(run("one", "--train_batch_size 8 --steps_this_run 1"), STOPPED);
	setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
	setenv("EMULATED_FAULTY", "1", 1); /* the device of the second rank */
	assert_int_equal(run("two", "--train_batch_size 8 --n_gpus 2"), ERR_RESOURCE);
	assert_said("NCCL is not installed on this machine: /nowhere/libnccl.so.2: cannot open");
	assert_said("install NVIDIA's package libnccl2");
	unsetenv("EMULATED_FAULTY");
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("EMULATED_LACKS");
}

/* In the middle of the run: saved checkpoints are kept, and the same command resumes and gives the same bits. */
static void devices_that_fail(void **state)
{
	static const struct {
		const char *name;
		int error;
		const char *message, *hint;
	} cases[] = {
		{"ecc", cudaErrorECCUncorrectable, "the GPU failed: uncorrectable ECC error encountered",
		 "the GPU's memory is damaged; the last checkpoint is intact"},
		{"lost", cudaErrorUnknown, "the GPU failed: ", "the last checkpoint is intact: run the same command again"},
		{"launch", cudaErrorLaunchFailure, "the GPU failed: unspecified launch failure", "the last checkpoint is intact"},
	};
	char fault[64], folder[PATH_BYTES];
	report_begin();
	assert_int_equal(run("straight", "--train_batch_size 8"), 0);
	int64_t launches = report_read().launches;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(fault, sizeof fault, "%" PRId64 ":%d", launches * 3 / 4, cases[i].error);
		setenv("EMULATED_FAIL", fault, 1);
		expect(ERR_RESOURCE, cases[i].message, cases[i].hint, cases[i].name);
		unsetenv("EMULATED_FAIL");
		snprintf(folder, sizeof folder, "%s/%s", test_folder, cases[i].name);
		assert_program(0, "", "verify %s", folder);
		assert_int_equal(run(cases[i].name, "--train_batch_size 8"), 0);
		assert_said("resuming from ");
		assert_same_end("straight", cases[i].name);
	}
}

/* A device that fails while it is measured has no speed. */
static void a_bench_on_a_device_that_fails(void **state)
{
	char bench[PATH_BYTES];
	snprintf(bench, sizeof bench,
		 "bench --json --model %s --vocab_size 100 --max_seq_length 16 --train_batch_size 1 --steps 1 "
		 "--mode training --device cuda --precision bf16",
		 config);
	char fault[64];
	report_begin();
	assert_program(0, "", "%s", bench);
	int64_t launches = report_read().launches;
	static const int tenths[] = {3, 9}; /* while operations are timed, and at the end */
	for (size_t i = 0; i < sizeof tenths / sizeof *tenths; i++) {
		snprintf(fault, sizeof fault, "%" PRId64 ":%d", launches * tenths[i] / 10, cudaErrorLaunchFailure);
		setenv("EMULATED_FAIL", fault, 1);
		assert_program(ERR_RESOURCE, "the GPU failed: unspecified launch failure", "%s", bench);
		assert_int_equal(program_output.size, 0);
	}
	snprintf(fault, sizeof fault, "%" PRId64 ":%d", launches - 1, cudaErrorECCUncorrectable); /* the very last launch */
	setenv("EMULATED_FAIL", fault, 1);
	assert_program(ERR_RESOURCE, "the GPU failed: uncorrectable ECC error", "%s", bench);
	unsetenv("EMULATED_FAIL");
}

/* Products are still computed, and a single message says so. */
static void a_library_that_refuses(void **state)
{
	setenv("EMULATED_REFUSAL", "1", 1);
	assert_int_equal(run("refused", "--train_batch_size 8 --steps_this_run 2"), STOPPED);
	unsetenv("EMULATED_REFUSAL");
	static const char said[] = "cuBLASLt has no algorithm for a product of ";
	const char *at = strstr(buffer_string(&program_errors), said);
	assert_non_null(at);
	assert_null(strstr(at + 1, said));
	assert_int_equal(run("taken", "--train_batch_size 8 --steps_this_run 2"), STOPPED);
	assert_null(strstr(buffer_string(&program_errors), said));
}

/* A row of the plan in bytes. */
static double planned(const char *row)
{
	const char *line = strstr(buffer_string(&program_errors), row);
	double number;
	char unit[8];
	if (!line || sscanf(line + strlen(row), "%lf %7s", &number, unit) != 2)
		fail_msg("no '%s' in:\n%s", row, buffer_string(&program_errors));
	return number * (strcmp(unit, "GB") == 0 ? 1e9 : strcmp(unit, "MB") == 0 ? 1e6 : strcmp(unit, "kB") == 0 ? 1e3 : 1);
}

static void expect_near(const char *what, double plan, double used)
{
	if (getenv("BERTC_TEST_MARGINS"))
		print_error("%s: planned %.4g, used %.4g\n", what, plan, used);
	if (!(fabs(plan / used - 1) <= 0.05))
		fail_msg("%s: planned %.4g, used %.4g", what, plan, used);
}

static void the_plan_is_what_is_asked_for(void **state)
{
	report_begin();
	assert_int_equal(run("alone", "--train_batch_size 48 --steps_this_run 1 --optimizer lamb"), STOPPED);
	struct device_report used = report_read();
	expect_near("one rank", planned("  on the GPU"), (double)used.most);
	assert_null(strstr(buffer_string(&program_errors), "gelu_new")); /* it would save no memory in fp32 */
	expect_near("its pinned memory", planned("  pinned"), (double)used.pinned);
	report_begin();
	assert_int_equal(
		program("pretrain --no_progress --corpus %s --model %s --vocab_size 100 --num_train_steps 6 "
			"--max_seq_length 32 --eval_steps 0 --device cuda --precision fp8 --num_attention_heads 1 --out %s/fp8 "
			"--train_batch_size 48 --steps_this_run 1",
			corpus, config, test_folder),
		STOPPED);
	used = report_read();
	assert_said("a --model config.json with \"hidden_act\": \"gelu_new\"");
	expect_near("one rank in FP8", planned("  on the GPU"), (double)used.most);
	report_begin();
	setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
	assert_int_equal(run("two", "--train_batch_size 48 --steps_this_run 1 --n_gpus 2 --allreduce_post_accumulation_fp16"),
			 STOPPED);
	unsetenv("CUDA_VISIBLE_DEVICES");
	used = report_read();
	/* NCCL's allowance is larger than what the emulated one takes. */
	assert_true(planned("  communication") > (double)((size_t)512 << 20));
	expect_near("two ranks", planned("  on the GPU") - (double)((size_t)512 << 20), (double)used.most);
}

static int64_t chosen_tokens(void)
{
	const char *line = strstr(buffer_string(&program_errors), "micro_batch_tokens");
	assert_non_null(line);
	return strtoll(line + strlen("micro_batch_tokens"), NULL, 10);
}

/* --micro_batch auto: the whole batch if there is room for it, otherwise what fits; and the run then succeeds. */
static void micro_batches_fit_the_memory(void **state)
{
	assert_int_equal(run("wide", "--train_batch_size 128 --micro_batch auto --plan"), 0);
	assert_int_equal(chosen_tokens(), 128 * 32);
	assert_said("micro-batches of up to 4,096 tokens: a rank's whole share of a batch");
	setenv("EMULATED_DEVICE", "1,13000,90,90000000", 1);
	assert_int_equal(run("tight", "--train_batch_size 128 --plan"), 0);
	int64_t tokens = chosen_tokens();
	assert_true(tokens >= 128 && tokens < 128 * 32);
	assert_said("with padding: a layer's products fill 100 % of their waves on 4 multiprocessors; memory has room for ");
	assert_int_equal(run("tight", "--train_batch_size 128 --steps_this_run 1"), STOPPED);
	/* Its checkpoint records it, whatever the memory when it resumes. */
	setenv("EMULATED_DEVICE", "1,13000,90,4000000000", 1);
	assert_int_equal(run("tight", "--train_batch_size 128 --micro_batch auto --steps_this_run 1"), STOPPED);
	assert_int_equal(chosen_tokens(), tokens);
	unsetenv("EMULATED_DEVICE");
	assert_int_equal(run("wrong", "--train_batch_size 128 --micro_batch most"), ERR_USAGE);
}

/* Two runs have saved the same after a step. */
static void assert_same_checkpoint(const char *a, const char *b, int step)
{
	char left[PATH_BYTES], right[PATH_BYTES];
	snprintf(left, sizeof left, "%s/%s/checkpoint-%d/model.safetensors", test_folder, a, step);
	snprintf(right, sizeof right, "%s/%s/checkpoint-%d/model.safetensors", test_folder, b, step);
	assert_same_file(left, right);
}

/* After this many allocations another program takes memory: at the run's first one, which follows the six that measuring
 * the rate of products takes, and at one of the last. */
enum { FIRST_ALLOCATION = 7 };
static const int taken_after[] = {FIRST_ALLOCATION, 14};

static int run_taken(int after, int64_t bytes, const char *name, const char *options)
{
	char text[64];
	snprintf(text, sizeof text, "%d:%" PRId64, after, bytes);
	setenv("EMULATED_TAKEN", text, 1);
	int status = run(name, options);
	unsetenv("EMULATED_TAKEN");
	return status;
}

/* Memory that is gone when it is to be allocated: tries again with less, as if that had been chosen. */
static void memory_that_is_taken_is_done_without(void **state)
{
	static const char a_step[] = "--train_batch_size 64 --steps_this_run 1";
	char name[32], options[96];
	setenv("EMULATED_DEVICE", "1,13000,90,90000000", 1);
	assert_int_equal(run("untaken", "--train_batch_size 64 --plan"), 0);
	int64_t tokens = chosen_tokens();
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof name, "taken-%d", i);
		assert_int_equal(run_taken(taken_after[i], 15000000, name, a_step), STOPPED);
		assert_said("not enough GPU memory for ");
		assert_said(": trying again with micro-batches of up to ");
		assert_int_equal(run(name, a_step), STOPPED);
		int64_t fewer = chosen_tokens();
		assert_true(fewer < tokens);
		snprintf(options, sizeof options, "--train_batch_size 64 --steps_this_run 2 --micro_batch_tokens %" PRId64,
			 fewer);
		assert_int_equal(run("given", options), STOPPED);
		assert_same_checkpoint("given", name, 2);
		assert_ok(folder_remove(test_path("given")));
	}
	/* Settings given by the user are not reduced; nor does it retry forever. */
	snprintf(options, sizeof options, "--train_batch_size 64 --micro_batch_tokens %" PRId64, tokens);
	assert_int_equal(run_taken(FIRST_ALLOCATION, 15000000, "asked", options), ERR_RESOURCE);
	assert_said("give a smaller --micro_batch_tokens");
	assert_null(strstr(buffer_string(&program_errors), "again with"));
	assert_int_equal(run_taken(FIRST_ALLOCATION, 30000000, "nothing", "--train_batch_size 64"), ERR_RESOURCE);
	assert_said("bertc: not enough GPU memory for ");
	unsetenv("EMULATED_DEVICE");
}

/* In one of two ranks: both reduce alike, and both end when nothing can be reduced. */
static void memory_is_taken_from_one_rank(void **state)
{
	static const char a_step[] = "--train_batch_size 128 --steps_this_run 1 --n_gpus 2";
	char name[32];
	setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
	setenv("EMULATED_DEVICE", "1,13000,90,700000000", 1);
	setenv("EMULATED_FAULTY", "1", 1);
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof name, "pair-%d", i);
		assert_int_equal(run_taken(taken_after[i], 625000000, name, a_step), STOPPED);
		assert_said("rank 1 on ");
		assert_said(": not enough GPU memory for ");
		assert_said(": trying again with micro-batches of up to 128 tokens instead of 2,048");
		assert_int_equal(run(name, a_step), STOPPED);
		assert_int_equal(chosen_tokens(), 128);
	}
	assert_int_equal(run_taken(FIRST_ALLOCATION, 690000000, "pair-none", a_step), ERR_RESOURCE);
	assert_said("bertc: rank 1 on ");
	assert_said(": not enough GPU memory for ");
	unsetenv("EMULATED_FAULTY");
	unsetenv("EMULATED_DEVICE");
	unsetenv("CUDA_VISIBLE_DEVICES");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_that_cannot_be_used),
		cmocka_unit_test(libraries_that_are_not_here),
		cmocka_unit_test(devices_that_fail),
		cmocka_unit_test(a_bench_on_a_device_that_fails),
		cmocka_unit_test(a_library_that_refuses),
		cmocka_unit_test(the_plan_is_what_is_asked_for),
		cmocka_unit_test(micro_batches_fit_the_memory),
		cmocka_unit_test(memory_that_is_taken_is_done_without),
		cmocka_unit_test(memory_is_taken_from_one_rank),
	};
	return cmocka_run_group_tests(tests, emulated_run_setup, program_teardown);
}
