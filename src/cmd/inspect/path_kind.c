/* Decides from names and first bytes what kind of thing a path is. */
#include "cmd/inspect/path_kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cmd/inspect/inspect_weights.h"
#include "data/pretraining/instance_files.h"
#include "data/pretraining/static_instances.h"
#include "formats/tfrecord.h"
#include "run/data_folder.h"
#include "weights/adapter.h"
#include "weights/checkpoint_folder.h"
#include "weights/int8_weights.h"
#include "weights/manifest.h"

const char *const path_kind_names[PATH_KINDS] = {
	[PATH_UNKNOWN] = "unknown",
	[PATH_SWEEP] = "sweep",
	[PATH_RUN] = "run folder",
	[PATH_RUN_DATA] = "data folder of a run",
	[PATH_CHECKPOINT] = "checkpoint",
	[PATH_FINISHED_MODEL] = "finished model",
	[PATH_INT8_MODEL] = "int8 model folder",
	[PATH_ADAPTER] = "adapter",
	[PATH_SENTENCE_MODEL] = "sentence-transformers folder",
	[PATH_ONNX_FOLDER] = "ONNX folder",
	[PATH_TRITON_MODEL] = "Triton model",
	[PATH_TRITON_REPOSITORY] = "Triton model repository",
	[PATH_TENSORFLOW_FOLDER] = "TensorFlow folder",
	[PATH_MODEL_FOLDER] = "model folder",
	[PATH_WEIGHTS_FOLDER] = "folder of weights",
	[PATH_PART] = "unfinished output",
	[PATH_ONNX] = "ONNX model",
	[PATH_SHARDS] = "token shards",
	[PATH_STATIC_INSTANCES] = "static instances",
	[PATH_TFRECORD] = "TFRecord",
	[PATH_HDF5] = "instances (HDF5)",
	[PATH_EVENTS] = "TensorBoard events",
	[PATH_WEIGHTS] = "weights",
	[PATH_VECTORS_NPY] = "vectors (NumPy array)",
	[PATH_VECTORS_JSON] = "vectors (JSON lines)",
	[PATH_VECTORS_TSV] = "vectors (TSV)",
	[PATH_METRICS] = "metrics",
	[PATH_SAMPLES] = "samples of a run",
	[PATH_ANSWERS] = "answers (JSON lines)",
	[PATH_VOCABULARY] = "vocabulary",
	[PATH_JSON] = "json",
};

bool folder_has(const char *folder, const char *name)
{
	char path[PATH_BYTES];
	return path_join(path, folder, name) == OK && file_exists(path);
}

/* The last component of a path, without trailing slashes. */
static void name_of(const char *path, char out[256])
{
	size_t end = strlen(path), begin;
	while (end > 1 && path[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && path[begin - 1] != '/';)
		begin--;
	snprintf(out, 256, "%.*s", (int)(end - begin < 255 ? end - begin : 255), path + begin);
}

bool path_is_unfinished(const char *path)
{
	char name[256];
	name_of(path, name);
	return strncmp(name, TEMPORARY_PREFIX, strlen(TEMPORARY_PREFIX)) == 0;
}

bool path_shard_prefix(const char *path, char out[PATH_BYTES])
{
	static const char *const ends[] = {"", ".bin", ".idx", ".json"};
	char index[PATH_BYTES + 8];
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		size_t size = strlen(path), end = strlen(ends[i]);
		if (size <= end || size >= PATH_BYTES || !text_ends_with(path, ends[i]))
			continue;
		snprintf(out, PATH_BYTES, "%.*s", (int)(size - end), path);
		snprintf(index, sizeof index, "%s.idx", out);
		if (file_exists(index))
			return true;
	}
	return false;
}

/* ---- Folders ---- */

/* Does the folder contain Triton models and nothing else? */
static bool is_triton_repository(const char *path)
{
	struct name_list names = {0};
	char model[PATH_BYTES];
	bool all = folder_list(path, &names) == OK && names.count > 0;
	for (int64_t i = 0; i < names.count && all; i++)
		all = path_join(model, path, names.names[i]) == OK && folder_has(model, "config.pbtxt");
	name_list_release(&names);
	return all;
}

