#include "report/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

/* Beyond this many rows neighbours are merged two and two: a curve of that many points shows no more, and memory
 * stays bounded however long the run is. */
#define ROWS_MAX (1 << 17)

const char *const history_columns[HISTORY_COLUMNS] = {
	"step",          "tokens",       "seconds",       "loss",      "mlm_loss",          "mlm_accuracy",
	"nsp_loss",      "nsp_accuracy", "learning_rate", "grad_norm", "tokens_per_second", "share_of_gemm",
	"skipped_steps", "phase",
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

/* Positions and counters keep the later of the two, all else is the mean. */
static struct history_row merge(const struct history_row *a, const struct history_row *b)
{
	struct history_row row = *b;
	for (int c = HISTORY_LOSS; c < HISTORY_SKIPPED_STEPS; c++)
		if (isfinite(a->value[c]))
			row.value[c] = isfinite(b->value[c]) ? 0.5 * (a->value[c] + b->value[c]) : a->value[c];
	return row;
}

enum status history_add_row(struct history *history, const struct history_row *row)
{
	if (history->count == ROWS_MAX) {
		history->count /= 2;
		for (int64_t i = 0; i < history->count; i++)
			history->rows[i] = merge(&history->rows[2 * i], &history->rows[2 * i + 1]);
	}
	TRY(memory_grow(&history->rows, &history->capacity, history->count + 1, sizeof *row, "history"));
	history->rows[history->count++] = *row;
	return OK;
}

int history_set(struct history *history, const char *name)
{
	for (int i = 0; i < history->set_count; i++)
		if (strncmp(history->sets[i], name, sizeof history->sets[i] - 1) == 0)
			return i;
	if (history->set_count == HISTORY_SETS)
		return HISTORY_SETS - 1;
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

const struct history_row *history_last_evaluation(const struct history *history, int set)
{
	for (int64_t i = history->evaluation_count; i-- > 0;)
		if (history->evaluations[i].set == set)
			return &history->evaluations[i].row;
	return NULL;
}

static enum status add_evaluation(struct history *history, const struct json *object, const char *set)
{
	struct history_evaluation evaluation = {.set = history_set(history, set)};
	for (int c = 0; c < HISTORY_COLUMNS; c++) {
		char key[128];
		snprintf(key, sizeof key, "eval_%s%s%s", set, *set ? "_" : "", history_columns[c]);
		evaluation.row.value[c] = number(object, c < HISTORY_LOSS ? history_columns[c] : key);
	}
	/* The same evaluation twice: a run that was stopped behind it and resumed before. */
	for (int64_t i = history->evaluation_count; i-- > 0;) {
		struct history_evaluation *other = &history->evaluations[i];
		if (other->row.value[HISTORY_STEP] < evaluation.row.value[HISTORY_STEP])
			break;
		if (other->set == evaluation.set) {
			*other = evaluation;
			return OK;
		}
	}
	TRY(memory_grow(&history->evaluations, &history->evaluation_capacity, history->evaluation_count + 1, sizeof evaluation,
			"history"));
	history->evaluations[history->evaluation_count++] = evaluation;
	return OK;
}

static enum status add_event(struct history *history, const struct json *object, const char *kind)
{
	struct history_event event = {
		.step = (int64_t)number(object, "step"),
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
	struct history_row row;
	for (int c = 0; c < HISTORY_COLUMNS; c++)
		row.value[c] = number(object, history_columns[c]);
	return json_member(object, "loss") ? history_add_row(history, &row) : OK;
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
	free(history->rows);
	free(history->evaluations);
	free(history->events);
	*history = (struct history){0};
}
