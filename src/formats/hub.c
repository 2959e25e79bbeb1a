/* Fetches models from the Hugging Face Hub into huggingface_hub's cache. */
#include "formats/hub.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/text.h"
#include "formats/checksum.h"
#include "formats/model_file_names.h"

#define NAME_BYTES 256
#define COMMIT_DIGITS 40
#define LIST_BYTES ((size_t)64 << 20) /* of the Hub's answer; a model of 100,000 files takes 20 MB */
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
#define HEX_DIGITS "0123456789abcdef"

/* A model on the Hub. */
struct hub_model {
	char name[NAME_BYTES], revision[NAME_BYTES]; /* OWNER/NAME; a branch, tag or commit */
	char folder[PATH_BYTES], locks[PATH_BYTES];  /* in the cache */
	char commit[COMMIT_DIGITS + 1];              /* "" = unknown */
	const struct fetch_settings *settings;
	char header[512]; /* with the token; "" = without one */
};

/* ---- Names and the environment ---- */

/* As huggingface_hub allows: no other characters, none of "-." at either end, no "--" and no "..". */
static bool is_part(const char *text, size_t size)
{
	static const char ends[] = "-.";
	if (size == 0 || size > 96 || strspn(text, NAME_LETTERS) < size || strchr(ends, text[0]) || strchr(ends, text[size - 1]))
		return false;
	for (size_t i = 1; i < size; i++)
		if (text[i] == text[i - 1] && strchr(ends, text[i]))
			return false;
	return true;
}

/* A revision becomes the path of a file. */
static bool is_revision(const char *text)
{
	size_t size = strlen(text);
	return size > 0 && size < NAME_BYTES && strspn(text, NAME_LETTERS "/+") == size && text[0] != '/' && text[0] != '.' &&
	       text[size - 1] != '/' && !strstr(text, "//") && !strstr(text, "/.") && !strstr(text, "..");
}

static bool is_commit(const char *text)
{
	return strlen(text) == COMMIT_DIGITS && strspn(text, HEX_DIGITS) == COMMIT_DIGITS;
}

bool hub_is_name(const char *name)
{
	size_t size = strcspn(name, "@"), owner = strcspn(name, "/@");
	if (name[size] && !is_revision(name + size + 1))
		return false;
	return owner == size ? is_part(name, size) : is_part(name, owner) && is_part(name + owner + 1, size - owner - 1);
}

/* The value of the first variable that is set, or NULL. */
static const char *variable(const char *name, const char *other)
{
	const char *value = getenv(name);
	if ((!value || !*value) && other)
		value = getenv(other);
	return value && *value ? value : NULL;
}

static bool is_offline(void)
{
	static const char *const yes[] = {"1", "on", "yes", "true"};
	const char *value = variable("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE");
	for (size_t i = 0; value && i < sizeof yes / sizeof *yes; i++)
		if (strcasecmp(value, yes[i]) == 0)
			return true;
	return false;
}

static const char *endpoint(void)
{
	const char *value = variable("HF_ENDPOINT", NULL);
	return value ? value : "https://huggingface.co";
}

static enum status home_folder(char out[PATH_BYTES])
{
	const char *home = variable("HF_HOME", NULL), *cache = variable("XDG_CACHE_HOME", NULL), *user = variable("HOME", NULL);
	if (home)
		return path_join(out, home, "");
	if (cache)
		return path_join(out, cache, "huggingface");
	if (user)
		return path_join(out, user, ".cache/huggingface");
	return error_hinted(error_set(ERR_USAGE, "there is no place for models of the Hub: HOME is not set"),
			    "set HF_HUB_CACHE to the folder that should keep them");
}

