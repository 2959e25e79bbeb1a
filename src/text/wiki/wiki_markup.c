/* Converts wiki markup to text in three steps: tags are stripped (wiki_tags.c); brackets are paired once, then templates, tables
 * and links are dropped or replaced by their text; finally, line by line, anything that is not a paragraph is dropped and the
 * rest is tidied (wiki_line.c). */
#include "text/wiki/wiki_markup.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <utf8proc.h>
#include "base/memory.h"
#include "text/utf8.h"
#include "text/wiki/wiki_line.h"
#include "text/wiki/wiki_numbers.h"

#define NESTING_LIMIT 40 /* deepest links and templates whose text is kept */
#define ARGUMENTS 9

/* An opening or closing bracket. */
struct wiki_token {
	uint32_t begin;
	int32_t partner; /* index of the other bracket of the pair; -1: none, this is text */
	char kind;       /* '{' template, '[' link, '|' table; closing: '}', ']', '!' */
};

void wiki_scratch_release(struct wiki_scratch *scratch)
{
	buffer_release(&scratch->untagged);
	buffer_release(&scratch->expanded);
	buffer_release(&scratch->line);
	free(scratch->tokens);
	free(scratch->stack);
	*scratch = (struct wiki_scratch){0};
}

void wiki_names_take(struct wiki_names *names, int64_t key, const char *name)
{
	char *field = key == 6 ? names->file : key == -2 ? names->media : key == 14 ? names->category : NULL;
	if (field && strlen(name) < WIKI_NAME_BYTES)
		memcpy(field, name, strlen(name) + 1);
}

/* Pairing */

struct pairing {
	struct wiki_scratch *scratch;
	int64_t count, depth;
	int64_t open_templates, open_links, open_tables;
};

static int64_t *open_count(struct pairing *p, char kind)
{
	return kind == '{' ? &p->open_templates : kind == '[' ? &p->open_links : &p->open_tables;
}

static enum status add_token(struct pairing *p, size_t begin, char kind)
{
	struct wiki_scratch *scratch = p->scratch;
	TRY(memory_grow(&scratch->tokens, &scratch->token_capacity, p->count + 1, sizeof *scratch->tokens, "wiki markup"));
	scratch->tokens[p->count++] = (struct wiki_token){(uint32_t)begin, -1, kind};
	return OK;
}

static enum status open_token(struct pairing *p, size_t begin, char kind)
{
	struct wiki_scratch *scratch = p->scratch;
	TRY(add_token(p, begin, kind));
	TRY(memory_grow(&scratch->stack, &scratch->stack_capacity, p->depth + 1, sizeof *scratch->stack, "wiki markup"));
	scratch->stack[p->depth++] = (int32_t)(p->count - 1);
	++*open_count(p, kind);
	return OK;
}

static void pop(struct pairing *p)
{
	--*open_count(p, p->scratch->tokens[p->scratch->stack[--p->depth]].kind);
}

/* Closes a `kind`; anything opened within it and not closed is text. A link is closed only if it is the
 * innermost. */
static enum status close_token(struct pairing *p, size_t begin, char kind, char end)
{
	struct wiki_scratch *scratch = p->scratch;

	if (*open_count(p, kind) == 0)
		return OK;
	if (kind == '[' && scratch->tokens[scratch->stack[p->depth - 1]].kind != '[')
		return OK;
	while (scratch->tokens[scratch->stack[p->depth - 1]].kind != kind)
		pop(p);
	int32_t opening = scratch->stack[p->depth - 1];
	pop(p);
	TRY(add_token(p, begin, end));
	scratch->tokens[opening].partner = (int32_t)(p->count - 1);
	return OK;
}

/* At a new paragraph or section, since no link extends beyond it. */
static void drop_links(struct pairing *p)
{
	while (p->depth > 0 && p->scratch->tokens[p->scratch->stack[p->depth - 1]].kind == '[')
		pop(p);
}

static enum status pair_brackets(struct wiki_scratch *scratch, const char *text, size_t size, int64_t *out_count)
{
	struct pairing p = {.scratch = scratch};
	bool line_start = true; /* only spaces and colons so far */

