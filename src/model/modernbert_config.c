/* Reads and writes what config.json says of ModernBERT's layers and heads, as transformers 4 and 5 write it. */
#include "model/modernbert_config.h"

#include <string.h>
#include "model/forms.h"

#define FULL "full_attention"
#define SLIDING "sliding_attention"

/* A period that is not given. */
enum { UNKNOWN = 0 };

static enum status differ(const char *name, const char *old, const char *new)
{
	return error_set(ERR_DATA, "'%s': \"%s\" and \"%s\" say different things", name, old, new);
}

/* Every how many layers attention sees everything, from the list of transformers 5. */
static enum status read_layer_types(const struct json *types, const char *name, int32_t layers, int32_t *period)
{
	int32_t index = 0;
	*period = UNKNOWN;
	if (!types || types->kind == JSON_NULL)
		return OK;
	if (types->kind != JSON_ARRAY || types->child_count != layers)
		return error_set(ERR_DATA, "'%s': \"layer_types\" is not a list with an entry for each of the %d layers", name,
				 layers);
	for (const struct json *type = types->first_child; type; type = type->next, index++) {
		bool full = type->kind == JSON_STRING && strcmp(type->text, FULL) == 0;
		if (!full && (type->kind != JSON_STRING || strcmp(type->text, SLIDING) != 0))
			return error_set(ERR_USAGE,
					 "'%s': \"layer_types\" has other entries than \"" FULL "\" and \"" SLIDING "\"", name);
		if (full && index > 0 && *period == UNKNOWN)
			*period = index;
		if (full != (index == 0 || (*period != UNKNOWN && index % *period == 0)))
			return error_set(
				ERR_USAGE,
				"'%s': \"layer_types\": layer %d: bertc has full attention in every nth layer, beginning "
				"with the first",
				name, index);
	}
	if (*period == UNKNOWN) /* only the first sees everything */
		*period = layers;
	return OK;
}

/* The base for a kind of layers, in either form. */
static enum status read_base(const struct json *object, const char *name, const char *old_key, const char *kind, double *base)
{
	const struct json *old = json_member(object, old_key), *both = json_member(object, "rope_parameters");
	const struct json *parameters = both && both->kind == JSON_OBJECT ? json_member(both, kind) : NULL;
	const char *type = "default";
	double before;
	if (old && old->kind != JSON_NULL) /* ModernBERT's local base may be null: the global one */
		TRY(json_get_number(object, name, old_key, base));
	before = *base;
	if (parameters && parameters->kind == JSON_OBJECT) {
		TRY(json_get_string(parameters, name, "rope_type", &type));
		TRY(json_get_number(parameters, name, "rope_theta", base));
	}
	if (strcmp(type, "default") != 0)
		return error_set(ERR_USAGE, "'%s': \"rope_type\" is \"%.40s\"; bertc has \"default\"", name, type);
	if (old && old->kind != JSON_NULL && before != *base)
		return differ(name, old_key, "rope_parameters");
	if (!(*base > 1 && *base < 1e12))
		return error_set(ERR_DATA, "'%s': \"%s\": the base of rotary positions is %g", name, old_key, *base);
	return OK;
}

static enum status read_periods(struct model_config *config, const struct json *object, const char *name)
{
	static const char key[] = "global_attn_every_n_layers";
	int64_t every = config->attention.period;
	int32_t listed;
	TRY(json_get_integer(object, name, key, 1, 1024, &every));
	TRY(read_layer_types(json_member(object, "layer_types"), name, config->num_hidden_layers, &listed));
	for (int32_t l = 0; listed != UNKNOWN && json_member(object, key) && l < config->num_hidden_layers; l++)
		if ((l % every == 0) != (l % listed == 0))
			return differ(name, key, "layer_types");
	config->attention.period = listed != UNKNOWN ? listed : (int32_t)every;
	return OK;
}

static enum status read_no_bias(const struct json *object, const char *name, const char *key, bool *none)
{
	bool has = !*none;
	TRY(json_get_bool(object, name, key, &has));
	*none = !has;
	return OK;
}

const char modernbert_members[] =
	" attention_bias classifier_activation classifier_bias classifier_pooling decoder_bias global_attn_every_n_layers "
	"global_rope_theta layer_types local_attention local_rope_theta mlp_bias norm_bias rope_parameters rope_scaling ";

