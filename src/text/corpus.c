/* Converts files, one after the other, to documents. See document.h for what a document is, text_form.c for the forms.
 *
 * Files are read ahead into batches of lines or records (dumps, JSON, WARC), which helper threads convert while earlier
 * ones are given out (base/work_line.h). A document of lines that spans several batches is joined here.
 */
#include "text/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/work_line.h"
#include "formats/records.h"
#include "formats/stream.h"
#include "text/document_builder.h"
#include "text/gutenberg.h"
#include "text/input_form.h"
#include "text/text_batch.h"
#include "text/text_notice.h"
#include "text/utf8.h"

#define AHEAD_BYTES ((int64_t)256 << 20)   /* of lines or records read and not yet given out */
#define LINES_LIMIT (4 * TEXT_BATCH_BYTES) /* most bytes of a batch of lines if there is no good place to cut */
#define BLANK_LINES 3                      /* most blank lines kept in a row; further ones carry no information */
#ifndef DOCUMENT_LIMIT
#define DOCUMENT_LIMIT ((size_t)16 << 20) /* a longer record is divided into several */
#endif
#define DAMAGE_SAID 5     /* damaged places reported one by one */
#define FILES_LISTED 20   /* files whose forms are reported one by one */
#define NOTICES_MOST 5    /* warnings about files that are not just text */
#define TEXTLESS_SHARE 10 /* warn if more than one JSON record in so many has no text */

struct corpus {
	struct name_list files;
	struct file_stamp *stamps; /* [files.count] as of when the corpus was opened */
	int64_t next_file;
	struct corpus_settings settings;
	bool form_listed[TEXT_FORM_COUNT];
	int notices;
	int64_t files_listed, files_unlisted[TEXT_FORM_COUNT]; /* files whose form was reported; the others, by form */
	struct corpus_counts counts;
	int64_t total_bytes, done_bytes; /* of all files; of files already closed */
	bool compressed;
	uint64_t fingerprint;

	/* The open file, at next_file - 1. */
	const char *path;
	struct line_reader *reader; /* NULL between files */
	enum input_form input;
	enum text_form form; /* of files of text: detected or requested */
	char reason[TEXT_FORM_REASON_BYTES];
	struct gutenberg gutenberg;
	int64_t file_offset; /* bytes of its text taken so far */
	bool file_begins;    /* nothing has been taken from it yet */
	struct records *records;
	struct wiki_names names;
	const char *text_key;
	struct buffer keys; /* keys of strings in the first records of an open JSON file, for an error message */

	bool within_line, goes_on; /* the next piece continues the line being read; the next batch continues this one */
	int64_t blank_lines;       /* blank lines in a row so far */

	struct text_batch *batches;
	int batch_count;
	struct work_line *line;
	struct text_batch *filling, *given; /* the batch being filled; the one whose documents are given out */
	struct line_state lines;            /* left by the last batch of lines */
	struct document_builder joined;     /* collects a document that continues in the next batch, until it is given out */
	bool joined_given;
	const char *joined_path;
	struct buffer open_record;
	int64_t file_records, file_used; /* records of the open file: all; those with text */
	int64_t given_sentences;         /* sentences of the file whose batches are being given out */
	enum text_form given_form;
	char given_reason[TEXT_FORM_REASON_BYTES];
	int64_t ahead_bytes;
	enum status pending; /* an error met while reading ahead, to be returned in its turn */
	struct error pending_error;

	struct document document;
	int64_t next_document; /* in the batch being given out */
};

static enum text_form found_form(enum input_form input, enum text_form form)
{
	return input == INPUT_TEXT ? form : (enum text_form)(TEXT_FORM_GUTENBERG + (input - INPUT_GUTENBERG));
}

enum text_form corpus_form(const struct corpus *corpus, const char **out_reason)
{
	*out_reason = corpus->given_reason;
	return corpus->given_form;
}

const struct corpus_counts *corpus_counts(const struct corpus *corpus)
{
	return &corpus->counts;
}

int64_t corpus_total_bytes(const struct corpus *corpus)
{
	return corpus->total_bytes;
}

bool corpus_is_compressed(const struct corpus *corpus)
{
	return corpus->compressed;
}

