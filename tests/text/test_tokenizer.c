/* Ids, offsets and words equal to Hugging Face's and Google's (golden files from dev/tokenizer_golden.py), and what goes
 * beyond them: invalid UTF-8, reuse, threads, settings, the files of a model folder. */
#include "test.h"
#include <zlib.h>
#include "base/json.h"
#include "base/log.h"
#include "base/pool.h"
#include "text/tokenizer.h"
#include "text/tokenizer/tokenizer_normalize.h"

/* In the order of MODES in dev/tokenizer_golden.py. */
#define HUGGINGFACE .compat = COMPAT_HUGGINGFACE, .special_tokens = true, .max_word_characters = 100
#define GOOGLE .compat = COMPAT_GOOGLE, .split_chinese = true, .max_word_characters = 200
static const struct mode {
	const char *name;
	struct tokenizer_settings settings;
} modes[] = {
	{"uncased", {.lowercase = true, .strip_accents = true, .split_chinese = true, HUGGINGFACE}},
	{"cased", {.lowercase = false, .strip_accents = false, .split_chinese = true, HUGGINGFACE}},
	{"uncased_accents", {.lowercase = true, .strip_accents = false, .split_chinese = true, HUGGINGFACE}},
	{"cased_stripped", {.lowercase = false, .strip_accents = true, .split_chinese = true, HUGGINGFACE}},
	{"uncased_no_chinese", {.lowercase = true, .strip_accents = true, .split_chinese = false, HUGGINGFACE}},
	{"google_uncased", {.lowercase = true, .strip_accents = true, GOOGLE}},
	{"google_cased", {.lowercase = false, .strip_accents = false, GOOGLE}},
};
#define MODES ((int)(sizeof modes / sizeof *modes))

static int set_up(void **state)
{
	log_level = LOG_QUIET;
	return test_folder_make(state);
}

static enum status append_word(void *context, const char *word, size_t size)
{
	buffer_append(context, word, size);
	buffer_char(context, ' ');
	return OK;
}

/* Appends the words of a text in the format of the golden file. */
static void append_words(const struct tokenizer_settings *settings, const char *text, size_t size, struct tokens *scratch,
			 struct buffer *out)
{
	assert_ok(tokenizer_words(settings, text, size, scratch, append_word, out));
	buffer_char(out, '\n');
}

static void test_every_code_point(void **state)
{
	struct tokens scratch[MODES] = {{0}};
	struct buffer words = {0};
	FILE *golden = fopen("tests/golden/tokenizer_code_points.txt", "r");
	char line[256];
	uint32_t blocks = 0;

	assert_non_null(golden);
	assert_non_null(fgets(line, sizeof line, golden));
	while (fgets(line, sizeof line, golden)) {
		char *field;
		uint32_t first = (uint32_t)strtoul(line, &field, 16);

		assert_int_equal(first, 4096 * blocks++);
		for (int m = 0; m < MODES; m++) {
			uint32_t expected = (uint32_t)strtoul(field, &field, 16);

			buffer_clear(&words);
			for (uint32_t c = first; c < first + 4096; c++) {
				char text[8] = "a";
				if (c >= 0xD800 && c <= 0xDFFF)
					continue;
				size_t size = utf8_encode(c, text + 1);
				append_words(&modes[m].settings, text + 1, size, &scratch[m], &words);
				text[1 + size] = 'b';
				append_words(&modes[m].settings, text, size + 2, &scratch[m], &words);
			}
			if (crc32(0, (const Bytef *)words.data, (uInt)words.size) != expected)
				fail_msg("%s: code points %06X to %06X", modes[m].name, first, first + 4095);
		}
	}
	assert_int_equal(blocks, UNICODE_LIMIT / 4096);
	fclose(golden);
	buffer_release(&words);
	for (int m = 0; m < MODES; m++)
		tokens_release(&scratch[m]);
}

