/* Vocabularies as they occur in practice: read, searched, written, and refused with a reason. */
#include "test.h"
#include "base/buffer.h"
#include "base/log.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

#define SPECIAL "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"

static char path[PATH_BYTES], log_path[PATH_BYTES];

static int set_up(void **state)
{
	log_level = LOG_QUIET;
	if (test_folder_make(state) != 0)
		return -1;
	strcpy(path, test_path("vocab.txt"));
	strcpy(log_path, test_path("log"));
	return 0;
}

/* Reads a vocabulary of these bytes; `log` (may be NULL) receives the warnings. */
static enum status read_bytes(struct vocab *vocab, const char *bytes, size_t size, struct buffer *log)
{
	assert_ok(file_write(path, bytes, size));
	assert_ok(file_write(log_path, "", 0));
	log_to_file(log_path);
	enum status status = vocab_read(vocab, path);
	log_to_file(NULL);
	if (log)
		assert_ok(file_read(log_path, 1 << 20, log));
	return status;
}

static enum status read_text(struct vocab *vocab, const char *text, struct buffer *log)
{
	return read_bytes(vocab, text, strlen(text), log);
}

static int32_t find(const struct vocab *vocab, const char *text)
{
	return vocab_find(vocab, text, strlen(text));
}

static void test_read(void **state)
{
	struct vocab vocab;
	struct buffer log = {0};
	assert_ok(read_text(&vocab, "a\n[UNK]\n##b\n[CLS]\n[SEP]\n[MASK]\n[PAD]\n\xE4\xB8\xAD\n#\nlast", &log));
	assert_string_equal(buffer_string(&log), "");
	assert_int_equal(vocab.count, 10);
	assert_string_equal(vocab.text[2], "##b");
	assert_int_equal(vocab.size[7], 3);
	assert_true(vocab.is_continuation[2]);
	assert_false(vocab.is_continuation[8]);
	assert_int_equal(vocab.pad, 6);
	assert_int_equal(vocab.unk, 1);
	assert_int_equal(vocab.cls, 3);
	assert_int_equal(vocab.sep, 4);
	assert_int_equal(vocab.mask, 5);
	for (int32_t id = 0; id < vocab.count; id++) {
		assert_int_equal(vocab_find(&vocab, vocab.text[id], vocab.size[id]), id);
		assert_int_equal(vocab_is_special(&vocab, id), id == 1 || (id >= 3 && id <= 6));
	}
	assert_int_equal(find(&vocab, "b"), -1);
	assert_int_equal(find(&vocab, ""), -1);
	assert_int_equal(find(&vocab, "las"), -1);
	buffer_release(&log);
	vocab_release(&vocab);
}

static void test_oddities_are_said(void **state)
{
	struct vocab vocab;
	struct buffer log = {0};

	assert_ok(read_text(&vocab, "\xEF\xBB\xBF" SPECIAL "a\r\n\nb \nb\t\xE3\x80\x80\n  c\nd\xC2\xA0", &log));
	assert_int_equal(vocab.count, 11);
	assert_int_equal(vocab.pad, 0);
	assert_int_equal(find(&vocab, "a"), 5);
	assert_string_equal(vocab.text[6], "");
	assert_int_equal(find(&vocab, "b"), 8); /* the later one */
	assert_string_equal(vocab.text[7], "b");
	assert_int_equal(find(&vocab, "  c"), 9);
	assert_int_equal(find(&vocab, "d"), 10);
	assert_non_null(strstr(buffer_string(&log), "byte order mark"));
	assert_non_null(strstr(buffer_string(&log), "CR is cut (line 6)"));
	assert_non_null(strstr(buffer_string(&log), "blank entry, which no text can match (line 7)"));
	assert_non_null(strstr(buffer_string(&log), "white space at the end of an entry is cut (line 8, 9, 11)"));
	assert_non_null(strstr(buffer_string(&log), "the later id is used (line 9)"));
	vocab_release(&vocab);

	assert_ok(read_text(&vocab, SPECIAL "a\na\na\na\na\n", &log));
	assert_non_null(strstr(buffer_string(&log), "(line 7, 8, 9, ...)"));
	vocab_release(&vocab);
	assert_ok(read_text(&vocab, SPECIAL "a\na\na\na\na\n", &log)); /* as commands do that read a file twice */
	assert_null(strstr(buffer_string(&log), "(line 7"));
	vocab_release(&vocab);
	buffer_release(&log);
}

