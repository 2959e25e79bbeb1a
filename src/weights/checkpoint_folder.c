/* Lists, verifies, publishes, marks, and removes the checkpoints of a run. */
#include "weights/checkpoint_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/owned_files.h"
#include "weights/manifest.h"
#include "weights/published.h"

#define CHECKPOINT_PREFIX "checkpoint-"
#define TRASH_PREFIX ".trash-"
#define SUPERSEDED_PREFIX "superseded-"
#define BEST_NAME "best"
#define BEST_RECORD_NAME "best.json"

/* ---- Finding ---- */

void checkpoint_name(char out[64], int64_t step)
{
	snprintf(out, 64, CHECKPOINT_PREFIX "%" PRId64, step);
}

/* "checkpoint-120" -> 120; -1 for any other name. */
static int64_t step_of(const char *name)
{
	if (strncmp(name, CHECKPOINT_PREFIX, strlen(CHECKPOINT_PREFIX)) != 0)
		return -1;
	const char *digits = name + strlen(CHECKPOINT_PREFIX);
	if (*digits < '0' || *digits > '9' || strlen(digits) > 18)
		return -1;
	char *end;
	int64_t step = strtoll(digits, &end, 10);
	return *end == 0 ? step : -1;
}

static int compare_steps(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
	return (left < right) - (left > right);
}

enum status checkpoint_list(const char *folder, int64_t **out, int64_t *out_count)
{
	struct name_list names = {0};
	*out = NULL;
	*out_count = 0;
	enum status status;
	TRY_GOTO(folder_list(folder, &names), done);
	TRY_GOTO(memory_new(out, names.count, sizeof **out, "list of checkpoints"), done);
	for (int64_t i = 0; i < names.count; i++) {
		int64_t step = step_of(names.names[i]);
		if (step >= 0)
			(*out)[(*out_count)++] = step;
	}
	qsort(*out, (size_t)*out_count, sizeof **out, compare_steps);
done:
	name_list_release(&names);
	return status;
}

