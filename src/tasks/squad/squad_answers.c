/* Ranks the spans of a question's windows, and recovers their text from the paragraph. */
#include "tasks/squad/squad_answers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/utf8.h"

/* A start and an end within one window. */
struct candidate {
	double start_logit, end_logit;
	int64_t window; /* -1: no answer */
	int32_t start_row, end_row;
	int64_t order; /* in which candidates were found: breaks ties between equal scores */
};

/* A choice, whose text is an offset in `texts` until all are known. */
struct chosen {
	size_t text;
	struct squad_choice choice;
};

struct squad_decoder {
	const struct squad_features *features;
	struct squad_answer_settings settings;
	int64_t question;
	struct candidate *candidates; /* from squad_decoder_end() on a heap with the best on top */
	int64_t candidate_count, candidate_capacity;
	double null_score, null_start, null_end;
	int32_t *starts, *ends; /* [n_best_size] best rows of a window */
	struct chosen *chosen;  /* [n_best_size + 2] */
	struct squad_choice *choices;
	int32_t chosen_count;
	struct buffer texts;  /* texts of the chosen, each with a NUL */
	struct buffer pieces; /* of one candidate */
	/* The stretch of the last candidate, kept because the next one often has the same: */
	int32_t first_word, last_word; /* -1: none */
	struct buffer original, words; /* as in the paragraph, and as normalized */
	bool same_length;              /* both have as many characters */
	int64_t searched;              /* bytes of the stretches of all candidates so far */
	struct tokens scratch;
};

enum status squad_decoder_open(struct squad_decoder **out, const struct squad_features *features,
			       const struct squad_answer_settings *settings)
{
	struct squad_decoder *d;
	int64_t n = settings->n_best_size;
	BUG_IF(n < 1 || settings->max_answer_length < 1);
	TRY(memory_new(&d, 1, sizeof *d, "answers"));
	d->features = features;
	d->settings = *settings;
	enum status status;
	TRY_GOTO(memory_new(&d->starts, n, sizeof *d->starts, "answers"), fail);
	TRY_GOTO(memory_new(&d->ends, n, sizeof *d->ends, "answers"), fail);
	TRY_GOTO(memory_new(&d->chosen, n + 2, sizeof *d->chosen, "answers"), fail);
	TRY_GOTO(memory_new(&d->choices, n + 2, sizeof *d->choices, "answers"), fail);
	*out = d;
	return OK;
fail:
	squad_decoder_close(d);
	return status;
}

void squad_decoder_close(struct squad_decoder *decoder)
{
	if (!decoder)
		return;
	free(decoder->candidates);
	free(decoder->starts);
	free(decoder->ends);
	free(decoder->chosen);
	free(decoder->choices);
	buffer_release(&decoder->texts);
	buffer_release(&decoder->pieces);
	buffer_release(&decoder->words);
	buffer_release(&decoder->original);
	tokens_release(&decoder->scratch);
	free(decoder);
}

/* ---- Candidates ---- */

#define NULL_SCORE_START 1000000 /* larger than any */

enum status squad_decoder_begin(struct squad_decoder *decoder, int64_t question)
{
	decoder->question = question;
	decoder->candidate_count = 0;
	decoder->null_score = NULL_SCORE_START;
	decoder->null_start = decoder->null_end = 0;
	decoder->first_word = decoder->last_word = -1;
	decoder->searched = 0;
	return OK;
}

/* Finds the rows of the `most` largest logits, in descending order, earlier rows first among equal ones. Returns their number. */
static int32_t best_rows(const double *logits, int32_t count, int32_t most, int32_t *out)
{
	int32_t found = 0;
	for (int32_t row = 0; row < count; row++) {
		int32_t place = found < most ? found : most - 1;
		if (found == most && !(logits[row] > logits[out[place]]))
			continue;
		while (place > 0 && logits[row] > logits[out[place - 1]]) {
			out[place] = out[place - 1];
			place--;
		}
		out[place] = row;
		found += found < most;
	}
	return found;
}

static enum status add_candidate(struct squad_decoder *d, struct candidate candidate)
{
	TRY(memory_grow(&d->candidates, &d->candidate_capacity, d->candidate_count + 1, sizeof *d->candidates, "answers"));
	candidate.order = d->candidate_count;
	d->candidates[d->candidate_count++] = candidate;
	return OK;
}

static bool can_be_answer(const struct squad_decoder *d, int64_t window, int32_t start, int32_t end)
{
	int32_t token = squad_row_token(d->features, window, start);
	return token >= 0 && squad_row_token(d->features, window, end) >= 0 && end >= start &&
	       end - start + 1 <= d->settings.max_answer_length && squad_is_max_context(d->features, window, token);
}

