/* bertc instances as a user runs it, and training, evaluation and inspection of its output. */
#include <math.h>
#include <sys/stat.h>
#include "program.h"
#include "base/json.h"
#include "base/rng.h"
#include "formats/hdf5_rows.h"

#define SMALL "--vocab_file %s/vocab.txt --max_seq_length 32 --max_predictions_per_seq 5 --dupe_factor 2"

/* Sentences of a few invented words, with a blank line after every tenth. */
static int make_text(void **state)
{
	static const char *const words[] = {"river", "stone",  "cloud", "walked",  "seldom", "under",
					    "the",   "bright", "old",   "harbour", "never",  "sings"};
	struct buffer text = {0};
	struct rng rng = rng_start(1, RNG_TEST, 0);
	if (test_folder_make(state) != 0)
		return -1;
	for (int line = 0; line < 600; line++) {
		int count = 3 + (int)rng_below(&rng, 9);
		for (int i = 0; i < count; i++)
			buffer_format(&text, "%s%s", i > 0 ? " " : "", words[rng_below(&rng, 12)]);
		buffer_text(&text, line % 10 == 9 ? " .\n\n" : " .\n");
	}
	bool good = file_write(test_path("text"), text.data, text.size) == OK;
	buffer_release(&text);
	return good && program("vocab --corpus %s/text --out %s/vocab.txt", test_folder, test_folder) == 0 ? 0 : -1;
}

/* The number of a key in a JSON object on standard output. */
static double number(const char *key)
{
	struct json_document document;
	assert_ok(json_parse(&document, "output", buffer_string(&program_output), program_output.size));
	const struct json *member = json_member(document.root, key);
	assert_non_null(member);
	double value = member->number;
	json_release(&document);
	return value;
}

static void test_deterministic(void **state)
{
	static const char *const names[] = {"tfrecord", "tfrecord.gz", "instances"};
	const char *f = test_folder;
	for (int i = 0; i < 3; i++) {
		assert_program(0, "instances in", "instances --corpus %s/text " SMALL " --threads 1 --out %s/one.%s", f, f, f,
			       names[i]);
		assert_program(0, "", "instances --corpus %s/text " SMALL " --threads 3 --out %s/three.%s", f, f, f, names[i]);
		char one[PATH_BYTES], three[PATH_BYTES];
		snprintf(one, sizeof one, "%s/one.%s", f, names[i]);
		snprintf(three, sizeof three, "%s/three.%s", f, names[i]);
		assert_same_file(one, three);
	}
	/* With Google's flag names and order; another seed gives another file. */
	assert_program(0, "instances in", "instances --compat google --input_file %s/text --output_file %s/g1.tfrecord " SMALL, f,
		       f, f);
	assert_program(0, "", "instances --compat google --input_file %s/text --output_file %s/g2.tfrecord " SMALL, f, f, f);
	assert_same_file(test_path("g1.tfrecord"), test_path("g2.tfrecord"));
	/* Shards give the same instances as the text that they were made from. */
	assert_int_equal(program("prepare --corpus %s/text --vocab_file %s/vocab.txt --out %s/shard", f, f, f), 0);
	assert_int_equal(program("instances --data %s/shard " SMALL " --out %s/shard.tfrecord", f, f, f), 0);
	assert_same_file(test_path("one.tfrecord"), test_path("shard.tfrecord"));
	/* No temporary files are left behind. */
	struct name_list list = {0};
	assert_ok(folder_list(f, &list));
	for (int64_t i = 0; i < list.count; i++)
		assert_null(strstr(list.names[i], ".bertc-instances"));
	name_list_release(&list);
}

