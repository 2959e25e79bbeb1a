/* Damaged files of a run, given to every command that reads them: none of the commands computes with them, and each names
 * the file. Checkpoint records that cannot be true are refused even if their manifest agrees with them. Options that an
 * earlier version had are answered with a line that says so, wherever they were given. */
#include "base/hash.h"
#include "cmd/small_run.h"
#include "formats/safetensors.h"
#include "weights/manifest.h"

#define RUN(out, more)                                                                                                           \
	"pretrain --corpus %s --model %s --out %s/" out " --vocab_size 80 --train_batch_size 8 --max_seq_length 32 "             \
	"--num_train_steps 4 --save_checkpoints_steps 2 --keep_checkpoints 0 --threads 1 --precision fp32 " more,                \
		corpus, config, test_folder

static int setup(void **state)
{
	if (small_run_make(state, 7) != 0)
		return -1;
	assert_program(0, "finished", RUN("run", ""));
	return 0;
}

static void copy(const char *from, const char *to)
{
	struct buffer bytes = {0};
	assert_ok(file_read(test_path(from), 1 << 24, &bytes));
	assert_ok(file_write(test_path(to), bytes.data, bytes.size));
	buffer_release(&bytes);
}

/* Changes one bit of a file. */
static void flip(const char *name, int64_t byte)
{
	struct buffer bytes = {0};
	assert_ok(file_read(test_path(name), 1 << 24, &bytes));
	bytes.data[byte < 0 ? (int64_t)bytes.size + byte : byte] ^= 4;
	assert_ok(file_write(test_path(name), bytes.data, bytes.size));
	buffer_release(&bytes);
}

/* Replaces `from` in a text file. */
static void replace(const char *name, const char *from, const char *to)
{
	struct buffer bytes = {0}, out = {0};
	assert_ok(file_read(test_path(name), 1 << 24, &bytes));
	char *at = strstr(buffer_string(&bytes), from);
	if (!at)
		fail_msg("'%s' is not in %s", from, name);
	buffer_append(&out, bytes.data, (size_t)(at - bytes.data));
	buffer_text(&out, to);
	buffer_text(&out, at + strlen(from));
	assert_ok(file_write(test_path(name), out.data, out.size));
	buffer_release(&bytes);
	buffer_release(&out);
}

/* Every command that reads a model is given this one, by its path relative to the run's folder. */
static void assert_all_refuse(const char *model, const char *file)
{
	assert_program(3, "damaged", "fill --model %s 'the [MASK] sees'", test_path(model));
	assert_said(file);
	assert_program(3, "damaged", "evaluate --model %s --corpus %s --max_seq_length 32", test_path(model), corpus);
	assert_said(file);
	assert_program(3, "damaged",
		       "pretrain --corpus %s --init_checkpoint %s --out %s/other --num_train_steps 1 "
		       "--train_batch_size 8 --max_seq_length 32",
		       corpus, test_path(model), test_folder);
	assert_said(file);
	assert_program(3, "damaged", "compare %s %s", test_path(model), test_path("run/checkpoint-2"));
	assert_said(file);
	assert_ok(folder_remove(test_path("other")));
}

static void flipped_weights_are_refused(void **state)
{
	static const char *const folders[] = {"run/final", "run/checkpoint-4"};
	for (int i = 0; i < 2; i++) {
		char weights[64];
		snprintf(weights, sizeof weights, "%s/model.safetensors", folders[i]);
		assert_program(0, "", "fill --model %s 'the [MASK] sees'", test_path(weights));
		flip(weights, -5000);
		assert_all_refuse(weights, "model.safetensors");
		assert_all_refuse(folders[i], "model.safetensors");
		assert_program(3, "damaged", "verify %s", test_path(weights));
		flip(weights, -5000);
		assert_program(0, "", "fill --model %s 'the [MASK] sees'", test_path(weights));
	}
}