static enum status check_logits(const struct squad_decoder *d, const double *start, const double *end, int32_t count)
{
	for (int32_t i = 0; i < count; i++)
		if (!isfinite(start[i]) || !isfinite(end[i]))
			return error_set(ERR_NUMERIC, "the model's scores for question '%.100s' are not finite",
					 d->features->set->questions[d->question].id);
	return OK;
}

enum status squad_decoder_window(struct squad_decoder *decoder, int64_t window, const double *start, const double *end,
				 int32_t count)
{
	struct squad_decoder *d = decoder;
	BUG_IF(d->features->windows[window].question != d->question || count < squad_window_size(d->features, window));
	TRY(check_logits(d, start, end, count));
	int32_t start_count = best_rows(start, count, d->settings.n_best_size, d->starts);
	int32_t end_count = best_rows(end, count, d->settings.n_best_size, d->ends);
	if (start[0] + end[0] < d->null_score) {
		d->null_score = start[0] + end[0];
		d->null_start = start[0];
		d->null_end = end[0];
	}
	for (int32_t i = 0; i < start_count; i++)
		for (int32_t j = 0; j < end_count; j++)
			if (can_be_answer(d, window, d->starts[i], d->ends[j]))
				TRY(add_candidate(d, (struct candidate){.start_logit = start[d->starts[i]],
									.end_logit = end[d->ends[j]],
									.window = window,
									.start_row = d->starts[i],
									.end_row = d->ends[j]}));
	return OK;
}

static bool is_before(const struct candidate *a, const struct candidate *b)
{
	double left = a->start_logit + a->end_logit, right = b->start_logit + b->end_logit;
	return left != right ? left > right : a->order < b->order;
}

static void sift_down(struct candidate *heap, int64_t count, int64_t at)
{
	for (int64_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
			child++;
		if (!is_before(&heap[child], &heap[at]))
			return;
		struct candidate swapped = heap[at];
		heap[at] = heap[child];
		heap[child] = swapped;
	}
}

static void make_heap(struct squad_decoder *d)
{
	for (int64_t i = d->candidate_count / 2; i-- > 0;)
		sift_down(d->candidates, d->candidate_count, i);
}

static struct candidate take_best(struct squad_decoder *d)
{
	struct candidate best = d->candidates[0];
	d->candidates[0] = d->candidates[--d->candidate_count];
	sift_down(d->candidates, d->candidate_count, 0);
	return best;
}

/* ---- Text of a candidate ---- */

/* Removes every `what` from the text, from left to right. */
static void remove_all(struct buffer *text, const char *what)
{
	size_t kept = 0, length = strlen(what);
	for (size_t at = 0; at < text->size;) {
		if (text->size - at >= length && memcmp(text->data + at, what, length) == 0)
			at += length;
		else
			text->data[kept++] = text->data[at++];
	}
	text->size = kept;
}

/* Turns runs of spaces into one, and removes those at the ends. */
static void collapse_spaces(struct buffer *text)
{
	size_t kept = 0;
	for (size_t at = 0; at < text->size; at++)
		if (text->data[at] != ' ' || (kept > 0 && text->data[kept - 1] != ' '))
			text->data[kept++] = text->data[at];
	if (kept > 0 && text->data[kept - 1] == ' ')
		kept--;
	text->size = kept;
}

/* The predicted pieces as text, as normalized by the tokenizer. */
static void join_pieces(struct buffer *out, const struct vocab *vocab, const int32_t *ids, int32_t count)
{
	buffer_clear(out);
	for (int32_t i = 0; i < count; i++) {
		if (i > 0)
			buffer_char(out, ' ');
		buffer_append(out, vocab->text[ids[i]], vocab->size[ids[i]]);
	}
	if (out->failed || out->size == 0)
		return;
	remove_all(out, " ##");
	remove_all(out, "##");
	collapse_spaces(out);
}

/* The words of a paragraph from `first` to `last`, to be joined by single spaces where there was white space between them. */
struct stretch_of_words {
	const char *text;
	const uint32_t *begins, *ends;
	int32_t first, last;
};

static void join_words(struct buffer *out, const struct stretch_of_words *words)
{
	buffer_clear(out);
	for (int32_t i = words->first; i <= words->last; i++) {
		if (i > words->first && words->begins[i] > words->ends[i - 1])
			buffer_char(out, ' ');
		buffer_append(out, words->text + words->begins[i], words->ends[i] - words->begins[i]);
	}
}

/* The byte of the paragraph that is byte `at` of the joined words; `at` is within a word. */
static int64_t byte_in_paragraph(const struct stretch_of_words *words, size_t at)
{
	size_t done = 0;
	for (int32_t i = words->first;; i++) {
		size_t size = words->ends[i] - words->begins[i];
		if (i > words->first && words->begins[i] > words->ends[i - 1])
			done++;
		if (at < done + size || i == words->last)
			return (int64_t)(words->begins[i] + (at - done));
		done += size;
	}
}

