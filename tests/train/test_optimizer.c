/* Optimizers over a whole model's slab, compared with plain loops over its tensors: which tensors decay and adapt, what
 * the norms cover, counting, phases. (The operations themselves: tests/backend.) */
#include <math.h>
#include "base/rng.h"
#include "data/pretraining/instances.h"
#include "test.h"
#include "train/optimizer.h"
#include "backend/open.h"

/* The size of the word table in some tests: several parts of a task, and a group of its own. */
#define LARGE_VOCABULARY 8600

static struct model_config config = {
	.vocab_size = 300,
	.hidden_size = 32,
	.num_hidden_layers = 2,
	.num_attention_heads = 2,
	.intermediate_size = 64,
	.max_position_embeddings = 20,
	.type_vocab_size = 2,
	.initializer_range = 0.02,
	.layer_norm_eps = 1e-12,
};

/* A model on a back end with an optimizer. */
struct world {
	struct pool *pool;
	struct backend *be;
	struct model *model;
	struct replica replica;
	struct optimizer *optimizer;
};

static void world_open(struct world *w, const char *device, int threads, const struct optimizer_options *settings)
{
	assert_ok(pool_create(&w->pool, threads));
	assert_ok(backend_open(&w->be, &(struct backend_settings){.device = device, .dtype = DTYPE_F32, .pool = w->pool}));
	assert_ok(model_create(&w->model, w->be, &config, &model_heads_pretraining));
	assert_ok(model_allocate(w->model, true));
	struct shape_limits limits = {.batch = INSTANCE_CAPACITY(20, 1, 3),
				      .longest = 20,
				      .hidden = config.hidden_size,
				      .heads = 2,
				      .intermediate = config.intermediate_size,
				      .vocab = config.vocab_size,
				      .training = true};
	assert_ok(w->be->functions->replica_create(w->be, &w->replica, &limits));
	assert_ok(optimizer_create(&w->optimizer, w->model, NULL, settings));
	assert_ok(model_initialize(w->model, &w->replica, 7));
}

static void world_close(struct world *w)
{
	optimizer_free(w->optimizer);
	w->be->functions->replica_release(&w->replica);
	model_free(w->model);
	backend_close(w->be);
	pool_free(w->pool);
}

static double *doubles(int64_t count)
{
	double *out = calloc((size_t)count, sizeof *out);
	assert_non_null(out);
	return out;
}

static double *fetch(struct world *w, const struct tensor *t)
{
	double *out = doubles(t->columns);
	if (t->dtype == DTYPE_F64) {
		w->be->functions->to_host(w->be, out, t->data, (size_t)t->columns * sizeof(double));
		return out;
	}
	float *narrow = calloc((size_t)t->columns, sizeof *narrow);
	w->be->functions->to_host(w->be, narrow, t->data, (size_t)t->columns * sizeof(float));
	for (int64_t i = 0; i < t->columns; i++)
		out[i] = narrow[i];
	free(narrow);
	return out;
}

/* The gradients of update t: of realistic magnitude, rounded to fp32, none in the gaps. */
static double *make_gradients(struct world *w, int64_t t, double scale)
{
	double *g = doubles(w->model->slab_count);
	for (int64_t p = 0; p < w->model->parameter_count; p++) {
		const struct parameter *parameter = &w->model->parameters[p];
		struct rng rng = rng_start(3, RNG_TEST, (uint64_t)(t << 32 | p));
		for (int64_t i = 0; i < parameter->count; i++)
			g[parameter->offset + i] = (float)(scale * (1 + (double)p / 10) * rng_truncated_normal(&rng));
	}
	const struct tensor *to = &w->model->gradients;
	if (to->dtype == DTYPE_F64) {
		w->be->functions->to_device(w->be, to->data, g, (size_t)to->columns * sizeof(double));
		return g;
	}
	float *narrow = calloc((size_t)to->columns, sizeof *narrow);
	for (int64_t i = 0; i < to->columns; i++)
		narrow[i] = (float)g[i];
	w->be->functions->to_device(w->be, to->data, narrow, (size_t)to->columns * sizeof(float));
	free(narrow);
	return g;
}

