/* Reads and writes the files that make a BERT a sentence-transformers model. */
#include "weights/sentence_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "weights/manifest.h"
#include "weights/model_folder.h"

#define JSON_LIMIT ((size_t)4 << 20)

#define MODULES "modules.json"
#define LENGTH_FILE "sentence_bert_config.json"
#define PROMPT_FILE "config_sentence_transformers.json"

static const char *const mode_names[POOLING_MODES] = {"cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"};
/* Keys of the old format. */
static const char *const mode_keys[POOLING_MODES] = {"pooling_mode_cls_token",           "pooling_mode_max_tokens",
						     "pooling_mode_mean_tokens",         "pooling_mode_mean_sqrt_len_tokens",
						     "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"};

static enum status unsupported(const char *path, const char *what, const char *hint)
{
	return error_hinted(error_set(ERR_USAGE, "'%s': %s", path, what), "%s", hint);
}

/* What becomes of a member: it is read (or changes nothing), or only these values of it can be obeyed. */
struct member_rule {
	const char *name;
	const char *value; /* NULL: any; "": none, so null, false, and an empty list or object */
};

static bool is_empty(const struct json *value)
{
	return value->kind == JSON_NULL || (value->kind == JSON_BOOL && !value->boolean) ||
	       ((value->kind == JSON_ARRAY || value->kind == JSON_OBJECT) && value->child_count == 0);
}

/* Refuses values that bertc cannot obey, and names members that it does not know: those may change vectors. */
static enum status check_members(const struct json *root, const char *path, const struct member_rule *rules)
{
	if (root->kind != JSON_OBJECT)
		return error_set(ERR_DATA, "'%s': not a JSON object", path);
	for (const struct json *member = root->first_child; member; member = member->next) {
		const struct member_rule *rule = rules;
		while (rule->name && strcmp(rule->name, member->key) != 0)
			rule++;
		if (!rule->name)
			log_warning_once("'%s': bertc does not know \"%.60s\", and ignores it", path, member->key);
		else if (rule->value && !is_empty(member) &&
			 !(member->kind == JSON_STRING && strcmp(member->text, rule->value) == 0))
			return error_set(ERR_USAGE, "'%s': bertc cannot obey \"%s\"; it must be %s", path, member->key,
					 rule->value[0] ? rule->value : "empty or absent");
	}
	return OK;
}

/* Reads "folder/name" if it exists; otherwise out->root is NULL. */
static enum status read_optional(struct json_document *out, char path[PATH_BYTES], const char *folder, const char *name)
{
	*out = (struct json_document){0};
	TRY(path_join(path, folder, name));
	TRY(manifest_verify_file(path));
	return file_exists(path) ? json_read(out, path, JSON_LIMIT) : OK;
}

static enum status set_pooling(struct sentence_folder *out, const char *path, const char *name)
{
	int mode = 0;
	while (mode < POOLING_MODES && strcmp(mode_names[mode], name) != 0)
		mode++;
	if (mode == POOLING_MODES)
		return error_set(ERR_USAGE, "'%s': bertc does not know the pooling mode '%.40s'", path, name);
	if (out->pooling >= 1u << mode)
		return unsupported(path,
				   "bertc concatenates pooling modes in the order cls, max, mean, mean_sqrt_len_tokens, "
				   "weightedmean, lasttoken, this folder in another",
				   "choose one with --pooling");
	out->pooling |= 1u << mode;
	return OK;
}

static enum status read_pooling_modes(struct sentence_folder *out, const struct json *root, const char *path)
{
	const struct json *modes = json_member(root, "pooling_mode");
	if (modes && modes->kind == JSON_STRING)
		return set_pooling(out, path, modes->text);
	if (modes && modes->kind != JSON_ARRAY)
		return error_set(ERR_DATA, "'%s': \"pooling_mode\" is neither a name nor a list of names", path);
	for (const struct json *mode = modes ? modes->first_child : NULL; mode; mode = mode->next) {
		if (mode->kind != JSON_STRING)
			return error_set(ERR_DATA, "'%s': \"pooling_mode\" holds something that is not a name", path);
		TRY(set_pooling(out, path, mode->text));
	}
	for (int m = 0; m < POOLING_MODES && !modes; m++) {
		bool is_on = false;
		TRY(json_get_bool(root, path, mode_keys[m], &is_on));
		out->pooling |= is_on ? 1u << m : 0;
	}
	return OK;
}

