/* Turns a line of wiki markup into plain text: links, quotes, lists, headings, and the spacing around what was dropped. */
#include "text/wiki/wiki_line.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <utf8proc.h>
#include "text/wiki/html_entities.h"
#include "text/sentences.h"
#include "text/utf8.h"
#include "text/wiki/wiki_markup.h"

#define SHORT_LINE 100 /* in bytes; a shorter paragraph that does not end a sentence is a caption or a heading */

static bool is_letter(uint32_t c)
{
	if (c < 0x80)
		return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
	utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
	return c != UTF8_INVALID && category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

/* The last byte of `out` from `begin` on, 0 if there is none. */
static char last(const struct buffer *out, size_t begin)
{
	return out->size > begin ? out->data[out->size - 1] : '\0';
}

static void drop_last(struct buffer *out, size_t count)
{
	out->size -= count;
	out->data[out->size] = '\0';
}

static bool ends_with(const struct buffer *out, size_t begin, const char *text)
{
	size_t size = strlen(text);
	return out->size - begin >= size && memcmp(out->data + out->size - size, text, size) == 0;
}

/* Closes a parenthesis, cleaning up what a dropped template has left behind: separators before it, and "()". */
static void close_parenthesis(struct buffer *out, size_t begin, const char *opening, const char *closing)
{
	while (last(out, begin) && strchr(" ,;:", last(out, begin)))
		drop_last(out, 1);
	for (;;) {
		if (ends_with(out, begin, "，") || ends_with(out, begin, "；") || ends_with(out, begin, "：") ||
		    ends_with(out, begin, "、"))
			drop_last(out, 3);
		else
			break;
	}
	if (!ends_with(out, begin, opening)) {
		buffer_text(out, closing);
		return;
	}
	drop_last(out, strlen(opening));
}

/* Appends one character of a paragraph that begins at `begin`, with the spacing of prose. */
static void put(struct buffer *out, size_t begin, uint32_t c)
{
	char bytes[4];
	char before = last(out, begin);
	bool opened = before == '(' || ends_with(out, begin, "（");

	if (utf8_is_space(c)) {
		if (before && before != ' ' && !opened && c != 0x200B && c != 0xFEFF)
			buffer_char(out, ' ');
		return;
	}
	if (c == 0xAD || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E)) /* soft hyphen, direction marks */
		return;
	if (c == ')' || c == ']') {
		close_parenthesis(out, begin, c == ')' ? "(" : "[", c == ')' ? ")" : "]");
		return;
	}
	if (c == 0xFF09) {
		close_parenthesis(out, begin, "（", "）");
		return;
	}
	bool separator = c == ',' || c == ';' || c == ':' || c == 0xFF0C || c == 0x3001 || c == 0xFF1B || c == 0xFF1A;
	if (opened && separator)
		return;
	if ((c == ',' || c == '.') && before == ' ') {
		drop_last(out, 1);
		before = last(out, begin);
	}
	if (c == ',' && before == ',')
		return;
	buffer_append(out, bytes, utf8_encode(c, bytes));
}

/* The rest of a line. */
struct span {
	const char *text;
	size_t at, end;
	bool no_bracket; /* there is no ']' in the rest */
};

static bool begins(const struct span *s, const char *prefix)
{
	size_t size = strlen(prefix);
	return s->end - s->at >= size && strncasecmp(s->text + s->at, prefix, size) == 0;
}

/* [http://... words]: skips the address; the words follow, and *out_close is the place of their ']'. False: no
 * such link. */
static bool external_link(struct span *s, size_t *out_close)
{
	static const char *const schemes[] = {"[http://", "[https://", "[ftp://", "[//", "[mailto:", "[news:", "[irc://"};
	bool link = false;

	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
		link = link || begins(s, schemes[i]);
	if (!link || s->no_bracket)
		return false;
	if (*out_close >= s->end || *out_close < s->at) { /* otherwise this link is within another */
		const char *close = memchr(s->text + s->at, ']', s->end - s->at);
		s->no_bracket = !close;
		if (!close)
			return false;
		*out_close = (size_t)(close - s->text);
	}
	while (s->at < *out_close && s->text[s->at] != ' ')
		s->at++;
	return true;
}

/* -{zh-hans:计算机; zh-hant:電腦}- and -{words}-: takes a simplified variant of Chinese if there is one,
 * else the first variant. Rules for the page (-{H|...}-) are dropped. False: none begins here. */