static void update(struct world *w, double rate)
{
	struct scalars scalars = {.learning_rate = rate, .loss_scale = 1, .gradient_scale = 1, .finite = 1};
	optimizer_prepare(w->optimizer, &scalars);
	w->be->functions->to_device(w->be, w->replica.scalars, &scalars, sizeof scalars);
	optimizer_measure(w->optimizer, &w->replica);
	assert_ok(optimizer_update(w->optimizer, &w->replica));
	assert_ok(w->be->functions->synchronize(&w->replica));
	w->be->functions->to_host(w->be, &scalars, w->replica.scalars, sizeof scalars);
	if (scalars.finite)
		w->optimizer->update_count++;
}

/* The same in plain loops. Every rule that the settings imply is spelled out by tensor name. */
struct expected {
	double *w, *m, *v;
};

static bool contains(const char *name, const struct option_list *parts)
{
	for (int64_t i = 0; i < parts->count; i++)
		if (strcmp(parts->values[i], "none") != 0 && strstr(name, parts->values[i]))
			return true;
	return false;
}

static void expect_update(struct expected *x, const struct world *w, const struct optimizer_options *s, const double *gradients,
			  double rate, int64_t t)
{
	const struct model *model = w->model;
	double square = 0;
	for (int64_t i = 0; i < model->slab_count; i++)
		square += gradients[i] * gradients[i];
	double norm = sqrt(square), safe = optimizer_is_lamb(s) ? norm : norm + 1e-6; /* clipped like PyTorch does */
	double c = s->max_grad_norm > 0 && safe > s->max_grad_norm ? s->max_grad_norm / safe : 1;
	if (s->gradient_normalization == NORMALIZE_ALWAYS)
		c = 1 / norm;
	double c1 = s->bias_correction ? 1 - pow(s->adam_beta1, (double)t) : 1;
	double c2 = s->bias_correction ? 1 - pow(s->adam_beta2, (double)t) : 1;
	for (int64_t p = 0; p < model->parameter_count; p++) {
		const struct parameter *parameter = &model->parameters[p];
		bool vector = strstr(parameter->name, "bias") || strstr(parameter->name, "LayerNorm");
		bool listed = s->exclude_from_weight_decay.count > 0;
		bool decays = listed ? !contains(parameter->name, &s->exclude_from_weight_decay) : !vector;
		double decay = decays ? s->weight_decay : 0;
		bool adapts = optimizer_is_lamb(s) && (decay > 0 || s->trust_ratio == TRUST_RATIO_ALL) &&
			      !contains(parameter->name, &s->exclude_from_layer_adaptation);
		double *u = doubles(parameter->count), w_square = 0, u_square = 0;
		double *weight = x->w + parameter->offset, *m = x->m + parameter->offset, *v = x->v + parameter->offset;
		for (int64_t i = 0; i < parameter->count; i++) {
			double g = c * gradients[parameter->offset + i];
			m[i] = s->adam_beta1 * m[i] + (s->gradient_averaging ? 1 - s->adam_beta1 : 1) * g;
			v[i] = s->adam_beta2 * v[i] + (1 - s->adam_beta2) * g * g;
			u[i] = m[i] / c1 / (sqrt(v[i] / c2) + s->adam_epsilon) + decay * weight[i];
			w_square += weight[i] * weight[i];
			u_square += u[i] * u[i];
		}
		double ratio = adapts && w_square > 0 && u_square > 0 ? sqrt(w_square / u_square) : 1;
		if (adapts && s->max_trust_ratio > 0 && ratio > s->max_trust_ratio)
			ratio = s->max_trust_ratio;
		for (int64_t i = 0; i < parameter->count; i++)
			weight[i] -= rate * ratio * u[i];
		free(u);
	}
}

/* The norm of the difference, relative to that of the whole. */
static double difference(const double *a, const double *b, int64_t count)
{
	double square = 0, whole = 0;
	for (int64_t i = 0; i < count; i++) {
		square += (a[i] - b[i]) * (a[i] - b[i]);
		whole += b[i] * b[i];
	}
	return sqrt(square / whole);
}

/* The compute copies must match the current weights. */
static void check_copies(struct world *w)
{
	int64_t count = w->model->weight_count;
	unsigned char **before = calloc((size_t)count, sizeof *before);
	assert_non_null(before);
	for (int pass = 0; pass < 2; pass++) {
		for (int64_t i = 0; i < count; i++) {
			const struct weight *weight = w->model->weights[i];
			size_t bytes = (size_t)weight->copy_bytes;
			unsigned char *copy = malloc(bytes + 1);
			assert_non_null(copy);
			if (bytes > 0)
				w->be->functions->to_host(w->be, copy, weight->copy, bytes);
			if (pass == 0) {
				before[i] = copy;
				continue;
			}
			assert_memory_equal(before[i], copy, bytes);
			free(before[i]);
			free(copy);
		}
		model_refresh(w->model, &w->replica);
	}
	free(before);
}

