/* Whole runs of the program on the emulated device: curves compared with the CPU's, a resume, evaluation and predictions. */
#include "emulated_run.h"

#define STEPS 8
#define RUN "pretrain -q " OPTIONS
#define OPTIONS                                                                                                                  \
	"--corpus %s --model %s --vocab_size 100 --num_train_steps 8 --train_batch_size 8 "                                      \
	"--max_seq_length 32 --learning_rate 2e-3 --num_warmup_steps 4 --log_steps 1 --eval_steps 0 --seed 3 "

static void train(const char *name, const char *options)
{
	assert_program(0, "", RUN "--out %s/%s %s", corpus, config, test_folder, name, options);
}

static void train_until_stopped(const char *name, const char *options)
{
	assert_program(STOPPED, "saved", RUN "--out %s/%s %s", corpus, config, test_folder, name, options);
}

static void curves_are_those_of_the_cpu(void **state)
{
	static const struct {
		const char *name, *options;
		double limit;
		const char *beside;
	} runs[] = {
		{"fp32", "--device cuda --precision fp32", 1e-6, "cpu"},
		{"bf16", "--device cuda --precision bf16", 5e-4, "cpu"},
		{"fp16", "--device cuda --precision fp16", 2e-4, "cpu"},
		{"lamb", "--device cuda --precision fp32 --optimizer lamb", 1e-6, "cpu-lamb"},
		/* The CPU's simulation rounds the same operands, except where bf16 activations have shifted them. */
		{"fp8", "--device cuda --precision fp8", 5e-4, "cpu-fp8"},
	};
	train("cpu", "--device cpu --precision fp32");
	train("cpu-fp8", "--device cpu --precision fp8");
	train("cpu-lamb", "--device cpu --precision fp32 --optimizer lamb");
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		train(runs[i].name, runs[i].options);
		double off = distance(runs[i].name, runs[i].beside, STEPS);
		if (getenv("BERTC_TEST_MARGINS"))
			print_error("%s: %.2g of %.2g\n", runs[i].name, off, runs[i].limit);
		if (off > runs[i].limit)
			fail_msg("%s is %.2g off, limit %.2g", runs[i].name, off, runs[i].limit);
	}
}

/* The run of curves_are_those_of_the_cpu, in two parts, gives the same weights. */
static void a_resumed_run_has_the_same_bits(void **state)
{
	static const char *const precisions[] = {"bf16", "fp8"};
	for (int i = 0; i < 2; i++) {
		char options[64], first[96], name[16], a[PATH_BYTES], b[PATH_BYTES];
		snprintf(options, sizeof options, "--device cuda --precision %s", precisions[i]);
		snprintf(first, sizeof first, "%s --steps_this_run 5", options);
		snprintf(name, sizeof name, "halves-%s", precisions[i]);
		train_until_stopped(name, first);
		train(name, options);
		snprintf(a, sizeof a, "%s/%s/final/model.safetensors", test_folder, precisions[i]);
		snprintf(b, sizeof b, "%s/%s/final/model.safetensors", test_folder, name);
		assert_same_file(a, b);
	}
}

/* Replaces every algorithm in the cached choices in `folder` by the other of the two. */
static void make_other_choices(const char *folder)
{
	static const char mark[] = "656d756c61746564 000000000000000";
	struct name_list files = {0};
	struct buffer lines = {0};
	char path[PATH_BYTES];
	int64_t changed = 0;
	assert_ok(folder_list(folder, &files));
	assert_int_equal(files.count, 1);
	assert_ok(path_join(path, folder, files.names[0]));
	assert_ok(file_read(path, 1 << 20, &lines));
	for (char *at = lines.data; (at = strstr(at, mark)) != NULL; at += sizeof mark) {
		at[sizeof mark - 1] ^= 1;
		changed++;
	}
	assert_true(changed > 10);
	assert_ok(file_write(path, lines.data, lines.size));
	buffer_release(&lines);
	name_list_release(&files);
}

/* A run whose choices are the opposite of what this machine would measure, stopped, resumes with them after the cache is
 * gone; on another kind of device it reports that it cannot. Step 7 has no sizes that steps 1 to 6 did not have. */
