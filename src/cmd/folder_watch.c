/* Watches a folder and answers each file that appears in it, with an answer or an error file of the same name. */
#include "cmd/folder_watch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "base/text.h"

#define POLL_SECONDS 0.5
#define STILL_SECONDS 2.0

/* A file that had no answer when it was first seen. */
struct seen {
	char *name;
	struct file_stamp stamp;
	double since; /* time since which it has been unchanged */
	bool is_there;
	bool is_done; /* answered by this process, whose clock may differ from that of the file */
};

struct watch {
	const char *folder, *answers, *ending;
	struct seen *files;
	int64_t count, capacity;
};

static bool is_being_written(const char *name)
{
	static const char *const ends[] = {".tmp", ".part"};
	return name[0] == '.' || text_has_ending(name, ends, sizeof ends / sizeof ends[0]);
}

/* "answers/NAME" with the ending of answers or with ".error". */
static enum status answer_path(char out[PATH_BYTES], const struct watch *watch, const char *name, const char *end)
{
	struct buffer file = {0};
	buffer_format(&file, "%s%s", name, end);
	enum status status = buffer_status(&file);
	if (status == OK)
		status = path_join(out, watch->answers, buffer_string(&file));
	buffer_release(&file);
	return status;
}

/* The time since which a file has been in place with these contents. A file that was moved there, or whose time was set, may have
 * been written long before. */
static int64_t in_place_since(const char *path, const struct file_stamp *stamp)
{
	struct stat facts;
	if (stat(path, &facts) != 0)
		return stamp->nanoseconds;
	int64_t changed = facts.st_ctim.tv_sec * INT64_C(1000000000) + facts.st_ctim.tv_nsec;
	return changed > stamp->nanoseconds ? changed : stamp->nanoseconds;
}

/* Is there an answer, or an error, that is no older than the file? */
static enum status is_answered(const struct watch *watch, const char *name, int64_t since, bool *out)
{
	const char *const ends[] = {watch->ending, ".error"};
	*out = false;
	for (int i = 0; i < 2; i++) {
		char path[PATH_BYTES];
		TRY(answer_path(path, watch, name, ends[i]));
		*out = *out || (file_exists(path) && file_stamp_at(path).nanoseconds >= since);
	}
	return OK;
}

static struct seen *find(const struct watch *watch, const char *name)
{
	for (int64_t i = 0; i < watch->count; i++)
		if (strcmp(watch->files[i].name, name) == 0)
			return &watch->files[i];
	return NULL;
}

static enum status see(struct watch *watch, const char *name, const struct file_stamp *stamp)
{
	struct seen *file = find(watch, name);
	if (!file) {
		TRY(memory_grow(&watch->files, &watch->capacity, watch->count + 1, sizeof *watch->files, "files of a folder"));
		file = &watch->files[watch->count];
		*file = (struct seen){.since = clock_seconds(), .stamp = *stamp};
		TRY(memory_new(&file->name, (int64_t)strlen(name) + 1, 1, "name of a file"));
		memcpy(file->name, name, strlen(name) + 1);
		watch->count++;
	}
	if (file->stamp.size != stamp->size || file->stamp.nanoseconds != stamp->nanoseconds ||
	    file->stamp.inode != stamp->inode) {
		file->since = clock_seconds();
		file->is_done = false;
	}
	file->stamp = *stamp;
	file->is_there = true;
	return OK;
}

/* Scans the folder; files that are gone are dropped. */
static enum status look(struct watch *watch)
{
	struct name_list names = {0};
	enum status status;
	for (int64_t i = 0; i < watch->count; i++)
		watch->files[i].is_there = false;
	TRY(folder_list(watch->folder, &names));
	for (int64_t i = 0; i < names.count; i++) {
		char path[PATH_BYTES];
		bool answered;
		TRY_GOTO(path_join(path, watch->folder, names.names[i]), done);
		struct file_stamp stamp = file_stamp_at(path);
		if (stamp.inode == 0 || is_being_written(names.names[i]))
			continue;
		TRY_GOTO(is_answered(watch, names.names[i], in_place_since(path, &stamp), &answered), done);
		if (!answered || find(watch, names.names[i]))
			TRY_GOTO(see(watch, names.names[i], &stamp), done);
	}
	status = OK;
done:
	name_list_release(&names);
	int64_t kept = 0;
	for (int64_t i = 0; i < watch->count; i++) {
		if (watch->files[i].is_there)
			watch->files[kept++] = watch->files[i];
		else
			free(watch->files[i].name);
	}
	watch->count = kept;
	return status;
}

/* Writes the file's answer, or the reason why there is none. */
static enum status answer_one(const struct watch *watch, const char *name,
			      enum status (*answer)(void *context, const char *path, const char *out), void *context)
{
	char path[PATH_BYTES], out[PATH_BYTES], reason[PATH_BYTES];
	TRY(path_join(path, watch->folder, name));
	TRY(answer_path(out, watch, name, watch->ending));
	TRY(answer_path(reason, watch, name, ".error"));
	enum status status = answer(context, path, out);
	if (status == ERR_DATA || status == ERR_USAGE || status == ERR_STATE) {
		struct buffer text = {0};
		buffer_format(&text, "%s\n", error_last()->message);
		log_warning("%s", error_last()->message);
		if (file_exists(out) && unlink(out) != 0) /* the answers to an earlier file of this name */
			log_warning("'%s' could not be removed", out);
		status = buffer_status(&text);
		if (status == OK)
			status = file_write(reason, text.data, text.size);
		buffer_release(&text);
		return status;
	}
	if (status == OK && file_exists(reason) && unlink(reason) != 0)
		log_warning("'%s' could not be removed", reason);
	return status;
}

static enum status check_folders(const char *folder, const char *answers)
{
	enum status status = OK;
	if (!answers || !file_is_folder(answers)) {
		status = error_set(ERR_USAGE, "--watch needs --out FOLDER, a folder that exists, for the answers");
	} else if (!file_is_folder(folder)) {
		status = error_set(ERR_USAGE, "--watch '%s': there is no such folder", folder);
	} else {
		char *a = realpath(folder, NULL), *b = realpath(answers, NULL);
		if (a && b && strcmp(a, b) == 0)
			status = error_set(ERR_USAGE, "--watch and --out name the same folder: answers would be answered");
		free(a);
		free(b);
	}
	return status;
}

enum status folder_watch(const char *folder, const char *answers, const char *ending,
			 enum status (*answer)(void *context, const char *path, const char *out), void *context)
{
	struct watch watch = {.folder = folder, .answers = answers, .ending = ending};
	enum status status = OK;
	TRY(check_folders(folder, answers));
	stop_install();
	log_note("watching '%s'; SIGTERM stops it after the current file", folder);
	while (status == OK && !stop_requested()) {
		status = look(&watch);
		for (int64_t i = 0; i < watch.count && status == OK && !stop_requested(); i++) {
			struct seen *file = &watch.files[i];
			if (file->is_done || clock_seconds() - file->since < STILL_SECONDS)
				continue;
			status = answer_one(&watch, file->name, answer, context);
			file->is_done = true;
		}
		if (status == OK && !stop_requested())
			clock_pause(POLL_SECONDS);
	}
	for (int64_t i = 0; i < watch.count; i++)
		free(watch.files[i].name);
	free(watch.files);
	if (status == OK)
		log_note("stopped by %s", stop_reason());
	return status;
}
