/* JSON objects that contain a text each: the lines of a file, or the elements of one array. A state machine takes bytes as they
 * come: it skips strings that are not wanted and passes on the decoded text, so neither a line nor a text needs to fit in memory.
 *
 * As strict as base/json.h, except for bytes that are not UTF-8, which are handled elsewhere, and duplicates of keys that are not
 * wanted. After damage, the rest of the line is skipped. */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "formats/records_internal.h"

#define DEPTH_LIMIT 64
#define KEY_LIMIT 256    /* longer keys cannot be ones we look for */
#define LITERAL_LIMIT 64 /* numbers, true, false, null */

enum expect {
	EXPECT_RECORD,     /* between records */
	EXPECT_KEY_OR_END, /* after '{' */
	EXPECT_KEY,        /* after ',' in an object */
	EXPECT_COLON,
	EXPECT_VALUE,
	EXPECT_VALUE_OR_END, /* after '[' */
	EXPECT_COMMA_OR_END, /* after a value */
	WITHIN_STRING,
	WITHIN_ESCAPE,
	WITHIN_LITERAL,
};

/* What to do with a string. */
enum string_use { STRING_PASSED, STRING_KEY, STRING_TEXT, STRING_TITLE };

struct json_records {
	enum expect expect;
	enum string_use use;
	int depth; /* number of open brackets of the record */
	char brackets[DEPTH_LIMIT];
	int matched;        /* levels of text_key matched by the objects around this place */
	int text_array;     /* depth of the array whose strings are the text; 0: none */
	int64_t text_count; /* number of text strings in this record */
	int text_keys; /* occurrences of the text's key: a second one is damage, since it is undefined which of them counts */
	bool match_next, text_next, title_next, namespace_next; /* about the next value */
	bool unwanted;                                          /* from a namespace without articles, or not a document */
	struct name_list *keys;                                 /* collects the paths of strings ("a.b"), each once; or NULL */
	struct buffer path;                                     /* of the key just read, while keys are collected */
	size_t path_ends[DEPTH_LIMIT + 1];                      /* size of the path at each open bracket */
	enum { NO_ARRAY, IN_ARRAY, AFTER_ARRAY } array;         /* the file is one array of records */
	bool passing_line;                                      /* after damage, up to the next '\n' */
	int64_t line;
	struct buffer key, literal;
	char escape[16];
	size_t escape_size;
};

static enum status damage(struct records *records, int64_t offset, const char *reason)
{
	struct json_records *json = records->state;

	if (json->expect != EXPECT_RECORD)
		TRY(records->sink.end(records->sink.context, NULL, false));
	json->expect = EXPECT_RECORD;
	json->depth = 0;
	json->passing_line = true;
	enum status status = error_set(ERR_DATA, "'%s': damaged JSON in line %lld, at byte %lld: %s", records->settings.name,
				       (long long)json->line, (long long)offset, reason);
	error_hint("correct that line, or give --on_bad_record skip to leave out such records");
	(void)status;
	return record_damaged(records);
}

static bool key_is(const struct json_records *json, const char *name, size_t size)
{
	return json->key.size == size && memcmp(json->key.data, name, size) == 0;
}

/* Updates the path to that of the key just read: the path of its object, and its name. */
static void extend_path(struct json_records *json)
{
	json->path.size = json->path_ends[json->depth];
	if (json->path.size > 0)
		buffer_char(&json->path, '.');
	buffer_append(&json->path, json->key.data, json->key.size);
}

/* Whether --text_key can name the string that begins here: it must be nested only in objects, or be in a list at the end of such
 * a path. */
static bool is_reachable(const struct json_records *json)
{
	for (int i = 0; i + 1 < json->depth; i++)
		if (json->brackets[i] == '[')
			return false;
	return json->path.size > 0;
}

static const char *const usual_keys[] = {"text", "content", "raw_content", "document", "body", "article", "passage", "abstract"};

/* Of a record with more keys, such as a dictionary, only usual ones are noted. */
#define KEYS_NOTED 1000

