/* Writes manifests, and verifies a folder or a single file by one. */
#include "weights/manifest.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

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
	vsnprintf(reason, sizeof reason, format, arguments);
	va_end(arguments);
	return error_set(ERR_DATA, "'%s': damaged: %s", folder, reason);
}

/* The manifest's own checksum is its last member and covers every byte before it. The rest is compared with what manifest_write()
 * would write, so no byte of the file goes unverified. */
static enum status verify_own_checksum(const char *folder, const struct buffer *text)
{
	static const char key[] = ",\n  \"" OWN_CHECKSUM "\": ";
	char tail[64];
	size_t at = text->size;
	while (at > 0 && (text->size - at < strlen(key) || memcmp(text->data + at, key, strlen(key)) != 0))
		at--;
	snprintf(tail, sizeof tail, "%s%" PRIu32 "\n}\n", key, crc32c(0, text->data, at));
	if (text->size - at != strlen(tail) || memcmp(text->data + at, tail, strlen(tail)) != 0)
		return folder_damaged(folder, "its " MANIFEST_NAME " has the wrong checksum");
	return OK;
}

/* Errors caused by a file's own contents count as damage, whatever the reader called them. */
static enum status as_damage(const char *folder, enum status status)
{
	return status == ERR_USAGE || status == ERR_DATA ? folder_damaged(folder, "%s", error_last()->message) : status;
}

/* Checks the format's version. A newer version is reported only if the manifest's own checksum is right, since a flipped bit can
 * produce any number. */
static enum status check_format(const char *folder, const char *path, const struct json *root, const struct buffer *text)
{
	int64_t format = 0;
	TRY(as_damage(folder, json_get_integer(root, path, "format", 0, INT32_MAX, &format)));
	TRY(verify_own_checksum(folder, text));
	if (format == FORMAT_VERSION)
		return OK;
	if (format < FORMAT_VERSION)
		return folder_damaged(folder, "its " MANIFEST_NAME " has an unknown format");
	return error_hinted(error_set(ERR_STATE, "'%s': format %" PRId64 "; this version reads formats up to %d", path, format,
				      FORMAT_VERSION),
			    "it was written by a newer bertc: use that version");
}

/* Reads a folder's manifest and verifies it; *out_files is its list of files. */
static enum status manifest_read(const char *folder, struct json_document *document, const struct json **out_files)
{
	char path[PATH_BYTES];
	struct buffer text = {0};
	enum status status;
	*document = (struct json_document){0};
	TRY(path_join(path, folder, MANIFEST_NAME));
	if (file_size(path) < 0)
		return folder_damaged(folder, "it has no " MANIFEST_NAME);
	TRY_GOTO(as_damage(folder, file_read(path, MANIFEST_LIMIT, &text)), done);
	TRY_GOTO(as_damage(folder, json_parse(document, path, buffer_string(&text), text.size)), done);
	TRY_GOTO(check_format(folder, path, document->root, &text), done);
	*out_files = json_member(document->root, "files");
	if (!*out_files || (*out_files)->kind != JSON_ARRAY || (*out_files)->child_count == 0)
		status = folder_damaged(folder, "its " MANIFEST_NAME " lists no files");
done:
	if (status != OK)
		json_release(document);
	buffer_release(&text);
	return status;
}

/* What the manifest says about one file. */
struct row {
	const char *name; /* belongs to the JSON document */
	int64_t bytes;
	uint32_t crc32c;
};

/* Whether a path stays inside the folder. */
static bool is_inner_path(const char *name)
{
	for (const char *part = name;; part++) {
		size_t size = strcspn(part, "/");
		if (size == 0 || (size == 2 && memcmp(part, "..", 2) == 0))
			return false;
		part += size;
		if (!*part)
			return true;
	}
}

static enum status row_read(const char *folder, const struct json *json, struct row *out)
{
	int64_t crc = -1;
	*out = (struct row){.bytes = -1};
	TRY(as_damage(folder, json_get_string(json, MANIFEST_NAME, "name", &out->name)));
	TRY(as_damage(folder, json_get_integer(json, MANIFEST_NAME, "bytes", 0, INT64_MAX, &out->bytes)));
	TRY(as_damage(folder, json_get_integer(json, MANIFEST_NAME, "crc32c", 0, UINT32_MAX, &crc)));
	if (!out->name || out->bytes < 0 || crc < 0 || !is_inner_path(out->name))
		return folder_damaged(folder, "its " MANIFEST_NAME " has an incomplete row");
	out->crc32c = (uint32_t)crc;
	return OK;
}