	for (size_t at = 0; at < size; at++) {
		char c = text[at], next = at + 1 < size ? text[at + 1] : '\0';
		if (c == '\n') {
			line_start = true;
			if (next == '\n' || next == '=')
				drop_links(&p);
			continue;
		}
		if (c == '{' && next == '{') {
			TRY(open_token(&p, at++, '{'));
		} else if (c == '}' && next == '}') {
			TRY(close_token(&p, at++, '{', '}'));
		} else if (c == '[' && next == '[') {
			TRY(open_token(&p, at++, '['));
		} else if (c == ']' && next == ']') {
			TRY(close_token(&p, at++, '[', ']'));
		} else if (line_start && c == '{' && next == '|') {
			TRY(open_token(&p, at++, '|'));
		} else if (line_start && c == '|' && next == '}' &&
			   !(at + 2 < size && text[at + 2] == '}' && p.open_tables == 0)) {
			TRY(close_token(&p, at++, '|', '!'));
		}
		line_start = line_start && (c == ' ' || c == ':' || c == '\t');
	}
	*out_count = p.count;
	return OK;
}

/* Expansion */

struct expansion {
	const char *text;
	const struct wiki_names *names;
	const struct wiki_token *tokens;
	struct buffer *out;
};

/* Names of namespaces whose links are not text, in the languages of large wikis. */
static const char *const dropped_namespaces[] = {
	"file",      "image",      "media",     "category",  "datei",    "bild",      "kategorie", "fichier",     "catégorie",
	"archivo",   "imagen",     "categoría", "file",      "immagine", "categoria", "ficheiro",  "imagem",      "arquivo",
	"bestand",   "afbeelding", "categorie", "plik",      "grafika",  "kategoria", "файл",      "изображение", "категория",
	"категорія", "αρχείο",     "εικόνα",    "κατηγορία", "文件",     "檔案",      "档案",      "图像",        "圖像",
	"分类",      "分類",       "ファイル",  "画像",      "カテゴリ", "파일",      "그림",      "분류",        "dosya",
	"resim",     "kategori",   "fil",       "tiedosto",  "kuva",     "luokka",    "fájl",      "kép",         "kategória",
	"soubor",    "obrázek",    "fitxer",    "imatge",    "dosiero",  "restr",     "skeudenn",  "rummad",      "ملف",
	"صورة",      "تصنيف",      "קובץ",      "תמונה",     "קטגוריה",  "fails",     "attēls",    "kategorija",  "датотека",
	"слика",     "fișier",     "imagine",   "tập tin",   "hình",     "thể loại",  "پرونده",    "رده",         "berkas",
	"चित्र",      "श्रेणी",       "ไฟล์",       "หมวดหมู่",
};

/* True if the names are equal except for case, with '_' for ' '. */
static bool same_name(const char *name, size_t size, const char *other)
{
	size_t other_size = strlen(other), at = 0, other_at = 0;
	while (at < size && other_at < other_size) {
		uint32_t a, b;
		at += utf8_decode(name + at, size - at, &a);
		other_at += utf8_decode(other + other_at, other_size - other_at, &b);
		a = a == '_' ? ' ' : a;
		if (a != b && utf8proc_tolower((utf8proc_int32_t)a) != utf8proc_tolower((utf8proc_int32_t)b))
			return false;
	}
	return size > 0 && at == size && other_at == other_size;
}

static bool namespace_is_dropped(const struct wiki_names *names, const char *name, size_t size)
{
	if (same_name(name, size, names->file) || same_name(name, size, names->media) || same_name(name, size, names->category))
		return true;
	for (size_t i = 0; i < sizeof dropped_namespaces / sizeof *dropped_namespaces; i++)
		if (same_name(name, size, dropped_namespaces[i]))
			return true;
	return false;
}

static bool ends_as_picture(const char *name, size_t size)
{
	static const char *const endings[] = {".jpg", ".jpeg", ".png", ".svg", ".gif", ".ogg", ".tif", ".webm", ".ogv"};
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		size_t length = strlen(endings[i]);
		if (size > length && strncasecmp(name + size - length, endings[i], length) == 0)
			return true;
	}
	return false;
}

