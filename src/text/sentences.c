/* Splits running text into sentences, by rules.
 *
 * A sentence ends at a mark (".", "!", "?", "。", "।", ...) with the closing quotes, brackets and note
 * numbers attached to it, unless there is evidence against it: no space follows, the next word begins in
 * lower case, or the word before a period is an abbreviation, an initial or a list number. Marks that
 * cannot be anything else (Chinese, Japanese, Devanagari, Arabic, ...) end a sentence without a space.
 *
 * The rules err on the side of not splitting: two sentences taken as one cost pre-training little, whereas halves of one
 * mislead next-sentence prediction.
 */
#include "text/sentences.h"

#include <string.h>
#include <utf8proc.h>
#include "text/sentence_words.h"
#include "text/utf8.h"

#define END_OF_TEXT 0    /* a character that never precedes a sentence */
#define OPENING_BYTES 32 /* most bytes of quotes and brackets before the number of a list item */

enum mark {
	MARK_NONE,
	MARK_FULL,     /* always ends a sentence */
	MARK_CLAUSE,   /* Chinese semicolon: ends a sentence outside of parentheses */
	MARK_STRONG,   /* ! ? */
	MARK_PERIOD,   /* . and its full-width form, which also occur in numbers and abbreviations */
	MARK_ELLIPSIS, /* … */
};

/* Marks of other scripts that end a sentence, sorted: Unicode's property Sentence_Terminal without those above,
 * plus Khmer's and two vertical forms. UAX 29, which uses the property, always ends a sentence at them; so
 * do we. */
static const uint32_t full_marks[] = {
	0x0589,  0x061D,  0x061E,  0x061F,  0x06D4,  0x0700,  0x0701,  0x0702,  0x07F9,  0x0837,  0x0839,  0x083D,  0x083E,
	0x0964,  0x0965,  0x104A,  0x104B,  0x1362,  0x1367,  0x1368,  0x166E,  0x1735,  0x1736,  0x17D4,  0x17D5,  0x1803,
	0x1809,  0x1944,  0x1945,  0x1AA8,  0x1AA9,  0x1AAA,  0x1AAB,  0x1B5A,  0x1B5B,  0x1B5E,  0x1B5F,  0x1B7D,  0x1B7E,
	0x1C3B,  0x1C3C,  0x1C7E,  0x1C7F,  0x2E2E,  0x2E3C,  0x2E53,  0x2E54,  0x3002,  0xA4FF,  0xA60E,  0xA60F,  0xA6F3,
	0xA6F7,  0xA876,  0xA877,  0xA8CE,  0xA8CF,  0xA92F,  0xA9C8,  0xA9C9,  0xAA5D,  0xAA5E,  0xAA5F,  0xAAF0,  0xAAF1,
	0xABEB,  0xFE12,  0xFE15,  0xFE16,  0xFE52,  0xFE56,  0xFE57,  0xFF01,  0xFF1F,  0xFF61,  0x10A56, 0x10A57, 0x10F55,
	0x10F56, 0x10F57, 0x10F58, 0x10F59, 0x10F86, 0x10F87, 0x10F88, 0x10F89, 0x11047, 0x11048, 0x110BE, 0x110BF, 0x110C0,
	0x110C1, 0x11141, 0x11142, 0x11143, 0x111C5, 0x111C6, 0x111CD, 0x111DE, 0x111DF, 0x11238, 0x11239, 0x1123B, 0x1123C,
	0x112A9, 0x1144B, 0x1144C, 0x115C2, 0x115C3, 0x115C9, 0x115CA, 0x115CB, 0x115CC, 0x115CD, 0x115CE, 0x115CF, 0x115D0,
	0x115D1, 0x115D2, 0x115D3, 0x115D4, 0x115D5, 0x115D6, 0x115D7, 0x11641, 0x11642, 0x1173C, 0x1173D, 0x1173E, 0x11944,
	0x11946, 0x11A42, 0x11A43, 0x11A9B, 0x11A9C, 0x11C41, 0x11C42, 0x11EF7, 0x11EF8, 0x11F43, 0x11F44, 0x16A6E, 0x16A6F,
	0x16AF5, 0x16B37, 0x16B38, 0x16B44, 0x16E98, 0x1BC9F, 0x1DA88,
};

