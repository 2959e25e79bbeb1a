#include "tasks/tag_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "tasks/layouts.h"

static const char *const tag_names[] = {"ner_tags", "tags", "labels", "pos_tags", "chunk_tags", "ner", "label", NULL};

struct tag_reader {
	struct conll *out;
	const struct label_list *labels;
	bool tagged;
	int64_t line, starts, lines, fields; /* line of the object; then capacities */
};

/* Where the text continues after any white space. */
static size_t skip_space(const char *text, size_t size, size_t at)
{
	while (at < size && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n'))
		at++;
	return at;
}

static bool is_list(const char *text, size_t size)
{
	size_t at = skip_space(text, size, 0);
	return at < size && text[at] == '[';
}

bool tag_json_recognise(const char *text, size_t size)
{
	size_t at = skip_space(text, size, 0);
	if (is_list(text, size))
		at = skip_space(text, size, at + 1);
	if (at == size || text[at] != '{')
		return false;
	at = skip_space(text, size, at + 1);
	return at < size && text[at] == '"';
}

static const struct json *find_list(const struct json *object, const char *const *names)
{
	for (; *names; names++) {
		const struct json *list = json_member(object, *names);
		if (list && list->kind == JSON_ARRAY)
			return list;
	}
	return NULL;
}

static enum status object_error(const struct tag_reader *reader, const char *what)
{
	return error_set(ERR_DATA, "'%s', line %" PRId64 ": %s", reader->out->name, reader->line, what);
}

static bool is_text(const struct json *value)
{
	return value->kind == JSON_STRING && value->text_size > 0 && strlen(value->text) == value->text_size;
}

/* The name of a tag: the tag itself, or the name for its number. */
static enum status name_of_tag(const struct tag_reader *reader, const struct json *tag, const char **out)
{
	*out = tag->text;
	if (is_text(tag))
		return OK;
	if (!tag->is_integer)
		return object_error(reader, "a tag is neither a text nor a number");
	if (tag->integer >= 0 && tag->integer < reader->labels->count) {
		*out = reader->labels->names[tag->integer];
		return OK;
	}
	enum status status = object_error(reader, reader->labels->count > 0 ? "the number of a tag is not in --labels"
									    : "tags are numbers, whose names are not known");
	error_hint("name them in the order of their numbers: --labels O,B-PER,I-PER,...");
	return status;
}

static enum status add_word(struct tag_reader *reader, const struct json *word, const struct json *tag)
{
	struct conll *out = reader->out;
	const char **fields, *name = NULL;
	if (!is_text(word))
		return object_error(reader, "a word is not a string, or empty");
	if (tag)
		TRY(name_of_tag(reader, tag, &name));
	TRY(memory_grow(&out->lines, &reader->lines, out->token_count + 1, sizeof(*out->lines), "words"));
	TRY(memory_grow(&out->fields, &reader->fields, (out->token_count + 1) * out->column_count, sizeof(*out->fields),
			"words"));
	fields = out->fields + out->token_count * out->column_count;
	TRY(string_store_copy(&out->strings, word->text, word->text_size, &fields[0]));
	if (tag)
		TRY(string_store_copy(&out->strings, name, strlen(name), &fields[1]));
	out->lines[out->token_count++] = reader->line;
	return OK;
}

static enum status add_words(struct tag_reader *reader, const struct json *object)
{
	const struct json *words = find_list(object, generic_words), *tags = reader->tagged ? find_list(object, tag_names) : NULL;
	if (!words)
		return object_error(reader, "there is no list of words (\"tokens\")");
	if (reader->tagged && !tags)
		return object_error(reader, "there is no list of tags (\"ner_tags\" or \"tags\")");
	if (tags && tags->child_count != words->child_count)
		return error_set(ERR_DATA, "'%s', line %" PRId64 ": %" PRId64 " word%s, but %" PRId64 " tag%s", reader->out->name,
				 reader->line, words->child_count, words->child_count == 1 ? "" : "s", tags->child_count,
				 tags->child_count == 1 ? "" : "s");
	const struct json *tag = tags ? tags->first_child : NULL;
	for (const struct json *word = words->first_child; word; word = word->next, tag = tag ? tag->next : NULL)
		TRY(add_word(reader, word, tag));
	return OK;
}

/* Adds a sentence, entirely or not at all. */
static enum status add_sentence(struct tag_reader *reader, const struct json *object, struct bad_records *bad)
{
	struct conll *out = reader->out;
	int64_t words = out->token_count;
	TRY(memory_grow(&out->sentence_starts, &reader->starts, out->sentence_count + 2, sizeof(*out->sentence_starts),
			"sentences"));
	enum status status = add_words(reader, object);
	if (status != OK) {
		out->token_count = words;
		return bad_record(bad, status);
	}
	out->sentence_starts[out->sentence_count++] = words;
	out->sentence_starts[out->sentence_count] = out->token_count;
	return OK;
}

/* Does the first object have tags? Then all must. */
static bool first_has_tags(const struct json *object)
{
	return find_list(object, tag_names) != NULL;
}

static enum status read_list(struct tag_reader *reader, const struct json *list, bool needs_tags, struct bad_records *bad)
{
	reader->tagged = needs_tags || (list->first_child && first_has_tags(list->first_child));
	reader->out->column_count = 1 + reader->tagged;
	for (const struct json *object = list->first_child; object; object = object->next) {
		reader->line++;
		TRY(add_sentence(reader, object, bad));
	}
	return OK;
}

static enum status read_line(struct tag_reader *reader, const char *text, size_t size, bool needs_tags, struct bad_records *bad)
{
	struct json_document document;
	char name[512];
	snprintf(name, sizeof(name), "%.400s, line %" PRId64, reader->out->name, reader->line);
	enum status status = json_parse(&document, name, text, size);
	if (status != OK)
		return bad_record(bad, status);
	if (reader->out->column_count == 0) {
		reader->tagged = needs_tags || first_has_tags(document.root);
		reader->out->column_count = 1 + reader->tagged;
	}
	status = add_sentence(reader, document.root, bad);
	json_release(&document);
	return status;
}

static enum status read_lines(struct tag_reader *reader, const char *text, size_t size, bool needs_tags, struct bad_records *bad)
{
	for (size_t at = 0, end; at < size; at = end + 1) {
		const char *newline = memchr(text + at, '\n', size - at);
		end = newline ? (size_t)(newline - text) : size;
		reader->line++;
		if (skip_space(text, end, at) < end)
			TRY(read_line(reader, text + at, end - at, needs_tags, bad));
	}
	return OK;
}

enum status tag_json_read(struct conll *out, const struct text_file *file, bool needs_tags, const struct label_list *labels,
			  struct bad_records *bad)
{
	struct json_document document = {0};
	struct tag_reader reader = {.out = out, .labels = labels};
	const char *text = buffer_string(&file->text);
	enum status status;
	*out = (struct conll){.separator = '\t', .tag_column = -1};
	TRY(string_store_copy(&out->strings, file->name, strlen(file->name), &out->name));
	if (is_list(text, file->text.size)) {
		status = json_parse(&document, out->name, text, file->text.size);
		if (status == OK)
			status = read_list(&reader, document.root, needs_tags, bad);
		json_release(&document);
	} else {
		status = read_lines(&reader, text, file->text.size, needs_tags, bad);
	}
	if (out->column_count == 0)
		out->column_count = 1;
	out->tag_column = reader.tagged ? 1 : -1;
	if (status == OK && out->sentence_count == 0)
		status = error_set(ERR_DATA, "'%s': there is no sentence in it", out->name);
	return status;
}
