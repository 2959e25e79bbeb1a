/* Real files of every format, damaged at random and read through the command line: the program ends with one of its own exit
 * codes, in time, and never by a signal. Checksums are corrected where a format has them (TFRecord, manifests), so that the code
 * behind them is reached. The program may read what it does not refuse; whether it reads it correctly is for other tests.
 *
 *   MUTATIONS=300 SEED=1 FILTER=instances build/tests/long/test_mutations
 *
 * MUTATIONS is per file; BERTC names the program. */
#include "base/hash.h"
#include "base/rng.h"
#include "cmd/small_run.h"
#include "weights/manifest.h"

static char folder[128]; /* the test folder, short for command lines */
static int64_t mutations, seed, runs, refused;

static int64_t number_from(const char *name, int64_t usual)
{
	const char *text = getenv(name);
	return text ? strtoll(text, NULL, 10) : usual;
}

/* Runs a shell command line that makes a seed; false if something that it needs is missing. */
static bool make(const char *format, ...) PRINTF_LIKE(1, 2);
static bool make(const char *format, ...)
{
	char line[4096];
	va_list list;
	va_start(list, format);
	int length = snprintf(line, sizeof line, "cd %s && ", folder);
	vsnprintf(line + length, sizeof line - (size_t)length, format, list);
	va_end(list);
	return system(line) == 0;
}

