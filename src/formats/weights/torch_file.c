/* Finds the state dict and the storages of PyTorch's files, new and old. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "formats/little_endian.h"
#include "formats/weights/torch_file.h"

/* The first pickle of a file from before PyTorch 1.6: a magic number. */
static const unsigned char old_magic[] = {0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
					  0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e};
#define OLD_PROTOCOL 1001
#define TENSOR_LIMIT 100000
#define NAME_LIMIT 4096

/* An array of numbers of which tensors are views. */
struct torch_storage {
	const char *key;
	enum safetensors_dtype dtype;
	int64_t elements;
	const unsigned char *data; /* NULL until it is found */
	uint64_t offset;
	uint32_t crc32; /* 0: none */
};

bool torch_file_is(const unsigned char *bytes, size_t size)
{
	return zip_is(bytes, size) || (size >= sizeof old_magic && memcmp(bytes, old_magic, sizeof old_magic) == 0);
}

/* ---- Storages ---- */

static int compare_storages(const void *a, const void *b)
{
	return strcmp(((const struct torch_storage *)a)->key, ((const struct torch_storage *)b)->key);
}

/* Lists all storages that the pickle names, each once. */
static enum status list_storages(struct torch_file *file)
{
	int64_t count = 0;
	for (const struct pickle_value *value = file->pickle.storages; value; value = value->storage.next)
		count++;
	TRY(memory_new(&file->storages, count, sizeof *file->storages, "storages of a PyTorch file"));
	count = 0;
	for (const struct pickle_value *value = file->pickle.storages; value; value = value->storage.next)
		file->storages[count++] = (struct torch_storage){
			.key = value->storage.key,
			.dtype = value->storage.dtype,
			.elements = value->storage.elements,
		};
	qsort(file->storages, (size_t)count, sizeof *file->storages, compare_storages);
	for (int64_t i = 0; i < count; i++) {
		struct torch_storage *last = file->storage_count ? &file->storages[file->storage_count - 1] : NULL;
		const struct torch_storage *storage = &file->storages[i];
		if (!last || strcmp(last->key, storage->key) != 0)
			file->storages[file->storage_count++] = *storage;
		else if (last->dtype != storage->dtype || last->elements != storage->elements)
			return error_set(ERR_DATA, "'%s': storage '%.100s' appears with two types or sizes", file->path,
					 storage->key);
	}
	return OK;
}

static struct torch_storage *find_storage(const struct torch_file *file, const char *key)
{
	struct torch_storage wanted = {.key = key};
	return bsearch(&wanted, file->storages, (size_t)file->storage_count, sizeof wanted, compare_storages);
}

/* ---- Archives: <folder>/data.pkl, <folder>/data/<key>, … ---- */

static const struct zip_entry *archive_entry(const struct torch_file *file, const char *folder, const char *name)
{
	char path[PATH_BYTES];
	int length = snprintf(path, sizeof path, "%s%s", folder, name);
	return length < (int)sizeof path ? zip_find(&file->zip, path) : NULL;
}

/* The folder that contains all entries, including its '/': the one with data.pkl. */
static enum status archive_folder(const struct torch_file *file, char out[PATH_BYTES])
{
	out[0] = '\0';
	for (int64_t i = 0; i < file->zip.count; i++) {
		const char *name = file->zip.entries[i].name, *slash = strchr(name, '/');
		if (!slash || strcmp(slash, "/data.pkl") != 0)
			continue;
		if (out[0])
			return error_set(ERR_DATA, "'%s': a zip archive with data.pkl in two folders", file->path);
		snprintf(out, PATH_BYTES, "%.*s", (int)(slash + 1 - name), name);
	}
	if (out[0])
		return OK;
	return error_hinted(error_set(ERR_DATA, "'%s': a zip archive without data.pkl: not written by torch.save", file->path),
			    "give a file of weights: model.safetensors, pytorch_model.bin, a .pt file");
}

