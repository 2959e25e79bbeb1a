/* Shards against the tokenizer called sentence by sentence; the choice of held-out documents; unusable text. */
#include <unistd.h>
#include "base/rng.h"
#include "test.h"
#include "base/log.h"
#include "data/prepare.h"

static const struct corpus_settings sentences_a_line = {.input.text_form = TEXT_FORM_SENTENCES};

static struct vocab vocab;
static struct tokenizer *tokenizer;
static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c",   "##a", "##b",
				      "##c",   ".",     "ab",    "##cc",  "0",      "1", "2", "##0", "##1", "##2"};

static int open_tokenizer(void **state)
{
	if (test_folder_make(state) != 0)
		return -1;
	struct tokenizer_settings settings = tokenizer_defaults(false);
	settings.special_tokens = false;
	assert_ok(vocab_from_entries(&vocab, entries, sizeof entries / sizeof entries[0]));
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	return 0;
}

static int close_tokenizer(void **state)
{
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
	return test_folder_drop(state);
}

static struct prepare_filters filters;

static enum status prepare_files(const char *const *paths, int64_t count, int threads, double fraction,
				 struct prepare_report *report)
{
	char prefix[128], held_out[128];
	struct corpus *corpus;
	struct pool *pool;
	snprintf(prefix, sizeof prefix, "%s/out", test_folder);
	snprintf(held_out, sizeof held_out, "%s/out.held_out", test_folder);
	struct prepare_settings settings = {.prefix = prefix, .held_out_fraction = fraction, .filters = filters};
	if (fraction > 0)
		settings.held_out_prefix = held_out;
	TRY(corpus_open(&corpus, paths, count, &sentences_a_line));
	assert_ok(pool_create(&pool, threads));
	enum status status = prepare_corpus(corpus, tokenizer, pool, &settings, report);
	pool_free(pool);
	corpus_close(corpus);
	return status;
}

static enum status prepare_text(const char *text, double fraction, struct prepare_report *report)
{
	assert_ok(file_write(test_path("text"), text, strlen(text)));
	return prepare_files((const char *[]){test_path("text")}, 1, 2, fraction, report);
}

static void remove_outputs(void)
{
	static const char *const names[] = {"out.bin",          "out.idx",          "out.json",         "out.html",
					    "out.held_out.bin", "out.held_out.idx", "out.held_out.json"};
	for (int i = 0; i < 7; i++)
		unlink(test_path(names[i]));
}

/* Sentences of random words over the alphabet, some of them without tokens. */
static void random_text(struct buffer *out, struct rng *rng, int documents, int sentences)
{
	for (int d = 0; d < documents; d++) {
		for (int s = 0; s < sentences; s++) {
			int words = 1 + (int)rng_below(rng, 12);
			if (rng_below(rng, 10) == 0) {
				buffer_text(out, "\u200d\n"); /* a format character, which cleaning removes */
				continue;
			}
			for (int w = 0; w < words; w++)
				buffer_format(out, "%c%c%u ", 'a' + (int)rng_below(rng, 4), 'a' + (int)rng_below(rng, 3),
					      rng_below(rng, 30));
			buffer_text(out, ".\n");
		}
		buffer_char(out, '\n');
	}
	assert_ok(buffer_status(out));
}

