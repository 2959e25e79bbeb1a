/* Parses a sweep, keeps its record, compares its runs, and writes its table and page. */
#include "run/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/owned_files.h"
#include "run/run_folder.h"
#include "tasks/results.h"
#include "weights/checkpoint_folder.h"
#include "weights/manifest.h"

/* ---- What is swept ---- */

#define SWEEP_FORM "write --sweep \"learning_rate=2e-5,3e-5 seed=1,2,3\""

static enum status bad_word(const char *word, size_t length, const char *why)
{
	return error_hinted(error_set(ERR_USAGE, "--sweep: '%.*s' %s", (int)length, word, why), SWEEP_FORM);
}

/* Parses one word: NAME=VALUE,VALUE. */
static enum status parse_word(struct sweep *sweep, const char *word, size_t length)
{
	const char *equals = memchr(word, '=', length), *end = word + length;
	struct sweep_setting *setting;
	if (!equals || equals == word)
		return bad_word(word, length, "is not NAME=VALUE,VALUE");
	if (equals + 1 == end)
		return bad_word(word, length, "has no values");
	TRY(memory_grow(&sweep->settings, &sweep->setting_capacity, sweep->setting_count + 1, sizeof *setting, "a sweep"));
	setting = &sweep->settings[sweep->setting_count++];
	*setting = (struct sweep_setting){0};
	TRY(string_store_copy(&sweep->strings, word, (size_t)(equals - word), &setting->name));
	for (const char *at = equals + 1; at <= end;) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		const char *stop = comma ? comma : end;
		if (stop == at)
			return bad_word(word, length, "has an empty value");
		TRY(memory_grow(&setting->values, &setting->capacity, setting->count + 1, sizeof *setting->values, "a sweep"));
		TRY(string_store_copy(&sweep->strings, at, (size_t)(stop - at), &setting->values[setting->count++]));
		at = stop + 1;
	}
	return OK;
}

enum status sweep_parse(struct sweep *sweep, const struct option_list *texts)
{
	static const char blanks[] = " \t\r\n";
	for (int64_t i = 0; i < texts->count; i++) {
		const char *at = texts->values[i] + strspn(texts->values[i], blanks);
		while (*at) {
			size_t length = strcspn(at, blanks);
			TRY(parse_word(sweep, at, length));
			at += length;
			at += strspn(at, blanks);
		}
	}
	if (sweep->setting_count > 0)
		return OK;
	return error_hinted(error_set(ERR_USAGE, "--sweep names no option"), SWEEP_FORM);
}

/* ---- Its runs ---- */

/* Sorts by name, with seeds last, so that the runs of one setting are adjacent. */
static int by_name(const void *a, const void *b)
{
	const char *one = ((const struct sweep_setting *)a)->name, *other = ((const struct sweep_setting *)b)->name;
	int seeds = report_sweep_repeats(one) - report_sweep_repeats(other);
	return seeds != 0 ? seeds : strcmp(one, other);
}

static enum status check_settings(const struct sweep *sweep)
{
	double runs = 1;
	for (int64_t s = 0; s < sweep->setting_count; s++) {
		const struct sweep_setting *setting = &sweep->settings[s];
		if (s > 0 && strcmp(setting->name, setting[-1].name) == 0)
			return error_set(ERR_USAGE, "--sweep: %s is listed twice", setting->name);
		for (int64_t i = 0; i < setting->count; i++)
			for (int64_t k = 0; k < i; k++)
				if (strcmp(setting->values[i], setting->values[k]) == 0)
					return error_set(ERR_USAGE, "--sweep: %s has the value %s twice", setting->name,
							 setting->values[i]);
		runs *= (double)setting->count;
	}
	if (runs > SWEEP_RUNS_MOST)
		return error_set(ERR_USAGE, "--sweep: these lists make %.0f runs, more than %d", runs, SWEEP_RUNS_MOST);
	return OK;
}

/* Longer names are truncated and get a hash at the end. */
#define NAME_MOST 200

