/* The part of file.h about folders: creating, listing, removing, and locking them, and expanding patterns. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include "base/log.h"
#include "base/memory.h"
#include "base/missing_path.h"
#include "base/path_internal.h"

#define LOCK_NAME ".lock"
#define BRACES_MAX 10000 /* maximum number of patterns that one with braces may expand to */

enum status name_list_add(struct name_list *list, const char *name)
{
	TRY(memory_grow(&list->names, &list->capacity, list->count + 1, sizeof *list->names, "a list of names"));
	char *copy = strdup(name);
	if (!copy)
		return error_set(ERR_RESOURCE, "not enough memory for a list of names");
	list->names[list->count++] = copy;
	return OK;
}

/* The first of `characters` in text[from ..) that is neither inside inner braces nor after a backslash; 0 if there is none. */
static size_t find_unnested(const char *text, size_t from, const char *characters)
{
	int depth = 0;
	for (size_t i = from; text[i]; i++) {
		if (depth == 0 && strchr(characters, text[i]))
			return i;
		if (text[i] == '\\' && text[i + 1])
			i++;
		else if (text[i] == '{')
			depth++;
		else if (text[i] == '}' && depth > 0)
			depth--;
	}
	return 0;
}

enum status name_list_add_parts(struct name_list *list, const char *value)
{
	char part[PATH_BYTES];
	if (file_exists(set_path(value)))
		return name_list_add(list, value);
	for (value += strspn(value, ","); *value; value += strspn(value, ",")) {
		size_t stop = find_unnested(value, 0, ","), size = stop > 0 ? stop : strlen(value);
		if (size >= sizeof part)
			return error_set(ERR_USAGE, "'%.200s...': the path is too long", value);
		memcpy(part, value, size);
		part[size] = '\0';
		TRY(name_list_add(list, part));
		value += size;
	}
	return OK;
}