#define UPDATES 3

static void check_settings(const char *device, const struct optimizer_options *settings, double limit)
{
	struct world w;
	world_open(&w, device, 2, settings);
	int64_t count = w.model->slab_count;
	struct expected x = {fetch(&w, &w.model->slab), doubles(count), doubles(count)};
	for (int64_t t = 1; t <= UPDATES; t++) {
		double *g = make_gradients(&w, t, t == 2 ? 1e-7 : 1e-2); /* the second is not clipped */
		expect_update(&x, &w, settings, g, 1e-2, t);
		update(&w, 1e-2);
		free(g);
	}
	double *got[] = {fetch(&w, &w.model->slab), fetch(&w, &w.optimizer->m), fetch(&w, &w.optimizer->v)};
	const double *expected[] = {x.w, x.m, x.v};
	for (int i = 0; i < 3; i++) {
		double error = difference(got[i], expected[i], count);
		if (!(error < limit))
			fail_msg("%s: array %d differs by %g", device, i, error);
	}
	check_copies(&w);
	/* Gaps between tensors stay 0. */
	for (int64_t p = 0; p + 1 < w.model->parameter_count; p++) {
		const struct parameter *parameter = &w.model->parameters[p];
		for (int64_t i = parameter->offset + parameter->count; i < parameter[1].offset; i++)
			assert_true(got[0][i] == 0 && got[1][i] == 0 && got[2][i] == 0);
	}
	for (int i = 0; i < 3; i++)
		free(got[i]);
	free(x.w);
	free(x.m);
	free(x.v);
	world_close(&w);
}

#define SUMS .adam_beta1 = 0.9, .adam_beta2 = 0.999, .adam_epsilon = 1e-6, .weight_decay = 0.01, .max_grad_norm = 1
#define BASE SUMS, .gradient_averaging = true
static const char *no_table[] = {"embeddings", "bias", "LayerNorm"}, *no_heads[] = {"cls.", "pooler"}, *none[] = {"none"};

static const struct optimizer_options all_settings[] = {
	{BASE, .optimizer = OPTIMIZER_ADAMW, .bias_correction = true},
	{BASE, .optimizer = OPTIMIZER_ADAMW},
	{BASE, .optimizer = OPTIMIZER_ADAMW, .exclude_from_weight_decay = {no_table, 3, 3}},
	{BASE, .optimizer = OPTIMIZER_ADAMW, .exclude_from_weight_decay = {none, 1, 1}},
	{BASE, .optimizer = OPTIMIZER_LAMB, .bias_correction = true},
	{BASE, .optimizer = OPTIMIZER_LAMB},
	{BASE, .optimizer = OPTIMIZER_LAMB, .bias_correction = true, .trust_ratio = TRUST_RATIO_ALL},
	{BASE, .optimizer = OPTIMIZER_LAMB, .trust_ratio = TRUST_RATIO_ALL, .gradient_normalization = NORMALIZE_ALWAYS},
	{SUMS, .optimizer = OPTIMIZER_LAMB, .exclude_from_layer_adaptation = {no_heads, 2, 2}},
	{BASE, .optimizer = OPTIMIZER_LAMB, .exclude_from_weight_decay = {no_table, 3, 3}, .max_trust_ratio = 0.1},
	{.gradient_averaging = true,
	 .optimizer = OPTIMIZER_LAMB,
	 .adam_beta1 = 0.6,
	 .adam_beta2 = 0.85,
	 .adam_epsilon = 1e-6,
	 .bias_correction = true},
};

static void test_settings(void **state)
{
	for (size_t i = 0; i < sizeof all_settings / sizeof *all_settings; i++) {
		check_settings("ref", &all_settings[i], 1e-12);
		check_settings("cpu", &all_settings[i], 1e-6);
	}
	config.vocab_size = LARGE_VOCABULARY;
	check_settings("cpu", &all_settings[0], 1e-6);
	check_settings("cpu", &all_settings[4], 1e-6);
	config.vocab_size = 300;
}

