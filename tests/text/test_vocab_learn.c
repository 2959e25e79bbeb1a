/* Merging against a simple implementation of the definition; counting on many threads; the vocabulary as a whole: order,
 * alphabet, sizes, and the same bytes for any number of threads and any order of files. */
#include <unistd.h>
#include "base/buffer.h"
#include "base/log.h"
#include "base/pool.h"
#include "text/vocab_learn.h"
#include "text/vocabulary/word_counts.h"
#include "text/vocabulary/word_merge.h"
#include "test.h"

static int set_up(void **state)
{
	log_level = LOG_QUIET;
	return test_folder_make(state);
}

static uint32_t draw(uint32_t *random, uint32_t below)
{
	*random = *random * 1664525 + 1013904223;
	return (*random >> 8) % below;
}

/* The definition, in plain loops: words as lists of texts; count every pair, choose the best, replace it everywhere. */

#define PLAIN_WORDS 60
#define PLAIN_LENGTH 9
#define PLAIN_SYMBOLS 200

struct plain {
	char words[PLAIN_WORDS][PLAIN_LENGTH][32];
	int lengths[PLAIN_WORDS];
	int64_t counts[PLAIN_WORDS];
	char symbols[PLAIN_SYMBOLS][32];
	int symbol_count;
};

static bool plain_merge(struct plain *plain, int64_t min_count)
{
	char best[2][32] = {"", ""};
	int64_t best_count = 0;

	for (int w = 0; w < PLAIN_WORDS; w++)
		for (int i = 0; i + 1 < plain->lengths[w]; i++) {
			const char *left = plain->words[w][i], *right = plain->words[w][i + 1];
			int64_t count = 0;
			for (int v = 0; v < PLAIN_WORDS; v++)
				for (int k = 0; k + 1 < plain->lengths[v]; k++)
					if (!strcmp(plain->words[v][k], left) && !strcmp(plain->words[v][k + 1], right))
						count += plain->counts[v];
			int order = strcmp(left, best[0]) ? strcmp(left, best[0]) : strcmp(right, best[1]);
			if (count > best_count || (count == best_count && order < 0)) {
				best_count = count;
				strcpy(best[0], left);
				strcpy(best[1], right);
			}
		}
	if (best_count < min_count)
		return false;
	char merged[64];
	snprintf(merged, sizeof merged, "%s%s", best[0], best[1] + 2);
	bool known = false;
	for (int i = 0; i < plain->symbol_count; i++)
		known = known || !strcmp(plain->symbols[i], merged);
	if (!known)
		strcpy(plain->symbols[plain->symbol_count++], merged);
	for (int w = 0; w < PLAIN_WORDS; w++) {
		int written = 0;
		for (int i = 0; i < plain->lengths[w]; i++) {
			bool here = i + 1 < plain->lengths[w] && !strcmp(plain->words[w][i], best[0]) &&
				    !strcmp(plain->words[w][i + 1], best[1]);
			memmove(plain->words[w][written++], here ? merged : plain->words[w][i], 32);
			i += here;
		}
		plain->lengths[w] = written;
	}
	return true;
}

/* Words as rows of symbol ids. */
struct rows {
	int32_t symbols[PLAIN_WORDS][PLAIN_LENGTH];
	int lengths[PLAIN_WORDS];
	int64_t counts[PLAIN_WORDS];
};

/* Merges the rows and compares the result with `plain`; returns the number of passes over a file that it took. */
static int64_t merge_rows(const struct rows *rows, int letters, int64_t min_count, const struct spill_settings *spill,
			  const struct plain *plain)
{
	struct pair_merger *merger;
	struct word_merger *words;

	assert_int_equal(pair_merger_create(&merger, MERGE_WORDPIECES), OK);
	assert_int_equal(word_merger_create(&words, merger, spill), OK);
	for (int i = 0; i < 2 * letters; i++)
		assert_int_equal(pair_merger_add_symbol(merger, plain->symbols[i], strlen(plain->symbols[i])), OK);
	for (int w = 0; w < PLAIN_WORDS; w++)
		assert_int_equal(word_merger_add(words, rows->symbols[w], rows->lengths[w], rows->counts[w]), OK);
	assert_int_equal(word_merger_run(words, PLAIN_SYMBOLS, min_count, NULL, NULL), OK);
	assert_int_equal(pair_merger_symbols(merger), plain->symbol_count);
	for (int i = 0; i < plain->symbol_count; i++)
		assert_string_equal(pair_merger_text(merger, i), plain->symbols[i]);
	int64_t rounds = word_merger_rounds(words);
	word_merger_free(words);
	pair_merger_free(merger);
	return rounds;
}

