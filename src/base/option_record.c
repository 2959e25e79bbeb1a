/* The part of option.h about resumed runs. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/option_internal.h"

/* May the values have names: [NAME=]PATH? */
static bool has_names(const struct option *row)
{
	return row->value_name && row->value_name[0] == '[';
}

/* Makes a path or pattern absolute, so that it means the same from any folder; a name stays before it. "-" stays: standard input
 * cannot be read again. */
static enum status from_root(const struct option *row, const char *value, struct buffer *out)
{
	char folder[PATH_BYTES];
	const char *path = has_names(row) ? set_path(value) : value;
	buffer_clear(out);
	buffer_append(out, value, (size_t)(path - value));
	if (path[0] != '/' && strcmp(path, "-") != 0 && getcwd(folder, sizeof folder))
		buffer_format(out, "%s/", folder);
	buffer_text(out, path);
	return buffer_status(out);
}

static bool is_start(const struct option *row)
{
	return row->role == ROLE_START || row->role == ROLE_ENTRY;
}

static bool is_path(const struct option *row, const char *value)
{
	static const char *const names[] = {"PATH", "FILE", "FOLDER"};
	if (row->role == ROLE_SOURCE)
		return true;
	if (row->value_name && strcmp(row->value_name, "SIZE|PATH") == 0)
		return strpbrk(value, "/.") && file_exists(value); /* a size has neither */
	for (size_t i = 0; is_start(row) && row->value_name && i < sizeof names / sizeof *names; i++)
		if (strcmp(row->value_name, names[i]) == 0)
			return true;
	return false;
}

/* Whether two paths lead to the same place. */
static bool same_place(const char *a, const char *b)
{
	char *one = realpath(a, NULL), *other = realpath(b, NULL);
	bool same = one && other && strcmp(one, other) == 0;
	free(one);
	free(other);
	return same;
}

static void put_value(struct json_writer *writer, const char *key, const struct option *row, const char *value)
{
	struct buffer path = {0};
	if (is_path(row, value) && from_root(row, value, &path) == OK)
		value = buffer_string(&path);
	json_put_string(writer, key, value);
	buffer_release(&path);
}

/* Adds the paths of one option. */
static enum status add_sources(const struct option *row, const char *const *values, int64_t count, struct name_list *out)
{
	enum status status = OK;
	if (!row->name || row->role != ROLE_SOURCE || row->type != OPTION_LIST)
		return OK;
	for (int64_t i = 0; i < count && status == OK; i++)
		status = name_list_add(out, has_names(row) ? set_path(values[i]) : values[i]);
	return status;
}

enum status options_sources(const struct options *options, struct name_list *out)
{
	for (int i = 0; i < options->count; i++) {
		const struct option *row = &options->table[i];
		const struct option_list none = {0}, *list = row->type == OPTION_LIST ? option_field(options, i) : &none;
		TRY(add_sources(row, list->values, list->count, out));
	}
	for (int64_t k = 0; k < options->section_count; k++)
		for (int64_t i = 0; i < options->sections[k].count; i++) {
			const struct option_setting *setting = &options->sections[k].settings[i];
			TRY(add_sources(&options->table[setting->index], &setting->text, 1, out));
		}
	return OK;
}

void options_write_json(const struct options *options, struct json_writer *writer, const char *key, enum option_scope scope)
{
	json_open(writer, key, '{');
	options_write_members(options, writer, scope);
	json_close(writer);
}

void options_write_members(const struct options *options, struct json_writer *writer, enum option_scope scope)
{
	for (int i = 0; i < options->count; i++) {
		const struct option *row = &options->table[i];
		if (!row->name || row->role == ROLE_PLACE || !options->text[i] || !option_in_scope(row, scope))
			continue;
		if (row->role == ROLE_RUN && options->origin[i] < ORIGIN_RESUMED)
			continue;
		if (row->type == OPTION_LIST) {
			const struct option_list *list = option_field(options, i);
			json_open(writer, row->name, '[');
			for (int64_t k = 0; k < list->count; k++)
				put_value(writer, NULL, row, list->values[k]);
			json_close(writer);
		} else {
			put_value(writer, row->name, row, options->text[i]);
		}
	}
}

/* In a record, the list of sections is next to the options. */
static bool is_section_list(const struct options *options, const char *key)
{
	size_t length = options->section_name ? strlen(options->section_name) : 0;
	return length > 0 && !strncmp(key, options->section_name, length) && !strcmp(key + length, "s");
}

