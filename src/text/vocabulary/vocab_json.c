/* Reads the vocabulary in a tokenizer.json, and compares one with the vocab.txt beside it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "text/tokenizer/chain.h"
#include "text/tokenizer/decoder.h"
#include "text/tokenizer/pair_files.h"
#include "text/tokenizer/sentencepiece_file.h"
#include "text/tokenizer/post_processor.h"
#include "text/tokenizer/token_files.h"
#include "text/unicode.h"
#include "text/vocab_json.h"

#define FILE_LIMIT ((size_t)256 << 20)

/* Entries by id; the capacity is the number of entries in the file, so that larger ids must leave a gap. */
struct entries {
	const char *path;
	const char **text;
	int64_t count, capacity;
	int64_t model_count; /* one more than the largest id of the WordPiece model */
};

static enum status put_entry(struct entries *entries, const char *text, size_t size, int64_t id)
{
	if (strlen(text) != size || id < 0 || id >= entries->capacity)
		return error_set(ERR_DATA, "'%s': entry '%.200s' has the id %lld, which does not follow the others",
				 entries->path, text, (long long)id);
	if (entries->text[id] && strcmp(entries->text[id], text) != 0)
		return error_set(ERR_DATA, "'%s': entries '%.200s' and '%.200s' have the same id %lld", entries->path,
				 entries->text[id], text, (long long)id);
	entries->text[id] = text;
	entries->count = id + 1 > entries->count ? id + 1 : entries->count;
	return OK;
}

/* Entries are the members of an object or, of a Unigram model, pairs of an entry and its score. */
static enum status put_model(struct entries *entries, const struct json *vocab)
{
	int64_t index = 0;
	for (const struct json *entry = vocab->first_child; entry; entry = entry->next, index++) {
		const struct json *text = entry->first_child;
		if (vocab->kind == JSON_ARRAY) {
			if (!text || text->kind != JSON_STRING)
				return error_set(ERR_DATA, "'%s': entry %lld is not text and score", entries->path,
						 (long long)index);
			TRY(put_entry(entries, text->text, text->text_size, index));
			continue;
		}
		if (entry->kind != JSON_NUMBER || !entry->is_integer)
			return error_set(ERR_DATA, "'%s': the id of '%.200s' is not a number", entries->path, entry->key);
		TRY(put_entry(entries, entry->key, strlen(entry->key), entry->integer));
	}
	return OK;
}

/* The id and text of an added token; a text with a NUL in it is an error. */
static enum status read_added(const struct json *token, const char *path, const struct json **out_id,
			      const struct json **out_content)
{
	const struct json *id = json_member(token, "id"), *content = json_member(token, "content");
	if (!id || !id->is_integer || id->integer < 0 || !content || content->kind != JSON_STRING)
		return error_set(ERR_DATA, "'%s': an added token without id and content", path);
	if (strlen(content->text) != content->text_size)
		return error_set(ERR_DATA, "'%s': an added token contains a NUL", path);
	*out_id = id;
	*out_content = content;
	return OK;
}

static enum status put_added(struct entries *entries, const struct json *added)
{
	const struct json *id = NULL, *content = NULL;
	for (const struct json *token = added ? added->first_child : NULL; token; token = token->next) {
		TRY(read_added(token, entries->path, &id, &content));
		TRY(put_entry(entries, content->text, content->text_size, id->integer));
	}
	return OK;
}

static enum status find_model(const struct json *root, const char *path, const struct json **out_vocab)
{
	const struct json *model = json_member(root, "model"), *vocab = json_member(model, "vocab");
	if (!vocab || (vocab->kind != JSON_OBJECT && vocab->kind != JSON_ARRAY))
		return error_set(ERR_DATA, "'%s': no model with a vocabulary", path);
	*out_vocab = vocab;
	return OK;
}

static enum status collect(struct entries *entries, const struct json *root)
{
	const struct json *vocab = NULL, *added = json_member(root, "added_tokens");
	TRY(find_model(root, entries->path, &vocab));
	entries->capacity = vocab->child_count + (added ? added->child_count : 0);
	TRY(memory_new(&entries->text, entries->capacity, sizeof *entries->text, "entries of a vocabulary"));
	TRY(put_model(entries, vocab));
	entries->model_count = entries->count;
	TRY(put_added(entries, added));
	for (int64_t i = 0; i < entries->count; i++)
		if (!entries->text[i])
			return error_set(ERR_DATA, "'%s': no entry has the id %lld", entries->path, (long long)i);
	return OK;
}

