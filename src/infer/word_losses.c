/* Masks the words of texts in turn, and collects the losses in batches. */
#include "infer/word_losses.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Room for the copies computed in one call, in ids: enough for many batches, so that a half-empty last one hardly matters. */
#define COPY_TOKENS ((int64_t)1 << 17)

struct pass {
	struct word_losses *out;
	struct encoder *encoder;
	const struct vocab *vocab;
	bool whole_words;
	int64_t copy_count, used; /* used: numbers in out->room */
};

/* Computes the pending copies and stores their losses. */
static enum status compute_copies(struct pass *pass)
{
	struct word_losses *out = pass->out;
	const struct encoder_wish wish = {.answer = ENCODER_LOSSES};
	if (pass->copy_count == 0)
		return OK;
	TRY(encoder_run(pass->encoder, &wish, out->copies, pass->copy_count, &out->answers));
	for (int64_t c = 0; c < pass->copy_count; c++)
		for (int32_t r = 0; r < out->copies[c].row_count; r++)
			out->losses[out->targets[c] + r] = (double)out->answers.values[out->answers.starts[c] + r];
	pass->copy_count = pass->used = 0;
	return OK;
}

/* Adds a copy of a sequence with tokens [begin, end) masked; their losses are stored from `target` on. */
static enum status add_copy(struct pass *pass, const struct encoder_text *sequence, int32_t begin, int32_t end, int64_t target)
{
	struct word_losses *out = pass->out;
	int64_t size = sequence->count + 2 * (end - begin);
	if (size > COPY_TOKENS)
		return error_set(ERR_USAGE, "a text has %d tokens: too many to score; give a --max_seq_length of at most %d",
				 sequence->count, (int)(COPY_TOKENS / 4));
	if (pass->used + size > COPY_TOKENS)
		TRY(compute_copies(pass));
	TRY(memory_grow(&out->copies, &out->copy_capacity, pass->copy_count + 1, sizeof *out->copies, "copies of a text"));
	TRY(memory_grow(&out->targets, &out->target_capacity, pass->copy_count + 1, sizeof *out->targets, "copies of a text"));
	int32_t *ids = (int32_t *)(void *)out->room.data + pass->used, *rows = ids + sequence->count,
		*words = rows + (end - begin);
	memcpy(ids, sequence->ids, (size_t)sequence->count * sizeof *ids);
	for (int32_t i = begin; i < end; i++) {
		ids[i] = pass->vocab->mask;
		rows[i - begin] = i;
		words[i - begin] = sequence->ids[i];
	}
	out->targets[pass->copy_count] = target;
	out->copies[pass->copy_count++] = (struct encoder_text){.ids = ids,
								.count = sequence->count,
								.second = sequence->second,
								.rows = rows,
								.words = words,
								.row_count = end - begin};
	pass->used += size;
	return OK;
}

/* In plain text, no token is a special token of the templates. */
static bool is_separator(const struct pass *pass, const struct encoder_text *sequence, int32_t i)
{
	return template_has(&pass->vocab->single, sequence->ids[i]) || template_has(&pass->vocab->pair, sequence->ids[i]);
}

/* The end of the unit that begins at token `begin`. */
static int32_t unit_end(const struct pass *pass, const struct encoder_text *sequence, int32_t begin)
{
	int32_t end = begin + 1;
	while (pass->whole_words && end < sequence->count && !is_separator(pass, sequence, end) &&
	       pass->vocab->is_continuation[sequence->ids[end]])
		end++;
	return end;
}

/* A text split into windows, seen as one token sequence: token g is in each window w with start(w) <= g < start(w) + room(w). */
struct windows {
	const struct encoder_text *sequences;
	const int32_t *starts;
	int32_t count;
	int64_t tokens;
	const struct token_template *template;
};

static int64_t window_room(const struct windows *windows, int32_t w)
{
	return windows->sequences[w].count - template_size(windows->template);
}

static int32_t token_at(const struct windows *windows, int64_t g)
{
	int32_t w = 0;
	while (g >= windows->starts[w] + window_room(windows, w))
		w++;
	return windows->sequences[w].ids[g - windows->starts[w] + windows->template->before];
}

/* Of the windows that contain all of [begin, end), the one with the most context on the shorter side; -1: none does. */
static int32_t best_window(const struct windows *windows, int64_t begin, int64_t end)
{
	int32_t best = -1;
	int64_t most = -1;
	for (int32_t w = 0; w < windows->count; w++) {
		int64_t left = begin - windows->starts[w], right = windows->starts[w] + window_room(windows, w) - end;
		int64_t around = left < right ? left : right;
		if (around > most) {
			most = around;
			best = w;
		}
	}
	return best;
}

