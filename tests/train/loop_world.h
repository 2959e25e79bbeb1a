/* A training run whose numbers the test makes up: a tiny model on the reference back end with the real optimizer,
 * checkpoints and loop, and an objective that returns the loss and gradients that it is told to. */
#ifndef TESTS_TRAIN_LOOP_WORLD_H
#define TESTS_TRAIN_LOOP_WORLD_H

#include <math.h>
#include "data/pretraining/instances.h"
#include "test.h"
#include "train/loop.h"
#include "backend/open.h"

#define MICRO_BATCHES 2

struct world {
	char folder[128], metrics[160];
	struct pool *pool;
	struct backend *be;
	struct vocab vocab;
	struct tokenizer_settings tokenizer;
	struct model *model;
	struct replica replica;
	struct optimizer *optimizer;
	struct average average;
	struct objective objective;
	struct phase phase;
	struct training training;

	/* The numbers of the objective; NULL: an uneventful run. `run` counts how often this step has been computed, from
	 * 1. */
	double (*loss)(int64_t step, int run);
	double (*gradient)(int64_t step, int32_t batch, int run, double loss_scale); /* factor for the usual gradients */
	double (*evaluation)(int64_t step);
	void (*before_step)(struct world *w, int64_t step);

	/* The current step. */
	struct step step;
	struct batch batches[MICRO_BATCHES];
	int32_t starts[2];
	uint32_t samples[MICRO_BATCHES][1];
	int32_t batch;
	int run;
	double *gradients; /* [slab_count] host */
};

static inline struct world *world_of(struct objective *objective)
{
	return objective->state;
}

static inline enum status world_next_step(struct objective *objective, const struct step **out)
{
	struct world *w = world_of(objective);
	int64_t number = w->training.state.step + 1;
	if (w->before_step)
		w->before_step(w, number);
	w->starts[1] = 4;
	for (int32_t i = 0; i < MICRO_BATCHES; i++) {
		w->samples[i][0] = (uint32_t)(2 * number + i);
		w->batches[i] = (struct batch){
			.token_count = 4, .sequence_count = 1, .longest = 4, .starts = w->starts, .samples = w->samples[i]};
	}
	w->step = (struct step){.number = number,
				.example_count = MICRO_BATCHES,
				.token_count = 8,
				.batch_count = MICRO_BATCHES,
				.most_batches = MICRO_BATCHES,
				.fewest_batches = MICRO_BATCHES,
				.batches = w->batches};
	w->run = 0;
	*out = &w->step;
	return OK;
}

/* Adds the loss. */
static inline void world_forward(struct world *w, struct replica *replica, bool first)
{
	struct accumulators sums;
	w->run += first;
	w->batch = first ? 0 : w->batch + 1;
	w->be->functions->to_host(w->be, &sums, replica->accumulators, sizeof sums);
	double loss = w->loss ? w->loss(w->step.number, w->run) : 5.0;
	sums.value[0] += loss / MICRO_BATCHES;
	w->be->functions->to_device(w->be, replica->accumulators, &sums, sizeof sums);
}

static inline void world_gradients(struct objective *objective, struct replica *replica, const struct batch *batch, bool first,
				   struct layer_hook hook)
{
	struct world *w = world_of(objective);
	struct scalars scalars;
	(void)batch;
	world_forward(w, replica, first);
	w->be->functions->to_host(w->be, &scalars, replica->scalars, sizeof scalars);
	double factor = w->gradient ? w->gradient(w->step.number, w->batch, w->run, scalars.loss_scale) : 1;
	for (int64_t p = 0; p < w->model->parameter_count; p++) {
		const struct parameter *parameter = &w->model->parameters[p];
		for (int64_t i = parameter->offset; i < parameter->offset + parameter->count; i++) {
			double g = 1e-3 * scalars.loss_scale * (double)((i + w->step.number) % 7 - 3);
			w->gradients[i] = first ? g * factor : w->gradients[i] + g * factor;
		}
	}
	w->be->functions->to_device(w->be, w->model->gradients.data, w->gradients, (size_t)w->model->slab_count * sizeof(double));
	for (int32_t layer = w->model->config.num_hidden_layers; hook.done && layer >= -1; layer--)
		hook.done(hook.context, layer);
}

static inline void world_step_metrics(struct objective *objective, const struct step *step, const struct accumulators *sums,
				      struct measures *out)
{
	(void)objective, (void)step;
	out->count = 0;
	measures_add(out, &(struct measure){"loss", "loss", UNIT_NATS, DIRECTION_LOWER, sums->value[0]});
}

static inline enum status world_evaluate(struct objective *objective, struct replica *replica, int64_t set, struct measures *out)
{
	struct world *w = world_of(objective);
	(void)replica, (void)set;
	measures_add(out, &(struct measure){"loss", "loss", UNIT_NATS, DIRECTION_LOWER, w->evaluation(w->training.state.step)});
	return OK;
}

static inline bool world_locate_not_finite(struct objective *objective, bool loss_is_finite, char *out, size_t size)
{
	(void)objective;
	snprintf(out, size, "%s", loss_is_finite ? "the gradient" : "the loss");
	return true;
}

static inline enum status world_open_phase(void *context, const struct train_state *state, struct objective **out)
{
	struct world *w = context;
	*out = &w->objective;
	return OK;
}

