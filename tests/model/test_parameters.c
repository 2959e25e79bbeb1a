/* Configuration files, the layout of the parameter slab, initial weights, FLOPs. */
#include "test.h"
#include "base/rng.h"
#include "model/flops.h"
#include "model/golden.h"
#include "backend/open.h"

static enum status parse(const char *text, struct model_config *out)
{
	struct json_document document;
	REQUIRE(json_parse(&document, "x.json", text, strlen(text)));
	enum status status = model_config_from_json(out, document.root, "x.json");
	json_release(&document);
	return status;
}

static void sizes_have_names(void **state)
{
	struct model_config config;
	assert_int_equal(model_config_named(&config, "base"), OK);
	assert_int_equal(config.num_hidden_layers, 12);
	assert_int_equal(config.num_attention_heads, 12);
	assert_int_equal(config.intermediate_size, 3072);
	assert_int_equal(config.vocab_size, 0);
	assert_true(config.layer_norm_eps == 1e-12 && config.hidden_dropout_prob == 0.1);
	char names[64], *rest = names;
	snprintf(names, sizeof names, "%s", MODEL_SIZES("|"));
	int count = 0;
	for (char *name = strtok_r(names, "|", &rest); name; name = strtok_r(NULL, "|", &rest), count++)
		assert_int_equal(model_config_named(&config, name), OK);
	assert_int_equal(count, 6);
	assert_int_equal(model_config_named(&config, "huge"), ERR_USAGE);
}

static void configurations_are_read(void **state)
{
	struct model_config config;
	/* Hugging Face's "gelu" is the erf form, Google's is the tanh form. */
	assert_int_equal(parse("{\"model_type\": \"bert\", \"hidden_act\": \"gelu\", \"vocab_size\": 100}", &config), OK);
	assert_int_equal(config.hidden_act, ACTIVATION_GELU_ERF);
	assert_int_equal(config.vocab_size, 100);
	assert_int_equal(parse("{\"hidden_act\": \"gelu\", \"pooler_type\": \"first_token_transform\"}", &config), OK);
	assert_int_equal(config.hidden_act, ACTIVATION_GELU_TANH);
	assert_int_equal(config.vocab_size, 0);
	assert_int_equal(parse("{\"model_type\": \"bert\", \"hidden_act\": \"gelu_new\"}", &config), OK);
	assert_int_equal(config.hidden_act, ACTIVATION_GELU_TANH);
	static const struct {
		const char *name;
		enum activation activation;
	} names[] = {{"gelu_pytorch_tanh", ACTIVATION_GELU_TANH},
		     {"relu", ACTIVATION_RELU},
		     {"silu", ACTIVATION_SILU},
		     {"swish", ACTIVATION_SILU}};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		char text[64];
		snprintf(text, sizeof text, "{\"hidden_act\": \"%s\"}", names[i].name);
		assert_int_equal(parse(text, &config), OK);
		assert_int_equal(config.hidden_act, names[i].activation);
	}
}

