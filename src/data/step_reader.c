/* Whole steps, made ahead in a thread: the plans of the examples, the cut into micro-batches, and the packed rows. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/memory.h"
#include "data/step_cut.h"

/* Two steps in use by the caller (the last two given out), two being made ahead. */
#define SLOTS 4
#define AHEAD 2
/* If the batches of SLOTS steps take no more than this, they are made ahead. For larger steps (a thousand micro-batches, say)
 * only the counts and plans are made ahead; a micro-batch is spelled out on request. */
#define READY_BYTES ((size_t)256 << 20)
/* Micro-batches of such steps that are spelled out at a time: the one on its way to the device, and the next. */
#define SPELLED 2

/* id_order: a stable radix sort by id, eleven bits per pass. */
#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)

/* State for filling batches; one per thread that does so. */
struct batch_maker {
	struct instances *instances;
	int32_t *sorted; /* [tokens] */
	int32_t counts[DIGITS];
};

/* What is kept of a step whose batches are not made ahead. */
struct outline {
	struct step_reader *reader;
	struct example_plan *plans; /* [batch_size] */
	int32_t *order;             /* [batch_size] indices of plans, grouped by rank */
	int64_t first;              /* start of this rank's examples in `order` */
	int32_t *ends;              /* [batch_limit] end of each micro-batch in `order` */
};

struct step_reader {
	struct instances *instances;
	const struct example_bounds *bounds;
	struct step_settings settings;
	int64_t step_count;  /* steps to deliver; INT64_MAX = endless */
	int32_t batch_limit; /* most micro-batches of a step for this rank */
	bool ready;          /* batches are made ahead; otherwise only outlines */
	struct step slots[SLOTS];
	struct outline outlines[SLOTS];  /* if batches are ready, only the first is used */
	struct step_cut cut;             /* used by the thread only */
	int64_t *part_ends;              /* [parts] used by the thread only */
	struct batch_maker ahead, asked; /* for the thread; for the caller */
	struct batch spelled[SPELLED];   /* for the caller, used in turn */
	int64_t spelled_count;
	struct batch scratch; /* used by the thread only: one example, to count its labels */

	pthread_t thread;
	bool thread_runs;
	pthread_mutex_t lock; /* guards all fields below */
	pthread_cond_t changed;
	int64_t made, taken; /* steps made; steps given out */
	bool closing;
	struct error error; /* status OK while nothing has failed */
	double waited;
};

static void sort_by_id(struct batch_maker *maker, struct batch *batch)
{
	int32_t count = batch->token_count, *from = maker->sorted, *to = batch->id_order, *counts = maker->counts;
	uint32_t largest = (uint32_t)instances_bounds(maker->instances)->vocab_size - 1;
	for (int32_t i = 0; i < count; i++)
		from[i] = i;
	for (int shift = 0; shift == 0 || (shift < 32 && largest >> shift > 0); shift += DIGIT_BITS) {
		memset(counts, 0, sizeof maker->counts);
		for (int32_t i = 0; i < count; i++)
			counts[(uint32_t)batch->ids[i] >> shift & (DIGITS - 1)]++;
		int32_t sum = 0;
		for (int i = 0; i < DIGITS; i++) {
			int32_t here = counts[i];
			counts[i] = sum;
			sum += here;
		}
		for (int32_t i = 0; i < count; i++)
			to[counts[(uint32_t)batch->ids[from[i]] >> shift & (DIGITS - 1)]++] = from[i];
		int32_t *swap = from;
		from = to;
		to = swap;
	}
	if (from != batch->id_order)
		memcpy(batch->id_order, from, (size_t)count * sizeof *from);
}

/* Zeroes what an earlier, larger batch left after the used part of an array. */
#define CLEAR_TAIL(array, used, before)                                                                                          \
	do {                                                                                                                     \
		if ((used) < (before))                                                                                           \
			memset((array) + (used), 0, (size_t)((before) - (used)) * sizeof *(array));                              \
	} while (0)

static void clear_labels(const struct batch_labels *labels, int32_t before)
{
	if (labels->rows)
		CLEAR_TAIL(labels->rows, labels->count * labels->row_width, before * labels->row_width);
	if (labels->weights)
		CLEAR_TAIL(labels->weights, labels->count, before);
	if (labels->classes)
		CLEAR_TAIL(labels->classes, labels->count * labels->width, before * labels->width);
	if (labels->values)
		CLEAR_TAIL(labels->values, labels->count * labels->width, before * labels->width);
}

