/* Locks a run's folder, removes an earlier run on request, and finds the checkpoint to resume from. */
#include "run/run_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/owned_files.h"
#include "comm/launcher.h"
#include "formats/event_file.h"
#include "run/data_folder.h"
#include "tasks/results.h"
#include "base/set_list.h"
#include "train/ranks.h"
#include "weights/manifest.h"

/* ---- --fresh ---- */

static enum status check_outside(const char *folder, const char *path)
{
	if (!path_lies_within(folder, path))
		return OK;
	return error_hinted(error_set(ERR_USAGE, "'%s' is the folder that --fresh clears, or inside it", path),
			    "copy it elsewhere, or choose another --out");
}

/* Adds the files that a path, a pattern, or a PREFIX[:WEIGHT] of shards stands for. */
static enum status expand_source(const char *source, struct name_list *out)
{
	char index[PATH_BYTES + 8];
	const char *colon = strrchr(source, ':');
	const int whole = (int)strlen(source), sizes[] = {whole, colon ? (int)(colon - source) : whole};
	for (int i = 0; i < 2; i++) {
		snprintf(index, sizeof index, "%.*s.idx", sizes[i] < PATH_BYTES ? sizes[i] : PATH_BYTES, source);
		if (file_exists(index))
			return name_list_add(out, index);
	}
	return path_expand(source, out);
}

/* What a run with --fresh needs must exist, and must be neither the folder that is cleared nor inside it. */
static enum status check_fresh(const struct run_folder_settings *settings)
{
	static const char *const inputs[] = {"vocab_file",  "model",   "init_checkpoint", "init_vocab",      "resume_from",
					     "config_file", "teacher", "guide",           "teacher_vectors", "data_dir"};
	const struct options *options = settings->options;
	struct name_list sources = {0}, files = {0};
	if (settings->given->plan)
		return error_set(ERR_USAGE, "--fresh and --plan cannot be combined: a plan removes nothing");
	for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
		int index = options_find(options, inputs[i]);
		if (index >= 0 && options->text[index])
			TRY(check_outside(settings->given->out, options->text[index]));
	}
	enum status status = options_sources(options, &sources);
	for (int64_t i = 0; status == OK && i < sources.count; i++)
		status = expand_source(sources.names[i], &files);
	for (int64_t i = 0; status == OK && i < files.count; i++)
		status = check_outside(settings->given->out, files.names[i]);
	name_list_release(&sources);
	name_list_release(&files);
	return status;
}

/* Is it our record of a sweep? Other programs use the name for what they are to try. */
static bool is_sweep(const char *path)
{
	struct json_document record;
	if (!file_exists(path) || json_read(&record, path, SWEEP_RECORD_BYTES) != OK)
		return false;
	const struct json *runs = json_member(record.root, "runs");
	bool ours = runs && runs->kind == JSON_ARRAY;
	json_release(&record);
	return ours;
}

#define SETTINGS_LIMIT ((size_t)64 << 20)

static bool is_settings(const char *path)
{
	struct json_document record;
	if (!file_exists(path) || json_read(&record, path, SETTINGS_LIMIT) != OK)
		return false;
	bool ours = options_is_record(record.root);
	json_release(&record);
	return ours;
}

static enum status has_checkpoint(const char *out, bool *has)
{
	int64_t *steps, count;
	char name[64], state[96], path[PATH_BYTES];
	*has = false;
	TRY(checkpoint_list(out, &steps, &count));
	enum status status = OK;
	for (int64_t i = 0; i < count && status == OK && !*has; i++) {
		checkpoint_name(name, steps[i]);
		snprintf(state, sizeof state, "%s/training_state.json", name);
		status = path_join(path, out, state);
		*has = status == OK && file_exists(path);
	}
	free(steps);
	return status;
}

/* A folder holds a run if it has the mark of a run's data, the record of a sweep, a checkpoint, or the settings of a run, which
 * are written before its first step; if somebody has damaged those, metrics beside them say that they were a run's. */
