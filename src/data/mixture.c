/* Several sources mixed by weight. Batches of consecutive samples (or single samples: batches of one) are grouped into blocks;
 * each block takes from a source the share that its weight gives it, at places that a permutation determines. So the source of
 * sample n, and how many samples each source has given before it, are known without visiting the samples before n. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "base/rng.h"
#include "data/source.h"

/* Places of a block of single samples: weights are rounded to multiples of 1 / BLOCK. */
#define BLOCK 4096

struct mixture {
	struct instances base;
	uint64_t seed;
	struct instances **sources;
	int32_t *share;                    /* [count] batches per block */
	int64_t count, batch_size, places; /* samples per batch, batches per block */
	int64_t epoch_count;
	int64_t base_epoch, base_first; /* from a hint: all sources begin this epoch at this sample */

	pthread_mutex_t lock; /* guards the fields below: the block laid out last */
	int64_t block;
	int32_t *member; /* [places] */
	int64_t *number; /* [places] of the batch within the member */
};

static struct mixture *self(struct instances *instances)
{
	return (struct mixture *)(void *)instances;
}

/* Assigns each place of a block to a source and a batch of it. Sources give their batches in order. */
static void lay_out(struct mixture *mixture, int64_t block)
{
	uint64_t begin = 0;
	for (int64_t source = 0; source < mixture->count; source++) {
		uint64_t end = begin + (uint64_t)mixture->share[source];
		for (uint64_t i = begin; i < end; i++)
			mixture->member[rng_permute(mixture->seed, RNG_MIXTURE, (uint32_t)block, (uint64_t)mixture->places, i)] =
				(int32_t)source;
		begin = end;
	}
	for (int64_t source = 0; source < mixture->count; source++) {
		int64_t next = block * mixture->share[source];
		for (int64_t i = 0; i < mixture->places; i++)
			if (mixture->member[i] == source)
				mixture->number[i] = next++;
	}
	mixture->block = block;
}

static int64_t mixture_per_epoch(const struct instances *base)
{
	return ((const struct mixture *)(const void *)base)->epoch_count;
}

/* Epoch lengths differ between sources: this reports the last sample at which all of them began an epoch together. */
static enum status mixture_locate(struct instances *base, int64_t sample, int64_t *out_epoch, int64_t *out_first)
{
	struct mixture *mixture = self(base);
	BUG_IF(sample < mixture->base_first);
	*out_epoch = mixture->base_epoch;
	*out_first = mixture->base_first;
	return OK;
}

static enum status mixture_hint(struct instances *base, int64_t epoch, int64_t first)
{
	struct mixture *mixture = self(base);
	if (first < 0)
		return error_set(ERR_STATE, "an epoch cannot begin with sample %lld", (long long)first);
	int64_t place = first / mixture->batch_size, size = mixture->batch_size;
	lay_out(mixture, place / mixture->places);
	for (int64_t source = 0; source < mixture->count; source++) {
		int64_t given = place / mixture->places * mixture->share[source] * size;
		for (int64_t i = 0; i < place % mixture->places; i++)
			given += mixture->member[i] == source ? size : 0;
		given += mixture->member[place % mixture->places] == source ? first % size : 0;
		TRY(instances_hint(mixture->sources[source], epoch, given));
	}
	mixture->base_epoch = epoch;
	mixture->base_first = first;
	return OK;
}

static enum status mixture_plan(struct instances *base, int64_t sample, struct example_plan *out, int64_t *epoch, int64_t *first)
{
	struct mixture *mixture = self(base);
	int64_t own_epoch, own_first, place = sample / mixture->batch_size;
	BUG_IF(sample < 0);
	pthread_mutex_lock(&mixture->lock);
	if (mixture->block != place / mixture->places)
		lay_out(mixture, place / mixture->places);
	int32_t member = mixture->member[place % mixture->places];
	int64_t number = mixture->number[place % mixture->places] * mixture->batch_size + sample % mixture->batch_size;
	pthread_mutex_unlock(&mixture->lock);
	TRY(instances_plan(mixture->sources[member], number, out, &own_epoch, &own_first));
	out->member = member;
	return mixture_locate(base, sample, epoch, first);
}

static enum status mixture_make(struct instances *base, const struct example_plan *plan, struct example *out)
{
	return instances_make(self(base)->sources[plan->member], plan, out);
}

static void mixture_close(struct instances *base)
{
	struct mixture *mixture = self(base);
	for (int64_t i = 0; i < mixture->count; i++)
		instances_close(mixture->sources[i]);
	pthread_mutex_destroy(&mixture->lock);
	free(mixture->sources);
	free(mixture->share);
	free(mixture->member);
	free(mixture->number);
	free(mixture);
}

static const struct source_functions mixture_functions = {
	.close = mixture_close,
	.per_epoch = mixture_per_epoch,
	.locate = mixture_locate,
	.hint = mixture_hint,
	.plan = mixture_plan,
	.make = mixture_make,
};

