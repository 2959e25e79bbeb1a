/* The run folder of `bertc pretrain`: what an earlier run left in it, and what --fresh removes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/pretrain.h"
#include "base/memory.h"
#include "comm/launcher.h"
#include "formats/event_file.h"
#include "train/checkpoint.h"

/* True if `path` exists and lies in `folder`. */
static bool lies_within(const char *folder, const char *path)
{
	char *outer = realpath(folder, NULL), *inner = path ? realpath(path, NULL) : NULL;
	size_t size = outer ? strlen(outer) : 0;
	bool within = outer && inner && strncmp(outer, inner, size) == 0 && inner[size] == '/';
	free(outer);
	free(inner);
	return within;
}

/* What --fresh would need afterwards must be there and must not be what it removes. */
static enum status check_fresh(const struct pretrain_settings *settings)
{
	struct name_list files = {0};
	const char *needed[] = {settings->vocab_file, settings->model, settings->init_checkpoint, settings->init_vocab,
				settings->resume_from};
	if (settings->plan)
		return error_set(ERR_USAGE, "--fresh and --plan exclude each other: a plan removes nothing");
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		if (lies_within(settings->out, needed[i])) {
			enum status status = error_set(ERR_USAGE, "'%s' lies in the folder that --fresh clears", needed[i]);
			error_hint("copy it elsewhere, or give another --out");
			return status;
		}
	enum status status = OK;
	for (int64_t i = 0; status == OK && i < settings->corpus.count; i++)
		status = path_expand(settings->corpus.values[i], &files);
	for (int64_t i = 0; status == OK && i < files.count; i++)
		if (lies_within(settings->out, files.names[i]))
			status = error_set(ERR_USAGE, "'%s' lies in the folder that --fresh clears", files.names[i]);
	name_list_release(&files);
	return status;
}

/* --fresh: what an earlier run left goes, nothing else in the folder is touched. A folder without the mark of a run's
 * data holds no run. */
static enum status remove_earlier_run(const char *out)
{
	char mark[PATH_BYTES];
	TRY(path_join(mark, out, RUN_FOLDER_MARK));
	if (!file_exists(mark))
		return OK;
	static const char *const names[] = {"data",          "final",         "metrics.jsonl", "report.html",
					    "samples.jsonl", "settings.json", "best.json",     "best"};
	struct name_list entries = {0};
	enum status status;
	TRY_GOTO(folder_list(out, &entries), done);
	for (int64_t i = 0; i < entries.count; i++) {
		const char *name = entries.names[i];
		bool ours =
			strncmp(name, "checkpoint-", 11) == 0 && name[11] && strspn(name + 11, "0123456789") == strlen(name + 11);
		ours |= strncmp(name, EVENT_FILE_START, strlen(EVENT_FILE_START)) == 0;
		for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
			ours |= strcmp(name, names[k]) == 0;
		char path[PATH_BYTES];
		TRY_GOTO(path_join(path, out, name), done);
		if (!ours)
			continue;
		struct stat facts;
		bool is_link = lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode);
		if (strcmp(name, "best") == 0 && !is_link)
			continue;
		if (!is_link && file_is_folder(path))
			TRY_GOTO(folder_remove(path), done);
		else if (file_operations.unlink(path) != 0) {
			status = error_set_errno(ERR_RESOURCE, "'%s': cannot remove", path);
			goto done;
		}
	}
done:
	name_list_release(&entries);
	return status;
}

/* `path` as it stands whatever the working folder, also when its last part is gone (pruned). */
static enum status canonical(const char *path, char out[PATH_BYTES])
{
	char *whole = realpath(path, NULL);
	enum status status;
	if (whole) {
		snprintf(out, PATH_BYTES, "%s", whole);
		free(whole);
		return OK;
	}
	const char *slash = strrchr(path, '/');
	char parent[PATH_BYTES];
	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
	whole = realpath(parent, NULL);
	status = path_join(out, whole ? whole : parent, slash ? slash + 1 : path);
	free(whole);
	return status;
}

/* The checkpoint that --resume_from means: a checkpoint, or the newest of a run folder. */
static enum status find_named(const char *name, char out[PATH_BYTES])
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
	enum status status = error_set(ERR_USAGE, "'%s' is neither a checkpoint nor a run folder that has one", name);
	error_hint("--resume_from takes a folder checkpoint-<step> that `bertc pretrain` wrote");
	return status;
}

/* The folder that holds `path`, "." included, as realpath has it. */
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

/* --resume_from: its checkpoint instead of the newest, unless the folder's newest comes from it already, as when the
 * same command is run again. `resumed` says whether the folder has one at all. */
static enum status resume_from(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	char name[PATH_BYTES], checkpoint[PATH_BYTES];
	TRY(canonical(settings->resume_from, name));
	if (run->resumed && strcmp(run->resumed_from, name) == 0)
		return OK;
	TRY(find_named(name, checkpoint));
	bool own = is_parent(settings->out, checkpoint);
	if (run->resumed && !own) {
		enum status status = error_set(ERR_STATE, "'%s' holds a run of its own, which '%s' is not part of", settings->out,
					       settings->resume_from);
		error_hint("give another --out, or --fresh to clear this one");
		return status;
	}
	json_release(&run->record);
	TRY(checkpoint_read_state(checkpoint, &run->record, &run->training.state, &run->recorded_data_hash));
	if (own && !settings->plan)
		TRY(checkpoint_supersede(settings->out, run->training.state.step));
	snprintf(run->checkpoint, sizeof(run->checkpoint), "%s", checkpoint);
	snprintf(run->resumed_from, sizeof(run->resumed_from), "%s", name);
	run->own_checkpoint = own;
	run->resumed = true;
	return OK;
}

