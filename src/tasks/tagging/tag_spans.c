/* Reads the spans of a text in the forms of several annotation tools, and assigns them to words. */
#include "tasks/tagging/tag_spans.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "text/utf8.h"

const struct json *tag_spans_find(const struct json *object)
{
	static const char *const names[] = {"entities", "spans", "label", "labels"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct json *list = json_member(object, names[i]);
		if (list && list->kind == JSON_ARRAY)
			return list;
	}
	return NULL;
}

/* The first of the members that there is, or NULL. */
static const struct json *either(const struct json *object, const char *name, const char *other)
{
	const struct json *member = json_member(object, name);
	return member ? member : json_member(object, other);
}

/* Reads {"start", "end", "label"} or [start, end, label]. */
static enum status read_span(const struct json *value, const char *text, size_t size, struct tag_span *out)
{
	const bool is_list = value->kind == JSON_ARRAY && value->child_count == 3;
	const struct json *begin = is_list ? value->first_child : either(value, "start", "start_offset");
	const struct json *end = is_list ? begin->next : either(value, "end", "end_offset");
	const struct json *label = is_list ? end->next : json_member(value, "label");
	if (!begin || !end || !begin->is_integer || !end->is_integer)
		return error_set(ERR_DATA, "a span is neither {\"start\", \"end\", \"label\"} nor [start, end, label]");
	if (!label || label->kind != JSON_STRING || label->text_size == 0 || strlen(label->text) != label->text_size)
		return error_set(ERR_DATA, "the span from %" PRId64 " to %" PRId64 " has no label", begin->integer, end->integer);
	int64_t first = begin->integer >= 0 ? utf8_offset(text, size, begin->integer) : -1;
	int64_t last = end->integer >= 0 ? utf8_offset(text, size, end->integer) : -1;
	if (first < 0 || last < 0)
		return error_set(ERR_DATA, "the span from %" PRId64 " to %" PRId64 " is not within the text of %zu characters",
				 begin->integer, end->integer, utf8_length(text, size));
	*out = (struct tag_span){.begin = (size_t)first, .end = (size_t)last, .label = label->text};
	size_t from = out->begin, to = first < last ? out->end : out->begin;
	utf8_trim(text, &from, &to);
	if (from == to)
		return error_set(ERR_DATA, "the span from %" PRId64 " to %" PRId64 " holds no word", begin->integer,
				 end->integer);
	return OK;
}

static int compare_spans(const void *a, const void *b)
{
	const struct tag_span *x = a, *y = b;
	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

enum status tag_spans_read(struct tag_spans *out, const struct json *list, const char *text, size_t size)
{
	out->count = out->current = 0;
	out->begun = out->widened = false;
	out->taken = 0;
	if (!list)
		return OK;
	TRY(memory_grow(&out->spans, &out->capacity, list->child_count, sizeof *out->spans, "spans"));
	for (const struct json *value = list->first_child; value; value = value->next)
		TRY(read_span(value, text, size, &out->spans[out->count++]));
	if (out->count > 0)
		qsort(out->spans, (size_t)out->count, sizeof *out->spans, compare_spans);
	for (int64_t i = 1; i < out->count; i++) {
		const struct tag_span *before = &out->spans[i - 1], *span = &out->spans[i];
		if (before->end > span->begin)
			return error_set(ERR_DATA, "the spans from %zu to %zu (%.100s) and from %zu to %zu (%.100s) overlap",
					 utf8_length(text, before->begin), utf8_length(text, before->end), before->label,
					 utf8_length(text, span->begin), utf8_length(text, span->end), span->label);
	}
	return OK;
}

static void leave_span(struct tag_spans *spans)
{
	spans->current++;
	spans->total++;
	spans->total_widened += spans->widened;
	spans->total_shared += spans->current < spans->count && spans->spans[spans->current].begin < spans->taken;
	spans->begun = spans->widened = false;
}

const struct tag_span *tag_spans_next(struct tag_spans *spans, size_t begin, size_t end, bool *out_first)
{
	while (spans->current < spans->count && spans->spans[spans->current].end <= begin)
		leave_span(spans);
	if (spans->current == spans->count || spans->spans[spans->current].begin >= end)
		return NULL;
	const struct tag_span *span = &spans->spans[spans->current];
	*out_first = !spans->begun;
	spans->widened = spans->widened || span->end < end || (!spans->begun && span->begin > begin);
	spans->begun = true;
	spans->taken = end;
	return span;
}

void tag_spans_finish(struct tag_spans *spans)
{
	while (spans->current < spans->count)
		leave_span(spans);
}

void tag_spans_release(struct tag_spans *spans)
{
	free(spans->spans);
	*spans = (struct tag_spans){0};
}