static void test_threads(void **state)
{
	struct optimizer_options settings = {BASE, .optimizer = OPTIMIZER_LAMB, .trust_ratio = TRUST_RATIO_ALL};
	struct world one, three;
	config.vocab_size = LARGE_VOCABULARY;
	world_open(&one, "cpu", 1, &settings);
	world_open(&three, "cpu", 3, &settings);
	for (int64_t t = 1; t <= UPDATES; t++) {
		free(make_gradients(&one, t, 1e-2));
		free(make_gradients(&three, t, 1e-2));
		update(&one, 1e-2);
		update(&three, 1e-2);
	}
	double *a = fetch(&one, &one.model->slab), *b = fetch(&three, &three.model->slab);
	assert_memory_equal(a, b, (size_t)one.model->slab_count * sizeof *a);
	free(a);
	free(b);
	world_close(&one);
	world_close(&three);
	config.vocab_size = 300;
}

/* A gradient that is not finite leaves everything unchanged and is not counted. */
static void test_not_finite(void **state)
{
	for (int kind = OPTIMIZER_ADAMW; kind <= OPTIMIZER_LAMB; kind++) {
		struct optimizer_options settings = {BASE, .optimizer = (enum optimizer_kind)kind, .bias_correction = true};
		struct world w;
		world_open(&w, "cpu", 1, &settings);
		free(make_gradients(&w, 1, 1e-2));
		update(&w, 1e-2);
		const struct tensor *const slabs[] = {&w.model->slab, &w.optimizer->m, &w.optimizer->v};
		double *before[3];
		for (int i = 0; i < 3; i++)
			before[i] = fetch(&w, slabs[i]);
		float bad = INFINITY;
		w.be->functions->to_device(w.be, (float *)w.model->gradients.data + 5, &bad, sizeof bad);
		update(&w, 1e-2);
		assert_int_equal(w.optimizer->update_count, 1);
		for (int i = 0; i < 3; i++) {
			double *after = fetch(&w, slabs[i]);
			assert_memory_equal(after, before[i], (size_t)w.model->slab_count * sizeof(double));
			free(after);
			free(before[i]);
		}
		world_close(&w);
	}
}

/* A new phase keeps the moments, and t starts over. */
static void test_restart(void **state)
{
	struct optimizer_options settings = {BASE, .optimizer = OPTIMIZER_LAMB, .bias_correction = true};
	struct world w;
	world_open(&w, "ref", 1, &settings);
	int64_t count = w.model->slab_count;
	struct expected x = {fetch(&w, &w.model->slab), doubles(count), doubles(count)};
	static const int64_t t_of_update[] = {1, 2, 3, 1, 2};
	for (int64_t i = 0; i < 5; i++) {
		if (i == 3)
			optimizer_restart(w.optimizer);
		double *g = make_gradients(&w, i, 1e-2);
		expect_update(&x, &w, &settings, g, 1e-2, t_of_update[i]);
		update(&w, 1e-2);
		free(g);
	}
	double *got = fetch(&w, &w.model->slab);
	assert_true(difference(got, x.w, count) < 1e-12);
	free(got);
	free(x.w);
	free(x.m);
	free(x.v);
	world_close(&w);
}

/* The memory plan depends on it. */
static size_t allocated;
static enum status (*allocate)(struct backend *be, void **out, size_t bytes, const char *what);

static enum status counting_allocate(struct backend *be, void **out, size_t bytes, const char *what)
{
	allocated += (size_t)round_up((int64_t)bytes, ARENA_ALIGNMENT);
	return allocate(be, out, bytes, what);
}

static void test_bytes(void **state)
{
	static const char *const devices[] = {"ref", "cpu"};
	for (int i = 0; i < 2; i++) {
		struct world w;
		struct optimizer *second;
		world_open(&w, devices[i], 1, &all_settings[4]);
		struct backend_functions counting = *w.be->functions;
		const struct backend_functions *own = w.be->functions;
		allocate = own->allocate;
		allocated = 0;
		counting.allocate = counting_allocate;
		w.be->functions = &counting;
		assert_ok(optimizer_create(&second, w.model, NULL, &all_settings[0]));
		w.be->functions = own;
		assert_int_equal(allocated, optimizer_bytes(w.model, 1));
		optimizer_free(second);
		world_close(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settings), cmocka_unit_test(test_threads), cmocka_unit_test(test_not_finite),
		cmocka_unit_test(test_restart),  cmocka_unit_test(test_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