static void test_refused(void **state)
{
	struct vocab vocab;

	assert_int_equal(vocab_read(&vocab, "/nonexistent/vocab.txt"), ERR_USAGE);
	assert_int_equal(vocab_read(&vocab, test_folder), ERR_USAGE);
	assert_int_equal(read_text(&vocab, "", NULL), ERR_DATA);
	assert_non_null(strstr(error_last()->message, "empty"));
	assert_int_equal(read_text(&vocab, "\xEF\xBB\xBF", NULL), ERR_DATA);
	assert_int_equal(read_text(&vocab, "[PAD]\n[UNK]\n[CLS]\n[sep]\na\n", NULL), ERR_DATA);
	assert_non_null(strstr(error_last()->message, "[SEP] [MASK] among its 5 entries"));
	assert_null(strstr(error_last()->message, "[PAD]"));
	assert_true(error_last()->hint[0] != '\0');
	assert_int_equal(read_text(&vocab, SPECIAL "a\n\xFF\n", NULL), ERR_DATA);
	assert_non_null(strstr(error_last()->message, "line 7"));
	assert_int_equal(read_bytes(&vocab, SPECIAL "a\0b\n", sizeof SPECIAL + 3, NULL), ERR_DATA);
	assert_non_null(strstr(error_last()->message, "line 6"));
	assert_null(vocab.memory);
}

static void test_from_entries_and_back(void **state)
{
	const char *entries[] = {"[PAD]", "x", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "##y", "", "\xE4\xB8\xAD"};
	const char *const bad[] = {"a\nb", "a ", "a\r", "\xC3", "a\xE3\x80\x80"};
	const int32_t count = sizeof entries / sizeof *entries;
	struct vocab vocab, again;

	assert_ok(vocab_from_entries(&vocab, entries, count));
	uint64_t hash = vocab.hash;
	assert_int_equal(vocab.count, count);
	assert_ok(vocab_write(&vocab, path));
	assert_ok(vocab_read(&again, path));
	assert_int_equal(again.count, count);
	assert_true(again.hash == hash);
	for (int32_t id = 0; id < count; id++)
		assert_string_equal(again.text[id], entries[id]);
	vocab_release(&again);
	vocab_release(&vocab);

	entries[1] = "##y"; /* the same entries in another order are another vocabulary */
	entries[6] = "x";
	assert_ok(vocab_from_entries(&again, entries, count));
	assert_true(again.hash != hash);
	vocab_release(&again);

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		entries[1] = bad[i];
		assert_int_equal(vocab_from_entries(&again, entries, count), ERR_DATA);
		assert_non_null(strstr(error_last()->message, "entry 1 "));
	}
	assert_int_equal(vocab_from_entries(&again, entries + 2, count - 2), ERR_DATA); /* no [PAD] */
	assert_int_equal(vocab_from_entries(&again, entries, 0), ERR_DATA);
}

