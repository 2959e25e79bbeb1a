/* BLEU, ROUGE and exact match of generated texts. */
#include "tasks/measures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/memory.h"
#include "text/utf8.h"

#define ORDERS 4 /* n-grams of 1 to 4 units */

/* A text as units that can be compared: words as 64-bit hashes, characters as code points. */
struct unit_list {
	uint64_t *units;
	int64_t count, capacity;
};

static enum status add_unit(struct unit_list *list, uint64_t unit)
{
	TRY(memory_grow(&list->units, &list->capacity, list->count + 1, sizeof *list->units, "words of a text"));
	list->units[list->count++] = unit;
	return OK;
}

static enum status cut_units(const char *text, enum text_units kind, struct unit_list *out)
{
	size_t size = strlen(text), word = 0;
	out->count = 0;
	for (size_t at = 0, length; at < size; at += length) {
		uint32_t c;
		length = utf8_decode(text + at, size - at, &c);
		bool is_space = c != UTF8_INVALID && utf8_is_space(c);
		if (kind == UNITS_CHARACTERS) {
			if (!is_space)
				TRY(add_unit(out, c));
		} else if (is_space) {
			if (at > word)
				TRY(add_unit(out, hash64(text + word, at - word)));
			word = at + length;
		}
	}
	if (kind == UNITS_WORDS && size > word)
		TRY(add_unit(out, hash64(text + word, size - word)));
	return OK;
}

/* An n-gram of a text, by its place; to be sorted by content so that equal ones are adjacent. */
struct ngram {
	const uint64_t *units;
	int n;
};

static int compare_ngrams(const void *left, const void *right)
{
	const struct ngram *a = left, *b = right;
	for (int i = 0; i < a->n; i++)
		if (a->units[i] != b->units[i])
			return a->units[i] < b->units[i] ? -1 : 1;
	return 0;
}

static int64_t sorted_ngrams(const struct unit_list *list, int n, struct ngram *out)
{
	int64_t count = list->count - n + 1;
	if (count <= 0)
		return 0;
	for (int64_t i = 0; i < count; i++)
		out[i] = (struct ngram){list->units + i, n};
	qsort(out, (size_t)count, sizeof *out, compare_ngrams);
	return count;
}

/* State for comparing texts; its memory is reused from one to the next. */
struct comparison {
	struct unit_list text, reference;
	struct ngram *grams;
	int64_t grams_capacity;
	int32_t *row; /* for the longest common subsequence */
	int64_t row_capacity;
};

struct bleu_counts {
	double matches[ORDERS], grams[ORDERS], text_length, reference_length;
};

/* Counts the n-grams of the text that are also in the reference, each at most as often as there. */
static int64_t count_matches(const struct ngram *a, int64_t a_count, const struct ngram *b, int64_t b_count)
{
	int64_t i = 0, j = 0, matches = 0;
	while (i < a_count && j < b_count) {
		int order = compare_ngrams(&a[i], &b[j]);
		matches += order == 0;
		i += order <= 0;
		j += order >= 0;
	}
	return matches;
}

static enum status count_ngrams(struct comparison *c, struct bleu_counts *out)
{
	int64_t room = c->text.count + c->reference.count;
	TRY(memory_grow(&c->grams, &c->grams_capacity, room + 1, sizeof *c->grams, "n-grams"));
	*out = (struct bleu_counts){.text_length = (double)c->text.count, .reference_length = (double)c->reference.count};
	for (int n = 1; n <= ORDERS; n++) {
		struct ngram *others = c->grams + c->text.count;
		int64_t count = sorted_ngrams(&c->text, n, c->grams);
		out->matches[n - 1] = (double)count_matches(c->grams, count, others, sorted_ngrams(&c->reference, n, others));
		out->grams[n - 1] = (double)count;
	}
	return OK;
}

static void add_counts(struct bleu_counts *sum, const struct bleu_counts *counts)
{
	for (int n = 0; n < ORDERS; n++) {
		sum->matches[n] += counts->matches[n];
		sum->grams[n] += counts->grams[n];
	}
	sum->text_length += counts->text_length;
	sum->reference_length += counts->reference_length;
}

