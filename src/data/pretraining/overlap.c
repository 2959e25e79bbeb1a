/* Texts that share some of their words. */
#include "data/pretraining/overlap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/pretraining/token_frequencies.h"

/* A second text that has nothing to do with the first, and one whose taken words are shuffled. */
#define UNRELATED 0.25
#define SHUFFLED 0.3

enum status overlap_weights(float **weights, const struct shard *shards, int64_t shard_count,
			    const struct instance_settings *settings)
{
	int64_t *counts = NULL, total = 0;
	int32_t size = settings->vocab_size;
	enum status status = OK;
	*weights = NULL;
	TRY(memory_new(&counts, size, sizeof *counts, "token counts"));
	TRY_GOTO(token_counts(shards, shard_count, size, settings->segmented_words, counts), done);
	TRY_GOTO(memory_new(weights, size, sizeof **weights, "token weights"), done);
	for (int32_t id = 0; id < size; id++)
		total += counts[id];
	for (int32_t id = 0; id < size; id++) {
		double rarity = log((double)(total + 1) / (double)(counts[id] + 1));
		(*weights)[id] = (float)(rarity * rarity);
	}
done:
	free(counts);
	return status;
}

static bool continues(const struct instance_settings *settings, int32_t id)
{
	return id >= settings->vocab_size || (settings->is_continuation && settings->is_continuation[id]);
}

/* Tokens of the word that begins at text[at]. */
static int64_t word_length(const struct instance_settings *settings, const int32_t *text, int64_t count, int64_t at)
{
	int64_t end = at + 1;
	while (end < count && continues(settings, text[end]))
		end++;
	return end - at;
}

/* Copies words of a[count_a], each with probability `share`, as far as they fit; returns their tokens. */
static int64_t take_words(const struct instance_settings *settings, struct rng *rng, const int32_t *a, int64_t count_a,
			  double share, int32_t *taken, int64_t room)
{
	int64_t count = 0;
	for (int64_t at = 0, length; at < count_a; at += length) {
		length = word_length(settings, a, count_a, at);
		if (count + length > room || rng_double(rng) >= share)
			continue;
		memcpy(taken + count, a + at, (size_t)length * sizeof *taken);
		count += length;
	}
	return count;
}

/* Moves each word to a random place, by rotating the text from there. */
static void shuffle(const struct instance_settings *settings, struct rng *rng, int32_t *text, int64_t count)
{
	for (int64_t at = 0, length; at < count; at += length) {
		int64_t begin = at;
		int64_t drawn = at + rng_below(rng, (uint32_t)(count - at));
		while (drawn > at && continues(settings, text[drawn]))
			drawn--;
		length = word_length(settings, text, count, drawn);
		for (int64_t i = 0; i < length; i++) {
			int32_t id = text[drawn + i];
			memmove(text + begin + i + 1, text + begin + i, (size_t)(drawn - begin) * sizeof *text);
			text[begin + i] = id;
		}
	}
}

static double weight_of(const struct instance_settings *settings, const float *weights, const int32_t *text, int64_t count)
{
	double sum = 0;
	for (int64_t i = 0; i < count; i++)
		sum += weights[text[i] >= settings->vocab_size ? text[i] - settings->vocab_size : text[i]];
	return sum;
}

int32_t overlap_mix(const struct instance_settings *settings, const float *weights, struct rng *rng, const int32_t *a,
		    int64_t count_a, int32_t *b, int64_t count_b, int32_t *scratch)
{
	int32_t *taken = scratch, *mixed = scratch + count_a;
	double share = rng_double(rng) < UNRELATED ? 0 : sqrt(rng_double(rng));
	int64_t count = take_words(settings, rng, a, count_a, share, taken, count_b), own = count_b - count, t = 0, o = 0;
	if (rng_double(rng) < SHUFFLED)
		shuffle(settings, rng, taken, count);
	double shared = weight_of(settings, weights, taken, count);
	/* Interleaved, or the shared words first or last. */
	uint32_t order = rng_below(rng, 3);
	while (t < count || o < own) {
		bool take = order == 0 ? (int64_t)rng_below(rng, (uint32_t)(count - t + own - o)) < count - t
				       : o == own || (order == 1 && t < count);
		const int32_t *from = take ? taken + t : b + o;
		int64_t length = word_length(settings, from, take ? count - t : own - o, 0);
		memcpy(mixed + t + o, from, (size_t)length * sizeof *mixed);
		*(take ? &t : &o) += length;
	}
	memcpy(b, mixed, (size_t)count_b * sizeof *b);
	double norm = sqrt(weight_of(settings, weights, a, count_a) * weight_of(settings, weights, b, count_b));
	return rng_double(rng) * norm < shared ? 0 : 1;
}
