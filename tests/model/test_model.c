/* The model against transformers (tests/golden/model_tiny.safetensors), against finite differences with dropout, and
 * against itself: packing, accumulation, threads, evaluation. */
#include "test.h"
#include "base/rng.h"
#include "model/forms.h"
#include "model/golden.h"

#include "backend/cpu_bf16.h"
#include "backend/open.h"

static struct golden tiny;

static int open_golden(void **state)
{
	golden_open(&tiny, "tests/golden/model_tiny.safetensors");
	return 0;
}

static int close_golden(void **state)
{
	golden_close(&tiny);
	return 0;
}

static struct model_config config_of_tiny(enum activation activation, double dropout)
{
	struct model_config config = tiny.config;
	config.hidden_act = activation;
	config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout;
	return config;
}

/* Loss and every gradient, with both the erf and the tanh form of GELU. */
static void check_golden(const char *device, enum dtype dtype, double loss_limit, struct limit limit)
{
	static const struct {
		const char *name;
		enum activation activation;
	} acts[] = {{"gelu", ACTIVATION_GELU_ERF}, {"gelu_new", ACTIVATION_GELU_TANH}};
	for (int i = 0; i < 2; i++) {
		struct model_config config = config_of_tiny(acts[i].activation, 0);
		struct run run;
		run_open(&run, device, dtype, 2, &config, &tiny.batch, true);
		run_load(&run, &tiny);
		run_begin(&run, &tiny.batch);
		run_batch(&run, &tiny.batch, true, true, true);
		char name[32];
		snprintf(name, sizeof name, "%s.loss", acts[i].name);
		double *wanted = golden_doubles(&tiny, name, 4);
		struct accumulators sums = run_sums(&run);
		double mlm = sums.value[sum_of_loss(HEAD_MASKED_WORDS)] * run.scalars.inverse_weight[HEAD_MASKED_WORDS];
		double nsp = sums.value[sum_of_loss(HEAD_NEXT_SENTENCE)] * run.scalars.inverse_weight[HEAD_NEXT_SENTENCE];
		assert_true(fabs(mlm - wanted[0]) <= loss_limit * wanted[0]);
		assert_true(fabs(nsp - wanted[1]) <= loss_limit * wanted[1]);
		if (dtype != DTYPE_BF16) { /* its rounding may decide between close logits */
			assert_true(sums.value[sum_of_correct(HEAD_MASKED_WORDS)] == wanted[2]);
			assert_true(sums.value[sum_of_correct(HEAD_NEXT_SENTENCE)] == wanted[3]);
		}
		double *gradients = run_gradients(&run);
		double worst = golden_compare(&tiny, acts[i].name, run.model, gradients, limit, NULL);
		if (!(worst <= 1)) {
			golden_compare(&tiny, acts[i].name, run.model, gradients, limit, stderr);
			fail_msg("%s %s: a gradient is %g of its limit away", device, acts[i].name, worst);
		}
		free(wanted);
		free(gradients);
		run_close(&run);
	}
}

static void ref_equals_transformers(void **state)
{
	check_golden("ref", DTYPE_F64, 1e-13, (struct limit){1e-12, 1e-13, 0});
}

static void cpu_equals_transformers(void **state)
{
	check_golden("cpu", DTYPE_F32, 1e-6, (struct limit){1e-5, 1e-6, 3});
}

/* Activations have 8 significant bits; the measured errors are 2e-2 over all gradients and 4e-2 for the worst tensor. */
static void cpu_in_bf16_is_near(void **state)
{
	if (backend_best_dtype("cpu") != DTYPE_BF16)
		skip();
	check_golden("cpu", DTYPE_BF16, 5e-3, (struct limit){0.08, 0.01, 0});
}

/* The gradient along a direction against the slope of the loss, with dropout, so that forward and backward must draw the
 * same masks; for each parameter separately. */