/* `before`: the previous contents of the batch, for their counts. */
static void clear_tails(struct batch *batch, const struct batch *before)
{
	CLEAR_TAIL(batch->ids, batch->token_count, before->token_count);
	CLEAR_TAIL(batch->types, batch->token_count, before->token_count);
	CLEAR_TAIL(batch->positions, batch->token_count, before->token_count);
	CLEAR_TAIL(batch->token_samples, batch->token_count, before->token_count);
	CLEAR_TAIL(batch->id_order, batch->token_count, before->token_count);
	CLEAR_TAIL(batch->starts, batch->sequence_count + 1, before->sequence_count + 1);
	CLEAR_TAIL(batch->samples, batch->sequence_count, before->sequence_count);
	CLEAR_TAIL(batch->example_starts, batch->example_count + 1, before->example_count + 1);
	for (int h = 0; h < BATCH_HEADS; h++)
		clear_labels(&batch->labels[h], before->labels[h].count);
}

/* Pointers to where the next example's labels go in the batch's arrays. */
static struct batch_labels labels_behind(const struct batch_labels *labels)
{
	struct batch_labels behind = {.width = labels->width, .row_width = labels->row_width};
	int64_t numbers = (int64_t)labels->count * labels->width;
	behind.rows = labels->rows ? labels->rows + (int64_t)labels->count * labels->row_width : NULL;
	behind.classes = labels->classes ? labels->classes + numbers : NULL;
	behind.values = labels->values ? labels->values + numbers : NULL;
	behind.weights = labels->weights ? labels->weights + labels->count : NULL;
	return behind;
}

/* Appends one example, building it in place in the batch's arrays. */
static enum status append_example(struct batch_maker *maker, struct batch *batch, int64_t sample, const struct example_plan *plan)
{
	int32_t start = batch->token_count, sequences = batch->sequence_count;
	struct example example = {
		.lengths = batch->starts + sequences + 1, .ids = batch->ids + start, .types = batch->types + start};
	for (int h = 0; h < BATCH_HEADS; h++)
		example.labels[h] = labels_behind(&batch->labels[h]);
	TRY(instances_make(maker->instances, plan, &example));
	int64_t first_sample = sample * instances_bounds(maker->instances)->sequences;
	for (int32_t k = 0, at = start; k < example.sequence_count; k++) {
		int32_t length = example.lengths[k];
		for (int32_t i = 0; i < length; i++) {
			batch->positions[at + i] = i;
			batch->token_samples[at + i] = (uint32_t)(first_sample + k);
		}
		at += length;
		batch->starts[sequences + 1 + k] = at;
		batch->samples[sequences + k] = (uint32_t)(first_sample + k);
		if (batch->longest < length)
			batch->longest = length;
	}
	for (int h = 0; h < BATCH_HEADS; h++) {
		const struct batch_labels *labels = &example.labels[h];
		for (int32_t i = 0; labels->rows && i < labels->count * labels->row_width; i++)
			labels->rows[i] += start;
		batch->labels[h].count += labels->count;
	}
	batch->token_count = start + example.token_count;
	batch->sequence_count = sequences + example.sequence_count;
	batch->example_starts[++batch->example_count] = batch->sequence_count;
	return OK;
}

static void empty_batch(struct batch *batch)
{
	batch->token_count = batch->sequence_count = batch->example_count = batch->longest = 0;
	batch->starts[0] = batch->example_starts[0] = 0;
	for (int h = 0; h < BATCH_HEADS; h++)
		batch->labels[h].count = 0;
}

/* Makes micro-batch `number` of a step. */
static enum status fill_batch(struct batch_maker *maker, const struct outline *outline, int64_t first_sample, int32_t number,
			      struct batch *batch)
{
	int64_t begin = number > 0 ? outline->ends[number - 1] : outline->first, end = outline->ends[number];
	struct batch before = *batch;
	empty_batch(batch);
	for (int64_t i = begin; i < end; i++) {
		int32_t example = outline->order[i];
		TRY(append_example(maker, batch, first_sample + example, &outline->plans[example]));
	}
	sort_by_id(maker, batch);
	clear_tails(batch, &before);
	return OK;
}

static void add_counts(struct step *step, const struct batch *batch)
{
	for (int h = 0; h < BATCH_HEADS; h++) {
		const struct batch_labels *labels = &batch->labels[h];
		for (int32_t i = 0; i < labels->count; i++) {
			step->weights[h] += labels->weights[i];
			step->labeled[h] += labels->weights[i] != 0;
		}
	}
}

/* Makes all batches of a step, and its counts. */
static enum status make_batches(struct step_reader *reader, const struct outline *outline, struct step *step)
{
	for (int32_t i = 0; i < step->batch_count; i++) {
		struct batch *batch = &step->batches[i];
		TRY(fill_batch(&reader->ahead, outline, step->first_sample, i, batch));
		add_counts(step, batch);
	}
	return OK;
}

