/* A sweep in this process: which options may be swept and what their values mean, the options of each run, and the runs
 * themselves, one after another. run/sweep.h keeps the sweep's state. */
#include "cmd/finetune/finetune_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "comm/launcher.h"
#include "run/sweep.h"
#include "base/set_list.h"
#include "train/ranks.h"
#include "weights/model_files.h"

/* The options of one run: the command's, with the run's values. */
struct run_options {
	struct options options;
	struct finetune_settings settings;
	char out[PATH_BYTES];
	bool made;
};

struct finetune_sweep {
	struct options *options; /* the command's */
	struct machine *machine;
	struct sweep sweep;
	struct run_options *runs; /* [sweep.run_count] */
	struct run_folder folder;
	struct buffer record; /* the command's options, for sweep.json */
	bool trained;         /* a run of this process has started training */
	bool checked;         /* the remaining runs, against the files of the first run opened */
};

/* ---- What may be swept ---- */

/* Options that determine what is learned or how it is evaluated: runs that differ in them cannot be compared. */
static const char *const fixed[] = {
	"task",         "labels",        "label_column",      "text_column",      "pair_column",         "class_weights",
	"metric",       "on_bad_record", "max_train_samples", "max_eval_samples", "max_predict_samples", "folds",
	"group_column", "few_shot"};

static bool may_sweep(const struct option *row)
{
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		if (strcmp(row->name, fixed[i]) == 0)
			return false;
	return row->type != OPTION_LIST && (row->role == ROLE_RESULT || strcmp(row->name, "model") == 0);
}

static enum status find_option(struct sweep_setting *setting, const struct options *options)
{
	int index = options_find(options, setting->name);
	const struct option *row = index >= 0 ? &options->table[index] : NULL;
	enum status status;
	if (row && may_sweep(row)) {
		setting->name = row->name;
		if (!options_given(options, row->name) || options_origin(options, row->name) < options_origin(options, "sweep"))
			return OK;
		return error_hinted(error_set(ERR_USAGE, "--%s is given twice: by itself, and in --sweep", row->name),
				    "leave one of them out; what --sweep lists replaces the option");
	}
	if (row)
		return error_hinted(
			error_set(ERR_USAGE, "--sweep: %s cannot be swept", row->name),
			"only options that decide how well the model learns can be swept: rates, epochs, batch, seeds, "
			"dropout, model, ...");
	const char **names = NULL;
	int64_t count = 0;
	status = error_set(ERR_USAGE, "--sweep: there is no option '%s'", setting->name);
	if (memory_new(&names, options->count, sizeof *names, "names") != OK)
		return status;
	for (int i = 0; i < options->count; i++)
		if (options->table[i].name && may_sweep(&options->table[i]))
			names[count++] = options->table[i].name;
	const char *nearest = nearest_name(setting->name, names, count);
	if (nearest)
		error_hint("did you mean %s?", nearest);
	free(names);
	return status;
}

/* A number as people write it: 2e-5, 0.1, 3. */
static void write_number(double value, char out[64])
{
	int precision = 1;
	if (value == floor(value) && fabs(value) < 1e15) {
		snprintf(out, 64, "%.0f", value);
		return;
	}
	do
		snprintf(out, 64, "%.*g", precision, value);
	while (strtod(out, NULL) != value && precision++ < 17);
	char *exponent = strchr(out, 'e');
	if (!exponent)
		return;
	char *digits = exponent + 1 + (exponent[1] == '-' || exponent[1] == '+');
	char *first = digits + strspn(digits, "0");
	memmove(digits, first, strlen(first) + 1);
}

/* Replaces a value with its canonical text, so that a run keeps its folder however the value is written. */
static enum status settle_value(struct sweep *sweep, const struct options *scratch, const char *name, const char **value)
{
	const struct option *row = &scratch->table[options_find(scratch, name)];
	const char *field = (const char *)scratch->settings + row->field;
	char text[64];
	if (row->type == OPTION_INTEGER)
		snprintf(text, sizeof text, "%" PRId64, *(const int64_t *)field);
	else if (row->type == OPTION_NUMBER)
		write_number(*(const double *)field, text);
	else if (row->type == OPTION_FLAG)
		snprintf(text, sizeof text, "%s", *(const bool *)field ? "true" : "false");
	else
		return OK;
	return string_store_copy(&sweep->strings, text, strlen(text), value);
}

