#include "serve/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "model/pooling.h"

/* A model without sentence-transformers' files. */
#define DEFAULT_POOLING POOLING_MEAN

bool model_can(const struct served_model *model, enum api_task task)
{
	return model->tasks & 1u << task;
}

/* ---- Opening ---- */

/* "NAME=FOLDER", or a folder, which may have '=' in its path. */
static enum status split_name(struct served_model *model, const char *given)
{
	const char *equals = strchr(given, '=');
	model->folder = given;
	if (equals && !file_exists(given)) {
		size_t size = (size_t)(equals - given);
		if (size == 0 || size >= sizeof(model->name) || !equals[1])
			return error_set(ERR_USAGE, "--model %.200s: expected NAME=FOLDER", given);
		memcpy(model->name, given, size);
		model->folder = equals + 1;
		return OK;
	}
	/* runs/mine/final is called mine. */
	size_t end = strlen(given);
	for (int i = 0; i < 2; i++) {
		while (end > 1 && given[end - 1] == '/')
			end--;
		size_t begin = end;
		while (begin > 0 && given[begin - 1] != '/')
			begin--;
		snprintf(model->name, sizeof(model->name), "%.*s", (int)(end - begin), given + begin);
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
		if (!model->name[0] || strcmp(model->name, ".") == 0 || strcmp(model->name, "..") == 0) {
			enum status status =
				error_set(ERR_USAGE, "--model %.200s: the folder has no name of its own", model->folder);
			error_hint("give the model one: --model NAME=%.200s", model->folder);
			return status;
		}
		for (int k = 0; k < i; k++) {
			if (strcmp(models->models[k].name, model->name) != 0)
				continue;
			enum status status = error_set(ERR_USAGE, "two models are called '%s': '%.200s' and '%.200s'",
						       model->name, models->models[k].folder, model->folder);
			error_hint("give one of them another name: --model NAME=%.200s", model->folder);
			return status;
		}
	}
	return OK;
}

/* The file of weights as it is now. Those of TensorFlow are several: they have none. */
static enum status read_checksum(struct served_model *model, const struct model_source *source, const struct file_stamp *before)
{
	int64_t bytes;
	if (!file_exists(source->weights) || file_is_folder(source->weights))
		return OK;
	TRY(file_checksum(source->weights, &bytes, &model->checksum));
	const struct file_stamp now = file_stamp_at(source->weights);
	model->has_checksum = true;
	return file_stamp_check(source->weights, before, &now, "while it was loaded");
}

static enum status open_session(struct served_model *model, const struct models *models, const struct models_settings *settings,
				const char *folder, const struct model_heads *heads, enum missing_weights missing,
				int32_t longest)
{
	const struct session_heads with = {heads, missing};
	struct model_source source;
	TRY(model_source_find(folder, &source));
	const struct file_stamp before = file_stamp_at(source.weights);
	TRY(session_open_on(&model->session, models->pool, folder, &settings->device, &with,
			    encoder_capacity(heads, settings->max_batch_tokens, longest), longest));
	model->is_open = true;
	TRY(read_checksum(model, &source, &before));
	model->longest = longest;
	model->hidden = model->session.model->config.hidden_size;
	return encoder_open(&model->encoder, &model->session);
}

/* Tokens of a text: as asked for, as the folder says, and within the model's positions. */
static enum status find_longest(const char *folder, int64_t asked, int64_t said, int64_t tokenizer, int32_t *out)
{
	struct model_config config;
	TRY(model_folder_config(folder, &config));
	int64_t longest = config.max_position_embeddings;
	if (longest < SHORTEST_LENGTH)
		return error_set(ERR_USAGE, "'%s' has %lld positions, which leaves no room for a text", folder,
				 (long long)longest);
	if (asked > longest)
		return error_set(ERR_USAGE, "--max_seq_length %lld is beyond the %lld positions of '%s'", (long long)asked,
				 (long long)longest, folder);
	if (asked > 0)
		longest = asked;
	else if (said > 0 && said < longest)
		longest = said;
	else if (said <= 0 && tokenizer > 0 && tokenizer < longest)
		longest = tokenizer;
	*out = (int32_t)longest;
	return OK;
}