static enum status holds_run(const char *out, bool *holds)
{
	char mark[PATH_BYTES], settings[PATH_BYTES], metrics[PATH_BYTES], sweep[PATH_BYTES];
	TRY(path_join(mark, out, RUN_FOLDER_MARK));
	TRY(path_join(settings, out, "settings.json"));
	TRY(path_join(metrics, out, "metrics.jsonl"));
	TRY(path_join(sweep, out, SWEEP_RECORD));
	*holds = file_exists(mark) || is_sweep(sweep) || is_settings(settings) || (file_exists(settings) && file_exists(metrics));
	return *holds ? OK : has_checkpoint(out, holds);
}

static bool holds_only(const char *folder, const char *name)
{
	struct name_list names = {0};
	bool only = folder_list(folder, &names) == OK && names.count == 1 && strcmp(names.names[0], name) == 0;
	name_list_release(&names);
	return only;
}

static bool holds_nothing(const char *path)
{
	struct name_list names = {0};
	bool nothing = file_is_folder(path) && folder_list(path, &names) == OK && names.count == 0;
	name_list_release(&names);
	return nothing;
}

bool run_folder_holds_results(const char *path)
{
	struct name_list names = {0};
	bool only = file_is_folder(path) && folder_list(path, &names) == OK && names.count > 0;
	for (int64_t i = 0; only && i < names.count; i++)
		only = results_is_file(names.names[i]) || strcmp(names.names[i], OWNED_FILES_NAME) == 0;
	name_list_release(&names);
	return only;
}

enum status run_folder_check_results(const char *path)
{
	struct name_list names = {0};
	enum status status = file_is_folder(path) ? folder_list(path, &names) : OK;
	for (int64_t i = 0; status == OK && i < names.count; i++)
		if (results_is_file(names.names[i]))
			status = owned_files_check(path, names.names[i], "a run keeps its results under that name");
	name_list_release(&names);
	return status;
}

/* Removes the results that are listed as ours; the list, too, if nothing else is in the folder. */
static enum status remove_own_results(const char *folder, bool *out_only)
{
	struct owned_files own;
	char path[PATH_BYTES];
	enum status status;
	TRY_GOTO(owned_files_read(&own, folder), done);
	for (int64_t i = 0; i < own.count; i++) {
		TRY_GOTO(path_join(path, folder, own.files[i].name), done);
		if (results_is_file(own.files[i].name))
			TRY_GOTO(owned_file_remove(path), done);
	}
	*out_only = holds_nothing(folder);
done:
	owned_files_release(&own);
	return status;
}

enum status run_folder_remove_results(const char *path)
{
	struct name_list names = {0};
	enum status status;
	char entry[PATH_BYTES];
	bool only = false;
	TRY_GOTO(folder_list(path, &names), done);
	for (int64_t i = 0; i < names.count; i++) {
		TRY_GOTO(path_join(entry, path, names.names[i]), done);
		if (!run_folder_holds_results(entry))
			continue;
		TRY_GOTO(remove_own_results(entry, &only), done);
		if (only)
			TRY_GOTO(folder_remove(entry), done);
	}
	status = remove_own_results(path, &only);
done:
	name_list_release(&names);
	return status;
}

/* What a run writes into its folder, apart from checkpoints and results. */
static const char *const run_files[] = {"final",         "best.json",     "metrics.jsonl", "report.html",
					"samples.jsonl", "settings.json", SWEEP_RECORD};
#define RUN_FILES (sizeof run_files / sizeof *run_files)

static bool is_run_file(const char *name)
{
	bool is = results_is_file(name) || strncmp(name, EVENT_FILE_START, strlen(EVENT_FILE_START)) == 0;
	for (size_t i = 0; i < RUN_FILES; i++)
		is |= strcmp(name, run_files[i]) == 0;
	return is;
}

/* The folder holds a run of a version that kept no list: what has a name of a run counts as the run's. */
static enum status is_unlisted_run(const char *out, bool *is)
{
	struct owned_files own;
	enum status status = owned_files_read(&own, out);
	bool listed = own.exists;
	owned_files_release(&own);
	*is = false;
	TRY(status);
	return listed || !file_is_folder(out) ? OK : holds_run(out, is);
}

static enum status list_unlisted(const char *folder)
{
	struct name_list names = {0};
	enum status status;
	char path[PATH_BYTES];
	TRY_GOTO(folder_list(folder, &names), done);
	for (int64_t i = 0; i < names.count; i++) {
		TRY_GOTO(path_join(path, folder, names.names[i]), done);
		if (is_run_file(names.names[i]))
			TRY_GOTO(owned_files_add(folder, names.names[i], OWNED_UNKNOWN), done);
		else if (run_folder_holds_results(path))
			TRY_GOTO(list_unlisted(path), done);
	}
done:
	name_list_release(&names);
	return status;
}

