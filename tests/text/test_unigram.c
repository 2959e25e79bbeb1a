/* Unigram tokenizers: ids and places beside those of Hugging Face's tokenizers, and ids beside sentencepiece's
 * (tests/golden/unigram.json); what is refused. */
#include <math.h>
#include "base/json.h"
#include "test.h"
#include "text/tokenizer/chain.h"
#include "text/tokenizer/sentencepiece.h"
#include "text/tokenizer/unigram.h"
#include "text/tokenizer.h"
#include "text/vocab.h"
#include "text/utf8.h"

/* The tokens of a text. */
struct encoding {
	struct chain_run run;
	struct pieces pieces;
	struct {
		int32_t id;
		uint32_t begin, end;
	} tokens[256];
	int64_t count;
};

static enum status take_word(void *context, const struct word *word)
{
	struct encoding *e = context;
	const struct chain *chain = e->run.chain;
	e->pieces.count = 0;
	TRY(chain->model->cut(chain->model_own, word->text, word->size, &e->pieces));
	for (int64_t i = 0; i < e->pieces.count; i++) {
		const struct piece *piece = &e->pieces.items[i];
		uint32_t end;
		assert_true(e->count < 256);
		e->tokens[e->count].id = piece->id;
		word_place(word, piece->begin, &e->tokens[e->count].begin, &end);
		word_place(word, piece->end - 1, &end, &e->tokens[e->count].end);
		e->count++;
	}
	return OK;
}

static void encode(struct encoding *e, const struct chain *chain, const struct json *text)
{
	e->run.chain = chain;
	e->run.word = take_word;
	e->run.context = e;
	e->count = 0;
	if (text->text_size > 0)
		assert_ok(chain_run_text(&e->run, text->text, 0, text->text_size));
}

static void encoding_release(struct encoding *e)
{
	chain_run_release(&e->run);
	pieces_release(&e->pieces);
}

static struct json_document golden;

static int read_golden(void **state)
{
	(void)state;
	return json_read(&golden, "tests/golden/unigram.json", 1 << 24) == OK ? 0 : -1;
}

static int release_golden(void **state)
{
	(void)state;
	json_release(&golden);
	return 0;
}

static void equals_hugging_face(void **state)
{
	(void)state;
	struct encoding e = {.count = 0};
	for (const struct json *t = json_member(golden.root, "tokenizers")->first_child; t; t = t->next) {
		const struct json *text = json_member(golden.root, "texts")->first_child, *json = json_member(t, "json");
		struct json_document document;
		struct vocab vocab = {.count = 0};
		struct chain chain;
		assert_ok(json_parse(&document, "tokenizer.json", json->text, json->text_size));
		assert_ok(chain_read(&chain, &vocab, document.root, "tokenizer.json"));
		json_release(&document); /* a chain needs it no longer */
		for (const struct json *result = json_member(t, "results")->first_child; result; result = result->next) {
			encode(&e, &chain, text);
			int64_t i = 0;
			for (const struct json *token = result->first_child; token; token = token->next, i++) {
				const struct json *id = token->first_child;
				if (i >= e.count || id->integer != e.tokens[i].id || id->next->integer != e.tokens[i].begin ||
				    id->next->next->integer != e.tokens[i].end)
					fail_msg("'%s': token %d of '%s'", json_member(t, "name")->text, (int)i, text->text);
			}
			assert_int_equal(e.count, i);
			text = text->next;
		}
		chain_release(&chain);
	}
	encoding_release(&e);
}

/* The bytes that the code points of a string are. */
static void bytes_of(const struct json *string, struct buffer *out)
{
	buffer_clear(out);
	for (size_t at = 0; at < string->text_size;) {
		uint32_t code_point;
		at += utf8_decode(string->text + at, string->text_size - at, &code_point);
		buffer_char(out, (char)code_point);
	}
}

