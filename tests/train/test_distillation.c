/* A student's gradients compared with finite differences of the loss that it reports: labels, a teacher's outputs and
 * hidden states, for every kind of head, with and without a projection. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "backend/open.h"
#include "base/rng.h"
#include "model/forms.h"
#include "test.h"
#include "train/distillation.h"

enum { TOKENS = 17, SEQUENCES = 4, EXAMPLES = 2, VOCABULARY = 13 };

static struct pool *pool;
static struct backend *be;

static int setup(void **state)
{
	assert_ok(pool_create(&pool, 1));
	assert_ok(backend_open(&be, &(struct backend_settings){.device = "ref", .dtype = DTYPE_F64, .pool = pool}));
	return 0;
}

static int teardown(void **state)
{
	backend_close(be);
	pool_free(pool);
	return 0;
}

static const struct model_config student_config = {.vocab_size = VOCABULARY,
						   .hidden_size = 8,
						   .num_hidden_layers = 2,
						   .num_attention_heads = 2,
						   .intermediate_size = 12,
						   .max_position_embeddings = 8,
						   .type_vocab_size = 2,
						   .hidden_act = ACTIVATION_GELU_ERF,
						   .initializer_range = 0.3,
						   .layer_norm_eps = 1e-12,
						   .classifier_dropout = NAN};

/* Two examples of two sequences each, and what each kind of head reads of them. */
static int32_t ids[TOKENS], types[TOKENS], positions[TOKENS], order[TOKENS];
static uint32_t token_samples[TOKENS], samples[SEQUENCES] = {3, 4, 5, 6};
static int32_t starts[SEQUENCES + 1] = {0, 5, 8, 14, 17}, example_starts[EXAMPLES + 1] = {0, 2, 4};
static int32_t rows[] = {1, 6, 9, 15}, classes[] = {2, 0, 1, 2}, choices[] = {1, 0}, spans[] = {1, 3, 0, 2, 5, 5, 0, 0};
static float values[] = {0.5f, 1, 0, 1, 0, 0.25f, 1, 1, 0, 0, 1, 0.5f};
static float weights[] = {1, 0.5f, 0, 2};

static struct batch make_batch(enum head_loss loss)
{
	struct batch batch = {.token_count = TOKENS,
			      .sequence_count = SEQUENCES,
			      .example_count = EXAMPLES,
			      .longest = 6,
			      .ids = ids,
			      .types = types,
			      .positions = positions,
			      .token_samples = token_samples,
			      .starts = starts,
			      .samples = samples,
			      .example_starts = example_starts,
			      .id_order = order};
	struct rng rng = rng_start(7, RNG_TEST, 0);
	for (int32_t s = 0; s < SEQUENCES; s++)
		for (int32_t t = starts[s]; t < starts[s + 1]; t++) {
			ids[t] = t % VOCABULARY;
			types[t] = (int32_t)rng_below(&rng, 2);
			positions[t] = t - starts[s];
			token_samples[t] = samples[s];
		}
	int32_t next = 0;
	for (int32_t id = 0; id < VOCABULARY; id++)
		for (int32_t t = 0; t < TOKENS; t++)
			if (ids[t] == id)
				order[next++] = t;
	struct batch_labels *labels = &batch.labels[0];
	*labels = (struct batch_labels){.count = SEQUENCES, .width = 1, .classes = classes, .weights = weights};
	if (loss == LOSS_CLASSES) {
		labels->rows = rows;
		labels->row_width = 1;
	} else if (loss == LOSS_GROUP) {
		labels->count = EXAMPLES;
		labels->classes = choices;
	} else if (loss == LOSS_SEGMENT) {
		labels->width = 2;
		labels->classes = spans;
	} else {
		labels->width = 3;
		labels->classes = NULL;
		labels->values = values;
	}
	return batch;
}

