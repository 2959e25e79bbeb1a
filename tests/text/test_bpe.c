/* Byte-pair encoding and the parts around it: ids, places, and templates beside those of Hugging Face's tokenizers
 * (tests/golden/bpe.json); folders that are written back; what is refused. */
#include "base/json.h"
#include "test.h"
#include "text/decode.h"
#include "text/tokenizer/chain.h"
#include "text/tokenizer.h"
#include "text/vocab.h"
#include "text/vocab_learn.h"

static struct json_document golden;

static int set_up(void **state)
{
	if (test_folder_make(state) != 0)
		return -1;
	return json_read(&golden, "tests/golden/bpe.json", 1 << 24) == OK ? 0 : -1;
}

static int tear_down(void **state)
{
	json_release(&golden);
	return test_folder_drop(state);
}

static void open_tokenizer(const char *path, struct vocab *vocab, struct tokenizer **out)
{
	struct tokenizer_settings settings = tokenizer_defaults(false);
	settings.special_tokens = true;
	assert_ok(vocab_read(vocab, path));
	assert_ok(tokenizer_open(out, vocab, &settings));
}

static void check_tokens(const struct tokens *tokens, const struct json *expected, const char *name, const char *text)
{
	const struct json *value = expected->first_child;
	bool same = expected->child_count == 3 * tokens->count;
	for (int64_t i = 0; same && i < tokens->count; i++) {
		const int64_t have[] = {tokens->ids[i], tokens->begin[i], tokens->end[i]};
		for (int k = 0; k < 3; k++, value = value->next)
			same = same && value->integer == have[k];
	}
	if (!same)
		fail_msg("%s: '%s'", name, text);
}

/* The texts' tokens, once as they are read and once from a cache. */
static void check_texts(const struct tokenizer *tokenizer, const struct json *row, const char *name)
{
	struct tokens tokens = {0};
	for (int round = 0; round < 2; round++) {
		const struct json *expected = json_member(row, "results")->first_child;
		for (const struct json *text = json_member(golden.root, "texts")->first_child; text; text = text->next) {
			tokens_clear(&tokens);
			assert_ok(tokenizer_encode(tokenizer, text->text, text->text_size, &tokens));
			check_tokens(&tokens, expected, name, text->text);
			expected = expected->next;
		}
	}
	tokens_release(&tokens);
}

static void check_pair(const struct tokenizer *tokenizer, const struct json *row, const char *name)
{
	const struct token_template *template = &tokenizer_vocab(tokenizer)->pair;
	const struct json *texts = json_member(golden.root, "texts")->first_child;
	const struct json *id = json_member(row, "pair")->first_child, *type = json_member(row, "types")->first_child;
	struct tokens a = {0}, b = {0};
	int32_t ids[512];
	assert_ok(tokenizer_encode(tokenizer, texts->text, texts->text_size, &a));
	assert_ok(tokenizer_encode(tokenizer, texts->next->text, texts->next->text_size, &b));
	assert_true(a.count + b.count + template_size(template) <= 512);
	int32_t count = template_join(template, a.ids, a.count, b.ids, b.count, ids);
	int32_t type_0 = template_type_0(template, a.count, b.count);
	for (int32_t i = 0; i < count; i++, id = id->next, type = type->next)
		if (!id || id->integer != ids[i] || type->integer != (i >= type_0))
			fail_msg("%s: token %d of the pair", name, i);
	assert_null(id);
	tokens_release(&a);
	tokens_release(&b);
}

static void test_golden(void **state)
{
	(void)state;
	for (const struct json *row = json_member(golden.root, "tokenizers")->first_child; row; row = row->next) {
		const char *name = json_member(row, "name")->text;
		const struct json *json = json_member(row, "json");
		struct vocab vocab, again;
		struct tokenizer *tokenizer;
		assert_ok(file_write(test_path("tokenizer.json"), json->text, json->text_size));
		open_tokenizer(test_path("tokenizer.json"), &vocab, &tokenizer);
		check_texts(tokenizer, row, name);
		check_pair(tokenizer, row, name);
		tokenizer_close(tokenizer);
		/* As a folder that is written. */
		assert_ok(folder_make(test_path("written")));
		assert_ok(tokenizer_write_folder(&vocab, &(struct tokenizer_settings){0}, 512, test_path("written")));
		open_tokenizer(test_path("written/tokenizer.json"), &again, &tokenizer);
		assert_true(again.hash == vocab.hash);
		check_texts(tokenizer, row, name);
		tokenizer_close(tokenizer);
		vocab_release(&again);
		vocab_release(&vocab);
	}
}