static void equals_sentencepiece(void **state)
{
	(void)state;
	struct encoding e = {.count = 0};
	struct buffer bytes = {0};
	for (const struct json *t = json_member(golden.root, "sentencepiece")->first_child; t; t = t->next) {
		const struct json *text = json_member(golden.root, "texts")->first_child;
		struct sentencepiece_model model;
		struct chain chain;
		bytes_of(json_member(t, "model"), &bytes);
		assert_ok(sentencepiece_parse(&model, "spiece.model", SENTENCEPIECE_OWN, bytes.data, bytes.size));
		assert_ok(sentencepiece_chain(&chain, &model, "spiece.model"));
		sentencepiece_release(&model);
		for (const struct json *result = json_member(t, "results")->first_child; result; result = result->next) {
			encode(&e, &chain, text);
			int64_t i = 0;
			for (const struct json *id = result->first_child; id; id = id->next, i++)
				if (i >= e.count || id->integer != e.tokens[i].id)
					fail_msg("'%s': token %d of '%s'", json_member(t, "name")->text, (int)i, text->text);
			assert_int_equal(e.count, i);
			text = text->next;
		}
		chain_release(&chain);
	}
	encoding_release(&e);
	buffer_release(&bytes);
}

static void pieces_are_renumbered(void **state)
{
	(void)state;
	static const struct {
		enum sentencepiece_ids ids;
		int32_t first, from, added; /* the file's pieces from `from` on have the ids from `first` on */
		const char *begin;
	} cases[] = {{SENTENCEPIECE_XLM_R, 4, 3, 2, "<s>"}, {SENTENCEPIECE_CAMEMBERT, 5, 1, 5, "<s>NOTUSED"}};
	struct sentencepiece_model own, model;
	struct buffer bytes = {0};
	bytes_of(json_member(json_member(golden.root, "sentencepiece")->first_child, "model"), &bytes);
	assert_ok(sentencepiece_parse(&own, "m", SENTENCEPIECE_OWN, bytes.data, bytes.size));
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		assert_ok(sentencepiece_parse(&model, "m", cases[c].ids, bytes.data, bytes.size));
		assert_int_equal(model.count, own.count + cases[c].added);
		assert_int_equal(model.unk, 3);
		assert_string_equal(model.pieces[0].text, cases[c].begin);
		assert_string_equal(model.pieces[model.count - 1].text, "<mask>");
		for (int32_t i = cases[c].from; i < own.count; i++) {
			const struct unigram_piece *a = &own.pieces[i], *b = &model.pieces[i - cases[c].from + cases[c].first];
			assert_int_equal(a->size, b->size);
			assert_memory_equal(a->text, b->text, a->size);
		}
		sentencepiece_release(&model);
	}
	sentencepiece_release(&own);
	buffer_release(&bytes);
}

/* Reads the vocabulary of a folder, and checks the tokens of a text: ids of the file's own pieces, moved by `shift`. */
static void check_folder(const char *path, const struct json *text, const struct json *ids, int32_t shift)
{
	const struct tokenizer_settings settings = tokenizer_defaults(true);
	struct tokenizer *tokenizer;
	struct tokens tokens = {0};
	struct vocab vocab;
	assert_ok(vocab_read(&vocab, path));
	assert_string_equal(vocab.text[vocab.mask], "<mask>");
	assert_string_equal(vocab.text[vocab.cls], "<s>");
	assert_int_equal(vocab.pair.between, 2);
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	assert_ok(tokenizer_encode(tokenizer, text->text, text->text_size, &tokens));
	assert_int_equal(tokens.count, ids->child_count);
	int64_t i = 0;
	for (const struct json *id = ids->first_child; id; id = id->next)
		assert_int_equal(tokens.ids[i++], id->integer > 0 ? id->integer + shift : vocab.unk);
	assert_ok(tokenizer_write_folder(&vocab, &settings, 128, test_folder));
	tokens_release(&tokens);
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
}