/* ---- How texts become entries ---- */

/* The member is absent or has this value. */
static bool is_usual(const struct json *object, const char *name, const char *usual)
{
	const struct json *member = json_member(object, name);
	if (!member)
		return true;
	return (member->kind == JSON_STRING || member->kind == JSON_NUMBER) && strcmp(member->text, usual) == 0;
}

static bool has_usual_type(const struct json *root, const char *role, const char *usual)
{
	const struct json *part = json_member(root, role);
	return part && part->kind == JSON_OBJECT && is_usual(part, "type", usual);
}

/* Without a type, tokenizers tells models apart by their members: only WordPiece has this one. */
static bool is_wordpiece(const struct json *model)
{
	return json_member(model, json_member(model, "type") ? "type" : "max_input_chars_per_word") &&
	       is_usual(model, "type", "WordPiece");
}

static bool has_usual_template(const struct vocab *vocab)
{
	struct vocab usual = *vocab;
	post_processor_usual(&usual);
	return memcmp(&usual.single, &vocab->single, sizeof usual.single) == 0 &&
	       memcmp(&usual.pair, &vocab->pair, sizeof usual.pair) == 0;
}

/* Whether everything is as BERT has it, so that texts can take the shorter way. */
static bool is_bert(const struct vocab *vocab, const struct json *root)
{
	static const char *const names[VOCAB_SPECIAL_TOKENS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
	const struct json *model = json_member(root, "model"),
			  *clean = json_member(json_member(root, "normalizer"), "clean_text");
	int32_t special[VOCAB_SPECIAL_TOKENS];
	vocab_special_ids(vocab, special);
	for (int i = 0; i < VOCAB_SPECIAL_TOKENS; i++)
		if (special[i] < 0 || strcmp(vocab->text[special[i]], names[i]) != 0)
			return false;
	for (int32_t i = 0; i < vocab->added_count; i++) {
		const struct added_token *token = &vocab->added[i];
		if (vocab_is_special(vocab, token->id) &&
		    (token->lstrip || token->rstrip || token->single_word || token->normalized))
			return false;
	}
	return is_wordpiece(model) && is_usual(model, "unk_token", "[UNK]") &&
	       is_usual(model, "continuing_subword_prefix", "##") && is_usual(model, "max_input_chars_per_word", "100") &&
	       has_usual_type(root, "normalizer", "BertNormalizer") && (!clean || clean->boolean) &&
	       has_usual_type(root, "pre_tokenizer", "BertPreTokenizer") && has_usual_template(vocab);
}

/* [PAD] and the like are not in the list of a vocabulary of BERT's. */
static void unlist_special(struct vocab *vocab)
{
	int32_t kept = 0;
	for (int32_t i = 0; i < vocab->added_count; i++)
		if (!vocab_is_special(vocab, vocab->added[i].id))
			vocab->added[kept++] = vocab->added[i];
	vocab->added_count = kept;
}

static uint64_t hash_value(const struct json *value)
{
	uint64_t hash = hash64_combine(value->kind, value->boolean);
	if (value->kind == JSON_STRING || value->kind == JSON_NUMBER)
		hash = hash64_combine(hash, hash64(value->text, value->text_size));
	for (const struct json *child = value->first_child; child; child = child->next) {
		if (child->key && strcmp(child->key, "vocab") == 0)
			continue;
		if (child->key)
			hash = hash64_combine(hash, hash64(child->key, strlen(child->key)));
		hash = hash64_combine(hash, hash_value(child));
	}
	return hash;
}

/* Other merges or words make other tokens of the same text, although the entries are the same. */
static void add_to_hash(struct vocab *vocab, const struct json *root)
{
	static const char *const parts[] = {"normalizer", "pre_tokenizer", "model"};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		const struct json *part = json_member(root, parts[i]);
		vocab->hash = hash64_combine(vocab->hash, part ? hash_value(part) : 0);
	}
}

/* Which entries continue a word: those without the prefix of WordPiece, or those without the mark of a space. */
static void mark_continuations(struct vocab *vocab)
{
	const char *mark = vocab->chain->bytes ? "\xC4\xA0" : "\xE2\x96\x81";
	bool is_wordpiece = vocab->prefix[0];
	const char *text = is_wordpiece ? vocab->prefix : mark;
	for (int32_t i = 0; i < vocab->count; i++)
		vocab->is_continuation[i] = (strncmp(vocab->text[i], text, strlen(text)) == 0) == is_wordpiece;
	for (int32_t i = 0; i < vocab->added_count; i++)
		vocab->is_continuation[vocab->added[i].id] = false;
}

