/* Reads a model's sizes from config.json or by a published name, and refuses variants of BERT that compute something else.
 * */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "model/forms.h"

#define HEAD_COLUMNS 64

/* Google's published sizes; all have heads of 64 columns and a feed-forward part four times the hidden size. */
static const struct {
	const char *name;
	int32_t layers, hidden;
} named_sizes[] = {
	{"tiny", 2, 128}, {"mini", 4, 256}, {"small", 4, 512}, {"medium", 8, 512}, {"base", 12, 768}, {"large", 24, 1024},
};

/* Hugging Face's values of `hidden_act`; of several for one function, the first is written. In Google's files, "gelu" means the
 * tanh form. */
static const struct {
	const char *name;
	enum activation activation;
} activations[] = {
	{"gelu", ACTIVATION_GELU_ERF},
	{"gelu_python", ACTIVATION_GELU_ERF},
	{"gelu_new", ACTIVATION_GELU_TANH},
	{"gelu_pytorch_tanh", ACTIVATION_GELU_TANH},
	{"gelu_fast", ACTIVATION_GELU_TANH},
	{"gelu_accurate", ACTIVATION_GELU_TANH},
	{"gelu_python_tanh", ACTIVATION_GELU_TANH},
	{"relu", ACTIVATION_RELU},
	{"silu", ACTIVATION_SILU},
	{"swish", ACTIVATION_SILU},
};

#define COUNT(array) ((int)(sizeof array / sizeof((array)[0])))

double model_config_saved_dropout(const struct model_config *config, bool attention_probs)
{
	if (config->saved_dropout.set)
		return attention_probs ? config->saved_dropout.attention_probs : config->saved_dropout.hidden;
	return attention_probs ? config->attention_probs_dropout_prob : config->hidden_dropout_prob;
}

const char *model_size_name(int index)
{
	return index < COUNT(named_sizes) ? named_sizes[index].name : NULL;
}

enum status model_config_named(struct model_config *out, const char *name)
{
	for (int i = 0; i < COUNT(named_sizes); i++) {
		if (strcmp(named_sizes[i].name, name) != 0)
			continue;
		*out = *model_form_at(0)->defaults;
		out->num_hidden_layers = named_sizes[i].layers;
		out->hidden_size = named_sizes[i].hidden;
		out->num_attention_heads = named_sizes[i].hidden / HEAD_COLUMNS;
		out->intermediate_size = 4 * named_sizes[i].hidden;
		return OK;
	}
	return error_hinted(error_set(ERR_USAGE, "'%s' is not a model size", name),
			    "sizes are " MODEL_SIZES(", ") "; or give a config.json or a model folder");
}

/* The key of a field that may also be null, which means its default. */
static const char *unless_null(const struct json *object, const char *key)
{
	const struct json *member = key ? json_member(object, key) : NULL;
	return member && member->kind != JSON_NULL ? key : NULL;
}

/* A form may lack a field: then `key` is NULL. */
static enum status get_int32(const struct json *object, const char *name, const char *key, int64_t min, int64_t max, int32_t *out)
{
	int64_t value = *out;
	if (!key)
		return OK;
	TRY(json_get_integer(object, name, key, min, max, &value));
	*out = (int32_t)value;
	return OK;
}

static enum status get_number(const struct json *object, const char *name, const char *key, double min, double end, double *out)
{
	if (!key)
		return OK;
	TRY(json_get_number(object, name, key, out));
	if (!(*out >= min && *out < end))
		return error_set(ERR_DATA, "'%s': \"%s\" is %g; it must be at least %g and below %g", name, key, *out, min, end);
	return OK;
}

static enum status get_activation(const struct json *object, const char *name, const char *key, bool google, enum activation *out)
{
	const char *text = model_activation_name(*out);
	TRY(json_get_string(object, name, key, &text));
	for (int i = 0; i < COUNT(activations); i++) {
		if (strcmp(activations[i].name, text) != 0)
			continue;
		*out = activations[i].activation;
		if (google && *out == ACTIVATION_GELU_ERF)
			*out = ACTIVATION_GELU_TANH;
		return OK;
	}
	return error_hinted(error_set(ERR_USAGE, "'%s': \"%s\" is \"%s\", which bertc does not have", name, key, text),
			    "\"gelu\" (erf), \"gelu_new\" (tanh), \"relu\", and \"silu\" are known");
}

const char *model_activation_name(enum activation activation)
{
	int i = 0;
	while (activations[i].activation != activation)
		i++;
	return activations[i].name;
}

