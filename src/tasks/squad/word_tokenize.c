/* NLTK's regular expressions as passes over a line, in NLTK's order. */
#include "tasks/squad/word_tokenize.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/python_text.h"
#include "text/utf8.h"

/* A line of characters. Each regular expression is a pass that reads one line and writes the next. */
struct line {
	uint32_t *at;
	int64_t size, capacity;
	bool failed;
};

static void put(struct line *out, uint32_t c)
{
	if (!out->failed && memory_grow(&out->at, &out->capacity, out->size + 1, sizeof *out->at, "words of an answer") != OK)
		out->failed = true;
	if (!out->failed)
		out->at[out->size++] = c;
}

static void put_ascii(struct line *out, const char *text)
{
	for (; *text; text++)
		put(out, (unsigned char)*text);
}

static void put_some(struct line *out, const struct line *in, int64_t begin, int64_t end)
{
	for (; begin < end; begin++)
		put(out, in->at[begin]);
}

/* Puts in[begin, end) between spaces. */
static void put_padded(struct line *out, const struct line *in, int64_t begin, int64_t end)
{
	put(out, ' ');
	put_some(out, in, begin, end);
	put(out, ' ');
}

static uint32_t at(const struct line *in, int64_t i)
{
	return i >= 0 && i < in->size ? in->at[i] : 0;
}

static bool is_one_of(uint32_t c, const char *set)
{
	return c && c < 0x80 && strchr(set, (int)c);
}

static bool is_word_at(const struct line *in, int64_t i)
{
	return i >= 0 && i < in->size && python_is_word(in->at[i]);
}

/* Is the (lower case) text at this place, in either case? */
static bool matches(const struct line *in, int64_t i, const char *text)
{
	for (; *text; text++, i++) {
		uint32_t c = at(in, i);
		if (c != (unsigned char)*text && !(*text >= 'a' && *text <= 'z' && c == (unsigned char)*text - 32u))
			return false;
	}
	return true;
}

/* The end of the run of `c` that begins at i. */
static int64_t run_end(const struct line *in, int64_t i, uint32_t c)
{
	while (i < in->size && in->at[i] == c)
		i++;
	return i;
}

/* ---- Opening quotes ---- */

static void pad_opening_quotes(const struct line *in, struct line *out)
{
	for (int64_t i = 0, end; i < in->size; i = end) {
		uint32_t c = in->at[i];
		end = c == '`' ? run_end(in, i, '`') : i + 1;
		if (c == '`' || c == 0xAB || c == 0x201C || c == 0x2018 || c == 0x201E)
			put_padded(out, in, i, end);
		else
			put(out, c);
	}
}

static void first_quote(const struct line *in, struct line *out)
{
	bool is_quote = at(in, 0) == '"';
	if (is_quote)
		put_ascii(out, "``");
	put_some(out, in, is_quote, in->size);
}

static void pad_backquotes(const struct line *in, struct line *out)
{
	for (int64_t i = 0; i < in->size; i++) {
		bool pair = in->at[i] == '`' && at(in, i + 1) == '`';
		if (pair)
			put_padded(out, in, i, i + 2);
		else
			put(out, in->at[i]);
		i += pair;
	}
}

static void quotes_after_brackets(const struct line *in, struct line *out)
{
	for (int64_t i = 0; i < in->size; i++) {
		int64_t quote = 0;
		put(out, in->at[i]);
		if (is_one_of(in->at[i], " ([{<"))
			quote = at(in, i + 1) == '"' ? 1 : at(in, i + 1) == '\'' && at(in, i + 2) == '\'' ? 2 : 0;
		if (quote > 0)
			put_ascii(out, " `` ");
		i += quote;
	}
}

/* Splits off an apostrophe that begins a word, unless the word is one of the endings re, ve, ... */
static void split_opening_apostrophes(const struct line *in, struct line *out)
{
	static const char *const endings[] = {"re", "ve", "ll", "m", "t", "s", "d", "n"};
	for (int64_t i = 0; i < in->size; i++) {
		bool ending = false;
		put(out, in->at[i]);
		if (in->at[i] != '\'' || is_word_at(in, i - 1) || !is_word_at(in, i + 1))
			continue;
		for (size_t e = 0; e < sizeof endings / sizeof *endings; e++)
			ending |= matches(in, i + 1, endings[e]) && !is_word_at(in, i + 1 + (int64_t)strlen(endings[e]));
		if (!ending)
			put(out, ' ');
	}
}

/* ---- Punctuation ---- */

static bool is_closer(uint32_t c)
{
	return is_one_of(c, "])}>\"' ") || c == 0xBB || c == 0x201D || c == 0x2019;
}

/* Splits off the period that ends the text, perhaps followed by quotes and brackets. */
static void split_last_stop(const struct line *in, struct line *out)
{
	int64_t end = in->size, stop;
	while (end > 0 && python_is_space(in->at[end - 1]))
		end--;
	for (stop = end; stop > 0 && is_closer(in->at[stop - 1]);)
		stop--;
	stop--;
	if (stop < 1 || in->at[stop] != '.' || in->at[stop - 1] == '.') {
		put_some(out, in, 0, in->size);
		return;
	}
	put_some(out, in, 0, stop);
	put_padded(out, in, stop, stop + 1);
	put_some(out, in, stop + 1, end);
	put(out, ' ');
}

