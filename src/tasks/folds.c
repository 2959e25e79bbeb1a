/* Divides examples into folds: by label, in an order that their texts decide, equal ones together; with groups, greedily, the
 * largest first. */
#include "tasks/folds.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/owned_files.h"
#include "base/string_index.h"
#include "tasks/task.h"

#define ROW(member, value) OPTION_ROW(struct fold_options, member, ROLE_RESULT, value)

/* clang-format off */
const struct option fold_rows[] = {
	{ROW(folds, "K"), .range = "2..1000",
	 .help = "cross-validation: divide the training examples into K folds, train K times without one of them, and score it"},
	{ROW(fold, "N"), .range = "1..1000", .rare = true, .fallback_text = "all, one after the other",
	 .help = "with --folds: only the run that leaves out fold N"},
	{ROW(group_column, "COLUMN"),
	 .help = "with --folds: examples with the same value in this column (an author, a document) are in the same fold"},
	{0},
};
/* clang-format on */

enum status folds_check(const struct fold_options *options, const struct task_state *state)
{
	if (options->folds == 0)
		return options->fold > 0 || options->group_column ? error_set(ERR_USAGE, "--%s has no effect without --folds",
									      options->fold > 0 ? "fold" : "group_column")
								  : OK;
	if (options->fold > options->folds)
		return error_set(ERR_USAGE, "--fold %lld: there are %lld", (long long)options->fold, (long long)options->folds);
	if (!state->task->calibrates && state->task->view != VIEW_NUMBERS)
		return error_set(ERR_USAGE, "--folds is for classes, labels, and numbers of texts, not for %s",
				 state->task->name);
	return OK;
}

/* An example as it is divided. */
struct item {
	int64_t number, group, size; /* place in the set; with groups: its group, and how many examples that has */
	int64_t stratum;
	uint64_t hash; /* of what it is ordered by */
	int64_t fold;
};

static int by_stratum(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	if (x->stratum != y->stratum)
		return x->stratum < y->stratum ? -1 : 1;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static int by_group(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->stratum > y->stratum) - (x->stratum < y->stratum);
}

static int by_number(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	return (x->number > y->number) - (x->number < y->number);
}

/* Numbers the labels and the groups. */
static enum status make_items(const struct fold_options *options, const struct task_state *state, const struct example_set *set,
			      struct item *items, int64_t *out_strata, int64_t *out_groups)
{
	struct string_index labels = {0}, groups = {0};
	enum status status = OK;
	*out_strata = *out_groups = 0;
	for (int64_t i = 0; i < set->count && status == OK; i++) {
		const struct example_text *example = &set->examples[i];
		const char *label = state->task->target == TARGET_NUMBER ? "" : example->label;
		const char *group = NULL;
		if (options->group_column)
			TRY_GOTO(example_chosen_field(set, i, options->group_column, &group), done);
		items[i] = (struct item){.number = i, .hash = hash64(example->text, strlen(example->text))};
		if (example->pair)
			items[i].hash = hash64_combine(items[i].hash, hash64(example->pair, strlen(example->pair)));
		if (options->group_column && !group)
			status = error_hinted(error_set(ERR_DATA, "'%s', line %lld: there is nothing in the column '%s'",
							example->file, (long long)example->line, options->group_column),
					      "--group_column names a column in which every row says what it belongs to");
		if (status == OK)
			status = string_index_add(&labels, label, *out_strata, &items[i].stratum);
		*out_strata += status == OK && items[i].stratum == *out_strata;
		if (status == OK && group)
			status = string_index_add(&groups, group, *out_groups, &items[i].group);
		*out_groups += status == OK && group && items[i].group == *out_groups;
	}
done:
	string_index_release(&labels);
	string_index_release(&groups);
	return status;
}

/* How much more unevenly the labels lie if the group items[first..end) joins a fold. */
static double unevenness(const struct item *items, int64_t first, int64_t end, const int64_t *in_fold, const int64_t *all)
{
	double sum = 0;
	for (int64_t i = first; i < end;) {
		int64_t stratum = items[i].stratum, own = 0;
		for (; i < end && items[i].stratum == stratum; i++)
			own++;
		double before = (double)in_fold[stratum] / (double)all[stratum], more = (double)own / (double)all[stratum];
		sum += more * (2 * before + more);
	}
	return sum;
}

