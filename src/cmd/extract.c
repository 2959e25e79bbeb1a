/* bertc extract: dumps, crawls, books, and other files to plain text, one sentence per line. */
#include <stdio.h>
#include <string.h>
#include "base/file.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/stop.h"
#include "cmd/command.h"
#include "infer/device_options.h"
#include "text/corpus.h"

struct extract_options {
	const char *out;
	struct input_options input;
	struct device_options device; /* of which only the threads are an option */
};

#define FIELD(name) offsetof(struct extract_options, name)
#define ROW(member, role, value) OPTION_ROW(struct extract_options, member, role, value)

/* clang-format off */
static const struct option option_table[] = {
	{.help = "Output"},
	{ROW(out, ROLE_PLACE, "FILE"), .letter = 'o', .help = "output file, - for standard output"},
	{.help = "How the files are read"},
	{.group = input_rows, .field = FIELD(input)},
	{.help = "Running"},
	{.group = device_rows, .only = "threads", .field = FIELD(device)},
	{0},
};
/* clang-format on */

static const struct command_text text = {
	.name = "extract",
	.synopsis = "PATH... --out FILE|- [options]",
	.summary = "extract plain text from dumps, crawls, and books",
	.description = "Writes one sentence per line and a blank line between documents. bertc detects the format of each file "
		       "from its content: Wikipedia XML dumps, CirrusSearch dumps, WikiExtractor output, JSON lines, WARC and "
		       "WET files, Project Gutenberg books, or lines of text; plain or compressed with gz, bz2, zst, or xz. "
		       "Files, folders, and patterns are read in order; - is standard input.\n\nFrom Wikipedia, bertc keeps the "
		       "running text of the articles: links become their text; templates, tables, references, lists, headings, "
		       "pictures, and formulas are removed, as BERT's authors did. From web pages it keeps the lines that are "
		       "prose, from books the text between the license notices.\n\nThe other commands read the same files "
		       "directly (--corpus); extract shows what they see. The result does not depend on the number of threads.",
	.examples = "bertc extract enwiki-latest-pages-articles-multistream.xml.bz2 --out wiki.txt\textract the English "
		    "Wikipedia\nbertc extract 'crawl/*.wet.gz' --out - | less\tlook at the text of web pages\nbertc extract "
		    "papers.jsonl.zst --text_key body.text --on_bad_record skip --out papers.txt\tread JSON lines, skipping "
		    "damaged ones\n",
};

/* Destination of the text: a file that gets its name only when it is complete, or standard output. */
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
		return command_output_failed();
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

	progress_start(&progress, corpus_is_compressed(corpus) ? "extracting compressed text" : "extracting", 0,
		       total > 0 ? total : 0, "bytes");
	while ((status = corpus_next(corpus, &document)) == OK && document) {
		TRY_GOTO(write_document(output, document, count == 0), done);
		if (++count % 64 == 0)
			show_documents(&progress, corpus, count);
		if (stop_requested()) {
			status = error_set(STOPPED, "stopped on request; %s",
					   output->file ? "nothing was written" : "the output is incomplete");
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
	corpus_note_oddities(corpus);
	log_note("took %s, %s/s", format_duration(a, seconds), format_size(b, (double)counts->bytes / seconds));
}

static enum status check(struct options *options)
{
	if (options->positional.count == 0) {
		enum status status = error_set(ERR_USAGE, "nothing to extract: no file given");
		error_hint("for instance: bertc extract dump.xml.bz2 --out text.txt");
		TRY(options_blame(options, status));
	}
	return options_require(options, "out", "give the file to write, or --out - to print the text");
}

static enum status run(struct options *parsed)
{
	const struct extract_options *options = parsed->settings;
	struct corpus_settings input = {.input = options->input, .threads = (int)options->device.threads};
	struct corpus *corpus;
	struct output output = {0};
	double start = clock_seconds();

	stop_install();
	input.outputs = &options->out;
	input.output_count = 1;
	TRY(corpus_open(&corpus, parsed->positional.values, parsed->positional.count, &input));
	enum status status = OK;
	if (strcmp(options->out, "-") == 0)
		progress_beside_results();
	else
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
	.check = check,
	.run = run,
	.prints_out = true,
	.takes_arguments = true,
};
