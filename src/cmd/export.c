/* bertc export: writes a model in the form that another program takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/saved_models.h"
#include "infer/device_options.h"
#include "formats/onnx_file.h"
#include "infer/int8_layers.h"
#include "infer/saved_model.h"
#include "model/forms.h"
#include "weights/checkpoint_folder.h"
#include "weights/int8_weights.h"
#include "weights/manifest.h"
#include "weights/onnx_model.h"
#include "weights/tensorflow_folder.h"
#include "weights/triton_folder.h"

struct export_settings {
	const char *model, *out, *calibrate;
	enum export_form { TO_OPEN, TO_ONNX, TO_TENSORFLOW, TO_TRANSFORMERS, TO_SENTENCE_TRANSFORMERS, TO_TRITON, TO_INT8 } to;
	enum { POOL_OPEN, POOL_CLS, POOL_MEAN, POOL_MAX } pooling;
	bool head, normalize;
	struct device_options device; /* of which only the threads are an option */
};

#define FIELD(name) offsetof(struct export_settings, name)
#define ROW(member, role, value) OPTION_ROW(struct export_settings, member, role, value)

/* clang-format off */
static const struct option export_options[] = {
	{ROW(model, ROLE_PLACE, "FOLDER"), .alias = "model_name_or_path",
	 .help = "a run, one of its checkpoints, or any BERT folder with its vocabulary; nothing is written into it"},
	{ROW(to, ROLE_PLACE, "FORM"),
	 .range = "|onnx|tensorflow|transformers|sentence_transformers|triton|int8",
	 .help = "onnx: a graph for ONNX Runtime, OpenVINO and others; tensorflow: a checkpoint with Google's names; "
	 "transformers: a folder of the whole model, an adapter merged into its base; sentence_transformers: a folder that makes "
	 "vectors of texts; triton: a model for Triton Inference Server; int8: a folder for bertc with linear layers in int8: "
	 "a third of the size, and fast to load and to run on CPUs"},
	{ROW(out, ROLE_PLACE, "PATH"), .help = "new folder; with onnx also a file, PATH.onnx, for the graph alone"},
	{ROW(head, ROLE_PLACE, NULL), .fallback = "true", .help = "export the model's head; otherwise the encoder alone"},
	{ROW(pooling, ROLE_PLACE, "HOW"), .range = "|cls|mean|max",
	 .fallback_text = "the folder's own; mean for sentence_transformers",
	 .help = "how the rows of a text become one vector; the encoder is then exported without any other head"},
	{ROW(normalize, ROLE_PLACE, NULL), .fallback = "false",
	 .help = "scale the vectors of texts to length 1; always done if the folder says so"},
	{ROW(calibrate, ROLE_PLACE, "FILE"), .fallback_text = "entries drawn from the vocabulary",
	 .help = "int8: texts, one per line, with which each layer is tried; a layer whose results change too much in "
	 	 "int8 stays in bf16"},
	{.group = device_rows, .only = "threads", .field = FIELD(device)},
	{.name = NULL},
};
/* clang-format on */

static const struct command_text export_text = {
	.name = "export",
	.synopsis = "--model FOLDER --to FORM --out PATH [options]",
	.summary = "write a model in the form another program takes",
	.description = "onnx writes FOLDER/onnx/model.onnx with the configuration and tokenizer beside it, where optimum and "
		       "sentence-transformers look for them. The inputs are input_ids, attention_mask, and token_type_ids. "
		       "The first output is last_hidden_state, logits, or start_logits and end_logits; if the model defines "
		       "how texts become vectors, the last output is sentence_embedding.\n\n"
		       "tensorflow writes bert_model.ckpt, bert_config.json, and vocab.txt for Google's code; "
		       "transformers writes the whole model as one folder, an adapter merged into its base; "
		       "sentence_transformers writes a folder for that library; triton writes a model for Triton Inference "
		       "Server, with --out as the model's folder; int8 writes a folder for bertc itself.",
	.examples = "bertc export --model runs/task --to onnx --out task-onnx\ta folder with onnx/model.onnx\n"
		    "bertc export --model runs/task --to onnx --out task.onnx\tthe graph alone\n"
		    "bertc export --model runs/mine --no_head --to onnx --out encoder.onnx\tthe encoder alone, for its "
		    "last_hidden_state",
};

