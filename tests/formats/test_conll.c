/* Columns of tagged words: what is accepted, and what is refused. */
#include "formats/conll.h"
#include "base/log.h"
#include "test.h"

static struct bad_records bad;

static enum status read_with(struct conll *conll, const char *text, size_t size, struct conll_options options)
{
	const char *path = test_path("words.txt");
	bad.count = 0;
	options.bad = &bad;
	assert_ok(file_write(path, text, size));
	struct text_file file;
	TRY(text_file_read(&file, path, TEXT_FILE_LIMIT));
	return conll_parse(conll, &file, &options);
}

/* Expected: the description, '|', then each word with '_' and its tag, sentences separated by '/'. */
static void expect_with(const char *text, size_t size, struct conll_options options, const char *expected)
{
	struct conll conll;
	struct buffer got = {0};
	if (read_with(&conll, text, size, options) != OK)
		fail_msg("%s", error_last()->message);
	conll_describe(&conll, &got);
	buffer_char(&got, '|');
	for (int64_t i = 0; i < conll.sentence_count; i++) {
		for (int64_t t = conll.sentence_starts[i]; t < conll.sentence_starts[i + 1]; t++)
			buffer_format(&got, "%s%s_%s", t > conll.sentence_starts[i] ? " " : "", conll_word(&conll, t),
				      conll.tag_column >= 0 ? conll_tag(&conll, t) : "");
		buffer_char(&got, '/');
	}
	assert_string_equal(buffer_string(&got), expected);
	buffer_release(&got);
	conll_release(&conll);
}
#define EXPECT(text, expected) expect_with(text, sizeof text - 1, (struct conll_options){0}, expected)

static void columns_are_words_and_tags(void **state)
{
	EXPECT("EU NNP I-NP B-ORG\nrejects  VBZ I-VP\tO\n\n\nHe x y O",
	       "4 columns between spaces (word 1, tag 4), 2 sentences, 3 words|EU_B-ORG rejects_O/He_O/");
	EXPECT("\xEF\xBB\xBF\xE5\xBD\x93\tO\r\n \tB-X\r\n\r\nNew York\tB-X\n",
	       "2 columns between tabs (word 1, tag 2), 2 sentences, 3 words|\xE5\xBD\x93_O  _B-X/New York_B-X/");
	EXPECT("a\tx\tO\nb\t\tO\n", "3 columns between tabs (word 1, tag 3), 1 sentence, 2 words|a_O b_O/");
	expect_with("a x\nb y\n", 8, (struct conll_options){.tag_column = 3},
		    "2 columns between spaces (word 1, no tags), 1 sentence, 2 words|a_ b_/");
	EXPECT("a\nb\n\nc\n", "1 column between spaces (word 1, no tags), 2 sentences, 3 words|a_ b_/c_/");
	EXPECT("a O\rb O\r", "2 columns between spaces (word 1, tag 2), 1 sentence, 2 words|a_O b_O/");
	expect_with("1 a O x\n2 b B-X x\n", 18, (struct conll_options){.word_column = 2, .tag_column = -2},
		    "4 columns between spaces (word 2, tag 3), 1 sentence, 2 words|a_O b_B-X/");
}

/* A header that names words shows numbered sentences; "sentence" by itself is a word. */
static void numbered_sentences_need_a_header(void **state)
{
	static const struct {
		const char *text;
		bool numbered;
	} cases[] = {{"Sentence O\na B-X\n", false}, {"sentence_id word tag\n1 a O\n1 b B-X\n", true}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct conll conll;
		assert_ok(read_with(&conll, cases[i].text, strlen(cases[i].text), (struct conll_options){0}));
		assert_int_equal(conll.counts_sentences, cases[i].numbered);
		conll_release(&conll);
	}
}

static void documents_begin_with_docstart(void **state)
{
	struct conll conll;
	static const char text[] = "-DOCSTART- (227508)\n\na\tO\n\nb\tO\n-DOCSTART- (2)\nc\tO\n\n-DOCSTART-\n";
	assert_ok(read_with(&conll, text, sizeof text - 1, (struct conll_options){.needs_tags = true}));
	assert_int_equal(conll.sentence_count, 3);
	assert_int_equal(conll.document_count, 3);
	assert_int_equal(conll.documents[0].first_sentence, 0);
	assert_string_equal(conll.documents[0].line, "-DOCSTART- (227508)");
	assert_int_equal(conll.documents[1].first_sentence, 2);
	assert_int_equal(conll.documents[2].first_sentence, 3);
	assert_int_equal(conll.lines[2], 7);
	conll_release(&conll);
}