/* The token is a secret for the Hub alone: messages never show it. */
static enum status read_token(char header[512])
{
	char home[PATH_BYTES], path[PATH_BYTES];
	const char *value = variable("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"), *file = variable("HF_TOKEN_PATH", NULL);
	struct buffer text = {0};
	header[0] = 0;
	if (!value && !file) {
		if (home_folder(home) != OK)
			return OK;
		TRY(path_join(path, home, "token"));
		file = path;
	}
	if (!value) {
		if (!file_exists(file) || file_read(file, 4096, &text) != OK)
			return OK;
		value = buffer_string(&text);
	}
	enum status status = OK;
	size_t size = strcspn(value, " \t\r\n");
	if (size > 400 || strlen(value) > size + strspn(value + size, " \t\r\n"))
		status = error_set(ERR_USAGE, "HF_TOKEN is not a token of the Hugging Face Hub");
	else if (size > 0)
		snprintf(header, 512, "Authorization: Bearer %.*s", (int)size, value);
	buffer_release(&text);
	return status;
}

static enum status model_open(struct hub_model *out, const char *name, const struct fetch_settings *settings)
{
	char cache[PATH_BYTES], home[PATH_BYTES], folder[NAME_BYTES + 16] = "models--";
	const char *given = variable("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE");
	*out = (struct hub_model){.settings = settings};
	if (!hub_is_name(name))
		return error_hinted(error_set(ERR_USAGE, "'%.100s' is not the name of a model on the Hugging Face Hub", name),
				    "write OWNER/NAME, or OWNER/NAME@REVISION for a branch, tag or commit");
	size_t size = strcspn(name, "@"), used = strlen(folder);
	snprintf(out->name, sizeof out->name, "%.*s", (int)size, name);
	snprintf(out->revision, sizeof out->revision, "%s", name[size] ? name + size + 1 : "main");
	for (const char *c = out->name; *c; c++)
		used += (size_t)snprintf(folder + used, sizeof folder - used, *c == '/' ? "--" : "%c", *c);
	if (given) {
		TRY(path_join(cache, given, ""));
	} else {
		TRY(home_folder(home));
		TRY(path_join(cache, home, "hub"));
	}
	TRY(path_join(out->folder, cache, folder));
	TRY(path_join(out->locks, cache, ".locks"));
	TRY(path_join(cache, out->locks, folder));
	memcpy(out->locks, cache, PATH_BYTES);
	return read_token(out->header);
}

/* ---- What a model needs ---- */

enum kind { NOT_NEEDED, DESCRIPTION, SAFETENSORS, PICKLE };

/* "model.safetensors", "model.safetensors.index.json", "model-00001-of-00002.safetensors", and the same of pytorch_model.bin. */
static enum kind weights_kind(const char *name)
{
	static const struct {
		const char *stem, *suffix;
		enum kind kind;
	} forms[] = {{"model", ".safetensors", SAFETENSORS}, {"pytorch_model", ".bin", PICKLE}};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		size_t size = strlen(forms[i].stem);
		int part, of, used = 0;
		const char *rest = name + size;
		if (strncmp(name, forms[i].stem, size) != 0)
			continue;
		if (sscanf(rest, "-%5d-of-%5d%n", &part, &of, &used) == 2)
			rest += used;
		size = strlen(forms[i].suffix);
		if (strncmp(rest, forms[i].suffix, size) == 0 &&
		    (!rest[size] || (!used && strcmp(rest + size, ".index.json") == 0)))
			return forms[i].kind;
	}
	return NOT_NEEDED;
}

/* What a file of the repository is for. sentence-transformers keeps its modules in folders such as 1_Pooling. */
static enum kind file_kind(const char *name)
{
	const char *slash = strchr(name, '/');
	if (!slash)
		return model_file_name_is(name) ? DESCRIPTION : weights_kind(name);
	size_t digits = strspn(name, "0123456789");
	if (digits == 0 || name[digits] != '_' || !is_part(name, (size_t)(slash - name)) || strchr(slash + 1, '/'))
		return NOT_NEEDED;
	return strcmp(slash + 1, "config.json") == 0 ? DESCRIPTION : weights_kind(slash + 1);
}

/* ---- The cache ---- */