/* Refuses variants of BERT whose files look alike but which compute something else. */
static enum status refuse_variants(const struct model_form *form, const struct json *object, const char *name)
{
	static const struct {
		const char *key, *usual;
	} texts[] = {{"position_embedding_type", "absolute"}, {"summary_type", "first"}, {"summary_activation", "gelu"}};
	bool decoder = false, cross = false;
	/* how a text is summarized: read by ELECTRA, left over from another program in NomicBERT's files */
	for (int i = 0; i < (form->keys->embedding_size ? COUNT(texts) : 1); i++) {
		const char *text = texts[i].usual;
		TRY(json_get_string(object, name, texts[i].key, &text));
		if (strcmp(text, texts[i].usual) != 0)
			return error_set(ERR_USAGE, "'%s': \"%s\" is \"%s\"; bertc has \"%s\"", name, texts[i].key, text,
					 texts[i].usual);
	}
	TRY(json_get_bool(object, name, "is_decoder", &decoder));
	TRY(json_get_bool(object, name, "add_cross_attention", &cross));
	if (decoder || cross)
		return error_set(ERR_USAGE, "'%s': \"%s\" is true; bertc trains encoders", name,
				 decoder ? "is_decoder" : "add_cross_attention");
	return OK;
}

/* Sizes that do not go together. */
static enum status check_sizes(const struct model_config *config, const char *name)
{
	const struct config_keys *keys = model_form_of(config)->keys;
	if (config->hidden_size % config->num_attention_heads != 0)
		return error_set(ERR_DATA, "'%s': \"%s\" %d is not a multiple of \"%s\" %d", name, keys->hidden_size,
				 config->hidden_size, keys->heads, config->num_attention_heads);
	if (config->vocab_size > 0 && config->pad_token_id >= config->vocab_size)
		return error_set(ERR_DATA, "'%s': \"pad_token_id\" is %d, beyond the %d entries of \"vocab_size\"", name,
				 config->pad_token_id, config->vocab_size);
	if (model_positions(config) < 1)
		return error_set(ERR_DATA,
				 "'%s': \"max_position_embeddings\" is %d, but positions begin after \"pad_token_id\" %d", name,
				 config->max_position_embeddings, config->pad_token_id);
	return OK;
}

enum status model_config_from_json(struct model_config *out, const struct json *object, const char *name)
{
	const char *model_type = "bert";
	int32_t form;
	if (object->kind != JSON_OBJECT)
		return error_set(ERR_DATA, "'%s': not a JSON object, so not a model configuration", name);
	TRY(json_get_string(object, name, "model_type", &model_type));
	TRY(model_form_find(model_type, name, &form));
	TRY(refuse_variants(model_form_at(form), object, name));

	/* The bounds keep every product of two sizes within 64 bits; those of heads and positions come from dropout's counter. */
	struct model_config config = *model_form_at(form)->defaults;
	const struct config_keys *keys = model_form_at(form)->keys;
	config.form = form;
	TRY(get_int32(object, name, "vocab_size", 1, 1 << 24, &config.vocab_size));
	TRY(get_int32(object, name, keys->hidden_size, 1, 1 << 16, &config.hidden_size));
	const char *next_sentence = "";
	TRY(json_get_string(object, name, "next_sentence", &next_sentence));
	snprintf(config.next_sentence, sizeof config.next_sentence, "%s", next_sentence);
	TRY(get_int32(object, name, keys->layers, 1, 1024, &config.num_hidden_layers));
	TRY(get_int32(object, name, keys->heads, 1, 65535, &config.num_attention_heads));
	TRY(get_int32(object, name, keys->intermediate_size, 1, 1 << 18, &config.intermediate_size));
	TRY(get_int32(object, name, "max_position_embeddings", 1, 1 << 19, &config.max_position_embeddings));
	TRY(get_int32(object, name, keys->types, 1, 1 << 16, &config.type_vocab_size));
	TRY(get_int32(object, name, keys->embedding_size, 1, 1 << 16, &config.embedding_size));
	TRY(get_number(object, name, keys->hidden_dropout, 0, 0.999, &config.hidden_dropout_prob));
	TRY(get_number(object, name, keys->attention_dropout, 0, 0.999, &config.attention_probs_dropout_prob));
	TRY(get_number(object, name, unless_null(object, keys->classifier_dropout), 0, 0.999, &config.classifier_dropout));
	TRY(get_number(object, name, keys->embedding_dropout, 0, 0.999, &config.embedding_dropout));
	TRY(get_number(object, name, keys->span_dropout, 0, 0.999, &config.span_dropout));
	TRY(get_number(object, name, keys->choice_dropout, 0, 0.999, &config.choice_dropout));
	TRY(get_number(object, name, "initializer_range", 0, 1e3, &config.initializer_range));
	TRY(get_number(object, name, keys->layer_norm_eps, 0, 1, &config.layer_norm_eps));
	TRY(get_int32(object, name, unless_null(object, "pad_token_id"), 0, (1 << 24) - 1, &config.pad_token_id));
	TRY(get_int32(object, name, unless_null(object, keys->begin_id), 0, (1 << 24) - 1, &config.bos_token_id));
	TRY(get_int32(object, name, unless_null(object, keys->end_id), 0, (1 << 24) - 1, &config.eos_token_id));
	bool tied = true;
	TRY(json_get_bool(object, name, "tie_word_embeddings", &tied));
	config.untied = !tied;
	TRY(get_activation(object, name, keys->activation, !json_member(object, "model_type"), &config.hidden_act));
	if (model_form_at(form)->read)
		TRY(model_form_at(form)->read(&config, object, name));
	TRY(check_sizes(&config, name));
	*out = config;
	return OK;
}