static inline enum status world_locate(void *context, struct train_state *state)
{
	(void)context, (void)state;
	return OK;
}

/* A run into test_folder/<name> of `steps` steps, with a checkpoint every `save_steps`. Tests make their changes before
 * train(). */
static inline void world_open(struct world *w, const char *name, int64_t steps, int64_t save_steps)
{
	static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##c"};
	static const char *const names[] = {NULL};
	*w = (struct world){0};
	snprintf(w->folder, sizeof w->folder, "%s/%s", test_folder, name);
	snprintf(w->metrics, sizeof w->metrics, "%s/metrics.jsonl", w->folder);
	assert_ok(folder_make(w->folder));
	assert_ok(pool_create(&w->pool, 1));
	assert_ok(backend_open(&w->be, &(struct backend_settings){.device = "ref", .dtype = DTYPE_F64, .pool = w->pool}));
	assert_ok(vocab_from_entries(&w->vocab, entries, 8));
	w->tokenizer = tokenizer_defaults(false);
	struct model_config config = {.vocab_size = 8,
				      .hidden_size = 8,
				      .num_hidden_layers = 1,
				      .num_attention_heads = 2,
				      .intermediate_size = 16,
				      .max_position_embeddings = 16,
				      .type_vocab_size = 2,
				      .initializer_range = 0.02,
				      .layer_norm_eps = 1e-12};
	assert_ok(model_create(&w->model, w->be, &config, &model_heads_pretraining));
	assert_ok(model_allocate(w->model, true));
	struct shape_limits limits = {.batch = INSTANCE_CAPACITY(8, 1, 1),
				      .longest = 8,
				      .hidden = 8,
				      .heads = 2,
				      .intermediate = 16,
				      .vocab = 8,
				      .training = true};
	assert_ok(w->be->functions->replica_create(w->be, &w->replica, &limits));
	assert_ok(optimizer_create(&w->optimizer, w->model, NULL,
				   &(struct optimizer_options){.optimizer = OPTIMIZER_ADAMW,
							       .adam_beta1 = 0.9,
							       .adam_beta2 = 0.999,
							       .adam_epsilon = 1e-6,
							       .bias_correction = true}));
	assert_ok(model_initialize(w->model, &w->replica, 7));
	assert_ok(average_open(&w->average, w->model, NULL));
	w->gradients = calloc((size_t)w->model->slab_count, sizeof(double));
	assert_non_null(w->gradients);
	w->objective = (struct objective){.name = "made up",
					  .state = w,
					  .next_step = world_next_step,
					  .gradients = world_gradients,
					  .metrics = world_step_metrics,
					  .evaluation_names = names,
					  .evaluate = world_evaluate,
					  .locate_not_finite = world_locate_not_finite};
	w->phase = (struct phase){.schedule = {.shape = SCHEDULE_CONSTANT, .peak = 1e-3, .total_steps = steps},
				  .steps = steps,
				  .save_steps = save_steps,
				  .log_steps = 1};
	w->training = (struct training){.settings = {.seed = 1, .save_best = true},
					.phases = &w->phase,
					.phase_count = 1,
					.open_phase = world_open_phase,
					.locate = world_locate,
					.context = w,
					.model = w->model,
					.replica = &w->replica,
					.optimizer = w->optimizer,
					.average = &w->average,
					.guard = {.loss_scale = 1},
					.saved_step = -1,
					.report = {.metrics_path = w->metrics}};
	w->training.checkpoints = (struct checkpoint_context){.folder = w->folder,
							      .vocab = &w->vocab,
							      .tokenizer = &w->tokenizer,
							      .max_seq_length = 16,
							      .settings_json = "{}",
							      .computed_on = "a test",
							      .average = &w->average,
							      .keep = 2};
}

static inline void world_close(struct world *w)
{
	free(w->gradients);
	average_release(&w->average);
	optimizer_free(w->optimizer);
	w->be->functions->replica_release(&w->replica);
	model_free(w->model);
	vocab_release(&w->vocab);
	backend_close(w->be);
	pool_free(w->pool);
}

/* Resumes from the newest checkpoint of the folder, as the command does. */
static inline void world_resume(struct world *w)
{
	char path[PATH_BYTES];
	bool found;
	uint64_t hash;
	struct json_document record;
	assert_ok(checkpoint_clean(w->folder));
	assert_ok(checkpoint_latest(w->folder, path, &found));
	if (!found)
		return;
	assert_ok(checkpoint_read_state(path, &record, &w->training.state, &hash));
	json_release(&record);
	assert_ok(checkpoint_load(path, w->model, &w->replica, w->optimizer));
	if (w->training.state.phase.averaged > 0)
		assert_ok(checkpoint_load_average(path, &w->average));
	w->training.saved_step = w->training.state.step;
}

/* Copies all weights; the caller frees them. */
static inline float *world_weights(struct world *w)
{
	float *weights = calloc((size_t)w->model->slab_count, sizeof(float));
	assert_non_null(weights);
	assert_ok(model_get_weights(w->model, weights));
	return weights;
}

static inline bool same_weights(struct world *w, const float *a, const float *b)
{
	return memcmp(a, b, (size_t)w->model->slab_count * sizeof(float)) == 0;
}

#endif
