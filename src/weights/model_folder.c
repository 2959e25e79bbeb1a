/* Finds the folder and files that a user means by a model, reads the configuration, and writes model folders. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "model/forms.h"
#include "weights/adapter.h"
#include "weights/adapter_save.h"
#include "weights/checkpoint_folder.h"
#include "weights/manifest.h"
#include "weights/model_folder.h"
#include "weights/published.h"
#include "weights/sentence_folder.h"
#include "weights/tokenizer_file.h"

#define CONFIG_FILE "config.json"
#define GOOGLE_CONFIG_FILE "bert_config.json"
#define WEIGHTS_FILE "model.safetensors"
#define TOKENIZER_CONFIG_FILE "tokenizer_config.json"
#define CONFIG_LIMIT (1 << 24) /* each of many labels may have a line */
#define TOKENIZER_LIMIT ((size_t)16 << 20)
#define MAX_LENGTH_LIMIT 1e9 /* longer means unlimited */

/* ---- Finding a model ---- */

static const char *const config_names[] = {CONFIG_FILE, GOOGLE_CONFIG_FILE, NULL};
/* A folder with one of these is that of a model. */
static const char *const model_marks[] = {CONFIG_FILE, GOOGLE_CONFIG_FILE, ADAPTER_CONFIG_FILE, NULL};
/* A finished model whose configuration somebody removed is damaged; a checkpoint does not take its place. */
static const char *const final_marks[] = {CONFIG_FILE, GOOGLE_CONFIG_FILE, ADAPTER_CONFIG_FILE, MANIFEST_NAME, NULL};

/* The path of the first of these files that exists in the folder, or "". */
static enum status find_beside(const char *folder, const char *const *names, char out[PATH_BYTES])
{
	for (int i = 0; names[i]; i++) {
		TRY(path_join(out, folder, names[i]));
		if (file_exists(out))
			return OK;
	}
	out[0] = 0;
	return OK;
}

/* The folder of a run stands for its finished model or, if there is none, its newest checkpoint. */
static enum status enter_run(const char *path, char out[PATH_BYTES])
{
	char inner[PATH_BYTES], config[PATH_BYTES];
	bool found;
	if (snprintf(out, PATH_BYTES, "%s", path) >= PATH_BYTES)
		return error_set(ERR_USAGE, "'%.200s…': path too long", path);
	TRY(find_beside(path, model_marks, config));
	if (config[0])
		return OK;
	TRY(path_join(inner, path, "final"));
	TRY(find_beside(inner, final_marks, config));
	if (config[0]) {
		memcpy(out, inner, PATH_BYTES);
		return OK;
	}
	TRY(checkpoint_latest(path, inner, &found));
	if (found)
		memcpy(out, inner, PATH_BYTES);
	return OK;
}

#define INNER_LISTED 5

/* ERR_USAGE if this is no model, but a folder of models or runs; otherwise OK. */
static enum status refuse_folder_of_models(const char *folder)
{
	char path[PATH_BYTES], inner[PATH_BYTES], mark[PATH_BYTES];
	struct name_list names = {0};
	struct buffer list = {0};
	int64_t count = 0;
	enum status status = file_is_folder(folder) ? folder_list(folder, &names) : OK;
	for (int64_t i = 0; i < names.count && status == OK; i++) {
		TRY_GOTO(path_join(path, folder, names.names[i]), done);
		if (!file_is_folder(path))
			continue;
		TRY_GOTO(enter_run(path, inner), done);
		TRY_GOTO(find_beside(inner, model_marks, mark), done);
		if (mark[0] && count++ < INNER_LISTED)
			buffer_format(&list, "%s%s", count > 1 ? ", " : "", path);
	}
	if (status == OK && count > 0) {
		status = error_set(ERR_USAGE, "'%s' is not a model, but has %s inside", folder, count > 1 ? "models" : "a model");
		error_hint("name %s: %s%s", count > 1 ? "one of them" : "it", buffer_string(&list),
			   count > INNER_LISTED ? ", ..." : "");
	}
done:
	buffer_release(&list);
	name_list_release(&names);
	return status;
}

/* ERR_USAGE if a folder has the configuration of a model that is no BERT. */
static enum status refuse_other_kind(const char *folder)
{
	char path[PATH_BYTES];
	struct model_config sizes;
	TRY(find_beside(folder, config_names, path));
	return path[0] ? model_folder_config(path, &sizes) : OK;
}

