/* Computes and gathers the vectors of all texts of a step, and hands each micro-batch its gradients. */
#include "train/step_vectors.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/contrastive.h"
#include "backend/open.h"

/* What is known about a text besides its vector. */
struct text_facts {
	uint64_t hash; /* hash of its token ids */
	uint32_t sample;
	float score; /* score of its example */
};

struct step_vectors {
	struct step_vectors_settings settings;
	int64_t width, most; /* numbers per vector; maximum number of texts in a rank's share */
	/* This rank's `count` texts, in the order of its micro-batches; those of micro-batch i begin at firsts[i]. */
	int64_t count, *firsts, firsts_capacity;
	struct text_facts *own_facts; /* [most] */
	float *own;                   /* [most * width] */
	struct text_facts *facts;     /* [ranks * most], with several ranks, like the next */
	float *gathered;              /* [ranks * most * width] */
	/* All ranks' texts, in sample order. */
	struct contrastive_step step;
	int64_t *starts, *places; /* [E+1]; [most] the places of this rank's texts */
	float *vectors, *scores, *gradients;
	uint64_t *texts;
	struct contrastive_scratch scratch;
	void *raw; /* vectors or gradients of a batch, in the device's format */
};

static int32_t ranks_of(const struct comm *comm)
{
	return comm ? comm_place(comm)->size : 1;
}

/* Maximum number of texts in a rank's share. */
static int64_t most_texts(const struct step_settings *steps, int32_t sequences)
{
	return step_part_examples(steps) * sequences;
}

static int64_t device_rows(const struct model *model, const struct step_settings *steps)
{
	return backend_room(model->backend, steps->capacity).sequences;
}

size_t step_vectors_bytes(const struct step_settings *steps, int32_t sequences, int32_t width, size_t master_bytes)
{
	size_t most = (size_t)most_texts(steps, sequences), ranks = (size_t)(steps->ranks > 1 ? steps->ranks : 1);
	size_t all = (size_t)steps->batch_size * (size_t)sequences;
	size_t numbers = most + (ranks > 1 ? ranks * most : 0) + 3 * all; /* own, gathered; vectors, gradients, units */
	return numbers * (size_t)width * sizeof(float) + (size_t)steps->capacity.sequences * (size_t)width * master_bytes;
}

enum status step_vectors_create(struct step_vectors **out, const struct step_vectors_settings *settings)
{
	static const char what[] = "vectors of a step";
	struct step_vectors *v;
	int64_t ranks = ranks_of(settings->comm), all = settings->steps->batch_size * settings->sequences;
	int64_t rows = device_rows(settings->model, settings->steps);
	enum status status;
	TRY(memory_new(&v, 1, sizeof *v, what));
	v->settings = *settings;
	v->width = settings->model->heads.head[0].outputs;
	v->most = most_texts(settings->steps, settings->sequences);
	TRY_GOTO(memory_new(&v->own_facts, v->most, sizeof *v->own_facts, what), failed);
	TRY_GOTO(memory_new(&v->own, v->most * v->width, sizeof *v->own, what), failed);
	if (ranks > 1)
		TRY_GOTO(memory_new(&v->facts, ranks * v->most, sizeof *v->facts, what), failed);
	if (ranks > 1)
		TRY_GOTO(memory_new(&v->gathered, ranks * v->most * v->width, sizeof *v->gathered, what), failed);
	TRY_GOTO(memory_new(&v->starts, settings->steps->batch_size + 1, sizeof *v->starts, what), failed);
	TRY_GOTO(memory_new(&v->places, v->most, sizeof *v->places, what), failed);
	TRY_GOTO(memory_new(&v->vectors, all * v->width, sizeof *v->vectors, what), failed);
	TRY_GOTO(memory_new(&v->gradients, all * v->width, sizeof *v->gradients, what), failed);
	TRY_GOTO(memory_new(&v->scores, settings->steps->batch_size, sizeof *v->scores, what), failed);
	TRY_GOTO(memory_new(&v->texts, all, sizeof *v->texts, what), failed);
	TRY_GOTO(memory_new(&v->raw, rows * v->width, dtype_bytes(settings->model->backend->master_dtype), what), failed);
	*out = v;
	return OK;
failed:
	step_vectors_free(v);
	return status;
}

