/* bertc verify: sound files are reported as sound, and every kind of damage is found and named. */
#include <fcntl.h>
#include <math.h>
#include <unistd.h>
#include "base/json.h"
#include "cmd/program.h"
#include "formats/hdf5_rows.h"
#include "formats/safetensors.h"

#define CONFIG                                                                                                                   \
	"{\"model_type\": \"bert\", \"hidden_size\": 16, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "                 \
	"\"intermediate_size\": 32, \"max_position_embeddings\": 32, \"vocab_size\": 60}"

static int setup(void **state)
{
	if (test_folder_make(state) != 0)
		return -1;
	struct buffer text = {0};
	for (int i = 0; i < 200; i++)
		buffer_format(&text, "the %s sees number %d.\n%s", i % 3 ? "cat" : "dog", i * 7 % 50, i % 5 ? "" : "\n");
	assert_ok(file_write(test_path("corpus.txt"), text.data, text.size));
	assert_ok(file_write(test_path("config.json"), CONFIG, strlen(CONFIG)));
	buffer_release(&text);
	return program("pretrain --corpus %s/corpus.txt --model %s/config.json --out %s/run --vocab_size 60 --max_seq_length 32 "
		       "--train_batch_size 4 --num_train_steps 4 --save_checkpoints_steps 2 --eval_steps 0",
		       test_folder, test_folder, test_folder);
}

static void flip(const char *path, int64_t at)
{
	unsigned char byte;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 4;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void a_run_is_sound(void **state)
{
	/* Missing paths are reported before anything is read. */
	assert_program(2, "no such file or folder", "verify %s/run %s/none", test_folder, test_folder);
	assert_int_equal(program_output.size, 0);
	assert_program(0, "", "verify %s/run", test_folder);
	static const char *const parts[] = {"sound    ", "/run/checkpoint-2 ", "/run/checkpoint-4 ", "/run/final ",
					    "/run/data/train.idx "};
	for (int i = 0; i < 5; i++)
		assert_printed(parts[i]);
	assert_null(strstr(buffer_string(&program_output), "DAMAGED"));
	/* One by one, in the form that programs read. */
	static const char *const things[] = {"run/checkpoint-4", "run/final",          "run/final/model.safetensors",
					     "run/data/train",   "run/data/train.bin", "run/data/train.json",
					     "run/best"};
	for (int i = 0; i < 7; i++) {
		struct json_document document;
		int64_t sound = 0;
		assert_program(0, "", "verify --json %s/%s", test_folder, things[i]);
		assert_ok(json_parse(&document, "verify", buffer_string(&program_output), program_output.size));
		assert_ok(json_get_integer(document.root, "verify", "sound", 0, 100, &sound));
		assert_int_equal(sound, 1);
		json_release(&document);
	}
}

static void damage_is_named(void **state)
{
	/* Each file of a shard. */
	static const char *const files[] = {"train.bin", "train.idx", "train.json"};
	for (int i = 0; i < 3; i++) {
		char path[PATH_BYTES];
		snprintf(path, sizeof path, "%s/run/data/%s", test_folder, files[i]);
		int64_t at = i == 2 ? 3 : file_size(path) / 2; /* in "format", which states the kind of file */
		flip(path, at);
		assert_program(3, "train", "verify %s/run/data/train", test_folder);
		assert_printed("DAMAGED");
		flip(path, at);
	}
	/* One damaged checkpoint: the rest is still checked. */
	flip(test_path("run/checkpoint-4/optimizer.safetensors"), 999);
	assert_program(3, "'optimizer.safetensors' has the wrong checksum", "verify %s/run", test_folder);
	assert_printed("DAMAGED  ");
	assert_printed("/run/final ");
	flip(test_path("run/checkpoint-4/optimizer.safetensors"), 999);
	assert_int_equal(rename(test_path("run/checkpoint-4/MANIFEST.json"), test_path("manifest")), 0);
	assert_program(3, "no MANIFEST.json", "verify %s/run/checkpoint-4", test_folder);
	assert_int_equal(rename(test_path("manifest"), test_path("run/checkpoint-4/MANIFEST.json")), 0);
	assert_program(0, "", "verify %s/run", test_folder);
}

static void folders_without_checksums(void **state)
{
	assert_int_equal(program("verify %s/run/final", test_folder), 0);
	assert_null(strstr(buffer_string(&program_output), "not read"));
	assert_ok(file_write(test_path("run/final/added_tokens.json"), "{}", 2)); /* which others read */
	assert_int_equal(program("verify %s/run", test_folder), 0);
	assert_printed("not read");
	assert_printed("run/final/added_tokens.json: bertc did not write it");
	assert_int_equal(unlink(test_path("run/final/added_tokens.json")), 0);
	assert_int_equal(unlink(test_path("run/final/MANIFEST.json")), 0);
	assert_program(0, "", "verify %s/run/final", test_folder);
	assert_printed("no checksums");
	/* A NaN, a truncated file, and weights of another model. */
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "%s", test_path("run/final/model.safetensors"));
	struct buffer before = {0}, spoilt = {0};
	assert_ok(file_read(path, 1 << 24, &before));
	buffer_append(&spoilt, before.data, before.size);
	memcpy(spoilt.data + spoilt.size - 4, &(float){NAN}, 4);
	assert_ok(file_write(path, spoilt.data, spoilt.size));
	assert_program(3, "are not finite: the first is nan, in row", "verify %s/run/final", test_folder);
	assert_ok(file_write(path, before.data, before.size - 5));
	assert_program(3, "model.safetensors", "verify %s", path);
	assert_ok(file_write(path, before.data, before.size));
	assert_ok(file_write(test_path("run/final/config.json"), CONFIG, strlen(CONFIG)));
	assert_program(0, "", "verify %s/run/final", test_folder);
	/* The vocabulary says how many entries there are, if nothing else does. */
	const char *unsized = "{\"model_type\": \"bert\", \"hidden_size\": 16, \"num_hidden_layers\": 1, "
			      "\"num_attention_heads\": 2, \"intermediate_size\": 32, \"max_position_embeddings\": 32}";
	assert_ok(file_write(test_path("run/final/config.json"), unsized, strlen(unsized)));
	assert_program(0, "", "verify %s/run/final", test_folder);
	const char *other =
		"{\"model_type\": \"bert\", \"hidden_size\": 24, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
		"\"intermediate_size\": 32, \"max_position_embeddings\": 32, \"vocab_size\": 60}";
	assert_ok(file_write(test_path("run/final/config.json"), other, strlen(other)));
	assert_program(4, "shape", "verify %s/run/final", test_folder);
	assert_printed("PROBLEM");
	buffer_release(&before);
	buffer_release(&spoilt);
}

