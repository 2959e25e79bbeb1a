/* bertc inspect and verify know everything that bertc writes: each kind by its name, whole and damaged, finished and
 * unfinished. */
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include "cmd/small_run.h"
#include "formats/onnx_reader.h"

static int setup(void **state)
{
	if (small_run_make(state, 5) != 0)
		return -1;
	assert_ok(file_write(test_path("texts.txt"), "the cat sees\nnobody likes the moon\n", 35));
	if (program("pretrain --corpus %s --model %s --out %s/run --vocab_size 80 --train_batch_size 8 --max_seq_length 32 "
		    "--num_train_steps 4 --save_checkpoints_steps 2 --eval_steps 2 --precision fp32 --threads 1",
		    corpus, config, test_folder) != 0)
		return -1;
	static const char *const forms[] = {"onnx", "int8", "triton", "tensorflow", "sentence_transformers"};
	for (int i = 0; i < 5; i++)
		if (program("export --model %s/run --to %s --out %s/%s", test_folder, forms[i], test_folder, forms[i]) != 0)
			return -1;
	return program("export --model %s/run --to triton --out %s/repository/bert", test_folder, test_folder);
}

static void assert_shown(const char *what, const char *part)
{
	if (!strstr(buffer_string(&program_output), part))
		fail_msg("%s: '%s' is not in:\n%s", what, part, buffer_string(&program_output));
}

static void each_kind_is_known(void **state)
{
	static const struct {
		const char *path, *kind, *also, *proof; /* proof: what verify reports; NULL: nothing to verify */
	} cases[] = {
		{"run", "run folder", "finished after 4 steps", "checkpoint-2"},
		{"run/data", "data folder of a run", "vocab_size 80", "both files have checksums"},
		{"run/data/train", "token shards", "documents", "both files have checksums"},
		{"run/checkpoint-2", "checkpoint", "step", "all bytes are covered by checksums"},
		{"run/final", "finished model", "BertForPreTraining", "all bytes are covered by checksums"},
		{"run/data/vocab.txt", "vocabulary", "[MASK]", "special tokens"},
		{"run/metrics.jsonl", "metrics", "last_evaluation", "every complete line is a JSON object"},
		{"run/settings.json", "json", "num_train_steps", NULL},
		{"int8", "int8 model folder", "hidden_size", "all bytes are covered by checksums"},
		{"onnx", "ONNX folder", "int64 batch x sequence", "all bytes are covered by checksums"},
		{"onnx/onnx/model.onnx", "ONNX model", "int64 batch x sequence", "all bytes are covered by checksums"},
		{"triton", "Triton model", "max_batch_size", "all bytes are covered by checksums"},
		{"repository", "Triton model repository", "max_batch_size", "all bytes are covered by checksums"},
		{"tensorflow", "TensorFlow folder", "TensorFlow checkpoint", "every tensor has a checksum"},
		{"sentence_transformers", "sentence-transformers folder", "pooling_mode_mean_tokens",
		 "all bytes are covered by checksums"},
		{"corpus.txt", "text", "sentences per line", NULL},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char kind[96];
		snprintf(kind, sizeof kind, "\"kind\":\"%s\"", cases[i].kind);
		assert_program(OK, "", "inspect --json %s/%s", test_folder, cases[i].path);
		assert_shown(cases[i].path, kind);
		assert_shown(cases[i].path, cases[i].also);
		int status = program("verify %s/%s", test_folder, cases[i].path);
		assert_int_equal(status, cases[i].proof ? OK : ERR_USAGE);
		if (cases[i].proof)
			assert_shown(cases[i].path, cases[i].proof);
	}
}

