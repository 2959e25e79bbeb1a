/* The first step of converting wiki markup: comments and tags. What readers do not see as running text is dropped with its
 * tags (references, formulas, galleries, tables, code); for other tags, the content stays. What <nowiki> protects
 * from interpretation becomes character references. */
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include "text/wiki/wiki_markup.h"

#define TAG_LIMIT 4096 /* bytes within < >; anything longer is not a tag */
#define NAME_LIMIT 24

enum tag_use {
	TAG_UNKNOWN, /* not a tag but text: "a < b" */
	TAG_DROP,    /* dropped with its content */
	TAG_NEST,    /* dropped with its content, which may contain the same tag */
	TAG_BREAK,   /* ends the paragraph */
	TAG_SPACE,
	TAG_PLAIN, /* only the content stays */
	TAG_NOWIKI,
	TAG_FORMULA, /* the content is kept if it is simple */
};

/* The tags that are recognized; read_tag() returns a row number. */
/* clang-format off */
static const struct {
	const char *name;
	enum tag_use use;
} tags[] = {
	{"ref", TAG_DROP}, {"references", TAG_DROP}, {"math", TAG_FORMULA}, {"chem", TAG_DROP}, {"ce", TAG_DROP},
	{"gallery", TAG_DROP}, {"timeline", TAG_DROP}, {"imagemap", TAG_DROP}, {"source", TAG_DROP},
	{"syntaxhighlight", TAG_DROP}, {"pre", TAG_DROP}, {"score", TAG_DROP}, {"hiero", TAG_DROP}, {"graph", TAG_DROP},
	{"mapframe", TAG_DROP}, {"maplink", TAG_DROP}, {"templatestyles", TAG_DROP}, {"templatedata", TAG_DROP},
	{"categorytree", TAG_DROP}, {"inputbox", TAG_DROP}, {"includeonly", TAG_DROP}, {"indicator", TAG_DROP},
	{"section", TAG_PLAIN}, {"style", TAG_DROP}, {"script", TAG_DROP}, {"table", TAG_NEST}, {"ul", TAG_NEST},
	{"ol", TAG_NEST}, {"dl", TAG_NEST}, {"nowiki", TAG_NOWIKI}, {"br", TAG_SPACE}, {"hr", TAG_BREAK}, {"p", TAG_BREAK},
	{"div", TAG_BREAK}, {"center", TAG_BREAK}, {"blockquote", TAG_BREAK}, {"poem", TAG_BREAK}, {"li", TAG_BREAK},
	{"tr", TAG_BREAK}, {"td", TAG_BREAK}, {"th", TAG_BREAK}, {"h1", TAG_BREAK}, {"h2", TAG_BREAK}, {"h3", TAG_BREAK},
	{"h4", TAG_BREAK}, {"noinclude", TAG_PLAIN}, {"onlyinclude", TAG_PLAIN}, {"span", TAG_PLAIN}, {"small", TAG_PLAIN},
	{"big", TAG_PLAIN}, {"sub", TAG_PLAIN}, {"sup", TAG_PLAIN}, {"b", TAG_PLAIN}, {"i", TAG_PLAIN}, {"u", TAG_PLAIN},
	{"s", TAG_PLAIN}, {"em", TAG_PLAIN}, {"strong", TAG_PLAIN}, {"font", TAG_PLAIN}, {"tt", TAG_PLAIN}, {"code", TAG_PLAIN},
	{"kbd", TAG_PLAIN}, {"var", TAG_PLAIN}, {"samp", TAG_PLAIN}, {"cite", TAG_PLAIN}, {"q", TAG_PLAIN}, {"abbr", TAG_PLAIN},
	{"dfn", TAG_PLAIN}, {"bdi", TAG_PLAIN}, {"bdo", TAG_PLAIN}, {"del", TAG_DROP}, {"strike", TAG_PLAIN}, {"ins", TAG_PLAIN},
	{"mark", TAG_PLAIN}, {"ruby", TAG_PLAIN}, {"rb", TAG_PLAIN}, {"rp", TAG_DROP}, {"rt", TAG_DROP}, {"wbr", TAG_PLAIN},
	{"time", TAG_PLAIN}, {"data", TAG_PLAIN}, {"dd", TAG_BREAK}, {"dt", TAG_BREAK}, {"langconvert", TAG_PLAIN},
};
/* clang-format on */
#define TAG_COUNT ((int)(sizeof tags / sizeof *tags))

struct stripper {
	const char *text;
	size_t size;
	struct buffer *out;
	bool unclosed[TAG_COUNT]; /* by row of `tags`: no closing tag was found in the rest of the text */
};

