/* The part of file.h that is about paths: what lies there, joined names, the file system below. Files and folders stand on
 * it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "base/file.h"
#include "base/file_internal.h"

enum status file_path_status(void)
{
	return errno == ENOENT || errno == ENOTDIR || errno == EISDIR || errno == ENAMETOOLONG || errno == ELOOP ? ERR_USAGE
														 : ERR_RESOURCE;
}

void file_parent(char *out, const char *path)
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

int64_t file_size(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) ? (int64_t)facts.st_size : -1;
}

enum status folder_sync(const char *path)
{
	int fd, result;
	RETRY(fd, file_operations.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
	if (fd < 0)
		return error_set_errno(file_path_status(), "'%s': cannot open this folder", path);
	RETRY(result, file_operations.fsync(fd));
	enum status status = OK;
	if (result < 0 && errno != EINVAL && errno != ENOTSUP) /* some network file systems cannot */
		status = error_set_errno(ERR_RESOURCE, "'%s': cannot make this folder durable", path);
	file_operations.close(fd);
	return status;
}

int64_t folder_free_bytes(const char *path)
{
	/* The folder may not exist yet: its nearest parent that does lies on the same file system. */
	char part[PATH_BYTES];
	struct statvfs facts;
	size_t length = strnlen(path, sizeof part - 1);
	memcpy(part, path, length);
	part[length] = '\0';
	while (statvfs(part, &facts) < 0) {
		if (errno != ENOENT || !strcmp(part, ".") || !strcmp(part, "/"))
			return -1;
		file_parent(part, part);
	}
	return (int64_t)facts.f_bavail * (int64_t)facts.f_frsize;
}
