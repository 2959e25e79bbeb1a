/* Training data are what they claim to be: tokens by their checksums, text by its casing; and a run folder belongs to the
 * run that locked it. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd/small_run.h"
#include "data/pretraining/static_instances.h"

static char folder[128]; /* the test folder, short for command lines */

static int setup(void **state)
{
	if (small_run_make(state, 5) != 0)
		return -1;
	snprintf(folder, sizeof folder, "%.120s", test_folder);
	static const char first[] = "the cat\nsees a dog\n\nthe dog\nsees a cat\n\na cat sees\nthe dog\n\n";
	static const char second[] = "the dog\nsees a cat\n\nthe cat\nsees a dog\n\na dog sees\nthe cat\n\n";
	static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\ndog\nsees\na\nThe\nA\n";
	assert_ok(file_write(test_path("first.txt"), first, sizeof first - 1));
	assert_ok(file_write(test_path("second.txt"), second, sizeof second - 1));
	assert_ok(folder_make(test_path("words")));
	assert_ok(file_write(test_path("words/vocab.txt"), vocab, sizeof vocab - 1));
	return 0;
}

/* Flips one bit of a file. */
static void flip(const char *name, long offset)
{
	FILE *file = fopen(test_path(name), "r+b");
	assert_non_null(file);
	assert_int_equal(fseek(file, offset, SEEK_SET), 0);
	int byte = fgetc(file);
	assert_int_equal(fseek(file, offset, SEEK_SET), 0);
	assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
	assert_int_equal(fclose(file), 0);
}

static void assert_contains(const char *name, const char *part)
{
	struct buffer text = {0};
	assert_ok(file_read(test_path(name), 1 << 20, &text));
	if (!strstr(buffer_string(&text), part))
		fail_msg("'%s' is not in %s: %s", part, name, buffer_string(&text));
	buffer_release(&text);
}

#define SMALL "--train_batch_size 4 --max_seq_length 16 --num_train_steps 4 --save_checkpoints_steps 2 --precision fp32"
#define WORDS "--vocab_file %s/words/vocab.txt"

/* Bits that flip in the run's own tokens. */
static void own_tokens_are_verified(void **state)
{
	const char *f = folder;
	assert_program(75, "", "pretrain --corpus %s --model %s --out %s/own --vocab_size 80 " SMALL " --stop_at_step 2", corpus,
		       config, f);
	flip("own/data/train.bin", 100);
	assert_program(3, "/own/data/train.bin': its checksum is",
		       "pretrain --corpus %s --model %s --out %s/own --vocab_size 80 " SMALL, corpus, config, f);
	flip("own/data/train.bin", 100);
	flip("own/data/train.held_out.bin", 10);
	assert_program(3, "/own/data/train.held_out.bin': its checksum is",
		       "pretrain --corpus %s --model %s --out %s/own --vocab_size 80 " SMALL, corpus, config, f);
	flip("own/data/train.held_out.bin", 10);
	assert_program(0, "finished", "pretrain --corpus %s --model %s --out %s/own --vocab_size 80 " SMALL, corpus, config, f);
}

/* Instances made with another vocabulary of the same size, so that no id is out of range: the id of 'the' in one is that
 * of [UNK] in the other. */
static void instances_have_words(void **state)
{
	const char *f = folder;
	static const char other[] = "[PAD]\na\n[CLS]\n[SEP]\n[MASK]\n[UNK]\ncat\ndog\nsees\nthe\nThe\nA\n";
	static const char alike[] = "the the\nthe the the\n\nthe the\nthe\n\nthe the\nthe the\n\n";
	assert_ok(folder_make(test_path("others")));
	assert_ok(file_write(test_path("others/vocab.txt"), other, sizeof other - 1));
	assert_ok(file_write(test_path("alike.txt"), alike, sizeof alike - 1));
#define THEIRS(file, out)                                                                                                        \
	"pretrain --input_file %s/" file " --vocab_file %s/others/vocab.txt --model %s --out %s/" out " " SMALL, f, f, config, f
#define OURS(text, file)                                                                                                         \
	"instances --corpus %s/" text " " WORDS " --max_seq_length 16 --max_predictions_per_seq 2 --out %s/" file, f, f, f
	assert_program(0, "", OURS("first.txt", "some.tfrecord"));
	assert_program(0, "", OURS("alike.txt", "all.tfrecord"));
	assert_program(0, "some.tfrecord' are [UNK]: the vocabulary does not fit", THEIRS("some.tfrecord", "some"));
	assert_program(4, "all.tfrecord' are [UNK]: there is nothing to learn", THEIRS("all.tfrecord", "all"));
	assert_program(4, "all.tfrecord' are [UNK]", "evaluate --model %s/some --input_file %s/all.tfrecord", f, f);
}

#define DATA_RUN "pretrain --data %s/x --eval_data %s/x " WORDS " --model %s --out %s/data " SMALL

