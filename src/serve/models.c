/* Opens the models of a service, and describes them to clients. */
#include "serve/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/memory.h"
#include "formats/hub.h"
#include "model/pooling.h"

bool model_can(const struct served_model *model, enum api_task task)
{
	return model->tasks & 1u << task;
}

bool model_is_reranker(const struct served_model *model)
{
	return model->text.has_task && model->text.task.state.task->view == VIEW_RANKINGS;
}

/* ---- Opening ---- */

const char *model_folder_of(const char *given)
{
	const char *equals = strchr(given, '=');
	return equals && !file_exists(given) ? equals + 1 : given;
}

static enum status split_name(struct served_model *model, const char *given)
{
	model->folder = model_folder_of(given);
	if (model->folder > given) {
		size_t size = (size_t)(model->folder - given) - 1;
		if (size == 0 || size >= sizeof model->name || !*model->folder)
			return error_set(ERR_USAGE, "--model %.200s: expected NAME=FOLDER", given);
		memcpy(model->name, given, size);
		return OK;
	}
	if (hub_name_of(given, model->name, sizeof model->name)) /* whose folder is called by its commit */
		return OK;
	/* runs/mine/final is called mine. */
	size_t end = strlen(given);
	for (int i = 0; i < 2; i++) {
		while (end > 1 && given[end - 1] == '/')
			end--;
		size_t begin = end;
		while (begin > 0 && given[begin - 1] != '/')
			begin--;
		snprintf(model->name, sizeof model->name, "%.*s", (int)(end - begin), given + begin);
		if (strcmp(model->name, "final") != 0 || begin == 0)
			break;
		end = begin;
	}
	return OK;
}

static enum status check_names(const struct models *models)
{
	for (int i = 0; i < models->count; i++) {
		const struct served_model *model = &models->models[i];
		if (!model->name[0] || strcmp(model->name, ".") == 0 || strcmp(model->name, "..") == 0)
			return error_hinted(error_set(ERR_USAGE, "--model %.200s: the folder has no name", model->folder),
					    "give the model one: --model NAME=%.200s", model->folder);
		for (int k = 0; k < i; k++) {
			if (strcmp(models->models[k].name, model->name) != 0)
				continue;
			return error_hinted(error_set(ERR_USAGE, "two models are called '%s': '%.200s' and '%.200s'", model->name,
						      models->models[k].folder, model->folder),
					    "give one of them another name: --model NAME=%.200s", model->folder);
		}
	}
	return OK;
}

/* Computes the checksum of the file of weights. Weights in several files (an index and its parts, TensorFlow's) have none. */
static enum status read_checksum(struct served_model *model)
{
	int64_t bytes;
	const char *weights = model->text.source.weights;
	if (!file_exists(weights) || file_is_folder(weights) || text_ends_with(weights, ".json"))
		return OK;
	TRY(file_checksum(weights, &bytes, &model->checksum));
	model->has_checksum = true;
	return model_files_check(&model->text.files, model->folder);
}

/* The tasks that clients may ask for. */
static unsigned find_tasks(const struct text_model *text)
{
	unsigned tasks = 1u << API_TOKENIZE | 1u << API_DECODE;
	if (text->makes_vectors)
		tasks |= 1u << API_EMBED | 1u << API_SIMILARITY | 1u << API_EMBED_ALL;
	if (text->weighs_words)
		tasks |= 1u << API_EMBED_SPARSE;
	if (text->fills_blanks)
		tasks |= 1u << API_FILL;
	if (!text->has_task)
		return tasks;
	const struct head *head = &text->task.heads.head[0];
	tasks |= 1u << (head->loss == LOSS_SEGMENT ? API_ANSWER : API_PREDICT);
	if (head->input == INPUT_FIRST_ROW && head->outputs == 1)
		tasks |= 1u << API_RERANK;
	return tasks;
}

/* The weights of the base are in memory once for it and all its adapters, whichever of them is opened first. */
static enum status open_model(struct served_model *model, const struct models *models, const struct models_settings *settings,
			      const struct text_model **lenders)
{
	const struct text_model_settings with = {.device = settings->device,
						 .lenders = lenders,
						 .lender_count = model - models->models,
						 .batch_tokens = settings->max_batch_tokens,
						 .max_seq_length = settings->max_seq_length,
						 .min_score = settings->min_score,
						 .tool = "the service"};
	TRY(text_model_open(&model->text, model->folder, models->pool, &with));
	model->tasks = find_tasks(&model->text);
	return read_checksum(model);
}

/* Other tasks follow from these, or any model can do them. */
static bool is_made_for(const struct served_model *model, enum api_task task)
{
	return (task <= API_ANSWER || task == API_EMBED_SPARSE) && model_can(model, task);
}