enum status model_source_find(const char *path, struct model_source *out)
{
	char place[PATH_BYTES], folder[PATH_BYTES];
	struct adapter_config adapter;
	*out = (struct model_source){.weights = ""};
	if (file_is_folder(path))
		TRY(enter_run(path, place));
	else if (snprintf(place, sizeof place, "%s", path) >= (int)sizeof place)
		return error_set(ERR_USAGE, "'%.200s…': path too long", path);
	enum status status = weights_file_find(place, out->weights);
	if (status == ERR_USAGE && !file_exists(path)) {
		const struct error missing = *error_last();
		return checkpoint_missing(path, missing.hint);
	}
	if (status == ERR_USAGE) {
		TRY(refuse_folder_of_models(path));
		TRY(refuse_other_kind(place));
	}
	TRY(status);
	TRY(adapter_config_read(&adapter, out->weights));
	memcpy(out->base, adapter.base, PATH_BYTES);
	path_folder(folder, out->weights);
	TRY(find_beside(folder, config_names, out->config));
	TRY(vocab_file_find(folder, out->vocab));
	if (!out->base[0])
		return OK;
	path_folder(folder, out->base);
	if (!out->config[0])
		TRY(find_beside(folder, config_names, out->config));
	return out->vocab[0] ? OK : vocab_file_find(folder, out->vocab);
}

enum status model_folder_vocab(const char *folder, char out[PATH_BYTES])
{
	char place[PATH_BYTES];
	TRY(enter_run(folder, place));
	TRY(vocab_file_find(place, out));
	return out[0] ? OK : error_set(ERR_USAGE, "'%s': there is no vocab.txt or tokenizer.json in the folder", folder);
}

enum status model_source_beside(const struct model_source *source, const char *name, char out[PATH_BYTES], bool *out_found)
{
	TRY(path_beside(out, source->weights, name));
	TRY(manifest_verify_file(out));
	*out_found = file_exists(out);
	return OK;
}

/* ---- Configuration ---- */

/* In Google's code, "gelu" means the tanh form; in Hugging Face's before config.json, and in NVIDIA's, the erf form. */
static enum status settle_gelu(const struct json *object, const char *path, struct model_config *out)
{
	char folder[PATH_BYTES], weights[PATH_BYTES];
	const char *activation = "gelu";
	TRY(json_get_string(object, path, "hidden_act", &activation));
	if (json_member(object, "model_type") || strcmp(activation, "gelu") != 0)
		return OK;
	path_folder(folder, path);
	if (weights_file_find(folder, weights) != OK)
		return OK; /* a configuration without weights */
	size_t size = strlen(weights);
	if (size > 6 && strcmp(weights + size - 6, ".index") == 0)
		return OK;
	out->hidden_act = ACTIVATION_GELU_ERF;
	return OK;
}

/* Newer cross-encoders of sentence-transformers have their activation in a file beside config.json, which then decides. */
static enum status read_task(const struct json *object, const char *path, struct task_config *out)
{
	char beside[PATH_BYTES];
	struct json_document document;
	TRY(task_config_from_json(out, object, path));
	enum status status = path_beside(beside, path, "config_sentence_transformers.json");
	if (status == OK && file_exists(beside)) {
		status = json_read(&document, beside, CONFIG_LIMIT);
		if (status == OK)
			status = task_config_read_activation(out, document.root, beside, "activation_fn");
		json_release(&document);
	}
	if (status != OK)
		task_config_release(out);
	return status;
}