static enum status snapshot_path(const struct hub_model *model, const char *kind, const char *file, char out[PATH_BYTES])
{
	char name[3 * NAME_BYTES];
	if (snprintf(name, sizeof name, "%s/%s%s%s", kind, model->commit, *file ? "/" : "", file) >= (int)sizeof name)
		return error_set(ERR_DATA, "%s: the name of a file is too long: '%.60s...'", model->name, file);
	return path_join(out, model->folder, name);
}

static enum status read_commit(struct hub_model *model)
{
	char path[PATH_BYTES], name[NAME_BYTES + 8];
	struct buffer text = {0};
	if (is_commit(model->revision)) {
		memcpy(model->commit, model->revision, sizeof model->commit);
		return OK;
	}
	snprintf(name, sizeof name, "refs/%s", model->revision);
	TRY(path_join(path, model->folder, name));
	if (!file_exists(path))
		return OK;
	TRY(file_read(path, 256, &text));
	char *commit = (char *)buffer_string(&text);
	commit[strcspn(commit, " \r\n")] = 0;
	if (is_commit(commit))
		snprintf(model->commit, sizeof model->commit, "%s", commit);
	buffer_release(&text);
	return OK;
}

/* Whether the snapshot of model->commit can be used (*usable: it has a configuration and weights), and whether everything of it
 * that a model needs is there or known not to exist (*whole). Weights are linked last, so that they say that the rest of what
 * we fetched is there; huggingface_hub, which fetches a file when it is asked for, notes those that do not exist. */
static enum status look_up(const struct hub_model *model, bool *usable, bool *whole)
{
	static const char *const weights[] = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
					      "pytorch_model.bin.index.json"};
	char path[PATH_BYTES];
	*usable = *whole = false;
	if (!model->commit[0])
		return OK;
	for (size_t i = 0; i < sizeof weights / sizeof *weights && !*usable; i++) {
		TRY(snapshot_path(model, "snapshots", weights[i], path));
		*usable = file_exists(path);
	}
	TRY(snapshot_path(model, "snapshots", "config.json", path));
	*whole = *usable = *usable && file_exists(path);
	for (size_t i = 0; model_file_names[i] && *whole; i++) {
		TRY(snapshot_path(model, "snapshots", model_file_names[i], path));
		if (file_exists(path))
			continue;
		TRY(snapshot_path(model, ".no_exist", model_file_names[i], path));
		*whole = file_exists(path);
	}
	return OK;
}

static enum status make_folder_of(const char *path)
{
	char folder[PATH_BYTES];
	path_folder(folder, path);
	return folder_make(folder);
}