static enum status read_pooling(struct sentence_folder *out, const char *folder)
{
	char path[PATH_BYTES];
	struct json_document document;
	bool include_prompt = true;
	enum status status;
	static const struct member_rule rules[] = {{"pooling_mode", NULL},
						   {"pooling_mode_cls_token", NULL},
						   {"pooling_mode_max_tokens", NULL},
						   {"pooling_mode_mean_tokens", NULL},
						   {"pooling_mode_mean_sqrt_len_tokens", NULL},
						   {"pooling_mode_weightedmean_tokens", NULL},
						   {"pooling_mode_lasttoken", NULL},
						   {"include_prompt", NULL},
						   {"word_embedding_dimension", NULL},
						   {"embedding_dimension", NULL},
						   {NULL, NULL}};
	TRY(path_join(path, folder, "config.json"));
	TRY(manifest_verify_file(path));
	TRY(json_read(&document, path, JSON_LIMIT));
	TRY_GOTO(check_members(document.root, path, rules), done);
	TRY_GOTO(read_pooling_modes(out, document.root, path), done);
	TRY_GOTO(json_get_bool(document.root, path, "include_prompt", &include_prompt), done);
	out->leaves_out_prompt = !include_prompt;
	if (out->pooling == 0)
		status = error_set(ERR_DATA, "'%s' names no pooling mode", path);
done:
	json_release(&document);
	return status;
}

/* SPLADE's pooling, of sentence-transformers' SparseEncoder. */
static enum status read_splade(struct sentence_folder *out, const char *folder)
{
	static const struct member_rule rules[] = {{"pooling_strategy", "max"},
						   {"activation_function", "relu"},
						   {"embedding_dimension", NULL},
						   {"word_embedding_dimension", NULL},
						   {NULL, NULL}};
	char path[PATH_BYTES];
	struct json_document document;
	TRY(read_optional(&document, path, folder, "config.json"));
	enum status status = document.root ? check_members(document.root, path, rules) : OK;
	json_release(&document);
	out->pooling = POOLING_SPLADE;
	return status;
}

/* Newer folders say what is normalized. */
static enum status check_normalize(const char *folder)
{
	static const struct member_rule rules[] = {
		{"module_input_name", "sentence_embedding"}, {"module_output_name", "sentence_embedding"}, {NULL, NULL}};
	char path[PATH_BYTES];
	struct json_document document;
	TRY(read_optional(&document, path, folder, "config.json"));
	enum status status = document.root ? check_members(document.root, path, rules) : OK;
	json_release(&document);
	return status;
}

/* Class names are compared without their module path, which differs between versions of sentence-transformers. */
static bool is_class(const char *type, const char *name)
{
	const char *dot = strrchr(type, '.');
	return strcmp(dot ? dot + 1 : type, name) == 0;
}

/* Whether a path stays inside the folder of modules.json. */
static bool is_plain_name(const char *path)
{
	return path[0] != '/' && path[0] != '.' && !strstr(path, "/.");
}