static enum status remove_earlier_run(const char *out);

/* What a person has put beside the files of the run stays. */
static enum status remove_run_of_sweep(const char *folder)
{
	static const char *const rest[] = {".lock", "logs"};
	char path[PATH_BYTES];
	bool unlisted;
	TRY(is_unlisted_run(folder, &unlisted));
	if (unlisted)
		TRY(list_unlisted(folder));
	TRY(remove_earlier_run(folder));
	for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
		TRY(path_join(path, folder, rest[i]));
		if (file_is_folder(path))
			TRY(folder_remove(path));
		else
			TRY(owned_file_remove(path));
	}
	if (rmdir(folder) != 0)
		log_note("'%s' holds more than the run that was in it; that stays", folder);
	return OK;
}

/* Removes the runs listed in a sweep's record, and the record. */
static enum status remove_sweep(const char *out)
{
	struct json_document record = {0};
	char path[PATH_BYTES];
	enum status status;
	TRY(path_join(path, out, SWEEP_RECORD));
	if (!is_sweep(path))
		return OK;
	TRY(json_read(&record, path, SWEEP_RECORD_BYTES));
	const struct json *lists[] = {json_member(record.root, "runs"), json_member(record.root, "earlier_runs")};
	for (int i = 0; i < 2; i++)
		for (const struct json *run = lists[i] ? lists[i]->first_child : NULL; run; run = run->next) {
			const char *name = NULL;
			char folder[PATH_BYTES];
			TRY_GOTO(json_get_string(run, path, "name", &name), done);
			/* Only names that we gave, and no paths. */
			if (!name || !strchr(name, '=') || strchr(name, '/'))
				continue;
			TRY_GOTO(path_join(folder, out, name), done);
			if (file_is_folder(folder))
				TRY_GOTO(remove_run_of_sweep(folder), done);
		}
	status = file_operations.unlink(path) == 0 ? OK : error_set_errno(ERR_RESOURCE, "'%s': cannot remove", path);
done:
	json_release(&record);
	return status;
}

/* --fresh: removes the entries of an earlier run by their names and leaves all others; removes nothing from a folder without a
 * run. */
static enum status remove_earlier_run(const char *out)
{
	bool holds;
	TRY(holds_run(out, &holds));
	if (!holds)
		return OK;
	struct name_list entries = {0};
	struct owned_files own = {0};
	char mark[PATH_BYTES];
	enum status status;
	TRY(path_join(mark, out, RUN_FOLDER_MARK));
	bool has_data = file_exists(mark); /* otherwise a folder called data is the user's */
	TRY(remove_sweep(out));
	TRY(run_folder_remove_results(out));
	TRY_GOTO(owned_files_read(&own, out), done);
	TRY_GOTO(folder_list(out, &entries), done);
	for (int64_t i = 0; i < entries.count; i++) {
		const char *name = entries.names[i];
		char path[PATH_BYTES];
		TRY_GOTO(path_join(path, out, name), done);
		struct stat facts;
		bool is_link = lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode);
		if (checkpoint_path_step(name) >= 0)
			TRY_GOTO(checkpoint_folder_discard(out, name), done);
		else if (strcmp(name, "data") == 0 ? has_data && !is_link : owned_files_find(&own, name) && file_is_folder(path))
			TRY_GOTO(folder_remove(path), done);
		else if (strcmp(name, "best") == 0 ? is_link : owned_files_find(&own, name) != NULL)
			TRY_GOTO(owned_file_remove(path), done);
	}
	TRY_GOTO(path_join(mark, out, OWNED_FILES_NAME), done);
	status = owned_file_remove(mark);
done:
	owned_files_release(&own);
	name_list_release(&entries);
	return status;
}

/* ---- The checkpoint to resume from ---- */

/* Makes `path` absolute, even if its last part no longer exists (was pruned). */
static enum status canonical(const char *path, char out[PATH_BYTES])
{
	char *whole = realpath(path, NULL);
	enum status status;
	if (whole) {
		snprintf(out, PATH_BYTES, "%s", whole);
		free(whole);
		return OK;
	}
	char parent[PATH_BYTES];
	path_folder(parent, path);
	whole = realpath(parent, NULL);
	status = path_join(out, whole ? whole : parent, path_name(path));
	free(whole);
	return status;
}

