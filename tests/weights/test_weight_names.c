/* Names of weights: what Hugging Face, Google and NVIDIA call them. */
#include "test.h"
#include "model/model.h"
#include "weights/weight_names.h"

static void names_are_understood(void **state)
{
	static const struct {
		const char *stored, *ours;
		bool transposed;
	} cases[] = {
		{"bert.embeddings.word_embeddings.weight", WORD_EMBEDDINGS, false},
		{"embeddings.word_embeddings.weight", WORD_EMBEDDINGS, false},
		{"module.bert.embeddings.word_embeddings.weight", WORD_EMBEDDINGS, false},
		{"module._orig_mod.cls.predictions.decoder.weight", DECODER_WEIGHT, false},
		{"cls.predictions.decoder.bias", DECODER_BIAS, false},
		{"encoder.layer.3.output.LayerNorm.gamma", "bert.encoder.layer.3.output.LayerNorm.weight", false},
		{"bert.encoder.layer.3.intermediate.dense_act.weight", "bert.encoder.layer.3.intermediate.dense.weight", false},
		{"bert.pooler.dense_act.bias", "bert.pooler.dense.bias", false},
		{"encoder.layer.3.attention.self.key.base_layer.bias", "bert.encoder.layer.3.attention.self.key.bias", false},
		{"distilbert.transformer.layer.3.attention.k_lin.base_layer.bias", "bert.encoder.layer.3.attention.self.key.bias",
		 false},
		{"cls.predictions.transform.dense_act.weight", "cls.predictions.transform.dense.weight", false},
		{"bert/embeddings/word_embeddings", WORD_EMBEDDINGS, false},
		{"embeddings/LayerNorm/beta:0", "bert.embeddings.LayerNorm.bias", false},
		{"bert/encoder/layer_11/attention/self/query/kernel", "bert.encoder.layer.11.attention.self.query.weight", true},
		{"encoder/layer_0/output/LayerNorm/gamma", "bert.encoder.layer.0.output.LayerNorm.weight", false},
		{"bert/pooler/dense/kernel", "bert.pooler.dense.weight", true},
		{"cls/predictions/output_bias", PREDICTION_BIAS, false},
		{"cls/predictions/output_weights", DECODER_WEIGHT, false},
		{"cls/seq_relationship/output_weights", "cls.seq_relationship.weight", false},
		{"output_weights", "classifier.weight", false},
		{"output_bias:0", "classifier.bias", false},
		{"module.classifier.bias", "classifier.bias", false},
		{"cls/squad/output_weights", "qa_outputs.weight", false},
		{"cls/squad/output_bias", "qa_outputs.bias", false},
		{"qa_outputs.weight", "qa_outputs.weight", false},
		{"pooler.dense.weight", "bert.pooler.dense.weight", false},
		{"classifier.weight", "classifier.weight", false},
		{"bert/encoder/layer_x/output/dense/bias", "bert/encoder/layer_x/output/dense/bias", false},
		{"encoder/bias/.ATTRIBUTES/VARIABLE_VALUE", "encoder/bias/.ATTRIBUTES/VARIABLE_VALUE", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tensor_name name = tensor_name_from(cases[i].stored);
		assert_int_equal(name.meaning, MEANS_PARAMETER);
		assert_string_equal(name.name, cases[i].ours);
		assert_int_equal(name.transposed, cases[i].transposed);
	}
}

static void what_is_no_weight(void **state)
{
	static const struct {
		const char *stored;
		enum tensor_meaning meaning;
	} cases[] = {
		{"bert.embeddings.position_ids", MEANS_BUFFER},
		{"embeddings.position_ids", MEANS_BUFFER},
		{"bert/pooler/dense/kernel/adam_m", MEANS_OPTIMIZER},
		{"output_weights/adam_v", MEANS_OPTIMIZER},
		{"bert/encoder/layer_0/output/dense/kernel/RMSProp_1", MEANS_OPTIMIZER},
		{"output_bias/AdamWeightDecayOptimizer", MEANS_OPTIMIZER},
		{"bert/pooler/dense/kernel/AdamWeightDecayOptimizer_1", MEANS_OPTIMIZER},
		{"global_step", MEANS_BOOKKEEPING},
		{"loss_scale/good_steps", MEANS_BOOKKEEPING},
		{"beta1_power", MEANS_BOOKKEEPING},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(tensor_name_from(cases[i].stored).meaning, cases[i].meaning);
	char longest[5000];
	memset(longest, 'a', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	assert_int_equal(tensor_name_from(longest).meaning, MEANS_PARAMETER);
	memcpy(longest, "bert/encoder/layer_", 19);
	tensor_name_from(longest);
	memcpy(longest, "module.", 7);
	tensor_name_from(longest);
}

/* Every parameter of a model keeps its own name. */
static void ours_stay(void **state)
{
	struct backend be = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32};
	struct model_config config;
	struct model *model;
	assert_ok(model_config_named(&config, "base"));
	config.vocab_size = 10;
	assert_ok(model_create(&model, &be, &config, &model_heads_pretraining));
	for (int64_t i = 0; i < model->parameter_count; i++)
		assert_string_equal(tensor_name_from(model->parameters[i].name).name, model->parameters[i].name);
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_understood),
		cmocka_unit_test(what_is_no_weight),
		cmocka_unit_test(ours_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
