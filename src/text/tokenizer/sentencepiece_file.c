/* Describes sentencepiece's file as a tokenizer.json, of which the vocabulary is read, and puts sentencepiece's chain in its
 * place. */
#include "text/tokenizer/sentencepiece_file.h"

#include <stdio.h>
#include <string.h>
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "text/tokenizer/chain.h"
#include "text/tokenizer/sentencepiece.h"

#define CONFIG_LIMIT ((size_t)16 << 20)

bool sentencepiece_file_is(const char *path)
{
	size_t size = strlen(path);
	return size > 6 && strcmp(path + size - 6, ".model") == 0;
}

/* ---- Whose numbering ---- */

static const struct {
	const char *name; /* of a tokenizer's class without "Fast", or a model's type */
	enum sentencepiece_ids ids;
} models[] = {
	{"XLMRobertaTokenizer", SENTENCEPIECE_XLM_R}, {"xlm-roberta", SENTENCEPIECE_XLM_R},
	{"xlm-roberta-xl", SENTENCEPIECE_XLM_R},      {"CamembertTokenizer", SENTENCEPIECE_CAMEMBERT},
	{"camembert", SENTENCEPIECE_CAMEMBERT},
};

/* Finds out by a member of a file beside `path`; *out stays as it is if there is no such file or member. */
static enum status ids_by(const char *path, const char *file, const char *member, enum sentencepiece_ids *out)
{
	struct json_document document = {0};
	char beside[PATH_BYTES];
	TRY(path_beside(beside, path, file));
	if (!file_exists(beside))
		return OK;
	TRY(json_read(&document, beside, CONFIG_LIMIT));
	const struct json *value = json_member(document.root, member);
	size_t size = value && value->kind == JSON_STRING ? value->text_size : 0;
	if (size > 4 && strcmp(value->text + size - 4, "Fast") == 0)
		size -= 4;
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		if (strlen(models[i].name) == size && memcmp(models[i].name, value->text, size) == 0)
			*out = models[i].ids;
	json_release(&document);
	return OK;
}

static enum status find_ids(const char *path, enum sentencepiece_ids *out)
{
	*out = SENTENCEPIECE_OWN;
	TRY(ids_by(path, "tokenizer_config.json", "tokenizer_class", out));
	if (*out == SENTENCEPIECE_OWN)
		TRY(ids_by(path, "config.json", "model_type", out));
	if (*out != SENTENCEPIECE_OWN)
		return OK;
	return error_hinted(error_set(ERR_DATA,
				      "'%s': neither \"tokenizer_class\" nor \"model_type\" beside it is XLM-RoBERTa's or "
				      "CamemBERT's, so that the ids of its pieces are not known",
				      path),
			    "save the folder's tokenizer again with transformers' AutoTokenizer, which writes a tokenizer.json");
}

/* ---- As a tokenizer.json ---- */

static const char *const special[] = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};
enum { SPECIAL_TOKENS = sizeof special / sizeof *special };

static int32_t find_piece(const struct sentencepiece_model *model, const char *text)
{
	for (int32_t id = 0; id < model->count; id++)
		if (model->pieces[id].size == strlen(text) && memcmp(model->pieces[id].text, text, strlen(text)) == 0)
			return id;
	return -1;
}

static void put_token(struct json_writer *json, const struct sentencepiece_model *model, const char *text)
{
	json_open(json, NULL, '{');
	json_put_integer(json, "id", find_piece(model, text));
	json_put_string(json, "content", text);
	json_put_bool(json, "lstrip", strcmp(text, "<mask>") == 0); /* it takes the space before it */
	json_put_bool(json, "normalized", false);
	json_put_bool(json, "special", true);
	json_close(json);
}

static void put_pair(struct json_writer *json, const char *key, const struct sentencepiece_model *model, const char *text)
{
	json_open(json, key, '[');
	json_put_string(json, NULL, text);
	json_put_integer(json, NULL, find_piece(model, text));
	json_close(json);
}

/* Metaspace's, by its parts if bytes are decoded among them. */
static void put_decoder(struct json_writer *json, bool byte_fallback)
{
	json_open(json, "decoder", '{');
	json_put_string(json, "type", byte_fallback ? "Sequence" : "Metaspace");
	json_open(json, "decoders", '[');
	json_open(json, NULL, '{');
	json_put_string(json, "type", "Replace");
	json_open(json, "pattern", '{');
	json_put_string(json, "String", "\xE2\x96\x81");
	json_close(json);
	json_put_string(json, "content", " ");
	json_close(json);
	static const char *const others[] = {"ByteFallback", "Fuse", "Strip"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		json_open(json, NULL, '{');
		json_put_string(json, "type", others[i]);
		json_put_string(json, "content", " ");
		json_put_integer(json, "start", 1);
		json_close(json);
	}
	json_close(json);
	json_close(json);
}

static enum status put_tokenizer(struct buffer *out, const struct sentencepiece_model *model)
{
	struct json_writer json = {.out = out};
	json_open(&json, NULL, '{');
	json_open(&json, "added_tokens", '[');
	for (int i = 0; i < SPECIAL_TOKENS; i++)
		put_token(&json, model, special[i]);
	json_close(&json);
	json_put_null(&json, "normalizer");
	json_put_null(&json, "pre_tokenizer");
	json_open(&json, "post_processor", '{');
	json_put_string(&json, "type", "RobertaProcessing");
	put_pair(&json, "sep", model, "</s>");
	put_pair(&json, "cls", model, "<s>");
	json_put_bool(&json, "trim_offsets", false);
	json_close(&json);
	put_decoder(&json, model->byte_fallback);
	json_open(&json, "model", '{');
	json_put_string(&json, "type", "Unigram");
	json_put_integer(&json, "unk_id", model->unk);
	json_open(&json, "vocab", '[');
	for (int32_t id = 0; id < model->count; id++) {
		json_open(&json, NULL, '[');
		json_put_text(&json, NULL, model->pieces[id].text, model->pieces[id].size);
		json_put_double(&json, NULL, model->pieces[id].score);
		json_close(&json);
	}
	json_close(&json);
	json_close(&json);
	json_close(&json);
	return buffer_status(out);
}

enum status sentencepiece_file_read(const char *path, struct buffer *out)
{
	struct sentencepiece_model model;
	enum sentencepiece_ids ids;
	TRY(find_ids(path, &ids));
	TRY(sentencepiece_read(&model, path, ids));
	enum status status = put_tokenizer(out, &model);
	sentencepiece_release(&model);
	return status;
}

enum status sentencepiece_file_take(struct vocab *vocab, const char *path)
{
	struct chain *chain = vocab->chain, taken;
	struct sentencepiece_model model;
	enum sentencepiece_ids ids;
	TRY(find_ids(path, &ids));
	TRY(sentencepiece_read(&model, path, ids));
	enum status status = sentencepiece_chain(&taken, &model, path);
	if (status == OK) {
		vocab->hash = hash64_combine(vocab->hash, hash64(model.file.data, model.file.size));
		taken.config = chain->config;
		taken.special_tokens = chain->special_tokens;
		taken.json = model.file;
		taken.json_name = "sentencepiece.bpe.model";
		taken.class_name = ids == SENTENCEPIECE_XLM_R ? "XLMRobertaTokenizer" : "CamembertTokenizer";
		chain->config = chain->special_tokens = model.file = (struct buffer){0};
		chain_release(chain);
		*chain = taken;
	}
	sentencepiece_release(&model);
	return status;
}