static void test_merging_is_as_defined(void **state)
{
	/* Any amount of memory; room for all words; or for some of them, so that excerpts of the others are merged, whose
	 * pairs share the few sums that bound them. */
	static const int64_t limits[] = {0, 20000, 8000, 4096, 1024};
	enum { LIMITS = sizeof limits / sizeof *limits };
	int64_t rounds[LIMITS] = {0};
	uint32_t random = 7;

	for (int round = 0; round < 60; round++) {
		struct plain plain = {0};
		struct rows rows;
		/* few letters: runs of the same one, and the same text by several paths */
		int letters = 1 + round % 4;
		int64_t min_count = 1 + round % 4;

		for (int inner = 0; inner < 2; inner++)
			for (int c = 0; c < letters; c++)
				snprintf(plain.symbols[plain.symbol_count++], 32, "%s%c", inner ? "##" : "", 'a' + c);
		for (int w = 0; w < PLAIN_WORDS; w++) {
			rows.lengths[w] = plain.lengths[w] = 1 + (int)draw(&random, PLAIN_LENGTH);
			rows.counts[w] = plain.counts[w] = 1 + draw(&random, 3); /* small: many ties */
			for (int i = 0; i < plain.lengths[w]; i++) {
				rows.symbols[w][i] = (int32_t)draw(&random, (uint32_t)letters) + (i ? letters : 0);
				strcpy(plain.words[w][i], plain.symbols[rows.symbols[w][i]]);
			}
		}
		while (plain.symbol_count < PLAIN_SYMBOLS && plain_merge(&plain, min_count))
			;
		for (int i = 0; i < LIMITS; i++) {
			struct spill_settings spill = {.folder = test_folder, .memory_limit = limits[i]};
			rounds[i] += merge_rows(&rows, letters, min_count, &spill, &plain);
		}
	}
	assert_int_equal(rounds[0] + rounds[1], 0);
	for (int i = 2; i < LIMITS; i++)
		assert_true(rounds[i] > 5 * 60);
	word_merger_free(NULL);
	pair_merger_free(NULL);
}

/* Counting */

#define COUNTED_WORDS 200000 /* several times the size of a local table */

struct shared_count {
	struct word_counts *counts;
	struct word_counter *counters[4];
	int failures[4];
};

static void count_task(void *context, int64_t index, int worker)
{
	struct shared_count *shared = context;
	char word[32];
	for (int i = 0; i < COUNTED_WORDS; i++) {
		/* Word k is counted k % 5 + 1 times in each task; 'the' is frequent. */
		for (int times = i % 5; times >= 0; times--) {
			int size = snprintf(word, sizeof word, "word%d", i);
			shared->failures[worker] += word_counter_add(shared->counters[worker], word, (size_t)size) != OK;
		}
		shared->failures[worker] += word_counter_add(shared->counters[worker], "the", 3) != OK;
	}
	(void)index;
}

static enum status check_count(void *context, const char *word, size_t size, int64_t count)
{
	int64_t *seen = context;
	if (size == 3) {
		assert_memory_equal(word, "the", 3);
		assert_int_equal(count, 8 * COUNTED_WORDS);
	} else {
		char text[32] = {0};
		memcpy(text, word, size);
		assert_memory_equal(text, "word", 4);
		assert_int_equal(count, 8 * (atoi(text + 4) % 5 + 1));
	}
	++*seen;
	return OK;
}