/* Reads the corpus one document at a time, encodes one sentence at a time, and compares. */
static void check_against_tokenizer(const char *path, const struct prepare_report *report)
{
	struct shard shard;
	struct corpus *corpus;
	const struct document *document;
	struct tokens tokens = {0};
	int64_t sentence = 0, d = 0, empty_sentences = 0, empty_documents = 0, unknown = 0;
	assert_ok(shard_open(&shard, test_path("out")));
	assert_ok(shard_check_vocab(&shard, vocab.hash, vocab.count));
	assert_ok(corpus_open(&corpus, &path, 1, &sentences_a_line));
	for (;;) {
		assert_ok(corpus_next(corpus, &document));
		if (document == NULL)
			break;
		int64_t before = sentence;
		for (int64_t i = 0; i < document->sentence_count; i++) {
			int32_t ids[4096];
			size_t begin = document->sentences[i].begin, end = document->sentences[i].end;
			tokens_clear(&tokens);
			assert_ok(tokenizer_encode(tokenizer, document->text + begin, end - begin, &tokens));
			if (tokens.count == 0) {
				empty_sentences++;
				continue;
			}
			assert_true(sentence < shard.sentence_count && tokens.count <= 4096);
			assert_int_equal(shard_length(&shard, sentence), tokens.count);
			assert_ok(shard_tokens(&shard, sentence, 0, tokens.count, vocab.count, ids));
			assert_memory_equal(ids, tokens.ids, (size_t)tokens.count * sizeof *ids);
			for (int64_t t = 0; t < tokens.count; t++)
				unknown += ids[t] == vocab.unk;
			sentence++;
		}
		if (sentence == before) {
			empty_documents++;
			continue;
		}
		assert_int_equal(shard_document(&shard, d++), before);
	}
	assert_int_equal(d, shard.document_count);
	assert_int_equal(sentence, shard.sentence_count);
	assert_int_equal(report->empty_sentences, empty_sentences);
	assert_int_equal(report->empty_documents, empty_documents);
	assert_int_equal(report->train.documents, d);
	assert_int_equal(report->train.sentences, sentence);
	assert_int_equal(report->train.tokens, shard.token_count);
	assert_int_equal(shard.description.unknown_tokens, unknown);
	assert_true(unknown > 0 && empty_sentences > 0);
	assert_string_equal(shard.description.text_form, "sentences");
	assert_true(shard.description.lowercase);
	assert_true(shard.description.source_fingerprint == corpus_fingerprint(corpus));
	tokens_release(&tokens);
	corpus_close(corpus);
	shard_close(&shard);
}

/* Several rounds of the pipeline, including one large document, and the same bytes on any number of threads. */
static void test_ids_and_threads(void **state)
{
	struct rng rng = rng_start(3, RNG_TEST, 0);
	struct buffer text = {0}, first = {0}, other = {0};
	struct prepare_report report;
	char path[128];
	snprintf(path, sizeof path, "%s/large", test_folder);
	random_text(&text, &rng, 600, 200);
	random_text(&text, &rng, 1, 70000);
	random_text(&text, &rng, 3000, 1);
	assert_true(text.size > (5 << 20)); /* more than two batches of one thread */
	assert_ok(file_write(path, text.data, text.size));
	static const char *const names[] = {"out.bin", "out.idx", "out.json"};
	for (int threads = 1; threads <= 3; threads++) {
		remove_outputs();
		assert_ok(prepare_files((const char *[]){path}, 1, threads, 0, &report));
		assert_int_equal(report.form, TEXT_FORM_SENTENCES);
		assert_false(report.mixed_forms);
		if (threads == 1)
			check_against_tokenizer(path, &report);
		other.size = 0;
		for (int i = 0; i < 3; i++) {
			struct buffer part = {0};
			assert_ok(file_read(test_path(names[i]), 1 << 28, &part));
			buffer_append(&other, part.data, part.size);
			buffer_release(&part);
		}
		if (threads == 1)
			buffer_append(&first, other.data, other.size);
		assert_int_equal(first.size, other.size);
		assert_memory_equal(first.data, other.data, first.size);
	}
	buffer_release(&text);
	buffer_release(&first);
	buffer_release(&other);
}

/* Counts the documents of a shard: they are "a b", "a a b", ..., identified by their number of words. */
static int64_t count_documents(const char *prefix, int *seen, int limit)
{
	struct shard shard;
	memset(seen, 0, (size_t)limit * sizeof *seen);
	if (!shard_exists(prefix))
		return 0;
	assert_ok(shard_open(&shard, prefix));
	for (int64_t d = 0; d < shard.document_count; d++) {
		assert_int_equal(shard_document(&shard, d + 1) - shard_document(&shard, d), 1);
		int32_t length = shard_length(&shard, shard_document(&shard, d));
		assert_true(length < limit);
		seen[length]++;
	}
	int64_t count = shard.document_count;
	shard_close(&shard);
	return count;
}