static void check_slopes(const struct model_config *config, const struct model_heads *heads)
{
	struct run run;
	run_open_heads(&run, "ref", DTYPE_F64, 2, config, heads, &tiny.batch, true);
	if (heads == &model_heads_pretraining)
		run_load(&run, &tiny);
	else
		REQUIRE(model_initialize(run.model, &run.replica, 5));
	run_begin(&run, &tiny.batch);
	run_batch(&run, &tiny.batch, true, true, true);
	double *gradients = run_gradients(&run);
	double without = 0, with = run_loss(&run);
	double *master = run.model->slab.data; /* ref's device memory is the host's */
	for (int64_t i = 0; i < run.model->parameter_count; i++) {
		const struct parameter *parameter = &run.model->parameters[i];
		struct rng rng = rng_start(3, RNG_TEST, (uint64_t)i);
		double *values = master + parameter->offset, slope = 0, loss[2], h = 1e-5;
		double *direction = calloc((size_t)parameter->count, sizeof *direction);
		assert_non_null(direction);
		for (int64_t k = 0; k < parameter->count; k++) {
			direction[k] = rng_truncated_normal(&rng);
			slope += direction[k] * gradients[parameter->offset + k];
		}
		for (int side = 0; side < 2; side++) {
			for (int64_t k = 0; k < parameter->count; k++)
				values[k] += (side == 0 ? h : -2 * h) * direction[k];
			run_begin(&run, &tiny.batch);
			run_batch(&run, &tiny.batch, true, false, true);
			loss[side] = run_loss(&run);
		}
		for (int64_t k = 0; k < parameter->count; k++)
			values[k] += h * direction[k];
		double measured = (loss[0] - loss[1]) / (2 * h);
		if (!(fabs(measured - slope) <= 1e-5 * (fabs(slope) + 0.01)))
			fail_msg("%s: slope %.10g, gradient %.10g", parameter->name, measured, slope);
		free(direction);
	}
	run_begin(&run, &tiny.batch);
	run_batch(&run, &tiny.batch, false, false, true);
	without = run_loss(&run);
	assert_true(fabs(with - without) > 1e-3); /* dropout had an effect */
	free(gradients);
	run_close(&run);
}

static void gradients_are_slopes(void **state)
{
	struct model_config config = config_of_tiny(ACTIVATION_GELU_ERF, 0.2);
	config.attention_probs_dropout_prob = 0.3;
	check_slopes(&config, &model_heads_pretraining);
}

/* Beside masked words, a form without a next-sentence head of its own has one that reads first rows as they are: not through the
 * transform of the masked words, as ModernBERT's heads for tasks do. */
static void gradients_of_pairs_are_slopes(void **state)
{
	struct model_config config = tiny.config;
	REQUIRE(model_config_take_form(&config, "modernbert", 0));
	config.embedding_dropout = config.attention_probs_dropout_prob = config.hidden_dropout_prob = 0.2;
	config.initializer_range = 0.3;
	check_slopes(&config, &model_heads_words_and_pairs);
}

