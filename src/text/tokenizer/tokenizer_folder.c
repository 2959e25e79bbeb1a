/* The tokenizer's files in a Hugging Face model folder. */
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "text/tokenizer.h"
#include "text/tokenizer/chain.h"
#include "text/tokenizer/pair_files.h"
#include "text/tokenizer/sentencepiece_file.h"
#include "text/tokenizer/token_files.h"

static const char *const special_texts[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

/* Reads the three settings from `object`; two have different names in tokenizer_config.json and tokenizer.json. */
static enum status read_settings(const struct json *object, const char *path, const char *lowercase, const char *split_chinese,
				 struct tokenizer_settings *settings)
{
	const struct json *strip_accents = json_member(object, "strip_accents");

	TRY(json_get_bool(object, path, lowercase, &settings->lowercase));
	TRY(json_get_bool(object, path, split_chinese, &settings->split_chinese));
	/* null, or no such key, means "same as lower-casing". */
	settings->strip_accents = settings->lowercase;
	if (strip_accents && strip_accents->kind != JSON_NULL)
		TRY(json_get_bool(object, path, "strip_accents", &settings->strip_accents));
	return OK;
}

/* The classes of transformers that split as BERT's, without "Fast". PreTrained and TokenizersBackend are those of any
 * tokenizer.json, whose model is checked where it is read. */
static const char *const same_classes[] = {
	"BertTokenizer",
	"PreTrainedTokenizer",
	"TokenizersBackend",
	"DistilBertTokenizer",
	"ElectraTokenizer",
	"MobileBertTokenizer",
	"ConvBertTokenizer",
	"SqueezeBertTokenizer",
	"LayoutLMTokenizer",
	"LxmertTokenizer",
	"RetriBertTokenizer",
	"DPRReaderTokenizer",
	"DPRContextEncoderTokenizer",
	"DPRQuestionEncoderTokenizer",
};

static bool is_same_class(const char *name)
{
	size_t size = strlen(name);
	if (size > 4 && strcmp(name + size - 4, "Fast") == 0)
		size -= 4;
	for (size_t i = 0; i < sizeof same_classes / sizeof *same_classes; i++)
		if (strlen(same_classes[i]) == size && memcmp(same_classes[i], name, size) == 0)
			return true;
	return false;
}

/* Refuses a tokenizer_config.json whose tokenizer splits text in another way than BERT's, such as that of Japanese BERTs, which
 * has a vocabulary of the same form. */
static enum status refuse_other_tokenizers(const struct json *object, const char *path, bool json_decides)
{
	static const struct {
		const char *name, *usual;
	} members[] = {{"tokenizer_class", NULL}, {"word_tokenizer_type", "basic"}, {"subword_tokenizer_type", "wordpiece"}};
	for (size_t i = json_decides; i < sizeof members / sizeof *members; i++) { /* the class means nothing beside it */
		const struct json *member = json_member(object, members[i].name);
		if (!member || member->kind != JSON_STRING)
			continue;
		if (members[i].usual ? strcmp(member->text, members[i].usual) == 0 : is_same_class(member->text))
			continue;
		return error_hinted(
			error_set(ERR_USAGE, "'%s': \"%s\" is \"%.100s\"; bertc has BERT's tokenizer only", path, members[i].name,
				  member->text),
			"texts would be split into other tokens than those the model was trained with; if they are the same, "
			"change that to \"%s\"",
			members[i].usual ? members[i].usual : same_classes[0]);
	}
	return OK;
}

/* `json_decides`: there is a tokenizer.json, which says how texts are split; then this file's class matters only for the case. */
static enum status read_settings_file(const char *path, bool json_decides, struct tokenizer_settings *settings, bool *out_found)
{
	struct json_document document = {0};
	struct tokenizer_settings found = *settings;
	const struct json *normalizer;
	enum status status = OK;

	TRY(json_read(&document, path, TOKENIZER_FILE_LIMIT));
	normalizer = json_member(document.root, "normalizer");
	if (document.root->kind != JSON_OBJECT)
		status = error_set(ERR_DATA, "'%s': not a JSON object", path);
	else
		status = refuse_other_tokenizers(document.root, path, json_decides);
	if (status != OK) {
		/* nothing to read */
	} else if (json_decides && !json_member(document.root, "model") && !token_files_class_decides(document.root)) {
		/* tokenizer.json says it */
	} else if (json_member(document.root, "do_lower_case")) {
		status = read_settings(document.root, path, "do_lower_case", "tokenize_chinese_chars", &found);
		*out_found = true;
	} else if (json_member(normalizer, "lowercase")) {
		status = read_settings(normalizer, path, "lowercase", "handle_chinese_chars", &found);
		*out_found = true;
	} else if (!json_member(document.root, "model")) { /* a tokenizer_config.json that does not say anything about case */
		status = read_settings(document.root, path, "do_lower_case", "tokenize_chinese_chars", &found);
	}
	if (status == OK)
		*settings = found;
	json_release(&document);
	return status;
}

enum status tokenizer_settings_read(const char *vocab_path, struct tokenizer_settings *settings, bool *out_found)
{
	static const char *const names[] = {"tokenizer_config.json", "tokenizer.json"};
	char path[PATH_BYTES];
	bool any = false, json_decides;

	*out_found = false;
	TRY(path_beside(path, vocab_path, names[1]));
	json_decides = file_exists(path) || sentencepiece_file_is(vocab_path) || pair_files_are(vocab_path);
	for (int i = 0; i < 2 && !*out_found; i++) {
		TRY(path_beside(path, vocab_path, names[i]));
		if (!file_exists(path))
			continue;
		any = any || i == 0;
		TRY(read_settings_file(path, json_decides, settings, out_found));
	}
	*out_found = *out_found || any;
	return OK;
}

/* Writes null if it equals the default, which follows the case, as Hugging Face's files do. */
static void put_strip_accents(struct json_writer *json, const struct tokenizer_settings *settings)
{
	if (settings->strip_accents == settings->lowercase)
		json_put_null(json, "strip_accents");
	else
		json_put_bool(json, "strip_accents", settings->strip_accents);
}

/* [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, ...] */
static void put_template(struct json_writer *json, const char *key, const char *const *items, const int *types)
{
	json_open(json, key, '[');
	for (; *items; items++, types++) {
		json_open(json, NULL, '{');
		json_open(json, (*items)[0] == '[' ? "SpecialToken" : "Sequence", '{');
		json_put_string(json, "id", *items);
		json_put_integer(json, "type_id", *types);
		json_close(json);
		json_close(json);
	}
	json_close(json);
}

static void put_post_processor(struct json_writer *json, const struct vocab *vocab)
{
	static const char *const single[] = {"[CLS]", "A", "[SEP]", NULL};
	static const char *const pair[] = {"[CLS]", "A", "[SEP]", "B", "[SEP]", NULL};
	static const int types[] = {0, 0, 0, 1, 1};
	const int32_t ids[] = {vocab->cls, vocab->sep};
	const char *const texts[] = {"[CLS]", "[SEP]"};

	json_open(json, "post_processor", '{');
	json_put_string(json, "type", "TemplateProcessing");
	put_template(json, "single", single, types);
	put_template(json, "pair", pair, types);
	json_open(json, "special_tokens", '{');
	for (int i = 0; i < 2; i++) {
		json_open(json, texts[i], '{');
		json_put_string(json, "id", texts[i]);
		json_open(json, "ids", '[');
		json_put_integer(json, NULL, ids[i]);
		json_close(json);
		json_open(json, "tokens", '[');
		json_put_string(json, NULL, texts[i]);
		json_close(json);
		json_close(json);
	}
	json_close(json);
	json_close(json);
}

static void put_added_token(struct json_writer *json, const struct added_token *token, const char *text)
{
	json_open(json, NULL, '{');
	json_put_integer(json, "id", token->id);
	json_put_string(json, "content", text);
	json_put_bool(json, "single_word", token->single_word);
	json_put_bool(json, "lstrip", token->lstrip);
	json_put_bool(json, "rstrip", token->rstrip);
	json_put_bool(json, "normalized", token->normalized);
	json_put_bool(json, "special", token->special);
	json_close(json);
}

static void put_tokenizer(struct json_writer *json, const struct vocab *vocab, const struct tokenizer_settings *settings)
{
	const int32_t special_ids[] = {vocab->pad, vocab->unk, vocab->cls, vocab->sep, vocab->mask};

	json_open(json, NULL, '{');
	json_put_string(json, "version", "1.0");
	json_put_null(json, "truncation");
	json_put_null(json, "padding");
	json_open(json, "added_tokens", '[');
	for (int i = 0; i < 5; i++)
		put_added_token(json, &(struct added_token){.id = special_ids[i], .special = true}, special_texts[i]);
	for (int32_t i = 0; i < vocab->added_count; i++)
		put_added_token(json, &vocab->added[i], vocab->text[vocab->added[i].id]);
	json_close(json);
	json_open(json, "normalizer", '{');
	json_put_string(json, "type", "BertNormalizer");
	json_put_bool(json, "clean_text", true);
	json_put_bool(json, "handle_chinese_chars", settings->split_chinese);
	put_strip_accents(json, settings);
	json_put_bool(json, "lowercase", settings->lowercase);
	json_close(json);
	json_open(json, "pre_tokenizer", '{');
	json_put_string(json, "type", "BertPreTokenizer");
	json_close(json);
	put_post_processor(json, vocab);
	json_open(json, "decoder", '{');
	json_put_string(json, "type", "WordPiece");
	json_put_string(json, "prefix", "##");
	json_put_bool(json, "cleanup", true);
	json_close(json);
	json_open(json, "model", '{');
	json_put_string(json, "type", "WordPiece");
	json_put_string(json, "unk_token", "[UNK]");
	json_put_string(json, "continuing_subword_prefix", "##");
	json_put_integer(json, "max_input_chars_per_word", settings->max_word_characters);
	json_open(json, "vocab", '{');
	for (int32_t id = 0; id < vocab->wordpiece_count; id++)
		/* Of duplicates, the last one is valid; JSON allows a key only once. */
		if (vocab_find(vocab, vocab->text[id], vocab->size[id]) == id)
			json_put_integer(json, vocab->text[id], id);
	json_close(json);
	json_close(json);
	json_close(json);
}

static void put_config(struct json_writer *json, const struct tokenizer_settings *settings, int64_t max_length)
{
	json_open(json, NULL, '{');
	json_put_string(json, "tokenizer_class", "BertTokenizer");
	json_put_bool(json, "do_lower_case", settings->lowercase);
	put_strip_accents(json, settings);
	json_put_bool(json, "tokenize_chinese_chars", settings->split_chinese);
	json_put_integer(json, "model_max_length", max_length);
	for (int i = 0; i < 5; i++)
		json_put_string(json, special_members[i], special_texts[i]);
	json_close(json);
}

static enum status write_json(struct buffer *text, const char *folder, const char *name)
{
	char path[PATH_BYTES];

	buffer_char(text, '\n');
	TRY(buffer_status(text));
	TRY(path_join(path, folder, name));
	return file_write(path, text->data, text->size);
}

/* ---- Tokenizers that are not made of BERT's parts are written as they were read ---- */

static void put_value(struct json_writer *json, const char *key, const struct json *value)
{
	switch (value->kind) {
	case JSON_NULL: json_put_null(json, key); return;
	case JSON_BOOL: json_put_bool(json, key, value->boolean); return;
	case JSON_NUMBER:
	case JSON_STRING: json_put_again(json, key, value); return;
	case JSON_ARRAY:
	case JSON_OBJECT: break;
	}
	json_open(json, key, value->kind == JSON_ARRAY ? '[' : '{');
	for (const struct json *child = value->first_child; child; child = child->next)
		put_value(json, child->key, child);
	json_close(json);
}

/* tokenizer_config.json with another maximum length; if there was none, with what AutoTokenizer needs. */
static enum status put_kept_config(struct json_writer *json, const struct vocab *vocab, int64_t max_length)
{
	const struct buffer *text = &vocab->chain->config;
	struct json_document document = {0};
	int32_t special[VOCAB_SPECIAL_TOKENS];

	if (text->size > 0)
		TRY(json_parse(&document, "tokenizer_config.json", buffer_string(text), text->size));
	json_open(json, NULL, '{');
	for (const struct json *member = document.root ? document.root->first_child : NULL; member; member = member->next)
		if (strcmp(member->key, "model_max_length") != 0)
			put_value(json, member->key, member);
	json_put_integer(json, "model_max_length", max_length);
	vocab_special_ids(vocab, special);
	if (!json_member(document.root, "tokenizer_class"))
		json_put_string(json, "tokenizer_class",
				vocab->chain->class_name ? vocab->chain->class_name : "PreTrainedTokenizerFast");
	for (int i = 0; i < VOCAB_SPECIAL_TOKENS; i++)
		if (special[i] >= 0 && !json_member(document.root, special_members[i]))
			json_put_string(json, special_members[i], vocab->text[special[i]]);
	json_close(json);
	json_release(&document);
	return OK;
}

/* Readers that do not have tokenizer.json need the two files of a byte-level BPE. */
static enum status write_pair_files(const struct chain *chain, const char *folder)
{
	struct json_document document;
	if (!chain->bytes || chain->json_name)
		return OK;
	TRY(json_parse(&document, "tokenizer.json", buffer_string(&chain->json), chain->json.size));
	enum status status = pair_files_write(json_member(document.root, "model"), folder);
	json_release(&document);
	return status;
}

static enum status write_kept(const struct vocab *vocab, int64_t max_length, const char *folder)
{
	const struct chain *chain = vocab->chain;
	struct buffer text = {0};
	struct json_writer json = {.out = &text, .indent = 2};
	char path[PATH_BYTES];
	enum status status;

	TRY_GOTO(path_join(path, folder, chain->json_name ? chain->json_name : "tokenizer.json"), out);
	TRY_GOTO(file_write(path, chain->json.data, chain->json.size), out);
	TRY_GOTO(write_pair_files(chain, folder), out);
	TRY_GOTO(put_kept_config(&json, vocab, max_length), out);
	TRY_GOTO(write_json(&text, folder, "tokenizer_config.json"), out);
	TRY_GOTO(path_join(path, folder, "special_tokens_map.json"), out);
	if (chain->special_tokens.size > 0)
		TRY_GOTO(file_write(path, chain->special_tokens.data, chain->special_tokens.size), out);
out:
	buffer_release(&text);
	return status;
}

enum status tokenizer_write_folder(const struct vocab *vocab, const struct tokenizer_settings *settings, int64_t max_length,
				   const char *folder)
{
	struct buffer text = {0};
	struct json_writer json = {.out = &text, .indent = 2};
	char path[PATH_BYTES];
	enum status status;

	if (vocab->chain)
		return write_kept(vocab, max_length, folder);
	TRY_GOTO(path_join(path, folder, "vocab.txt"), out);
	TRY_GOTO(vocab_write(vocab, path), out);
	put_tokenizer(&json, vocab, settings);
	TRY_GOTO(write_json(&text, folder, "tokenizer.json"), out);
	buffer_clear(&text);
	put_config(&json, settings, max_length);
	TRY_GOTO(write_json(&text, folder, "tokenizer_config.json"), out);
	buffer_clear(&text);
	json_open(&json, NULL, '{');
	for (int i = 0; i < 5; i++)
		json_put_string(&json, special_members[i], special_texts[i]);
	json_close(&json);
	TRY_GOTO(write_json(&text, folder, "special_tokens_map.json"), out);
out:
	buffer_release(&text);
	return status;
}
