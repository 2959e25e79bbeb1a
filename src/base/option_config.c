/* The part of option.h about config files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/memory.h"
#include "base/option_internal.h"

#define CONFIG_LIMIT ((size_t)1 << 20)

/* Prefixes the message of the last error with its location, keeping the hint. */
static enum status locate_error(const char *path, int line)
{
	struct error error = *error_last();
	enum status status = line ? error_set(error.status, "'%s' line %d: %s", path, line, error.message)
				  : error_set(error.status, "'%s': %s", path, error.message);
	if (error.hint[0])
		error_hint("%s", error.hint);
	return status;
}

/* A config file that is being read. */
struct config {
	struct options *options;
	const char *path;
	enum option_origin origin; /* of its settings: FILE or RECIPE */
	bool *seen;       /* [rows] set in the current section of this file; lists no longer have an earlier file's values */
	int64_t section;  /* to which settings belong; -1: the whole run */
	int64_t sections; /* begun by this file: the first one removes those of an earlier file */
	bool is_record;   /* it is what a run has written */
};

/* If `status` is a failure, records it as a problem, so that reading continues with the next setting. */
static enum status config_blame(struct config *config, int line, enum status status)
{
	return status == OK ? OK : options_blame(config->options, locate_error(config->path, line));
}

/* The settings that follow belong to the next section. */
static enum status begin_section(struct config *config)
{
	if (config->origin != ORIGIN_FILE)
		return error_set(ERR_USAGE, "a recipe has no %ss of its own", config->options->section_name);
	if (config->sections == 0)
		option_sections_forget_file(config->options);
	config->section = config->sections++;
	memset(config->seen, 0, (size_t)config->options->count * sizeof *config->seen);
	return OK;
}

/* Applies one setting. */
static enum status config_set(struct config *config, const char *name, const char *value)
{
	struct options *options = config->options;
	bool *seen = config->seen;
	int index = options_find(options, name);
	const struct option_foreign *foreign = option_foreign_find(options, name, strlen(name));
	if (index < 0 && foreign && config->section < 0)
		return option_foreign_apply(options, foreign, name, value, config->origin);
	const struct option *aside = option_aside_find(options, name, strlen(name));
	if (index < 0 && aside)
		return option_check(aside, value);
	bool again = index >= 0 && seen[index], is_list = index >= 0 && options->table[index].type == OPTION_LIST;
	if (again && !is_list)
		return error_hinted(error_set(ERR_USAGE, "'%s' is set a second time", options->table[index].name),
				    "delete one of the two");
	if (index >= 0)
		seen[index] = true;
	if (config->section >= 0)
		return options_set_section(options, config->section, name, value, config->origin);
	if (is_list && !again && options->origin[index] == config->origin)
		option_list_clear(options, index);
	return options_set(options, name, value, config->origin);
}

/* null, Python's None, gives no value. Lists and objects only options of other programs have; an empty one asks for nothing. */
static enum status config_json_other(struct config *config, const struct json *value, const char *key)
{
	struct options *options = config->options;
	const struct option_foreign *foreign =
		options_find(options, key) < 0 ? option_foreign_find(options, key, strlen(key)) : NULL;
	if (value->kind == JSON_NULL && options_find(options, key) >= 0)
		return OK;
	if (value->kind == JSON_NULL && !foreign && !option_aside_find(options, key, strlen(key)))
		return config_set(config, key, ""); /* the error that names the nearest option */
	if (!foreign || config->section >= 0 || (foreign->answer == FOREIGN_MEANS && value->kind != JSON_NULL))
		return error_set(ERR_USAGE, "\"%s\" must be a text, a number, true or false", key);
	if (value->kind == JSON_NULL || value->child_count == 0)
		return OK;
	return option_foreign_apply(options, foreign, key, NULL, config->origin);
}

static enum status config_json_value(struct config *config, const struct json *value, const char *key)
{
	switch (value->kind) {
	case JSON_STRING:
		if (strlen(value->text) != value->text_size)
			return error_set(ERR_USAGE, "\"%s\" has a NUL", key);
		return config_set(config, key, value->text);
	case JSON_NUMBER: return config_set(config, key, value->text);
	case JSON_BOOL: return config_set(config, key, value->boolean ? "true" : "false");
	default: return config_json_other(config, value, key);
	}
}