static enum status archive_storages(struct torch_file *file, const char *folder)
{
	for (int64_t i = 0; i < file->storage_count; i++) {
		struct torch_storage *storage = &file->storages[i];
		char name[256];
		int length = snprintf(name, sizeof name, "data/%s", storage->key);
		const struct zip_entry *entry = length < (int)sizeof name ? archive_entry(file, folder, name) : NULL;
		if (!entry)
			return error_set(ERR_DATA, "'%s': the archive has no storage '%.100s'", file->path, storage->key);
		uint64_t bytes = (uint64_t)(storage->elements * dtype_element_bytes(storage->dtype));
		if (entry->size != bytes)
			return error_set(ERR_DATA,
					 "'%s': byte %" PRIu64 ": storage '%.100s' has %" PRIu64
					 " bytes where its type and size need %" PRIu64,
					 file->path, entry->offset, storage->key, entry->size, bytes);
		storage->data = entry->data;
		storage->offset = entry->offset;
		storage->crc32 = entry->crc32;
	}
	return OK;
}

static enum status archive_read(struct torch_file *file)
{
	char folder[PATH_BYTES];
	TRY(zip_open(&file->zip, file->path, file->map.data, file->map.size));
	TRY(archive_folder(file, folder));
	const struct zip_entry *entry = archive_entry(file, folder, "data.pkl");
	const struct zip_entry *order = archive_entry(file, folder, "byteorder");
	BUG_IF(!entry);
	if (archive_entry(file, folder, "constants.pkl"))
		return error_set(ERR_DATA, "'%s': a TorchScript program, not a dictionary of weights", file->path);
	if (order && (order->size != 6 || memcmp(order->data, "little", 6) != 0))
		return error_set(ERR_DATA, "'%s': its numbers are big-endian", file->path);
	TRY(zip_entry_check(entry, file->path));
	TRY(pickle_read(&file->pickle, file->path, entry->offset, entry->data, entry->size));
	if (file->pickle.bytes != entry->size)
		return error_set(ERR_DATA, "'%s': byte %" PRIu64 ": more follows the pickle", file->path,
				 entry->offset + file->pickle.bytes);
	TRY(list_storages(file));
	return archive_storages(file, folder);
}

/* ---- Files that are not archives: magic, protocol, system, the dictionary, the keys, then each key's numbers ---- */

/* Reads the pickle at *at and moves past it. */
static enum status old_pickle(const struct torch_file *file, size_t *at, struct pickle *out)
{
	TRY(pickle_read(out, file->path, *at, file->map.data + *at, file->map.size - *at));
	*at += out->bytes;
	return OK;
}

/* Checks protocol and byte order. */
static enum status old_read_head(const struct torch_file *file, size_t *at)
{
	struct pickle head;
	TRY(old_pickle(file, at, &head));
	bool known = head.root->kind == PICKLE_INTEGER && head.root->integer == OLD_PROTOCOL;
	pickle_release(&head);
	if (!known)
		return error_set(ERR_DATA, "'%s': written by an unknown version of torch.save", file->path);
	TRY(old_pickle(file, at, &head));
	const struct pickle_value *little = pickle_member(head.root, "little_endian");
	known = little && little->kind == PICKLE_BOOL && little->integer;
	pickle_release(&head);
	if (!known)
		return error_set(ERR_DATA, "'%s': its numbers are big-endian", file->path);
	return OK;
}