static enum status add_once(struct name_list *names, const char *name)
{
	bool noted = names->count < KEYS_NOTED;
	for (size_t i = 0; i < sizeof usual_keys / sizeof *usual_keys && !noted; i++)
		noted = strcmp(usual_keys[i], name) == 0;
	for (int64_t i = 0; i < names->count && noted; i++)
		if (strcmp(names->names[i], name) == 0)
			return OK;
	return noted ? name_list_add(names, name) : OK;
}

/* Decides what to do with the value of the key just read. */
static void look_at_key(struct records *records)
{
	struct json_records *json = records->state;
	const char *wanted = records->settings.text_key;

	json->title_next = json->depth == 1 && key_is(json, "title", 5);
	json->namespace_next = records->settings.form == RECORDS_CIRRUS && json->depth == 1 && key_is(json, "namespace", 9);
	if (records->settings.form == RECORDS_CIRRUS && json->depth == 1 && key_is(json, "index", 5))
		json->unwanted = true;
	json->text_next = json->depth == 1 && key_is(json, wanted, strlen(wanted));
	if (json->keys)
		extend_path(json);
	json->text_keys += json->text_next;
	if (json->text_next || json->matched != json->depth - 1)
		return;
	/* "a.b": skip the levels already matched. */
	for (int level = 0; level < json->matched; level++)
		wanted = strchr(wanted, '.') + 1;
	size_t size = strcspn(wanted, ".");
	if (key_is(json, wanted, size)) {
		if (wanted[size] == '\0') {
			json->text_next = true;
			json->text_keys++;
		} else
			json->match_next = true;
	}
}

static enum status begin_string(struct records *records, enum string_use use)
{
	struct json_records *json = records->state;

	json->use = use;
	json->expect = WITHIN_STRING;
	if (use == STRING_KEY)
		buffer_clear(&json->key);
	if (use == STRING_TITLE)
		buffer_clear(&records->title);
	if (use == STRING_TEXT && json->text_count++ > 0)
		return record_text(records, "\n", 1);
	return OK;
}

/* Takes more of the current string, decoded. */
static enum status take_string(struct records *records, const char *bytes, size_t size)
{
	struct json_records *json = records->state;

	switch (json->use) {
	case STRING_TEXT: return record_text(records, bytes, size);
	case STRING_KEY:
		if (json->key.size + size <= KEY_LIMIT)
			buffer_append(&json->key, bytes, size);
		else
			buffer_append(&json->key, "?", json->key.size <= KEY_LIMIT); /* too long to be one we look for */
		break;
	case STRING_TITLE:
		if (records->title.size + size <= TITLE_LIMIT)
			buffer_append(&records->title, bytes, size);
		break;
	case STRING_PASSED: break;
	}
	return OK;
}

static enum status end_value(struct records *records)
{
	struct json_records *json = records->state;

	json->match_next = json->text_next = json->title_next = json->namespace_next = false;
	json->expect = EXPECT_COMMA_OR_END;
	if (json->depth > 0)
		return OK;
	json->expect = EXPECT_RECORD;
	return record_end(records, json->text_count > 0 && !json->unwanted);
}

static enum status open_bracket(struct records *records, char bracket, int64_t offset)
{
	struct json_records *json = records->state;

	if (json->depth == DEPTH_LIMIT)
		return damage(records, offset, "nested deeper than 64 levels");
	json->brackets[json->depth++] = bracket;
	if (bracket == '[') {
		if (json->text_next)
			json->text_array = json->depth;
		json->expect = EXPECT_VALUE_OR_END;
	} else {
		json->expect = EXPECT_KEY_OR_END;
	}
	if (json->match_next && bracket == '{')
		json->matched++;
	json->match_next = false;
	json->text_next = false;
	json->path_ends[json->depth] = json->path.size;
	return OK;
}

static enum status close_bracket(struct records *records)
{
	struct json_records *json = records->state;

	if (json->text_array == json->depth)
		json->text_array = 0;
	json->depth--;
	if (json->matched > json->depth - 1)
		json->matched = json->depth > 0 ? json->depth - 1 : 0;
	return end_value(records);
}

static enum status begin_value(struct records *records, char c, int64_t offset)
{
	struct json_records *json = records->state;
	bool text = json->text_next || (json->text_array > 0 && json->text_array == json->depth);

