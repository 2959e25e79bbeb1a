/* Reads the task from config.json, and writes sizes and task as transformers does. */
#include "weights/config_file.h"

#include <math.h>
#include <stdatomic.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/string_index.h"
#include "base/text.h"
#include "model/forms.h"

#define COUNT(array) (sizeof array / sizeof((array)[0]))

/* The number of classes that transformers assumes if config.json does not mention them. */
#define DEFAULT_LABELS 2
#define LABEL_LIMIT (1 << 20)

static const char *const problem_types[] = {"regression", "single_label_classification", "multi_label_classification"};

/* ---- Reading ---- */

static enum status copy_text(char **out, const char *text)
{
	size_t size = strlen(text) + 1;
	TRY(memory_new(out, (int64_t)size, 1, "text of a configuration"));
	memcpy(*out, text, size);
	return OK;
}

/* How our names of transformers' classes begin, whatever the form. */
#define OUR_CLASSES "Bert"

/* The row for a configuration. What model_config_from_json() refuses is read like BERT's here. */
static const struct model_form *form_of(const struct json *object)
{
	const struct json *type = json_member(object, "model_type");
	const struct model_form *form;
	for (int32_t i = 0; type && type->kind == JSON_STRING && (form = model_form_at(i)); i++)
		if (strcmp(form->model_type, type->text) == 0)
			return form;
	return model_form_at(0);
}

/* The name that a class has for BERT. A class for pre-training has heads that only some forms share. */
static enum status copy_architecture(char **out, const struct model_form *form, const char *text)
{
	size_t prefix = strlen(form->classes);
	const char *rest = strncmp(text, form->classes, prefix) == 0 ? text + prefix : "";
	bool ours = (strncmp(rest, "For", 3) == 0 || strcmp(rest, "Model") == 0) &&
		    (form->has_next_sentence || strcmp(rest, "ForPreTraining") != 0);
	TRY(memory_new(out, (int64_t)(strlen(text) + sizeof OUR_CLASSES), 1, "text of a configuration"));
	snprintf(*out, strlen(text) + sizeof OUR_CLASSES, "%s%s", ours ? OUR_CLASSES : "", ours ? rest : text);
	return OK;
}

static enum status read_architecture(const struct json *object, const char *name, struct task_config *out)
{
	const struct json *list = json_member(object, "architectures");
	if (!list || list->kind == JSON_NULL || (list->kind == JSON_ARRAY && list->child_count == 0))
		return OK;
	if (list->kind != JSON_ARRAY || list->first_child->kind != JSON_STRING)
		return error_set(ERR_DATA, "'%s': \"architectures\" is not a list of names", name);
	return copy_architecture(&out->architecture, form_of(object), list->first_child->text);
}

static enum status read_problem_type(const struct json *object, const char *name, struct task_config *out)
{
	const struct json *type = json_member(object, "problem_type");
	const char *text = NULL;
	if (!type || type->kind == JSON_NULL)
		return OK;
	TRY(json_get_string(object, name, "problem_type", &text));
	for (size_t i = 0; i < COUNT(problem_types); i++)
		if (strcmp(problem_types[i], text) == 0)
			return copy_text(&out->problem_type, text);
	return error_hinted(error_set(ERR_DATA, "'%s': \"problem_type\" is \"%.100s\"", name, text),
			    "it must be \"regression\", \"single_label_classification\", or \"multi_label_classification\"");
}

/* "12" -> 12; -1 for anything that is not a number in its usual form. */
static int64_t class_number(const char *text)
{
	char again[24], *end;
	int64_t number = strtoll(text, &end, 10);
	snprintf(again, sizeof again, "%" PRId64, number);
	return number >= 0 && strcmp(again, text) == 0 ? number : -1;
}

/* Sets the name of a class; `names` is the member it came from. */
static enum status put_label(struct task_config *out, const char *name, const struct json *names, int64_t number,
			     const char *label)
{
	if (number < 0 || number >= names->child_count || out->labels[number])
		return error_set(ERR_DATA, "'%s': \"%s\": the classes are not numbered 0 to %" PRId64 ": see \"%.100s\"", name,
				 names->key, names->child_count - 1, label);
	return copy_text(&out->labels[number], label);
}