/* The checkpoint that --resume_from names: itself a checkpoint, or a run folder, whose newest one is taken. */
static enum status find_named(const struct run_folder_settings *settings, const char *name, char out[PATH_BYTES])
{
	char manifest[PATH_BYTES];
	bool found = false;
	TRY(path_join(manifest, name, "training_state.json"));
	if (file_exists(manifest)) {
		snprintf(out, PATH_BYTES, "%s", name);
		return checkpoint_verify(name);
	}
	if (file_is_folder(name))
		TRY(checkpoint_latest(name, out, &found));
	if (found)
		return OK;
	if (!file_exists(name))
		return checkpoint_missing(name, "give a run folder or one of its checkpoints");
	return error_hinted(error_set(ERR_USAGE, "'%s' is neither a checkpoint nor a run folder with one", name),
			    "--resume_from takes a folder checkpoint-<step> that `bertc %s` wrote", settings->command);
}

/* Is `folder` the parent of `path`, once both are resolved by realpath()? */
static bool is_parent(const char *folder, const char *path)
{
	char *outer = realpath(folder, NULL), *inner = realpath(path, NULL);
	char *slash = inner ? strrchr(inner, '/') : NULL;
	bool is =
		outer && slash && strlen(outer) == (size_t)(slash - inner) && strncmp(outer, inner, (size_t)(slash - inner)) == 0;
	free(outer);
	free(inner);
	return is;
}

/* --resume_from: takes its checkpoint in place of the newest, unless the folder's newest already descends from it, as when the
 * same command is run again. On entry, start->resumed says whether the folder has a checkpoint at all. */
static enum status resume_from(struct run_start *start, const struct run_folder_settings *settings, const char *wanted)
{
	char name[PATH_BYTES], checkpoint[PATH_BYTES];
	TRY(canonical(wanted, name));
	if (start->resumed && strcmp(start->resumed_from, name) == 0)
		return OK;
	TRY(find_named(settings, name, checkpoint));
	bool own = is_parent(settings->given->out, checkpoint);
	start->begun = false;
	if (start->resumed && !own)
		return error_hinted(error_set(ERR_STATE, "'%s' contains another run, to which '%s' does not belong",
					      settings->given->out, wanted),
				    "choose another --out, or give --fresh to clear this one");
	json_release(&start->record);
	TRY(checkpoint_read_state(checkpoint, &start->record, &start->state, &start->data_hash));
	start->goes_back = own;
	snprintf(start->checkpoint, sizeof start->checkpoint, "%s", checkpoint);
	snprintf(start->resumed_from, sizeof start->resumed_from, "%s", name);
	start->own = own;
	start->resumed = true;
	return OK;
}

/* Reads settings.json of a run that was started here, if there is no checkpoint: the run's settings were fixed when it
 * started. */
static enum status find_begun(struct run_start *start, const struct run_folder_settings *settings, const char **resume_from)
{
	TRY(path_join(start->settings, settings->given->out, "settings.json"));
	if (start->resumed || !file_exists(start->settings)) {
		start->settings[0] = '\0';
		return OK;
	}
	TRY(json_read(&start->record, start->settings, SETTINGS_LIMIT));
	start->begun = options_is_record(start->record.root);
	if (!start->begun) {
		json_release(&start->record);
		return error_set(ERR_USAGE, "'%s' exists but is not the record of a run", start->settings);
	}
	return *resume_from ? OK : json_get_string(start->record.root, start->settings, "resume_from", resume_from);
}