/* Is it an option with a list of values, of this command or of the one that the file is also for, or another program's name for
 * one? */
static bool takes_list(const struct options *options, int index, const char *key)
{
	const struct option_foreign *foreign = index < 0 ? option_foreign_find(options, key, strlen(key)) : NULL;
	if (foreign && foreign->answer == FOREIGN_MEANS && foreign->kind == FOREIGN_VALUE)
		index = options_find(options, foreign->option);
	const struct option *row = index >= 0 ? &options->table[index] : option_aside_find(options, key, strlen(key));
	return row && row->type == OPTION_LIST;
}

/* Did the run compute this one from another setting of the same object? */
static bool is_computed(const struct config *config, const struct json *object, int index)
{
	const char *name = index >= 0 && config->is_record ? config->options->table[index].follows : NULL;
	char source[64];
	for (; name && *name; name += strspn(name, " ")) {
		size_t length = strcspn(name, " ");
		snprintf(source, sizeof source, "%.*s", (int)length, name);
		if (json_member(object, source))
			return true;
		name += length;
	}
	return false;
}

/* Applies the members of an object that are settings; *out_sections receives the array of sections, if there is one. */
static enum status config_json_object(struct config *config, const struct json *object, const struct json **out_sections)
{
	char plural[64];
	struct options *options = config->options;
	snprintf(plural, sizeof plural, "%ss", options->section_name ? options->section_name : "");
	for (const struct json *member = object->first_child; member; member = member->next) {
		int index = options_find(options, member->key);
		if (index < 0 && out_sections && options->section_name && !strcmp(member->key, plural)) {
			*out_sections = member;
		} else if (is_computed(config, object, index)) {
			continue;
		} else if (member->kind == JSON_ARRAY && takes_list(options, index, member->key)) {
			for (const struct json *item = member->first_child; item; item = item->next)
				TRY(config_blame(config, 0, config_json_value(config, item, member->key)));
		} else {
			TRY(config_blame(config, 0, config_json_value(config, member, member->key)));
		}
	}
	return OK;
}

static enum status config_json_sections(struct config *config, const struct json *sections)
{
	if (sections->kind != JSON_ARRAY || sections->child_count == 0)
		return error_set(ERR_USAGE, "\"%s\" must be a list of objects", sections->key);
	for (const struct json *section = sections->first_child; section; section = section->next) {
		if (section->kind != JSON_OBJECT || section->child_count == 0)
			return error_set(ERR_USAGE, "\"%s\" must be a list of objects that set something", sections->key);
		TRY(begin_section(config));
		TRY(config_json_object(config, section, NULL));
	}
	return OK;
}

static enum status config_json(struct config *config, const char *path, const struct buffer *text)
{
	struct json_document document;
	const struct json *sections = NULL;
	TRY(json_parse(&document, path, buffer_string(text), text->size));
	config->is_record = config->origin == ORIGIN_FILE && options_is_record(document.root);
	config->options->from_record |= config->is_record;
	enum status status = config_json_object(config, document.root, &sections);
	if (status == OK && sections)
		status = config_json_sections(config, sections);
	json_release(&document);
	return status == OK ? OK : locate_error(path, 0);
}

/* The value after '=': to the end of the line or to a '#' after white space; or in double quotes, as in JSON. */
static enum status config_line_value(char *text, struct json_document *quoted, const char **out)
{
	*out = text;
	if (*text == '"') {
		size_t end = 1;
		while (text[end] && text[end] != '"')
			end += text[end] == '\\' && text[end + 1] ? 2 : 1;
		if (!text[end])
			return error_set(ERR_USAGE, "quotes are not closed");
		const char *rest = text + end + 1 + strspn(text + end + 1, " \t\r");
		if (*rest && *rest != '#')
			return error_set(ERR_USAGE, "text after the closing quotes");
		TRY(json_parse(quoted, "value", text, end + 1));
		*out = quoted->root->text;
		return OK;
	}
	for (char *p = text; *p; p++) {
		if (*p == '#' && (p == text || p[-1] == ' ' || p[-1] == '\t'))
			*p = '\0';
	}
	size_t length = strlen(text);
	while (length && strchr(" \t\r", text[length - 1]))
		text[--length] = '\0';
	return OK;
}