static enum status add_windows(struct pass *pass, const struct windows *windows, struct text_losses *own)
{
	struct word_losses *out = pass->out;
	for (int64_t begin = 0, end; begin < windows->tokens; begin = end) {
		int32_t w;
		end = begin + 1;
		while (pass->whole_words && end < windows->tokens && pass->vocab->is_continuation[token_at(windows, end)])
			end++;
		/* If windows hardly overlap, a long word may not fit into any of them. */
		while ((w = best_window(windows, begin, end)) < 0)
			end--;
		for (int64_t g = begin; g < end; g++)
			out->tokens[out->token_count + g - begin] = token_at(windows, g);
		int32_t first = (int32_t)(begin - windows->starts[w]) + windows->template->before;
		TRY(add_copy(pass, &windows->sequences[w], first, first + (int32_t)(end - begin), out->token_count));
		out->token_count += end - begin;
		own->units++;
	}
	return OK;
}

/* Adds a text or a pair that is one sequence. */
static enum status add_sequence(struct pass *pass, const struct encoder_text *sequence, struct text_losses *own)
{
	struct word_losses *out = pass->out;
	for (int32_t begin = 0, end; begin < sequence->count; begin = end) {
		end = begin + 1;
		if (is_separator(pass, sequence, begin))
			continue;
		end = unit_end(pass, sequence, begin);
		memcpy(out->tokens + out->token_count, sequence->ids + begin, (size_t)(end - begin) * sizeof *out->tokens);
		TRY(add_copy(pass, sequence, begin, end, out->token_count));
		out->token_count += end - begin;
		own->units++;
	}
	return OK;
}

/* Room for the tokens of a text. */
static enum status begin_text(struct word_losses *out, const struct text_chunk *texts, const struct ready_text *text)
{
	const struct encoder_text *last = &texts->sequences[text->first + text->count - 1];
	int64_t most = texts->window_starts[text->first + text->count - 1] + last->count;
	TRY(memory_grow(&out->texts, &out->text_capacity, out->text_count + 1, sizeof *out->texts, "losses"));
	TRY(memory_grow(&out->tokens, &out->token_capacity, out->token_count + most, sizeof *out->tokens, "losses"));
	TRY(memory_grow(&out->losses, &out->loss_capacity, out->token_count + most, sizeof *out->losses, "losses"));
	out->texts[out->text_count++] = (struct text_losses){.first = out->token_count};
	return OK;
}

static enum status add_text(struct pass *pass, const struct text_chunk *texts, const struct ready_text *text)
{
	struct word_losses *out = pass->out;
	TRY(begin_text(out, texts, text));
	struct text_losses *own = &out->texts[out->text_count - 1];
	if (text->count == 1) {
		TRY(add_sequence(pass, &texts->sequences[text->first], own));
	} else {
		struct windows windows = {texts->sequences + text->first, texts->window_starts + text->first, text->count, 0,
					  &pass->vocab->single};
		windows.tokens = windows.starts[text->count - 1] + window_room(&windows, text->count - 1);
		TRY(add_windows(pass, &windows, own));
	}
	own->count = out->token_count - own->first;
	return OK;
}

enum status word_losses_compute(struct word_losses *out, struct encoder *encoder, const struct text_chunk *texts,
				const struct vocab *vocab, bool whole_words)
{
	struct pass pass = {.out = out, .encoder = encoder, .vocab = vocab, .whole_words = whole_words};
	if (vocab->mask < 0)
		return error_set(ERR_USAGE, "the model's tokenizer has no mask token, which scoring needs");
	out->text_count = out->token_count = 0;
	buffer_clear(&out->room);
	(void)buffer_room(&out->room, (size_t)COPY_TOKENS * sizeof(int32_t));
	TRY(buffer_status(&out->room));
	for (int64_t i = 0; i < texts->text_count; i++)
		TRY(add_text(&pass, texts, &texts->texts[i]));
	return compute_copies(&pass);
}

void word_losses_release(struct word_losses *losses)
{
	free(losses->texts);
	free(losses->tokens);
	free(losses->losses);
	free(losses->copies);
	free(losses->targets);
	buffer_release(&losses->room);
	encoder_answers_release(&losses->answers);
	*losses = (struct word_losses){0};
}