/* Sequences first..end-1 of a batch, as a batch of their own. */
static struct batch part_of(const struct batch *whole, int32_t first, int32_t end)
{
	int32_t base = whole->starts[first], tokens = whole->starts[end] - base, sequences = end - first;
	struct batch part = {.token_count = tokens, .sequence_count = sequences};
	size_t token_room = (size_t)round_up(tokens, 128), room = 128;
	part.ids = calloc(token_room, sizeof(int32_t));
	part.types = calloc(token_room, sizeof(int32_t));
	part.positions = calloc(token_room, sizeof(int32_t));
	part.starts = calloc(room, sizeof(int32_t));
	part.labels[HEAD_NEXT_SENTENCE].classes = calloc(room, sizeof(int32_t));
	part.labels[HEAD_MASKED_WORDS].rows = calloc(room, sizeof(int32_t));
	part.labels[HEAD_MASKED_WORDS].classes = calloc(room, sizeof(int32_t));
	assert_true(part.ids && part.types && part.positions && part.starts && part.labels[HEAD_NEXT_SENTENCE].classes &&
		    part.labels[HEAD_MASKED_WORDS].rows && part.labels[HEAD_MASKED_WORDS].classes);
	memcpy(part.ids, whole->ids + base, (size_t)tokens * sizeof(int32_t));
	memcpy(part.types, whole->types + base, (size_t)tokens * sizeof(int32_t));
	memcpy(part.positions, whole->positions + base, (size_t)tokens * sizeof(int32_t));
	memcpy(part.labels[HEAD_NEXT_SENTENCE].classes, whole->labels[HEAD_NEXT_SENTENCE].classes + first,
	       (size_t)sequences * sizeof(int32_t));
	for (int32_t s = 0; s <= sequences; s++)
		part.starts[s] = whole->starts[first + s] - base;
	for (int32_t i = 0; i < whole->labels[HEAD_MASKED_WORDS].count; i++) {
		int32_t row = whole->labels[HEAD_MASKED_WORDS].rows[i] - base;
		if (row < 0 || row >= tokens)
			continue;
		part.labels[HEAD_MASKED_WORDS].rows[part.labels[HEAD_MASKED_WORDS].count] = row;
		part.labels[HEAD_MASKED_WORDS].classes[part.labels[HEAD_MASKED_WORDS].count++] =
			whole->labels[HEAD_MASKED_WORDS].classes[i];
	}
	complete_batch(&part);
	for (int32_t s = 0; s < sequences; s++)
		part.samples[s] = whole->samples[first + s];
	for (int32_t t = 0; t < tokens; t++)
		part.token_samples[t] = whole->token_samples[base + t];
	return part;
}

static double distance(const double *a, const double *b, int64_t count)
{
	double sum = 0;
	for (int64_t i = 0; i < count; i++)
		sum += (a[i] - b[i]) * (a[i] - b[i]);
	return sqrt(sum);
}

/* Four sequences at once, or as 1 + 2 + 1 (the last one without predictions), with dropout: the same step. */
static void micro_batches_add_up(const char *device, enum dtype dtype, double limit)
{
	struct model_config config = config_of_tiny(ACTIVATION_GELU_TANH, 0.1);
	struct run run;
	run_open(&run, device, dtype, 2, &config, &tiny.batch, true);
	run_load(&run, &tiny);
	run_begin(&run, &tiny.batch);
	run_batch(&run, &tiny.batch, true, true, true);
	double *whole = run_gradients(&run), loss = run_loss(&run);
	static const int32_t cuts[] = {0, 1, 3, 4};
	run_begin(&run, &tiny.batch);
	for (int i = 0; i < 3; i++) {
		struct batch part = part_of(&tiny.batch, cuts[i], cuts[i + 1]);
		assert_int_equal(part.labels[HEAD_MASKED_WORDS].count == 0, i == 2);
		run_batch(&run, &part, true, true, i == 0);
		free_batch(&part);
	}
	double *sum = run_gradients(&run);
	int64_t count = run.model->slab_count;
	assert_true(fabs(run_loss(&run) - loss) <= limit * loss);
	assert_true(distance(whole, sum, count) <= limit * norm_of(whole, count));
	free(whole);
	free(sum);
	run_close(&run);
}

static void micro_batches_add_up_on_ref(void **state)
{
	micro_batches_add_up("ref", DTYPE_F64, 1e-13);
}

static void micro_batches_add_up_on_cpu(void **state)
{
	micro_batches_add_up("cpu", DTYPE_F32, 1e-6);
}

/* Evaluation shares buffers between layers, takes less memory and gives the same numbers. */
static void evaluation_is_the_same(void **state)
{
	struct model_config config = config_of_tiny(ACTIVATION_GELU_ERF, 0.1);
	struct run training, evaluation;
	run_open(&training, "ref", DTYPE_F64, 1, &config, &tiny.batch, true);
	run_open(&evaluation, "ref", DTYPE_F64, 1, &config, &tiny.batch, false);
	run_load(&training, &tiny);
	run_load(&evaluation, &tiny);
	run_begin(&training, &tiny.batch);
	run_begin(&evaluation, &tiny.batch);
	run_batch(&training, &tiny.batch, false, false, true);
	run_batch(&evaluation, &tiny.batch, false, false, true);
	assert_true(run_loss(&training) == run_loss(&evaluation));
	struct batch_capacity capacity = INSTANCE_CAPACITY(512, 4, 80);
	assert_true(activations_bytes(evaluation.model, capacity, 1, false) <
		    activations_bytes(evaluation.model, capacity, 1, true) / 2);
	assert_null(evaluation.model->gradients.data);
	assert_true(model_bytes(evaluation.model, true) > model_bytes(evaluation.model, false));
	run_close(&training);
	run_close(&evaluation);
}