void name_list_release(struct name_list *list)
{
	for (int64_t i = 0; i < list->count; i++)
		free(list->names[i]);
	free(list->names);
	*list = (struct name_list){0};
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void name_list_sort(struct name_list *list, int64_t first)
{
	if (list->count > first)
		qsort(list->names + first, (size_t)(list->count - first), sizeof *list->names, compare_names);
}

enum status name_list_repeated(const struct name_list *list, int64_t first, const char **out)
{
	struct name_list sorted = {.count = list->count - first};
	*out = NULL;
	TRY(memory_new(&sorted.names, sorted.count, sizeof *sorted.names, "a list of names"));
	for (int64_t i = 0; i < sorted.count; i++)
		sorted.names[i] = list->names[first + i];
	name_list_sort(&sorted, 0);
	for (int64_t i = 1; i < sorted.count && !*out; i++)
		*out = strcmp(sorted.names[i - 1], sorted.names[i]) == 0 ? sorted.names[i] : NULL;
	free(sorted.names);
	return OK;
}

/* Creates each prefix of the path in turn, like mkdir -p; another process may create the same folders at the same time. */
enum status folder_make(const char *path)
{
	char part[PATH_BYTES];
	size_t length = strlen(path);
	if (length >= sizeof part)
		return error_set(ERR_USAGE, "path too long: '%.200s…'", path);
	for (size_t end = 1; end <= length; end++) {
		if (path[end] != '/' && path[end] != '\0')
			continue;
		memcpy(part, path, end);
		part[end] = '\0';
		if (file_is_folder(part))
			continue;
		int result;
		RETRY(result, file_operations.mkdir(part, 0777));
		if (result == 0 || (errno == EEXIST && file_is_folder(part)))
			continue;
		if (errno == EEXIST)
			return error_set(ERR_USAGE, "'%s' exists and is not a folder", part);
		return error_set_errno(file_path_status(), "'%s': cannot create this folder", part);
	}
	return OK;
}

enum status folder_list(const char *path, struct name_list *out)
{
	*out = (struct name_list){0};
	DIR *folder = opendir(path);
	if (!folder)
		return error_set_errno(file_path_status(), "'%s': cannot list this folder", path);
	enum status status = OK;
	for (;;) {
		errno = 0;
		struct dirent *entry = readdir(folder);
		if (!entry)
			break;
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			TRY_GOTO(name_list_add(out, entry->d_name), done);
	}
	if (errno)
		status = error_set_errno(ERR_RESOURCE, "'%s': cannot list this folder", path);
done:
	closedir(folder);
	if (status != OK)
		name_list_release(out);
	name_list_sort(out, 0);
	return status;
}

enum status folder_remove(const char *path)
{
	struct name_list names;
	struct stat facts = {0};
	char inner[PATH_BYTES];
	if (lstat(path, &facts) < 0 && errno == ENOENT)
		return OK;
	if (S_ISLNK(facts.st_mode)) /* what it leads to was put elsewhere by someone, and stays */
		return file_operations.unlink(path) == 0 ? OK : error_set_errno(ERR_RESOURCE, "'%s': cannot remove", path);
	TRY(folder_list(path, &names));
	enum status status = OK;
	for (int64_t i = 0; i < names.count && status == OK; i++) {
		TRY_GOTO(path_join(inner, path, names.names[i]), done);
		/* Symbolic links are removed, not followed. */
		if (lstat(inner, &facts) == 0 && S_ISDIR(facts.st_mode)) {
			status = folder_remove(inner);
		} else {
			int result;
			RETRY(result, file_operations.unlink(inner));
			if (result < 0 && errno != ENOENT)
				status = error_set_errno(ERR_RESOURCE, "'%s': cannot remove", inner);
		}
	}
	if (status == OK && rmdir(path) < 0 && errno != ENOENT)
		status = error_set_errno(ERR_RESOURCE, "'%s': cannot remove this folder", path);
done:
	name_list_release(&names);
	return status;
}

/* Whether it is ".NAME.tmp-<process>-<number>", as writer_open_temporary() makes it. */
static bool is_temporary(const char *name)
{
	const char *tail = NULL;
	for (const char *at = name; (at = strstr(at, ".tmp-")); at++)
		tail = at;
	if (name[0] != '.' || !tail || tail == name)
		return false;
	tail += strlen(".tmp-");
	size_t process = strspn(tail, "0123456789");
	if (process == 0 || tail[process] != '-')
		return false;
	tail += process + 1;
	return *tail && tail[strspn(tail, "0123456789")] == '\0';
}

enum status folder_clean(const char *path)
{
	struct name_list names;
	char inner[PATH_BYTES];
	struct stat facts;
	TRY(folder_list(path, &names));
	enum status status = OK;
	for (int64_t i = 0; i < names.count && status == OK; i++) {
		if (!is_temporary(names.names[i]))
			continue;
		TRY_GOTO(path_join(inner, path, names.names[i]), done);
		if (lstat(inner, &facts) == 0 && S_ISREG(facts.st_mode) && file_operations.unlink(inner) != 0)
			status = error_set_errno(ERR_RESOURCE, "'%s': cannot remove", inner);
	}
done:
	name_list_release(&names);
	return status;
}

/* The folders above the one being read, so that a link to one of them causes no endless recursion. */
struct ancestor {
	const struct ancestor *above;
	dev_t device;
	ino_t number;
};

static bool folder_has(const char *path, const char *name)
{
	char inner[PATH_BYTES];
	return path_join(inner, path, name) == OK && file_exists(inner);
}

static enum status expand_folder(const char *path, const struct stat *facts, const struct ancestor *above, struct name_list *out)
{
	struct ancestor here = {above, facts->st_dev, facts->st_ino};
	for (const struct ancestor *a = above; a; a = a->above) {
		if (a->device == here.device && a->number == here.number)
			return OK;
	}
	struct name_list names;
	TRY(folder_list(path, &names));
	enum status status = OK;
	for (int64_t i = 0; i < names.count; i++) {
		char inner[PATH_BYTES];
		struct stat inner_facts;
		if (names.names[i][0] == '.')
			continue;
		TRY_GOTO(path_join(inner, path, names.names[i]), done);
		if (stat(inner, &inner_facts) < 0)
			TRY_GOTO(error_set_errno(ERR_RESOURCE, "'%s': cannot find or read", inner), done);
		if (S_ISDIR(inner_facts.st_mode) && folder_has(inner, RUN_FOLDER_MARK))
			continue; /* text may be next to what was made from it, as with --corpus . --out runs/mine */
		if (S_ISDIR(inner_facts.st_mode))
			TRY_GOTO(expand_folder(inner, &inner_facts, &here, out), done);
		else if (S_ISREG(inner_facts.st_mode))
			TRY_GOTO(name_list_add(out, inner), done);
	}
done:
	name_list_release(&names);
	return status;
}

/* Expands a path that exists: to the files of a folder, or to itself (a pipe or device is what the user asked for). One of many
 * may be the folder of a run, even the one that is just beginning and has no more than its lock. */
static enum status expand_existing(const char *path, bool one_of_many, struct name_list *out)
{
	struct stat facts;
	if (stat(path, &facts) < 0) {
		enum status status = error_set_errno(file_path_status(), "'%s': cannot find or read", path);
		hint_at_missing(path);
		return status;
	}
	if (!S_ISDIR(facts.st_mode))
		return name_list_add(out, path);
	if (one_of_many && folder_has(path, RUN_FOLDER_MARK))
		return OK;
	int64_t before = out->count;
	TRY(expand_folder(path, &facts, NULL, out));
	return out->count > before || (one_of_many && folder_has(path, LOCK_NAME))
		       ? OK
		       : error_set(ERR_USAGE, "'%s': no files in this folder", path);
}

/* Expands a pattern without braces. A folder that cannot be read is an error and is not treated as empty. */
static enum status expand_glob(const char *pattern, struct name_list *out)
{
	glob_t found;
	int result = glob(pattern, GLOB_NOSORT | GLOB_TILDE | GLOB_ERR, NULL, &found);
	if (result == GLOB_NOMATCH)
		return error_set(ERR_USAGE, "'%s': no file matches", pattern);
	if (result != 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot search for matching files", pattern);
	enum status status = OK;
	int64_t before = out->count;
	for (size_t i = 0; i < found.gl_pathc && status == OK; i++)
		status = expand_existing(found.gl_pathv[i], true, out);
	globfree(&found);
	return status != OK || out->count > before ? status : error_set(ERR_USAGE, "'%s': no file matches", pattern);
}

/* "{a,b}*.txt" becomes "a*.txt" and "b*.txt", each of which must match a file: glob()'s own braces would silently skip one that
 * matches none. `left`: how many more patterns it may expand to. */
static enum status expand_braces(const char *pattern, int *left, struct name_list *out)
{
	const char *open = strchr(pattern, '{');
	size_t begin = open ? (size_t)(open - pattern) : 0, end = open ? find_unnested(pattern, begin + 1, "}") : 0;
	char one[PATH_BYTES];
	if (--*left < 0)
		return error_set(ERR_USAGE, "'%.200s...': too many alternatives in braces", pattern);
	if (end == 0 || (begin > 0 && pattern[begin - 1] == '\\'))
		return expand_glob(pattern, out);
	for (size_t at = begin + 1; at <= end;) {
		size_t stop = find_unnested(pattern, at, ",}");
		int length = snprintf(one, sizeof one, "%.*s%.*s%s", (int)begin, pattern, (int)(stop - at), pattern + at,
				      pattern + end + 1);
		if (length >= (int)sizeof one)
			return error_set(ERR_USAGE, "'%.200s...': the path is too long", pattern);
		TRY(expand_braces(one, left, out));
		at = stop + 1;
	}
	return OK;
}

static enum status expand(const char *pattern, bool one_of_many, struct name_list *out)
{
	if (!strcmp(pattern, "-"))
		return name_list_add(out, pattern);
	int64_t first = out->count;
	int left = BRACES_MAX;
	/* A name that exists is taken literally, whatever characters it has. */
	if (file_exists(pattern) || !strpbrk(pattern, "*?[{~"))
		TRY(expand_existing(pattern, one_of_many, out));
	else
		TRY(expand_braces(pattern, &left, out));
	name_list_sort(out, first);
	return OK;
}

enum status path_expand(const char *pattern, struct name_list *out)
{
	return expand(pattern, false, out);
}

/* Warns about a file that is in the list several times, by whatever names. */
static enum status warn_of_repeated(const struct name_list *files, int64_t first)
{
	struct name_list real = {0};
	const char *repeated;
	enum status status = OK;
	for (int64_t i = first; i < files->count && status == OK; i++) {
		char *path = realpath(files->names[i], NULL);
		status = name_list_add(&real, path ? path : files->names[i]);
		free(path);
	}
	if (status == OK)
		status = name_list_repeated(&real, 0, &repeated);
	if (status == OK && repeated)
		log_warning_once("'%s' is read more than once: it is named, or matched by a pattern, several times", repeated);
	name_list_release(&real);
	return status;
}

enum status path_expand_all(const char *const *patterns, int64_t count, struct name_list *out)
{
	int64_t before = out->count;
	for (int64_t i = 0; i < count; i++)
		TRY(expand(patterns[i], count > 1, out));
	TRY(warn_of_repeated(out, before));
	return count == 0 || out->count > before ? OK : error_set(ERR_USAGE, "'%s': no files in this folder", patterns[0]);
}

/* ---- Locks ---- */

/* Reports who holds the lock: the file contains "host pid start". */
static enum status locked(const char *path, int fd)
{
	char text[512] = "", host[257], start[65];
	long pid;
	ssize_t got = pread(fd, text, sizeof text - 1, 0);
	enum status status;
	if (got > 0 && sscanf(text, "%256s %ld %64s", host, &pid, start) == 3)
		status = error_set(ERR_LOCKED, "'%s' is in use by process %ld on %s since %s", path, pid, host, start);
	else
		status = error_set(ERR_LOCKED, "'%s' is in use by another run", path);
	error_hint("wait for it, stop it, or choose another --out");
	return status;
}

enum status folder_lock(const char *path, int *out_descriptor)
{
	char lock[PATH_BYTES];
	int fd, result;
	TRY(path_join(lock, path, LOCK_NAME));
	RETRY(fd, file_operations.open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666));
	if (fd < 0)
		return error_set_errno(file_path_status(), "'%s': cannot lock this folder", path);
	RETRY(result, flock(fd, LOCK_EX | LOCK_NB));
	if (result < 0 && errno == EWOULDBLOCK) {
		enum status status = locked(path, fd);
		close(fd);
		return status;
	}
	if (result < 0)
		log_warning("'%s': this file system does not support locks (%s): make sure that no other run uses the folder",
			    path, strerror(errno));

	char host[256] = "?", start[32], text[320];
	time_t now = time(NULL);
	struct tm parts;
	gethostname(host, sizeof host - 1);
	strftime(start, sizeof start, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
	snprintf(text, sizeof text, "%s %ld %s\n", host, (long)getpid(), start);
	/* The lock works without its text, which is only informative: a full disk is noticed where it matters. */
	if (ftruncate(fd, 0) == 0 && pwrite(fd, text, strlen(text), 0) < 0)
		log_detail("'%s': %s", lock, strerror(errno));
	*out_descriptor = fd;
	return OK;
}

struct file_stamp folder_lock_stamp(const char *path, int descriptor)
{
	char lock[PATH_BYTES];
	if (descriptor >= 0)
		return file_stamp_of(descriptor);
	return path_join(lock, path, LOCK_NAME) == OK ? file_stamp_at(lock) : (struct file_stamp){0};
}

enum status folder_lock_check(const char *path, const struct file_stamp *taken)
{
	char lock[PATH_BYTES];
	TRY(path_join(lock, path, LOCK_NAME));
	struct file_stamp now = file_stamp_at(lock);
	if (file_stamp_is_same_file(taken, &now))
		return OK;
	return error_hinted(
		error_set(ERR_LOCKED,
			  "'%s' was removed or replaced while this run held it, so another run may be using the "
			  "folder: nothing more is saved",
			  lock),
		"make sure that no other run uses '%s', then run the same command again to resume from the newest checkpoint",
		path);
}

void folder_unlock(int descriptor)
{
	/* The file is kept: removing it would let two runs lock two different files of the same name. */
	close(descriptor);
}

/* The kernel's list of locks: "1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF". */
long folder_lock_holder(const char *path)
{
	char lock[PATH_BYTES], line[256];
	struct stat facts;
	long holder = 0;
	if (path_join(lock, path, LOCK_NAME) != OK || stat(lock, &facts) != 0)
		return 0;
	FILE *locks = fopen("/proc/locks", "re");
	while (locks && fgets(line, sizeof line, locks)) {
		long process;
		unsigned major, minor;
		unsigned long long inode;
		if (sscanf(line, "%*s FLOCK %*s WRITE %ld %x:%x:%llu", &process, &major, &minor, &inode) == 4 &&
		    inode == facts.st_ino && major == major(facts.st_dev) && minor == minor(facts.st_dev))
			holder = process;
	}
	if (locks)
		fclose(locks);
	return holder;
}