/* For every code point, the slow path through all steps gives the same as the table. */
static void test_long_way_agrees(void **state)
{
	for (int m = 0; m < MODES; m++) {
		struct tokens scratch = {0};
		struct stretch stretch = {0};
		struct normalizer normalizer;
		struct buffer fast = {0}, slow = {0};

		assert_ok(normalizer_init(&normalizer, &modes[m].settings));
		for (uint32_t c = 1; c < UNICODE_LIMIT; c++) {
			char text[8] = "A";
			size_t size = 1 + utf8_encode(c, text + 1);
			enum code_point_kind kind = entry_kind(normalizer.entries[c]);

			if ((c >= 0xD800 && c <= 0xDFFF) || kind == KIND_SPACE || kind == KIND_IDEOGRAPH)
				continue;
			text[size++] = 'b';
			buffer_clear(&fast);
			buffer_clear(&slow);
			assert_ok(tokenizer_words(&modes[m].settings, text, size, &scratch, append_word, &fast));
			assert_ok(normalize_stretch(&normalizer, text, 0, 0, size, &stretch));
			for (int64_t i = 0; i < stretch.count; i++) {
				char bytes[4];
				uint32_t x = stretch.characters[i].code_point;
				bool is_word = unicode_flags(normalizer.column, x) & UNICODE_PUNCTUATION;
				if (is_word)
					buffer_char(&slow, ' ');
				buffer_append(&slow, bytes, utf8_encode(x, bytes));
				if (is_word)
					buffer_char(&slow, ' ');
			}
			buffer_char(&slow, ' ');
			if (strcmp(buffer_string(&fast), buffer_string(&slow)) != 0)
				fail_msg("%s: U+%04X: '%s' and '%s'", modes[m].name, c, fast.data, slow.data);
		}
		buffer_release(&fast);
		buffer_release(&slow);
		stretch_release(&stretch);
		normalizer_release(&normalizer);
		tokens_release(&scratch);
	}
}

/* The golden cases, and a tokenizer over their vocabulary for each mode. */
struct cases {
	struct json_document document;
	struct vocab vocab;
	struct tokenizer *tokenizers[MODES];
};

static void cases_open(struct cases *cases)
{
	assert_ok(json_read(&cases->document, "tests/golden/tokenizer_cases.json", 1 << 24));
	const struct json *list = json_member(cases->document.root, "vocab");
	const char **entries = calloc((size_t)list->child_count, sizeof *entries);
	int32_t count = 0;
	assert_non_null(entries);
	for (const struct json *entry = list->first_child; entry; entry = entry->next)
		entries[count++] = entry->text;
	assert_ok(vocab_from_entries(&cases->vocab, entries, count));
	free(entries);
	for (int m = 0; m < MODES; m++)
		assert_ok(tokenizer_open(&cases->tokenizers[m], &cases->vocab, &modes[m].settings));
}

static void cases_close(struct cases *cases)
{
	for (int m = 0; m < MODES; m++)
		tokenizer_close(cases->tokenizers[m]);
	vocab_release(&cases->vocab);
	json_release(&cases->document);
}

static void check_numbers(const char *mode, const struct json *text, const char *what, const struct json *expected,
			  const void *values, int64_t count, uint32_t shift)
{
	const int32_t *number = values;
	int64_t i = 0;

	for (const struct json *e = expected->first_child; e; e = e->next, i++)
		if (i >= count || number[i] != e->integer + shift)
			fail_msg("%s of '%s' (%s): %lld of %lld is %d, not %lld", what, text->text, mode, (long long)i,
				 (long long)count, i < count ? number[i] : -1, (long long)e->integer);
	if (i != count)
		fail_msg("%s of '%s' (%s): %lld instead of %lld", what, text->text, mode, (long long)count, (long long)i);
}

/* Encodes from a block of exactly these bytes, so that a sanitizer notices reading past its end. */
static void encode_exactly(const struct tokenizer *tokenizer, const char *text, size_t size, struct tokens *out)
{
	char *copy = malloc(size ? size : 1);

	assert_non_null(copy);
	memcpy(copy, text, size);
	tokens_clear(out);
	assert_ok(tokenizer_encode(tokenizer, copy, size, out));
	free(copy);
}

