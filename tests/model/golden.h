/* Runs a whole model on a batch and compares loss and gradients with a file from dev/model_golden.py. Shared by
 * test_model.c and dev/model_compare.c. A failure to open anything ends the program. */
#ifndef TESTS_MODEL_GOLDEN_H
#define TESTS_MODEL_GOLDEN_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "data/pretraining/instances.h"
#include "formats/safetensors.h"
#include "model/model.h"
#include "backend/open.h"

#define REQUIRE(call)                                                                                                            \
	do {                                                                                                                     \
		if ((call) != OK) {                                                                                              \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, error_last()->message);                               \
			exit(1);                                                                                                 \
		}                                                                                                                \
	} while (0)

struct golden {
	const char *path;
	struct safetensors file;
	struct model_config config; /* hidden_act is chosen by the run */
	struct batch batch;
};

static inline void *golden_array(const struct golden *golden, const char *name, int64_t *out_count)
{
	const struct safetensors_entry *entry = safetensors_find(&golden->file, name);
	if (!entry) {
		fprintf(stderr, "'%s' has no '%s'\n", golden->path, name);
		exit(1);
	}
	if (out_count)
		*out_count = entry->count;
	/* As in data/batch.h: room up to a multiple of 128, zeros after the content. */
	void *copy = calloc((size_t)round_up(entry->count + 1, 128), entry->bytes / (size_t)entry->count);
	if (!copy)
		exit(1);
	return memcpy(copy, entry->data, entry->bytes);
}

static inline double *golden_doubles(const struct golden *golden, const char *name, int64_t count)
{
	const struct safetensors_entry *entry = safetensors_find(&golden->file, name);
	double *values = malloc((size_t)count * sizeof *values);
	if (!entry || entry->count != count || !values) {
		fprintf(stderr, "'%s' has no '%s' of %lld numbers\n", golden->path, name, (long long)count);
		exit(1);
	}
	REQUIRE(safetensors_to_double(entry, golden->path, values));
	return values;
}

/* Token indices sorted by (id, index), with an insertion sort: the batches of tests are short. */
static inline int32_t *sorted_by_id(const int32_t *ids, int64_t count)
{
	int32_t *order = calloc((size_t)round_up(count + 1, 128), sizeof *order);
	if (!order)
		exit(1);
	for (int32_t i = 0; i < count; i++) {
		int32_t j = i;
		for (; j > 0 && ids[order[j - 1]] > ids[i]; j--)
			order[j] = order[j - 1];
		order[j] = i;
	}
	return order;
}

/* Fills in the fields that can be derived from starts and ids. */
static inline void complete_batch(struct batch *batch)
{
	size_t tokens = (size_t)round_up(batch->token_count, 128),
	       rows = (size_t)round_up(batch->labels[HEAD_MASKED_WORDS].count + 1, 128);
	batch->token_samples = calloc(tokens, sizeof *batch->token_samples);
	batch->samples = calloc((size_t)round_up(batch->sequence_count, 128), sizeof *batch->samples);
	struct batch_labels *words = &batch->labels[HEAD_MASKED_WORDS], *next = &batch->labels[HEAD_NEXT_SENTENCE];
	words->width = words->row_width = next->width = 1;
	words->weights = calloc(rows, sizeof *words->weights);
	next->weights = calloc((size_t)round_up(batch->sequence_count, 128), sizeof *next->weights);
	batch->example_starts = calloc((size_t)round_up(batch->sequence_count + 1, 128), sizeof *batch->example_starts);
	batch->id_order = sorted_by_id(batch->ids, batch->token_count);
	if (!batch->token_samples || !batch->samples || !words->weights || !next->weights || !batch->example_starts)
		exit(1);
	batch->longest = 0;
	for (int32_t s = 0; s < batch->sequence_count; s++) {
		int32_t length = batch->starts[s + 1] - batch->starts[s];
		batch->longest = length > batch->longest ? length : batch->longest;
		batch->samples[s] = 1000 + (uint32_t)s;
		for (int32_t t = batch->starts[s]; t < batch->starts[s + 1]; t++)
			batch->token_samples[t] = batch->samples[s];
	}
	for (int32_t i = 0; i < words->count; i++)
		words->weights[i] = 1;
	batch->example_count = next->count = batch->sequence_count;
	for (int32_t s = 0; s < batch->sequence_count; s++) {
		batch->example_starts[s + 1] = s + 1;
		next->weights[s] = next->classes[s] >= 0;
	}
}