static int setup(void **state)
{
	if (small_run_make(state, 5) != 0)
		return -1;
	snprintf(folder, sizeof folder, "%.120s", test_folder);
	static char bertc[512];
	snprintf(bertc, sizeof bertc, "timeout 600 %s", getenv("BERTC") ? getenv("BERTC") : "build/bertc");
	setenv("BERTC", bertc, 1); /* a timeout ends with 124 */
	mutations = number_from("MUTATIONS", 300);
	seed = number_from("SEED", 1);
	struct buffer text = {0};
	static const char *const verbs[] = {"sees", "likes"};
	buffer_text(&text, "sentence\tlabel\n");
	for (int i = 0; i < 40; i++)
		buffer_format(&text, "the cat %s number %d.\t%s\n", verbs[i % 2], i, verbs[i % 2]);
	put_file("table.tsv", buffer_string(&text));
	buffer_clear(&text);
	for (int i = 0; i < 40; i++)
		buffer_format(&text, "{\"id\": %d, \"text\": \"the cat sees \\u00e9 %d.\", \"label\": \"%s\"}\n", i, i,
			      verbs[i % 2]);
	put_file("table.jsonl", buffer_string(&text));
	buffer_clear(&text);
	for (int i = 0; i < 30; i++)
		buffer_text(&text, "the O\ncat B-PER\nsees O\nthe B-LOC\nmoon I-LOC\n\n");
	put_file("tags.conll", buffer_string(&text));
	buffer_clear(&text);
	buffer_text(&text, "<mediawiki><siteinfo/>");
	for (int i = 0; i < 30; i++)
		buffer_format(
			&text,
			"<page><title>T%d</title><ns>0</ns><id>%d</id><revision><text xml:space=\"preserve\">The '''cat''' sees "
			"[[the moon|a moon]]. {{x|y={{z}}}} It &lt;ref&gt;likes&lt;/ref&gt; the river.\n== Head ==\nMore of "
			"it.</text></revision></page>",
			i, i);
	buffer_text(&text, "</mediawiki>\n");
	put_file("wiki.xml", buffer_string(&text));
	buffer_clear(&text);
	for (int i = 0; i < 20; i++)
		buffer_text(&text,
			    "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 44\r\n\r\nThe cat sees the moon. It likes "
			    "the river too.\r\n\r\n");
	put_file("crawl.wet", buffer_string(&text));
	buffer_clear(&text);
	buffer_text(&text, "{\"version\": \"1.1\", \"data\": [{\"title\": \"t\", \"paragraphs\": [");
	for (int i = 0; i < 10; i++)
		buffer_format(
			&text,
			"%s{\"context\": \"the cat sees the moon.\", \"qas\": [{\"id\": \"q%d\", \"question\": \"who sees?\", "
			"\"answers\": [{\"text\": \"the cat\", \"answer_start\": 0}]}]}",
			i ? ", " : "", i);
	buffer_text(&text, "]}]}\n");
	put_file("squad.json", buffer_string(&text));
	buffer_clear(&text);
	buffer_text(&text, "{");
	for (int i = 0; i < 10; i++)
		buffer_format(&text, "%s\"q%d\": \"the cat\"", i ? ", " : "", i);
	buffer_text(&text, "}\n");
	put_file("answers.json", buffer_string(&text));
	buffer_release(&text);
	struct buffer choices = {0}, pairs = {0}, labels = {0};
	buffer_text(&choices, "video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n");
	for (int i = 0; i < 20; i++) {
		buffer_format(&choices, "v%d,%d,the cat sees,the cat,sees,gold,\"the moon, it\",a dog,the river,nobody,%d\n", i,
			      i, i % 4);
		buffer_format(&pairs, "{\"anchor\": \"the cat %d\", \"positive\": \"cat number %d\"}\n", i, i);
		buffer_format(&labels, "{\"text\": \"the cat sees %d\", \"labels\": [\"see\"%s]}\n", i, i % 2 ? ", \"odd\"" : "");
	}
	put_file("swag.csv", buffer_string(&choices));
	put_file("pairs.jsonl", buffer_string(&pairs));
	put_file("labels.jsonl", buffer_string(&labels));
	buffer_release(&choices);
	buffer_release(&pairs);
	buffer_release(&labels);
	put_file("recipe.conf",
		 "# a recipe\ntrain_batch_size = 8\nlearning_rate = 1e-3\n[phase]\nmax_seq_length = 16\nnum_train_steps = 2\n"
		 "[phase]\nmax_seq_length = 32\nnum_train_steps = 2\n");
	put_file("texts", "the cat sees the moon.\nnobody likes the river.\n");
	make("gzip -k corpus.txt; bzip2 -k corpus.txt; xz -k corpus.txt; zstd -q corpus.txt");
#define SMALL "--train_batch_size 8 --max_seq_length 32 --threads 1 --precision fp32"
	if (program("pretrain --corpus %s --model %s --out %s/run --vocab_size 80 " SMALL
		    " --num_train_steps 4 --save_checkpoints_steps 2",
		    corpus, config, folder) != 0 ||
	    program("finetune --task classification --model %s/run --train %s/table.tsv --dev %s/table.tsv --out %s/tuned " SMALL
		    " --num_train_steps 4",
		    folder, folder, folder, folder) != 0 ||
	    program("export --model %s/run --to sentence_transformers --out %s/vectors", folder, folder) != 0 ||
	    program("export --model %s/tuned --to int8 --out %s/int8", folder, folder) != 0 ||
	    program("prepare --corpus %s --vocab_file %s/run/final/vocab.txt --out %s/x", corpus, folder, folder) != 0 ||
	    program("instances --corpus %s --vocab_file %s/run/final/vocab.txt --max_seq_length 32 --out %s/x.tfrecord", corpus,
		    folder, folder) != 0)
		return -1;
	/* If HDF5 is built in. */
	if (program("instances --corpus %s --vocab_file %s/run/final/vocab.txt --max_seq_length 32 --out %s/x.hdf5", corpus,
		    folder, folder) == 0)
		assert_true(file_exists(test_path("x.hdf5")));
	return 0;
}

/* ---- Damage ---- */

static void put_at(struct buffer *bytes, size_t at, size_t removed, const char *text, size_t size)
{
	struct buffer out = {0};
	buffer_append(&out, bytes->data, at);
	buffer_append(&out, text, size);
	buffer_append(&out, bytes->data + at + removed, bytes->size - at - removed);
	buffer_release(bytes);
	*bytes = out;
}

/* Replaces a number in the text by one that may be too large, too small or not a number at all. */
static void damage_number(struct buffer *bytes, struct rng *rng)
{
	static const char *const numbers[] = {"-1",    "0",   "1e308", "9223372036854775807", "18446744073709551616",
					      "NaN",   "1.5", "4096",  "2147483648",          "-0.0",
					      "\"7\"", "null"};
	size_t at = rng_below(rng, (uint32_t)bytes->size), digits = 0;
	while (at < bytes->size && (bytes->data[at] < '0' || bytes->data[at] > '9'))
		at++;
	while (at + digits < bytes->size && bytes->data[at + digits] >= '0' && bytes->data[at + digits] <= '9')
		digits++;
	const char *number = numbers[rng_below(rng, sizeof numbers / sizeof *numbers)];
	if (digits > 0)
		put_at(bytes, at, digits, number, strlen(number));
}