/* "learning_rate=2e-5,seed=1"; characters unsuitable for a folder's name become '_'. */
static enum status name_run(struct sweep *sweep, struct sweep_run *run)
{
	struct buffer name = {0};
	for (int64_t s = 0; s < sweep->setting_count; s++)
		buffer_format(&name, "%s%s=%s", s > 0 ? "," : "", sweep->settings[s].name, run->values[s]);
	enum status status = buffer_status(&name);
	for (size_t i = 0; status == OK && i < name.size; i++) {
		char c = name.data[i];
		bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || strchr("=,.+-_", c);
		name.data[i] = plain ? c : '_';
	}
	if (status == OK && name.size > NAME_MOST) {
		uint64_t hash = hash64(name.data, name.size);
		name.size = NAME_MOST;
		buffer_format(&name, "-%08" PRIx64, hash & 0xffffffff);
		status = buffer_status(&name);
	}
	if (status == OK)
		status = string_store_copy(&sweep->strings, buffer_string(&name), name.size, &run->name);
	buffer_release(&name);
	return status;
}

enum status sweep_make_runs(struct sweep *sweep)
{
	qsort(sweep->settings, (size_t)sweep->setting_count, sizeof *sweep->settings, by_name);
	TRY(check_settings(sweep));
	int64_t count = 1;
	for (int64_t s = 0; s < sweep->setting_count; s++)
		count *= sweep->settings[s].count;
	TRY(memory_new(&sweep->setting_names, sweep->setting_count, sizeof *sweep->setting_names, "a sweep"));
	for (int64_t s = 0; s < sweep->setting_count; s++)
		sweep->setting_names[s] = sweep->settings[s].name;
	TRY(memory_new(&sweep->runs, count, sizeof *sweep->runs, "runs of a sweep"));
	for (int64_t i = 0; i < count; i++) {
		struct sweep_run *run = &sweep->runs[sweep->run_count++];
		int64_t rest = i;
		run->score = NAN;
		TRY(memory_new(&run->values, sweep->setting_count, sizeof *run->values, "runs of a sweep"));
		for (int64_t s = sweep->setting_count - 1; s >= 0; s--) {
			run->values[s] = sweep->settings[s].values[rest % sweep->settings[s].count];
			rest /= sweep->settings[s].count;
		}
		TRY(name_run(sweep, run));
		for (int64_t k = 0; k < i; k++)
			if (strcmp(run->name, sweep->runs[k].name) == 0)
				return error_set(ERR_USAGE, "--sweep: two runs would have the folder '%s'", run->name);
	}
	return OK;
}

/* ---- Its record ---- */

static const char *const state_names[] = {"waiting", "running", "finished", "failed"};

static struct sweep_run *find_run(const struct sweep *sweep, const char *name)
{
	for (int64_t i = 0; i < sweep->run_count; i++)
		if (strcmp(sweep->runs[i].name, name) == 0)
			return &sweep->runs[i];
	return NULL;
}

static void put_data(char out[20], uint64_t data)
{
	snprintf(out, 20, "%016" PRIx64, data);
}

static enum status read_run(struct sweep *sweep, const char *path, const struct json *object)
{
	const char *name = NULL, *state = NULL, *message = NULL, *model = NULL;
	double score = NAN;
	int64_t step = 0;
	if (object->kind != JSON_OBJECT)
		return error_set(ERR_DATA, "'%s': damaged: a run is not an object", path);
	TRY(json_get_string(object, path, "name", &name));
	TRY(json_get_string(object, path, "status", &state));
	TRY(json_get_string(object, path, "message", &message));
	TRY(json_get_string(object, path, "model", &model));
	if (json_member(object, "score") && json_member(object, "score")->kind != JSON_NULL)
		TRY(json_get_number(object, path, "score", &score));
	TRY(json_get_integer(object, path, "global_step", 0, INT64_MAX, &step));
	if (!name || !state)
		return error_set(ERR_DATA, "'%s': damaged: a run has no name or no status", path);
	bool finished = strcmp(state, state_names[SWEEP_FINISHED]) == 0, failed = strcmp(state, state_names[SWEEP_FAILED]) == 0;
	struct sweep_run *run = find_run(sweep, name);
	if (!run && !finished && !failed)
		return OK;
	if (!run) {
		run = &sweep->others[sweep->other_count++];
		run->name = name;
	}
	run->state = finished ? SWEEP_FINISHED : failed ? SWEEP_FAILED : SWEEP_WAITING;
	run->score = finished ? score : NAN;
	run->step = step;
	run->message = message;
	run->model = model ? strtoull(model, NULL, 16) : 0;
	return OK;
}