/* Checks that a file exists and has its size. This avoids waiting for a pipe, and reading gigabytes if the size is wrong. */
static enum status check_size(const char *folder, const char *path, const struct row *row)
{
	if (!file_exists(path))
		return folder_damaged(folder, "'%s' is missing", row->name);
	int64_t found = file_size(path);
	if (found < 0)
		return folder_damaged(folder, "'%s' is not a regular file", row->name);
	if (found != row->bytes)
		return folder_damaged(folder, "'%s' has %" PRId64 " bytes, not %" PRId64, row->name, found, row->bytes);
	return OK;
}

static enum status verify_file(const char *folder, const struct row *row)
{
	char path[PATH_BYTES];
	int64_t found_bytes;
	uint32_t found_crc;
	TRY(path_join(path, folder, row->name));
	TRY(check_size(folder, path, row));
	enum status status = file_checksum(path, &found_bytes, &found_crc);
	if (status == ERR_USAGE) /* the file is gone, or is a folder: not an error in the command line */
		return folder_damaged(folder, "%s", error_last()->message);
	TRY(status);
	if (found_bytes != row->bytes)
		return folder_damaged(folder, "'%s' has %" PRId64 " bytes, not %" PRId64, row->name, found_bytes, row->bytes);
	if (found_crc != row->crc32c)
		return folder_damaged(folder, "'%s' has the wrong checksum", row->name);
	return OK;
}

static enum status step_read(const char *folder, const struct json *root, int64_t *out)
{
	*out = -1;
	TRY(as_damage(folder, json_get_integer(root, MANIFEST_NAME, "step", 0, INT64_MAX, out)));
	return *out >= 0 ? OK : folder_damaged(folder, "its " MANIFEST_NAME " names no step");
}

enum status manifest_verify(const char *folder, struct manifest_facts *facts)
{
	struct json_document document;
	const struct json *files = NULL;
	struct manifest_facts found = {.step = -1};
	enum status status = OK;
	TRY(manifest_read(folder, &document, &files));
	TRY_GOTO(step_read(folder, document.root, &found.step), done);
	for (const struct json *json = files->first_child; json; json = json->next) {
		struct row row;
		TRY_GOTO(row_read(folder, json, &row), done);
		TRY_GOTO(verify_file(folder, &row), done);
		found.bytes += row.bytes;
		found.files++;
	}
	if (facts)
		*facts = found;
done:
	json_release(&document);
	return status;
}

/* Whether a file of the manifest has this name, or lies in a folder of this name. */
static bool lists(const struct json *files, const char *name)
{
	size_t size = strlen(name);
	for (const struct json *file = files->first_child; file; file = file->next) {
		const struct json *listed = json_member(file, "name");
		if (listed && listed->kind == JSON_STRING && strncmp(listed->text, name, size) == 0 &&
		    (!listed->text[size] || listed->text[size] == '/'))
			return true;
	}
	return false;
}

enum status manifest_unlisted(const char *folder, struct name_list *out)
{
	struct json_document document;
	struct name_list names = {0};
	const struct json *files = NULL;
	TRY(manifest_read(folder, &document, &files));
	enum status status = folder_list(folder, &names);
	for (int64_t i = 0; status == OK && i < names.count; i++)
		if (names.names[i][0] != '.' && strcmp(names.names[i], MANIFEST_NAME) != 0 && !lists(files, names.names[i]))
			status = name_list_add(out, names.names[i]);
	name_list_release(&names);
	json_release(&document);
	return status;
}

enum status manifest_step(const char *folder, int64_t *out_step)
{
	struct json_document document;
	const struct json *files = NULL;
	TRY(manifest_read(folder, &document, &files));
	enum status status = step_read(folder, document.root, out_step);
	json_release(&document);
	return status;
}

/* ---- One file ---- */

/* What looks like damage may be a deliberate change: say what to do in either case. */
static enum status with_hint(enum status status)
{
	if (status == ERR_DATA)
		error_hint("copy the folder again or use another checkpoint; if the file was changed on purpose, remove "
			   "the " MANIFEST_NAME " beside it");
	return status;
}

