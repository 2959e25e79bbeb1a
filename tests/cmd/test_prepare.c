/* bertc prepare as scripts see it: files, streams, exit codes. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "data/shard.h"
#include "test.h"

static char log_text[8192];

static int set_up(void **state)
{
	static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nA\nb\n.\n##b\n";
	if (test_folder_make(state) != 0)
		return -1;
	assert_ok(folder_make(test_path("text")));
	assert_ok(file_write(test_path("vocab.txt"), vocab, sizeof vocab - 1));
	assert_ok(file_write(test_path("text/1.txt"), "A b.\na ab.\n\nb b.\nb.\n", 20));
	assert_ok(file_write(test_path("other.txt"), "x y z x y z\nq r s x y z\n", 24));
	assert_ok(file_write(test_path("text/2.txt"), "a a a a.\na.\n\nb a.\nb.\n", 21));
	return 0;
}

/* Runs "cd folder; bertc prepare ..."; standard output must stay empty, errors are left in log_text. */
static int run(const char *arguments)
{
	const char *bertc = getenv("BERTC");
	char command[1024], absolute[PATH_BYTES];
	struct buffer text = {0};
	assert_non_null(realpath(bertc ? bertc : "build/bertc", absolute));
	snprintf(command, sizeof command, "cd %s; %.500s prepare %s >results 2>log", test_folder, absolute, arguments);
	int status = system(command);
	assert_int_equal(file_size(test_path("results")), 0);
	assert_ok(file_read(test_path("log"), sizeof log_text - 1, &text));
	snprintf(log_text, sizeof log_text, "%s", buffer_string(&text));
	buffer_release(&text);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int32_t first_id(const char *prefix)
{
	struct shard shard;
	int32_t id;
	assert_ok(shard_open(&shard, prefix));
	assert_ok(shard_tokens(&shard, 0, 0, 1, 10, &id));
	shard_close(&shard);
	return id;
}

static void test_report(void **state)
{
	assert_int_equal(run("--corpus text --vocab_file vocab.txt --out data/x --held_out_fraction 1e-9"), 0);
	assert_true(shard_exists(test_path("data/x")));
	assert_true(shard_exists(test_path("data/x.held_out")));
	assert_non_null(strstr(log_text, "data/x: 3 documents, 6 sentences"));
	assert_non_null(strstr(log_text, "data/x.held_out: 1 document, 2 sentences"));
	assert_non_null(strstr(log_text, "bytes per token"));
	assert_non_null(strstr(log_text, "read as sentences"));
	/* Made again with nothing held out: the documents that were are training text now. */
	assert_int_equal(run("--corpus text --vocab_file vocab.txt --out data/x"), 0);
	assert_non_null(strstr(log_text, "data/x.held_out' is removed: its documents are not held out any more"));
	assert_false(shard_exists(test_path("data/x.held_out")));
	assert_int_equal(run("-q --corpus 'text/*.txt' --vocab_file vocab.txt --no_cased --out y --threads 1"), 0);
	assert_string_equal(log_text, "");
	assert_int_equal(first_id(test_path("y")), 5);
}

/* --cased, the configuration beside the vocabulary, and both. */
static void test_case(void **state)
{
	static const char cased[] = "{\"do_lower_case\": false}";
	assert_int_equal(run("--corpus text --vocab_file vocab.txt --out y --cased"), 0);
	assert_int_equal(first_id(test_path("y")), 6);
	assert_ok(file_write(test_path("tokenizer_config.json"), cased, sizeof cased - 1));
	assert_int_equal(run("--corpus text --vocab_file vocab.txt --out y"), 0);
	assert_int_equal(first_id(test_path("y")), 6);
	assert_int_equal(run("--corpus text --vocab_file vocab.txt --out y --cased"), 0);
	assert_int_equal(first_id(test_path("y")), 6);
	assert_int_equal(run("--corpus text --vocab_file vocab.txt --out y --no_cased"), ERR_STATE);
	assert_non_null(strstr(log_text, "--cased false contradicts the settings of the tokenizer"));
	assert_int_equal(unlink(test_path("tokenizer_config.json")), 0);
}

static const struct {
	const char *arguments;
	int exit;
	const char *reason;
} refusals[] = {
	{"--vocab_file vocab.txt --out z", ERR_USAGE, "--corpus is missing"},
	{"--corpus text --out z", ERR_USAGE, "--vocab_file is missing"},
	{"--corpus text --vocab_file vocab.txt", ERR_USAGE, "--out is missing"},
	{"--corpus nowhere --vocab_file vocab.txt --out z", ERR_USAGE, "nowhere"},
	{"--corpus text --vocab_file none.txt --out z", ERR_USAGE, "none.txt"},
	{"--corpus text --vocab_file vocab.txt --out z/", ERR_USAGE, "--out 'z/' is a folder"},
	{"--corpus text --vocab_file text/1.txt --out z", ERR_DATA, "text/1.txt"},
	{"--corpus text --vocab_file vocab.txt --out z --text_form verse", ERR_USAGE, "verse"},
	{"--corpus text --vocab_file vocab.txt --out z --held_out_fraction 2", ERR_USAGE, "held_out_fraction"},
	{"--corpus text --vocab_file vocab.txt --out z --held_out_fraction 1", ERR_DATA, "none is left"},
	{"--corpus /dev/null --vocab_file vocab.txt --out z", ERR_DATA, "no usable document"},
	{"--corpus text --vocab_file vocab.txt --out vocab.txt/z", ERR_USAGE, "vocab.txt"},
	{"text --corpus text --vocab_file vocab.txt --out z", ERR_USAGE, "text"},
	{"--corpus other.txt --vocab_file vocab.txt --out z", ERR_STATE,
	 "% of the tokens of the text are [UNK]: there is nothing to learn"},
};

static void test_refusals(void **state)
{
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		int exit = run(refusals[i].arguments);
		if (exit != refusals[i].exit || strstr(log_text, refusals[i].reason) == NULL)
			fail_msg("%s: exit %d (not %d), %s", refusals[i].arguments, exit, refusals[i].exit, log_text);
		assert_false(shard_exists(test_path("z")));
		assert_false(file_exists(test_path("z.bin")));
	}
}

