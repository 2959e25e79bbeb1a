#include <math.h>
#include <string.h>
#include "model/model.h"

#define HEAD_COLUMNS 64

/* Google's published sizes; all have heads of 64 columns and a feed-forward part four times the hidden size. */
static const struct {
	const char *name;
	int32_t layers, hidden;
} named_sizes[] = {
	{"tiny", 2, 128}, {"mini", 4, 256}, {"small", 4, 512}, {"medium", 8, 512}, {"base", 12, 768}, {"large", 24, 1024},
};

/* Hugging Face's values of `hidden_act`. Google's files only have "gelu", which means the tanh form. */
static const struct {
	const char *name;
	enum activation activation;
} activations[] = {
	{"gelu", ACTIVATION_GELU_ERF},       {"gelu_python", ACTIVATION_GELU_ERF},
	{"gelu_new", ACTIVATION_GELU_TANH},  {"gelu_pytorch_tanh", ACTIVATION_GELU_TANH},
	{"gelu_fast", ACTIVATION_GELU_TANH},
};

#define COUNT(array) ((int)(sizeof array / sizeof((array)[0])))

/* BertConfig's defaults: the values of fields absent from a config.json. */
static const struct model_config defaults = {
	.hidden_size = 768,
	.num_hidden_layers = 12,
	.num_attention_heads = 12,
	.intermediate_size = 3072,
	.max_position_embeddings = 512,
	.type_vocab_size = 2,
	.hidden_act = ACTIVATION_GELU_ERF,
	.hidden_dropout_prob = 0.1,
	.attention_probs_dropout_prob = 0.1,
	.initializer_range = 0.02,
	.layer_norm_eps = 1e-12,
	.classifier_dropout = NAN,
};

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
		*out = defaults;
		out->num_hidden_layers = named_sizes[i].layers;
		out->hidden_size = named_sizes[i].hidden;
		out->num_attention_heads = named_sizes[i].hidden / HEAD_COLUMNS;
		out->intermediate_size = 4 * named_sizes[i].hidden;
		return OK;
	}
	enum status status = error_set(ERR_USAGE, "'%s' is not a model size", name);
	error_hint("sizes are " MODEL_SIZES(", ") "; a config.json or a model folder will do too");
	return status;
}

static enum status get_int32(const struct json *object, const char *name, const char *key, int64_t min, int64_t max, int32_t *out)
{
	int64_t value = *out;
	TRY(json_get_integer(object, name, key, min, max, &value));
	*out = (int32_t)value;
	return OK;
}

static enum status get_number(const struct json *object, const char *name, const char *key, double min, double end, double *out)
{
	TRY(json_get_number(object, name, key, out));
	if (!(*out >= min && *out < end))
		return error_set(ERR_DATA, "'%s': \"%s\" is %g; it must be at least %g and below %g", name, key, *out, min, end);
	return OK;
}

static enum status get_activation(const struct json *object, const char *name, bool google, enum activation *out)
{
	const char *text = "gelu";
	TRY(json_get_string(object, name, "hidden_act", &text));
	for (int i = 0; i < COUNT(activations); i++) {
		if (strcmp(activations[i].name, text) != 0)
			continue;
		*out = google ? ACTIVATION_GELU_TANH : activations[i].activation;
		return OK;
	}
	enum status status = error_set(ERR_USAGE, "'%s': \"hidden_act\" is \"%s\", which bertc does not have", name, text);
	error_hint("\"gelu\" (erf) and \"gelu_new\" (tanh) are known");
	return status;
}

