/* What words alone tell of their tags. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/string_index.h"
#include "tasks/tagging/tag_text.h"

/* How often each word has each tag in training. */
struct word_tags {
	struct string_index words;
	int32_t *counts; /* [words][tags] */
	int64_t capacity;
	int32_t tags;
};

static enum status count_tags(const struct tag_text *train, struct word_tags *out)
{
	for (int64_t w = 0; w < train->word_count; w++) {
		int64_t id, before = out->capacity;
		TRY(string_index_add(&out->words, train->words[w], out->words.count, &id));
		TRY(memory_grow(&out->counts, &out->capacity, (id + 1) * out->tags, sizeof *out->counts, "tags of words"));
		if (out->capacity > before)
			memset(out->counts + before, 0, (size_t)(out->capacity - before) * sizeof *out->counts);
		if (train->gold[w] >= 0 && train->gold[w] < out->tags)
			out->counts[id * out->tags + train->gold[w]]++;
	}
	return OK;
}

/* The word's most frequent tag; of equally frequent ones the first. */
static int32_t tag_of(const struct word_tags *known, const char *word, int32_t unknown)
{
	int64_t id = string_index_find(&known->words, word);
	int32_t best = 0;
	if (id < 0)
		return unknown;
	for (int32_t t = 1; t < known->tags; t++)
		if (known->counts[id * known->tags + t] > known->counts[id * known->tags + best])
			best = t;
	return best;
}

enum status tag_baseline(const struct tag_text *train, const struct tag_text *text, struct measures *out)
{
	struct word_tags known = {.tags = train->name_count};
	int32_t *predicted = NULL;
	enum status status;
	TRY_GOTO(count_tags(train, &known), done);
	TRY_GOTO(memory_new(&predicted, text->word_count, sizeof *predicted, "predictions"), done);
	for (int64_t w = 0; w < text->word_count; w++)
		predicted[w] = tag_of(&known, text->words[w], text->outside);
	status = measure_entities(&(struct tagged){.gold = text->gold,
						   .predicted = predicted,
						   .starts = text->starts,
						   .sentences = text->sentence_count,
						   .names = text->names,
						   .tags = text->name_count},
				  NULL, out);
done:
	string_index_release(&known.words);
	free(known.counts);
	free(predicted);
	return status;
}