static void numbered_document(struct buffer *out, int number)
{
	for (int i = 0; i < number; i++)
		buffer_text(out, "a ");
	buffer_text(out, "\n\n");
}

/* The number of the document with the smallest hash among those made by numbered_document(1 .. count). */
static int smallest_document(const char *path)
{
	struct corpus *corpus;
	const struct document *document;
	uint64_t smallest = UINT64_MAX;
	int number = 0;
	assert_ok(corpus_open(&corpus, &path, 1, &sentences_a_line));
	for (;;) {
		assert_ok(corpus_next(corpus, &document));
		if (document == NULL)
			break;
		if (document->hash < smallest) {
			smallest = document->hash;
			number = (int)(document->text_size + 1) / 2;
		}
	}
	corpus_close(corpus);
	return number;
}

static void test_held_out(void **state)
{
	enum { COUNT = 300 };
	struct buffer forward = {0}, backward = {0};
	struct prepare_report report;
	int train[COUNT + 1], held[COUNT + 1], held_before[COUNT + 1];
	for (int i = 1; i <= COUNT; i++)
		numbered_document(&forward, i);
	for (int i = COUNT; i >= 1; i--) {
		numbered_document(&backward, i);
		if (i % 3 == 0)
			numbered_document(&backward, i); /* copies */
	}
	assert_ok(prepare_text(buffer_string(&forward), 0.2, &report));
	int64_t held_count = count_documents(test_path("out.held_out"), held_before, COUNT + 1);
	assert_int_equal(held_count + count_documents(test_path("out"), train, COUNT + 1), COUNT);
	assert_true(held_count > 30 && held_count < 90);
	assert_int_equal(report.held_out.documents, held_count);
	for (int i = 1; i <= COUNT; i++)
		assert_int_equal(train[i] + held_before[i], 1);

	/* In another order and with copies: the same documents, with copies on the same side. */
	remove_outputs();
	assert_ok(prepare_text(buffer_string(&backward), 0.2, &report));
	count_documents(test_path("out.held_out"), held, COUNT + 1);
	count_documents(test_path("out"), train, COUNT + 1);
	for (int i = 1; i <= COUNT; i++) {
		int copies = i % 3 == 0 ? 2 : 1;
		assert_int_equal(held[i], held_before[i] * copies);
		assert_int_equal(train[i], (1 - held_before[i]) * copies);
	}

	/* No hash is that small: the smallest one is held out, together with its copies. */
	for (int order = 0; order < 2; order++) {
		remove_outputs();
		assert_ok(prepare_text(buffer_string(order ? &backward : &forward), 1e-18, &report));
		int smallest = smallest_document(test_path("text"));
		int copies = order == 1 && smallest % 3 == 0 ? 2 : 1;
		assert_int_equal(count_documents(test_path("out.held_out"), held, COUNT + 1), copies);
		assert_int_equal(held[smallest], copies);
		count_documents(test_path("out"), train, COUNT + 1);
		for (int i = 1; i <= COUNT; i++)
			assert_int_equal(train[i] + held[i], order == 1 && i % 3 == 0 ? 2 : 1);
	}
	buffer_release(&forward);
	buffer_release(&backward);
}

static void test_held_out_of_few(void **state)
{
	struct prepare_report report;
	/* A single document stays in the training set; an older held-out shard must not survive beside it. */
	assert_true(shard_exists(test_path("out.held_out")));
	assert_ok(prepare_text("a b\n", 0.1, &report));
	assert_int_equal(report.train.documents, 1);
	assert_int_equal(report.held_out.documents, 0);
	assert_false(shard_exists(test_path("out.held_out")));
	assert_ok(prepare_text("a b\n", 1.0, &report)); /* whatever its hash */
	assert_int_equal(report.train.documents, 1);
	/* Copies of one document: some are held out, some stay. */
	assert_ok(prepare_text("a b\n\na b\n\na b\n", 1e-18, &report));
	assert_int_equal(report.train.documents, 2);
	assert_int_equal(report.held_out.documents, 1);
	assert_ok(prepare_text("a b\n\na b\n\na b\n", 1.0, &report));
	assert_int_equal(report.train.documents, 2);
	/* Copies of the smallest among other documents. */
	assert_ok(prepare_text("a b\n\na b\n\nb\n\na b\n\nb\n", 1e-18, &report));
	assert_int_equal(report.train.documents + report.held_out.documents, 5);
	assert_true(report.held_out.documents == 2 || report.held_out.documents == 3);
	remove_outputs();
	assert_error(ERR_DATA, "none is left to train on", prepare_text("a b\n\nb a\n", 1.0, &report));
	assert_false(shard_exists(test_path("out")));
}