enum status triton_graph(const char *path, char out[PATH_BYTES])
{
	struct name_list names = {0};
	char version[32] = "", folder[PATH_BYTES];
	enum status status = folder_list(path, &names);
	for (int64_t i = 0; status == OK && i < names.count; i++) {
		const char *name = names.names[i];
		bool number = *name && strspn(name, "0123456789") == strlen(name) && strlen(name) < sizeof version;
		if (number && atoll(name) >= atoll(version))
			snprintf(version, sizeof version, "%s", name);
	}
	name_list_release(&names);
	TRY(status);
	if (!*version)
		return error_set(ERR_DATA, "'%s': no version folder beside config.pbtxt", path);
	TRY(path_join(folder, path, version));
	TRY(path_join(out, folder, "model.onnx"));
	if (!file_is_folder(out))
		return OK;
	memcpy(folder, out, sizeof folder);
	return path_join(out, folder, "model.onnx");
}

static enum path_kind model_kind(const char *path)
{
	if (folder_has(path, INT8_WEIGHTS_FILE))
		return PATH_INT8_MODEL;
	if (folder_has(path, "modules.json"))
		return PATH_SENTENCE_MODEL;
	if (folder_has(path, "onnx/model.onnx"))
		return PATH_ONNX_FOLDER;
	return PATH_MODEL_FOLDER;
}

static enum path_kind folder_kind(const char *path)
{
	bool configured = folder_has(path, "config.json");
	if (folder_has(path, "sweep.json"))
		return PATH_SWEEP;
	/* Recognized by name, too: a checkpoint that has lost its manifest is a damaged checkpoint, not another folder. */
	if (folder_has(path, "training_state.json") || checkpoint_path_step(path) >= 0)
		return PATH_CHECKPOINT;
	if (folder_has(path, RUN_FOLDER_MARK) || (folder_has(path, "settings.json") && !configured))
		return PATH_RUN;
	if (folder_has(path, DATA_FOLDER_MARK))
		return PATH_RUN_DATA;
	if (folder_has(path, "config.pbtxt"))
		return PATH_TRITON_MODEL;
	if (folder_has(path, ADAPTER_CONFIG_FILE))
		return PATH_ADAPTER;
	if (folder_has(path, MANIFEST_NAME))
		return folder_has(path, INT8_WEIGHTS_FILE)   ? PATH_INT8_MODEL
		       : folder_has(path, "onnx/model.onnx") ? PATH_ONNX_FOLDER
		       : folder_has(path, "modules.json")    ? PATH_SENTENCE_MODEL
							     : PATH_FINISHED_MODEL;
	if (configured)
		return model_kind(path);
	if (folder_has(path, "bert_config.json"))
		return folder_has(path, "bert_model.ckpt.index") ? PATH_TENSORFLOW_FOLDER : PATH_MODEL_FOLDER;
	if (folder_has(path, "metrics.jsonl"))
		return PATH_RUN;
	if (is_weights(path))
		return PATH_WEIGHTS_FOLDER;
	return is_triton_repository(path) ? PATH_TRITON_REPOSITORY : PATH_UNKNOWN;
}

/* ---- Files ---- */

/* Keys of the object in the first line tell what the lines are. */
static const struct {
	const char *key;
	enum path_kind kind;
} line_keys[] = {
	{"embedding", PATH_VECTORS_JSON}, {"linex_index", PATH_VECTORS_JSON},
	{"sentences", PATH_SAMPLES},      {"step", PATH_METRICS},
	{"probabilities", PATH_ANSWERS},  {"pseudo_perplexity", PATH_ANSWERS},
	{"entities", PATH_ANSWERS},       {"score", PATH_ANSWERS},
	{"value", PATH_ANSWERS},
};

/* JSON lines that also contain a text are a corpus or labeled data. */
static enum path_kind line_kind(const struct json *line)
{
	if (line->kind != JSON_OBJECT || json_member(line, "text"))
		return PATH_UNKNOWN;
	for (size_t i = 0; i < sizeof line_keys / sizeof *line_keys; i++)
		if (json_member(line, line_keys[i].key))
			return line_keys[i].kind;
	return PATH_UNKNOWN;
}

static enum path_kind json_lines_kind(const char *path)
{
	struct file_map map;
	struct json_document document;
	enum path_kind kind = PATH_UNKNOWN;
	if (file_map_open(&map, path) != OK)
		return kind;
	const unsigned char *end = map.size ? memchr(map.data, '\n', map.size) : NULL;
	size_t size = end ? (size_t)(end - map.data) : map.size;
	if (size > 0 && json_parse(&document, path, (const char *)map.data, size) == OK) {
		kind = line_kind(document.root);
		json_release(&document);
	} else if (map.size == 0 && text_ends_with(path, "metrics.jsonl")) {
		kind = PATH_METRICS; /* of a run that has not logged anything yet */
	}
	file_map_close(&map);
	return kind;
}