int64_t corpus_done_bytes(const struct corpus *corpus)
{
	return corpus->done_bytes + (corpus->reader ? stream_position(line_reader_stream(corpus->reader)) : 0);
}

uint64_t corpus_fingerprint(const struct corpus *corpus)
{
	return corpus->fingerprint;
}

bool corpus_reads_once(const char *path)
{
	struct stat facts;
	return strcmp(path, "-") == 0 || (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode));
}

static void describe(struct buffer *out, int64_t count, const char *one, const char *many)
{
	char number[FORMAT_BYTES];
	if (count > 0)
		buffer_format(out, "%s%s %s", out->size ? ", " : "", format_count(number, count), count == 1 ? one : many);
}

void corpus_describe_oddities(const struct corpus *corpus, struct buffer *out)
{
	const struct corpus_counts *counts = &corpus->counts;
	buffer_clear(out);
	describe(out, counts->empty_files, "file without text", "files without text");
	describe(out, counts->invalid_utf8_bytes, "byte that is not UTF-8 (tokenizers leave it out)",
		 "bytes that are not UTF-8 (tokenizers leave them out)");
	describe(out, counts->nul_bytes, "NUL byte", "NUL bytes");
	describe(out, counts->damaged, "damaged place skipped", "damaged places skipped");
	describe(out, counts->sentence_cuts, "cut in a sentence over 64 KiB", "cuts in sentences over 64 KiB");
	describe(out, counts->document_cuts, "cut in a document that is too large", "cuts in documents that are too large");
}

/* "1,200 more files read as sentences, 14 as paragraphs". */
static void note_unlisted_files(const struct corpus *corpus)
{
	struct buffer text = {0};
	char number[FORMAT_BYTES];
	for (int form = 0; form < TEXT_FORM_COUNT; form++)
		if (corpus->files_unlisted[form] > 0)
			buffer_format(&text, "%s%s%s as %s", text.size ? ", " : "",
				      format_count(number, corpus->files_unlisted[form]), text.size ? "" : " more files read",
				      text_form_names[form]);
	if (text.size > 0)
		log_note("%s (--verbose lists each)", buffer_string(&text));
	buffer_release(&text);
}

void corpus_note_oddities(const struct corpus *corpus)
{
	struct buffer oddities = {0};
	char others[FORMAT_BYTES], all[FORMAT_BYTES];
	note_unlisted_files(corpus);
	if (corpus->counts.other_records > 0)
		log_note("skipped: %s of %s records, which hold no text or are not articles",
			 format_count(others, corpus->counts.other_records), format_count(all, corpus->counts.records));
	corpus_describe_oddities(corpus, &oddities);
	if (oddities.size > 0)
		log_note("in the text: %s", buffer_string(&oddities));
	buffer_release(&oddities);
	input_warn_invalid(corpus->counts.invalid_utf8_bytes, corpus->counts.bytes);
}

/* A folder or pattern may include what an earlier call wrote there, which is not the user's text. */
static enum status check_outputs(const struct corpus *corpus, int64_t index)
{
	const struct file_stamp *read = &corpus->stamps[index];
	for (int i = 0; i < corpus->settings.output_count; i++) {
		struct file_stamp written = file_stamp_at(corpus->settings.outputs[i]);
		if (!file_stamp_is_same_file(&written, read))
			continue;
		return error_hinted(
			error_set(ERR_USAGE, "'%s' is one of the files to read, and would be overwritten",
				  corpus->files.names[index]),
			"write under another name, outside of the folder or pattern that is read; nothing was changed");
	}
	return OK;
}

/* `facts`: the size and the time of modification; NULL: nothing is known but the name. */
static void add_name(struct corpus *corpus, const char *name, const uint64_t facts[2])
{
	uint64_t all[3] = {hash64(name, strlen(name))};
	if (facts)
		memcpy(all + 1, facts, 2 * sizeof *facts);
	corpus->fingerprint = hash64_combine(corpus->fingerprint, hash64(all, (facts ? 3 : 1) * sizeof *all));
}

/* Hash of the first and the last bytes of a file: files of one name, size, and time may come from one archive. What cannot be
 * read is reported when the corpus is. */