static void folders_with_the_file_alone(void **state)
{
	(void)state;
	static const struct {
		const char *file, *text;
		int32_t shift;
	} cases[] = {{"config.json", "{\"model_type\":\"xlm-roberta\"}", 1},
		     {"tokenizer_config.json", "{\"tokenizer_class\":\"CamembertTokenizer\"}", 4}};
	const struct json *own = json_member(golden.root, "sentencepiece")->first_child;
	const struct json *text = json_member(golden.root, "texts")->first_child, *ids = json_member(own, "results")->first_child;
	struct buffer bytes = {0};
	struct vocab vocab;
	for (int i = 0; i < 7; i++) {
		text = text->next;
		ids = ids->next;
	}
	bytes_of(json_member(own, "model"), &bytes);
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		assert_int_equal(test_folder_make(NULL), 0);
		const char *path = test_path("spiece.model"), *other = test_path(cases[c].file);
		assert_ok(file_write(path, bytes.data, bytes.size));
		assert_error(ERR_DATA, "ids of its pieces are not known", vocab_read(&vocab, path));
		assert_ok(file_write(other, cases[c].text, strlen(cases[c].text)));
		check_folder(path, text, ids, cases[c].shift);
		/* What was written is read again, by its class alone. */
		if (c == 0)
			assert_int_equal(remove(other), 0);
		check_folder(test_path("sentencepiece.bpe.model"), text, ids, cases[c].shift);
		test_folder_drop(NULL);
	}
	buffer_release(&bytes);
}

static void bad_model_files_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *bytes, *message;
		size_t size;
		enum sentencepiece_ids ids;
	} cases[] = {
		{"\x0A", "not a well-formed sentencepiece model", 1, SENTENCEPIECE_OWN},
		{"\x0A\x03\x0A\x01", "not a well-formed sentencepiece model", 4, SENTENCEPIECE_OWN},
		{"\x0A\x02\x18\x02", "not a well-formed sentencepiece model", 4, SENTENCEPIECE_OWN}, /* a piece without text */
		{"\x12\x02\x18\x02", "of the type BPE; bertc has Unigram only", 4, SENTENCEPIECE_OWN},
		{"", "0 pieces for unknown characters", 0, SENTENCEPIECE_OWN},
		{"\x0A\x05\x0A\x01u\x18\x02", "must begin with <unk> <s> </s>", 7, SENTENCEPIECE_XLM_R},
	};
	struct sentencepiece_model model;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_error(ERR_DATA, cases[i].message,
			     sentencepiece_parse(&model, "m", cases[i].ids, cases[i].bytes, cases[i].size));
}

static void bad_models_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *json, *message;
	} cases[] = {
		{"{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[]}", "the vocabulary is empty"},
		{"{\"type\":\"Unigram\",\"unk_id\":1,\"vocab\":[[\"a\",0]]}", "no unknown token"},
		{"{\"type\":\"Unigram\",\"unk_id\":null,\"vocab\":[[\"a\",0]]}", "no unknown token"},
		{"{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",1e300]]}", "the score of piece 0"},
		{"{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\"]]}", "entry 0 of \"vocab\""},
		{"{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":{\"a\":0}}", "without an array \"vocab\""},
	};
	struct unigram *unigram;
	struct unigram_piece piece = {"a", 1, NAN, UNIGRAM_NORMAL};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct json_document document;
		void *model = NULL;
		assert_ok(json_parse(&document, "j", cases[i].json, strlen(cases[i].json)));
		assert_error(ERR_DATA, cases[i].message,
			     unigram_model.open(&model, &(struct model_source){.part = {document.root, "j", "model"}}));
		json_release(&document);
	}
	assert_error(ERR_DATA, "is not a number", unigram_new(&unigram, "j", &piece, 1, &(struct unigram_settings){.unk = 0}));
	piece = (struct unigram_piece){"\xFF", 1, 0, UNIGRAM_NORMAL};
	assert_error(ERR_DATA, "is not UTF-8", unigram_new(&unigram, "j", &piece, 1, &(struct unigram_settings){.unk = 0}));
}

/* "b" + "aa" + "a" and "b" + "a" + "aa" have the same sum but for the last bit of how tokenizers reads these numbers. */
static void scores_are_read_as_there(void **state)
{
	(void)state;
	static const char json[] = "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"b\",-11.412572860717773],"
				   "[\"a\",-8.750247955322266],[\"aa\",-10.389190673828125]]}";
	struct json_document document;
	struct pieces pieces = {.count = 0};
	void *model;
	assert_ok(json_parse(&document, "j", json, strlen(json)));
	assert_ok(unigram_model.open(&model, &(struct model_source){.part = {document.root, "j", "model"}}));
	assert_ok(unigram_model.cut(model, "baaa", 4, &pieces));
	assert_int_equal(pieces.count, 3);
	assert_int_equal(pieces.items[1].id, 3);
	pieces_release(&pieces);
	unigram_model.close(model);
	json_release(&document);
}