static enum status read_module(struct sentence_folder *out, const struct json *module, const char *model, const char *path,
			       int64_t number)
{
	const char *type = NULL, *place = "";
	char folder[PATH_BYTES];
	TRY(json_get_string(module, path, "type", &type));
	TRY(json_get_string(module, path, "path", &place));
	if (module->kind != JSON_OBJECT || !type || !is_plain_name(place))
		return error_set(ERR_DATA, "'%s': module %lld has no type, or a path that leads out of the folder", path,
				 (long long)number);
	if (place[0])
		TRY(path_join(folder, model, place));
	else
		snprintf(folder, sizeof folder, "%s", model);
	bool is_transformer = is_class(type, "Transformer") || is_class(type, "MLMTransformer") || is_class(type, "BERT");
	if (is_transformer != (number == 0))
		return error_set(ERR_USAGE,
				 "'%s': module %lld is '%.80s'; bertc reads folders whose first module, and no other, is "
				 "a Transformer",
				 path, (long long)number, type);
	if (is_transformer) {
		snprintf(out->transformer, sizeof out->transformer, "%s", folder);
		return OK;
	}
	if (is_class(type, "Pooling") && out->pooling == 0 && !out->normalize)
		return read_pooling(out, folder);
	if (is_class(type, "SpladePooling") && out->pooling == 0 && !out->normalize)
		return read_splade(out, folder);
	if (is_class(type, "Normalize") && out->pooling != POOLING_SPLADE) {
		out->normalize = true;
		return check_normalize(folder);
	}
	if (is_class(type, "Dropout"))
		return OK; /* no effect outside training */
	return error_set(ERR_USAGE, "'%s': bertc does not compute module %lld, '%.80s'", path, (long long)number, type);
}

static enum status read_modules(struct sentence_folder *out, const struct json *root, const char *model, const char *path)
{
	int64_t number = 0;
	if (root->kind != JSON_ARRAY || root->child_count == 0)
		return error_set(ERR_DATA, "'%s' is not a list of modules", path);
	for (const struct json *module = root->first_child; module; module = module->next)
		TRY(read_module(out, module, model, path, number++));
	return OK;
}

/* Reads the maximum length from the BERT's folder; in early folders, the file may be named after other kinds of models. */
static enum status read_length(struct sentence_folder *out)
{
	static const char *const names[] = {LENGTH_FILE, "sentence_roberta_config.json", "sentence_distilbert_config.json"};
	static const struct member_rule rules[] = {{"max_seq_length", NULL},
						   {"do_lower_case", NULL},
						   {"transformer_task", NULL},
						   {"modality_config", NULL},
						   {"module_output_name", NULL},
						   {"processing_kwargs", ""},
						   {"unpad_inputs", NULL},
						   {"query_length", ""},
						   {"document_length", ""},
						   {"query_expansion", ""},
						   {"model_args", ""},
						   {"tokenizer_args", ""},
						   {"config_args", ""},
						   {"model_kwargs", ""},
						   {"processor_kwargs", ""},
						   {"config_kwargs", ""},
						   {NULL, NULL}};
	char path[PATH_BYTES];
	struct json_document document = {0};
	int64_t length = 0;
	enum status status = OK;
	for (size_t i = 0; i < sizeof names / sizeof names[0] && !document.root; i++)
		TRY(read_optional(&document, path, out->transformer, names[i]));
	if (document.root)
		TRY_GOTO(check_members(document.root, path, rules), done);
	const struct json *said = document.root ? json_member(document.root, "max_seq_length") : NULL;
	if (said && said->kind != JSON_NULL)
		TRY_GOTO(json_get_integer(document.root, path, "max_seq_length", SHORTEST_LENGTH, INT32_MAX, &length), done);
	if (document.root)
		TRY_GOTO(json_get_bool(document.root, path, "do_lower_case", &out->lowercase), done);
	out->max_seq_length = (int32_t)length;
done:
	json_release(&document);
	return status;
}

static enum status copy_text(char **out, const char *text)
{
	size_t size = strlen(text) + 1;
	TRY(memory_new(out, (int64_t)size, 1, "prompt"));
	memcpy(*out, text, size);
	return OK;
}