static void say_what_is_served(const struct served_model *model)
{
	struct buffer tasks = {0};
	for (enum api_task t = API_EMBED; t <= API_EMBED_SPARSE; t++)
		if (is_made_for(model, t))
			buffer_format(&tasks, "%s%s", tasks.size > 0 ? ", " : "", api_task_name(t));
	log_note("model '%s' from '%s': %s; texts of up to %d tokens; %s", model->name, model->folder, buffer_string(&tasks),
		 model->text.longest, model->text.session.backend->description);
	buffer_release(&tasks);
}

enum status models_open(struct models *out, const char *const *folders, int64_t count, const struct models_settings *settings)
{
	*out = (struct models){0};
	TRY(memory_new(&out->models, count, sizeof *out->models, "models"));
	for (out->count = 0; out->count < count; out->count++)
		TRY(split_name(&out->models[out->count], folders[out->count]));
	TRY(check_names(out));
	TRY(pool_create(&out->pool, (int)settings->device.threads));
	const struct text_model **lenders;
	enum status status = OK;
	TRY(memory_new(&lenders, count, sizeof *lenders, "models"));
	for (int i = 0; i < out->count && status == OK; i++) {
		lenders[i] = &out->models[i].text;
		status = open_model(&out->models[i], out, settings, lenders);
		if (status == OK)
			say_what_is_served(&out->models[i]);
	}
	free(lenders);
	return status;
}

void models_close(struct models *models)
{
	for (int i = 0; i < models->count; i++)
		text_model_close(&models->models[i].text);
	free(models->models);
	if (models->pool)
		pool_free(models->pool);
	free(models->texts);
	encoder_answers_release(&models->answers);
	*models = (struct models){0};
}

/* ---- Describing a model ---- */

static void put_labels(const struct served_model *model, struct json_writer *writer)
{
	char room[24], number[24];
	int32_t count = model->text.task.heads.head[0].outputs;
	json_open(writer, "id2label", '{');
	for (int32_t i = 0; i < count; i++) {
		snprintf(number, sizeof number, "%d", i);
		json_put_string(writer, number, text_model_label(&model->text, i, room));
	}
	json_close(writer);
	json_open(writer, "label2id", '{');
	for (int32_t i = 0; i < count; i++)
		json_put_integer(writer, text_model_label(&model->text, i, room), i);
	json_close(writer);
}

static void put_type(const struct served_model *model, struct json_writer *writer)
{
	json_open(writer, "model_type", '{');
	if (model_can(model, API_EMBED) || model_can(model, API_EMBED_SPARSE)) {
		static const char *const names[POOLING_MODES + 1] = {"cls",          "max",       "mean",  "mean_sqrt_len_tokens",
								     "weightedmean", "lasttoken", "splade"};
		struct buffer pooling = {0};
		for (int m = 0; m <= POOLING_MODES; m++)
			if (model->text.pooling & 1u << m)
				buffer_format(&pooling, "%s%s", pooling.size > 0 ? "+" : "", names[m]);
		json_open(writer, "embedding", '{');
		json_put_string(writer, "pooling", buffer_string(&pooling));
		json_close(writer);
		buffer_release(&pooling);
	} else {
		json_open(writer,
			  model_is_reranker(model)       ? "reranker"
			  : model_can(model, API_ANSWER) ? "question_answering"
							 : "classifier",
			  '{');
		if (!model_can(model, API_ANSWER))
			put_labels(model, writer);
		json_close(writer);
	}
	json_close(writer);
}

void model_put_info(const struct served_model *model, struct json_writer *writer)
{
	static const char *const dtypes[] = {
		[DTYPE_F32] = "float32", [DTYPE_F64] = "float64", [DTYPE_F16] = "float16", [DTYPE_BF16] = "bfloat16"};
	const struct backend *be = model->text.session.backend;
	char checksum[16];
	snprintf(checksum, sizeof checksum, "%08x", model->checksum);
	json_put_string(writer, "model_id", model->name);
	if (model->has_checksum)
		json_put_string(writer, "model_sha", checksum);
	else
		json_put_null(writer, "model_sha");
	json_put_string(writer, "model_dtype", be->int8 ? "int8" : dtypes[be->dtype]);
	put_type(model, writer);
	json_open(writer, "tasks", '[');
	for (enum api_task t = API_EMBED; t <= API_EMBED_SPARSE; t++)
		if (is_made_for(model, t))
			json_put_string(writer, NULL, api_task_name(t));
	json_close(writer);
	json_put_integer(writer, "max_input_length", model->text.longest);
	const struct vocab *vocab = &model->text.session.tokenizer.vocab;
	if (model_can(model, API_FILL))
		json_put_string(writer, "mask_token", vocab->text[vocab->mask]);
}
