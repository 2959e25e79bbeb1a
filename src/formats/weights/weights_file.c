/* Opens the weights of a model, in one file or several and in any format, as one sorted list of tensors. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "formats/tf_bundle.h"
#include "formats/weights/torch_file.h"
#include "formats/weights_file.h"

#define INDEX_LIMIT ((size_t)64 << 20)
#define PART_LIMIT 1000

/* One file; its tensors borrow `path`. */
struct weights_part {
	char *path;
	enum weights_format format;
	struct safetensors safetensors;
	struct torch_file torch;
	struct tf_bundle bundle;
};

const char *weights_format_name(enum weights_format format)
{
	static const char *const names[] = {
		[WEIGHTS_SAFETENSORS] = "safetensors",
		[WEIGHTS_TORCH] = "PyTorch",
		[WEIGHTS_TENSORFLOW] = "TensorFlow checkpoint",
	};
	return names[format];
}

/* ---- One file ---- */

static enum status add_tensor(struct weights_file *file, const struct stored_tensor *tensor, int64_t part)
{
	TRY(memory_grow(&file->tensors, &file->capacity, file->count + 1, sizeof *file->tensors, "tensors of a model"));
	file->tensors[file->count] = *tensor;
	file->tensors[file->count++].part = part;
	return OK;
}

static enum status add_notes(struct weights_file *file, const struct name_list *notes)
{
	for (int64_t i = 0; i < notes->count; i++)
		TRY(name_list_add(&file->notes, notes->names[i]));
	return OK;
}

static enum status add_safetensors(struct weights_file *file, struct weights_part *part, int64_t number)
{
	TRY(safetensors_open(&part->safetensors, part->path));
	for (int64_t i = 0; i < part->safetensors.count; i++) {
		const struct safetensors_entry *entry = &part->safetensors.entries[i];
		struct stored_tensor tensor = {
			.name = entry->name,
			.dtype = entry->dtype,
			.rank = entry->rank,
			.data = entry->data,
			.path = part->path,
			.offset = (uint64_t)((const unsigned char *)entry->data - part->safetensors.map.data),
		};
		memcpy(tensor.shape, entry->shape, sizeof tensor.shape);
		BUG_IF(!stored_tensor_pack(&tensor));
		TRY(add_tensor(file, &tensor, number));
	}
	return add_notes(file, &part->safetensors.metadata);
}

static enum status add_torch(struct weights_file *file, struct weights_part *part, int64_t number)
{
	TRY(torch_file_open(&part->torch, part->path));
	for (int64_t i = 0; i < part->torch.count; i++)
		TRY(add_tensor(file, &part->torch.tensors[i], number));
	return add_notes(file, &part->torch.notes);
}

static enum status add_bundle(struct weights_file *file, struct weights_part *part, int64_t number)
{
	TRY(tf_bundle_open(&part->bundle, part->path));
	for (int64_t i = 0; i < part->bundle.count; i++)
		TRY(add_tensor(file, &part->bundle.tensors[i], number));
	for (int64_t i = 0; i < part->bundle.others.count; i++) {
		char line[400];
		snprintf(line, sizeof line, "%.300s=no numbers", part->bundle.others.names[i]);
		TRY(name_list_add(&file->notes, line));
	}
	return OK;
}

/* The format of a file, by its first bytes; TensorFlow indexes are recognized by name. */
static enum status file_format(const char *path, enum weights_format *out)
{
	static const char pointer[] = "version https://git-lfs";
	struct file_map map;
	*out = WEIGHTS_TENSORFLOW;
	if (text_ends_with(path, ".index"))
		return OK;
	TRY(file_map_open(&map, path));
	enum status status = OK;
	*out = torch_file_is(map.data, map.size) ? WEIGHTS_TORCH : WEIGHTS_SAFETENSORS;
	if (map.size >= sizeof pointer && memcmp(map.data, pointer, strlen(pointer)) == 0) {
		status = error_set(ERR_DATA, "'%s': a pointer of Git LFS in place of the file", path);
		error_hint("`git lfs pull` in its folder fetches the file");
	} else if (*out == WEIGHTS_SAFETENSORS && !text_ends_with(path, ".safetensors") && (map.size < 9 || map.data[8] != '{')) {
		status = error_set(ERR_DATA, "'%s': neither safetensors nor a file of torch.save", path);
		error_hint("weights are read from safetensors, PyTorch's .bin and .pt, and TensorFlow checkpoints (.index and "
			   ".data)");
	}
	file_map_close(&map);
	return status;
}

