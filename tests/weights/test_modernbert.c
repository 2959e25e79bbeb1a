/* ModernBERT's configuration in the forms of transformers 4 and 5, and the names of its tensors. */
#include "test.h"
#include "backend/open.h"
#include "model/golden.h"
#include "weights/config_text.h"
#include "weights/weight_names.h"

static void both_forms_are_read(void **state)
{
	struct model_config config;
	REQUIRE(parse_config("modernbert", "\"pad_token_id\": 50283", &config));
	assert_int_equal(config.attention.window, 64);
	assert_int_equal(config.attention.period, 3);
	assert_true(config.attention.global_base == 160000 && config.attention.local_base == 10000);
	assert_true(config.no_bias.norm && config.no_bias.attention && !config.no_bias.decoder && !config.mean_pooling);
	REQUIRE(parse_config("modernbert",
			     "\"global_rope_theta\": 1e6, \"local_rope_theta\": 5e4, \"global_attn_every_n_layers\": 2, "
			     "\"local_attention\": 32, \"classifier_pooling\": \"mean\", \"norm_bias\": true",
			     &config));
	assert_true(config.attention.global_base == 1e6 && config.attention.local_base == 5e4 && config.mean_pooling);
	assert_true(config.attention.period == 2 && config.attention.window == 16 && !config.no_bias.norm);
	REQUIRE(parse_config("modernbert", "\"global_rope_theta\": 8e4, \"local_rope_theta\": null", &config));
	assert_true(config.attention.global_base == 8e4 && config.attention.local_base == 8e4);
	REQUIRE(parse_config("modernbert",
			     "\"num_hidden_layers\": 3, \"layer_types\": [\"full_attention\", \"sliding_attention\", "
			     "\"full_attention\"], \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 1e6}}",
			     &config));
	assert_true(config.attention.period == 2 && config.attention.global_base == 1e6);
	assert_true(model_layer_is_global(&config, 0) && !model_layer_is_global(&config, 1) && model_layer_is_global(&config, 2));
}

static void what_differs_is_refused(void **state)
{
	static const struct bad_config bad[] = {
		{"\"global_rope_theta\": 1e6, \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 2e6}}", ERR_DATA,
		 "global_rope_theta"},
		{"\"num_hidden_layers\": 2, \"global_attn_every_n_layers\": 1, \"layer_types\": [\"full_attention\", "
		 "\"sliding_attention\"]",
		 ERR_DATA, "layer_types"},
		{"\"num_hidden_layers\": 2, \"layer_types\": [\"sliding_attention\", \"full_attention\"]", ERR_USAGE,
		 "layer_types"},
		{"\"layer_types\": [\"full_attention\"]", ERR_DATA, "layer_types"},
		{"\"rope_scaling\": {\"factor\": 2}", ERR_USAGE, "rope_scaling"},
		{"\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"yarn\"}}", ERR_USAGE, "rope_type"},
		{"\"classifier_pooling\": \"max\"", ERR_DATA, "classifier_pooling"},
		{"\"decoder_bias\": false", ERR_USAGE, "decoder_bias"},
		{"\"num_attention_heads\": 256", ERR_DATA, "turned"},
	};
	assert_refused("modernbert", bad, sizeof bad / sizeof bad[0]);
}

/* The names that ModernBertForMaskedLM gives them, and back. */
static void tensors_have_names(void **state)
{
	static const char *const names[] = {
		"model.embeddings.tok_embeddings.weight",
		"model.embeddings.norm.weight",
		"model.layers.0.attn.Wqkv.weight",
		"model.layers.0.attn.Wo.weight",
		"model.layers.0.mlp_norm.weight",
		"model.layers.0.mlp.Wi.weight",
		"model.layers.0.mlp.Wo.weight",
		"model.layers.1.attn_norm.weight",
		"model.layers.1.attn.Wqkv.weight",
		"model.layers.1.attn.Wo.weight",
		"model.layers.1.mlp_norm.weight",
		"model.layers.1.mlp.Wi.weight",
		"model.layers.1.mlp.Wo.weight",
		"model.final_norm.weight",
		"head.dense.weight",
		"head.norm.weight",
		"decoder.bias",
	};
	struct pool *pool;
	struct backend *be;
	struct model_config config;
	struct model *model;
	char name[TENSOR_NAME_BYTES];
	REQUIRE(parse_config("modernbert", "\"num_hidden_layers\": 2", &config));
	REQUIRE(pool_create(&pool, 1));
	REQUIRE(backend_open(&be, &(struct backend_settings){.device = "ref", .dtype = DTYPE_F64, .pool = pool}));
	REQUIRE(model_create(&model, be, &config, &model_heads_words));
	assert_int_equal(model->parameter_count, sizeof names / sizeof names[0]);
	for (int64_t i = 0; i < model->parameter_count; i++) {
		tensor_name_to_form(model, model->parameters[i].name, name);
		assert_string_equal(name, names[i]);
		assert_string_equal(tensor_name_from(name).name, model->parameters[i].name);
	}
	model_free(model);
	backend_close(be);
	pool_free(pool);
}

/* For one text of this length. */
static size_t memory_for(struct backend *be, const struct model_config *config, int32_t length, bool training)
{
	struct batch_capacity capacity = {.tokens = length, .sequences = 1, .examples = 1};
	struct shape_limits limits = model_shape_limits(config, capacity, length, training);
	struct model *model;
	capacity.labels[0] = (struct label_capacity){.count = length / 8, .width = 1, .row_width = 1};
	limits.batch = capacity;
	assert_ok(model_create(&model, be, config, &model_heads_words));
	size_t bytes = activations_bytes(model, capacity, length, training) + be->functions->workspace_bytes(be, &limits);
	model_free(model);
	return bytes;
}

/* In training and in answers, memory is linear in the length. */
static void memory_grows_with_the_length(void **state)
{
	struct pool *pool;
	struct backend *be;
	struct model_config config;
	assert_ok(parse_config(
		"modernbert",
		"\"hidden_size\": 128, \"num_hidden_layers\": 3, \"num_attention_heads\": 2, \"intermediate_size\": 192, "
		"\"attention_dropout\": 0.1",
		&config));
	assert_int_equal(model_positions(&config), 8192);
	assert_ok(pool_create(&pool, 2));
	assert_ok(backend_open(&be, &(struct backend_settings){.device = "cpu", .dtype = DTYPE_F32, .pool = pool}));
	for (int training = 0; training < 2; training++)
		for (int32_t length = 1024; length < 8192; length *= 2) {
			size_t half = memory_for(be, &config, length, training);
			assert_true(memory_for(be, &config, 2 * length, training) <= 2 * half);
		}
	backend_close(be);
	pool_free(pool);
}

/* Each half of a head's columns turns with the other. */
static void odd_heads_are_refused(void **state)
{
	struct model_config config;
	assert_ok(model_config_named(&config, "tiny"));
	assert_ok(model_config_take_form(&config, "modernbert", 0));
	assert_error(ERR_USAGE, "heads of 15 columns",
		     model_config_resize(&config, &(struct model_sizes){.hidden_size = 60, .num_attention_heads = 4}));
	assert_ok(model_config_resize(&config, &(struct model_sizes){.hidden_size = 64, .num_attention_heads = 4}));
	assert_int_equal(config.intermediate_size, 192); /* two thirds of four times the width, in whole 64s */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms_are_read),   cmocka_unit_test(what_differs_is_refused),
		cmocka_unit_test(tensors_have_names),    cmocka_unit_test(memory_grows_with_the_length),
		cmocka_unit_test(odd_heads_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