static enum status read_prompts(struct sentence_folder *out, const struct json *root, const char *path)
{
	const struct json *prompts = json_member(root, "prompts");
	const struct json *chosen = json_member(root, "default_prompt_name");
	if (prompts && prompts->kind != JSON_NULL && prompts->kind != JSON_OBJECT)
		return error_set(ERR_DATA, "'%s': \"prompts\" is not an object", path);
	if (prompts && prompts->kind == JSON_OBJECT) {
		TRY(memory_new(&out->prompts, prompts->child_count, sizeof *out->prompts, "prompts"));
		for (const struct json *prompt = prompts->first_child; prompt; prompt = prompt->next) {
			struct sentence_prompt *own = &out->prompts[out->prompt_count];
			if (prompt->kind == JSON_NULL)
				continue;
			if (prompt->kind != JSON_STRING || strlen(prompt->text) != prompt->text_size)
				return error_set(ERR_DATA, "'%s': the prompt '%.40s' is not text", path, prompt->key);
			out->prompt_count++;
			TRY(copy_text(&own->name, prompt->key));
			TRY(copy_text(&own->text, prompt->text));
		}
	}
	if (!chosen || chosen->kind == JSON_NULL)
		return OK;
	if (chosen->kind == JSON_STRING)
		out->default_prompt = sentence_folder_prompt(out, chosen->text);
	return out->default_prompt >= 0
		       ? OK
		       : error_set(ERR_DATA, "'%s': \"default_prompt_name\" is not the name of one of its prompts", path);
}

static enum status read_about(struct sentence_folder *out, const char *model)
{
	char path[PATH_BYTES];
	struct json_document document;
	const char *similarity = "";
	int64_t dimensions = 0;
	enum status status;
	static const struct member_rule rules[] = {
		{"prompts", NULL},      {"default_prompt_name", NULL},  {"similarity_fn_name", NULL},
		{"truncate_dim", NULL}, {"activation_fn", NULL},        {"__version__", NULL},
		{"model_type", NULL},   {"keep_in_fp32_modules", NULL}, {NULL, NULL}};
	TRY(read_optional(&document, path, model, PROMPT_FILE));
	if (!document.root)
		return OK;
	TRY_GOTO(check_members(document.root, path, rules), done);
	TRY_GOTO(read_prompts(out, document.root, path), done);
	const struct json *cut = json_member(document.root, "truncate_dim"),
			  *measure = json_member(document.root, "similarity_fn_name");
	if (cut && cut->kind != JSON_NULL)
		TRY_GOTO(json_get_integer(document.root, path, "truncate_dim", 1, INT32_MAX, &dimensions), done);
	if (measure && measure->kind != JSON_NULL)
		TRY_GOTO(json_get_string(document.root, path, "similarity_fn_name", &similarity), done);
	out->truncate_dim = (int32_t)dimensions;
	snprintf(out->similarity, sizeof out->similarity, "%s", similarity);
done:
	json_release(&document);
	return status;
}

