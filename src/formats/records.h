/* Files that contain many texts, each within some structure: Wikipedia dumps, JSON lines, CirrusSearch dumps, WikiExtractor's
 * output, WARC, and WET. A reader is fed bytes as they come and passes on records piece by piece, so its memory does not depend
 * on the size of a file, a line, or a record. */
#ifndef FORMATS_RECORDS_H
#define FORMATS_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

enum record_form {
	RECORDS_WIKI_XML,      /* <page> elements of a MediaWiki export; the text is wiki markup */
	RECORDS_JSON,          /* JSON objects, one per line or in one array */
	RECORDS_CIRRUS,        /* the same, in pairs of {"index": ...} and the document */
	RECORDS_WIKIEXTRACTOR, /* <doc id= url= title=> ... </doc> */
	RECORDS_WARC,          /* WARC records with plain text: WET */
};

/* Callbacks of a reader. A status other than OK ends reading and is returned by records_feed(). */
struct record_sink {
	void *context;
	/* A record begins. */
	enum status (*begin)(void *context);
	/* More of its text, in pieces that may end in the middle of a character. */
	enum status (*text)(void *context, const char *bytes, size_t size);
	/* The record ends; `title` is NULL if it has none. `keep` false: it turned out not to be wanted (a redirect, a talk page,
	 * no text) and must be discarded. */
	enum status (*end)(void *context, const char *title, bool keep);
	/* The data is damaged here: error_last() says where and why. Return OK to skip what is damaged and continue. */
	enum status (*damaged)(void *context);
	/* The name of a namespace of the wiki; called before the first page. */
	enum status (*wiki_namespace)(void *context, int64_t key, const char *name);
};

struct record_settings {
	enum record_form form;
	const char *name;     /* of the file, for messages */
	const char *text_key; /* JSON: the key of the text, "a.b" for b within a */
};

struct records;
MUST_USE enum status records_open(struct records **out, const struct record_settings *settings, const struct record_sink *sink);
/* `bytes` continue where the previous ones ended, which may be anywhere. */
MUST_USE enum status records_feed(struct records *records, const char *bytes, size_t size);
/* There are no more bytes: an unfinished record is damage. */
MUST_USE enum status records_finish(struct records *records);
void records_close(struct records *records); /* NULL is allowed */

/* Whether a file is one of these, judging from its first bytes (decompressed). */
bool records_recognize(const char *beginning, size_t size, enum record_form *out);
/* Finds the key of the text in the beginning of a JSON file: the first of "text", "content", "raw_content", "document", "body",
 * "article", "passage", "abstract" that has a string in the first objects. If there is none, ERR_DATA with the keys that exist,
 * as records_list_text_keys() lists them. */
MUST_USE enum status records_find_text_key(const char *name, const char *beginning, size_t size, const char **out);
/* Appends the keys that have strings in the first records, each once, with nested ones as paths: "title", "meta.abstract". */
MUST_USE enum status records_list_text_keys(const char *name, const char *beginning, size_t size, struct buffer *out);

#endif
