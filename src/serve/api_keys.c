/* Reads the file of API keys, and checks a request's key in constant time. */
#include "serve/api_keys.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

#define FILE_LIMIT ((size_t)1 << 20)

static enum status check_key(const char *path, int64_t line, const char *key, size_t size)
{
	if (size >= API_KEY_BYTES)
		return error_set(ERR_DATA, "'%s', line %lld: a key can have at most %d bytes", path, (long long)line,
				 API_KEY_BYTES - 1);
	for (size_t i = 0; i < size; i++)
		if (key[i] <= ' ' || key[i] > '~')
			return error_set(ERR_DATA, "'%s', line %lld: a key is made of visible ASCII characters", path,
					 (long long)line);
	return OK;
}

static enum status read_lines(struct api_keys *out, const char *path, const char *text)
{
	int64_t line = 0, capacity = 0;
	while (*text) {
		size_t size = strcspn(text, "\n"), end = size;
		const char *key = text;
		line++;
		text += size + (text[size] == '\n');
		while (end > 0 && strchr(" \t\r", key[end - 1]))
			end--;
		if (end == 0 || *key == '#')
			continue;
		TRY(check_key(path, line, key, end));
		TRY(memory_grow(&out->keys, &capacity, out->count + 1, sizeof *out->keys, "API keys"));
		memset(out->keys[out->count], 0, API_KEY_BYTES);
		memcpy(out->keys[out->count++], key, end);
	}
	if (out->count > 0)
		return OK;
	return error_hinted(error_set(ERR_DATA, "'%s' holds no keys", path),
			    "write one key on each line; `openssl rand -hex 24` makes one");
}

enum status api_keys_read(struct api_keys *out, const char *path)
{
	struct buffer text = {0};
	struct stat facts;
	*out = (struct api_keys){0};
	TRY(file_read(path, FILE_LIMIT, &text));
	if (stat(path, &facts) == 0 && (facts.st_mode & (S_IRGRP | S_IROTH)))
		log_warning("other users of this machine can read the API keys in '%s': chmod 600 keeps them out", path);
	enum status status = strlen(buffer_string(&text)) == text.size
				     ? read_lines(out, path, buffer_string(&text))
				     : error_set(ERR_DATA, "'%s' is not a text file: it holds a NUL byte", path);
	buffer_release(&text);
	if (status != OK)
		api_keys_release(out);
	return status;
}

void api_keys_release(struct api_keys *keys)
{
	free(keys->keys);
	*keys = (struct api_keys){0};
}

bool api_keys_allow(const struct api_keys *keys, const char *authorization)
{
	static const char scheme[] = "Bearer ";
	char given[API_KEY_BYTES] = {0};
	unsigned found = 0;
	if (keys->count == 0)
		return true;
	if (strncasecmp(authorization, scheme, strlen(scheme)) != 0)
		return false;
	const char *key = authorization + strlen(scheme);
	key += strspn(key, " ");
	size_t size = strlen(key);
	if (size == 0 || size >= sizeof given)
		return false;
	memcpy(given, key, size);
	for (int64_t i = 0; i < keys->count; i++) {
		unsigned difference = 0;
		for (size_t b = 0; b < sizeof given; b++)
			difference |= (unsigned char)(given[b] ^ keys->keys[i][b]);
		found |= difference == 0;
	}
	return found != 0;
}