static void check_decoded(const struct vocab *vocab, const struct json *row, const char *member, bool skips)
{
	const struct json *expected = json_member(row, member)->first_child;
	for (const struct json *list = json_member(row, "ids")->first_child; list; list = list->next, expected = expected->next) {
		struct buffer text = {0};
		int32_t ids[32];
		int64_t count = 0;
		for (const struct json *id = list->first_child; id; id = id->next)
			ids[count++] = (int32_t)id->integer;
		vocab_decode(vocab, ids, count, skips, &text);
		if (text.size != expected->text_size || memcmp(buffer_string(&text), expected->text, text.size) != 0)
			fail_msg("%s: '%s' instead of '%s'", json_member(row, "json")->text, buffer_string(&text),
				 expected->text);
		buffer_release(&text);
	}
}

static void test_decoders(void **state)
{
	(void)state;
	for (const struct json *row = json_member(golden.root, "decoders")->first_child; row; row = row->next) {
		const struct json *json = json_member(row, "json");
		struct vocab vocab;
		assert_ok(file_write(test_path("tokenizer.json"), json->text, json->text_size));
		assert_ok(vocab_read(&vocab, test_path("tokenizer.json")));
		check_decoded(&vocab, row, "texts", false);
		check_decoded(&vocab, row, "skipped", true);
		vocab_release(&vocab);
	}
}

/* A NUL is a byte like any other. */
static void test_decoded_nul(void **state)
{
	(void)state;
	static const char json[] = "{\"decoder\":{\"type\":\"ByteFallback\"},\"model\":{\"type\":\"WordPiece\",\"vocab\":"
				   "{\"[UNK]\":0,\"a\":1,\"<0x00>\":2}}}";
	static const int32_t ids[] = {1, 2, 1};
	struct vocab vocab;
	struct buffer text = {0};
	assert_ok(file_write(test_path("tokenizer.json"), json, strlen(json)));
	assert_ok(vocab_read(&vocab, test_path("tokenizer.json")));
	vocab_decode(&vocab, ids, 3, false, &text);
	assert_int_equal(text.size, 3);
	assert_memory_equal(text.data, "a\0a", 3);
	buffer_release(&text);
	vocab_release(&vocab);
}

static const struct json *golden_model(const char *name, struct json_document *document)
{
	const struct json *row = json_member(golden.root, "tokenizers")->first_child;
	while (strcmp(json_member(row, "name")->text, name) != 0)
		row = row->next;
	const struct json *json = json_member(row, "json");
	assert_ok(json_parse(document, name, json->text, json->text_size));
	return json_member(document->root, "model");
}

/* Entries with ids, and merges in order, are those of Hugging Face's trainer. */
static void check_learned(const struct vocab *vocab, const struct json *model)
{
	struct json_document document;
	assert_ok(json_parse(&document, "learned", buffer_string(&vocab->chain->json), vocab->chain->json.size));
	const struct json *learned = json_member(document.root, "model");
	assert_int_equal(vocab->count, json_member(model, "vocab")->child_count);
	for (const struct json *entry = json_member(model, "vocab")->first_child; entry; entry = entry->next)
		assert_string_equal(vocab->text[entry->integer], entry->key);
	const struct json *merge = json_member(learned, "merges")->first_child;
	for (const struct json *pair = json_member(model, "merges")->first_child; pair; pair = pair->next, merge = merge->next) {
		char text[64];
		snprintf(text, sizeof text, "%s %s", pair->first_child->text, pair->first_child->next->text);
		assert_non_null(merge);
		assert_string_equal(merge->text, text);
	}
	assert_null(merge);
	json_release(&document);
}

