#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/memory.h"
#include "formats/safetensors.h"
#include "train/model_folder.h"

#define CONFIG_FILE "config.json"
#define GOOGLE_CONFIG_FILE "bert_config.json"
#define WEIGHTS_FILE "model.safetensors"
#define CONFIG_LIMIT (1 << 20)

/* --- Configuration --- */

static enum status read_config(const char *path, struct model_config *out)
{
	struct json_document document = {0};
	TRY(json_read(&document, path, CONFIG_LIMIT));
	enum status status = model_config_from_json(out, document.root, path);
	json_release(&document);
	return status;
}

/* Whether `word` is one of the names in "a|b|c". */
static bool is_one_of(const char *word, const char *names)
{
	size_t size = strlen(word);
	for (const char *name = names; name; name = strchr(name, '|')) {
		name += *name == '|';
		if (strcspn(name, "|") == size && memcmp(name, word, size) == 0)
			return true;
	}
	return false;
}

enum status model_folder_config(const char *model, struct model_config *out)
{
	if (is_one_of(model, model_size_names))
		return model_config_named(out, model);
	if (!file_exists(model)) {
		enum status status =
		        error_set(ERR_USAGE, "'%s' is neither a model size nor a file or folder", model);
		error_hint("sizes are %s; else give a config.json or a folder that holds one",
		           model_size_names);
		return status;
	}
	if (!file_is_folder(model))
		return read_config(model, out);
	char path[PATH_BYTES];
	TRY(path_join(path, model, CONFIG_FILE));
	if (!file_exists(path))
		TRY(path_join(path, model, GOOGLE_CONFIG_FILE));
	if (!file_exists(path))
		return error_set(ERR_USAGE, "'%s' is no model folder: it has neither %s nor %s", model,
		                 CONFIG_FILE, GOOGLE_CONFIG_FILE);
	return read_config(path, out);
}

/* --- Loading --- */

void model_folder_report_release(struct model_folder_report *report)
{
	name_list_release(&report->missing);
	name_list_release(&report->unused);
}

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool ends_with(const char *text, const char *suffix)
{
	size_t size = strlen(text), suffix_size = strlen(suffix);
	return size >= suffix_size && strcmp(text + size - suffix_size, suffix) == 0;
}

/* Other spellings of the ends of names: old files' layer norms, and the MLM output layer that is tied to the
 * word embeddings and so is stored once. */
static const struct {
	const char *other, *ours;
} spellings[] = {
        {"LayerNorm.gamma", "LayerNorm.weight"},
        {"LayerNorm.beta", "LayerNorm.bias"},
        {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
        {"cls.predictions.decoder.bias", "cls.predictions.bias"},
};

#define NAME_BYTES 256

/* Our name for the file's tensor `name`. */
static void canonical_name(char out[NAME_BYTES], const char *name)
{
	bool bare = starts_with(name, "embeddings.") || starts_with(name, "encoder.") ||
	            starts_with(name, "pooler.");
	snprintf(out, NAME_BYTES, "%s%.*s", bare ? "bert." : "", NAME_BYTES - 8, name);
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
		if (!ends_with(out, spellings[i].other))
			continue;
		size_t at = strlen(out) - strlen(spellings[i].other);
		snprintf(out + at, NAME_BYTES - at, "%s", spellings[i].ours);
		return;
	}
}

/* Buffers that PyTorch modules carry and that hold no weights. */
static bool is_buffer(const char *name)
{
	return ends_with(name, "embeddings.position_ids") || ends_with(name, "embeddings.token_type_ids");
}

static void print_shape(char *out, size_t size, int rank, const int64_t *shape)
{
	size_t used = (size_t)snprintf(out, size, "(");
	for (int i = 0; i < rank && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%lld", i ? ", " : "",
		                         (long long)shape[i]);
	if (used < size)
		snprintf(out + used, size - used, ")");
}

static enum status check_shape(const struct safetensors_entry *entry, const struct parameter *parameter,
                               const char *path)
{
	int64_t matrix[2] = {parameter->rows, parameter->columns};
	int rank = parameter_rank(parameter);
	const int64_t *shape = matrix + 2 - rank;
	if (entry->rank == rank && memcmp(entry->shape, shape, (size_t)rank * sizeof(*shape)) == 0)
		return OK;
	char theirs[256], ours[256];
	print_shape(theirs, sizeof(theirs), entry->rank, entry->shape);
	print_shape(ours, sizeof(ours), rank, shape);
	enum status status =
	        error_set(ERR_STATE, "'%s': tensor '%.200s' has shape %s where the model's '%s' has %s", path,
	                  entry->name, theirs, parameter->name, ours);
	error_hint("train with the folder's own configuration, and with its vocabulary");
	return status;
}