static bool chinese_variants(struct span *s, struct buffer *out, size_t begin)
{
	const char *text = s->text + s->at + 2, *end = memmem(text, s->end - s->at - 2, "}-", 2);
	static const char *const simplified[] = {"zh-cn:", "zh-hans:"};

	if (!end || memchr(text, '{', (size_t)(end - text)))
		return false;
	s->at = (size_t)(end + 2 - s->text);
	const char *bar = memchr(text, '|', (size_t)(end - text));
	if (bar && bar - text <= 2 && (*text == 'H' || *text == 'A' || *text == 'T' || *text == '-'))
		return true;
	if (bar)
		text = bar + 1;
	size_t size = (size_t)(end - text);
	if (size > 3 && (memcmp(text, "zh-", 3) == 0 || memcmp(text, "zh:", 3) == 0)) {
		const char *chosen = text;
		for (size_t i = 0; i < sizeof simplified / sizeof *simplified; i++) {
			const char *found = memmem(text, size, simplified[i], strlen(simplified[i]));
			chosen = found ? found : chosen;
		}
		const char *colon = memchr(chosen, ':', (size_t)(end - chosen));
		text = colon ? colon + 1 : chosen;
		const char *semicolon = memchr(text, ';', (size_t)(end - text));
		size = (size_t)((semicolon ? semicolon : end) - text);
	}
	for (size_t at = 0; at < size;) {
		uint32_t c;
		at += utf8_decode(text + at, size - at, &c);
		put(out, begin, c);
	}
	return true;
}

static size_t count_quotes(const char *text, size_t size, size_t at)
{
	size_t count = 0;
	while (at + count < size && text[at + count] == '\'')
		count++;
	return count;
}

/* Where three apostrophes are one before italics, as in l'''Iliade''; `size`: nowhere. MediaWiki's rule: if bold and italics both
 * remain open at the end of the line, those that a single letter precedes, else a word, else a space. */
static size_t find_elision(const char *text, size_t size)
{
	size_t bold = 0, italics = 0, single = size, word = size, space = size;
	for (size_t at = 0, count; at<size; at += count> 0 ? count : 1) {
		count = count_quotes(text, size, at);
		bold += count >= 3;
		italics += count == 2 || count >= 5;
		if (count != 3 && count != 4)
			continue;
		size_t before = at + count - 3; /* the fourth is one anyway */
		char last = before > 0 ? text[before - 1] : '\0', last_but_one = before > 1 ? text[before - 2] : last;
		size_t *kind = last == ' ' ? &space : last_but_one == ' ' ? &single : &word;
		*kind = *kind == size ? at : *kind;
	}
	if (bold % 2 == 0 || italics % 2 == 0)
		return size;
	return single < size ? single : word < size ? word : space;
}

/* Apostrophes: two mean italics, three bold, five both; a single one is an apostrophe. `elision`: see find_elision(). */
static void quotes(struct span *s, size_t elision, struct buffer *out, size_t begin)
{
	size_t count = count_quotes(s->text, s->end, s->at);
	if (s->at == elision)
		put(out, begin, '\'');
	s->at += count;
	size_t kept = count == 1 || count == 4 ? 1 : count > 5 ? count - 5 : 0;
	while (kept--)
		put(out, begin, '\'');
}

/* The end of __NOTOC__ and the like, or 0. */
static size_t magic_word(const struct span *s)
{
	size_t at = s->at + 2;
	while (at < s->end && at < s->at + 40 && s->text[at] >= 'A' && s->text[at] <= 'Z')
		at++;
	return at > s->at + 2 && at + 1 < s->end && s->text[at] == '_' && s->text[at + 1] == '_' ? at + 2 : 0;
}

/* Appends the text of one line of a paragraph. */
static void put_line(struct buffer *out, const char *text, size_t size)
{
	struct span s = {text, 0, size, false};
	size_t begin = 0, close = size, elision = find_elision(text, size);
	bool no_variants = false;

	while (s.at < s.end) {
		char c = text[s.at], next = s.at + 1 < size ? text[s.at + 1] : '\0';
		uint32_t code;
		size_t used;
		if (c == '\'') {
			quotes(&s, elision, out, begin);
		} else if (c == '&' && (used = html_entity(text + s.at, size - s.at, &code)) > 0) {
			s.at += used;
			put(out, begin, code);
		} else if (c == '[' && external_link(&s, &close)) {
			continue;
		} else if (c == ']' && s.at == close) {
			s.at++;
		} else if (c == '_' && next == '_' && (used = magic_word(&s)) > 0) {
			s.at = used;
		} else if (c == '-' && next == '{' && !no_variants) {
			if (chinese_variants(&s, out, begin))
				continue;
			no_variants = true;
		} else {
			s.at += utf8_decode(text + s.at, size - s.at, &code);
			if (code == UTF8_INVALID)
				buffer_char(out, text[s.at - 1]);
			else
				put(out, begin, code);
		}
	}
	while (last(out, begin) == ' ')
		drop_last(out, 1);
}

/* A line end within a paragraph becomes a space, except in Chinese and Japanese text. */
static void put_line_end(struct buffer *out)
{
	uint32_t c;
	if (out->size == 0)
		return;
	utf8_decode_last(out->data, out->size, &c);
	if (!utf8_is_unspaced(c))
		buffer_char(out, ' ');
}