	if (c == '{' || c == '[')
		return open_bracket(records, c, offset);
	if (c == '"' && json->keys && is_reachable(json))
		TRY(add_once(json->keys, buffer_string(&json->path)));
	if (c == '"')
		return begin_string(records, text ? STRING_TEXT : json->title_next ? STRING_TITLE : STRING_PASSED);
	if (c == '-' || (c >= '0' && c <= '9') || c == 't' || c == 'f' || c == 'n') {
		buffer_clear(&json->literal);
		buffer_char(&json->literal, c);
		json->expect = WITHIN_LITERAL;
		return OK;
	}
	return damage(records, offset, "a value is missing");
}

static enum status end_literal(struct records *records, int64_t offset)
{
	struct json_records *json = records->state;
	struct json_document document;

	/* base/json.h decides which literals are valid. */
	if (json_parse(&document, "", json->literal.data, json->literal.size) != OK)
		return damage(records, offset, "a value that is neither string, number, true, false nor null");
	if (json->namespace_next && !(document.root->is_integer && document.root->integer == 0))
		json->unwanted = true;
	json_release(&document);
	return end_value(records);
}

static enum status begin_record(struct records *records, char c, int64_t offset)
{
	struct json_records *json = records->state;

	if (json->array == AFTER_ARRAY)
		return damage(records, offset, "something follows the end of the list");
	if (json->array == IN_ARRAY && (c == ',' || c == ']')) {
		json->array = c == ']' ? AFTER_ARRAY : IN_ARRAY;
		return OK;
	}
	if (c == '[' && json->array == NO_ARRAY) {
		json->array = IN_ARRAY;
		return OK;
	}
	if (c != '{')
		return damage(records, offset, "an object {...} is missing");
	TRY(record_begin(records));
	json->matched = json->text_array = 0;
	json->text_count = 0;
	json->text_keys = 0;
	json->match_next = json->text_next = json->title_next = json->namespace_next = json->unwanted = false;
	json->depth = 0;
	json->path.size = 0;
	return open_bracket(records, '{', offset);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int32_t hex_number(const char *digits)
{
	int32_t value = 0;
	for (int i = 0; i < 4; i++) {
		if (hex_digit(digits[i]) < 0)
			return -1;
		value = value * 16 + hex_digit(digits[i]);
	}
	return value;
}

/* Takes one more byte of an escape: \n, \u00e9, or a pair \ud83d\ude00. */
static enum status take_escape(struct records *records, char c, int64_t offset)
{
	static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	struct json_records *json = records->state;
	char *escape = json->escape, character[4];

	escape[json->escape_size++] = c;
	if (json->escape_size == 1 && c != 'u') {
		const char *letter = c ? strchr(letters, c) : NULL;
		if (!letter)
			return damage(records, offset, "an unknown escape in a string");
		json->expect = WITHIN_STRING;
		return take_string(records, &meant[letter - letters], 1);
	}
	if (json->escape_size < 5)
		return OK;
	int32_t first = hex_number(escape + 1);
	if (first < 0 || (first >= 0xDC00 && first <= 0xDFFF))
		return damage(records, offset,
			      first < 0 ? "an escape \\u without four hexadecimal digits"
					: "a surrogate \\u escape without its pair");
	uint32_t code = (uint32_t)first;
	if (first >= 0xD800 && first <= 0xDBFF) {
		if ((json->escape_size == 6 && c != '\\') || (json->escape_size == 7 && c != 'u'))
			return damage(records, offset, "a surrogate \\u escape without its pair");
		if (json->escape_size < 11)
			return OK;
		int32_t second = hex_number(escape + 7);
		if (second < 0xDC00 || second > 0xDFFF)
			return damage(records, offset, "a surrogate \\u escape without its pair");
		code = 0x10000 + ((code - 0xD800) << 10) + (uint32_t)(second - 0xDC00);
	}
	json->expect = WITHIN_STRING;
	return take_string(records, character, utf8_encode(code, character));
}

/* Takes bytes of the current string; *at moves past what was taken. */
static enum status take_within_string(struct records *records, const char *bytes, size_t size, size_t *at)
{
	struct json_records *json = records->state;
	size_t begin = *at, end = begin;