static void test_hard_cases(void **state)
{
	struct cases cases;
	struct tokens tokens[MODES] = {{0}};
	int64_t compared = 0;

	cases_open(&cases);
	for (const struct json *row = json_member(cases.document.root, "cases")->first_child; row; row = row->next) {
		const struct json *text = json_member(row, "text");

		for (int m = 0; m < MODES; m++) {
			const struct json *expected = json_member(row, modes[m].name);
			bool has_offsets = expected->kind == JSON_OBJECT;
			const struct json *ids = has_offsets ? json_member(expected, "ids") : expected;
			struct tokens *t = &tokens[m];

			/* With spaces before it, and a second time from the cache. */
			for (uint32_t shift = 0; shift < 18; shift++) {
				char padded[4096] = "                  ";
				assert_true(text->text_size + shift <= sizeof padded);
				memcpy(padded + shift, text->text, text->text_size);
				encode_exactly(cases.tokenizers[m], padded, text->text_size + shift, t);
				check_numbers(modes[m].name, text, "ids", ids, t->ids, t->count, 0);
				if (has_offsets) {
					check_numbers(modes[m].name, text, "beginnings", json_member(expected, "begin"), t->begin,
						      t->count, shift);
					check_numbers(modes[m].name, text, "ends", json_member(expected, "end"), t->end, t->count,
						      shift);
				}
			}
			assert_int_equal(t->invalid_bytes, 0);
			compared++;
		}
	}
	assert_true(compared > 1500);
	for (int m = 0; m < MODES; m++)
		tokens_release(&tokens[m]);
	cases_close(&cases);
}

static const char *const small_entries[] = {
	"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "able", "[", "]", "mask", "a", "##b", "\xC3\xA9",
};
#define SMALL_COUNT ((int32_t)(sizeof small_entries / sizeof *small_entries))

/* Checks ids and offsets, given as "id:begin:end ...". */
static void check_encoding(const struct tokenizer *tokenizer, const char *text, size_t size, const char *expected,
			   int64_t invalid, int64_t unknown)
{
	struct tokens tokens = {0};
	struct buffer found = {0};

	encode_exactly(tokenizer, text, size, &tokens);
	for (int64_t i = 0; i < tokens.count; i++)
		buffer_format(&found, "%s%d:%u:%u", i ? " " : "", tokens.ids[i], tokens.begin[i], tokens.end[i]);
	assert_string_equal(buffer_string(&found), expected);
	assert_int_equal(tokens.invalid_bytes, invalid);
	assert_int_equal(tokens.unknown, unknown);
	buffer_release(&found);
	tokens_release(&tokens);
}

#define CHECK(text, expected, invalid, unknown) check_encoding(tokenizer, text, sizeof text - 1, expected, invalid, unknown)

static void test_invalid_utf8(void **state)
{
	struct vocab vocab;
	struct tokenizer *tokenizer;
	struct tokenizer_settings settings = tokenizer_defaults(false);

	assert_ok(vocab_from_entries(&vocab, small_entries, SMALL_COUNT));
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	CHECK("un\xFF"
	      "affable",
	      "5:0:2 6:3:6 7:6:10", 1, 0);
	CHECK("\x80un\xC3", "5:1:3", 2, 0);
	CHECK("\xE4\xB8"
	      "a",
	      "12:2:3", 2, 0); /* one truncated sequence */
	CHECK("\xF0\x9F\x98 a", "12:4:5", 3, 0);
	CHECK("a\xED\xA0\x80"
	      "b",
	      "12:0:1 13:4:5", 3, 0); /* a surrogate */
	CHECK("a\xC0\xAF"
	      "b",
	      "12:0:1 13:3:4", 2, 0); /* overlong */
	CHECK("a\xF4\x90\x80\x80"
	      "b",
	      "12:0:1 13:5:6", 4, 0); /* above U+10FFFF */
	CHECK("\xFF\xFE\xFD", "", 3, 0);
	CHECK("zz \xFF zz", "1:0:2 1:5:7", 1, 2);
	/* Also within a stretch that takes the slow path (because of the tone mark U+302E). */
	CHECK("z\xFF\xE3\x80\xAE\xFF", "1:0:5", 2, 1);
	tokenizer_close(tokenizer);

	settings.compat = COMPAT_GOOGLE;
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	CHECK("a\xFF.\xCE\xA3\xFF", "12:0:1 1:2:3 1:3:5", 2, 2); /* each invalid byte is counted once */
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
}