static uint64_t hash_of_ends(const char *path, off_t size, bool *compressed)
{
	unsigned char bytes[4096];
	const off_t places[] = {0, size > (off_t)sizeof bytes ? size - (off_t)sizeof bytes : 0};
	uint64_t hash = 0;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; file >= 0 && i < sizeof places / sizeof *places; i++) {
		ssize_t count = pread(file, bytes, sizeof bytes, places[i]);
		hash = hash64_combine(hash, hash64(bytes, count > 0 ? (size_t)count : 0));
		*compressed = *compressed || (i == 0 && count > 0 && stream_is_compressed(bytes, (size_t)count));
	}
	if (file >= 0)
		close(file);
	return hash;
}

/* A file is the same in whatever folder: that may have been moved, and links to it may differ between machines. Nothing is known
 * about pipes: the name and time of one made by the shell differ each time. */
static void add_to_fingerprint(struct corpus *corpus, const char *path, const uint64_t facts[2])
{
	if (corpus_reads_once(path)) {
		add_name(corpus, "-", NULL);
		return;
	}
	add_name(corpus, path_name(path), facts);
	corpus->fingerprint = hash64_combine(corpus->fingerprint, hash_of_ends(path, (off_t)facts[0], &corpus->compressed));
}

/* Checks every file before the first is read, so that an unreadable one is reported now and not after an hour. */
static enum status inspect_files(struct corpus *corpus)
{
	TRY(memory_new(&corpus->stamps, corpus->files.count, sizeof *corpus->stamps, "files of the corpus"));
	for (int64_t i = 0; i < corpus->files.count; i++) {
		const char *path = corpus->files.names[i];
		uint64_t facts[2] = {0};
		struct stat info;
		if (strcmp(path, "-") == 0) {
			corpus->total_bytes = -1;
		} else if (stat(path, &info) != 0) {
			return error_set_errno(ERR_USAGE, "cannot open '%s'", path);
		} else if (access(path, R_OK) != 0) {
			return error_hinted(error_set_errno(ERR_RESOURCE, "cannot read '%s'", path),
					    "give this user the right to read it, or leave it out");
		} else {
			if (!S_ISREG(info.st_mode))
				corpus->total_bytes = -1;
			else if (corpus->total_bytes >= 0)
				corpus->total_bytes += info.st_size;
			facts[0] = (uint64_t)info.st_size;
			facts[1] = (uint64_t)info.st_mtim.tv_sec * 1000000000 + (uint64_t)info.st_mtim.tv_nsec;
			corpus->stamps[i] = file_stamp_at(path);
			TRY(check_outputs(corpus, i));
		}
		add_to_fingerprint(corpus, path, facts);
	}
	return OK;
}

static int corpus_threads(const struct corpus *corpus)
{
	return corpus->settings.threads ? corpus->settings.threads : pool_available_cores();
}

/* Creates the batches and the threads that work on them, when the first file is opened. */
static enum status open_line(struct corpus *corpus)
{
	int threads = corpus_threads(corpus);

	if (corpus->line)
		return OK;
	corpus->batch_count = threads > 1 ? 2 * threads + 1 : 1;
	TRY(memory_new(&corpus->batches, corpus->batch_count, sizeof *corpus->batches, "batches of text"));
	return work_line_open(&corpus->line, threads - 1, corpus->batches, corpus->batch_count, sizeof *corpus->batches,
			      text_batch_convert);
}

enum status corpus_open(struct corpus **out, const char *const *patterns, int64_t pattern_count,
			const struct corpus_settings *settings)
{
	struct corpus *corpus;
	enum status status = OK;

	*out = NULL;
	TRY(memory_new(&corpus, 1, sizeof *corpus, "corpus"));
	if (settings)
		corpus->settings = *settings;
	corpus->joined.counts = &corpus->counts;
	TRY_GOTO(path_expand_all(patterns, pattern_count, &corpus->files), failed);
	if (corpus->files.count == 0) {
		status = error_set(ERR_USAGE, "no corpus given");
		error_hint("give text files, folders or patterns with --corpus");
		goto failed;
	}
	TRY_GOTO(inspect_files(corpus), failed);
	*out = corpus;
	return OK;
failed:
	corpus_close(corpus);
	return status;
}