/* Makes the counts only: each example is built and discarded. Weights are summed in the same order as in make_batches. */
static enum status count_step(struct step_reader *reader, const struct outline *outline, struct step *step)
{
	int64_t end = step->batch_count > 0 ? outline->ends[step->batch_count - 1] : outline->first;
	for (int64_t i = outline->first; i < end; i++) {
		empty_batch(&reader->scratch);
		TRY(append_example(&reader->ahead, &reader->scratch, 0, &outline->plans[outline->order[i]]));
		add_counts(step, &reader->scratch);
	}
	return OK;
}

/* Cuts a step for all ranks: finds this rank's micro-batches, and the largest and smallest number that any rank has. */
static void cut_step(struct step_reader *reader, struct outline *outline, struct step *step)
{
	const struct step_settings *settings = &reader->settings;
	int32_t replicas = settings->replicas > 0 ? settings->replicas : 1;
	int64_t begin = 0, *ends = reader->part_ends;
	step_cut_parts(&reader->cut, outline->plans, step->example_count, outline->order, ends);
	step->batch_count = step->most_batches = 0;
	step->fewest_batches = INT32_MAX;
	for (int32_t rank = 0, part = 0; part < reader->cut.parts; rank++) {
		bool own = rank == settings->rank;
		int32_t batches = 0;
		if (own)
			outline->first = begin;
		for (int32_t replica = 0; replica < replicas; replica++, part++) {
			batches += step_cut_batches(settings, outline->plans, outline->order, begin, ends[part],
						    own ? outline->ends + batches : NULL);
			begin = ends[part];
		}
		if (own)
			step->batch_count = batches;
		if (batches > step->most_batches)
			step->most_batches = batches;
		if (batches < step->fewest_batches)
			step->fewest_batches = batches;
	}
}

/* `index`: number of the step among those to deliver, from 0. */
static enum status make_step(struct step_reader *reader, int64_t index)
{
	const struct step_settings *settings = &reader->settings;
	struct step *step = &reader->slots[index % SLOTS];
	struct outline *outline = &reader->outlines[reader->ready ? 0 : index % SLOTS];
	step->number = settings->first_step + index;
	step->first_sample = settings->samples_before + (step->number - 1 - settings->steps_before) * settings->batch_size;
	step->example_count = settings->batch_size;
	if (settings->sample_count > 0 && step->example_count > settings->sample_count - step->first_sample)
		step->example_count = settings->sample_count - step->first_sample;
	TRY(instances_plan(reader->instances, step->first_sample, &outline->plans[0], &step->epoch, &step->epoch_first));
	step->member = outline->plans[0].member;
	for (int64_t i = 1; i < step->example_count; i++)
		TRY(instances_plan(reader->instances, step->first_sample + i, &outline->plans[i], NULL, NULL));
	step->token_count = 0;
	memset(step->weights, 0, sizeof step->weights);
	memset(step->labeled, 0, sizeof step->labeled);
	for (int64_t i = 0; i < step->example_count; i++) {
		step->lengths[i] = outline->plans[i].tokens;
		step->token_count += outline->plans[i].tokens;
	}
	cut_step(reader, outline, step);
	if (reader->ready)
		return make_batches(reader, outline, step);
	step->outline = outline;
	return count_step(reader, outline, step);
}

enum status step_batch(const struct step *step, int32_t number, const struct batch **out)
{
	BUG_IF(number < 0 || number >= step->batch_count);
	if (step->batches) {
		*out = &step->batches[number];
		return OK;
	}
	struct step_reader *reader = step->outline->reader;
	struct batch *batch = &reader->spelled[reader->spelled_count++ % SPELLED];
	*out = batch;
	return fill_batch(&reader->asked, step->outline, step->first_sample, number, batch);
}

static void *run_reader(void *context)
{
	struct step_reader *reader = context;
	pthread_mutex_lock(&reader->lock);
	while (!reader->closing && reader->error.status == OK && reader->made < reader->step_count) {
		if (reader->made >= reader->taken + AHEAD) {
			pthread_cond_wait(&reader->changed, &reader->lock);
			continue;
		}
		int64_t index = reader->made;
		pthread_mutex_unlock(&reader->lock);
		enum status status = make_step(reader, index);
		pthread_mutex_lock(&reader->lock);
		if (status != OK)
			reader->error = *error_last();
		else
			reader->made++;
		pthread_cond_broadcast(&reader->changed);
	}
	pthread_mutex_unlock(&reader->lock);
	return NULL;
}