static bool same_value(const struct option *row, const char *a, const char *b)
{
	char one[SYNONYM_BYTES], other[SYNONYM_BYTES];
	double x, y;
	bool p, q;
	int64_t m, n;
	if (row->type == OPTION_NUMBER && option_parse_number(a, &x) && option_parse_number(b, &y))
		return x == y;
	if (row->type == OPTION_INTEGER && option_parse_integer(a, &m) && option_parse_integer(b, &n))
		return m == n;
	if (row->type == OPTION_FLAG && option_parse_flag(a, &p) && option_parse_flag(b, &q))
		return p == q;
	return !strcmp(option_synonym(row, a, one), option_synonym(row, b, other));
}

bool options_said(const struct options *options, const char *name)
{
	int index = options_find(options, name);
	const struct option *row = &options->table[index];
	bool repeats = options->origin[index] == ORIGIN_FILE && row->fallback && options->text[index] &&
		       same_value(row, options->text[index], row->fallback);
	return options_given(options, name) && !repeats;
}

bool options_asked(const struct options *options, const char *name)
{
	bool recorded = options->from_record && options_origin(options, name) == ORIGIN_FILE;
	return options_said(options, name) && !recorded;
}

/* Every command has a seed, and only records have it as a text. */
bool options_is_record(const struct json *root)
{
	const struct json *seed = json_member(root, "seed");
	return seed && seed->kind == JSON_STRING;
}

/* The recorded value as text; lists are joined as option_value_at() does. */
static enum status record_value(const struct json *value, const char *record_name, struct buffer *out)
{
	buffer_clear(out);
	if (value->kind == JSON_STRING)
		buffer_append(out, value->text, value->text_size);
	else if (value->kind != JSON_ARRAY)
		return error_set(ERR_DATA, "'%s': \"%s\" must be a string", record_name, value->key);
	for (const struct json *item = value->first_child; item; item = item->next) {
		if (item->kind != JSON_STRING)
			return error_set(ERR_DATA, "'%s': \"%s\" must hold strings", record_name, value->key);
		buffer_format(out, "%s%s", out->size ? " " : "", item->text);
	}
	return buffer_status(out);
}

/* Checks that the value given, on which the result depends, is the recorded one. `recorded` NULL: it was not given then. */
static enum status check_given(const struct options *options, int index, const char *recorded, const char *record_name,
			       struct buffer *scratch)
{
	const struct option *row = &options->table[index];
	struct buffer path = {0};
	const char *now = option_value_at(options, index, scratch);
	enum status status = OK;
	if (is_path(row, now) && from_root(row, now, &path) == OK)
		now = buffer_string(&path);
	if (!recorded || !(same_value(row, now, recorded) || (is_path(row, now) && same_place(now, recorded)))) {
		status = recorded ? error_set(ERR_STATE, "--%s is '%s', but '%s' was made with '%s'", row->name, now, record_name,
					      recorded)
				  : error_set(ERR_STATE, "--%s is '%s', but '%s' was made without it", row->name, now,
					      record_name);
		if (options->finished)
			error_hint("that run has finished: %s; to see what is there, leave --%s out", options->finished,
				   row->name);
		else
			error_hint("to resume that run, leave --%s out; otherwise give --fresh to start over, or choose another "
				   "--out",
				   row->name);
	}
	buffer_release(&path);
	return status;
}

/* Takes one option from a record. */
static enum status take_recorded(struct options *options, int index, const struct json *value, const char *recorded,
				 const char *record_name)
{
	enum status status = OK;
	if (options->table[index].type == OPTION_LIST) {
		for (const struct json *item = value->first_child; item && status == OK; item = item->next)
			status = option_set_at(options, index, item->text, ORIGIN_RESUMED);
	} else {
		status = option_set_at(options, index, recorded, ORIGIN_RESUMED);
	}
	if (status == ERR_USAGE) /* it is in a file, not on the command line */
		status = error_set(ERR_DATA, "'%s': %s", record_name, error_last()->message);
	return status;
}