static enum status divide_groups(struct item *items, int64_t count, int64_t folds, int64_t strata, int64_t groups)
{
	int64_t *counts = NULL, *all = NULL, *sizes = NULL;
	enum status status;
	TRY_GOTO(memory_new(&counts, folds * strata, sizeof *counts, "folds"), done);
	TRY_GOTO(memory_new(&all, strata, sizeof *all, "folds"), done);
	TRY_GOTO(memory_new(&sizes, groups, sizeof *sizes, "folds"), done);
	for (int64_t i = 0; i < count; i++) {
		all[items[i].stratum]++;
		sizes[items[i].group]++;
	}
	for (int64_t i = 0; i < count; i++)
		items[i].size = sizes[items[i].group];
	qsort(items, (size_t)count, sizeof *items, by_group);
	memset(sizes, 0, (size_t)groups * sizeof *sizes); /* from here on, of folds: there are at least as many groups */
	for (int64_t first = 0; first < count;) {
		int64_t end = first + items[first].size, best = 0;
		double least = 0;
		for (int64_t f = 0; f < folds; f++) {
			double own = unevenness(items, first, end, counts + f * strata, all);
			if (f == 0 || own < least || (own == least && sizes[f] < sizes[best])) {
				best = f;
				least = own;
			}
		}
		sizes[best] += end - first;
		for (; first < end; first++) {
			items[first].fold = best + 1;
			counts[best * strata + items[first].stratum]++;
		}
	}
	status = OK;
done:
	free(counts);
	free(all);
	free(sizes);
	return status;
}

static enum status divide(const struct fold_options *options, const struct task_state *state, const struct example_set *set,
			  struct item *items)
{
	int64_t strata, groups, folds = options->folds, units;
	TRY(make_items(options, state, set, items, &strata, &groups));
	qsort(items, (size_t)set->count, sizeof *items, by_stratum);
	units = options->group_column ? groups : 0;
	for (int64_t i = 0; i < set->count && !options->group_column; i++) {
		units += i == 0 || items[i].stratum != items[i - 1].stratum || items[i].hash != items[i - 1].hash;
		items[i].fold = (units - 1) % folds + 1;
	}
	if (units < folds)
		return error_hinted(error_set(ERR_USAGE, "--folds %lld: there are only %lld %s", (long long)folds,
					      (long long)units, options->group_column ? "groups" : "different examples"),
				    "give fewer folds");
	if (options->group_column)
		TRY(divide_groups(items, set->count, folds, strata, groups));
	qsort(items, (size_t)set->count, sizeof *items, by_number);
	return OK;
}

enum status folds_keep(const struct fold_options *options, const struct task_state *state, struct example_set *set, bool held_out,
		       int64_t **out_rows)
{
	struct item *items = NULL;
	int64_t kept = 0, *rows = NULL;
	enum status status;
	TRY_GOTO(memory_new(&items, set->count, sizeof *items, "folds"), done);
	TRY_GOTO(memory_new(&rows, set->count, sizeof *rows, "folds"), done);
	TRY_GOTO(divide(options, state, set, items), done);
	for (int64_t i = 0; i < set->count; i++)
		if ((items[i].fold == options->fold) == held_out) {
			rows[kept] = i + 1;
			set->examples[kept++] = set->examples[i];
		}
	set->count = kept;
	if (out_rows) {
		*out_rows = rows;
		rows = NULL;
	}
	status = OK;
done:
	free(items);
	free(rows);
	return status;
}

enum status folds_write(const struct fold_options *options, const struct task_state *state, const struct task_set *set,
			const struct task_outputs *outputs, const int64_t *rows, const char *folder)
{
	char path[PATH_BYTES];
	struct buffer out = {0}, answer = {0};
	struct json_writer writer = {.out = &out};
	enum status status;
	for (int64_t i = 0; i < task_answers(set); i++) {
		buffer_clear(&answer);
		TRY_GOTO(state->task->put(state, set, outputs, i, &answer), done);
		json_open(&writer, NULL, '{');
		json_put_integer(&writer, "row", rows[i]);
		json_put_integer(&writer, "fold", options->fold);
		json_put_string(&writer, "right", set->examples.examples[i].label);
		json_put_written(&writer, "answer", buffer_string(&answer));
		json_close(&writer);
		buffer_char(&out, '\n');
	}
	TRY_GOTO(buffer_status(&out), done);
	TRY_GOTO(path_join(path, folder, FOLD_PREDICTIONS), done);
	status = owned_file_write(path, out.data, out.size);
done:
	buffer_release(&out);
	buffer_release(&answer);
	return status;
}