	while (end < size && bytes[end] != '"' && bytes[end] != '\\' && (unsigned char)bytes[end] >= 0x20)
		end++;
	*at = end;
	if (end > begin)
		TRY(take_string(records, bytes + begin, end - begin));
	if (end == size)
		return OK;
	if (bytes[end] == '\\') {
		json->expect = WITHIN_ESCAPE;
		json->escape_size = 0;
	} else if (bytes[end] == '"') {
		TRY(buffer_status(&json->key));
		json->expect = EXPECT_COLON;
		if (json->use != STRING_KEY)
			TRY(end_value(records));
	} else {
		/* A line end is not consumed, so that it gets counted. */
		return damage(records, records->offset + (int64_t)end,
			      bytes[end] == '\n' ? "the line ends within a string" : "a control character in a string");
	}
	*at = end + 1;
	return OK;
}

/* Takes one byte outside of strings. */
static enum status take_byte(struct records *records, char c, int64_t offset)
{
	struct json_records *json = records->state;

	if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || (c == '\x1E' && json->expect == EXPECT_RECORD))
		return OK;
	switch (json->expect) {
	case EXPECT_RECORD:
		if (offset < 3 && c == "\xef\xbb\xbf"[offset]) /* a byte order mark */
			return OK;
		return begin_record(records, c, offset);
	case EXPECT_KEY_OR_END:
		if (c == '}')
			return close_bracket(records);
		/* fall through */
	case EXPECT_KEY:
		return c == '"' ? begin_string(records, STRING_KEY) : damage(records, offset, "a key in quotes is missing");
	case EXPECT_COLON:
		if (c != ':')
			return damage(records, offset, "':' is missing after a key");
		look_at_key(records);
		if (json->text_keys > 1)
			return damage(records, offset, "the text's key occurs twice");
		json->expect = EXPECT_VALUE;
		return OK;
	case EXPECT_VALUE_OR_END:
		if (c == ']')
			return close_bracket(records);
		/* fall through */
	case EXPECT_VALUE: return begin_value(records, c, offset);
	default: break;
	}
	bool in_object = json->brackets[json->depth - 1] == '{';
	if (c == ',') {
		json->expect = in_object ? EXPECT_KEY : EXPECT_VALUE;
		return OK;
	}
	if (c == (in_object ? '}' : ']'))
		return close_bracket(records);
	return damage(records, offset, in_object ? "',' or '}' is missing" : "',' or ']' is missing");
}

static enum status json_feed(struct records *records, const char *bytes, size_t size)
{
	struct json_records *json = records->state;
	size_t at = 0;

	while (at < size) {
		int64_t offset = records->offset + (int64_t)at;
		char c = bytes[at];
		if (json->passing_line) {
			const char *newline = memchr(bytes + at, '\n', size - at);
			json->passing_line = !newline;
			json->line += newline != NULL;
			at = newline ? (size_t)(newline - bytes) + 1 : size;
		} else if (json->expect == WITHIN_STRING) {
			TRY(take_within_string(records, bytes, size, &at));
		} else if (json->expect == WITHIN_ESCAPE && c == '\n') { /* not consumed, as in strings */
			TRY(damage(records, offset, "the line ends within a string"));
		} else if (json->expect == WITHIN_ESCAPE) {
			at++;
			TRY(take_escape(records, c, offset));
		} else if (json->expect == WITHIN_LITERAL && c && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", c)) {
			at++;
			if (json->literal.size < LITERAL_LIMIT)
				buffer_char(&json->literal, c);
		} else if (json->expect == WITHIN_LITERAL) {
			TRY(end_literal(records, offset)); /* the byte is looked at again afterwards */
		} else {
			TRY(take_byte(records, c, offset));
			if (!json->passing_line || c != '\n') {
				json->line += c == '\n';
				at++;
			}
		}
	}
	return OK;
}