static int64_t sweep_count(const struct sweep *sweep, enum sweep_state state)
{
	int64_t count = 0;
	for (int64_t i = 0; i < sweep->run_count; i++)
		count += sweep->runs[i].state == state;
	return count;
}

enum status sweep_load(struct sweep *sweep)
{
	char path[PATH_BYTES];
	TRY(path_join(path, sweep->folder, SWEEP_RECORD));
	if (!file_exists(path))
		return OK;
	TRY(json_read(&sweep->record, path, SWEEP_RECORD_BYTES));
	const struct json *runs[] = {json_member(sweep->record.root, "runs"), json_member(sweep->record.root, "earlier_runs")};
	int64_t count = 0;
	for (int i = 0; i < 2; i++)
		count += runs[i] ? runs[i]->child_count : 0;
	TRY(memory_new(&sweep->others, count, sizeof *sweep->others, "runs of a sweep"));
	for (int i = 0; i < 2; i++)
		for (const struct json *run = runs[i] ? runs[i]->first_child : NULL; run; run = run->next)
			TRY(read_run(sweep, path, run));
	TRY(json_get_string(sweep->record.root, path, "published", &sweep->published));
	log_note("resuming the sweep in %s: %" PRId64 " of %" PRId64 " runs are done", sweep->folder,
		 sweep_count(sweep, SWEEP_FINISHED) + sweep_count(sweep, SWEEP_FAILED), sweep->run_count);
	if (sweep->other_count > 0)
		log_note("%" PRId64 " earlier run%s no longer part of it and stay%s where %s", sweep->other_count,
			 sweep->other_count == 1 ? " is" : "s are", sweep->other_count == 1 ? "s" : "",
			 sweep->other_count == 1 ? "it is" : "they are");
	return OK;
}

/* Returns ERR_STATE with the message "WHAT since the sweep in DIR began". */
static enum status sweep_has_changed(const struct sweep *sweep, const char *what)
{
	return error_hinted(error_set(ERR_STATE, "%s since the sweep in '%s' began", what, sweep->folder),
			    "give --fresh to begin again, or another --out");
}

enum status sweep_data_have_changed(const struct sweep *sweep)
{
	return sweep_has_changed(sweep, "files that the runs read (training, dev or test sets, or the teacher) have changed");
}

enum status sweep_set_data(struct sweep *sweep, uint64_t data)
{
	const char *recorded = NULL;
	char own[20];
	put_data(own, data);
	TRY(json_get_string(sweep->record.root, SWEEP_RECORD, "data", &recorded));
	sweep->data = data;
	return !recorded || strcmp(recorded, own) == 0 ? OK : sweep_data_have_changed(sweep);
}

enum status sweep_set_model(struct sweep *sweep, int64_t run, const char *path, uint64_t model)
{
	char what[PATH_BYTES + 40];
	uint64_t recorded = sweep->runs[run].model;
	sweep->runs[run].model = model;
	if (recorded == 0 || recorded == model)
		return OK;
	snprintf(what, sizeof what, "the model '%s' has changed", path);
	return sweep_has_changed(sweep, what);
}

