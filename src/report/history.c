/* Stores what a run has logged in columns, thins it when it grows, and reads it back from metrics.jsonl. */
#include "report/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

/* When the steps reach this many rows, neighboring rows are merged in pairs. Curves would not show more points anyway, and memory
 * stays bounded however long the run is. */
#define ROWS_MAX (1 << 17)

static const char *const common_names[HISTORY_COMMON] = {
	[HISTORY_STEP] = "step",
	[HISTORY_TOKENS] = "tokens",
	[HISTORY_SECONDS] = "seconds",
	[HISTORY_SKIPPED_STEPS] = "skipped_steps",
	[HISTORY_PHASE] = "phase",
	[HISTORY_LOSS] = "loss",
	[HISTORY_LEARNING_RATE] = "learning_rate",
	[HISTORY_GRAD_NORM] = "grad_norm",
	[HISTORY_TOKENS_PER_SECOND] = "tokens_per_second",
	[HISTORY_SHARE_OF_GEMM] = "share_of_gemm",
};

static double number(const struct json *object, const char *key)
{
	const struct json *value = json_member(object, key);
	return value && value->kind == JSON_NUMBER ? value->number : NAN;
}

static void copy_text(char *out, size_t size, const struct json *object, const char *key)
{
	const struct json *value = json_member(object, key);
	snprintf(out, size, "%s", value && value->kind == JSON_STRING ? value->text : "");
}

int history_column(const struct history *history, const char *name)
{
	for (int c = 0; c < HISTORY_COMMON; c++)
		if (strcmp(common_names[c], name) == 0)
			return c;
	for (int c = HISTORY_COMMON; c < history->column_count; c++)
		if (strcmp(history->names[c], name) == 0)
			return c;
	return -1;
}

static int add_column(struct history *history, const char *name)
{
	int column = history_column(history, name);
	if (history->column_count == 0)
		for (; history->column_count < HISTORY_COMMON; history->column_count++)
			snprintf(history->names[history->column_count], HISTORY_NAME, "%s", common_names[history->column_count]);
	if (column >= 0 || history->column_count == HISTORY_COLUMNS || strlen(name) >= HISTORY_NAME)
		return column;
	snprintf(history->names[history->column_count], HISTORY_NAME, "%s", name);
	return history->column_count++;
}

double history_value(const struct history_table *table, int64_t row, int column)
{
	return column >= 0 && table->values[column] ? table->values[column][row] : NAN;
}

bool history_has(const struct history_table *table, int column)
{
	for (int64_t i = 0; i < table->count; i++)
		if (isfinite(history_value(table, i, column)))
			return true;
	return false;
}

/* Adds a row without values. */
static enum status add_row(struct history_table *table)
{
	int64_t capacity = table->capacity;
	if (table->count == capacity) {
		capacity = capacity ? 2 * capacity : 64;
		for (int c = 0; c < HISTORY_COLUMNS; c++) {
			int64_t old = table->capacity;
			if (table->values[c])
				TRY(memory_grow(&table->values[c], &old, capacity, sizeof(double), "history"));
		}
		table->capacity = capacity;
	}
	for (int c = 0; c < HISTORY_COLUMNS; c++)
		if (table->values[c])
			table->values[c][table->count] = NAN;
	table->count++;
	return OK;
}

/* Sets a value in the last row. */
static enum status set_value(struct history_table *table, int column, double value)
{
	if (column < 0 || (isnan(value) && !table->values[column]))
		return OK;
	if (!table->values[column]) {
		TRY(memory_new(&table->values[column], table->capacity, sizeof(double), "history"));
		for (int64_t i = 0; i < table->count; i++)
			table->values[column][i] = NAN;
	}
	table->values[column][table->count - 1] = value;
	return OK;
}

/* Halves the number of rows: for positions and counters, keeps the later value of each pair; for the rest, the mean. */
static void thin(struct history_table *table)
{
	table->count /= 2;
	for (int c = 0; c < HISTORY_COLUMNS; c++) {
		double *values = table->values[c];
		for (int64_t i = 0; values && i < table->count; i++) {
			double a = values[2 * i], b = values[2 * i + 1];
			bool latest = c <= HISTORY_PHASE || !isfinite(a);
			values[i] = latest ? b : isfinite(b) ? 0.5 * (a + b) : a;
		}
	}
}

/* A loss of next sentences that is exactly 0 stands for a line without pairs, as in the first phase of many runs: it has no
 * accuracy of them either. */
static bool is_missing(const struct json *object, const char *prefix, const char *name)
{
	char loss[512];
	snprintf(loss, sizeof loss, "%.450snsp_loss", prefix);
	return strncmp(name, "nsp_", 4) == 0 && number(object, loss) == 0;
}

static enum status add_step(struct history *history, const struct json *object)
{
	struct history_table *table = &history->steps;
	if (table->count == ROWS_MAX)
		thin(table);
	TRY(add_row(table));
	for (const struct json *item = object->first_child; item; item = item->next)
		if (item->kind == JSON_NUMBER && !is_missing(object, "", item->key))
			TRY(set_value(table, add_column(history, item->key), item->number));
	return OK;
}

