/* From text to normalized words: the loop that takes nearly all the time.
 *
 * The same code serves encoding and the collection of words; it is included where it is used and the visitor is
 * a constant there, so that the compiler inlines its calls. Nearly all words of English text are short runs
 * of ASCII letters, which are found, cut and lower-cased as two numbers; other words go through the normalization
 * table character by character; the few words with characters that depend on their neighbors go through
 * normalize_stretch().
 */
#ifndef TEXT_TOKENIZER_TOKENIZER_WALK_H
#define TEXT_TOKENIZER_TOKENIZER_WALK_H

#include <endian.h>
#include <string.h>
#include "base/memory.h"
#include "text/tokenizer/chain.h"
#include "text/tokenizer/tokenizer_normalize.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Called for everything that a walk encounters, in order. */
struct visitor {
	/* A word of 1 to 15 ASCII letters and digits, as two little-endian numbers padded with zeros. */
	enum status (*short_word)(void *context, uint64_t low, uint64_t high, size_t size, uint32_t begin);
	enum status (*word)(void *context, const struct word *word);
	/* A word of one character that normalization does not change. */
	enum status (*character)(void *context, uint32_t code_point, const char *text, size_t size, uint32_t begin);
	enum status (*special)(void *context, int which, uint32_t begin, uint32_t end);
};

struct walk {
	const struct normalizer *normalizer;
	void *context;                  /* of the visitor */
	struct normalized_text *buffer; /* the word under construction */
	const char *text;
	size_t size;
	size_t at;             /* bytes processed */
	size_t run_begin;      /* beginning of the current run without spaces and ideographs */
	int64_t invalid_bytes; /* found so far */
};