/* An answer could not tell classes of one name apart. */
static enum status refuse_doubles(const struct json *names, const char *name)
{
	struct string_index index = {0};
	enum status status = OK;
	int64_t id, number = 0;
	for (const struct json *row = names->first_child; row && status == OK; row = row->next, number++) {
		if (row->kind != JSON_STRING && row->kind != JSON_NUMBER)
			continue;
		status = string_index_add(&index, row->text, number, &id);
		if (status == OK && id != number)
			status = error_set(ERR_DATA, "'%s': \"id2label\": two classes have the name \"%.100s\"", name, row->text);
	}
	string_index_release(&index);
	return status;
}

/* {"0": "NEGATIVE", "1": "POSITIVE"}. Names that are JSON numbers are used as written. */
static enum status read_id2label(const struct json *names, const char *name, struct task_config *out)
{
	TRY(refuse_doubles(names, name));
	for (const struct json *row = names->first_child; row; row = row->next) {
		if (row->kind != JSON_STRING && row->kind != JSON_NUMBER)
			return error_set(ERR_DATA, "'%s': \"id2label\": class \"%.100s\" has no name", name, row->key);
		if (strlen(row->text) != row->text_size)
			return error_set(ERR_DATA, "'%s': \"id2label\": the name of class \"%.100s\" holds a NUL", name,
					 row->key);
		TRY(put_label(out, name, names, class_number(row->key), row->text));
	}
	return OK;
}

/* {"NEGATIVE": 0, "POSITIVE": 1} */
static enum status read_label2id(const struct json *names, const char *name, struct task_config *out)
{
	for (const struct json *row = names->first_child; row; row = row->next) {
		if (row->kind != JSON_NUMBER || !row->is_integer)
			return error_set(ERR_DATA, "'%s': \"label2id\": \"%.100s\" has no number", name, row->key);
		TRY(put_label(out, name, names, row->integer, row->key));
	}
	return OK;
}

/* Reads the names of the classes. "label2id" is used only if "id2label" is missing: published files often change just one of the
 * two, and transformers answers with the names in "id2label". */
static enum status read_labels(const struct json *object, const char *name, struct task_config *out)
{
	const struct json *forward = json_member(object, "id2label"), *back = json_member(object, "label2id");
	const struct json *names = forward && forward->kind != JSON_NULL ? forward : back;
	int64_t count = DEFAULT_LABELS;
	TRY(json_get_integer(object, name, "num_labels", 0, LABEL_LIMIT, &count));
	out->label_count = count > 0 ? (int32_t)count : DEFAULT_LABELS; /* 0 in files of encoders without a head */
	if (!names || names->kind == JSON_NULL)
		return OK;
	if (names->kind != JSON_OBJECT || names->child_count == 0 || names->child_count > LABEL_LIMIT)
		return error_set(ERR_DATA, "'%s': \"%s\" is not an object with a member for each class", name, names->key);
	out->label_count = (int32_t)names->child_count;
	TRY(memory_new(&out->labels, out->label_count, sizeof *out->labels, "labels"));
	return names == forward ? read_id2label(names, name, out) : read_label2id(names, name, out);
}

static enum status read_dropout(const struct json *object, const char *name, struct task_config *out)
{
	const char *key = form_of(object)->keys->classifier_dropout;
	const struct json *dropout = json_member(object, key);
	out->classifier_dropout = -1;
	if (!dropout || dropout->kind == JSON_NULL)
		return OK;
	TRY(json_get_number(object, name, key, &out->classifier_dropout));
	if (!(out->classifier_dropout >= 0 && out->classifier_dropout < 1))
		return error_set(ERR_DATA, "'%s': \"%s\" is %g; it must be at least 0 and below 1", name, key,
				 out->classifier_dropout);
	return OK;
}

enum status task_config_read_activation(struct task_config *task, const struct json *object, const char *name, const char *member)
{
	const struct json *said = json_member(object, member);
	const char *text = NULL;
	if (task->label_count != 1 || !said || said->kind == JSON_NULL)
		return OK;
	TRY(json_get_string(object, name, member, &text));
	const char *dot = strrchr(text, '.'), *class = dot ? dot + 1 : text;
	bool is_torch = strncmp(text, "torch.", 6) == 0, is_sigmoid = strcmp(class, "Sigmoid") == 0;
	if (!is_torch)
		log_warning("'%s': \"%s\" is \"%.80s\", which is not PyTorch's: scores are the sigmoid of the output", name,
			    member, text);
	else if (!is_sigmoid && strcmp(class, "Identity") != 0)
		return error_set(ERR_DATA, "'%s': \"%s\" is \"%.80s\"; bertc has Identity and Sigmoid", name, member, text);
	task->scores_are_outputs = is_torch && !is_sigmoid;
	return OK;
}