static void a_hash_may_be_a_word(void **state)
{
	EXPECT("# text = a b\n# sent_id 1\na DT O\n# NN O\n#tag NN B-X\n\n# NN B-X\n\n#\n# newdoc id = 3\nc NN O\n",
	       "3 columns between spaces (word 1, tag 3), 3 sentences, 5 words, 4 comments skipped|a_O #_O "
	       "#tag_B-X/#_B-X/c_O/");
	EXPECT("# text = a\n#\tO\na\tO\n",
	       "2 columns between tabs (word 1, tag 2), 1 sentence, 2 words, 1 comment skipped|#_O a_O/");
	EXPECT("#\na\n", "1 column between spaces (word 1, no tags), 1 sentence, 2 words|#_ a_/");
	EXPECT("# comment\na O\n", "2 columns between spaces (word 1, tag 2), 1 sentence, 1 word, 1 comment skipped|a_O/");
	EXPECT("# O\na O\n", "2 columns between spaces (word 1, tag 2), 1 sentence, 2 words|#_O a_O/");
}

static void damage_is_named_by_its_line(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		const char *message;
		int64_t sentences_left;
	} cases[] = {
#define CASE(text, message, sentences_left) {text, sizeof text - 1, message, sentences_left}
		CASE("a O\nb O\n\nc x O\nd O\n\ne O\nf O\n", "line 4: 3 columns where most lines have 2", 2),
		CASE("a O\nb\n\ne O\nf O\n", "line 2: 1 column where most lines have 2", 1),
		CASE("a\tO\n\tO\n\nb\tO\n", "line 2: the word is empty", 1),
		CASE("a\tO\n\nc\t\nb\tO\n", "line 3: the tag is empty", 1),
		CASE("a O\nb\xFF O\n\nc O\n", "line 2: invalid UTF-8 at byte 2", 1),
		CASE("a O\nb\0c O\n\nc O\n", "line 2: a NUL byte at byte 2", 1),
		CASE("a O\n# b\n\nc O\nd x O\n\ne O\n", "line 5: 3 columns", 2), /* "# b" is the word "#" with the tag b */
		CASE("a O\n\nb O\n# no comment here\nc O\n", "line 4: 4 columns", 1),
		CASE("\n\n-DOCSTART-\n\n", "there is no sentence in it", -1),
		CASE("", "there is no sentence in it", -1),
		CASE("a\nb\n", "one column, so there are words but no tags", -1),
#undef CASE
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct conll conll;
		bad.skip = false;
		assert_error(ERR_DATA, cases[i].message,
			     read_with(&conll, cases[i].text, cases[i].size, (struct conll_options){.needs_tags = true}));
		bad.skip = true;
		enum status status = read_with(&conll, cases[i].text, cases[i].size, (struct conll_options){.needs_tags = true});
		if (cases[i].sentences_left < 0) {
			assert_int_equal(status, ERR_DATA);
			continue;
		}
		assert_int_equal(status, OK);
		if (conll.sentence_count != cases[i].sentences_left || bad.count != 1)
			fail_msg("case %zu: %lld sentences, %lld bad", i, (long long)conll.sentence_count, (long long)bad.count);
		conll_release(&conll);
	}
	bad.skip = false;
	struct conll conll;
	assert_error(ERR_USAGE, "has 2 columns: there is no column 3 for the tag",
		     read_with(&conll, "a O\n", 4, (struct conll_options){.tag_column = 3, .needs_tags = true}));
	assert_error(ERR_USAGE, "there is no column -3 for the word",
		     read_with(&conll, "a O\n", 4, (struct conll_options){.word_column = -3}));
}

static void such_files_are_recognized(void **state)
{
	static const struct {
		const char *text;
		bool is;
	} cases[] = {
		{"EU NNP B-ORG\nrejects VBZ O\n\n", true},
		{"\xE5\xBD\x93\tO\n\n\xE5\xB8\x8C\tI-LOC\n", true},
		{"-DOCSTART-\n\na O\n", true},
		{"a_b U-X\n", true},
		{"one sentence here\nanother one there\n", false},
		{"1\tgood\n0\tbad\n", false},
		{"word\nword\n", false},
		{"", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (conll_recognize(cases[i].text, strlen(cases[i].text)) != cases[i].is)
			fail_msg("case %zu", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_words_and_tags), cmocka_unit_test(documents_begin_with_docstart),
		cmocka_unit_test(a_hash_may_be_a_word),       cmocka_unit_test(damage_is_named_by_its_line),
		cmocka_unit_test(such_files_are_recognized),  cmocka_unit_test(numbered_sentences_need_a_header),
	};
	log_level = LOG_QUIET;
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
