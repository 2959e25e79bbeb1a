/* Looks at paths and joins them, without reading what they name. */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "base/file_operations.h"
#include "base/path_internal.h"

enum status file_path_status(void)
{
	return errno == ENOENT || errno == ENOTDIR || errno == EISDIR || errno == ENAMETOOLONG || errno == ELOOP ? ERR_USAGE
														 : ERR_RESOURCE;
}

enum status file_open_for_reading(const char *path, int *out_fd, struct stat *out_facts)
{
	int fd;
	/* A pipe without a writer reads as ended at once; a blocking open would wait, perhaps forever. */
	RETRY(fd, open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
	if (fd < 0)
		return error_set_errno(file_path_status(), "'%s': cannot open", path);
	if (fstat(fd, out_facts) < 0 || S_ISDIR(out_facts->st_mode)) {
		errno = S_ISDIR(out_facts->st_mode) ? EISDIR : errno;
		enum status status = error_set_errno(file_path_status(), "'%s': cannot read", path);
		close(fd);
		return status;
	}
	if (!S_ISREG(out_facts->st_mode))
		fcntl(fd, F_SETFL, O_RDONLY); /* block from here on: wait for what a writer sends */
	*out_fd = fd;
	return OK;
}

void path_folder(char *out, const char *path)
{
	size_t length = strnlen(path, PATH_BYTES - 1);
	memmove(out, path, length);
	out[length] = '\0';
	char *slash = strrchr(out, '/');
	if (!slash)
		memcpy(out, ".", 2);
	else if (slash == out)
		out[1] = '\0';
	else
		*slash = '\0';
}

enum status path_join(char *out, const char *folder, const char *name)
{
	size_t length = strlen(folder), name_length = strlen(name);
	bool slash = length > 0 && folder[length - 1] != '/';
	if (length + slash + name_length >= PATH_BYTES)
		return error_set(ERR_USAGE, "path too long: '%.100s…/%.100s'", folder, name);
	memcpy(out, folder, length);
	if (slash)
		out[length++] = '/';
	memcpy(out + length, name, name_length + 1);
	return OK;
}

const char *path_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

enum status path_beside(char *out, const char *path, const char *name)
{
	int size = (int)(path_name(path) - path);
	if (snprintf(out, PATH_BYTES, "%.*s%s", size, path, name) >= PATH_BYTES)
		return error_set(ERR_USAGE, "path too long: '%.100s…/%.100s'", path, name);
	return OK;
}

/* As many as Linux follows. */
#define LINKS_MOST 40

enum status path_behind_links(char *out, const char *path)
{
	char target[PATH_BYTES], link[PATH_BYTES];
	if (strlen(path) >= PATH_BYTES)
		return error_set(ERR_USAGE, "path too long: '%.200s…'", path);
	snprintf(out, PATH_BYTES, "%s", path);
	for (int i = 0; i < LINKS_MOST; i++) {
		ssize_t size = readlink(out, target, sizeof target - 1);
		if (size < 0)
			return OK;
		target[size] = '\0';
		memcpy(link, out, sizeof link);
		if (target[0] == '/')
			memcpy(out, target, (size_t)size + 1);
		else
			TRY(path_beside(out, link, target));
	}
	return error_set(ERR_USAGE, "'%s': too many symbolic links, one to the next", path);
}

bool file_exists(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0;
}

bool file_is_folder(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool path_lies_within(const char *folder, const char *path)
{
	char *outer = realpath(folder, NULL), *inner = realpath(path, NULL);
	size_t size = outer ? strlen(outer) : 0;
	bool within = outer && inner && strncmp(outer, inner, size) == 0 && (inner[size] == '/' || inner[size] == '\0');
	free(outer);
	free(inner);
	return within;
}

size_t set_name_size(const char *value)
{
	const char *equals = strchr(value, '=');
	if (!equals || memchr(value, '/', (size_t)(equals - value)) || file_exists(value))
		return 0;
	return (size_t)(equals - value);
}

const char *set_path(const char *value)
{
	size_t size = set_name_size(value);
	return size > 0 ? value + size + 1 : value;
}

int64_t file_size(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) ? (int64_t)facts.st_size : -1;
}

static struct file_stamp stamp(int result, const struct stat *facts)
{
	if (result < 0 || !S_ISREG(facts->st_mode))
		return (struct file_stamp){0};
	return (struct file_stamp){.size = facts->st_size,
				   .nanoseconds = (int64_t)facts->st_mtim.tv_sec * 1000000000 + facts->st_mtim.tv_nsec,
				   .device = facts->st_dev,
				   .inode = facts->st_ino};
}

struct file_stamp file_stamp_of(int descriptor)
{
	struct stat facts;
	return stamp(fstat(descriptor, &facts), &facts);
}

struct file_stamp file_stamp_at(const char *path)
{
	struct stat facts;
	return stamp(stat(path, &facts), &facts);
}

enum status file_stamp_check(const char *path, const struct file_stamp *before, const struct file_stamp *now, const char *when)
{
	if (before->inode == 0)
		return OK;
	enum status status = OK;
	long long old = before->size, new = now->size;
	if (now->inode == 0)
		status = error_set(ERR_STATE, "'%s' was removed %s", path, when);
	else if (!file_stamp_is_same_file(now, before))
		status = error_set(ERR_STATE, "'%s' was replaced by another file %s", path, when);
	else if (new != old)
		status = error_set(ERR_STATE, "'%s' %s %s: it had %lld bytes and now has %lld", path,
				   new < old ? "was cut short" : "grew", when, old, new);
	else if (now->nanoseconds != before->nanoseconds)
		status = error_set(ERR_STATE, "'%s' was written to %s", path, when);
	if (status != OK)
		error_hint("wait until nothing writes to it any more, then run the same command again");
	return status;
}

enum status folder_sync(const char *path)
{
	int fd, result;
	RETRY(fd, file_operations.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
	if (fd < 0)
		return error_set_errno(file_path_status(), "'%s': cannot open this folder", path);
	RETRY(result, file_operations.fsync(fd));
	enum status status = OK;
	if (result < 0 && errno != EINVAL && errno != ENOTSUP) /* some network file systems do not support it */
		status = error_set_errno(ERR_RESOURCE, "'%s': cannot sync this folder to disk", path);
	file_operations.close(fd);
	return status;
}

int64_t folder_free_bytes(const char *path)
{
	/* The folder may not exist yet: its nearest existing parent is on the same file system. */
	char part[PATH_BYTES];
	struct statvfs facts;
	size_t length = strnlen(path, sizeof part - 1);
	memcpy(part, path, length);
	part[length] = '\0';
	while (statvfs(part, &facts) < 0) {
		if (errno != ENOENT || !strcmp(part, ".") || !strcmp(part, "/"))
			return -1;
		path_folder(part, part);
	}
	return (int64_t)facts.f_bavail * (int64_t)facts.f_frsize;
}
