/* Predicted against right classes: the confusion matrix, the pairs most often confused, and figures for each class. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "report/html.h"
#include "report/preview.h"

#define PAIRS_SHOWN 25
#define LABEL_LETTERS 40
#define HEAD_LETTERS 16 /* of a vertical column heading */

static int64_t count_at(const struct report_confusion *confusion, int32_t right, int32_t predicted)
{
	return confusion->counts[(int64_t)right * confusion->classes + predicted];
}

static int64_t row_total(const struct report_confusion *confusion, int32_t right)
{
	int64_t total = 0;
	for (int32_t c = 0; c < confusion->classes; c++)
		total += count_at(confusion, right, c);
	return total;
}

static int64_t column_total(const struct report_confusion *confusion, int32_t predicted)
{
	int64_t total = 0;
	for (int32_t c = 0; c < confusion->classes; c++)
		total += count_at(confusion, c, predicted);
	return total;
}

static void put_matrix(const struct report_confusion *confusion, struct buffer *out)
{
	buffer_text(
		out,
		"<p class=\"note\">A row for each right label, a column for each predicted one. The diagonal is what the "
		"model gets right; the darker a cell, the larger its share of the row.</p>\n"
		"<div class=\"scroll\"><table class=\"matrix\"><thead><tr><th>right \xE2\x86\x93 predicted \xE2\x86\x92</th>");
	for (int32_t c = 0; c < confusion->classes; c++) {
		html_element(out, "<th class=\"up\" title=\"", confusion->labels[c], "\"><span>");
		html_excerpt(out, confusion->labels[c], HEAD_LETTERS);
		buffer_text(out, "</span></th>");
	}
	buffer_text(out, "<th class=\"n\">recall</th></tr></thead>\n");
	for (int32_t r = 0; r < confusion->classes; r++) {
		int64_t total = row_total(confusion, r);
		char number[REPORT_NUMBER_BYTES];
		html_element(out, "<tr><th title=\"", confusion->labels[r], "\">");
		html_excerpt(out, confusion->labels[r], LABEL_LETTERS);
		buffer_text(out, "</th>");
		for (int32_t c = 0; c < confusion->classes; c++) {
			int64_t count = count_at(confusion, r, c);
			double share = total > 0 ? (double)count / (double)total : 0;
			html_element(out, "<td class=\"cell\" title=\"", confusion->labels[r], " \xE2\x86\x92 ");
			html_text(out, confusion->labels[c]);
			buffer_format(out,
				      ": %" PRId64 " (%.1f %%)\"><i class=\"b%d\" style=\"opacity:%.2f\"></i><span%s>%" PRId64
				      "</span></td>",
				      count, 100 * share, r == c ? 1 : 2, count > 0 ? 0.06 + 0.5 * share : 0,
				      count == 0 ? " class=\"zero\"" : "", count);
		}
		double recall = total > 0 ? (double)count_at(confusion, r, r) / (double)total : NAN;
		html_element(out, "<td class=\"n\">", report_number(number, recall, UNIT_SHARE), "</td></tr>\n");
	}
	buffer_text(out, "</table></div>\n");
}

struct pair {
	int32_t right, predicted;
	int64_t count;
};

static void put_pairs(const struct report_confusion *confusion, struct buffer *out)
{
	struct pair pairs[PAIRS_SHOWN];
	int shown = 0;
	for (int32_t r = 0; r < confusion->classes; r++)
		for (int32_t c = 0; c < confusion->classes; c++) {
			int64_t count = r == c ? 0 : count_at(confusion, r, c);
			if (count == 0 || (shown == PAIRS_SHOWN && count <= pairs[shown - 1].count))
				continue;
			int at = shown < PAIRS_SHOWN ? shown++ : shown - 1;
			for (; at > 0 && pairs[at - 1].count < count; at--)
				pairs[at] = pairs[at - 1];
			pairs[at] = (struct pair){r, c, count};
		}
	buffer_format(out,
		      "<p class=\"note\">There are %d labels; these are the pairs the model confuses most often.</p>\n"
		      "<div class=\"scroll\"><table><tr><th>right</th><th>predicted</th><th class=\"n\">examples</th><th "
		      "class=\"n\">of its examples</th></tr>\n",
		      confusion->classes);
	for (int i = 0; i < shown; i++) {
		char number[FORMAT_BYTES], share[REPORT_NUMBER_BYTES];
		buffer_text(out, "<tr><td>");
		html_excerpt(out, confusion->labels[pairs[i].right], LABEL_LETTERS);
		buffer_text(out, "</td><td>");
		html_excerpt(out, confusion->labels[pairs[i].predicted], LABEL_LETTERS);
		buffer_format(
			out, "</td><td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n", format_count(number, pairs[i].count),
			report_number(share, (double)pairs[i].count / (double)row_total(confusion, pairs[i].right), UNIT_SHARE));
	}
	if (shown == 0)
		buffer_text(out, "<tr><td colspan=\"4\">none: every example is right</td></tr>\n");
	buffer_text(out, "</table></div>\n");
}