static enum mark mark_of(uint32_t c)
{
	switch (c) {
	case '.':
	case 0xFF0E: /* ． */ return MARK_PERIOD;
	case '!':
	case '?':
	case 0x203C: /* ‼ */
	case 0x203D: /* ‽ */
	case 0x2047: /* ⁇ ⁈ ⁉ */
	case 0x2048:
	case 0x2049: return MARK_STRONG;
	case 0x2026: /* … */ return MARK_ELLIPSIS;
	case ';':
	case 0xFF1B: /* ； */ return MARK_CLAUSE;
	}
	if (c < full_marks[0])
		return MARK_NONE;
	size_t low = 0, high = sizeof full_marks / sizeof *full_marks;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (full_marks[middle] < c)
			low = middle + 1;
		else
			high = middle;
	}
	return low < sizeof full_marks / sizeof *full_marks && full_marks[low] == c ? MARK_FULL : MARK_NONE;
}

/* Characters that may come between a mark and the end of its sentence. */
static bool is_closing(uint32_t c)
{
	switch (c) {
	case '"':
	case '\'':
	case ')':
	case ']':
	case '}':
	case 0x00BB: /* » */
	case 0x203A: /* › */
	case 0x2019: /* ’ */
	case 0x201D: /* ” */
	case 0x300D: /* 」 */
	case 0x300F: /* 』 */
	case 0x3011: /* 】 */
	case 0x3015: /* 〕 */
	case 0xFF02: /* ＂ */
	case 0xFF09: /* ） */
	case 0xFF3D: /* ］ */
	case 0xFF5D: /* ｝ */
	case 0xFF63: /* ｣ */ return true;
	}
	return false;
}

/* Characters that close only directly after the mark, since elsewhere they open: „Ja.“, »Ja.« */
static bool is_closing_here(uint32_t c)
{
	return c == 0x00AB || c == 0x2018 || c == 0x2039 || c == 0x201C;
}

/* Characters that may precede the first letter of a sentence. */
static bool is_opening(uint32_t c)
{
	switch (c) {
	case '"':
	case '\'':
	case '(':
	case '[':
	case '{':
	case '*':
	case '_':
	case '-':
	case 0x00A1: /* ¡ */
	case 0x00AB: /* « */
	case 0x00BF: /* ¿ */
	case 0x2013: /* – */
	case 0x2014: /* — */
	case 0x2018: /* ‘ */
	case 0x2039: /* ‹ */
	case 0x201C: /* “ */
	case 0x201E: /* „ */ return true;
	}
	return false;
}

static bool is_digit(uint32_t c)
{
	return (c >= '0' && c <= '9') || (c >= 0xFF10 && c <= 0xFF19); /* ０ to ９ */
}

static bool is_upper(uint32_t c)
{
	if (c < 0x80)
		return c >= 'A' && c <= 'Z';
	utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
	return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LT;
}

static bool is_lower(uint32_t c)
{
	if (c < 0x80)
		return c >= 'a' && c <= 'z';
	return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LL;
}

/* Ideographs, kana and hangul, treated as scripts without a space after a mark. */
static bool is_east_asian(uint32_t c)
{
	return utf8_is_ideograph(c) || (c >= 0x3040 && c <= 0x30FF) || (c >= 0xAC00 && c <= 0xD7A3);
}

bool sentence_follows_space(const char *text, size_t size)
{
	uint32_t c;
	if (size == 0)
		return true;
	utf8_decode(text, size, &c);
	bool is_hangul = c >= 0xAC00 && c <= 0xD7A3, is_mark = (c >= 0x3000 && c < 0x3040) || (c >= 0xFF00 && c <= 0xFFEF);
	return is_hangul || !(is_east_asian(c) || is_mark);
}