static enum status settle_setting(struct finetune_sweep *self, struct sweep_setting *setting)
{
	TRY(find_option(setting, self->options));
	for (int64_t i = 0; i < setting->count; i++) {
		struct finetune_settings settings = {0};
		struct options scratch;
		TRY(options_derive(&scratch, self->options, self->options->section_count, &settings));
		enum status status = options_set(&scratch, setting->name, setting->values[i], ORIGIN_COMMAND);
		if (status == OK)
			status = settle_value(&self->sweep, &scratch, setting->name, &setting->values[i]);
		options_release(&scratch);
		TRY(status);
	}
	return OK;
}

/* ---- The options of each run ---- */

static void release_run_options(struct finetune_sweep *self)
{
	for (int64_t i = 0; self->runs && i < self->sweep.run_count; i++)
		if (self->runs[i].made)
			options_release(&self->runs[i].options);
	free(self->runs);
	self->runs = NULL;
}

static enum status make_run_options(struct finetune_sweep *self)
{
	static const char *const of_the_sweep[] = {"sweep", "fresh", "max_time"};
	const struct sweep *sweep = &self->sweep;
	release_run_options(self);
	TRY(memory_new(&self->runs, sweep->run_count, sizeof *self->runs, "runs of a sweep"));
	for (int64_t i = 0; i < sweep->run_count; i++) {
		struct run_options *run = &self->runs[i];
		TRY(options_derive(&run->options, self->options, self->options->section_count, &run->settings));
		run->made = true;
		for (size_t k = 0; k < sizeof of_the_sweep / sizeof *of_the_sweep; k++)
			options_forget(&run->options, of_the_sweep[k]);
		TRY(sweep_run_folder(sweep, i, run->out));
		TRY(options_set(&run->options, "out", run->out, ORIGIN_COMMAND));
		for (int64_t s = 0; s < sweep->setting_count; s++)
			TRY(options_set(&run->options, sweep->settings[s].name, sweep->runs[i].values[s], ORIGIN_COMMAND));
		TRY(training_settle(&run->options));
	}
	return OK;
}

/* ---- Before the first run ---- */

static enum status check_settings(const struct finetune_settings *settings)
{
	const struct folder_options *folder = &settings->training.folder;
	if (folder->resume_from || folder->resume_step >= 0)
		return error_set(ERR_USAGE,
				 "--sweep and --%s cannot be combined: each run resumes from its own newest checkpoint",
				 folder->resume_from ? "resume_from" : "resume_step");
	if (!folder->out)
		return error_hinted(error_set(ERR_USAGE, "--out is missing"),
				    "name the sweep's folder; its runs get folders in it");
	return OK;
}

/* Folds a file's contents into an identity. */
static enum status add_file(uint64_t *hash, uint64_t kind, const char *path)
{
	int64_t bytes;
	uint32_t crc;
	TRY(file_checksum(path, &bytes, &crc));
	*hash = hash64_combine(*hash, kind << 32 | crc);
	return OK;
}

/* The identity of everything that runs read besides their model: sets of examples, other models, and files. */
static enum status hash_files(const struct finetune_settings *settings, uint64_t *out)
{
	const struct option_list *lists[] = {&settings->labeled.train, &settings->labeled.dev, &settings->labeled.test};
	const struct embedding_settings *embedding = &settings->labeled.own.embedding;
	const char *const files[] = {settings->labeled.config_file, settings->labeled.vocab_file, embedding->teacher_vectors};
	const char *const models[] = {settings->distillation.teacher, embedding->guide};
	uint64_t model;
	*out = 0;
	for (uint64_t k = 0; k < 3; k++)
		for (int64_t i = 0; i < lists[k]->count; i++) {
			const char *value = lists[k]->values[i];
			size_t name_size = set_name_size(value);
			TRY(add_file(out, k, set_path(value)));
			if (name_size > 0)
				*out = hash64_combine(*out, hash64(value, name_size));
		}
	for (uint64_t k = 0; k < sizeof files / sizeof *files; k++)
		if (files[k])
			TRY(add_file(out, 3 + k, files[k]));
	for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
		if (!models[k])
			continue;
		TRY(model_files_hash(models[k], &model));
		*out = hash64_combine(*out, model);
	}
	return OK;
}