/* Elements compared at a time. */
#define COMPARE_ELEMENTS 1024

/* A weight that the file has under a second name must be the same weight. */
static enum status check_equal(const struct safetensors_entry *entry, const struct safetensors_entry *first,
                               const float *values, const char *path)
{
	size_t element = entry->bytes / (size_t)(entry->count ? entry->count : 1);
	float block[COMPARE_ELEMENTS];
	for (int64_t done = 0; done < entry->count; done += COMPARE_ELEMENTS) {
		struct safetensors_entry part = *entry;
		part.count = entry->count - done < COMPARE_ELEMENTS ? entry->count - done : COMPARE_ELEMENTS;
		part.data = (const char *)entry->data + (size_t)done * element;
		part.bytes = (size_t)part.count * element;
		TRY(safetensors_to_float(&part, path, block));
		if (memcmp(block, values + done, (size_t)part.count * sizeof(float)) != 0)
			return error_set(ERR_STATE,
			                 "'%s': tensors '%.200s' and '%.200s' are one weight but differ",
			                 path, first->name, entry->name);
	}
	return OK;
}

/* Where one tensor of the file goes. `found` holds the tensor that gave each parameter so far. */
static enum status load_entry(const struct safetensors_entry *entry, const struct model *model,
                              const struct safetensors_entry **found, float *slab, const char *path,
                              struct model_folder_report *report)
{
	char name[NAME_BYTES];
	canonical_name(name, entry->name);
	if (is_buffer(name))
		return OK;
	int64_t number = model_find_parameter(model, name);
	if (number < 0 && starts_with(name, "bert."))
		return error_set(ERR_STATE, "'%s': the model has no place for tensor '%.200s'", path,
		                 entry->name);
	if (number < 0)
		return name_list_add(&report->unused, entry->name);

	const struct parameter *parameter = &model->parameters[number];
	TRY(check_shape(entry, parameter, path));
	if (found[number])
		return check_equal(entry, found[number], slab + parameter->offset, path);
	found[number] = entry;
	report->loaded++;
	return safetensors_to_float(entry, path, slab + parameter->offset);
}

static enum status check_missing(const struct model *model, const struct safetensors_entry *const *found,
                                 enum missing_weights allowed, const char *path,
                                 struct model_folder_report *report)
{
	const char *first = NULL;
	int64_t refused = 0;
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		if (found[i])
			continue;
		TRY(name_list_add(&report->missing, parameter->name));
		bool head = parameter->layer == model->config.num_hidden_layers;
		if (allowed == MISSING_HEADS && head)
			continue;
		first = first ? first : parameter->name;
		refused++;
	}
	if (!first)
		return OK;
	enum status status =
	        error_set(ERR_STATE, "'%s': %lld of the model's %lld weights are missing, the first is '%s'",
	                  path, (long long)refused, (long long)model->parameter_count, first);
	if (model->parameters[model_find_parameter(model, first)].layer == model->config.num_hidden_layers)
		error_hint("an encoder without its pre-training heads can be trained further, but not "
		           "evaluated");
	return status;
}

/* The weights' file of a folder; what else may lie there is named. */
static enum status find_weights(char out[PATH_BYTES], const char *path)
{
	if (!file_is_folder(path)) {
		int length = snprintf(out, PATH_BYTES, "%s", path);
		if (length >= PATH_BYTES)
			return error_set(ERR_USAGE, "'%.200s…': path too long", path);
		return OK;
	}
	TRY(path_join(out, path, WEIGHTS_FILE));
	if (file_exists(out))
		return OK;
	char other[PATH_BYTES];
	TRY(path_join(other, path, "pytorch_model.bin"));
	enum status status = error_set(ERR_USAGE, "'%s': no %s in the folder", path, WEIGHTS_FILE);
	if (file_exists(other))
		error_hint("'%s' can run code when it is read, so bertc does not: load it in transformers "
		           "once and "
		           "save_pretrained() it, which writes %s",
		           other, WEIGHTS_FILE);
	return status;
}