static struct model_heads make_heads(enum head_loss loss, int32_t projection)
{
	struct model_heads heads = {.architecture = "Test", .pooler = true, .count = 1, .projection = projection};
	heads.head[0] = (struct head){.input = loss == LOSS_SEGMENT   ? INPUT_ALL_ROWS
					       : loss == LOSS_CLASSES ? INPUT_CHOSEN_ROWS
								      : INPUT_FIRST_ROW,
				      .pooled = loss == LOSS_BINARY || loss == LOSS_GROUP,
				      .outputs = loss == LOSS_GROUP     ? 1
						 : loss == LOSS_SEGMENT ? 2
									: 3,
				      .loss = loss,
				      .coefficient = 1,
				      .name = "classifier"};
	heads.pooler = heads.head[0].pooled;
	return heads;
}

/* What a student with one head learns from. */
struct pupil {
	struct model *model;
	struct replica replica;
	struct activations *activations;
	struct teacher *teacher;
	struct objective inner, *objective;
	struct batch batch;
	struct step step;
	float *slab;
};

static void inner_metrics(struct objective *objective, const struct step *step, const struct accumulators *sums,
			  struct measures *out)
{
	(void)objective;
	struct measure loss = {.name = "loss", .value = sums->value[sum_of_loss(0)] / step->weights[0]};
	out->count = 0;
	measures_add(out, &loss);
}

static void inner_close(struct objective *objective)
{
	(void)objective;
}

static void pupil_make_of(struct pupil *p, struct model_config config, enum head_loss loss, int32_t width,
			  const struct distillation_settings *settings)
{
	*p = (struct pupil){.inner = {.name = "test", .metrics = inner_metrics, .close = inner_close}, .batch = make_batch(loss)};
	struct model_heads heads = make_heads(loss, width != config.hidden_size ? width : 0);
	struct batch_capacity capacity = batch_capacity_of(&p->batch);
	struct shape_limits limits = model_shape_limits(&config, capacity, p->batch.longest, true);
	assert_ok(model_create(&p->model, be, &config, &heads));
	assert_ok(model_allocate(p->model, true));
	assert_ok(be->functions->replica_create(be, &p->replica, &limits));
	assert_ok(activations_create(&p->activations, p->model, capacity, p->batch.longest, true));
	assert_ok(model_initialize(p->model, &p->replica, 1));
	p->slab = malloc((size_t)p->model->slab_count * sizeof *p->slab);
	assert_ok(model_get_weights(p->model, p->slab));

	config.hidden_size = width;
	config.num_hidden_layers = 3;
	assert_ok(teacher_create(&p->teacher, be, &config, &heads));
	size_t planned = teacher_bytes(p->teacher, &limits, settings);
	assert_true(planned > 0);
	assert_ok(teacher_allocate(p->teacher, &limits, settings));
	struct model *model = teacher_model(p->teacher);
	float *slab = calloc((size_t)model->slab_count, sizeof *slab);
	struct rng rng = rng_start(9, RNG_TEST, 0);
	for (int64_t i = 0; i < model->parameter_count; i++)
		for (int64_t j = 0; j < model->parameters[i].count; j++)
			slab[model->parameters[i].offset + j] =
				(float)((model->parameters[i].init == INIT_ONE ? 1 : 0) + 0.4 * rng_truncated_normal(&rng));
	assert_ok(teacher_set_weights(p->teacher, slab));
	free(slab);
	assert_ok(distillation_objective_create(&p->objective, &p->inner, p->teacher, settings, p->model, p->activations));

	double weight = 0;
	for (int32_t i = 0; i < p->batch.labels[0].count; i++)
		weight += weights[i];
	p->step = (struct step){.number = 1, .token_count = TOKENS, .weights = {weight}};
	*p->replica.scalars =
		(struct scalars){.inverse_weight = {1 / weight}, .inverse_tokens = 1.0 / TOKENS, .loss_scale = 4, .seed = 1};
}

static void pupil_make(struct pupil *p, enum head_loss loss, int32_t width, const struct distillation_settings *settings)
{
	pupil_make_of(p, student_config, loss, width, settings);
}

static void pupil_free(struct pupil *p)
{
	p->objective->close(p->objective);
	teacher_free(p->teacher);
	activations_free(p->activations);
	be->functions->replica_release(&p->replica);
	model_free(p->model);
	free(p->slab);
}