static void test_special_tokens_are_text_unless_asked(void **state)
{
	struct vocab vocab;
	struct tokenizer *tokenizer;
	struct tokenizer_settings settings = tokenizer_defaults(false);

	assert_ok(vocab_from_entries(&vocab, small_entries, SMALL_COUNT));
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	assert_ptr_equal(tokenizer_vocab(tokenizer), &vocab);
	assert_false(tokenizer_settings_of(tokenizer)->special_tokens);
	CHECK("a[MASK]", "12:0:1 9:1:2 11:2:6 10:6:7", 0, 0);
	tokenizer_close(tokenizer);
	settings.special_tokens = true;
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	CHECK("a[MASK]un[mask]", "12:0:1 4:1:7 5:7:9 9:9:10 11:10:14 10:14:15", 0, 0);
	CHECK("[UNK][PAD][CLS][SEP]", "1:0:5 0:5:10 2:10:15 3:15:20", 0, 0);
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
}

/* Of two identical entries the later one counts, as in Hugging Face: for words, parts and characters. */
static void test_later_duplicate_wins(void **state)
{
	const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ab",  "##c",
				       ".",     "x",     "ab",    "##c",   ".",      "##c", "y"};
	struct vocab vocab;
	struct tokenizer *tokenizer;
	struct tokenizer_settings settings = tokenizer_defaults(false);

	assert_ok(vocab_from_entries(&vocab, entries, sizeof entries / sizeof *entries));
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	CHECK("abc. x", "9:0:2 12:2:3 11:3:4 8:5:6", 0, 0);
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
}

/* One struct tokens used with different tokenizers: the cached words of one must not be used for the other. */
static void test_one_scratch_for_many(void **state)
{
	const char *const other_entries[] = {"able", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[PAD]"};
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct tokens tokens = {0};

	for (int round = 0; round < 20; round++) {
		struct vocab vocab;
		struct tokenizer *tokenizer;
		bool small = round % 2;

		assert_ok(small ? vocab_from_entries(&vocab, small_entries, SMALL_COUNT)
				: vocab_from_entries(&vocab, other_entries, 6));
		assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
		for (int again = 0; again < 2; again++) {
			tokens_clear(&tokens);
			assert_ok(tokenizer_encode(tokenizer, "able", 4, &tokens));
			assert_ok(tokenizer_encode(tokenizer, "un able", 7, &tokens)); /* appended */
			assert_int_equal(tokens.count, 3);
			assert_int_equal(tokens.ids[0], small ? 8 : 0);
			assert_int_equal(tokens.ids[1], small ? 5 : 1);
			assert_int_equal(tokens.ids[2], small ? 8 : 0);
			assert_int_equal(tokens.begin[2], 3);
		}
		tokenizer_close(tokenizer);
		vocab_release(&vocab);
	}
	tokens_release(&tokens);
	tokens_release(&tokens); /* usable again */
}

struct shared {
	const struct tokenizer *tokenizer;
	const char *text;
	struct tokens tokens[8];
};

static void encode_slice(void *context, int64_t index, int worker)
{
	struct shared *shared = context;

	(void)worker;
	if (tokenizer_encode(shared->tokenizer, shared->text, 20000, &shared->tokens[index]) != OK)
		abort();
}

/* Pseudo-random text over an alphabet, the same for all threads. */
static void test_threads_share_a_tokenizer(void **state)
{
	static const char alphabet[] = "abAB ab. \xC3\xA9\xCE\xA3 unaffable ";
	struct vocab vocab;
	struct tokenizer *tokenizer;
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct shared shared = {0};
	struct pool *pool;
	char *text = malloc(20000);

	assert_non_null(text);
	uint32_t x = 12345;
	for (int i = 0; i < 20000; i++) {
		x = x * 1664525 + 1013904223;
		text[i] = alphabet[(x >> 16) % (sizeof alphabet - 1)];
	}
	assert_ok(vocab_from_entries(&vocab, small_entries, SMALL_COUNT));
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	assert_ok(pool_create(&pool, 2));
	shared.tokenizer = tokenizer;
	shared.text = text;
	pool_run(pool, 8, encode_slice, &shared);
	assert_true(shared.tokens[0].count > 1000);
	for (int i = 1; i < 8; i++) {
		assert_int_equal(shared.tokens[i].count, shared.tokens[0].count);
		assert_memory_equal(shared.tokens[i].ids, shared.tokens[0].ids, (size_t)shared.tokens[0].count * sizeof(int32_t));
		assert_memory_equal(shared.tokens[i].begin, shared.tokens[0].begin,
				    (size_t)shared.tokens[0].count * sizeof(uint32_t));
	}
	for (int i = 0; i < 8; i++)
		tokens_release(&shared.tokens[i]);
	pool_free(pool);
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
	free(text);
}

/* Texts designed to be slow: time must grow only with their length. */
static void test_huge_words(void **state)
{
	enum { SIZE = 1 << 20 };
	static const char *const units[] = {"a", "\xC3\xA9", "\xCE\xA3.", "\xE3\x80\xAE\xCC\xB4", "\xCE\xA3''", "\xED\x95\x9C"};
	struct vocab vocab;
	char *text = malloc(SIZE);

	assert_non_null(text);
	assert_ok(vocab_from_entries(&vocab, small_entries, SMALL_COUNT));
	for (int m = 0; m < MODES; m++) {
		struct tokenizer *tokenizer;
		struct tokens tokens = {0};

		assert_ok(tokenizer_open(&tokenizer, &vocab, &modes[m].settings));
		for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
			size_t size = 0, unit = strlen(units[u]);
			for (; size + unit <= SIZE; size += unit)
				memcpy(text + size, units[u], unit);
			tokens_clear(&tokens);
			assert_ok(tokenizer_encode(tokenizer, text, size, &tokens));
			if (u == 0) {
				assert_int_equal(tokens.count, 1);
				assert_int_equal(tokens.ids[0], vocab.unk);
				assert_int_equal(tokens.end[0], size);
			}
		}
		assert_int_equal(tokenizer_encode(tokenizer, text, (size_t)UINT32_MAX + 1, &tokens), ERR_DATA);
		tokens_release(&tokens);
		tokenizer_close(tokenizer);
	}
	vocab_release(&vocab);
	free(text);
}

