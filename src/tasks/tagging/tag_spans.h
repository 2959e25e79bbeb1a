/* Entities marked by positions in a text, as annotation tools write them: {"text": ..., "entities": [{"start", "end", "label"}]}
 * (bertc predict), {"text", "label": [[start, end, label]]} (doccano), or "spans" (Prodigy). Positions count code points, and the
 * end is exclusive. */
#ifndef TASKS_TAGGING_TAG_SPANS_H
#define TASKS_TAGGING_TAG_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"

struct tag_span {
	size_t begin, end; /* bytes */
	const char *label; /* borrowed from the object */
};

/* Zero-initialize; released by tag_spans_release(); reused from text to text. */
struct tag_spans {
	struct tag_span *spans; /* [count] in the order of the text */
	int64_t count, capacity;
	/* Where tag_spans_next() is. */
	int64_t current; /* span */
	bool begun;      /* a word belongs to it already */
	bool widened;
	size_t taken; /* end of the last word that belongs to a span */
	/* Of all texts so far. */
	int64_t total, total_widened; /* spans; those that begin or end within a word */
	int64_t total_shared;         /* those whose first word belongs to the span before */
};

/* The object's list of spans, or NULL. */
const struct json *tag_spans_find(const struct json *object);
/* Reads the list; NULL is an empty one. ERR_DATA, without file and line: not such a list, a span that is empty, lies beyond the
 * text, or overlaps another. */
MUST_USE enum status tag_spans_read(struct tag_spans *out, const struct json *list, const char *text, size_t size);
/* The span that the next word of the text, at bytes [begin, end), belongs to, or NULL. A word that overlaps a span belongs to it,
 * as in transformers' examples; one that overlaps two, to the first. *out_first: no earlier word does. */
const struct tag_span *tag_spans_next(struct tag_spans *spans, size_t begin, size_t end, bool *out_first);
/* Call after the last word of a text. */
void tag_spans_finish(struct tag_spans *spans);
void tag_spans_release(struct tag_spans *spans);

#endif
