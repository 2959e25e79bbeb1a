/* Masking (Devlin et al., "BERT", 2019, section 3.1 and appendix A.1): n tokens are drawn, of which 80 %
 * become [MASK], 10 % a random entry of the vocabulary and 10 % stay. */
#include "data/masking.h"
#include <math.h>
#include <stdlib.h>
#include "base/memory.h"

/* Tokens that are masked together: one token, or the pieces of a word (separators between them do not count).
 */
struct word {
	int32_t begin, count;
};

struct masking {
	struct word *words; /* [max_seq_length] */
	int32_t *labels;    /* [max_seq_length] original id of a chosen position, -1 elsewhere */
};

enum status masking_create(struct masking **out, int32_t max_seq_length)
{
	enum status status;
	struct masking *masking = NULL;
	*out = NULL;
	TRY(memory_new(&masking, 1, sizeof(*masking), "masking"));
	TRY_GOTO(memory_new(&masking->words, max_seq_length, sizeof(*masking->words), "masking"), fail);
	TRY_GOTO(memory_new(&masking->labels, max_seq_length, sizeof(*masking->labels), "masking"), fail);
	for (int32_t i = 0; i < max_seq_length; i++)
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
	free(masking->labels);
	free(masking);
}

/* min(cap, max(1, length * probability)), halves rounded to even as Python's round() does. */
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
	return id == settings->cls || id == settings->sep;
}

/* Everything but [CLS] and [SEP]. With whole words a continuation joins the word before it, as in Google's
 * code even across the [SEP] when cutting has left a continuation at the front of B. */
static int32_t find_words(const struct instance_settings *settings, const struct instance *instance,
                          struct word *words)
{
	int32_t count = 0;
	for (int32_t i = 0; i < instance->length; i++) {
		int32_t id = instance->ids[i];
		if (is_separator(settings, id))
			continue;
		if (count > 0 && settings->whole_word_mask && settings->is_continuation[id])
			words[count - 1].count++;
		else
			words[count++] = (struct word){.begin = i, .count = 1};
	}
	return count;
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

void mask_instance(struct masking *masking, const struct instance_settings *settings, struct rng *rng,
                   struct instance *out)
{
	struct word *words = masking->words;
	int32_t *labels = masking->labels;
	int32_t wanted = instance_predictions(settings, out->length), chosen = 0;
	int32_t word_count = find_words(settings, out, words);
	/* A shuffle of the words, drawn only as far as it is needed. A word that would exceed the wanted
	 * number is passed over. */
	for (int32_t i = 0; i < word_count && chosen < wanted; i++) {
		int32_t j = i + (int32_t)rng_below(rng, (uint32_t)(word_count - i));
		struct word word = words[j];
		words[j] = words[i];
		if (chosen + word.count > wanted)
			continue;
		chosen += word.count;
		for (int32_t at = word.begin; word.count > 0; at++) {
			if (is_separator(settings, out->ids[at]))
				continue;
			labels[at] = out->ids[at];
			out->ids[at] = replacement(settings, rng, out->ids[at]);
			word.count--;
		}
	}
	int32_t count = 0;
	for (int32_t at = 0; count < chosen; at++) {
		if (labels[at] < 0)
			continue;
		out->prediction_positions[count] = at;
		out->prediction_labels[count++] = labels[at];
		labels[at] = -1;
	}
	out->prediction_count = count;
}