/* Sets one name: as found now or, if that is not known yet, as recorded. */
static enum status set_name_of(struct sweep *sweep, const char *key, const char *now, const char **out)
{
	const char *recorded = NULL;
	char what[200];
	TRY(json_get_string(sweep->record.root, SWEEP_RECORD, key, &recorded));
	if (recorded && now && strcmp(recorded, now) != 0) {
		snprintf(what, sizeof what, "the %s by which runs are judged has changed from %.60s to %.60s", key, recorded,
			 now);
		return sweep_has_changed(sweep, what);
	}
	now = now ? now : recorded;
	return now ? string_store_copy(&sweep->strings, now, strlen(now), out) : OK;
}

enum status sweep_set_judge(struct sweep *sweep, const char *measure, const char *set)
{
	TRY(set_name_of(sweep, "measure", measure, &sweep->measure));
	return set_name_of(sweep, "set", set, &sweep->set);
}

static void put_run(struct json_writer *writer, const struct sweep *sweep, const struct sweep_run *run)
{
	json_open(writer, NULL, '{');
	json_put_string(writer, "name", run->name);
	if (run->values) {
		json_open(writer, "settings", '{');
		for (int64_t s = 0; s < sweep->setting_count; s++)
			json_put_string(writer, sweep->settings[s].name, run->values[s]);
		json_close(writer);
	}
	json_put_string(writer, "status", state_names[run->state]);
	if (run->model != 0) {
		char model[20];
		put_data(model, run->model);
		json_put_string(writer, "model", model);
	}
	if (run->state == SWEEP_FINISHED) {
		json_put_double(writer, "score", run->score);
		json_put_integer(writer, "global_step", run->step);
	}
	if (run->state == SWEEP_FAILED && run->message)
		json_put_string(writer, "message", run->message);
	json_close(writer);
}

/* ---- In the form of a report ---- */

struct view {
	struct report_sweep sweep;
	struct report_sweep_run *runs; /* owned, like its texts */
	struct string_store strings;
};

static void view_release(struct view *view)
{
	free(view->runs);
	string_store_release(&view->strings);
}

static const char *set_name(const struct sweep *sweep)
{
	return sweep->set && *sweep->set ? sweep->set : "dev set";
}

static enum status view_make(struct view *out, const struct sweep *sweep)
{
	*out = (struct view){0};
	TRY(memory_new(&out->runs, sweep->run_count, sizeof *out->runs, "runs of a sweep"));
	for (int64_t i = 0; i < sweep->run_count; i++) {
		const struct sweep_run *run = &sweep->runs[i];
		char status[300];
		bool failed = run->state == SWEEP_FAILED;
		snprintf(status, sizeof status, "%s%s%s", state_names[run->state], failed ? ": " : "",
			 failed && run->message ? run->message : "");
		out->runs[i] = (struct report_sweep_run){.name = run->name,
							 .values = run->values,
							 .score = run->score,
							 .over = failed || run->state == SWEEP_FINISHED};
		TRY(string_store_copy(&out->strings, status, strlen(status), &out->runs[i].status));
	}
	out->sweep = (struct report_sweep){.settings = sweep->setting_names,
					   .setting_count = (int)sweep->setting_count,
					   .runs = out->runs,
					   .run_count = sweep->run_count,
					   .measure = report_column(sweep->measure ? sweep->measure : "loss"),
					   .set = set_name(sweep)};
	return OK;
}

enum status sweep_best(const struct sweep *sweep, int64_t *out, int64_t *out_ties)
{
	struct view view;
	enum status status = view_make(&view, sweep);
	*out = status == OK ? report_sweep_best(&view.sweep) : -1;
	*out_ties = *out >= 0 ? report_sweep_ties(&view.sweep, *out) : 0;
	view_release(&view);
	return status;
}