static void count_on_threads(const struct spill_settings *spill)
{
	struct shared_count shared = {0};
	struct pool *pool;
	int64_t seen = 0;

	assert_int_equal(pool_create(&pool, 4), OK);
	assert_int_equal(word_counts_create(&shared.counts, spill), OK);
	for (int i = 0; i < 4; i++)
		assert_int_equal(word_counter_create(&shared.counters[i], shared.counts), OK);
	pool_run(pool, 8, count_task, &shared);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(shared.failures[i], 0);
		assert_int_equal(word_counter_flush(shared.counters[i]), OK);
		word_counter_free(shared.counters[i]);
	}
	int64_t distinct;
	assert_int_equal(word_counts_distinct(shared.counts, &distinct), OK);
	assert_int_equal(distinct, COUNTED_WORDS + 1);
	assert_int_equal(word_counts_spilled(shared.counts) > 0, spill != NULL);
	assert_int_equal(word_counts_visit(shared.counts, check_count, &seen), OK);
	assert_int_equal(seen, COUNTED_WORDS + 1);
	word_counts_free(shared.counts);
	pool_free(pool);
}

static void test_counting_on_threads(void **state)
{
	count_on_threads(NULL);
	count_on_threads(&(struct spill_settings){.folder = test_folder, .memory_limit = 1 << 20});
	struct name_list left = {0};
	assert_int_equal(folder_list(test_folder, &left), OK); /* the temporary file has no name */
	for (int64_t i = 0; i < left.count; i++)
		assert_null(strstr(left.names[i], "bertc-"));
	name_list_release(&left);
}

/* The whole */

static const char *put(const char *name, const char *text)
{
	static char path[256];
	snprintf(path, sizeof path, "%s/%s", test_folder, name);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	return path;
}

struct learned {
	struct vocab vocab;
	struct vocab_learn_report report;
	int32_t default_size;
};

static const struct spill_settings *learn_spill;
static const char *const *learn_words;
static int32_t learn_unused, learn_word_count;

static enum status learn(struct learned *out, const char *const *paths, int count, int threads, int32_t size,
			 int64_t min_frequency, bool cased)
{
	struct tokenizer_settings settings = tokenizer_defaults(cased);
	struct vocab_learner *learner;
	struct corpus *corpus;
	struct pool *pool = NULL;

	assert_int_equal(corpus_open(&corpus, paths, count, NULL), OK);
	if (threads > 0)
		assert_int_equal(pool_create(&pool, threads), OK);
	assert_int_equal(vocab_learner_create(&learner, VOCAB_WORDPIECE, &settings, learn_spill), OK);
	assert_int_equal(vocab_learner_count(learner, corpus, pool), OK);
	out->default_size = vocab_default_size(learner);
	enum status status = vocab_learner_finish(learner,
						  &(struct vocab_learn_settings){.size = size,
										 .min_frequency = min_frequency,
										 .unused = learn_unused,
										 .user_words = learn_words,
										 .user_word_count = learn_word_count},
						  &out->vocab, &out->report);
	vocab_learner_free(learner);
	pool_free(pool);
	corpus_close(corpus);
	return status;
}

static void learn_text(struct learned *out, const char *text, int32_t size, int64_t min_frequency)
{
	const char *path = put("text", text);
	assert_int_equal(learn(out, &path, 1, 0, size, min_frequency, false), OK);
}

static void assert_entries(const struct learned *learned, const char *expected)
{
	struct buffer got = {0};
	for (int32_t i = 0; i < learned->vocab.count; i++)
		buffer_format(&got, "%s%s", i ? " " : "", learned->vocab.text[i]);
	assert_string_equal(buffer_string(&got), expected);
	buffer_release(&got);
}

