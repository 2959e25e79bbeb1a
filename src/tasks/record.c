/* Writes and reads bertc_task.json. */
#include "tasks/record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/layouts.h"

/* ---- Writing ---- */

static void put_columns(struct json_writer *writer, const struct column_choice *columns)
{
	json_open(writer, "columns", '{');
	if (columns->text)
		json_put_string(writer, "text", columns->text);
	if (columns->pair)
		json_put_string(writer, "pair", columns->pair);
	if (columns->label)
		json_put_string(writer, "label", columns->label);
	json_close(writer);
}

/* A sample of the training texts' hashes. */
static void put_rows(struct json_writer *writer, const struct row_hashes *rows)
{
	struct buffer hex = {0};
	if (rows->count == 0)
		return;
	for (int64_t i = 0; i < rows->count; i++)
		buffer_format(&hex, "%016" PRIx64, rows->hashes[i]);
	json_put_bool(writer, "training_rows_sampled", rows->limit != UINT64_MAX);
	json_put_string(writer, "training_rows", buffer_string(&hex));
	buffer_release(&hex);
}

enum status task_record_write(const struct task_state *state, struct buffer *out)
{
	const struct task_settings *settings = &state->settings;
	struct json_writer writer = {.out = out, .indent = 2};
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "task", state->task->name);
	if (settings->layout)
		json_put_string(&writer, "layout", settings->layout->name);
	json_put_integer(&writer, "max_seq_length", settings->max_seq_length);
	if (state->task->put_record)
		state->task->put_record(state->own, &writer);
	if (settings->negative_label)
		json_put_string(&writer, "negative_label", settings->negative_label);
	if (settings->long_texts > WINDOWS_NONE) {
		json_put_string(&writer, "long_texts", long_texts_words[settings->long_texts]);
		if (settings->doc_stride > 0)
			json_put_integer(&writer, "doc_stride", settings->doc_stride);
	}
	calibration_put_record(&state->calibration, &writer);
	put_columns(&writer, &settings->trained);
	put_rows(&writer, &state->trained_rows);
	json_close(&writer);
	buffer_char(out, '\n');
	return buffer_status(out);
}

/* ---- Reading ---- */

enum status task_record_find(const struct json *record, const char *name, const struct task **task, const struct layout **layout)
{
	const char *kind = NULL, *published = NULL;
	TRY(json_get_string(record, name, "task", &kind));
	TRY(json_get_string(record, name, "layout", &published));
	if (!kind)
		return error_set(ERR_DATA, "'%s': \"task\" is missing", name);
	return task_find(published ? published : kind, task, layout);
}

static enum status read_columns(const struct json *columns, const char *name, struct column_choice *out)
{
	TRY(json_get_string(columns, name, "text", &out->text));
	TRY(json_get_string(columns, name, "pair", &out->pair));
	return json_get_string(columns, name, "label", &out->label);
}

static enum status read_rows(const struct json *record, const char *name, struct row_hashes *out)
{
	const char *text = NULL;
	bool sampled = false;
	TRY(json_get_string(record, name, "training_rows", &text));
	TRY(json_get_bool(record, name, "training_rows_sampled", &sampled));
	if (!text)
		return OK;
	size_t size = strlen(text);
	if (size == 0 || size % 16 != 0 || strspn(text, "0123456789abcdef") != size)
		return error_set(ERR_DATA, "'%s': \"training_rows\" are not hashes", name);
	row_hashes_release(out);
	TRY(memory_new(&out->hashes, (int64_t)(size / 16), sizeof *out->hashes, "hashes of examples"));
	for (; out->count < (int64_t)(size / 16); out->count++) {
		char digits[17] = "";
		memcpy(digits, text + 16 * out->count, 16);
		out->hashes[out->count] = strtoull(digits, NULL, 16);
	}
	out->limit = sampled ? out->hashes[out->count - 1] : UINT64_MAX;
	return OK;
}

static enum status read_windows(const struct json *record, const char *name, struct task_settings *settings)
{
	const char *how = NULL;
	TRY(json_get_string(record, name, "long_texts", &how));
	TRY(json_get_integer(record, name, "doc_stride", 0, 65536, &settings->doc_stride));
	for (unsigned i = WINDOWS_NONE; how && i <= WINDOWS_MAX; i++)
		if (strcmp(how, long_texts_words[i]) == 0) {
			settings->long_texts = i;
			return OK;
		}
	return how ? error_set(ERR_DATA, "'%s': unknown \"long_texts\" '%.40s'", name, how) : OK;
}

enum status task_record_read(const struct json *record, const char *name, struct task_state *state)
{
	struct task_settings *settings = &state->settings;
	const struct json *columns = json_member(record, "columns");
	int64_t length = settings->max_seq_length;
	TRY(json_get_integer(record, name, "max_seq_length", 0, INT32_MAX, &length));
	settings->max_seq_length = (int32_t)length;
	TRY(json_get_string(record, name, "negative_label", &settings->negative_label));
	TRY(read_rows(record, name, &state->trained_rows));
	TRY(read_windows(record, name, settings));
	TRY(calibration_read_record(record, name, &state->calibration));
	if (state->task->read_record)
		TRY(state->task->read_record(record, name, state->own));
	return columns ? read_columns(columns, name, &settings->trained) : OK;
}
