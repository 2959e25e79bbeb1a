/* Adds up the time of a training step from the work of its layers and the links between devices. */
#include "run/forecast.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/forms.h"
#include "run/timeline.h"

const char *const forecast_part_names[5] = {"encoder products", "attention", "between products", "heads and loss", "embeddings"};

/* Number of operations that a layer launches on a device. */
#define FORWARD_OPERATIONS 8
#define BACKWARD_OPERATIONS 16

/* ---- Work of a micro-batch, as seconds on one device ---- */

/* The share of a device's multiprocessors that an output of `rows` x `columns` in tiles of 128 rows keeps busy, averaged over the
 * waves it takes: the better of two tile widths, of which the narrow one is slower by a sixth. A product summed over many `terms`
 * may also be split along them, into pieces of at least 1,024. */
static double busy_share(int multiprocessors, double rows, double columns, double terms)
{
	double best = 0;
	for (int width = 256; width >= 128; width /= 2) {
		double tiles = ceil(rows / 128) * ceil(columns / width), speed = width == 256 ? 1 : 5.0 / 6;
		double pieces = fmax(1, floor(terms / 1024));
		for (double cut = 1; cut <= pieces && cut <= 16; cut++) {
			double all = tiles * cut, rounds = ceil(all / multiprocessors);
			best = fmax(best, speed * all / (rounds * multiprocessors));
		}
	}
	return best;
}

/* y (rows, outputs) = x (rows, inputs) w', and its two products backward. */
static double product_seconds(const struct device_rates *rates, double rows, double outputs, double inputs, bool backward)
{
	double flops = 2 * rows * outputs * inputs;
	if (rows < 1)
		return 0;
	if (!backward) {
		double share = rates->multiprocessors ? busy_share(rates->multiprocessors, rows, outputs, 1) : 1;
		return flops / (rates->products_forward * share);
	}
	double dgrad = 1, wgrad = 1;
	if (rates->multiprocessors) {
		dgrad = busy_share(rates->multiprocessors, rows, inputs, 1);
		wgrad = busy_share(rates->multiprocessors, outputs, inputs, rows);
	}
	return flops / (rates->products_backward * dgrad) + flops / (rates->products_backward * wgrad);
}

/* Seconds that one encoder layer takes for a pass; adds them to `parts`. */
static double layer_seconds(const struct forecast_setup *setup, const struct model_work *work, bool backward, double parts[5])
{
	const struct model_config *config = &setup->model->config;
	const struct device_rates *rates = &setup->rates;
	double hidden = config->hidden_size, inner = config->intermediate_size, wide = model_wide_size(config);
	double tokens = work->tokens, e = rates->element_bytes, pairs = model_pairs_seen(config, work);
	double products = product_seconds(rates, tokens, 3 * hidden, hidden, backward) +
			  product_seconds(rates, tokens, hidden, hidden, backward) +
			  product_seconds(rates, tokens, wide, hidden, backward) +
			  product_seconds(rates, tokens, hidden, inner, backward);
	/* Scores and weighted sums, twice as much backward; reading q, k, v and writing y (4 H), 8 H with their gradients. */
	double attention =
		(backward ? 8 : 4) * hidden * pairs / (backward ? rates->attention_backward : rates->attention_forward) +
		(backward ? 8 : 4) * hidden * tokens * e / rates->attention_memory;
	/* Forward: two norms with bias, dropout and residual. Backward: two norms, and the gradients of the biases of q, k, v. */
	double elements = backward ? 11 * hidden * tokens * e / rates->elements_backward
				   : 6 * hidden * tokens * e / rates->elements_forward;
	if (model_form_of(config)->gated) /* both halves and their product, backward with their gradients */
		elements +=
			(backward ? 5 : 3) * inner * tokens * e / (backward ? rates->elements_backward : rates->elements_forward);
	if (model_form_of(config)->positions == POSITIONS_ROTARY) /* of queries and keys */
		elements += 4 * hidden * tokens * e / (backward ? rates->elements_backward : rates->elements_forward);
	elements += (backward ? BACKWARD_OPERATIONS : FORWARD_OPERATIONS) * rates->gap;
	double times = 1 + rates->overhead;
	parts[PART_PRODUCTS] += products * times;
	parts[PART_ATTENTION] += attention * times;
	parts[PART_ELEMENTS] += elements * times;
	return (products + attention + elements) * times;
}