static void what_embed_leaves(void **state)
{
	static const char *const forms[] = {"jsonl", "npy", "tsv", "google"};
	for (int i = 0; i < 4; i++) {
		const char *ending = i == 3 ? "google.jsonl" : forms[i];
		assert_int_equal(program("embed --model %s/run --format %s %s --out %s/vectors.%s --threads 1 %s/texts.txt",
					 test_folder, forms[i], i == 3 ? "--layers=-1" : "", test_folder, ending, test_folder),
				 OK);
		assert_program(OK, "", "inspect --json %s/vectors.%s", test_folder, ending);
		struct json_document document;
		int64_t vectors = 0, numbers = 0;
		assert_ok(json_parse(&document, "inspect", buffer_string(&program_output), program_output.size));
		assert_ok(json_get_integer(document.root, "inspect", "vectors", 0, 100, &vectors));
		assert_ok(json_get_integer(document.root, "inspect", "numbers_each", 0, 100, &numbers));
		json_release(&document);
		assert_true(i == 3 ? vectors > 2 : vectors == 2);
		assert_int_equal(numbers, 32);
		assert_program(OK, "", "verify %s/vectors.%s", test_folder, ending);
		/* Cut off. */
		char path[64];
		snprintf(path, sizeof path, "vectors.%s", ending);
		assert_int_equal(truncate(test_path(path), file_size(test_path(path)) - 5), 0);
		assert_program(ERR_DATA, "", "verify %s/vectors.%s", test_folder, ending);
		assert_shown(ending, "DAMAGED");
	}
	static const char broken[] =
		"{\"linex_index\":0,\"features\":[{\"token\":\"a\",\"layers\":[{\"index\":-1,\"values\":[null]}]}]}\n";
	assert_ok(file_write(test_path("broken.jsonl"), broken, sizeof broken - 1));
	assert_program(ERR_DATA, "", "verify %s/broken.jsonl", test_folder);
	assert_shown("broken.jsonl", "a list of numbers");
}

/* Numbers as codes, and weights of words, of which texts have different numbers. */
static void what_embed_leaves_in_other_types(void **state)
{
	assert_program(OK, "", "embed --model %s/run --vector_type ubinary --out %s/bits.npy --threads 1 %s/texts.txt",
		       test_folder, test_folder, test_folder);
	assert_program(OK, "", "inspect %s/bits.npy", test_folder);
	assert_shown("bits.npy", "NumPy array of uint8");
	assert_shown("bits.npy", "numbers_each               4\n");
	assert_program(OK, "", "verify %s/bits.npy", test_folder);
	assert_program(OK, "",
		       "embed --model %s/run --pooling splade --max_active_dims 3 --out %s/words.jsonl --threads 1 %s/texts.txt",
		       test_folder, test_folder, test_folder);
	assert_program(OK, "", "inspect --json %s/words.jsonl", test_folder);
	assert_shown("words.jsonl", "\"vectors\":2,\"most_words\":3,");
	assert_program(OK, "", "verify %s/words.jsonl", test_folder);
	static const char broken[] = "{\"embedding\":{\"a\":1.0}}\n{\"embedding\":[1.0]}\n";
	assert_ok(file_write(test_path("words.jsonl"), broken, sizeof broken - 1));
	assert_program(ERR_DATA, "row 2: no \"embedding\" with weights of words", "verify %s/words.jsonl", test_folder);
}

static void two_configurations(void **state)
{
	assert_ok(folder_make(test_path("both")));
	assert_ok(file_copy(test_path("run/final/model.safetensors"), test_path("both/model.safetensors")));
	assert_ok(file_copy(test_path("run/final/config.json"), test_path("both/config.json")));
	assert_ok(file_copy(test_path("run/final/config.json"), test_path("both/bert_config.json")));
	assert_program(OK, "", "inspect %s/both", test_folder);
	assert_shown("both", "bert_config");
}

/* As deep as the reader allows: shown within an object, it is one level deeper. */
static void deep_json(void **state)
{
	char text[129];
	memset(text, '[', 64);
	memset(text + 64, ']', 64);
	assert_ok(file_write(test_path("deep.json"), text, 128));
	assert_program(OK, "", "inspect --json %s/deep.json", test_folder);
}