/* Sets the model of each run, which must be the one that it started with. */
static enum status take_models(struct finetune_sweep *self)
{
	for (int64_t i = 0; i < self->sweep.run_count; i++) {
		const char *model = self->runs[i].settings.labeled.model,
			   *before = i > 0 ? self->runs[i - 1].settings.labeled.model : NULL;
		uint64_t hash = before ? self->sweep.runs[i - 1].model : 0;
		if (!before || !model || strcmp(model, before) != 0)
			TRY(model_files_hash(model, &hash));
		TRY(sweep_set_model(&self->sweep, i, model, hash));
	}
	return OK;
}

/* After a run has read its files: checks that they are the files of the other runs. */
static enum status check_inputs(struct finetune_sweep *self, int64_t index)
{
	const struct finetune_settings *settings = self->options->settings;
	const char *model = self->runs[index].settings.labeled.model;
	uint64_t data, hash;
	TRY(hash_files(settings, &data));
	if (data != self->sweep.data)
		return sweep_data_have_changed(&self->sweep);
	TRY(model_files_hash(model, &hash));
	return sweep_set_model(&self->sweep, index, model, hash);
}

/* Restores the other options as they were when the sweep started, and checks that the files are the same. */
static enum status take_record(struct finetune_sweep *self)
{
	const struct finetune_settings *settings = self->options->settings;
	const struct json *recorded = json_member(self->sweep.record.root, "settings");
	uint64_t data;
	if (recorded) {
		TRY(options_resume(self->options, recorded, SWEEP_RECORD, SCOPE_ALL));
		TRY(options_resume_start(self->options, recorded, SWEEP_RECORD, false));
	}
	if (settings->labeled.dev.count == 0 && settings->labeled.folds.folds == 0)
		return error_hinted(error_set(ERR_USAGE, "--sweep needs a dev set to compare its runs"),
				    "give one with --dev FILE");
	TRY(hash_files(settings, &data));
	TRY(sweep_set_data(&self->sweep, data));
	return sweep_set_judge(&self->sweep, settings->labeled.metric, settings->training.saving.best_by);
}

/* Opens the folder and loads the sweep's state. The first rank prepares the folder; then all ranks read it. */
static enum status open_folder(struct finetune_sweep *self)
{
	struct machine *machine = self->machine;
	const struct run_folder_settings folder = finetune_folder(self->options);
	enum status status = OK;
	TRY(machine_join(machine));
	if (is_first_rank(machine->comm) && !folder.given->plan)
		status = run_folder_take(&self->folder, &folder, machine);
	else if (!is_first_rank(machine->comm))
		status = launcher_log(&machine->place, folder.given->out);
	TRY(ranks_agree(machine->comm, status));
	status = sweep_load(&self->sweep);
	if (status == OK)
		status = take_record(self);
	return ranks_agree(machine->comm, status);
}

static enum status save(struct finetune_sweep *self)
{
	enum status status = OK;
	if (is_first_rank(self->machine->comm))
		status = sweep_save(&self->sweep, buffer_string(&self->record));
	return ranks_agree(self->machine->comm, status);
}

static bool is_over(const struct sweep_run *run)
{
	return run->state == SWEEP_FINISHED || run->state == SWEEP_FAILED;
}

