/* Keeps copies of an evaluation's answers, and turns them into sections of the page. */
#include "report/preview.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"

/* Bytes kept of a text; no excerpt shows more. */
#define TEXT_KEPT 4096

static void release_error(struct report_error *error)
{
	free((char *)error->text);
	free((char *)error->pair);
	free((char *)error->right);
	free((char *)error->predicted);
	free((struct report_span *)error->spans);
	*error = (struct report_error){0};
}

static void forget_errors(struct task_preview *preview)
{
	for (int i = 0; i < preview->error_count; i++)
		release_error(&preview->errors[i]);
	preview->error_count = 0;
}

void task_preview_begin(struct task_preview *preview, int64_t step)
{
	forget_errors(preview);
	preview->step = step;
	preview->wrong = preview->examples = 0;
	preview->confusion.classes = 0;
	preview->per_class_count = 0;
	preview->scores = (struct report_scores){.temperature = 0};
	preview->point_count = preview->point_number = 0;
	preview->point_stride = 1;
}

enum status task_preview_confusion(struct task_preview *preview, const int64_t *counts)
{
	size_t cells = (size_t)preview->classes * (size_t)preview->classes;
	BUG_IF(!preview->labels);
	if (!preview->confusion.counts) {
		int64_t *own = NULL;
		TRY(memory_new(&own, (int64_t)cells, sizeof *own, "confusion matrix"));
		preview->confusion.counts = own;
	}
	memcpy((int64_t *)preview->confusion.counts, counts, cells * sizeof *counts);
	preview->confusion.classes = preview->classes;
	preview->confusion.labels = preview->labels;
	return OK;
}

enum status task_preview_classes(struct task_preview *preview, const struct report_class *classes, int64_t count)
{
	struct report_class *own = NULL;
	TRY(memory_new(&own, count, sizeof *own, "labels of a report"));
	for (int64_t i = 0; i < count; i++)
		own[i] = classes[i];
	free(preview->per_class);
	preview->per_class = own;
	preview->per_class_count = count;
	return OK;
}

static enum status copy_text(const char **out, const char *text)
{
	char *own = NULL;
	if (!text)
		return OK;
	size_t size = strnlen(text, TEXT_KEPT);
	TRY(memory_new(&own, (int64_t)size + 1, 1, "example of a report"));
	memcpy(own, text, size);
	*out = own;
	return OK;
}

static enum status copy_error(struct report_error *out, const struct report_error *error)
{
	enum status status;
	*out = (struct report_error){.number = error->number, .loss = error->loss};
	TRY_GOTO(copy_text(&out->text, error->text), failed);
	TRY_GOTO(copy_text(&out->pair, error->pair), failed);
	TRY_GOTO(copy_text(&out->right, error->right), failed);
	TRY_GOTO(copy_text(&out->predicted, error->predicted), failed);
	if (error->spans) {
		struct report_span *spans = NULL;
		TRY_GOTO(memory_new(&spans, error->span_count, sizeof *spans, "spans of a report"), failed);
		for (int64_t i = 0; i < error->span_count; i++)
			spans[i] = error->spans[i];
		out->spans = spans;
		out->span_count = error->span_count;
	}
	return OK;
failed:
	release_error(out);
	return status;
}

enum status task_preview_example(struct task_preview *preview, const struct report_error *error)
{
	preview->examples++;
	if (!error)
		return OK;
	preview->wrong++;
	/* Without losses, the first errors are as good as any. */
	int count = preview->error_count;
	if (count == PREVIEW_ERRORS && !(error->loss > preview->errors[count - 1].loss))
		return OK;
	struct report_error own;
	TRY(copy_error(&own, error));
	if (count == PREVIEW_ERRORS)
		release_error(&preview->errors[--count]);
	int at = count;
	for (; at > 0 && own.loss > preview->errors[at - 1].loss; at--)
		preview->errors[at] = preview->errors[at - 1];
	preview->errors[at] = own;
	preview->error_count = count + 1;
	return OK;
}

enum status task_preview_point(struct task_preview *preview, struct report_point point)
{
	if (!preview->points)
		TRY(memory_new(&preview->points, PREVIEW_POINTS, sizeof *preview->points, "points of a chart"));
	if (preview->point_number++ % preview->point_stride != 0)
		return OK;
	if (preview->point_count == PREVIEW_POINTS) { /* keep every second point */
		preview->point_count /= 2;
		for (int64_t i = 0; i < preview->point_count; i++)
			preview->points[i] = preview->points[2 * i];
		preview->point_stride *= 2;
	}
	preview->points[preview->point_count++] = point;
	return OK;
}

void task_preview_release(struct task_preview *preview)
{
	forget_errors(preview);
	free((int64_t *)preview->confusion.counts);
	free(preview->per_class);
	free(preview->points);
	*preview = (struct task_preview){0};
}

static const struct report_confusion *confusion_of(const void *context, const char *set)
{
	const struct task_preview *preview = context;
	return !set && preview->confusion.classes > 0 ? &preview->confusion : NULL;
}

static void write_preview(const void *context, struct buffer *html)
{
	const struct task_preview *preview = context;
	char number[FORMAT_BYTES];
	bool any = preview->confusion.classes > 0 || preview->per_class_count > 0 || preview->examples > 0 ||
		   preview->point_count > 0;
	if (!any)
		return;
	buffer_format(html, "<h2>Answers at step %s</h2>\n", format_count(number, preview->step));
	if (preview->point_count > 0)
		report_scatter_html(preview->points, preview->point_count, html);
	if (preview->confusion.classes > 0) {
		report_confusion_html(&preview->confusion, html);
		report_confusion_classes_html(&preview->confusion, html);
	}
	report_classes_html(preview->per_class, preview->per_class_count, html);
	report_scores_html(&preview->scores, html);
	if (preview->examples > 0)
		report_errors_html(preview->errors, preview->error_count, preview->point_count > 0 ? -1 : preview->wrong,
				   preview->examples, html);
}

struct report_preview task_preview_of(struct task_preview *preview)
{
	return (struct report_preview){.confusion = confusion_of, .write = write_preview, .context = preview};
}
