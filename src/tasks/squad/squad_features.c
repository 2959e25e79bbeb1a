/* Cuts questions and paragraphs into windows, and finds the tokens of each answer. */
#include "tasks/squad/squad_features.h"

#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/memory.h"
#include "text/utf8.h"

/* State while features are made. */
struct maker {
	struct squad_features *out;
	struct tokens tokens; /* of one word, question or answer */
	int64_t id_capacity, of_word_capacity, begin_capacity, end_capacity, word_begin_capacity, word_end_capacity;
	int64_t query_capacity, window_capacity;
	int64_t token_count, word_count, window_count;
};

static const struct token_template *template_of(const struct squad_features *f)
{
	return &tokenizer_vocab(f->tokenizer)->pair;
}

/* ---- Paragraphs ---- */

/* White space as in run_squad.py. */
static bool parts_words(uint32_t c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == 0x202F;
}

static enum status room_for_tokens(struct maker *maker, int64_t count)
{
	struct squad_features *f = maker->out;
	int64_t needed = maker->token_count + count;
	TRY(memory_grow(&f->token_ids, &maker->id_capacity, needed + 1, sizeof *f->token_ids, "tokens"));
	TRY(memory_grow(&f->token_words, &maker->of_word_capacity, needed, sizeof *f->token_words, "tokens"));
	TRY(memory_grow(&f->token_begins, &maker->begin_capacity, needed, sizeof *f->token_begins, "tokens"));
	return memory_grow(&f->token_ends, &maker->end_capacity, needed, sizeof *f->token_ends, "tokens");
}

/* Encodes text[begin, end) of a paragraph into maker->tokens, with the space before it if the tokenizer's words include theirs.
 * Returns where the tokens' offsets count from. */
static enum status encode_part(struct maker *maker, const struct squad_paragraph *paragraph, int64_t begin, int64_t end,
			       int64_t *origin)
{
	const char *prefix = tokenizer_word_prefix(maker->out->tokenizer);
	*origin = begin > 0 && prefix[0] && paragraph->text[begin - 1] == prefix[0] ? begin - 1 : begin;
	tokens_clear(&maker->tokens);
	return tokenizer_encode(maker->out->tokenizer, paragraph->text + *origin, (size_t)(end - *origin), &maker->tokens);
}

/* Appends the word text[begin, end) of the paragraph with its tokens. */
static enum status add_word(struct maker *maker, const struct squad_paragraph *paragraph, int64_t number, int64_t begin,
			    int64_t end)
{
	struct squad_features *f = maker->out;
	int64_t origin;
	TRY(memory_grow(&f->word_begins, &maker->word_begin_capacity, maker->word_count + 1, sizeof *f->word_begins, "words"));
	TRY(memory_grow(&f->word_ends, &maker->word_end_capacity, maker->word_count + 1, sizeof *f->word_ends, "words"));
	f->word_begins[maker->word_count] = (uint32_t)begin;
	f->word_ends[maker->word_count++] = (uint32_t)end;
	TRY(encode_part(maker, paragraph, begin, end, &origin));
	TRY(room_for_tokens(maker, maker->tokens.count));
	for (int64_t i = 0; i < maker->tokens.count; i++) {
		int64_t at = maker->token_count++;
		f->token_ids[at] = maker->tokens.ids[i];
		f->token_words[at] = (int32_t)number;
		int64_t first = origin + maker->tokens.begin[i];
		f->token_begins[at] = (uint32_t)(first > begin ? first : begin);
		f->token_ends[at] = (uint32_t)(origin + maker->tokens.end[i]);
	}
	return OK;
}

static enum status add_paragraph(struct maker *maker, const struct squad_paragraph *paragraph)
{
	int64_t begin = -1, number = 0, at = 0; /* begin of the current word, or -1 */
	bool whole_words = maker->out->settings.whole_words;
	if (paragraph->text_size > INT32_MAX)
		return error_set(ERR_DATA, "a paragraph of %lld bytes is too long", (long long)paragraph->text_size);
	while (at < paragraph->text_size) {
		uint32_t c;
		int64_t next = at + (int64_t)utf8_decode(paragraph->text + at, (size_t)(paragraph->text_size - at), &c);
		bool gap = parts_words(c), alone = !whole_words && utf8_is_ideograph(c);
		if (begin >= 0 && (gap || alone)) {
			TRY(add_word(maker, paragraph, number++, begin, at));
			begin = -1;
		}
		if (alone)
			TRY(add_word(maker, paragraph, number++, at, next));
		else if (!gap && begin < 0)
			begin = at;
		at = next;
	}
	return begin >= 0 ? add_word(maker, paragraph, number, begin, at) : OK;
}