static void learn(int32_t size, int64_t memory, struct vocab *out)
{
	const char *path = test_path("sentences.txt");
	struct buffer text = {0};
	struct corpus *corpus;
	struct vocab_learner *learner;
	struct vocab_learn_report report;
	for (const struct json *line = json_member(golden.root, "sentences")->first_child; line; line = line->next)
		buffer_format(&text, "%s\n", line->text);
	assert_ok(file_write(path, text.data, text.size));
	buffer_release(&text);
	assert_ok(
		corpus_open(&corpus, &path, 1,
			    &(struct corpus_settings){.input = {.text_form = TEXT_FORM_SENTENCES}, .threads = 1, .quiet = true}));
	assert_ok(vocab_learner_create(&learner, VOCAB_BPE, &(struct tokenizer_settings){0},
				       &(struct spill_settings){.memory_limit = memory}));
	assert_ok(vocab_learner_count(learner, corpus, NULL));
	assert_ok(vocab_learner_finish(learner, &(struct vocab_learn_settings){.size = size, .min_frequency = 1}, out, &report));
	assert_int_equal(report.merges, size - 261);
	vocab_learner_free(learner);
	corpus_close(corpus);
}

static void test_learned(void **state)
{
	(void)state;
	static const int64_t memories[] = {0, 1 << 12}; /* in memory, and in rounds over a file */
	struct json_document document;
	const struct json *model = golden_model("prefixed", &document);
	for (size_t i = 0; i < sizeof memories / sizeof *memories; i++) {
		struct vocab vocab;
		learn((int32_t)json_member(model, "vocab")->child_count, memories[i], &vocab);
		check_learned(&vocab, model);
		assert_int_equal(vocab.mask, 4);
		assert_int_equal(template_size(&vocab.pair), 4);
		vocab_release(&vocab);
	}
	json_release(&document);
}

/* The files of a folder are one tokenizer, whichever of them is read. */
static void test_learned_folder(void **state)
{
	(void)state;
	static const char *const names[] = {"learned/tokenizer.json", "learned/vocab.json"};
	static const char text[] = " the  cats<mask> in\n2026 \xC3\xA9";
	struct vocab vocab;
	struct tokenizer *tokenizer;
	struct tokens tokens[2] = {{0}};
	learn(300, 0, &vocab);
	assert_ok(folder_make(test_path("learned")));
	assert_ok(tokenizer_write_folder(&vocab, &(struct tokenizer_settings){0}, 512, test_path("learned")));
	vocab_release(&vocab);
	for (int i = 0; i < 2; i++) {
		open_tokenizer(test_path(names[i]), &vocab, &tokenizer);
		assert_ok(tokenizer_encode(tokenizer, text, strlen(text), &tokens[i]));
		tokenizer_close(tokenizer);
		vocab_release(&vocab);
	}
	assert_int_equal(tokens[0].count, tokens[1].count);
	assert_memory_equal(tokens[0].ids, tokens[1].ids, (size_t)tokens[0].count * sizeof *tokens[0].ids);
	tokens_release(&tokens[0]);
	tokens_release(&tokens[1]);
}

#define VOCAB                                                                                                                    \
	"{\"<s>\": 0, \"<pad>\": 1, \"</s>\": 2, \"<unk>\": 3, \"<mask>\": 4, \"a\": 5, \"b\": 6, \"\xC4\xA0\": 7, \"ab\": 8}"