static void split_commas(const struct line *in, struct line *out)
{
	for (int64_t i = 0; i < in->size; i++) {
		bool mark = is_one_of(in->at[i], ":,");
		if (mark && i + 1 < in->size && !python_is_digit(in->at[i + 1])) {
			put_padded(out, in, i, i + 1);
			put(out, in->at[++i]);
		} else {
			put(out, in->at[i]);
		}
	}
}

static void split_last_comma(const struct line *in, struct line *out)
{
	int64_t last = in->size - 1 - (at(in, in->size - 1) == '\n');
	for (int64_t i = 0; i < in->size; i++)
		if (i == last && is_one_of(in->at[i], ":,"))
			put_padded(out, in, i, i + 1);
		else
			put(out, in->at[i]);
}

static void pad_ellipses(const struct line *in, struct line *out)
{
	for (int64_t i = 0, end; i < in->size; i = end) {
		end = in->at[i] == '.' ? run_end(in, i, '.') : i + 1;
		if (end - i > 1)
			put_padded(out, in, i, end);
		else
			put(out, in->at[i]);
	}
}

static void pad_signs(const struct line *in, struct line *out)
{
	for (int64_t i = 0; i < in->size; i++)
		if (is_one_of(in->at[i], ";@#$%&?!") || (in->at[i] >= 0x2012 && in->at[i] <= 0x2015))
			put_padded(out, in, i, i + 1);
		else
			put(out, in->at[i]);
}

static void split_apostrophes_before_spaces(const struct line *in, struct line *out)
{
	for (int64_t i = 0; i < in->size; i++) {
		put(out, in->at[i]);
		if (in->at[i] != '\'' && at(in, i + 1) == '\'' && at(in, i + 2) == ' ') {
			put_ascii(out, " ' ");
			i += 2;
		}
	}
}

static void pad_brackets_and_stars(const struct line *in, struct line *out)
{
	for (int64_t i = 0; i < in->size; i++)
		if (is_one_of(in->at[i], "*[](){}<>"))
			put_padded(out, in, i, i + 1);
		else
			put(out, in->at[i]);
}

/* Pads "--", and adds the spaces around the text that later passes rely on. */
static void pad_dashes(const struct line *in, struct line *out)
{
	put(out, ' ');
	for (int64_t i = 0; i < in->size; i++) {
		bool pair = in->at[i] == '-' && at(in, i + 1) == '-';
		if (pair)
			put_padded(out, in, i, i + 2);
		else
			put(out, in->at[i]);
		i += pair;
	}
	put(out, ' ');
}

/* ---- Closing quotes ---- */

static void pad_closing_quotes(const struct line *in, struct line *out)
{
	for (int64_t i = 0; i < in->size; i++)
		if (in->at[i] == 0xBB || in->at[i] == 0x201D || in->at[i] == 0x2019)
			put_padded(out, in, i, i + 1);
		else
			put(out, in->at[i]);
}

static void pad_double_apostrophes(const struct line *in, struct line *out)
{
	for (int64_t i = 0; i < in->size; i++) {
		bool pair = in->at[i] == '\'' && at(in, i + 1) == '\'';
		if (pair)
			put_ascii(out, " '' ");
		else
			put(out, in->at[i]);
		i += pair;
	}
}

/* Replaces double quotes, and collapses runs of white space into one space. */
static void close_double_quotes(const struct line *in, struct line *out)
{
	for (int64_t i = 0; i < in->size; i++) {
		bool quote = in->at[i] == '"';
		if (quote || python_is_space(in->at[i])) {
			if (at(out, out->size - 1) != ' ')
				put(out, ' ');
			if (quote)
				put_ascii(out, "'' ");
		} else {
			put(out, in->at[i]);
		}
	}
}

/* The size of the ending after character i, which must be neither an apostrophe nor a space; the ending must be followed by a
 * space. 0: there is none. */
static int64_t ending_at(const struct line *in, int64_t i, const char *const *endings, size_t count)
{
	if (in->at[i] == '\'' || in->at[i] == ' ')
		return 0;
	for (size_t e = 0; e < count; e++) {
		int64_t size = (int64_t)strlen(endings[e]);
		bool same = true;
		for (int64_t k = 0; k < size; k++)
			same &= at(in, i + 1 + k) == (unsigned char)endings[e][k];
		if (same && at(in, i + 1 + size) == ' ')
			return size;
	}
	return 0;
}

static void split_endings(const struct line *in, struct line *out, const char *const *endings, size_t count)
{
	for (int64_t i = 0; i < in->size; i++) {
		int64_t size = ending_at(in, i, endings, count);
		put(out, in->at[i]);
		if (size > 0) {
			put(out, ' ');
			put_some(out, in, i + 1, i + 2 + size);
			i += size + 1;
		}
	}
}