static bool has_letter(const char *text, size_t size)
{
	for (size_t at = 0; at < size;) {
		uint32_t c;
		at += utf8_decode(text + at, size - at, &c);
		if (is_letter(c))
			return true;
	}
	return false;
}

/* True if the line ends like a sentence: with a mark, and possibly closing quotes or brackets. */
static bool ends_sentence(const char *text, size_t size)
{
	while (size > 0) {
		uint32_t c;
		size -= utf8_decode_last(text, size, &c);
		if (c == '"' || c == '\'' || c == ')' || c == ']' || c == 0x2019 || c == 0x201D || c == 0xBB || c == 0x300D ||
		    c == 0x300F || c == 0xFF09)
			continue;
		return c == '.' || c == '!' || c == '?' || c == 0x2026 || c == 0x3002 || c == 0xFF01 || c == 0xFF1F ||
		       c == 0x0964 || c == 0x061F || c == 0x06D4 || c == 0xFF1B;
	}
	return false;
}

static enum status take_begin(void *context, size_t begin, size_t end)
{
	(void)end;
	*(size_t *)context = begin;
	return OK;
}

/* Drops the last sentence ("These are:"), which leads in to a list, a picture or a formula. */
static enum status drop_lead_in(struct buffer *out)
{
	size_t keep = 0;
	TRY(sentences_split(out->data, out->size, take_begin, &keep));
	drop_last(out, out->size - keep);
	while (last(out, 0) == ' ')
		drop_last(out, 1);
	return OK;
}

/* True if the line is part of a list, a heading, a table or a formula. */
static bool is_structure(const char *line, size_t size)
{
	return strchr("=*#:;|!", *line) || (size >= 4 && memcmp(line, "----", 4) == 0) ||
	       (size >= 2 && memcmp(line, "{|", 2) == 0) || (size >= 3 && memcmp(line, WIKI_HOLE, 3) == 0);
}

/* Keeps the sentences without a hole, separated by spaces. */
struct whole_sentences {
	const char *text;
	struct buffer *out;
	bool any;
};

static enum status keep_if_whole(void *context, size_t begin, size_t end)
{
	struct whole_sentences *kept = context;
	if (memmem(kept->text + begin, end - begin, WIKI_HOLE, 3))
		return OK;
	if (kept->any)
		buffer_char(kept->out, ' ');
	buffer_append(kept->out, kept->text + begin, end - begin);
	kept->any = true;
	return OK;
}

/* Appends the paragraph to `out` if it is running text. `indented`: its first line was indented. */
static enum status put_paragraph(const struct buffer *line, bool indented, struct buffer *out)
{
	bool sentence = ends_sentence(line->data, line->size);

	if (!has_letter(line->data, line->size) || (!sentence && (indented || line->size < SHORT_LINE)))
		return OK;
	if (memmem(line->data, line->size, WIKI_HOLE, 3)) {
		struct whole_sentences kept = {line->data, out, false};
		TRY(sentences_split(line->data, line->size, keep_if_whole, &kept));
		if (kept.any)
			buffer_char(out, '\n');
		return OK;
	}
	buffer_append(out, line->data, line->size);
	buffer_char(out, '\n');
	return OK;
}

enum status wiki_lines(const char *text, size_t size, struct buffer *line, struct buffer *out)
{
	bool indented = false;

	buffer_clear(line);
	/* After the last line, an additional blank one is processed. */
	for (size_t at = 0; at <= size + 1;) {
		const char *newline = at < size ? memchr(text + at, '\n', size - at) : NULL;
		size_t end = newline ? (size_t)(newline - text) : at > size ? at : size, first = at, stop = end;
		bool space = at < size && (text[at] == ' ' || text[at] == '\t');

		at = end + 1;
		utf8_trim(text, &first, &stop);
		bool structure = first < stop && is_structure(text + first, stop - first);
		if (first < stop && !structure) {
			if (line->size == 0)
				indented = space;
			put_line_end(line);
			put_line(line, text + first, stop - first);
			continue;
		}
		if (line->size == 0)
			continue;
		if (!ends_sentence(line->data, line->size)) {
			/* Without a mark at its end, it may only lead in to what follows, unless that is a paragraph. */
			bool colon = ends_with(line, 0, ":") || ends_with(line, 0, "：");
			size_t next = structure ? first : at;
			while (next < size && (text[next] == '\n' || text[next] == ' '))
				next++;
			if (next >= size ? colon : is_structure(text + next, size - next) && (colon || text[next] != '='))
				TRY(drop_lead_in(line));
		}
		if (line->size)
			TRY(put_paragraph(line, indented, out));
		buffer_clear(line);
	}
	return OK;
}