/* "de", "zh-min-nan": a link to the page in another language, which is not part of the text. */
static bool is_language(const char *name, size_t size)
{
	size_t first = 0;
	for (size_t i = 0; i < size; i++) {
		if (!((name[i] >= 'a' && name[i] <= 'z') || (i > 1 && name[i] == '-')))
			return false;
		first += name[i] != '-' && first == i;
	}
	return (first == 2 || first == 3) || (size == 6 && memcmp(name, "simple", 6) == 0);
}

static enum status expand(const struct expansion *e, size_t begin, size_t end, int64_t token, int64_t token_end, int depth);

/* The first '|' in [begin, end) that is not inside a pair of brackets; `end` if there is none. *token advances
 * to the first token after it. */
static size_t find_bar(const struct expansion *e, size_t begin, size_t end, int64_t *token, int64_t token_end)
{
	for (;;) {
		while (*token < token_end && e->tokens[*token].partner < 0)
			++*token;
		size_t stop = *token < token_end ? e->tokens[*token].begin : end;
		const char *bar = stop > begin ? memchr(e->text + begin, '|', stop - begin) : NULL;
		if (bar)
			return (size_t)(bar - e->text);
		if (*token >= token_end)
			return end;
		int64_t partner = e->tokens[*token].partner;
		begin = e->tokens[partner].begin + 2;
		*token = partner + 1;
	}
}

/* The tokens within a link are those between `open` and `close`, its bytes [begin, end). */
static enum status expand_link(const struct expansion *e, size_t begin, size_t end, int64_t open, int64_t close, int depth)
{
	int64_t token = open + 1;
	size_t bar = find_bar(e, begin, end, &token, close);
	const char *target = e->text + begin;
	size_t size = bar - begin;

	while (size && (*target == ' ' || *target == '\n')) {
		target++;
		size--;
	}
	bool visible = size && *target == ':'; /* [[:Category:Cats]] */
	if (visible) {
		target++;
		size--;
	}
	const char *colon = memchr(target, ':', size);
	if (colon && !visible) {
		size_t prefix = (size_t)(colon - target);
		while (prefix && target[prefix - 1] == ' ')
			prefix--;
		if (namespace_is_dropped(e->names, target, prefix) || ends_as_picture(target, size))
			return OK;
		if (bar == end && is_language(target, prefix))
			return OK;
	}
	if (bar + 1 < end)
		return expand(e, bar + 1, end, token, close, depth);
	if (memchr(target, '\n', size))
		return OK;
	buffer_append(e->out, target, size);
	return OK;
}

struct argument {
	size_t begin, end;
	int64_t token, token_end;
};

/* Arguments with names, of a number. */
struct named {
	struct argument unit; /* u=; end 0: there is none */
	bool more;            /* e=, a power of ten, p=, s=, end=, what stands around it, or too many: cannot be written here */
};

/* Where the value of "name = value" begins; `begin` if the argument has no name. *out_index: the name if it is a
 * number, 0 if there is none, -1 for another name. */
static size_t argument_value(const struct expansion *e, const struct argument *argument, int *out_index)
{
	size_t stop = argument->token < argument->token_end ? e->tokens[argument->token].begin : argument->end;
	const char *equals = stop > argument->begin ? memchr(e->text + argument->begin, '=', stop - argument->begin) : NULL;

	*out_index = 0;
	if (!equals)
		return argument->begin;
	*out_index = -1;
	const char *name = e->text + argument->begin;
	while (name < equals && (*name == ' ' || *name == '\n'))
		name++;
	if (*name >= '1' && *name <= '9' && (name + 1 == equals || name[1] == ' '))
		*out_index = *name - '0';
	else if (memchr(name, '/', (size_t)(equals - name)) || memchr(name, '?', (size_t)(equals - name)))
		*out_index = 0; /* a web address, not a name */
	return *out_index == 0 ? argument->begin : (size_t)(equals + 1 - e->text);
}

/* Whether an argument has one of these names, each between '/'. */
static bool is_named(const struct expansion *e, size_t begin, size_t value, const char *names)
{
	char name[8] = "/";
	while (begin < value && (e->text[begin] == ' ' || e->text[begin] == '\n'))
		begin++;
	size_t size = 0;
	while (size < 3 && begin + size < value && e->text[begin + size] >= 'a' && e->text[begin + size] <= 'z')
		size++;
	memcpy(name + 1, e->text + begin, size);
	memcpy(name + 1 + size, "/", 2);
	return size > 0 && strstr(names, name) && (e->text[begin + size] == '=' || e->text[begin + size] == ' ');
}