void step_vectors_free(struct step_vectors *v)
{
	if (!v)
		return;
	free(v->firsts);
	free(v->facts);
	free(v->own_facts);
	free(v->own);
	free(v->gathered);
	free(v->starts);
	free(v->places);
	free(v->vectors);
	free(v->gradients);
	free(v->scores);
	free(v->texts);
	free(v->raw);
	contrastive_scratch_release(&v->scratch);
	free(v);
}

/* ---- Forward ---- */

struct forward {
	const struct step_vectors *vectors;
	struct replica *replica;
	struct batch batch; /* on the device */
};

static void queue_forward(void *context)
{
	const struct forward *f = context;
	const struct step_vectors_settings *settings = &f->vectors->settings;
	model_forward(settings->model, settings->activations, f->replica, &f->batch, true);
	model_outputs(settings->model, settings->activations, f->replica, &f->batch, 0);
}

/* Records the facts about the texts of a batch. */
static void take_facts(struct step_vectors *v, const struct batch *host)
{
	for (int32_t e = 0; e < host->example_count; e++) {
		for (int32_t s = host->example_starts[e]; s < host->example_starts[e + 1]; s++) {
			const int32_t *ids = host->ids + host->starts[s];
			v->own_facts[v->count + s] =
				(struct text_facts){.hash = contrastive_text(ids, host->starts[s + 1] - host->starts[s]),
						    .sample = host->samples[s],
						    .score = host->labels[0].values[e]};
		}
	}
}

static enum status forward_batch(struct step_vectors *v, struct replica *replica, const struct batch *host, const void *owner)
{
	struct backend *be = replica->backend;
	struct forward forward = {.vectors = v, .replica = replica};
	BUG_IF(v->count + host->sequence_count > v->most);
	be->functions->upload(replica, host, &forward.batch);
	struct work_key key = work_key(owner, WORK_LOSS, &forward.batch);
	work_queue(replica, &key, queue_forward, &forward);
	take_facts(v, host);
	TRY(be->functions->synchronize(replica));
	struct tensor vectors = model_last_outputs(v->settings.activations, 0);
	int64_t count = host->sequence_count * v->width;
	be->functions->to_host(be, v->raw, vectors.data, (size_t)count * dtype_bytes(vectors.dtype));
	for (int64_t i = 0; i < count; i++)
		v->own[v->count * v->width + i] = number_as_float(v->raw, vectors.dtype, i);
	v->count += host->sequence_count;
	return OK;
}

static enum status forward_all(struct step_vectors *v, struct replica *replica, const struct step *step, const void *owner)
{
	v->count = 0;
	memset(v->own_facts, 0, (size_t)v->most * sizeof *v->own_facts);
	TRY(memory_grow(&v->firsts, &v->firsts_capacity, step->batch_count + 1, sizeof *v->firsts, "micro-batches of a step"));
	model_await(v->settings.model);
	for (int32_t i = 0; i < step->batch_count; i++) {
		const struct batch *host;
		TRY(step_batch(step, i, &host));
		v->firsts[i] = v->count;
		TRY(forward_batch(v, replica, host, owner));
	}
	v->firsts[step->batch_count] = v->count;
	return OK;
}

/* ---- All ranks ---- */

static enum status gather(struct step_vectors *v, int64_t counts[])
{
	struct comm *comm = v->settings.comm;
	TRY(comm_gather(comm, &v->count, sizeof v->count, counts));
	TRY(comm_gather(comm, v->own_facts, (size_t)v->most * sizeof *v->own_facts, v->facts));
	return comm_gather(comm, v->own, (size_t)(v->most * v->width) * sizeof *v->own, v->gathered);
}

/* Where a text is in the step: its example, and its number among the example's texts. Samples are numbered consecutively from
 * the step's first. */
