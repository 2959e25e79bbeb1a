/* The part of option.h that is about config files. */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/memory.h"
#include "base/option_internal.h"

#define CONFIG_LIMIT ((size_t)1 << 20)

/* Puts where it happened before the message of the last error, and keeps its hint. */
static enum status locate_error(const char *path, int line)
{
	struct error error = *error_last();
	enum status status = line ? error_set(error.status, "'%s' line %d: %s", path, line, error.message)
	                          : error_set(error.status, "'%s': %s", path, error.message);
	if (error.hint[0])
		error_hint("%s", error.hint);
	return status;
}

/* One setting of a config file. `seen` marks lists that this file has begun: an earlier file's values go. */
static enum status config_set(struct options *options, const char *name, const char *value, bool *seen)
{
	int index = options_find(options, name);
	if (index >= 0 && options->table[index].type == OPTION_LIST && !seen[index]) {
		seen[index] = true;
		if (options->origin[index] == ORIGIN_FILE)
			option_list_clear(options, index);
	}
	return options_set(options, name, value, ORIGIN_FILE);
}

static enum status config_json_value(struct options *options, const struct json *value, const char *key,
                                     bool *seen)
{
	switch (value->kind) {
	case JSON_STRING:
		if (strlen(value->text) != value->text_size)
			return error_set(ERR_USAGE, "\"%s\" has a NUL", key);
		return config_set(options, key, value->text, seen);
	case JSON_NUMBER:
		return config_set(options, key, value->text, seen);
	case JSON_BOOL:
		return config_set(options, key, value->boolean ? "true" : "false", seen);
	default:
		return error_set(ERR_USAGE, "\"%s\" must be a text, a number, true or false", key);
	}
}

static enum status config_json(struct options *options, const char *path, const struct buffer *text,
                               bool *seen)
{
	struct json_document document;
	TRY(json_parse(&document, path, buffer_string(text), text->size));
	enum status status = OK;
	for (const struct json *member = document.root->first_child; member && status == OK;
	     member = member->next) {
		int index = options_find(options, member->key);
		if (member->kind == JSON_ARRAY && index >= 0 && options->table[index].type == OPTION_LIST) {
			for (const struct json *item = member->first_child; item && status == OK;
			     item = item->next)
				status = config_json_value(options, item, member->key, seen);
		} else {
			status = config_json_value(options, member, member->key, seen);
		}
	}
	json_release(&document);
	return status == OK ? OK : locate_error(path, 0);
}

/* The value after '=': to the end of the line, or to a '#' that stands alone; in double quotes as in JSON. */
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

static enum status config_line(struct options *options, char *line, bool *seen)
{
	line += strspn(line, " \t\r");
	if (!*line || *line == '#')
		return OK;
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
		status = config_set(options, line, value, seen);
	json_release(&quoted);
	return status;
}

static enum status config_lines(struct options *options, const char *path, struct buffer *text, bool *seen)
{
	int number = 1;
	if (strlen(buffer_string(text)) != text->size)
		return error_set(ERR_DATA, "'%s': not a text file (it has NUL bytes)", path);
	for (char *line = text->data; line; number++) {
		char *end = strchr(line, '\n');
		if (end)
			*end = '\0';
		if (config_line(options, line, seen) != OK)
			return locate_error(path, number);
		line = end ? end + 1 : NULL;
	}
	return OK;
}

enum status option_config_read(struct options *options, const char *path)
{
	struct buffer text = {0};
	bool *seen = NULL;
	enum status status;
	TRY_GOTO(file_read(path, CONFIG_LIMIT, &text), done);
	TRY_GOTO(memory_new(&seen, options->count, sizeof *seen, "the options"), done);
	const char *start = buffer_string(&text) + strspn(buffer_string(&text), " \t\r\n");
	status = *start == '{' ? config_json(options, path, &text, seen)
	                       : config_lines(options, path, &text, seen);
done:
	free(seen);
	buffer_release(&text);
	return status;
}
