/* The twins of tensors that FP8 multiplies (backend_functions.twin_bytes), on the emulated device: every operation that
 * writes such a tensor records the largest magnitude of exactly what it wrote, or rounds it with a bound; products use and then
 * clear that magnitude, and give the same bits as without a twin. */
#include "beside_reference.h"
#include "backend/cuda/state.h"
#include "data/pretraining/instances.h"
#include "model/model.h"

static void open_device(int major, int minor)
{
	open_both(major, minor, &(struct backend_settings){.device = "cuda", .dtype = DTYPE_BF16, .fp8 = true});
}

/* A case on the device. */
struct place {
	struct test_case c;
	struct replica replica;
	struct bound b;
};

static void place_create(struct place *p, const char *line)
{
	case_create(&p->c, line, DTYPE_BF16, &ref_replica);
	assert_ok(be->functions->replica_create(be, &p->replica, &p->c.limits));
	bound_create(&p->b, &p->c, be, &p->replica);
}

static void place_release(struct place *p)
{
	for (int i = 0; i < p->c.count; i++)
		if (p->b.tensor[i].twin != p->b.kept) /* which bound_release() frees */
			be->functions->release(be, p->b.tensor[i].twin);
	bound_release(&p->b);
	be->functions->replica_release(&p->replica);
	case_release(&p->c);
}

static struct tensor *give_twin(struct place *p, const char *name, bool gradient)
{
	struct tensor *tensor = &p->b.tensor[find_array(&p->c, name)];
	size_t bytes = be->functions->twin_bytes(be, tensor->rows, tensor->columns, gradient);
	assert_ok(be->functions->allocate(be, &tensor->twin, bytes, "a twin"));
	return tensor;
}

/* The bits of the largest magnitude in a tensor. */
static uint32_t largest_in(const struct tensor *tensor)
{
	size_t count = (size_t)(tensor->rows * tensor->columns);
	uint16_t *values = malloc(count * sizeof *values + 1);
	uint32_t most = 0;
	assert_non_null(values);
	be->functions->to_host(be, values, tensor->data, count * sizeof *values);
	for (size_t i = 0; i < count; i++)
		most = (values[i] & 0x7fffu) << 16 > most ? (values[i] & 0x7fffu) << 16 : most;
	free(values);
	return most;
}

static uint32_t largest_noted(const struct tensor *tensor)
{
	struct fp8_head head;
	uint32_t most = 0;
	be->functions->to_host(be, &head, tensor->twin, sizeof head);
	for (int i = 0; i < LARGEST_WORDS; i++)
		most = head.largest[i] > most ? head.largest[i] : most;
	return most;
}

/* Like an operation that writes the tensor. */
static void note(const struct tensor *tensor)
{
	uint32_t most = largest_in(tensor);
	be->functions->to_device(be, tensor->twin, &most, sizeof most);
}

static void expect_note(const char *line, const char *name)
{
	struct place p;
	place_create(&p, line);
	const struct tensor *tensor = give_twin(&p, name, false);
	for (int i = 0; i < 2; i++) {
		bound_reset(&p.b);
		bound_run(&p.b);
		if (largest_noted(tensor) != largest_in(tensor))
			fail_msg("%s: '%s' has %a, noted is %a", line, name, (double)fp8_float_of(largest_in(tensor)),
				 (double)fp8_float_of(largest_noted(tensor)));
	}
	place_release(&p);
}

static const struct {
	const char *line, *name;
} producers[] = {
	{"embed_fwd T=130 H=64 V=40 S=128 B=3 longest=127 p=0.1", "y"},
	{"embed_fwd T=13 H=768 V=300 S=64", "y"},
	{"attention_fwd T=400 H=128 heads=2 B=9 longest=64 p=0.1", "y"},
	{"attention_fwd T=333 H=96 heads=3 B=3 longest=200 p=0.1", "y"},
	{"attention_fwd T=150 H=128 heads=1 B=2 longest=128", "y"},
	{"attention_fwd T=1 H=64 heads=2 B=1 longest=1 p=0.9", "y"}, /* the only row is dropped, not the padding rows after it */
	{"attention_fwd T=75 H=72 heads=3 B=3 longest=50 p=0.1", "y"}, /* no matrix kernel */
	{"norm_bwd M=61 H=64 p=0.1 bias=1 in_place=1", "dx"},
	{"norm_bwd M=11 H=768 p=0.1 bias=1", "dx"},
	{"norm_bwd M=300 H=1024 p=0.1 bias=1", "dx"},
	{"norm_bwd M=33 H=64 bias=1 dx=2 in_place=1", "dy"}, /* a single output */
	{"norm_bwd M=64 H=96 bias=1 dx=2", "dresidual"},
	{"attention_bwd T=400 H=128 heads=2 B=9 longest=64 p=0.1 bias=1", "dqkv"},
	{"attention_bwd T=333 H=96 heads=3 B=3 longest=200 p=0.1", "dqkv"},
	{"attention_bwd T=150 H=128 heads=1 B=2 longest=128 bias=1", "dqkv"},
	{"attention_bwd T=300 H=64 heads=1 B=3 longest=150 scale=4 bias=1", "dqkv"}, /* dq has the largest */
	{"attention_bwd T=75 H=72 heads=3 B=3 longest=50 p=0.1 bias=1", "dqkv"},
};