static void swapped_vocabularies_are_refused(void **state)
{
	copy("run/final/vocab.txt", "vocab.txt");
	replace("run/final/vocab.txt", "\na\nb\n", "\nb\na\n");
	assert_program(3, "damaged", "fill --model %s/run/final 'the [MASK] sees'", test_folder);
	assert_said("vocab.txt");
	assert_program(3, "damaged", "evaluate --model %s/run/final --corpus %s --max_seq_length 32", test_folder, corpus);
	assert_program(3, "damaged", "tokenize --vocab_file %s/run/final/vocab.txt %s", test_folder, corpus);
	assert_program(3, "damaged", "prepare --vocab_file %s/run/final/vocab.txt --corpus %s --out %s/shards/x", test_folder,
		       corpus, test_folder);
	assert_program(3, "damaged", RUN("borrowed", "--vocab_file %s/run/final/vocab.txt"), test_folder);
	assert_program(3, "damaged", "pretrain --corpus %s --init_checkpoint %s/run/final --out %s/other", corpus, test_folder,
		       test_folder);
	copy("vocab.txt", "run/final/vocab.txt");
	assert_program(0, "", "fill --model %s/run/final 'the [MASK] sees'", test_folder);
}

/* A folder from somebody else, or one that was changed on purpose: without a manifest there is nothing to compare with. */
static void no_checkpoint_replaces_a_damaged_final(void **state)
{
	assert_int_equal(rename(test_path("run/final/config.json"), test_path("config")), 0);
	assert_program(2, "/run': neither config.json", "fill --model %s 'the [MASK] sees'", test_path("run"));
	assert_int_equal(rename(test_path("config"), test_path("run/final/config.json")), 0);
}

static void folders_without_a_manifest_are_read(void **state)
{
	static const char *const names[] = {"config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"};
	assert_ok(folder_make(test_path("theirs")));
	for (int i = 0; i < 4; i++) {
		char from[64], to[64];
		snprintf(from, sizeof from, "run/final/%s", names[i]);
		snprintf(to, sizeof to, "theirs/%s", names[i]);
		copy(from, to);
	}
	replace("theirs/vocab.txt", "\na\nb\n", "\nb\na\n");
	assert_program(0, "", "fill --model %s/theirs 'the [MASK] sees'", test_folder);
}

/* What a folder says about its tokenizer and about how texts become vectors: changed, or missing though the manifest lists
 * it. */
static void flipped_modules_are_refused(void **state)
{
	static const char *const files[] = {"modules.json", "1_Pooling/config.json", "sentence_bert_config.json",
					    "config_sentence_transformers.json", "tokenizer_config.json"};
	assert_ok(file_write(test_path("texts"), "the cat sees\n", 13));
	assert_program(0, "", "export --model %s/run --to sentence_transformers --out %s/vectors", test_folder, test_folder);
	assert_program(0, "", "embed --model %s/vectors %s/texts", test_folder, test_folder);
	for (int i = 0; i < 5; i++) {
		char name[96];
		snprintf(name, sizeof name, "vectors/%s", files[i]);
		copy(name, "kept");
		replace(name, "\"", " \"");
		assert_program(3, "damaged", "embed --model %s/vectors %s/texts", test_folder, test_folder);
		assert_said(files[i]);
		assert_program(3, "damaged", "export --model %s/vectors --to onnx --out %s/onnx", test_folder, test_folder);
		assert_int_equal(remove(test_path(name)), 0);
		assert_program(3, "is missing", "embed --model %s/vectors %s/texts", test_folder, test_folder);
		copy("kept", name);
	}
	assert_program(0, "", "embed --model %s/vectors %s/texts", test_folder, test_folder);
}

/* ---- Checkpoints whose manifest is right ---- */