static void bad_stages_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *json, *message;
	} cases[] = {
		{"{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\"}}", "not well-formed"},
		{"{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"A\"}}", "is not base64"},
		{"{\"normalizer\":{\"type\":\"Precompiled\"}}", "without \"precompiled_charsmap\""},
		{"{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a+\"},\"content\":\"\"}}",
		 "\"Regex\" of \"a+\""},
		{"{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"\"}}", "\"pattern\""},
		{"{\"normalizer\":{\"type\":\"Nmt\"}}", "of the type \"Nmt\", which bertc does not have"},
		{"{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"ab\"}}", "\"replacement\" of \"ab\""},
		{"{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"prepend_scheme\":\"last\"}}", "\"prepend_scheme\" of \"last\""},
		{"{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"add_prefix_space\":false,\"prepend_scheme\":\"always\"}}",
		 "\"add_prefix_space\" of false"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct json_document document;
		struct vocab vocab = {.count = 0};
		struct chain chain;
		assert_ok(json_parse(&document, "j", cases[i].json, strlen(cases[i].json)));
		assert_error(ERR_DATA, cases[i].message, chain_read(&chain, &vocab, document.root, "j"));
		json_release(&document);
	}
}

/* What is composed across the characters that a form leaves alone; the results are Python's. */
static void normal_forms(void **state)
{
	(void)state;
	static const char text[] = "caf e\xCC\x81\xCC\xA3 \xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8 \xE0\xA7\x87\xE0\xA6\xBE "
				   "\xEA\xB0\x80\xE1\x86\xA8 \xEF\xAC\x81 a";
	static const struct {
		const char *type, *text, *result;
	} cases[] = {
		{"NFC", text, "caf \xE1\xBA\xB9\xCC\x81 \xEA\xB0\x81 \xE0\xA7\x8B \xEA\xB0\x81 \xEF\xAC\x81 a"},
		{"NFD", text,
		 "caf e\xCC\xA3\xCC\x81 \xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8 \xE0\xA7\x87\xE0\xA6\xBE "
		 "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8 \xEF\xAC\x81 a"},
		{"NFKC", text, "caf \xE1\xBA\xB9\xCC\x81 \xEA\xB0\x81 \xE0\xA7\x8B \xEA\xB0\x81 fi a"},
		{"NFKD", text,
		 "caf e\xCC\xA3\xCC\x81 \xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8 \xE0\xA7\x87\xE0\xA6\xBE "
		 "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8 fi a"},
		{"Lowercase",
		 "a A\xC4\xB0"
		 "B \xC3\x89",
		 "a ai\xCC\x87"
		 "b \xC3\xA9"},
		{"Lowercase", "ab", "ab"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct json_document document;
		struct vocab vocab = {.count = 0};
		struct buffer out = {0};
		struct chain chain;
		char json[128];
		snprintf(json, sizeof json,
			 "{\"normalizer\": {\"type\": \"%s\"}, \"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": "
			 "[[\"u\", 0]]}}",
			 cases[i].type);
		assert_ok(json_parse(&document, "j", json, strlen(json)));
		assert_ok(chain_read(&chain, &vocab, document.root, "j"));
		assert_ok(chain_normalize(&chain, cases[i].text, strlen(cases[i].text), &out));
		assert_string_equal(buffer_string(&out), cases[i].result);
		chain_release(&chain);
		buffer_release(&out);
		json_release(&document);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_hugging_face),
		cmocka_unit_test(equals_sentencepiece),
		cmocka_unit_test(pieces_are_renumbered),
		cmocka_unit_test(bad_model_files_are_refused),
		cmocka_unit_test(bad_models_are_refused),
		cmocka_unit_test(bad_stages_are_refused),
		cmocka_unit_test(folders_with_the_file_alone),
		cmocka_unit_test(scores_are_read_as_there),
		cmocka_unit_test(normal_forms),
	};
	return cmocka_run_group_tests(tests, read_golden, release_golden);
}
