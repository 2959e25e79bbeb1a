/* bertc export as a user runs it: what each form leaves, and what it refuses. */
#include "cmd/small_run.h"

static int setup(void **state)
{
	if (small_run_make(state, 5) != 0)
		return -1;
	return program("pretrain --corpus %s --model %s --out %s/base --vocab_size 80 --train_batch_size 8 --max_seq_length 32 "
		       "--num_train_steps 2 --precision fp32 --threads 1",
		       corpus, config, test_folder) == 0
		       ? 0
		       : -1;
}

static void assert_there(const char *name)
{
	if (!file_exists(test_path(name)))
		fail_msg("'%s' is not there", name);
}

static void onnx_folder_and_file(void **state)
{
	(void)state;
	assert_program(OK, "written: ", "export --model %s/base --to onnx --out %s/onnx", test_folder, test_folder);
	assert_there("onnx/onnx/model.onnx");
	assert_there("onnx/tokenizer.json");
	assert_same_file(test_path("onnx/vocab.txt"), test_path("base/final/vocab.txt"));
	assert_same_file(test_path("onnx/config.json"), test_path("base/final/config.json"));
	assert_program(OK, "written: ", "export --model %s/base --to onnx --out %s/model.onnx", test_folder, test_folder);
	assert_same_file(test_path("model.onnx"), test_path("onnx/onnx/model.onnx"));
	assert_program(OK, "written: ", "export --model %s/base --no_head --to onnx --out %s/encoder.onnx", test_folder,
		       test_folder);
	assert_true(file_size(test_path("encoder.onnx")) < file_size(test_path("model.onnx")));
	/* Nothing half-made is left, and the model is unchanged. */
	assert_false(file_exists(test_path(".tmp-onnx")));
	assert_int_equal(program("verify %s/base/final", test_folder), OK);
}

/* The probability of the first word that fill puts into a blank. */
static double first_probability(const char *arguments, const char *folder)
{
	struct json_document document;
	double probability = NAN;
	assert_program(OK, "", "fill --json --threads 1 --model %s %s 'the cat [MASK] the house.'", folder, arguments);
	assert_ok(json_parse(&document, "fill", buffer_string(&program_output), program_output.size));
	const struct json *first = json_member(document.root, "results")->first_child;
	assert_ok(json_get_number(json_member(first, "blanks")->first_child->first_child, "fill", "probability", &probability));
	json_release(&document);
	return probability;
}

/* The folder computes in int8 by default, and gives the same results as --precision int8 on the original model, except
 * that the embeddings are rounded differently where activations are fp32. */
static void int8_folder(void **state)
{
	(void)state;
	assert_program(OK, "written: ", "export --model %s/base --to int8 --out %s/int8", test_folder, test_folder);
	assert_there("int8/model_int8.safetensors");
	assert_false(file_exists(test_path("int8/model.safetensors")));
	assert_same_file(test_path("int8/vocab.txt"), test_path("base/final/vocab.txt"));
	assert_int_equal(program("verify %s/int8", test_folder), OK);
	double in_int8 = first_probability("", test_path("int8"));
	double expected = first_probability("--precision int8", test_path("base"));
	double in_fp32 = first_probability("--precision fp32", test_path("int8"));
	assert_near(in_int8, expected, 1e-3 * expected);
	assert_near(in_fp32, expected, 0.05 * expected);
	assert_true(in_fp32 != in_int8);
	/* The reference back end accepts it, too. */
	assert_near(first_probability("--device ref", test_path("int8")), expected, 0.01 * expected);
	char command[PATH_BYTES];
	snprintf(command, sizeof(command),
		 "printf x | dd of=%s/int8/model_int8.safetensors bs=1 seek=9000 conv=notrunc 2>/dev/null", test_folder);
	assert_int_equal(system(command), 0);
	assert_program(ERR_DATA, "damaged", "fill --model %s/int8 'the [MASK]'", test_folder);
}

static void tensorflow_folder(void **state)
{
	(void)state;
	assert_program(OK, "erf", "export --model %s/base --to tensorflow --out %s/google", test_folder, test_folder);
	assert_there("google/bert_model.ckpt.data-00000-of-00001");
	assert_there("google/checkpoint");
	assert_same_file(test_path("google/vocab.txt"), test_path("base/final/vocab.txt"));
	assert_near(first_probability("--precision fp32", test_path("google")),
		    first_probability("--precision fp32", test_path("base")), 0);
}