/* Each key's numbers: their count (64 bits), then the numbers themselves. */
static enum status old_storages(struct torch_file *file, const struct pickle_value *keys, size_t at)
{
	if (keys->kind != PICKLE_LIST)
		return error_set(ERR_DATA, "'%s': byte %zu: no list of storages after the dictionary", file->path, at);
	for (int64_t i = 0; i < keys->items.count; i++) {
		const struct pickle_value *key = keys->items.values[i];
		struct torch_storage *storage = key->kind == PICKLE_TEXT ? find_storage(file, key->text.bytes) : NULL;
		if (!storage || storage->data)
			return error_set(ERR_DATA, "'%s': byte %zu: storage %" PRId64 " is not one of the dictionary's",
					 file->path, at, i);
		uint64_t left = file->map.size - at, bytes = (uint64_t)(storage->elements * dtype_element_bytes(storage->dtype));
		if (left < 8 || bytes > left - 8)
			return error_set(ERR_DATA,
					 "'%s': byte %zu: storage '%.100s' needs %" PRIu64 " bytes, %" PRIu64
					 " are left: truncated?",
					 file->path, at, storage->key, bytes + 8, left);
		if (read_le64(file->map.data + at) != (uint64_t)storage->elements)
			return error_set(ERR_DATA,
					 "'%s': byte %zu: storage '%.100s' has %" PRIu64 " elements where %" PRId64
					 " are expected",
					 file->path, at, storage->key, read_le64(file->map.data + at), storage->elements);
		storage->data = file->map.data + at + 8;
		storage->offset = at + 8;
		at += 8 + bytes;
	}
	if (at != file->map.size)
		return error_set(ERR_DATA, "'%s': byte %zu: bytes after the last storage", file->path, at);
	for (int64_t i = 0; i < file->storage_count; i++)
		if (!file->storages[i].data)
			return error_set(ERR_DATA, "'%s': storage '%.100s' is not there", file->path, file->storages[i].key);
	return OK;
}

static enum status old_read(struct torch_file *file)
{
	size_t at = sizeof old_magic;
	struct pickle keys;
	TRY(old_read_head(file, &at));
	TRY(old_pickle(file, &at, &file->pickle));
	TRY(list_storages(file));
	TRY(old_pickle(file, &at, &keys));
	enum status status = old_storages(file, keys.root, at);
	pickle_release(&keys);
	return status;
}

/* ---- The state dict ---- */

static bool has_tensors(const struct pickle_value *dict)
{
	if (!dict || dict->kind != PICKLE_DICT)
		return false;
	for (int64_t i = 1; i < dict->items.count; i += 2)
		if (dict->items.values[i]->kind == PICKLE_TENSOR)
			return true;
	return false;
}

static enum status find_state_dict(struct torch_file *file, const struct pickle_value **out)
{
	static const char *const keys[] = {"model", "state_dict", "model_state_dict"};
	const struct pickle_value *root = file->pickle.root;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		*out = pickle_member(root, keys[i]);
		if (has_tensors(*out))
			return OK;
	}
	*out = root; /* last, since there may be a step or a state of random numbers beside the others */
	if (has_tensors(root))
		return OK;
	return error_hinted(
		error_set(ERR_DATA,
			  "'%s': neither a dictionary of tensors nor a dictionary that has one under \"model\" or \"state_dict\"",
			  file->path),
		"give the file that holds the model's weights; optimizer states and arguments are separate files");
}

/* Names are ASCII in every real file of weights; anything else would only serve to attack the terminal that shows it. */
static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f;
}

/* Adds a note about another member of the file's dict, which may be of interest. */
static enum status add_note(struct torch_file *file, const char *key, const struct pickle_value *value)
{
	static const char *const kinds[] = {
		[PICKLE_TUPLE] = "a tuple", [PICKLE_LIST] = "a list",     [PICKLE_DICT] = "a dictionary",
		[PICKLE_NAME] = "a name",   [PICKLE_STORAGE] = "numbers", [PICKLE_TENSOR] = "a tensor",
	};
	char line[400];
	if (value->kind == PICKLE_INTEGER)
		snprintf(line, sizeof line, "%.100s=%" PRId64, key, value->integer);
	else if (value->kind == PICKLE_FLOAT)
		snprintf(line, sizeof line, "%.100s=%g", key, value->number);
	else if (value->kind == PICKLE_BOOL)
		snprintf(line, sizeof line, "%.100s=%s", key, value->integer ? "true" : "false");
	else if (value->kind == PICKLE_TEXT)
		snprintf(line, sizeof line, "%.100s=%.200s", key, value->text.bytes);
	else if (value->kind == PICKLE_NONE)
		snprintf(line, sizeof line, "%.100s=None", key);
	else
		snprintf(line, sizeof line, "%.100s=%s", key, kinds[value->kind]);
	for (char *p = line; *p; p++)
		*p = is_plain((unsigned char)*p) ? *p : '?';
	return name_list_add(&file->notes, line);
}