static void put_groups(struct json_writer *writer, const struct sweep *sweep, const struct report_sweep_group *groups,
		       int64_t count)
{
	json_open(writer, "by_setting", '[');
	for (int64_t i = 0; i < count; i++) {
		json_open(writer, NULL, '{');
		json_open(writer, "settings", '{');
		for (int64_t s = 0; s < sweep->setting_count; s++)
			if (!report_sweep_repeats(sweep->settings[s].name))
				json_put_string(writer, sweep->settings[s].name, sweep->runs[groups[i].first].values[s]);
		json_close(writer);
		json_put_double(writer, "mean", groups[i].mean);
		json_put_double(writer, "deviation", groups[i].deviation);
		json_put_integer(writer, "runs", groups[i].runs);
		json_close(writer);
	}
	json_close(writer);
}

static enum status put_record(const struct sweep *sweep, const struct view *view, const char *options, struct buffer *out)
{
	struct json_writer writer = {.out = out, .indent = 2};
	struct report_sweep_group *groups = NULL;
	int64_t count, best = report_sweep_best(&view->sweep);
	char data[20];
	put_data(data, sweep->data);
	TRY(report_sweep_groups(&view->sweep, &groups, &count));
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "measure", sweep->measure);
	json_put_string(&writer, "set", sweep->set);
	json_put_string(&writer, "data", data);
	if (best >= 0)
		json_put_string(&writer, "best", sweep->runs[best].name);
	if (sweep->published)
		json_put_string(&writer, "published", sweep->published);
	put_groups(&writer, sweep, groups, count);
	free(groups);
	json_open(&writer, "runs", '[');
	for (int64_t i = 0; i < sweep->run_count; i++)
		put_run(&writer, sweep, &sweep->runs[i]);
	json_close(&writer);
	json_open(&writer, "earlier_runs", '[');
	for (int64_t i = 0; i < sweep->other_count; i++)
		put_run(&writer, sweep, &sweep->others[i]);
	json_close(&writer);
	json_put_written(&writer, "settings", options);
	json_close(&writer);
	buffer_char(out, '\n');
	return buffer_status(out);
}

enum status sweep_save(const struct sweep *sweep, const char *options)
{
	struct view view;
	struct buffer text = {0};
	char path[PATH_BYTES], title[220];
	enum status status;
	BUG_IF(!sweep->measure);
	TRY_GOTO(view_make(&view, sweep), done);
	TRY_GOTO(put_record(sweep, &view, options, &text), done);
	TRY_GOTO(path_join(path, sweep->folder, SWEEP_RECORD), done);
	TRY_GOTO(owned_file_write(path, text.data, text.size), done);
	buffer_clear(&text);
	snprintf(title, sizeof title, "Sweep in %.200s", sweep->folder);
	report_sweep_page(&view.sweep, title, &text);
	TRY_GOTO(buffer_status(&text), done);
	TRY_GOTO(path_join(path, sweep->folder, "report.html"), done);
	status = owned_file_write(path, text.data, text.size);
done:
	buffer_release(&text);
	view_release(&view);
	return status;
}

/* ---- Text ---- */

/* A table of texts; each column is as wide as its widest cell. */
struct text_table {
	int columns;
	struct buffer cells; /* each ended by a NUL, row after row */
	int64_t count;
};

static void put_cell(struct text_table *table, const char *text)
{
	buffer_append(&table->cells, text, strlen(text) + 1);
	table->count++;
}

static enum status print_text_table(const struct text_table *table, struct buffer *out)
{
	int *widths = NULL;
	TRY(buffer_status(&table->cells));
	TRY(memory_new(&widths, table->columns, sizeof *widths, "a table"));
	for (int pass = 0; pass < 2; pass++) {
		const char *cell = table->cells.data;
		for (int64_t i = 0; i < table->count; i++, cell += strlen(cell) + 1) {
			int column = (int)(i % table->columns), width = (int)strlen(cell);
			if (pass == 0)
				widths[column] = width > widths[column] ? width : widths[column];
			else if (column + 1 < table->columns)
				buffer_format(out, "%-*s  ", widths[column], cell);
			else
				buffer_format(out, "%s\n", cell);
		}
	}
	free(widths);
	return buffer_status(out);
}