/* Compares one option with the record or takes it from there; `value` is NULL if the record does not have it. */
static enum status resume_option(struct options *options, int index, const struct json *value, const char *record_name,
				 struct buffer *recorded, struct buffer *scratch)
{
	const struct option *row = &options->table[index];
	if (value)
		TRY(record_value(value, record_name, recorded));
	/* It was not set then, so the recipe did not have it either. */
	if (!value && (row->role == ROLE_RESULT || row->role == ROLE_START) && options->origin[index] == ORIGIN_RECIPE)
		options_forget(options, row->name);
	if (options->origin[index] < ORIGIN_FILE)
		return value ? take_recorded(options, index, value, buffer_string(recorded), record_name) : OK;
	if (row->role != ROLE_RESULT && row->role != ROLE_START)
		return OK;
	/* A run made before the option existed used its default. */
	return check_given(options, index, value ? buffer_string(recorded) : row->fallback, record_name, scratch);
}

/* Warns about a member of a record that no option of this version reads. */
static void say_unknown(const struct options *options, const char *name, const char *record_name)
{
	const struct option_foreign *removed = option_foreign_find(options, name, strlen(name));
	if (removed)
		log_warning("'%s': --%s is ignored: %s", record_name, name, removed->why);
	else
		log_warning("'%s': this version has no option \"%s\"", record_name, name);
}

/* Finds the member of the record for each option. */
static enum status find_members(const struct options *options, const struct json *record, const char *record_name, bool say,
				const struct json ***out)
{
	if (record->kind != JSON_OBJECT)
		return error_set(ERR_DATA, "'%s': the record of the options must be an object", record_name);
	TRY(memory_new(out, options->count, sizeof **out, "the options"));
	for (const struct json *member = record->first_child; member; member = member->next) {
		int index = options_find(options, member->key);
		if (index >= 0)
			(*out)[index] = member;
		else if (say && !is_section_list(options, member->key))
			say_unknown(options, member->key, record_name);
	}
	return OK;
}

enum status options_resume(struct options *options, const struct json *record, const char *record_name, enum option_scope scope)
{
	const struct json **found;
	struct buffer recorded = {0}, scratch = {0};
	enum status status = OK;
	/* The record of a run with a single phase is read a second time for the phase. */
	bool again = scope == SCOPE_SECTION && options_is_record(record);
	TRY(find_members(options, record, record_name, !again, &found));
	for (int i = 0; i < options->count; i++) {
		const struct option *row = &options->table[i];
		if (row->name && row->role != ROLE_PLACE && !is_start(row) && option_in_scope(row, scope))
			TRY_GOTO(resume_option(options, i, found[i], record_name, &recorded, &scratch), done);
	}
done:
	buffer_release(&recorded);
	buffer_release(&scratch);
	free(found);
	return status;
}

enum status options_resume_start(struct options *options, const struct json *record, const char *record_name, bool trained)
{
	const struct json **found;
	struct buffer recorded = {0}, scratch = {0};
	enum status status = OK;
	bool known = false;
	TRY(find_members(options, record, record_name, false, &found)); /* options_resume() speaks of unknown ones */
	for (int i = 0; i < options->count; i++)
		known |= options->table[i].name && is_start(&options->table[i]) && found[i];
	for (int i = 0; known && i < options->count; i++) {
		const struct option *row = &options->table[i];
		/* What a recipe says now may differ from what it, or another recipe, said when the run began. */
		if (row->name && is_start(row) &&
		    (!trained || options->origin[i] >= ORIGIN_FILE || options->origin[i] == ORIGIN_RECIPE))
			TRY_GOTO(resume_option(options, i, found[i], record_name, &recorded, &scratch), done);
	}
done:
	buffer_release(&recorded);
	buffer_release(&scratch);
	free(found);
	return status;
}

enum status options_note_finished(struct options *options, const char *hint)
{
	return option_copy_text(options, hint, &options->finished);
}

enum status options_note_edits(const struct options *options, const struct json *record, const struct json *shown,
			       const char *shown_name)
{
	struct buffer then = {0}, now = {0};
	enum status status = OK;
	for (int i = 0; i < options->count && status == OK; i++) {
		const struct option *row = &options->table[i];
		const struct json *recorded = row->name ? json_member(record, row->name) : NULL;
		const struct json *edited = recorded ? json_member(shown, row->name) : NULL;
		if (!edited || (row->role != ROLE_RESULT && !is_start(row)))
			continue;
		status = record_value(recorded, "the record", &then);
		if (status != OK ||
		    (record_value(edited, shown_name, &now) == OK && same_value(row, buffer_string(&now), buffer_string(&then))))
			continue;
		log_warning("'%s' was edited, but is only a copy of the run's settings: --%s stays '%s', and the file is written "
			    "again",
			    shown_name, row->name, buffer_string(&then));
	}
	buffer_release(&then);
	buffer_release(&now);
	return status;
}