static inline void free_batch(struct batch *batch)
{
	void *arrays[] = {batch->ids,
			  batch->types,
			  batch->positions,
			  batch->token_samples,
			  batch->starts,
			  batch->samples,
			  batch->example_starts,
			  batch->labels[HEAD_NEXT_SENTENCE].classes,
			  batch->labels[HEAD_NEXT_SENTENCE].weights,
			  batch->labels[HEAD_MASKED_WORDS].rows,
			  batch->id_order,
			  batch->labels[HEAD_MASKED_WORDS].classes,
			  batch->labels[HEAD_MASKED_WORDS].weights};
	for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
		free(arrays[i]);
}

static inline void golden_open(struct golden *golden, const char *path)
{
	*golden = (struct golden){.path = path};
	REQUIRE(safetensors_open(&golden->file, path));
	const char *prefix = "config=";
	for (int64_t i = 0; i < golden->file.metadata.count; i++) {
		const char *line = golden->file.metadata.names[i];
		if (strncmp(line, prefix, strlen(prefix)) != 0)
			continue;
		struct json_document document;
		REQUIRE(json_parse(&document, path, line + strlen(prefix), strlen(line + strlen(prefix))));
		REQUIRE(model_config_from_json(&golden->config, document.root, path));
		json_release(&document);
	}
	struct batch *batch = &golden->batch;
	int64_t tokens, starts, predictions;
	batch->ids = golden_array(golden, "batch.ids", &tokens);
	batch->types = golden_array(golden, "batch.types", NULL);
	batch->positions = golden_array(golden, "batch.positions", NULL);
	batch->starts = golden_array(golden, "batch.starts", &starts);
	batch->labels[HEAD_NEXT_SENTENCE].classes = golden_array(golden, "batch.next_labels", NULL);
	batch->labels[HEAD_MASKED_WORDS].rows = golden_array(golden, "batch.prediction_rows", &predictions);
	batch->labels[HEAD_MASKED_WORDS].classes = golden_array(golden, "batch.prediction_labels", NULL);
	batch->token_count = (int32_t)tokens;
	batch->sequence_count = (int32_t)starts - 1;
	batch->labels[HEAD_MASKED_WORDS].count = (int32_t)predictions;
	complete_batch(batch);
}

static inline void golden_close(struct golden *golden)
{
	free_batch(&golden->batch);
	safetensors_close(&golden->file);
}

/* Layers below this one are frozen in models that are opened from now on, -1 being the embeddings. */
static int32_t run_frozen = -1;

/* A model with memory for batches up to `capacity`, and one replica. */
struct run {
	struct pool *pool;
	struct backend *backend;
	struct model *model;
	struct replica replica;
	struct activations *activations;
	struct scalars scalars;
};

static inline void run_open_heads(struct run *run, const char *device, enum dtype dtype, int threads,
				  const struct model_config *config, const struct model_heads *heads, const struct batch *largest,
				  bool training)
{
	*run = (struct run){.scalars = {.loss_scale = 1, .seed = 7}};
	REQUIRE(pool_create(&run->pool, threads));
	REQUIRE(backend_open(&run->backend, &(struct backend_settings){.device = device, .dtype = dtype, .pool = run->pool}));
	struct shape_limits limits = model_shape_limits(config, batch_capacity_of(largest), largest->longest, training);
	REQUIRE(model_create(&run->model, run->backend, config, heads));
	double rates[128];
	for (int64_t i = 0; i < run->model->parameter_count && run_frozen >= 0; i++)
		rates[i] = run->model->parameters[i].depth < run_frozen ? 0 : 1;
	if (run_frozen >= 0)
		model_set_rates(run->model, rates);
	REQUIRE(model_allocate(run->model, training));
	REQUIRE(run->backend->functions->replica_create(run->backend, &run->replica, &limits));
	REQUIRE(activations_create(&run->activations, run->model, limits.batch, limits.longest, training));
}