static void test_small_vocabularies(void **state)
{
	struct learned learned;

	/* The example of the BPE paper, approximately. Every merge is made; entries that are then unused are removed:
	 * "##es" once there is "##est"; "lo", "n", "ne" and so on once there are whole words. */
	learn_text(&learned,
		   "low low low low low lower lower newest newest newest newest newest newest widest widest "
		   "widest",
		   100, 2);
	assert_entries(&learned, "[PAD] [UNK] [CLS] [SEP] [MASK] d e i l n o r s t w ##d ##e ##i ##o ##r ##s ##t ##w low "
				 "newest widest lower");
	assert_int_equal(learned.report.words, 16);
	assert_int_equal(learned.report.distinct_words, 4);
	assert_int_equal(learned.report.alphabet, 10);
	assert_int_equal(learned.report.alphabet_dropped, 0);
	assert_int_equal(learned.report.merges, 4);
	assert_true(learned.report.tokens_per_word == 1.0 && learned.report.coverage == 1.0);
	vocab_release(&learned.vocab);

	/* A smaller vocabulary: only the best pairs. */
	learn_text(&learned,
		   "low low low low low lower lower newest newest newest newest newest newest widest widest "
		   "widest",
		   24, 2);
	assert_int_equal(learned.vocab.count, 24);
	assert_true(vocab_find(&learned.vocab, "##est", 5) >= 0);
	vocab_release(&learned.vocab);

	/* No merge below the minimum frequency. */
	learn_text(&learned, "ab ab ab cd cd", 100, 3);
	assert_entries(&learned, "[PAD] [UNK] [CLS] [SEP] [MASK] a b c d ##b ##d ab");
	vocab_release(&learned.vocab);

	/* What looks like a special token is text; punctuation marks are words; case and accents are removed. */
	learn_text(&learned, "[MASK] [MASK] [mask] Café", 100, 3);
	assert_entries(&learned, "[PAD] [UNK] [CLS] [SEP] [MASK] [ ] a c e f k m s ##a ##e ##f ##k ##s mask");
	vocab_release(&learned.vocab);

	/* Every Chinese character is a word: no "##" form, no merge, no limit. */
	learn_text(&learned, "中国中国 abc中国", 100, 1);
	assert_entries(&learned, "[PAD] [UNK] [CLS] [SEP] [MASK] a b c 中 国 ##b ##c abc");
	vocab_release(&learned.vocab);
}

static void test_cased(void **state)
{
	struct learned learned;
	const char *path = put("cased", "Hello hello Été");
	assert_int_equal(learn(&learned, &path, 1, 0, 100, 100, true), OK);
	assert_entries(&learned, "[PAD] [UNK] [CLS] [SEP] [MASK] H e h l o t É é ##e ##l ##o ##t ##é");
	vocab_release(&learned.vocab);
}

static void test_alphabet_that_does_not_fit(void **state)
{
	struct learned learned;

	/* Six characters, room for four entries: the most frequent ones, in both forms if both occur. */
	learn_text(&learned, "aaaa aaaa bb bb cc d e", 9, 2);
	assert_entries(&learned, "[PAD] [UNK] [CLS] [SEP] [MASK] a b ##a ##b");
	assert_int_equal(learned.report.alphabet, 2);
	assert_int_equal(learned.report.alphabet_dropped, 3);
	assert_true(learned.report.coverage == 12.0 / 16.0);
	assert_true(learned.report.unknown_words == 3.0 / 7.0);
	vocab_release(&learned.vocab);

	const char *path = put("text", "words");
	assert_int_equal(learn(&learned, &path, 1, 0, 5, 2, false), ERR_USAGE);
}

static void test_no_words_and_long_words(void **state)
{
	struct learned learned;
	struct buffer text = {0};
	const char *path = put("empty", "");

	assert_int_equal(learn(&learned, &path, 1, 0, 100, 2, false), ERR_DATA);
	assert_non_null(strstr(error_last()->message, "no words"));
	for (int i = 0; i < 101; i++)
		buffer_char(&text, 'x');
	path = put("long", buffer_string(&text));
	assert_int_equal(learn(&learned, &path, 1, 0, 100, 2, false), ERR_DATA);
	assert_non_null(strstr(error_last()->message, "longer than 100"));
	buffer_text(&text, " short short");
	learn_text(&learned, buffer_string(&text), 100, 2);
	assert_int_equal(learned.report.long_words, 1);
	assert_int_equal(learned.report.words, 3);
	assert_int_equal(vocab_find(&learned.vocab, "x", 1), -1);
	assert_true(vocab_find(&learned.vocab, "short", 5) > 0);
	vocab_release(&learned.vocab);
	buffer_release(&text);
}