static enum status append_word(void *context, const char *word, size_t bytes)
{
	struct buffer *out = context;
	if (out->size > 0)
		buffer_char(out, ' ');
	buffer_append(out, word, bytes);
	return OK;
}

static bool begins_character(char c)
{
	return ((unsigned char)c & 0xC0) != 0x80;
}

static int64_t count_without_spaces(const char *text, size_t size)
{
	int64_t count = 0;
	for (size_t i = 0; i < size; i++)
		count += text[i] != ' ' && begins_character(text[i]);
	return count;
}

/* The byte at which character number `index` begins, not counting spaces; the size if there are fewer characters. */
static size_t find_without_spaces(const struct buffer *text, int64_t index)
{
	size_t i = 0;
	for (; i < text->size; i++)
		if (text->data[i] != ' ' && begins_character(text->data[i]) && index-- == 0)
			break;
	return i;
}

/* Makes the original and the normalized words of a stretch, unless they are those of the last one: where there is no white space,
 * all candidates have the same long stretch. */
static enum status take_stretch(struct squad_decoder *d, const struct stretch_of_words *stretch)
{
	struct buffer *original = &d->original, *words = &d->words;
	if (stretch->first == d->first_word && stretch->last == d->last_word)
		return OK;
	d->first_word = -1;
	join_words(original, stretch);
	TRY(buffer_status(original));
	buffer_clear(words);
	TRY(tokenizer_words(tokenizer_settings_of(d->features->tokenizer), buffer_string(original), original->size, &d->scratch,
			    append_word, words));
	TRY(buffer_status(words));
	d->same_length = count_without_spaces(words->data, words->size) == count_without_spaces(original->data, original->size);
	d->first_word = stretch->first;
	d->last_word = stretch->last;
	return OK;
}

/* Finds the predicted pieces in the original words, as get_final_text does: if the tokenizer's normalization keeps the number of
 * characters and the normalized words contain the pieces. Otherwise takes the whole span. */
static void project(const struct squad_decoder *d, size_t *out_begin, size_t *out_end)
{
	const struct buffer *pieces = &d->pieces, *words = &d->words, *original = &d->original;
	*out_begin = 0;
	*out_end = original->size;
	if (pieces->size == 0 || words->size == 0 || !d->same_length)
		return;
	const char *found = memmem(words->data, words->size, pieces->data, pieces->size);
	if (!found)
		return;
	int64_t first = count_without_spaces(words->data, (size_t)(found - words->data));
	int64_t last = first + count_without_spaces(pieces->data, pieces->size) - 1;
	*out_begin = find_without_spaces(original, first);
	*out_end = find_without_spaces(original, last) + 1;
	while (*out_end < original->size && !begins_character(original->data[*out_end]))
		++*out_end;
}

/* The stretch from byte `begin` to byte `end` of the paragraph, where tokens of the first and the last word begin and end; a
 * token of white space alone has no text, and the whole stretch is taken. */
static void cut_stretch(const struct squad_decoder *d, const struct stretch_of_words *stretch, uint32_t begin, uint32_t end,
			size_t *out_begin, size_t *out_end)
{
	*out_begin = begin < end ? begin - stretch->begins[stretch->first] : 0;
	*out_end = d->original.size - (begin < end ? stretch->ends[stretch->last] - end : 0);
}

/* Puts the candidate's text into `original`, from *out_begin to *out_end, and finds its place in the paragraph. */
static enum status find_text(struct squad_decoder *d, const struct candidate *candidate, size_t *out_begin, size_t *out_end,
			     struct squad_choice *choice)
{
	const struct squad_features *f = d->features;
	int64_t paragraph = f->set->questions[d->question].paragraph;
	int32_t first = squad_row_token(f, candidate->window, candidate->start_row);
	int32_t last = squad_row_token(f, candidate->window, candidate->end_row);
	const int32_t *ids = f->token_ids + f->token_starts[paragraph], *words = f->token_words + f->token_starts[paragraph];
	struct stretch_of_words stretch = {f->set->paragraphs[paragraph].text, f->word_begins + f->word_starts[paragraph],
					   f->word_ends + f->word_starts[paragraph], words[first], words[last]};
	const struct vocab *vocab = tokenizer_vocab(f->tokenizer);
	TRY(take_stretch(d, &stretch));
	d->searched += (int64_t)d->original.size;
	if (vocab->prefix[0]) {
		join_pieces(&d->pieces, vocab, ids + first, last - first + 1);
		TRY(buffer_status(&d->pieces));
		project(d, out_begin, out_end);
	} else { /* Google's code knows WordPiece alone */
		int64_t start = f->token_starts[paragraph];
		cut_stretch(d, &stretch, f->token_begins[start + first], f->token_ends[start + last], out_begin, out_end);
	}
	choice->begin = byte_in_paragraph(&stretch, *out_begin);
	choice->end = byte_in_paragraph(&stretch, *out_end - 1) + 1;
	return OK;
}