void corpus_close(struct corpus *corpus)
{
	if (!corpus)
		return;
	work_line_close(corpus->line);
	for (int i = 0; i < corpus->batch_count && corpus->batches; i++)
		text_batch_release(&corpus->batches[i]);
	free(corpus->batches);
	records_close(corpus->records);
	line_reader_close(corpus->reader);
	name_list_release(&corpus->files);
	free(corpus->stamps);
	buffer_release(&corpus->open_record);
	buffer_release(&corpus->keys);
	buffer_release(&corpus->lines.paragraph);
	builder_release(&corpus->joined);
	free(corpus);
}

/* Handles damage described by error_last(): counts it if bad records are skipped, otherwise returns the error. */
static enum status meet_damage(void *context)
{
	struct corpus *corpus = context;

	if (corpus->settings.input.on_bad_record == STOP_ON_BAD_RECORD)
		return error_last()->status;
	if (corpus->counts.damaged++ < DAMAGE_SAID)
		log_warning("%s; skipped", error_last()->message);
	return OK;
}

/* Callbacks of the reader of records. */

static enum status begin_record(void *context)
{
	struct corpus *corpus = context;
	buffer_clear(&corpus->open_record);
	return OK;
}

/* Adds the first `size` bytes of the open record to the batch being filled. */
static enum status add_record(struct corpus *corpus, size_t size, const char *title)
{
	corpus->file_used++;
	return text_batch_add(corpus->filling, corpus->open_record.data, size, title);
}

static enum status take_text(void *context, const char *bytes, size_t size)
{
	struct corpus *corpus = context;
	struct buffer *record = &corpus->open_record;

	buffer_append(record, bytes, size);
	TRY(buffer_status(record));
	if (record->size < DOCUMENT_LIMIT)
		return OK;
	/* Cut after a line, else after a word, else between characters. */
	size_t cut = record->size;
	while (cut > record->size / 2 && record->data[cut - 1] != '\n')
		cut--;
	if (cut == record->size / 2)
		for (cut = record->size; cut > record->size / 2 && record->data[cut - 1] != ' ';)
			cut--;
	if (cut == record->size / 2)
		for (cut = record->size - 1; cut > record->size - 4 && ((unsigned char)record->data[cut] & 0xC0) == 0x80;)
			cut--;
	corpus->counts.document_cuts++;
	TRY(add_record(corpus, cut, NULL));
	memmove(record->data, record->data + cut, record->size - cut);
	record->size -= cut;
	return OK;
}

static enum status end_record(void *context, const char *title, bool keep)
{
	struct corpus *corpus = context;

	corpus->counts.records++;
	corpus->file_records++;
	if (keep && corpus->open_record.size > 0)
		return add_record(corpus, corpus->open_record.size, title);
	corpus->counts.other_records++;
	return OK;
}

static enum status take_namespace(void *context, int64_t key, const char *name)
{
	struct corpus *corpus = context;
	wiki_names_take(&corpus->names, key, name);
	return OK;
}

static enum status open_records(struct corpus *corpus, const char *beginning, size_t size)
{
	static const enum record_form forms[] = {[INPUT_WIKI_XML] = RECORDS_WIKI_XML,
						 [INPUT_CIRRUS] = RECORDS_CIRRUS,
						 [INPUT_WIKIEXTRACTOR] = RECORDS_WIKIEXTRACTOR,
						 [INPUT_JSON] = RECORDS_JSON,
						 [INPUT_WARC] = RECORDS_WARC};
	struct record_settings settings = {forms[corpus->input], corpus->path, corpus->settings.input.text_key};
	struct record_sink sink = {corpus, begin_record, take_text, end_record, meet_damage, take_namespace};

	if (!settings.text_key && corpus->input == INPUT_JSON)
		TRY(records_find_text_key(corpus->path, beginning, size, &settings.text_key));
	buffer_clear(&corpus->keys);
	if (corpus->input == INPUT_JSON)
		TRY(records_list_text_keys(corpus->path, beginning, size, &corpus->keys));
	if (!settings.text_key)
		settings.text_key = "text";
	corpus->text_key = settings.text_key;
	corpus->names = (struct wiki_names){{0}, {0}, {0}};
	corpus->file_records = corpus->file_used = 0;
	return records_open(&corpus->records, &settings, &sink);
}

/* Opening */

