/* The table of forms, a row for each "model_type", and what follows from a row for a given configuration. */
#include "model/forms.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) ((int32_t)(sizeof array / sizeof((array)[0])))

static const struct config_keys bert_keys = {
	.hidden_size = "hidden_size",
	.layers = "num_hidden_layers",
	.heads = "num_attention_heads",
	.intermediate_size = "intermediate_size",
	.activation = "hidden_act",
	.hidden_dropout = "hidden_dropout_prob",
	.attention_dropout = "attention_probs_dropout_prob",
	.classifier_dropout = "classifier_dropout",
	.layer_norm_eps = "layer_norm_eps",
	.types = "type_vocab_size",
};

static const struct model_config bert_defaults = {
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

static const struct model_form forms[] = {
	{
		.model_type = "bert",
		.classes = "Bert",
		.has_types = true,
		.pairs_need_types = true,
		.has_pooler = true,
		.has_next_sentence = true,
		.has_words = true,
		.first_row = {.shared = true, .activation = ACTIVATION_TANH},
		.choice = {.shared = true, .activation = ACTIVATION_TANH},
		.keys = &bert_keys,
		.defaults = &bert_defaults,
	},
};

const struct model_form *model_form_at(int32_t index)
{
	return index < COUNT(forms) ? &forms[index] : NULL;
}

const struct model_form *model_form_of(const struct model_config *config)
{
	return &forms[config->form];
}

enum status model_form_find(const char *model_type, const char *name, int32_t *out)
{
	char known[256] = "";
	for (int32_t i = 0; i < COUNT(forms); i++) {
		size_t used = strlen(known);
		if (strcmp(forms[i].model_type, model_type) == 0) {
			*out = i;
			return OK;
		}
		snprintf(known + used, sizeof known - used, "%s\"%s\"", i ? ", " : "", forms[i].model_type);
	}
	enum status status = error_set(ERR_USAGE, "'%s': \"model_type\" is \"%.100s\"; bertc has %s", name, model_type, known);
	error_hint("docs/inference.md lists well-known models that bertc reads");
	return status;
}

int32_t model_first_position(const struct model_config *config)
{
	return model_form_of(config)->positions_after_pad ? config->pad_token_id + 1 : 0;
}

int32_t model_positions(const struct model_config *config)
{
	return config->max_position_embeddings - model_first_position(config);
}

int32_t model_embedding_size(const struct model_config *config)
{
	return config->embedding_size > 0 ? config->embedding_size : config->hidden_size;
}