static void split_short_endings(const struct line *in, struct line *out)
{
	static const char *const endings[] = {"'s", "'S", "'m", "'M", "'d", "'D", "'"};
	split_endings(in, out, endings, sizeof endings / sizeof *endings);
}

static void split_long_endings(const struct line *in, struct line *out)
{
	static const char *const endings[] = {"'ll", "'LL", "'re", "'RE", "'ve", "'VE", "n't", "N'T"};
	split_endings(in, out, endings, sizeof endings / sizeof *endings);
}

/* ---- Contractions ---- */

/* Two words written as one; the first must be at the beginning of a word, the second at the end. */
static const struct contraction {
	const char *first, *second;
	enum { ENDS_WORD, BEFORE_SPACE } end;
} contractions[] = {
	{"can", "not", ENDS_WORD}, {"d", "'ye", ENDS_WORD},  {"gim", "me", ENDS_WORD},  {"gon", "na", ENDS_WORD},
	{"got", "ta", ENDS_WORD},  {"lem", "me", ENDS_WORD}, {"more", "'n", ENDS_WORD}, {"wan", "na", BEFORE_SPACE},
};

static int64_t contraction_end(const struct line *in, int64_t i, const struct contraction *contraction)
{
	int64_t second = i + (int64_t)strlen(contraction->first), end = second + (int64_t)strlen(contraction->second);
	if (is_word_at(in, i - 1) || !matches(in, i, contraction->first) || !matches(in, second, contraction->second))
		return 0;
	if (contraction->end == ENDS_WORD ? is_word_at(in, end) : !(end < in->size && python_is_space(in->at[end])))
		return 0;
	return end;
}

static void split_contraction(const struct line *in, struct line *out, const struct contraction *contraction)
{
	for (int64_t i = 0; i < in->size; i++) {
		int64_t end = contraction_end(in, i, contraction), second = i + (int64_t)strlen(contraction->first);
		if (end == 0) {
			put(out, in->at[i]);
			continue;
		}
		put_padded(out, in, i, second);
		put_padded(out, in, second, end);
		i = end - 1;
	}
}

/* Splits " 'tis" and " 'twas". */
static void split_old_contractions(const struct line *in, struct line *out, const char *second)
{
	for (int64_t i = 0; i < in->size; i++) {
		int64_t end = i + 3 + (int64_t)strlen(second);
		if (in->at[i] != ' ' || !matches(in, i + 1, "'t") || !matches(in, i + 3, second) || is_word_at(in, end)) {
			put(out, in->at[i]);
			continue;
		}
		put_padded(out, in, i + 1, i + 3);
		put_padded(out, in, i + 3, end);
		i = end - 1;
	}
}

/* ---- All passes ---- */

static void swap(struct line *a, struct line *b)
{
	struct line other = *a;
	*a = *b;
	*b = other;
	b->size = 0;
}

static void run_passes(struct line *text, struct line *next)
{
	/* clang-format off */
	static void (*const passes[])(const struct line *, struct line *) = {
		pad_opening_quotes, first_quote, pad_backquotes, quotes_after_brackets, split_opening_apostrophes,
		split_last_stop, split_commas, split_last_comma, pad_ellipses, pad_signs, split_apostrophes_before_spaces,
		pad_brackets_and_stars, pad_dashes, pad_closing_quotes, pad_double_apostrophes, close_double_quotes,
		split_short_endings, split_long_endings,
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
		passes[i](text, next);
		swap(text, next);
	}
	for (size_t i = 0; i < sizeof contractions / sizeof *contractions; i++) {
		split_contraction(text, next, &contractions[i]);
		swap(text, next);
	}
	split_old_contractions(text, next, "is");
	swap(text, next);
	split_old_contractions(text, next, "was");
	swap(text, next);
}

static enum status give_words(const struct line *text, enum status (*add)(void *context, const char *word, size_t size),
			      void *context)
{
	struct buffer word = {0};
	enum status status = OK;
	for (int64_t i = 0; i <= text->size && status == OK; i++) {
		char bytes[4];
		if (i < text->size && !python_is_space(text->at[i])) {
			buffer_append(&word, bytes, utf8_encode(text->at[i], bytes));
			continue;
		}
		status = buffer_status(&word);
		if (status == OK && word.size > 0)
			status = add(context, word.data, word.size);
		buffer_clear(&word);
	}
	buffer_release(&word);
	return status;
}

enum status word_tokenize(const char *text, size_t size, enum status (*add)(void *context, const char *word, size_t size),
			  void *context)
{
	struct line line = {0}, next = {0};
	for (size_t i = 0, length; i < size; i += length) {
		uint32_t c;
		length = utf8_decode(text + i, size - i, &c);
		put(&line, c == UTF8_INVALID ? 0xFFFD : c);
	}
	run_passes(&line, &next);
	enum status status =
		line.failed || next.failed
			? error_set(ERR_RESOURCE, "out of memory: %zu bytes of an answer cannot be cut into words", size)
			: give_words(&line, add, context);
	free(line.at);
	free(next.at);
	return status;
}