/* Chooses the shares of a block that come closest to the weights; each source gets at least one batch. */
static enum status choose_shares(struct mixture *mixture, const double *weights)
{
	double sum = 0, places = (double)mixture->places;
	int64_t given = 0;
	if (mixture->count > mixture->places)
		return error_set(ERR_USAGE, "%lld sources to mix; the limit is %lld", (long long)mixture->count,
				 (long long)mixture->places);
	for (int64_t i = 0; i < mixture->count; i++) {
		BUG_IF(!(weights[i] > 0));
		sum += weights[i];
	}
	for (int64_t i = 0; i < mixture->count; i++) {
		double wanted = weights[i] / sum * places;
		if (wanted < 0.5)
			return error_hinted(error_set(ERR_USAGE,
						      "source %lld of the mixture has %.2g of the total weight, less than the "
						      "smallest possible %g: it would be sampled more often than requested",
						      (long long)i + 1, weights[i] / sum, 0.5 / places),
					    "raise its weight or leave it out");
		mixture->share[i] = wanted < 1 ? 1 : (int32_t)wanted;
		given += mixture->share[i];
	}
	/* Hands out the remaining places one by one, each to the source furthest below its weight; if too many were handed out,
	 * takes them back from the sources furthest above theirs. */
	for (; given != mixture->places; given += given < mixture->places ? 1 : -1) {
		int64_t best = -1;
		double furthest = 0;
		for (int64_t i = 0; i < mixture->count; i++) {
			double below = weights[i] / sum * places - mixture->share[i];
			double distance = given < mixture->places ? below : -below;
			if ((given > mixture->places && mixture->share[i] == 1) || (best >= 0 && distance <= furthest))
				continue;
			best = i;
			furthest = distance;
		}
		mixture->share[best] += given < mixture->places ? 1 : -1;
	}
	return OK;
}

/* Bounds that hold for every source. */
static void widen(struct example_bounds *bounds, const struct example_bounds *more)
{
	if (more->max_seq_length > bounds->max_seq_length)
		bounds->max_seq_length = more->max_seq_length;
	if (more->sequences > bounds->sequences)
		bounds->sequences = more->sequences;
	if (more->vocab_size > bounds->vocab_size)
		bounds->vocab_size = more->vocab_size;
	for (int h = 0; h < BATCH_HEADS; h++) {
		if (more->labels[h].most > bounds->labels[h].most)
			bounds->labels[h].most = more->labels[h].most;
		if (more->labels[h].per_token > bounds->labels[h].per_token)
			bounds->labels[h].per_token = more->labels[h].per_token;
	}
}

enum status instances_open_mixture(struct instances **out, struct instances *const *sources, const double *weights, int64_t count,
				   uint64_t seed)
{
	return instances_open_batch_mixture(out, sources, weights, count, seed, 1, BLOCK);
}

enum status instances_open_batch_mixture(struct instances **out, struct instances *const *sources, const double *weights,
					 int64_t count, uint64_t seed, int64_t batch_size, int64_t block)
{
	struct mixture *mixture = NULL;
	enum status status;
	*out = NULL;
	TRY(memory_new(&mixture, 1, sizeof *mixture, "mixture"));
	pthread_mutex_init(&mixture->lock, NULL);
	mixture->base = (struct instances){.functions = &mixture_functions, .bounds = sources[0]->bounds};
	mixture->seed = seed;
	mixture->block = -1;
	mixture->batch_size = batch_size;
	mixture->places = block;
	TRY_GOTO(memory_new(&mixture->member, block, sizeof *mixture->member, "mixture"), fail);
	TRY_GOTO(memory_new(&mixture->number, block, sizeof *mixture->number, "mixture"), fail);
	TRY_GOTO(memory_new(&mixture->sources, count, sizeof(struct instances *), "mixture"), fail);
	TRY_GOTO(memory_new(&mixture->share, count, sizeof *mixture->share, "mixture"), fail);
	mixture->count = count;
	TRY_GOTO(choose_shares(mixture, weights), fail);
	for (int64_t i = 0; i < count; i++) {
		if (instances_per_epoch(sources[i]) == 0) {
			status = error_set(ERR_DATA, "source %lld of %lld to be mixed yields no instances", (long long)i + 1,
					   (long long)count);
			error_hint("its documents are too short: leave it out");
			goto fail;
		}
		mixture->epoch_count += instances_per_epoch(sources[i]);
		widen(&mixture->base.bounds, &sources[i]->bounds);
	}
	memcpy(mixture->sources, sources, (size_t)count * sizeof *sources); /* owned from here on */
	for (int64_t i = 0; i < count; i++)
		if (sources[i]->functions->even_epochs != NULL)
			sources[i]->functions->even_epochs(sources[i]);
	*out = &mixture->base;
	return OK;
fail:
	mixture->count = 0; /* the sources stay the caller's */
	mixture_close(&mixture->base);
	return status;
}