static enum status add_paragraphs(struct maker *maker)
{
	struct squad_features *f = maker->out;
	int64_t count = f->set->paragraph_count;
	TRY(memory_new(&f->token_starts, count + 1, sizeof *f->token_starts, "paragraphs"));
	TRY(memory_new(&f->word_starts, count + 1, sizeof *f->word_starts, "paragraphs"));
	for (int64_t p = 0; p < count; p++) {
		TRY(add_paragraph(maker, &f->set->paragraphs[p]));
		f->token_starts[p + 1] = maker->token_count;
		f->word_starts[p + 1] = maker->word_count;
	}
	return OK;
}

/* ---- Targets ---- */

/* The tokens of an answer in its paragraph, both ends inclusive; end < start: none. */
struct span {
	int32_t start, end;
};

static int64_t byte_of_character(const struct squad_paragraph *paragraph, int64_t index)
{
	int64_t at = 0;
	for (; index > 0 && at < paragraph->text_size; index--) {
		uint32_t c;
		at += (int64_t)utf8_decode(paragraph->text + at, (size_t)(paragraph->text_size - at), &c);
	}
	return at;
}

/* The word that contains a byte or, between words, the one before; the first word if there is none before. */
static int32_t word_at(const struct squad_features *f, int64_t paragraph, int64_t byte)
{
	const uint32_t *begins = f->word_begins + f->word_starts[paragraph];
	int64_t low = 0, high = f->word_starts[paragraph + 1] - f->word_starts[paragraph];
	while (high - low > 1) {
		int64_t middle = (low + high) / 2;
		if (begins[middle] <= byte)
			low = middle;
		else
			high = middle;
	}
	return (int32_t)low;
}

/* The first token of a word or, if it has none, of the words after it. */
static int32_t first_token_of(const struct squad_features *f, int64_t paragraph, int32_t word)
{
	const int32_t *words = f->token_words + f->token_starts[paragraph];
	int64_t low = 0, high = f->token_starts[paragraph + 1] - f->token_starts[paragraph];
	while (low < high) {
		int64_t middle = (low + high) / 2;
		if (words[middle] < word)
			low = middle + 1;
		else
			high = middle;
	}
	return (int32_t)low;
}

/* The first part of the span whose tokens are exactly the answer's, since words of the paragraph may contain more than the
 * answer: "(1895-1943)." for the answer "1895". If there is none, the span stays. */
static struct span tighten(const int32_t *ids, struct span span, const struct tokens *answer)
{
	int64_t count = answer->count;
	for (int64_t start = span.start; count > 0 && start + count - 1 <= span.end; start++)
		if (memcmp(ids + start, answer->ids, (size_t)count * sizeof *ids) == 0)
			return (struct span){(int32_t)start, (int32_t)(start + count - 1)};
	return span;
}

/* Leaves out what is before byte `first` and behind byte `last`. The tokens of other tokenizers than WordPiece depend on the
 * space before them, which a part of a word has not. */
static void cut_span(const struct squad_features *f, int64_t paragraph, int64_t first, int64_t last, struct span *span)
{
	const uint32_t *begins = f->token_begins + f->token_starts[paragraph], *ends = f->token_ends + f->token_starts[paragraph];
	while (span->start < span->end && ends[span->start] <= first)
		span->start++;
	while (span->start < span->end && begins[span->end] > last)
		span->end--;
}

/* Finds the tokens of the question's first answer. */
static enum status find_span(struct maker *maker, const struct squad_question *question, struct span *out)
{
	struct squad_features *f = maker->out;
	int64_t p = question->paragraph;
	const struct squad_paragraph *paragraph = &f->set->paragraphs[p];
	const struct squad_answer *answer = &f->set->answers[question->first_answer];
	int64_t first = answer->start_byte, last = first + answer->text_size - 1, origin;
	*out = (struct span){0, -1};
	if (f->word_starts[p + 1] == f->word_starts[p] || answer->start < 0)
		return OK;
	bool found = answer->place == SQUAD_FOUND || answer->place == SQUAD_SHIFTED;
	if (!found) {
		int64_t length = (int64_t)utf8_length(answer->text, (size_t)answer->text_size);
		first = byte_of_character(paragraph, answer->start);
		last = byte_of_character(paragraph, answer->start + length - 1);
	}
	out->start = first_token_of(f, p, word_at(f, p, first));
	out->end = first_token_of(f, p, word_at(f, p, last) + 1) - 1;
	tokens_clear(&maker->tokens);
	if (found && !tokenizer_vocab(f->tokenizer)->prefix[0]) {
		cut_span(f, p, first, last, out);
		return OK;
	}
	if (found)
		TRY(encode_part(maker, paragraph, first, last + 1, &origin));
	else
		TRY(tokenizer_encode(f->tokenizer, answer->text, (size_t)answer->text_size, &maker->tokens));
	*out = tighten(f->token_ids + f->token_starts[p], *out, &maker->tokens);
	return OK;
}