enum status modernbert_config_read(struct model_config *config, const struct json *object, const char *name)
{
	const struct json *scaling = json_member(object, "rope_scaling");
	const char *pooling = "cls", *activation = "gelu";
	int64_t window = 2 * (int64_t)config->attention.window;
	if (scaling && scaling->kind != JSON_NULL)
		return error_set(ERR_USAGE, "'%s': \"rope_scaling\" is given; bertc has rotary positions without it", name);
	TRY(read_periods(config, object, name));
	TRY(read_base(object, name, "global_rope_theta", FULL, &config->attention.global_base));
	TRY(read_base(object, name, "local_rope_theta", SLIDING, &config->attention.local_base));
	TRY(json_get_integer(object, name, "local_attention", 2, 1 << 20, &window));
	config->attention.window = (int32_t)(window / 2);
	TRY(read_no_bias(object, name, "attention_bias", &config->no_bias.attention));
	TRY(read_no_bias(object, name, "mlp_bias", &config->no_bias.feed_forward));
	TRY(read_no_bias(object, name, "norm_bias", &config->no_bias.norm));
	TRY(read_no_bias(object, name, "classifier_bias", &config->no_bias.classifier));
	TRY(read_no_bias(object, name, "decoder_bias", &config->no_bias.decoder));
	if (config->no_bias.decoder)
		return error_set(ERR_USAGE, "'%s': \"decoder_bias\" is false; bertc's output layer has a bias", name);
	TRY(json_get_string(object, name, "classifier_pooling", &pooling));
	if (strcmp(pooling, "cls") != 0 && strcmp(pooling, "mean") != 0)
		return error_set(ERR_DATA, "'%s': \"classifier_pooling\" is \"%.40s\", neither \"cls\" nor \"mean\"", name,
				 pooling);
	config->mean_pooling = strcmp(pooling, "mean") == 0;
	TRY(json_get_string(object, name, "classifier_activation", &activation));
	if (strcmp(activation, "gelu") != 0 || config->hidden_act != ACTIVATION_GELU_ERF)
		return error_set(ERR_USAGE, "'%s': \"classifier_activation\" or \"hidden_activation\" is not \"gelu\"", name);
	if (config->hidden_size / config->num_attention_heads % 2 != 0 ||
	    config->hidden_size / config->num_attention_heads > ROTARY_LIMIT)
		return error_set(ERR_DATA, "'%s': heads of %d columns cannot be turned", name,
				 config->hidden_size / config->num_attention_heads);
	return OK;
}

static void put_base(struct json_writer *writer, const char *kind, double base)
{
	json_open(writer, kind, '{');
	json_put_double(writer, "rope_theta", base);
	json_put_string(writer, "rope_type", "default");
	json_close(writer);
}

void modernbert_config_write(const struct model_config *config, struct json_writer *writer)
{
	json_put_bool(writer, "attention_bias", !config->no_bias.attention);
	json_put_string(writer, "classifier_activation", "gelu");
	json_put_bool(writer, "classifier_bias", !config->no_bias.classifier);
	json_put_string(writer, "classifier_pooling", config->mean_pooling ? "mean" : "cls");
	json_put_integer(writer, "cls_token_id", config->bos_token_id);
	json_put_bool(writer, "decoder_bias", true);
	json_put_integer(writer, "global_attn_every_n_layers", config->attention.period);
	json_put_double(writer, "global_rope_theta", config->attention.global_base);
	json_open(writer, "layer_types", '[');
	for (int32_t l = 0; l < config->num_hidden_layers; l++)
		json_put_string(writer, NULL, model_layer_is_global(config, l) ? FULL : SLIDING);
	json_close(writer);
	json_put_integer(writer, "local_attention", 2 * (int64_t)config->attention.window);
	json_put_double(writer, "local_rope_theta", config->attention.local_base);
	json_put_bool(writer, "mlp_bias", !config->no_bias.feed_forward);
	json_put_bool(writer, "norm_bias", !config->no_bias.norm);
	json_put_integer(writer, "sep_token_id", config->eos_token_id);
	json_open(writer, "rope_parameters", '{');
	put_base(writer, FULL, config->attention.global_base);
	put_base(writer, SLIDING, config->attention.local_base);
	json_close(writer);
}
