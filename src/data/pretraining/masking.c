/* Masking (Devlin et al., "BERT", 2019, section 3.1 and appendix A.1): n tokens are drawn, of which 80 %
 * become [MASK], 10 % become a random entry of the vocabulary and 10 % stay unchanged. */
#include "data/pretraining/masking.h"
#include <math.h>
#include <stdlib.h>
#include "base/memory.h"

/* Tokens that are masked together: one token, or the pieces of a word (separators between them do not count). */
struct word {
	int32_t begin, count;
};

struct masking {
	struct word *words; /* [max_seq_length] */
	int32_t *order;     /* [max_seq_length] words in the order in which they are tried; only for n-grams */
	int32_t *labels;    /* [max_seq_length] original id of a chosen position, -1 elsewhere */
};

enum status masking_create(struct masking **out, const struct instance_settings *settings)
{
	enum status status;
	struct masking *masking = NULL;
	int32_t length = settings->max_seq_length;
	*out = NULL;
	TRY(memory_new(&masking, 1, sizeof *masking, "masking"));
	TRY_GOTO(memory_new(&masking->words, length, sizeof *masking->words, "masking"), fail);
	TRY_GOTO(memory_new(&masking->order, length, sizeof *masking->order, "masking"), fail);
	TRY_GOTO(memory_new(&masking->labels, length, sizeof *masking->labels, "masking"), fail);
	for (int32_t i = 0; i < length; i++)
		masking->labels[i] = -1;
	*out = masking;
	return OK;
fail:
	masking_free(masking);
	return status;
}

void masking_free(struct masking *masking)
{
	if (masking == NULL)
		return;
	free(masking->words);
	free(masking->order);
	free(masking->labels);
	free(masking);
}

int32_t *masking_scratch(struct masking *masking)
{
	return masking->order;
}

/* min(limit, max(1, length * probability)), with halves rounded to even as in Python's round(). */
int32_t instance_predictions(const struct instance_settings *settings, int32_t length)
{
	int32_t count = (int32_t)lrint(length * settings->masked_lm_prob);
	if (count < 1)
		count = 1;
	if (settings->max_predictions_per_seq > 0 && count > settings->max_predictions_per_seq)
		count = settings->max_predictions_per_seq;
	return count;
}

static bool is_separator(const struct instance_settings *settings, int32_t id)
{
	return template_has(instance_template(settings), id);
}

/* True if the token continues the word before it. */
static bool is_continuation(const struct instance_settings *settings, int32_t id)
{
	return settings->whole_word_mask && (id >= settings->vocab_size || settings->is_continuation[id]);
}

/* Lists everything except [CLS] and [SEP]. With whole-word masking, a continuation joins the word before it; as in Google's
 * code, even across the [SEP] if truncation has left a continuation at the front of B. */
static int32_t find_words(const struct instance_settings *settings, const struct instance *instance, int32_t end,
			  struct word *words)
{
	int32_t count = 0;
	for (int32_t i = 0; i < end; i++) {
		int32_t id = instance->ids[i];
		if (is_separator(settings, id))
			continue;
		if (count > 0 && is_continuation(settings, id))
			words[count - 1].count++;
		else
			words[count++] = (struct word){.begin = i, .count = 1};
	}
	return count;
}

/* Removes the marks of segmented words, which are not needed once the words are found. */
static void drop_marks(const struct instance_settings *settings, struct instance *instance)
{
	for (int32_t i = 0; settings->segmented_words && i < instance->length; i++)
		if (instance->ids[i] >= settings->vocab_size)
			instance->ids[i] -= settings->vocab_size;
}

static int32_t replacement(const struct instance_settings *settings, struct rng *rng, int32_t id)
{
	uint32_t tenth = rng_below(rng, 10);
	if (tenth < 8)
		return settings->mask;
	if (tenth == 8)
		return id;
	return (int32_t)rng_below(rng, (uint32_t)settings->vocab_size);
}