static enum status refuse_third(void *context, const char *word, size_t size)
{
	int *count = context;

	(void)word;
	(void)size;
	return ++*count == 3 ? error_set(ERR_STATE, "enough") : OK;
}

static void test_words_stop_at_an_error(void **state)
{
	struct tokenizer_settings settings = tokenizer_defaults(true);
	struct tokens scratch = {0};
	struct buffer words = {0};
	int count = 0;

	assert_int_equal(tokenizer_words(&settings, "a \xC3\xA9 b c d", 10, &scratch, refuse_third, &count), ERR_STATE);
	assert_int_equal(count, 3);
	/* Other settings with the same scratch. */
	append_words(&settings,
		     "\xC3\x89"
		     "A[MASK]",
		     9, &scratch, &words);
	settings = tokenizer_defaults(false);
	append_words(&settings,
		     "\xC3\x89"
		     "A[MASK]",
		     9, &scratch, &words);
	settings.special_tokens = true;
	append_words(&settings,
		     "\xC3\x89"
		     "A[MASK]b",
		     10, &scratch, &words);
	assert_string_equal(buffer_string(&words), "\xC3\x89"
						   "A [ MASK ] \nea [ mask ] \nea b \n");
	buffer_release(&words);
	tokens_release(&scratch);
}

static enum status settings_from(const char *config, struct tokenizer_settings *settings, bool *found)
{
	if (config)
		assert_ok(file_write(test_path("tokenizer_config.json"), config, strlen(config)));
	else
		remove(test_path("tokenizer_config.json"));
	return tokenizer_settings_read(test_path("vocab.txt"), settings, found);
}