static const char *const input_reasons[] = {
	[INPUT_GUTENBERG] = "a Project Gutenberg book, from its first mark to its last",
	[INPUT_WIKI_XML] = "a MediaWiki export; articles only, their markup made text",
	[INPUT_CIRRUS] = "a CirrusSearch dump; articles only",
	[INPUT_WIKIEXTRACTOR] = "<doc> elements",
	[INPUT_JSON] = "JSON objects",
	[INPUT_WARC] = "a WARC file; its plain text, and of that lines that are prose",
};

/* Sets the form of lines of text: the one requested, or else detected. */
static enum status find_text_form(struct corpus *corpus, const char *beginning, size_t size)
{
	bool whole = size < INPUT_BEGINNING_BYTES;

	corpus->form = corpus->settings.input.text_form;
	snprintf(corpus->reason, sizeof corpus->reason, "--text_form");
	if (corpus->form == TEXT_FORM_AUTO) {
		if (corpus->input == INPUT_GUTENBERG) {
			size_t begin = gutenberg_begin(beginning, size);
			beginning += begin;
			size -= begin;
		}
		TRY(text_form_detect(beginning, size, whole, corpus->files.count, &corpus->form, corpus->reason));
	}
	if (corpus->input == INPUT_GUTENBERG)
		snprintf(corpus->reason, sizeof corpus->reason, "%s; lines are %s", input_reasons[INPUT_GUTENBERG],
			 text_form_names[corpus->form]);
	return OK;
}

/* Reports what the open file is read as, for each of the first files and for the first one of each form. */
static void list_file(struct corpus *corpus, size_t size)
{
	enum text_form found = found_form(corpus->input, corpus->form);
	bool asked = corpus->input <= INPUT_TEXT && corpus->settings.input.text_form != TEXT_FORM_AUTO;
	if (asked || corpus->settings.quiet || size == 0) {
		log_detail("'%s' read as %s: %s", corpus->path, text_form_names[found], corpus->reason);
	} else if (corpus->files_listed < FILES_LISTED || !corpus->form_listed[found]) {
		log_note("'%s' read as %s: %s", corpus->path, text_form_names[found], corpus->reason);
		corpus->files_listed++;
		corpus->form_listed[found] = true;
	} else {
		log_detail("'%s' read as %s: %s", corpus->path, text_form_names[found], corpus->reason);
		corpus->files_unlisted[found]++;
	}
}

/* Warns about tables and headings in files of text, unless --input_form says what they are. */
static enum status notice_file(struct corpus *corpus, const char *beginning, size_t size)
{
	char notice[TEXT_NOTICE_BYTES] = "";
	if (corpus->settings.quiet || corpus->input != INPUT_TEXT || corpus->settings.input.input_form != INPUT_AUTO ||
	    corpus->notices == NOTICES_MOST)
		return OK;
	TRY(text_notice(corpus->path, beginning, size, notice));
	if (notice[0])
		log_warning("%s%s", notice,
			    ++corpus->notices == NOTICES_MOST ? "; further files of this sort are not named" : "");
	return OK;
}

static enum status open_next_file(struct corpus *corpus)
{
	const char *beginning;
	size_t size;

	const char *path = corpus->files.names[corpus->next_file++];
	corpus->path = strcmp(path, "-") == 0 ? "standard input" : path;
	corpus->counts.files++;
	corpus->file_offset = 0;
	corpus->file_begins = true;
	corpus->within_line = corpus->goes_on = false;
	corpus->blank_lines = 0;
	TRY(open_line(corpus));
	TRY(line_reader_open(&corpus->reader, path, TEXT_LINE_LIMIT));
	TRY(stream_read_ahead(line_reader_stream(corpus->reader), corpus_threads(corpus)));
	TRY(line_reader_peek(corpus->reader, INPUT_BEGINNING_BYTES, &beginning, &size));
	corpus->input = corpus->settings.input.input_form;
	if (corpus->input == INPUT_AUTO) {
		TRY(input_refuse_markup(corpus->path, beginning, size));
		corpus->input = input_form_find(beginning, size);
	}
	if (corpus->input != INPUT_WARC) /* WARC files may contain binary data */
		TRY(input_check_encoding(corpus->path, beginning, size));
	corpus->gutenberg = (struct gutenberg){0};
	if (corpus->input <= INPUT_GUTENBERG) {
		TRY(line_reader_begin_lines(corpus->reader));
		TRY(line_reader_peek(corpus->reader, INPUT_BEGINNING_BYTES, &beginning, &size));
		TRY(find_text_form(corpus, beginning, size));
	} else {
		TRY(open_records(corpus, beginning, size));
		snprintf(corpus->reason, sizeof corpus->reason, "%s", input_reasons[corpus->input]);
		if (corpus->input == INPUT_JSON)
			snprintf(corpus->reason, sizeof corpus->reason, "JSON objects, the text under \"%.100s\"",
				 corpus->text_key);
	}
	list_file(corpus, size);
	return notice_file(corpus, beginning, size);
}

