/* Finding the weights of a folder or prefix. */
#include <stdio.h>
#include <string.h>
#include "base/text.h"
#include "formats/weights_file.h"

/* Names that programs give to the weights in a folder; the first one that exists is used. */
static const char *const usual_names[] = {
	"model.safetensors",     "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json",
	"bert_model.ckpt.index", "adapter_model.safetensors",
};

/* Suffixes of weights with other names, and files with such suffixes that are not weights. */
static const char *const suffixes[] = {".safetensors", ".index", ".bin", ".pt", ".pth"};
static const char *const no_weights[] = {"optimizer.pt",          "scheduler.pt",       "scaler.pt",
					 "training_args.bin",     "optimizer.bin",      "scheduler.bin",
					 "optimizer.safetensors", "pytorch_adapter.bin"};

/* How the names of what else may lie in the place of weights end, and what to do about it. */
static const struct {
	const char *ending, *what, *advice;
} others[] = {
	{"onnx", "an ONNX graph", "bertc writes ONNX, but does not read it: give the model folder that it was exported from"},
	{"config.pbtxt", "a model for Triton",
	 "bertc writes it, but does not read it: give the model folder that it was exported from"},
	{"openvino_model.xml", "an OpenVINO graph", "bertc does not read it: give the model folder that it was exported from"},
	{".gguf", "a file for llama.cpp", "bertc does not read it: give the model folder that it was converted from"},
	{"pytorch_adapter.bin", "an adapter of the library \"adapters\"",
	 "bertc reads LoRA adapters of peft; merge this one in Python (merge_adapter) and save the model as a whole"},
	{"tf_model.h5", "TensorFlow's HDF5", "load it in transformers once (from_tf=True), and save_pretrained() it"},
	{"flax_model.msgpack", "Flax's weights", "load it in transformers once (from_flax=True), and save_pretrained() it"},
	{"adapter_config.json", "the configuration of an adapter", "adapter_model.safetensors, its weights, belongs beside it"},
};

#define COUNT(array) (sizeof array / sizeof((array)[0]))
#define CHECKPOINT_FILE_LIMIT ((size_t)1 << 20)

static bool may_be_weights(const char *name, const char *suffix)
{
	if (!text_ends_with(name, suffix) || name[0] == '.')
		return false;
	for (size_t i = 0; i < COUNT(no_weights); i++)
		if (strcmp(name, no_weights[i]) == 0)
			return false;
	return strncmp(name, "rng_state", 9) != 0;
}

/* TensorFlow's text file `checkpoint`: model_checkpoint_path: "model.ckpt-1000". Only the last component of the path is used,
 * since it may be from another machine. */
static enum status read_checkpoint_file(const char *folder, char out[PATH_BYTES])
{
	static const char key[] = "model_checkpoint_path: \"";
	char path[PATH_BYTES], name[512];
	struct buffer text = {0};
	out[0] = 0;
	TRY(path_join(path, folder, "checkpoint"));
	if (!file_exists(path) || file_is_folder(path))
		return OK;
	TRY(file_read(path, CHECKPOINT_FILE_LIMIT, &text));
	const char *at = strncmp(buffer_string(&text), key, strlen(key)) == 0 ? buffer_string(&text) + strlen(key) : NULL;
	size_t size = at ? strcspn(at, "\"\n") : 0;
	enum status status = OK;
	if (size > 0 && size < sizeof name - 8) {
		snprintf(name, sizeof name, "%.*s", (int)size, at);
		const char *last = path_name(name);
		snprintf(path, sizeof path, "%s.index", last);
		if (strcmp(last, "..") != 0)
			status = path_join(out, folder, path);
		if (status == OK && !file_exists(out))
			out[0] = 0;
	}
	buffer_release(&text);
	return status;
}

enum status weights_file_other(const char *path)
{
	struct name_list names = {0};
	enum status status = file_is_folder(path) ? folder_list(path, &names) : name_list_add(&names, path);
	for (size_t k = 0; k < COUNT(others) && status == OK; k++)
		for (int64_t i = 0; i < names.count && status == OK; i++)
			if (text_ends_with(names.names[i], others[k].ending))
				status = error_hinted(error_set(ERR_USAGE, "'%s': no weights, but %s ('%s')", path,
								others[k].what, names.names[i]),
						      "%s", others[k].advice);
	name_list_release(&names);
	return status;
}

/* The only file of one of the kinds, in the order of `suffixes`. */
static enum status find_only(const char *folder, char out[PATH_BYTES])
{
	struct name_list names = {0};
	enum status status;
	TRY_GOTO(folder_list(folder, &names), done);
	for (size_t k = 0; k < COUNT(suffixes); k++) {
		const char *found = NULL, *other = NULL;
		for (int64_t i = 0; i < names.count; i++)
			if (may_be_weights(names.names[i], suffixes[k])) {
				other = found;
				found = names.names[i];
			}
		if (other) {
			status = error_set(ERR_USAGE, "'%s' has several files of weights: '%s', '%s'", folder, other, found);
			error_hint("give the one you mean, not the folder");
			goto done;
		}
		if (found) {
			status = path_join(out, folder, found);
			goto done;
		}
	}
	TRY_GOTO(weights_file_other(folder), done);
	status = error_hinted(
		error_set(ERR_USAGE, "'%s': no weights in the folder", folder),
		"weights are model.safetensors, pytorch_model.bin, a .pt file, or a TensorFlow checkpoint (.index and .data)");
done:
	name_list_release(&names);
	return status;
}

static enum status find_in_folder(const char *folder, char out[PATH_BYTES])
{
	for (size_t i = 0; i < COUNT(usual_names); i++) {
		TRY(path_join(out, folder, usual_names[i]));
		if (file_exists(out))
			return OK;
	}
	TRY(read_checkpoint_file(folder, out));
	return out[0] ? OK : find_only(folder, out);
}

/* The .index of a TensorFlow checkpoint, from its prefix or another of its files. */
static void index_of(const char *path, char out[PATH_BYTES])
{
	const char *data = strstr(path_name(path), ".data-"), *end = path + strlen(path);
	for (const char *next; data && (next = strstr(data + 1, ".data-"));)
		data = next;
	if (data)
		end = data;
	else if (text_ends_with(path, ".meta"))
		end -= strlen(".meta");
	if (snprintf(out, PATH_BYTES, "%.*s.index", (int)(end - path), path) >= PATH_BYTES)
		out[0] = 0;
}

enum status weights_file_find(const char *path, char out[PATH_BYTES])
{
	if (file_is_folder(path))
		return find_in_folder(path, out);
	index_of(path, out);
	if (out[0] && file_exists(out))
		return OK;
	if (!file_exists(path))
		return error_hinted(
			error_set(ERR_USAGE, "'%s': no such file or folder", path),
			"give a model folder, a file of weights, or the prefix of a TensorFlow checkpoint%s",
			strchr(path, '.') ? "" : "; `bertc download --list` shows the published models that bertc can fetch");
	TRY(weights_file_other(path));
	if (snprintf(out, PATH_BYTES, "%s", path) >= PATH_BYTES)
		return error_set(ERR_USAGE, "'%.200s…': path too long", path);
	return OK;
}