/* ---- Choices ---- */

static bool is_chosen(const struct squad_decoder *d, const char *text, size_t size)
{
	for (int32_t i = 0; i < d->chosen_count; i++) {
		const char *other = d->texts.data + d->chosen[i].text;
		if (strlen(other) == size && memcmp(other, text, size) == 0)
			return true;
	}
	return false;
}

static void choose(struct squad_decoder *d, const char *text, size_t size, struct squad_choice choice)
{
	d->chosen[d->chosen_count++] = (struct chosen){d->texts.size, choice};
	buffer_append(&d->texts, text, size);
	buffer_append(&d->texts, "", 1);
}

static enum status choose_candidate(struct squad_decoder *d, const struct candidate *candidate)
{
	struct squad_choice choice = {.start_logit = candidate->start_logit, .end_logit = candidate->end_logit};
	size_t begin, end;
	if (candidate->window < 0) {
		choose(d, "", 0, choice);
		return buffer_status(&d->texts);
	}
	TRY(find_text(d, candidate, &begin, &end, &choice));
	if (!is_chosen(d, d->original.data + begin, end - begin))
		choose(d, d->original.data + begin, end - begin, choice);
	return buffer_status(&d->texts);
}

/* No more candidates of a question are tried after this many bytes. Candidates in ordinary text have some hundred, and at most
 * 400 of them come from a window, but where there is no white space each may have the whole paragraph. */
#define SEARCHED_MOST ((int64_t)16 << 20)

static enum status choose_all(struct squad_decoder *d)
{
	struct candidate no_answer = {.start_logit = d->null_start, .end_logit = d->null_end, .window = -1};
	d->chosen_count = 0;
	buffer_clear(&d->texts);
	if (d->settings.version_2)
		TRY(add_candidate(d, no_answer));
	make_heap(d);
	while (d->candidate_count > 0 && d->chosen_count < d->settings.n_best_size && d->searched < SEARCHED_MOST) {
		struct candidate best = take_best(d);
		TRY(choose_candidate(d, &best));
	}
	if (d->settings.version_2 && !is_chosen(d, "", 0))
		TRY(choose_candidate(d, &no_answer));
	if (d->chosen_count == 0)
		choose(d, "empty", strlen("empty"), (struct squad_choice){0});
	return buffer_status(&d->texts);
}

/* Softmax over the sums of logits, as in run_squad.py. */
static void set_probabilities(struct squad_choice *choices, int32_t count)
{
	double largest = -INFINITY, sum = 0;
	for (int32_t i = 0; i < count; i++)
		largest = fmax(largest, choices[i].start_logit + choices[i].end_logit);
	for (int32_t i = 0; i < count; i++) {
		choices[i].probability = exp(choices[i].start_logit + choices[i].end_logit - largest);
		sum += choices[i].probability;
	}
	for (int32_t i = 0; i < count; i++)
		choices[i].probability /= sum;
}

enum status squad_decoder_end(struct squad_decoder *decoder, struct squad_result *out)
{
	struct squad_decoder *d = decoder;
	TRY(choose_all(d));
	*out = (struct squad_result){.choices = d->choices, .count = d->chosen_count};
	for (int32_t i = 0; i < d->chosen_count; i++) {
		d->choices[i] = d->chosen[i].choice;
		d->choices[i].text = d->texts.data + d->chosen[i].text;
		if (!out->best && d->choices[i].end > d->choices[i].begin)
			out->best = &d->choices[i];
	}
	set_probabilities(d->choices, out->count);
	out->prediction = d->choices[0].text;
	if (!d->settings.version_2)
		return OK;
	/* With no answer to compare with, two zeros are used as in Hugging Face's code; Google's crashes here. */
	out->null_odds = d->null_score - (out->best ? out->best->start_logit : 0) - (out->best ? out->best->end_logit : 0);
	out->prediction = !out->best || out->null_odds > d->settings.null_threshold ? "" : out->best->text;
	return OK;
}

void squad_code_points(const struct squad_paragraph *paragraph, int64_t begin, int64_t end, int64_t *out_begin, int64_t *out_end)
{
	*out_begin = (int64_t)utf8_length(paragraph->text, (size_t)begin);
	*out_end = *out_begin + (int64_t)utf8_length(paragraph->text + begin, (size_t)(end - begin));
}