/* Number of examples that fit a micro-batch however long they are. */
static int64_t examples_that_fit(const struct example_bounds *bounds, const struct batch_capacity *capacity)
{
	int64_t fits = capacity->tokens / example_tokens(bounds);
	if (fits > capacity->sequences / bounds->sequences)
		fits = capacity->sequences / bounds->sequences;
	if (fits > capacity->examples)
		fits = capacity->examples;
	for (int h = 0; h < BATCH_HEADS; h++)
		if (bounds->labels[h].most > 0 && fits > capacity->labels[h].count / bounds->labels[h].most)
			fits = capacity->labels[h].count / bounds->labels[h].most;
	return fits;
}

/* Most micro-batches that a step can have: with accumulation, the given number for each replica; otherwise it follows from the
 * fact that every micro-batch but a replica's last holds at least as many examples as fit at full length. */
static enum status count_batches(struct step_reader *reader)
{
	const struct step_settings *settings = &reader->settings;
	int64_t full = example_tokens(reader->bounds);
	int64_t fits = examples_that_fit(reader->bounds, &settings->capacity);
	int64_t needed = 1, examples = step_part_examples(settings);
	if (settings->accumulation_steps > 0)
		needed = (examples + settings->accumulation_steps - 1) / settings->accumulation_steps;
	if (fits < needed)
		return error_hinted(error_set(ERR_USAGE,
					      "a micro-batch of %lld %s of up to %lld tokens does not fit: there is room for "
					      "%d tokens in %d sequences",
					      (long long)needed, needed == 1 ? "example" : "examples", (long long)full,
					      settings->capacity.tokens, settings->capacity.sequences),
				    "raise --gradient_accumulation_steps, or lower --train_batch_size");
	int64_t limit = settings->accumulation_steps;
	if (limit == 0)
		limit = (examples + fits - 1) / fits;
	else if (limit > examples)
		limit = examples;
	reader->batch_limit = (int32_t)(limit * (settings->replicas > 0 ? settings->replicas : 1));
	return OK;
}

static bool batches_are_ready(const struct step_reader *reader)
{
	size_t one = batch_bytes(&reader->settings.capacity);
	return SLOTS * (size_t)reader->batch_limit <= READY_BYTES / one;
}

/* Allocates an outline. */
static enum status take_outline(struct step_reader *reader, struct outline *outline)
{
	outline->reader = reader;
	TRY(memory_new(&outline->plans, reader->settings.batch_size, sizeof *outline->plans, "step"));
	TRY(memory_new(&outline->order, reader->settings.batch_size, sizeof *outline->order, "step"));
	return memory_new(&outline->ends, reader->batch_limit, sizeof *outline->ends, "step");
}

static enum status take_maker(struct step_reader *reader, struct batch_maker *maker)
{
	maker->instances = reader->instances;
	return memory_new(&maker->sorted, reader->settings.capacity.tokens, sizeof *maker->sorted, "step");
}

static enum status take_memory(struct step_reader *reader)
{
	const struct step_settings *settings = &reader->settings;
	reader->ready = batches_are_ready(reader);
	TRY(take_maker(reader, &reader->ahead));
	TRY(step_cut_open(&reader->cut, settings, (int32_t)example_tokens(reader->bounds)));
	TRY(memory_new(&reader->part_ends, reader->cut.parts, sizeof *reader->part_ends, "step"));
	for (int s = 0; s < SLOTS; s++) {
		struct step *step = &reader->slots[s];
		TRY(memory_new(&step->lengths, settings->batch_size, sizeof *step->lengths, "step"));
		if (s == 0 || !reader->ready)
			TRY(take_outline(reader, &reader->outlines[s]));
		if (!reader->ready)
			continue;
		TRY(memory_new(&step->batches, reader->batch_limit, sizeof *step->batches, "step"));
		for (int32_t b = 0; b < reader->batch_limit; b++)
			TRY(batch_create(&step->batches[b], &settings->capacity));
	}
	if (reader->ready)
		return OK;
	TRY(take_maker(reader, &reader->asked));
	for (int i = 0; i < SPELLED; i++)
		TRY(batch_create(&reader->spelled[i], &settings->capacity));
	struct batch_capacity one = batch_capacity_for(reader->bounds, 1, 0, 0);
	return batch_create(&reader->scratch, &one);
}