/* Finds the manifest that may list a file, and the file's name in it. The manifest is in the file's own folder or, for files of
 * sentence-transformers modules such as "1_Pooling/config.json", in the folder above. */
static enum status find_manifest(const char *path, char folder[PATH_BYTES], const char **out_name, bool *out_found)
{
	char manifest[PATH_BYTES], inner[PATH_BYTES];
	path_folder(folder, path);
	*out_name = path_name(path);
	TRY(path_join(manifest, folder, MANIFEST_NAME));
	*out_found = file_exists(manifest);
	if (*out_found || !strchr(path, '/'))
		return OK;
	memcpy(inner, folder, strlen(folder) + 1);
	path_folder(folder, inner);
	*out_name = path + (path_name(inner) - inner);
	TRY(path_join(manifest, folder, "modules.json"));
	if (!file_exists(manifest))
		return OK;
	TRY(path_join(manifest, folder, MANIFEST_NAME));
	*out_found = file_exists(manifest);
	return OK;
}

enum status file_check_begin(struct file_check *check, const char *path)
{
	char folder[PATH_BYTES];
	const char *name;
	struct json_document document;
	const struct json *files = NULL;
	bool found;
	enum status status = OK;
	*check = (struct file_check){.active = false};
	TRY(find_manifest(path, folder, &name, &found));
	if (!found)
		return OK;
	TRY(with_hint(manifest_read(folder, &document, &files)));
	for (const struct json *json = files->first_child; json && status == OK; json = json->next) {
		struct row row;
		TRY_GOTO(with_hint(row_read(folder, json, &row)), done);
		if (strcmp(row.name, name) != 0)
			continue;
		check->active = true;
		check->bytes = row.bytes;
		check->expected = row.crc32c;
		snprintf(check->path, sizeof check->path, "%s", path);
		status = with_hint(check_size(folder, path, &row));
	}
done:
	json_release(&document);
	return status;
}

void file_check_advance(struct file_check *check, const struct file_map *file, int64_t end)
{
	if (!check->active || end <= check->checked || end > (int64_t)file->size)
		return;
	check->crc32c = crc32c(check->crc32c, file->data + check->checked, (size_t)(end - check->checked));
	check->checked = end;
}

enum status file_check_end(struct file_check *check, const struct file_map *file, enum status status)
{
	struct error before = *error_last();
	int64_t bytes = file ? (int64_t)file->size : 0;
	if (!check->active)
		return status;
	if (file)
		file_check_advance(check, file, bytes);
	else
		TRY(file_checksum(check->path, &bytes, &check->crc32c));
	check->active = false;
	if (bytes == check->bytes && check->crc32c == check->expected)
		return status == OK ? OK : error_restore(&before);
	return with_hint(error_set(ERR_DATA, "'%s': damaged: it has the wrong checksum", check->path));
}

enum status manifest_verify_file(const char *path)
{
	struct file_check check;
	TRY(file_check_begin(&check, path));
	return file_check_end(&check, NULL, OK);
}

enum status manifest_put_file(const char *folder, const char *name, const void *bytes, size_t size)
{
	struct json_document document;
	const struct json *rows = NULL;
	struct folder_files files = {0};
	char path[PATH_BYTES];
	int64_t step = 0;
	bool listed = false;
	enum status status;
	TRY(path_join(path, folder, name));
	TRY(manifest_step(folder, &step));
	TRY(manifest_read(folder, &document, &rows));
	for (const struct json *child = rows->first_child; child; child = child->next) {
		struct row row;
		TRY_GOTO(row_read(folder, child, &row), done);
		if (strcmp(row.name, name) != 0)
			TRY_GOTO(folder_files_add(&files, row.name, row.bytes, row.crc32c), done);
		else
			listed = true;
	}
	if (listed)
		TRY_GOTO(manifest_write(folder, step, &files), done);
	TRY_GOTO(file_write(path, bytes, size), done);
	TRY_GOTO(folder_files_add(&files, name, (int64_t)size, crc32c(0, bytes, size)), done);
	status = manifest_write(folder, step, &files);
done:
	free(files.files);
	json_release(&document);
	return status;
}