static inline void run_open(struct run *run, const char *device, enum dtype dtype, int threads, const struct model_config *config,
			    const struct batch *largest, bool training)
{
	run_open_heads(run, device, dtype, threads, config, &model_heads_pretraining, largest, training);
}

static inline void run_close(struct run *run)
{
	activations_free(run->activations);
	run->backend->functions->replica_release(&run->replica);
	model_free(run->model);
	backend_close(run->backend);
	pool_free(run->pool);
}

/* Copies the weights of a golden file, and small values for tensors that it lacks, unless `all` must be there. */
static inline void run_load_what_is_there(struct run *run, const struct golden *golden, bool all)
{
	float *slab = calloc((size_t)run->model->slab_count, sizeof *slab);
	for (int64_t i = 0; slab && i < run->model->parameter_count; i++) {
		const struct parameter *parameter = &run->model->parameters[i];
		char name[160];
		snprintf(name, sizeof name, "weights.%s", parameter->name);
		const struct safetensors_entry *entry = safetensors_find(&golden->file, name);
		for (int64_t k = 0; !all && !entry && k < parameter->count; k++)
			slab[parameter->offset + k] = 0.01F * (float)(k % 7 - 3);
		if (!all && !entry)
			continue;
		if (!entry || entry->count != parameter->count) {
			fprintf(stderr, "'%s' has no '%s' of %lld numbers\n", golden->path, name, (long long)parameter->count);
			exit(1);
		}
		REQUIRE(safetensors_to_float(entry, golden->path, slab + parameter->offset));
	}
	REQUIRE(model_set_weights(run->model, &run->replica, slab));
	free(slab);
}

static inline void run_load(struct run *run, const struct golden *golden)
{
	run_load_what_is_there(run, golden, true);
}

static inline void run_load_encoder(struct run *run, const struct golden *golden)
{
	run_load_what_is_there(run, golden, false);
}

/* Clears the sums and sets the normalizers of a step that consists of `step` alone. */
static inline void run_begin(struct run *run, const struct batch *step)
{
	const struct backend_functions *functions = run->backend->functions;
	for (int h = 0; h < BATCH_HEADS; h++) {
		double weight = 0;
		for (int32_t i = 0; i < step->labels[h].count; i++)
			weight += (double)step->labels[h].weights[i];
		run->scalars.inverse_weight[h] = weight > 0 ? 1 / weight : 0;
	}
	functions->to_device(run->backend, run->replica.scalars, &run->scalars, sizeof run->scalars);
	struct accumulators none = {{0}};
	functions->to_device(run->backend, run->replica.accumulators, &none, sizeof none);
}

static inline void run_batch(struct run *run, const struct batch *host, bool dropout, bool training, bool overwrite)
{
	struct batch batch;
	run->backend->functions->upload(&run->replica, host, &batch);
	model_forward(run->model, run->activations, &run->replica, &batch, dropout);
	model_losses(run->model, run->activations, &run->replica, &batch, training, overwrite);
	if (training)
		model_backward(run->model, run->activations, &run->replica, &batch, overwrite, NULL, NULL);
	REQUIRE(run->backend->functions->synchronize(&run->replica));
}

static inline struct accumulators run_sums(struct run *run)
{
	struct accumulators sums;
	run->backend->functions->to_host(run->backend, &sums, run->replica.accumulators, sizeof sums);
	return sums;
}