static bool is_ascii_word(uint32_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_letter_or_digit(uint32_t c)
{
	if (c < 0x80)
		return is_ascii_word(c);
	if (c == UTF8_INVALID)
		return false;
	utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
	return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
	       (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

/* The text and what is known about it. */
struct splitter {
	const char *text;
	size_t size;
	int caseless; /* -1: not known yet; 1: no letter is upper case, so lower case starts sentences,
			 too */
};

/* The character at `at`, and the offset after it. */
static uint32_t character_at(const struct splitter *s, size_t at, size_t *out_after)
{
	uint32_t c = END_OF_TEXT;
	*out_after = at;
	if (at < s->size)
		*out_after = at + utf8_decode(s->text + at, s->size - at, &c);
	return c;
}

static uint32_t character_before(const struct splitter *s, size_t begin, size_t at)
{
	uint32_t c = END_OF_TEXT;
	if (at > begin)
		utf8_decode_last(s->text + begin, at - begin, &c);
	return c;
}

static size_t skip_spaces(const struct splitter *s, size_t at)
{
	size_t after;
	for (uint32_t c; utf8_is_space(c = character_at(s, at, &after));)
		at = after;
	return at;
}

static bool text_is_caseless(struct splitter *s)
{
	if (s->caseless < 0) {
		s->caseless = 1;
		for (size_t at = 0; at < s->size && s->caseless;) {
			if (is_upper(character_at(s, at, &at)))
				s->caseless = 0;
		}
	}
	return s->caseless;
}

/* True for a number as it may follow "No.": 12, 3a, S1, IV, (2). */
static bool is_number_word(const struct splitter *s, size_t at)
{
	bool roman = true, digit = false;
	size_t after, length = 0;
	uint32_t c = character_at(s, at, &after);

	if (c == '(' || c == '#')
		c = character_at(s, after, &after);
	while (is_letter_or_digit(c)) {
		roman = roman && c < 0x80 && strchr("IVXLCivxlc", (int)c);
		digit = digit || is_digit(c);
		length++;
		c = character_at(s, after, &after);
	}
	return digit || (roman && length > 0);
}

/* Size of the word at `at`: ASCII letters and, unless `ascii`, bytes of other characters. */
static size_t word_size(const struct splitter *s, size_t at, bool ascii)
{
	size_t size = 0;
	while (at + size < s->size && size < SENTENCE_WORD_BYTES) {
		char c = s->text[at + size];
		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && (ascii || !(c & 0x80)))
			break;
		size++;
	}
	return size;
}

static bool is_starter(const struct splitter *s, size_t at)
{
	size_t size = word_size(s, at, true);
	/* A single capital may be an initial: "A. B. Smith" */
	if (size == 1 && at + 1 < s->size && s->text[at + 1] == '.')
		return false;
	return sentence_starter(s->text + at, size);
}

static bool is_ordinal_noun(const struct splitter *s, size_t at)
{
	return sentence_ordinal_noun(s->text + at, word_size(s, at, false));
}

/* True if the period at `period` ends the sentence that began at `begin`. `next` is where the first word after it
 * begins. */
static bool period_ends(const struct splitter *s, size_t begin, size_t period, size_t next)
{
	/* The word before it reaches back to a space, an opening character or a slash. */
	size_t word = period;
	if (is_closing(character_before(s, begin, period)))
		return true; /* "(vitamin D). Then" */
	while (word > begin) {
		uint32_t c = character_before(s, begin, word);
		if (utf8_is_space(c) || is_opening(c) || c == '/')
			break;
		word -= utf8_decode_last(s->text + begin, word - begin, &c);
	}
	size_t size = period - word, letters = 0, digits = 0, dots = 0, segment = 0, longest = 0, roman = 0;
	for (size_t at = word, after; at < period; at = after) {
		uint32_t c = character_at(s, at, &after);
		letters += !is_digit(c) && is_letter_or_digit(c);
		digits += is_digit(c);
		dots += c == '.';
		roman += c == 'I' || c == 'V' || c == 'X' || c == 'i' || c == 'v' || c == 'x';
		segment = c == '.' ? 0 : segment + 1;
		longest = segment > longest ? segment : longest;
	}
	if (letters + digits == 0)
		return true; /* an ellipsis, or a mark by itself */

	/* The number of a list item or heading: "1. ", "2.3. ", "IV. ", "B. " at the very beginning. */
	size_t first, after;
	for (first = begin; first < word && word - begin <= OPENING_BYTES && is_opening(character_at(s, first, &after));)
		first = after;
	if (first == word && ((letters == 0 && digits + dots <= 3 + dots) || (digits == 0 && roman == letters) ||
			      (letters == 1 && digits == 0 && dots == 0)))
		return false;

	bool starter = is_starter(s, next), number_next = is_digit(character_at(s, next, &after));
	if (digits > 0 && digits <= 2 && letters == 0 && dots == 0 && is_ordinal_noun(s, next))
		return false; /* am 3. Oktober */
	if (number_next && letters > 0 && letters <= 3 && digits == 0 && dots == 0 && is_lower(character_at(s, word, &after)) &&
	    !sentence_short_word(s->text + word, size))
		return false; /* c. 650, ur. 12, nr. 5 */
	if (letters == 1 && digits == 0 && dots == 0) {
		/* an initial, or "vitamin C."; z. B., d. h., but not "John's." */
		bool alone = word == begin || utf8_is_space(character_before(s, begin, word));
		if (is_upper(character_at(s, word, &after)) || (alone && !number_next))
			return starter;
	} else if (letters > 0 && dots > 0 && longest <= 3 && digits == 0) {
		/* e.g. U.S. a.m. Ph.D. */
		char lower[4] = {0};
		for (size_t i = 0; i < size && i < 3; i++)
			lower[i] = (char)(s->text[word + i] | 0x20);
		if (size == 3 && (memcmp(lower, "e.g", 3) == 0 || memcmp(lower, "i.e", 3) == 0))
			return false;
		if (sentence_dose_word(s->text + word, size) && is_upper(character_at(s, next, &after)) &&
		    is_lower(character_at(s, after, &after)))
			return true; /* "10 mg i.v. Blood was drawn." */
		return starter;
	}
	switch (sentence_abbreviation(s->text + word, size)) {
	case ABBREVIATION_NEVER: return false;
	case ABBREVIATION_NUMBER:
		if (size == 2 && s->text[word + 1] == 'o' && next + 1 < s->size && s->text[next] == 'I' &&
		    (s->text[next + 1] == ' ' || s->text[next + 1] == '\''))
			return true; /* "No. I did not." */
		return !is_number_word(s, next);
	case ABBREVIATION_MAYBE: return starter;
	case ABBREVIATION_STATE: /* "in Salem, Mass. Police said", but "in Salem, Mass., police said" */
		return starter || (word - begin > 2 && s->text[word - 2] == ',' && is_upper(character_at(s, next, &after)));
	case ABBREVIATION_NONE: break;
	}
	return true;
}

/* Skips the quotes and brackets that close a sentence after its mark. */
static size_t skip_closing(const struct splitter *s, size_t at)
{
	size_t after, end;
	uint32_t c;
	while (is_closing(c = character_at(s, at, &after)))
		at = after;
	for (end = at; is_closing_here(c);) {
		end = after;
		c = character_at(s, end, &after);
	}
	/* 他走了。“好”: a quote followed by a letter opens. */
	if (c == END_OF_TEXT || utf8_is_space(c) || c == ',')
		at = end;
	/* « Oui. » has spaces inside; »Ja« does not. */
	size_t next = skip_spaces(s, at);
	c = character_at(s, next, &after);
	if (next > at && (c == 0x00BB || c == 0x203A)) {
		c = character_at(s, after, &end);
		if (c == END_OF_TEXT || utf8_is_space(c) || c == '.' || c == ',' || c == ';')
			return after;
	}
	return at;
}

/* Skips note numbers attached to the mark: "data.2 We", "cells.[12,13] We". Returns the offset after them, or `at`. */
static size_t skip_note(const struct splitter *s, size_t begin, size_t mark, size_t at)
{
	uint32_t before = character_before(s, begin, mark);
	size_t end = at, digits = 0, after;
	uint32_t c = character_at(s, at, &after);
	bool bracket = c == '[';

	if (!bracket && !(is_digit(c) && (is_lower(before) || is_closing(before))))
		return at;
	if (bracket)
		c = character_at(s, end = after, &after);
	while (is_digit(c) || c == ',' || c == '-' || c == 0x2013 || (bracket && c == ' ')) {
		digits = is_digit(c) ? digits + 1 : 0;
		if (digits > 3)
			return at;
		c = character_at(s, end = after, &after);
	}
	if (bracket) {
		if (c != ']')
			return at;
		c = character_at(s, end = after, &after);
	}
	return utf8_is_space(c) || c == END_OF_TEXT ? end : at;
}

/* True if a number with a decimal point ends at `end`. */
static bool word_is_decimal(const struct splitter *s, size_t begin, size_t end)
{
	size_t at = end;
	while (at > begin && is_digit((unsigned char)s->text[at - 1]))
		at--;
	return at > begin + 1 && s->text[at - 1] == '.' && is_digit((unsigned char)s->text[at - 2]);
}

/* True if the sentence that began at `begin` ends with the marks at `mark`, which with what closes them reach to `close`. */
static bool sentence_ends(struct splitter *s, size_t begin, size_t mark, size_t close, enum mark kind, bool quoted, int depth)
{
	size_t after, next = skip_spaces(s, close);
	uint32_t c = character_at(s, next, &after), before = character_before(s, begin, mark);

	if (next >= s->size)
		return true;
	bool touching = next == close, east_asian = is_east_asian(before) || (touching && is_east_asian(c));
	if (kind == MARK_CLAUSE && (depth > 0 || (s->text[mark] == ';' && !east_asian)))
		return false;
	if (kind == MARK_FULL || kind == MARK_CLAUSE) {
		/* “走吧！”，他说; 《为什么？》 */
		return c != 0xFF0C && c != 0x3001 && c != ',' && c != 0x300B && c != 0x3009;
	}
	if (touching && (!east_asian || kind == MARK_ELLIPSIS))
		return false; /* 3.14, example.com, U.S.A. */
	if (touching && is_digit(before) && kind == MARK_PERIOD)
		return word_is_decimal(s, begin, mark); /* 0.05.结果, but not 1.总则 */
	if (touching)
		return !is_lower(c) && !(c < 0x80 && !is_letter_or_digit(c));

	/* To the first letter, past characters that open a sentence. */
	while (is_opening(c) || c == 0x00BB || c == 0x203A) {
		next = after;
		c = character_at(s, next, &after);
	}
	if (c == ',' || c == ';' || c == ':' || c == '.')
		return false; /* "etc.," and ". . ." */
	if (is_lower(c) && !text_is_caseless(s))
		return false;
	if (is_lower(c) && quoted)
		return false; /* "where are you?" he said */
	if (kind != MARK_PERIOD)
		return true;
	return period_ends(s, begin, mark, next);
}

static bool has_word(const struct splitter *s, size_t begin, size_t end)
{
	for (size_t at = begin; at < end;)
		if (is_letter_or_digit(character_at(s, at, &at)))
			return true;
	return false;
}

enum status sentences_split(const char *text, size_t size, enum status (*emit)(void *context, size_t begin, size_t end),
			    void *context)
{
	struct splitter s = {text, size, -1};
	size_t begin = skip_spaces(&s, 0), at = begin, last = begin; /* `last`: after the last character that is not a space */
	size_t searched = begin;                                     /* there is no word before this, unless... */
	bool has = false;                                            /* ... there is one: so no character is looked at twice */
	int depth = 0;

	while (at < size) {
		if (is_ascii_word((unsigned char)text[at])) { /* the common case */
			last = ++at;
			continue;
		}
		size_t mark = at, after;
		uint32_t c = character_at(&s, at, &after);
		enum mark kind = mark_of(c);

		at = after;
		if (!utf8_is_space(c))
			last = at;
		depth += c == '(' || c == 0xFF08;
		depth -= c == ')' || c == 0xFF09;
		if (kind == MARK_NONE)
			continue;

		/* A run of marks counts as its strongest one: "?!", "...", "。。。" */
		int marks = 1;
		bool goes_on = false;
		for (enum mark more; (more = mark_of(c = character_at(&s, at, &after))) != MARK_NONE; at = after) {
			if (more == MARK_FULL || kind == MARK_CLAUSE || (more == MARK_STRONG && kind != MARK_FULL))
				kind = more;
			goes_on = c == ';' && kind != MARK_FULL;
			marks++;
		}
		if (goes_on) { /* "10 mg i.p.; 48 h later" */
			last = at;
			continue;
		}
		if (kind == MARK_PERIOD && marks > 1)
			kind = MARK_ELLIPSIS;
		size_t close = skip_closing(&s, at);
		bool quoted = close > at;
		close = skip_note(&s, begin, mark, close);
		has = has || has_word(&s, searched, mark);
		searched = mark;
		if (has && sentence_ends(&s, begin, mark, close, kind, quoted, depth)) {
			TRY(emit(context, begin, close));
			begin = last = at = searched = skip_spaces(&s, close);
			has = false;
			depth = 0;
		} else {
			last = at;
		}
	}
	if (last > begin)
		TRY(emit(context, begin, last));
	return OK;
}
