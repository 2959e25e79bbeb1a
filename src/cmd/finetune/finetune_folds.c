/* What the runs of a cross-validation give together: answers to all examples, and the mean of each measure. */
#include "cmd/finetune/finetune_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/owned_files.h"
#include "tasks/folds.h"

enum status finetune_folds_setting(int64_t folds, struct buffer *out)
{
	for (int64_t i = 1; i <= folds; i++)
		buffer_format(out, "%s%" PRId64, i == 1 ? "fold=" : ",", i);
	return buffer_status(out);
}

/* Appends the file of each finished run. */
static enum status read_all(const struct sweep *sweep, struct buffer *out)
{
	char folder[PATH_BYTES], path[PATH_BYTES];
	struct buffer one = {0};
	enum status status = OK;
	for (int64_t i = 0; i < sweep->run_count && status == OK; i++) {
		if (sweep->runs[i].state != SWEEP_FINISHED)
			continue;
		TRY_GOTO(sweep_run_folder(sweep, i, folder), done);
		TRY_GOTO(path_join(path, folder, FOLD_PREDICTIONS), done);
		buffer_clear(&one);
		TRY_GOTO(file_read(path, SIZE_MAX, &one), done);
		buffer_append(out, one.data, one.size);
		status = buffer_status(out);
	}
done:
	buffer_release(&one);
	return status;
}

/* A line, which begins with its row: {"row":12, */
struct line {
	long long row;
	const char *text;
	size_t size;
};

static int by_row(const void *a, const void *b)
{
	long long x = ((const struct line *)a)->row, y = ((const struct line *)b)->row;
	return (x > y) - (x < y);
}

static enum status put_predictions(const struct sweep *sweep)
{
	struct buffer text = {0}, out = {0};
	struct line *lines = NULL;
	int64_t count = 0, capacity = 0;
	char path[PATH_BYTES];
	enum status status;
	TRY_GOTO(read_all(sweep, &text), done);
	for (const char *at = text.data, *end = at + text.size; at < end; count++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		TRY_GOTO(memory_grow(&lines, &capacity, count + 1, sizeof *lines, "predictions"), done);
		lines[count] = (struct line){.text = at, .size = (size_t)((stop ? stop + 1 : end) - at)};
		if (sscanf(at, "{\"row\":%lld,", &lines[count].row) != 1) {
			status = error_set(ERR_DATA, "'%s': a file %s was changed", sweep->folder, FOLD_PREDICTIONS);
			goto done;
		}
		at += lines[count].size;
	}
	qsort(lines, (size_t)count, sizeof *lines, by_row);
	for (int64_t i = 0; i < count; i++)
		buffer_append(&out, lines[i].text, lines[i].size);
	TRY_GOTO(buffer_status(&out), done);
	TRY_GOTO(path_join(path, sweep->folder, FOLD_PREDICTIONS), done);
	status = owned_file_write(path, out.data, out.size);
done:
	free(lines);
	buffer_release(&text);
	buffer_release(&out);
	return status;
}

/* A measure of a run; NaN: it is undefined there. */
static double measure_of(const struct json_document *results, const char *key)
{
	const struct json *value = json_member(results->root, key);
	return value && value->kind == JSON_NUMBER ? value->number : NAN;
}

/* Puts the values of a measure, with mean and deviation over the folds in which it is defined. `documents`: the results of each
 * run. */
static void put_measure(const struct json_document *documents, int64_t count, const char *key, struct json_writer *writer)
{
	double sum = 0, squares = 0, defined = 0;
	char text[160];
	json_open(writer, key, '{');
	json_open(writer, "folds", '[');
	for (int64_t i = 0; i < count; i++) {
		double number = measure_of(&documents[i], key);
		json_put_double(writer, NULL, number);
		defined += !isnan(number);
		sum += isnan(number) ? 0 : number;
	}
	json_close(writer);
	double mean = sum / defined;
	for (int64_t i = 0; i < count; i++) {
		double number = measure_of(&documents[i], key);
		squares += isnan(number) ? 0 : (number - mean) * (number - mean);
	}
	double deviation = sqrt(squares / (defined - 1));
	json_put_double(writer, "mean", mean);
	json_put_double(writer, "deviation", deviation);
	json_close(writer);
	snprintf(text, sizeof text, "%-26.100s %8.4f, deviation %.4f", key, mean, deviation);
	log_note("%s", text);
}

static bool is_measure_of_any(const struct json_document *documents, int64_t count, const char *key)
{
	for (int64_t i = 0; i < count; i++)
		if (!isnan(measure_of(&documents[i], key)))
			return true;
	return false;
}

static enum status put_results(const struct sweep *sweep)
{
	char folder[PATH_BYTES], path[PATH_BYTES];
	struct json_document *documents = NULL;
	struct buffer out = {0};
	struct json_writer writer = {.out = &out, .indent = 4};
	int64_t count = 0;
	enum status status;
	TRY_GOTO(memory_new(&documents, sweep->run_count, sizeof *documents, "results"), done);
	for (int64_t i = 0; i < sweep->run_count; i++) {
		if (sweep->runs[i].state != SWEEP_FINISHED)
			continue;
		TRY_GOTO(sweep_run_folder(sweep, i, folder), done);
		TRY_GOTO(path_join(path, folder, "eval_results.json"), done);
		TRY_GOTO(json_read(&documents[count], path, (size_t)1 << 26), done);
		count++;
	}
	json_open(&writer, NULL, '{');
	for (int64_t i = 0; count > 1 && i < count; i++)
		for (const struct json *value = documents[i].root->first_child; value; value = value->next)
			if (value->kind == JSON_NUMBER && strncmp(value->key, "eval_", 5) == 0 &&
			    !is_measure_of_any(documents, i, value->key))
				put_measure(documents, count, value->key, &writer);
	json_close(&writer);
	buffer_char(&out, '\n');
	TRY_GOTO(buffer_status(&out), done);
	TRY_GOTO(path_join(path, sweep->folder, FOLD_RESULTS), done);
	status = owned_file_write(path, out.data, out.size);
done:
	for (int64_t i = 0; documents && i < count; i++)
		json_release(&documents[i]);
	free(documents);
	buffer_release(&out);
	return status;
}

enum status finetune_folds_finish(const struct sweep *sweep)
{
	TRY(put_predictions(sweep));
	TRY(put_results(sweep));
	log_note("the answers to the examples that each run left out: %s/%s", sweep->folder, FOLD_PREDICTIONS);
	return OK;
}