static enum status set_prefix(struct vocab *vocab, const struct json *root, const char *path)
{
	const struct json *model = json_member(root, "model");
	const char *prefix = is_wordpiece(model) ? "##" : "";
	if (prefix[0])
		TRY(json_get_string(model, path, "continuing_subword_prefix", &prefix));
	if (strlen(prefix) >= VOCAB_PREFIX_BYTES)
		return error_set(ERR_DATA, "'%s': the \"continuing_subword_prefix\" '%.100s' is too long", path, prefix);
	snprintf(vocab->prefix, sizeof vocab->prefix, "%s", prefix);
	return OK;
}

/* White space, or the character that stands for a space as a byte. */
static bool is_trimmed(uint32_t c)
{
	return c == 0x120 || unicode_is_space(c);
}

/* The spaces at both ends of each entry. */
static enum status count_spaces(struct vocab *vocab)
{
	struct offset_trimming *trimming = &vocab->chain->trimming;
	if (!trimming->is_on)
		return OK;
	TRY(memory_new(&trimming->spaces, 2 * (int64_t)vocab->count, 1, "entries of a vocabulary"));
	for (int32_t i = 0; i < vocab->count; i++) {
		const char *text = vocab->text[i];
		uint8_t *counts = &trimming->spaces[2 * (size_t)i];
		uint32_t c;
		for (size_t at = 0; at < vocab->size[i] && counts[0] < UINT8_MAX; counts[0]++) {
			at += utf8_decode(text + at, vocab->size[i] - at, &c);
			if (!is_trimmed(c))
				break;
		}
		for (size_t end = vocab->size[i]; end > 0 && counts[1] < UINT8_MAX; counts[1]++) {
			end -= utf8_decode_last(text, end, &c);
			if (!is_trimmed(c))
				break;
		}
	}
	return OK;
}

static enum status make_chain(struct vocab *vocab, const struct json *root, const char *path,
			      const struct offset_trimming *trimming)
{
	TRY(memory_new(&vocab->chain, 1, sizeof *vocab->chain, "tokenizer"));
	TRY(set_prefix(vocab, root, path));
	TRY(chain_read(vocab->chain, vocab, root, path));
	vocab->chain->trimming = *trimming;
	mark_continuations(vocab);
	add_to_hash(vocab, root);
	return count_spaces(vocab);
}

/* Reads everything but the entries. `text` is the whole file. */
static enum status read_parts(struct vocab *vocab, const struct json *root, const char *path, const struct token_files *files,
			      const struct buffer *text)
{
	static const char *const parts[] = {"version", "added_tokens",   "normalizer", "pre_tokenizer",
					    "model",   "post_processor", "decoder",    NULL};
	static const char *const of_a_call[] = {"truncation", "padding", NULL}; /* whoever reads the file decides about these */
	const struct json *added = json_member(root, "added_tokens");
	struct offset_trimming trimming;
	const char *version = "1.0";
	part_warn_unknown(&(struct part){root, path, "tokenizer.json"}, parts, of_a_call);
	TRY(json_get_string(root, path, "version", &version));
	if (strcmp(version, "1.0") != 0) /* as tokenizers does */
		return error_set(ERR_DATA, "'%s': \"version\" is \"%.40s\"; bertc has \"1.0\"", path, version);
	for (const struct json *token = added ? added->first_child : NULL; token; token = token->next) {
		struct added_token listed = added_token_read(token, (int32_t)json_member(token, "id")->integer);
		TRY(vocab_list_added(vocab, &listed));
	}
	TRY(token_files_list_added(files, vocab));
	TRY(token_files_check_spaces(files, json_member(root, "pre_tokenizer")));
	TRY(post_processor_read(vocab, root, path, &trimming));
	token_files_apply_inputs(files, vocab);
	TRY(decoder_read(&vocab->decoder, root, path));
	if (is_bert(vocab, root)) {
		unlist_special(vocab);
		return OK;
	}
	TRY(token_files_check_case(files, json_member(root, "normalizer"))); /* which then decides, unlike BERT's own */
	TRY(make_chain(vocab, root, path, &trimming));
	buffer_append(&vocab->chain->json, text->data, text->size);
	buffer_append(&vocab->chain->config, files->config_text.data, files->config_text.size);
	buffer_append(&vocab->chain->special_tokens, files->map_text.data, files->map_text.size);
	return buffer_status(&vocab->chain->json);
}

