/* NomicBERT's configuration as published models have it and as transformers 5 writes it; what other models of that code have is
 * refused by name. */
#include "test.h"
#include "weights/config_text.h"

static const char published[] =
	"\"activation_function\": \"swiglu\", \"attn_pdrop\": 0.0, \"causal\": false, \"embd_pdrop\": 0.0, "
	"\"layer_norm_epsilon\": 1e-6, \"max_trained_positions\": 1024, \"mlp_fc1_bias\": false, \"mlp_fc2_bias\": false, "
	"\"n_embd\": 128, \"n_head\": 4, \"n_inner\": 384, \"n_layer\": 6, \"n_positions\": 8192, \"prenorm\": false, "
	"\"qkv_proj_bias\": false, \"rotary_emb_base\": 2000, \"rotary_emb_fraction\": 1.0, \"rotary_emb_scale_base\": null, "
	"\"rotary_scaling_factor\": 2, \"summary_activation\": null, \"summary_type\": \"cls_index\", \"type_vocab_size\": 2";

static void both_forms_are_read(void **state)
{
	struct model_config config;
	assert_ok(parse_config("nomic_bert", "", &config));
	assert_int_equal(config.hidden_size, 768);
	assert_int_equal(config.max_position_embeddings, 2048);
	assert_int_equal(config.hidden_act, ACTIVATION_SILU);
	assert_true(config.attention.global_base == 1000 && model_layer_is_global(&config, 1));
	assert_ok(parse_config("nomic_bert", published, &config));
	assert_int_equal(config.hidden_size, 128);
	assert_int_equal(config.num_attention_heads, 4);
	assert_int_equal(config.intermediate_size, 384);
	assert_int_equal(config.num_hidden_layers, 6);
	assert_int_equal(config.max_position_embeddings, 1024);
	assert_int_equal(config.hidden_act, ACTIVATION_SILU);
	assert_true(config.attention.global_base == 2000 && config.layer_norm_eps == 1e-6);
	assert_ok(parse_config("nomic_bert",
			       "\"hidden_size\": 64, \"num_attention_heads\": 2, \"hidden_act\": \"gelu\", \"rope_parameters\": "
			       "{\"rope_theta\": 5000.0, \"rope_type\": \"default\"}",
			       &config));
	assert_int_equal(config.hidden_size, 64);
	assert_int_equal(config.hidden_act, ACTIVATION_GELU_ERF);
	assert_true(config.attention.global_base == 5000);
}

static void other_models_are_refused(void **state)
{
	static const struct bad_config bad[] = {
		{"\"activation_function\": \"geglu\"", ERR_USAGE, "activation_function"},
		{"\"mlp_fc1_bias\": true", ERR_USAGE, "mlp_fc1_bias"},
		{"\"prenorm\": true", ERR_USAGE, "prenorm"},
		{"\"rotary_emb_fraction\": 0.5", ERR_USAGE, "rotary_emb_fraction"},
		{"\"rotary_emb_base\": 2e3, \"rope_parameters\": {\"rope_theta\": 1e3}", ERR_DATA, "rotary_emb_base"},
		{"\"rope_parameters\": {\"rope_theta\": 1e3, \"rope_type\": \"dynamic\"}", ERR_USAGE, "rope_type"},
		{"\"layer_norm_epsilon\": -1", ERR_DATA, "layer_norm_epsilon"},
		{"\"n_layer\": 0", ERR_DATA, "n_layer"},
		{"\"n_head\": 256", ERR_DATA, "turned"},
	};
	assert_refused("nomic_bert", bad, sizeof bad / sizeof bad[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(both_forms_are_read), cmocka_unit_test(other_models_are_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