enum status model_folder_load(const char *path, const struct model *model, enum missing_weights missing,
                              float *slab, struct model_folder_report *report)
{
	char file_path[PATH_BYTES];
	TRY(find_weights(file_path, path));
	struct safetensors file;
	TRY(safetensors_open(&file, file_path));
	const struct safetensors_entry **found = NULL;
	struct model_folder_report own = {0};
	enum status status;
	if (!report)
		report = &own;
	TRY_GOTO(memory_new(&found, model->parameter_count, sizeof(*found), "weights of a file"), done);
	for (int64_t i = 0; i < file.count; i++)
		TRY_GOTO(load_entry(&file.entries[i], model, found, slab, file_path, report), done);
	status = check_missing(model, found, missing, file_path, report);
done:
	free(found);
	model_folder_report_release(&own);
	safetensors_close(&file);
	return status;
}

/* --- Saving --- */

enum status folder_files_add(struct folder_files *list, const char *name, int64_t bytes, uint32_t crc)
{
	TRY(memory_grow(&list->files, &list->capacity, list->count + 1, sizeof(*list->files),
	                "list of files"));
	struct folder_file *file = &list->files[list->count++];
	*file = (struct folder_file){.bytes = bytes, .crc32c = crc};
	int length = snprintf(file->name, sizeof(file->name), "%s", name);
	BUG_IF(length >= (int)sizeof(file->name));
	return OK;
}

enum status folder_files_measure(struct folder_files *list, const char *folder, const char *name)
{
	char path[PATH_BYTES];
	TRY(path_join(path, folder, name));
	struct file_map map;
	TRY(file_map_open(&map, path));
	enum status status = folder_files_add(list, name, (int64_t)map.size, crc32c(0, map.data, map.size));
	file_map_close(&map);
	return status;
}

static enum status save_config(const char *folder, const struct model_config *config,
                               struct folder_files *files)
{
	char path[PATH_BYTES];
	TRY(path_join(path, folder, CONFIG_FILE));
	struct buffer text = {0};
	struct json_writer writer = {.out = &text, .indent = 2};
	model_config_to_json(config, &writer);
	buffer_char(&text, '\n');
	enum status status = buffer_status(&text);
	if (status == OK)
		status = file_write(path, text.data, text.size);
	if (status == OK)
		status = folder_files_add(files, CONFIG_FILE, (int64_t)text.size,
		                          crc32c(0, text.data, text.size));
	buffer_release(&text);
	return status;
}

static enum status save_weights(const char *folder, const struct model *model, const float *slab,
                                struct folder_files *files)
{
	char path[PATH_BYTES];
	TRY(path_join(path, folder, WEIGHTS_FILE));
	struct safetensors_entry *entries = NULL;
	TRY(memory_new(&entries, model->parameter_count, sizeof(*entries), "weights of a file"));
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		int rank = parameter_rank(parameter);
		entries[i] = (struct safetensors_entry){
		        .name = parameter->name,
		        .dtype = ST_F32,
		        .rank = rank,
		        .shape = {rank == 2 ? parameter->rows : parameter->columns,
		                  rank == 2 ? parameter->columns : 0},
		        .count = parameter->count,
		        .data = slab + parameter->offset,
		        .bytes = (uint64_t)parameter->count * sizeof(float),
		};
	}
	uint32_t crc = 0;
	int64_t bytes = 0;
	enum status status = safetensors_write(path, entries, model->parameter_count, NULL, &crc, &bytes);
	free(entries);
	TRY(status);
	return folder_files_add(files, WEIGHTS_FILE, bytes, crc);
}

enum status model_folder_save(const char *folder, const struct model *model, const float *slab,
                              const struct vocab *vocab, const struct tokenizer_settings *settings,
                              int64_t max_length, struct folder_files *files)
{
	static const char *const tokenizer_files[] = {"vocab.txt", "tokenizer.json", "tokenizer_config.json",
	                                              "special_tokens_map.json"};
	TRY(save_config(folder, &model->config, files));
	TRY(save_weights(folder, model, slab, files));
	TRY(tokenizer_write_folder(vocab, settings, max_length, folder));
	for (size_t i = 0; i < sizeof(tokenizer_files) / sizeof(tokenizer_files[0]); i++)
		TRY(folder_files_measure(files, folder, tokenizer_files[i]));
	return OK;
}