static void test_unusable(void **state)
{
	struct prepare_report report;
	remove_outputs();
	assert_error(ERR_DATA, "no usable document: 1 file", prepare_text("", 0, &report));
	assert_non_null(strstr(error_last()->hint, "--text_form"));
	assert_error(ERR_DATA, "no usable document", prepare_text("\n\n  \n\n", 0.1, &report));
	assert_error(ERR_DATA, "no usable document", prepare_text("\u200d\n\n\u200d\n", 0, &report));
	assert_int_equal(report.empty_documents, 2);
	static const char binary[4096] = "\177ELF";
	assert_ok(file_write(test_path("binary"), binary, sizeof binary));
	assert_ok(file_write(test_path("good"), "a b\n", 4));
	const char *paths[] = {test_path("good"), test_path("binary")};
	assert_error(ERR_DATA, "binary", prepare_files(paths, 2, 2, 0.1, &report));
	/* Nothing was written, and nothing is left behind. */
	struct name_list names = {0};
	assert_ok(folder_list(test_folder, &names));
	for (int64_t i = 0; i < names.count; i++)
		assert_null(strstr(names.names[i], "out"));
	name_list_release(&names);
}

/* Checks the lengths in tokens of the shard's documents. */
static void assert_lengths(const int *expected, int count)
{
	struct shard shard;
	assert_ok(shard_open(&shard, test_path("out")));
	assert_int_equal(shard.document_count, count);
	for (int d = 0; d < count; d++) {
		int tokens = 0;
		for (int64_t s = shard_document(&shard, d); s < shard_document(&shard, d + 1); s++)
			tokens += shard_length(&shard, s);
		assert_int_equal(tokens, expected[d]);
	}
	shard_close(&shard);
}

static void test_filters(void **state)
{
	struct prepare_report report;
	static const char text[] = "a b c\nb\n\na\n\nx y z b\n\na b c\nb\n\nc c c c c c c\n\nb\nc b a\nb\n";
	remove_outputs();
	assert_ok(prepare_text(text, 0, &report)); /* all are kept; copies are only counted */
	assert_lengths((int[]){4, 1, 4, 4, 7, 5}, 6);
	assert_int_equal(report.dropped[PREPARE_COPIED_DOCUMENT].count, 1);
	assert_int_equal(report.dropped[PREPARE_COPIED_DOCUMENT].tokens, 4);
	assert_false(report.dropped[PREPARE_COPIED_DOCUMENT].left_out);
	assert_string_equal(report.dropped[PREPARE_COPIED_DOCUMENT].samples[0], "a b c");
	assert_int_equal(report.dropped[PREPARE_COPIED_SENTENCE].count, 2); /* b, b: those in the copy are not counted */
	assert_int_equal(report.train.unknown_tokens, 3);

	filters = (struct prepare_filters){.min_document_tokens = 2, .max_document_tokens = 6, .max_unknown_share = 0.5};
	assert_ok(prepare_text(text, 0, &report));
	assert_lengths((int[]){4, 4, 5}, 3);
	assert_int_equal(report.dropped[PREPARE_SHORT].count, 1);
	assert_string_equal(report.dropped[PREPARE_SHORT].samples[0], "a");
	assert_int_equal(report.dropped[PREPARE_LONG].tokens, 7);
	assert_string_equal(report.dropped[PREPARE_UNKNOWN].samples[0], "x y z b");
	assert_int_equal(report.train.unknown_tokens, 0);

	filters = (struct prepare_filters){.drop_copied_documents = true};
	assert_ok(prepare_text(text, 0, &report));
	assert_lengths((int[]){4, 1, 4, 7, 5}, 5);
	filters = (struct prepare_filters){.drop_copied_documents = true, .drop_copied_sentences = true};
	assert_ok(prepare_text(text, 0, &report));
	assert_lengths((int[]){4, 1, 4, 7, 3}, 5);
	assert_int_equal(report.train.tokens, 19);
	assert_int_equal(report.train.unknown_tokens, 3);
	filters = (struct prepare_filters){.min_document_tokens = 100};
	assert_error(ERR_DATA, "filters leave out all 6", prepare_text(text, 0, &report));
	filters = (struct prepare_filters){0};

	struct buffer page = {0};
	assert_ok(prepare_text(text, 0, &report));
	assert_ok(file_read(test_path("out.html"), 1 << 20, &page));
	assert_non_null(strstr(buffer_string(&page), "1 exact duplicate document"));
	assert_non_null(strstr(buffer_string(&page), "<li>a b c</li>"));
	buffer_release(&page);
}