/* vocab.json and merges.txt make RoBERTa's tokenizer. */
static void test_pair_files(void **state)
{
	(void)state;
	struct vocab vocab;
	struct tokenizer *tokenizer;
	struct tokens tokens = {0};
	struct buffer text = {0};
	static const int32_t expected[] = {8, 4, 7, 8, 5};
	assert_ok(folder_make(test_path("files")));
	assert_ok(file_write(test_path("files/vocab.json"), VOCAB, strlen(VOCAB)));
	assert_ok(file_write(test_path("files/merges.txt"), "#version: 0.2\na b\n", 18));
	open_tokenizer(test_path("files/vocab.json"), &vocab, &tokenizer);
	assert_ok(tokenizer_encode(tokenizer, "ab  <mask> aba", 14, &tokens));
	assert_int_equal(tokens.count, 5);
	assert_memory_equal(tokens.ids, expected, sizeof expected);
	vocab_decode(&vocab, tokens.ids, tokens.count, false, &text);
	assert_string_equal(buffer_string(&text), "ab<mask> aba");
	assert_int_equal(template_size(&vocab.pair), 4);
	assert_int_equal(vocab.mask, 4);
	assert_string_equal(tokenizer_word_prefix(tokenizer), " ");
	buffer_release(&text);
	tokens_release(&tokens);
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
	/* Attributes of the mask that the folder gives hold: here it takes the space after it, not those before it. */
	static const char map[] = "{\"mask_token\": {\"content\": \"<mask>\", \"lstrip\": false, \"rstrip\": true}}";
	static const int32_t given[] = {8, 7, 7, 4, 8, 5};
	assert_ok(file_write(test_path("files/special_tokens_map.json"), map, strlen(map)));
	open_tokenizer(test_path("files/vocab.json"), &vocab, &tokenizer);
	assert_ok(tokenizer_encode(tokenizer, "ab  <mask> aba", 14, &tokens));
	assert_int_equal(tokens.count, 6);
	assert_memory_equal(tokens.ids, given, sizeof given);
	tokens_release(&tokens);
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
	assert_ok(file_write(test_path("files/merges.txt"), "#version: 0.2\n\0\na b\n", 20));
	assert_error(ERR_DATA, "merges.txt': a merge contains a NUL", vocab_read(&vocab, test_path("files/vocab.json")));
}