/* The tag that begins at text[at] = '<': its row, or -1 if it is not a tag; *out_end: the offset after its '>'. */
static int read_tag(const struct stripper *s, size_t at, bool *out_closing, bool *out_empty, size_t *out_end)
{
	size_t begin = at + 1, limit = s->size - at > TAG_LIMIT ? at + TAG_LIMIT : s->size, size = 0;

	*out_closing = begin < limit && s->text[begin] == '/';
	begin += *out_closing;
	while (begin + size < limit && size < NAME_LIMIT) {
		char c = s->text[begin + size];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (size > 0 && c >= '0' && c <= '9')))
			break;
		size++;
	}
	const char *end = size ? memchr(s->text + begin, '>', limit - begin) : NULL;
	if (!end)
		return -1;
	*out_end = (size_t)(end + 1 - s->text);
	*out_empty = end[-1] == '/';
	for (int i = 0; i < TAG_COUNT; i++)
		if (strlen(tags[i].name) == size && strncasecmp(tags[i].name, s->text + begin, size) == 0)
			return i;
	return -1;
}

/* Finds the tag that closes the one before `at`; *out_begin and *out_end: its bounds. */
static bool find_closing(struct stripper *s, int tag, size_t at, size_t *out_begin, size_t *out_end)
{
	int depth = 1;

	if (s->unclosed[tag])
		return false;
	for (const char *c; at < s->size && (c = memchr(s->text + at, '<', s->size - at));) {
		bool closing, empty;
		size_t begin = (size_t)(c - s->text);
		at = begin + 1;
		/* Only tags of this name need a closer look. */
		size_t name = begin + 1 + (at < s->size && s->text[at] == '/'), length = strlen(tags[tag].name);
		if (s->size - name < length || strncasecmp(s->text + name, tags[tag].name, length) != 0 ||
		    read_tag(s, begin, &closing, &empty, out_end) != tag)
			continue;
		if (!closing && (tags[tag].use != TAG_NEST || empty))
			continue;
		depth += closing ? -1 : 1;
		if (depth == 0) {
			*out_begin = begin;
			return true;
		}
	}
	s->unclosed[tag] = true;
	return false;
}

/* True if a formula has only letters, digits and simple signs, like "x" and "n + 1"; others are not text. */
static bool formula_is_simple(const char *text, size_t size)
{
	if (size > 40)
		return false;
	for (size_t i = 0; i < size; i++)
		if (!text[i] || !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,()+-=/<>|'!*", text[i]))
			return false;
	return true;
}

static void shield(struct buffer *out, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] && strchr("[]{}|'=*#:;&<>_-", text[i]))
			buffer_format(out, "&#%d;", text[i]);
		else
			buffer_char(out, text[i]);
	}
}

/* Processes the tag at `at`, with its content if that is dropped or protected; returns where to continue. */
static size_t take_tag(struct stripper *s, size_t at)
{
	bool closing, empty;
	size_t end, close_begin, close_end;
	int tag = read_tag(s, at, &closing, &empty, &end);

	if (tag < 0) {
		buffer_char(s->out, '<');
		return at + 1;
	}
	switch (tags[tag].use) {
	case TAG_DROP:
	case TAG_NEST:
		if (!closing && !empty && find_closing(s, tag, end, &close_begin, &close_end))
			end = close_end;
		if (tags[tag].use == TAG_NEST)
			buffer_text(s->out, "\n\n");
		break;
	case TAG_FORMULA:
		if (!closing && !empty && find_closing(s, tag, end, &close_begin, &close_end)) {
			if (formula_is_simple(s->text + end, close_begin - end))
				shield(s->out, s->text + end, close_begin - end);
			else
				buffer_text(s->out, WIKI_HOLE);
			end = close_end;
		}
		break;
	case TAG_NOWIKI:
		if (!closing && !empty && find_closing(s, tag, end, &close_begin, &close_end)) {
			shield(s->out, s->text + end, close_begin - end);
			end = close_end;
		}
		break;
	case TAG_BREAK: buffer_text(s->out, "\n\n"); break;
	case TAG_SPACE: buffer_char(s->out, ' '); break;
	case TAG_PLAIN:
	case TAG_UNKNOWN: break;
	}
	return end;
}

/* The offset after the comment that begins at `at`; one that is never closed extends to the end. */
static size_t skip_comment(const struct stripper *s, size_t at)
{
	const char *end = memmem(s->text + at + 4, s->size - at - 4, "-->", 3);
	return end ? (size_t)(end + 3 - s->text) : s->size;
}

void wiki_strip_tags(const char *markup, size_t size, struct buffer *out)
{
	struct stripper s = {.text = markup, .size = size, .out = out};
	size_t at = 0;

	while (at < size) {
		const char *next = memchr(markup + at, '<', size - at);
		size_t piece = (next ? (size_t)(next - markup) : size) - at;
		buffer_append(out, markup + at, piece);
		at += piece;
		if (!next)
			break;
		if (size - at >= 4 && memcmp(next, "<!--", 4) == 0)
			at = skip_comment(&s, at);
		else
			at = take_tag(&s, at);
	}
}
