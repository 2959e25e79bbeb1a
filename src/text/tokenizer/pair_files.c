/* Makes a tokenizer.json of vocab.json and merges.txt. */
#include "text/tokenizer/pair_files.h"

#include <stdio.h>
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "text/tokenizer/token_files.h"

bool pair_files_are(const char *path)
{
	return strcmp(path_name(path), "vocab.json") == 0 || strcmp(path_name(path), "merges.txt") == 0;
}

/* One merge per line; a first line "#version: 0.2" is skipped. */
static void put_merges(struct json_writer *json, const char *text)
{
	json_open(json, "merges", '[');
	for (const char *end; *text; text = *end ? end + 1 : end) {
		end = text + strcspn(text, "\n");
		size_t size = (size_t)(end - text);
		if (size > 0 && text[size - 1] == '\r')
			size--;
		if (size > 0 && strncmp(text, "#version", strlen("#version")) != 0)
			json_put_text(json, NULL, text, size);
	}
	json_close(json);
}

struct named_id {
	const char *name;
	int64_t id; /* -1: not in the vocabulary */
	bool lstrip, rstrip;
};

static struct named_id find_token(const struct json *vocab, const struct token_files *files, int which)
{
	static const char *const usual[VOCAB_SPECIAL_TOKENS] = {"<pad>", "<unk>", "<s>", "</s>", "<mask>"};
	const char *name = token_files_name(files, which);
	const struct json *given = token_files_special(files, which);
	struct added_token attributes = added_token_read(given, -1);
	struct named_id token = {name ? name : usual[which], -1, attributes.lstrip, attributes.rstrip};
	/* Unless its attributes are given, the mask takes the space before it, as in transformers 4, which wrote such folders. */
	if (which == VOCAB_SPECIAL_TOKENS - 1 && (!given || given->kind != JSON_OBJECT))
		token.lstrip = true;
	const struct json *id = json_member(vocab, token.name);
	if (id && id->is_integer)
		token.id = id->integer;
	return token;
}

static void put_tokens(struct json_writer *json, const struct named_id tokens[VOCAB_SPECIAL_TOKENS])
{
	json_open(json, "added_tokens", '[');
	for (int i = 0; i < VOCAB_SPECIAL_TOKENS; i++) {
		if (tokens[i].id < 0)
			continue;
		json_open(json, NULL, '{');
		json_put_integer(json, "id", tokens[i].id);
		json_put_string(json, "content", tokens[i].name);
		json_put_bool(json, "single_word", false);
		json_put_bool(json, "lstrip", tokens[i].lstrip);
		json_put_bool(json, "rstrip", tokens[i].rstrip);
		json_put_bool(json, "normalized", false);
		json_put_bool(json, "special", true);
		json_close(json);
	}
	json_close(json);
}

static void put_pair(struct json_writer *json, const char *key, struct named_id token)
{
	json_open(json, key, '[');
	json_put_string(json, NULL, token.name);
	json_put_integer(json, NULL, token.id);
	json_close(json);
}

static void put_byte_level(struct json_writer *json, const char *key, bool prefix)
{
	json_open(json, key, '{');
	json_put_string(json, "type", "ByteLevel");
	json_put_bool(json, "add_prefix_space", prefix);
	json_put_bool(json, "trim_offsets", true);
	json_put_bool(json, "use_regex", true);
	json_close(json);
}

