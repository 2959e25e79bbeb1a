/* Added tokens of a tokenizer.json. The expected tokens are those of Hugging Face's tokenizers 0.23
 * (dev/added_tokens_check.py compares many more). */
#include "base/json.h"
#include "base/log.h"
#include "test.h"
#include "text/tokenizer.h"
#include "weights/tokenizer_file.h"

static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",        "[MASK]", "a",   "b",
				      "c",     "e",     "x",     "##a",          "##b",    "##c", "##e",
				      "##x",   ".",     "-",     "\xE4\xB8\xAD", "new",    "york"};
#define ENTRIES ((int32_t)(sizeof entries / sizeof *entries))

static const struct {
	const char *content;
	struct added_token token;
} added[] = {
	{"covid", {.id = 20, .normalized = true}},
	{"AB", {.id = 21}},
	{"\xC3\x89", {.id = 22, .normalized = true, .single_word = true}}, /* E with an accent */
	{"new york", {.id = 23, .normalized = true}},
	{"[E1]", {.id = 24, .special = true}},
	{"<x>", {.id = 25, .lstrip = true, .rstrip = true}},
	{"\xE4\xB8\xADx", {.id = 26, .normalized = true}},
	{"c", {.id = 7, .single_word = true}},
};
#define ADDED ((int32_t)(sizeof added / sizeof *added))

static void put_token(struct json_writer *json, const struct added_token *token, const char *content)
{
	json_open(json, NULL, '{');
	json_put_integer(json, "id", token->id);
	json_put_string(json, "content", content);
	json_put_bool(json, "single_word", token->single_word);
	json_put_bool(json, "lstrip", token->lstrip);
	json_put_bool(json, "rstrip", token->rstrip);
	json_put_bool(json, "normalized", token->normalized);
	json_put_bool(json, "special", token->special);
	json_close(json);
}

/* "sep": ["[SEP]", 3] */
static void put_special(struct json_writer *json, const char *key, int32_t id)
{
	json_open(json, key, '[');
	json_put_string(json, NULL, entries[id]);
	json_put_integer(json, NULL, id);
	json_close(json);
}

/* The parts of a tokenizer.json that are the same in every BERT's. */
#define BERT_PARTS                                                                                                               \
	"\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"     \
	"\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",3],\"cls\":[\"[CLS]\",2]},"

/* Writes a folder as transformers does: the added tokens are in tokenizer.json alone. `first`: the first entry. */
static void write_folder(const char *name, const char *first)
{
	struct buffer text = {0}, lines = {0};
	struct json_writer json = {.out = &text};
	char path[PATH_BYTES], folder[PATH_BYTES];
	json_open(&json, NULL, '{');
	json_open(&json, "added_tokens", '[');
	for (int32_t id = 0; id < 5; id++)
		put_token(&json, &(struct added_token){.id = id, .special = true}, entries[id]);
	for (int32_t i = 0; i < ADDED; i++)
		put_token(&json, &added[i].token, added[i].content);
	json_close(&json);
	json_open(&json, "normalizer", '{');
	json_put_string(&json, "type", "BertNormalizer");
	json_put_bool(&json, "lowercase", true);
	json_close(&json);
	json_open(&json, "pre_tokenizer", '{');
	json_put_string(&json, "type", "BertPreTokenizer");
	json_close(&json);
	json_open(&json, "post_processor", '{');
	json_put_string(&json, "type", "BertProcessing");
	put_special(&json, "sep", 3);
	put_special(&json, "cls", 2);
	json_close(&json);
	json_open(&json, "model", '{');
	json_put_string(&json, "type", "WordPiece");
	json_open(&json, "vocab", '{');
	for (int32_t id = 0; id < ENTRIES; id++) {
		json_put_integer(&json, entries[id], id);
		buffer_format(&lines, "%s\n", id == 5 ? first : entries[id]);
	}
	json_close(&json);
	json_close(&json);
	json_close(&json);
	snprintf(folder, sizeof folder, "%s", test_path(name));
	assert_ok(folder_make(folder));
	assert_ok(path_join(path, folder, "tokenizer.json"));
	assert_ok(file_write(path, text.data, text.size));
	assert_ok(path_join(path, folder, "vocab.txt"));
	assert_ok(file_write(path, lines.data, lines.size));
	buffer_release(&text);
	buffer_release(&lines);
}