/* Checks, with the files that the first run has read, whether the other runs would work. */
static enum status check_runs(struct finetune_sweep *self, const struct finetune *opened)
{
	const struct labeled_run *labeled = &opened->labeled;
	const char *best_by = opened->run.values->saving.best_by;
	TRY(sweep_set_judge(&self->sweep, labeled->task.decides, best_by ? best_by : labeled->dev[0].name));
	for (int64_t i = 0; i < self->sweep.run_count; i++) {
		const struct run_options *run = &self->runs[i];
		if (is_over(&self->sweep.runs[i]))
			continue;
		enum status status = labeled_run_check(labeled, &run->options);
		if (status != OK) {
			struct error error = *error_last();
			return error_hinted(error_set(status, "the run %s: %s", self->sweep.runs[i].name, error.message), "%s",
					    error.hint);
		}
	}
	return OK;
}

/* ---- The runs ---- */

static enum status note_failure(struct finetune_sweep *self, struct sweep_run *run)
{
	const char *message = error_last()->message;
	log_warning("the run %s failed: %s; the sweep continues", run->name, message);
	run->state = SWEEP_FAILED;
	run->score = NAN;
	return string_store_copy(&self->sweep.strings, message, strlen(message), &run->message);
}

static enum status train_run(struct finetune_sweep *self, struct finetune *finetune, int64_t index)
{
	struct sweep_run *run = &self->sweep.runs[index];
	TRY(finetune_prepare(finetune));
	TRY(ranks_agree(self->machine->comm, check_inputs(self, index)));
	if (!self->checked)
		TRY(ranks_agree(self->machine->comm, check_runs(self, finetune)));
	self->checked = true;
	run->state = SWEEP_RUNNING;
	self->trained = true;
	if (!finetune->run.values->folder.plan)
		TRY(save(self));
	TRY(finetune_train(finetune));
	run->state = SWEEP_FINISHED;
	run->score = finetune->labeled.result.score;
	run->step = finetune->labeled.result.step;
	return OK;
}

/* Numbers that are not finite end a run, but not the sweep: the run's learning rate was too high. */
static enum status run_one(struct finetune_sweep *self, int64_t index)
{
	struct sweep_run *run = &self->sweep.runs[index];
	struct finetune finetune = {
		.options = &self->runs[index].options, .machine = self->machine, .in_sweep = true, .brief = self->checked};
	log_note("run %" PRId64 " of %" PRId64 ": %s", index + 1, self->sweep.run_count, run->name);
	enum status status = finetune_close(&finetune, train_run(self, &finetune, index));
	return status == ERR_NUMERIC && self->checked ? note_failure(self, run) : status;
}

/* Checks for a request to stop that arrived after a run had finished. All ranks agree. */
static enum status check_stop(struct finetune_sweep *self)
{
	double stop = stop_requested();
	if (ranks_count(self->machine->comm) > 1)
		TRY(comm_sum(self->machine->comm, &stop, 1));
	if (stop == 0)
		return OK;
	const char *reason = stop_reason();
	return error_hinted(error_set(STOPPED, "stopped between two runs%s%s", reason ? " by " : "", reason ? reason : ""),
			    "run the same command again to resume");
}

static enum status prune(struct finetune_sweep *self, int64_t index)
{
	enum status status = OK;
	if (is_first_rank(self->machine->comm) && self->sweep.runs[index].state == SWEEP_FINISHED)
		status = sweep_prune(&self->sweep, index);
	return ranks_agree(self->machine->comm, status);
}

static enum status run_all(struct finetune_sweep *self)
{
	struct sweep *sweep = &self->sweep;
	bool plan = ((const struct finetune_settings *)self->options->settings)->training.folder.plan;
	for (int64_t i = 0; i < sweep->run_count; i++) {
		bool over = is_over(&sweep->runs[i]);
		if (!over && self->checked)
			TRY(check_stop(self));
		if (!over)
			TRY(run_one(self, i));
		if (plan)
			return OK;
		if (!over)
			TRY(save(self));
		TRY(prune(self, i));
	}
	return OK;
}

/* ---- The result ---- */