static void put_settings(struct text_table *table, const struct sweep *sweep, const struct sweep_run *run, bool seeds)
{
	for (int64_t s = 0; s < sweep->setting_count; s++)
		if (seeds || !report_sweep_repeats(sweep->settings[s].name))
			put_cell(table, run ? run->values[s] : sweep->settings[s].name);
}

static void put_number(struct text_table *table, double value)
{
	char text[40] = "-";
	if (isfinite(value))
		snprintf(text, sizeof text, "%.4f", value);
	put_cell(table, text);
}

static enum status put_runs(const struct sweep *sweep, const struct view *view, struct buffer *out)
{
	struct text_table table = {.columns = (int)sweep->setting_count + 3};
	int64_t best = report_sweep_best(&view->sweep);
	put_cell(&table, "");
	put_settings(&table, sweep, NULL, true);
	put_cell(&table, view->sweep.measure.name);
	put_cell(&table, "run");
	for (int64_t i = 0; i < sweep->run_count; i++) {
		const struct sweep_run *run = &sweep->runs[i];
		put_cell(&table, i == best ? "*" : "");
		put_settings(&table, sweep, run, true);
		put_number(&table, run->score);
		put_cell(&table, run->state == SWEEP_FINISHED ? run->name : view->runs[i].status);
	}
	enum status status = print_text_table(&table, out);
	buffer_release(&table.cells);
	return status;
}

static enum status put_means(const struct sweep *sweep, const struct view *view, struct buffer *out)
{
	struct text_table table = {.columns = (int)sweep->setting_count + 3};
	struct report_sweep_group *groups;
	int64_t count;
	TRY(report_sweep_groups(&view->sweep, &groups, &count));
	bool seeds = count < sweep->run_count;
	put_cell(&table, "");
	put_settings(&table, sweep, NULL, false);
	put_cell(&table, "mean");
	put_cell(&table, "deviation");
	char repeats[40];
	snprintf(repeats, sizeof repeats, "%.30ss", sweep->settings[sweep->setting_count - 1].name);
	put_cell(&table, repeats);
	for (int64_t i = 0; i < count; i++) {
		char runs[24];
		snprintf(runs, sizeof runs, "%" PRId64, groups[i].runs);
		put_cell(&table, i == 0 && isfinite(groups[i].mean) ? "*" : "");
		put_settings(&table, sweep, &sweep->runs[groups[i].first], false);
		put_number(&table, groups[i].mean);
		put_number(&table, groups[i].deviation);
		put_cell(&table, runs);
	}
	free(groups);
	if (seeds)
		buffer_char(out, '\n');
	enum status status = seeds ? print_text_table(&table, out) : OK;
	buffer_release(&table.cells);
	return status;
}

enum status sweep_table(const struct sweep *sweep, struct buffer *out)
{
	struct view view;
	enum status status = view_make(&view, sweep);
	if (status == OK)
		status = put_runs(sweep, &view, out);
	if (status == OK)
		status = put_means(sweep, &view, out);
	view_release(&view);
	return status;
}

/* ---- Folders ---- */

enum status sweep_run_folder(const struct sweep *sweep, int64_t run, char out[PATH_BYTES])
{
	return path_join(out, sweep->folder, sweep->runs[run].name);
}

enum status sweep_prune(const struct sweep *sweep, int64_t run)
{
	char folder[PATH_BYTES];
	int64_t *steps = NULL, count = 0;
	enum status status;
	TRY(sweep_run_folder(sweep, run, folder));
	if (!file_is_folder(folder))
		return OK;
	TRY(checkpoint_unmark_best(folder));
	TRY_GOTO(checkpoint_list(folder, &steps, &count), done);
	for (int64_t i = 0; i < count && status == OK; i++) {
		char name[64];
		checkpoint_name(name, steps[i]);
		status = checkpoint_folder_discard(folder, name);
	}
done:
	free(steps);
	return status;
}