static double heads_seconds(const struct forecast_setup *setup, const struct model_work *work, double parts[5])
{
	double flops = model_head_flops(&setup->model->config, &setup->model->heads, work);
	double seconds = flops / setup->rates.head + 2 * FORWARD_OPERATIONS * setup->rates.gap;
	seconds *= 1 + setup->rates.overhead;
	parts[PART_HEADS] += seconds;
	return seconds;
}

/* Forward: three rows are read, sum and output are written. Backward: two are read, a gradient is read and written. */
static double embeddings_seconds(const struct forecast_setup *setup, const struct model_work *work, bool backward,
				 double parts[5])
{
	double bytes = (backward ? 4 : 5) * setup->model->config.hidden_size * work->tokens * setup->rates.element_bytes;
	double seconds = (bytes / setup->rates.embeddings + 3 * setup->rates.gap) * (1 + setup->rates.overhead);
	parts[PART_EMBEDDINGS] += seconds;
	return seconds;
}

double forecast_micro_batch(const struct forecast_setup *setup, const struct model_work *work)
{
	double parts[5] = {0}, layers = setup->model->config.num_hidden_layers;
	return layers * (layer_seconds(setup, work, false, parts) + layer_seconds(setup, work, true, parts)) +
	       heads_seconds(setup, work, parts) + embeddings_seconds(setup, work, false, parts) +
	       embeddings_seconds(setup, work, true, parts);
}

static struct model_work work_of(const struct forecast_setup *setup, double sequences)
{
	return (struct model_work){
		.tokens = sequences * setup->mean_length,
		.sequences = sequences,
		.predictions = sequences * setup->predictions,
		.squares = sequences * setup->square_length,
	};
}

static double update_seconds(const struct forecast_setup *setup, double share)
{
	double bytes = (double)setup->model->element_count * setup->update_bytes * share;
	return bytes / setup->rates.update * (1 + setup->rates.overhead) + 4 * setup->rates.gap;
}

/* ---- Communication ---- */

static double layer_elements(const struct model *model, int32_t layer)
{
	double elements = 0;
	for (int64_t i = 0; i < model->parameter_count; i++)
		if (model->parameters[i].layer == layer)
			elements += (double)model->parameters[i].count;
	return elements;
}

static void cut_buckets(const struct forecast_setup *setup, double least, struct forecast *out)
{
	int32_t layers = setup->model->config.num_hidden_layers;
	out->bucket_count = 0;
	struct forecast_bucket bucket = {.first_layer = layers};
	for (int32_t layer = layers; layer >= -1; layer--) {
		bucket.bytes += layer_elements(setup->model, layer) * setup->gradient_bytes;
		if (bucket.bytes < least && layer > -1)
			continue;
		bucket.last_layer = layer;
		if (out->bucket_count < FORECAST_BUCKETS)
			out->buckets[out->bucket_count] = bucket;
		out->bucket_count++;
		bucket = (struct forecast_bucket){.first_layer = layer - 1};
	}
}

static void time_bucket(const struct forecast_setup *setup, struct forecast_bucket *bucket, struct collective_time *largest)
{
	double weights = 0;
	for (int32_t layer = bucket->last_layer; layer <= bucket->first_layer; layer++) {
		bool encoder = layer >= 0 && layer < setup->model->config.num_hidden_layers;
		weights += layer_elements(setup->model, layer) * (encoder ? setup->weight_bytes : 4);
	}
	struct collective_time reduce = collective_time(&setup->topology, COLLECTIVE_REDUCE_SCATTER, bucket->bytes);
	bucket->gather = collective_time(&setup->topology, COLLECTIVE_ALL_GATHER, weights).seconds;
	bucket->reduce = reduce.seconds;
	if (reduce.seconds >= largest->seconds)
		*largest = reduce;
}

/* ---- A step ---- */

/* Indices of a step's pieces of work: embeddings and layers forward, heads together with all earlier micro-batches, layers and
 * embeddings backward, update. */
struct places {
	int64_t layers;
	int64_t embed, first, heads, last, embed_backward, update, count;
};

static struct places step_places(int64_t layers)
{
	struct places at = {.layers = layers, .embed = 0, .first = 1, .heads = layers + 1, .last = layers + 2};
	at.embed_backward = at.last + layers;
	at.update = at.embed_backward + 1;
	at.count = at.update + 1;
	return at;
}