static void mask_word(struct masking *masking, const struct instance_settings *settings, struct rng *rng, struct word word,
		      struct instance *out)
{
	for (int32_t at = word.begin; word.count > 0; at++) {
		if (is_separator(settings, out->ids[at]))
			continue;
		masking->labels[at] = out->ids[at];
		out->ids[at] = replacement(settings, rng, out->ids[at]);
		word.count--;
	}
}

/* Masks words in shuffled order; the shuffle is drawn only as far as needed. A word that would exceed the wanted number is
 * skipped. Returns the number of masked tokens. */
static int32_t mask_words(struct masking *masking, const struct instance_settings *settings, struct rng *rng, int32_t word_count,
			  int32_t wanted, struct instance *out)
{
	struct word *words = masking->words;
	int32_t chosen = 0;
	for (int32_t i = 0; i < word_count && chosen < wanted; i++) {
		int32_t j = i + (int32_t)rng_below(rng, (uint32_t)(word_count - i));
		struct word word = words[j];
		words[j] = words[i];
		if (chosen + word.count > wanted)
			continue;
		chosen += word.count;
		mask_word(masking, settings, rng, word, out);
	}
	return chosen;
}

/* Number of adjacent words starting with `first`, at most `most`. */
static int32_t adjacent_words(const struct word *words, int32_t word_count, int32_t first, int32_t most)
{
	int32_t n = 1;
	while (n < most && first + n < word_count &&
	       words[first + n].begin == words[first + n - 1].begin + words[first + n - 1].count)
		n++;
	return n;
}

/* Draws a number of words from 1 to `most`, n with weight 1/n. */
static int32_t draw_length(struct rng *rng, int32_t most)
{
	double sum = 0, at;
	for (int32_t n = 1; n <= most; n++)
		sum += 1.0 / n;
	at = rng_double(rng) * sum;
	for (int32_t n = 1; n < most; n++) {
		at -= 1.0 / n;
		if (at < 0)
			return n;
	}
	return most;
}

/* Megatron-LM's masking of n-grams: starting from each word, in random order, takes a run of words of random length; the run
 * is shortened if it would exceed the wanted number, and skipped if it includes a masked word or is still too long. */
static int32_t mask_ngrams(struct masking *masking, const struct instance_settings *settings, struct rng *rng, int32_t word_count,
			   int32_t wanted, struct instance *out)
{
	const struct word *words = masking->words;
	int32_t *order = masking->order, chosen = 0;
	for (int32_t i = 0; i < word_count; i++)
		order[i] = i;
	for (int32_t i = 0; i < word_count && chosen < wanted; i++) {
		int32_t j = i + (int32_t)rng_below(rng, (uint32_t)(word_count - i)), first = order[j], tokens = 0;
		order[j] = order[i];
		int32_t n = draw_length(rng, adjacent_words(words, word_count, first, settings->max_ngram));
		for (int32_t k = 0; k < n; k++)
			tokens += words[first + k].count;
		while (n > 0 && chosen + tokens > wanted)
			tokens -= words[first + --n].count;
		bool free_words = n > 0;
		for (int32_t k = 0; k < n; k++)
			free_words &= masking->labels[words[first + k].begin] < 0;
		for (int32_t k = 0; free_words && k < n; k++)
			mask_word(masking, settings, rng, words[first + k], out);
		chosen += free_words ? tokens : 0;
	}
	return chosen;
}

void mask_instance(struct masking *masking, const struct instance_settings *settings, struct rng *rng, int32_t end,
		   struct instance *out)
{
	int32_t *labels = masking->labels;
	int32_t wanted = instance_predictions(settings, end);
	int32_t word_count = find_words(settings, out, end, masking->words);
	drop_marks(settings, out);
	int32_t chosen = settings->max_ngram > 1 ? mask_ngrams(masking, settings, rng, word_count, wanted, out)
						 : mask_words(masking, settings, rng, word_count, wanted, out);
	int32_t count = 0;
	for (int32_t at = 0; count < chosen; at++) {
		if (labels[at] < 0)
			continue;
		out->prediction_positions[count] = at;
		out->prediction_labels[count] = labels[at];
		if (out->prediction_weights != NULL)
			out->prediction_weights[count] = 1;
		count++;
		labels[at] = -1;
	}
	out->prediction_count = count;
}