void report_confusion_html(const struct report_confusion *confusion, struct buffer *out)
{
	if (confusion->classes < 1)
		return;
	bool whole = confusion->classes <= CONFUSION_WHOLE;
	buffer_text(out, whole ? "<h3>Confusion matrix</h3>\n" : "<h3>Labels that are confused most</h3>\n");
	if (whole)
		put_matrix(confusion, out);
	else
		put_pairs(confusion, out);
}

static double ratio(int64_t part, int64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : NAN;
}

/* By convention, F1 is 0 for a class that is neither present nor predicted. */
static double f1_of(const struct report_class *class)
{
	return class->right + class->predicted > 0 ? 2 * (double)class->both / (double)(class->right + class->predicted) : 0;
}

static int by_f1(const void *a, const void *b)
{
	double x = f1_of(a), y = f1_of(b);
	return (x > y) - (x < y);
}

static void put_classes(const struct report_class *classes, int64_t count, bool sorted, struct buffer *out)
{
	buffer_format(out,
		      "<h3>Per label</h3>\n%s<div class=\"scroll\"><table><tr><th>label</th><th class=\"n\">examples</th><th "
		      "class=\"n\">precision</th><th class=\"n\">recall</th><th class=\"n\">F1</th><th "
		      "class=\"meter-head\"></th></tr>\n",
		      sorted ? "<p class=\"note\">Lowest F1 first.</p>\n" : "");
	for (int64_t i = 0; i < count; i++) {
		const struct report_class *class = &classes[i];
		char number[FORMAT_BYTES], text[REPORT_NUMBER_BYTES];
		double f1 = f1_of(class);
		buffer_text(out, "<tr><td class=\"label\">");
		html_excerpt(out, class->label, LABEL_LETTERS);
		buffer_format(out, "</td><td class=\"n\">%s</td>", format_count(number, class->right));
		html_element(out, "<td class=\"n\">", report_number(text, ratio(class->both, class->predicted), UNIT_SHARE),
			     "</td>");
		html_element(out, "<td class=\"n\">", report_number(text, ratio(class->both, class->right), UNIT_SHARE), "</td>");
		html_element(out, "<td class=\"n\">", report_number(text, f1, UNIT_SHARE), "</td>");
		buffer_format(out, "<td class=\"meter\"><i class=\"b1\" style=\"width:%.1f%%\"></i></td></tr>\n", 100 * f1);
	}
	buffer_text(out, "</table></div>\n");
}

void report_classes_html(const struct report_class *classes, int64_t count, struct buffer *out)
{
	struct report_class *sorted = NULL;
	if (count < 1)
		return;
	if (count <= CONFUSION_WHOLE) {
		put_classes(classes, count, false, out);
		return;
	}
	if (memory_new(&sorted, count, sizeof *sorted, "labels of a report") != OK) {
		out->failed = true;
		return;
	}
	for (int64_t i = 0; i < count; i++)
		sorted[i] = classes[i];
	qsort(sorted, (size_t)count, sizeof *sorted, by_f1);
	put_classes(sorted, count, true, out);
	free(sorted);
}

void report_confusion_classes_html(const struct report_confusion *confusion, struct buffer *out)
{
	struct report_class *classes = NULL;
	if (memory_new(&classes, confusion->classes, sizeof *classes, "labels of a report") != OK) {
		out->failed = true;
		return;
	}
	for (int32_t c = 0; c < confusion->classes; c++)
		classes[c] = (struct report_class){
			.label = confusion->labels[c],
			.right = row_total(confusion, c),
			.predicted = column_total(confusion, c),
			.both = count_at(confusion, c, c),
		};
	report_classes_html(classes, confusion->classes, out);
	free(classes);
}