/* Unused rows become entries that stand for themselves, which a tokenizer.json lists. */
static void test_added(void **state)
{
	struct vocab vocab, again;
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct buffer text = {0};
	int32_t id;
	assert_ok(read_text(&vocab, SPECIAL "[unused1]\nab\n[unused2]\n<e1>\n", NULL));
	uint64_t hash = vocab.hash;
	assert_ok(vocab_add_token(&vocab, "<e1>", &id));
	assert_int_equal(id, 8);
	assert_true(vocab.hash == hash);
	assert_ok(vocab_add_token(&vocab, "[/E1]", &id));
	assert_int_equal(id, 5);
	assert_true(vocab.hash != hash);
	assert_ok(vocab_add_token(&vocab, "[/E1]", &id));
	assert_error(ERR_USAGE, "no entry '[much too long]'", vocab_add_token(&vocab, "[much too long]", &id));
	assert_ok(vocab_add_token(&vocab, "<<", &id));
	assert_int_equal(id, 7);
	assert_error(ERR_USAGE, "no entry '>>', and no free row", vocab_add_token(&vocab, ">>", &id));
	static const int32_t added[] = {8, 5, 7};
	assert_int_equal(vocab.added_count, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(vocab.added[i].id, added[i]);
	assert_int_equal(find(&vocab, "[/E1]"), 5);
	assert_int_equal(find(&vocab, "[unused1]"), -1);
	assert_int_equal(find(&vocab, "ab"), 6);
	assert_ok(tokenizer_write_folder(&vocab, &settings, 512, test_folder));
	assert_ok(file_read(test_path("tokenizer.json"), 1 << 20, &text));
	assert_non_null(strstr(buffer_string(&text), "\"id\": 5,\n      \"content\": \"[/E1]\""));
	assert_ok(vocab_read(&again, test_path("tokenizer.json")));
	assert_true(again.hash == vocab.hash);
	vocab_release(&again);
	vocab_release(&vocab);
	buffer_release(&text);
}

#define USUAL "{\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 3], \"cls\": [\"[CLS]\", 2]}"
#define ENTRIES "\"vocab\": {\"[PAD]\": 0, \"[UNK]\": 1, \"[CLS]\": 2, \"[SEP]\": 3, \"[MASK]\": 4, \"a\": 5, \"A\": 6}"

/* As in tokenizers, a part that the file does not mention does nothing: no case is folded, nothing is split, and no special token
 * is added. */
static void test_parts_that_are_missing(void **state)
{
	static const char bare[] = "{\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", " ENTRIES "}}";
	static const char untyped[] =
		"{\"normalizer\": {\"type\": \"BertNormalizer\"}, \"pre_tokenizer\": {\"type\": "
		"\"BertPreTokenizer\"}, \"post_processor\": " USUAL ", \"model\": {\"unk_token\": \"[UNK]\", " ENTRIES "%s}}";
	static const char *const members[] = {", \"max_input_chars_per_word\": 100, \"continuing_subword_prefix\": \"##\"", ""};
	struct tokenizer_settings settings = tokenizer_defaults(true);
	struct tokenizer *tokenizer;
	struct tokens tokens = {0};
	struct vocab vocab;
	char json[1024];
	(void)state;
	assert_ok(file_write(test_path("bare.json"), bare, strlen(bare)));
	assert_ok(vocab_read(&vocab, test_path("bare.json")));
	assert_int_equal(template_size(&vocab.single) + template_size(&vocab.pair), 0);
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	assert_ok(tokenizer_encode(tokenizer, "A", 1, &tokens));
	assert_ok(tokenizer_encode(tokenizer, "a a", 3, &tokens));
	assert_int_equal(tokens.count, 2);
	assert_int_equal(tokens.ids[0], 6);
	assert_int_equal(tokens.ids[1], 1);
	tokenizer_close(tokenizer);
	tokens_release(&tokens);
	vocab_release(&vocab);
	/* Without its type, a model is told by its members. */
	for (int i = 0; i < 2; i++) {
		snprintf(json, sizeof json, untyped, members[i]);
		assert_ok(file_write(test_path("untyped.json"), json, strlen(json)));
		if (i == 0) {
			assert_ok(vocab_read(&vocab, test_path("untyped.json")));
			assert_null(vocab.chain);
			vocab_release(&vocab);
		} else {
			assert_error(ERR_DATA, "\"model\" is of the type \"\"", vocab_read(&vocab, test_path("untyped.json")));
		}
	}
}