/* A batch without masked words and labels has loss 0 and leaves zeros, not what was there before. */
static void nothing_to_learn(const char *device, enum dtype dtype)
{
	struct model_config config = config_of_tiny(ACTIVATION_GELU_ERF, 0.1);
	struct run run;
	run_open(&run, device, dtype, 2, &config, &tiny.batch, true);
	run_load(&run, &tiny);
	run_begin(&run, &tiny.batch);
	run_batch(&run, &tiny.batch, true, true, true);
	struct batch part = part_of(&tiny.batch, 3, 4);
	part.labels[HEAD_NEXT_SENTENCE].classes[0] = -1;
	part.labels[HEAD_NEXT_SENTENCE].weights[0] = 0;
	run_begin(&run, &part);
	run_batch(&run, &part, true, true, true);
	assert_true(run_loss(&run) == 0);
	double *gradients = run_gradients(&run);
	assert_true(norm_of(gradients, run.model->slab_count) == 0);
	free(gradients);
	free_batch(&part);
	run_close(&run);
}

static void nothing_to_learn_on_ref(void **state)
{
	nothing_to_learn("ref", DTYPE_F64);
}

static void nothing_to_learn_on_cpu(void **state)
{
	nothing_to_learn("cpu", DTYPE_F32);
}

/* Without a head that multiplies by the word embeddings, two equal steps give equal gradients: those of the word
 * embeddings are not added to what the step before left. */
static void headless_steps_are_equal(const char *device, enum dtype dtype)
{
	static const struct head inputs[] = {
		{.input = INPUT_FIRST_ROW, .pooled = true, .loss = LOSS_CLASSES},
		{.input = INPUT_CHOSEN_ROWS, .loss = LOSS_CLASSES},
		{.input = INPUT_ALL_ROWS, .loss = LOSS_SEGMENT},
		{.input = INPUT_ALL_ROWS, .loss = LOSS_POINTERS, .classes = 2, .pointers = 1},
	};
	for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
		struct model_config config = config_of_tiny(ACTIVATION_GELU_ERF, 0.1);
		struct model_heads heads = {.architecture = "test", .pooler = inputs[i].pooled, .count = 1, .head = {inputs[i]}};
		struct batch batch = tiny.batch;
		int32_t classes[128] = {0, 1, 1, 0, 1, 0, 1, 0}, rows[128] = {0};
		float weights[128] = {1, 1, 1, 1};
		bool points = inputs[i].loss == LOSS_POINTERS, has_rows = points || inputs[i].input == INPUT_CHOSEN_ROWS;
		heads.head[0].outputs = points ? 2 + 2 * 3 : 2;
		heads.head[0].coefficient = 1;
		snprintf(heads.head[0].name, sizeof heads.head[0].name, "classifier");
		memset(batch.labels, 0, sizeof batch.labels);
		batch.labels[0] = (struct batch_labels){.count = batch.sequence_count,
							.width = points || inputs[i].loss == LOSS_SEGMENT ? 2 : 1,
							.row_width = has_rows,
							.rows = has_rows ? rows : NULL,
							.classes = classes,
							.weights = weights};
		for (int32_t s = 0; s < batch.sequence_count; s++)
			rows[s] = batch.starts[s] + 1;
		struct run run;
		run_open_heads(&run, device, dtype, 2, &config, &heads, &batch, true);
		run_load_encoder(&run, &tiny);
		const struct parameter *word =
			&run.model->parameters[model_find_parameter(run.model, "bert.embeddings.word_embeddings.weight")];
		double *gradients[2];
		for (int step = 0; step < 2; step++) {
			run_begin(&run, &batch);
			run_batch(&run, &batch, true, true, true);
			gradients[step] = run_gradients(&run);
		}
		assert_true(norm_of(gradients[0] + word->offset, word->count) > 0);
		assert_memory_equal(gradients[0], gradients[1], (size_t)run.model->slab_count * sizeof(double));
		free(gradients[0]);
		free(gradients[1]);
		run_close(&run);
	}
}