/* Text of made-up words whose frequencies fall off like those of real ones. */
static void make_text(struct buffer *out, uint32_t seed, int words)
{
	static const char *const syllables[] = {"ka", "lo", "mi", "ter", "an", "sch", "o", "é", "пр", "中", "ing", "s", "un"};
	uint32_t random = seed;

	for (int i = 0; i < words; i++) {
		uint32_t rank = draw(&random, 1 + draw(&random, 3000)), word = rank * 2654435761u;
		for (uint32_t k = 0; k < 1 + rank % 4; k++) {
			buffer_text(out, syllables[draw(&word, 13)]);
		}
		buffer_text(out, i % 17 == 16 ? ".\n" : i % 400 == 399 ? "\n\n" : " ");
	}
}

static void test_same_for_any_threads_and_order(void **state)
{
	char names[3][64];
	const char *paths[3], *turned[3];
	struct learned one, other;

	for (int i = 0; i < 3; i++) {
		struct buffer text = {0};
		make_text(&text, 100 + (uint32_t)i, 100000);
		snprintf(names[i], sizeof names[i], "part%d", i);
		put(names[i], buffer_string(&text));
		buffer_release(&text);
	}
	static char full[3][160];
	for (int i = 0; i < 3; i++) {
		snprintf(full[i], sizeof full[i], "%s/part%d", test_folder, i);
		paths[i] = turned[2 - i] = full[i];
	}
	assert_int_equal(learn(&one, paths, 3, 0, 800, 2, false), OK);
	assert_int_equal(one.vocab.count, 800);
	for (int threads = 1; threads <= 3; threads++) {
		assert_int_equal(learn(&other, threads % 2 ? turned : paths, 3, threads, 800, 2, false), OK);
		assert_int_equal(other.vocab.hash, one.vocab.hash);
		assert_int_equal(other.vocab.count, one.vocab.count);
		for (int32_t i = 0; i < one.vocab.count; i++)
			assert_string_equal(other.vocab.text[i], one.vocab.text[i]);
		assert_memory_equal(&other.report, &one.report, sizeof one.report);
		vocab_release(&other.vocab);
	}

	/* The report must equal what a tokenizer finds. */
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct tokenizer *tokenizer;
	struct tokens tokens = {0};
	struct buffer text = {0};
	assert_int_equal(tokenizer_open(&tokenizer, &one.vocab, &settings), OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(file_read(paths[i], 1 << 24, &text), OK);
		assert_int_equal(tokenizer_encode(tokenizer, text.data, text.size, &tokens), OK);
	}
	assert_true((double)tokens.count / (double)one.report.words == one.report.tokens_per_word);
	assert_int_equal(tokens.unknown, 0);
	tokens_release(&tokens);
	tokenizer_close(tokenizer);
	buffer_release(&text);
	vocab_release(&one.vocab);
}

/* If the vocabulary has less room than pair merging would like, the entries made on the way to longer ones must not fill
 * it. */
static void test_hardly_an_entry_is_unused(void **state)
{
	struct buffer text = {0};
	struct learned learned;

	make_text(&text, 5, 200000);
	learn_text(&learned, buffer_string(&text), 800, 2);
	assert_int_equal(learned.vocab.count, 800);
	assert_true(learned.report.rare_merges < 30);
	vocab_release(&learned.vocab);
	buffer_release(&text);
}