/* Whether a name is one that only bertc gives, while saving or removing; anything else in the folder is the user's. */
static bool is_leftover(const char *name)
{
	static const char *const prefixes[] = {TEMPORARY_PREFIX CHECKPOINT_PREFIX, TEMPORARY_PREFIX "final",
					       TRASH_PREFIX CHECKPOINT_PREFIX, TRASH_PREFIX "final"};
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

enum status checkpoint_clean(const char *folder)
{
	struct name_list names = {0};
	enum status status;
	TRY_GOTO(folder_list(folder, &names), done);
	for (int64_t i = 0; i < names.count; i++) {
		const char *name = names.names[i];
		char path[PATH_BYTES];
		if (!is_leftover(name))
			continue;
		TRY_GOTO(path_join(path, folder, name), done);
		TRY_GOTO(folder_remove(path), done);
	}
done:
	name_list_release(&names);
	return status;
}

int64_t checkpoint_path_step(const char *path)
{
	char name[64];
	size_t end = strlen(path), begin;
	while (end > 0 && path[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && path[begin - 1] != '/';)
		begin--;
	if (end - begin >= sizeof name)
		return -1;
	snprintf(name, sizeof name, "%.*s", (int)(end - begin), path + begin);
	return step_of(name);
}

/* Splits a path into its last component and the folder it is in. */
static void split_last(const char *path, char folder[PATH_BYTES], char name[64])
{
	size_t end = strlen(path), begin;
	while (end > 1 && path[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && path[begin - 1] != '/';)
		begin--;
	snprintf(name, 64, "%.*s", (int)(end - begin < 64 ? end - begin : 63), path + begin);
	while (begin > 1 && path[begin - 1] == '/')
		begin--;
	snprintf(folder, PATH_BYTES, "%.*s", begin == 0 ? 1 : (int)(begin < PATH_BYTES ? begin : PATH_BYTES - 1),
		 begin == 0 ? "." : path);
}

/* Lists the parts of a run: "checkpoint-75, checkpoint-100 (the best), final", with at most this many checkpoints, the newest. */
#define CHECKPOINTS_LISTED 12
static enum status list_parts(const char *run, struct buffer *out)
{
	int64_t *steps, count, best = -1;
	char path[PATH_BYTES];
	struct json_document record;
	TRY(checkpoint_list(run, &steps, &count));
	if (path_join(path, run, BEST_RECORD_NAME) == OK && file_exists(path) && json_read(&record, path, 1 << 20) == OK) {
		if (json_get_integer(record.root, path, "step", 0, INT64_MAX, &best) != OK)
			best = -1;
		json_release(&record);
	}
	if (count > CHECKPOINTS_LISTED)
		buffer_format(out, "%" PRId64 " older ones, ", count - CHECKPOINTS_LISTED);
	for (int64_t i = count < CHECKPOINTS_LISTED ? count : CHECKPOINTS_LISTED; i-- > 0;)
		buffer_format(out, CHECKPOINT_PREFIX "%" PRId64 "%s%s", steps[i], steps[i] == best ? " (the best)" : "",
			      i > 0 ? ", " : "");
	free(steps);
	TRY(path_join(path, run, "final"));
	if (file_exists(path))
		buffer_format(out, "%sfinal", out->size ? ", " : "");
	return buffer_status(out);
}

enum status checkpoint_missing(const char *path, const char *advice)
{
	char run[PATH_BYTES], name[64], mark[PATH_BYTES];
	struct buffer parts = {0};
	split_last(path, run, name);
	bool part = step_of(name) >= 0 || strcmp(name, "final") == 0 || strcmp(name, BEST_NAME) == 0;
	bool in_run = part && file_is_folder(run) && list_parts(run, &parts) == OK &&
		      (parts.size > 0 || (path_join(mark, run, RUN_FOLDER_MARK) == OK && file_exists(mark)));
	enum status status;
	if (!in_run) {
		status = error_set(ERR_USAGE, "'%s': no such file or folder", path);
		if (part)
			error_hint("%s", advice);
		else
			published_hint(path, advice);
	} else {
		status = error_set(ERR_USAGE, "'%s': the run has no %s", path, name);
		if (parts.size > 0)
			error_hint("'%s' has %s; a run removes all but its newest checkpoints and the best one "
				   "(--keep_checkpoints)",
				   run, buffer_string(&parts));
		else
			error_hint("'%s' has no checkpoint yet: the run saves its first one after --save_checkpoints_steps", run);
	}
	buffer_release(&parts);
	return status;
}

enum status checkpoint_verify(const char *path)
{
	struct manifest_facts facts;
	int64_t named = checkpoint_path_step(path);
	TRY(manifest_verify(path, &facts));
	if (named >= 0 && named != facts.step)
		return folder_damaged(path, "its " MANIFEST_NAME " is of step %" PRId64, facts.step);
	return OK;
}

enum status checkpoint_latest(const char *folder, char out_path[PATH_BYTES], bool *out_found)
{
	int64_t *steps = NULL, count;
	enum status status;
	*out_found = false;
	TRY_GOTO(checkpoint_list(folder, &steps, &count), done);
	for (int64_t i = 0; i < count; i++) {
		char name[64];
		checkpoint_name(name, steps[i]);
		TRY_GOTO(path_join(out_path, folder, name), done);
		status = checkpoint_verify(out_path);
		if (status == OK) {
			*out_found = true;
			goto done;
		}
		if (status != ERR_DATA)
			goto done;
		log_warning("%s; skipped", error_last()->message);
	}
	if (count > 0) {
		status = error_set(ERR_DATA, "'%s': none of its %" PRId64 " checkpoints is intact", folder, count);
		error_hint("remove them, or give --fresh to start over");
	}
done:
	free(steps);
	return status;
}

/* ---- Moving ---- */

enum status checkpoint_folder_check(const char *folder)
{
	if (file_is_folder(folder))
		return OK;
	return error_hinted(error_set(ERR_RESOURCE, "'%s': the run's folder is gone", folder),
			    "it was removed or moved while the run was writing to it");
}

#define FINAL_NAME "final"

/* A checkpoint shows by what is in it that it is ours; the finished model is on the list of the run's files. */
enum status checkpoint_folder_check_own(const char *parent, const char *name)
{
	static const char *const marks[] = {"training_state.json", MANIFEST_NAME};
	char path[PATH_BYTES], mark[PATH_BYTES];
	struct name_list names = {0};
	struct stat facts;
	bool own = false;
	TRY(path_join(path, parent, name));
	if (lstat(path, &facts) != 0)
		return OK;
	if (S_ISDIR(facts.st_mode)) {
		TRY(folder_list(path, &names));
		own = names.count == 0;
		name_list_release(&names);
		for (size_t i = 0; i < sizeof marks / sizeof *marks && strcmp(name, FINAL_NAME) != 0; i++) {
			TRY(path_join(mark, path, marks[i]));
			own |= file_exists(mark);
		}
	}
	return own ? OK : owned_files_check(parent, name, "the same command then goes on from the newest checkpoint");
}

enum status checkpoint_folder_list_final(const char *parent, const char *folder)
{
	char path[PATH_BYTES];
	int64_t bytes;
	uint32_t crc;
	TRY(path_join(path, folder, MANIFEST_NAME));
	TRY(file_checksum(path, &bytes, &crc));
	return owned_files_add(parent, FINAL_NAME, crc);
}

enum status checkpoint_folder_put_file(const char *path, const void *bytes, size_t size)
{
	char folder[PATH_BYTES], run[PATH_BYTES], manifest[PATH_BYTES];
	path_folder(folder, path);
	path_folder(run, folder);
	bool listed = strcmp(path_name(folder), FINAL_NAME) == 0 && checkpoint_folder_check_own(run, FINAL_NAME) == OK;
	TRY(path_join(manifest, folder, MANIFEST_NAME));
	TRY(file_exists(manifest) ? manifest_put_file(folder, path_name(path), bytes, size) : file_write(path, bytes, size));
	return listed ? checkpoint_folder_list_final(run, folder) : OK;
}

/* Removes the folder `name` in `parent`. It is renamed first, so that it is never seen half-removed. */
enum status checkpoint_folder_discard(const char *parent, const char *name)
{
	char from[PATH_BYTES], to[PATH_BYTES], trash[320];
	TRY(checkpoint_folder_check_own(parent, name));
	snprintf(trash, sizeof trash, TRASH_PREFIX "%.256s", name);
	TRY(path_join(from, parent, name));
	TRY(path_join(to, parent, trash));
	if (file_exists(to))
		TRY(folder_remove(to));
	if (file_operations.rename(from, to) != 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot rename", from);
	return folder_remove(to);
}

enum status checkpoint_folder_publish(const char *parent, const char *temporary, const char *name)
{
	char path[PATH_BYTES];
	TRY(folder_sync(temporary));
	TRY(path_join(path, parent, name));
	TRY(checkpoint_folder_check_own(parent, name));
	if (strcmp(name, FINAL_NAME) == 0)
		TRY(checkpoint_folder_list_final(parent, temporary));
	if (file_exists(path))
		TRY(checkpoint_folder_discard(parent, name));
	if (file_operations.rename(temporary, path) != 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot rename to '%s'", temporary, path);
	return folder_sync(parent);
}

/* rename() of a folder replaces nothing but an empty folder, in one step. */
enum status checkpoint_folder_publish_new(const char *parent, const char *temporary, const char *name)
{
	char path[PATH_BYTES];
	TRY(folder_sync(temporary));
	TRY(path_join(path, parent, name));
	if (file_operations.rename(temporary, path) == 0)
		return folder_sync(parent);
	if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot rename to '%s'", temporary, path);
	return error_hinted(error_set(ERR_USAGE, "'%s' was made by another program in the meantime", path),
			    "choose another name; what is there was not changed");
}

enum status checkpoint_folder_abandon(const char *temporary)
{
	struct error error = *error_last();
	if (file_exists(temporary) && folder_remove(temporary) != OK)
		log_warning("'%s' could not be removed", temporary);
	return error_restore(&error);
}

/* Checkpoints after saved_step must be damaged, since the run resumed from an earlier one. They do not count as kept, and are
 * replaced when the run reaches their steps again. */
enum status checkpoint_prune(const char *folder, int64_t keep, int64_t saved_step, int64_t best_step)
{
	if (keep <= 0)
		return OK;
	int64_t *steps, count, first = 0;
	enum status status = checkpoint_list(folder, &steps, &count);
	while (status == OK && first < count && steps[first] > saved_step)
		first++;
	for (int64_t i = first + keep; status == OK && i < count; i++) {
		char name[64];
		if (steps[i] == best_step)
			continue;
		checkpoint_name(name, steps[i]);
		status = checkpoint_folder_discard(folder, name);
	}
	free(steps);
	return status;
}

enum status checkpoint_supersede(const char *folder, int64_t step)
{
	int64_t *steps, count;
	enum status status = checkpoint_list(folder, &steps, &count);
	for (int64_t i = 0; status == OK && i < count && steps[i] > step; i++) {
		char name[64], aside[96], from[PATH_BYTES], to[PATH_BYTES];
		checkpoint_name(name, steps[i]);
		snprintf(aside, sizeof aside, SUPERSEDED_PREFIX "%s", name);
		TRY_GOTO(path_join(from, folder, name), done);
		TRY_GOTO(path_join(to, folder, aside), done);
		if (file_exists(to))
			TRY_GOTO(checkpoint_folder_discard(folder, aside), done);
		if (file_operations.rename(from, to) != 0)
			TRY_GOTO(error_set_errno(ERR_RESOURCE, "'%s': cannot rename to '%s'", from, to), done);
		log_note("%s is set aside as %s", name, aside);
	}
done:
	free(steps);
	return status;
}

/* Replaces the link atomically, so that `best` always leads somewhere. Anything but a link belongs to the user. */
static enum status link_best(const char *folder, const char *name)
{
	char path[PATH_BYTES], temporary[PATH_BYTES];
	struct stat facts;
	TRY(path_join(path, folder, BEST_NAME));
	TRY(path_join(temporary, folder, TEMPORARY_PREFIX BEST_NAME));
	if (lstat(path, &facts) == 0 && !S_ISLNK(facts.st_mode))
		return error_set(ERR_USAGE, "'%s' exists and is not a link to the best checkpoint", path);
	if (lstat(temporary, &facts) == 0)
		file_operations.unlink(temporary);
	bool made = symlink(name, temporary) == 0;
	if (made && file_operations.rename(temporary, path) == 0)
		return OK;
	enum status status = error_set_errno(ERR_RESOURCE, "'%s': cannot link to %s", path, name);
	if (made)
		file_operations.unlink(temporary);
	return status;
}

enum status checkpoint_mark_best(const char *folder, int64_t step, const char *measure, double value)
{
	char name[64], path[PATH_BYTES];
	struct buffer text = {0};
	struct json_writer writer = {.out = &text, .indent = 2};
	enum status status;
	checkpoint_name(name, step);
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "checkpoint", name);
	json_put_integer(&writer, "step", step);
	json_put_double(&writer, measure, value);
	json_close(&writer);
	buffer_char(&text, '\n');
	TRY_GOTO(buffer_status(&text), done);
	TRY_GOTO(path_join(path, folder, BEST_RECORD_NAME), done);
	TRY_GOTO(owned_file_write(path, text.data, text.size), done);
	/* The record is what counts; some file systems have no links. */
	if (link_best(folder, name) != OK)
		log_detail("%s", error_last()->message);
done:
	buffer_release(&text);
	return status;
}

enum status checkpoint_unmark_best(const char *folder)
{
	static const char *const names[] = {BEST_NAME, BEST_RECORD_NAME};
	for (int i = 0; i < 2; i++) {
		char path[PATH_BYTES];
		struct stat facts;
		TRY(path_join(path, folder, names[i]));
		if (lstat(path, &facts) != 0 || S_ISDIR(facts.st_mode))
			continue;
		if (file_operations.unlink(path) != 0)
			return error_set_errno(ERR_RESOURCE, "'%s': cannot remove", path);
	}
	return OK;
}