static void test_settings_beside_the_vocabulary(void **state)
{
	struct tokenizer_settings s = tokenizer_defaults(true);
	bool found;

	assert_true(!s.lowercase && !s.strip_accents && s.split_chinese && !s.special_tokens);
	assert_int_equal(s.max_word_characters, 100);
	assert_ok(settings_from(NULL, &s, &found));
	assert_false(found);
	assert_true(!s.lowercase && !s.strip_accents && s.split_chinese);
	assert_ok(settings_from("{\"do_lower_case\": true}", &s, &found));
	assert_true(found);
	assert_true(s.lowercase && s.strip_accents && s.split_chinese);
	assert_ok(settings_from("{\"do_lower_case\": false, \"tokenize_chinese_chars\": false, "
				"\"strip_accents\": null, \"model_max_length\": 1000000000000000019884624838656}",
				&s, &found));
	assert_true(!s.lowercase && !s.strip_accents && !s.split_chinese);
	assert_ok(settings_from("{\"do_lower_case\": true, \"strip_accents\": false}", &s, &found));
	assert_true(s.lowercase && !s.strip_accents);
	s = tokenizer_defaults(false);
	assert_ok(settings_from("{}", &s, &found));
	assert_true(found && s.lowercase && s.strip_accents);
	assert_int_equal(settings_from("{\"do_lower_case\": 1}", &s, &found), ERR_DATA);
	assert_non_null(strstr(error_last()->message, "do_lower_case"));
	assert_int_equal(settings_from("{\"strip_accents\": \"no\"}", &s, &found), ERR_DATA);
	assert_int_equal(settings_from("[]", &s, &found), ERR_DATA);
	assert_int_equal(settings_from("{", &s, &found), ERR_DATA);
	assert_false(found);
	assert_true(s.lowercase && s.strip_accents); /* unchanged by the failure */
}

/* Other tokenizers whose vocabulary has the same form are refused; other classes that split in the same way are not. */
static void test_other_tokenizers(void **state)
{
	static const char *const same[] = {"\"BertTokenizer\"",
					   "\"BertTokenizerFast\"",
					   "\"PreTrainedTokenizerFast\"",
					   "\"TokenizersBackend\"",
					   "\"ElectraTokenizerFast\"",
					   "\"DistilBertTokenizer\"",
					   "null",
					   "null, \"word_tokenizer_type\": \"basic\", \"subword_tokenizer_type\": \"wordpiece\""};
	static const char *const others[][2] = {
		{"\"BertJapaneseTokenizer\"", "\"tokenizer_class\" is \"BertJapaneseTokenizer\""},
		{"\"BertJapaneseTokenizerFast\"", "BertJapaneseTokenizerFast"},
		{"\"MPNetTokenizer\"", "MPNetTokenizer"},
		{"\"RobertaTokenizer\"", "RobertaTokenizer"},
		{"null, \"word_tokenizer_type\": \"mecab\"", "\"word_tokenizer_type\" is \"mecab\""},
		{"\"BertTokenizer\", \"subword_tokenizer_type\": \"character\"", "\"subword_tokenizer_type\" is \"character\""},
	};
	struct tokenizer_settings s = tokenizer_defaults(true);
	char text[256];
	bool found;
	for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
		snprintf(text, sizeof text, "{\"do_lower_case\": true, \"tokenizer_class\": %s}", same[i]);
		assert_ok(settings_from(text, &s, &found));
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		snprintf(text, sizeof text, "{\"do_lower_case\": true, \"tokenizer_class\": %s}", others[i][0]);
		assert_error(ERR_USAGE, others[i][1], settings_from(text, &s, &found));
		assert_non_null(strstr(error_last()->hint, "split into other tokens"));
	}
	remove(test_path("tokenizer_config.json"));
}

static const char *text_of(const struct json *object, const char *first, const char *second)
{
	const struct json *value = json_member(json_member(object, first), second);
	return value && value->kind == JSON_STRING ? value->text : "";
}