static void producers_note_what_they_write(void **state)
{
	open_device(9, 0);
	for (size_t i = 0; i < sizeof producers / sizeof *producers; i++)
		expect_note(producers[i].line, producers[i].name);
	close_both();
}

/* Backward of long sequences in two kernels: there is shared memory for 256 tokens. */
static void two_kernels_note_together(void **state)
{
	open_device(8, 9);
	expect_note("attention_bwd T=360 H=64 heads=1 B=2 longest=320 p=0.1 bias=1", "dqkv");
	expect_note("attention_bwd T=360 H=64 heads=1 B=2 longest=320 scale=4", "dqkv"); /* dq has the largest */
	expect_note("attention_bwd T=330 H=128 heads=1 B=1 longest=330", "dqkv");
	close_both();
}

/* `but`: not that array, nor what is summed from it in another order. */
static void expect_same(struct place *a, struct place *b, const char *but)
{
	for (int i = 0; i < a->c.count; i++) {
		const char *name = a->c.arrays[i].name;
		if (a->c.arrays[i].role == INPUT || strcmp(name, but) == 0 ||
		    (strcmp(but, "dx") == 0 && strcmp(name, "producer.gradient") == 0))
			continue;
		unsigned char *left = bound_bytes(&a->b, i), *right = bound_bytes(&b->b, i);
		if (memcmp(left + GUARD_BYTES, right + GUARD_BYTES, valid_bytes(&a->b, i)) != 0)
			fail_msg("%s: '%s' has other bits with twins", a->c.line, a->c.arrays[i].name);
		free(left);
		free(right);
	}
}

/* Operations whose output is rounded as it is written, with a bound known in advance. `x`: has a bound already. `slack`: how
 * far its bytes may be from those of the output without a twin, which the library computes from a number not yet rounded. */
static const struct {
	const char *line, *name, *x;
	enum dtype format;
	int slack;
} writers[] = {
	{"linear_norm_fwd M=37 H=80 w=0 residual=1", "y", NULL, DTYPE_E4M3, 0},
	{"linear_norm_fwd M=20 H=1024 w=0 residual=1", "y", NULL, DTYPE_E4M3, 0},
	{"linear_norm_fwd M=127 H=128 I=512 p=0.1", "y", NULL, DTYPE_E4M3, 0},
	{"linear_norm_fwd M=3 H=2048 I=16", "y", NULL, DTYPE_E4M3, 0},
	{"linear_gelu_fwd M=33 O=64 I=32 act=gelu_erf", "y", "x", DTYPE_E4M3, 0},
	{"linear_gelu_fwd M=3 O=48 I=32 act=gelu_erf scale=4", "y", "x", DTYPE_E4M3, 0},
	{"linear_gelu_fwd M=130 O=256 I=64 act=gelu_tanh", "y", "x", DTYPE_E4M3, 1},
	{"linear_bwd M=130 O=64 I=272 producer=1 pre=gelu_erf", "dx", NULL, DTYPE_E5M2, 0},
	{"linear_bwd M=40 O=32 I=64 producer=1 pre=gelu_tanh overwrite=0", "dx", NULL, DTYPE_E5M2, 1},
	{"linear_bwd M=40 O=32 I=64 pre=gelu_tanh", "dx", NULL, DTYPE_E5M2, 1},
};