/* Writes one form of the model into `folder`, whose final name will be `name`. */
typedef enum status write_form(const struct export_settings *settings, const struct saved_model *saved, const char *folder,
			       const char *name);

/* ---- Destination ---- */

/* Splits a path into its parent folder and its last component. */
static enum status split_path(const char *path, char parent[PATH_BYTES], char name[PATH_BYTES])
{
	size_t size = strlen(path);
	while (size > 1 && path[size - 1] == '/')
		size--;
	if (size == 0 || size >= PATH_BYTES - 64)
		return error_set(ERR_USAGE, "--out '%.200s': not a path, or too long", path);
	snprintf(name, PATH_BYTES, "%.*s", (int)size, path);
	path_folder(parent, name);
	const char *last = path_name(name);
	memmove(name, last, strlen(last) + 1);
	if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && name[0])
		return OK;
	return error_set(ERR_USAGE, "--out '%s': give the folder a name", path);
}

static bool is_within(const char *path, const char *folder)
{
	size_t size = strlen(folder);
	return strncmp(path, folder, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

/* The real path of the nearest existing folder at or above `path`; the caller frees it. */
static char *real_ancestor(const char *path)
{
	char above[PATH_BYTES];
	snprintf(above, sizeof above, "%s", path);
	char *real = realpath(above, NULL);
	while (!real) {
		char *slash = strrchr(above, '/');
		if (!slash)
			return realpath(".", NULL);
		slash[slash == above] = '\0';
		real = realpath(above, NULL);
	}
	return real;
}

/* A model folder is never changed: its manifest, and programs that read it, rely on its contents. */
static enum status check_outside(const char *parent, const struct export_settings *settings, const char *weights)
{
	char folder[PATH_BYTES];
	path_folder(folder, weights);
	char *real = realpath(folder, NULL), *place = real_ancestor(parent);
	bool inside = real && place && is_within(place, real);
	free(real);
	free(place);
	if (!inside)
		return OK;
	return error_hinted(
		error_set(ERR_USAGE, "--out '%s' is inside the model's folder, which is never written to", settings->out),
		"choose a place outside it");
}

static enum status check_new(const char *out)
{
	char data[PATH_BYTES];
	if (text_ends_with(out, ".onnx") && snprintf(data, sizeof data, "%s_data", out) < PATH_BYTES && file_exists(data))
		return error_hinted(error_set(ERR_USAGE, "'%s' exists already: large graphs have their weights there", data),
				    "remove it, or choose another name; nothing was changed");
	struct name_list names = {0};
	if (!file_exists(out))
		return OK;
	bool is_empty = file_is_folder(out) && folder_list(out, &names) == OK && names.count == 0;
	name_list_release(&names);
	if (is_empty)
		return OK;
	return error_hinted(error_set(ERR_USAGE, "--out '%s' exists already", out),
			    "remove it, or choose another name; nothing was changed");
}

/* ---- ONNX ---- */

static struct onnx_model_content onnx_content(const struct saved_model *saved)
{
	return (struct onnx_model_content){
		.model = saved->model,
		.slab = saved->slab,
		.pooling = saved->sentences.pooling & (POOLING_SPLADE - 1), /* of SPLADE a graph has the logits */
		.normalize = saved->sentences.normalize,
		.truncate_dim = saved->sentences.truncate_dim,
	};
}

static struct model_folder_content folder_content(const struct saved_model *saved)
{
	return (struct model_folder_content){
		.model = saved->model,
		.slab = saved->slab,
		.task = &saved->task,
		.vocab = &saved->tokenizer.vocab,
		.tokenizer = &saved->tokenizer.settings,
		.max_length = saved->tokenizer.max_length > 0 ? saved->tokenizer.max_length : model_positions(&saved->config),
	};
}

/* Writes how texts become vectors, or that they do not: readers would take the mean, unless there is the head of a task. */
static enum status write_sentences(const struct saved_model *saved, const char *folder, struct folder_files *files)
{
	bool has_task = saved->heads.count > 0 && !model_heads_predict(&saved->heads);
	return saved->sentences.pooling || (saved->sentences.found && !has_task)
		       ? sentence_folder_write(folder, &saved->sentences, saved->config.hidden_size, files)
		       : OK;
}

/* Writes what accompanies the weights in any form. */
static enum status write_description(const struct saved_model *saved, const char *folder, struct folder_files *files)
{
	struct model_folder_content content = folder_content(saved);
	TRY(model_folder_save_description(folder, &content, files));
	return write_sentences(saved, folder, files);
}

/* Writes the manifest of a folder with a graph; `files` are those that have been measured already. */
static enum status write_graph_manifest(const char *folder, struct folder_files *files)
{
	static const char *const names[] = {"onnx/model.onnx",
					    "onnx/model.onnx_data",
					    "1/model.onnx",
					    "1/model.onnx/model.onnx",
					    "1/model.onnx/model.onnx_data",
					    "config.pbtxt",
					    "labels.txt"};
	char path[PATH_BYTES];
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		TRY(path_join(path, folder, names[i]));
		if (file_exists(path) && !file_is_folder(path))
			TRY(folder_files_measure(files, folder, names[i]));
	}
	return manifest_write(folder, 0, files);
}

static enum status write_onnx_folder(const struct export_settings *settings, const struct saved_model *saved, const char *folder,
				     const char *name)
{
	(void)settings;
	(void)name;
	struct onnx_model_content graph = onnx_content(saved);
	struct folder_files files = {0};
	char inner[PATH_BYTES], path[PATH_BYTES];
	enum status status;
	TRY_GOTO(path_join(inner, folder, "onnx"), done);
	TRY_GOTO(folder_make(inner), done);
	TRY_GOTO(path_join(path, inner, "model.onnx"), done);
	TRY_GOTO(onnx_model_write(path, &graph, ONNX_FILE_LIMIT), done);
	TRY_GOTO(write_description(saved, folder, &files), done);
	status = write_graph_manifest(folder, &files);
done:
	free(files.files);
	return status;
}

/* ---- TensorFlow ---- */

static enum status write_tensorflow_folder(const struct export_settings *settings, const struct saved_model *saved,
					   const char *folder, const char *name)
{
	(void)settings;
	(void)name;
	struct model_folder_content content = folder_content(saved);
	char place[PATH_BYTES], manifest[PATH_BYTES], file[PATH_BYTES];
	int64_t step = 0;
	TRY(split_path(saved->source.weights, place, file));
	TRY(path_join(manifest, place, MANIFEST_NAME));
	if (file_exists(manifest))
		TRY(manifest_step(place, &step));
	return tensorflow_folder_save(folder, &content, step);
}

/* ---- transformers and sentence-transformers ---- */

static enum status write_model_folder(const struct export_settings *settings, const struct saved_model *saved, const char *folder,
				      const char *name)
{
	(void)settings;
	(void)name;
	struct model_folder_content content = folder_content(saved);
	struct folder_files files = {0};
	enum status status = model_folder_save(folder, &content, &files);
	if (status == OK)
		status = write_sentences(saved, folder, &files);
	if (status == OK)
		status = manifest_write(folder, 0, &files);
	free(files.files);
	return status;
}

/* Applies --pooling, --normalize, and what the form requires, on top of what the folder says. */
static void settle_pooling(const struct export_settings *settings, struct saved_model *saved)
{
	static const unsigned modes[] = {[POOL_CLS] = POOLING_CLS, [POOL_MEAN] = POOLING_MEAN, [POOL_MAX] = POOLING_MAX};
	struct sentence_folder *sentences = &saved->sentences;
	if (settings->pooling != POOL_OPEN)
		sentences->pooling = modes[settings->pooling];
	if (!sentences->pooling && settings->to == TO_SENTENCE_TRANSFORMERS)
		sentences->pooling = POOLING_MEAN;
	sentences->normalize |= settings->normalize;
	if (sentences->max_seq_length == 0)
		sentences->max_seq_length = (int32_t)(saved->tokenizer.max_length > 0 ? saved->tokenizer.max_length
										      : model_positions(&saved->config));
}

/* ---- Triton ---- */

static enum status write_triton_folder(const struct export_settings *settings, const struct saved_model *saved,
				       const char *folder, const char *name)
{
	(void)settings;
	struct onnx_model_content graph = onnx_content(saved);
	struct folder_files files = {0};
	enum status status = triton_folder_save(folder, name, &graph, &saved->task, ONNX_FILE_LIMIT);
	if (status == OK)
		status = write_graph_manifest(folder, &files);
	free(files.files);
	return status;
}

/* ---- int8 ---- */

/* Reports which layers stay in bf16, and how much int8 changes the output. */
static enum status tell_layers(const struct saved_model *saved, const struct int8_layers *layers)
{
	const struct model *model = saved->model;
	struct parameter_place *places = NULL;
	TRY(memory_new(&places, model->parameter_count, sizeof *places, "layers"));
	parameter_places(model, places);
	for (int64_t p = 0; p < model->parameter_count; p++)
		if (layers->kept[places[p].weight] && places[p].row == 0)
			log_note("'%s'%s stays in bf16: in int8 it alone changes the encoder's output by %.1f %%",
				 model->parameters[p].name,
				 strstr(model->parameters[p].name, ".query.") ? " (with key and value)" : "",
				 100 * layers->errors[places[p].weight]);
	free(places);
	log_note("%lld of %lld linear layers in int8, which together change the encoder's output by %.1f %% (tried on %lld "
		 "tokens)",
		 (long long)(layers->tried - layers->kept_count), (long long)layers->tried, 100 * layers->error,
		 (long long)layers->tokens);
	return OK;
}

static enum status write_int8_folder(const struct export_settings *settings, const struct saved_model *saved, const char *folder,
				     const char *name)
{
	struct model_folder_content content = folder_content(saved);
	struct folder_files files = {0};
	struct int8_layers layers = {0};
	enum status status;
	(void)name;
	TRY_GOTO(int8_layers_choose(&layers, saved, settings->calibrate, settings->device.threads), done);
	TRY_GOTO(tell_layers(saved, &layers), done);
	TRY_GOTO(write_description(saved, folder, &files), done);
	TRY_GOTO(int8_weights_save(folder, &content, layers.kept, &files), done);
	status = manifest_write(folder, 0, &files);
done:
	int8_layers_release(&layers);
	free(files.files);
	return status;
}

/* ---- The command ---- */

/* The folder gets its name only when it is complete. Until then it has one that no other process takes. */
static enum status write_folder(const struct export_settings *settings, const struct saved_model *saved, const char *parent,
				const char *name, write_form *write)
{
	char temporary_name[PATH_BYTES], temporary[PATH_BYTES];
	if (snprintf(temporary_name, sizeof temporary_name, TEMPORARY_PREFIX "%s-%ld", name, (long)getpid()) >= PATH_BYTES)
		return error_set(ERR_USAGE, "--out '%.200s…': too long", settings->out);
	TRY(folder_make(parent));
	TRY(path_join(temporary, parent, temporary_name));
	if (file_exists(temporary))
		TRY(folder_remove(temporary));
	TRY(folder_make(temporary));
	enum status status = write(settings, saved, temporary, name);
	if (status == OK)
		status = checkpoint_folder_publish_new(parent, temporary, name);
	return status == OK ? OK : checkpoint_folder_abandon(temporary);
}

static write_form *const forms[] = {
	[TO_ONNX] = write_onnx_folder,          [TO_TENSORFLOW] = write_tensorflow_folder,
	[TO_TRANSFORMERS] = write_model_folder, [TO_SENTENCE_TRANSFORMERS] = write_model_folder,
	[TO_TRITON] = write_triton_folder,      [TO_INT8] = write_int8_folder,
};

static enum status write_export(const struct export_settings *settings, const struct saved_model *saved)
{
	char parent[PATH_BYTES], name[PATH_BYTES];
	TRY(split_path(settings->out, parent, name));
	TRY(check_outside(parent, settings, saved->source.weights));
	if (saved->source.base[0])
		TRY(check_outside(parent, settings, saved->source.base));
	if (saved->sentences.found)
		TRY(check_outside(parent, settings, saved->sentences.modules));
	if (settings->to == TO_ONNX && text_ends_with(name, ".onnx")) {
		struct onnx_model_content graph = onnx_content(saved);
		return onnx_model_write(settings->out, &graph, ONNX_FILE_LIMIT);
	}
	return write_folder(settings, saved, parent, name, forms[settings->to]);
}

/* Whether the options ask for vectors of texts, which are made without a head. */
static bool makes_vectors(const struct export_settings *settings)
{
	return settings->pooling != POOL_OPEN || settings->to == TO_SENTENCE_TRANSFORMERS;
}

/* Refuses options that would have no effect. */
static enum status check_export(struct options *options)
{
	const struct export_settings *settings = options->settings;
	enum status status = OK;
	TRY(options_require(options, "model", "give a folder that bertc or transformers wrote: --model FOLDER"));
	TRY(saved_model_check(options, settings->model));
	TRY(options_require(options, "to", "choose one of onnx, tensorflow, transformers, sentence_transformers, triton, int8"));
	TRY(options_require(options, "out", "give a new file or folder: --out PATH"));
	if (settings->to == TO_OPEN)
		return OK;
	if (settings->calibrate && settings->to != TO_INT8) {
		status = error_set(ERR_USAGE, "--calibrate has no effect with --to %s: only int8 tries layers on texts",
				   options_text_of(options, &settings->to));
		error_hint("leave --calibrate out, or export --to int8");
	} else if (settings->to == TO_TENSORFLOW && (settings->normalize || settings->pooling != POOL_OPEN)) {
		const char *name = settings->normalize ? "normalize" : "pooling";
		status = error_set(ERR_USAGE, "--%s has no effect with --to tensorflow: the form has no vectors of texts", name);
		error_hint("leave --%s out, or export --to sentence_transformers", name);
	} else if (makes_vectors(settings) && settings->head && options_given(options, "head")) {
		status = error_set(ERR_USAGE, "--head has no effect with %s: vectors of texts come from the encoder",
				   settings->pooling != POOL_OPEN ? "--pooling" : "--to sentence_transformers");
		error_hint("leave one of the two out");
	}
	return options_blame(options, status);
}

/* To be called once the folder is read and --pooling settled. */
static enum status check_vectors(const struct export_settings *settings, const struct saved_model *saved, bool pools_nothing)
{
	if (pools_nothing && settings->to == TO_SENTENCE_TRANSFORMERS && settings->pooling == POOL_OPEN)
		return error_hinted(
			error_set(ERR_USAGE, "'%s' pools nothing, as cross-encoders do, which score pairs", settings->model),
			"choose with --pooling what becomes a text's vector");
	if (!settings->normalize || saved->sentences.pooling)
		return OK;
	return error_hinted(
		error_set(ERR_USAGE, "--normalize has no effect: '%s' does not say how texts become vectors", settings->model),
		"choose it with --pooling cls|mean|max");
}

static enum status run_export(struct options *options)
{
	const struct export_settings *settings = options->settings;
	struct saved_model saved = {0};
	TRY(check_new(settings->out));
	enum status status = saved_model_read(&saved, settings->model, settings->head && !makes_vectors(settings));
	bool pools_nothing = saved.sentences.found && !saved.sentences.pooling;
	settle_pooling(settings, &saved);
	if (status == OK && saved.sentences.pooling == POOLING_SPLADE && !model_heads_predict(&saved.heads))
		status = error_hinted(error_set(ERR_USAGE, "'%s' weighs words (SPLADE): it makes no vectors", settings->model),
				      "--to transformers keeps its masked-word head and its files for sentence-transformers");
	if (status == OK)
		status = check_vectors(settings, &saved, pools_nothing);
	if (status == OK)
		status = write_export(settings, &saved);
	if (status == OK)
		log_note("written: %s", settings->out);
	saved_model_release(&saved);
	return status;
}

const struct command command_export = {
	.text = &export_text,
	.options = export_options,
	.settings_bytes = sizeof(struct export_settings),
	.check = check_export,
	.run = run_export,
};