/* The first file is changed after it has been read, while the second, a pipe, is still being read. Nothing is published,
 * whichever command reads the text. */
static void test_changed_while_read(void **state)
{
	static const char *const commands[] = {
		"prepare --corpus moving pipe --vocab_file vocab.txt --out moved",
		"vocab --corpus moving pipe --vocab_size 12 --out moved",
		"extract moving pipe --out moved",
		"instances --corpus moving pipe --vocab_file vocab.txt --max_seq_length 16 --max_predictions_per_seq 2 --format "
		"tfrecord --out moved",
		"pretrain --corpus moving pipe --vocab_file vocab.txt --model tiny --num_train_steps 1 --out moved",
	};
	static const char *const changes[] = {"truncate -s 5 moving", "echo b. >>moving", "cp -p moving new; mv new moving"};
	const char *bertc = getenv("BERTC");
	char absolute[PATH_BYTES], command[2 * PATH_BYTES];
	assert_non_null(realpath(bertc ? bertc : "build/bertc", absolute));
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		struct buffer text = {0};
		/* Opening the pipe for writing waits until the command reads it. */
		snprintf(command, sizeof command,
			 "cd %s; rm -rf moved pipe; cp text/1.txt moving; mkfifo pipe; %s %s >results 2>log & "
			 "timeout 30 sh -c 'exec 3>pipe; %s; echo b. >&3'; wait $!",
			 test_folder, absolute, commands[i], changes[i % 3]);
		int status = system(command);
		assert_ok(file_read(test_path("log"), sizeof log_text - 1, &text));
		if (WEXITSTATUS(status) != ERR_STATE || !strstr(buffer_string(&text), "while the corpus was read"))
			fail_msg("%s: exit %d, %s", commands[i], WEXITSTATUS(status), buffer_string(&text));
		assert_false(shard_exists(test_path("moved")));
		assert_false(file_exists(test_path("moved.bin")));
		assert_int_equal(file_size(test_path("moved")), -1); /* pretrain leaves a folder */
		assert_false(shard_exists(test_path("moved/data/train")));
		buffer_release(&text);
	}
}

/* A pipe that nobody writes to: waiting for a writer ends with the first signal. */
static void test_a_wait_can_be_stopped(void **state)
{
	char absolute[PATH_BYTES], command[2 * PATH_BYTES];
	const char *bertc = getenv("BERTC");
	assert_non_null(realpath(bertc ? bertc : "build/bertc", absolute));
	snprintf(
		command, sizeof command,
		"cd %s; mkfifo silent; timeout -s KILL 60 %s prepare --corpus silent --vocab_file vocab.txt --out waited 2>log & "
		"n=0; until pid=$(pgrep -P $!) && readlink /proc/$pid/fd/* | grep -q '/silent$' || [ $n -gt 300 ]; do "
		"sleep 0.05; n=$((n+1)); done; kill -TERM $pid; wait $!",
		test_folder, absolute);
	assert_int_equal(WEXITSTATUS(system(command)), STOPPED);
	assert_false(shard_exists(test_path("waited")));
}