static enum status open_task(struct served_model *model, const struct models *models, const struct models_settings *settings,
			     const char *folder)
{
	model->task_settings = (struct task_session_settings){.model = folder,
							      .max_seq_length = (int32_t)settings->max_seq_length,
							      .micro_batch_tokens = settings->max_batch_tokens,
							      .device = settings->device};
	model->has_task = true;
	TRY(task_session_open(&model->task, &model->task_settings));
	struct task_state *state = &model->task.state;
	const struct head *head = &model->task.heads.head[0];
	if (!state->task->take) {
		enum status status = error_set(ERR_USAGE, "'%s' is a model for %s, which the service has no endpoint for", folder,
					       state->task->name);
		error_hint("bertc predict answers files of such texts");
		return status;
	}
	state->settings.quiet = true;
	if (head->loss == LOSS_SEGMENT)
		model->tasks = 1u << API_ANSWER;
	else
		model->tasks = 1u << API_PREDICT;
	if (head->input == INPUT_FIRST_ROW && head->outputs == 1)
		model->tasks |= 1u << API_RERANK;
	return open_session(model, models, settings, folder, &model->task.heads, MISSING_NOTHING, state->settings.max_seq_length);
}

static enum status open_tokenizers(struct served_model *model)
{
	const struct folder_tokenizer *folder = &model->session.tokenizer;
	struct tokenizer_settings settings = folder->settings;
	settings.special_tokens = false;
	settings.lowercase = settings.lowercase || model->sentences.lowercase;
	TRY(tokenizer_open(&model->plain, &folder->vocab, &settings));
	settings = folder->settings;
	settings.special_tokens = true;
	return tokenizer_open(&model->blanks, &folder->vocab, &settings);
}

/* A model that has no head but perhaps that of masked words. */
static enum status open_encoder(struct served_model *model, const struct models *models, const struct models_settings *settings,
				const char *folder, const char *architecture)
{
	struct model_source source;
	struct folder_tokenizer tokenizer;
	int32_t longest = 0;
	enum status status = OK;
	if (model->sentences.found && model->sentences.pooling == 0) {
		status = error_set(ERR_USAGE, "'%s' pools nothing: it is a cross-encoder, which scores pairs", model->folder);
		error_hint("serve a folder with a Pooling module, or one whose weights have a head for pairs");
		return status;
	}
	bool says_words =
		architecture && (strcmp(architecture, "BertForPreTraining") == 0 || strcmp(architecture, "BertForMaskedLM") == 0);
	bool has_words = says_words || !architecture;
	TRY(model_source_find(folder, &source));
	TRY(folder_tokenizer_read(&tokenizer, &source));
	int64_t said = tokenizer.max_length;
	folder_tokenizer_release(&tokenizer);
	TRY(find_longest(folder, settings->max_seq_length, model->sentences.max_seq_length, said, &longest));
	model->pooling = model->sentences.found ? model->sentences.pooling : DEFAULT_POOLING;
	model->tasks = 1u << API_EMBED;
	if (has_words)
		status = open_session(model, models, settings, folder, &model_heads_pretraining, MISSING_NEXT_SENTENCE, longest);
	if (has_words && status != OK && !says_words && !model->is_open) {
		log_note("'%s': no masked-word head, so it makes embeddings only (%s)", folder, error_last()->message);
		has_words = false;
	}
	TRY(has_words ? status : open_session(model, models, settings, folder, &model_heads_encoder, MISSING_NOTHING, longest));
	model->tasks |= has_words ? 1u << API_FILL : 0;
	return open_tokenizers(model);
}

static enum status open_model(struct served_model *model, const struct models *models, const struct models_settings *settings)
{
	struct task_config config;
	TRY(sentence_folder_read(&model->sentences, model->folder));
	const char *folder = model->sentences.found ? model->sentences.transformer : model->folder;
	TRY(model_folder_task(folder, &config));
	const struct task *task = task_of_architecture(config.architecture, config.problem_type, config.label_count);
	bool makes_vectors = model->sentences.found && model->sentences.pooling != 0;
	enum status status = task && !makes_vectors ? open_task(model, models, settings, folder)
						    : open_encoder(model, models, settings, folder, config.architecture);
	task_config_release(&config);
	return status;
}