static void close_file(struct corpus *corpus)
{
	corpus->done_bytes = corpus_done_bytes(corpus);
	line_reader_close(corpus->reader);
	corpus->reader = NULL;
	records_close(corpus->records);
	corpus->records = NULL;
}

/* The file must still be the one that was there when the corpus was opened, as the fingerprint covers it. */
static enum status check_file(const struct corpus *corpus, int64_t file)
{
	if (corpus->stamps[file].inode == 0)
		return OK;
	struct file_stamp now = file_stamp_at(corpus->files.names[file]);
	return file_stamp_check(corpus->files.names[file], &corpus->stamps[file], &now, "while the corpus was read");
}

static enum status check_files(const struct corpus *corpus)
{
	for (int64_t i = 0; i < corpus->files.count; i++)
		TRY(check_file(corpus, i));
	return OK;
}

/* Called when a file cannot be read any further: skips the rest of it, if bad records are to be skipped. */
static enum status give_up_file(struct corpus *corpus, enum status status)
{
	if (status != ERR_DATA)
		return status;
	TRY(meet_damage(corpus));
	close_file(corpus);
	return OK;
}

/* Reading ahead */

static void submit_batch(struct corpus *corpus, bool last)
{
	struct text_batch *batch = corpus->filling;
	batch->last = last;
	batch->names = corpus->names;
	batch->ahead_bytes = (int64_t)batch->raw.size;
	corpus->ahead_bytes += batch->ahead_bytes;
	corpus->filling = NULL;
	work_line_submit(corpus->line);
}

static bool find_slot(struct corpus *corpus)
{
	if (corpus->filling)
		return true;
	corpus->filling = work_line_free(corpus->line);
	if (!corpus->filling)
		return false;
	text_batch_reset(corpus->filling);
	corpus->filling->path = corpus->path;
	corpus->filling->input = corpus->input;
	corpus->filling->form = corpus->form;
	corpus->filling->first = corpus->file_begins;
	corpus->filling->goes_on = corpus->goes_on;
	corpus->filling->builder.blank_lines = (int)corpus->blank_lines;
	corpus->file_begins = corpus->goes_on = false;
	corpus->filling->asked = corpus->settings.input.text_form;
	memcpy(corpus->filling->reason, corpus->reason, sizeof corpus->reason);
	return true;
}

static void count_line(struct corpus *corpus, bool continues)
{
	corpus->counts.bytes += line_reader_offset(corpus->reader) - corpus->file_offset;
	corpus->file_offset = line_reader_offset(corpus->reader);
	corpus->counts.lines += !continues;
}

/* Adds a line, or a piece of a long one, to the batch being filled; *out_full: the batch ends with it. */
static enum status add_line(struct corpus *corpus, const char *line, size_t size, bool continues, bool *out_full)
{
	struct buffer *raw = &corpus->filling->raw;
	size_t begin = 0, end = size;

	if (!continues && !corpus->within_line)
		utf8_trim(line, &begin, &end);
	corpus->blank_lines = begin == end && !corpus->within_line ? corpus->blank_lines + 1 : 0;
	corpus->within_line = continues;
	*out_full = false;
	if (corpus->blank_lines > BLANK_LINES) {
		corpus->blank_lines = BLANK_LINES + 1;
		return OK;
	}
	buffer_append(raw, line, size);
	if (!continues)
		buffer_char(raw, '\n');
	TRY(buffer_status(raw));
	/* A batch ends between the lines of a paragraph only if there is no better place. */
	bool good = !continues && (corpus->form != TEXT_FORM_WRAPPED || corpus->blank_lines > 0);
	*out_full = continues || (good && raw->size >= TEXT_BATCH_BYTES) || raw->size >= LINES_LIMIT;
	corpus->goes_on = *out_full && !good;
	return OK;
}