/* Reads the sizes, the task, or both (NULL: not wanted). */
static enum status read_config(const char *path, struct model_config *sizes, struct task_config *task)
{
	struct json_document document = {0};
	const char *model_type = "bert";
	int32_t form;
	enum status status = OK;
	TRY(manifest_verify_file(path));
	TRY(json_read(&document, path, CONFIG_LIMIT));
	TRY_GOTO(json_get_string(document.root, path, "model_type", &model_type), done);
	TRY_GOTO(model_form_find(model_type, path, &form), done);
	if (sizes)
		TRY_GOTO(model_config_from_json(sizes, document.root, path), done);
	if (sizes)
		config_file_warn_unknown(document.root, path);
	if (sizes)
		TRY_GOTO(settle_gelu(document.root, path, sizes), done);
	if (task)
		TRY_GOTO(read_task(document.root, path, task), done);
done:
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

/* A folder with a configuration may have no weights yet, so the configuration is looked for first. */
static enum status find_config(const char *model, char out[PATH_BYTES])
{
	static const char *const adapters[] = {ADAPTER_CONFIG_FILE, NULL};
	struct model_source source;
	char adapter[PATH_BYTES] = "";
	if (file_is_folder(model)) {
		TRY(find_beside(model, config_names, out));
		if (out[0])
			return OK;
		TRY(find_beside(model, adapters, adapter));
	}
	enum status status = model_source_find(model, &source);
	if (status == OK && source.config[0]) {
		memcpy(out, source.config, PATH_BYTES);
		return OK;
	}
	if (status == ERR_DATA || status == ERR_RESOURCE || (status != OK && adapter[0]))
		return status;
	if (status != OK) {
		TRY(refuse_folder_of_models(model));
		TRY(weights_file_other(model));
	}
	return error_hinted(
		error_set(ERR_USAGE, "'%s': neither %s nor %s is in or beside it", model, CONFIG_FILE, GOOGLE_CONFIG_FILE),
		"put the model's configuration beside its weights, or name it (pretrain --model config.json)");
}

static bool is_json(const char *path)
{
	size_t size = strlen(path);
	return size > 5 && strcmp(path + size - 5, ".json") == 0 && !(size > 11 && strcmp(path + size - 11, ".index.json") == 0);
}

/* The configuration file that `model`, which is not the name of a size, means. */
static enum status config_path(const char *model, char out[PATH_BYTES])
{
	char index[PATH_BYTES];
	bool prefix = snprintf(index, sizeof index, "%s.index", model) < (int)sizeof index && file_exists(index);
	if (!file_exists(model) && !prefix) {
		char advice[160];
		snprintf(advice, sizeof advice, "give a model size (%s), a config.json, a model folder, or a file of weights",
			 MODEL_SIZES("|"));
		if (strchr(model, '/'))
			return checkpoint_missing(model, advice);
		enum status status = error_set(ERR_USAGE, "'%s' is neither a model size nor a file or folder", model);
		published_hint(model, advice);
		return status;
	}
	if (file_is_folder(model) || prefix || !is_json(model))
		return find_config(model, out);
	if (snprintf(out, PATH_BYTES, "%s", model) >= PATH_BYTES)
		return error_set(ERR_USAGE, "'%.200s…': path too long", model);
	return OK;
}

enum status model_folder_config(const char *model, struct model_config *out)
{
	char path[PATH_BYTES];
	TRY(config_path(model, path));
	return read_config(path, out, NULL);
}

enum status model_size_or_folder_config(const char *model, struct model_config *out)
{
	return is_one_of(model, MODEL_SIZES("|")) ? model_config_named(out, model) : model_folder_config(model, out);
}

enum status model_shaped_config(const char *model, const struct model_sizes *sizes, struct model_config *out)
{
	TRY(model_size_or_folder_config(model, out));
	const char *own = model_form_of(out)->model_type;
	bool differs = sizes->form && strcmp(sizes->form, own) != 0;
	if (differs && !is_one_of(model, MODEL_SIZES("|")))
		return error_set(ERR_USAGE, "--form %s: '%s' is a model of the form \"%s\"", sizes->form, model, own);
	if (differs)
		TRY(model_config_take_form(out, sizes->form, 0));
	return model_config_resize(out, sizes);
}

/* An adapter that another program wrote has no config.json: the head is its own, the rest is as the base's says. */
static enum status take_adapter(const char *weights, struct task_config *task)
{
	struct adapter adapter = {0};
	enum status status;
	TRY_GOTO(adapter_open(&adapter, weights), done);
	if (adapter.config.architecture[0])
		TRY_GOTO(task_config_take_class(task, adapter.config.architecture), done);
	for (int64_t i = 0; i < adapter.file.count; i++) {
		const struct stored_tensor *tensor = &adapter.file.tensors[i];
		if (tensor->rank != 2 || strcmp(tensor_name_from(tensor->name).name, CLASSIFIER_WEIGHT) != 0)
			continue;
		if (tensor->count == 0 || tensor->shape[0] > INT32_MAX)
			TRY_GOTO(error_set(ERR_DATA, "'%s': tensor '%.200s' has no values, or too many classes", weights,
					   tensor->name),
				 done);
		task_config_resize(task, (int32_t)tensor->shape[0]);
	}
done:
	adapter_close(&adapter);
	if (status != OK)
		task_config_release(task);
	return status;
}

enum status model_folder_task(const char *model, struct task_config *out)
{
	char path[PATH_BYTES], folders[2][PATH_BYTES];
	struct model_source source;
	TRY(config_path(model, path));
	TRY(read_config(path, NULL, out));
	if (model_source_find(model, &source) != OK || !source.base[0])
		return OK;
	path_folder(folders[0], source.weights);
	path_folder(folders[1], source.config);
	return strcmp(folders[0], folders[1]) == 0 ? OK : take_adapter(source.weights, out);
}

/* ---- Loading ---- */

enum status model_folder_load(const char *path, const struct model *model, enum missing_weights missing, float *slab,
			      struct model_folder_report *report)
{
	return model_weights_load(path, model, &(struct weight_adaptation){.missing = missing}, slab, report);
}

/* ---- The tokenizer ---- */

/* Reads "model_max_length" from a tokenizer_config.json beside the vocabulary. Unlimited tokenizers have 1e30; limits that leave
 * no room for a text are ignored. */
static enum status read_max_length(const char *vocab_path, int64_t *out)
{
	char path[PATH_BYTES];
	struct json_document document = {0};
	double length = 0;
	*out = 0;
	TRY(path_beside(path, vocab_path, TOKENIZER_CONFIG_FILE));
	if (!file_exists(path))
		return OK;
	TRY(json_read(&document, path, TOKENIZER_LIMIT));
	const struct json *member = json_member(document.root, "model_max_length");
	enum status status = OK;
	if (member && member->kind != JSON_NULL)
		status = json_get_number(document.root, path, "model_max_length", &length);
	if (length >= SHORTEST_LENGTH && length < MAX_LENGTH_LIMIT)
		*out = (int64_t)length;
	json_release(&document);
	return status;
}

enum status folder_tokenizer_read(struct folder_tokenizer *out, const struct model_source *source)
{
	bool found;
	enum status status;
	*out = (struct folder_tokenizer){.max_length = 0};
	if (!source->vocab[0]) {
		status =
			error_set(ERR_USAGE, "'%s': there is no vocab.txt or tokenizer.json beside the weights", source->weights);
		error_hint("copy the model's vocabulary there");
		return status;
	}
	TRY(vocab_file_read(&out->vocab, source->vocab));
	out->settings = tokenizer_defaults(vocab_looks_cased(&out->vocab));
	TRY_GOTO(tokenizer_file_settings(source->vocab, &out->settings, &found), failed);
	TRY_GOTO(read_max_length(source->vocab, &out->max_length), failed);
	return OK;
failed:
	folder_tokenizer_release(out);
	return status;
}

/* Rows are padded to numbers that suit a device: to multiples of up to 1024 (Megatron's 128 for each of 8). */
#define ROWS_PADDED 1024

void vocab_warn_of_rows(const char *path, int32_t entries, int32_t rows)
{
	if (rows - entries > ROWS_PADDED)
		log_warning_once("'%s': the vocabulary has only %d entries for the model's %d rows: is it whole?", path, entries,
				 rows);
}

enum status folder_tokenizer_fit(const struct folder_tokenizer *tokenizer, const char *path, int32_t *rows)
{
	int32_t entries = tokenizer->vocab.count;
	if (*rows == 0)
		*rows = entries;
	if (entries > *rows) {
		enum status status =
			error_set(ERR_STATE, "'%s': the vocabulary has %d entries, the model %d rows", path, entries, *rows);
		if (tokenizer->vocab.wordpiece_count <= *rows)
			error_hint("the last entries are added tokens of tokenizer.json: give the model rows for them "
				   "(resize_token_embeddings in transformers), or remove them there");
		return status;
	}
	vocab_warn_of_rows(path, entries, *rows);
	return OK;
}

void folder_tokenizer_release(struct folder_tokenizer *tokenizer)
{
	vocab_release(&tokenizer->vocab);
	*tokenizer = (struct folder_tokenizer){.max_length = 0};
}

/* ---- Saving ---- */

static enum status save_text(const char *folder, const char *name, const char *text, size_t size, struct folder_files *files)
{
	char path[PATH_BYTES];
	TRY(path_join(path, folder, name));
	TRY(file_write(path, text, size));
	return folder_files_add(files, name, (int64_t)size, crc32c(0, text, size));
}

static enum status save_config(const char *folder, const struct model_folder_content *content, struct folder_files *files)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text, .indent = 2};
	config_file_put(&writer, &content->model->config, content->task);
	buffer_char(&text, '\n');
	enum status status = buffer_status(&text);
	if (status == OK)
		status = save_text(folder, CONFIG_FILE, text.data, text.size, files);
	buffer_release(&text);
	return status;
}

