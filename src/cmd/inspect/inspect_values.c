/* Copies the JSON contents of files into what `bertc inspect` shows. */
#include <stdint.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "cmd/inspect/inspect.h"

void inspect_put_json(struct json_writer *writer, const char *key, const struct json *value)
{
	switch (value->kind) {
	case JSON_NULL: json_put_null(writer, key); break;
	case JSON_BOOL: json_put_bool(writer, key, value->boolean); break;
	case JSON_NUMBER:
		if (value->is_integer)
			json_put_integer(writer, key, value->integer);
		else
			json_put_double(writer, key, value->number);
		break;
	case JSON_STRING: json_put_text(writer, key, value->text, value->text_size); break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		json_open(writer, key, value->kind == JSON_ARRAY ? '[' : '{');
		for (const struct json *child = value->first_child; child; child = child->next)
			inspect_put_json(writer, child->key, child);
		json_close(writer);
		break;
	}
}

enum status inspect_put_file(struct json_writer *writer, const char *key, const char *folder, const char *name)
{
	char path[PATH_BYTES];
	struct json_document document;
	TRY(path_join(path, folder, name));
	if (!file_exists(path))
		return OK;
	TRY(json_read(&document, path, INSPECT_JSON_LIMIT));
	inspect_put_json(writer, key, document.root);
	json_release(&document);
	return OK;
}

enum status inspect_put_metrics(const char *path, struct json_writer *writer)
{
	struct buffer text = {0};
	TRY(file_read(path, (size_t)1 << 32, &text));
	const char *line = buffer_string(&text), *end = line + text.size;
	const char *last[2] = {NULL, NULL};
	size_t size[2] = {0, 0};
	int64_t lines = 0;
	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		if (!newline)
			break;
		size_t length = (size_t)(newline - line);
		int kind = memmem(line, length, "\"eval_", 6) != NULL;
		/* Events and the ranks' times are neither steps nor evaluations. */
		if (!memmem(line, length, "\"event\":", 8) && !memmem(line, length, "\"ranks\":", 8)) {
			last[kind] = line;
			size[kind] = length;
		}
		line = newline + 1;
		lines++;
	}
	json_put_integer(writer, "lines", lines);
	enum status status = OK;
	for (int kind = 0; kind < 2 && status == OK; kind++) {
		struct json_document document;
		if (!last[kind])
			continue;
		status = json_parse(&document, path, last[kind], size[kind]);
		if (status == OK) {
			inspect_put_json(writer, kind ? "last_evaluation" : "last_step", document.root);
			json_release(&document);
		}
	}
	buffer_release(&text);
	return status;
}
