/* The reader: recursive descent over the bytes, with one function per rule of RFC 8259. The depth, and so the recursion, is
 * bounded; nothing is read beyond `size`, and no NUL is expected. */
#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json_internal.h"
#include "base/memory.h"
#include "base/text.h"

#define DEPTH_LIMIT 64

static locale_t plain_locale;
static pthread_once_t plain_locale_once = PTHREAD_ONCE_INIT;

static void plain_locale_make(void)
{
	plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	BUG_IF(!plain_locale);
}

locale_t json_locale(void)
{
	pthread_once(&plain_locale_once, plain_locale_make);
	return plain_locale;
}

/* The tree is stored in chunks that are released together. */
struct chunk {
	struct chunk *previous;
	size_t size, used;
	_Alignas(16) unsigned char bytes[];
};

struct parser {
	const char *name;
	const char *text;
	size_t size, at;
	int depth;
	struct chunk *chunk;
};

static enum status parser_take(struct parser *parser, size_t bytes, void *out)
{
	bytes = (bytes + 15) & ~(size_t)15;
	if (!parser->chunk || parser->chunk->size - parser->chunk->used < bytes) {
		size_t size = bytes > 16384 ? bytes : 16384;
		struct chunk *chunk = malloc(sizeof *chunk + size);
		if (!chunk)
			return error_set(ERR_RESOURCE, "'%s': not enough memory for its JSON text", parser->name);
		*chunk = (struct chunk){.previous = parser->chunk, .size = size};
		parser->chunk = chunk;
	}
	*(void **)out = parser->chunk->bytes + parser->chunk->used;
	parser->chunk->used += bytes;
	return OK;
}

/* All error messages: file, reason, byte. */
static enum status parse_error(const struct parser *parser, size_t at, const char *reason)
{
	return error_set(ERR_DATA, "'%s': JSON: %s at byte %zu", parser->name, reason, at);
}

/* The next byte, or -1 at the end. */
static int peek(const struct parser *parser)
{
	return parser->at < parser->size ? (unsigned char)parser->text[parser->at] : -1;
}

static void skip_space(struct parser *parser)
{
	for (int c = peek(parser); c == ' ' || c == '\t' || c == '\r' || c == '\n'; c = peek(parser))
		parser->at++;
}

