/* Writes evaluation results, predictions, and submissions, and knows their names. */
#include "tasks/results.h"

#include <ctype.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "base/json_internal.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/owned_files.h"
#include "tasks/layouts.h"

#define KEY_BYTES 160
/* Numbers of this size and above are written with an exponent (NumPy 1). */
#define POSITIONAL_BELOW 1e16f

/* Result files: the beginning and the end of their names; there may be "_" and a number in between. */
static const char *const result_files[][2] = {
	{"eval_results", ".json"},      {"eval_results", ".txt"},  {"test_results", ".tsv"},
	{"test_results", ".json"},      {"test_results", ".txt"},  {"predict", ".txt"},
	{"predictions", ".txt"},        {"predictions", ".json"},  {"nbest_predictions", ".json"},
	{"fold_predictions", ".jsonl"}, {"fold_results", ".json"}, {"null_odds", ".json"},
	{"rewritten", ".tsv"},
};

static bool is_submission(const char *name)
{
	int count;
	const struct layout *layouts = layouts_all(&count);
	for (int i = 0; i < count; i++)
		for (int k = 0; k < 2; k++)
			if (layouts[i].test[k].submission && strcmp(name, layouts[i].test[k].submission) == 0)
				return true;
	return false;
}

bool results_is_file(const char *name)
{
	for (size_t i = 0; i < sizeof result_files / sizeof *result_files; i++) {
		size_t begin = strlen(result_files[i][0]);
		if (strncmp(name, result_files[i][0], begin) != 0)
			continue;
		const char *rest = name + begin;
		rest += *rest == '_' && isdigit((unsigned char)rest[1]) ? 1 + strspn(rest + 1, "0123456789") : 0;
		if (strcmp(rest, result_files[i][1]) == 0)
			return true;
	}
	return is_submission(name);
}

/* An entry of the files of evaluation results. */
struct result_value {
	char key[KEY_BYTES];
	double number; /* NaN: null */
	bool is_integer;
	const char *text;                   /* instead of a number */
	const struct class_scores *classes; /* instead of a number */
};

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct result_value *)a)->key, ((const struct result_value *)b)->key);
}

static void name_value(struct result_value *value, const char *kind, const char *set, const char *name)
{
	snprintf(value->key, sizeof value->key, "%s_%.60s%s%.60s", kind, set, *set ? "_" : "", name);
}

static void collect(const struct result_facts *facts, struct result_value *values, int64_t *out_count)
{
	int64_t count = 0;
	for (int s = 0; s < facts->count; s++) {
		const struct result_set *set = &facts->sets[s];
		for (int i = 0; i < set->measures->count; i++) {
			const struct measure *measure = &set->measures->item[i];
			struct result_value *value = &values[count++];
			*value = (struct result_value){.number = measure->value, .is_integer = measure->unit == UNIT_COUNT};
			name_value(value, facts->kind, set->name, measure->name);
		}
		if (set->classes && set->classes->count > 0) {
			values[count] = (struct result_value){.classes = set->classes};
			name_value(&values[count++], facts->kind, set->name, "classes");
		}
	}
	if (facts->global_step >= 0) {
		values[count++] =
			(struct result_value){.key = "global_step", .number = (double)facts->global_step, .is_integer = true};
		values[count++] = (struct result_value){.key = "loss", .number = facts->loss};
	}
	qsort(values, (size_t)count, sizeof *values, by_key);
	*out_count = count;
}

void results_log(const char *set, const struct measures *measures)
{
	for (int i = 0; i < measures->count; i++) {
		char text[MEASURE_BYTES];
		log_result("%s%s%s", set, *set ? " " : "", measure_text(text, &measures->item[i]));
	}
}

void results_put_classes(struct json_writer *writer, const char *key, const struct class_scores *classes)
{
	if (classes->count == 0)
		return;
	json_open(writer, key, '{');
	for (int32_t i = 0; i < classes->count; i++) {
		const struct class_score *score = &classes->scores[i];
		json_open(writer, classes->names[i], '{');
		json_put_double(writer, "precision", score->precision);
		json_put_double(writer, "recall", score->recall);
		json_put_double(writer, "f1", score->f1);
		json_put_integer(writer, "support", score->support);
		json_close(writer);
	}
	json_close(writer);
}