static void odd_configurations_are_refused(void **state)
{
	static const struct {
		const char *text;
		enum status status;
		const char *field;
	} bad[] = {
		{"{\"model_type\": \"bert\", \"hidden_act\": \"quick_gelu\"}", ERR_USAGE, "\"hidden_act\" is \"quick_gelu\""},
		{"{\"model_type\": \"distilbert\", \"activation\": \"mish\"}", ERR_USAGE, "\"activation\" is \"mish\""},
		{"{\"model_type\": \"gpt2\"}", ERR_USAGE, "\"gpt2\"; bertc has \"bert\""},
		{"{\"vocab_size\": 100, \"pad_token_id\": 100}", ERR_DATA, "pad_token_id"},
		{"{\"position_embedding_type\": \"relative_key\"}", ERR_USAGE, "position_embedding_type"},
		{"{\"is_decoder\": true}", ERR_USAGE, "is_decoder"},
		{"{\"hidden_size\": 100, \"num_attention_heads\": 12}", ERR_DATA, "num_attention_heads"},
		{"{\"hidden_size\": 0}", ERR_DATA, "hidden_size"},
		{"{\"num_hidden_layers\": 1e3}", ERR_DATA, "num_hidden_layers"},
		{"{\"vocab_size\": 99999999999}", ERR_DATA, "vocab_size"},
		{"{\"hidden_dropout_prob\": 1}", ERR_DATA, "hidden_dropout_prob"},
		{"{\"layer_norm_eps\": \"tiny\"}", ERR_DATA, "layer_norm_eps"},
		{"[1]", ERR_DATA, "object"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct model_config config;
		if (parse(bad[i].text, &config) != bad[i].status || !strstr(error_last()->message, bad[i].field) ||
		    !strstr(error_last()->message, "x.json"))
			fail_msg("%s: \"%s\"", bad[i].text, error_last()->message);
	}
}

static struct model *named_model(const char *name, int32_t vocab_size, struct backend *be, const struct model_heads *heads)
{
	struct model_config config;
	REQUIRE(model_config_named(&config, name));
	config.vocab_size = vocab_size;
	struct model *model = NULL;
	REQUIRE(model_create(&model, be, &config, heads));
	return model;
}

static const struct parameter *parameter_named(const struct model *model, const char *name)
{
	int64_t number = model_find_parameter(model, name);
	assert_true(number >= 0);
	return &model->parameters[number];
}

static void base_has_110_million(void **state)
{
	struct backend be = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32}; /* a plan needs no device */
	struct model *model = named_model("base", 30522, &be, &model_heads_pretraining);
	assert_int_equal(model->parameter_count, 14 + 16 * 12);
	assert_int_equal(model->element_count, 110106428);
	int64_t end = 0;
	int32_t layer = -1;
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *p = &model->parameters[i];
		bool vector = strstr(p->name, "bias") || strstr(p->name, "LayerNorm");
		assert_int_equal(p->decays, !vector);
		assert_int_equal(parameter_rank(p), vector ? 1 : 2);
		assert_true(p->offset >= end && p->offset < end + 64 && p->layer >= layer && p->layer <= layer + 1);
		assert_int_equal(p->count, p->rows * p->columns);
		assert_int_equal(p->init, !vector ? INIT_NORMAL : strstr(p->name, "LayerNorm.weight") ? INIT_ONE : INIT_ZERO);
		if (!strstr(p->name, ".key.") && !strstr(p->name, ".value."))
			assert_int_equal(p->offset % 64, 0);
		end = p->offset + p->count;
		layer = p->layer;
	}
	assert_true(model->slab_count >= end && model->slab_count < end + 64);
	assert_int_equal(layer, 12);
	const struct parameter *query = parameter_named(model, "bert.encoder.layer.3.attention.self.query.bias");
	const struct parameter *value = parameter_named(model, "bert.encoder.layer.3.attention.self.value.bias");
	assert_int_equal(value->offset, query->offset + 2 * 768);
	assert_int_equal(model->layers[3].qkv.master.rows, 3 * 768);
	assert_int_equal(model->layers[3].qkv.master.columns, 768);
	assert_int_equal(model->layers[3].qkv_bias.master.rows, 1);
	assert_int_equal(model->layers[3].qkv_bias.master.columns, 3 * 768);
	assert_int_equal(model->word.use, WEIGHT_TIED);
	assert_int_equal(parameter_named(model, "cls.seq_relationship.weight")->rows, 2);
	assert_int_equal(model_find_parameter(model, "cls.predictions.decoder.weight"), -1);
	model_free(model);

	model = named_model("large", 30522, &be, &model_heads_none);
	assert_int_equal(model->parameter_count, 7 + 16 * 24);
	assert_int_equal(model->word.use, WEIGHT_TABLE);
	model_free(model);
}

/* In FP8, the encoder's linear layers must fit FP8 products; heads are not computed in FP8. */
static void sizes_for_fp8(void **state)
{
	struct backend be = {.dtype = DTYPE_BF16, .master_dtype = DTYPE_F32, .fp8 = true};
	struct model *model = named_model("base", 30522, &be, &model_heads_pretraining);
	assert_true(weight_in_fp8(&be, &model->layers[0].qkv));
	assert_true(weight_in_fp8(&be, &model->layers[11].output));
	assert_false(weight_in_fp8(&be, &model->layers[0].qkv_bias));
	assert_false(weight_in_fp8(&be, &model->word));
	assert_false(weight_in_fp8(&be, &model->pooler));
	assert_false(weight_in_fp8(&be, &model->transform));
	assert_false(weight_in_fp8(&be, &model->head_weights[HEAD_NEXT_SENTENCE].w));
	struct model_config config = model->config;
	model_free(model);

	config.intermediate_size = 100;
	assert_int_equal(model_create(&model, &be, &config, &model_heads_pretraining), ERR_USAGE);
	assert_non_null(strstr(error_last()->message, "'intermediate_size' is 100"));
	be.fp8 = false;
	assert_int_equal(model_create(&model, &be, &config, &model_heads_pretraining), OK);
	model_free(model);
}

/* A width that is not a multiple of the alignment: weights still lie where their rows say. */
static void odd_widths_are_aligned(void **state)
{
	struct pool *pool;
	struct backend *be;
	REQUIRE(pool_create(&pool, 1));
	REQUIRE(backend_open(&be, &(struct backend_settings){.device = "ref", .dtype = DTYPE_F64, .pool = pool}));
	struct model_config config;
	REQUIRE(model_config_named(&config, "tiny"));
	config.vocab_size = 37;
	config.hidden_size = 15;
	config.num_attention_heads = 3;
	config.intermediate_size = 17;
	struct model *model;
	REQUIRE(model_create(&model, be, &config, &model_heads_pretraining));
	REQUIRE(model_allocate(model, true));
	const struct layer_weights *layer = &model->layers[1];
	double *slab = model->slab.data, *gradients = model->gradients.data;
	assert_ptr_equal(layer->qkv.master.data,
			 slab + parameter_named(model, "bert.encoder.layer.1.attention.self.query.weight")->offset);
	assert_ptr_equal(layer->qkv_bias.gradient.data,
			 gradients + parameter_named(model, "bert.encoder.layer.1.attention.self.query.bias")->offset);
	assert_ptr_equal(layer->attention_output.master.data,
			 slab + parameter_named(model, "bert.encoder.layer.1.attention.output.dense.weight")->offset);
	assert_ptr_equal(model->head_weights[HEAD_NEXT_SENTENCE].b.gradient.data,
			 gradients + parameter_named(model, "cls.seq_relationship.bias")->offset);
	model_free(model);
	backend_close(be);
	pool_free(pool);
}