static void compute(struct pupil *p, struct measures *out)
{
	*p->replica.accumulators = (struct accumulators){{0}};
	p->objective->gradients(p->objective, &p->replica, &p->batch, true, (struct layer_hook){0});
	p->objective->metrics(p->objective, &p->step, p->replica.accumulators, out);
}

/* Gives the teacher the student's weights; those that only the teacher has are zero. */
static void give_weights(struct pupil *p)
{
	const struct model *model = teacher_model(p->teacher);
	float *slab = calloc((size_t)model->slab_count, sizeof *slab);
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		int64_t own = model_find_parameter(p->model, parameter->name);
		if (own >= 0)
			memcpy(slab + parameter->offset, p->slab + p->model->parameters[own].offset,
			       (size_t)parameter->count * sizeof *slab);
	}
	assert_ok(model_set_weights(p->model, &p->replica, p->slab));
	assert_ok(teacher_set_weights(p->teacher, slab));
	free(slab);
}

static double loss_with(struct pupil *p, int64_t at, double move)
{
	struct measures measures = {0};
	double *weight = (double *)p->model->slab.data + at, before = *weight;
	*weight += move;
	model_refresh(p->model, &p->replica);
	compute(p, &measures);
	*weight = before;
	return measures_get(&measures, "loss");
}

static void check_gradients(struct pupil *p, const char *what)
{
	struct measures measures = {0};
	const double scale = p->replica.scalars->loss_scale, h = 1e-3;
	double *gradients = malloc((size_t)p->model->slab_count * sizeof *gradients), largest = 0;
	compute(p, &measures);
	memcpy(gradients, p->model->gradients.data, (size_t)p->model->slab_count * sizeof *gradients);
	for (int64_t i = 0; i < p->model->slab_count; i++)
		largest = fmax(largest, fabs(gradients[i]) / scale);
	for (int64_t i = 0; i < p->model->parameter_count; i++) {
		const struct parameter *parameter = &p->model->parameters[i];
		for (int64_t k = 0; k < 3; k++) {
			int64_t at = parameter->offset + k * 7 % parameter->count;
			double near = loss_with(p, at, h) - loss_with(p, at, -h),
			       far = loss_with(p, at, 2 * h) - loss_with(p, at, -2 * h);
			double expected = (8 * near - far) / (12 * h);
			if (!(fabs(gradients[at] / scale - expected) < 1e-7 * largest))
				fail_msg("%s: %s[%d]: %.12g, finite difference %.12g", what, parameter->name,
					 (int)(at - parameter->offset), gradients[at] / scale, expected);
		}
	}
	free(gradients);
}

static const struct layer_pair pairs[] = {{-1, -1}, {0, 1}, {1, 2}};

static void gradients_are_those_of_the_loss(void **state)
{
	static const enum head_loss losses[] = {LOSS_CLASSES, LOSS_SQUARED, LOSS_BINARY, LOSS_GROUP, LOSS_SEGMENT};
	for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
		const struct distillation_settings settings = {
			.alpha = 0.3, .temperature = 1.7, .hidden_weight = 0.6, .layers = pairs, .layer_count = i < 2 ? 3 : 0};
		struct pupil p;
		char what[32];
		snprintf(what, sizeof what, "loss %d", (int)losses[i]);
		pupil_make(&p, losses[i], i == 0 ? 12 : 8, &settings);
		check_gradients(&p, what);
		pupil_free(&p);
	}
}

/* In models of every kind, a layer's hidden states are the same in a teacher as in a student: there is nothing to learn from a
 * teacher with the student's weights and one more layer. */