static void put_value(struct json_writer *writer, const char *key, const struct result_value *value)
{
	if (value->classes)
		results_put_classes(writer, key, value->classes);
	else if (value->text)
		json_put_string(writer, key, value->text);
	else if (value->is_integer && isfinite(value->number))
		json_put_integer(writer, key, (int64_t)value->number);
	else
		json_put_double(writer, key, value->number);
}

static enum status write_buffer(const char *folder, const char *name, struct buffer *text)
{
	char path[PATH_BYTES];
	enum status status = buffer_status(text);
	if (status == OK)
		status = path_join(path, folder, name);
	if (status == OK)
		status = owned_file_write(path, text->data, text->size);
	buffer_release(text);
	return status;
}

static enum status write_text(const char *folder, const char *kind, const struct result_value *values, int64_t count)
{
	char name[32];
	struct buffer out = {0};
	struct json_writer writer = {.out = &out};
	for (int64_t i = 0; i < count; i++) {
		if (values[i].text || values[i].classes)
			continue;
		buffer_format(&out, "%s = ", values[i].key);
		writer.has_member[0] = false; /* just a value, without a comma */
		put_value(&writer, NULL, &values[i]);
		buffer_char(&out, '\n');
	}
	snprintf(name, sizeof name, "%s_results.txt", kind);
	return write_buffer(folder, name, &out);
}

static enum status write_json(const char *folder, const char *kind, const struct result_value *values, int64_t count)
{
	char name[32];
	struct buffer out = {0};
	struct json_writer writer = {.out = &out, .indent = 4};
	json_open(&writer, NULL, '{');
	for (int64_t i = 0; i < count; i++)
		put_value(&writer, values[i].key, &values[i]);
	json_close(&writer);
	buffer_char(&out, '\n');
	snprintf(name, sizeof name, "%s_results.json", kind);
	return write_buffer(folder, name, &out);
}

enum status results_write_evaluation(const char *folder, const struct result_facts *facts)
{
	struct result_value *values;
	int64_t count;
	TRY(memory_new(&values, (int64_t)facts->count * (MEASURES_MOST + 1) + 3, sizeof *values, "results"));
	collect(facts, values, &count);
	if (facts->selected_on) {
		values[count++] = (struct result_value){.key = "selected_on", .text = facts->selected_on};
		qsort(values, (size_t)count, sizeof *values, by_key);
	}
	enum status status = write_json(folder, facts->kind, values, count);
	if (status == OK)
		status = write_text(folder, facts->kind, values, count);
	free(values);
	return status;
}

enum status results_remove_evaluation(const char *folder, const char *kind)
{
	static const char *const endings[] = {".json", ".txt"};
	for (int i = 0; i < 2; i++) {
		char path[PATH_BYTES], name[32];
		snprintf(name, sizeof name, "%s_results%s", kind, endings[i]);
		TRY(path_join(path, folder, name));
		TRY(owned_file_remove(path));
	}
	return OK;
}

enum status results_remove_test(const char *folder)
{
	struct name_list names = {0};
	enum status status = file_is_folder(folder) ? folder_list(folder, &names) : OK;
	for (int64_t i = 0; i < names.count && status == OK; i++) {
		char path[PATH_BYTES];
		if (!results_is_file(names.names[i]) || strncmp(names.names[i], "eval_", 5) == 0)
			continue;
		status = path_join(path, folder, names.names[i]);
		if (status == OK)
			status = owned_file_remove(path);
	}
	name_list_release(&names);
	return status;
}

/* The fewest decimal digits that read back as the value (positive, finite), and the exponent of the first digit. */
static void shortest_digits(float value, char digits[12], int *out_exponent)
{
	for (int precision = 0; precision <= 8; precision++) {
		char text[40], plain[40];
		int count = 0;
		snprintf(text, sizeof text, "%.*e", precision, (double)value);
		const char *exponent = strchr(text, 'e');
		for (const char *p = text; p < exponent; p++)
			if (isdigit((unsigned char)*p)) /* the decimal point depends on the locale */
				digits[count++] = *p;
		digits[count] = '\0';
		*out_exponent = (int)strtol(exponent + 1, NULL, 10);
		snprintf(plain, sizeof plain, "%se%d", digits, *out_exponent - (count - 1));
		if (strtof_l(plain, NULL, json_locale()) == value)
			break;
	}
	size_t size = strlen(digits);
	while (size > 1 && digits[size - 1] == '0')
		digits[--size] = '\0';
}

