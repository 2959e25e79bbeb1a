/* Examples that the model gets wrong, and a scatter chart of predicted against right values. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "report/html.h"
#include "report/preview.h"

#define TEXT_LETTERS 400
#define ANSWER_LETTERS 80

/* The text, with the right spans or the predicted ones marked. Spans that begin beyond the excerpt are not shown. */
static void put_spans(const struct report_error *error, bool predicted, struct buffer *out)
{
	size_t size = strlen(error->text), at = 0;
	int letters = TEXT_LETTERS;
	buffer_format(out, "<p><span class=\"p\">%s:</span><bdi>", predicted ? "predicted" : "right");
	for (int64_t i = 0; i < error->span_count && letters > 0; i++) {
		const struct report_span *span = &error->spans[i];
		if (span->predicted != predicted || span->begin < at || span->end > size)
			continue;
		at += html_part(out, error->text + at, span->begin - at, &letters);
		if (letters <= 0)
			break;
		buffer_format(out, "<mark class=\"span%s\">", span->agrees ? "" : " odd");
		at += html_part(out, error->text + at, span->end - at, &letters);
		buffer_text(out, "<sub>");
		html_text(out, span->label);
		buffer_text(out, "</sub></mark>");
	}
	at += html_part(out, error->text + at, size - at, &letters);
	buffer_text(out, at < size ? "\xE2\x80\xA6</bdi></p>" : "</bdi></p>");
}

static void put_answers(const struct report_error *error, struct buffer *out)
{
	buffer_text(out, "<span class=\"p\">right:</span><b>");
	html_excerpt(out, error->right, ANSWER_LETTERS);
	buffer_text(out, "</b> <span class=\"p\">predicted:</span><b class=\"wrong\">");
	html_excerpt(out, error->predicted, ANSWER_LETTERS);
	buffer_text(out, "</b>");
}

static void put_texts(const struct report_error *error, struct buffer *out)
{
	buffer_text(out, "<p>");
	html_excerpt(out, error->text, TEXT_LETTERS);
	if (error->pair) {
		buffer_text(out, "</p><p class=\"pair\">");
		html_excerpt(out, error->pair, TEXT_LETTERS);
	}
	buffer_text(out, "</p>");
}

void report_errors_html(const struct report_error *errors, int64_t count, int64_t total, int64_t examples, struct buffer *out)
{
	char a[FORMAT_BYTES], b[FORMAT_BYTES];
	buffer_text(out, "<h3>Worst errors</h3>\n");
	if (total >= 0 && examples > 0)
		buffer_format(out, "<p class=\"note\">%s of %s examples are wrong%s.</p>\n", format_count(a, total),
			      format_count(b, examples), count > 0 ? "; those with the highest loss come first" : "");
	if (count == 0)
		return;
	buffer_text(out, "<div class=\"scroll\">\n");
	for (int64_t i = 0; i < count; i++) {
		const struct report_error *error = &errors[i];
		char number[REPORT_NUMBER_BYTES];
		buffer_text(out, "<div class=\"error\"><p>");
		if (!error->spans)
			put_answers(error, out);
		if (isfinite(error->loss))
			buffer_format(out, " <span class=\"p\">loss %s</span>", report_number(number, error->loss, UNIT_NATS));
		if (error->number > 0)
			buffer_format(out, " <span class=\"p\">example %" PRId64 "</span>", error->number);
		buffer_text(out, "</p>");
		if (error->spans) {
			put_spans(error, false, out);
			put_spans(error, true, out);
		} else {
			put_texts(error, out);
		}
		buffer_text(out, "</div>\n");
	}
	buffer_text(out, "</div>\n");
}

void report_scatter_html(const struct report_point *points, int64_t count, struct buffer *out)
{
	char description[160];
	double sum_x = 0, sum_y = 0, sum_xx = 0, sum_yy = 0, sum_xy = 0, n = (double)count;
	for (int64_t i = 0; i < count; i++) {
		sum_x += points[i].right;
		sum_y += points[i].predicted;
		sum_xx += points[i].right * points[i].right;
		sum_yy += points[i].predicted * points[i].predicted;
		sum_xy += points[i].right * points[i].predicted;
	}
	double spread = sqrt((sum_xx - sum_x * sum_x / n) * (sum_yy - sum_y * sum_y / n));
	double correlation = (sum_xy - sum_x * sum_y / n) / spread;
	snprintf(description, sizeof description, "%" PRId64 " examples%s", count, spread > 0 ? "" : ".");
	if (spread > 0) {
		size_t used = strlen(description);
		snprintf(description + used, sizeof description - used, ", correlation %.3f.", correlation);
	}
	buffer_text(out, "<div class=\"alone\">");
	chart_scatter_svg(
		&(struct chart_scatter){
			.title = "Predicted and right values",
			.description = description,
			.note = "On the dashed line predictions are exact.",
			.x = {.label = "right value"},
			.y = {.label = "predicted value"},
			.points = &points[0].right,
			.stride = 2,
			.count = count,
			.diagonal = true,
		},
		out);
	buffer_text(out, "</div>\n");
}
