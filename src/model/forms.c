/* The table of forms, a row for each "model_type", and what follows from a row for a given configuration. */
#include "model/forms.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"
#include "model/modernbert_config.h"
#include "model/nomic_config.h"

#define COUNT(array) ((int32_t)(sizeof array / sizeof((array)[0])))

/* What most forms have in common: names in config.json, sizes of their "base", and other defaults. */
#define BERT_KEYS                                                                                                                \
	.hidden_size = "hidden_size", .layers = "num_hidden_layers", .heads = "num_attention_heads",                             \
	.intermediate_size = "intermediate_size", .activation = "hidden_act", .hidden_dropout = "hidden_dropout_prob",           \
	.attention_dropout = "attention_probs_dropout_prob", .classifier_dropout = "classifier_dropout",                         \
	.layer_norm_eps = "layer_norm_eps", .types = "type_vocab_size"
#define BERT_BASE .hidden_size = 768, .num_hidden_layers = 12, .num_attention_heads = 12, .intermediate_size = 3072
#define BERT_VALUES                                                                                                              \
	.max_position_embeddings = 512, .type_vocab_size = 2, .hidden_act = ACTIVATION_GELU_ERF, .hidden_dropout_prob = 0.1,     \
	.attention_probs_dropout_prob = 0.1, .initializer_range = 0.02, .layer_norm_eps = 1e-12, .classifier_dropout = NAN

static const struct config_keys bert_keys = {
	BERT_KEYS,
};

static const struct model_config bert_defaults = {
	BERT_BASE,
	BERT_VALUES,
};

static const struct config_keys roberta_keys = {
	BERT_KEYS,
	.begin_id = "bos_token_id",
	.end_id = "eos_token_id",
};

/* RobertaConfig's. Published models have one type, which their files say. */
static const struct model_config roberta_defaults = {
	BERT_BASE,
	BERT_VALUES,
	.pad_token_id = 1,
	.eos_token_id = 2,
};

static const struct config_keys electra_keys = {
	BERT_KEYS,
	.choice_dropout = "summary_last_dropout",
	.embedding_size = "embedding_size",
};

static const struct model_config electra_defaults = {
	.hidden_size = 256,
	.num_hidden_layers = 12,
	.num_attention_heads = 4,
	.intermediate_size = 1024,
	BERT_VALUES,
	.embedding_size = 128,
	.choice_dropout = 0.1,
};

/* The output layer's matrix and bias may be in files in addition to the table and the bias that they are. */
static const struct form_name roberta_names[] = {
	{"bert.", "roberta."},
	{"cls.predictions.transform.dense.", "lm_head.dense."},
	{"cls.predictions.transform.LayerNorm.", "lm_head.layer_norm."},
	{"cls.predictions.decoder.", "lm_head.decoder."},
	{"cls.predictions.bias", "lm_head.bias"},
	{0},
};

static const struct form_name electra_names[] = {
	{"bert.", "electra."},
	{"cls.predictions.transform.dense.", "generator_predictions.dense."},
	{"cls.predictions.transform.LayerNorm.", "generator_predictions.LayerNorm."},
	{"cls.predictions.decoder.", "generator_lm_head."},
	{"cls.predictions.bias", "generator_lm_head.bias"},
	{0},
};

/* The head for texts has a linear layer of its own; that for multiple choice reads the pooler. */
#define ROBERTA(type, class_names, has_bytes)                                                                                    \
	{                                                                                                                        \
		.model_type = type, .classes = class_names, .byte_pairs = has_bytes, .names = roberta_names, .has_types = true,  \
		.positions_after_pad = true, .has_pooler = true, .has_words = true, .words_activation = ACTIVATION_GELU_ERF,     \
		.first_row = {.drops = true,                                                                                     \
			      .activation = ACTIVATION_TANH,                                                                     \
			      .dense = "classifier.dense",                                                                       \
			      .linear = "classifier.out_proj"},                                                                  \
		.choice = {.shared = true, .activation = ACTIVATION_TANH}, .keys = &roberta_keys, .defaults = &roberta_defaults, \
	}