/* The initial weights of a model with `seed`; the caller frees them. */
static float *initial_weights(const char *device, enum dtype dtype, int threads, uint64_t seed, struct model_config *config)
{
	struct batch one = {.token_count = 8, .sequence_count = 1, .longest = 8};
	struct run run;
	run_open(&run, device, dtype, threads, config, &one, false);
	REQUIRE(model_initialize(run.model, &run.replica, seed));
	float *slab = calloc((size_t)run.model->slab_count, sizeof *slab);
	assert_non_null(slab);
	REQUIRE(model_get_weights(run.model, slab));
	run_close(&run);
	return slab;
}

static void initial_weights_follow_the_seed(void **state)
{
	struct model_config config;
	REQUIRE(model_config_named(&config, "tiny"));
	config.vocab_size = 300;
	struct backend be = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32};
	struct model *model;
	REQUIRE(model_create(&model, &be, &config, &model_heads_pretraining));
	size_t bytes = (size_t)model->slab_count * sizeof(float);
	float *a = initial_weights("ref", DTYPE_F64, 1, 9, &config), *b = initial_weights("ref", DTYPE_F64, 3, 9, &config);
	float *other = initial_weights("ref", DTYPE_F64, 1, 10, &config);
	float *cpu = initial_weights("cpu", DTYPE_F32, 2, 9, &config);
	assert_memory_equal(a, b, bytes);
	assert_memory_equal(a, cpu, bytes);
	assert_memory_not_equal(a, other, bytes);

	double sum = 0, squares = 0, extreme = 0;
	int64_t drawn = 0, covered = 0;
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *p = &model->parameters[i];
		for (int64_t k = p->offset; k < p->offset + p->count; k++) {
			double value = (double)a[k];
			if (p->init != INIT_NORMAL) {
				assert_true(value == (p->init == INIT_ONE ? 1 : 0));
				continue;
			}
			drawn++;
			sum += value;
			squares += value * value;
			extreme = fmax(extreme, fabs(value));
		}
		for (; covered < p->offset; covered++)
			assert_true(a[covered] == 0);
		covered = p->offset + p->count;
	}
	/* A normal distribution truncated at two standard deviations has 0.8796 of the standard deviation. */
	assert_true(fabs(sum / (double)drawn) < 1e-4);
	assert_true(fabs(sqrt(squares / (double)drawn) / 0.02 - 0.8796) < 0.005);
	assert_true(extreme <= 0.04 && extreme > 0.0399);
	/* Two matrices of the same shape start differently. */
	const struct parameter *query = parameter_named(model, "bert.encoder.layer.0.attention.self.query.weight");
	const struct parameter *key = parameter_named(model, "bert.encoder.layer.0.attention.self.key.weight");
	assert_memory_not_equal(a + query->offset, a + key->offset, (size_t)query->count * sizeof(float));
	free(a);
	free(b);
	free(other);
	free(cpu);
	model_free(model);
}

static void flops_are_the_published_ones(void **state)
{
	struct model_config config;
	REQUIRE(model_config_named(&config, "base"));
	config.vocab_size = 30522;
	struct model model = {.config = config, .heads = model_heads_pretraining};
	int32_t rows[1];
	struct batch one = {.token_count = 128, .sequence_count = 1, .starts = (int32_t[]){0, 128}};
	one.labels[HEAD_MASKED_WORDS] = (struct batch_labels){.count = 20, .rows = rows};
	assert_true(fabs(model_training_flops(&model, &one) / 69.9e9 - 1) < 1e-3);
	REQUIRE(model_config_named(&config, "large"));
	config.vocab_size = 30522;
	model.config = config;
	struct batch mixed = {.token_count = 1024, .sequence_count = 3, .starts = (int32_t[]){0, 512, 1024, 1024}};
	mixed.labels[HEAD_MASKED_WORDS] = (struct batch_labels){.count = 152, .rows = rows};
	assert_true(fabs(model_training_flops(&model, &mixed) / (2 * 1019.8e9) - 1) < 1e-3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_have_names),
		cmocka_unit_test(configurations_are_read),
		cmocka_unit_test(odd_configurations_are_refused),
		cmocka_unit_test(base_has_110_million),
		cmocka_unit_test(sizes_for_fp8),
		cmocka_unit_test(odd_widths_are_aligned),
		cmocka_unit_test(initial_weights_follow_the_seed),
		cmocka_unit_test(flops_are_the_published_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