/* The piece of work that completes the layer's gradients. */
static int64_t backward_place(const struct places *at, int32_t layer)
{
	if (layer < 0)
		return at->embed_backward;
	return layer == at->layers ? at->heads : at->last + at->layers - 1 - layer;
}

static int64_t forward_place(const struct places *at, int32_t layer)
{
	return layer < 0 ? at->embed : layer == at->layers ? at->heads : at->first + layer;
}

/* Number of steps simulated, by which the effect of one step on the next has become periodic. */
#define STEPS 3

struct schedule_times {
	double layer_forward, layer_backward, embed_forward, embed_backward;
};

static void lay_out_step(const struct forecast_setup *setup, const struct forecast *f, const struct schedule_times *times,
			 int64_t step, struct timeline_work *work, struct timeline_transfer *transfers)
{
	struct places at = step_places(setup->model->config.num_hidden_layers);
	int64_t per_step = setup->topology.ranks > 1 ? 2 * f->bucket_count + 1 : 0;
	int64_t w = step * at.count, t = step * per_step;
	double others = (double)(f->accumulation - 1) * f->other_batch;
	for (int64_t i = 0; i < at.count; i++)
		work[w + i] = (struct timeline_work){0, -1};
	work[w + at.embed].seconds = times->embed_forward;
	for (int64_t i = 0; i < at.layers; i++) {
		work[w + at.first + i].seconds = times->layer_forward;
		work[w + at.last + i].seconds = times->layer_backward;
	}
	work[w + at.heads].seconds = others + f->heads;
	work[w + at.embed_backward].seconds = times->embed_backward;
	work[w + at.update].seconds = f->update;
	if (per_step == 0)
		return;
	for (int b = 0; b < f->bucket_count; b++) {
		const struct forecast_bucket *bucket = &f->buckets[b];
		int64_t ready = backward_place(&at, bucket->last_layer);
		transfers[t + b] = (struct timeline_transfer){.seconds = bucket->reduce, .after = w + ready};
	}
	/* The norm of the gradients is known once all ranks have contributed theirs. */
	double norm = collective_time(&setup->topology, COLLECTIVE_ALL_REDUCE, 16).seconds;
	transfers[t + f->bucket_count] = (struct timeline_transfer){.seconds = norm, .after = w + at.embed_backward};
	work[w + at.update].needs = t + f->bucket_count;
	for (int g = 0; g < f->bucket_count; g++) {
		const struct forecast_bucket *bucket = &f->buckets[f->bucket_count - 1 - g];
		int64_t transfer = t + f->bucket_count + 1 + g;
		transfers[transfer] = (struct timeline_transfer){.seconds = bucket->gather, .after = w + at.update};
		for (int32_t layer = bucket->last_layer; step + 1 < STEPS && layer <= bucket->first_layer; layer++)
			work[w + at.count + forward_place(&at, layer)].needs = transfer;
	}
}

/* A micro-batch before the last whose gradients are reduced, too: the reduction of each bucket overlaps with the rest of the
 * backward pass, as far as there is time. */
static double reduced_batch_seconds(const struct forecast_setup *setup, const struct schedule_times *times,
				    const struct forecast *f)
{
	double computing = f->forward + f->heads + f->backward, reducing = 0, last = times->embed_backward;
	for (int b = 0; b < f->bucket_count; b++)
		reducing += f->buckets[b].reduce;
	/* The last bucket's reduction has to be waited for, since the next micro-batch adds to the result. */
	double hidden = f->backward - last, tail = f->bucket_count > 0 ? f->buckets[f->bucket_count - 1].reduce : 0;
	double slower = fmax(0, fmax(tail, reducing - hidden));
	return computing + slower + setup->rates.slowed * (reducing - slower);
}