static void what_cannot_be_verified(void **state)
{
	assert_program(2, "no PATH given", "verify");
	assert_program(2, "nowhere", "verify %s/nowhere", test_folder);
	assert_program(2, "nothing that bertc can verify", "verify %s/corpus.txt", test_folder);
}

/* Control characters in names are escaped, both for people and in JSON. */
static void names_are_shown(void **state)
{
	assert_int_equal(symlink("run/final", test_path("odd\033[31m\xE2\x80\xAE")), 0);
	static const char *const commands[] = {"verify", "inspect", "verify --json", "inspect --json"};
	for (int i = 0; i < 4; i++) {
		assert_program(0, "", "%s %s/odd*", commands[i], test_folder);
		assert_printed(i < 2 ? "odd\\x1b[31m\\u202e" : "odd\\u001b[31m\\u202e");
		assert_null(strchr(buffer_string(&program_output), 033));
		assert_null(strstr(buffer_string(&program_output), "\xE2\x80\xAE"));
	}
	assert_int_equal(unlink(test_path("odd\033[31m\xE2\x80\xAE")), 0);
}

/* SIGTERM while a file is being converted in the temporary folder: nothing stays there, and no problem is reported. */
static void a_stopped_verification(void **state)
{
	char line[2048];
	struct name_list left = {0};
	struct buffer said = {0};
	const char *bertc = getenv("BERTC");
	int made = program(
		"instances --corpus %s/corpus.txt --vocab_file %s/run/final/vocab.txt --max_seq_length 32 --out %s/x.hdf5",
		test_folder, test_folder, test_folder);
	if (made != 0 && hdf5_require() != OK)
		skip();
	assert_int_equal(made, 0);
	assert_ok(folder_make(test_path("temporary")));
	static const char *const commands[] = {"verify", "inspect"};
	for (int i = 0; i < 2; i++) {
		snprintf(line, sizeof line,
			 "TMPDIR=%s/temporary BERTC_FAULT=write:1+:slow %s %s %s/x.hdf5 >%s/said 2>&1 & pid=$!; n=0; "
			 "while ! ls %s/temporary/*/.converted* >/dev/null 2>&1 && [ $n -lt 200 ]; do sleep 0.05; n=$((n+1)); "
			 "done; "
			 "kill -TERM $pid; wait $pid",
			 test_folder, bertc ? bertc : "build/bertc", commands[i], test_folder, test_folder, test_folder);
		int status = system(line);
		assert_ok(file_read(test_path("said"), 1 << 16, &said));
		if (WEXITSTATUS(status) != 75 || strstr(buffer_string(&said), "PROBLEM"))
			fail_msg("%s: exit status %d: %s", commands[i], WEXITSTATUS(status), buffer_string(&said));
		assert_ok(folder_list(test_path("temporary"), &left));
		assert_int_equal(left.count, 0);
	}
	buffer_release(&said);
	name_list_release(&left);
}