static void test_counts(void **state)
{
	struct prepare_report report;
	assert_ok(prepare_text("a b c\n\377a x b\n\nab abcc [MASK]\n", 0, &report));
	assert_int_equal(report.train.documents, 2);
	assert_int_equal(report.train.sentences, 3);
	assert_int_equal(report.train.unknown_tokens, 4); /* x, "[", "mask", "]" */
	assert_int_equal(report.train.tokens, 3 + 3 + 6);
	assert_int_equal(report.invalid_bytes, 1);
	assert_int_equal(report.text_bytes, 5 + 6 + 14);
	struct shard shard;
	int32_t ids[6];
	assert_ok(shard_open(&shard, test_path("out")));
	assert_ok(shard_tokens(&shard, 2, 0, 6, vocab.count, ids));
	assert_memory_equal(ids, ((int32_t[]){12, 12, 13, 1, 1, 1}), sizeof ids);
	shard_close(&shard);
}

/* Byte-level tokens include the space before a word: a sentence that follows another has one, as in the text it came from, but
 * not in Chinese or Japanese. */
static void test_spaces_between_sentences(void **state)
{
	static const char json[] =
		"{\"added_tokens\": [{\"id\": 0, \"content\": \"<s>\", \"special\": true}], \"pre_tokenizer\": {\"type\": "
		"\"ByteLevel\", \"add_prefix_space\": false}, \"model\": {\"type\": \"BPE\", \"vocab\": {\"<s>\": 0, \"a\": 1, "
		"\"\u0120\": 2, \"\u0120a\": 3, \"\u00e4\": 4, \"\u00b8\": 5, \"\u0138\": 6, \"\u0122\": 7, \"\u00e3\": 8, "
		"\"\u0124\": 9, \"\u00a2\": 10}, "
		"\"merges\": [\"\u0120 a\"]}}";
	struct vocab other;
	struct tokenizer *wordpiece = tokenizer;
	struct prepare_report report;
	struct shard shard;
	int32_t ids[4];
	assert_ok(file_write(test_path("tokenizer.json"), json, sizeof json - 1));
	assert_ok(vocab_read(&other, test_path("tokenizer.json")));
	struct tokenizer_settings settings = tokenizer_defaults(false);
	assert_ok(tokenizer_open(&tokenizer, &other, &settings));
	remove_outputs();
	assert_ok(prepare_text("a\na\n\na\n\u4e00\n\u30a2\n", 0, &report));
	tokenizer_close(tokenizer);
	tokenizer = wordpiece;
	assert_ok(shard_open(&shard, test_path("out")));
	static const int32_t expected[] = {1, 3, 1, 4, 8};
	for (int64_t i = 0; i < 5; i++) {
		assert_ok(shard_tokens(&shard, i, 0, 1, other.count, ids));
		assert_int_equal(ids[0], expected[i]);
	}
	shard_close(&shard);
	vocab_release(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids_and_threads),
		cmocka_unit_test(test_held_out),
		cmocka_unit_test(test_held_out_of_few),
		cmocka_unit_test(test_unusable),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_spaces_between_sentences),
	};
	log_level = LOG_QUIET;
	return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