static void same_files(const char *a, const char *b)
{
	struct buffer x = {0}, y = {0};
	assert_ok(file_read(test_path(a), 1 << 28, &x));
	assert_ok(file_read(test_path(b), 1 << 28, &y));
	if (x.size != y.size || memcmp(x.data, y.data, x.size) != 0)
		fail_msg("'%s' and '%s' differ", a, b);
	buffer_release(&x);
	buffer_release(&y);
}

/* Killed again and again, a run still ends with the same bytes, and continues instead of starting over. */
static void test_goes_on_after_kills(void **state)
{
	struct buffer text = {0};
	uint64_t random = 1;
	for (int i = 0; i < 900000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		int kind = (int)(random >> 60);
		buffer_text(&text, kind < 7 ? "a b " : kind < 13 ? "bb bbb ab " : kind < 15 ? "b.\n" : "a b.\n\n");
	}
	assert_ok(file_write(test_path("large.txt"), text.data, text.size));
	buffer_release(&text);
#define RUN(out)                                                                                                                 \
	"--corpus large.txt --text_form sentences --vocab_file vocab.txt --held_out_fraction 0.05 "                              \
	"--drop_copied_documents --threads 1 --save_seconds 0.001 --out " out
	assert_int_equal(run(RUN("whole")), 0);
	int kills = 0, resumed = 0;
	for (int64_t k = 2;; k += 1 + k / 2) {
		char fault[64];
		snprintf(fault, sizeof fault, "write:%lld:kill", (long long)k);
		setenv("BERTC_FAULT", fault, 1);
		int status = run(RUN("killed"));
		unsetenv("BERTC_FAULT");
		resumed += strstr(log_text, "resuming after") != NULL;
		if (status == 0)
			break;
		kills++;
	}
	assert_true(kills >= 4 && resumed >= 2);
	static const char *const suffixes[] = {"bin", "idx", "json", "held_out.bin", "held_out.idx", "held_out.json"};
	for (int i = 0; i < 6; i++) {
		char a[64], b[64];
		snprintf(a, sizeof a, "whole.%s", suffixes[i]);
		snprintf(b, sizeof b, "killed.%s", suffixes[i]);
		same_files(a, b);
	}
	assert_false(file_exists(test_path("killed.part.json")));
	assert_false(file_exists(test_path("killed.bin.part")));
	assert_false(file_exists(test_path("killed.sentence_hashes.part")));
	/* An error on resuming leaves what is there: here another process holds one of the files. */
	setenv("BERTC_FAULT", "write:60:kill", 1);
	assert_int_not_equal(run(RUN("held")), 0);
	unsetenv("BERTC_FAULT");
	int held = open(test_path("held.held_out.sentence_hashes.part"), O_RDONLY | O_CLOEXEC);
	assert_true(held >= 0 && flock(held, LOCK_EX | LOCK_NB) == 0);
	assert_int_equal(run(RUN("held")), ERR_LOCKED);
	close(held);
	assert_int_equal(run(RUN("held")), 0);
	assert_non_null(strstr(log_text, "resuming after"));
	same_files("whole.bin", "held.bin");
	/* Other text of the same size and time, with the same ends. */
	setenv("BERTC_FAULT", "write:60:kill", 1);
	assert_int_not_equal(run(RUN("changed")), 0);
	unsetenv("BERTC_FAULT");
	struct stat before;
	assert_int_equal(stat(test_path("large.txt"), &before), 0);
	FILE *file = fopen(test_path("large.txt"), "r+b");
	assert_non_null(file);
	assert_int_equal(fseek(file, 5000, SEEK_SET), 0);
	while (fgetc(file) != 'a')
		;
	assert_int_equal(fseek(file, -1, SEEK_CUR), 0);
	assert_int_equal(fputc('b', file), 'b');
	assert_int_equal(fclose(file), 0);
	const struct timespec times[] = {before.st_atim, before.st_mtim};
	assert_int_equal(utimensat(AT_FDCWD, test_path("large.txt"), times, 0), 0);
	assert_int_equal(run(RUN("changed")), ERR_STATE);
	assert_non_null(strstr(log_text, "the text has changed since an earlier run prepared a part of it"));
	/* Another setting: the half-made shards are unusable. */
	setenv("BERTC_FAULT", "write:60:kill", 1);
	assert_int_not_equal(run(RUN("other")), 0);
	unsetenv("BERTC_FAULT");
	assert_true(file_exists(test_path("other.part.json")));
	assert_int_equal(run(RUN("other --min_document_tokens 3")), 0);
	assert_non_null(strstr(log_text, "is not resumed"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_report),
					   cmocka_unit_test(test_case),
					   cmocka_unit_test(test_refusals),
					   cmocka_unit_test(test_changed_while_read),
					   cmocka_unit_test(test_a_wait_can_be_stopped),
					   cmocka_unit_test(test_goes_on_after_kills)};
	return cmocka_run_group_tests(tests, set_up, test_folder_drop);
}