/* The checkpoint to go on from, if there is one, and what it records. */
static enum status open_checkpoint(struct pretrain *run)
{
	struct pretrain_settings *settings = run->settings;
	const char *before = NULL;
	char numbered[PATH_BYTES];
	if (settings->resume_step >= 0 && settings->resume_from)
		return error_set(ERR_USAGE, "--resume_step and --resume_from exclude each other");
	if (settings->resume_step >= 0) {
		snprintf(numbered, sizeof(numbered), "%.4000s/checkpoint-%" PRId64, settings->out, settings->resume_step);
		settings->resume_from = numbered;
	}
	TRY(checkpoint_latest(settings->out, run->checkpoint, &run->resumed));
	if (run->resumed) {
		TRY(checkpoint_read_state(run->checkpoint, &run->record, &run->training.state, &run->recorded_data_hash));
		TRY(json_get_string(run->record.root, run->checkpoint, "resumed_from", &before));
		snprintf(run->resumed_from, sizeof(run->resumed_from), "%s", before ? before : "");
		run->own_checkpoint = true;
	}
	enum status status = settings->resume_from ? resume_from(run) : OK;
	if (settings->resume_step >= 0)
		settings->resume_from = NULL;
	return status;
}

static enum status prepare_folder(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	run->made_folder = !file_exists(settings->out);
	TRY(folder_make(settings->out));
	if (!run->place.launched)
		TRY(folder_lock(settings->out, &run->lock));
	run->lock_taken = folder_lock_stamp(settings->out, run->lock);
	TRY(launcher_log(&run->place, settings->out));
	if (settings->fresh && run->place.restarts == 0) {
		TRY(check_fresh(settings));
		TRY(remove_earlier_run(settings->out));
	}
	TRY(checkpoint_clean(settings->out));
	TRY(folder_clean(settings->out));
	if (file_is_folder(run->data_folder))
		TRY(folder_clean(run->data_folder));
	return open_checkpoint(run);
}

/* What the first rank found, for the others to read. */
static enum status share_checkpoint(struct pretrain *run)
{
	struct found {
		char checkpoint[PATH_BYTES], resumed_from[PATH_BYTES];
		bool resumed, own_checkpoint;
	} * found;
	bool first = is_first_rank(run->comm);
	TRY(memory_new(&found, 1, sizeof(*found), "the checkpoint found"));
	memcpy(found->checkpoint, run->checkpoint, sizeof(found->checkpoint));
	memcpy(found->resumed_from, run->resumed_from, sizeof(found->resumed_from));
	found->resumed = run->resumed;
	found->own_checkpoint = run->own_checkpoint;
	enum status status = comm_broadcast(run->comm, found, sizeof(*found), 0);
	memcpy(run->checkpoint, found->checkpoint, sizeof(found->checkpoint));
	memcpy(run->resumed_from, found->resumed_from, sizeof(found->resumed_from));
	run->resumed = found->resumed;
	run->own_checkpoint = found->own_checkpoint;
	free(found);
	if (status != OK || first)
		return status;
	if (!file_is_folder(run->settings->out)) {
		status = error_set(ERR_USAGE, "'%s': rank %d on %s does not see the run folder", run->settings->out,
				   comm_place(run->comm)->rank, comm_place(run->comm)->host);
		error_hint("--out must be a folder that all machines share");
		return status;
	}
	TRY(launcher_log(&run->place, run->settings->out));
	if (!run->resumed)
		return OK;
	return checkpoint_read_state(run->checkpoint, &run->record, &run->training.state, &run->recorded_data_hash);
}

/* The run folder, its lock, and the checkpoint to go on from with its settings. */
enum status pretrain_open_folder(struct pretrain *run)
{
	struct pretrain_settings *settings = run->settings;
	if (!settings->out) {
		enum status status = error_set(ERR_USAGE, "--out is missing");
		error_hint("name the run folder: bertc pretrain --corpus PATH --out FOLDER");
		return status;
	}
	TRY(path_join(run->data_folder, settings->out, "data"));
	TRY(path_join(run->metrics_path, settings->out, "metrics.jsonl"));
	/* The folder is the first rank's to clear and clean; the others go on from what it found. */
	TRY(ranks_agree(run->comm, is_first_rank(run->comm) ? prepare_folder(run) : OK));
	return ranks_count(run->comm) > 1 ? ranks_agree(run->comm, share_checkpoint(run)) : OK;
}

static bool holds_only(const char *folder, const char *name)
{
	struct name_list names = {0};
	bool only = folder_list(folder, &names) == OK && names.count == 1 && strcmp(names.names[0], name) == 0;
	name_list_release(&names);
	return only;
}

void pretrain_leave_folder(const struct pretrain *run)
{
	char path[PATH_BYTES];
	if (!run->made_folder || run->lock < 0)
		return;
	/* rmdir() takes nothing but an empty folder. */
	if (holds_only(run->data_folder, RUN_DATA_MARK) && path_join(path, run->data_folder, RUN_DATA_MARK) == OK)
		unlink(path);
	rmdir(run->data_folder);
	if (holds_only(run->settings->out, ".lock") && path_join(path, run->settings->out, ".lock") == OK)
		unlink(path);
	rmdir(run->settings->out);
}