/* Several output files are filled in turns; together they hold what a single one holds. */
static void test_outputs(void **state)
{
	const char *f = test_folder;
	assert_int_equal(program("instances --corpus %s/text " SMALL " --out %s/all.tfrecord", f, f, f), 0);
	assert_int_equal(program("instances --corpus %s/text " SMALL " --out %s/x.tfrecord,%s/y.tfrecord", f, f, f, f), 0);
	assert_int_equal(program("inspect %s/all.tfrecord --json --records 0", f), 0);
	double all = number("instances"), tokens = number("tokens");
	assert_int_equal(program("inspect %s/x.tfrecord --json --records 0", f), 0);
	double x = number("instances"), x_tokens = number("tokens");
	assert_int_equal(program("inspect %s/y.tfrecord --json --records 0", f), 0);
	assert_true(x + number("instances") == all && x_tokens + number("tokens") == tokens);
	assert_true(x - number("instances") <= 1 && all > 100);
	assert_int_equal(program("inspect %s/all.tfrecord --vocab_file %s/vocab.txt", f, f), 0);
	assert_non_null(strstr(buffer_string(&program_output), "[MASK]{"));
	/* To another format and back. */
	assert_int_equal(program("instances --convert %s/all.tfrecord --max_seq_length 32 --max_predictions_per_seq 5 --out "
				 "%s/c.instances",
				 f, f),
			 0);
	assert_int_equal(
		program("instances --convert %s/c.instances --max_seq_length 32 --max_predictions_per_seq 5 --out %s/c.tfrecord",
			f, f),
		0);
	assert_same_file(test_path("all.tfrecord"), test_path("c.tfrecord"));
	if (hdf5_require() != OK)
		skip();
	assert_int_equal(
		program("instances --convert %s/all.tfrecord --max_seq_length 32 --max_predictions_per_seq 5 --out %s/c.hdf5", f,
			f),
		0);
	assert_int_equal(
		program("instances --convert %s/c.hdf5 --max_seq_length 32 --max_predictions_per_seq 5 --out %s/h.tfrecord", f,
			f),
		0);
	assert_same_file(test_path("all.tfrecord"), test_path("h.tfrecord"));
	/* A link is kept, and so is what is not a file. */
	struct stat facts;
	assert_int_equal(symlink("behind.hdf5", test_path("link.hdf5")), 0);
	assert_program(0, "", "instances --convert %s/c.hdf5 --max_seq_length 32 --max_predictions_per_seq 5 --out %s/link.hdf5",
		       f, f);
	assert_true(file_exists(test_path("behind.hdf5")));
	assert_int_equal(lstat(test_path("link.hdf5"), &facts), 0);
	assert_true(S_ISLNK(facts.st_mode));
	assert_int_equal(mkfifo(test_path("pipe.hdf5"), 0600), 0);
	assert_program(2, "is not a seekable file",
		       "instances --convert %s/c.hdf5 --max_seq_length 32 --max_predictions_per_seq 5 --out %s/pipe.hdf5", f, f);
	assert_int_equal(program("inspect %s/c.hdf5 --json --records 1", f), 0);
	assert_true(number("instances") == all);
}

static void test_usage(void **state)
{
	const char *f = test_folder;
	assert_program(2, "give one of --corpus, --data", "instances --out %s/q.tfrecord", f);
	assert_program(2, "--out is missing", "instances --corpus %s/text", f);
	assert_program(2, "does not say in which format", "instances --corpus %s/text " SMALL " --out %s/q", f, f, f);
	assert_program(2, "--compat google knows neither",
		       "instances --compat google --max_ngram 3 --corpus %s/text " SMALL " --out %s/q.tfrecord", f, f, f);
	assert_program(3, "yields no instances",
		       "instances --corpus %s/text " SMALL
		       " --min_seq_length 32 --short_seq_prob 1 --dupe_factor 1 --next_sentence single --out %s/q.tfrecord",
		       f, f, f);
	/* before the first is read */
	assert_program(2, "cannot open", "instances --convert %s/text %s/none --out %s/q.tfrecord", f, f, f);
	assert_program(2, "all.tfrecord', which is read",
		       "instances --convert %s/all.tfrecord --out %s/q.tfrecord,%s/all.tfrecord", f, f, f);
	assert_program(2, "q.tfrecord' twice", "instances --convert %s/all.tfrecord --out %s/q.tfrecord,%s/./q.tfrecord", f, f,
		       f);
	assert_program(2, "cannot make a folder", "instances --corpus %s/text " SMALL " --out %s/none/q.tfrecord", f, f, f);
	assert_false(file_exists(test_path("q.tfrecord")));
}