/* The special tokens' names: those that the files give, else the usual ones that are entries. */
static void find_names(const struct token_files *files, const struct entries *entries, const char *names[VOCAB_SPECIAL_TOKENS])
{
	static const char *const usual[][VOCAB_SPECIAL_TOKENS] = {{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"},
								  {"<pad>", "<unk>", "<s>", "</s>", "<mask>"}};
	for (int i = 0; i < VOCAB_SPECIAL_TOKENS; i++) {
		names[i] = token_files_name(files, i);
		for (size_t form = 0; form < 2 && !names[i]; form++)
			for (int64_t id = 0; id < entries->count && !names[i]; id++)
				if (strcmp(entries->text[id], usual[form][i]) == 0)
					names[i] = usual[form][i];
	}
}

enum status vocab_from_json(struct vocab *out, const char *path, const struct buffer *text, const struct token_files *files)
{
	struct json_document document;
	struct entries entries = {.path = path};
	const char *names[VOCAB_SPECIAL_TOKENS];
	*out = (struct vocab){.count = 0};
	TRY(json_parse(&document, path, buffer_string(text), text->size));
	enum status status = collect(&entries, document.root);
	if (status == OK && entries.count > INT32_MAX)
		status = error_set(ERR_DATA, "'%s': too many entries", path);
	if (status == OK) {
		find_names(files, &entries, names);
		status = vocab_from_tokens(out, entries.text, (int32_t)entries.count, names);
	}
	if (status == OK) {
		out->wordpiece_count = (int32_t)entries.model_count;
		status = read_parts(out, document.root, path, files, text);
		if (status != OK)
			vocab_release(out);
	}
	free(entries.text);
	json_release(&document);
	return status;
}

static enum status read_text(struct vocab *out, const char *path, const struct buffer *text)
{
	struct token_files files;
	*out = (struct vocab){.count = 0};
	TRY(token_files_read(&files, path));
	enum status status = vocab_from_json(out, path, text, &files);
	token_files_release(&files);
	return status;
}

static enum status read_json(struct vocab *out, const char *path)
{
	struct buffer text = {0};
	*out = (struct vocab){.count = 0};
	bool pieces = sentencepiece_file_is(path);
	enum status status = pieces                 ? sentencepiece_file_read(path, &text)
			     : pair_files_are(path) ? pair_files_read(path, &text)
						    : file_read(path, FILE_LIMIT, &text);
	if (status == OK)
		status = read_text(out, path, &text);
	if (status == OK && pieces)
		status = sentencepiece_file_take(out, path);
	buffer_release(&text);
	return status;
}

enum status vocab_read(struct vocab *out, const char *path)
{
	return text_ends_with(path, ".json") || sentencepiece_file_is(path) ? read_json(out, path) : vocab_read_lines(out, path);
}

/* ---- Beside a vocab.txt ---- */

/* What is compared with a vocabulary: the entries that the file has been found to have. */
struct comparison {
	const struct vocab *vocab;
	const char *path;
	bool *found;       /* [vocab->count] */
	const char **more; /* [more_capacity] added tokens whose ids follow those of the vocabulary */
	int64_t more_count, more_capacity, model_count;
};

static enum status differs(const struct comparison *c, int64_t id, const char *text)
{
	return error_set(ERR_STATE, "entry %lld is '%.100s' and '%.100s'", (long long)id,
			 id >= 0 && id < c->vocab->count ? c->vocab->text[id] : "(none)", text);
}

/* Is this the vocabulary's entry, as far as vocab.txt can represent it? */
static enum status compare_entry(struct comparison *c, const char *text, int64_t id)
{
	if (id < 0 || id >= c->vocab->count)
		return differs(c, id, text);
	size_t size = vocab_trimmed_size(text, strlen(text));
	if (size != c->vocab->size[id] || memcmp(text, c->vocab->text[id], size) != 0)
		return differs(c, id, text);
	c->found[id] = true;
	return OK;
}

static enum status compare_added(struct comparison *c, const struct json *added)
{
	const struct json *id = NULL, *content = NULL;
	for (const struct json *token = added ? added->first_child : NULL; token; token = token->next) {
		TRY(read_added(token, c->path, &id, &content));
		int64_t after = id->integer - c->vocab->count;
		if (after < 0) {
			TRY(compare_entry(c, content->text, id->integer));
			continue;
		}
		if (after >= c->more_capacity || (c->more[after] && strcmp(c->more[after], content->text) != 0))
			return error_set(ERR_DATA,
					 "'%s': the added token '%.200s' has the id %lld, which does not follow the others",
					 c->path, content->text, (long long)id->integer);
		c->more[after] = content->text;
		c->more_count = after >= c->more_count ? after + 1 : c->more_count;
	}
	for (int64_t i = 0; i < c->more_count; i++)
		if (!c->more[i])
			return error_set(ERR_DATA, "'%s': no entry has the id %lld", c->path, (long long)(c->vocab->count + i));
	return OK;
}

static enum status compare(struct comparison *c, const struct json *root)
{
	const struct json *model = NULL, *added = json_member(root, "added_tokens");
	TRY(find_model(root, c->path, &model));
	if (model->kind != JSON_OBJECT)
		return error_set(ERR_DATA,
				 "'%s': its vocabulary is not an object of entries and ids, as vocab.txt beside it needs",
				 c->path);
	for (const struct json *entry = model->first_child; entry; entry = entry->next) {
		if (entry->kind != JSON_NUMBER || !entry->is_integer)
			return error_set(ERR_DATA, "'%s': the id of '%.200s' is not a number", c->path, entry->key);
		TRY(compare_entry(c, entry->key, entry->integer));
		c->model_count = entry->integer >= c->model_count ? entry->integer + 1 : c->model_count;
	}
	c->more_capacity = added ? added->child_count : 0;
	TRY(memory_new(&c->more, c->more_capacity, sizeof *c->more, "added tokens"));
	TRY(compare_added(c, added));
	/* Of equal entries the file has only the last one. */
	for (int32_t id = 0; id < c->vocab->count; id++)
		if (!c->found[id] && vocab_find(c->vocab, c->vocab->text[id], c->vocab->size[id]) == id)
			return differs(c, id, "(none)");
	return OK;
}

/* The vocabulary with the added tokens behind it. */
static enum status join(const struct comparison *c, struct vocab *out)
{
	const char **entries;
	int64_t count = c->vocab->count + c->more_count;
	if (count > INT32_MAX)
		return error_set(ERR_DATA, "'%s': too many entries", c->path);
	TRY(memory_new(&entries, count, sizeof *entries, "entries of a vocabulary"));
	for (int64_t id = 0; id < count; id++)
		entries[id] = id < c->vocab->count ? c->vocab->text[id] : c->more[id - c->vocab->count];
	enum status status = vocab_from_entries(out, entries, (int32_t)count);
	free(entries);
	return status;
}

/* Takes what the file says into a vocabulary of the same entries. */
static enum status add_parts(struct comparison *c, const struct json *root, const struct buffer *text, struct vocab *joined)
{
	struct token_files files;
	TRY(token_files_read(&files, c->path));
	enum status status = join(c, joined);
	if (status == OK) {
		joined->wordpiece_count = (int32_t)c->model_count;
		status = read_parts(joined, root, c->path, &files, text);
	}
	token_files_release(&files);
	return status;
}

static enum status compare_and_add(struct comparison *c, const struct json *root, const struct buffer *text, struct vocab *joined,
				   bool *out_refused)
{
	*out_refused = !is_wordpiece(json_member(root, "model"));
	if (*out_refused) /* vocab.txt belongs to something else */
		return read_text(joined, c->path, text);
	TRY(memory_new(&c->found, c->vocab->count, sizeof *c->found, "added tokens"));
	TRY(compare(c, root));
	*out_refused = true;
	return add_parts(c, root, text, joined);
}

enum status vocab_add_json(struct vocab *vocab, const char *path, bool *out_refused)
{
	struct json_document document;
	struct comparison c = {.vocab = vocab, .path = path};
	struct vocab joined = {.count = 0};
	struct buffer text = {0};
	*out_refused = false;
	enum status status = file_read(path, FILE_LIMIT, &text);
	if (status == OK)
		status = json_parse(&document, path, buffer_string(&text), text.size);
	if (status != OK) {
		buffer_release(&text);
		return status;
	}
	status = compare_and_add(&c, document.root, &text, &joined, out_refused);
	if (status == OK) {
		vocab_release(vocab);
		*vocab = joined;
	} else {
		vocab_release(&joined);
	}
	free(c.found);
	free(c.more);
	json_release(&document);
	buffer_release(&text);
	return status;
}

enum status vocab_add_special(struct vocab *vocab, const char *path, bool *out_refused)
{
	struct token_files files;
	*out_refused = true;
	TRY(token_files_read(&files, path));
	*out_refused = false;
	enum status status = token_files_list_added(&files, vocab);
	token_files_release(&files);
	unlist_special(vocab);
	return status;
}
