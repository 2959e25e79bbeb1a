/* Reads and writes what config.json says of NomicBERT (Nussbaum et al. 2024). */
#include "model/nomic_config.h"

#include <string.h>
#include "model/rotary_config.h"

const char nomic_members[] =
	" activation_function attn_pdrop auto_map causal dense_seq_output embd_pdrop fused_bias_fc fused_dropout_add_ln head_dim "
	"layer_norm_epsilon max_trained_positions mlp_fc1_bias mlp_fc2_bias n_embd n_head n_inner n_layer n_positions "
	"pad_vocab_size_multiple parallel_block parallel_block_tied_norm prenorm qkv_proj_bias reorder_and_upcast_attn "
	"resid_pdrop "
	"rope_parameters rotary_emb_base rotary_emb_fraction rotary_emb_interleaved rotary_emb_scale_base rotary_scaling_factor "
	"scale_attn_by_inverse_layer_idx scale_attn_weights summary_activation summary_first_dropout summary_proj_to_labels "
	"summary_type summary_use_proj use_flash_attn use_rms_norm use_xentropy ";

/* The parts that other models of the same code have, and these lack. */
static enum status refuse_others(const struct json *object, const char *name)
{
	static const char *const flags[] = {"causal",
					    "mlp_fc1_bias",
					    "mlp_fc2_bias",
					    "parallel_block",
					    "prenorm",
					    "qkv_proj_bias",
					    "use_rms_norm",
					    "rotary_emb_interleaved",
					    "scale_attn_by_inverse_layer_idx"};
	const char *activation = "swiglu";
	double fraction = 1;
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		bool set = false;
		TRY(json_get_bool(object, name, flags[i], &set));
		if (set)
			return error_set(ERR_USAGE, "'%s': \"%s\" is true; bertc has NomicBERT without it", name, flags[i]);
	}
	TRY(json_get_string(object, name, "activation_function", &activation));
	if (strcmp(activation, "swiglu") != 0)
		return error_set(ERR_USAGE, "'%s': \"activation_function\" is \"%.40s\"; bertc has \"swiglu\"", name, activation);
	TRY(json_get_number(object, name, "rotary_emb_fraction", &fraction));
	if (fraction != 1)
		return error_set(ERR_USAGE, "'%s': \"rotary_emb_fraction\" is %g; bertc has 1", name, fraction);
	return OK;
}

enum status nomic_config_read(struct model_config *config, const struct json *object, const char *name)
{
	const struct {
		const char *key;
		int64_t most;
		int32_t *out;
	} sizes[] = {
		{"n_embd", 1 << 16, &config->hidden_size},
		{"n_layer", 1024, &config->num_hidden_layers},
		{"n_head", 65535, &config->num_attention_heads},
		{"n_inner", 1 << 18, &config->intermediate_size},
		/* beyond these, "rotary_scaling_factor" would change the bases with a text's length */
		{"max_trained_positions", 1 << 19, &config->max_position_embeddings},
	};
	TRY(refuse_others(object, name));
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		int64_t value = *sizes[i].out;
		TRY(json_get_integer(object, name, sizes[i].key, 1, sizes[i].most, &value));
		*sizes[i].out = (int32_t)value;
	}
	TRY(json_get_number(object, name, "layer_norm_epsilon", &config->layer_norm_eps));
	if (!(config->layer_norm_eps >= 0 && config->layer_norm_eps < 1))
		return error_set(ERR_DATA, "'%s': \"layer_norm_epsilon\" is %g", name, config->layer_norm_eps);
	TRY(rotary_base_read(object, name, "rotary_emb_base", NULL, &config->attention.global_base));
	return rotary_check(config, name);
}

void nomic_config_write(const struct model_config *config, struct json_writer *writer)
{
	rotary_base_write(writer, "rope_parameters", config->attention.global_base);
}
