/* A small training run on several ranks, each a process forked from the test: real instances, model, optimizer, loop and
 * checkpoints. Its output is read afterwards: metrics.jsonl, checkpoints, final weights. */
#ifndef TESTS_TRAIN_RANK_RUN_H
#define TESTS_TRAIN_RANK_RUN_H

#include <math.h>
#include "base/log.h"
#include "base/rng.h"
#include "comm/ranks.h"
#include "data/pretraining/instances.h"
#include "model/flops.h"
#include "train/loop.h"
#include "train/pretraining.h"
#include "backend/open.h"

struct rank_run {
	const char *name; /* of the run's folder in the test folder */
	int32_t ranks, replicas;
	const char *device;
	enum dtype dtype;
	enum optimizer_kind optimizer;
	bool adapts_all;
	int64_t batch_size, steps, stop_at_step, save_steps, eval_steps;
	int32_t accumulation_steps;
	int64_t token_limit; /* per micro-batch */
	bool reduce_every_batch;
	enum comm_type wire;
	int64_t compare_weights_steps;
	bool other_weights; /* the last rank begins with weights of its own */
	double dropout;
	/* Called in every rank: before a step, and after the gradients of each micro-batch; NULL: nothing. */
	void (*before_step)(struct training *training, int64_t step);
	void (*after_batch)(struct training *training, int64_t step);
};

/* Shards that all runs of a test program read. */
static inline void rank_run_corpus(void)
{
	struct rng rng = rng_start(31, RNG_TEST, 0);
	struct shard_writer *writer;
	struct shard_description description = {.vocab_hash = 1};
	assert_ok(shard_writer_open(&writer, test_path("text"), 90));
	for (int document = 0; document < 80; document++) {
		int sentences = 2 + (int)rng_below(&rng, 6), topic = (int)rng_below(&rng, 8);
		for (int s = 0; s < sentences; s++) {
			int32_t ids[24], count = 4 + (int32_t)rng_below(&rng, 16);
			for (int32_t i = 0; i < count; i++)
				ids[i] = 6 + topic * 10 + (int32_t)rng_below(&rng, 10);
			assert_ok(shard_writer_sentence(writer, ids, count));
		}
		assert_ok(shard_writer_end_document(writer));
	}
	assert_ok(shard_writer_commit(writer, &description));
}

/* State of one rank. */
struct rank_state {
	const struct rank_run *run;
	struct pool *pool;
	struct backend *be;
	struct vocab vocab;
	struct tokenizer_settings tokenizer;
	struct shard shard;
	struct instances *instances, *held_out;
	struct model *model;
	void *slabs[2];
	struct replica replica;
	struct activations *activations;
	struct optimizer *optimizer;
	struct evaluation_set set;
	struct phase phase;
	struct step_settings steps;
	struct objective *objective;
	struct objective wrapped; /* the objective with the run's hooks */
	struct training training;
};

static inline enum status rank_next_step(struct objective *objective, const struct step **out)
{
	struct rank_state *s = objective->state;
	if (s->run->before_step)
		s->run->before_step(&s->training, s->training.state.step + 1);
	return s->objective->next_step(s->objective, out);
}

/* The hook is called when backward is complete, so that a test can change the gradients first. */
static inline void rank_gradients(struct objective *objective, struct replica *replica, const struct batch *batch, bool first,
				  struct layer_hook hook)
{
	struct rank_state *s = objective->state;
	if (!s->run->after_batch) {
		s->objective->gradients(s->objective, replica, batch, first, hook);
		return;
	}
	s->objective->gradients(s->objective, replica, batch, first, (struct layer_hook){0});
	s->run->after_batch(&s->training, s->training.state.step + 1);
	for (int32_t layer = s->model->config.num_hidden_layers; hook.done && layer >= -1; layer--)
		hook.done(hook.context, layer);
}

static inline void rank_metrics(struct objective *objective, const struct step *step, const struct accumulators *sums,
				struct measures *out)
{
	struct rank_state *s = objective->state;
	s->objective->metrics(s->objective, step, sums, out);
}

static inline enum status rank_evaluate(struct objective *objective, struct replica *replica, int64_t set, struct measures *out)
{
	struct rank_state *s = objective->state;
	return s->objective->evaluate(s->objective, replica, set, out);
}

static inline bool rank_locate(struct objective *objective, bool loss_is_finite, char *out, size_t size)
{
	struct rank_state *s = objective->state;
	return s->objective->locate_not_finite(s->objective, loss_is_finite, out, size);
}

static inline double rank_waited(const struct objective *objective)
{
	struct rank_state *s = objective->state;
	return s->objective->waited(s->objective);
}