static void a_resumed_run_keeps_its_products(void **state)
{
	char folder[PATH_BYTES], measured[PATH_BYTES], other[PATH_BYTES], moved[PATH_BYTES];
	snprintf(folder, sizeof folder, "%s/choices", test_folder);
	snprintf(measured, sizeof measured, "%s/measured/checkpoint-7/model.safetensors", test_folder);
	snprintf(other, sizeof other, "%s/other/checkpoint-7/model.safetensors", test_folder);
	snprintf(moved, sizeof moved, "%s/moved/checkpoint-7/model.safetensors", test_folder);
	setenv("BERTC_CACHE", folder, 1);
	train_until_stopped("measured", "--device cuda --precision fp32 --steps_this_run 7");
	make_other_choices(folder);
	train_until_stopped("other", "--device cuda --precision fp32 --steps_this_run 7");
	assert_different_files(measured, other);
	train_until_stopped("moved", "--device cuda --precision fp32 --steps_this_run 6");
	train_until_stopped("elsewhere", "--device cuda --precision fp32 --steps_this_run 6");
	setenv("BERTC_CACHE", "", 1);
	train_until_stopped("moved", "--device cuda --precision fp32 --steps_this_run 1");
	assert_same_file(other, moved);
	setenv("EMULATED_NAME", "another device", 1);
	assert_program(STOPPED, "chosen on emulated device, cuBLASLt 13.1.0: they are chosen again here",
		       "pretrain " OPTIONS "--out %s/elsewhere --device cuda --precision fp32 --steps_this_run 1", corpus, config,
		       test_folder);
	unsetenv("EMULATED_NAME");
}

/* Appends those lines of the program's messages that contain `part`. */
static void append_lines_with(const char *part, struct buffer *out)
{
	char *text = strdup(buffer_string(&program_errors));
	assert_non_null(text);
	for (char *rest = text, *line; (line = strtok_r(rest, "\n", &rest));)
		if (strstr(line, part))
			buffer_format(out, "%s\n", line);
	free(text);
}

/* A number of the guard's state in the last checkpoint. */
static double guard_number(const char *name, const char *key)
{
	char path[PATH_BYTES];
	struct json_document document;
	double number = -1;
	snprintf(path, sizeof path, "%s/%s/checkpoint-%d/training_state.json", test_folder, name, STEPS);
	assert_ok(json_read(&document, path, 1 << 20));
	assert_ok(json_get_number(json_member(document.root, "guard"), path, key, &number));
	json_release(&document);
	return number;
}

/* Starting from a scale that is far too large, the same steps are skipped, with the same scales, on CPUs and GPUs, even if
 * the run is stopped in between and resumes there or elsewhere. (The curves are not comparable: the inverse of such a
 * scale is a denormal number, which the CPU's threads flush to 0.) */
static void the_loss_scale_follows(void **state)
{
	static const struct {
		const char *name, *options, *later; /* NULL: not stopped */
		int beside;
	} runs[] = {
		{"scale-cpu", "--device cpu --ranks 1", NULL, 0},
		{"scale-cuda", "--device cuda --n_gpus 1", NULL, 0},
		{"scale-halves", "--device cuda --n_gpus 1", "--device cuda --n_gpus 1", 0},
		{"scale-moved", "--device cuda --n_gpus 1", "--device cpu --ranks 1", 0},
		/* Half sums overflow later than sums. */
		{"scale-cpus", "--device cpu --ranks 2", NULL, 4},
		{"scale-cudas", "--device cuda --n_gpus 2", NULL, 4},
		{"scale-parts", "--device cuda --n_gpus 2", "--device cuda --n_gpus 2", 4},
	};
	struct buffer expected = {0}, said = {0};
	setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
	for (int i = 0; i < (int)(sizeof runs / sizeof *runs); i++) {
		const char *run =
			"pretrain -v " OPTIONS "--out %s/%s --precision fp32 --loss_scale 0 --init_loss_scale 8e39 %s %s";
		const char *options = runs[i].later ? runs[i].later : runs[i].options, *beside = runs[runs[i].beside].name;
		buffer_clear(&said);
		if (runs[i].later) {
			int status = program(run, corpus, config, test_folder, runs[i].name, "--stop_at_step 2", runs[i].options);
			assert_int_equal(status, STOPPED);
			append_lines_with("the loss scale falls to ", &said);
		}
		assert_int_equal(program(run, corpus, config, test_folder, runs[i].name, "", options), 0);
		append_lines_with("the loss scale falls to ", &said);
		if (runs[i].beside == i) {
			buffer_clear(&expected);
			buffer_append(&expected, said.data, said.size);
		}
		assert_non_null(strstr(buffer_string(&said), "step 3: gradients overflow, the loss scale falls to 1e+39"));
		assert_string_equal(buffer_string(&said), buffer_string(&expected));
		assert_true(guard_number(beside, "clean_steps") > 0);
		assert_near(guard_number(runs[i].name, "clean_steps"), guard_number(beside, "clean_steps"), 0);
		assert_near(guard_number(runs[i].name, "loss_scale"), guard_number(beside, "loss_scale"), 0);
	}
	unsetenv("CUDA_VISIBLE_DEVICES");
	assert_same_file(test_path("scale-cuda/final/model.safetensors"), test_path("scale-halves/final/model.safetensors"));
	assert_same_file(test_path("scale-cudas/final/model.safetensors"), test_path("scale-parts/final/model.safetensors"));
	buffer_release(&expected);
	buffer_release(&said);
}