/* What an interrupted command leaves can be inspected, and verified as far as it was saved. */
static void unfinished_outputs(void **state)
{
	const char *part = "{\"embedding\":[1.0]}\n{\"embedding\":[2.0]}\n{\"embed";
	char note[256];
	struct file_writer *writer;
	assert_ok(file_writer_open(&writer, test_path("sum")));
	assert_ok(file_writer_write(writer, part, 40));
	snprintf(note, sizeof note,
		 "{\"format\": 1, \"made_from\": \"model: x\\n\", \"file\": 0, \"line\": 2, \"texts\": 2, \"bytes\": 40, "
		 "\"crc32c\": %u}",
		 file_writer_crc32c(writer));
	file_writer_abandon(writer);
	assert_ok(file_write(test_path("v.jsonl.part"), part, strlen(part)));
	assert_program(OK, "", "inspect %s/v.jsonl.part", test_folder);
	assert_shown("part", "it cannot be resumed");
	assert_ok(file_write(test_path("v.jsonl.progress"), note, strlen(note)));
	assert_program(OK, "", "inspect %s/v.jsonl.part", test_folder);
	assert_shown("part", "unfinished output");
	assert_shown("part", "model: x");
	assert_program(OK, "", "verify %s/v.jsonl.part", test_folder);
	assert_shown("part", "40 bytes");
	assert_ok(file_write(test_path("v.jsonl.part"), "{\"embedding\":[3.0]}\n{\"embedding\":[2.0]}\n", 40));
	assert_program(ERR_DATA, "not those that were saved", "verify %s/v.jsonl.part", test_folder);
	/* A folder that still has its temporary name. */
	assert_ok(folder_make(test_path(".tmp-model")));
	assert_ok(file_copy(config, test_path(".tmp-model/config.json")));
	assert_program(OK, "", "inspect %s/.tmp-model", test_folder);
	assert_shown("temporary folder", "unfinished");
	assert_program(ERR_USAGE, "unfinished", "verify %s/.tmp-model", test_folder);
}

/* The last step is a step, whatever else was logged after it. */
static void events_are_no_steps(void **state)
{
	static const char metrics[] = "{\"step\":7,\"loss\":0.5,\"tokens\":70}\n{\"step\":8,\"ranks\":2,\"tokens\":80}\n"
				      "{\"step\":8,\"event\":\"resumed\",\"text\":\"Resumed after step 8.\",\"tokens\":80}\n";
	assert_ok(file_write(test_path("events.jsonl"), metrics, strlen(metrics)));
	assert_program(OK, "", "inspect --json %s/events.jsonl", test_folder);
	assert_shown("metrics", "\"lines\":3,\"last_step\":{\"step\":7,\"loss\":0.5");
}

/* The report of a run says how far it has come. */
static void runs_as_they_stand(void **state)
{
	assert_int_equal(
		program("pretrain --corpus %s --model %s --out %s/stopped --vocab_size 80 --train_batch_size 8 "
			"--max_seq_length 32 --num_train_steps 50 --stop_at_step 3 --eval_steps 0 --precision fp32 --threads 1",
			corpus, config, test_folder),
		STOPPED);
	assert_program(OK, "", "inspect %s/stopped", test_folder);
	assert_shown("stopped", "stopped at step 3 of 50; the newest checkpoint is checkpoint-3: run the same command again");
	/* Another process works in it. */
	int lock = open(test_path("stopped/.lock"), O_RDWR | O_CLOEXEC);
	assert_true(lock >= 0);
	assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
	assert_program(OK, "", "inspect %s/stopped", test_folder);
	char running[64];
	snprintf(running, sizeof running, "running (process %ld): step 3 of 50", (long)getpid());
	assert_shown("running", running);
	close(lock);
	/* Killed before its first step. */
	assert_ok(folder_make(test_path("begun/data")));
	assert_ok(file_write(test_path("begun/" RUN_FOLDER_MARK), "vocab_size 80\n", 14));
	assert_program(OK, "", "inspect %s/begun", test_folder);
	assert_shown("begun", "started, but no step taken yet");
}

static void sweeps_as_they_stand(void **state)
{
	static const char text[] =
		"{\"best\": \"seed=1\", \"runs\": [{\"name\": \"seed=1\", \"status\": \"finished\"}, "
		"{\"name\": \"seed=2\", \"status\": \"failed\"}, {\"name\": \"seed=3\", \"status\": \"waiting\"}]}";
	assert_ok(folder_make(test_path("sweep/seed=1")));
	assert_ok(file_write(test_path("sweep/sweep.json"), text, strlen(text)));
	assert_program(OK, "", "inspect %s/sweep", test_folder);
	assert_shown("sweep", "unfinished: 2 of 3 runs are done, 1 failed; run the same command again");
	/* The runs of a sweep are verified with it. */
	char from[PATH_BYTES];
	snprintf(from, sizeof from, "%s", test_path("run/final"));
	assert_int_equal(rename(from, test_path("sweep/seed=1/final")), 0);
	assert_ok(file_write(test_path("sweep/seed=1/settings.json"), "{}", 2));
	assert_program(OK, "", "verify %s/sweep", test_folder);
	assert_shown("sweep", "/sweep/seed=1/final (finished model");
	assert_int_equal(rename(test_path("sweep/seed=1/final"), from), 0);
}