static enum status finish(struct finetune_sweep *self)
{
	const struct finetune_settings *settings = self->options->settings;
	struct sweep *sweep = &self->sweep;
	struct buffer table = {0};
	int64_t best, ties;
	enum status status = OK;
	TRY(save(self));
	TRY(sweep_best(sweep, &best, &ties));
	if (best < 0)
		return error_hinted(error_set(ERR_NUMERIC, "no run of the sweep has a score"),
				    "look at %s/report.html for why they failed; lower learning rates help most often",
				    sweep->folder);
	if (!is_first_rank(self->machine->comm))
		return ranks_agree(self->machine->comm, OK);
	if (!sweep_is_published(sweep, best) || self->trained)
		status = sweep_publish(sweep, best);
	sweep->published = sweep->runs[best].name;
	if (status == OK)
		status = sweep_save(sweep, buffer_string(&self->record));
	if (status == OK)
		status = sweep_table(sweep, &table);
	if (status == OK) {
		fputs(buffer_string(&table), stdout);
		if (ties > 0)
			log_warning("%" PRId64
				    " runs did equally well: the sweep does not tell which is best, and the first of them is "
				    "kept",
				    ties + 1);
		log_note("%s %s: its model is in %s/final and its results are beside it; each run keeps its finished model, and "
			 "the checkpoints are removed",
			 ties > 0 ? "the run that is kept is" : "the best run is", sweep->runs[best].name, sweep->folder);
	}
	buffer_release(&table);
	if (status == OK && settings->labeled.folds.folds > 0)
		status = finetune_folds_finish(sweep);
	return ranks_agree(self->machine->comm, status);
}

static enum status show_plan(const struct finetune_sweep *self)
{
	const struct sweep *sweep = &self->sweep;
	log_note("\n%" PRId64 " runs, of which the first was planned:", sweep->run_count);
	for (int64_t i = 0; i < sweep->run_count; i++)
		log_note("  %s", sweep->runs[i].name);
	return OK;
}

static enum status parse_folds(struct finetune_sweep *self)
{
	const struct finetune_settings *settings = self->options->settings;
	struct buffer text = {0};
	if (settings->sweep.count > 0)
		return error_set(ERR_USAGE, "--folds and --sweep cannot be combined");
	enum status status = finetune_folds_setting(settings->labeled.folds.folds, &text);
	const char *value = buffer_string(&text);
	if (status == OK)
		status = sweep_parse(&self->sweep, &(struct option_list){&value, 1, 1});
	buffer_release(&text);
	return status;
}

static enum status sweep_runs(struct finetune_sweep *self)
{
	const struct finetune_settings *settings = self->options->settings;
	struct json_writer writer = {.out = &self->record};
	double seconds;
	TRY(check_settings(settings));
	self->sweep.folder = settings->training.folder.out;
	if (settings->labeled.folds.folds > 0)
		TRY(parse_folds(self));
	else
		TRY(sweep_parse(&self->sweep, &settings->sweep));
	for (int64_t s = 0; s < self->sweep.setting_count; s++)
		TRY(settle_setting(self, &self->sweep.settings[s]));
	TRY(sweep_make_runs(&self->sweep));
	TRY(make_run_options(self));
	if (settings->training.stopping.max_time) {
		TRY(duration_parse(settings->training.stopping.max_time, &seconds));
		stop_deadline(clock_seconds() + seconds);
	}
	TRY(open_folder(self));
	TRY(make_run_options(self));
	TRY(ranks_agree(self->machine->comm, take_models(self)));
	options_write_json(self->options, &writer, NULL, SCOPE_ALL);
	TRY(buffer_status(&self->record));
	log_results_to(NULL); /* the sweep's result is the table of all runs */
	TRY(run_all(self));
	return settings->training.folder.plan ? show_plan(self) : finish(self);
}

enum status finetune_sweep(struct options *options, struct machine *machine)
{
	struct finetune_sweep self = {.options = options, .machine = machine, .folder = {.lock = -1}};
	enum status status = sweep_runs(&self);
	struct error error = *error_last();
	comm_fail(machine->comm, status);
	release_run_options(&self);
	sweep_release(&self.sweep);
	buffer_release(&self.record);
	if (status != OK)
		run_folder_leave(&self.folder);
	run_folder_close(&self.folder);
	return status == OK ? OK : error_restore(&error);
}