/* Copies a checkpoint of the run into a run of its own, with everything that a resumed run needs. */
static void make_run(const char *run, const char *checkpoint)
{
	char command[1024];
	assert_ok(folder_make(test_path(run)));
	snprintf(command, sizeof command, "cp -r %s/run/checkpoint-2 %s/%s/%s && cp -r %s/run/data %s/run/settings.json %s/%s/",
		 test_folder, test_folder, run, checkpoint, test_folder, test_folder, test_folder, run);
	assert_int_equal(system(command), 0);
}

/* Rewrites the manifest of a changed checkpoint. */
static void seal(const char *checkpoint, int64_t step)
{
	struct folder_files files = {0};
	struct name_list names = {0};
	assert_ok(folder_list(test_path(checkpoint), &names));
	for (int64_t i = 0; i < names.count; i++)
		if (strcmp(names.names[i], MANIFEST_NAME) != 0)
			assert_ok(folder_files_measure(&files, test_path(checkpoint), names.names[i]));
	assert_ok(manifest_write(test_path(checkpoint), step, &files));
	name_list_release(&names);
	free(files.files);
}

/* Overwrites the first numbers of a tensor. */
static void put_number(const char *name, const char *tensor, float number)
{
	struct safetensors file;
	assert_ok(safetensors_open(&file, test_path(name)));
	const struct safetensors_entry *entry = safetensors_find(&file, tensor);
	assert_non_null(entry);
	long offset = (long)((const unsigned char *)entry->data - file.map.data) + 8;
	safetensors_close(&file);
	FILE *stream = fopen(test_path(name), "r+b");
	assert_non_null(stream);
	assert_int_equal(fseek(stream, offset, SEEK_SET), 0);
	assert_int_equal(fwrite(&number, sizeof number, 1, stream), 1);
	assert_int_equal(fclose(stream), 0);
}