/* The bytes of `expected`, which is in bf16, with the scale of the twin of `written`, as rows and as columns. */
static void expect_rounded(struct place *p, const char *line, const struct tensor *written, const struct tensor *expected,
			   enum dtype format, int slack)
{
	const struct cuda_fp8 *fp8 = &cuda_scratch(&p->replica)->fp8;
	int64_t rows = expected->rows, columns = expected->columns, padded = round_up(rows, FP8_MULTIPLE);
	size_t bytes = (size_t)(padded * columns);
	uint16_t *values = malloc((size_t)(rows * columns) * sizeof *values);
	uint8_t *by_row = malloc(bytes), *by_column = malloc(bytes);
	struct fp8_head head;
	assert_true(values && by_row && by_column);
	be->functions->to_host(be, values, expected->data, (size_t)(rows * columns) * sizeof *values);
	be->functions->to_host(be, &head, written->twin, sizeof head);
	be->functions->to_host(be, by_row, fp8->rows, bytes);
	be->functions->to_host(be, by_column,
			       format == DTYPE_E5M2 ? fp8->dy_columns : (unsigned char *)written->twin + sizeof head, bytes);
	float most = fp8_float_of(largest_in(expected));
	if (!(head.bound >= most && head.bound <= 4096 * most))
		fail_msg("%s: the bound is %g, the largest %g", line, (double)head.bound, (double)most);
	assert_float_equal(head.scale.scale, fp8_scale_of(format, fp8_bits_of(head.bound)).scale, 0);
	assert_float_equal(head.scale.scale * head.scale.inverse, 1, 0);
	for (int64_t i = 0; i < padded; i++)
		for (int64_t j = 0; j < columns; j++) {
			float value = i < rows ? bf16_to_float(values[i * columns + j]) : 0;
			uint8_t byte = fp8_encode(format, value * head.scale.scale);
			if (by_row[i * columns + j] != by_column[j * padded + i] || abs(by_row[i * columns + j] - byte) > slack)
				fail_msg("%s: (%d, %d) is %02x and %02x instead of %02x", line, (int)i, (int)j,
					 by_row[i * columns + j], by_column[j * padded + i], byte);
		}
	free(values);
	free(by_row);
	free(by_column);
}

static void expect_near(struct place *a, struct place *b, const char *name)
{
	int at = find_array(&a->c, name);
	if (at < 0)
		return;
	int count = (int)(a->b.tensor[at].rows * a->b.tensor[at].columns);
	float *left = malloc((size_t)count * sizeof *left), *right = malloc((size_t)count * sizeof *right);
	assert_true(left && right);
	be->functions->to_host(be, left, a->b.tensor[at].data, (size_t)count * sizeof *left);
	be->functions->to_host(be, right, b->b.tensor[at].data, (size_t)count * sizeof *right);
	for (int i = 0; i < count; i++)
		assert_float_equal(left[i], right[i], 2e-2);
	free(left);
	free(right);
}

static void writers_round_what_they_compute(void **state)
{
	open_device(9, 0);
	for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
		struct place with, without;
		place_create(&with, writers[i].line);
		place_create(&without, writers[i].line);
		const struct tensor *tensor = give_twin(&with, writers[i].name, writers[i].format == DTYPE_E5M2);
		bound_run(&without.b);
		for (int round = 0; round < 2; round++) {
			bound_reset(&with.b);
			if (writers[i].x) {
				struct tensor *x = &with.b.tensor[find_array(&with.c, writers[i].x)];
				float bound = 16; /* at least the norm of its longest row */
				if (!x->twin)
					give_twin(&with, writers[i].x, false);
				note(x);
				be->functions->to_device(be, &((struct fp8_head *)x->twin)->bound, &bound, sizeof bound);
			}
			bound_run(&with.b);
			expect_same(&with, &without, writers[i].format == DTYPE_E4M3 && !writers[i].x ? "" : writers[i].name);
			expect_near(&with, &without, "producer.gradient");
			expect_rounded(&with, writers[i].line, tensor, &without.b.tensor[find_array(&without.c, writers[i].name)],
				       writers[i].format, writers[i].slack);
		}
		place_release(&with);
		place_release(&without);
	}
	close_both();
}

static void set_to_nan(const struct tensor *tensor)
{
	size_t bytes = (size_t)(tensor->rows * tensor->columns) * sizeof(uint16_t);
	unsigned char *nans = malloc(bytes);
	assert_non_null(nans);
	memset(nans, 0xff, bytes);
	be->functions->to_device(be, tensor->data, nans, bytes);
	free(nans);
}

static void products_have_the_bits_of_those_without(void **state)
{
	static const char *const forward[] = {
		"linear_fwd M=37 O=48 I=32",
		"linear_gelu_fwd M=64 O=64 I=32 act=gelu_erf scale=4",
		"linear_norm_fwd M=127 H=128 I=512 p=0.1",
	};
	static const char *const backward[] = {
		"linear_bwd M=37 O=48 I=32",
		"linear_bwd M=129 O=64 I=80 producer=1 pre=gelu_erf overwrite=0",
		"linear_bwd M=16 O=272 I=16 add=2",
	};
	open_device(9, 0);
	for (int i = 0; i < 3; i++) {
		struct place with, without;
		place_create(&with, forward[i]);
		place_create(&without, forward[i]);
		const struct tensor *x = give_twin(&with, "x", false);
		bound_run(&without.b);
		for (int round = 0; round < 2; round++) {
			bound_reset(&with.b);
			note(x);
			bound_run(&with.b);
			assert_int_equal(largest_noted(x), 0);
			expect_same(&with, &without, "");
		}
		place_release(&with);
		place_release(&without);
	}
	for (int i = 0; i < 3; i++) {
		struct place with, without, before;
		place_create(&with, backward[i]);
		place_create(&without, backward[i]);
		place_create(&before, backward[i]);
		const struct tensor *x = give_twin(&with, "x", false), *dy = give_twin(&with, "dy", true);
		bound_run(&without.b);
		/* Forward leaves x' in the twin; backward reads nothing else of x. */
		note(x);
		linear_fwd(&before.replica, &(struct linear_fwd){.w = &before.b.weight[find_array(&before.c, "w")],
								 .x = *x,
								 .y = before.b.tensor[find_array(&before.c, "dy")]});
		assert_ok(be->functions->synchronize(&before.replica));
		set_to_nan(x);
		note(dy);
		bound_run(&with.b);
		assert_int_equal(largest_noted(dy), 0);
		expect_same(&with, &without, "");
		place_release(&with);
		place_release(&without);
		place_release(&before);
	}
	close_both();
}