/* Reads lines of the open file until a batch is full or the file ends. */
static enum status read_lines(struct corpus *corpus)
{
	for (bool full = false; !full;) {
		const char *line;
		size_t size;
		bool continues, end_of_file;
		TRY(line_reader_next(corpus->reader, &line, &size, &continues, &end_of_file));
		if (end_of_file) {
			TRY(check_file(corpus, corpus->next_file - 1));
			submit_batch(corpus, true);
			close_file(corpus);
			return OK;
		}
		count_line(corpus, continues);
		if (corpus->input == INPUT_GUTENBERG && !gutenberg_line(&corpus->gutenberg, &line, &size))
			continue;
		TRY(add_line(corpus, line, size, continues, &full));
	}
	submit_batch(corpus, false);
	return OK;
}

/* A file with records, but none of them usable, must be a mistake of the user; JSON with few of them probably is, too. */
static enum status check_records(struct corpus *corpus)
{
	char without[FORMAT_BYTES], all[FORMAT_BYTES];
	if (corpus->input == INPUT_JSON && corpus->file_used > 0 && !corpus->settings.quiet && corpus->notices < NOTICES_MOST &&
	    corpus->file_used < corpus->file_records - corpus->file_records / TEXTLESS_SHARE)
		log_warning("'%s': %s of its %s records have no text under \"%s\" and are left out%s", corpus->path,
			    format_count(without, corpus->file_records - corpus->file_used),
			    format_count(all, corpus->file_records), corpus->text_key,
			    ++corpus->notices == NOTICES_MOST ? "; further files of this sort are not named" : "");
	if (corpus->file_used > 0 || corpus->file_records == 0)
		return OK;
	if (corpus->input == INPUT_JSON) {
		enum status status =
			error_set(ERR_DATA, "'%s': none of its records has a text under \"%s\"", corpus->path, corpus->text_key);
		if (corpus->keys.size > 0)
			error_hint("give the key of the text with --text_key; the keys with text are %s",
				   buffer_string(&corpus->keys));
		else
			error_hint("give the key of the text with --text_key");
		return status;
	}
	if (corpus->input == INPUT_WARC)
		return error_hinted(error_set(ERR_DATA, "'%s': none of its records is plain text", corpus->path),
				    "give the crawl's WET files, which hold the text of its pages");
	return OK;
}

/* Feeds bytes of the open file to the reader of records until a batch is full or the file ends. */
static enum status read_records(struct corpus *corpus)
{
	while (corpus->filling->raw.size < TEXT_BATCH_BYTES) {
		const char *bytes;
		size_t size;
		TRY(line_reader_take(corpus->reader, &bytes, &size));
		corpus->counts.bytes += (int64_t)size;
		if (size == 0) {
			TRY(records_finish(corpus->records));
			TRY(check_records(corpus));
			TRY(check_file(corpus, corpus->next_file - 1));
			submit_batch(corpus, true);
			close_file(corpus);
			return OK;
		}
		TRY(records_feed(corpus->records, bytes, size));
	}
	submit_batch(corpus, false);
	return OK;
}

/* Reads as far ahead as there is room, from the open file and those that follow. */
static enum status read_ahead(struct corpus *corpus)
{
	for (;;) {
		enum status status = OK;
		if (!corpus->reader) {
			if (corpus->next_file == corpus->files.count)
				return OK;
			status = open_next_file(corpus);
		} else if (corpus->ahead_bytes > AHEAD_BYTES || !find_slot(corpus)) {
			return OK;
		} else {
			status = corpus->records ? read_records(corpus) : read_lines(corpus);
		}
		if (status == OK)
			continue;
		if (corpus->filling)
			submit_batch(corpus, true);
		TRY(give_up_file(corpus, status));
	}
}

/* Continues the document that the last batch left open with this batch, or ends it. */
static enum status join_document(struct corpus *corpus)
{
	struct document_builder *joined = &corpus->joined;
	const struct text_batch *batch = corpus->given;
	const struct document_builder *from = &batch->builder;