static inline enum status rank_open_phase(void *context, const struct train_state *state, struct objective **out)
{
	struct rank_state *s = context;
	s->steps.first_step = state->step + 1;
	TRY(pretraining_create(&s->objective, &(struct pretraining_settings){
						      .model = s->model,
						      .activations = s->activations,
						      .comm = s->training.comm,
						      .train = s->instances,
						      .steps = s->steps,
						      .evaluation_sets = &s->set,
						      .evaluation_count = 1,
						      .evaluation_instances = 40,
						      .evaluation_capacity = s->steps.capacity,
					      }));
	s->wrapped = (struct objective){.name = "pretraining",
					.state = s,
					.next_step = rank_next_step,
					.gradients = rank_gradients,
					.metrics = rank_metrics,
					.evaluation_count = 1,
					.evaluation_names = s->objective->evaluation_names,
					.evaluate = rank_evaluate,
					.locate_not_finite = rank_locate,
					.waited = rank_waited};
	*out = &s->wrapped;
	return OK;
}

static inline enum status rank_locate_cursor(void *context, struct train_state *state)
{
	struct rank_state *s = context;
	return instances_locate(s->instances, state->samples, &state->epoch, &state->epoch_first_sample);
}

static inline enum status rank_resume(struct rank_state *s, const char *folder)
{
	char path[PATH_BYTES];
	bool found = false;
	uint64_t hash;
	struct json_document record;
	TRY(checkpoint_latest(folder, path, &found));
	if (!found)
		return OK;
	TRY(checkpoint_read_state(path, &record, &s->training.state, &hash));
	json_release(&record);
	s->training.saved_step = s->training.state.step;
	return checkpoint_load(path, s->model, &s->replica, s->optimizer);
}

static inline enum status rank_open(struct rank_state *s, const struct rank_run *run, struct comm *comm, const char *folder,
				    const char *metrics)
{
	static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"};
	struct instance_settings settings = {.seed = 3,
					     .max_seq_length = 32,
					     .masked_lm_prob = 0.15,
					     .short_seq_prob = 0.2,
					     .shuffle = true,
					     .vocab_size = 90,
					     .single = template_usual(2, 3, false),
					     .pair = template_usual(2, 3, true),
					     .mask = 4};
	struct model_config config = {.vocab_size = 90,
				      .hidden_size = 16,
				      .num_hidden_layers = 2,
				      .num_attention_heads = 2,
				      .intermediate_size = 32,
				      .max_position_embeddings = 32,
				      .type_vocab_size = 2,
				      .hidden_act = ACTIVATION_GELU_ERF,
				      .hidden_dropout_prob = run->dropout,
				      .attention_probs_dropout_prob = run->dropout,
				      .initializer_range = 0.02,
				      .layer_norm_eps = 1e-12};
	const struct comm_place *place = comm_place(comm);
	s->run = run;
	TRY(folder_make(folder));
	TRY(pool_create(&s->pool, 1));
	TRY(backend_open(&s->be, &(struct backend_settings){.device = run->device, .dtype = run->dtype, .pool = s->pool}));
	TRY(vocab_from_entries(&s->vocab, entries, 6));
	s->tokenizer = tokenizer_defaults(false);
	TRY(shard_open(&s->shard, test_path("text")));
	TRY(instances_open(&s->instances, &s->shard, 1, &settings));
	settings.seed = EVALUATION_SEED;
	TRY(instances_open(&s->held_out, &s->shard, 1, &settings));
	s->set = (struct evaluation_set){.instances = s->held_out};
	s->steps = (struct step_settings){.batch_size = run->batch_size,
					  .rank = place->rank,
					  .ranks = place->size,
					  .replicas = run->replicas,
					  .linear_work = model_linear_work(&config, &model_heads_pretraining),
					  .accumulation_steps = run->accumulation_steps,
					  .last_step = run->steps};
	struct example_bounds bounds = instance_bounds(&settings);
	s->steps.capacity = batch_capacity_for(&bounds, step_part_examples(&s->steps), run->accumulation_steps,
					       run->accumulation_steps ? 0 : run->token_limit);
	struct shape_limits limits = {.batch = s->steps.capacity,
				      .longest = 32,
				      .hidden = 16,
				      .heads = 2,
				      .intermediate = 32,
				      .vocab = 90,
				      .training = true};
	TRY(model_create(&s->model, s->be, &config, &model_heads_pretraining));
	size_t bytes = (size_t)s->model->slab_count * dtype_bytes(s->model->slab.dtype);
	for (int i = 0; i < 2; i++)
		TRY(comm_allocate(comm, &s->slabs[i], bytes, "weights"));
	TRY(model_allocate_in(s->model, s->slabs[0], s->slabs[1]));
	TRY(s->be->functions->replica_create(s->be, &s->replica, &limits));
	TRY(activations_create(&s->activations, s->model, s->steps.capacity, limits.longest, true));
	TRY(optimizer_create(&s->optimizer, s->model, comm,
			     &(struct optimizer_options){.optimizer = run->optimizer,
							 .adam_beta1 = 0.9,
							 .adam_beta2 = 0.999,
							 .adam_epsilon = 1e-6,
							 .weight_decay = 0.01,
							 .max_grad_norm = 1,
							 .bias_correction = true,
							 .trust_ratio = run->adapts_all ? TRUST_RATIO_ALL : TRUST_RATIO_DECAYED,
							 .gradient_averaging = true}));
	TRY(model_initialize(s->model, &s->replica, run->other_weights && place->rank == place->size - 1 ? 8 : 7));
	s->phase = (struct phase){.schedule = {.shape = SCHEDULE_CONSTANT, .peak = 1e-3, .total_steps = run->steps},
				  .steps = run->steps,
				  .save_steps = run->save_steps,
				  .eval_steps = run->eval_steps,
				  .log_steps = 1};
	s->training = (struct training){.settings = {.seed = 1,
						     .stop_at_step = run->stop_at_step,
						     .reduce_every_batch = run->reduce_every_batch,
						     .wire = run->wire,
						     .compare_weights_steps = run->compare_weights_steps},
					.phases = &s->phase,
					.phase_count = 1,
					.open_phase = rank_open_phase,
					.locate = rank_locate_cursor,
					.context = s,
					.comm = comm,
					.model = s->model,
					.replica = &s->replica,
					.optimizer = s->optimizer,
					.guard = {.loss_scale = run->wire == COMM_F16 ? 1024 : 1},
					.saved_step = -1,
					.report = {.metrics_path = metrics, .silent = place->rank > 0}};
	s->training.checkpoints = (struct checkpoint_context){.folder = folder,
							      .comm = comm,
							      .vocab = &s->vocab,
							      .tokenizer = &s->tokenizer,
							      .max_seq_length = 32,
							      .settings_json = "{}",
							      .computed_on = "a test",
							      .keep = 2};
	return OK;
}

