/* The first place where numbers stop being finite is named: weights, the place in the forward pass, gradients. */
#include <math.h>
#include "data/pretraining/instances.h"
#include "model/model.h"
#include "test.h"
#include "backend/open.h"

static const struct model_config config = {
	.vocab_size = 20,
	.hidden_size = 8,
	.num_hidden_layers = 3,
	.num_attention_heads = 2,
	.intermediate_size = 16,
	.max_position_embeddings = 8,
	.type_vocab_size = 2,
	.hidden_act = ACTIVATION_GELU_ERF,
	.initializer_range = 0.02,
	.layer_norm_eps = 1e-12,
};

static struct pool *pool;
static struct backend *be;
static struct model *model;
static struct replica replica;
static struct activations *activations;
static struct batch batch;
static const struct batch_capacity capacity = INSTANCE_CAPACITY(8, 2, 2);

static int setup(void **state)
{
	struct shape_limits limits = {
		.batch = capacity, .longest = 8, .hidden = 8, .heads = 2, .intermediate = 16, .vocab = 20, .training = true};
	assert_ok(pool_create(&pool, 1));
	assert_ok(backend_open(&be, &(struct backend_settings){.device = "ref", .dtype = DTYPE_F64, .pool = pool}));
	assert_ok(model_create(&model, be, &config, &model_heads_pretraining));
	assert_ok(model_allocate(model, true));
	assert_ok(be->functions->replica_create(be, &replica, &limits));
	assert_ok(activations_create(&activations, model, capacity, 8, true));
	assert_ok(batch_create(&batch, &capacity));
	batch.token_count = 8;
	batch.sequence_count = batch.example_count = 2;
	batch.labels[HEAD_NEXT_SENTENCE].count = 2;
	batch.labels[HEAD_NEXT_SENTENCE].weights[0] = batch.labels[HEAD_NEXT_SENTENCE].weights[1] = 1;
	batch.example_starts[1] = 1;
	batch.example_starts[2] = 2;
	batch.labels[HEAD_MASKED_WORDS].count = 2;
	batch.longest = 4;
	for (int i = 0; i < 8; i++) {
		batch.ids[i] = i + 5;
		batch.positions[i] = i % 4;
		batch.id_order[i] = i;
	}
	batch.starts[1] = 4;
	batch.starts[2] = 8;
	batch.labels[HEAD_MASKED_WORDS].rows[0] = 1;
	batch.labels[HEAD_MASKED_WORDS].rows[1] = 6;
	batch.labels[HEAD_MASKED_WORDS].classes[0] = 3;
	batch.labels[HEAD_MASKED_WORDS].weights[0] = batch.labels[HEAD_MASKED_WORDS].weights[1] = 1;
	return 0;
}

static int teardown(void **state)
{
	batch_release(&batch);
	activations_free(activations);
	be->functions->replica_release(&replica);
	model_free(model);
	backend_close(be);
	pool_free(pool);
	return 0;
}

static void begin(void)
{
	struct scalars scalars = {
		.loss_scale = 1, .inverse_weight[HEAD_MASKED_WORDS] = 1, .inverse_weight[HEAD_NEXT_SENTENCE] = 1, .finite = 1};
	assert_ok(model_initialize(model, &replica, 3));
	be->functions->to_device(be, replica.scalars, &scalars, sizeof scalars);
}

/* Sets one element of a weight, or of its gradient. */
static void spoil(const struct tensor *slab, const char *name, double value)
{
	int64_t number = model_find_parameter(model, name);
	assert_true(number >= 0);
	const struct parameter *parameter = &model->parameters[number];
	be->functions->to_device(be, (double *)slab->data + parameter->offset + parameter->count - 1, &value, sizeof value);
	model_refresh(model, &replica);
}

static void compute(void)
{
	model_forward(model, activations, &replica, &batch, false);
	model_losses(model, activations, &replica, &batch, true, true);
	model_backward(model, activations, &replica, &batch, true, NULL, NULL);
	assert_ok(be->functions->synchronize(&replica));
}

static void assert_place(const char *expected, bool loss_is_finite)
{
	char place[192] = "";
	bool found = model_locate_not_finite(model, activations, loss_is_finite, place, sizeof place);
	assert_int_equal(found, expected != NULL);
	if (expected && strcmp(place, expected) != 0)
		fail_msg("'%s', not '%s'", place, expected);
}

static void nothing_is_wrong(void **state)
{
	begin();
	compute();
	assert_place(NULL, true);
	assert_place("the output layer, or the loss", false);
}

static void weights_come_first(void **state)
{
	begin();
	spoil(&model->slab, "bert.encoder.layer.1.output.dense.weight", NAN);
	compute();
	assert_place("the weights of 'bert.encoder.layer.1.output.dense.weight'", false);
}

/* Weights so large that the place where they are used overflows. */
static void the_first_place_of_the_forward_pass(void **state)
{
	static const struct {
		const char *weight, *place;
	} cases[] = {
		{"bert.embeddings.LayerNorm.weight", "'bert.embeddings'"},
		{"bert.encoder.layer.0.attention.self.value.weight", "'bert.encoder.layer.0', query, key and value"},
		{"bert.encoder.layer.1.intermediate.dense.weight", "'bert.encoder.layer.1', feed-forward"},
		{"bert.encoder.layer.2.output.LayerNorm.weight", "'bert.encoder.layer.2', the norm after feed-forward"},
		{"cls.predictions.transform.LayerNorm.weight", "'cls.predictions.transform'"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		/* A row of the largest finite number: its products with anything larger than 1 in magnitude, or sums of
		 * them, overflow. */
		const struct parameter *parameter = &model->parameters[model_find_parameter(model, cases[i].weight)];
		double *large = calloc((size_t)parameter->count, sizeof *large);
		for (int64_t k = 0; k < parameter->count; k++)
			large[k] = k % 2 ? 1.7e308 : -1.7e308;
		be->functions->to_device(be, (double *)model->slab.data + parameter->offset, large,
					 (size_t)parameter->count * sizeof *large);
		free(large);
		model_refresh(model, &replica);
		compute();
		assert_place(cases[i].place, false);
	}
}

/* The last layer's gradients are computed first. */
static void gradients_come_last(void **state)
{
	begin();
	compute();
	spoil(&model->gradients, "bert.encoder.layer.0.output.dense.bias", INFINITY);
	spoil(&model->gradients, "bert.encoder.layer.2.output.dense.bias", NAN);
	assert_place("the gradient of 'bert.encoder.layer.2.output.dense.bias'", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_wrong),
		cmocka_unit_test(weights_come_first),
		cmocka_unit_test(the_first_place_of_the_forward_pass),
		cmocka_unit_test(gradients_come_last),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