/* Copies a folder with its subfolders: an embedding model has one for the pooling. */
static enum status copy_folder(const char *from, const char *to)
{
	struct name_list names = {0};
	enum status status;
	char source[PATH_BYTES], target[PATH_BYTES];
	TRY_GOTO(folder_make(to), done);
	TRY_GOTO(folder_list(from, &names), done);
	for (int64_t i = 0; i < names.count; i++) {
		TRY_GOTO(path_join(source, from, names.names[i]), done);
		TRY_GOTO(path_join(target, to, names.names[i]), done);
		TRY_GOTO(file_is_folder(source) ? copy_folder(source, target) : file_copy(source, target), done);
	}
done:
	name_list_release(&names);
	return status;
}

/* Copies the result files in a folder, but not those in its subfolders. */
static enum status copy_results(const char *from, const char *to)
{
	struct name_list names = {0};
	struct buffer text = {0};
	enum status status;
	char source[PATH_BYTES], target[PATH_BYTES];
	TRY_GOTO(folder_list(from, &names), done);
	for (int64_t i = 0; i < names.count; i++) {
		const char *name = names.names[i];
		TRY_GOTO(path_join(source, from, name), done);
		TRY_GOTO(path_join(target, to, name), done);
		if (file_is_folder(source) || !results_is_file(name))
			continue;
		TRY_GOTO(owned_files_check(to, name, ""), done);
		TRY_GOTO(file_read(source, SIZE_MAX, &text), done);
		TRY_GOTO(owned_file_write(target, text.data, text.size), done);
	}
done:
	buffer_release(&text);
	name_list_release(&names);
	return status;
}

/* Copies the results of named test sets, which are in subfolders. */
static enum status copy_result_folders(const char *from, const char *to)
{
	struct name_list names = {0};
	enum status status;
	char source[PATH_BYTES], target[PATH_BYTES];
	TRY_GOTO(folder_list(from, &names), done);
	for (int64_t i = 0; i < names.count; i++) {
		TRY_GOTO(path_join(source, from, names.names[i]), done);
		TRY_GOTO(path_join(target, to, names.names[i]), done);
		if (!run_folder_holds_results(source))
			continue;
		TRY_GOTO(folder_make(target), done);
		TRY_GOTO(copy_results(source, target), done);
	}
done:
	name_list_release(&names);
	return status;
}

bool sweep_is_published(const struct sweep *sweep, int64_t run)
{
	char path[PATH_BYTES];
	return sweep->published && strcmp(sweep->published, sweep->runs[run].name) == 0 &&
	       path_join(path, sweep->folder, "final/" MANIFEST_NAME) == OK && file_exists(path);
}

enum status sweep_publish(const struct sweep *sweep, int64_t run)
{
	char folder[PATH_BYTES], model[PATH_BYTES], temporary[PATH_BYTES];
	TRY(sweep_run_folder(sweep, run, folder));
	TRY(path_join(model, folder, "final"));
	TRY(path_join(temporary, sweep->folder, TEMPORARY_PREFIX "final"));
	TRY(checkpoint_clean(sweep->folder));
	enum status status = copy_folder(model, temporary);
	if (status == OK)
		status = checkpoint_folder_publish(sweep->folder, temporary, "final");
	if (status != OK)
		return checkpoint_folder_abandon(temporary);
	TRY(run_folder_remove_results(sweep->folder));
	TRY(copy_results(folder, sweep->folder));
	return copy_result_folders(folder, sweep->folder);
}

static void release_runs(struct sweep_run *runs, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		free(runs[i].values);
	free(runs);
}

void sweep_release(struct sweep *sweep)
{
	for (int64_t s = 0; s < sweep->setting_count; s++)
		free(sweep->settings[s].values);
	free(sweep->settings);
	free(sweep->setting_names);
	release_runs(sweep->runs, sweep->run_count);
	release_runs(sweep->others, sweep->other_count);
	json_release(&sweep->record);
	string_store_release(&sweep->strings);
	*sweep = (struct sweep){0};
}
