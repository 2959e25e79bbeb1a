/* Files that hold many texts, each with something around it: Wikipedia dumps, JSON lines, CirrusSearch dumps,
 * WikiExtractor's output, WARC and WET. A reader is fed bytes as they come and hands on records piece by
 * piece, so its memory does not depend on the size of a file, a line or a record. */
#ifndef FORMATS_RECORDS_H
#define FORMATS_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

enum record_form {
	RECORDS_WIKI_XML,      /* <page> elements of a MediaWiki export; the text is wiki markup */
	RECORDS_JSON,          /* JSON objects, a line each or in one array */
	RECORDS_CIRRUS,        /* the same, in pairs: {"index": ...} and the document */
	RECORDS_WIKIEXTRACTOR, /* <doc id= url= title=> ... </doc> */
	RECORDS_WARC,          /* WARC records with plain text: WET */
};

/* What a reader calls. A status other than OK ends the reading and is returned by records_feed(). */
struct record_sink {
	void *context;
	/* A record begins. */
	enum status (*begin)(void *context);
	/* More of its text, in pieces that may end within a character. */
	enum status (*text)(void *context, const char *bytes, size_t size);
	/* It ends; `title` is NULL if it has none. `keep` false: it turned out to be none of those wanted (a
	 * redirect, a talk page, no text in it) and is to be forgotten. */
	enum status (*end)(void *context, const char *title, bool keep);
	/* The data are damaged here: error_last() says where and why. OK: leave out what is damaged and go
	 * on. */
	enum status (*damaged)(void *context);
	/* The name of a namespace of the wiki, reported before the first page. */
	enum status (*wiki_namespace)(void *context, int64_t key, const char *name);
};

struct record_settings {
	enum record_form form;
	const char *name;     /* of the file, for messages */
	const char *text_key; /* JSON: where the text is, "a.b" for b within a */
};

struct records;
MUST_USE enum status records_open(struct records **out, const struct record_settings *settings, const struct record_sink *sink);
/* `bytes` continue where the previous ones ended, at any point. */
MUST_USE enum status records_feed(struct records *records, const char *bytes, size_t size);
/* No more bytes come: a record not yet ended is damage. */
MUST_USE enum status records_finish(struct records *records);
void records_close(struct records *records); /* NULL is fine */

/* Tells from its first bytes (decompressed) whether a file is one of these. */
bool records_recognise(const char *beginning, size_t size, enum record_form *out);
/* Finds the key of the text in the beginning of a JSON file: the first of "text", "content", "raw_content",
 * "document", "body", "article", "passage", "abstract" that its first object has as a string. Not found:
 * ERR_DATA with the keys that are there, as records_list_text_keys() lists them. */
MUST_USE enum status records_find_text_key(const char *name, const char *beginning, size_t size, const char **out);
/* Appends the keys under which the first records have strings, each once, nested ones by their path: "title", "meta.abstract". */
MUST_USE enum status records_list_text_keys(const char *name, const char *beginning, size_t size, struct buffer *out);

#endif
