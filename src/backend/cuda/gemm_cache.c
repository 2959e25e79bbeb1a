#include "backend/cuda/gemm_cache.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/log.h"

/* More than any run has of shapes. */
#define FILE_LIMIT ((size_t)4 << 20)

static void find_folder(char *out, size_t size)
{
	const char *own = getenv("BERTC_CACHE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	out[0] = '\0';
	if (own)
		snprintf(out, size, "%s", own);
	else if (cache && cache[0] != '\0')
		snprintf(out, size, "%s/bertc", cache);
	else if (home && home[0] != '\0')
		snprintf(out, size, "%s/.cache/bertc", home);
}

void gemm_cache_open(struct gemm_cache *cache, const char *name)
{
	char folder[768];
	*cache = (struct gemm_cache){0};
	find_folder(folder, sizeof(folder));
	if (folder[0] == '\0')
		return;
	int length = snprintf(cache->path, sizeof(cache->path), "%s/products-", folder);
	for (; *name && length < (int)sizeof(cache->path) - 1; name++)
		cache->path[length++] = (char)(isalnum((unsigned char)*name) || *name == '.' ? *name : '-');
	cache->path[length] = '\0';
	if (file_exists(cache->path) && file_read(cache->path, FILE_LIMIT, &cache->text) != OK) {
		log_detail("%s: the choice of products is made anew", error_last()->message);
		buffer_clear(&cache->text);
	}
}

/* The line that begins with "key =". */
static const char *find_line(const struct gemm_cache *cache, const char *key)
{
	size_t length = strlen(key);
	if (cache->text.size == 0)
		return NULL;
	for (const char *line = buffer_string(&cache->text); line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) == 0 && strncmp(line + length, " = ", 3) == 0)
			return line + length + 3;
	}
	return NULL;
}

bool gemm_cache_find(const struct gemm_cache *cache, const char *key, uint64_t out_algorithm[8])
{
	const char *at = find_line(cache, key);
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

void gemm_cache_add(struct gemm_cache *cache, const char *key, const uint64_t algorithm[8])
{
	if (find_line(cache, key))
		return;
	char line[512];
	int length = snprintf(line, sizeof(line), "%s =", key);
	for (int i = 0; i < 8; i++)
		length += snprintf(line + length, sizeof(line) - (size_t)length, " %016" PRIx64, algorithm[i]);
	buffer_format(&cache->text, "%s\n", line);
	if (cache->path[0] == '\0')
		return;
	char folder[1024];
	snprintf(folder, sizeof(folder), "%s", cache->path);
	*strrchr(folder, '/') = '\0';
	if (folder_make(folder) != OK || file_append_line(cache->path, line) != OK) {
		log_detail("%s: the choice of products is not kept", error_last()->message);
		cache->path[0] = '\0';
	}
}

void gemm_cache_close(struct gemm_cache *cache)
{
	buffer_release(&cache->text);
}
