/* Finds the words that save most pieces when they become entries, and adds them to a vocabulary. */
#include "text/vocab_extend.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "text/tokenizer_wordpiece.h"

/* Most pieces of a word: as many as the longest word that is counted has bytes. */
#define MOST_PIECES 4096

struct candidate {
	int64_t saved, count;
	char *word;
};

struct extension {
	struct wordpiece wordpiece;
	struct candidate *heap; /* [count] a heap of the best so far, with the worst of them on top */
	int64_t count, most, min_frequency;
	int64_t words, tokens, unknown; /* counts under this vocabulary */
	int64_t distinct;
	int32_t pieces[MOST_PIECES];
};

/* True if a comes before b in the new vocabulary. */
static bool is_better(const struct candidate *a, const struct candidate *b)
{
	return a->saved != b->saved ? a->saved > b->saved : strcmp(a->word, b->word) < 0;
}

static void sift_down(struct candidate *heap, int64_t count)
{
	for (int64_t at = 0, child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && is_better(&heap[child], &heap[child + 1]))
			child++;
		if (is_better(&heap[child], &heap[at]))
			return;
		struct candidate swapped = heap[at];
		heap[at] = heap[child];
		heap[child] = swapped;
	}
}

static void sift_up(struct candidate *heap, int64_t at)
{
	for (int64_t parent; at > 0; at = parent) {
		parent = (at - 1) / 2;
		if (is_better(&heap[at], &heap[parent]))
			return;
		struct candidate swapped = heap[at];
		heap[at] = heap[parent];
		heap[parent] = swapped;
	}
}

/* Keeps a copy of the word if it is among the best so far. */
static enum status consider(struct extension *extension, const char *word, size_t size, int64_t saved, int64_t count)
{
	struct candidate candidate = {.saved = saved, .count = count};
	bool full = extension->count == extension->most;
	if (full && saved < extension->heap[0].saved)
		return OK;
	TRY(memory_new(&candidate.word, (int64_t)size + 1, 1, "new words"));
	memcpy(candidate.word, word, size);
	if (full && !is_better(&candidate, &extension->heap[0])) {
		free(candidate.word);
		return OK;
	}
	if (full) {
		free(extension->heap[0].word);
		extension->heap[0] = candidate;
		sift_down(extension->heap, extension->count);
		return OK;
	}
	extension->heap[extension->count] = candidate;
	sift_up(extension->heap, extension->count++);
	return OK;
}

static enum status measure_word(void *context, const char *word, size_t size, int64_t count)
{
	struct extension *extension = context;
	int32_t pieces = wordpiece_cut(&extension->wordpiece, word, size, extension->pieces, MOST_PIECES);
	extension->words += count;
	extension->tokens += count * (pieces > 0 ? pieces : 1);
	extension->unknown += pieces > 0 ? 0 : count;
	extension->distinct++;
	if (extension->most == 0 || pieces == 1 || count < extension->min_frequency)
		return OK;
	return consider(extension, word, size, count * (pieces > 0 ? pieces - 1 : 1), count);
}

static int compare(const void *a, const void *b)
{
	return is_better(a, b) ? -1 : 1;
}

/* Makes a vocabulary of the old entries and the new words. */
static enum status join(const struct vocab *vocab, const struct extension *extension, struct vocab *out)
{
	const char **entries;
	TRY(memory_new(&entries, vocab->count + extension->count, sizeof *entries, "vocabulary"));
	for (int32_t i = 0; i < vocab->count; i++)
		entries[i] = vocab->text[i];
	for (int64_t i = 0; i < extension->count; i++)
		entries[vocab->count + i] = extension->heap[i].word;
	enum status status = vocab_from_entries(out, entries, vocab->count + (int32_t)extension->count);
	free(entries);
	return status;
}

/* Measures how a vocabulary cuts the counted words; if extension->most > 0, also collects the words to add. */
static enum status measure(struct vocab_learner *learner, const struct vocab *vocab, struct extension *extension)
{
	struct vocab all = *vocab;
	all.wordpiece_count = all.count; /* added tokens are words here, too */
	TRY(wordpiece_init(&extension->wordpiece, &all));
	enum status status = vocab_learner_visit(learner, measure_word, extension);
	wordpiece_release(&extension->wordpiece);
	return status;
}

static double share(int64_t part, int64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

static enum status nothing_new(const struct extension *extension)
{
	if (extension->words == 0)
		return error_set(ERR_DATA, "the text has no words");
	return error_hinted(error_set(ERR_DATA, "the vocabulary already has every word that the text has %lld times or more",
				      (long long)extension->min_frequency),
			    "give text of the new domain, or a smaller --min_frequency");
}

enum status vocab_extend(struct vocab_learner *learner, const struct vocab *vocab, int32_t most, int64_t min_frequency,
			 struct vocab *out, struct vocab_extend_report *report)
{
	struct extension *before = NULL, *after = NULL;
	enum status status;
	BUG_IF(most < 1);
	*out = (struct vocab){0};
	TRY_GOTO(memory_new(&before, 1, sizeof *before, "new words"), done);
	TRY_GOTO(memory_new(&after, 1, sizeof *after, "new words"), done);
	before->most = most;
	before->min_frequency = min_frequency;
	TRY_GOTO(memory_new(&before->heap, most, sizeof *before->heap, "new words"), done);
	TRY_GOTO(measure(learner, vocab, before), done);
	status = before->count == 0 ? nothing_new(before) : OK;
	if (status != OK)
		goto done;
	qsort(before->heap, (size_t)before->count, sizeof *before->heap, compare);
	TRY_GOTO(join(vocab, before, out), done);
	TRY_GOTO(measure(learner, out, after), done);
	*report = (struct vocab_extend_report){
		.words = before->words,
		.distinct_words = before->distinct,
		.added = (int32_t)before->count,
		.least_count = before->heap[0].count,
		.tokens_before = share(before->tokens, before->words),
		.tokens_after = share(after->tokens, after->words),
		.unknown_before = share(before->unknown, before->words),
		.unknown_after = share(after->unknown, after->words),
	};
	for (int64_t i = 1; i < before->count; i++)
		if (before->heap[i].count < report->least_count)
			report->least_count = before->heap[i].count;
done:
	for (int64_t i = 0; before && i < before->count; i++)
		free(before->heap[i].word);
	if (before)
		free(before->heap);
	free(before);
	free(after);
	if (status != OK)
		vocab_release(out);
	return status;
}