static const char *const special_token_texts[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

/* At most 8 bytes as a little-endian number. Overlapping parts of it are read: a loop would end at a place that is hard to
 * predict. */
static inline uint64_t load_few(const char *text, size_t size)
{
	const unsigned char *s = (const unsigned char *)text;
	uint32_t first, last;

	if (size >= 4) {
		memcpy(&first, text, 4);
		memcpy(&last, text + size - 4, 4);
		return le32toh(first) | (uint64_t)le32toh(last) << 8 * (size - 4);
	}
	return size > 0 ? s[0] | (uint32_t)s[size / 2] << 8 * (size / 2) | (uint32_t)s[size - 1] << 8 * (size - 1) : 0;
}

/* The 16 bytes at text[at] as little-endian numbers, with zeros after the end of the text. */
static inline void load_16(const char *text, size_t size, size_t at, uint64_t *low, uint64_t *high)
{
	size_t rest = size - at;

	if (rest >= 16) {
		memcpy(low, text + at, 8);
		memcpy(high, text + at + 8, 8);
		*low = le64toh(*low);
		*high = le64toh(*high);
	} else if (size >= 16) {
		/* The last 16 bytes, shifted, so that nothing after the end is read. */
		unsigned shift = 8 * (16 - (unsigned)rest);
		uint64_t a, b;

		memcpy(&a, text + size - 16, 8);
		memcpy(&b, text + size - 8, 8);
		a = le64toh(a);
		b = le64toh(b);
		*low = shift >= 64 ? b >> (shift - 64) : a >> shift | b << (64 - shift);
		*high = shift >= 64 ? 0 : b >> shift;
	} else {
		*low = load_few(text + at, rest < 8 ? rest : 8);
		*high = rest > 8 ? load_few(text + at + 8, rest - 8) : 0;
	}
}

/* 0x80 in each byte of x that is not an ASCII letter or digit. Works on all bytes at once: adding 0x80 - c to a byte below
 * 0x80 sets its high bit exactly if the byte is at least c, and never carries into the next byte. */
static inline uint64_t other_bytes(uint64_t x)
{
	const uint64_t ones = 0x0101010101010101u, high = 0x80 * ones;
	uint64_t low7 = x & ~high, folded = low7 | 0x20 * ones;
	uint64_t letter = (folded + (0x80 - 'a') * ones) & ~(folded + (0x80 - 'z' - 1) * ones);
	uint64_t digit = (low7 + (0x80 - '0') * ones) & ~(low7 + (0x80 - '9' - 1) * ones);

	return (~(letter | digit) | x) & high;
}

/* Cuts 16 bytes of text, given as numbers, after the ASCII letters and digits that they begin with. Lower-cases these
 * if `fold` has 0x20 in each byte (a bit that digits have anyway). Returns their number. */
static inline size_t cut_ascii_word(uint64_t fold, uint64_t *low, uint64_t *high)
{
	uint64_t others = other_bytes(*low);
	unsigned bits;

	if (others) {
		bits = (unsigned)__builtin_ctzll(others) - 7;
		*low = (*low | fold) & ~(~(uint64_t)0 << bits);
		*high = 0;
		return bits / 8;
	}
	others = other_bytes(*high);
	if (!others)
		return 16;
	bits = (unsigned)__builtin_ctzll(others) - 7;
	*low |= fold;
	*high = (*high | fold) & ~(~(uint64_t)0 << bits);
	return 8 + bits / 8;
}

/* Index of the special token written at text[at], or -1. */
static inline int find_special(const struct walk *w, size_t at)
{
	if (w->text[at] != '[' || !w->normalizer->settings.special_tokens)
		return -1;
	for (int i = 0; i < 5; i++) {
		size_t length = strlen(special_token_texts[i]);

		if (w->size - at >= length && memcmp(w->text + at, special_token_texts[i], length) == 0)
			return i;
	}
	return -1;
}

/* The character at text[at]; invalid bytes are dropped like some valid characters. */
struct source_character {
	uint32_t code_point; /* UTF8_INVALID if it is not valid */
	size_t length;       /* bytes */
	uint32_t entry;
	enum code_point_kind kind;
};

static inline struct source_character look_up(const struct walk *w, size_t at)
{
	struct source_character c;

	c.length = utf8_decode(w->text + at, w->size - at, &c.code_point);
	c.entry = c.code_point == UTF8_INVALID ? KIND_DROP : w->normalizer->entries[c.code_point];
	c.kind = entry_kind(c.entry);
	return c;
}

static inline bool ends_word(enum code_point_kind kind)
{
	return kind == KIND_SPACE || kind == KIND_PUNCTUATION || kind == KIND_IDEOGRAPH;
}

/* Passes on the word under construction, if there is one, and begins the next. */
static ALWAYS_INLINE enum status finish_word(const struct visitor *visitor, struct walk *w)
{
	struct normalized_text *buffer = w->buffer;
	struct word word = {.text = buffer->text, .size = (size_t)buffer->size};

	if (buffer->size == 0)
		return OK;
	word.begins = buffer->begins;
	word.ends = buffer->ends;
	word.begin = buffer->begins[0];
	word.end = buffer->ends[buffer->size - 1];
	buffer->size = 0;
	return visitor->word(w->context, &word);
}

/* Takes the text from here to the next space, ideograph or special token through normalize_stretch(). */
static ALWAYS_INLINE enum status walk_stretch(const struct visitor *visitor, struct walk *w)
{
	struct stretch *stretch = &w->buffer->stretch;
	const struct normalizer *normalizer = w->normalizer;
	size_t begin = w->at;

	w->buffer->size = 0;
	while (w->at < w->size) {
		struct source_character c = look_up(w, w->at);

		if (c.kind == KIND_SPACE || c.kind == KIND_IDEOGRAPH || find_special(w, w->at) >= 0)
			break;
		w->at += c.length;
	}
	TRY(normalize_stretch(normalizer, w->text, w->run_begin, begin, w->at, stretch));
	w->invalid_bytes += stretch->invalid_bytes;
	for (int64_t i = 0; i < stretch->count; i++) {
		const struct character *c = &stretch->characters[i];
		bool is_word = unicode_flags(normalizer->column, c->code_point) & UNICODE_PUNCTUATION;
		char bytes[4];
		size_t length = utf8_encode(c->code_point, bytes);

		if (is_word)
			TRY(finish_word(visitor, w));
		TRY(normalized_text_append(w->buffer, bytes, length, c->begin, c->end));
		if (is_word)
			TRY(finish_word(visitor, w));
	}
	return finish_word(visitor, w);
}

/* A word of any characters, from here to its end. */
static ALWAYS_INLINE enum status walk_word(const struct visitor *visitor, struct walk *w)
{
	size_t end = w->at;
	int64_t invalid_bytes = 0;

	w->buffer->size = 0;
	while (end < w->size) {
		struct source_character c = look_up(w, end);
		const char *bytes = w->text + end;
		size_t begin = end, count = c.length;

		if (ends_word(c.kind))
			break;
		if (c.kind == KIND_CONTEXT)
			return walk_stretch(visitor, w); /* from the beginning of the word */
		end += c.length;
		if (c.kind == KIND_DROP) {
			invalid_bytes += c.code_point == UTF8_INVALID ? (int64_t)c.length : 0;
			continue;
		}
		if (c.kind == KIND_REPLACE) {
			bytes = entry_text(w->normalizer, c.entry);
			count = entry_size(c.entry);
		}
		TRY(normalized_text_append(w->buffer, bytes, count, begin, end));
	}
	w->at = end;
	w->invalid_bytes += invalid_bytes;
	return finish_word(visitor, w);
}

/* A character that is not an ASCII letter or digit: a space, a word of its own, or the beginning of a word. */
static ALWAYS_INLINE enum status walk_other(const struct visitor *visitor, struct walk *w)
{
	struct source_character c = look_up(w, w->at);
	size_t begin = w->at;
	int special;

	if (!ends_word(c.kind))
		return walk_word(visitor, w);
	special = find_special(w, begin);
	if (special >= 0) {
		w->at += strlen(special_token_texts[special]);
		w->run_begin = w->at;
		return visitor->special(w->context, special, (uint32_t)begin, (uint32_t)w->at);
	}
	w->at += c.length;
	if (c.kind != KIND_PUNCTUATION)
		w->run_begin = w->at;
	if (c.kind == KIND_SPACE)
		return OK;
	if (entry_size(c.entry) == 0)
		return visitor->character(w->context, c.code_point, w->text + begin, c.length, (uint32_t)begin);
	w->buffer->size = 0;
	TRY(normalized_text_append(w->buffer, entry_text(w->normalizer, c.entry), entry_size(c.entry), begin, w->at));
	return finish_word(visitor, w);
}

static inline enum status text_too_long(size_t size)
{
	return error_set(ERR_DATA, "a text of %zu bytes is too long to be tokenized in one piece", size);
}

/* Calls the visitor for every word from w->at to the end of the text. */
static ALWAYS_INLINE enum status walk_text(const struct visitor *visitor, struct walk *w)
{
	const uint64_t fold = w->normalizer->settings.lowercase ? 0x2020202020202020u : 0;

	if (w->size > UINT32_MAX)
		return text_too_long(w->size);
	/* The position is kept in a local variable from word to word: in memory, each step would wait for
	 * the previous one. */
	for (size_t at = w->at; at < w->size;) {
		uint64_t low, high;
		size_t length, end;

		load_16(w->text, w->size, at, &low, &high);
		if (other_bytes(low) & 0x80) {
			w->at = at;
			TRY(walk_other(visitor, w));
			at = w->at;
			continue;
		}
		length = cut_ascii_word(fold, &low, &high);
		end = at + length;
		if (length == 16 || (end < w->size && !ends_word(look_up(w, end).kind))) {
			w->at = at;
			TRY(walk_word(visitor, w));
			at = w->at;
			continue;
		}
		TRY(visitor->short_word(w->context, low, high, length, (uint32_t)at));
		at = end;
		if (at < w->size && w->text[at] == ' ') /* nearly always */
			w->run_begin = ++at;
	}
	return OK;
}

#endif