static void numbers_that_no_training_makes_are_refused(void **state)
{
	static const struct {
		const char *file, *tensor;
		float number;
		const char *said;
	} cases[] = {
		{"model.safetensors", "bert.encoder.layer.1.output.dense.weight", NAN, "not finite"},
		{"optimizer.safetensors", "exp_avg.bert.pooler.dense.weight", NAN, "not finite"},
		{"optimizer.safetensors", "exp_avg_sq.cls.predictions.bias", INFINITY, "not finite"},
		{"optimizer.safetensors", "exp_avg_sq.bert.embeddings.LayerNorm.weight", -1, "negative"},
		{"optimizer.safetensors", "exp_avg.bert.embeddings.LayerNorm.weight", 1e38F, "cannot be the mean of gradients"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char file[64];
		make_run("numbers", "checkpoint-2");
		snprintf(file, sizeof file, "numbers/checkpoint-2/%s", cases[i].file);
		put_number(file, cases[i].tensor, cases[i].number);
		seal("numbers/checkpoint-2", 2);
		assert_program(3, cases[i].said, RUN("numbers", ""));
		assert_said(cases[i].tensor);
		assert_program(3, "", "verify %s/numbers/checkpoint-2", test_folder);
		assert_non_null(strstr(buffer_string(&program_output), cases[i].said));
		assert_non_null(strstr(buffer_string(&program_output), cases[i].tensor));
		if (i == 0) {
			assert_program(3, "not finite", "fill --model %s/numbers/checkpoint-2 'the [MASK] sees'", test_folder);
			assert_program(3, "not finite",
				       "evaluate --model %s/numbers/checkpoint-2 --corpus %s --max_seq_length 32 --json",
				       test_folder, corpus);
		}
		assert_ok(folder_remove(test_path("numbers")));
	}
}

/* Weights that are numbers, with correct checksums, but for which every computed result is NaN or infinite. */
static void answers_that_are_no_numbers_are_errors(void **state)
{
	char command[1024];
	static const char norm[] = "bert.embeddings.LayerNorm.weight", table[] = "sentence\tlabel\nthe cat\ta\na dog\tb\n";
#define SMALL "--train_batch_size 8 --max_seq_length 32 --threads 1 --precision fp32"
	assert_ok(file_write(test_path("table.tsv"), table, strlen(table)));
	assert_program(0, "",
		       "finetune --task classification --model %s/run --train %s/table.tsv --out %s/tuned --num_train_steps 1 "
		       "--quiet " SMALL,
		       test_folder, test_folder, test_folder);
	snprintf(command, sizeof command, "cp -rL %s/run/final %s/huge && cp -rL %s/tuned/final %s/huge-tuned", test_folder,
		 test_folder, test_folder, test_folder);
	assert_int_equal(system(command), 0);
	static const char *const folders[] = {"huge", "huge-tuned"};
	for (int i = 0; i < 2; i++) {
		char file[64];
		snprintf(file, sizeof file, "%s/model.safetensors", folders[i]);
		put_number(file, norm, 1e38F);
		seal(folders[i], 4);
		assert_program(0, norm, "verify %s/%s", test_folder, folders[i]);
		assert_said("has values up to 1e+38, far beyond those of trained models");
	}
	assert_program(7, "the model's answer to 'the [MASK] sees' is not finite", "fill --model %s/huge 'the [MASK] sees'",
		       test_folder);
	assert_said("bertc verify");
	assert_program(7, "the model's answer to ", "score --model %s/huge %s", test_folder, corpus);
	assert_program(7, "the model's answer to ", "embed --model %s/huge %s", test_folder, corpus);
	assert_program(7, "the model's answer to ", "embed --model %s/huge %s --format npy --out %s/vectors.npy", test_folder,
		       corpus, test_folder);
	assert_false(file_exists(test_path("vectors.npy")));
	assert_program(7, "the model's loss is not finite", "evaluate --model %s/huge --corpus %s --max_seq_length 32 --json",
		       test_folder, corpus);
	assert_string_equal(buffer_string(&program_output), "");
	assert_program(7, "the model's answer to a text of ", "export --model %s/huge --to int8 --out %s/int8", test_folder,
		       test_folder);
	assert_false(file_exists(test_path("int8")));
	assert_program(7, "the model's answer to 'the cat' is not finite", "predict --model %s/huge-tuned %s/table.tsv",
		       test_folder, test_folder);
	assert_string_equal(buffer_string(&program_output), "");
	assert_program(7, "the model's answer to example 1 is not finite", "evaluate --model %s/huge-tuned --test %s/table.tsv",
		       test_folder, test_folder);
	assert_program(7, "number 3 in a row",
		       "finetune --task classification --model %s/huge --train %s/table.tsv --out %s/trained "
		       "--num_train_steps 5 " SMALL,
		       test_folder, test_folder, test_folder);
	assert_said("first in 'bert.");
	/* The settings of a run without a checkpoint do not bind the next one. */
	static const char *const rates[] = {"1e-5", "1e-6"};
	for (int i = 0; i < 2; i++)
		assert_program(7, "number 3 in a row",
			       "finetune --task classification --model %s/huge --train %s/table.tsv --out %s/untrained "
			       "--num_train_steps 5 --save_checkpoints_steps 5 --learning_rate %s " SMALL,
			       test_folder, test_folder, test_folder, rates[i]);
	/* A single update that is skipped leaves such a model to the evaluation, whose results are then not written. */
	assert_program(
		7, "the model's answer to example 1 is not finite",
		"finetune --task classification --model %s/huge-tuned --train %s/table.tsv --dev %s/table.tsv --out %s/scored "
		"--num_train_steps 1 " SMALL,
		test_folder, test_folder, test_folder, test_folder);
	assert_false(file_exists(test_path("scored/eval_results.json")));
}

static void records_that_cannot_be_true_are_refused(void **state)
{
	static const struct {
		const char *from, *to, *said;
		int status;
	} cases[] = {
		{"\"step\": 2,", "\"step\": 9223372036854775800,", "\"step\" must be an integer", 3},
		{"\"samples\": 16,", "\"samples\": 9223372036854775800,", "\"samples\" must be an integer", 3},
		{"\"tokens\": ", "\"tokens\": 922337203685477", "\"tokens\" must be an integer", 3},
		{"\"step\": 2,", "\"step\": 3,", "is of step 3, its MANIFEST.json of step 2", 3},
		{"\"update_count\": 2,", "\"update_count\": 3,", "\"update_count\" must be an integer in 0..2", 3},
		{"\"epoch\": ", "\"epochs\": ", "\"epoch\" is missing", 3},
		{"\"format\": 1,", "\"format\": 2,", "format 2; this version reads formats up to 1", 4},
		{"\"format\": 1,", "\"format\": 0,", "unknown format", 3},
		{"\"guard\"", "\"guards\"", "\"guard\" is incomplete", 3},
		{"\"loss_scale\": ", "\"loss_scale\": 0.0, \"before\": ", "which no loss can be multiplied by", 3},
		{"\"seconds\": ", "\"seconds\": 1e308, \"before\": ", "is not a time", 3},
		{"\"loss_sum\": ", "\"loss_sum\": 1e308, \"before\": ", "\"loss_sum\" is 1e+308", 3},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		make_run("record", "checkpoint-2");
		replace("record/checkpoint-2/training_state.json", cases[i].from, cases[i].to);
		seal("record/checkpoint-2", 2);
		assert_program(cases[i].status, cases[i].said, RUN("record", ""));
		assert_ok(folder_remove(test_path("record")));
	}
}

/* The name, the manifest and the record must refer to the same step. */
static void steps_agree(void **state)
{
	make_run("named", "checkpoint-3");
	assert_program(3, "none of its 1 checkpoints is intact", RUN("named", ""));
	assert_said("is of step 2");
	assert_program(3, "is of step 2", RUN("elsewhere", "--resume_from %s/named/checkpoint-3"), test_folder);
	assert_ok(folder_remove(test_path("named")));
	make_run("named", "copy"); /* a name that does not contain a step */
	assert_program(0, "finished", RUN("elsewhere", "--resume_from %s/named/copy"), test_folder);
}

static void options_that_were_removed_are_named(void **state)
{
	static const char removed[] = "--attention is ignored: it was removed",
			  *small = "-q --model tiny --max_seq_length 16 "
				   "--train_batch_size 1 --steps 1 --device cpu";
	assert_program(0, removed, "bench %s --attention cudnn", small);
	assert_program(2, "--attention needs a value", "bench %s --attention", small);
	assert_ok(file_write(test_path("own.conf"), "attention = own\n", 16));
	assert_program(0, removed, "bench %s --config %s/own.conf", small, test_folder);
	/* A run that was begun with cuDNN's attention. */
	make_run("removed", "checkpoint-2");
	replace("removed/checkpoint-2/training_state.json", "\"precision\": ", "\"attention\": \"cudnn\", \"precision\": ");
	replace("removed/checkpoint-2/training_state.json", "\"computed_on\": \"", "\"computed_on\": \"attention by cuDNN, ");
	seal("removed/checkpoint-2", 2);
	assert_program(0, removed, "pretrain --out %s/removed", test_folder);
	assert_said("to rounding, not bit for bit");
	assert_null(strstr(strstr(buffer_string(&program_errors), removed) + 1, removed)); /* said once */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flipped_weights_are_refused),
		cmocka_unit_test(swapped_vocabularies_are_refused),
		cmocka_unit_test(no_checkpoint_replaces_a_damaged_final),
		cmocka_unit_test(folders_without_a_manifest_are_read),
		cmocka_unit_test(flipped_modules_are_refused),
		cmocka_unit_test(numbers_that_no_training_makes_are_refused),
		cmocka_unit_test(answers_that_are_no_numbers_are_errors),
		cmocka_unit_test(records_that_cannot_be_true_are_refused),
		cmocka_unit_test(steps_agree),
		cmocka_unit_test(options_that_were_removed_are_named),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
