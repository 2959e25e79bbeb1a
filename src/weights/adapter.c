/* Reads peft's adapters, finds their base, and adds them to its weights. */
#include "weights/adapter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "formats/hub.h"
#include "model/low_rank.h"
#include "weights/manifest.h"
#include "weights/weight_names.h"

#define CONFIG_LIMIT ((size_t)1 << 20)
/* How the names of the matrices end. */
#define END_OF_A ".lora_A.weight"
#define END_OF_B ".lora_B.weight"

/* ---- The configuration ---- */

/* Members that change what the adapter computes, in ways that bertc does not know; it knows them absent, null, false, or empty.
 */
static const char *const refused_members[] = {
	"use_dora",          "use_qalora",
	"use_bdlora",        "lora_bias",
	"fan_in_fan_out",    "alpha_pattern",
	"layer_replication", "trainable_token_indices",
	"target_parameters", "alora_invocation_tokens",
	"arrow_config",      "kasa_config",
	"monteclora_config",
};

/* Initializations that leave the base's weights as they are. */
static const char *const known_inits[] = {"gaussian", "eva", "orthogonal"};

static const struct {
	const char *task_type, *architecture;
} task_types[] = {
	{"SEQ_CLS", "BertForSequenceClassification"},
	{"TOKEN_CLS", "BertForTokenClassification"},
	{"QUESTION_ANS", "BertForQuestionAnswering"},
	{"FEATURE_EXTRACTION", "BertModel"},
};

const char *adapter_task_type(const char *architecture)
{
	for (size_t i = 0; architecture && i < sizeof task_types / sizeof *task_types; i++)
		if (strcmp(task_types[i].architecture, architecture) == 0)
			return task_types[i].task_type;
	return NULL;
}

static enum status refuse(const char *path, const char *key, const char *value)
{
	return error_hinted(error_set(ERR_USAGE, "'%s': \"%s\" is %.100s, which bertc does not compute", path, key, value),
			    "merge the adapter with peft (merge_and_unload) and save the model as a whole");
}

/* Whether a member is there and says something. */
static bool says_something(const struct json *member)
{
	switch (member ? member->kind : JSON_NULL) {
	case JSON_NULL: return false;
	case JSON_BOOL: return member->boolean;
	case JSON_ARRAY:
	case JSON_OBJECT: return member->child_count > 0;
	default: return true;
	}
}

static enum status check_kind(const struct json *root, const char *path)
{
	const char *type = "";
	TRY(json_get_string(root, path, "peft_type", &type));
	if (strcmp(type, "LORA") != 0)
		return refuse(path, "peft_type", *type ? type : "missing");
	for (size_t i = 0; i < sizeof refused_members / sizeof *refused_members; i++)
		if (says_something(json_member(root, refused_members[i])))
			return refuse(path, refused_members[i], "set");
	const struct json *init = json_member(root, "init_lora_weights");
	if (!init || init->kind != JSON_STRING)
		return OK;
	for (size_t i = 0; i < sizeof known_inits / sizeof *known_inits; i++)
		if (strcmp(init->text, known_inits[i]) == 0)
			return OK;
	return refuse(path, "init_lora_weights", init->text);
}

static enum status read_architecture(const struct json *root, const char *path, struct adapter_config *out)
{
	const struct json *type = json_member(root, "task_type"), *mapping = json_member(root, "auto_mapping");
	const char *class = "";
	if (type && type->kind == JSON_STRING) {
		for (size_t i = 0; i < sizeof task_types / sizeof *task_types && !*class; i++)
			if (strcmp(task_types[i].task_type, type->text) == 0)
				class = task_types[i].architecture;
		if (!*class)
			return refuse(path, "task_type", type->text);
	}
	if (!*class && mapping && mapping->kind == JSON_OBJECT)
		TRY(json_get_string(mapping, path, "base_model_class", &class));
	snprintf(out->architecture, sizeof out->architecture, "%s", class);
	return OK;
}

static enum status find_base(const char *folder, const char *path, const char *name, struct adapter_config *out)
{
	char place[PATH_BYTES];
	bool found = file_exists(name);
	if (snprintf(place, sizeof place, "%s", name) >= PATH_BYTES)
		return error_set(ERR_DATA, "'%s': \"base_model_name_or_path\" is too long", path);
	if (!found && name[0] != '/') {
		TRY(path_join(place, folder, name));
		found = file_exists(place);
	}
	if (!found && hub_is_name(name))
		TRY(hub_find(name, place, &found));
	if (!found)
		return error_hinted(error_set(ERR_USAGE, "'%s': the adapter's base model '%.200s' is not there", path, name),
				    "%s%.200s%sput it there, or set \"base_model_name_or_path\" to where it is",
				    hub_is_name(name) ? "`bertc download " HUB_PREFIX : "", hub_is_name(name) ? name : "",
				    hub_is_name(name) ? "` fetches it; " : "");
	TRY(weights_file_find(place, out->base));
	return OK;
}