static const struct config_keys distilbert_keys = {
	.hidden_size = "dim",
	.layers = "n_layers",
	.heads = "n_heads",
	.intermediate_size = "hidden_dim",
	.activation = "activation",
	.hidden_dropout = "dropout",
	.attention_dropout = "attention_dropout",
	.classifier_dropout = "seq_classif_dropout",
	.span_dropout = "qa_dropout",
};

static const struct model_config distilbert_defaults = {
	.hidden_size = 768,
	.num_hidden_layers = 6,
	.num_attention_heads = 12,
	.intermediate_size = 3072,
	.max_position_embeddings = 512,
	.hidden_act = ACTIVATION_GELU_ERF,
	.hidden_dropout_prob = 0.1,
	.attention_probs_dropout_prob = 0.1,
	.initializer_range = 0.02,
	.layer_norm_eps = 1e-12,
	.classifier_dropout = 0.2,
	.span_dropout = 0.1,
};

/* Its positions are a table in every file, also those that began as sine waves. */
static const struct form_name distilbert_names[] = {
	{"encoder.layer.", "transformer.layer."},
	{"attention.self.query.", "attention.q_lin."},
	{"attention.self.key.", "attention.k_lin."},
	{"attention.self.value.", "attention.v_lin."},
	{"attention.output.dense.", "attention.out_lin."},
	{"attention.output.LayerNorm.", "sa_layer_norm."},
	{"intermediate.dense.", "ffn.lin1."},
	{"output.dense.", "ffn.lin2."},
	{"output.LayerNorm.", "output_layer_norm."},
	{"bert.", "distilbert."},
	{"cls.predictions.transform.dense.", "vocab_transform."},
	{"cls.predictions.transform.LayerNorm.", "vocab_layer_norm."},
	{"cls.predictions.decoder.", "vocab_projector."},
	{"cls.predictions.bias", "vocab_projector.bias"},
	{0},
};

static const struct config_keys modernbert_keys = {
	.hidden_size = "hidden_size",
	.layers = "num_hidden_layers",
	.heads = "num_attention_heads",
	.intermediate_size = "intermediate_size",
	.activation = "hidden_activation",
	.hidden_dropout = "mlp_dropout",
	.attention_dropout = "attention_dropout",
	.classifier_dropout = "classifier_dropout",
	.embedding_dropout = "embedding_dropout",
	.layer_norm_eps = "norm_eps",
	.begin_id = "bos_token_id",
	.end_id = "eos_token_id",
};

static const struct model_config modernbert_defaults = {
	.hidden_size = 768,
	.num_hidden_layers = 22,
	.num_attention_heads = 12,
	.intermediate_size = 1152,
	.max_position_embeddings = 8192,
	.hidden_act = ACTIVATION_GELU_ERF,
	.initializer_range = 0.02,
	.layer_norm_eps = 1e-5,
	.attention = {.global_base = 160000, .local_base = 10000, .window = 64, .period = 3},
	.no_bias = {.attention = true, .feed_forward = true, .norm = true, .classifier = true},
};

/* A layer's second norm, of the feed-forward part's input, is BERT's first; its first is the last of the layer before. */
static const struct form_name modernbert_names[] = {
	{"embeddings.word_embeddings.", "embeddings.tok_embeddings."},
	{"embeddings.LayerNorm.", "embeddings.norm."},
	{"encoder.layer.", "layers."},
	{"input.LayerNorm.", "attn_norm."},
	{"attention.self.qkv.", "attn.Wqkv."},
	{"attention.output.dense.", "attn.Wo."},
	{"attention.output.LayerNorm.", "mlp_norm."},
	{"intermediate.dense.", "mlp.Wi."},
	{"output.dense.", "mlp.Wo."},
	{"final.LayerNorm.", "final_norm."},
	{"bert.", "model."},
	{"cls.predictions.transform.dense.", "head.dense."},
	{"cls.predictions.transform.LayerNorm.", "head.norm."},
	{"cls.predictions.decoder.weight", "decoder.weight"},
	{"cls.predictions.bias", "decoder.bias"},
	{"cls.predictions.decoder.bias", "decoder.bias"},
	{0},
};