static void a_twin_teaches_nothing(void **state)
{
	static const struct layer_pair same[] = {{-1, -1}, {0, 0}};
	static const char *const forms[] = {"bert", "modernbert", "electra"};
	const struct distillation_settings settings = {
		.alpha = 0, .temperature = 1, .hidden_weight = 1, .layers = same, .layer_count = 2};
	for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
		struct model_config config = student_config;
		struct measures measures = {0};
		struct pupil p;
		assert_ok(model_form_find(forms[f], "test", &config.form));
		config.embedding_size = model_form_of(&config)->keys->embedding_size ? 4 : 0;
		if (model_form_of(&config)->positions == POSITIONS_ROTARY)
			config.attention = model_form_of(&config)->defaults->attention;
		pupil_make_of(&p, config, LOSS_CLASSES, config.hidden_size, &settings);
		check_gradients(&p, forms[f]);
		give_weights(&p);
		compute(&p, &measures);
		if (measures_get(&measures, "hidden_loss") != 0)
			fail_msg("%s: %g", forms[f], measures_get(&measures, "hidden_loss"));
		pupil_free(&p);
	}
}

/* Each part, and their sum; parts that are not requested are not reported. */
static void parts_add_up(void **state)
{
	struct distillation_settings settings = {
		.alpha = 0.3, .temperature = 2, .hidden_weight = 0.6, .layers = pairs, .layer_count = 3};
	struct measures all = {0}, hidden = {0}, soft = {0};
	struct pupil p;
	pupil_make(&p, LOSS_CLASSES, 12, &settings);
	compute(&p, &all);
	assert_int_equal(all.count, 4);
	double labels = measures_get(&all, "label_loss"), outputs = measures_get(&all, "soft_loss"),
	       states = measures_get(&all, "hidden_loss");
	assert_true(labels > 0 && outputs > 0 && states > 0);
	assert_true(fabs(measures_get(&all, "loss") - (0.7 * labels + 0.3 * outputs + 0.6 * states)) < 1e-12);
	/* A second, identical micro-batch: gradients are accumulated. */
	double first = ((double *)p.model->projection.w.gradient.data)[0];
	p.objective->gradients(p.objective, &p.replica, &p.batch, false, (struct layer_hook){0});
	assert_true(fabs(((double *)p.model->projection.w.gradient.data)[0] - 2 * first) < 1e-12 * fabs(first));
	pupil_free(&p);

	settings.alpha = 0;
	pupil_make(&p, LOSS_CLASSES, 12, &settings);
	compute(&p, &hidden);
	pupil_free(&p);
	settings.alpha = 1;
	settings.layer_count = 0;
	pupil_make(&p, LOSS_CLASSES, 8, &settings);
	compute(&p, &soft);
	pupil_free(&p);
	assert_true(measures_find(&hidden, "soft_loss") == NULL && measures_find(&soft, "hidden_loss") == NULL);
	assert_true(measures_get(&soft, "loss") == measures_get(&soft, "soft_loss"));
}

/* A teacher's forward pass costs a third of training it; only the layers that are used count. */
static void flops_are_counted(void **state)
{
	static const struct layer_pair first[] = {{0, 1}};
	struct distillation_settings settings = {.alpha = 1, .temperature = 1};
	struct pupil p;
	pupil_make(&p, LOSS_CLASSES, 12, &settings);
	struct model_work work = model_work_of(&p.batch);
	const struct model *teacher = teacher_model(p.teacher);
	double one = 2 * (4 * 12 * 12 + 2 * 12 * 12) * work.tokens + 4 * 12 * work.squares, head = 2 * 12 * 3 * work.predictions;
	assert_int_equal(teacher->config.num_hidden_layers, 3);
	assert_true(fabs(p.objective->more_flops(p.objective, &p.batch) / (3 * one + head) - 1) < 1e-12);
	pupil_free(&p);

	settings = (struct distillation_settings){.temperature = 1, .hidden_weight = 1, .layers = first, .layer_count = 1};
	pupil_make(&p, LOSS_CLASSES, 12, &settings);
	double projection = 6 * 8 * 12 * work.tokens;
	assert_true(fabs(p.objective->more_flops(p.objective, &p.batch) / (2 * one + projection) - 1) < 1e-12);
	pupil_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gradients_are_those_of_the_loss),
		cmocka_unit_test(a_twin_teaches_nothing),
		cmocka_unit_test(parts_add_up),
		cmocka_unit_test(flops_are_counted),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