static enum status read_activation(const struct json *object, const char *name, struct task_config *out)
{
	const struct json *own = json_member(object, "sentence_transformers");
	if (own && own->kind == JSON_OBJECT && json_member(own, "activation_fn"))
		return task_config_read_activation(out, own, name, "activation_fn");
	return task_config_read_activation(out, object, name, "sbert_ce_default_activation_function");
}

/* Members of any config.json that bertc obeys, besides those whose names differ between forms. */
static const char obeyed[] =
	" add_cross_attention architectures id2label initializer_range is_decoder label2id "
	"max_position_embeddings model_type next_sentence num_labels pad_token_id position_embedding_type problem_type "
	"sbert_ce_default_activation_function sentence_transformers tie_word_embeddings vocab_size ";
/* Members that change no answer: how transformers computes, stores, trains, and generates, and what Google's files say of a
 * pooler that was never built. */
static const char ignored[] =
	" _attn_implementation _attn_implementation_autoset _attn_implementation_internal _commit_hash _name_or_path _num_labels "
	"attn_implementation bad_words_ids begin_suppress_tokens bos_token_id chunk_size_feed_forward cls_token_id "
	"cross_attention_hidden_size decoder_start_token_id deterministic_flash_attn directionality diversity_penalty do_sample "
	"dtype early_stopping encoder_no_repeat_ngram_size eos_token_id eos_token_ids exponential_decay_length_penalty "
	"experts_implementation finetuning_task forced_bos_token_id forced_eos_token_id gradient_checkpointing "
	"initializer_cutoff_factor is_encoder_decoder language length_penalty mask_token_id max_length min_length name "
	"no_repeat_ngram_size num_beam_groups num_beams num_return_sequences output_attentions output_hidden_states output_past "
	"output_scores pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type prefix "
	"reference_compile remove_invalid_values repad_logits_with_grad repetition_penalty return_dict return_dict_in_generate "
	"sep_token_id sinusoidal_pos_embds sparse_pred_ignore_index sparse_prediction suppress_tokens task_specific_params "
	"temperature tf_legacy_loss tie_encoder_decoder tie_weights_ tokenizer_class top_k top_p torch_dtype torchscript "
	"transformers_version typical_p unk_token_id use_bfloat16 use_cache xla_device ";

static bool is_listed(const char *names, const char *name)
{
	size_t size = strlen(name);
	for (const char *at = names ? names + 1 : NULL; at && size > 0 && (at = strstr(at, name)); at += size)
		if (at[-1] == ' ' && at[size] == ' ')
			return true;
	return false;
}

void config_file_warn_unknown(const struct json *object, const char *name)
{
	static _Atomic uint32_t warned; /* a command reads a file several times */
	const struct model_form *form = form_of(object);
	struct buffer unknown = {0};
	for (const struct json *member = object->first_child; member; member = member->next) {
		bool known = member->kind == JSON_NULL || is_listed(obeyed, member->key) || is_listed(ignored, member->key) ||
			     is_listed(form->members, member->key);
		const char *const *keys = (const char *const *)form->keys;
		for (size_t i = 0; i < sizeof *form->keys / sizeof *keys && !known; i++)
			known = keys[i] && strcmp(keys[i], member->key) == 0;
		bool empty = (member->kind == JSON_ARRAY || member->kind == JSON_OBJECT) && member->child_count == 0;
		if (!known && !empty)
			buffer_format(&unknown, "%s\"%.60s\"", unknown.size > 0 ? ", " : "", member->key);
	}
	uint32_t checksum = crc32c(crc32c(0, name, strlen(name)), buffer_string(&unknown), unknown.size);
	if (unknown.size > 0 && atomic_exchange(&warned, checksum) != checksum)
		log_warning_once("'%s': bertc does not know %s, and ignores it", name, buffer_string(&unknown));
	buffer_release(&unknown);
}

enum status task_config_from_json(struct task_config *out, const struct json *object, const char *name)
{
	enum status status;
	*out = (struct task_config){.classifier_dropout = -1};
	if (object->kind != JSON_OBJECT)
		return error_set(ERR_DATA, "'%s': not a JSON object, so not a model configuration", name);
	TRY_GOTO(read_architecture(object, name, out), failed);
	TRY_GOTO(read_problem_type(object, name, out), failed);
	TRY_GOTO(read_labels(object, name, out), failed);
	TRY_GOTO(read_dropout(object, name, out), failed);
	TRY_GOTO(read_activation(object, name, out), failed);
	return OK;
failed:
	task_config_release(out);
	return status;
}

