/* predictions.json, nbest_predictions.json and null_odds.json, in the form of Python's json.dumps(..., indent=4): ASCII only,
 * numbers as repr() writes them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/file.h"
#include "base/owned_files.h"
#include "tasks/squad/squad_answers.h"
#include "text/utf8.h"

static void put_text(struct buffer *out, const char *text)
{
	size_t size = strlen(text);
	buffer_char(out, '"');
	for (size_t at = 0; at < size;) {
		uint32_t c;
		at += utf8_decode(text + at, size - at, &c);
		static const char plain[] = "\"\\\n\r\t\b\f", letters[] = "\"\\nrtbf";
		const char *escaped = c && c < 0x80 ? strchr(plain, (int)c) : NULL;
		if (escaped)
			buffer_format(out, "\\%c", letters[escaped - plain]);
		else if (c >= 0x20 && c < 0x80)
			buffer_char(out, (char)c);
		else if (c == UTF8_INVALID)
			buffer_text(out, "\\ufffd");
		else if (c < 0x10000)
			buffer_format(out, "\\u%04" PRIx32, c);
		else
			buffer_format(out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xD800 + ((c - 0x10000) >> 10),
				      0xDC00 + ((c - 0x10000) & 0x3FF));
	}
	buffer_char(out, '"');
}

static void put_number(struct buffer *out, double value)
{
	if (isfinite(value))
		buffer_double(out, value);
	else
		buffer_text(out, "null");
}

/* Puts the comma or brace before a member of the outermost object, and its name. */
static void put_key(struct buffer *out, const char *key)
{
	buffer_text(out, out->size > 0 ? ",\n    " : "{\n    ");
	put_text(out, key);
	buffer_text(out, ": ");
}

void squad_files_add(struct squad_files *files, const char *question_id, const struct squad_result *result, bool version_2)
{
	put_key(&files->predictions, question_id);
	put_text(&files->predictions, result->prediction);
	put_key(&files->n_best, question_id);
	buffer_char(&files->n_best, '[');
	for (int32_t i = 0; i < result->count; i++) {
		const struct squad_choice *choice = &result->choices[i];
		buffer_text(&files->n_best, i > 0 ? ",\n        {\n" : "\n        {\n");
		buffer_text(&files->n_best, "            \"text\": ");
		put_text(&files->n_best, choice->text);
		buffer_text(&files->n_best, ",\n            \"probability\": ");
		put_number(&files->n_best, choice->probability);
		buffer_text(&files->n_best, ",\n            \"start_logit\": ");
		put_number(&files->n_best, choice->start_logit);
		buffer_text(&files->n_best, ",\n            \"end_logit\": ");
		put_number(&files->n_best, choice->end_logit);
		buffer_text(&files->n_best, "\n        }");
	}
	buffer_text(&files->n_best, "\n    ]");
	if (!version_2)
		return;
	put_key(&files->null_odds, question_id);
	put_number(&files->null_odds, result->null_odds);
}

static enum status write_one(const struct buffer *members, const char *folder, const char *prefix, const char *name)
{
	struct buffer text = {0};
	char path[PATH_BYTES], full_name[256];
	snprintf(full_name, sizeof full_name, "%.100s%s", prefix, name);
	enum status status = path_join(path, folder, full_name);
	buffer_append(&text, buffer_string(members), members->size);
	buffer_text(&text, members->size > 0 ? "\n}\n" : "{}\n");
	if (status == OK)
		status = buffer_status(members);
	if (status == OK)
		status = buffer_status(&text);
	if (status == OK)
		status = owned_file_write(path, text.data, text.size);
	buffer_release(&text);
	return status;
}

enum status squad_files_write(struct squad_files *files, const char *folder, const char *prefix, bool version_2)
{
	TRY(write_one(&files->predictions, folder, prefix, "predictions.json"));
	TRY(write_one(&files->n_best, folder, prefix, "nbest_predictions.json"));
	return version_2 ? write_one(&files->null_odds, folder, prefix, "null_odds.json") : OK;
}

void squad_files_release(struct squad_files *files)
{
	buffer_release(&files->predictions);
	buffer_release(&files->n_best);
	buffer_release(&files->null_odds);
}