void model_folder_tensor_name(const struct model *model, const struct parameter *parameter, const struct task_config *task,
			      char out[TENSOR_NAME_BYTES])
{
	static const char prefix[] = "bert.";
	bool bare = task && task->architecture && strcmp(task->architecture, "BertModel") == 0 &&
		    strncmp(parameter->name, prefix, strlen(prefix)) == 0;
	tensor_name_to_form(model, parameter->name + (bare ? strlen(prefix) : 0), out);
}

struct safetensors_entry model_folder_entry(const struct parameter *parameter, const float *slab, const char *name)
{
	int rank = parameter_rank(parameter);
	return (struct safetensors_entry){
		.name = name,
		.dtype = ST_F32,
		.rank = rank,
		.shape = {rank == 2 ? parameter->rows : parameter->columns, rank == 2 ? parameter->columns : 0},
		.count = parameter->count,
		.data = slab + parameter->offset,
		.bytes = (uint64_t)parameter->count * sizeof(float),
	};
}

static enum status save_weights(const char *folder, const struct model_folder_content *content, struct folder_files *files)
{
	const struct model *model = content->model;
	char path[PATH_BYTES], decoder_bias[TENSOR_NAME_BYTES];
	TRY(path_join(path, folder, WEIGHTS_FILE));
	struct safetensors_entry *entries = NULL, *bias = NULL;
	char(*names)[TENSOR_NAME_BYTES] = NULL;
	int64_t count = 0, bytes = 0;
	uint32_t crc = 0;
	enum status status;
	TRY_GOTO(memory_new(&entries, model->parameter_count + 1, sizeof *entries, "weights of a file"), done);
	TRY_GOTO(memory_new(&names, model->parameter_count, sizeof *names, "weights of a file"), done);
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		if (parameter->training && !content->training)
			continue;
		model_folder_tensor_name(model, parameter, content->task, names[i]);
		entries[count++] = model_folder_entry(parameter, content->slab, names[i]);
		if (model->config.untied && strcmp(parameter->name, PREDICTION_BIAS) == 0)
			bias = &entries[count - 1];
	}
	/* Some of transformers' classes have the bias twice, and compute with the decoder's if the output layer is untied. */
	tensor_name_to_form(model, DECODER_BIAS, decoder_bias);
	if (bias && strcmp(bias->name, decoder_bias) != 0) {
		entries[count] = *bias;
		entries[count++].name = decoder_bias;
	}
	TRY_GOTO(safetensors_write(path, entries, count, NULL, &crc, &bytes), done);
	status = folder_files_add(files, WEIGHTS_FILE, bytes, crc);