/* Finds the checkpoint to resume from, if there is one, and reads its record. */
static enum status find_checkpoint(struct run_start *start, const struct run_folder_settings *settings)
{
	const char *before = NULL, *wanted = settings->given->resume_from;
	char numbered[PATH_BYTES], named[PATH_BYTES];
	if (settings->given->resume_step >= 0 && settings->given->resume_from)
		return error_set(ERR_USAGE, "--resume_step and --resume_from cannot be combined");
	if (settings->given->resume_step >= 0) {
		snprintf(numbered, sizeof numbered, "%.4000s/checkpoint-%" PRId64, settings->given->out,
			 settings->given->resume_step);
		wanted = numbered;
	}
	TRY(checkpoint_latest(settings->given->out, start->checkpoint, &start->resumed));
	if (start->resumed) {
		TRY(checkpoint_read_state(start->checkpoint, &start->record, &start->state, &start->data_hash));
		TRY(json_get_string(start->record.root, start->checkpoint, "resumed_from", &before));
		snprintf(start->resumed_from, sizeof start->resumed_from, "%s", before ? before : "");
		start->own = true;
	}
	TRY(find_begun(start, settings, &wanted));
	if (!wanted)
		return OK;
	snprintf(named, sizeof named, "%s", wanted); /* the record that may contain it will be released */
	return resume_from(start, settings, named);
}

/* Sends what the first rank found to the others, which then read it. */
static enum status share_start(struct run_start *start, const struct run_folder_settings *settings, struct machine *machine)
{
	struct found {
		char checkpoint[PATH_BYTES], resumed_from[PATH_BYTES], settings[PATH_BYTES];
		bool resumed, begun, own;
	} * found;
	TRY(memory_new(&found, 1, sizeof *found, "the checkpoint found"));
	memcpy(found->checkpoint, start->checkpoint, sizeof found->checkpoint);
	memcpy(found->resumed_from, start->resumed_from, sizeof found->resumed_from);
	memcpy(found->settings, start->settings, sizeof found->settings);
	found->resumed = start->resumed;
	found->begun = start->begun;
	found->own = start->own;
	enum status status = comm_broadcast(machine->comm, found, sizeof *found, 0);
	memcpy(start->checkpoint, found->checkpoint, sizeof found->checkpoint);
	memcpy(start->resumed_from, found->resumed_from, sizeof found->resumed_from);
	memcpy(start->settings, found->settings, sizeof start->settings);
	start->resumed = found->resumed;
	start->begun = found->begun;
	start->own = found->own;
	free(found);
	if (status != OK || is_first_rank(machine->comm))
		return status;
	if (!file_is_folder(settings->given->out))
		return error_hinted(error_set(ERR_USAGE, "'%s': rank %d on %s cannot see the run folder", settings->given->out,
					      comm_place(machine->comm)->rank, comm_place(machine->comm)->host),
				    "--out must be a folder shared by all machines");
	if (!settings->in_sweep)
		TRY(launcher_log(&machine->place, settings->given->out));
	if (start->begun)
		return json_read(&start->record, start->settings, SETTINGS_LIMIT);
	if (!start->resumed)
		return OK;
	return checkpoint_read_state(start->checkpoint, &start->record, &start->state, &start->data_hash);
}

void run_start_release(struct run_start *start)
{
	json_release(&start->record);
	*start = (struct run_start){0};
}

/* ---- The folder ---- */

static enum status name_folder(struct run_folder *folder, const struct run_folder_settings *settings)
{
	*folder = (struct run_folder){.path = settings->given->out, .lock = -1};
	if (!settings->given->out)
		return error_hinted(error_set(ERR_USAGE, "--out is missing"), "give the run folder: %s", settings->usage);
	TRY(path_join(folder->data, settings->given->out, "data"));
	return path_join(folder->metrics, settings->given->out, "metrics.jsonl");
}

static enum status take_folder(struct run_folder *folder)
{
	folder->made = !file_exists(folder->path);
	TRY(folder_make(folder->path));
	return folder_lock(folder->path, &folder->lock);
}

/* A run and a sweep in one folder would overwrite each other's results. */
static enum status check_kind(const struct run_folder_settings *settings)
{
	char path[PATH_BYTES], checkpoint[PATH_BYTES];
	bool has_checkpoint = false, holds;
	TRY(path_join(path, settings->given->out, SWEEP_RECORD));
	bool has_sweep = is_sweep(path);
	if (settings->sweep && !has_sweep && file_exists(path))
		return error_hinted(error_set(ERR_STATE, "'%s' is not the record of a sweep, or is damaged", path),
				    "move it elsewhere, or choose another --out");
	if (has_sweep == settings->sweep)
		return OK;
	if (has_sweep)
		return error_hinted(error_set(ERR_STATE, "'%s' holds a sweep", settings->given->out),
				    "give its --sweep to resume it, --fresh to clear the folder, or another --out");
	TRY(holds_run(settings->given->out, &holds));
	TRY(checkpoint_latest(settings->given->out, checkpoint, &has_checkpoint));
	if (!holds && !has_checkpoint)
		return OK;
	return error_hinted(error_set(ERR_STATE, "'%s' holds another run, which is not a sweep", settings->given->out),
			    "give --fresh to clear the folder, or choose another --out");
}

