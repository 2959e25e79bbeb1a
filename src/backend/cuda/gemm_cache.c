/* Finds, reads, and extends the file of chosen algorithms, which several ranks may write at the same time. */
#include "backend/cuda/gemm_cache.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "base/log.h"

/* Larger than the cache of any realistic number of shapes. */
#define FILE_LIMIT ((size_t)4 << 20)

/* Makes sure that nobody else can have put files into the folder: others may write to its parent. */
static bool is_own_folder(const char *path)
{
	struct stat found;
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return false;
	return lstat(path, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == geteuid() && (found.st_mode & 022) == 0;
}

/* $HOME, or else the home directory of the user's passwd entry. */
static void find_home(char *out, size_t size)
{
	char text[4096];
	struct passwd entry, *found = NULL;
	const char *home = getenv("HOME");
	out[0] = '\0';
	if (home && home[0] != '\0')
		snprintf(out, size, "%s", home);
	else if (getpwuid_r(geteuid(), &entry, text, sizeof text, &found) == 0 && found && access(found->pw_dir, W_OK) == 0)
		snprintf(out, size, "%s", found->pw_dir);
}

static void find_folder(char *out, size_t size)
{
	const char *own = getenv("BERTC_CACHE"), *cache = getenv("XDG_CACHE_HOME");
	char home[512];
	find_home(home, sizeof home);
	if (own) {
		snprintf(out, size, "%s", own);
	} else if (cache && cache[0] != '\0') {
		snprintf(out, size, "%s/bertc", cache);
	} else if (home[0] != '\0' && access(home, W_OK) == 0) {
		snprintf(out, size, "%s/.cache/bertc", home);
	} else {
		snprintf(out, size, "/var/tmp/bertc-%u", (unsigned)geteuid());
		if (!is_own_folder(out))
			out[0] = '\0';
	}
}

void gemm_cache_open(struct gemm_cache *cache, const char *name)
{
	char folder[768];
	*cache = (struct gemm_cache){0};
	find_folder(folder, sizeof folder);
	if (folder[0] == '\0')
		return;
	int length = snprintf(cache->path, sizeof cache->path, "%s/products-", folder);
	for (; *name && length < (int)sizeof cache->path - 1; name++)
		cache->path[length++] = (char)(isalnum((unsigned char)*name) || *name == '.' ? *name : '-');
	cache->path[length] = '\0';
	if (file_exists(cache->path) && file_read(cache->path, FILE_LIMIT, &cache->text) != OK) {
		log_detail("%s: product algorithms are chosen again", error_last()->message);
		buffer_clear(&cache->text);
	}
}

/* The text after "key = " in the line that starts with it. */
static const char *find_line(const struct buffer *lines, const char *key)
{
	size_t length = strlen(key);
	for (const char *line = buffer_string(lines); line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) == 0 && strncmp(line + length, " = ", 3) == 0)
			return line + length + 3;
	}
	return NULL;
}

bool gemm_line_find(const struct buffer *lines, const char *key, uint64_t out_algorithm[8])
{
	const char *at = find_line(lines, key);
	if (!at)
		return false;
	for (int i = 0; i < 8; i++) {
		char *end;
		out_algorithm[i] = strtoull(at, &end, 16);
		if (end - at < 16)
			return false;
		at = end;
	}
	return true;
}

void gemm_line_add(struct buffer *lines, const char *key, const uint64_t algorithm[8])
{
	buffer_format(lines, "%s =", key);
	for (int i = 0; i < 8; i++)
		buffer_format(lines, " %016" PRIx64, algorithm[i]);
	buffer_char(lines, '\n');
}

void gemm_lines_merge(struct buffer *lines, const char *more)
{
	char key[KEY_BYTES];
	for (const char *line = more, *next; *line; line = next) {
		const char *end = strchr(line, '\n'), *equals = strstr(line, " = ");
		next = end ? end + 1 : line + strlen(line);
		if (!end || !equals || equals > end || (size_t)(equals - line) >= sizeof key)
			continue;
		snprintf(key, sizeof key, "%.*s", (int)(equals - line), line);
		if (!find_line(lines, key))
			buffer_append(lines, line, (size_t)(next - line));
	}
}

/* Reads the file again: other ranks of this machine measure at the same time, and all take what the first of them appended. */
static void take_first_choice(struct gemm_cache *cache, const char *key, uint64_t algorithm[8])
{
	struct buffer now = {0};
	if (file_read(cache->path, FILE_LIMIT, &now) == OK) {
		buffer_release(&cache->text);
		cache->text = now;
		gemm_line_find(&cache->text, key, algorithm);
	}
}

void gemm_cache_add(struct gemm_cache *cache, const char *key, uint64_t algorithm[8])
{
	if (find_line(&cache->text, key))
		return;
	size_t before = cache->text.size;
	gemm_line_add(&cache->text, key, algorithm);
	if (cache->path[0] == '\0')
		return;
	char folder[1024], line[512];
	snprintf(folder, sizeof folder, "%s", cache->path);
	*strrchr(folder, '/') = '\0';
	snprintf(line, sizeof line, "%.*s", (int)(cache->text.size - before - 1), buffer_string(&cache->text) + before);
	if (folder_make(folder) != OK || file_append_line(cache->path, line) != OK) {
		log_detail("%s: the choice of algorithms is not saved", error_last()->message);
		cache->path[0] = '\0';
		return;
	}
	take_first_choice(cache, key, algorithm);
}

void gemm_cache_close(struct gemm_cache *cache)
{
	buffer_release(&cache->text);
}