enum status model_config_check_pairs(const struct model_config *config, const char *what)
{
	if (model_takes_pairs(config))
		return OK;
	return error_hinted(
		error_set(ERR_USAGE, "%s: the model has one segment type (\"type_vocab_size\"), pairs need two", what),
		"use a model with \"type_vocab_size\" 2, or single texts");
}

enum status model_config_take_form(struct model_config *config, const char *model_type, int32_t pad_token_id)
{
	const struct model_config before = *config;
	int32_t form;
	TRY(model_form_find(model_type, "--form", &form));
	const struct model_form *row = model_form_at(form);
	if (!row->has_words)
		return error_set(ERR_USAGE, "--form %s: models of this form have no masked-word head to train", model_type);
	*config = *row->defaults;
	config->form = form;
	config->hidden_size = before.hidden_size;
	config->num_hidden_layers = before.num_hidden_layers;
	config->num_attention_heads = before.num_attention_heads;
	config->intermediate_size = model_usual_intermediate(config);
	config->vocab_size = before.vocab_size;
	config->pad_token_id = pad_token_id;
	config->max_position_embeddings = before.max_position_embeddings + model_first_position(config);
	if (!row->pairs_need_types) /* as in published models */
		config->type_vocab_size = 1;
	return OK;
}

bool model_sizes_any(const struct model_sizes *sizes)
{
	return sizes->num_hidden_layers || sizes->hidden_size || sizes->num_attention_heads || sizes->intermediate_size ||
	       sizes->max_position_embeddings;
}

enum status model_config_resize(struct model_config *config, const struct model_sizes *sizes)
{
	if (sizes->hidden_size > 0) {
		config->hidden_size = (int32_t)sizes->hidden_size;
		config->intermediate_size = model_usual_intermediate(config);
		if (config->hidden_size % HEAD_COLUMNS == 0)
			config->num_attention_heads = config->hidden_size / HEAD_COLUMNS;
	}
	if (sizes->num_hidden_layers > 0)
		config->num_hidden_layers = (int32_t)sizes->num_hidden_layers;
	if (sizes->num_attention_heads > 0)
		config->num_attention_heads = (int32_t)sizes->num_attention_heads;
	if (sizes->intermediate_size > 0)
		config->intermediate_size = (int32_t)sizes->intermediate_size;
	if (sizes->max_position_embeddings > 0)
		config->max_position_embeddings = (int32_t)sizes->max_position_embeddings;
	int32_t columns = config->hidden_size / config->num_attention_heads;
	bool rotary = model_form_of(config)->positions == POSITIONS_ROTARY;
	bool divides = config->hidden_size % config->num_attention_heads == 0;
	if (divides && rotary && (columns % 2 != 0 || columns > ROTARY_LIMIT))
		return error_set(ERR_USAGE,
				 "heads of %d columns cannot be turned by rotary positions: an even number up to %d is needed",
				 columns, ROTARY_LIMIT);
	if (divides)
		return OK;
	return error_hinted(
		error_set(ERR_USAGE, "a width of %d cannot be divided among %d attention heads", config->hidden_size,
			  config->num_attention_heads),
		"choose --hidden_size and --num_attention_heads so that each head has the same number of columns; 64 is usual");
}