enum status pair_files_join(const struct json *vocab, const char *path, const char *merges, const struct token_files *files,
			    struct buffer *out)
{
	struct json_writer json = {.out = out};
	struct named_id tokens[VOCAB_SPECIAL_TOKENS];
	bool prefix = false;
	if (files->config.root)
		TRY(json_get_bool(files->config.root, files->config_path, "add_prefix_space", &prefix));
	for (int i = 0; i < VOCAB_SPECIAL_TOKENS; i++)
		tokens[i] = find_token(vocab, files, i);
	const struct named_id *cls = &tokens[2], *sep = &tokens[3];
	if (cls->id < 0 || sep->id < 0)
		return error_set(ERR_DATA, "'%s': the special token '%s' is not an entry", path,
				 cls->id < 0 ? cls->name : sep->name);
	json_open(&json, NULL, '{');
	json_put_string(&json, "version", "1.0");
	json_put_null(&json, "truncation");
	json_put_null(&json, "padding");
	put_tokens(&json, tokens);
	json_put_null(&json, "normalizer");
	put_byte_level(&json, "pre_tokenizer", prefix);
	json_open(&json, "post_processor", '{');
	json_put_string(&json, "type", "RobertaProcessing");
	put_pair(&json, "sep", *sep);
	put_pair(&json, "cls", *cls);
	json_put_bool(&json, "trim_offsets", true);
	json_put_bool(&json, "add_prefix_space", prefix);
	json_close(&json);
	put_byte_level(&json, "decoder", prefix);
	json_open(&json, "model", '{');
	json_put_string(&json, "type", "BPE");
	json_open(&json, "vocab", '{');
	for (const struct json *entry = vocab->first_child; entry; entry = entry->next)
		json_put_integer(&json, entry->key, entry->integer);
	json_close(&json);
	put_merges(&json, merges);
	json_close(&json);
	json_close(&json);
	return buffer_status(out);
}

enum status pair_files_read(const char *path, struct buffer *out)
{
	char vocab_path[PATH_BYTES], merges_path[PATH_BYTES];
	struct json_document vocab = {0};
	struct buffer merges = {0};
	struct token_files files;
	TRY(path_beside(vocab_path, path, "vocab.json"));
	TRY(path_beside(merges_path, path, "merges.txt"));
	TRY(token_files_read(&files, path));
	enum status status = json_read(&vocab, vocab_path, TOKENIZER_FILE_LIMIT);
	if (status == OK)
		status = file_read(merges_path, TOKENIZER_FILE_LIMIT, &merges);
	if (status == OK && memchr(buffer_string(&merges), '\0', merges.size))
		status = error_set(ERR_DATA, "'%s': a merge contains a NUL", merges_path);
	if (status == OK && vocab.root->kind != JSON_OBJECT)
		status = error_set(ERR_DATA, "'%s': not a JSON object of entries and ids", vocab_path);
	for (const struct json *entry = status == OK ? vocab.root->first_child : NULL; entry && status == OK; entry = entry->next)
		if (!entry->is_integer)
			status = error_set(ERR_DATA, "'%s': the id of '%.200s' is not a number", vocab_path, entry->key);
	if (status == OK)
		status = pair_files_join(vocab.root, vocab_path, buffer_string(&merges), &files, out);
	json_release(&vocab);
	buffer_release(&merges);
	token_files_release(&files);
	return status;
}

/* "a b", or ["a", "b"] */
static void put_merge_line(struct buffer *out, const struct json *merge)
{
	const struct json *left = merge->first_child, *right = left ? left->next : NULL;
	if (merge->kind == JSON_STRING)
		buffer_format(out, "%s\n", merge->text);
	else if (right && left->kind == JSON_STRING && right->kind == JSON_STRING)
		buffer_format(out, "%s %s\n", left->text, right->text);
}

enum status pair_files_write(const struct json *model, const char *folder)
{
	const struct json *entries = json_member(model, "vocab"), *merges = json_member(model, "merges");
	struct buffer text = {0};
	struct json_writer json = {.out = &text};
	char path[PATH_BYTES];
	enum status status;
	json_open(&json, NULL, '{');
	for (const struct json *entry = entries ? entries->first_child : NULL; entry; entry = entry->next)
		json_put_integer(&json, entry->key, entry->integer);
	json_close(&json);
	TRY_GOTO(buffer_status(&text), done);
	TRY_GOTO(path_join(path, folder, "vocab.json"), done);
	TRY_GOTO(file_write(path, text.data, text.size), done);
	buffer_clear(&text);
	buffer_text(&text, "#version: 0.2\n");
	for (const struct json *merge = merges ? merges->first_child : NULL; merge; merge = merge->next)
		put_merge_line(&text, merge);
	TRY_GOTO(buffer_status(&text), done);
	TRY_GOTO(path_join(path, folder, "merges.txt"), done);
	status = file_write(path, text.data, text.size);
done:
	buffer_release(&text);
	return status;
}