/* A folder with pooling: its settings are kept in every form that can express them. */
static void sentence_folders(void **state)
{
	(void)state;
	assert_program(
		OK, "written: ", "export --model %s/base --to sentence_transformers --pooling cls --normalize --out %s/vectors",
		test_folder, test_folder);
	assert_there("vectors/modules.json");
	assert_there("vectors/model.safetensors");
	static const char *const forms[] = {"onnx", "int8", "sentence_transformers"};
	for (int i = 0; i < 3; i++) {
		char pooling[64];
		assert_program(OK, "written: ", "export --model %s/vectors --to %s --out %s/vectors-%s", test_folder, forms[i],
			       test_folder, forms[i]);
		snprintf(pooling, sizeof(pooling), "vectors-%s/1_Pooling/config.json", forms[i]);
		assert_same_file(test_path(pooling), test_path("vectors/1_Pooling/config.json"));
		snprintf(pooling, sizeof(pooling), "vectors-%s/modules.json", forms[i]);
		assert_same_file(test_path(pooling), test_path("vectors/modules.json"));
	}
	assert_same_file(test_path("vectors-sentence_transformers/model.safetensors"), test_path("vectors/model.safetensors"));
	assert_program(OK, "written: ", "export --model %s/vectors --to onnx --pooling mean --out %s/vectors.onnx", test_folder,
		       test_folder);
}

static void triton_folder(void **state)
{
	(void)state;
	struct buffer text = {0};
	assert_program(OK, "written: ", "export --model %s/base --to triton --out %s/bert", test_folder, test_folder);
	assert_ok(file_read(test_path("bert/config.pbtxt"), 1 << 16, &text));
	assert_non_null(strstr(buffer_string(&text), "name: \"bert\"\nplatform: \"onnxruntime_onnx\"\n"));
	assert_same_file(test_path("bert/1/model.onnx"), test_path("model.onnx"));
	buffer_release(&text);
}

static void refused(void **state)
{
	(void)state;
	assert_program(ERR_USAGE, "--to is missing", "export --model %s/base --out %s/x", test_folder, test_folder);
	assert_program(ERR_USAGE, "no such file or folder", "export --model %s/nothing --to onnx --out %s/x", test_folder,
		       test_folder);
	assert_ok(folder_make(test_path("full")));
	assert_ok(file_write(test_path("full/mine"), "x", 1));
	assert_program(ERR_USAGE, "exists already", "export --model %s/base --to onnx --out %s/full", test_folder, test_folder);
	assert_program(ERR_USAGE, "exists already", "export --model %s/base --to onnx --out %s/full/mine", test_folder,
		       test_folder);
	assert_program(ERR_USAGE, "which is never written to", "export --model %s/base --to onnx --out %s/base/final/onnx",
		       test_folder, test_folder);
	assert_program(ERR_USAGE, "which is never written to", "export --model %s/base --to onnx --out %s/base/final/a/b.onnx",
		       test_folder, test_folder);
	assert_int_equal(program("verify %s/base/final", test_folder), OK);
	/* Options that would have no effect. */
	assert_program(ERR_USAGE, "--calibrate has no effect with --to onnx",
		       "export --model %s/base --to onnx --calibrate %s --out %s/x", test_folder, corpus, test_folder);
	assert_program(ERR_USAGE, "--normalize has no effect with --to tensorflow",
		       "export --model %s/base --to tensorflow --normalize --out %s/x", test_folder, test_folder);
	assert_program(ERR_USAGE, "does not say how texts become vectors",
		       "export --model %s/base --to onnx --normalize --out %s/x", test_folder, test_folder);
	assert_false(file_exists(test_path("x")));
	/* An empty folder is as good as none. */
	assert_ok(folder_make(test_path("empty")));
	assert_program(OK, "written: ", "export --model %s/base --to onnx --out %s/empty/", test_folder, test_folder);
	assert_there("empty/onnx/model.onnx");
}

/* Damage and a full disk leave nothing under the requested name. */
static void failures_leave_nothing(void **state)
{
	(void)state;
	char command[PATH_BYTES];
	snprintf(command, sizeof(command),
		 "cp -r %s/base/final %s/damaged && printf x | dd of=%s/damaged/model.safetensors bs=1 "
		 "seek=3000 conv=notrunc 2>/dev/null",
		 test_folder, test_folder, test_folder);
	assert_int_equal(system(command), 0);
	assert_program(ERR_DATA, "damaged", "export --model %s/damaged --to onnx --out %s/out", test_folder, test_folder);
	assert_false(file_exists(test_path("out")));
	setenv("BERTC_FAULT", "write:2:ENOSPC", 1);
	assert_program(ERR_RESOURCE, "", "export --model %s/base --to onnx --out %s/out", test_folder, test_folder);
	unsetenv("BERTC_FAULT");
	assert_false(file_exists(test_path("out")));
	assert_false(file_exists(test_path(".tmp-out")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(onnx_folder_and_file),   cmocka_unit_test(int8_folder),   cmocka_unit_test(tensorflow_folder),
		cmocka_unit_test(sentence_folders),       cmocka_unit_test(triton_folder), cmocka_unit_test(refused),
		cmocka_unit_test(failures_leave_nothing),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