/* Reads the arguments of a template by position; returns how many there are. */
static int read_arguments(const struct expansion *e, size_t begin, size_t end, int64_t token, int64_t token_end,
			  struct argument arguments[ARGUMENTS], struct named *named)
{
	int count = 0;

	while (begin < end) {
		struct argument argument = {begin + 1, 0, token, 0};
		argument.end = find_bar(e, begin + 1, end, &token, token_end);
		argument.token_end = token;
		begin = argument.end;
		int index;
		size_t name = argument.begin;
		argument.begin = argument_value(e, &argument, &index);
		if (index < 0 && is_named(e, name, argument.begin, "/u/ul/up/upl/"))
			named->unit = argument;
		named->more = named->more || (index < 0 && is_named(e, name, argument.begin, "/e/p/s/end/"));
		if (index < 0)
			continue;
		if (index == 0)
			index = count + 1;
		if (index > ARGUMENTS) {
			named->more = true;
			break;
		}
		arguments[index - 1] = argument;
		count = index > count ? index : count;
	}
	return count;
}

static enum status expand_argument(const struct expansion *e, struct argument argument, int depth)
{
	while (argument.begin < argument.end && strchr(" \n\t", e->text[argument.begin]) && e->text[argument.begin])
		argument.begin++;
	while (argument.end > argument.begin && strchr(" \n\t", e->text[argument.end - 1]) && e->text[argument.end - 1])
		argument.end--;
	return expand(e, argument.begin, argument.end, argument.token, argument.token_end, depth);
}

/* A dropped template on lines of its own was a picture, a table or a tree: leaves a hole. */
static void leave_hole(const struct expansion *e, size_t end)
{
	struct buffer *out = e->out;
	if ((out->size == 0 || out->data[out->size - 1] == '\n') && e->text[end + 2] == '\n')
		buffer_text(out, WIKI_HOLE);
}

/* Takes the argument of a function of the parser, {{formatnum:1|...}}, which follows its name. */
static const char *function_pattern(const struct expansion *e, size_t begin, size_t bar, int64_t open, int64_t token,
				    struct argument *out)
{
	const char *colon = memchr(e->text + begin, ':', bar - begin);
	const char *pattern = colon ? wiki_template_pattern(e->text + begin, (size_t)(colon + 1 - e->text) - begin) : NULL;
	if (pattern)
		*out = (struct argument){(size_t)(colon + 1 - e->text), bar, open + 1, token};
	return pattern;
}

/* Shows a template of numbers. */
static enum status expand_numbers(const struct expansion *e, const char *pattern, const struct argument *arguments, int count,
				  struct named named, int depth)
{
	struct wiki_piece values[ARGUMENTS], pieces[WIKI_PIECES];
	const struct argument unit = named.unit;
	for (int i = 0; i < count; i++)
		values[i] = (struct wiki_piece){e->text + arguments[i].begin, arguments[i].end - arguments[i].begin, i};
	struct wiki_piece unit_value = {e->text + unit.begin, unit.end - unit.begin, count};
	int shown = named.more ? 0 : wiki_numbers(pattern, values, count, unit.end > 0 ? &unit_value : NULL, pieces);
	char last = e->out->size > 0 ? e->out->data[e->out->size - 1] : '\0';
	if (pattern[0] == WIKI_FRACTION[0] && last >= '0' && last <= '9')
		buffer_char(e->out, ' ');
	if (shown == 0)
		buffer_text(e->out, WIKI_HOLE);
	for (int i = 0; i < shown; i++) {
		if (pieces[i].argument < 0)
			buffer_append(e->out, pieces[i].text, pieces[i].size);
		else
			TRY(expand_argument(e, pieces[i].argument == count ? unit : arguments[pieces[i].argument], depth));
	}
	return OK;
}

static enum status expand_template(const struct expansion *e, size_t begin, size_t end, int64_t open, int64_t close, int depth)
{
	struct argument arguments[ARGUMENTS] = {{0}};
	struct named named = {.more = false};
	int64_t token = open + 1;
	size_t bar = find_bar(e, begin, end, &token, close);
	const char *pattern = wiki_template_pattern(e->text + begin, bar - begin);
	int count = 0;