/* HDF5's library is loaded when it is needed. On a machine without it (here: one whose loader finds only damaged files
 * under its names), everything else works, and the missing library is reported before any work is done. */
static void test_without_hdf5(void **state)
{
	const char *f = test_folder;
	if (hdf5_require() != OK)
		skip();
	libraries_hidden((const char *const[]){"libhdf5.so.103", "libhdf5.so.200", "libhdf5.so.310", "libhdf5_serial.so.103",
					       "libhdf5_serial.so.310", NULL});
	assert_program(5, "HDF5 is not installed on this machine", "instances --corpus %s/text " SMALL " --out %s/q.hdf5", f, f,
		       f);
	assert_said("package libhdf5-103-1 of Debian 12");
	assert_program(5, "HDF5 is not installed on this machine",
		       "instances --convert %s/c.hdf5 --max_seq_length 32 --max_predictions_per_seq 5 --out %s/q.tfrecord", f, f);
	assert_int_equal(program("inspect %s/all.tfrecord", f), 0);
	assert_int_equal(program("version"), 0);
	libraries_shown();
}

/* A truncated file is an error; when damage is skipped, its complete part is used. */
static void test_bad_input(void **state)
{
	const char *f = test_folder;
	struct buffer bytes = {0};
	assert_int_equal(program("instances --corpus %s/text " SMALL " --out %s/whole.tfrecord", f, f, f), 0);
	assert_ok(file_read(test_path("whole.tfrecord"), 1 << 24, &bytes));
	assert_ok(file_write(test_path("cut.tfrecord"), bytes.data, bytes.size - 40));
	buffer_release(&bytes);
	assert_program(3, "cut off within its content", "verify %s/whole.tfrecord %s/cut.tfrecord", f, f);
	assert_non_null(strstr(buffer_string(&program_output), "sound    "));
	assert_non_null(strstr(buffer_string(&program_output), "DAMAGED  "));
	assert_program(3, "cut off within its content", "instances --convert %s/cut.tfrecord --out %s/q.instances", f, f);
	assert_program(0, "1 bad records left out",
		       "instances --convert %s/cut.tfrecord --on_bad_record skip --out %s/q.instances", f, f);
	assert_program(3, "but the vocabulary has",
		       "instances --convert %s/whole.tfrecord --vocab_file %s/few.txt --out %s/q.instances", f,
		       (file_write(test_path("few.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n", 33) == OK ? f : ""), f);
	assert_program(3, "record 0 at byte 0", "instances --convert %s/text --out %s/q2.instances", f, f);
}

#define RUN                                                                                                                      \
	"pretrain --vocab_file %s/vocab.txt --model %s/config.json --train_batch_size 4 --learning_rate 1e-3 --log_steps 1 "     \
	"--threads 1 --precision fp32 --hidden_dropout_prob 0 --attention_probs_dropout_prob 0 --eval_steps 4 "

/* Training on static instances: named evaluation files, an exact resume in the middle, and evaluation of every instance
 * once. */
static void test_training(void **state)
{
	const char *f = test_folder;
	static const char config[] = "{\"vocab_size\": 0, \"hidden_size\": 16, \"num_hidden_layers\": 1, "
				     "\"num_attention_heads\": 2, \"intermediate_size\": 32, \"max_position_embeddings\": 32, "
				     "\"type_vocab_size\": 2, \"hidden_act\": \"gelu\"}";
	struct buffer vocab = {0}, text = {0};
	int entries = 0;
	char moved[256];
	assert_ok(file_read(test_path("vocab.txt"), 1 << 20, &vocab));
	for (size_t i = 0; i < vocab.size; i++)
		entries += vocab.data[i] == '\n';
	buffer_format(&text, "%.*s%d%s", 15, config, entries, config + 16);
	assert_ok(file_write(test_path("config.json"), text.data, text.size));
	buffer_release(&vocab);
	buffer_release(&text);
	assert_int_equal(program("instances --corpus %s/text " SMALL " --out %s/t.tfrecord.gz", f, f, f), 0);
	assert_int_equal(program("instances --corpus %s/text " SMALL " --seed 5 --dupe_factor 1 --out %s/e.instances", f, f, f),
			 0);
	assert_int_equal(program(RUN "--input_file %s/t.tfrecord.gz --eval_file %s/e.instances --num_train_steps 8 --out %s/run",
				 f, f, f, f, f),
			 0);
	assert_program(75, "stopped at step 5",
		       RUN "--input_file %s/t.tfrecord.gz --eval_file %s/e.instances --num_train_steps 8 "
			   "--stop_at_step 5 --out %s/halves",
		       f, f, f, f, f);
	snprintf(moved, sizeof moved, "%s/moved.tfrecord.gz", f);
	assert_int_equal(rename(test_path("t.tfrecord.gz"), moved), 0);
	assert_int_equal(program("pretrain --input_file %s/moved.tfrecord.gz --out %s/halves --threads 1", f, f), 0);
	assert_same_file(test_path("run/final/model.safetensors"), test_path("halves/final/model.safetensors"));
	assert_int_equal(program("inspect %s/e.instances --json --records 0", f), 0);
	double count = number("instances"), predictions = number("predictions");
	assert_int_equal(program("evaluate --model %s/run --input_file %s/e.instances --json --precision fp32", f, f), 0);
	assert_true(number("instances") == count && number("predictions") == predictions);
	/* Other instances under the same name are noticed; a weighted mixture of shards trains, too. */
	assert_int_equal(program("instances --corpus %s/text " SMALL " --seed 9 --out %s/t.tfrecord.gz", f, f, f), 0);
	assert_program(4, "training data have changed",
		       "pretrain --out %s/halves --num_train_steps 8 --threads 1 --input_file %s/t.tfrecord.gz", f, f);
	assert_int_equal(
		program("prepare --corpus %s/text --vocab_file %s/vocab.txt --held_out_fraction 0.1 --out %s/m", f, f, f), 0);
	assert_int_equal(program(RUN "--data %s/m:0.7 %s/m.held_out:0.3 --max_seq_length 32 --max_ngram 3 --next_sentence order "
				     "--num_train_steps 3 --out %s/mixed",
				 f, f, f, f, f),
			 0);
	assert_program(2, "a positive weight", RUN "--data %s/m:x --max_seq_length 32 --num_train_steps 3 --out %s/mixed2", f, f,
		       f, f);
	assert_program(2, "some of --data have a weight",
		       RUN "--data %s/m:1 %s/m.held_out --max_seq_length 32 --num_train_steps 3 --out %s/mixed3", f, f, f, f, f);
	assert_program(2, "more than --max_seq_length 16",
		       RUN "--input_file %s/t.tfrecord.gz --max_seq_length 16 --num_train_steps 3 --out %s/short", f, f, f, f);
	assert_program(2, "only one of --corpus",
		       RUN "--input_file %s/t.tfrecord.gz --corpus %s/text --num_train_steps 3 --out %s/two", f, f, f, f, f);
	/* What is prepared already is not prepared in another way. */
	static const char *const idle[] = {"input_file %s/t.tfrecord.gz --masked_lm_prob 0.4",
					   "input_file %s/t.tfrecord.gz --next_sentence none",
					   "input_file %s/t.tfrecord.gz --phase2.max_ngram 3",
					   "input_file %s/t.tfrecord.gz --eval_corpus x --held_out_fraction 0.3",
					   "data %s/m --drop_copied_documents",
					   "data %s/m --text_form sentences"};
	for (size_t i = 0; i < sizeof idle / sizeof *idle; i++) {
		char given[300];
		snprintf(given, sizeof given, idle[i], f);
		assert_program(2, "has no effect on --", RUN "--num_train_steps 3 --out %s/idle --%s", f, f, f, given);
	}
	assert_program(0, "", RUN "--input_file %s/t.tfrecord.gz --eval_data %s/m --masked_lm_prob 0.2 --plan --out %s/idle", f,
		       f, f, f, f);
}

static double last_evaluated(const char *name)
{
	struct buffer text = {0};
	const char *last = NULL;
	assert_ok(file_read(test_path(name), 1 << 20, &text));
	for (const char *at = buffer_string(&text); (at = strstr(at, "\"eval_loss\":")); at++)
		last = at + 12;
	assert_non_null(last);
	double loss = strtod(last, NULL);
	buffer_release(&text);
	return loss;
}

/* Pairs for rewriting are trained on in the order of their lines: in one go, in two halves, and scored as the run scored
 * them. */
static void test_pairs(void **state)
{
	const char *f = test_folder;
	struct buffer lines = {0};
	struct rng rng = rng_start(3, RNG_TEST, 4);
	static const char *const words[] = {"river", "stone", "cloud", "walked", "seldom", "under", "the", "bright"};
	buffer_text(&lines, "label\tid\ttext_a\ttext_b\n");
	for (int i = 0; i < 120; i++) {
		buffer_format(&lines, "%d\t%d\t", i % 2, i);
		for (int k = 0; k < 12; k++) /* three words and eight; the label is the first word of B */
			buffer_format(&lines, "%s%s", words[k == 4 ? (uint32_t)i % 2 : rng_below(&rng, 8)],
				      k == 3   ? "\t"
				      : k < 11 ? " "
					       : "\n");
	}
	assert_ok(file_write(test_path("pairs.tsv"), lines.data, lines.size));
	buffer_text(&lines, "one\t1\triver stone\tcloud walked under\n");
	assert_ok(file_write(test_path("bad.tsv"), lines.data, lines.size));
	buffer_release(&lines);
	assert_program(0, "--eval_file has the instances of a file of --input_file",
		       RUN
		       "--input_file %s/pairs.tsv --eval_file %s/pairs.tsv --max_seq_length 24 --num_train_steps 8 --out %s/p1",
		       f, f, f, f, f);
	assert_program(75, "stopped at step 5",
		       RUN "--input_file %s/pairs.tsv --eval_file %s/pairs.tsv --max_seq_length 24 --num_train_steps 8 "
			   "--stop_at_step 5 --out %s/p2",
		       f, f, f, f, f);
	assert_int_equal(program("pretrain --out %s/p2 --threads 1", f), 0);
	assert_same_file(test_path("p1/final/model.safetensors"), test_path("p2/final/model.safetensors"));
	double loss = last_evaluated("p1/metrics.jsonl");
	assert_int_equal(
		program("evaluate --model %s/p1 --input_file %s/pairs.tsv --max_seq_length 24 --json --precision fp32", f, f), 0);
	assert_true(number("instances") == 120);
	assert_true(fabs(number("loss") - loss) <= 1e-5 * loss);
	assert_program(3, "line 122 does not have the form", RUN "--input_file %s/bad.tsv --num_train_steps 3 --out %s/p3", f, f,
		       f, f);
	assert_program(0, "finished", RUN "--input_file %s/bad.tsv --on_bad_record skip --num_train_steps 3 --out %s/p3", f, f, f,
		       f);
	assert_program(2, "a text with tabs, not a file of instances", "instances --convert %s/pairs.tsv --out %s/p.tfrecord", f,
		       f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deterministic), cmocka_unit_test(test_outputs),   cmocka_unit_test(test_usage),
		cmocka_unit_test(test_without_hdf5),  cmocka_unit_test(test_bad_input), cmocka_unit_test(test_training),
		cmocka_unit_test(test_pairs),
	};
	return cmocka_run_group_tests(tests, make_text, program_teardown);
}