static void damage(struct buffer *bytes, struct rng *rng)
{
	uint32_t size = (uint32_t)bytes->size;
	/* Headers hold what matters most: half of the damage goes there. */
	uint32_t reach = rng_below(rng, 2) && size > 512 ? 512 : size;
	size_t at = rng_below(rng, reach), length = 1 + rng_below(rng, 64);
	length = length < size - at ? length : size - at;
	switch (rng_below(rng, 7)) {
	case 0:
		for (uint32_t i = 1 + rng_below(rng, 8); i > 0; i--)
			bytes->data[rng_below(rng, reach)] ^= (char)(1 << rng_below(rng, 8));
		break;
	case 1: bytes->size = rng_below(rng, size); break;
	case 2: put_at(bytes, at, length, "", 0); break;
	case 3: put_at(bytes, at, 0, bytes->data + rng_below(rng, size - (uint32_t)length + 1), length); break;
	case 4: damage_number(bytes, rng); break;
	case 5: memset(bytes->data + at, rng_below(rng, 2) ? 0xFF : 0, length); break;
	default: /* a word of 64 bits */
		for (size_t i = 0; i < 8 && at + i < size; i++)
			bytes->data[at + i] = (char)(rng_below(rng, 4) ? 0 : 0x7F);
		break;
	}
	if (bytes->size == 0)
		buffer_char(bytes, 'x');
}

/* Corrects the checksums of a TFRecord file's lengths and payloads. */
static void mend_records(struct buffer *bytes)
{
	for (size_t at = 0; at + 12 <= bytes->size;) {
		uint64_t length;
		memcpy(&length, bytes->data + at, 8);
		uint32_t crc = crc32c_masked(crc32c(0, bytes->data + at, 8));
		memcpy(bytes->data + at + 8, &crc, 4);
		if (length > bytes->size || at + 16 + length > bytes->size)
			return;
		crc = crc32c_masked(crc32c(0, bytes->data + at + 12, length));
		memcpy(bytes->data + at + 12 + length, &crc, 4);
		at += 16 + length;
	}
}

/* Rewrites a folder's manifest for its current files. */
static void mend_manifest(const char *path)
{
	struct name_list names = {0};
	struct folder_files files = {0};
	int64_t step = 4;
	assert_ok(folder_list(path, &names));
	for (int64_t i = 0; i < names.count; i++) {
		char inner[PATH_BYTES];
		assert_ok(path_join(inner, path, names.names[i]));
		if (strcmp(names.names[i], MANIFEST_NAME) != 0 && !file_is_folder(inner))
			assert_ok(folder_files_measure(&files, path, names.names[i]));
	}
	assert_ok(manifest_write(path, step, &files));
	free(files.files);
	name_list_release(&names);
}

/* ---- The readers ---- */

/* Checks that the program ended as it should. `what` is for the message. */
static void assert_good_end(int status, const char *what, int64_t number)
{
	static const int good[] = {0, 2, 3, 4, 5, 7};
	runs++;
	refused += status != 0;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		if (status == good[i])
			return;
	char kept[300];
	snprintf(kept, sizeof kept, "cp -r %s /tmp/bertc-mutation-%lld-%lld", folder, (long long)seed, (long long)number);
	if (system(kept) != 0)
		kept[0] = 0;
	fail_msg("%s, mutation %lld: exit status %d (kept: %s)\n%s", what, (long long)number, status, kept,
		 buffer_string(&program_errors));
}

enum mend { MEND_NOTHING, MEND_RECORDS, MEND_MANIFEST, MEND_NO_MANIFEST };

/* Damages `original` (below the test folder) into `target`, which the command reads; for a file within a folder, the
 * folder is copied to "victim" each time. */