static bool is_adapter(const char *weights)
{
	return strncmp(path_name(weights), "adapter_model.", strlen("adapter_model.")) == 0;
}

enum status adapter_config_read(struct adapter_config *out, const char *weights)
{
	char folder[PATH_BYTES], path[PATH_BYTES];
	struct json_document document;
	const char *base = "";
	enum status status;
	*out = (struct adapter_config){.base = "", .alpha = 8}; /* peft's default */
	if (!is_adapter(weights))
		return OK;
	path_folder(folder, weights);
	TRY(path_join(path, folder, ADAPTER_CONFIG_FILE));
	TRY(manifest_verify_file(path));
	TRY(json_read(&document, path, CONFIG_LIMIT));
	TRY_GOTO(check_kind(document.root, path), done);
	TRY_GOTO(read_architecture(document.root, path, out), done);
	TRY_GOTO(json_get_number(document.root, path, "lora_alpha", &out->alpha), done);
	TRY_GOTO(json_get_bool(document.root, path, "use_rslora", &out->rank_stabilized), done);
	TRY_GOTO(json_get_string(document.root, path, "base_model_name_or_path", &base), done);
	if (!*base)
		TRY_GOTO(error_hinted(error_set(ERR_DATA, "'%s': \"base_model_name_or_path\" is missing", path),
				      "set it to the model that the adapter was trained on"),
			 done);
	TRY_GOTO(find_base(folder, path, base, out), done);
	if (is_adapter(out->base))
		status = error_hinted(error_set(ERR_USAGE, "'%s': the adapter's base '%s' is an adapter itself", path, base),
				      "merge that one into its own base first: bertc export --to transformers");
done:
	json_release(&document);
	return status;
}

/* ---- The tensors ---- */

bool adapter_replaces(const struct stored_tensor *tensor)
{
	return !strstr(tensor->name, ".lora_");
}

static enum status add_addition(struct adapter *adapter, const struct stored_tensor *a, int64_t *capacity)
{
	char name[512];
	int stem = (int)(strlen(a->name) - strlen(END_OF_A));
	snprintf(name, sizeof name, "%.*s" END_OF_B, stem, a->name);
	const struct stored_tensor *b = weights_file_tensor(&adapter->file, name);
	if (!b)
		return error_set(ERR_DATA, "'%s': tensor '%.200s' has no '%.200s' beside it", a->path, a->name, name);
	TRY(memory_grow(&adapter->additions, capacity, adapter->addition_count + 1, sizeof *adapter->additions, "an adapter"));
	snprintf(name, sizeof name, "%.*s.weight", stem, a->name);
	struct adapter_addition *addition = &adapter->additions[adapter->addition_count++];
	*addition = (struct adapter_addition){.a = a, .b = b};
	snprintf(addition->name, sizeof addition->name, "%.200s", tensor_name_from(name).name);
	return OK;
}

/* transformers would leave such weights alone, and load the adapter and the base that it names. */
static enum status tell_adapter_beside(const char *weights)
{
	char adapter[PATH_BYTES];
	TRY(path_beside(adapter, weights, ADAPTER_WEIGHTS_FILE));
	if (file_exists(adapter))
		log_warning_once("'%s' is used without the adapter beside it, '" ADAPTER_WEIGHTS_FILE "'", weights);
	return OK;
}

enum status adapter_open(struct adapter *out, const char *weights)
{
	int64_t capacity = 0;
	TRY(adapter_config_read(&out->config, weights));
	if (!out->config.base[0])
		return tell_adapter_beside(weights);
	TRY(manifest_verify_file(weights));
	TRY(weights_file_open(&out->file, weights));
	if (out->file.count == 0)
		return error_set(ERR_DATA, "'%s': the adapter has no tensors", weights);
	for (int64_t i = 0; i < out->file.count; i++) { /* they stay sorted */
		struct stored_tensor *tensor = &out->file.tensors[i];
		if (strncmp(tensor->name, ADAPTER_PREFIX, strlen(ADAPTER_PREFIX)) != 0)
			return error_set(ERR_DATA, "'%s': the name of tensor '%.200s' does not begin with '" ADAPTER_PREFIX "'",
					 weights, tensor->name);
		tensor->name += strlen(ADAPTER_PREFIX);
	}
	for (int64_t i = 0; i < out->file.count; i++) {
		const struct stored_tensor *tensor = &out->file.tensors[i];
		if (text_ends_with(tensor->name, END_OF_A))
			TRY(add_addition(out, tensor, &capacity));
		else if (!adapter_replaces(tensor) && !text_ends_with(tensor->name, END_OF_B))
			return error_set(ERR_USAGE, "'%s': bertc does not know what tensor '%.200s' of an adapter is for",
					 tensor->path, tensor->name);
	}
	return OK;
}