struct expected {
	int32_t id;
	uint32_t begin, end;
};
static const struct {
	const char *text;
	struct expected tokens[10]; /* up to one with end 0 */
} cases[] = {
	{"acovidb COVID a", {{5, 0, 1}, {20, 1, 6}, {6, 6, 7}, {20, 8, 13}, {5, 14, 15}}},
	{"aabAB ab", {{5, 0, 1}, {10, 1, 2}, {11, 2, 3}, {21, 3, 5}, {5, 6, 7}, {11, 7, 8}}},
	{"e \xC3\xA9 ae \xC3\x89.", {{22, 0, 1}, {22, 2, 4}, {5, 5, 6}, {13, 6, 7}, {22, 8, 10}, {15, 10, 11}}},
	{"New York newyork new  york", {{23, 0, 8}, {1, 9, 16}, {18, 17, 20}, {19, 22, 26}}},
	{"a[E1]b[e1]", {{5, 0, 1}, {24, 1, 5}, {6, 5, 6}, {1, 6, 7}, {1, 7, 9}, {1, 9, 10}}},
	{"a  <x>  b<X>", {{5, 0, 1}, {25, 1, 8}, {6, 8, 9}, {1, 9, 10}, {9, 10, 11}, {1, 11, 12}}},
	{"a\xE4\xB8\xADx\xE4\xB8\xAD x", {{5, 0, 1}, {26, 1, 5}, {17, 5, 8}, {9, 9, 10}}},
	{"c cc a-c", {{7, 0, 1}, {7, 2, 3}, {12, 3, 4}, {5, 5, 6}, {16, 6, 7}, {7, 7, 8}}},
	{"a[MASK]b[SEP]", {{5, 0, 1}, {4, 1, 7}, {6, 7, 8}, {3, 8, 13}}},
	{"\xCC\x81\xC3\x89 a\xCC\x81"
	 "b",
	 {{22, 2, 4}, {5, 5, 6}, {11, 8, 9}}},
	{"", {{0, 0, 0}}},
	{"covid", {{20, 0, 5}}},
};

static void check_tokens(const struct vocab *vocab)
{
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct tokenizer *tokenizer;
	struct tokens tokens = {0};
	settings.special_tokens = true;
	assert_ok(tokenizer_open(&tokenizer, vocab, &settings));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t count = 0;
		while (count < 10 && cases[i].tokens[count].end > 0)
			count++;
		tokens_clear(&tokens);
		assert_ok(tokenizer_encode(tokenizer, cases[i].text, strlen(cases[i].text), &tokens));
		bool same = tokens.count == count;
		for (int64_t k = 0; same && k < count; k++)
			same = tokens.ids[k] == cases[i].tokens[k].id && tokens.begin[k] == cases[i].tokens[k].begin &&
			       tokens.end[k] == cases[i].tokens[k].end;
		if (!same)
			fail_msg("'%s'", cases[i].text);
	}
	tokens_release(&tokens);
	tokenizer_close(tokenizer);
}

static void check_vocab(const struct vocab *vocab)
{
	assert_int_equal(vocab->count, 27);
	assert_int_equal(vocab->wordpiece_count, ENTRIES);
	assert_int_equal(vocab->added_count, ADDED);
	for (int32_t i = 0; i < ADDED; i++) {
		const struct added_token *a = &vocab->added[i], *b = &added[i].token;
		assert_string_equal(vocab->text[a->id], added[i].content);
		assert_true(a->id == b->id && a->normalized == b->normalized && a->single_word == b->single_word &&
			    a->lstrip == b->lstrip && a->rstrip == b->rstrip && a->special == b->special);
	}
}

/* Whether the folder has a vocab.txt without the added tokens, with them, as bertc writes it, or none. */
static void test_folders(void **state)
{
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct vocab vocab;
	write_folder("theirs", entries[5]);
	assert_ok(vocab_file_read(&vocab, test_path("theirs/tokenizer.json")));
	check_vocab(&vocab);
	check_tokens(&vocab);
	vocab_release(&vocab);
	assert_ok(vocab_file_read(&vocab, test_path("theirs/vocab.txt")));
	check_vocab(&vocab);
	check_tokens(&vocab);
	int32_t id;
	assert_ok(vocab_add_token(&vocab, "covid", &id)); /* a relation's marker, for example; it is there already */
	assert_int_equal(id, 20);
	assert_ok(folder_make(test_path("ours")));
	assert_ok(tokenizer_write_folder(&vocab, &settings, 512, test_path("ours")));
	vocab_release(&vocab);
	for (int i = 0; i < 2; i++) {
		assert_ok(vocab_file_read(&vocab, test_path(i == 0 ? "ours/vocab.txt" : "ours/tokenizer.json")));
		check_vocab(&vocab);
		check_tokens(&vocab);
		vocab_release(&vocab);
	}
	/* Another vocabulary's tokenizer.json says nothing about this one. */
	write_folder("other", "another");
	assert_ok(vocab_file_read(&vocab, test_path("other/vocab.txt")));
	assert_int_equal(vocab.count, ENTRIES);
	assert_int_equal(vocab.added_count, 0);
	vocab_release(&vocab);
	assert_ok(file_write(test_path("other/tokenizer.json"), "{", 1));
	assert_ok(vocab_file_read(&vocab, test_path("other/vocab.txt")));
	assert_int_equal(vocab.count, ENTRIES);
	vocab_release(&vocab);
}