static const struct model_config nomic_defaults = {
	BERT_BASE,
	.max_position_embeddings = 2048,
	.type_vocab_size = 2,
	.hidden_act = ACTIVATION_SILU,
	.initializer_range = 0.02,
	.layer_norm_eps = 1e-12,
	.classifier_dropout = NAN,
	.attention = {.global_base = 1000},
	.no_bias = {.attention = true, .feed_forward = true},
};

static const struct form_name nomic_names[] = {
	{"embeddings.LayerNorm.", "emb_ln."},
	{"encoder.layer.", "encoder.layers."},
	{"attention.self.qkv.", "attn.Wqkv."},
	{"attention.output.dense.", "attn.out_proj."},
	{"attention.output.LayerNorm.", "norm1."},
	{"intermediate.gate.", "mlp.fc12."},
	{"intermediate.dense.", "mlp.fc11."},
	{"output.dense.", "mlp.fc2."},
	{"output.LayerNorm.", "norm2."},
	{"bert.", "nomic_bert."},
	{"cls.predictions.transform.LayerNorm.", "cls.predictions.transform.layer_norm."},
	{0},
};

static const struct model_form forms[] = {
	{
		.model_type = "bert",
		.classes = "Bert",
		.has_types = true,
		.pairs_need_types = true,
		.has_pooler = true,
		.is_googles = true,
		.has_next_sentence = true,
		.has_words = true,
		.first_row = {.shared = true, .activation = ACTIVATION_TANH},
		.choice = {.shared = true, .activation = ACTIVATION_TANH},
		.keys = &bert_keys,
		.defaults = &bert_defaults,
	},
	{
		.model_type = "distilbert",
		.classes = "DistilBert",
		.names = distilbert_names,
		.attention_output_dropout = DROPS_NOTHING,
		.has_words = true,
		.first_row = {.activation = ACTIVATION_RELU, .dense = "pre_classifier"},
		.choice = {.activation = ACTIVATION_RELU, .dense = "pre_classifier"},
		.rows = {.hidden_dropout = true},
		.keys = &distilbert_keys,
		.defaults = &distilbert_defaults,
	},
	ROBERTA("roberta", "Roberta", true),
	ROBERTA("xlm-roberta", "XLMRoberta", false),
	ROBERTA("camembert", "Camembert", false),
	{
		.model_type = "electra", /* the discriminator; a masked-word head is that of the generator */
		.classes = "Electra",
		.names = electra_names,
		.has_types = true,
		.pairs_need_types = true,
		.words_activation = ACTIVATION_GELU_ERF,
		.first_row = {.drops = true,
			      .activation = ACTIVATION_GELU_ERF,
			      .dense = "classifier.dense",
			      .linear = "classifier.out_proj"},
		.choice = {.own_dropout = true, .activation = ACTIVATION_GELU_ERF, .dense = "sequence_summary.summary"},
		.keys = &electra_keys,
		.members = " summary_activation summary_type summary_use_proj ",
		.defaults = &electra_defaults,
	},
	{
		.model_type = "nomic_bert", /* before ModernBERT, whose "layers." would be found in "encoder.layers." */
		.classes = "NomicBert",
		.names = nomic_names,
		.fused = true,
		.gated = true,
		.gate_apart = true,
		.has_types = true,
		.pairs_need_types = true,
		.positions = POSITIONS_ROTARY,
		.has_pooler = true,
		.has_words = true,
		.first_row = {.shared = true, .activation = ACTIVATION_TANH},
		.choice = {.shared = true, .activation = ACTIVATION_TANH},
		.keys = &bert_keys,
		.defaults = &nomic_defaults,
		.members = nomic_members,
		.read = nomic_config_read,
		.write = nomic_config_write,
	},
	{
		.model_type = "modernbert",
		.byte_pairs = true,
		.classes = "ModernBert",
		.names = modernbert_names,
		.fused = true,
		.pre_norm = true,
		.gated = true,
		.positions = POSITIONS_ROTARY,
		.embedding_dropout = DROPS_EMBEDDINGS,
		.attention_output_dropout = DROPS_ATTENTION,
		.inner_dropout = DROPS_HIDDEN,
		.output_dropout = DROPS_NOTHING,
		.has_words = true,
		.first_row = {.activation = ACTIVATION_GELU_ERF, .has_norm = true},
		.choice = {.activation = ACTIVATION_GELU_ERF, .has_norm = true},
		.rows = {.activation = ACTIVATION_GELU_ERF, .has_norm = true},
		.span_layer = "classifier",
		.keys = &modernbert_keys,
		.defaults = &modernbert_defaults,
		.members = modernbert_members,
		.read = modernbert_config_read,
		.write = modernbert_config_write,
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
	const char *names[COUNT(forms)];
	for (int32_t i = 0; i < COUNT(forms); i++) {
		size_t used = strlen(known);
		names[i] = forms[i].model_type;
		if (strcmp(forms[i].model_type, model_type) == 0) {
			*out = i;
			return OK;
		}
		snprintf(known + used, sizeof known - used, "%s\"%s\"", i ? ", " : "", forms[i].model_type);
	}
	enum status status = error_set(ERR_USAGE, "'%s': \"model_type\" is \"%.100s\"; bertc has %s", name, model_type, known);
	/* Of a file, another form is what it says. */
	const char *near = name[0] == '-' ? nearest_name(model_type, names, COUNT(forms)) : NULL;
	if (near)
		error_hint("did you mean %s?", near);
	else
		error_hint("docs/inference.md lists well-known models that bertc reads");
	return status;
}

const struct head_form *model_head_form(const struct model_config *config, const struct head *head)
{
	static const struct head_form pooler = {.shared = true, .activation = ACTIVATION_TANH};
	const struct model_form *form = model_form_of(config);
	if (!head->pooled)
		return &form->rows;
	if (head->loss == LOSS_NONE) /* the pooler's output itself */
		return &pooler;
	return head->loss == LOSS_GROUP ? &form->choice : &form->first_row;
}

bool model_head_transforms(const struct model_config *config, const struct head *head)
{
	return !head->training && model_head_form(config, head)->has_norm && (head->pooled || head->joined <= 1);
}

int32_t model_wide_size(const struct model_config *config)
{
	return config->intermediate_size * (model_form_of(config)->gated ? 2 : 1);
}

int32_t model_usual_intermediate(const struct model_config *config)
{
	enum { MULTIPLE = 64 };
	int32_t size = 4 * config->hidden_size;
	return model_form_of(config)->gated ? (int32_t)round_up((int64_t)size * 2 / 3, MULTIPLE) : size;
}

bool model_layer_is_global(const struct model_config *config, int32_t layer)
{
	return config->attention.window == 0 || layer % config->attention.period == 0;
}

const struct model_heads *model_heads_of_words(const struct model_config *config)
{
	return model_form_of(config)->has_next_sentence ? &model_heads_pretraining : &model_heads_words;
}

enum activation model_words_activation(const struct model_config *config)
{
	enum activation own = model_form_of(config)->words_activation;
	return own == ACTIVATION_NONE ? config->hidden_act : own;
}

bool model_takes_pairs(const struct model_config *config)
{
	return config->type_vocab_size >= 2 || !model_form_of(config)->pairs_need_types;
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