void adapter_close(struct adapter *adapter)
{
	weights_file_close(&adapter->file);
	free(adapter->additions);
	*adapter = (struct adapter){.additions = NULL};
}

bool adapter_names(const struct adapter_addition *addition, const char *form)
{
	const char *name = addition->a->name;
	size_t size = strlen(name) - strlen(END_OF_A), all = strlen(form) - strlen(".weight");
	return size <= all && strncmp(form + all - size, name, size) == 0;
}

const struct adapter_addition *adapter_find(const struct adapter *adapter, const char *name)
{
	for (int64_t i = 0; i < adapter->addition_count; i++)
		if (strcmp(adapter->additions[i].name, name) == 0)
			return &adapter->additions[i];
	return NULL;
}

static enum status wrong_shape(const struct adapter_addition *addition, int64_t rows, int64_t columns)
{
	char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
	shape_text(a, addition->a->rank, addition->a->shape);
	shape_text(b, addition->b->rank, addition->b->shape);
	return error_hinted(error_set(ERR_STATE,
				      "'%s': '%.200s' has shape %s and lora_B %s, which do not make an addition to '%s' of the "
				      "base, (%lld, %lld)",
				      addition->a->path, addition->a->name, a, b, addition->name, (long long)rows,
				      (long long)columns),
			    "the adapter was trained on another base model");
}

/* Reads `count` numbers as doubles, after them into `room`. */
static enum status read_doubles(const struct stored_tensor *tensor, float *room, double *out)
{
	TRY(stored_tensor_verify(tensor));
	TRY(stored_tensor_read(tensor, 0, tensor->count, room));
	for (int64_t i = 0; i < tensor->count; i++)
		out[i] = room[i];
	return OK;
}

enum status adapter_add(const struct adapter *adapter, const struct adapter_addition *addition, int64_t rows, int64_t columns,
			float *values)
{
	const struct stored_tensor *a = addition->a, *b = addition->b;
	int64_t rank = a->shape[0];
	if (a->rank != 2 || b->rank != 2 || rank < 1 || b->shape[1] != rank || a->shape[1] != columns || b->shape[0] != rows)
		return wrong_shape(addition, rows, columns);
	const struct low_rank low_rank = {
		.rank = (int32_t)rank, .alpha = adapter->config.alpha, .rank_stabilized = adapter->config.rank_stabilized};
	double *numbers = NULL, *sum;
	float *room = NULL;
	enum status status;
	TRY_GOTO(memory_new(&numbers, rows * columns + a->count + b->count, sizeof *numbers, "an adapter"), done);
	TRY_GOTO(memory_new(&room, a->count + b->count, sizeof *room, "an adapter"), done);
	sum = numbers + a->count + b->count;
	TRY_GOTO(read_doubles(a, room, numbers), done);
	TRY_GOTO(read_doubles(b, room, numbers + a->count), done);
	for (int64_t i = 0; i < rows * columns; i++)
		sum[i] = values[i];
	low_rank_add(sum, numbers, numbers + a->count, rows, columns, rank, low_rank_scale(&low_rank));
	for (int64_t i = 0; i < rows * columns; i++)
		values[i] = (float)sum[i];
done:
	free(numbers);
	free(room);
	return status;
}

/* ---- The base ---- */

uint64_t adapter_base_hash(const struct weights_file *base)
{
	uint64_t hash = 0;
	for (int64_t i = 0; i < base->count; i++) {
		const struct stored_tensor *tensor = &base->tensors[i];
		hash = hash64_combine(hash, hash64(tensor->name, strlen(tensor->name)));
		hash = hash64_combine(hash, hash64(tensor->shape, (size_t)tensor->rank * sizeof *tensor->shape));
		if (stored_tensor_is_packed(tensor))
			hash = hash64_combine(hash,
					      hash64(tensor->data, (size_t)(tensor->count * dtype_element_bytes(tensor->dtype))));
	}
	return hash;
}

enum status adapter_check_base(const struct adapter *adapter, const struct weights_file *base)
{
	for (int64_t i = 0; i < adapter->file.notes.count; i++) {
		const char *note = adapter->file.notes.names[i];
		if (strncmp(note, ADAPTER_BASE_HASH, strlen(ADAPTER_BASE_HASH)) != 0 ||
		    strtoull(note + strlen(ADAPTER_BASE_HASH), NULL, 16) == adapter_base_hash(base))
			continue;
		return error_hinted(error_set(ERR_STATE, "'%s': the adapter was trained on another base model than '%s'",
					      adapter->file.tensors[0].path, adapter->config.base),
				    "set \"base_model_name_or_path\" in " ADAPTER_CONFIG_FILE
				    " to the model that it was trained on");
	}
	return OK;
}
