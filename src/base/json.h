/* JSON: a strict, bounded reader into a tree, and a writer.
 *
 * The reader rejects what RFC 8259 rejects, and also duplicate keys, invalid UTF-8, lone surrogates, a byte order mark, nesting
 * deeper than 64, and text over the caller's limit. Messages give the file, byte offset, and reason.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* A value; children are in order. Strings are NUL-terminated and may contain NULs (use text_size). */
struct json {
	enum json_kind kind;
	bool boolean;
	bool is_integer; /* a number without fraction or exponent that fits in `integer` */
	int64_t integer;
	double number;
	const char *text; /* string value, or the literal text of a number */
	size_t text_size;
	const char *key; /* name within the parent object, else NULL */
	struct json *first_child, *next;
	int64_t child_count;
};

struct json_document {
	struct json *root;
	void *memory; /* owns everything in the tree */
};

/* Parses `size` bytes; `name` (a path) is used in messages. */
MUST_USE enum status json_parse(struct json_document *out, const char *name, const char *text, size_t size);
/* Reads and parses a file of at most `limit` bytes. */
MUST_USE enum status json_read(struct json_document *out, const char *path, size_t limit);
void json_release(struct json_document *document);

/* The member `key` of an object, or NULL (also if `object` is not an object). */
const struct json *json_member(const struct json *object, const char *key);

/* Typed members: if the member is absent, *out is unchanged and the result is OK; a wrong type or a value out of range is
 * ERR_DATA naming `name` and the key. */
MUST_USE enum status json_get_integer(const struct json *object, const char *name, const char *key, int64_t min, int64_t max,
				      int64_t *out);
MUST_USE enum status json_get_number(const struct json *object, const char *name, const char *key, double *out);
MUST_USE enum status json_get_bool(const struct json *object, const char *name, const char *key, bool *out);
/* *out points into the document. */
MUST_USE enum status json_get_string(const struct json *object, const char *name, const char *key, const char **out);

/* Writer: appends to a buffer; commas and (if indent > 0) line breaks are added automatically.
 *   json_open(w, NULL, '{'); json_put_integer(w, "step", 3); json_close(w); */
struct json_writer {
	struct buffer *out;
	int indent; /* spaces per level; 0 = one line without spaces */
	int depth;
	char kind[80]; /* '{' or '[' for each open level */
	bool has_member[80];
};
void json_open(struct json_writer *writer, const char *key, char bracket);
void json_close(struct json_writer *writer);
void json_put_string(struct json_writer *writer, const char *key, const char *value);
void json_put_text(struct json_writer *writer, const char *key, const char *bytes, size_t size);
void json_put_integer(struct json_writer *writer, const char *key, int64_t value);
/* Writes the fewest digits that read back as the same number (float: as the same float), in exponential notation only below 1e-4
 * and from 1e16 on, as Python does. NaN and infinities become null. */
void json_put_double(struct json_writer *writer, const char *key, double value);
void json_put_float(struct json_writer *writer, const char *key, float value);
void json_put_bool(struct json_writer *writer, const char *key, bool value);
void json_put_null(struct json_writer *writer, const char *key);
/* Adds a string or a number as it was read; adds nothing for another value or NULL. */
void json_put_again(struct json_writer *writer, const char *key, const struct json *value);
/* Adds a value that is already JSON text, as it is. */
void json_put_written(struct json_writer *writer, const char *key, const char *value);

#endif