/* Finds the folder of the weights that `model` means. False: it is `model` itself, or there are no weights. */
static bool find_weights(const char *model, char folder[PATH_BYTES])
{
	struct model_source source;
	if (model_source_find(model, &source) != OK)
		return false;
	snprintf(folder, PATH_BYTES, "%s", source.weights);
	char *slash = strrchr(folder, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return strcmp(folder, model) != 0 && file_is_folder(folder);
}

enum status sentence_folder_read(struct sentence_folder *out, const char *model)
{
	char path[PATH_BYTES], folder[PATH_BYTES];
	struct json_document document;
	*out = (struct sentence_folder){.default_prompt = -1};
	if (!file_is_folder(model))
		return OK;
	TRY(read_optional(&document, path, model, MODULES));
	if (!document.root && find_weights(model, folder)) { /* a run: use its model */
		model = folder;
		TRY(read_optional(&document, path, model, MODULES));
	}
	if (!document.root)
		return OK;
	enum status status;
	snprintf(out->modules, sizeof out->modules, "%s", path);
	TRY_GOTO(read_modules(out, document.root, model, path), done);
	TRY_GOTO(read_length(out), done);
	TRY_GOTO(read_about(out, model), done);
	out->found = true;
done:
	json_release(&document);
	return status;
}

void sentence_folder_release(struct sentence_folder *folder)
{
	for (int32_t i = 0; i < folder->prompt_count; i++) {
		free(folder->prompts[i].name);
		free(folder->prompts[i].text);
	}
	free(folder->prompts);
	*folder = (struct sentence_folder){.default_prompt = -1};
}

int32_t sentence_folder_prompt(const struct sentence_folder *folder, const char *name)
{
	for (int32_t i = 0; i < folder->prompt_count; i++)
		if (strcmp(folder->prompts[i].name, name) == 0)
			return i;
	return -1;
}

#define COUNT(array) (sizeof array / sizeof((array)[0]))

static const char *const query_names[] = {"query"};
static const char *const document_names[] = {"document", "passage", "corpus"};

/* The index of the first of these prompts that the folder has; -1: none. */
static int32_t first_prompt(const struct sentence_folder *folder, const char *const *names, size_t count)
{
	int32_t prompt = -1;
	for (size_t i = 0; i < count && prompt < 0; i++)
		prompt = sentence_folder_prompt(folder, names[i]);
	return prompt;
}

static const char *prompt_text(const struct sentence_folder *folder, int32_t prompt)
{
	return prompt >= 0 && folder->prompts[prompt].text[0] ? folder->prompts[prompt].text : NULL;
}

const char *sentence_folder_query_prompt(const struct sentence_folder *folder)
{
	return prompt_text(folder, first_prompt(folder, query_names, COUNT(query_names)));
}

const char *sentence_folder_document_prompt(const struct sentence_folder *folder)
{
	return prompt_text(folder, first_prompt(folder, document_names, COUNT(document_names)));
}

/* Changes the first of these prompts that the folder has, or adds one with the first name. */
static enum status set_prompt(struct sentence_folder *folder, const char *const *names, size_t count, const char *text)
{
	int32_t prompt = first_prompt(folder, names, count);
	char *own = NULL;
	if (!text)
		return OK;
	TRY(copy_text(&own, text));
	if (prompt < 0) {
		struct sentence_prompt *more = realloc(folder->prompts, (size_t)(folder->prompt_count + 1) * sizeof *more);
		if (!more) {
			free(own);
			return error_set(ERR_RESOURCE, "not enough memory for prompts");
		}
		folder->prompts = more;
		more[folder->prompt_count] = (struct sentence_prompt){.name = NULL};
		prompt = folder->prompt_count++;
		enum status status = copy_text(&more[prompt].name, names[0]);
		if (status != OK) {
			folder->prompt_count--;
			free(own);
			return status;
		}
	}
	free(folder->prompts[prompt].text);
	folder->prompts[prompt].text = own;
	return OK;
}

enum status sentence_folder_set_prompts(struct sentence_folder *folder, const char *query, const char *document)
{
	TRY(set_prompt(folder, query_names, COUNT(query_names), query));
	return set_prompt(folder, document_names, COUNT(document_names), document);
}

/* ---- Writing ---- */

static void put_module(struct json_writer *writer, int64_t number, const char *path, const char *class, bool is_sparse)
{
	char type[80];
	snprintf(type, sizeof type, "sentence_transformers.%smodels.%s", is_sparse ? "sparse_encoder." : "", class);
	char name[8];
	snprintf(name, sizeof name, "%lld", (long long)number);
	json_open(writer, NULL, '{');
	json_put_integer(writer, "idx", number);
	json_put_string(writer, "name", name);
	json_put_string(writer, "path", path);
	json_put_string(writer, "type", type);
	json_close(writer);
}

static const char *pooling_folder(const struct sentence_folder *about)
{
	return about->pooling == POOLING_SPLADE ? "1_SpladePooling" : "1_Pooling";
}

static void put_modules(struct json_writer *writer, const struct sentence_folder *about)
{
	json_open(writer, NULL, '[');
	bool is_sparse = about->pooling == POOLING_SPLADE;
	put_module(writer, 0, "", is_sparse ? "MLMTransformer" : "Transformer", is_sparse);
	if (about->pooling)
		put_module(writer, 1, pooling_folder(about), is_sparse ? "SpladePooling" : "Pooling", is_sparse);
	if (about->normalize)
		put_module(writer, 2, "2_Normalize", "Normalize", false);
	json_close(writer);
}

static void put_pooling(struct json_writer *writer, const struct sentence_folder *about, int32_t hidden)
{
	json_open(writer, NULL, '{');
	if (about->pooling == POOLING_SPLADE) {
		json_put_string(writer, "pooling_strategy", "max");
		json_put_string(writer, "activation_function", "relu");
		json_close(writer);
		return;
	}
	json_put_integer(writer, "word_embedding_dimension", hidden);
	for (int m = 0; m < POOLING_MODES; m++)
		json_put_bool(writer, mode_keys[m], about->pooling >> m & 1);
	json_put_bool(writer, "include_prompt", !about->leaves_out_prompt);
	json_close(writer);
}

static void put_length(struct json_writer *writer, const struct sentence_folder *about)
{
	json_open(writer, NULL, '{');
	if (about->max_seq_length > 0)
		json_put_integer(writer, "max_seq_length", about->max_seq_length);
	else
		json_put_null(writer, "max_seq_length");
	json_put_bool(writer, "do_lower_case", about->lowercase);
	json_close(writer);
}

static void put_about(struct json_writer *writer, const struct sentence_folder *about)
{
	bool is_sparse = about->pooling == POOLING_SPLADE;
	json_open(writer, NULL, '{');
	if (is_sparse)
		json_put_string(writer, "model_type", "SparseEncoder");
	json_open(writer, "prompts", '{');
	for (int32_t i = 0; i < about->prompt_count; i++)
		json_put_string(writer, about->prompts[i].name, about->prompts[i].text);
	json_close(writer);
	if (about->default_prompt >= 0)
		json_put_string(writer, "default_prompt_name", about->prompts[about->default_prompt].name);
	else
		json_put_null(writer, "default_prompt_name");
	json_put_string(writer, "similarity_fn_name", about->similarity[0] ? about->similarity : is_sparse ? "dot" : "cosine");
	if (about->truncate_dim > 0)
		json_put_integer(writer, "truncate_dim", about->truncate_dim);
	json_close(writer);
}

enum file_kind { FILE_MODULES, FILE_POOLING, FILE_LENGTH, FILE_ABOUT };

static enum status write_one(const char *folder, enum file_kind kind, const char *name, const struct sentence_folder *about,
			     int32_t hidden, struct folder_files *files)
{
	char path[PATH_BYTES];
	struct buffer text = {0};
	struct json_writer writer = {.out = &text, .indent = 2};
	TRY(path_join(path, folder, name));
	switch (kind) {
	case FILE_MODULES: put_modules(&writer, about); break;
	case FILE_POOLING: put_pooling(&writer, about, hidden); break;
	case FILE_LENGTH: put_length(&writer, about); break;
	case FILE_ABOUT: put_about(&writer, about); break;
	}
	buffer_char(&text, '\n');
	enum status status = buffer_status(&text);
	if (status == OK)
		status = file_write(path, text.data, text.size);
	if (status == OK)
		status = folder_files_add(files, name, (int64_t)text.size, crc32c(0, text.data, text.size));
	buffer_release(&text);
	return status;
}

enum status sentence_folder_write(const char *folder, const struct sentence_folder *about, int32_t hidden,
				  struct folder_files *files)
{
	char path[PATH_BYTES], config[64];
	if (about->pooling) {
		TRY(path_join(path, folder, pooling_folder(about)));
		TRY(folder_make(path));
		snprintf(config, sizeof config, "%s/config.json", pooling_folder(about));
		TRY(write_one(folder, FILE_POOLING, config, about, hidden, files));
	}
	TRY(write_one(folder, FILE_LENGTH, LENGTH_FILE, about, hidden, files));
	TRY(write_one(folder, FILE_ABOUT, PROMPT_FILE, about, hidden, files));
	return write_one(folder, FILE_MODULES, MODULES, about, hidden, files);
}
