#include "weights/manifest.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

/* Version 1 had no checksum of its own. */
#define FORMAT_VERSION 2
#define MANIFEST_LIMIT ((size_t)1 << 20)
#define OWN_CHECKSUM "manifest_crc32c"

enum status manifest_write(const char *folder, int64_t step, const struct folder_files *files)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text, .indent = 2};
	char path[PATH_BYTES];
	enum status status;
	json_open(&writer, NULL, '{');
	json_put_integer(&writer, "format", FORMAT_VERSION);
	json_put_string(&writer, "program", "bertc " VERSION);
	json_put_integer(&writer, "step", step);
	json_put_integer(&writer, "ranks", 1);
	json_open(&writer, "files", '[');
	for (int64_t i = 0; i < files->count; i++) {
		json_open(&writer, NULL, '{');
		json_put_string(&writer, "name", files->files[i].name);
		json_put_integer(&writer, "bytes", files->files[i].bytes);
		json_put_integer(&writer, "crc32c", files->files[i].crc32c);
		json_close(&writer);
	}
	json_close(&writer);
	TRY_GOTO(buffer_status(&text), done);
	json_put_integer(&writer, OWN_CHECKSUM, crc32c(0, text.data, text.size));
	json_close(&writer);
	buffer_char(&text, '\n');
	TRY_GOTO(buffer_status(&text), done);
	TRY_GOTO(path_join(path, folder, MANIFEST_NAME), done);
	TRY_GOTO(file_write(path, text.data, text.size), done);
done:
	buffer_release(&text);
	return status;
}

enum status folder_damaged(const char *folder, const char *format, ...)
{
	char reason[768];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	return error_set(ERR_DATA, "'%s': damaged: %s", folder, reason);
}

/* The manifest's own checksum is its last member and covers every byte before that; what follows is compared with
 * what would be written, so that no byte of the file goes unproved. */
static enum status prove_own_checksum(const char *folder, const struct buffer *text)
{
	static const char key[] = ",\n  \"" OWN_CHECKSUM "\": ";
	char tail[64];
	size_t at = text->size;
	while (at > 0 && (text->size - at < strlen(key) || memcmp(text->data + at, key, strlen(key)) != 0))
		at--;
	snprintf(tail, sizeof(tail), "%s%" PRIu32 "\n}\n", key, crc32c(0, text->data, at));
	if (text->size - at != strlen(tail) || memcmp(text->data + at, tail, strlen(tail)) != 0)
		return folder_damaged(folder, "its " MANIFEST_NAME " has the wrong checksum");
	return OK;
}

static enum status verify_file(const char *folder, const struct json *row, const char *manifest, int64_t *out_bytes)
{
	const char *name = NULL;
	char path[PATH_BYTES];
	int64_t bytes = -1, crc = -1, found_bytes;
	uint32_t found_crc;
	TRY(json_get_string(row, manifest, "name", &name));
	TRY(json_get_integer(row, manifest, "bytes", 0, INT64_MAX, &bytes));
	TRY(json_get_integer(row, manifest, "crc32c", 0, UINT32_MAX, &crc));
	if (!name || bytes < 0 || crc < 0 || strchr(name, '/') || strcmp(name, "..") == 0)
		return folder_damaged(folder, "its " MANIFEST_NAME " has an incomplete row");
	TRY(path_join(path, folder, name));
	if (!file_exists(path))
		return folder_damaged(folder, "'%s' is missing", name);
	/* A pipe would be waited for; a size that differs says it without reading gigabytes. */
	found_bytes = file_size(path);
	if (found_bytes < 0)
		return folder_damaged(folder, "'%s' is not a regular file", name);
	if (found_bytes != bytes)
		return folder_damaged(folder, "'%s' has %" PRId64 " bytes, not %" PRId64, name, found_bytes, bytes);
	enum status status = file_checksum(path, &found_bytes, &found_crc);
	if (status == ERR_USAGE) /* gone or a folder: no fault of the command line's */
		return folder_damaged(folder, "%s", error_last()->message);
	TRY(status);
	if (found_bytes != bytes)
		return folder_damaged(folder, "'%s' has %" PRId64 " bytes, not %" PRId64, name, found_bytes, bytes);
	if (found_crc != (uint32_t)crc)
		return folder_damaged(folder, "'%s' has the wrong checksum", name);
	*out_bytes += bytes;
	return OK;
}

/* An error that a file's own bytes are to blame for is damage, whatever the reader called it. */
static enum status as_damage(const char *folder, enum status status)
{
	return status == ERR_USAGE || status == ERR_DATA ? folder_damaged(folder, "%s", error_last()->message) : status;
}

enum status manifest_verify(const char *folder, int64_t *out_files, int64_t *out_bytes)
{
	char path[PATH_BYTES];
	struct buffer text = {0};
	struct json_document document = {0};
	int64_t format = 0, count = 0, total = 0;
	enum status status;
	TRY(path_join(path, folder, MANIFEST_NAME));
	if (file_size(path) < 0)
		return folder_damaged(folder, "it has no " MANIFEST_NAME);
	TRY_GOTO(as_damage(folder, file_read(path, MANIFEST_LIMIT, &text)), done);
	TRY_GOTO(as_damage(folder, json_parse(&document, path, buffer_string(&text), text.size)), done);
	TRY_GOTO(as_damage(folder, json_get_integer(document.root, path, "format", 0, INT32_MAX, &format)), done);
	if (format > FORMAT_VERSION) {
		status = error_set(ERR_STATE, "'%s': format %" PRId64 ", this version knows up to %d", path, format,
				   FORMAT_VERSION);
		error_hint("a newer bertc wrote it: use that one");
		/* A flipped bit can make any number of it: only a manifest that proves itself is from the future. */
		struct error newer = *error_last();
		status = prove_own_checksum(folder, &text) == OK ? error_restore(&newer) : ERR_DATA;
		goto done;
	}
	if (format < 1) {
		status = folder_damaged(folder, "its " MANIFEST_NAME " has no format");
		goto done;
	}
	if (format > 1)
		TRY_GOTO(prove_own_checksum(folder, &text), done);
	const struct json *files = json_member(document.root, "files");
	if (!files || files->kind != JSON_ARRAY || files->child_count == 0) {
		status = folder_damaged(folder, "its " MANIFEST_NAME " lists no files");
		goto done;
	}
	for (const struct json *row = files->first_child; row; row = row->next) {
		TRY_GOTO(verify_file(folder, row, path, &total), done);
		count++;
	}
	if (out_files)
		*out_files = count;
	if (out_bytes)
		*out_bytes = total;
done:
	json_release(&document);
	buffer_release(&text);
	return status;
}
