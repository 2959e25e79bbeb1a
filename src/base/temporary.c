/* Makes temporary folders, and removes those that killed processes of this user have left behind. */
#include "base/temporary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/stop.h"

#define START "bertc-"
/* A folder of this age whose lock is free belongs to a process that was killed. */
#define STALE_SECONDS 60

static const char *temporary_base(void)
{
	const char *base = getenv("TMPDIR");
	return base && *base ? base : "/tmp";
}

/* Removes `path` if it is a folder of ours that a killed process left behind. */
static void remove_if_stale(const char *path)
{
	char lock_path[PATH_BYTES];
	struct stat facts;
	int lock;
	if (lstat(path, &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid() ||
	    time(NULL) - facts.st_mtime < STALE_SECONDS)
		return;
	if (path_join(lock_path, path, ".lock") != OK)
		return;
	if (!file_exists(lock_path)) { /* its process was killed before locking it, or it is not ours: remove it only if empty */
		rmdir(path);
		return;
	}
	if (folder_lock(path, &lock) != OK)
		return;
	if (folder_remove(path) == OK)
		log_detail("removed '%s', which a killed process had left", path);
	folder_unlock(lock);
}

/* Whether the name has the form "bertc-<use>-XXXXXX". */
static bool is_ours(const char *name, const char *use)
{
	size_t start = strlen(START), size = strlen(use);
	return strncmp(name, START, start) == 0 && strncmp(name + start, use, size) == 0 && name[start + size] == '-' &&
	       strlen(name + start + size) == 7;
}

static void remove_stale_folders(const char *use)
{
	struct name_list names = {0};
	char path[PATH_BYTES];
	if (folder_list(temporary_base(), &names) == OK)
		for (int64_t i = 0; i < names.count; i++)
			if (is_ours(names.names[i], use) && path_join(path, temporary_base(), names.names[i]) == OK)
				remove_if_stale(path);
	name_list_release(&names);
}

enum status temporary_folder_make(struct temporary_folder *out, const char *use)
{
	stop_install(); /* a signal must not end the process with the folder left behind */
	remove_stale_folders(use);
	out->lock = -1;
	snprintf(out->path, PATH_BYTES, "%.3900s/" START "%.40s-XXXXXX", temporary_base(), use);
	if (!mkdtemp(out->path))
		return error_set_errno(ERR_RESOURCE, "'%s': cannot make a temporary folder", out->path);
	enum status status = folder_lock(out->path, &out->lock);
	if (status != OK)
		temporary_folder_remove(out);
	return status;
}

void temporary_folder_remove(struct temporary_folder *folder)
{
	struct error error = *error_last();
	if (folder_remove(folder->path) != OK)
		log_warning("'%s' could not be removed", folder->path);
	if (folder->lock >= 0)
		folder_unlock(folder->lock);
	folder->lock = -1;
	enum status kept = error.status == OK ? OK : error_restore(&error);
	(void)kept; /* the caller has the status */
}