static void say_what_is_served(const struct served_model *model)
{
	struct buffer tasks = {0};
	for (enum api_task t = API_EMBED; t <= API_ANSWER; t++)
		if (model_can(model, t))
			buffer_format(&tasks, "%s%s", tasks.size > 0 ? ", " : "", api_task_name(t));
	log_note("model '%s' from '%s': %s; texts of up to %d tokens; %s", model->name, model->folder, buffer_string(&tasks),
		 model->longest, model->session.backend->description);
	buffer_release(&tasks);
}

enum status models_open(struct models *out, const char *const *folders, int64_t count, const struct models_settings *settings)
{
	*out = (struct models){0};
	TRY(memory_new(&out->models, count, sizeof(*out->models), "models"));
	for (out->count = 0; out->count < count; out->count++)
		TRY(split_name(&out->models[out->count], folders[out->count]));
	TRY(check_names(out));
	TRY(pool_create(&out->pool, (int)settings->device.threads));
	for (int i = 0; i < out->count; i++) {
		TRY(open_model(&out->models[i], out, settings));
		say_what_is_served(&out->models[i]);
	}
	return OK;
}

static void close_model(struct served_model *model)
{
	encoder_close(model->encoder);
	tokenizer_close(model->plain);
	tokenizer_close(model->blanks);
	if (model->is_open)
		session_close(&model->session);
	if (model->has_task)
		task_session_close(&model->task);
	sentence_folder_release(&model->sentences);
}

void models_close(struct models *models)
{
	for (int i = 0; i < models->count; i++)
		close_model(&models->models[i]);
	free(models->models);
	if (models->pool)
		pool_free(models->pool);
	free(models->texts);
	encoder_answers_release(&models->answers);
	*models = (struct models){0};
}

/* ---- What is said of a model ---- */

const char *model_label(const struct served_model *model, int64_t index, char room[24])
{
	const struct label_set *labels = &model->task.state.labels;
	if (index < labels->count)
		return labels->labels[index].name;
	snprintf(room, 24, "LABEL_%lld", (long long)index);
	return room;
}

static void put_labels(const struct served_model *model, struct json_writer *writer)
{
	char room[24], number[24];
	int32_t count = model->task.heads.head[0].outputs;
	json_open(writer, "id2label", '{');
	for (int32_t i = 0; i < count; i++) {
		snprintf(number, sizeof(number), "%d", i);
		json_put_string(writer, number, model_label(model, i, room));
	}
	json_close(writer);
	json_open(writer, "label2id", '{');
	for (int32_t i = 0; i < count; i++)
		json_put_integer(writer, model_label(model, i, room), i);
	json_close(writer);
}

static void put_type(const struct served_model *model, struct json_writer *writer)
{
	json_open(writer, "model_type", '{');
	if (model_can(model, API_EMBED)) {
		static const char *const names[POOLING_MODES] = {"cls",          "max",      "mean", "mean_sqrt_len_tokens",
								 "weightedmean", "lasttoken"};
		struct buffer pooling = {0};
		for (int m = 0; m < POOLING_MODES; m++)
			if (model->pooling & 1u << m)
				buffer_format(&pooling, "%s%s", pooling.size > 0 ? "+" : "", names[m]);
		json_open(writer, "embedding", '{');
		json_put_string(writer, "pooling", buffer_string(&pooling));
		json_close(writer);
		buffer_release(&pooling);
	} else {
		json_open(writer,
			  model_can(model, API_RERANK)   ? "reranker"
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
	const struct backend *be = model->session.backend;
	char checksum[16];
	snprintf(checksum, sizeof(checksum), "%08x", model->checksum);
	json_put_string(writer, "model_id", model->name);
	if (model->has_checksum)
		json_put_string(writer, "model_sha", checksum);
	else
		json_put_null(writer, "model_sha");
	json_put_string(writer, "model_dtype", be->int8 ? "int8" : dtypes[be->dtype]);
	put_type(model, writer);
	json_open(writer, "tasks", '[');
	for (enum api_task t = API_EMBED; t <= API_ANSWER; t++)
		if (model_can(model, t))
			json_put_string(writer, NULL, api_task_name(t));
	json_close(writer);
	json_put_integer(writer, "max_input_length", model->longest);
}