/* A run in the folder of a finished model would be taken for part of it, and the model for part of the run. */
static enum status check_no_model(const char *out)
{
	char path[PATH_BYTES];
	TRY(path_join(path, out, "config.json"));
	if (!file_exists(path))
		return OK;
	return error_hinted(error_set(ERR_USAGE, "'%s' is the folder of a model, not of a run", out),
			    "choose another --out; to start from this model, name it as --model or --init_checkpoint");
}

/* `best` is a link to a checkpoint. */
static bool is_own_best(const char *path)
{
	char target[PATH_BYTES];
	ssize_t length = readlink(path, target, sizeof target - 1);
	if (length < 0)
		return errno == ENOENT || errno == ENOTDIR || holds_nothing(path);
	target[length] = '\0';
	return checkpoint_path_step(target) >= 0;
}

/* A run replaces what has its names. What a person keeps there must be noticed before anything is trained or cleared. */
static enum status check_names(const struct run_folder_settings *settings, bool unlisted)
{
	static const char *const advice[RUN_FILES] = {"a run keeps the finished model under that name"};
	const char *out = settings->given->out;
	char path[PATH_BYTES];
	struct name_list names = {0};
	struct stat facts;
	TRY(path_join(path, out, "best"));
	if (!is_own_best(path))
		return error_hinted(
			error_set(ERR_USAGE, "'%s' exists and was not made by bertc", path),

			"choose another --out, or move it elsewhere; a run keeps a link to the best checkpoint under that name");
	for (size_t i = 0; i < RUN_FILES; i++) {
		TRY(path_join(path, out, run_files[i]));
		bool is_link = lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode);
		/* Reports are replaced with a warning; settings and records of another program are noticed when they are read. */
		bool noticed = strncmp(run_files[i], "final", 5) != 0 && strcmp(run_files[i], "best.json") != 0;
		if ((unlisted || noticed) && !is_link)
			continue;
		if (holds_nothing(path))
			continue;
		TRY(owned_files_check(out, run_files[i], advice[i] ? advice[i] : ""));
	}
	if (unlisted || !file_is_folder(out))
		return OK;
	if (settings->has_task)
		TRY(run_folder_check_results(out));
	enum status status = folder_list(out, &names);
	for (int64_t i = 0; status == OK && i < names.count; i++)
		if (checkpoint_path_step(names.names[i]) >= 0)
			status = checkpoint_folder_check_own(out, names.names[i]);
	name_list_release(&names);
	return status;
}

/* Somebody's report of that name is replaced, but not without a word. */
static enum status warn_of_names(const struct run_folder_settings *settings)
{
	static const char *const names[] = {"report.html", "metrics.jsonl", "samples.jsonl"};
	struct owned_files own;
	char path[PATH_BYTES];
	enum status status;
	TRY_GOTO(owned_files_read(&own, settings->given->out), done);
	for (size_t i = 0; !settings->given->plan && i < sizeof names / sizeof *names; i++) {
		TRY_GOTO(path_join(path, settings->given->out, names[i]), done);
		if (file_exists(path) && !owned_files_find(&own, names[i]))
			log_warning("'%s' does not belong to a run in this folder, and will be replaced", path);
	}
done:
	owned_files_release(&own);
	return status;
}

enum status run_folder_take(struct run_folder *folder, const struct run_folder_settings *settings, const struct machine *machine)
{
	bool unlisted;
	TRY(name_folder(folder, settings));
	TRY(check_no_model(settings->given->out));
	TRY(is_unlisted_run(settings->given->out, &unlisted));
	TRY(check_names(settings, unlisted));
	if (machine->place.launched && !settings->in_sweep)
		TRY(folder_make(settings->given->out));
	else
		TRY(take_folder(folder));
	folder->lock_taken = folder_lock_stamp(settings->given->out, folder->lock);
	if (unlisted && !settings->given->plan)
		TRY(list_unlisted(settings->given->out));
	if (!settings->in_sweep)
		TRY(launcher_log(&machine->place, settings->given->out));
	if (settings->given->fresh && machine->place.restarts == 0) {
		TRY(check_fresh(settings));
		TRY(remove_earlier_run(settings->given->out));
	}
	TRY(warn_of_names(settings));
	return check_kind(settings);
}