/* "[phase]" begins the next section. If it contains a number, it must be that of the section. */
static enum status config_header(struct config *config, const char *line)
{
	const char *name = config->options->section_name;
	size_t length = name ? strlen(name) : 0;
	const char *p = line + 1 + strspn(line + 1, " ");
	if (!name || strncmp(p, name, length) != 0)
		return error_set(ERR_USAGE, name ? "expected '[%s]'" : "expected 'name = value'", name);
	p += length + strspn(p + length, " ");
	int64_t number = 0;
	for (; *p >= '0' && *p <= '9' && number < 1000; p++)
		number = number * 10 + (*p - '0');
	p += strspn(p, " ");
	if (*p != ']' || (p[1 + strspn(p + 1, " \t\r")] && p[1 + strspn(p + 1, " \t\r")] != '#'))
		return error_set(ERR_USAGE, "expected '[%s]'", name);
	TRY(begin_section(config));
	if (number != 0 && number != config->section + 1)
		return error_set(ERR_USAGE, "this is %s %lld of the file, not %lld", name, (long long)config->section + 1,
				 (long long)number);
	return OK;
}

static enum status config_line(struct config *config, char *line)
{
	line += strspn(line, " \t\r");
	if (!*line || *line == '#')
		return OK;
	if (*line == '[')
		return config_header(config, line);
	size_t length = strcspn(line, " \t=");
	char *equals = line + length + strspn(line + length, " \t");
	if (*equals != '=' || length == 0)
		return error_set(ERR_USAGE, "expected 'name = value'");
	line[length] = '\0';
	equals++;
	struct json_document quoted = {0};
	const char *value;
	enum status status = config_line_value(equals + strspn(equals, " \t"), &quoted, &value);
	if (status == OK)
		status = config_set(config, line, value);
	json_release(&quoted);
	return status;
}

static enum status config_lines(struct config *config, const char *path, struct buffer *text)
{
	int number = 1;
	if (strlen(buffer_string(text)) != text->size)
		return error_set(ERR_DATA, "'%s': not a text file (it has NUL bytes)", path);
	for (char *line = text->data; line; number++) {
		char *end = strchr(line, '\n');
		if (end)
			*end = '\0';
		TRY(config_blame(config, number, config_line(config, line)));
		line = end ? end + 1 : NULL;
	}
	return OK;
}

static enum status read_text(struct options *options, const char *path, struct buffer *text, enum option_origin origin)
{
	struct config config = {.options = options, .path = path, .origin = origin, .section = -1};
	enum status status;
	TRY(memory_new(&config.seen, options->count, sizeof *config.seen, "the options"));
	const char *start = buffer_string(text) + strspn(buffer_string(text), " \t\r\n");
	status = *start == '{' ? config_json(&config, path, text) : config_lines(&config, path, text);
	free(config.seen);
	return status;
}

enum status option_config_read(struct options *options, const char *path)
{
	struct buffer text = {0};
	enum status status;
	TRY_GOTO(file_read(path, CONFIG_LIMIT, &text), done);
	if (text.size >= 3 && !memcmp(text.data, "\xEF\xBB\xBF", 3)) { /* the byte order mark that Windows editors write */
		text.size -= 3;
		memmove(text.data, text.data + 3, text.size + 1);
	}
	status = read_text(options, path, &text, ORIGIN_FILE);
done:
	buffer_release(&text);
	return status;
}

enum status options_read_recipe(struct options *options, const char *name, const char *text)
{
	struct buffer copy = {0};
	buffer_text(&copy, text);
	enum status status = buffer_status(&copy);
	if (status == OK)
		status = read_text(options, name, &copy, ORIGIN_RECIPE);
	buffer_release(&copy);
	return status;
}