static enum status json_finish(struct records *records)
{
	struct json_records *json = records->state;
	if (json->expect != EXPECT_RECORD)
		return damage(records, records->offset, "the file ends within a record");
	if (json->array == IN_ARRAY)
		return damage(records, records->offset, "the list of records has no end");
	return OK;
}

static enum status json_open_records(struct records *records)
{
	TRY(memory_new(&records->state, 1, sizeof(struct json_records), "JSON reader"));
	((struct json_records *)records->state)->line = 1;
	return OK;
}

static void json_close_records(struct records *records)
{
	struct json_records *json = records->state;
	if (json) {
		buffer_release(&json->key);
		buffer_release(&json->literal);
		buffer_release(&json->path);
		free(json);
	}
}

const struct record_kind json_records = {json_open_records, json_feed, json_finish, json_close_records};

/* ---- Finding the key of the text ---- */

static enum status ignore_begin(void *context)
{
	(void)context;
	return OK;
}

static enum status ignore_text(void *context, const char *bytes, size_t size)
{
	(void)context;
	(void)bytes;
	(void)size;
	return OK;
}

static const char *usual_key(const struct name_list *keys)
{
	for (size_t i = 0; i < sizeof usual_keys / sizeof *usual_keys; i++)
		for (int64_t k = 0; k < keys->count; k++)
			if (!strcmp(keys->names[k], usual_keys[i]))
				return usual_keys[i];
	return NULL;
}

/* After the first record with a usual key, nothing more needs to be read. */
static enum status check_keys(void *context, const char *title, bool keep)
{
	(void)title;
	(void)keep;
	const struct name_list *keys = context;
	return usual_key(keys) || keys->count > 100 ? ERR_INTERNAL : OK;
}

/* Collects the paths of strings in the first records. */
static enum status collect_keys(const char *name, const char *beginning, size_t size, const struct record_sink *sink,
				struct name_list *keys)
{
	struct record_settings settings = {.form = RECORDS_JSON, .name = name, .text_key = "text"};
	struct records *records;
	TRY(records_open(&records, &settings, sink));
	((struct json_records *)records->state)->keys = keys;
	enum status status = records_feed(records, beginning, size);
	records_close(records);
	return status;
}

#define KEYS_LISTED 20
static void list_keys(const struct name_list *keys, struct buffer *out)
{
	for (int64_t i = 0; i < keys->count && i < KEYS_LISTED; i++)
		buffer_format(out, "%s\"%s\"", i ? ", " : "", keys->names[i]);
	if (keys->count > KEYS_LISTED)
		buffer_text(out, ", ...");
}

enum status records_find_text_key(const char *name, const char *beginning, size_t size, const char **out)
{
	struct name_list keys = {0};
	struct record_sink sink = {&keys, ignore_begin, ignore_text, check_keys, ignore_begin, NULL};
	struct buffer listed = {0};
	enum status status = collect_keys(name, beginning, size, &sink, &keys);
	*out = usual_key(&keys);
	if (*out || status == ERR_RESOURCE) {
		name_list_release(&keys);
		return *out ? OK : status;
	}
	list_keys(&keys, &listed);
	status = error_set(ERR_DATA,
			   "'%s': none of its first records has a text under \"text\", \"content\" or another usual key", name);
	if (keys.count)
		error_hint("give the key with --text_key; the keys with text are %s", buffer_string(&listed));
	else
		error_hint("give the key with --text_key, as a.b for \"b\" within \"a\"");
	buffer_release(&listed);
	name_list_release(&keys);
	return status;
}

static enum status stop_at_many(void *context, const char *title, bool keep)
{
	(void)title;
	(void)keep;
	const struct name_list *keys = context;
	return keys->count > KEYS_LISTED ? ERR_INTERNAL : OK;
}

enum status records_list_text_keys(const char *name, const char *beginning, size_t size, struct buffer *out)
{
	struct name_list keys = {0};
	struct record_sink sink = {&keys, ignore_begin, ignore_text, stop_at_many, ignore_begin, NULL};
	enum status status = collect_keys(name, beginning, size, &sink, &keys);
	list_keys(&keys, out);
	name_list_release(&keys);
	return status == ERR_RESOURCE ? status : buffer_status(out);
}