/* Does the run that was started or left a checkpoint here belong to this command? Only fine-tuning runs have a task. */
static enum status check_command(const struct run_start *start, const struct run_folder_settings *settings)
{
	const struct json *record = start->begun     ? start->record.root
				    : start->resumed ? json_member(start->record.root, "settings")
						     : NULL;
	bool has_task = record && json_member(record, "task");
	if (!record || has_task == settings->has_task)
		return OK;
	return error_hinted(error_set(ERR_STATE, "'%s' is a run of `bertc %s`",
				      start->own || start->begun ? settings->given->out : start->checkpoint,
				      has_task ? "finetune" : "pretrain"),
			    "choose another --out, or give --fresh to clear the folder%s",
			    settings->has_task ? "; to fine-tune the run's model, name it as --model" : "");
}

static enum status prepare_folder(struct run_folder *folder, struct run_start *start, const struct run_folder_settings *settings,
				  const struct machine *machine)
{
	TRY(run_folder_take(folder, settings, machine));
	TRY(checkpoint_clean(settings->given->out));
	TRY(folder_clean(settings->given->out));
	if (file_is_folder(folder->data))
		TRY(folder_clean(folder->data));
	TRY(find_checkpoint(start, settings));
	return check_command(start, settings);
}

enum status run_folder_open(struct run_folder *folder, struct run_start *start, const struct run_folder_settings *settings,
			    struct machine *machine)
{
	struct comm *comm = machine->comm;
	TRY(name_folder(folder, settings));
	/* Only the first rank clears and cleans the folder. */
	TRY(ranks_agree(comm, is_first_rank(comm) ? prepare_folder(folder, start, settings, machine) : OK));
	return ranks_count(comm) > 1 ? ranks_agree(comm, share_start(start, settings, machine)) : OK;
}

void run_folder_leave(const struct run_folder *folder)
{
	char path[PATH_BYTES];
	if (!folder->path || !folder->made || folder->lock < 0)
		return;
	/* rmdir() only removes empty folders. */
	if (holds_only(folder->data, DATA_FOLDER_MARK) && path_join(path, folder->data, DATA_FOLDER_MARK) == OK)
		unlink(path);
	rmdir(folder->data);
	if (holds_only(folder->path, ".lock") && path_join(path, folder->path, ".lock") == OK)
		unlink(path);
	rmdir(folder->path);
}

void run_folder_close(struct run_folder *folder)
{
	if (folder->path && folder->lock >= 0)
		folder_unlock(folder->lock);
	*folder = (struct run_folder){.lock = -1};
}

/* ---- Ranks in it ---- */

/* A run that never started leaves no logs either: they only repeat what was shown on the terminal. */
static void remove_logs(const struct run_folder *folder)
{
	char path[PATH_BYTES];
	struct name_list names = {0};
	bool began = !folder->made || folder_list(folder->path, &names) != OK;
	for (int64_t i = 0; i < names.count; i++)
		began |= strcmp(names.names[i], ".lock") != 0 && strcmp(names.names[i], "logs") != 0;
	name_list_release(&names);
	if (began || path_join(path, folder->path, "logs") != OK || folder_remove(path) != OK)
		return;
}

enum status run_folder_launch(const struct run_folder_settings *settings, const struct machine *machine)
{
	struct run_folder folder;
	TRY(name_folder(&folder, settings));
	enum status status = take_folder(&folder);
	if (status == OK)
		status = launcher_run(&(struct launcher_settings){
			.ranks = machine->ranks,
			.folder = settings->given->out,
			.watchdog_seconds = machine->asked.watchdog_seconds,
			.max_restarts = machine->asked.max_restarts,
		});
	struct error error = *error_last();
	if (status != OK) {
		run_folder_leave(&folder); /* the data folder, if it is empty */
		remove_logs(&folder);
		run_folder_leave(&folder);
	}
	run_folder_close(&folder);
	return status == OK ? OK : error_restore(&error);
}