/* BLEU with n-grams of up to `orders` units. `smoothing` is added to matches and counts from n = 2 on. */
static double bleu(const struct bleu_counts *counts, int orders, double smoothing)
{
	double logs = 0;
	if (counts->text_length == 0)
		return 0;
	for (int n = 0; n < orders; n++) {
		double extra = n == 0 ? 0 : smoothing;
		double matches = counts->matches[n] + extra, grams = fmax(counts->grams[n], 1) + extra;
		if (matches == 0)
			return 0;
		logs += log(matches / grams) / orders;
	}
	double shortfall = 1 - counts->reference_length / counts->text_length;
	return exp(logs + (shortfall < 0 ? shortfall : 0));
}

/* F1 of the n-grams that the text and the reference share. */
static double rouge_n(const struct bleu_counts *counts, int n)
{
	double references = counts->reference_length - n + 1, both = counts->grams[n - 1] + (references > 0 ? references : 0);
	return both > 0 ? 2 * counts->matches[n - 1] / both : 0;
}

static enum status rouge_l(struct comparison *c, double *out)
{
	const struct unit_list *a = &c->text, *b = &c->reference;
	*out = 0;
	if (a->count == 0 || b->count == 0)
		return OK;
	TRY(memory_grow(&c->row, &c->row_capacity, b->count + 1, sizeof *c->row, "common subsequence"));
	memset(c->row, 0, (size_t)(b->count + 1) * sizeof *c->row);
	for (int64_t i = 0; i < a->count; i++) {
		int32_t diagonal = 0; /* of the row above */
		for (int64_t j = 1; j <= b->count; j++) {
			int32_t above = c->row[j];
			if (a->units[i] == b->units[j - 1])
				c->row[j] = diagonal + 1;
			else if (c->row[j - 1] > above)
				c->row[j] = c->row[j - 1];
			diagonal = above;
		}
	}
	*out = 2.0 * c->row[b->count] / (double)(a->count + b->count);
	return OK;
}

struct text_sums {
	struct bleu_counts counts;
	double exact, sentence_bleu, rouge[3]; /* ROUGE-1, ROUGE-2, ROUGE-L */
};

static enum status add_text(struct comparison *c, const char *text, const char *reference, enum text_units units,
			    struct text_sums *sums)
{
	struct bleu_counts counts;
	double rouge;
	TRY(cut_units(text, units, &c->text));
	TRY(cut_units(reference, units, &c->reference));
	TRY(count_ngrams(c, &counts));
	TRY(rouge_l(c, &rouge));
	add_counts(&sums->counts, &counts);
	sums->exact += strcmp(text, reference) == 0;
	sums->sentence_bleu += bleu(&counts, ORDERS, 1);
	sums->rouge[0] += rouge_n(&counts, 1);
	sums->rouge[1] += rouge_n(&counts, 2);
	sums->rouge[2] += rouge;
	return OK;
}

enum status measure_texts(const char *const *texts, const char *const *references, int64_t count, enum text_units units,
			  enum text_role role, struct measures *out)
{
	struct comparison comparison = {0};
	struct text_sums sums = {0};
	enum status status = OK;
	for (int64_t i = 0; i < count; i++)
		TRY_GOTO(add_text(&comparison, texts[i], references[i], units, &sums), out);
	double n = (double)count;
	const struct {
		const char *names[2];
		double value;
	} rows[] = {
		{{"exact_match", "copy_exact_match"}, sums.exact / n},
		{{"bleu_1", "copy_bleu_1"}, bleu(&sums.counts, 1, 0)},
		{{"bleu_2", "copy_bleu_2"}, bleu(&sums.counts, 2, 0)},
		{{"bleu_3", "copy_bleu_3"}, bleu(&sums.counts, 3, 0)},
		{{"bleu_4", "copy_bleu_4"}, bleu(&sums.counts, 4, 0)},
		{{"bleu_sentence", "copy_bleu_sentence"}, sums.sentence_bleu / n},
		{{"rouge_1", "copy_rouge_1"}, sums.rouge[0] / n},
		{{"rouge_2", "copy_rouge_2"}, sums.rouge[1] / n},
		{{"rouge_l", "copy_rouge_l"}, sums.rouge[2] / n},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		measures_add(out, &(struct measure){.name = rows[i].names[role],
						    .unit = UNIT_POINTS,
						    .direction = role == TEXTS_COPIED ? DIRECTION_NONE : DIRECTION_HIGHER,
						    .value = count > 0 ? 100 * rows[i].value : NAN});
out:
	free(comparison.text.units);
	free(comparison.reference.units);
	free(comparison.grams);
	free(comparison.row);
	return status;
}