static enum status run_steps(const struct forecast_setup *setup, const struct schedule_times *times, struct forecast *f)
{
	struct places at = step_places(setup->model->config.num_hidden_layers);
	int64_t per_step = setup->topology.ranks > 1 ? 2 * f->bucket_count + 1 : 0;
	struct timeline_work *work = NULL;
	struct timeline_transfer *transfers = NULL;
	double *done = NULL;
	enum status status;
	TRY_GOTO(memory_new(&work, STEPS * at.count, sizeof *work, "a forecast"), end);
	TRY_GOTO(memory_new(&transfers, STEPS * per_step, sizeof *transfers, "a forecast"), end);
	TRY_GOTO(memory_new(&done, STEPS * at.count, sizeof *done, "a forecast"), end);
	/* Starts with the last step, so that the needs which a step sets in the next one are not overwritten. */
	for (int64_t step = STEPS - 1; step >= 0; step--)
		lay_out_step(setup, f, times, step, work, transfers);
	timeline_run(work, STEPS * at.count, transfers, STEPS * per_step, setup->rates.slowed, done);
	int64_t w = (STEPS - 1) * at.count, t = (STEPS - 1) * per_step;
	f->step = done[w + at.update] - done[w - at.count + at.update];
	double began = done[w + at.heads];
	for (int b = 0; per_step > 0 && b < f->bucket_count; b++) {
		f->buckets[b].ready = done[transfers[t + b].after] - began;
		f->buckets[b].begin = transfers[t + b].begin - began;
		f->buckets[b].end = transfers[t + b].end - began;
	}
	f->communication = 0;
	for (int64_t i = 0; i < per_step; i++)
		f->communication += transfers[t + i].seconds;
end:
	free(work);
	free(transfers);
	free(done);
	return status;
}

double forecast_alone(const struct forecast_setup *setup, double micro_sequences)
{
	double batch = (double)setup->batch_size, pieces = ceil(batch / micro_sequences);
	struct model_work work = work_of(setup, batch / pieces);
	return pieces * forecast_micro_batch(setup, &work) + update_seconds(setup, 1);
}

enum status forecast_compute(const struct forecast_setup *setup, struct forecast *f)
{
	double ranks = (double)setup->topology.ranks, batch = (double)setup->batch_size;
	double parts = setup->replicas > 0 ? (double)setup->replicas : 1, local = ceil(batch / (ranks * parts)) * parts;
	*f = (struct forecast){.largest = {.algorithm = ""}};
	f->accumulation = (int64_t)(parts * ceil(local / parts / (double)setup->micro_sequences));
	f->work = work_of(setup, local / (double)f->accumulation);
	struct schedule_times times = {
		.layer_forward = layer_seconds(setup, &f->work, false, f->parts),
		.layer_backward = layer_seconds(setup, &f->work, true, f->parts),
	};
	double layers = setup->model->config.num_hidden_layers;
	for (int i = 0; i < 5; i++)
		f->parts[i] *= layers;
	times.embed_forward = embeddings_seconds(setup, &f->work, false, f->parts);
	times.embed_backward = embeddings_seconds(setup, &f->work, true, f->parts);
	f->forward = times.embed_forward + layers * times.layer_forward;
	f->backward = times.embed_backward + layers * times.layer_backward;
	f->heads = heads_seconds(setup, &f->work, f->parts);
	f->update = update_seconds(setup, 1 / ranks);
	f->computing = (double)f->accumulation * (f->forward + f->heads + f->backward) + f->update;

	double least = setup->bucket_bytes;
	cut_buckets(setup, least, f);
	for (least = fmax(least, 1e6); f->bucket_count > FORECAST_BUCKETS; least *= 2)
		cut_buckets(setup, least, f);
	for (int b = 0; b < f->bucket_count && setup->topology.ranks > 1; b++)
		time_bucket(setup, &f->buckets[b], &f->largest);
	f->other_batch = f->forward + f->heads + f->backward;
	if (setup->reduce_every_batch && f->accumulation > 1 && setup->topology.ranks > 1)
		f->other_batch = reduced_batch_seconds(setup, &times, f);
	TRY(run_steps(setup, &times, f));
	if (setup->reduce_every_batch)
		for (int b = 0; b < f->bucket_count; b++)
			f->communication += (double)(f->accumulation - 1) * f->buckets[b].reduce;
	f->exposed = f->communication > 0 ? fmax(0, f->step - f->computing) : 0;
	/* The maximum of n normally distributed numbers is about sqrt(2 ln n) standard deviations above the mean. */
	f->uneven = setup->rates.uneven * sqrt(2 * log((double)topology_hosts(&setup->topology))) * (f->computing - f->update);
	f->step += f->uneven;

	struct model_work all = work_of(setup, batch);
	f->alone = forecast_alone(setup, (double)setup->micro_sequences);
	f->efficiency = f->alone / (ranks * f->step);
	f->sequences_per_second = batch / f->step;
	f->tokens_per_second = all.tokens / f->step;
	f->model_flops = model_flops_of(&setup->model->config, &setup->model->heads, &all);
	return OK;
}