	if (builder_open_bytes(joined) == 0)
		return OK;
	if (from->anew)
		return builder_end(joined);
	if (from->document_count > 0)
		TRY(builder_append(joined, from, corpus->next_document++));
	if (batch->last || from->document_count > 1 || (from->document_count == 1 && !from->unfinished))
		return builder_end(joined);
	if (builder_open_bytes(joined) < DOCUMENT_LIMIT)
		return OK;
	corpus->counts.document_cuts++;
	return builder_end(joined);
}

/* Takes the next converted batch, whose documents are then given out. */
static enum status take_batch(struct corpus *corpus)
{
	struct text_batch *batch = corpus->given = work_line_take(corpus->line);
	if (!batch)
		return OK;
	corpus->next_document = 0;
	corpus->given_form = found_form(batch->input, batch->form);
	memcpy(corpus->given_reason, batch->reason, sizeof batch->reason);
	if (batch->goes_on)
		text_batch_go_on(batch, &corpus->lines);
	if (batch->status != OK)
		return error_restore(&batch->error);
	if (batch->input > INPUT_GUTENBERG)
		return builder_open_bytes(&corpus->joined) > 0 ? builder_end(&corpus->joined) : OK;
	text_batch_stop(batch, &corpus->lines);
	return join_document(corpus);
}

static void put_batch_back(struct corpus *corpus)
{
	const struct corpus_counts *from = &corpus->given->counts;
	struct corpus_counts *to = &corpus->counts;

	to->sentences += from->sentences;
	to->nul_bytes += from->nul_bytes;
	to->invalid_utf8_bytes += from->invalid_utf8_bytes;
	to->sentence_cuts += from->sentence_cuts;
	to->document_cuts += from->document_cuts;
	corpus->given_sentences += from->sentences;
	if (corpus->given->last) {
		to->empty_files += corpus->given_sentences == 0;
		corpus->given_sentences = 0;
	}
	corpus->ahead_bytes -= corpus->given->ahead_bytes;
	corpus->given = NULL;
	work_line_release(corpus->line);
}

static void give_document(struct corpus *corpus, const struct document_builder *builder, int64_t index, const char *path)
{
	const struct built_document *built = &builder->documents[index];
	corpus->document = (struct document){.path = path,
					     .text = builder->text + built->text_begin,
					     .text_size = built->text_size,
					     .sentences = builder->sentences + built->first_sentence,
					     .sentence_count = built->sentence_count};
	corpus->document.hash = hash64(corpus->document.text, corpus->document.text_size);
	corpus->counts.documents++;
}

/* Gives out the next document of the current batch, if there is one; one that continues beyond the batch is kept. */
static enum status next_of_batch(struct corpus *corpus, bool *out_given)
{
	const struct document_builder *from = &corpus->given->builder;

	*out_given = false;
	if (corpus->next_document == from->document_count)
		return OK;
	if (from->unfinished && corpus->next_document == from->document_count - 1) {
		corpus->joined_path = corpus->given->path;
		return builder_append(&corpus->joined, from, corpus->next_document++);
	}
	give_document(corpus, from, corpus->next_document++, corpus->given->path);
	*out_given = true;
	return OK;
}

enum status corpus_next(struct corpus *corpus, const struct document **out)
{
	struct document_builder *joined = &corpus->joined;

	*out = NULL;
	if (corpus->joined_given)
		builder_reset(joined);
	corpus->joined_given = false;
	for (;;) {
		bool given = false;
		if (joined->document_count > 0) {
			give_document(corpus, joined, 0, corpus->joined_path);
			corpus->joined_given = given = true;
		} else if (corpus->given) {
			TRY(next_of_batch(corpus, &given));
		}
		if (given) {
			*out = &corpus->document;
			return OK;
		}
		if (corpus->given && corpus->next_document == corpus->given->builder.document_count)
			put_batch_back(corpus);
		if (corpus->given)
			continue;
		if (corpus->pending == OK) {
			corpus->pending = read_ahead(corpus);
			if (corpus->pending != OK)
				corpus->pending_error = *error_last();
		}
		if (corpus->line)
			TRY(take_batch(corpus));
		if (corpus->given)
			continue;
		if (corpus->pending != OK)
			return error_restore(&corpus->pending_error);
		if (builder_open_bytes(joined) == 0)
			return check_files(corpus);
		TRY(builder_end(joined)); /* its file could not be read to the end */
	}
}
