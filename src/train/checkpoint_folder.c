/* The folders of checkpoints as wholes: made visible, moved out of sight, pruned, the best one marked. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "train/checkpoint_internal.h"

enum status checkpoint_folder_check(const char *folder)
{
	if (file_is_folder(folder))
		return OK;
	enum status status = error_set(ERR_RESOURCE, "'%s': the run's folder is gone", folder);
	error_hint("something removed or moved it while the run was writing there");
	return status;
}

enum status checkpoint_folder_discard(const char *parent, const char *name)
{
	char from[PATH_BYTES], to[PATH_BYTES], trash[320];
	snprintf(trash, sizeof(trash), TRASH_PREFIX "%.256s", name);
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
	if (file_exists(path))
		TRY(checkpoint_folder_discard(parent, name));
	if (file_operations.rename(temporary, path) != 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot rename to '%s'", temporary, path);
	return folder_sync(parent);
}

/* A checkpoint of a later step is damaged (the run went on from an earlier one): it does not count as kept, and is
 * replaced when its step comes again. */
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
		snprintf(aside, sizeof(aside), SUPERSEDED_PREFIX "%s", name);
		TRY_GOTO(path_join(from, folder, name), done);
		TRY_GOTO(path_join(to, folder, aside), done);
		if (file_exists(to))
			TRY_GOTO(folder_remove(to), done);
		if (file_operations.rename(from, to) != 0)
			TRY_GOTO(error_set_errno(ERR_RESOURCE, "'%s': cannot rename to '%s'", from, to), done);
		log_note("%s is set aside as %s", name, aside);
	}
done:
	free(steps);
	return status;
}

/* A link is replaced in one step, so that `best` always leads somewhere. What is no link is the user's. */
static enum status link_best(const char *folder, const char *name)
{
	char path[PATH_BYTES], temporary[PATH_BYTES];
	struct stat facts;
	TRY(path_join(path, folder, BEST_NAME));
	TRY(path_join(temporary, folder, TEMPORARY_PREFIX BEST_NAME));
	if (lstat(path, &facts) == 0 && !S_ISLNK(facts.st_mode))
		return error_set(ERR_USAGE, "'%s' is in the way of a link to the best checkpoint", path);
	if (lstat(temporary, &facts) == 0)
		file_operations.unlink(temporary);
	if (symlink(name, temporary) != 0 || file_operations.rename(temporary, path) != 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot link to %s", path, name);
	return OK;
}

enum status checkpoint_mark_best(const char *folder, int64_t step, double loss)
{
	char name[64], path[PATH_BYTES];
	struct buffer text = {0};
	struct json_writer writer = {.out = &text, .indent = 2};
	enum status status;
	checkpoint_name(name, step);
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "checkpoint", name);
	json_put_integer(&writer, "step", step);
	json_put_double(&writer, "loss", loss);
	json_close(&writer);
	buffer_char(&text, '\n');
	TRY_GOTO(buffer_status(&text), done);
	TRY_GOTO(path_join(path, folder, BEST_RECORD_NAME), done);
	TRY_GOTO(file_write(path, text.data, text.size), done);
	/* The record counts; some file systems have no links. */
	if (link_best(folder, name) != OK)
		log_detail("%s", error_last()->message);
done:
	buffer_release(&text);
	return status;
}

/* What an earlier checkpoint's record or a kill left of the mark. */
static enum status unmark_best(const char *folder)
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

enum status checkpoint_best_check(const char *folder, struct train_state *state)
{
	char name[64], path[PATH_BYTES];
	checkpoint_name(name, state->best_step);
	TRY(path_join(path, folder, name));
	if (state->best_step > 0 && file_is_folder(path))
		return checkpoint_mark_best(folder, state->best_step, state->best_loss);
	state->best_step = 0;
	return unmark_best(folder);
}