/* MLM mean + NSP mean. */
static inline double run_loss(struct run *run)
{
	struct accumulators sums = run_sums(run);
	return sums.value[sum_of_loss(HEAD_MASKED_WORDS)] * run->scalars.inverse_weight[HEAD_MASKED_WORDS] +
	       sums.value[sum_of_loss(HEAD_NEXT_SENTENCE)] * run->scalars.inverse_weight[HEAD_NEXT_SENTENCE];
}

/* All gradients, gaps included, as doubles; the caller frees them. */
static inline double *run_gradients(struct run *run)
{
	int64_t count = run->model->gradients.columns;
	double *out = malloc((size_t)count * sizeof *out);
	if (!out)
		exit(1);
	run->backend->functions->to_host(run->backend, out, run->model->gradients.data,
					 (size_t)count * dtype_bytes(run->backend->master_dtype));
	if (run->backend->master_dtype == DTYPE_F32)
		for (int64_t i = count - 1; i >= 0; i--) {
			float value;
			memcpy(&value, (char *)out + (size_t)i * sizeof value, sizeof value);
			out[i] = (double)value;
		}
	return out;
}

static inline double norm_of(const double *values, int64_t count)
{
	double sum = 0;
	for (int64_t i = 0; i < count; i++)
		sum += values[i] * values[i];
	return sqrt(sum);
}

/* How far gradients may be from float64: `relative` |g| + `global` |G| sqrt(n/N), or `times32` times the error of
 * transformers' own fp32 run, whichever is larger. */
struct limit {
	double relative, global, times32;
};

static inline int compare_parameter_names(const void *a, const void *b)
{
	return strcmp((*(const struct parameter *const *)a)->name, (*(const struct parameter *const *)b)->name);
}

/* Compares every gradient with "<act>.gradient.<name>"; returns the largest error in units of its limit. `table`, if not
 * NULL, receives a line for each tensor. */
static inline double golden_compare(const struct golden *golden, const char *act, const struct model *model,
				    const double *gradients, struct limit limit, FILE *table)
{
	int64_t count = model->parameter_count;
	const struct parameter **sorted = malloc((size_t)count * sizeof *sorted);
	double **wanted = malloc((size_t)count * sizeof *wanted);
	if (!sorted || !wanted)
		exit(1);
	char name[160];
	snprintf(name, sizeof name, "%s.error32", act);
	double *error32 = golden_doubles(golden, name, count);
	for (int64_t i = 0; i < count; i++)
		sorted[i] = &model->parameters[i];
	qsort(sorted, (size_t)count, sizeof *sorted, compare_parameter_names);
	double all = 0;
	for (int64_t i = 0; i < count; i++) {
		snprintf(name, sizeof name, "%s.gradient.%s", act, sorted[i]->name);
		wanted[i] = golden_doubles(golden, name, sorted[i]->count);
		all = hypot(all, norm_of(wanted[i], sorted[i]->count));
	}

	double worst = 0;
	for (int64_t i = 0; i < count; i++) {
		int64_t n = sorted[i]->count;
		double size = norm_of(wanted[i], n), error = 0;
		for (int64_t k = 0; k < n; k++)
			error = hypot(error, gradients[sorted[i]->offset + k] - wanted[i][k]);
		double allowed = limit.relative * size + limit.global * all * sqrt((double)n / (double)model->element_count);
		allowed = fmax(allowed, limit.times32 * error32[i]);
		double units = error / allowed;
		if (!(units <= worst)) /* NaN counts as the worst */
			worst = units;
		if (table)
			fprintf(table,
				"%-62s |g| %9.2e  error %9.2e = %8.1e |g|, %6.2f of transformers' fp32, "
				"%5.2f of the limit\n",
				sorted[i]->name, size, error, error / size, error / error32[i], units);
		free(wanted[i]);
	}
	free(wanted);
	free(sorted);
	free(error32);
	return worst;
}

#endif
