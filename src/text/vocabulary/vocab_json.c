/* Reads the vocabulary in a tokenizer.json, and compares one with the vocab.txt beside it. */
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
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

static enum status put_model(struct entries *entries, const struct json *vocab)
{
	for (const struct json *entry = vocab->first_child; entry; entry = entry->next) {
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
	const struct json *type = json_member(model, "type");
	if (!vocab || vocab->kind != JSON_OBJECT || (type && (type->kind != JSON_STRING || strcmp(type->text, "WordPiece") != 0)))
		return error_set(ERR_DATA, "'%s': no WordPiece model, as BERT has", path);
	*out_vocab = vocab;
	return OK;
}

/* Words have to be made the way BERT's are, or their pieces are others. A file need not say how they are made. */
static enum status check_words(const struct json *root, const char *path)
{
	static const char *const parts[][2] = {{"normalizer", "BertNormalizer"}, {"pre_tokenizer", "BertPreTokenizer"}};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		const struct json *type = json_member(json_member(root, parts[i][0]), "type");
		if (!type || type->kind != JSON_STRING || strcmp(type->text, parts[i][1]) == 0)
			continue;
		enum status status = error_set(ERR_DATA, "'%s': \"%s\" is of the type \"%.100s\"; bertc has BERT's, \"%s\", only",
					       path, parts[i][0], type->text, parts[i][1]);
		error_hint("texts would be split into other tokens than those the model was trained with");
		return status;
	}
	return OK;
}

static enum status collect(struct entries *entries, const struct json *root)
{
	const struct json *vocab, *added = json_member(root, "added_tokens");
	TRY(find_model(root, entries->path, &vocab));
	TRY(check_words(root, entries->path));
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

static bool flag_of(const struct json *token, const char *name, bool otherwise)
{
	const struct json *flag = json_member(token, name);
	return flag && flag->kind == JSON_BOOL ? flag->boolean : otherwise;
}

/* Lists added tokens besides BERT's own. */
static enum status list_added(struct vocab *vocab, const struct json *added)
{
	for (const struct json *token = added ? added->first_child : NULL; token; token = token->next) {
		int32_t id = (int32_t)json_member(token, "id")->integer;
		bool special = flag_of(token, "special", false);
		if (!vocab_is_special(vocab, id))
			TRY(vocab_list_added(vocab, &(struct added_token){
							    .id = id,
							    .normalized = flag_of(token, "normalized", !special),
							    .single_word = flag_of(token, "single_word", false),
							    .lstrip = flag_of(token, "lstrip", false),
							    .rstrip = flag_of(token, "rstrip", false),
							    .special = special,
						    }));
	}
	return OK;
}

static enum status read_json(struct vocab *out, const char *path)
{
	struct json_document document;
	struct entries entries = {.path = path};
	*out = (struct vocab){.count = 0};
	TRY(json_read(&document, path, FILE_LIMIT));
	enum status status = collect(&entries, document.root);
	if (status == OK && entries.count > INT32_MAX)
		status = error_set(ERR_DATA, "'%s': too many entries", path);
	if (status == OK)
		status = vocab_from_entries(out, entries.text, (int32_t)entries.count);
	if (status == OK) {
		out->wordpiece_count = (int32_t)entries.model_count;
		status = list_added(out, json_member(document.root, "added_tokens"));
		if (status != OK)
			vocab_release(out);
	}
	free(entries.text);
	json_release(&document);
	return status;
}

enum status vocab_read(struct vocab *out, const char *path)
{
	return text_ends_with(path, ".json") ? read_json(out, path) : vocab_read_lines(out, path);
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
	const struct json *model, *added = json_member(root, "added_tokens");
	TRY(find_model(root, c->path, &model));
	TRY(check_words(root, c->path));
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

enum status vocab_add_json(struct vocab *vocab, const char *path)
{
	struct json_document document;
	struct comparison c = {.vocab = vocab, .path = path};
	struct vocab joined = {.count = 0};
	TRY(json_read(&document, path, FILE_LIMIT));
	enum status status = memory_new(&c.found, vocab->count, sizeof *c.found, "added tokens");
	if (status == OK)
		status = compare(&c, document.root);
	if (status == OK)
		status = join(&c, &joined);
	if (status == OK) {
		joined.wordpiece_count = (int32_t)c.model_count;
		status = list_added(&joined, json_member(document.root, "added_tokens"));
	}
	if (status == OK) {
		vocab_release(vocab);
		*vocab = joined;
	} else {
		vocab_release(&joined);
	}
	free(c.found);
	free(c.more);
	json_release(&document);
	return status;
}