static void check_folder(const struct vocab *vocab, const struct tokenizer_settings *settings)
{
	struct json_document document;
	struct tokenizer_settings again = tokenizer_defaults(!settings->lowercase);
	struct vocab vocab_again;
	const char *path;
	bool found;

	assert_ok(tokenizer_write_folder(vocab, settings, 384, test_folder));

	path = test_path("vocab.txt");
	assert_ok(vocab_read(&vocab_again, path));
	assert_true(vocab_again.hash == vocab->hash);
	vocab_release(&vocab_again);
	assert_ok(tokenizer_settings_read(path, &again, &found));
	assert_true(found && again.lowercase == settings->lowercase && again.strip_accents == settings->strip_accents &&
		    again.split_chinese == settings->split_chinese);

	path = test_path("tokenizer_config.json");
	assert_ok(json_read(&document, path, 1 << 20));
	assert_string_equal(json_member(document.root, "tokenizer_class")->text, "BertTokenizer");
	assert_int_equal(json_member(document.root, "model_max_length")->integer, 384);
	assert_string_equal(json_member(document.root, "mask_token")->text, "[MASK]");
	json_release(&document);

	path = test_path("special_tokens_map.json");
	assert_ok(json_read(&document, path, 1 << 20));
	assert_int_equal(document.root->child_count, 5);
	assert_string_equal(json_member(document.root, "unk_token")->text, "[UNK]");
	json_release(&document);

	path = test_path("tokenizer.json");
	assert_ok(json_read(&document, path, 1 << 20));
	const struct json *root = document.root, *normalizer = json_member(root, "normalizer");
	assert_string_equal(text_of(root, "normalizer", "type"), "BertNormalizer");
	assert_int_equal(json_member(normalizer, "lowercase")->boolean, settings->lowercase);
	assert_int_equal(json_member(normalizer, "handle_chinese_chars")->boolean, settings->split_chinese);
	if (settings->strip_accents == settings->lowercase)
		assert_int_equal(json_member(normalizer, "strip_accents")->kind, JSON_NULL);
	else
		assert_int_equal(json_member(normalizer, "strip_accents")->boolean, settings->strip_accents);
	assert_string_equal(text_of(root, "pre_tokenizer", "type"), "BertPreTokenizer");
	assert_string_equal(text_of(root, "post_processor", "type"), "TemplateProcessing");
	assert_string_equal(text_of(root, "decoder", "prefix"), "##");
	assert_string_equal(text_of(root, "model", "unk_token"), "[UNK]");
	assert_int_equal(json_member(root, "added_tokens")->child_count, 5);
	const struct json *added = json_member(root, "added_tokens")->first_child->next;
	assert_int_equal(json_member(added, "id")->integer, vocab->unk);
	assert_string_equal(json_member(added, "content")->text, "[UNK]");
	const struct json *entries = json_member(json_member(root, "model"), "vocab");
	int64_t expected = 0;
	for (int32_t id = 0; id < vocab->count; id++) {
		assert_int_equal(json_member(entries, vocab->text[id])->integer,
				 vocab_find(vocab, vocab->text[id], vocab->size[id]));
		expected += vocab_find(vocab, vocab->text[id], vocab->size[id]) == id;
	}
	assert_int_equal(entries->child_count, expected);
	json_release(&document);
}

static void test_written_folder(void **state)
{
	/* A repeated entry, an empty one, and characters that JSON has to escape. */
	const char *const entries[] = {"[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", "a", "\"", "\\", "##\xE4\xB8\xAD", "", "a"};
	struct vocab vocab;

	assert_ok(vocab_from_entries(&vocab, entries, 11));
	for (int m = 0; m < MODES; m++)
		check_folder(&vocab, &modes[m].settings);
	struct tokenizer_settings settings = tokenizer_defaults(false);
	assert_int_equal(tokenizer_write_folder(&vocab, &settings, 512, "/nonexistent/folder"), ERR_USAGE);
	vocab_release(&vocab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_code_point),
		cmocka_unit_test(test_long_way_agrees),
		cmocka_unit_test(test_hard_cases),
		cmocka_unit_test(test_invalid_utf8),
		cmocka_unit_test(test_special_tokens_are_text_unless_asked),
		cmocka_unit_test(test_later_duplicate_wins),
		cmocka_unit_test(test_one_scratch_for_many),
		cmocka_unit_test(test_threads_share_a_tokenizer),
		cmocka_unit_test(test_huge_words),
		cmocka_unit_test(test_words_stop_at_an_error),
		cmocka_unit_test(test_settings_beside_the_vocabulary),
		cmocka_unit_test(test_other_tokenizers),
		cmocka_unit_test(test_written_folder),
	};
	return cmocka_run_group_tests(tests, set_up, test_folder_drop);
}