static void test_default_size(void **state)
{
	struct learned learned;
	struct buffer text = {0};

	learn_text(&learned, "a few words", 100, 2);
	assert_int_equal(learned.default_size, 4000);
	vocab_release(&learned.vocab);
	for (int i = 0; i < 450000; i++)
		buffer_text(&text, i % 10 ? "word " : "word.\n");
	learn_text(&learned, buffer_string(&text), 100, 2);
	assert_int_equal(learned.default_size, 8000);
	vocab_release(&learned.vocab);

	/* A large alphabet: twice the number of its entries, at most BERT's size. */
	buffer_clear(&text);
	for (uint32_t c = 0x4E00; c < 0x4E00 + 3000; c++)
		buffer_append(&text,
			      (const char[]){(char)(0xE0 | c >> 12), (char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63))}, 3);
	learn_text(&learned, buffer_string(&text), 5000, 2);
	assert_int_equal(learned.default_size, 6000);
	vocab_release(&learned.vocab);
	buffer_release(&text);
}

/* Counting and merging in temporary files: the same vocabulary. */
static void test_same_with_little_memory(void **state)
{
	struct learned whole, spilled;
	struct buffer text = {0};
	struct spill_settings little = {.folder = test_folder, .memory_limit = 100000};
	uint64_t random = 7;

	for (int i = 0; i < 60000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		buffer_format(&text, "%s%llu%s ", (const char *[]){"ab", "cde", "f", "gh"}[random >> 62],
			      (unsigned long long)(random >> 40) % (i % 3 ? 100 : 50000), i % 7 ? "ing" : ".");
	}
	learn_text(&whole, buffer_string(&text), 700, 2);
	learn_spill = &little;
	learn_text(&spilled, buffer_string(&text), 700, 2);
	learn_spill = NULL;
	assert_true(whole.vocab.hash == spilled.vocab.hash);
	assert_int_equal(whole.report.distinct_words, spilled.report.distinct_words);
	assert_near(whole.report.tokens_per_word, spilled.report.tokens_per_word, 0);
	vocab_release(&whole.vocab);
	vocab_release(&spilled.vocab);
	buffer_release(&text);
}

static void test_given_entries(void **state)
{
	static const char *const words[] = {"interleukin", "ab", "x", "\u00e9"};
	struct learned learned;
	const char *text = "abab ab ab x x aba aba b b\n";

	learn_unused = 3;
	learn_words = words;
	learn_word_count = 3;
	learn_text(&learned, text, 24, 1);
	assert_string_equal(learned.vocab.text[5], "[unused0]");
	assert_string_equal(learned.vocab.text[7], "[unused2]");
	assert_string_equal(learned.vocab.text[8], "interleukin");
	assert_int_equal(vocab_find(&learned.vocab, "ab", 2), 9);
	assert_int_equal(vocab_find(&learned.vocab, "x", 1), 10);
	assert_true(learned.vocab.count <= 24);
	for (int32_t i = 0; i < learned.vocab.count; i++) /* no entry occurs twice */
		assert_int_equal(vocab_find(&learned.vocab, learned.vocab.text[i], learned.vocab.size[i]), i);
	vocab_release(&learned.vocab);

	const char *path = put("given", text);
	learn_word_count = 4; /* the tokenizer would remove the accent */
	assert_error(ERR_USAGE, "never makes the word", learn(&learned, &path, 1, 1, 100, 1, false));
	learn_words = (const char *const[]){"covid-19"};
	learn_word_count = 1;
	assert_error(ERR_USAGE, "never makes the word", learn(&learned, &path, 1, 1, 100, 1, false));
	learn_unused = 100;
	assert_error(ERR_USAGE, "no room", learn(&learned, &path, 1, 1, 100, 1, false));
	learn_unused = learn_word_count = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merging_is_as_defined),
		cmocka_unit_test(test_counting_on_threads),
		cmocka_unit_test(test_small_vocabularies),
		cmocka_unit_test(test_cased),
		cmocka_unit_test(test_alphabet_that_does_not_fit),
		cmocka_unit_test(test_no_words_and_long_words),
		cmocka_unit_test(test_same_for_any_threads_and_order),
		cmocka_unit_test(test_hardly_an_entry_is_unused),
		cmocka_unit_test(test_default_size),
		cmocka_unit_test(test_same_with_little_memory),
		cmocka_unit_test(test_given_entries),
	};
	return cmocka_run_group_tests(tests, set_up, test_folder_drop);
}