done:
	free(entries);
	free(names);
	return status;
}

enum status model_folder_save_description(const char *folder, const struct model_folder_content *content,
					  struct folder_files *files)
{
	static const char *const tokenizer_files[] = {
		"vocab.txt",  "tokenizer.json", TOKENIZER_CONFIG_FILE,    "special_tokens_map.json",
		"vocab.json", "merges.txt",     "sentencepiece.bpe.model"};
	TRY(save_config(folder, content, files));
	if (content->task && content->task->record)
		TRY(save_text(folder, TASK_RECORD_FILE, content->task->record, strlen(content->task->record), files));
	if (content->task && content->task->sentence)
		TRY(sentence_folder_write(folder, content->task->sentence, content->model->config.hidden_size, files));
	TRY(tokenizer_write_folder(content->vocab, content->tokenizer, content->max_length, folder));
	for (size_t i = 0; i < sizeof tokenizer_files / sizeof tokenizer_files[0]; i++) {
		char path[PATH_BYTES];
		TRY(path_join(path, folder, tokenizer_files[i]));
		if (file_exists(path)) /* not every tokenizer has all of them */
			TRY(folder_files_measure(files, folder, tokenizer_files[i]));
	}
	return OK;
}

enum status model_folder_save(const char *folder, const struct model_folder_content *content, struct folder_files *files)
{
	TRY(model_folder_save_description(folder, content, files));
	return content->model->adapted_count > 0 ? adapter_save(folder, content, files) : save_weights(folder, content, files);
}