static void attack(const char *original, enum mend mend, const char *format, ...) PRINTF_LIKE(3, 4);
static void attack(const char *original, enum mend mend, const char *format, ...)
{
	char command[2048], target[256], path[256];
	va_list list;
	va_start(list, format);
	vsnprintf(command, sizeof command, format, list);
	va_end(list);
	bool in_folder = mend == MEND_MANIFEST || mend == MEND_NO_MANIFEST;
	const char *name = strrchr(original, '/') ? strrchr(original, '/') + 1 : original;
	const char *ending = strchr(name, '.') ? strchr(name, '.') : "";
	snprintf(target, sizeof target, in_folder ? "%s/victim/%s" : "%s/damaged%s", folder, in_folder ? name : ending);
	for (int64_t i = 0; i < mutations; i++) {
		struct rng rng = rng_start((uint64_t)seed, RNG_TEST, hash64(original, strlen(original)) ^ (uint64_t)i);
		struct buffer bytes = {0};
		if (in_folder) {
			snprintf(path, sizeof path, "%.*s", (int)(name - original - 1), original);
			assert_true(make("rm -rf victim out && mkdir -p out && cp -rL %s victim", path));
		} else {
			assert_true(make("rm -rf out && mkdir -p out"));
		}
		assert_ok(file_read(test_path(original), 1 << 26, &bytes));
		for (uint32_t k = 1 + rng_below(&rng, 3); k > 0; k--)
			damage(&bytes, &rng);
		if (mend == MEND_RECORDS)
			mend_records(&bytes);
		assert_ok(file_write(target, bytes.data, bytes.size));
		buffer_release(&bytes);
		if (mend == MEND_MANIFEST)
			mend_manifest(test_path("victim"));
		if (mend == MEND_NO_MANIFEST)
			assert_true(make("rm -f victim/" MANIFEST_NAME));
		assert_good_end(program("%s", command), original, i);
	}
	print_message("%-34s %6lld runs so far, %lld refused\n", original, (long long)runs, (long long)refused);
}

static void texts(void **state)
{
	static const char *const names[] = {"corpus.txt",     "corpus.txt.gz", "corpus.txt.bz2", "corpus.txt.xz",
					    "corpus.txt.zst", "wiki.xml",      "crawl.wet",      "table.jsonl"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (file_exists(test_path(names[i])))
			attack(names[i], MEND_NOTHING,
			       "prepare --quiet --threads 1 --corpus %s/damaged%s --vocab_file "
			       "%s/run/final/vocab.txt --out %s/out/x",
			       folder, strchr(names[i], '.'), folder, folder);
}

static void vocabularies(void **state)
{
	attack("run/final/vocab.txt", MEND_NOTHING, "tokenize --vocab_file %s/damaged.txt %s/texts", folder, folder);
	attack("run/final/tokenizer.json", MEND_NOTHING, "tokenize --vocab_file %s/damaged.json %s/texts", folder, folder);
	attack("run/final/tokenizer_config.json", MEND_NO_MANIFEST, "tokenize --vocab_file %s/victim/vocab.txt %s/texts", folder,
	       folder);
}

static void instances(void **state)
{
#define CONVERT(ending)                                                                                                          \
	"instances --quiet --convert %s/damaged" ending " --vocab_file %s/run/final/vocab.txt --out %s/out/x.tfrecord", folder,  \
		folder, folder
	attack("x.tfrecord", MEND_NOTHING, CONVERT(".tfrecord"));
	attack("x.tfrecord", MEND_RECORDS, CONVERT(".tfrecord"));
	if (file_exists(test_path("x.hdf5")))
		attack("x.hdf5", MEND_NOTHING, CONVERT(".hdf5"));
}

/* Token shards: each of the three files together with the two others. */
static void shards(void **state)
{
	static const char *const ends[] = {"idx", "bin", "json"};
	for (int i = 0; i < 3; i++) {
		char original[32];
		assert_true(make("rm -rf shards && mkdir shards && cp x.idx x.bin x.json shards"));
		snprintf(original, sizeof original, "shards/x.%s", ends[i]);
		attack(original, MEND_NO_MANIFEST,
		       "evaluate --quiet --threads 1 --max_seq_length 32 --model %s/run/final --data %s/victim/x", folder,
		       folder);
		attack(original, MEND_NO_MANIFEST, "inspect %s/victim/x", folder);
	}
}

/* A model folder whose manifest is corrected, or missing. */
static void models(void **state)
{
	static const char *const names[] = {"config.json", "model.safetensors", "vocab.txt", "tokenizer.json",
					    "tokenizer_config.json"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char original[64];
		snprintf(original, sizeof original, "run/final/%s", names[i]);
		attack(original, MEND_MANIFEST, "fill --threads 1 --model %s/victim 'the cat sees [MASK].'", folder);
		attack(original, MEND_NO_MANIFEST,
		       "evaluate --quiet --threads 1 --max_seq_length 32 --model %s/victim --corpus %s", folder, corpus);
	}
	static const char *const modules[] = {"modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"};
	for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
		char original[64];
		snprintf(original, sizeof original, "vectors/%s", modules[i]);
		attack(original, MEND_MANIFEST, "embed --threads 1 --model %s/victim %s/texts", folder, folder);
	}
	attack("int8/model_int8.safetensors", MEND_MANIFEST, "predict --threads 1 --model %s/victim %s/texts", folder, folder);
	attack("int8/model_int8.safetensors", MEND_NO_MANIFEST, "predict --threads 1 --model %s/victim %s/texts", folder, folder);
	attack("tuned/final/bertc_task.json", MEND_MANIFEST, "predict --threads 1 --model %s/victim %s/texts", folder, folder);
	attack("tuned/final/config.json", MEND_MANIFEST, "predict --threads 1 --model %s/victim %s/texts", folder, folder);
}

