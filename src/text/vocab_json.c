#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/memory.h"
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

static enum status put_added(struct entries *entries, const struct json *added)
{
	for (const struct json *token = added ? added->first_child : NULL; token; token = token->next) {
		const struct json *id = json_member(token, "id"), *content = json_member(token, "content");
		if (!id || !id->is_integer || !content || content->kind != JSON_STRING)
			return error_set(ERR_DATA, "'%s': an added token without id and content", entries->path);
		TRY(put_entry(entries, content->text, content->text_size, id->integer));
	}
	return OK;
}

static enum status collect(struct entries *entries, const struct json *root)
{
	const struct json *model = json_member(root, "model"), *vocab = json_member(model, "vocab");
	const struct json *type = json_member(model, "type"), *added = json_member(root, "added_tokens");
	if (!vocab || vocab->kind != JSON_OBJECT || (type && (type->kind != JSON_STRING || strcmp(type->text, "WordPiece") != 0)))
		return error_set(ERR_DATA, "'%s': no WordPiece model, as BERT has", entries->path);
	entries->capacity = vocab->child_count + (added ? added->child_count : 0);
	TRY(memory_new(&entries->text, entries->capacity, sizeof(*entries->text), "entries of a vocabulary"));
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

enum status vocab_read_json(struct vocab *out, const char *path)
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