/* Parts that bertc does not have, and values that it cannot obey, are refused by name. */
static void test_words_of_other_tokenizers(void **state)
{
	static const struct {
		const char *parts, *message;
	} rows[] = {
		{"", NULL},
		{"\"normalizer\": null, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"},", NULL},
		{"\"normalizer\": {\"type\": \"BertNormalizer\"},", NULL},
		{"\"pre_tokenizer\": {\"type\": \"Whitespace\"},", NULL},
		{"\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": []},", NULL},
		{"\"pre_tokenizer\": {\"type\": \"UnicodeScripts\"},", "\"pre_tokenizer\" is of the type \"UnicodeScripts\""},
		{"\"normalizer\": {\"type\": \"Nmt\"},", "\"normalizer\" is of the type \"Nmt\""},
		{"\"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": false},", "has a \"clean_text\" of false"},
		{"\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"x+\"}, \"behavior\": \"Isolated\"},",
		 "has a \"pattern\" of \"x+\""},
		{"\"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 4], \"cls\": [\"[CLS]\", 2]},",
		 "special token '[SEP]' with the id 4"},
		{"\"post_processor\": {\"type\": \"Other\"},", "\"post_processor\" is of the type \"Other\""},
		{"\"post_processor\": {\"type\": \"Sequence\", \"processors\": [" USUAL ", " USUAL "]},",
		 "adds special tokens twice"},
	};
	static const char model[] = "\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"[PAD]\": 0, \"[UNK]\": 1, \"[CLS]\": 2, "
				    "\"[SEP]\": 3, \"[MASK]\": 4, \"a\": 5}}";
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct vocab vocab;
		char json[1024];
		snprintf(json, sizeof json, "{%s %s}", rows[i].parts, model);
		assert_ok(file_write(test_path("words.json"), json, strlen(json)));
		if (!rows[i].message) {
			assert_ok(vocab_read(&vocab, test_path("words.json")));
			vocab_release(&vocab);
		} else {
			assert_error(ERR_DATA, rows[i].message, vocab_read(&vocab, test_path("words.json")));
		}
	}
}

/* In a large table, every entry is found and nothing else. */
static void test_many(void **state)
{
	enum { COUNT = 50000 };
	char(*texts)[16] = malloc(COUNT * sizeof *texts);
	const char **entries = malloc(COUNT * sizeof *entries);
	const char *const special[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
	struct vocab vocab;

	assert_non_null(texts);
	assert_non_null(entries);
	for (int i = 0; i < COUNT; i++) {
		snprintf(texts[i], sizeof *texts, i % 2 ? "##%x" : "%x", i * 7);
		entries[i] = i < 5 ? special[i] : texts[i];
	}
	assert_ok(vocab_from_entries(&vocab, entries, COUNT));
	for (int i = 0; i < COUNT; i++) {
		char other[24];
		assert_int_equal(find(&vocab, entries[i]), i);
		snprintf(other, sizeof other, "%s!", entries[i]);
		assert_int_equal(find(&vocab, other), -1);
	}
	vocab_release(&vocab);
	free(entries);
	free(texts);
}

/* A few upper-case entries do not make a vocabulary cased: SciBERT's uncased one has 37 among 31,090. */
static void test_casing(void **state)
{
	static const struct {
		int upper_case;
		bool cased;
	} cases[] = {{0, false}, {2, false}, {10, false}, {11, true}, {500, true}};
	enum { COUNT = 1000, FIRST = 5 };
	static char texts[COUNT][16];
	const char *entries[COUNT] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct vocab vocab;
		for (int i = FIRST; i < COUNT; i++) {
			snprintf(texts[i], sizeof texts[i], i - FIRST < cases[k].upper_case ? "w%dX" : "w%dx", i);
			entries[i] = texts[i];
		}
		assert_ok(vocab_from_entries(&vocab, entries, COUNT));
		assert_int_equal(vocab_looks_cased(&vocab), cases[k].cased);
		vocab_release(&vocab);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_oddities_are_said),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_from_entries_and_back),
		cmocka_unit_test(test_added),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_parts_that_are_missing),
		cmocka_unit_test(test_words_of_other_tokenizers),
		cmocka_unit_test(test_casing),
	};
	return cmocka_run_group_tests(tests, set_up, test_folder_drop);
}