/* Refuses variants of BERT whose files look alike but which compute something else. */
static enum status refuse_variants(const struct json *object, const char *name)
{
	const char *model_type = "bert", *positions = "absolute";
	bool decoder = false, cross = false;
	TRY(json_get_string(object, name, "model_type", &model_type));
	if (strcmp(model_type, "bert") != 0) {
		enum status status =
			error_set(ERR_USAGE, "'%s': \"model_type\" is \"%s\"; bertc trains \"bert\"", name, model_type);
		error_hint("bertc reads BERT models with a WordPiece vocabulary only; docs/inference.md lists well-known ones, "
			   "such as bert-base-*, all-MiniLM-L6-v2, bge-base-en-v1.5, and e5-base-v2");
		return status;
	}
	TRY(json_get_string(object, name, "position_embedding_type", &positions));
	if (strcmp(positions, "absolute") != 0)
		return error_set(ERR_USAGE, "'%s': \"position_embedding_type\" is \"%s\"; bertc has \"absolute\"", name,
				 positions);
	TRY(json_get_bool(object, name, "is_decoder", &decoder));
	TRY(json_get_bool(object, name, "add_cross_attention", &cross));
	if (decoder || cross)
		return error_set(ERR_USAGE, "'%s': \"%s\" is true; bertc trains encoders", name,
				 decoder ? "is_decoder" : "add_cross_attention");
	return OK;
}

enum status model_config_from_json(struct model_config *out, const struct json *object, const char *name)
{
	if (object->kind != JSON_OBJECT)
		return error_set(ERR_DATA, "'%s': not a JSON object, so not a model configuration", name);
	TRY(refuse_variants(object, name));

	/* The bounds keep every product of two sizes within 64 bits; those of heads and positions come from dropout's counter. */
	struct model_config config = defaults;
	TRY(get_int32(object, name, "vocab_size", 1, 1 << 24, &config.vocab_size));
	TRY(get_int32(object, name, "hidden_size", 1, 1 << 16, &config.hidden_size));
	TRY(get_int32(object, name, "num_hidden_layers", 1, 1024, &config.num_hidden_layers));
	TRY(get_int32(object, name, "num_attention_heads", 1, 65535, &config.num_attention_heads));
	TRY(get_int32(object, name, "intermediate_size", 1, 1 << 18, &config.intermediate_size));
	TRY(get_int32(object, name, "max_position_embeddings", 1, 1 << 19, &config.max_position_embeddings));
	TRY(get_int32(object, name, "type_vocab_size", 1, 1 << 16, &config.type_vocab_size));
	TRY(get_number(object, name, "hidden_dropout_prob", 0, 0.999, &config.hidden_dropout_prob));
	TRY(get_number(object, name, "attention_probs_dropout_prob", 0, 0.999, &config.attention_probs_dropout_prob));
	const struct json *dropout = json_member(object, "classifier_dropout");
	if (dropout && dropout->kind != JSON_NULL)
		TRY(get_number(object, name, "classifier_dropout", 0, 0.999, &config.classifier_dropout));
	TRY(get_number(object, name, "initializer_range", 0, 1e3, &config.initializer_range));
	TRY(get_number(object, name, "layer_norm_eps", 0, 1, &config.layer_norm_eps));
	const struct json *pad = json_member(object, "pad_token_id");
	if (pad && pad->kind != JSON_NULL)
		TRY(get_int32(object, name, "pad_token_id", 0, (1 << 24) - 1, &config.pad_token_id));
	TRY(get_activation(object, name, !json_member(object, "model_type"), &config.hidden_act));
	if (config.hidden_size % config.num_attention_heads != 0)
		return error_set(ERR_DATA, "'%s': \"hidden_size\" %d is not a multiple of \"num_attention_heads\" %d", name,
				 config.hidden_size, config.num_attention_heads);
	*out = config;
	return OK;
}

enum status model_config_check_pairs(const struct model_config *config, const char *what)
{
	if (config->type_vocab_size >= 2)
		return OK;
	enum status status =
		error_set(ERR_USAGE, "%s: the model has one segment type (\"type_vocab_size\"), pairs need two", what);
	error_hint("take a model with \"type_vocab_size\" 2, or single texts");
	return status;
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
		config->intermediate_size = 4 * config->hidden_size;
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
	if (config->hidden_size % config->num_attention_heads == 0)
		return OK;
	enum status status = error_set(ERR_USAGE, "a width of %d cannot be divided among %d attention heads", config->hidden_size,
				       config->num_attention_heads);
	error_hint(
		"choose --hidden_size and --num_attention_heads so that each head has the same number of columns; 64 is usual");
	return status;
}
