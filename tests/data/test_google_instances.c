/* Google's instances, draw by draw: CPython's random numbers, and runs of the original program. */
#include "test.h"
#include <zlib.h>
#include "base/json.h"
#include "base/log.h"
#include "data/pretraining/google_instances.h"
#include "data/pretraining/instance_files.h"
#include "data/line_shard.h"
#include "data/pretraining/python_random.h"

/* Values computed with CPython 3.11. */
static void test_python_random(void **state)
{
	struct python_random random;
	python_random_seed(&random, 12345);
	assert_true(python_random_double(&random) == 0.41661987254534116);
	assert_true(python_random_double(&random) == 0.010169169457068361);
	assert_true(python_random_double(&random) == 0.8252065092537432);
	assert_int_equal(python_random_int(&random, 2, 125), 40);
	assert_int_equal(python_random_below(&random, 1000000000000), 407399717050);
	int64_t list[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
	const int64_t shuffled[10] = {5, 8, 7, 9, 0, 2, 1, 6, 4, 3};
	python_random_shuffle(&random, list, 10);
	assert_memory_equal(list, shuffled, sizeof list);
	python_random_seed(&random, -7);
	assert_true(python_random_double(&random) == 0.32383276483316237);
	python_random_seed(&random, 0);
	assert_true(python_random_double(&random) == 0.8444218515250481);
	python_random_seed(&random, ((int64_t)1 << 40) + 5);
	assert_true(python_random_double(&random) == 0.5043802970418443);
	assert_int_equal(python_random_int(&random, 0, (int64_t)1 << 33), 3976222944);
}

/* Entries that occur in the golden file; the others match no text. */
static void make_vocab(const struct json *root, struct vocab *out)
{
	int64_t size = json_member(root, "vocab_size")->integer;
	char(*filler)[32] = calloc((size_t)size, sizeof *filler);
	const char **entries = calloc((size_t)size, sizeof *entries);
	assert_non_null(filler);
	assert_non_null(entries);
	for (int64_t i = 0; i < size; i++) {
		snprintf(filler[i], sizeof filler[i], "[no text %lld]", (long long)i);
		entries[i] = filler[i];
	}
	const struct json *id = json_member(root, "ids")->first_child, *text = json_member(root, "entries")->first_child;
	for (; id != NULL; id = id->next, text = text->next)
		entries[id->integer] = text->text;
	assert_ok(vocab_from_entries(out, entries, (int32_t)size));
	free(filler);
	free(entries);
}

static uint32_t add(uint32_t crc, const int32_t *numbers, int32_t count)
{
	return (uint32_t)crc32(crc, (const unsigned char *)numbers, (unsigned)count * 4);
}

static uint32_t instance_crc(const struct instance *instance)
{
	uint32_t crc = add(0, &instance->length, 1);
	crc = add(crc, instance->ids, instance->length);
	crc = add(crc, instance->types, instance->length);
	crc = add(crc, &instance->prediction_count, 1);
	crc = add(crc, instance->prediction_positions, instance->prediction_count);
	crc = add(crc, instance->prediction_labels, instance->prediction_count);
	return add(crc, &instance->next_label, 1);
}

static void run_case(const struct json *golden, const struct vocab *vocab, const struct tokenizer *tokenizer)
{
	const struct json *text = json_member(golden, "text");
	struct google_settings settings = {
		.seed = json_member(golden, "random_seed")->integer,
		.max_seq_length = (int32_t)json_member(golden, "max_seq_length")->integer,
		.max_predictions_per_seq = (int32_t)json_member(golden, "max_predictions_per_seq")->integer,
		.dupe_factor = (int32_t)json_member(golden, "dupe_factor")->integer,
		.masked_lm_prob = json_member(golden, "masked_lm_prob")->number,
		.short_seq_prob = json_member(golden, "short_seq_prob")->number,
		.whole_word_mask = json_member(golden, "do_whole_word_mask")->boolean,
		.vocab = vocab,
	};
	const char *path = test_path("text"), *prefix = test_path("shard"), *out = test_path("instances");
	struct line_shard_counts counts;
	struct shard shard;
	struct static_writer *writer;
	struct static_file file;
	struct instance instance;
	int64_t *order;
	assert_ok(file_write(path, text->text, text->text_size));
	assert_ok(line_shard_write(
		&(struct line_shard_settings){.paths = &path, .path_count = 1, .tokenizer = tokenizer, .prefix = prefix},
		&counts));
	assert_ok(shard_open(&shard, prefix));
	assert_ok(static_writer_open(&writer, out));
	assert_ok(google_instances(&shard, &settings, writer, &order));
	assert_ok(static_writer_commit(writer, 0));
	assert_ok(static_file_open(&file, out));
	assert_int_equal(file.summary.count, json_member(golden, "crc32")->child_count);
	assert_ok(instance_create(&instance, settings.max_seq_length, settings.max_seq_length));
	const struct json *expected = json_member(golden, "crc32")->first_child;
	for (int64_t i = 0; i < file.summary.count; i++, expected = expected->next) {
		assert_ok(static_file_read(&file, order[i], vocab->count, &instance));
		if (instance_crc(&instance) != (uint32_t)expected->integer)
			fail_msg("%s: instance %lld differs", json_member(golden, "name")->text, (long long)i);
	}
	instance_release(&instance);
	static_file_close(&file);
	shard_close(&shard);
	free(order);
}

static void test_official(void **state)
{
	struct json_document document;
	struct vocab vocab;
	struct tokenizer *tokenizer;
	struct tokenizer_settings settings = tokenizer_defaults(false);
	settings.compat = COMPAT_GOOGLE;
	settings.max_word_characters = 200;
	assert_ok(json_read(&document, "tests/golden/google_instances.json", 1 << 20));
	make_vocab(document.root, &vocab);
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	int cases = 0;
	for (const struct json *golden = json_member(document.root, "cases")->first_child; golden != NULL;
	     golden = golden->next, cases++)
		run_case(golden, &vocab, tokenizer);
	assert_int_equal(cases, 3);
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
	json_release(&document);
}

/* A document ends at a line that Python's strip() makes empty, not at the end of its file. */
static void test_documents(void **state)
{
	static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d"};
	struct vocab vocab;
	struct tokenizer *tokenizer;
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct line_shard_counts counts;
	struct shard shard;
	const char *paths[] = {test_path("one"), test_path("two")};
	settings.compat = COMPAT_GOOGLE;
	assert_ok(vocab_from_entries(&vocab, entries, 9));
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	assert_ok(file_write(paths[0], "\n\na b\n \xc2\xa0\x1f\nc\n", 14));
	assert_ok(file_write(paths[1], "d\n\xe2\x80\x8b\nb a c", 12));
	assert_ok(line_shard_write(&(struct line_shard_settings){.paths = paths,
								 .path_count = 2,
								 .tokenizer = tokenizer,
								 .prefix = test_path("lines"),
								 .segmented_words = false},
				   &counts));
	assert_ok(shard_open(&shard, test_path("lines")));
	assert_int_equal(shard.document_count, 2);
	assert_int_equal(shard_document(&shard, 1), 1);
	assert_int_equal(shard.sentence_count, 4); /* the zero-width space is not white space, but not a token, either */
	shard_close(&shard);
	/* Words of segmented text: entries that continue a word are marked. */
	static const char *const pieces[] = {"[PAD]",        "[UNK]",        "[CLS]",        "[SEP]", "[MASK]",
					     "\xe4\xb8\x80", "\xe4\xba\x8c", "\xe4\xb8\x89", "!"};
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
	assert_ok(vocab_from_entries(&vocab, pieces, 9));
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	assert_ok(file_write(paths[0], "\xe4\xb8\x80\xe4\xba\x8c \xe4\xb8\x89!\xe3\x80\x80\xe4\xb8\x80", 17));
	assert_ok(line_shard_write(&(struct line_shard_settings){.paths = paths,
								 .path_count = 1,
								 .tokenizer = tokenizer,
								 .prefix = test_path("words"),
								 .segmented_words = true},
				   &counts));
	assert_ok(shard_open(&shard, test_path("words")));
	int32_t ids[5];
	const int32_t expected[5] = {5, 6 + 9, 7, 8 + 9, 5};
	assert_int_equal(shard_length(&shard, 0), 5);
	assert_ok(shard_tokens(&shard, 0, 0, 5, 18, ids));
	assert_memory_equal(ids, expected, sizeof ids);
	shard_close(&shard);
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_python_random),
		cmocka_unit_test(test_official),
		cmocka_unit_test(test_documents),
	};
	log_level = LOG_QUIET;
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