/* Its small gradients vanish: the loss scale is dynamic unless it is given. */
static void fp16_scales_its_loss(void **state)
{
	train("unscaled", "--device cuda --precision fp16 --loss_scale 1");
	assert_near(guard_number("fp16", "loss_scale"), 65536, 0);
	assert_near(guard_number("fp16", "clean_steps"), STEPS, 0);
	assert_near(guard_number("bf16", "loss_scale"), 1, 0);
	assert_near(guard_number("unscaled", "loss_scale"), 1, 0);
}

/* Recorded graphs compute the same as the work they were recorded from. */
static void graphs_change_no_bit(void **state)
{
	char a[PATH_BYTES], b[PATH_BYTES];
	setenv("BERTC_GRAPHS", "0", 1);
	train("launched", "--device cuda --precision fp16");
	unsetenv("BERTC_GRAPHS");
	snprintf(a, sizeof a, "%s/fp16/final/model.safetensors", test_folder);
	snprintf(b, sizeof b, "%s/launched/final/model.safetensors", test_folder);
	assert_same_file(a, b);
}

static void a_model_of_one_device_works_on_the_other(void **state)
{
	assert_program(0, "", "evaluate -q --json --device cuda --precision fp32 --model %s/cpu --corpus %s --max_seq_length 32",
		       test_folder, corpus);
	char on_gpu[512];
	snprintf(on_gpu, sizeof on_gpu, "%s", buffer_string(&program_output));
	assert_program(0, "", "evaluate -q --json --device cpu --precision fp32 --model %s/cpu --corpus %s --max_seq_length 32",
		       test_folder, corpus);
	double a = strtod(strstr(on_gpu, "\"mlm_loss\":") + 11, NULL);
	double b = strtod(strstr(buffer_string(&program_output), "\"mlm_loss\":") + 11, NULL);
	assert_true(a > 0);
	assert_near(a, b, 1e-5 * a);
	assert_program(0, "", "fill -q --device cuda --precision fp32 --model %s/cpu \"the cat [MASK] a river.\"", test_folder);
	assert_non_null(strstr(buffer_string(&program_output), "river"));
}

/* The sentences that a report predicts are far shorter than the model's texts, and upload rounds their length up. */
static void reports_predict_short_sentences(void **state)
{
	struct buffer samples = {0};
	assert_program(0, "",
		       "pretrain -q --corpus %s --model %s --vocab_size 100 --num_train_steps 2 --train_batch_size 4 "
		       "--max_seq_length 64 "
		       "--held_out_fraction 0.2 --eval_steps 1 --device cuda --precision fp32 --out %s/long",
		       corpus, config, test_folder);
	assert_ok(file_read(test_path("long/samples.jsonl"), 1 << 16, &samples));
	assert_non_null(strstr(buffer_string(&samples), "\"step\":2"));
	buffer_release(&samples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(curves_are_those_of_the_cpu),
		cmocka_unit_test(a_resumed_run_has_the_same_bits),
		cmocka_unit_test(a_resumed_run_keeps_its_products),
		cmocka_unit_test(the_loss_scale_follows),
		cmocka_unit_test(fp16_scales_its_loss),
		cmocka_unit_test(graphs_change_no_bit),
		cmocka_unit_test(a_model_of_one_device_works_on_the_other),
		cmocka_unit_test(reports_predict_short_sentences),
	};
	return cmocka_run_group_tests(tests, emulated_run_setup, program_teardown);
}