/* Every file of a run is read, whether it is listed with a checksum or, as in runs of bertc 0.1.0, not. */
static void files_of_a_run(void **state)
{
	static const char *const names[] = {"settings.json", "report.html", "metrics.jsonl", "eval_results.json", "predict.txt"};
	char command[512];
	for (int listed = 1; listed >= 0; listed--) {
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			struct buffer kept = {0};
			char path[256];
			snprintf(path, sizeof path, "%s/run/%s", test_folder, names[i]);
			bool known = file_exists(path);
			if (known)
				assert_ok(file_read(path, 1 << 24, &kept));
			assert_ok(file_write(path, "\0garbage", 8));
			int code = program("verify %s/run", test_folder);
			if (code != 3 || !strstr(buffer_string(&program_output), names[i]))
				fail_msg("%s: exit code %d:\n%s", names[i], code, buffer_string(&program_output));
			if (known)
				assert_ok(file_write(path, kept.data, kept.size));
			else
				assert_int_equal(unlink(path), 0);
			buffer_release(&kept);
		}
		/* Another model in place of the run's own: a checkpoint of the same run, or a model with other sizes. */
		snprintf(command, sizeof command, "mv %s/run/final %s/own && cp -r %s/run/checkpoint-2 %s/run/final", test_folder,
			 test_folder, test_folder, test_folder);
		assert_int_equal(system(command), 0);
		if (listed) {
			assert_int_equal(program("verify %s/run", test_folder), 3);
			assert_printed("not the model that this run has made");
		}
		snprintf(command, sizeof command, "rm -r %s/run/final && mv %s/own %s/run/final", test_folder, test_folder,
			 test_folder);
		assert_int_equal(system(command), 0);
		assert_ok(file_write(test_path("run/notes.odd"), "mine", 4));
		assert_program(0, "", "verify %s/run", test_folder);
		assert_printed("not read");
		assert_printed("run/notes.odd");
		assert_int_equal(unlink(test_path("run/notes.odd")), 0);
		if (listed)
			assert_int_equal(unlink(test_path("run/.bertc-files")), 0);
	}
}

/* Event files end where a process was killed, but they do not begin with anything else, nor go on with it. */
static void events_of_a_run(void **state)
{
	struct name_list names = {0};
	struct buffer kept = {0};
	char path[256] = "";
	assert_ok(folder_list(test_path("run"), &names));
	for (int64_t i = 0; i < names.count; i++)
		if (strncmp(names.names[i], "events.", 7) == 0)
			snprintf(path, sizeof path, "%s/run/%s", test_folder, names.names[i]);
	name_list_release(&names);
	assert_ok(file_read(path, 1 << 24, &kept));
	assert_true(kept.size > 200);
	assert_ok(file_write(path, kept.data, kept.size - 5)); /* killed while it wrote */
	assert_program(0, "", "verify %s", path);
	assert_ok(file_write(path, "\0garbage", 8));
	assert_program(3, "events", "verify %s", path);
	memset(kept.data + kept.size - 60, 'x', 60);
	assert_ok(file_write(path, kept.data, kept.size));
	assert_program(3, "events", "verify %s/run", test_folder);
	assert_int_equal(unlink(path), 0);
	buffer_release(&kept);
}

/* What bertc wrote and somebody removed is named, and so is what stands in its place. */
static void missing_files_of_a_run(void **state)
{
	assert_int_equal(rename(test_path("run/settings.json"), test_path("kept.json")), 0);
	assert_program(0, "", "verify %s/run", test_folder);
	assert_printed("missing  ");
	assert_printed("run/settings.json");
	assert_program(0, "", "verify --json %s/run", test_folder);
	assert_printed("\"missing\": [\n");
	assert_int_equal(rename(test_path("kept.json"), test_path("run/settings.json")), 0);
	unlink(test_path("run/best"));
	assert_ok(file_write(test_path("run/best"), "mine", 4));
	assert_program(0, "", "verify %s/run", test_folder);
	assert_printed("not read ");
	assert_printed("run/best:");
	assert_int_equal(unlink(test_path("run/best")), 0);
	assert_int_equal(symlink("checkpoint-4", test_path("run/best")), 0);
	assert_program(0, "", "verify %s/run", test_folder);
	assert_null(strstr(buffer_string(&program_output), "missing"));
	assert_null(strstr(buffer_string(&program_output), "not read"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_files_of_a_run),
		cmocka_unit_test(events_of_a_run),
		cmocka_unit_test(files_of_a_run),
		cmocka_unit_test(a_run_is_sound),
		cmocka_unit_test(names_are_shown),
		cmocka_unit_test(damage_is_named),
		cmocka_unit_test(folders_without_checksums),
		cmocka_unit_test(what_cannot_be_verified),
		cmocka_unit_test(a_stopped_verification),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