/* ---- Questions ---- */

static enum status add_query(struct maker *maker, int64_t q)
{
	struct squad_features *f = maker->out;
	const struct squad_question *question = &f->set->questions[q];
	int64_t begin = f->query_starts[q];
	tokens_clear(&maker->tokens);
	TRY(tokenizer_encode(f->tokenizer, question->text, (size_t)question->text_size, &maker->tokens));
	int64_t count = maker->tokens.count;
	if (count > f->settings.max_query_length) {
		count = f->settings.max_query_length;
		f->cut_questions++;
	}
	if (count + template_size(template_of(f)) >= f->settings.max_seq_length)
		return error_hinted(error_set(ERR_USAGE,
					      "question '%.100s' has %lld tokens: --max_seq_length %d leaves no room for its "
					      "paragraph",
					      question->id ? question->id : question->text, (long long)count,
					      f->settings.max_seq_length),
				    "give a larger --max_seq_length or a smaller --max_query_length");
	/* One more than needed: there is an address even if no question has a word. */
	TRY(memory_grow(&f->query_ids, &maker->query_capacity, begin + count + 1, sizeof *f->query_ids, "questions"));
	if (count > 0)
		memcpy(f->query_ids + begin, maker->tokens.ids, (size_t)count * sizeof *f->query_ids);
	f->query_starts[q + 1] = begin + count;
	return OK;
}

/* The distance from one window's first token to the next one's: see struct squad_feature_settings. */
static int32_t window_step(const struct squad_feature_settings *settings, int32_t room)
{
	int32_t step = settings->doc_stride < room ? settings->doc_stride : room;
	if (settings->stride_is_overlap) {
		step = room - settings->doc_stride;
		if (step < 1)
			step = (room + 1) / 2;
	}
	return step;
}

static int32_t window_room(const struct squad_features *f, int64_t q)
{
	return f->settings.max_seq_length - template_size(template_of(f)) -
	       (int32_t)(f->query_starts[q + 1] - f->query_starts[q]);
}

static enum status add_windows(struct maker *maker, int64_t q)
{
	struct squad_features *f = maker->out;
	const struct squad_question *question = &f->set->questions[q];
	int64_t p = question->paragraph, tokens = f->token_starts[p + 1] - f->token_starts[p];
	int32_t room = window_room(f, q), step = window_step(&f->settings, room);
	int64_t count = tokens == 0 ? 0 : tokens <= room ? 1 : 1 + (tokens - room + step - 1) / step;
	bool has_target = f->settings.find_targets && !question->is_impossible && question->answer_count > 0, held = false;
	struct span span = {0, -1};
	if (has_target)
		TRY(find_span(maker, question, &span));
	TRY(memory_grow(&f->windows, &maker->window_capacity, maker->window_count + count, sizeof *f->windows, "windows"));
	int32_t rows_before =
		template_of(f)->before + (int32_t)(f->query_starts[q + 1] - f->query_starts[q]) + template_of(f)->between;
	for (int64_t i = 0; i < count; i++) {
		int32_t first = (int32_t)(i * step), left = (int32_t)(tokens - first);
		struct squad_window window = {.question = q, .first = first, .length = left < room ? left : room};
		if (span.start <= span.end && span.start >= first && span.end < first + window.length) {
			window.start_row = span.start - first + rows_before;
			window.end_row = span.end - first + rows_before;
			held = true;
		}
		f->windows[maker->window_count++] = window;
	}
	f->window_starts[q + 1] = maker->window_count;
	f->empty_paragraphs += count == 0;
	f->outside_answers += has_target && count > 0 && !held;
	return OK;
}