/* The name, in the test's folder, of the file of instances that the run "converted" has made. */
static void find_converted(char out[300])
{
	struct name_list names = {0};
	bool found = false;
	assert_ok(folder_list(test_path("converted/data"), &names));
	for (int64_t i = 0; i < names.count && !found; i++) {
		snprintf(out, 300, "converted/data/%s", names.names[i]);
		found = static_file_is(test_path(out));
	}
	name_list_release(&names);
	assert_true(found);
}

/* Static instances: made by bertc, and converted from another form into the run's folder. */
static void instances_are_verified(void **state)
{
	const char *f = folder;
#define INSTANCES(file, out, more)                                                                                               \
	"pretrain --input_file %s/" file " " WORDS " --model %s --out %s/" out " " SMALL more, f, f, config, f
#define MADE(file)                                                                                                               \
	"instances --corpus %s/first.txt " WORDS " --max_seq_length 16 --max_predictions_per_seq 2 --out %s/" file, f, f, f
	assert_program(0, "", MADE("own.instances"));
	assert_program(0, "", MADE("their.tfrecord"));
	flip("own.instances", 36); /* an id */
	assert_program(3, "own.instances': its checksum is wrong", INSTANCES("own.instances", "own_instances", ""));
	assert_program(3, "own.instances': its checksum is wrong", "evaluate --model %s/own/final --input_file %s/own.instances",
		       f, f);
	flip("own.instances", 36);
	char name[300];
	assert_program(75, "", INSTANCES("their.tfrecord", "converted", " --stop_at_step 2"));
	find_converted(name);
	flip(name, 36);
	assert_program(3, "its checksum is wrong", INSTANCES("their.tfrecord", "converted", ""));
	/* What was made of another file is not used, whatever its name. */
	assert_program(0, "",
		       "instances --corpus %s/first.txt " WORDS
		       " --max_seq_length 16 --max_predictions_per_seq 2 --random_seed 3 --out %s/other.instances",
		       f, f, f);
	assert_ok(file_copy(test_path("other.instances"), test_path(name)));
	assert_program(0, "", INSTANCES("their.tfrecord", "converted", ""));
	/* Nor what was made of another one of the same name, size, and time. */
	struct stat before;
	assert_program(0, "", INSTANCES("their.tfrecord", "planned", " --plan"));
	assert_int_equal(stat(test_path("their.tfrecord"), &before), 0);
	for (int seed = 4; file_size(test_path("other.tfrecord")) != before.st_size && seed < 100; seed++)
		assert_program(0, "",
			       "instances --corpus %s/first.txt " WORDS
			       " --max_seq_length 16 --max_predictions_per_seq 2 --random_seed %d --out %s/other.tfrecord",
			       f, f, seed, f);
	assert_ok(file_copy(test_path("other.tfrecord"), test_path("their.tfrecord")));
	const struct timespec times[] = {before.st_atim, before.st_mtim};
	assert_int_equal(utimensat(AT_FDCWD, test_path("their.tfrecord"), times, 0), 0);
	assert_int_equal(file_size(test_path("their.tfrecord")), before.st_size);
	assert_program(0, "", INSTANCES("their.tfrecord", "planned", ""));
	assert_program(0, "", INSTANCES("their.tfrecord", "not_planned", ""));
	assert_same_file(test_path("planned/final/model.safetensors"), test_path("not_planned/final/model.safetensors"));
}

/* Other tokens of the same lengths, properly prepared under the same name; and damaged ones. */
static void given_tokens_are_verified(void **state)
{
	const char *f = folder;
	assert_program(0, "", "prepare --corpus %s/first.txt " WORDS " --out %s/x", f, f, f);
	assert_program(75, "", DATA_RUN " --stop_at_step 2", f, f, f, config, f);
	assert_program(0, "", "prepare --corpus %s/second.txt " WORDS " --out %s/x", f, f, f);
	assert_program(4, "the training data have changed", DATA_RUN, f, f, f, config, f);
	assert_program(0, "", "prepare --corpus %s/first.txt " WORDS " --out %s/x", f, f, f);
	flip("x.bin", 2);
	assert_program(3, "/x.bin': its checksum is", DATA_RUN, f, f, f, config, f);
	assert_program(3, "/x.bin': its checksum is", "pretrain --data %s/x " WORDS " --model %s --out %s/new " SMALL, f, f,
		       config, f);
	assert_program(3, "/x.bin': its checksum is",
		       "instances --data %s/x " WORDS " --max_seq_length 16 --max_predictions_per_seq 2 --out %s/x.tfrecord", f,
		       f, f);
	flip("x.bin", 2);
	assert_program(0, "finished", DATA_RUN, f, f, f, config, f);
	flip("x.bin", 2);
	assert_program(3, "/x.bin': its checksum is", "evaluate --model %s/data --data %s/x --max_seq_length 16", f, f);
	flip("x.bin", 2);
	assert_program(0, "", "evaluate --model %s/data --data %s/x --max_seq_length 16", f, f);
}