static int64_t example_of(const struct step_vectors *v, const struct step *step, const struct text_facts *facts,
			  int64_t *out_number)
{
	uint32_t sequences = (uint32_t)v->settings.sequences;
	uint32_t offset = facts->sample - (uint32_t)step->first_sample * sequences;
	*out_number = offset % sequences;
	BUG_IF(offset / sequences >= step->example_count);
	return offset / sequences;
}

/* Puts the texts of all ranks in sample order. */
static void arrange(struct step_vectors *v, const struct step *step, const int64_t counts[], const struct text_facts *facts,
		    const float *vectors)
{
	int32_t ranks = ranks_of(v->settings.comm), rank = v->settings.comm ? comm_place(v->settings.comm)->rank : 0;
	int64_t number;
	memset(v->starts, 0, (size_t)(step->example_count + 1) * sizeof *v->starts);
	for (int32_t r = 0; r < ranks; r++)
		for (int64_t i = 0; i < counts[r]; i++)
			v->starts[example_of(v, step, &facts[r * v->most + i], &number) + 1]++;
	for (int64_t e = 0; e < step->example_count; e++)
		v->starts[e + 1] += v->starts[e];
	for (int32_t r = 0; r < ranks; r++) {
		for (int64_t i = 0; i < counts[r]; i++) {
			const struct text_facts *text = &facts[r * v->most + i];
			int64_t example = example_of(v, step, text, &number), place = v->starts[example] + number;
			memcpy(v->vectors + place * v->width, vectors + (r * v->most + i) * v->width,
			       (size_t)v->width * sizeof *vectors);
			v->texts[place] = text->hash;
			v->scores[example] = text->score;
			if (r == rank)
				v->places[i] = place;
		}
	}
	v->step = (struct contrastive_step){.example_count = step->example_count,
					    .count = v->starts[step->example_count],
					    .width = v->width,
					    .starts = v->starts,
					    .vectors = v->vectors,
					    .texts = v->texts,
					    .scores = v->scores,
					    .part = step->member,
					    .number = step->number,
					    .last = v->settings.steps->last_step};
}

enum status step_vectors_compute(struct step_vectors *v, struct replica *replica, const struct step *step, const void *owner,
				 double *out_loss)
{
	const struct step_vectors_settings *settings = &v->settings;
	int32_t ranks = ranks_of(settings->comm);
	int64_t alone, *counts = &alone;
	enum status status = forward_all(v, replica, step, owner);
	if (ranks > 1)
		status = comm_agree_status(settings->comm, status);
	TRY(status);
	if (ranks > 1)
		TRY(memory_new(&counts, ranks, sizeof *counts, "vectors of the ranks"));
	alone = v->count;
	if (ranks > 1)
		TRY_GOTO(gather(v, counts), done);
	arrange(v, step, counts, ranks > 1 ? v->facts : v->own_facts, ranks > 1 ? v->gathered : v->own);
	status = settings->task->task->loss(settings->task, settings->train, &v->step, replica->backend->pool, &v->scratch,
					    out_loss, v->gradients);
done:
	if (counts != &alone)
		free(counts);
	return status;
}

/* ---- Backward ---- */

void step_vectors_send(struct step_vectors *v, int32_t number, const struct batch *batch)
{
	const struct model *model = v->settings.model;
	int64_t first = v->firsts[number], count = v->firsts[number + 1] - first, rows = batch->sequence_count;
	bool wide = model->backend->master_dtype == DTYPE_F64;
	BUG_IF(rows < count);
	memset(v->raw, 0, (size_t)(rows * v->width) * dtype_bytes(model->backend->master_dtype));
	for (int64_t i = 0; i < count; i++) {
		const float *from = v->gradients + v->places[first + i] * v->width;
		for (int64_t k = 0; k < v->width; k++) {
			if (wide)
				((double *)v->raw)[i * v->width + k] = from[k];
			else
				((float *)v->raw)[i * v->width + k] = from[k];
		}
	}
	model_take_vector_gradients(model, v->settings.activations, 0, v->raw, rows);
}