/* A skillful forgery of a checkpoint: its manifest is right, its contents are not. */
static void checkpoints(void **state)
{
	static const char *const names[] = {"training_state.json", "optimizer.safetensors", "model.safetensors", "config.json"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char original[64];
		snprintf(original, sizeof original, "run/checkpoint-4/%s", names[i]);
		attack(original, MEND_MANIFEST,
		       "pretrain --quiet --corpus %s --resume_from %s/victim --threads 1 --stop_at_step 6 --max_time 30 --out "
		       "%s/out/r",
		       corpus, folder, folder);
	}
	attack("run/settings.json", MEND_NO_MANIFEST, "inspect %s/victim", folder);
	attack("run/metrics.jsonl", MEND_NO_MANIFEST, "inspect %s/victim", folder);
}

static void tasks(void **state)
{
	static const struct {
		const char *task, *file;
	} cases[] = {{"classification", "table.tsv"}, {"classification", "table.jsonl"}, {"tagging", "tags.conll"},
		     {"squad", "squad.json"},         {"multiple_choice", "swag.csv"},   {"embedding", "pairs.jsonl"},
		     {"multilabel", "labels.jsonl"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		attack(cases[i].file, MEND_NOTHING,
		       "finetune --quiet --plan --threads 1 --task %s --model %s/run --train %s/damaged%s --max_seq_length 32 "
		       "--out %s/out/r",
		       cases[i].task, folder, folder, strchr(cases[i].file, '.'), folder);
	attack("table.tsv", MEND_NOTHING, "evaluate --threads 1 --model %s/tuned --test %s/damaged.tsv", folder, folder);
	attack("table.jsonl", MEND_NOTHING, "predict --threads 1 --model %s/tuned %s/damaged.jsonl", folder, folder);
	attack("texts", MEND_NOTHING, "predict --threads 1 --model %s/tuned %s/damaged", folder, folder);
	attack("answers.json", MEND_NOTHING, "evaluate --predictions %s/damaged.json --test %s/squad.json", folder, folder);
	attack("recipe.conf", MEND_NOTHING,
	       "pretrain --quiet --plan --threads 1 --config %s/damaged.conf --corpus %s --model %s --out %s/out/r", folder,
	       corpus, config, folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),  cmocka_unit_test(vocabularies), cmocka_unit_test(instances), cmocka_unit_test(shards),
		cmocka_unit_test(models), cmocka_unit_test(checkpoints),  cmocka_unit_test(tasks),
	};
	if (getenv("FILTER"))
		cmocka_set_test_filter(getenv("FILTER"));
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