enum status task_config_make(struct task_config *out, const char *architecture, const char *problem_type,
			     const char *const *labels, int32_t label_count)
{
	enum status status;
	*out = (struct task_config){.label_count = label_count, .classifier_dropout = -1};
	if (architecture)
		TRY_GOTO(copy_text(&out->architecture, architecture), failed);
	if (problem_type)
		TRY_GOTO(copy_text(&out->problem_type, problem_type), failed);
	if (labels)
		TRY_GOTO(memory_new(&out->labels, label_count, sizeof *out->labels, "labels"), failed);
	for (int32_t i = 0; labels && i < label_count; i++)
		TRY_GOTO(copy_text(&out->labels[i], labels[i]), failed);
	return OK;
failed:
	task_config_release(out);
	return status;
}

int32_t task_config_outputs(const struct task_config *task)
{
	return task->architecture && strcmp(task->architecture, "BertForMultipleChoice") == 0 ? 1 : task->label_count;
}

enum status task_config_name_labels(struct task_config *task)
{
	char name[32];
	enum status status;
	if (task->labels)
		return OK;
	TRY(memory_new(&task->labels, task->label_count, sizeof *task->labels, "labels"));
	for (int32_t i = 0; i < task->label_count; i++) {
		snprintf(name, sizeof name, "LABEL_%" PRId32, i);
		TRY_GOTO(copy_text(&task->labels[i], name), failed);
	}
	return OK;
failed:
	task_config_release(task);
	return status;
}

enum status task_config_take_class(struct task_config *task, const char *name)
{
	const struct model_form *form, *of = model_form_at(0);
	for (int32_t i = 0; (form = model_form_at(i)); i++)
		if (strncmp(name, form->classes, strlen(form->classes)) == 0)
			of = form;
	free(task->architecture);
	task->architecture = NULL;
	return copy_architecture(&task->architecture, of, name);
}

static void release_labels(struct task_config *task)
{
	for (int32_t i = 0; task->labels && i < task->label_count; i++)
		free(task->labels[i]);
	free(task->labels);
	task->labels = NULL;
}

void task_config_resize(struct task_config *task, int32_t outputs)
{
	if (outputs == task->label_count)
		return;
	release_labels(task);
	task->label_count = outputs;
}

void task_config_release(struct task_config *task)
{
	release_labels(task);
	free(task->architecture);
	free(task->problem_type);
	free(task->record);
	*task = (struct task_config){.classifier_dropout = -1};
}

int32_t task_config_find_label(const struct task_config *task, const char *label)
{
	for (int32_t i = 0; task->labels && i < task->label_count; i++)
		if (strcmp(task->labels[i], label) == 0)
			return i;
	return -1;
}

bool task_config_rows(const struct task_config *task, const char *const *labels, int32_t count, int32_t *rows)
{
	if (!task->labels || task->label_count != count)
		return false;
	for (int32_t i = 0; i < count; i++) {
		rows[i] = task_config_find_label(task, labels[i]);
		/* A duplicate name would leave a class of the folder without a counterpart. */
		for (int32_t k = 0; k < i; k++)
			if (rows[k] == rows[i])
				return false;
		if (rows[i] < 0)
			return false;
	}
	return true;
}

/* ---- Writing ---- */

static const char *label_of(const struct task_config *task, int32_t number, char out[32])
{
	if (task->labels)
		return task->labels[number];
	snprintf(out, 32, "LABEL_%" PRId32, number);
	return out;
}

static void put_id2label(struct json_writer *writer, const struct task_config *task)
{
	char number[32], label[32];
	json_open(writer, "id2label", '{');
	for (int32_t i = 0; i < task->label_count; i++) {
		snprintf(number, sizeof number, "%" PRId32, i);
		json_put_string(writer, number, label_of(task, i, label));
	}
	json_close(writer);
}

static void put_label2id(struct json_writer *writer, const struct task_config *task)
{
	char label[32];
	json_open(writer, "label2id", '{');
	for (int32_t i = 0; i < task->label_count; i++)
		if (!task->labels || task_config_find_label(task, task->labels[i]) == i) /* keys must be unique */
			json_put_integer(writer, label_of(task, i, label), i);
	json_close(writer);
}