static void headless_steps_are_equal_on_ref(void **state)
{
	headless_steps_are_equal("ref", DTYPE_F64);
}

static void headless_steps_are_equal_on_cpu(void **state)
{
	headless_steps_are_equal("cpu", DTYPE_F32);
}

static void headless_steps_are_equal_in_bf16(void **state)
{
	if (!cpu_computes_bf16())
		skip();
	headless_steps_are_equal("cpu", DTYPE_BF16);
}

/* The same bits on one thread and on three. */
static void threads_do_not_matter(void **state)
{
	struct model_config config = config_of_tiny(ACTIVATION_GELU_ERF, 0.1);
	double *gradients[2];
	int64_t count = 0;
	for (int i = 0; i < 2; i++) {
		struct run run;
		run_open(&run, "cpu", DTYPE_F32, i == 0 ? 1 : 3, &config, &tiny.batch, true);
		REQUIRE(model_initialize(run.model, &run.replica, 5));
		run_begin(&run, &tiny.batch);
		run_batch(&run, &tiny.batch, true, true, true);
		gradients[i] = run_gradients(&run);
		count = run.model->slab_count;
		run_close(&run);
	}
	assert_true(norm_of(gradients[0], count) > 0);
	assert_memory_equal(gradients[0], gradients[1], (size_t)count * sizeof(double));
	free(gradients[0]);
	free(gradients[1]);
}

/* Embeddings may be wider than layers, as in ELECTRA's generators: every back end has room for their rows, and each thread for
 * its own. */
static void embeddings_may_be_wider(void **state)
{
	static const struct {
		const char *device;
		enum dtype dtype;
		int threads;
	} runs[] = {{"ref", DTYPE_F64, 1}, {"cpu", DTYPE_F32, 1}, {"cpu", DTYPE_F32, 3}};
	struct model_config config = tiny.config;
	double *gradients[3];
	int64_t count = 0;
	REQUIRE(model_form_find("electra", "a test", &config.form));
	config.embedding_size = 1152;
	config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.1;
	for (int i = 0; i < 3; i++) {
		struct run run;
		run_open_heads(&run, runs[i].device, runs[i].dtype, runs[i].threads, &config, &model_heads_words, &tiny.batch,
			       true);
		REQUIRE(model_initialize(run.model, &run.replica, 5));
		run_begin(&run, &tiny.batch);
		run_batch(&run, &tiny.batch, true, true, true);
		gradients[i] = run_gradients(&run);
		count = run.model->slab_count;
		run_close(&run);
	}
	assert_true(distance(gradients[0], gradients[1], count) < 1e-5 * norm_of(gradients[0], count));
	assert_memory_equal(gradients[1], gradients[2], (size_t)count * sizeof(double));
	for (int i = 0; i < 3; i++)
		free(gradients[i]);
}

static int32_t done_layers[8];
static int done_count;

static void remember_layer(void *context, int32_t layer)
{
	(void)context;
	done_layers[done_count++] = layer;
}

