/* bertc extract: dumps, crawls, books and other files to plain text, a sentence a line. */
#include <stdio.h>
#include <string.h>
#include "base/file.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/stop.h"
#include "cmd/command.h"
#include "cmd/text_options.h"

struct extract_options {
	const char *out;
	struct input_settings input;
	int64_t threads;
};

#define FIELD(name) offsetof(struct extract_options, name)

static const struct option option_table[] = {
	{.help = "Output"},
	{.name = "out",
	 .letter = 'o',
	 .type = OPTION_TEXT,
	 .field = FIELD(out),
	 .role = ROLE_PLACE,
	 .value_name = "FILE",
	 .help = "the text to write, - for standard output"},
	{.help = "How the files are read"},
	INPUT_OPTIONS(struct extract_options, input),
	{.help = "Running"},
	THREADS_OPTION(FIELD(threads)),
	{0},
};

static const struct command_text text = {
	.name = "extract",
	.synopsis = "PATH... --out FILE|- [options]",
	.summary = "turn dumps, crawls and books into plain text",
	.description =
		"Writes a sentence a line and a blank line between documents. What a file is, is found from its content: "
		"Wikipedia's XML dumps, CirrusSearch dumps, WikiExtractor's output, JSON lines, WARC and WET files, Project "
		"Gutenberg's books, or lines of text in one of their forms; plain or packed as gz, bz2, zst, xz. Files, "
		"folders and patterns are read one after the other, - is standard input.\n\n"
		"Of Wikipedia's pages the articles are taken, and of these the running text: links become their text; "
		"templates, tables, references, lists, headings, pictures and formulas go, as BERT's authors did it. Of web "
		"pages the lines that are prose are taken, of books what stands between the licences.\n\n"
		"The other commands read the same files directly (--corpus); extract shows what they see. The result does not "
		"depend on the number of threads.",
	.examples = "bertc extract enwiki-latest-pages-articles-multistream.xml.bz2 --out wiki.txt\tan English Wikipedia\n"
		    "bertc extract 'crawl/*.wet.gz' --out - | less\tread what the web pages say\n"
		    "bertc extract papers.jsonl.zst --text_key body.text --on_bad_record skip --out papers.txt\tJSON lines, "
		    "some of them damaged\n",
};

/* Where the text goes: a file that appears whole under its name, or standard output. */
struct output {
	struct file_writer *file; /* NULL: standard output */
	int64_t bytes;
};

static enum status output_write(struct output *output, const void *bytes, size_t size)
{
	output->bytes += (int64_t)size;
	if (output->file)
		return file_writer_write(output->file, bytes, size);
	if (fwrite(bytes, 1, size, stdout) != size)
		return error_set_errno(ERR_RESOURCE, "cannot write to standard output");
	return OK;
}

static enum status write_document(struct output *output, const struct document *document, bool first)
{
	if (!first)
		TRY(output_write(output, "\n", 1));
	TRY(output_write(output, document->text, document->text_size));
	return output_write(output, "\n", 1);
}

static void show_documents(struct progress *progress, const struct corpus *corpus, int64_t count)
{
	char documents[FORMAT_BYTES];
	progress_update(progress, corpus_done_bytes(corpus), "%s", format_counted(documents, count, "document", "documents"));
}

static enum status extract(struct corpus *corpus, struct output *output)
{
	const struct document *document;
	struct progress progress;
	int64_t total = corpus_total_bytes(corpus), count = 0;
	enum status status;

	progress_start(&progress, "extracting", 0, total > 0 ? total : 0, "bytes");
	while ((status = corpus_next(corpus, &document)) == OK && document) {
		TRY_GOTO(write_document(output, document, count == 0), done);
		if (++count % 64 == 0)
			show_documents(&progress, corpus, count);
		if (stop_requested()) {
			status = error_set(STOPPED, "stopped on request; nothing was written");
			break;
		}
	}
	show_documents(&progress, corpus, count);
done:
	progress_finish(&progress);
	return status;
}

static void report(struct corpus *corpus, const struct output *output, double seconds)
{
	char a[FORMAT_BYTES], b[FORMAT_BYTES], c[FORMAT_BYTES], d[FORMAT_BYTES];
	const struct corpus_counts *counts = corpus_counts(corpus);

	log_note("%s, %s, %s of text from %s", format_counted(a, counts->documents, "document", "documents"),
		 format_counted(b, counts->sentences, "sentence", "sentences"), format_size(c, (double)output->bytes),
		 format_size(d, (double)counts->bytes));
	if (counts->other_records > 0)
		log_note("left out: %s of %s records, which hold no text or none of an article",
			 format_count(a, counts->other_records), format_count(b, counts->records));
	corpus_note_oddities(corpus);
	log_note("took %s, %s/s", format_duration(a, seconds), format_size(b, (double)counts->bytes / seconds));
}

static enum status run(struct options *parsed)
{
	const struct extract_options *options = parsed->settings;
	struct corpus_settings input = input_corpus_settings(&options->input, options->threads);
	struct corpus *corpus;
	struct output output = {0};
	double start = clock_seconds();

	if (parsed->positional.count == 0 || !options->out) {
		enum status status =
			error_set(ERR_USAGE, parsed->positional.count == 0 ? "nothing to extract: no file is given"
									   : "--out is missing: where the text shall be written");
		error_hint("for instance: bertc extract dump.xml.bz2 --out text.txt, or --out - to see it");
		return status;
	}
	stop_install();
	TRY(corpus_open(&corpus, parsed->positional.values, parsed->positional.count, &input));
	enum status status = OK;
	if (strcmp(options->out, "-") != 0)
		TRY_GOTO(file_writer_open(&output.file, options->out), done);
	TRY_GOTO(extract(corpus, &output), done);
	if (output.file) {
		struct file_writer *file = output.file;
		output.file = NULL;
		TRY_GOTO(file_writer_commit(file), done);
	}
	report(corpus, &output, clock_seconds() - start);
done:
	file_writer_abandon(output.file);
	corpus_close(corpus);
	return status;
}

const struct command command_extract = {
	.text = &text,
	.options = option_table,
	.settings_bytes = sizeof(struct extract_options),
	.run = run,
	.takes_arguments = true,
};