/* The norms and GELUs of all layers share their places, which hold the last layer's numbers at the end. */
static void what_layers_share_is_not_searched(void **state)
{
	static const struct model_config config = {.vocab_size = 20,
						   .hidden_size = 32,
						   .num_hidden_layers = 3,
						   .num_attention_heads = 1,
						   .intermediate_size = 64,
						   .max_position_embeddings = 8,
						   .type_vocab_size = 2,
						   .hidden_act = ACTIVATION_GELU_ERF,
						   .initializer_range = 0.02,
						   .layer_norm_eps = 1e-12};
	static const struct {
		const char *gamma, *place;
	} cases[] = {
		{NULL, ""},
		{"bert.embeddings.LayerNorm.weight", "'bert.encoder.layer.0', query, key and value"},
		{"bert.encoder.layer.1.attention.output.LayerNorm.weight", "'bert.encoder.layer.1', feed-forward"},
		{"bert.encoder.layer.1.output.LayerNorm.weight", "'bert.encoder.layer.2', query, key and value"},
		{"bert.encoder.layer.2.output.LayerNorm.weight", "'bert.encoder.layer.2', the norm after feed-forward"},
	};
	const struct batch_capacity capacity = INSTANCE_CAPACITY(8, 2, 2);
	struct shape_limits limits = {
		.batch = capacity, .longest = 8, .hidden = 32, .heads = 1, .intermediate = 64, .vocab = 20, .training = true};
	struct scalars scalars = {.loss_scale = 1,
				  .gradient_scale = 1,
				  .inverse_weight[HEAD_MASKED_WORDS] = 1,
				  .inverse_weight[HEAD_NEXT_SENTENCE] = 1,
				  .finite = 1};
	struct model *model;
	struct replica replica;
	struct activations *activations;
	struct batch host, batch;
	open_device(9, 0);
	assert_ok(model_create(&model, be, &config, &model_heads_pretraining));
	assert_ok(model_allocate(model, true));
	assert_ok(be->functions->replica_create(be, &replica, &limits));
	assert_ok(activations_create(&activations, model, capacity, limits.longest, true));
	assert_ok(batch_create(&host, &capacity));
	host.token_count = 8;
	host.sequence_count = 2;
	host.longest = 4;
	host.starts[1] = 4;
	host.starts[2] = 8;
	for (int i = 0; i < 8; i++) {
		host.ids[i] = i + 5;
		host.positions[i] = i % 4;
		host.id_order[i] = i;
	}
	be->functions->to_device(be, replica.scalars, &scalars, sizeof scalars);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char place[192] = "";
		float large[32];
		for (int k = 0; k < 32; k++)
			large[k] = 3e38f;
		assert_ok(model_initialize(model, &replica, 3));
		if (cases[i].gamma) {
			const struct parameter *gamma = &model->parameters[model_find_parameter(model, cases[i].gamma)];
			be->functions->to_device(be, (float *)model->slab.data + gamma->offset, large, sizeof large);
			model_refresh(model, &replica);
		}
		be->functions->upload(&replica, &host, &batch);
		model_forward(model, activations, &replica, &batch, false);
		assert_ok(be->functions->synchronize(&replica));
		model_locate_not_finite(model, activations, true, place, sizeof place);
		assert_string_equal(place, cases[i].place);
	}
	batch_release(&host);
	activations_free(activations);
	be->functions->replica_release(&replica);
	model_free(model);
	close_both();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(producers_note_what_they_write),    cmocka_unit_test(two_kernels_note_together),
		cmocka_unit_test(writers_round_what_they_compute),   cmocka_unit_test(products_have_the_bits_of_those_without),
		cmocka_unit_test(what_layers_share_is_not_searched),
	};
	setenv("BERTC_CACHE", "", 1); /* no cache file */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
