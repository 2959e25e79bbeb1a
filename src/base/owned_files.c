/* The list of the files in a folder that bertc wrote: read, changed, and asked before anything is replaced. */
#include "base/owned_files.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/path_internal.h"

#define HEADING "# what bertc wrote in this folder, and may replace: CRC-32C (- if unknown), name\n"
#define LIMIT ((size_t)16 << 20)

/* Checkpoints are written by a thread of their own. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

void owned_files_release(struct owned_files *files)
{
	for (int64_t i = 0; i < files->count; i++)
		free(files->files[i].name);
	free(files->files);
	*files = (struct owned_files){0};
}

const struct owned_file *owned_files_find(const struct owned_files *files, const char *name)
{
	for (int64_t i = 0; i < files->count; i++)
		if (strcmp(files->files[i].name, name) == 0)
			return &files->files[i];
	return NULL;
}

static enum status add(struct owned_files *files, const char *name, int64_t crc32c)
{
	for (int64_t i = 0; i < files->count; i++)
		if (strcmp(files->files[i].name, name) == 0) {
			files->files[i].crc32c = crc32c;
			return OK;
		}
	TRY(memory_grow(&files->files, &files->capacity, files->count + 1, sizeof *files->files, "a list of files"));
	char *copy = strdup(name);
	if (!copy)
		return error_set(ERR_RESOURCE, "not enough memory for a list of files");
	files->files[files->count++] = (struct owned_file){copy, crc32c};
	return OK;
}

static enum status damaged(const char *path, const char *what)
{
	return error_hinted(error_set(ERR_DATA, "'%s': %s", path, what),
			    "if you remove the file, everything that has a name of a run in this folder counts as the run's");
}

/* A line: "1a2b3c4d name", or "- name". */
static enum status read_line(struct owned_files *out, const char *path, char *line)
{
	char *end = line;
	int64_t crc = *line == '-' ? OWNED_UNKNOWN : (int64_t)strtoul(line, &end, 16);
	end += *line == '-';
	if (end == line || *end != ' ' || !end[1] || strchr(end + 1, '/') || crc > UINT32_MAX)
		return damaged(path, "a line is not a checksum and a name");
	return add(out, end + 1, crc);
}

enum status owned_files_read(struct owned_files *out, const char *folder)
{
	char path[PATH_BYTES];
	struct buffer text = {0};
	*out = (struct owned_files){0};
	TRY(path_join(path, folder, OWNED_FILES_NAME));
	out->exists = file_exists(path);
	if (!out->exists)
		return OK;
	TRY(file_read(path, LIMIT, &text));
	enum status status = text.size > 0 ? OK : damaged(path, "the list of what bertc wrote is empty");
	for (char *rest = text.data, *line; status == OK && (line = strtok_r(rest, "\n", &rest));)
		if (*line != '#')
			status = read_line(out, path, line);
	buffer_release(&text);
	return status;
}

static enum status save(const struct owned_files *files, const char *folder)
{
	char path[PATH_BYTES];
	struct buffer text = {0};
	TRY(path_join(path, folder, OWNED_FILES_NAME));
	if (files->count == 0)
		return file_operations.unlink(path) == 0 ? OK : error_set_errno(ERR_RESOURCE, "'%s': cannot remove", path);
	buffer_text(&text, HEADING);
	for (int64_t i = 0; i < files->count; i++) {
		if (files->files[i].crc32c == OWNED_UNKNOWN)
			buffer_format(&text, "- %s\n", files->files[i].name);
		else
			buffer_format(&text, "%08x %s\n", (unsigned)files->files[i].crc32c, files->files[i].name);
	}
	enum status status = buffer_status(&text);
	if (status == OK)
		status = file_write(path, text.data, text.size);
	buffer_release(&text);
	return status;
}

enum status owned_files_add(const char *folder, const char *name, int64_t crc32c)
{
	struct owned_files files;
	pthread_mutex_lock(&changing);
	enum status status = owned_files_read(&files, folder);
	const struct owned_file *known = owned_files_find(&files, name);
	if (status == OK && !(known && known->crc32c == crc32c)) {
		status = add(&files, name, crc32c);
		if (status == OK)
			status = save(&files, folder);
	}
	owned_files_release(&files);
	pthread_mutex_unlock(&changing);
	return status;
}

enum status owned_file_remove(const char *path)
{
	if (file_operations.unlink(path) != 0 && errno != ENOENT)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot remove", path);
	return owned_file_forget(path);
}

enum status owned_file_claim(const char *path)
{
	char folder[PATH_BYTES];
	const char *name = path_name(path);
	path_folder(folder, path);
	return owned_files_add(folder, name, OWNED_UNKNOWN);
}

enum status owned_file_forget(const char *path)
{
	struct owned_files files;
	char folder[PATH_BYTES];
	const char *name = path_name(path);
	path_folder(folder, path);
	pthread_mutex_lock(&changing);
	enum status status = owned_files_read(&files, folder);
	for (int64_t i = 0; status == OK && i < files.count; i++) {
		if (strcmp(files.files[i].name, name) != 0)
			continue;
		free(files.files[i].name);
		files.files[i] = files.files[--files.count];
		status = save(&files, folder);
		break;
	}
	owned_files_release(&files);
	pthread_mutex_unlock(&changing);
	return status;
}

enum status owned_file_write(const char *path, const void *bytes, size_t count)
{
	char folder[PATH_BYTES];
	const char *name = path_name(path);
	path_folder(folder, path);
	TRY(owned_files_add(folder, name, OWNED_UNKNOWN));
	TRY(file_write(path, bytes, count));
	return owned_files_add(folder, name, crc32c(0, bytes, count));
}

enum status owned_files_check(const char *folder, const char *name, const char *advice)
{
	struct owned_files files = {0};
	struct stat facts;
	char path[PATH_BYTES];
	TRY(path_join(path, folder, name));
	if (lstat(path, &facts) != 0)
		return OK;
	enum status status = owned_files_read(&files, folder);
	if (status == OK && S_ISLNK(facts.st_mode))
		status = error_set(ERR_USAGE, "'%s' is a link, which bertc did not make and does not follow", path);
	else if (status == OK && !owned_files_find(&files, name))
		status = error_set(ERR_USAGE, "'%s' exists and was not made by bertc", path);
	if (status == ERR_USAGE)
		error_hint("choose another --out, or move it elsewhere%s%s", *advice ? "; " : "", advice);
	owned_files_release(&files);
	return status;
}