static void test_refused(void **state)
{
	(void)state;
	static const struct {
		const char *model, *message;
	} rows[] = {
		{"\"merges\": [\"a c\"]", "merge 1, 'a' and 'c': the second is not an entry"},
		{"\"merges\": [\"b a\"]", "merge 1, 'b' and 'a': their union is not an entry"},
		{"\"merges\": [\"ab\"]", "merge 1 is not a pair of entries"},
		{"\"merges\": [[\"a\", 1]]", "merge 1 is not a pair of entries"},
		{"\"merges\": {}", "without \"merges\""},
		{"\"merges\": [], \"dropout\": 0.1", "has a \"dropout\" of \"0.1\""},
		{"\"merges\": [], \"unk_token\": \"x\"", "\"unk_token\", 'x', is not an entry"},
		{"\"merges\": [], \"continuing_subword_prefix\": \"##\"", "has a \"continuing_subword_prefix\" of \"##\""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct vocab vocab;
		char json[1024];
		snprintf(json, sizeof json, "{\"model\": {\"type\": \"BPE\", \"vocab\": " VOCAB ", %s}}", rows[i].model);
		assert_ok(file_write(test_path("refused.json"), json, strlen(json)));
		assert_error(ERR_DATA, rows[i].message, vocab_read(&vocab, test_path("refused.json")));
	}
}

/* A template must name tokens that there are. */
static void test_refused_templates(void **state)
{
	(void)state;
	static const struct {
		const char *processor, *message;
	} rows[] = {
		{"\"RobertaProcessing\", \"sep\": [\"</s>\", 3], \"cls\": [\"<s>\", 0]", "'</s>' with the id 3"},
		{"\"BertProcessing\", \"sep\": [\"</s>\", 2], \"cls\": [\"[CLS]\", 0]", "'[CLS]' with the id 0"},
		{"\"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<x>\", \"type_id\": 0}}], \"pair\": [], "
		 "\"special_tokens\": {\"<x>\": {\"id\": \"<x>\", \"ids\": [9], \"tokens\": [\"<x>\"]}}",
		 "'<x>' with the id 9"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct vocab vocab;
		char json[1024];
		snprintf(json, sizeof json,
			 "{\"post_processor\": {\"type\": %s}, \"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": " VOCAB
			 "}}",
			 rows[i].processor);
		assert_ok(file_write(test_path("refused.json"), json, strlen(json)));
		assert_error(ERR_DATA, rows[i].message, vocab_read(&vocab, test_path("refused.json")));
	}
}

/* A long word takes another way to the same pieces. */
static void test_long_words(void **state)
{
	(void)state;
	enum { PAIRS = 5000 };
	static char text[2 * PAIRS];
	static const char json[] = "{\"model\": {\"type\": \"BPE\", \"vocab\": " VOCAB ", \"merges\": [\"a b\"]}}";
	struct vocab vocab;
	struct tokenizer *tokenizer;
	struct tokens tokens = {0};
	for (int i = 0; i < PAIRS; i++)
		memcpy(text + 2 * (size_t)i, "ab", 2);
	assert_ok(file_write(test_path("long.json"), json, strlen(json)));
	open_tokenizer(test_path("long.json"), &vocab, &tokenizer);
	assert_ok(tokenizer_encode(tokenizer, text, sizeof text - 1, &tokens)); /* of any length, odd ones too */
	assert_int_equal(tokens.count, PAIRS);
	tokens_clear(&tokens);
	assert_ok(tokenizer_encode(tokenizer, text, sizeof text, &tokens));
	assert_int_equal(tokens.count, PAIRS);
	for (int i = 0; i < PAIRS; i++)
		assert_true(tokens.ids[i] == 8 && tokens.begin[i] == 2 * (uint32_t)i && tokens.end[i] == 2 * (uint32_t)i + 2);
	tokens_release(&tokens);
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
}

/* Tokens, each as id:begin:end, of a tokenizer.json; those expected are Hugging Face's. */
static void tokenizes(const char *json, const char *text, const char *expected)
{
	struct vocab vocab;
	struct tokenizer *tokenizer;
	struct tokens tokens = {0};
	struct buffer found = {0};
	assert_ok(file_write(test_path("tokenizer.json"), json, strlen(json)));
	open_tokenizer(test_path("tokenizer.json"), &vocab, &tokenizer);
	assert_ok(tokenizer_encode(tokenizer, text, strlen(text), &tokens));
	for (int64_t i = 0; i < tokens.count; i++)
		buffer_format(&found, "%s%d:%u:%u", i ? " " : "", tokens.ids[i], tokens.begin[i], tokens.end[i]);
	assert_string_equal(buffer_string(&found), expected);
	buffer_release(&found);
	tokens_release(&tokens);
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
}

#define FEW_ENTRIES                                                                                                              \
	"\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"merges\":[],"                                                         \
	"\"vocab\":{\"u\":0,\" \":1,\"a\":2,\"\xE4\xB8\xAD\":3,\"<s>\":4,\"</s>\":5}}}"

static void test_odd_characters(void **state)
{
	(void)state;
	/* Words of Whitespace: superscripts and fractions are none, joiners are. */
	tokenizes("{\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\","
		  "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,\"vocab\":{\"u\":0}}}",
		  "m\u00B2 1\u00BD a\u200Cb x\u200D", "0:0:1 0:1:3 0:4:5 0:5:7 0:8:13 0:14:18");
	/* Spaces that BertNormalizer puts beside an ideograph have its place. */
	tokenizes("{\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":false},\"pre_tokenizer\":null," FEW_ENTRIES,
		  "a\u4E2Da\u4E2D\u4E2D", "2:0:1 1:1:4 3:1:4 1:1:4 2:4:5 1:5:8 3:5:8 1:5:8 1:8:11 3:8:11 1:8:11");
	/* White space is trimmed as a byte's space is. */
	tokenizes("{\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"</"
		  "s>\",5],\"cls\":[\"<s>\",4],\"trim_offsets\":true,"
		  "\"add_prefix_space\":false}," FEW_ENTRIES,
		  " a", "1:1:1 2:1:2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_learned),
		cmocka_unit_test(test_learned_folder),
		cmocka_unit_test(test_decoders),
		cmocka_unit_test(test_decoded_nul),
		cmocka_unit_test(test_pair_files),
		cmocka_unit_test(test_refused_templates),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_long_words),
		cmocka_unit_test(test_odd_characters),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
