/* Reads tagged words and marked spans from JSON objects. */
#include "tasks/tagging/tag_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "tasks/layouts.h"
#include "tasks/tagging/tag_spans.h"

static const char *const tag_names[] = {"ner_tags", "tags", "labels", "pos_tags", "chunk_tags", "ner", "label", NULL};

struct tag_reader {
	struct conll *out;
	const struct tag_json_settings *settings;
	bool tagged, of_texts; /* texts in place of words */
	bool numbered;         /* tags are numbers */
	struct tag_spans spans;
	int64_t rejected;                                               /* texts that are left out: see is_rejected() */
	struct tag *tags;                                               /* of a text's words */
	const char **texts, **ids;                                      /* [out->sentence_count] */
	int64_t line;                                                   /* of the object */
	int64_t starts, lines, fields, tags_room, texts_room, ids_room; /* capacities */
};

/* Where the text continues after any white space. */
static size_t skip_space(const char *text, size_t size, size_t at)
{
	while (at < size && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n' || text[at] == '\x1E'))
		at++;
	return at;
}

static bool is_list(const char *text, size_t size)
{
	size_t at = skip_space(text, size, 0);
	return at < size && text[at] == '[';
}

bool tag_json_recognize(const char *text, size_t size)
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

/* The object's list of words. A list of objects is not one: Prodigy writes its tokens so, beside the text. */
static const struct json *find_word_list(const struct json *object)
{
	const struct json *list = find_list(object, generic_words);
	return list && list->first_child && list->first_child->kind == JSON_OBJECT ? NULL : list;
}

static enum status object_error(const struct tag_reader *reader, const char *what)
{
	return error_set(ERR_DATA, "'%s', line %" PRId64 ": %s", reader->out->name, reader->line, what);
}

static bool is_text(const struct json *value)
{
	return value->kind == JSON_STRING && value->text_size > 0 && strlen(value->text) == value->text_size;
}

/* The name of a tag: the tag itself, or the name for its number. Tags that are not needed are only repeated in results: one
 * without a name, such as the placeholder -100, stays as it is. */
static enum status name_of_tag(struct tag_reader *reader, const struct json *tag, const char **out)
{
	*out = tag->text ? tag->text : "";
	if (is_text(tag))
		return OK;
	reader->numbered |= tag->is_integer;
	if (tag->is_integer && tag->integer >= 0 && tag->integer < reader->settings->labels->count) {
		*out = reader->settings->labels->names[tag->integer];
		return OK;
	}
	if (!reader->settings->needs_tags)
		return OK;
	if (!tag->is_integer)
		return object_error(reader, "a tag is neither a text nor a number");
	enum status status =
		object_error(reader, reader->settings->labels->count > 0 ? "the number of a tag is not that of a label"
									 : "tags are numbers, whose names are not known");
	error_hint("name them in the order of their numbers: --labels O,B-PER,I-PER,...");
	return status;
}

/* `tag` NULL: there are none. */
static enum status add_word(struct tag_reader *reader, const char *word, size_t size, const char *tag)
{
	struct conll *out = reader->out;
	const char **fields;
	TRY(memory_grow(&out->lines, &reader->lines, out->token_count + 1, sizeof *out->lines, "words"));
	TRY(memory_grow(&out->fields, &reader->fields, (out->token_count + 1) * out->column_count, sizeof *out->fields, "words"));
	fields = out->fields + out->token_count * out->column_count;
	TRY(string_store_copy(&out->strings, word, size, &fields[0]));
	if (tag)
		TRY(string_store_copy(&out->strings, tag, strlen(tag), &fields[1]));
	out->lines[out->token_count++] = reader->line;
	return OK;
}

static enum status add_words(struct tag_reader *reader, const struct json *object)
{
	const struct json *words = find_word_list(object), *tags = reader->tagged ? find_list(object, tag_names) : NULL;
	if (!words) {
		enum status status = object_error(reader, "there is no list of words (\"tokens\")");
		error_hint(
			"a sentence is {\"tokens\": [...], \"ner_tags\": [...]}, or a text whose entities are marked: {\"text\": "
			"..., \"entities\": [{\"start\": 0, \"end\": 4, \"label\": \"PER\"}]}");
		return status;
	}
	if (reader->tagged && !tags)
		return object_error(reader, "there is no list of tags (\"ner_tags\" or \"tags\")");
	if (tags && tags->child_count != words->child_count)
		return error_set(ERR_DATA, "'%s', line %" PRId64 ": %" PRId64 " word%s, but %" PRId64 " tag%s", reader->out->name,
				 reader->line, words->child_count, words->child_count == 1 ? "" : "s", tags->child_count,
				 tags->child_count == 1 ? "" : "s");
	const struct json *tag = tags ? tags->first_child : NULL;
	for (const struct json *word = words->first_child; word; word = word->next, tag = tag ? tag->next : NULL) {
		const char *name = NULL;
		if (!is_text(word))
			return object_error(reader, "a word is not a string, or empty");
		if (tag)
			TRY(name_of_tag(reader, tag, &name));
		TRY(add_word(reader, word->text, word->text_size, name));
	}
	return OK;
}

/* Writes the tags of the last `count` words by the rules of the scheme. */
static enum status write_tags(struct tag_reader *reader, int64_t count)
{
	struct conll *out = reader->out;
	struct tag_form form = reader->settings->form;
	struct buffer tag = {0};
	enum status status = OK;
	tags_convert(reader->tags, count, form.scheme, reader->tags);
	for (int64_t i = 0; i < count && status == OK; i++) {
		const char **fields = out->fields + (out->token_count - count + i) * out->column_count;
		buffer_clear(&tag);
		tag_write(&tag, reader->tags[i], form);
		status = buffer_status(&tag);
		if (status == OK)
			status = string_store_copy(&out->strings, buffer_string(&tag), tag.size, &fields[1]);
	}
	buffer_release(&tag);
	return status;
}

/* Adds the words of a text, tagged according to its spans. */
static enum status cut_text(struct tag_reader *reader, const char *text, size_t size)
{
	struct tag_cutter *cutter = reader->settings->cutter;
	TRY(tag_words_cut(cutter, text, size));
	TRY(memory_grow(&reader->tags, &reader->tags_room, cutter->count, sizeof *reader->tags, "tags"));
	for (int64_t i = 0; i < cutter->count; i++) {
		const struct tag_word *word = &cutter->words[i];
		bool first;
		const struct tag_span *span =
			reader->tagged ? tag_spans_next(&reader->spans, word->begin, word->end, &first) : NULL;
		reader->tags[i] = span ? (struct tag){first ? 'B' : 'I', span->label} : (struct tag){'O', ""};
		TRY(add_word(reader, text + word->begin, word->end - word->begin, NULL));
	}
	return reader->tagged ? write_tags(reader, cutter->count) : OK;
}

/* What the annotator decided in Prodigy: "accept", "reject", or "ignore"; NULL: the file is not Prodigy's. */
static const char *answer_of(const struct json *object)
{
	const struct json *answer = json_member(object, "answer");
	return answer && answer->kind == JSON_STRING ? answer->text : NULL;
}

/* Did the annotator refuse or skip what the record says? */
static bool is_rejected(const struct json *object)
{
	const char *answer = answer_of(object);
	return answer && (!strcmp(answer, "reject") || !strcmp(answer, "ignore"));
}

static enum status add_text(struct tag_reader *reader, const struct json *object)
{
	struct conll *out = reader->out;
	const struct json *text = json_member(object, "text"), *list = reader->tagged ? tag_spans_find(object) : NULL;
	if (!text || text->kind != JSON_STRING || strlen(text->text) != text->text_size)
		return object_error(reader, "there is no \"text\"");
	if (reader->tagged && !list && !answer_of(object))
		return object_error(reader, "there is no list of entities (\"entities\", \"spans\", or \"label\")");
	enum status status = tag_spans_read(&reader->spans, list, text->text, text->text_size);
	if (status == ERR_DATA) {
		char message[sizeof(error_last()->message)];
		snprintf(message, sizeof message, "%s", error_last()->message);
		return object_error(reader, message);
	}
	TRY(status);
	TRY(cut_text(reader, text->text, text->text_size));
	tag_spans_finish(&reader->spans);
	TRY(memory_grow(&reader->texts, &reader->texts_room, out->sentence_count + 1, sizeof *reader->texts, "sentences"));
	return string_store_copy(&out->strings, text->text, text->text_size, &reader->texts[out->sentence_count]);
}

/* Keeps the id of the next sentence, to be repeated in answers. */
static enum status keep_id(struct tag_reader *reader, const struct json *object)
{
	struct conll *out = reader->out;
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	TRY(memory_grow(&reader->ids, &reader->ids_room, out->sentence_count + 1, sizeof *reader->ids, "sentences"));
	reader->ids[out->sentence_count] = NULL;
	json_put_again(&writer, NULL, json_member(object, "id"));
	enum status status = buffer_status(&text);
	if (status == OK && text.size > 0)
		status = string_store_copy(&out->strings, buffer_string(&text), text.size, &reader->ids[out->sentence_count]);
	buffer_release(&text);
	return status;
}

/* Adds a sentence, entirely or not at all. */
static enum status add_sentence(struct tag_reader *reader, const struct json *object)
{
	struct conll *out = reader->out;
	int64_t words = out->token_count;
	if (reader->of_texts && reader->tagged && is_rejected(object)) {
		reader->rejected++;
		return OK;
	}
	TRY(memory_grow(&out->sentence_starts, &reader->starts, out->sentence_count + 2, sizeof *out->sentence_starts,
			"sentences"));
	enum status status = (reader->of_texts ? add_text : add_words)(reader, object);
	if (status != OK) {
		out->token_count = words;
		return bad_record(reader->settings->bad, status);
	}
	TRY(keep_id(reader, object));
	out->sentence_starts[out->sentence_count++] = words;
	out->sentence_starts[out->sentence_count] = out->token_count;
	return OK;
}

/* What the first object has, all must have. */
static void look_at_first(struct tag_reader *reader, const struct json *object)
{
	bool has_words = object && find_word_list(object);
	reader->of_texts = object && !has_words && json_member(object, "text");
	reader->tagged = reader->settings->needs_tags || (has_words && find_list(object, tag_names));
	reader->out->column_count = 1 + reader->tagged;
}

static enum status read_list(struct tag_reader *reader, const struct json *list)
{
	look_at_first(reader, list->first_child);
	for (const struct json *object = list->first_child; object; object = object->next) {
		reader->line++;
		TRY(add_sentence(reader, object));
	}
	return OK;
}

static enum status read_line(struct tag_reader *reader, const char *text, size_t size)
{
	struct json_document document;
	char name[512];
	snprintf(name, sizeof name, "%.400s, line %" PRId64, reader->out->name, reader->line);
	enum status status = json_parse(&document, name, text, size);
	if (status != OK)
		return bad_record(reader->settings->bad, status);
	if (reader->out->column_count == 0)
		look_at_first(reader, document.root);
	status = add_sentence(reader, document.root);
	json_release(&document);
	return status;
}

static enum status read_lines(struct tag_reader *reader, const char *text, size_t size)
{
	for (size_t at = 0, end; at < size; at = end + 1) {
		const char *newline = memchr(text + at, '\n', size - at);
		end = newline ? (size_t)(newline - text) : size;
		reader->line++;
		at = skip_space(text, end, at);
		if (at < end)
			TRY(read_line(reader, text + at, end - at));
	}
	return OK;
}

/* Says what numbers of tags were taken as. */
static void log_numbers(const char *name, const struct tag_json_settings *settings)
{
	long long last = settings->labels->count - 1;
	if (last < 0)
		return;
	const char *first_name = settings->labels->names[0], *last_name = settings->labels->names[last];
	if (settings->labels_of_model)
		log_warning(
			"'%s': tags are numbers, taken as those of the model's labels: 0 is %s, %lld is %s; if the file counts "
			"them in another order, write the names of its tags into it",
			name, first_name, last, last_name);
	else
		log_note("'%s': tags are numbers, taken as those of --labels: 0 is %s, %lld is %s", name, first_name, last,
			 last_name);
}

enum status tag_json_read(struct conll *out, const struct text_file *file, const struct tag_json_settings *settings,
			  struct tag_json_facts *out_facts)
{
	struct json_document document = {0};
	struct tag_reader reader = {.out = out, .settings = settings};
	const char *text = buffer_string(&file->text);
	enum status status;
	*out = (struct conll){.separator = '\t', .tag_column = -1};
	*out_facts = (struct tag_json_facts){0};
	TRY(string_store_copy(&out->strings, file->name, strlen(file->name), &out->name));
	if (is_list(text, file->text.size)) {
		status = json_parse(&document, out->name, text, file->text.size);
		if (status == OK)
			status = read_list(&reader, document.root);
		json_release(&document);
	} else {
		status = read_lines(&reader, text, file->text.size);
	}
	if (out->column_count == 0)
		out->column_count = 1;
	out->tag_column = reader.tagged ? 1 : -1;
	if (reader.numbered)
		log_numbers(out->name, settings);
	char count[FORMAT_BYTES];
	if (reader.rejected > 0)
		log_note("'%s': %s whose annotation was rejected or skipped (\"answer\") %s left out", out->name,
			 format_counted(count, reader.rejected, "text", "texts"), reader.rejected == 1 ? "is" : "are");
	if (status == OK && out->sentence_count == 0)
		status = error_set(ERR_DATA, "'%s': there is no sentence in it", out->name);
	if (status == OK) {
		*out_facts = (struct tag_json_facts){reader.texts, reader.ids, reader.spans.total, reader.spans.total_widened,
						     reader.spans.total_shared};
	} else {
		free(reader.texts);
		free(reader.ids);
	}
	tag_spans_release(&reader.spans);
	free(reader.tags);
	return status;
}