/* Waits for the lock that huggingface_hub takes as well. */
static enum status lock_blob(const struct hub_model *model, const char *hash, int *out)
{
	char name[96], path[PATH_BYTES];
	snprintf(name, sizeof name, "%s.lock", hash);
	TRY(folder_make(model->locks));
	TRY(path_join(path, model->locks, name));
	*out = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (*out < 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot write", path);
	while (flock(*out, LOCK_EX | LOCK_NB) != 0) {
		if (stop_requested() || (errno != EWOULDBLOCK && errno != EINTR)) {
			enum status status = stop_requested() ? error_set(STOPPED, "stopped by %s", stop_reason())
							      : error_set_errno(ERR_RESOURCE, "'%s': cannot lock", path);
			(void)close(*out);
			return status;
		}
		clock_pause(0.05);
	}
	return OK;
}

/* Makes snapshots/COMMIT/FILE a relative link to the blob, as huggingface_hub does. */
static enum status link_blob(const struct hub_model *model, const char *file, const char *hash)
{
	char path[PATH_BYTES], part[PATH_BYTES + 16], target[128];
	snprintf(target, sizeof target, "../../%sblobs/%s", strchr(file, '/') ? "../" : "", hash);
	TRY(snapshot_path(model, "snapshots", file, path));
	TRY(make_folder_of(path));
	snprintf(part, sizeof part, "%s.%ld", path, (long)getpid());
	(void)unlink(part);
	if (symlink(target, part) != 0 || rename(part, path) != 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot make a link", path);
	return OK;
}

/* ---- The Hub ---- */

/* The error for an address that could not be fetched. */
static enum status refused(const struct hub_model *model, const struct fetch_result *result)
{
	switch (result->answer) {
	case 401:
		return error_hinted(
			error_set(ERR_USAGE, "%s: there is no such model at %s, or it is private", model->name, endpoint()),
			model->header[0] ? "the token in use has no access to it"
					 : "check the name; a private model needs a token in HF_TOKEN");
	case 403:
		return error_hinted(error_set(ERR_RESOURCE, "%s: access is restricted", model->name),
				    "accept the model's conditions on its page at %s/%s, and give a token in HF_TOKEN",
				    endpoint(), model->name);
	case 404:
		return error_hinted(error_set(ERR_USAGE, "%s: there is no such model or no revision '%s' at %s", model->name,
					      model->revision, endpoint()),
				    "check the name; a private model needs a token in HF_TOKEN");
	default:
		return error_hinted(
			error_set(ERR_RESOURCE, "%s cannot be fetched from %s: %s", model->name, endpoint(), result->reason),
			"run the same command again to resume; HF_ENDPOINT names a mirror");
	}
}

/* Reads the list of files at the revision and sets model->commit. The caller releases *out. */
static enum status read_list(struct hub_model *model, struct json_document *out)
{
	char url[1024], path[PATH_BYTES], name[64], revision[3 * NAME_BYTES];
	const char *commit = NULL, *base = endpoint();
	size_t used = 0;
	struct fetch_result result;
	for (const char *c = model->revision; *c; c++) /* a slash would end the address's part */
		used += (size_t)snprintf(revision + used, sizeof revision - used, *c == '/' ? "%%2F" : "%c", *c);
	if (snprintf(url, sizeof url, "%.*s/api/models/%s/revision/%s?blobs=true",
		     (int)(strlen(base) - text_ends_with(base, "/")), base, model->name, revision) >= (int)sizeof url)
		return error_set(ERR_USAGE, "HF_ENDPOINT is too long");
	TRY(folder_make(model->folder));
	snprintf(name, sizeof name, ".list-%ld.json", (long)getpid());
	TRY(path_join(path, model->folder, name));
	(void)unlink(path);
	struct fetch_request request = {
		.url = url, .path = path, .header = model->header[0] ? model->header : NULL, .unrecorded = true};
	TRY(fetch(model->settings, &request, &result));
	if (result.outcome != FETCH_DONE)
		return refused(model, &result);
	enum status status = json_read(out, path, LIST_BYTES);
	(void)unlink(path);
	TRY(status);
	status = json_get_string(out->root, url, "sha", &commit);
	if (status == OK && (!commit || !is_commit(commit) || !json_member(out->root, "siblings")))
		status = error_set(ERR_DATA, "%s does not answer as the Hugging Face Hub does: no commit, or no list of files",
				   url);
	if (status == OK && is_commit(model->revision) && strcmp(model->revision, commit) != 0)
		status = error_set(ERR_DATA, "%s answers with another commit: %s", url, commit);
	if (status == OK)
		snprintf(model->commit, sizeof model->commit, "%s", commit);
	else
		json_release(out);
	return status;
}

/* A file as the Hub lists it. */
struct hub_file {
	const char *name;
	char hash[65];
	char checksum[CHECKSUM_BYTES];
	int64_t size;
	enum kind kind;
};

static enum status read_file(const struct hub_model *model, const struct json *entry, struct hub_file *out)
{
	const struct json *large = json_member(entry, "lfs");
	const char *hash = NULL;
	bool is_large = large && large->kind == JSON_OBJECT;
	*out = (struct hub_file){.size = -1};
	TRY(json_get_string(entry, model->name, "rfilename", &out->name));
	out->kind = out->name ? file_kind(out->name) : NOT_NEEDED;
	if (out->kind == NOT_NEEDED)
		return OK;
	TRY(json_get_integer(entry, model->name, "size", 0, INT64_MAX, &out->size));
	TRY(json_get_string(is_large ? large : entry, model->name, is_large ? "sha256" : "blobId", &hash));
	size_t digits = is_large ? 64 : 40;
	if (!hash || strlen(hash) != digits || strspn(hash, HEX_DIGITS) != digits || out->size < 0)
		return error_set(ERR_DATA, "%s: the list of files gives no size or hash for '%s'", model->name, out->name);
	snprintf(out->hash, sizeof out->hash, "%s", hash);
	snprintf(out->checksum, sizeof out->checksum, "%s:%s", is_large ? "sha256" : "git", hash);
	return OK;
}

static void show_progress(void *context, int64_t done, int64_t total)
{
	struct progress *progress = context;
	progress->total = total > 0 ? total : 0;
	progress_update(progress, done, NULL);
}

static enum status fetch_blob(const struct hub_model *model, const struct hub_file *file, const char *path)
{
	char url[1024];
	struct progress progress;
	struct fetch_result result;
	const char *base = endpoint();
	if (snprintf(url, sizeof url, "%.*s/%s/resolve/%s/%s", (int)(strlen(base) - text_ends_with(base, "/")), base, model->name,
		     model->commit, file->name) >= (int)sizeof url)
		return error_set(ERR_USAGE, "HF_ENDPOINT is too long");
	progress_start(&progress, file->name, 0, 0, "bytes");
	struct fetch_request request = {
		.url = url,
		.path = path,
		.checksum = file->checksum,
		.header = model->header[0] ? model->header : NULL,
		.unrecorded = true,
		.progress = show_progress,
		.context = &progress,
	};
	enum status status = fetch(model->settings, &request, &result);
	progress_finish(&progress);
	TRY(status);
	if (result.outcome == FETCH_GONE || result.outcome == FETCH_FAILED)
		return refused(model, &result);
	if (result.bytes != file->size)
		return error_set(ERR_DATA, "%s: '%s' has %" PRId64 " bytes, not the %" PRId64 " that the Hub lists", model->name,
				 file->name, result.bytes, file->size);
	char size[FORMAT_BYTES];
	log_detail("%s: %s, %s", file->name, result.outcome == FETCH_PRESENT ? "in the cache" : "fetched",
		   format_size(size, (double)result.bytes));
	return OK;
}

static enum status take_file(const struct hub_model *model, const struct hub_file *file)
{
	char path[PATH_BYTES], name[96];
	int lock;
	snprintf(name, sizeof name, "blobs/%s", file->hash);
	TRY(path_join(path, model->folder, name));
	TRY(make_folder_of(path));
	TRY(lock_blob(model, file->hash, &lock));
	enum status status = fetch_blob(model, file, path);
	if (status == OK)
		status = link_blob(model, file->name, file->hash);
	(void)close(lock);
	return status;
}

/* Fetches the files of one kind, and counts them. */
static enum status take_files(const struct hub_model *model, const struct json *siblings, enum kind kind, bool nested, int *count)
{
	struct hub_file file;
	for (const struct json *entry = siblings->first_child; entry; entry = entry->next) {
		TRY(read_file(model, entry, &file));
		if (file.kind != kind || (strchr(file.name, '/') != NULL) != nested)
			continue;
		TRY(take_file(model, &file));
		++*count;
	}
	return OK;
}

/* Notes that the commit has no such file, as huggingface_hub does. */
static enum status note_absent(const struct hub_model *model)
{
	char path[PATH_BYTES];
	for (size_t i = 0; model_file_names[i]; i++) {
		TRY(snapshot_path(model, "snapshots", model_file_names[i], path));
		if (file_exists(path))
			continue;
		TRY(snapshot_path(model, ".no_exist", model_file_names[i], path));
		TRY(make_folder_of(path));
		if (!file_exists(path))
			TRY(file_write(path, "", 0));
	}
	return OK;
}

/* Whether the repository has weights in safetensors files, in the top folder or in those of modules. */
static bool has_safetensors(const struct json *siblings, bool nested)
{
	for (const struct json *entry = siblings->first_child; entry; entry = entry->next) {
		const struct json *name = json_member(entry, "rfilename");
		if (name && name->kind == JSON_STRING && (strchr(name->text, '/') != NULL) == nested &&
		    file_kind(name->text) == SAFETENSORS)
			return true;
	}
	return false;
}

/* Everything but the weights first: they say that the snapshot is whole. */
static enum status take_model(const struct hub_model *model, const struct json *siblings)
{
	int described = 0, weights = 0, modules = 0;
	char path[PATH_BYTES], name[NAME_BYTES + 8];
	TRY(take_files(model, siblings, DESCRIPTION, false, &described));
	TRY(take_files(model, siblings, DESCRIPTION, true, &modules));
	TRY(note_absent(model));
	TRY(snapshot_path(model, "snapshots", "config.json", path));
	if (!file_exists(path))
		return error_set(ERR_DATA, "%s has no config.json, so it is not a model that bertc can read", model->name);
	TRY(take_files(model, siblings, has_safetensors(siblings, true) ? SAFETENSORS : PICKLE, true, &modules));
	TRY(take_files(model, siblings, has_safetensors(siblings, false) ? SAFETENSORS : PICKLE, false, &weights));
	if (weights == 0)
		return error_set(ERR_DATA, "%s has no model.safetensors and no pytorch_model.bin", model->name);
	if (is_commit(model->revision))
		return OK;
	snprintf(name, sizeof name, "refs/%s", model->revision);
	TRY(path_join(path, model->folder, name));
	TRY(make_folder_of(path));
	return file_write(path, model->commit, COMMIT_DIGITS);
}

enum status hub_fetch(const char *name, bool update, const struct fetch_settings *settings, char out[PATH_BYTES])
{
	struct hub_model model;
	struct json_document list;
	bool usable, whole;
	TRY(model_open(&model, name, settings));
	TRY(read_commit(&model));
	TRY(look_up(&model, &usable, &whole));
	if (is_offline() && !usable)
		return error_hinted(
			error_set(ERR_RESOURCE, "%s%s is not in the cache '%s', and HF_HUB_OFFLINE is set", HUB_PREFIX, name,
				  model.folder),
			"unset it, or run `bertc download " HUB_PREFIX "%s` where there is a network and copy the cache", name);
	if (is_offline() && !whole)
		log_warning("%s: taken from the cache '%s' without asking the Hub whether files are missing there", name,
			    model.folder);
	if (!is_offline() && (update || !whole)) {
		TRY(read_list(&model, &list));
		enum status status = take_model(&model, json_member(list.root, "siblings"));
		json_release(&list);
		TRY(status);
	}
	log_note("%s%s is commit %s", HUB_PREFIX, name, model.commit);
	return snapshot_path(&model, "snapshots", "", out);
}

enum status hub_find(const char *name, char out[PATH_BYTES], bool *out_found)
{
	struct hub_model model;
	bool whole;
	TRY(model_open(&model, name, NULL));
	TRY(read_commit(&model));
	TRY(look_up(&model, out_found, &whole));
	return *out_found ? snapshot_path(&model, "snapshots", "", out) : OK;
}

bool hub_name_of(const char *path, char *out, size_t size)
{
	static const char begin[] = "/models--";
	const char *cached = strstr(path, begin), *name = cached ? cached + strlen(begin) : "",
		   *end = strstr(name, "/snapshots/"), *owner_end = strstr(name, "--");
	if (!end)
		return false;
	int owner = owner_end && owner_end < end ? (int)(owner_end - name) : 0;
	const char *rest = owner > 0 ? owner_end + 2 : name;
	return snprintf(out, size, "%.*s%s%.*s", owner, name, owner > 0 ? "/" : "", (int)(end - rest), rest) < (int)size;
}