void results_put_float(struct buffer *out, float value)
{
	char digits[12];
	int exponent;

	if (isnan(value)) {
		buffer_text(out, "nan");
		return;
	}
	if (signbit(value))
		buffer_char(out, '-');
	value = fabsf(value);
	if (isinf(value)) {
		buffer_text(out, "inf");
		return;
	}
	shortest_digits(value, digits, &exponent);
	int count = (int)strlen(digits);
	if (value == 0) {
		buffer_text(out, "0.0");
	} else if ((double)value < 1e-4 || value >= POSITIONAL_BELOW) {
		buffer_format(out, "%c%s%se%c%02d", digits[0], count > 1 ? "." : "", digits + 1, exponent < 0 ? '-' : '+',
			      abs(exponent));
	} else if (exponent < 0) {
		buffer_format(out, "0.%.*s%s", -exponent - 1, "000", digits);
	} else if (count <= exponent + 1) {
		buffer_format(out, "%s%.*s.0", digits, exponent + 1 - count, "000000000000000");
	} else {
		buffer_format(out, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
	}
}

static enum status finish(const char *path, struct buffer *out)
{
	enum status status = buffer_status(out);
	if (status == OK)
		status = owned_file_write(path, out->data, out->size);
	buffer_release(out);
	return status;
}

enum status results_write_classes(const char *path, const int32_t *classes, int64_t count)
{
	struct buffer out = {0};
	for (int64_t i = 0; i < count; i++)
		buffer_format(&out, "%d\n", (int)classes[i]);
	return finish(path, &out);
}

void results_put_values(struct buffer *out, const float *values, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		if (i > 0)
			buffer_char(out, '\t');
		results_put_float(out, values[i]);
	}
}

void results_put_cell(struct buffer *out, const char *text)
{
	for (; *text; text++)
		buffer_char(out, strchr("\t\n\r", *text) ? ' ' : *text);
}

enum status results_write_values(const char *path, const float *values, int64_t count, int64_t width)
{
	struct buffer out = {0};
	for (int64_t i = 0; i < count; i++) {
		results_put_values(&out, values + i * width, width);
		buffer_char(&out, '\n');
	}
	return finish(path, &out);
}

static void put_index(struct buffer *out, const char *const *ids, int64_t row)
{
	if (ids)
		buffer_text(out, ids[row]);
	else
		buffer_format(out, "%" PRId64, row);
	buffer_char(out, '\t');
}

enum status results_write_submission(const char *path, const char *const *ids, const char *const *labels, int64_t count)
{
	struct buffer out = {0};
	buffer_text(&out, "index\tprediction\n");
	for (int64_t i = 0; i < count; i++) {
		put_index(&out, ids, i);
		buffer_text(&out, labels[i]);
		buffer_char(&out, '\n');
	}
	return finish(path, &out);
}

enum status results_write_submitted_numbers(const char *path, const char *const *ids, const float *values, int64_t count)
{
	struct buffer out = {0};
	buffer_text(&out, "index\tprediction\n");
	for (int64_t i = 0; i < count; i++) {
		put_index(&out, ids, i);
		buffer_format(&out, "%.3f\n", (double)values[i]);
	}
	return finish(path, &out);
}

enum status results_write_tags(const char *path, const struct conll *conll, const char *const *tags)
{
	struct buffer out = {0};
	int64_t document = 0;
	for (int64_t s = 0; s <= conll->sentence_count; s++) {
		for (; document < conll->document_count && conll->documents[document].first_sentence == s; document++)
			buffer_format(&out, "%s\n\n", conll->documents[document].line);
		if (s == conll->sentence_count)
			break;
		for (int64_t t = conll->sentence_starts[s]; t < conll->sentence_starts[s + 1]; t++) {
			for (int32_t c = 0; c < conll->column_count; c++) {
				results_put_cell(&out, conll->fields[t * conll->column_count + c]);
				buffer_char(&out, conll->separator);
			}
			results_put_cell(&out, tags[t]);
			buffer_char(&out, '\n');
		}
		buffer_char(&out, '\n');
	}
	return finish(path, &out);
}