static enum status add_part(struct weights_file *file, const char *path)
{
	struct weights_part *part = NULL;
	enum weights_format format;
	int64_t number = file->part_count;
	TRY(file_format(path, &format));
	TRY(memory_grow(&file->parts, &file->part_capacity, number + 1, sizeof *file->parts, "files of weights"));
	TRY(memory_new(&part, 1, sizeof *part, "files of weights"));
	file->parts[file->part_count++] = part;
	part->format = file->format = format;
	part->path = strdup(path);
	if (!part->path)
		return error_set(ERR_RESOURCE, "not enough memory for the name of a file");
	switch (format) {
	case WEIGHTS_SAFETENSORS: return add_safetensors(file, part, number);
	case WEIGHTS_TORCH: return add_torch(file, part, number);
	case WEIGHTS_TENSORFLOW: break;
	}
	return add_bundle(file, part, number);
}

/* ---- Several files: {"weight_map": {tensor: file, …}} ---- */

/* Names in an index are untrusted: they must not lead out of the folder. */
static bool is_plain_name(const char *name)
{
	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		if (*p == '/' || *p == '\\' || *p < 0x20 || *p == 0x7f)
			return false;
	return *name && *name != '.' && strlen(name) < 256;
}

static bool has_part(const struct weights_file *file, const char *path)
{
	for (int64_t i = 0; i < file->part_count; i++)
		if (strcmp(file->parts[i]->path, path) == 0)
			return true;
	return false;
}

static enum status add_named_part(struct weights_file *file, const char *index, const char *folder, const struct json *name)
{
	char path[PATH_BYTES];
	if (name->kind != JSON_STRING || strlen(name->text) != name->text_size || !is_plain_name(name->text))
		return error_set(ERR_DATA, "'%s': \"weight_map\" \"%.200s\": not the name of a file beside it", index, name->key);
	TRY(path_join(path, folder, name->text));
	if (has_part(file, path))
		return OK;
	if (!file_exists(path))
		return error_set(ERR_USAGE, "'%s': this file, which '%s' names, is missing", path, index);
	if (file->part_count == PART_LIMIT || text_ends_with(path, ".index"))
		return error_set(ERR_DATA, "'%s': more than %d files, or an index of an index", index, PART_LIMIT);
	return add_part(file, path);
}

static int compare_tensors(const void *a, const void *b)
{
	return strcmp(((const struct stored_tensor *)a)->name, ((const struct stored_tensor *)b)->name);
}

/* Sorts tensors by name and rejects duplicate names. */
static enum status sort_tensors(struct weights_file *file)
{
	if (file->count == 0)
		return OK;
	qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, compare_tensors);
	for (int64_t i = 1; i < file->count; i++)
		if (strcmp(file->tensors[i - 1].name, file->tensors[i].name) == 0)
			return error_set(ERR_DATA, "tensor '%.200s' is in '%s' and again in '%s'", file->tensors[i].name,
					 file->tensors[i - 1].path, file->tensors[i].path);
	return OK;
}

/* ---- Weights in int8 ---- */

#define SCALE_SUFFIX "_scale"

static enum status bad_scale(const struct stored_tensor *tensor, const char *what)
{
	return error_set(ERR_DATA, "'%s': tensor '%.200s' is in int8, but %s", tensor->path, tensor->name, what);
}

/* Attaches a matrix's scales: the tensor NAME_scale, of shape (rows) or (rows, 1). */
static enum status take_scales(struct weights_file *file, struct stored_tensor *tensor)
{
	char name[512];
	if (snprintf(name, sizeof name, "%s" SCALE_SUFFIX, tensor->name) >= (int)sizeof name)
		return OK;
	const struct stored_tensor *scales = weights_file_tensor(file, name);
	if (!scales)
		return OK;
	bool column = scales->rank == 1 || (scales->rank == 2 && scales->shape[1] == 1);
	if (scales->dtype != ST_F32 || !column || scales->shape[0] != tensor->shape[0] || !stored_tensor_is_packed(scales) ||
	    !stored_tensor_is_packed(tensor))
		return bad_scale(tensor, "its scales are not one F32 per row");
	for (int64_t i = 0; i < scales->count; i++) {
		float scale;
		memcpy(&scale, scales->data + i * (int64_t)sizeof scale, sizeof scale);
		if (!(scale >= 0 && scale <= FLT_MAX))
			return bad_scale(tensor, "a scale of it is negative or not finite");
	}
	tensor->row_scales = scales->data;
	return OK;
}