/* The value of four hexadecimal digits, or -1. */
static int hex4(const char *text)
{
	int value = 0;
	for (int i = 0; i < 4; i++) {
		char c = text[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;
		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

/* The value of the four digits after "\u" at byte `at`; -1 if there are none. */
static int unicode_escape(const struct parser *parser, size_t at)
{
	if (parser->size - at < 6 || parser->text[at] != '\\' || parser->text[at + 1] != 'u')
		return -1;
	return hex4(parser->text + at + 2);
}

/* The character that a backslash and `escape` stand for; 0 if they stand for none. */
static char escape_meaning(char escape)
{
	switch (escape) {
	case '"':
	case '\\':
	case '/': return escape;
	case 'b': return '\b';
	case 'f': return '\f';
	case 'n': return '\n';
	case 'r': return '\r';
	case 't': return '\t';
	default: return 0;
	}
}

/* Parses the string that starts with the quote at parser->at. Its text is never longer than its source. */
static enum status parse_string(struct parser *parser, const char **out, size_t *out_size)
{
	size_t start = parser->at++, end = parser->at;
	while (end < parser->size && parser->text[end] != '"')
		end += parser->text[end] == '\\' && end + 1 < parser->size ? 2 : 1;
	if (end >= parser->size)
		return parse_error(parser, start, "string without an end");

	char *text = NULL;
	size_t used = 0;
	TRY(parser_take(parser, end - parser->at + 1, &text));
	while (parser->at < end) {
		unsigned char c = (unsigned char)parser->text[parser->at];
		if (c < 0x20)
			return parse_error(parser, parser->at, "control character in a string");
		if (c != '\\') {
			size_t length = text_utf8_length((const unsigned char *)parser->text + parser->at, end - parser->at);
			if (length == 0)
				return parse_error(parser, parser->at, "invalid UTF-8");
			memcpy(text + used, parser->text + parser->at, length);
			used += length;
			parser->at += length;
			continue;
		}
		char escape = parser->text[parser->at + 1], meaning = escape_meaning(escape);
		if (escape == 'u') {
			int code = unicode_escape(parser, parser->at);
			if (code < 0)
				return parse_error(parser, parser->at, "\\u without four hexadecimal digits");
			uint32_t full = (uint32_t)code;
			if (code >= 0xD800 && code <= 0xDFFF) {
				int low = code <= 0xDBFF ? unicode_escape(parser, parser->at + 6) : -1;
				if (low < 0xDC00 || low > 0xDFFF)
					return parse_error(parser, parser->at, "half of a surrogate pair");
				full = 0x10000 + ((uint32_t)(code - 0xD800) << 10) + (uint32_t)(low - 0xDC00);
				parser->at += 6;
			}
			parser->at += 6;
			used += utf8_encode(full, text + used);
			continue;
		}
		if (!meaning)
			return parse_error(parser, parser->at, "unknown escape in a string");
		text[used++] = meaning;
		parser->at += 2;
	}
	text[used] = '\0';
	parser->at = end + 1;
	*out = text;
	*out_size = used;
	return OK;
}

static size_t skip_digits(struct parser *parser)
{
	size_t start = parser->at;
	while (peek(parser) >= '0' && peek(parser) <= '9')
		parser->at++;
	return parser->at - start;
}

/* The grammar is checked here, since strtod accepts more than JSON allows: "0x1", "inf", "1.", ".5". */
static enum status parse_number(struct parser *parser, struct json *value)
{
	size_t start = parser->at;
	value->is_integer = true;
	if (peek(parser) == '-')
		parser->at++;
	bool zero = peek(parser) == '0';
	size_t digits = skip_digits(parser);
	if (digits == 0) { /* Python writes NaN and Infinity */
		const char *rest = parser->text + parser->at;
		size_t left = parser->size - parser->at;
		bool is_nan = left >= 3 && memcmp(rest, "NaN", 3) == 0,
		     is_infinite = left >= 8 && memcmp(rest, "Infinity", 8) == 0;
		return parse_error(parser, start,
				   is_nan        ? "NaN is not a number of JSON"
				   : is_infinite ? "Infinity is not a number of JSON"
						 : "unexpected character");
	}
	if (zero && digits > 1)
		return parse_error(parser, start, "number with a leading zero");
	if (peek(parser) == '.') {
		parser->at++;
		value->is_integer = false;
		if (skip_digits(parser) == 0)
			return parse_error(parser, start, "number without digits after the point");
	}
	if (peek(parser) == 'e' || peek(parser) == 'E') {
		parser->at++;
		value->is_integer = false;
		if (peek(parser) == '+' || peek(parser) == '-')
			parser->at++;
		if (skip_digits(parser) == 0)
			return parse_error(parser, start, "number without digits in its exponent");
	}

	char *literal = NULL;
	size_t size = parser->at - start;
	TRY(parser_take(parser, size + 1, &literal));
	memcpy(literal, parser->text + start, size);
	literal[size] = '\0';
	value->kind = JSON_NUMBER;
	value->text = literal;
	value->text_size = size;
	value->number = strtod_l(literal, NULL, json_locale());
	if (!isfinite(value->number))
		return parse_error(parser, start, "number too large");
	if (value->is_integer) {
		errno = 0;
		long long integer = strtoll(literal, NULL, 10);
		value->is_integer = errno == 0;
		value->integer = errno == 0 ? integer : 0;
	}
	return OK;
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp((*(const struct json *const *)a)->key, (*(const struct json *const *)b)->key);
}

/* Sorted, not hashed, so that no choice of keys by an attacker makes it slow. */
static enum status refuse_duplicates(const struct parser *parser, const struct json *object, size_t at)
{
	const struct json **sorted;
	TRY(memory_new(&sorted, object->child_count, sizeof *sorted, "the keys of a JSON object"));
	int64_t count = 0;
	enum status status = OK;
	for (const struct json *child = object->first_child; child; child = child->next)
		sorted[count++] = child;
	qsort(sorted, (size_t)count, sizeof *sorted, compare_keys);
	for (int64_t i = 1; i < count && status == OK; i++) {
		if (!strcmp(sorted[i - 1]->key, sorted[i]->key))
			status = error_set(ERR_DATA, "'%s': JSON: key \"%.200s\" twice in the object at byte %zu", parser->name,
					   sorted[i]->key, at);
	}
	free(sorted);
	return status;
}

static enum status parse_value(struct parser *parser, struct json **out);

/* Parses the key and colon of a member. */
static enum status parse_key(struct parser *parser, const char **out)
{
	size_t size, start = parser->at;
	if (peek(parser) != '"')
		return parse_error(parser, parser->at, "expected a key in quotes");
	TRY(parse_string(parser, out, &size));
	if (strlen(*out) != size)
		return parse_error(parser, start, "NUL in a key");
	skip_space(parser);
	if (peek(parser) != ':')
		return parse_error(parser, parser->at, "expected ':' after a key");
	parser->at++;
	skip_space(parser);
	return OK;
}

/* Parses an object or an array, identified by its closing bracket. */
static enum status parse_container(struct parser *parser, struct json *value, char close)
{
	size_t start = parser->at++;
	value->kind = close == '}' ? JSON_OBJECT : JSON_ARRAY;
	if (++parser->depth > DEPTH_LIMIT)
		return parse_error(parser, start, "nested more than 64 deep");
	struct json **link = &value->first_child;
	skip_space(parser);
	if (peek(parser) == close) {
		parser->at++;
		parser->depth--;
		return OK;
	}
	for (;;) {
		const char *key = NULL;
		if (close == '}')
			TRY(parse_key(parser, &key));
		TRY(parse_value(parser, link));
		(*link)->key = key;
		link = &(*link)->next;
		value->child_count++;
		skip_space(parser);
		int c = peek(parser);
		if (c != ',' && c != close)
			return parse_error(parser, parser->at,
					   c < 0          ? "text ends early"
					   : close == '}' ? "expected ',' or '}'"
							  : "expected ',' or ']'");
		parser->at++;
		if (c == close)
			break;
		skip_space(parser);
	}
	parser->depth--;
	if (close == '}' && value->child_count > 1)
		TRY(refuse_duplicates(parser, value, start));
	return OK;
}

static enum status parse_value(struct parser *parser, struct json **out)
{
	static const struct {
		const char *word;
		enum json_kind kind;
		bool boolean;
	} words[] = {{"null", JSON_NULL, false}, {"true", JSON_BOOL, true}, {"false", JSON_BOOL, false}};
	struct json *value = NULL;
	TRY(parser_take(parser, sizeof *value, &value));
	*value = (struct json){0};
	*out = value;
	switch (peek(parser)) {
	case -1: return parse_error(parser, parser->at, "text ends early");
	case '{': return parse_container(parser, value, '}');
	case '[': return parse_container(parser, value, ']');
	case '"': value->kind = JSON_STRING; return parse_string(parser, &value->text, &value->text_size);
	default: break;
	}
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t length = strlen(words[i].word);
		if (parser->size - parser->at >= length && !memcmp(parser->text + parser->at, words[i].word, length)) {
			value->kind = words[i].kind;
			value->boolean = words[i].boolean;
			parser->at += length;
			return OK;
		}
	}
	return parse_number(parser, value);
}

static void chunks_free(struct chunk *chunk)
{
	while (chunk) {
		struct chunk *previous = chunk->previous;
		free(chunk);
		chunk = previous;
	}
}

enum status json_parse(struct json_document *out, const char *name, const char *text, size_t size)
{
	*out = (struct json_document){0};
	struct parser parser = {.name = name, .text = text, .size = size};
	enum status status = OK;
	if (size >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3))
		TRY_GOTO(parse_error(&parser, 0, "starts with a byte order mark"), fail);
	skip_space(&parser);
	TRY_GOTO(parse_value(&parser, &out->root), fail);
	skip_space(&parser);
	if (parser.at < size)
		TRY_GOTO(parse_error(&parser, parser.at, "more text after the value"), fail);
	out->memory = parser.chunk;
	return OK;
fail:
	chunks_free(parser.chunk);
	out->root = NULL;
	return status;
}

enum status json_read(struct json_document *out, const char *path, size_t limit)
{
	struct buffer text = {0};
	*out = (struct json_document){0};
	enum status status = file_read(path, limit, &text);
	if (status == OK)
		status = json_parse(out, path, buffer_string(&text), text.size);
	buffer_release(&text);
	return status;
}

void json_release(struct json_document *document)
{
	chunks_free(document->memory);
	*document = (struct json_document){0};
}

const struct json *json_member(const struct json *object, const char *key)
{
	if (!object || object->kind != JSON_OBJECT)
		return NULL;
	const struct json *child = object->first_child;
	while (child && strcmp(child->key, key) != 0)
		child = child->next;
	return child;
}

static enum status wrong_type(const char *name, const char *key, const char *expected)
{
	return error_set(ERR_DATA, "'%s': \"%s\" must be %s", name, key, expected);
}

enum status json_get_integer(const struct json *object, const char *name, const char *key, int64_t min, int64_t max, int64_t *out)
{
	const struct json *value = json_member(object, key);
	if (!value)
		return OK;
	if (value->kind != JSON_NUMBER)
		return wrong_type(name, key, "an integer");
	if (!value->is_integer || value->integer < min || value->integer > max)
		return error_set(ERR_DATA, "'%s': \"%s\" must be an integer in %" PRId64 "..%" PRId64 ", not %.100s", name, key,
				 min, max, value->text);
	*out = value->integer;
	return OK;
}

enum status json_get_number(const struct json *object, const char *name, const char *key, double *out)
{
	const struct json *value = json_member(object, key);
	if (!value)
		return OK;
	if (value->kind != JSON_NUMBER)
		return wrong_type(name, key, "a number");
	*out = value->number;
	return OK;
}

enum status json_get_bool(const struct json *object, const char *name, const char *key, bool *out)
{
	const struct json *value = json_member(object, key);
	if (!value)
		return OK;
	if (value->kind != JSON_BOOL)
		return wrong_type(name, key, "true or false");
	*out = value->boolean;
	return OK;
}

enum status json_get_string(const struct json *object, const char *name, const char *key, const char **out)
{
	const struct json *value = json_member(object, key);
	if (!value)
		return OK;
	if (value->kind != JSON_STRING || strlen(value->text) != value->text_size)
		return wrong_type(name, key, "a string");
	*out = value->text;
	return OK;
}