/* Only the main thread handles signals. */
static enum status start_thread(struct step_reader *reader)
{
	sigset_t all, before;
	sigfillset(&all);
	sigdelset(&all, SIGBUS); /* a mapped file was truncated: the handler runs in the thread that reads it */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failure = pthread_create(&reader->thread, NULL, run_reader, reader);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failure != 0)
		return error_set(ERR_RESOURCE, "cannot start the thread that reads data: %s", strerror(failure));
	reader->thread_runs = true;
	return OK;
}

enum status step_reader_open(struct step_reader **out, struct instances *instances, const struct step_settings *settings)
{
	enum status status;
	struct step_reader *reader = NULL;
	*out = NULL;
	BUG_IF(settings->batch_size < 1 || settings->first_step < 1 || settings->accumulation_steps < 0);
	BUG_IF(settings->rank < 0 || settings->rank >= (settings->ranks > 0 ? settings->ranks : 1));
	if (settings->batch_size > INT32_MAX)
		return error_set(ERR_USAGE, "%lld examples per step; the limit is 2^31", (long long)settings->batch_size);
	TRY(memory_new(&reader, 1, sizeof *reader, "step reader"));
	pthread_mutex_init(&reader->lock, NULL);
	pthread_cond_init(&reader->changed, NULL);
	reader->instances = instances;
	reader->bounds = instances_bounds(instances);
	reader->settings = *settings;
	int64_t last = INT64_MAX;
	if (settings->last_step > 0)
		last = settings->last_step;
	if (settings->sample_count > 0) {
		int64_t steps = (settings->sample_count + settings->batch_size - 1) / settings->batch_size;
		last = last < steps ? last : steps;
	}
	reader->step_count = last - settings->first_step + 1;
	TRY_GOTO(count_batches(reader), fail);
	TRY_GOTO(take_memory(reader), fail);
	TRY_GOTO(start_thread(reader), fail);
	*out = reader;
	return OK;
fail:
	step_reader_close(reader);
	return status;
}

enum status step_reader_next(struct step_reader *reader, const struct step **out)
{
	enum status status = OK;
	*out = NULL;
	pthread_mutex_lock(&reader->lock);
	if (reader->taken == reader->made && reader->error.status == OK && reader->made < reader->step_count) {
		double start = clock_seconds();
		while (reader->taken == reader->made && reader->error.status == OK)
			pthread_cond_wait(&reader->changed, &reader->lock);
		reader->waited += clock_seconds() - start;
	}
	if (reader->taken < reader->made) {
		*out = &reader->slots[reader->taken++ % SLOTS];
		pthread_cond_broadcast(&reader->changed);
	} else if (reader->error.status != OK) {
		status = error_restore(&reader->error);
	}
	pthread_mutex_unlock(&reader->lock);
	return status;
}

double step_reader_waited(const struct step_reader *reader)
{
	return reader->waited;
}

void step_reader_close(struct step_reader *reader)
{
	if (reader == NULL)
		return;
	if (reader->thread_runs) {
		pthread_mutex_lock(&reader->lock);
		reader->closing = true;
		pthread_cond_broadcast(&reader->changed);
		pthread_mutex_unlock(&reader->lock);
		pthread_join(reader->thread, NULL);
	}
	for (int s = 0; s < SLOTS; s++) {
		for (int32_t b = 0; b < reader->batch_limit && reader->slots[s].batches != NULL; b++)
			batch_release(&reader->slots[s].batches[b]);
		free(reader->slots[s].batches);
		free(reader->slots[s].lengths);
		free(reader->outlines[s].plans);
		free(reader->outlines[s].order);
		free(reader->outlines[s].ends);
	}
	for (int i = 0; i < SPELLED; i++)
		batch_release(&reader->spelled[i]);
	pthread_mutex_destroy(&reader->lock);
	pthread_cond_destroy(&reader->changed);
	step_cut_release(&reader->cut);
	free(reader->part_ends);
	free(reader->ahead.sorted);
	free(reader->asked.sorted);
	batch_release(&reader->scratch);
	free(reader);
}

size_t step_reader_bytes(const struct example_bounds *bounds, const struct step_settings *settings)
{
	struct step_reader reader = {.bounds = bounds, .settings = *settings};
	if (count_batches(&reader) != OK)
		return 0; /* step_reader_open reports it */
	size_t batch = batch_bytes(&settings->capacity), lengths = SLOTS * (size_t)settings->batch_size * sizeof(int32_t);
	size_t outline = (size_t)settings->batch_size * (sizeof(struct example_plan) + sizeof(int32_t)) +
			 (size_t)reader.batch_limit * sizeof(int32_t);
	if (batches_are_ready(&reader))
		return SLOTS * (size_t)reader.batch_limit * batch + outline + lengths;
	return SPELLED * batch + SLOTS * outline + lengths;
}