int history_set(struct history *history, const char *name)
{
	for (int i = 0; i < history->set_count; i++)
		if (strncmp(history->sets[i], name, sizeof history->sets[i] - 1) == 0)
			return i;
	if (history->set_count == HISTORY_SETS)
		return HISTORY_SETS;
	snprintf(history->sets[history->set_count], sizeof history->sets[0], "%s", name);
	return history->set_count++;
}

int history_main_set(const struct history *history)
{
	for (int i = 0; i < history->set_count; i++)
		if (!*history->sets[i])
			return i;
	return 0;
}

int64_t history_last_evaluation(const struct history *history, int set)
{
	for (int64_t i = history->evaluations.count; i-- > 0;)
		if (history->evaluation_sets[i] == set)
			return i;
	return -1;
}

const struct history_event *history_early_end(const struct history *history, int64_t step)
{
	for (int64_t i = history->event_count; i-- > 0;)
		if (history->events[i].step == step && strcmp(history->events[i].kind, REPORT_EARLY_END) == 0)
			return &history->events[i];
	return NULL;
}

/* Adds a row for an evaluation as the last row. A row that the set already has for this step (or a later one) is removed: the run
 * was resumed from before that evaluation. */
static enum status evaluation_row(struct history *history, int set, double step)
{
	struct history_table *table = &history->evaluations;
	for (int64_t i = table->count; i-- > 0 && history_value(table, i, HISTORY_STEP) >= step;) {
		if (history->evaluation_sets[i] != set)
			continue;
		for (int64_t k = i; k + 1 < table->count; k++)
			history->evaluation_sets[k] = history->evaluation_sets[k + 1];
		for (int c = 0; c < HISTORY_COLUMNS; c++)
			if (table->values[c])
				memmove(table->values[c] + i, table->values[c] + i + 1,
					(size_t)(table->count - 1 - i) * sizeof(double));
		table->count--;
		break;
	}
	TRY(memory_grow(&history->evaluation_sets, &history->evaluation_set_capacity, table->count + 1,
			sizeof *history->evaluation_sets, "history"));
	TRY(add_row(table));
	history->evaluation_sets[table->count - 1] = set;
	return OK;
}

static enum status add_evaluation(struct history *history, const struct json *object, const char *set)
{
	char prefix[512];
	struct history_table *table = &history->evaluations;
	int length = snprintf(prefix, sizeof prefix, "eval_%.400s%s", set, *set ? "_" : "");
	int index = history_set(history, set);
	if (index == HISTORY_SETS)
		return OK;
	TRY(evaluation_row(history, index, number(object, "step")));
	for (int c = 0; c < HISTORY_LOSS; c++)
		TRY(set_value(table, c, number(object, common_names[c])));
	for (const struct json *item = object->first_child; item; item = item->next) {
		bool own = strncmp(item->key, prefix, (size_t)length) == 0 && strcmp(item->key, "eval_seconds") != 0;
		if (own && item->kind == JSON_NUMBER && item->key[length] && !is_missing(object, prefix, item->key + length))
			TRY(set_value(table, add_column(history, item->key + length), item->number));
	}
	return OK;
}

static enum status add_event(struct history *history, const struct json *object, const char *kind)
{
	struct history_event event = {
		.step = (int64_t)number(object, "step"),
		.phase = number(object, "phase"),
		.tokens = number(object, "tokens"),
		.seconds = number(object, "seconds"),
	};
	const struct json *over = json_member(object, "over");
	event.over = over && over->kind == JSON_BOOL && over->boolean;
	snprintf(event.kind, sizeof event.kind, "%s", kind);
	copy_text(event.text, sizeof event.text, object, "text");
	copy_text(event.advice, sizeof event.advice, object, "advice");
	TRY(memory_grow(&history->events, &history->event_capacity, history->event_count + 1, sizeof event, "history"));
	history->events[history->event_count++] = event;
	return OK;
}

enum status history_add(struct history *history, const struct json *object)
{
	double step = number(object, "step");
	if (!(step >= 0 && step < 9e18))
		return OK;
	const struct json *event = json_member(object, "event"), *set = json_member(object, "eval_set");
	if (event && event->kind == JSON_STRING)
		return add_event(history, object, event->text);
	if (set && set->kind == JSON_STRING)
		return add_evaluation(history, object, set->text);
	if (json_member(object, "eval_loss"))
		return add_evaluation(history, object, "");
	return json_member(object, "loss") ? add_step(history, object) : OK;
}

enum status history_read(struct history *history, const char *path)
{
	if (!file_exists(path))
		return OK;
	struct buffer text = {0};
	enum status status;
	TRY_GOTO(file_read(path, (size_t)1 << 32, &text), done);
	const char *line = buffer_string(&text), *end = line + text.size;
	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		size_t size = newline ? (size_t)(newline - line) : (size_t)(end - line);
		struct json_document document;
		if (json_parse(&document, path, line, size) == OK) {
			enum status added = history_add(history, document.root);
			json_release(&document);
			TRY_GOTO(added, done);
		}
		line += size + 1;
	}
done:
	buffer_release(&text);
	return status;
}

void history_release(struct history *history)
{
	for (int c = 0; c < HISTORY_COLUMNS; c++) {
		free(history->steps.values[c]);
		free(history->evaluations.values[c]);
	}
	free(history->evaluation_sets);
	free(history->events);
	*history = (struct history){0};
}
