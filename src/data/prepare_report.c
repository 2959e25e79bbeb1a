/* PREFIX.html: what was prepared, in tables and charts, for people to read. */
#include <stdio.h>
#include <stdlib.h>

#include "formats/chart.h"
#include "base/log.h"
#include "data/prepare.h"

#define SENTENCE_BINS 64
#define SENTENCE_BIN 2 /* tokens */
#define DOCUMENT_BINS 64
#define DOCUMENT_BIN 64

static const struct {
	const char *what, *why;
} drop_names[PREPARE_DROPS] = {
	[PREPARE_SHORT] = {"document", " below --min_document_tokens"},
	[PREPARE_LONG] = {"document", " above --max_document_tokens"},
	[PREPARE_UNKNOWN] = {"document", " with too many unknown tokens"},
	[PREPARE_COPIED_DOCUMENT] = {"exact duplicate document", ""},
	[PREPARE_COPIED_SENTENCE] = {"exact duplicate sentence", ""},
};

static void row(struct buffer *out, const char *name, const char *train, const char *held_out)
{
	buffer_text(out, "<tr><th scope=\"row\">");
	html_text(out, name);
	buffer_format(out, "</th><td class=\"n\">%s</td>", train);
	if (held_out)
		buffer_format(out, "<td class=\"n\">%s</td>", held_out);
	buffer_text(out, "</tr>\n");
}

static void count_row(struct buffer *out, const char *name, int64_t train, const int64_t *held_out)
{
	char a[FORMAT_BYTES], b[FORMAT_BYTES];
	row(out, name, format_count(a, train), held_out ? format_count(b, *held_out) : NULL);
}

static void unknown_share(char out[32], const struct shard_description *d)
{
	snprintf(out, 32, "%.3f %%", d->tokens > 0 ? 100.0 * (double)d->unknown_tokens / (double)d->tokens : 0.0);
}

static void write_counts(const struct prepare_settings *settings, const struct prepare_report *report, struct buffer *out)
{
	char a[32], b[32], size[FORMAT_BYTES];
	const struct shard_description *train = &report->train, *held = settings->held_out_prefix ? &report->held_out : NULL;
	buffer_text(out, "<table>\n<thead><tr><th></th><th class=\"n\" scope=\"col\">training</th>");
	buffer_text(out, held ? "<th class=\"n\" scope=\"col\">held out</th></tr></thead>\n" : "</tr></thead>\n");
	count_row(out, "documents", train->documents, held ? &held->documents : NULL);
	count_row(out, "sentences", train->sentences, held ? &held->sentences : NULL);
	count_row(out, "tokens", train->tokens, held ? &held->tokens : NULL);
	unknown_share(a, train);
	if (held)
		unknown_share(b, held);
	row(out, "unknown tokens", a, held ? b : NULL);
	buffer_text(out, "</table>\n<p style=\"margin:12px 0\">");
	buffer_format(out, "%s of text, read as ", format_size(size, (double)report->text_bytes));
	html_text(out, report->mixed_forms ? "several forms, mostly " : "");
	html_text(out, text_form_names[report->form]);
	buffer_text(out, " (");
	html_text(out, report->form_reason);
	buffer_text(out, ").");
	if (report->invalid_bytes > 0)
		buffer_format(out, " %lld bytes are not UTF-8.", (long long)report->invalid_bytes);
	if (report->empty_documents > 0)
		buffer_format(out, " %lld documents hold no token.", (long long)report->empty_documents);
	buffer_text(out, "</p>\n");
}

static void write_dropped(const struct prepare_report *report, struct buffer *out)
{
	char count[FORMAT_BYTES], tokens[FORMAT_BYTES];
	bool any = false;
	for (int kind = 0; kind < PREPARE_DROPS; kind++) {
		const struct prepare_dropped *dropped = &report->dropped[kind];
		if (dropped->count == 0)
			continue;
		any = true;
		buffer_format(out, "<h3>%s %s%s%s", format_count(count, dropped->count), drop_names[kind].what,
			      dropped->count == 1 ? "" : "s", drop_names[kind].why);
		buffer_format(out, "</h3>\n<p>%s tokens, %s.</p>\n<ul>\n", format_count(tokens, dropped->tokens),
			      dropped->left_out ? "left out" : "kept");
		for (int i = 0; i < dropped->sample_count; i++) {
			buffer_text(out, "<li>");
			html_text(out, dropped->samples[i]);
			buffer_text(out, "</li>\n");
		}
		buffer_text(out, "</ul>\n");
	}
	if (!any)
		buffer_text(out, "<p>Nothing was left out, and there were no duplicates.</p>\n");
}

static void add(double *bins, int bin_count, int64_t tokens, int64_t width)
{
	int64_t bin = tokens / width;
	bins[bin < bin_count ? bin : bin_count - 1]++;
}

static void write_histograms(const struct shard *shard, struct buffer *out)
{
	double sentences[SENTENCE_BINS] = {0}, documents[DOCUMENT_BINS] = {0};
	for (int64_t d = 0; d < shard->document_count; d++) {
		int64_t tokens = 0;
		for (int64_t s = shard_document(shard, d); s < shard_document(shard, d + 1); s++) {
			int32_t length = shard_length(shard, s);
			add(sentences, SENTENCE_BINS, length, SENTENCE_BIN);
			tokens += length;
		}
		add(documents, DOCUMENT_BINS, tokens, DOCUMENT_BIN);
	}
	buffer_text(out, "<div class=\"grid\">\n");
	chart_bars_svg(
		&(struct chart_bars){.title = "Length of sentences",
				     .description = "How many sentences have how many tokens; the last bar holds all longer ones",
				     .x = {.label = "tokens"},
				     .y = {.label = "sentences", .number = CHART_COUNT, .from_zero = true},
				     .width = SENTENCE_BIN,
				     .values = sentences,
				     .count = SENTENCE_BINS},
		out);
	chart_bars_svg(
		&(struct chart_bars){.title = "Length of documents",
				     .description = "How many documents have how many tokens; the last bar holds all longer ones",
				     .x = {.label = "tokens", .number = CHART_COUNT},
				     .y = {.label = "documents", .number = CHART_COUNT, .from_zero = true},
				     .width = DOCUMENT_BIN,
				     .values = documents,
				     .count = DOCUMENT_BINS},
		out);
	buffer_text(out, "</div>\n<p class=\"note\">The last bar holds all that are longer.</p>\n");
}

enum status prepare_write_report(const struct prepare_settings *settings, const struct prepare_report *report)
{
	struct buffer out = {0};
	struct shard shard = {0};
	char path[PATH_BYTES], title[300];
	if (snprintf(path, sizeof path, "%s.html", settings->prefix) >= (int)sizeof path)
		return error_set(ERR_USAGE, "the path of the report is too long");
	snprintf(title, sizeof title, "Prepared text: %.200s", path_name(settings->prefix));
	TRY(shard_open(&shard, settings->prefix));
	html_begin(&out, title);
	buffer_text(&out, "<h1>");
	html_text(&out, title);
	buffer_text(&out, "</h1>\n");
	write_counts(settings, report, &out);
	write_histograms(&shard, &out);
	buffer_text(&out, "<h2>Left out, or found twice</h2>\n");
	write_dropped(report, &out);
	html_end(&out);
	shard_close(&shard);
	enum status status = buffer_status(&out);
	if (status == OK)
		status = file_write(path, out.data, out.size);
	buffer_release(&out);
	return status;
}