/* The shards' casing must be the model's, or the run is refused. */
static void casing_of_shards_decides(void **state)
{
	const char *f = folder;
	assert_program(0, "", "prepare --corpus %s/first.txt " WORDS " --cased --out %s/cased", f, f, f);
	assert_program(0, "", "prepare --corpus %s/first.txt " WORDS " --out %s/uncased", f, f, f);
#define CASED_RUN(data, out, more)                                                                                               \
	"pretrain --data %s/" data " --eval_data %s/" data " " WORDS " --model %s --out %s/" out " " SMALL " " more, f, f, f,    \
		config, f
	assert_program(0, "finished", CASED_RUN("cased", "a", ""));
	assert_contains("a/final/tokenizer_config.json", "\"do_lower_case\": false");
	assert_program(0, "finished", CASED_RUN("uncased", "b", ""));
	assert_contains("b/final/tokenizer_config.json", "\"do_lower_case\": true");
	assert_program(0, "finished", CASED_RUN("cased", "c", "--cased"));
	assert_program(4, "--cased false: '", CASED_RUN("cased", "d", "--no_cased"));
	assert_program(4, "takes text in lower case", CASED_RUN("uncased", "d", "--cased"));
	assert_program(4, "/uncased' was tokenized in lower case, but this run's tokenizer takes text with upper case kept",
		       "pretrain --data %s/cased %s/uncased " WORDS " --model %s --out %s/d " SMALL, f, f, f, config, f);
	assert_program(4, "/uncased' was tokenized in lower case, but",
		       "pretrain --data %s/cased --eval_data %s/uncased " WORDS " --model %s --out %s/d " SMALL, f, f, f, config,
		       f);
	/* A file beside the vocabulary. */
	static const char lower[] = "{\"do_lower_case\": true}";
	assert_ok(file_write(test_path("words/tokenizer_config.json"), lower, sizeof lower - 1));
	assert_program(4, "/cased' was tokenized with upper case kept, but this run's tokenizer takes text in lower case",
		       CASED_RUN("cased", "e", ""));
	assert_program(4, "--cased true: the tokenizer_config.json or tokenizer.json beside '",
		       "pretrain --corpus %s/first.txt " WORDS " --cased --model %s --out %s/e " SMALL, f, f, config, f);
	assert_int_equal(unlink(test_path("words/tokenizer_config.json")), 0);
}

/* A vocabulary learned from text other than the one that it tokenizes. */
static void text_of_the_vocabulary(void **state)
{
	const char *f = folder;
	assert_int_equal(program("pretrain --corpus %s/first.txt --model %s --out %s/v --vocab_size 60 " SMALL
				 " --held_out_fraction 0",
				 f, config, f),
			 0);
	assert_int_equal(system("true"), 0);
	char command[512];
	snprintf(command, sizeof command, "cd %s && rm -r v/checkpoint-* v/final v/data/train.* && cp second.txt first.txt",
		 folder);
	assert_int_equal(system(command), 0);
	assert_program(4, "the corpus has changed since the vocabulary in",
		       "pretrain --corpus %s/first.txt --model %s --out %s/v --vocab_size 60 " SMALL " --held_out_fraction 0", f,
		       config, f);
}

/* The lock's file is removed during a run, as a person might do who thinks that it was left behind. The first checkpoint
 * may have been removed again before anyone looks, so any checkpoint will do. */
static void lost_lock_ends_the_run(void **state)
{
	for (int ranks = 1; ranks <= 2; ranks++) {
		char command[4096];
		const char *bertc = getenv("BERTC") ? getenv("BERTC") : "build/bertc";
		snprintf(
			command, sizeof command,
			"rm -rf %s/l; %s pretrain --corpus %s --model %s --out %s/l --vocab_size 80 --ranks %d "
			"--train_batch_size 8 "
			"--max_seq_length 16 --num_train_steps 100000 --save_checkpoints_steps 1 --eval_steps 0 --precision fp32 "
			"2>%s/errors & for i in $(seq 600); do ls %s/l | grep -qx 'checkpoint-[0-9]*' && break; sleep 0.1; done; "
			"rm %s/l/.lock; wait $!",
			folder, bertc, corpus, config, folder, ranks, folder, folder, folder);
		int status = system(command);
		assert_int_equal(WEXITSTATUS(status), 8);
		assert_contains("errors", "/l/.lock' was removed or replaced while this run held it");
		assert_program(
			75, "resuming from",
			"pretrain --corpus %s --model %s --out %s/l --vocab_size 80 --ranks %d --train_batch_size 8 "
			"--max_seq_length 16 --num_train_steps 100000 --save_checkpoints_steps 1 --eval_steps 0 --precision "
			"fp32 --steps_this_run 1",
			corpus, config, folder, ranks);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_tokens_are_verified),  cmocka_unit_test(instances_are_verified),
		cmocka_unit_test(instances_have_words),     cmocka_unit_test(given_tokens_are_verified),
		cmocka_unit_test(casing_of_shards_decides), cmocka_unit_test(text_of_the_vocabulary),
		cmocka_unit_test(lost_lock_ends_the_run),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