static enum status check_name(const struct torch_file *file, const struct pickle_value *name)
{
	const char *text = name->text.bytes;
	bool plain = strlen(text) == name->text.size && name->text.size <= NAME_LIMIT;
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		plain &= is_plain(*p);
	if (!plain)
		return error_set(ERR_DATA, "'%s': a tensor's name is longer than %d bytes or not plain text", file->path,
				 NAME_LIMIT);
	return OK;
}

static enum status add_tensor(struct torch_file *file, const struct pickle_value *name, const struct pickle_tensor *tensor)
{
	TRY(check_name(file, name));
	if (file->count == TENSOR_LIMIT)
		return error_set(ERR_DATA, "'%s': more than %d tensors", file->path, TENSOR_LIMIT);
	const struct torch_storage *storage = find_storage(file, tensor->storage->storage.key);
	BUG_IF(!storage || !storage->data);
	TRY(memory_grow(&file->tensors, &file->capacity, file->count + 1, sizeof *file->tensors, "tensors of a file"));
	struct stored_tensor *out = &file->tensors[file->count++];
	uint64_t element = (uint64_t)dtype_element_bytes(storage->dtype);
	*out = (struct stored_tensor){
		.name = name->text.bytes,
		.dtype = storage->dtype,
		.rank = tensor->rank,
		.count = tensor->count,
		.data = storage->data,
		.path = file->path,
		.offset = storage->offset,
		.checksum = storage->crc32 ? CHECKSUM_CRC32 : CHECKSUM_NONE,
		.checked = storage->data,
		.checked_bytes = (uint64_t)storage->elements * element,
		.expected = storage->crc32,
	};
	if (tensor->count > 0) { /* the offset of an empty tensor has not been verified */
		out->data += (uint64_t)tensor->offset * element;
		out->offset += (uint64_t)tensor->offset * element;
	}
	memcpy(out->shape, tensor->shape, sizeof out->shape);
	memcpy(out->strides, tensor->strides, sizeof out->strides);
	return OK;
}

static enum status read_state_dict(struct torch_file *file)
{
	const struct pickle_value *state = NULL, *root = file->pickle.root;
	TRY(find_state_dict(file, &state));
	for (int64_t i = 0; i < state->items.count; i += 2) {
		const struct pickle_value *name = state->items.values[i], *value = state->items.values[i + 1];
		if (value->kind == PICKLE_TENSOR && name->kind != PICKLE_TEXT)
			return error_set(ERR_DATA, "'%s': a tensor whose name is not text", file->path);
		if (value->kind == PICKLE_TENSOR)
			TRY(add_tensor(file, name, value->tensor));
		else if (name->kind == PICKLE_TEXT)
			TRY(add_note(file, name->text.bytes, value));
	}
	for (int64_t i = 0; root != state && i < root->items.count; i += 2)
		if (root->items.values[i]->kind == PICKLE_TEXT && root->items.values[i + 1] != state)
			TRY(add_note(file, root->items.values[i]->text.bytes, root->items.values[i + 1]));
	return OK;
}

enum status torch_file_open(struct torch_file *out, const char *path)
{
	enum status status;
	*out = (struct torch_file){.path = path};
	TRY(file_map_open(&out->map, path));
	if (zip_is(out->map.data, out->map.size))
		TRY_GOTO(archive_read(out), fail);
	else if (torch_file_is(out->map.data, out->map.size))
		TRY_GOTO(old_read(out), fail);
	else {
		status = error_set(ERR_DATA, "'%s': not a file of torch.save", path);
		goto fail;
	}
	TRY_GOTO(read_state_dict(out), fail);
	return OK;
fail:
	torch_file_close(out);
	return status;
}

void torch_file_close(struct torch_file *file)
{
	free(file->tensors);
	free(file->storages);
	name_list_release(&file->notes);
	pickle_release(&file->pickle);
	zip_close(&file->zip);
	file_map_close(&file->map);
	*file = (struct torch_file){0};
}