/* Fields that a form may lack: then the key is NULL. */
static void put_double(struct json_writer *writer, const char *key, double value)
{
	if (key)
		json_put_double(writer, key, value);
}

static void put_integer(struct json_writer *writer, const char *key, int64_t value)
{
	if (key)
		json_put_integer(writer, key, value);
}

static const char *architecture_of(const struct model_config *config, const struct task_config *task)
{
	return task && task->architecture ? task->architecture : model_heads_of_words(config)->architecture;
}

static void put_architecture(struct json_writer *writer, const struct model_config *config, const char *ours)
{
	char name[128];
	size_t prefix = strlen(OUR_CLASSES);
	bool is_ours = strncmp(ours, OUR_CLASSES, prefix) == 0;
	snprintf(name, sizeof name, "%s%s", is_ours ? model_form_of(config)->classes : "", ours + (is_ours ? prefix : 0));
	json_put_string(writer, NULL, name);
}

void config_file_put(struct json_writer *writer, const struct model_config *config, const struct task_config *task)
{
	/* Outputs that are not classes may be many, and transformers would invent a name for each: "num_labels" is enough for
	 * them. */
	bool is_counted = task && !task->labels && task->label_count > 2;
	bool has_labels = task && task->label_count > 0 && !is_counted;
	const struct model_form *form = model_form_of(config);
	const struct config_keys *keys = form->keys;
	json_open(writer, NULL, '{');
	json_open(writer, "architectures", '[');
	const char *architecture = architecture_of(config, task);
	put_architecture(writer, config, architecture);
	json_close(writer);
	put_double(writer, keys->attention_dropout, model_config_saved_dropout(config, true));
	double dropout = task && task->classifier_dropout >= 0 ? task->classifier_dropout : config->classifier_dropout;
	if (isfinite(dropout))
		json_put_double(writer, keys->classifier_dropout, dropout);
	else
		json_put_null(writer, keys->classifier_dropout);
	json_put_string(writer, keys->activation, model_activation_name(config->hidden_act));
	put_double(writer, keys->hidden_dropout, model_config_saved_dropout(config, false));
	put_integer(writer, keys->hidden_size, config->hidden_size);
	if (has_labels)
		put_id2label(writer, task);
	json_put_double(writer, "initializer_range", config->initializer_range);
	put_integer(writer, keys->intermediate_size, config->intermediate_size);
	if (has_labels)
		put_label2id(writer, task);
	put_double(writer, keys->layer_norm_eps, config->layer_norm_eps);
	json_put_integer(writer, "max_position_embeddings", config->max_position_embeddings);
	json_put_string(writer, "model_type", form->model_type);
	put_integer(writer, keys->heads, config->num_attention_heads);
	put_integer(writer, keys->layers, config->num_hidden_layers);
	if (form->has_next_sentence && config->next_sentence[0] && text_ends_with(architecture, "ForPreTraining"))
		json_put_string(writer, "next_sentence", config->next_sentence);
	if (is_counted)
		json_put_integer(writer, "num_labels", task->label_count);
	json_put_integer(writer, "pad_token_id", config->pad_token_id);
	if (form->positions == POSITIONS_LEARNED)
		json_put_string(writer, "position_embedding_type", "absolute");
	if (task && task->problem_type)
		json_put_string(writer, "problem_type", task->problem_type);
	if (task && task->scores_are_outputs) {
		json_open(writer, "sentence_transformers", '{');
		json_put_string(writer, "activation_fn", "torch.nn.modules.linear.Identity");
		json_close(writer);
	}
	json_put_bool(writer, "tie_word_embeddings", !config->untied);
	json_put_string(writer, "torch_dtype", "float32");
	put_integer(writer, keys->types, config->type_vocab_size);
	json_put_integer(writer, "vocab_size", config->vocab_size);
	put_integer(writer, keys->begin_id, config->bos_token_id);
	put_integer(writer, keys->end_id, config->eos_token_id);
	put_integer(writer, keys->embedding_size, config->embedding_size);
	put_double(writer, keys->embedding_dropout, config->embedding_dropout);
	put_double(writer, keys->span_dropout, config->span_dropout);
	put_double(writer, keys->choice_dropout, config->choice_dropout);
	if (form->write)
		form->write(config, writer);
	json_close(writer);
}