static void layers_are_done_from_the_top(void **state)
{
	struct model_config config = config_of_tiny(ACTIVATION_GELU_ERF, 0.1);
	struct run run;
	run_open(&run, "ref", DTYPE_F64, 1, &config, &tiny.batch, true);
	run_load(&run, &tiny);
	run_begin(&run, &tiny.batch);
	model_forward(run.model, run.activations, &run.replica, &tiny.batch, true);
	struct tensor output = activations_output(run.activations);
	assert_int_equal(output.rows, tiny.batch.token_count);
	assert_int_equal(output.columns, config.hidden_size);
	model_losses(run.model, run.activations, &run.replica, &tiny.batch, true, true);
	model_backward(run.model, run.activations, &run.replica, &tiny.batch, true, remember_layer, NULL);
	assert_int_equal(done_count, 4);
	assert_int_equal(done_layers[0], 2); /* pooler and heads */
	assert_int_equal(done_layers[1], 1);
	assert_int_equal(done_layers[2], 0);
	assert_int_equal(done_layers[3], -1);
	run_close(&run);
}

/* Records every dropout site that an operation is given, in the order of the calls. */
static const struct operations *true_operations;
static struct dropout places[32];
static int place_count;

static void note_place(const struct dropout *dropout)
{
	if (dropout->p > 0)
		places[place_count++] = *dropout;
}

static void spy_embed_fwd(struct replica *r, const struct embed_fwd *a)
{
	note_place(&a->dropout);
	true_operations->embed_fwd(r, a);
}

static void spy_attention_fwd(struct replica *r, const struct attention_fwd *a)
{
	note_place(&a->dropout);
	true_operations->attention_fwd(r, a);
}

static void spy_linear_norm_fwd(struct replica *r, const struct linear_norm_fwd *a)
{
	note_place(&a->dropout);
	true_operations->linear_norm_fwd(r, a);
}

static void spy_embed_bwd(struct replica *r, const struct embed_bwd *a)
{
	note_place(&a->dropout);
	true_operations->embed_bwd(r, a);
}

static void spy_attention_bwd(struct replica *r, const struct attention_bwd *a)
{
	note_place(&a->dropout);
	true_operations->attention_bwd(r, a);
}

static void spy_norm_bwd(struct replica *r, const struct norm_bwd *a)
{
	note_place(&a->dropout);
	true_operations->norm_bwd(r, a);
}

/* The embeddings and three sites in each layer all have masks of their own; backward visits them in reverse. */
static void dropout_has_its_places(void **state)
{
	struct model_config config = config_of_tiny(ACTIVATION_GELU_ERF, 0.1);
	config.attention_probs_dropout_prob = 0.3;
	struct run run;
	run_open(&run, "ref", DTYPE_F64, 1, &config, &tiny.batch, true);
	run_load(&run, &tiny);
	run_begin(&run, &tiny.batch);
	true_operations = run.replica.operations;
	struct operations spies = *true_operations;
	spies.embed_fwd = spy_embed_fwd;
	spies.attention_fwd = spy_attention_fwd;
	spies.linear_norm_fwd = spy_linear_norm_fwd;
	spies.embed_bwd = spy_embed_bwd;
	spies.attention_bwd = spy_attention_bwd;
	spies.norm_bwd = spy_norm_bwd;
	run.replica.operations = &spies;
	place_count = 0;
	run_batch(&run, &tiny.batch, true, true, true);
	assert_int_equal(place_count, 14);
	static const uint32_t sites[] = {0, 4, 5, 6, 8, 9, 10};
	for (int i = 0; i < 7; i++) {
		assert_int_equal(places[i].site, sites[i]);
		assert_int_equal(places[13 - i].site, sites[i]);
		double p = i == 1 || i == 4 ? 0.3 : 0.1;
		assert_true(places[i].p == p && places[13 - i].p == p);
	}
	place_count = 0;
	run_batch(&run, &tiny.batch, false, true, true);
	assert_int_equal(place_count, 0);
	run_close(&run);
}