/* Does the file begin with a line of tab-separated numbers? */
static bool begins_with_numbers(const char *path)
{
	struct file_map map;
	if (file_map_open(&map, path) != OK)
		return false;
	size_t numbers = 0, i = 0, size = map.size < 4096 ? map.size : 4096;
	while (i < size && map.data[i] != '\n') {
		size_t first = i;
		while (i < size && strchr("0123456789+-.eE", map.data[i]) && map.data[i])
			i++;
		bool ends = i == size || map.data[i] == '\t' || map.data[i] == '\n';
		if (i == first || !ends) {
			numbers = 0;
			break;
		}
		numbers++;
		i += i < size && map.data[i] == '\t';
	}
	file_map_close(&map);
	return numbers > 1;
}

static bool begins_with(const char *path, const void *bytes, size_t count)
{
	struct file_map map;
	if (file_map_open(&map, path) != OK)
		return false;
	bool same = map.size >= count && memcmp(map.data, bytes, count) == 0;
	file_map_close(&map);
	return same;
}

/* A vocabulary has its special tokens, always including [UNK], on lines of their own. */
static bool has_special_tokens(const char *path)
{
	struct file_map map;
	if (file_map_open(&map, path) != OK)
		return false;
	bool found = map.size > 0 && (memmem(map.data, map.size, "\n[UNK]\n", 7) || memmem(map.data, map.size, "\n[UNK]\r", 7) ||
				      (map.size >= 5 && memcmp(map.data, "[UNK]", 5) == 0));
	file_map_close(&map);
	return found;
}

/* Weights are recognized by name. Other files end in .bin, too, but shards are checked for first. */
static bool is_weights_file(const char *path)
{
	static const char *const ends[] = {".safetensors", ".bin", ".pt", ".pth", ".index", ".index.json"};
	return file_exists(path) && text_has_ending(path, ends, sizeof ends / sizeof *ends);
}

/* Does the file begin with a record in TFRecord framing? */
static bool has_record(const char *path)
{
	struct tfrecord_reader *reader;
	const unsigned char *payload = NULL;
	size_t size;
	if (tfrecord_open(&reader, path) != OK)
		return false;
	bool found = tfrecord_next(reader, &payload, &size) == OK && payload;
	tfrecord_close(reader);
	return found;
}

static enum path_kind file_kind(const char *path)
{
	char name[256], prefix[PATH_BYTES];
	enum instance_format format;
	name_of(path, name);
	if (path_shard_prefix(path, prefix))
		return PATH_SHARDS;
	if (!file_exists(path)) /* the prefix of a TensorFlow checkpoint, or nothing */
		return is_weights(path) ? PATH_WEIGHTS : PATH_UNKNOWN;
	if (text_ends_with(name, ".part"))
		return PATH_PART;
	if (static_file_is(path))
		return PATH_STATIC_INSTANCES;
	if (strstr(name, "tfevents"))
		return PATH_EVENTS;
	/* By name, so that a damaged file is recognized, too. */
	if (strstr(name, ".tfrecord") || strstr(name, ".tf_record"))
		return PATH_TFRECORD;
	if (text_ends_with(name, ".onnx"))
		return PATH_ONNX;
	if (begins_with(path, "\x93NUMPY", 6) || text_ends_with(name, ".npy"))
		return PATH_VECTORS_NPY;
	if (is_weights_file(path))
		return PATH_WEIGHTS;
	if (text_ends_with(name, ".jsonl"))
		return json_lines_kind(path);
	if (text_ends_with(name, ".json"))
		return PATH_JSON;
	if (text_ends_with(name, ".txt") && (strstr(name, "vocab") || has_special_tokens(path)))
		return PATH_VOCABULARY;
	if (text_ends_with(name, ".tsv") && begins_with_numbers(path))
		return PATH_VECTORS_TSV;
	if (instance_file_format(path, &format) != OK)
		return PATH_UNKNOWN;
	return format == INSTANCE_HDF5 ? PATH_HDF5 : has_record(path) ? PATH_TFRECORD : PATH_UNKNOWN;
}

enum path_kind path_kind_find(const char *path)
{
	return file_is_folder(path) ? folder_kind(path) : file_kind(path);
}