static enum status add_questions(struct maker *maker)
{
	struct squad_features *f = maker->out;
	int64_t count = f->set->question_count;
	TRY(memory_new(&f->query_starts, count + 1, sizeof *f->query_starts, "questions"));
	TRY(memory_new(&f->window_starts, count + 1, sizeof *f->window_starts, "questions"));
	for (int64_t q = 0; q < count; q++) {
		TRY(add_query(maker, q));
		TRY(add_windows(maker, q));
	}
	return OK;
}

enum status squad_features_make(struct squad_features *out, const struct squad_set *set, const struct tokenizer *tokenizer,
				const struct squad_feature_settings *settings)
{
	struct maker maker = {.out = out};
	BUG_IF(settings->doc_stride < 1 || settings->max_query_length < 1 || tokenizer_settings_of(tokenizer)->special_tokens);
	*out = (struct squad_features){.set = set, .tokenizer = tokenizer, .settings = *settings};
	enum status status = add_paragraphs(&maker);
	if (status == OK)
		status = add_questions(&maker);
	tokens_release(&maker.tokens);
	if (status != OK)
		squad_features_release(out);
	return status;
}

void squad_features_log(const struct squad_features *features, const char *name)
{
	char number[FORMAT_BYTES];
	if (features->cut_questions > 0)
		log_warning("'%s': %s cut to --max_query_length %d tokens", name,
			    format_counted(number, features->cut_questions, "question", "questions"),
			    features->settings.max_query_length);
	if (features->empty_paragraphs > 0)
		log_warning("'%s': %s cannot be answered: the paragraph is empty", name,
			    format_counted(number, features->empty_paragraphs, "question", "questions"));
	if (features->outside_answers > 0)
		log_warning("'%s': %s cannot be learned: no window holds the whole of it", name,
			    format_counted(number, features->outside_answers, "answer", "answers"));
}

void squad_features_release(struct squad_features *features)
{
	void *const blocks[] = {features->token_starts, features->word_starts, features->token_ids,     features->token_words,
				features->token_begins, features->token_ends,  features->word_begins,   features->word_ends,
				features->query_starts, features->query_ids,   features->window_starts, features->windows};
	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
		free(blocks[i]);
	*features = (struct squad_features){.set = NULL};
}

/* ---- Windows ---- */

static int32_t query_size(const struct squad_features *f, int64_t window)
{
	int64_t q = f->windows[window].question;
	return (int32_t)(f->query_starts[q + 1] - f->query_starts[q]);
}

int32_t squad_window_size(const struct squad_features *features, int64_t window)
{
	return query_size(features, window) + features->windows[window].length + template_size(template_of(features));
}

void squad_window_fill(const struct squad_features *features, int64_t window, int32_t *ids, int32_t *segments)
{
	const struct token_template *template = template_of(features);
	const struct squad_window *w = &features->windows[window];
	int64_t paragraph = features->set->questions[w->question].paragraph;
	int32_t query = query_size(features, window), type_0 = template_type_0(template, query, w->length);
	int32_t size = template_join(template, features->query_ids + features->query_starts[w->question], query,
				     features->token_ids + features->token_starts[paragraph] + w->first, w->length, ids);
	for (int32_t row = 0; row < size; row++)
		segments[row] = row >= type_0;
}

int32_t squad_row_token(const struct squad_features *features, int64_t window, int32_t row)
{
	const struct squad_window *w = &features->windows[window];
	const struct token_template *template = template_of(features);
	int32_t within = row - query_size(features, window) - template->before - template->between;
	return within < 0 || within >= w->length ? -1 : w->first + within;
}

/* Google's score of a token in a window: the number of tokens to the nearer end, with a preference for longer windows. Uses the
 * same floating-point expression, since rounding decides ties. */
static double context_score(const struct squad_window *window, int32_t token)
{
	int32_t left = token - window->first, right = window->first + window->length - 1 - token;
	return (left < right ? left : right) + 0.01 * window->length;
}

bool squad_is_max_context(const struct squad_features *features, int64_t window, int32_t token)
{
	const struct squad_window *w = &features->windows[window];
	double own = context_score(w, token);
	for (int64_t i = window - 1; i >= features->window_starts[w->question]; i--) {
		const struct squad_window *other = &features->windows[i];
		if (token >= other->first + other->length)
			break;
		if (context_score(other, token) >= own)
			return false;
	}
	for (int64_t i = window + 1; i < features->window_starts[w->question + 1]; i++) {
		const struct squad_window *other = &features->windows[i];
		if (token < other->first)
			break;
		if (context_score(other, token) > own)
			return false;
	}
	return true;
}