/* A model for forward passes only, which keeps no masters that it does not read, gives the same results as any other. */
static void forward_needs_few_masters(void **state)
{
	static const struct {
		const char *device;
		enum dtype dtype;
		bool fp8;
	} backends[] = {
		{"ref", DTYPE_F64, false}, {"cpu", DTYPE_F32, false}, {"cpu", DTYPE_BF16, false}, {"cpu", DTYPE_BF16, true}};
	struct model_heads heads = {.architecture = "Test", .pooler = true, .count = 1};
	heads.head[0] = (struct head){.input = INPUT_FIRST_ROW,
				      .pooled = true,
				      .outputs = 3,
				      .loss = LOSS_CLASSES,
				      .coefficient = 1,
				      .name = "classifier"};
	struct model_config config = config_of_tiny(ACTIVATION_GELU_ERF, 0);
	config.intermediate_size = 48; /* for FP8 */
	struct shape_limits limits = model_shape_limits(&config, batch_capacity_of(&tiny.batch), tiny.batch.longest, false);
	for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
		if (backends[i].dtype == DTYPE_BF16 && !cpu_computes_bf16())
			continue;
		bool copies = strcmp(backends[i].device, "ref") != 0;
		size_t bytes[2];
		float *slab = NULL;
		void *outputs[2];
		size_t size = 0;
		struct pool *pool;
		struct backend *be;
		REQUIRE(pool_create(&pool, 1));
		REQUIRE(backend_open(&be, &(struct backend_settings){.device = backends[i].device,
								     .dtype = backends[i].dtype,
								     .fp8 = backends[i].fp8,
								     .pool = pool}));
		for (int few = 0; few < 2; few++) {
			struct model *model;
			struct replica replica;
			struct activations *activations;
			REQUIRE(model_create(&model, be, &config, &heads));
			REQUIRE(few ? model_allocate_forward(model) : model_allocate(model, false));
			bytes[few] = few ? model_forward_bytes(model) : model_bytes(model, false);
			REQUIRE(be->functions->replica_create(be, &replica, &limits));
			REQUIRE(activations_create(&activations, model, limits.batch, limits.longest, false));
			if (!few) {
				slab = calloc((size_t)model->slab_count, sizeof *slab);
				REQUIRE(model_initialize(model, &replica, 5));
				REQUIRE(model_get_weights(model, slab));
			} else {
				REQUIRE(model_set_weights(model, &replica, slab));
				assert_true((model->layers[1].qkv.master.data == NULL) == copies);
				assert_non_null(model->word.master.data);
				assert_non_null(model->layers[1].qkv_bias.master.data);
			}
			model_forward(model, activations, &replica, &tiny.batch, false);
			struct tensor y = model_outputs(model, activations, &replica, &tiny.batch, 0);
			size = (size_t)(y.rows * y.columns) * dtype_bytes(y.dtype);
			outputs[few] = malloc(size);
			be->functions->to_host(be, outputs[few], y.data, size);
			activations_free(activations);
			be->functions->replica_release(&replica);
			model_free(model);
		}
		assert_memory_equal(outputs[0], outputs[1], size);
		assert_true(copies ? bytes[1] < bytes[0] : bytes[1] <= bytes[0] + 4096);
		free(outputs[0]);
		free(outputs[1]);
		free(slab);
		backend_close(be);
		pool_free(pool);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ref_equals_transformers),
		cmocka_unit_test(cpu_equals_transformers),
		cmocka_unit_test(cpu_in_bf16_is_near),
		cmocka_unit_test(gradients_are_slopes),
		cmocka_unit_test(gradients_of_pairs_are_slopes),
		cmocka_unit_test(dropout_has_its_places),
		cmocka_unit_test(micro_batches_add_up_on_ref),
		cmocka_unit_test(micro_batches_add_up_on_cpu),
		cmocka_unit_test(evaluation_is_the_same),
		cmocka_unit_test(nothing_to_learn_on_ref),
		cmocka_unit_test(nothing_to_learn_on_cpu),
		cmocka_unit_test(headless_steps_are_equal_on_ref),
		cmocka_unit_test(headless_steps_are_equal_on_cpu),
		cmocka_unit_test(headless_steps_are_equal_in_bf16),
		cmocka_unit_test(threads_do_not_matter),
		cmocka_unit_test(embeddings_may_be_wider),
		cmocka_unit_test(layers_are_done_from_the_top),
		cmocka_unit_test(forward_needs_few_masters),
	};
	return cmocka_run_group_tests(tests, open_golden, close_golden);
}