/* Entries that vocab.txt cannot represent, and two equal ones of which tokenizer.json has only the later, do not hide the added
 * tokens. A vocabulary of transformers has the first, and bertc writes the second. */
static void test_odd_entries(void **state)
{
	static const char lines[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n\xE2\x80\xA8\nb\na\n";
	static const char json[] = "{\"added_tokens\":[{\"id\":9,\"content\":\"new york\"}]," BERT_PARTS
				   "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"[PAD]\":0,"
				   "\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"[MASK]\":4,\"\\u2028\":6,\"b\":7,\"a\":8}}}";
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct vocab vocab;
	assert_ok(folder_make(test_path("odd")));
	assert_ok(file_write(test_path("odd/vocab.txt"), lines, strlen(lines)));
	assert_ok(file_write(test_path("odd/tokenizer.json"), json, strlen(json)));
	for (int i = 0; i < 2; i++) {
		assert_ok(vocab_file_read(&vocab, test_path(i == 0 ? "odd/vocab.txt" : "again/vocab.txt")));
		assert_int_equal(vocab.count, 10);
		assert_int_equal(vocab.wordpiece_count, 9);
		assert_int_equal(vocab.added_count, 1);
		assert_true(vocab.added[0].id == 9 && vocab.added[0].normalized);
		if (i == 0)
			assert_ok(folder_make(test_path("again")));
		assert_ok(tokenizer_write_folder(&vocab, &settings, 512, test_path("again")));
		vocab_release(&vocab);
	}
}

/* A part that bertc has never heard of is named; those that a caller decides about are not. */
static void test_unknown_members(void **state)
{
	static const char lines[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
	static const char json[] =
		"{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"splitter\":{},\"added_tokens\":[]," BERT_PARTS
		"\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"[MASK]\":4,\"a\":"
		"5}}}";
	static const char map[] =
		"{\"pad_token\":\"[PAD]\",\"eos_token\":\"a\",\"additional_special_tokens\":[],\"tag_tokens\":{}}";
	static const char later[] = "{\"version\":\"2.0\",\"added_tokens\":[]," BERT_PARTS
				    "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,"
				    "\"[SEP]\":3,\"[MASK]\":4,\"a\":5}}}";
	struct vocab vocab;
	struct buffer said = {0};
	assert_ok(folder_make(test_path("unknown")));
	assert_ok(file_write(test_path("unknown/special_tokens_map.json"), map, strlen(map)));
	assert_ok(file_write(test_path("unknown/vocab.txt"), lines, strlen(lines)));
	assert_ok(file_write(test_path("unknown/tokenizer.json"), json, strlen(json)));
	log_to_file(test_path("said"));
	for (int i = 0; i < 2; i++) {
		assert_ok(vocab_file_read(&vocab, test_path("unknown/vocab.txt")));
		vocab_release(&vocab);
	}
	log_to_file(NULL);
	assert_ok(file_read(test_path("said"), 1 << 16, &said));
	assert_non_null(strstr(buffer_string(&said), "bertc does not know \"splitter\" of \"tokenizer.json\", and ignores it"));
	assert_null(strstr(strstr(buffer_string(&said), "splitter") + 1, "splitter")); /* although the file is read again */
	assert_null(strstr(buffer_string(&said), "truncation"));
	assert_non_null(
		strstr(buffer_string(&said), "special_tokens_map.json': bertc does not know \"tag_tokens\", and ignores it"));
	buffer_release(&said);
	assert_ok(folder_make(test_path("later")));
	assert_ok(file_write(test_path("later/tokenizer.json"), later, strlen(later)));
	assert_error(ERR_DATA, "\"version\" is \"2.0\"; bertc has \"1.0\"",
		     vocab_file_read(&vocab, test_path("later/tokenizer.json")));
}

#define BYTE_LEVEL(prefix)                                                                                                       \
	"{\"added_tokens\":[],\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"        \
	"\"ByteLevel\"" prefix "}]},\"post_processor\":null,\"model\":{\"type\":\"BPE\",\"merges\":[],"                          \
	"\"vocab\":{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"<unk>\":3,\"a\":4,\"b\":5}}}"

#define BARE_BERT(normalizer)                                                                                                    \
	"{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"BertNormalizer\"" normalizer "}]},\"model\":"       \
	"{\"type\":\"WordPiece\",\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"[MASK]\":4,\"a\":5}}}"

/* What files beside tokenizer.json say, and transformers obeys: added_tokens.json, add_prefix_space, and the case. */
static void test_files_beside(void **state)
{
	static const struct {
		const char *json, *config, *added, *error; /* NULL: it can be read */
	} folders[] = {
		{BYTE_LEVEL(""), "{}", "{}", NULL},
		{BYTE_LEVEL(""), "{}", "{\"a\":4}", NULL},
		{BYTE_LEVEL(""), "{}", "{\"new\":6}",
		 "added_tokens.json' has the token 'new' with the id 6, which the vocabulary"},
		{BYTE_LEVEL(""), "{}", "{\"a\":5}", "added_tokens.json' has the token 'a' with the id 5, which the vocabulary"},
		{BYTE_LEVEL(""), "{\"added_tokens_decoder\":{}}", "{\"new\":6}", NULL},
		{BYTE_LEVEL(""), "{\"add_prefix_space\":true}", "{}", NULL},
		{BYTE_LEVEL(",\"add_prefix_space\":false"), "{\"add_prefix_space\":false}", "{}", NULL},
		{BYTE_LEVEL(",\"add_prefix_space\":false"), "{\"add_prefix_space\":true}", "{}",
		 "\"add_prefix_space\" is true, but in tokenizer.json beside it, it is false"},
		{BYTE_LEVEL(""), "{\"add_prefix_space\":false}", "{}",
		 "\"add_prefix_space\" is false, but in tokenizer.json beside it, it is true"},
		{BARE_BERT(""), "{\"do_lower_case\":true,\"strip_accents\":null}", "{}", NULL},
		{BARE_BERT(",\"lowercase\":false"), "{\"do_lower_case\":false,\"tokenizer_class\":\"BertTokenizer\"}", "{}",
		 NULL},
		{BARE_BERT(""), "{\"do_lower_case\":false,\"tokenizer_class\":\"PreTrainedTokenizerFast\"}", "{}", NULL},
		{BARE_BERT(""), "{\"strip_accents\":false}", "{}", NULL},
		{BARE_BERT(""), "{\"do_lower_case\":false}", "{}",
		 "\"do_lower_case\" is false, but in tokenizer.json beside it, it is true"},
		{BARE_BERT(",\"strip_accents\":false"), "{\"do_lower_case\":true,\"tokenizer_class\":\"BertTokenizer\"}", "{}",
		 "\"strip_accents\" is true, but in tokenizer.json beside it, it is false"},
		{BARE_BERT(""), "{\"do_lower_case\":true,\"tokenize_chinese_chars\":false}", "{}",
		 "\"tokenize_chinese_chars\" is false, but in tokenizer.json beside it, it is true"},
	};
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		struct vocab vocab;
		assert_ok(folder_make(test_path("beside")));
		assert_ok(file_write(test_path("beside/tokenizer.json"), folders[i].json, strlen(folders[i].json)));
		assert_ok(file_write(test_path("beside/tokenizer_config.json"), folders[i].config, strlen(folders[i].config)));
		assert_ok(file_write(test_path("beside/added_tokens.json"), folders[i].added, strlen(folders[i].added)));
		if (folders[i].error) {
			assert_error(ERR_DATA, folders[i].error, vocab_file_read(&vocab, test_path("beside/tokenizer.json")));
			continue;
		}
		assert_ok(vocab_file_read(&vocab, test_path("beside/tokenizer.json")));
		vocab_release(&vocab);
	}
}

/* White space that is a token, or that a token takes with it. */
static void test_white_space(void **state)
{
	static const char *const texts[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "covid", " \xE2\x80\x8B", "x\x1C"};
	static const char *const spaced[] = {"covid   a",     "covid \x1C a", "   ",
					     "covid covid  ", " a   covid",   "x\x1C\x1C x\x1C a"};
	struct tokenizer_settings settings = tokenizer_defaults(false);
	for (int plain = 0; plain < 2; plain++) {
		struct tokenizer *tokenizer;
		struct tokens tokens = {0};
		struct vocab vocab;
		assert_ok(vocab_from_entries(&vocab, texts, sizeof texts / sizeof *texts));
		vocab.wordpiece_count = 6;
		for (int32_t id = 6; id < vocab.count; id++)
			assert_ok(
				vocab_list_added(&vocab, &(struct added_token){.id = id, .normalized = !plain, .rstrip = true}));
		assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
		for (size_t i = 0; i < sizeof spaced / sizeof *spaced; i++) {
			tokens_clear(&tokens);
			assert_ok(tokenizer_encode(tokenizer, spaced[i], strlen(spaced[i]), &tokens));
			for (int64_t k = 0; k < tokens.count; k++)
				assert_true(tokens.begin[k] < tokens.end[k] && tokens.end[k] <= strlen(spaced[i]) &&
					    (k == 0 || tokens.begin[k] >= tokens.end[k - 1]));
		}
		tokens_release(&tokens);
		tokenizer_close(tokenizer);
		vocab_release(&vocab);
	}
}

/* A syllable that begins with the letters of a token is not that token: a token consists of whole characters of the text. */
static void test_whole_characters(void **state)
{
	static const char *const texts[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\xEA\xB0\x80"};
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct tokenizer *tokenizer;
	struct tokens tokens = {0};
	struct vocab vocab;
	assert_ok(vocab_from_entries(&vocab, texts, sizeof texts / sizeof *texts));
	vocab.wordpiece_count = 5;
	assert_ok(vocab_list_added(&vocab, &(struct added_token){.id = 5, .normalized = true}));
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	assert_ok(tokenizer_encode(tokenizer, "\xEA\xB0\x80 \xEA\xB0\x81", 7, &tokens));
	assert_int_equal(tokens.count, 2);
	assert_int_equal(tokens.ids[0], 5);
	assert_int_equal(tokens.ids[1], vocab.unk);
	assert_int_equal(tokens.end[1], 7);
	tokens_release(&tokens);
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
}

/* An open tokenizer does not notice what is added later. */
static void test_added_later(void **state)
{
	static const char *const texts[] = {"[PAD]", "[UNK]",     "[CLS]",     "[SEP]",   "[MASK]",
					    "a",     "[unused0]", "[unused1]", "new york"};
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct tokenizer *tokenizer;
	struct tokens tokens = {0};
	struct vocab vocab;
	int32_t id;
	assert_ok(vocab_from_entries(&vocab, texts, sizeof texts / sizeof *texts));
	assert_ok(vocab_list_added(&vocab, &(struct added_token){.id = 8, .normalized = true}));
	assert_ok(vocab_list_added(&vocab, &(struct added_token){.id = 6}));
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	assert_ok(vocab_add_token(&vocab, "[E1]", &id));
	assert_int_equal(id, 7); /* [unused0] is in use */
	for (int i = 0; i < 100; i++)
		assert_ok(vocab_list_added(&vocab, &(struct added_token){.id = 5}));
	assert_ok(tokenizer_encode(tokenizer, "New York", 8, &tokens));
	assert_int_equal(tokens.count, 1);
	assert_int_equal(tokens.ids[0], 8);
	tokens_release(&tokens);
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
}

/* Google's tokenizer has no added tokens; in a corpus, [MASK] is text but an added token is not. */
static void test_settings(void **state)
{
	struct vocab vocab;
	write_folder("settings", entries[5]);
	assert_ok(vocab_file_read(&vocab, test_path("settings/vocab.txt")));
	for (int google = 0; google < 2; google++) {
		struct tokenizer_settings settings = tokenizer_defaults(false);
		struct tokenizer *tokenizer;
		struct tokens tokens = {0};
		settings.compat = google ? COMPAT_GOOGLE : COMPAT_HUGGINGFACE;
		assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
		assert_ok(tokenizer_encode(tokenizer, "covid", 5, &tokens));
		assert_int_equal(tokens.count, 1);
		assert_int_equal(tokens.ids[0], google ? vocab.unk : 20);
		tokens_clear(&tokens);
		assert_ok(tokenizer_encode(tokenizer, "[MASK]", 6, &tokens));
		assert_int_equal(tokens.count, 3);
		tokens_release(&tokens);
		tokenizer_close(tokenizer);
	}
	vocab_release(&vocab);
}

/* Thousands of tokens, one the beginning of the other: the longest one counts. */
static void check_many(bool normalized)
{
	struct buffer text = {0};
	struct vocab vocab;
	struct tokenizer *tokenizer;
	struct tokens tokens = {0};
	struct tokenizer_settings settings = tokenizer_defaults(false);
	static const char *texts[5 + 5000];
	static char words[5000][16];
	for (int i = 0; i < 5; i++)
		texts[i] = entries[i];
	for (int i = 0; i < 5000; i++) {
		snprintf(words[i], sizeof words[i], "w%d", i);
		texts[5 + i] = words[i];
	}
	assert_ok(vocab_from_entries(&vocab, texts, 5 + 5000));
	vocab.wordpiece_count = 5;
	for (int i = 0; i < 5000; i++) {
		assert_ok(vocab_list_added(&vocab, &(struct added_token){.id = 5 + i, .normalized = normalized}));
		buffer_format(&text, i % 3 == 0 ? "%s" : "%s ", words[i]);
	}
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	assert_ok(tokenizer_encode(tokenizer, buffer_string(&text), text.size, &tokens));
	assert_int_equal(tokens.count, 5000);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(tokens.ids[i], 5 + i);
	tokens_release(&tokens);
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
	buffer_release(&text);
}

static void test_many(void **state)
{
	check_many(false);
	check_many(true);
}

/* Special tokens that only a file beside the vocabulary names are looked for in texts, as transformers 5.24 does; what is no
 * entry is ignored. special_tokens_map.json wins unless the tokens of tokenizer_config.json are listed there. */
static void test_named_elsewhere(void **state)
{
	static const struct {
		const char *config, *map;
		int32_t id; /* of the token in the text; 1: none is found */
	} folders[] = {
		{"{}", "{\"additional_special_tokens\":[\"[E1]\",\"[NEW]\"]}", 5},
		{"{\"additional_special_tokens\":[{\"content\":\"[E1]\",\"lstrip\":true}]}", NULL, 5},
		{"{\"extra_special_tokens\":{\"marker\":\"[E1]\"}}", NULL, 5},
		{"{\"bos_token\":\"[E1]\"}", NULL, 5},
		{"{\"image_token\":\"[E1]\"}", NULL, 5},
		{"{\"bos_token\":\"[E1]\"}", "{\"bos_token\":\"[CLS]\"}", 1},
		{"{\"added_tokens_decoder\":{}}", "{\"bos_token\":\"[E1]\"}", 1},
		{"{\"eos_token\":\"[NEW]\"}", NULL, 1},
	};
	static const char lines[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[E1]\n";
	static const char json[] = "{\"added_tokens\":[]," BERT_PARTS "\"model\":{\"type\":\"WordPiece\","
				   "\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"[MASK]\":4,\"[E1]\":5}}}";
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct tokenizer *tokenizer;
	struct tokens tokens = {0};
	struct vocab vocab;
	settings.special_tokens = false;
	for (size_t i = 0; i < 2 * sizeof folders / sizeof *folders; i++) {
		const char *config = folders[i / 2].config, *map = folders[i / 2].map;
		char name[32], file[64];
		snprintf(name, sizeof name, "named%zu", i);
		assert_ok(folder_make(test_path(name)));
		snprintf(file, sizeof file, "%s/tokenizer_config.json", name);
		assert_ok(file_write(test_path(file), config, strlen(config)));
		snprintf(file, sizeof file, "%s/special_tokens_map.json", name);
		if (map)
			assert_ok(file_write(test_path(file), map, strlen(map)));
		snprintf(file, sizeof file, i % 2 ? "%s/vocab.txt" : "%s/tokenizer.json", name);
		assert_ok(file_write(test_path(file), i % 2 ? lines : json, strlen(i % 2 ? lines : json)));
		assert_ok(vocab_file_read(&vocab, test_path(file)));
		assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
		tokens.count = 0;
		assert_ok(tokenizer_encode(tokenizer, "[E1]", 4, &tokens));
		assert_int_equal(tokens.ids[0], folders[i / 2].id);
		tokenizer_close(tokenizer);
		vocab_release(&vocab);
	}
	tokens_release(&tokens);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folders),          cmocka_unit_test(test_odd_entries), cmocka_unit_test(test_files_beside),
		cmocka_unit_test(test_unknown_members),  cmocka_unit_test(test_white_space), cmocka_unit_test(test_added_later),
		cmocka_unit_test(test_whole_characters), cmocka_unit_test(test_settings),    cmocka_unit_test(test_many),
		cmocka_unit_test(test_named_elsewhere)};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