static inline void rank_close(struct rank_state *s, struct comm *comm)
{
	if (s->objective)
		s->objective->close(s->objective);
	optimizer_free(s->optimizer);
	activations_free(s->activations);
	if (s->replica.backend)
		s->be->functions->replica_release(&s->replica);
	model_free(s->model);
	for (int i = 0; i < 2; i++)
		comm_release(comm, s->slabs[i]);
	instances_close(s->instances);
	instances_close(s->held_out);
	shard_close(&s->shard);
	vocab_release(&s->vocab);
	if (s->be)
		backend_close(s->be);
	pool_free(s->pool);
}

/* The first rank writes its weights, and the step where it stopped, into the folder. */
static inline enum status rank_leave(const struct rank_state *s, const char *folder)
{
	char path[PATH_BYTES];
	float *weights;
	TRY(memory_new(&weights, s->model->slab_count, sizeof *weights, "weights"));
	TRY(model_get_weights(s->model, weights));
	TRY(path_join(path, folder, "weights"));
	enum status status = file_write(path, weights, (size_t)s->model->slab_count * sizeof *weights);
	free(weights);
	return status;
}

static inline enum status rank_run_body(struct comm *comm, void *context)
{
	const struct rank_run *run = context;
	struct rank_state state = {0};
	char folder[PATH_BYTES], metrics[PATH_BYTES], log[PATH_BYTES];
	snprintf(folder, sizeof folder, "%s/%s", test_folder, run->name);
	snprintf(metrics, sizeof metrics, "%.4000s/metrics.jsonl", folder);
	snprintf(log, sizeof log, "%.4000s.log.%d", folder, comm_place(comm)->rank);
	log_level = LOG_QUIET;
	log_to_file(log);
	enum status status = rank_open(&state, run, comm, folder, metrics);
	if (status == OK)
		status = comm_agree_status(comm, rank_resume(&state, folder));
	if (status == OK)
		status = train(&state.training);
	if (status == OK && comm_place(comm)->rank == 0)
		status = rank_leave(&state, folder);
	if (status != OK)
		log_warning("%s", error_last()->message);
	rank_close(&state, comm);
	return status;
}

/* Runs all ranks; `statuses` as in run_ranks(). */
static inline void rank_run(const struct rank_run *run, int *statuses)
{
	struct rank_run own = *run;
	run_ranks(run->ranks, rank_run_body, &own, statuses);
}

/* A number of a step in the run's metrics.jsonl. */
static inline double rank_metric(const char *run, int64_t step, const char *name)
{
	char path[PATH_BYTES];
	struct buffer text = {0};
	double found = NAN;
	snprintf(path, sizeof path, "%s/%s/metrics.jsonl", test_folder, run);
	assert_ok(file_read(path, 1 << 24, &text));
	for (char *rest = (char *)(uintptr_t)buffer_string(&text), *line; (line = strtok_r(rest, "\n", &rest));) {
		struct json_document document;
		int64_t number = -1;
		assert_ok(json_parse(&document, path, line, strlen(line)));
		assert_ok(json_get_integer(document.root, path, "step", 0, INT64_MAX, &number));
		if (number == step && json_member(document.root, name))
			assert_ok(json_get_number(document.root, path, name, &found));
		json_release(&document);
	}
	buffer_release(&text);
	return found;
}

/* The first rank's final weights; the caller frees them. */
static inline float *rank_weights(const char *run, int64_t *count)
{
	char path[PATH_BYTES];
	struct buffer bytes = {0};
	snprintf(path, sizeof path, "%s/%s/weights", test_folder, run);
	assert_ok(file_read(path, 1 << 24, &bytes));
	float *weights = malloc(bytes.size);
	assert_non_null(weights);
	memcpy(weights, bytes.data, bytes.size);
	*count = (int64_t)(bytes.size / sizeof *weights);
	buffer_release(&bytes);
	return weights;
}

#endif
