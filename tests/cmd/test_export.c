/* bertc export as a user runs it: what each form leaves, and what it refuses. */
#include "cmd/small_run.h"
#include "infer/small_model.h"
#include "weights/sentence_folder.h"

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

static void assert_nothing_half_made(void)
{
	struct name_list names;
	assert_ok(folder_list(test_folder, &names));
	for (int64_t i = 0; i < names.count; i++)
		if (names.names[i][0] == '.')
			fail_msg("'%s' was left", names.names[i]);
	name_list_release(&names);
}

static void onnx_folder_and_file(void **state)
{
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
	assert_nothing_half_made();
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
	assert_program(OK, "written: ", "export --model %s/base --to int8 --out %s/int8", test_folder, test_folder);
	assert_there("int8/model_int8.safetensors");
	assert_false(file_exists(test_path("int8/model.safetensors")));
	assert_same_file(test_path("int8/vocab.txt"), test_path("base/final/vocab.txt"));
	assert_int_equal(program("verify %s/int8", test_folder), OK);
	double in_int8 = first_probability("", test_path("int8"));
	double expected = first_probability("--precision int8", test_path("base"));
	double in_fp32 = first_probability("--precision fp32", test_path("int8"));
	double by_reference = first_probability("--device ref", test_path("int8"));
	assert_near(in_int8, expected, 1e-3 * expected);
	assert_near(in_fp32, by_reference, 1e-4 * by_reference);
	assert_near(by_reference, expected, 0.01 * expected);
	assert_true(in_fp32 != in_int8);
	char command[PATH_BYTES];
	snprintf(command, sizeof command,
		 "printf x | dd of=%s/int8/model_int8.safetensors bs=1 seek=9000 conv=notrunc 2>/dev/null", test_folder);
	assert_int_equal(system(command), 0);
	assert_program(ERR_DATA, "damaged", "fill --model %s/int8 'the [MASK]'", test_folder);
}

static void tensorflow_folder(void **state)
{
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
		snprintf(pooling, sizeof pooling, "vectors-%s/1_Pooling/config.json", forms[i]);
		assert_same_file(test_path(pooling), test_path("vectors/1_Pooling/config.json"));
		snprintf(pooling, sizeof pooling, "vectors-%s/modules.json", forms[i]);
		assert_same_file(test_path(pooling), test_path("vectors/modules.json"));
	}
	assert_same_file(test_path("vectors-sentence_transformers/model.safetensors"), test_path("vectors/model.safetensors"));
	assert_program(OK, "written: ", "export --model %s/vectors --to onnx --pooling mean --out %s/vectors.onnx", test_folder,
		       test_folder);
}

static void triton_folder(void **state)
{
	struct buffer text = {0};
	assert_program(OK, "written: ", "export --model %s/base --to triton --out %s/bert", test_folder, test_folder);
	assert_ok(file_read(test_path("bert/config.pbtxt"), 1 << 16, &text));
	assert_non_null(strstr(buffer_string(&text), "name: \"bert\"\nplatform: \"onnxruntime_onnx\"\n"));
	assert_same_file(test_path("bert/1/model.onnx"), test_path("model.onnx"));
	buffer_release(&text);
}

