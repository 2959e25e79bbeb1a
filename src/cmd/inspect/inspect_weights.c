/* `bertc inspect` for files of weights: the tensors with their shapes and statistics, and the file's own notes. */
#include "cmd/inspect/inspect_weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "formats/tf_bundle.h"
#include "formats/weights_file.h"
#include "weights/weight_names.h"

/* Elements read at a time. */
#define BLOCK_ELEMENTS 4096
/* Maximum number of metadata entries shown. */
#define NOTES_SHOWN 200

bool is_weights(const char *path)
{
	static const char *const ends[] = {".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".pt", ".pth",
					   ".index"};
	char found[PATH_BYTES];
	if (weights_file_find(path, found) != OK)
		return false;
	return text_has_ending(found, ends, sizeof ends / sizeof *ends);
}

/* Writes the smallest, largest, mean, and root-mean-square value of a floating-point tensor. */
static enum status put_range(const struct stored_tensor *tensor, struct json_writer *writer)
{
	float values[BLOCK_ELEMENTS], low = 0, high = 0;
	double sum = 0, squares = 0;
	if (!stored_tensor_is_real(tensor) || tensor->count == 0)
		return OK;
	for (int64_t done = 0; done < tensor->count; done += BLOCK_ELEMENTS) {
		int64_t left = tensor->count - done, count = left < BLOCK_ELEMENTS ? left : BLOCK_ELEMENTS;
		TRY(stored_tensor_read(tensor, done, count, values));
		low = done ? low : values[0];
		high = done ? high : values[0];
		for (int64_t i = 0; i < count; i++) {
			low = values[i] < low ? values[i] : low;
			high = values[i] > high ? values[i] : high;
			sum += values[i];
			squares += (double)values[i] * values[i];
		}
	}
	json_put_float(writer, "min", low);
	json_put_float(writer, "max", high);
	json_put_float(writer, "mean", (float)(sum / (double)tensor->count));
	json_put_float(writer, "rms", (float)__builtin_sqrt(squares / (double)tensor->count));
	return OK;
}

static enum status put_tensor(const struct stored_tensor *tensor, struct json_writer *writer)
{
	char shape[SHAPE_TEXT_BYTES] = "";
	for (int k = 0, used = 0; k < tensor->rank && used < 200; k++)
		used += snprintf(shape + used, sizeof shape - (size_t)used, "%s%" PRId64, k ? "x" : "", tensor->shape[k]);
	struct tensor_name name = tensor_name_from(tensor->name);
	json_open(writer, tensor->name, '{');
	json_put_string(writer, "type", safetensors_dtype_name(tensor->dtype));
	json_put_string(writer, "shape", shape);
	if (name.meaning == MEANS_PARAMETER && strcmp(name.name, tensor->name) != 0)
		json_put_string(writer, "read_as", name.name);
	enum status status = OK;
	if (tensor->data) {
		status = stored_tensor_verify(tensor);
		if (status == OK)
			status = put_range(tensor, writer);
	}
	json_close(writer);
	return status;
}

enum status inspect_tensors(const struct stored_tensor *tensors, int64_t count, bool all, struct json_writer *writer)
{
	int64_t elements = 0;
	enum status status = OK;
	for (int64_t i = 0; i < count; i++)
		elements += tensors[i].count;
	json_put_integer(writer, "tensor_count", count);
	json_put_integer(writer, "elements", elements);
	if (!all)
		return OK;
	json_open(writer, "tensors", '{');
	for (int64_t i = 0; i < count && status == OK; i++)
		status = put_tensor(&tensors[i], writer);
	json_close(writer);
	return status;
}

static void put_notes(const struct name_list *notes, struct json_writer *writer)
{
	if (notes->count == 0)
		return;
	json_open(writer, "metadata", '{');
	for (int64_t i = 0; i < notes->count && i < NOTES_SHOWN; i++) {
		const char *note = notes->names[i], *equals = strchr(note, '=');
		size_t size = equals ? (size_t)(equals - note) + 1 : strlen(note);
		char key[256];
		bool again = false;
		for (int64_t k = 0; k < i; k++)
			again |= strncmp(notes->names[k], note, size) == 0;
		if (again || !equals || size >= sizeof key)
			continue;
		snprintf(key, sizeof key, "%.*s", (int)size - 1, note);
		json_put_string(writer, key, equals + 1);
	}
	json_close(writer);
}

/* Shows a TensorFlow checkpoint of which only the index exists. */
static enum status inspect_index(const char *path, bool tensors, struct json_writer *writer)
{
	struct file_map map;
	struct tf_bundle bundle;
	TRY(file_map_open(&map, path));
	enum status status = tf_bundle_parse(&bundle, path, map.data, map.size);
	file_map_close(&map);
	TRY(status);
	json_put_string(writer, "kind", "index of a TensorFlow checkpoint whose data files are missing");
	status = inspect_tensors(bundle.tensors, bundle.count, tensors, writer);
	tf_bundle_close(&bundle);
	return status;
}

enum status inspect_weights(const char *path, bool tensors, struct json_writer *writer)
{
	struct weights_file file;
	char found[PATH_BYTES];
	TRY(weights_file_find(path, found));
	enum status status = weights_file_open(&file, found);
	size_t size = strlen(found);
	if (status == ERR_USAGE && size > 6 && strcmp(found + size - 6, ".index") == 0)
		return inspect_index(found, tensors, writer);
	TRY(status);
	bool safetensors = file.format == WEIGHTS_SAFETENSORS;
	json_put_string(writer, "kind", safetensors ? "safetensors" : weights_format_name(file.format));
	if (strcmp(found, path) != 0)
		json_put_string(writer, "file", found);
	if (file.part_count > 1)
		json_put_integer(writer, "files", file.part_count);
	put_notes(&file.notes, writer);
	status = inspect_tensors(file.tensors, file.count, tensors, writer);
	weights_file_close(&file);
	return status;
}