	if (!pattern) {
		pattern = function_pattern(e, begin, bar, open, token, &arguments[0]);
		count = pattern != NULL;
	} else {
		count = read_arguments(e, bar, end, token, close, arguments, &named);
	}
	if (!pattern) {
		leave_hole(e, end);
		return OK;
	}
	if (named.more && strstr(pattern, "$9"))
		buffer_text(e->out, WIKI_HOLE);
	if (wiki_is_number_pattern(pattern))
		return expand_numbers(e, pattern, arguments, count, named, depth);
	bool shown = true;
	for (const char *c = pattern; *c; c++) {
		if (*c == '[') {
			const char *argument = strchr(c, '$');
			shown = argument && argument[1] - '0' <= count && arguments[argument[1] - '1'].end > 0;
		} else if (*c == ']') {
			shown = true;
		} else if (!shown) {
			continue;
		} else if (*c == '$' && c[1] >= '1' && c[1] <= '9') {
			int index = *++c - '1';
			if (index < count && arguments[index].end > 0)
				TRY(expand_argument(e, arguments[index], depth));
		} else {
			buffer_char(e->out, *c);
		}
	}
	return OK;
}

/* Appends the text of [begin, end), which contains the tokens [token, token_end). */
static enum status expand(const struct expansion *e, size_t begin, size_t end, int64_t token, int64_t token_end, int depth)
{
	while (begin < end) {
		while (token < token_end && (e->tokens[token].partner < 0 || e->tokens[token].begin < begin))
			token++;
		size_t stop = token < token_end && e->tokens[token].begin < end ? e->tokens[token].begin : end;
		buffer_append(e->out, e->text + begin, stop - begin);
		begin = stop;
		if (begin == end)
			break;
		int64_t partner = e->tokens[token].partner;
		size_t inner = begin + 2, inner_end = e->tokens[partner].begin;
		begin = inner_end + 2;
		if (depth < NESTING_LIMIT && e->tokens[token].kind == '[')
			TRY(expand_link(e, inner, inner_end, token, partner, depth + 1));
		else if (depth < NESTING_LIMIT && e->tokens[token].kind == '{')
			TRY(expand_template(e, inner, inner_end, token, partner, depth + 1));
		/* {{{parameter}}}: the third brace is dropped with the others. */
		if (e->tokens[token].kind == '{' && inner < inner_end && e->text[inner] == '{' && begin < end &&
		    e->text[begin] == '}')
			begin++;
		token = partner + 1;
	}
	return OK;
}

/* "#REDIRECT [[...]]" in any language. */
static bool is_redirect(const char *text, size_t size)
{
	size_t at = 0;
	while (at < size && strchr(" \t\n\r", text[at]) && text[at])
		at++;
	if (at == size || text[at] != '#')
		return false;
	const char *newline = memchr(text + at, '\n', size - at);
	size_t end = newline ? (size_t)(newline - text) : size;
	return memmem(text + at, end - at, "[[", 2) != NULL && at + 1 < size && text[at + 1] != ' ' && text[at + 1] != '#';
}

enum status wiki_text(const char *markup, size_t size, const struct wiki_names *names, struct wiki_scratch *scratch,
		      struct buffer *out)
{
	int64_t token_count;

	BUG_IF(size > INT32_MAX);
	buffer_clear(&scratch->untagged);
	buffer_clear(&scratch->expanded);
	if (is_redirect(markup, size))
		return OK;
	wiki_strip_tags(markup, size, &scratch->untagged);
	TRY(buffer_status(&scratch->untagged));
	const char *text = buffer_string(&scratch->untagged);
	size = scratch->untagged.size;
	TRY(pair_brackets(scratch, text, size, &token_count));
	struct expansion e = {text, names, scratch->tokens, &scratch->expanded};
	TRY(expand(&e, 0, size, 0, token_count, 0));
	TRY(buffer_status(&scratch->expanded));
	TRY(wiki_lines(buffer_string(&scratch->expanded), scratch->expanded.size, &scratch->line, out));
	TRY(buffer_status(&scratch->line));
	return buffer_status(out);
}