static void refused(void **state)
{
	assert_program(ERR_USAGE, "--to is missing", "export --model %s/base --out %s/x", test_folder, test_folder);
	assert_program(ERR_USAGE, "no such file or folder", "export --model %s/nothing --to onnx --out %s/x", test_folder,
		       test_folder);
	assert_ok(folder_make(test_path("full")));
	assert_ok(file_write(test_path("full/mine"), "x", 1));
	assert_program(ERR_USAGE, "exists already", "export --model %s/base --to onnx --out %s/full", test_folder, test_folder);
	assert_program(ERR_USAGE, "exists already", "export --model %s/base --to onnx --out %s/full/mine", test_folder,
		       test_folder);
	assert_ok(file_write(test_path("graph.onnx_data"), "x", 1));
	assert_program(ERR_USAGE, "graph.onnx_data' exists already", "export --model %s/base --to onnx --out %s/graph.onnx",
		       test_folder, test_folder);
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
	assert_program(ERR_USAGE, "--pooling has no effect with --to tensorflow",
		       "export --model %s/base --to tensorflow --pooling cls --out %s/x", test_folder, test_folder);
	assert_program(ERR_USAGE, "--head has no effect with --pooling",
		       "export --model %s/base --to onnx --head --pooling cls --out %s/x", test_folder, test_folder);
	assert_program(ERR_USAGE, "--head has no effect with --to sentence_transformers",
		       "export --model %s/base --to sentence_transformers --head --out %s/x", test_folder, test_folder);
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
	char command[PATH_BYTES];
	snprintf(command, sizeof command,
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
	assert_nothing_half_made();
}

/* Two exports to the same place at the same time: one is there, whole, and the other says so. */
static void only_one_of_two_gets_the_place(void **state)
{
	char command[2 * PATH_BYTES];
	const char *bertc = getenv("BERTC");
	snprintf(command, sizeof command,
		 "for i in 1 2; do (BERTC_FAULT=fsync:1:slow %s export --model %s/base --to onnx --out %s/both 2>%s/both-$i.log; "
		 "echo $? >>%s/both.codes) & done; wait",
		 bertc ? bertc : "build/bertc", test_folder, test_folder, test_folder, test_folder);
	assert_int_equal(system(command), 0);
	struct buffer codes = {0}, said = {0};
	assert_ok(file_read(test_path("both.codes"), 64, &codes));
	assert_true(strcmp(buffer_string(&codes), "0\n2\n") == 0 || strcmp(buffer_string(&codes), "2\n0\n") == 0);
	int refusals = 0;
	for (int i = 1; i <= 2; i++) {
		char name[16];
		snprintf(name, sizeof name, "both-%d.log", i);
		assert_ok(file_read(test_path(name), 1 << 16, &said));
		refusals += strstr(buffer_string(&said), "was made by another program in the meantime") ||
			    strstr(buffer_string(&said), "exists already");
	}
	assert_int_equal(refusals, 1);
	assert_same_file(test_path("both/onnx/model.onnx"), test_path("onnx/onnx/model.onnx"));
	assert_same_file(test_path("both/vocab.txt"), test_path("onnx/vocab.txt"));
	assert_nothing_half_made();
	buffer_release(&codes);
	buffer_release(&said);
}

static bool file_mentions(const char *name, const char *word)
{
	struct buffer text = {0};
	assert_ok(file_read(test_path(name), 1 << 24, &text));
	bool found = memmem(text.data, text.size, word, strlen(word)) != NULL;
	buffer_release(&text);
	return found;
}

static void make_words(const char *name, const struct model_heads *heads, const char *architecture)
{
	struct task_config task = {0};
	assert_ok(task_config_make(&task, architecture, NULL, NULL, 0));
	small_model_write(test_path(name), heads, &task, NULL, NULL);
	task_config_release(&task);
}

/* A model without pooler and next-sentence head gets neither from an export, and keeps its architecture. */
static void heads_are_not_invented(void **state)
{
	make_words("masked", &model_heads_words, "BertForMaskedLM");
	make_words("both_heads", &model_heads_pretraining, "BertForMaskedLM");
	make_words("promised", &model_heads_words, "BertForPreTraining");
	static const char *const sources[] = {"masked", "promised", "both_heads"};
	for (int i = 0; i < 3; i++) {
		char google[64], int8[64], about[64];
		bool has_both = i == 2;
		snprintf(google, sizeof google, "%s-google/bert_model.ckpt.index", sources[i]);
		snprintf(int8, sizeof int8, "%s-int8/model_int8.safetensors", sources[i]);
		snprintf(about, sizeof about, "%s-int8/config.json", sources[i]);
		assert_program(OK, "written: ", "export --model %s/%s --to tensorflow --out %s/%s-google", test_folder,
			       sources[i], test_folder, sources[i]);
		assert_program(OK, "written: ", "export --model %s/%s --to int8 --out %s/%s-int8", test_folder, sources[i],
			       test_folder, sources[i]);
		assert_true(file_mentions(google, "cls/predictions"));
		assert_int_equal(file_mentions(google, "seq_relationship"), has_both);
		assert_int_equal(file_mentions(int8, "bert.pooler"), has_both);
		assert_int_equal(file_mentions(int8, "cls.seq_relationship"), has_both);
		assert_true(file_mentions(about, "BertForMaskedLM"));
		assert_int_equal(program("verify %s/%s-int8", test_folder, sources[i]), OK);
		if (!has_both)
			assert_program(ERR_STATE, "has no next-sentence head",
				       "evaluate --model %s/%s-google --max_seq_length 32 --corpus %s", test_folder, sources[i],
				       corpus);
	}
	char arguments[PATH_BYTES];
	snprintf(arguments, sizeof arguments, "export --model %s/masked --to onnx --out %s/masked.onnx", test_folder,
		 test_folder);
	assert_program(OK, "written: ", "%s", arguments);
	assert_false(file_mentions("masked.onnx", "pooler"));
}

/* A folder of sentence-transformers without pooling: nobody said that its vectors are means. */
static void pooling_is_not_invented(void **state)
{
	static const char modules[] = "[{\"type\": \"sentence_transformers.models.Transformer\", \"path\": \"\"}]";
	make_words("scorer", &model_heads_words, "BertForMaskedLM");
	assert_ok(file_write(test_path("scorer/modules.json"), modules, strlen(modules)));
	assert_program(ERR_USAGE, "pools nothing", "export --model %s/scorer --to sentence_transformers --out %s/scorer-out",
		       test_folder, test_folder);
	static const char *const forms[] = {"int8", "onnx --no_head", "transformers"};
	for (int i = 0; i < 3; i++) {
		struct sentence_folder read;
		char out[32];
		snprintf(out, sizeof out, "scorer-%d", i);
		assert_program(OK, "written: ", "export --model %s/scorer --to %s --out %s/%s", test_folder, forms[i],
			       test_folder, out);
		assert_ok(sentence_folder_read(&read, test_path(out)));
		assert_true(read.found && read.pooling == 0);
		sentence_folder_release(&read);
		assert_int_equal(program("verify %s/%s", test_folder, out), OK);
	}
	assert_program(OK, "written: ", "export --model %s/scorer --to sentence_transformers --pooling mean --out %s/scorer-out",
		       test_folder, test_folder);
}

/* In early folders of sentence-transformers the BERT is in a folder of its own; the whole is the model's folder. */
static void nothing_goes_beside_an_inner_model(void **state)
{
	static const char modules[] = "[{\"type\": \"sentence_transformers.models.Transformer\", \"path\": \"0_Transformer\"}]";
	assert_ok(folder_make(test_path("early")));
	make_words("early/0_Transformer", &model_heads_words, "BertForMaskedLM");
	assert_ok(file_write(test_path("early/modules.json"), modules, strlen(modules)));
	assert_program(ERR_USAGE, "which is never written to", "export --model %s/early --to onnx --out %s/early/onnx",
		       test_folder, test_folder);
	assert_program(OK, "written: ", "export --model %s/early --to onnx --out %s/early-onnx", test_folder, test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(onnx_folder_and_file),
		cmocka_unit_test(int8_folder),
		cmocka_unit_test(tensorflow_folder),
		cmocka_unit_test(sentence_folders),
		cmocka_unit_test(triton_folder),
		cmocka_unit_test(refused),
		cmocka_unit_test(failures_leave_nothing),
		cmocka_unit_test(only_one_of_two_gets_the_place),
		cmocka_unit_test(heads_are_not_invented),
		cmocka_unit_test(pooling_is_not_invented),
		cmocka_unit_test(nothing_goes_beside_an_inner_model),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