/* Whether a tensor is the scales of one of the first `count` tensors: they come after their matrix, perhaps with others in
 * between. */
static bool is_scales(const struct weights_file *file, int64_t count, const struct stored_tensor *tensor)
{
	char name[512];
	size_t size = strlen(tensor->name);
	if (size >= sizeof name || !text_ends_with(tensor->name, SCALE_SUFFIX))
		return false;
	snprintf(name, sizeof name, "%.*s", (int)(size - strlen(SCALE_SUFFIX)), tensor->name);
	struct stored_tensor key = {.name = name};
	const struct stored_tensor *matrix = bsearch(&key, file->tensors, (size_t)count, sizeof key, compare_tensors);
	return matrix && matrix->row_scales == tensor->data;
}

/* Attaches the scales of int8 matrices to them and removes them from the list of tensors. */
static enum status pair_scales(struct weights_file *file)
{
	int64_t kept = 0;
	bool any = false;
	for (int64_t i = 0; i < file->count; i++) {
		if (file->tensors[i].dtype == ST_I8 && file->tensors[i].rank == 2)
			TRY(take_scales(file, &file->tensors[i]));
		any |= file->tensors[i].row_scales != NULL;
	}
	for (int64_t i = 0; any && i < file->count; i++)
		if (!is_scales(file, kept, &file->tensors[i]))
			file->tensors[kept++] = file->tensors[i];
	file->count = any ? kept : file->count;
	return OK;
}

static enum status check_map(const struct weights_file *file, const char *index, const struct json *map)
{
	for (const struct json *name = map->first_child; name; name = name->next) {
		const struct stored_tensor *tensor = weights_file_tensor(file, name->key);
		if (!tensor || !text_ends_with(tensor->path, name->text))
			return error_set(ERR_DATA, "'%s': tensor '%.200s' is not in '%s'", index, name->key, name->text);
	}
	return OK;
}

static enum status open_index(struct weights_file *file, const char *path)
{
	struct json_document document;
	char folder[PATH_BYTES];
	enum status status;
	path_folder(folder, path);
	TRY(json_read(&document, path, INDEX_LIMIT));
	const struct json *map = json_member(document.root, "weight_map");
	if (!map || map->kind != JSON_OBJECT || map->child_count == 0) {
		status = error_set(ERR_DATA, "'%s': no \"weight_map\"", path);
		goto done;
	}
	for (const struct json *name = map->first_child; name; name = name->next)
		TRY_GOTO(add_named_part(file, path, folder, name), done);
	TRY_GOTO(sort_tensors(file), done);
	status = check_map(file, path, map);
done:
	json_release(&document);
	return status;
}

enum status weights_file_open(struct weights_file *out, const char *path)
{
	char found[PATH_BYTES];
	enum status status;
	*out = (struct weights_file){0};
	TRY(weights_file_find(path, found));
	if (text_ends_with(found, ".index.json"))
		TRY_GOTO(open_index(out, found), fail);
	else
		TRY_GOTO(add_part(out, found), fail);
	TRY_GOTO(sort_tensors(out), fail);
	TRY_GOTO(pair_scales(out), fail);
	return OK;
fail:
	weights_file_close(out);
	return status;
}

void weights_file_close(struct weights_file *file)
{
	for (int64_t i = 0; i < file->part_count; i++) {
		struct weights_part *part = file->parts[i];
		safetensors_close(&part->safetensors);
		torch_file_close(&part->torch);
		tf_bundle_close(&part->bundle);
		free(part->path);
		free(part);
	}
	free(file->parts);
	free(file->tensors);
	name_list_release(&file->notes);
	*file = (struct weights_file){0};
}

const struct stored_tensor *weights_file_tensor(const struct weights_file *file, const char *name)
{
	struct stored_tensor key = {.name = name};
	return file->count ? bsearch(&key, file->tensors, (size_t)file->count, sizeof key, compare_tensors) : NULL;
}

const struct file_map *weights_file_map(const struct weights_file *file)
{
	bool one = file->part_count == 1 && file->parts[0]->format == WEIGHTS_SAFETENSORS;
	return one ? &file->parts[0]->safetensors.map : NULL;
}