/* Flips a bit of a file, expects `verify` of `path` to find it, and flips it back. */
static void assert_flip_found(const char *name, size_t byte, const char *path, const char *said)
{
	struct buffer bytes = {0};
	char place[PATH_BYTES];
	snprintf(place, sizeof place, "%s", test_path(name));
	assert_ok(file_read(place, 1 << 24, &bytes));
	bytes.data[byte < bytes.size ? byte : bytes.size - 1] ^= 1;
	assert_ok(file_write(place, bytes.data, bytes.size));
	assert_program(ERR_DATA, said, "verify %s/%s", test_folder, path);
	bytes.data[byte < bytes.size ? byte : bytes.size - 1] ^= 1;
	assert_ok(file_write(place, bytes.data, bytes.size));
	buffer_release(&bytes);
}

/* Every byte is covered: the graph's by a checksum in it, all files by the folder's manifest. */
static void damaged_exports(void **state)
{
	static const char graph[] = "onnx/onnx/model.onnx";
	struct onnx_file file;
	struct buffer bytes = {0};
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "%s", test_path(graph));
	assert_ok(onnx_file_open(&file, path));
	uint64_t offset = file.tensors[file.count - 1].offset;
	assert_int_equal(file.recorded + 20, file_size(path));
	onnx_file_close(&file);
	const size_t bytes_of_graph[] = {9, 100, 5000, offset, SIZE_MAX};
	for (size_t i = 0; i < sizeof bytes_of_graph / sizeof *bytes_of_graph; i++)
		assert_flip_found(graph, bytes_of_graph[i], graph, "onnx");
	assert_flip_found("onnx/config.json", 30, "onnx", "damaged");
	assert_flip_found("triton/1/model.onnx", offset, "triton", "damaged");
	assert_flip_found("triton/config.pbtxt", 8, "triton", "damaged");
	/* Version 0.1.0 wrote neither. */
	assert_ok(file_read(path, 1 << 24, &bytes));
	assert_int_equal(remove(test_path("onnx/MANIFEST.json")), 0);
	assert_ok(file_write(path, bytes.data, bytes.size - 20));
	assert_program(OK, "", "verify %s/onnx", test_folder);
	assert_shown("onnx", "there is no record of its bytes");
	memcpy(bytes.data + offset, "\0\0\xc0\x7f", 4); /* not a number */
	assert_ok(file_write(path, bytes.data, bytes.size - 20));
	assert_program(ERR_DATA, "holds values that are not finite", "verify %s/onnx", test_folder);
	assert_ok(file_write(path, bytes.data, bytes.size / 2));
	assert_program(ERR_DATA, "not a well-formed ONNX model", "verify %s/onnx", test_folder);
	assert_program(ERR_DATA, "not a well-formed ONNX model", "inspect %s/onnx", test_folder);
	buffer_release(&bytes);
}

/* TensorBoard shows them. */
static void events_are_verified_only(void **state)
{
	char command[512];
	snprintf(command, sizeof command, "mv %s/run/events.out.tfevents.* %s/tfevents", test_folder, test_folder);
	assert_int_equal(system(command), 0);
	assert_program(OK, "", "verify %s/tfevents", test_folder);
	assert_program(ERR_USAGE, "are not shown\nhint: metrics.jsonl", "inspect %s/tfevents", test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_configurations),
		cmocka_unit_test(deep_json),
		cmocka_unit_test(each_kind_is_known),
		cmocka_unit_test(what_embed_leaves),
		cmocka_unit_test(what_embed_leaves_in_other_types),
		cmocka_unit_test(unfinished_outputs),
		cmocka_unit_test(runs_as_they_stand),
		cmocka_unit_test(sweeps_as_they_stand),
		cmocka_unit_test(damaged_exports),
		cmocka_unit_test(events_are_verified_only),
		cmocka_unit_test(events_are_no_steps),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
