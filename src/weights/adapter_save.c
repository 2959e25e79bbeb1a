/* Names modules as peft does, and writes its two files. */
#include "weights/adapter_save.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "model/low_rank.h"
#include "weights/adapter.h"
#include "weights/weight_names.h"

/* The name of the module that has a parameter, in transformers' class. */
static void module_of(const struct model_folder_content *content, const struct parameter *parameter, char out[TENSOR_NAME_BYTES])
{
	model_folder_tensor_name(content->model, parameter, content->task, out);
	char *dot = strrchr(out, '.');
	if (dot)
		*dot = '\0';
}

/* ---- Targets ---- */

/* Whether a name ends with these parts. */
static bool names_module(const char *name, const char *target, size_t size)
{
	size_t length = strlen(name);
	return length >= size && strncmp(name + length - size, target, size) == 0 &&
	       (length == size || name[length - size - 1] == '.');
}

/* Collects the numbers of matrices of the first layer that a target means, and their names. */
static uint32_t find_target(const struct model *model, const char *target, size_t size, struct buffer *names)
{
	const struct model_folder_content content = {.model = model};
	uint32_t found = 0;
	int matrix = 0;
	for (int64_t i = 0; i < model->parameter_count; i++) {
		char name[TENSOR_NAME_BYTES];
		if (model->parameters[i].layer != 0 || parameter_rank(&model->parameters[i]) == 1)
			continue;
		module_of(&content, &model->parameters[i], name);
		const char *own = strstr(name, ".0.");
		buffer_format(names, "%s%s", names->size > 0 ? ", " : "", own ? own + 3 : name);
		if (names_module(name, target, size))
			found |= 1U << matrix;
		matrix++;
	}
	return found;
}

enum status adapter_targets(const char *list, const struct model_config *config, uint32_t *out)
{
	static const char usual[] = "query,value,q_lin,v_lin,Wqkv";
	struct backend names_only = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32};
	struct model *model;
	enum status status = OK;
	*out = 0;
	TRY(model_create(&model, &names_only, config, &model_heads_encoder));
	for (const char *at = list ? list : usual; *at && status == OK;) {
		struct buffer names = {0};
		size_t size = strcspn(at, ",");
		bool all = size == strlen("all-linear") && strncmp(at, "all-linear", size) == 0;
		uint32_t found = all ? UINT32_MAX : find_target(model, at, size, &names);
		if (found == 0 && list)
			status = error_hinted(
				error_set(ERR_USAGE, "--lora_targets %s: the model has no layer '%.*s'", list, (int)size, at),
				"its layers are: %s, or all-linear", buffer_string(&names));
		if (list && found && (*out | found) == *out)
			log_warning("--lora_targets %s: '%.*s' adds no layer to those named before it", list, (int)size, at);
		*out |= found;
		at += size + (at[size] == ',');
		buffer_release(&names);
	}
	model_free(model);
	return status;
}

/* ---- Writing ---- */

/* The module that peft is to save as a whole for a parameter of the heads: the part of the class that it belongs to. */
static void head_module(const struct model_folder_content *content, const struct parameter *parameter,
			char out[TENSOR_NAME_BYTES])
{
	module_of(content, parameter, out);
	const char *pooler = strstr(out, "pooler");
	if (pooler)
		memmove(out, pooler, strlen(pooler) + 1);
	out[strcspn(out, ".")] = '\0';
}

static void put_modules(const struct model_folder_content *content, struct json_writer *writer)
{
	const struct model *model = content->model;
	char name[TENSOR_NAME_BYTES], last[TENSOR_NAME_BYTES] = "";
	json_open(writer, "target_modules", '[');
	for (int64_t i = 0; i < model->adapted_count; i++) {
		module_of(content, &model->parameters[model->adapted[i].base], name);
		json_put_string(writer, NULL, name);
	}
	json_close(writer);
	json_open(writer, "modules_to_save", '[');
	for (int64_t i = 0; i < model->parameter_count; i++) {
		if (model->parameters[i].layer != model->config.num_hidden_layers || model->parameters[i].training)
			continue;
		head_module(content, &model->parameters[i], name);
		if (strcmp(name, last) != 0)
			json_put_string(writer, NULL, name);
		memcpy(last, name, sizeof last);
	}
	json_close(writer);
}

static enum status save_adapter_config(const char *folder, const struct model_folder_content *content, struct folder_files *files)
{
	const struct low_rank *low_rank = &content->model->heads.low_rank;
	const char *task_type = content->task ? adapter_task_type(content->task->architecture) : NULL;
	struct buffer text = {0};
	struct json_writer writer = {.out = &text, .indent = 2};
	char path[PATH_BYTES];
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "peft_type", "LORA");
	if (task_type)
		json_put_string(&writer, "task_type", task_type);
	else
		json_put_null(&writer, "task_type");
	json_put_string(&writer, "base_model_name_or_path", content->base->path);
	json_put_integer(&writer, "r", low_rank->rank);
	json_put_double(&writer, "lora_alpha", low_rank->alpha);
	json_put_double(&writer, "lora_dropout", 0);
	json_put_bool(&writer, "use_rslora", low_rank->rank_stabilized);
	json_put_string(&writer, "bias", "none");
	json_put_bool(&writer, "inference_mode", true);
	put_modules(content, &writer);
	json_close(&writer);
	buffer_char(&text, '\n');
	enum status status = buffer_status(&text);
	if (status == OK)
		status = path_join(path, folder, ADAPTER_CONFIG_FILE);
	if (status == OK)
		status = file_write(path, text.data, text.size);
	if (status == OK)
		status = folder_files_add(files, ADAPTER_CONFIG_FILE, (int64_t)text.size, crc32c(0, text.data, text.size));
	buffer_release(&text);
	return status;
}

static enum status save_adapter_weights(const char *folder, const struct model_folder_content *content,
					struct folder_files *files)
{
	const struct model *model = content->model;
	struct safetensors_entry *entries = NULL;
	struct name_list notes = {0};
	char(*names)[TENSOR_NAME_BYTES + 24] = NULL, name[TENSOR_NAME_BYTES], path[PATH_BYTES], note[64];
	int64_t count = 0, bytes = 0;
	uint32_t crc = 0;
	enum status status;
	snprintf(note, sizeof note, ADAPTER_BASE_HASH "%016" PRIx64, content->base->hash);
	TRY_GOTO(name_list_add(&notes, note), done);
	TRY_GOTO(memory_new(&entries, model->parameter_count, sizeof *entries, "weights of a file"), done);
	TRY_GOTO(memory_new(&names, model->parameter_count, sizeof *names, "weights of a file"), done);
	for (int64_t i = model->adapted[0].a; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		if (parameter->training && !content->training)
			continue;
		model_folder_tensor_name(model, parameter, content->task, name);
		snprintf(names[count], sizeof *names, ADAPTER_PREFIX "%s", name);
		entries[count] = model_folder_entry(parameter, content->slab, names[count]);
		count++;
	}
	TRY_GOTO(path_join(path, folder, ADAPTER_WEIGHTS_FILE), done);
	TRY_GOTO(safetensors_write(path, entries, count, &notes, &crc, &bytes), done);
	status = folder_files_add(files, ADAPTER_WEIGHTS_FILE, bytes, crc);
done:
	name_list_release(&notes);
	free(entries);
	free(names);
	return status;
}

enum status adapter_save(const char *folder, const struct model_folder_content *content, struct folder_files *files)
{
	TRY(save_adapter_config(folder, content, files));
	return save_adapter_weights(folder, content, files);
}
