/* The words of running text, with each kind of tokenizer. */
#include "base/buffer.h"
#include "base/json.h"
#include "tasks/tagging/tag_words.h"
#include "test.h"
#include "text/vocab.h"

static struct vocab vocab;
static struct tokenizer *tokenizer;

static void open_settings(void)
{
	struct tokenizer_settings settings = tokenizer_defaults(false);
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
}

static void open_wordpiece(void)
{
	static const char *const entries[] = {
		"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "bleed", "##ing",         "(", ")", ".",
		"as",    "##a",   "don",   "t",     "'",      "new",   "##\xE4\xB8\xAD"};
	assert_ok(vocab_from_entries(&vocab, entries, sizeof entries / sizeof *entries));
	open_settings();
}

/* One of the tokenizers in tests/golden, which Hugging Face's library has made. */
static void open_golden(const char *file, const char *name)
{
	struct json_document document;
	assert_ok(json_read(&document, file, 1 << 24));
	const struct json *row = json_member(document.root, "tokenizers")->first_child;
	while (row && strcmp(json_member(row, "name")->text, name) != 0)
		row = row->next;
	assert_non_null(row);
	const struct json *json = json_member(row, "json");
	assert_ok(file_write(test_path("tokenizer.json"), json->text, json->text_size));
	json_release(&document);
	assert_ok(vocab_read(&vocab, test_path("tokenizer.json")));
	open_settings();
}

static void close_tokenizer(void)
{
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
}

/* `expected`: the words, each behind a bar. The first token of each must be one that its beginning, or the space before it, is
 * in. */
static void expect_words(enum tag_words kind, const char *text, const char *expected)
{
	struct tag_cutter cutter = {.kind = kind, .tokenizer = tokenizer};
	struct buffer got = {0};
	for (int round = 0; round < 2; round++) {
		buffer_clear(&got);
		assert_ok(tag_words_cut(&cutter, text, strlen(text)));
		for (int64_t i = 0; i < cutter.count; i++) {
			const struct tag_word *word = &cutter.words[i];
			buffer_format(&got, "|%.*s", (int)(word->end - word->begin), text + word->begin);
			if (kind == WORDS_CHARACTERS)
				continue;
			assert_true(word->first >= 0 && word->first < cutter.tokens.count);
			assert_true(i == 0 || word->first > cutter.words[i - 1].first);
			assert_true(cutter.tokens.begin[word->first] <= word->begin &&
				    cutter.tokens.end[word->first] >= word->begin);
		}
		assert_string_equal(buffer_string(&got), expected);
	}
	buffer_release(&got);
	tag_cutter_release(&cutter);
}

/* As transformers' pipeline groups them: every token without "##" begins a word. */
static void wordpiece(void **state)
{
	(void)state;
	open_wordpiece();
	expect_words(WORDS_TOKENS, "Bleeding. (ASA)", "|Bleeding|.|(|ASA|)");
	expect_words(WORDS_TOKENS,
		     " don't\t\xC2\xAD\xE4\xB8\xAD\xE4\xB8\xAD"
		     "new unknown\xC2\xAD ",
		     "|don|'|t|\xE4\xB8\xAD|\xE4\xB8\xAD|new|unknown");
	expect_words(WORDS_TOKENS, "", "");
	expect_words(WORDS_TOKENS, " \xC2\xAD\n", "");
	close_tokenizer();
}

/* Their tokens have no mark: words end at spaces, punctuation, and ideographs, but not within a token. */
static void byte_pairs(void **state)
{
	(void)state;
	static const char *const names[] = {"roberta", "prefixed", "modern", "fallback"};
	for (int i = 0; i < 4; i++) {
		open_golden("tests/golden/bpe.json", names[i]);
		expect_words(WORDS_TOKENS, "The bleeding. (ASA)", "|The|bleeding|.|(|ASA|)");
		expect_words(WORDS_TOKENS, "a  b, \xE6\x88\x91\xE4\xBB\xAC x", "|a|b|,|\xE6\x88\x91|\xE4\xBB\xAC|x");
		expect_words(WORDS_TOKENS,
			     "\xF0\x9F\x91\x8D"
			     "a \xC3\xA9t\xC3\xA9!",
			     "|\xF0\x9F\x91\x8D"
			     "a|\xC3\xA9t\xC3\xA9|!");
		close_tokenizer();
	}
	open_golden("tests/golden/bpe.json", "roberta");
	expect_words(WORDS_TOKENS, "didn't.", "|didn|'t|."); /* "'t" is a token */
	close_tokenizer();
}

static void unigrams(void **state)
{
	(void)state;
	static const char *const names[] = {"transformers 5", "transformers 4", "bytes"};
	for (int i = 0; i < 3; i++) {
		open_golden("tests/golden/unigram.json", names[i]);
		expect_words(WORDS_TOKENS, "The cats, (dogs) and 10.", "|The|cats|,|(|dogs|)|and|10|.");
		expect_words(WORDS_TOKENS, "  cats  \xE5\xAD\xA6\xE6\xA0\xA1\xE5\x9C\xA8 dogs ",
			     "|cats|\xE5\xAD\xA6\xE6\xA0\xA1|\xE5\x9C\xA8|dogs");
		close_tokenizer();
	}
}

static void characters(void **state)
{
	(void)state;
	open_wordpiece();
	expect_words(WORDS_CHARACTERS, "\xE4\xB8\xAD ab\n.", "|\xE4\xB8\xAD|a|b|.");
	close_tokenizer();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wordpiece),
		cmocka_unit_test(byte_pairs),
		cmocka_unit_test(unigrams),
		cmocka_unit_test(characters),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
