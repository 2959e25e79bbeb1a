/* Reads and writes what config.json says of ModernBERT's layers and heads, as transformers 4 and 5 write it. */
#include "model/modernbert_config.h"

#include <string.h>
#include "model/forms.h"
#include "model/rotary_config.h"

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
	const struct json *scaling = json_member(object, "rope_scaling"), *local = json_member(object, "local_rope_theta");
	const char *pooling = "cls", *activation = "gelu";
	int64_t window = 2 * (int64_t)config->attention.window;
	if (scaling && scaling->kind != JSON_NULL)
		return error_set(ERR_USAGE, "'%s': \"rope_scaling\" is given; bertc has rotary positions without it", name);
	TRY(read_periods(config, object, name));
	TRY(rotary_base_read(object, name, "global_rope_theta", FULL, &config->attention.global_base));
	if (local && local->kind == JSON_NULL) /* in transformers 4: all layers have the same base */
		config->attention.local_base = config->attention.global_base;
	TRY(rotary_base_read(object, name, "local_rope_theta", SLIDING, &config->attention.local_base));
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
	return rotary_check(config, name);
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
	rotary_base_write(writer, FULL, config->attention.global_base);
	rotary_base_write(writer, SLIDING, config->attention.local_base);
	json_close(writer);
}
