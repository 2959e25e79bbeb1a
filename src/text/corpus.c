/* Files, one after the other, to documents. See corpus.h for what a document is, text_form.c for the forms.
 *
 * A file of text is read line by line into a document_builder. A file of records (dumps, JSON, WARC) is read
 * ahead into batches of records, which helper threads convert while earlier ones are given out
 * (base/work_line.h).
 */
#include "text/corpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/work_line.h"
#include "formats/records.h"
#include "formats/stream.h"
#include "text/document_builder.h"
#include "text/gutenberg.h"
#include "text/record_batch.h"
#include "text/utf8.h"

#define BEGINNING_BYTES ((size_t)1 << 20) /* looked at to find form and encoding */
#define NUL_SHARE 1000                    /* a binary file: more than one NUL in so many bytes */
#define INVALID_SHARE 10                  /* not UTF-8: more than one invalid byte in so many */
#define RECORD_LIMIT ((size_t)16 << 20)   /* a longer record becomes several */
#define AHEAD_BYTES ((int64_t)256 << 20)  /* of records read and not yet given out */
#define DAMAGE_SAID 5                     /* places told one by one */

struct corpus {
	struct name_list files;
	int64_t next_file;
	struct corpus_settings settings;
	bool quiet;
	bool form_said[TEXT_FORM_COUNT];
	struct corpus_counts counts;
	int64_t total_bytes, done_bytes; /* of all files; of those already closed */
	uint64_t fingerprint;

	/* The open file, at next_file - 1. */
	const char *path;
	struct line_reader *reader; /* NULL between files */
	enum input_form input;
	enum text_form form; /* found or asked for, of files of text */
	char reason[TEXT_FORM_REASON_BYTES];
	struct gutenberg gutenberg;
	int64_t file_offset; /* bytes of its text taken so far */
	struct records *records;
	struct wiki_names names;
	const char *text_key;

	/* Files of text. */
	struct document_builder builder;
	int64_t file_documents; /* given out, but for those in the builder */

	/* Files of records. */
	struct record_batch *batches;
	int batch_count;
	struct work_line *line;
	struct record_batch *filling, *given; /* being filled; whose documents are given out */
	struct buffer open_record;
	int64_t file_records, file_used; /* of the open file: all; those with text */
	int64_t given_sentences;         /* of the file whose batches are given out */
	int64_t ahead_bytes;
	bool ended;          /* no more files */
	enum status pending; /* an error met while reading ahead, for its turn */
	struct error pending_error;

	struct document document;
	int64_t next_document; /* of the builder or the batch given out */
};

static enum text_form found_form(enum input_form input, enum text_form form)
{
	return input == INPUT_TEXT ? form : (enum text_form)(TEXT_FORM_GUTENBERG + (input - INPUT_GUTENBERG));
}

enum text_form corpus_form(const struct corpus *corpus, const char **out_reason)
{
	*out_reason = corpus->given ? corpus->given->reason : corpus->reason;
	return found_form(corpus->given ? corpus->given->input : corpus->input, corpus->form);
}

const struct corpus_counts *corpus_counts(const struct corpus *corpus)
{
	return &corpus->counts;
}

int64_t corpus_total_bytes(const struct corpus *corpus)
{
	return corpus->total_bytes;
}

int64_t corpus_done_bytes(const struct corpus *corpus)
{
	return corpus->done_bytes +
	       (corpus->reader ? stream_position(line_reader_stream(corpus->reader)) : 0);
}

uint64_t corpus_fingerprint(const struct corpus *corpus)
{
	return corpus->fingerprint;
}

static void describe(struct buffer *out, int64_t count, const char *one, const char *many)
{
	char number[FORMAT_BYTES];
	if (count > 0)
		buffer_format(out, "%s%s %s", out->size ? ", " : "", format_count(number, count),
		              count == 1 ? one : many);
}

void corpus_describe_oddities(const struct corpus *corpus, struct buffer *out)
{
	const struct corpus_counts *counts = &corpus->counts;
	buffer_clear(out);
	describe(out, counts->empty_files, "file without text", "files without text");
	describe(out, counts->invalid_utf8_bytes, "byte that is not UTF-8", "bytes that are not UTF-8");
	describe(out, counts->nul_bytes, "NUL byte", "NUL bytes");
	describe(out, counts->damaged, "damaged place passed over", "damaged places passed over");
	describe(out, counts->sentence_cuts, "cut in a sentence over 64 KiB",
	         "cuts in sentences over 64 KiB");
	describe(out, counts->document_cuts, "cut in a document that is too large",
	         "cuts in documents that are too large");
}

/* Looks at every file before the first is read: what cannot be read is said now, not after an hour. */
static enum status inspect_files(struct corpus *corpus)
{
	for (int64_t i = 0; i < corpus->files.count; i++) {
		const char *path = corpus->files.names[i];
		uint64_t facts[3] = {hash64(path, strlen(path)), 0, 0};
		struct stat info;
		if (strcmp(path, "-") == 0) {
			corpus->total_bytes = -1;
		} else if (stat(path, &info) != 0) {
			return error_set_errno(ERR_USAGE, "cannot open '%s'", path);
		} else if (access(path, R_OK) != 0) {
			enum status status = error_set_errno(ERR_RESOURCE, "cannot read '%s'", path);
			error_hint("give this user the right to read it, or leave it out");
			return status;
		} else {
			if (!S_ISREG(info.st_mode))
				corpus->total_bytes = -1;
			else if (corpus->total_bytes >= 0)
				corpus->total_bytes += info.st_size;
			facts[1] = (uint64_t)info.st_size;
			facts[2] =
			        (uint64_t)info.st_mtim.tv_sec * 1000000000 + (uint64_t)info.st_mtim.tv_nsec;
		}
		corpus->fingerprint = hash64_combine(corpus->fingerprint, hash64(facts, sizeof facts));
	}
	return OK;
}

static int corpus_threads(const struct corpus *corpus)
{
	return corpus->settings.threads ? corpus->settings.threads : pool_available_cores();
}

/* Batches and the threads that work on them; made when the first file of records is met. */
static enum status open_line(struct corpus *corpus)
{
	int threads = corpus_threads(corpus);

	if (corpus->line)
		return OK;
	corpus->batch_count = threads > 1 ? 2 * threads + 1 : 1;
	TRY(memory_new(&corpus->batches, corpus->batch_count, sizeof *corpus->batches, "batches of records"));
	return work_line_open(&corpus->line, threads - 1, corpus->batches, corpus->batch_count,
	                      sizeof *corpus->batches, record_batch_convert);
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
	corpus->builder.counts = &corpus->counts;
	for (int64_t i = 0; i < pattern_count; i++)
		TRY_GOTO(path_expand(patterns[i], &corpus->files), failed);
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
		record_batch_release(&corpus->batches[i]);
	free(corpus->batches);
	records_close(corpus->records);
	line_reader_close(corpus->reader);
	name_list_release(&corpus->files);
	buffer_release(&corpus->open_record);
	builder_release(&corpus->builder);
	free(corpus);
}

/* Refuses what is no UTF-8 text. */
static enum status check_encoding(const char *path, const char *text, size_t size)
{
	size_t nuls = 0, even = 0, first = size;
	enum status status;

	for (const char *at = text, *end = text + size; (at = memchr(at, 0, (size_t)(end - at))); at++) {
		size_t offset = (size_t)(at - text);
		first = nuls++ ? first : offset;
		even += offset % 2 == 0;
	}
	bool marked = size >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
	if (nuls * NUL_SHARE > size || (marked && nuls > 0)) {
		status = error_set(
		        ERR_DATA,
		        "'%s': a binary file, not text: NUL at byte %zu (%zu in its first %zu bytes)", path,
		        first, nuls, size);
		/* UTF-16 of Western text has a NUL in every other byte, always the same one. */
		if (marked || (nuls * 5 > size && (even == 0 || even == nuls)))
			error_hint("it looks like UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`");
		else
			error_hint(
			        "leave it out, or extract its text first (a tar archive must be unpacked)");
		return status;
	}
	/* The look may have ended within a character. */
	int64_t invalid = utf8_count_invalid(text, size);
	if (invalid > 3 && (size_t)invalid * INVALID_SHARE > size) {
		size_t at = 0;
		for (uint32_t c = 0; at < size; at += utf8_decode(text + at, size - at, &c))
			if (c == UTF8_INVALID)
				break;
		status = error_set(
		        ERR_DATA,
		        "'%s': not UTF-8 text: %lld of its first %zu bytes, the first before byte %zu", path,
		        (long long)invalid, size, at);
		error_hint("convert it, for instance with `iconv -f GB18030 -t UTF-8` or `iconv -f LATIN1 -t "
		           "UTF-8`");
		return status;
	}
	return OK;
}

void corpus_quiet(struct corpus *corpus)
{
	corpus->quiet = true;
}

/* Damage at some place, described by error_last(): counted, or the error it is. */
static enum status meet_damage(void *context)
{
	struct corpus *corpus = context;

	if (!corpus->settings.skip_bad_records)
		return error_last()->status;
	if (corpus->counts.damaged++ < DAMAGE_SAID)
		log_warning("%s; passed over", error_last()->message);
	return OK;
}

/* Files of records: what their reader calls. */

static enum status begin_record(void *context)
{
	struct corpus *corpus = context;
	buffer_clear(&corpus->open_record);
	return OK;
}

/* Puts what there is of the record into the batch being filled. */
static enum status add_record(struct corpus *corpus, size_t size, const char *title)
{
	corpus->file_used++;
	corpus->ahead_bytes += (int64_t)size;
	return record_batch_add(corpus->filling, corpus->open_record.data, size, title);
}

static enum status take_text(void *context, const char *bytes, size_t size)
{
	struct corpus *corpus = context;
	struct buffer *record = &corpus->open_record;

	buffer_append(record, bytes, size);
	TRY(buffer_status(record));
	if (record->size < RECORD_LIMIT)
		return OK;
	/* Cut behind a line, else a word, else anywhere. */
	size_t cut = record->size;
	while (cut > record->size / 2 && record->data[cut - 1] != '\n')
		cut--;
	if (cut == record->size / 2)
		for (cut = record->size; cut > record->size / 2 && record->data[cut - 1] != ' ';)
			cut--;
	if (cut == record->size / 2)
		for (cut = record->size;
		     cut > record->size - 4 && ((unsigned char)record->data[cut - 1] & 0x80);)
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
	struct record_settings settings = {forms[corpus->input], corpus->path, corpus->settings.text_key};
	struct record_sink sink = {corpus, begin_record, take_text, end_record, meet_damage, take_namespace};

	if (!settings.text_key && corpus->input == INPUT_JSON)
		TRY(records_find_text_key(corpus->path, beginning, size, &settings.text_key));
	if (!settings.text_key)
		settings.text_key = "text";
	corpus->text_key = settings.text_key;
	corpus->names = (struct wiki_names){{0}, {0}, {0}};
	corpus->file_records = corpus->file_used = 0;
	corpus->filling = NULL;
	TRY(open_line(corpus));
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

/* A page of the web with its markup would be noise. */
static enum status refuse_markup(const char *path, const char *beginning, size_t size)
{
	static const char *const marks[] = {"<!doctype html", "<html"};
	size_t begin = 0, end = size;

	utf8_trim(beginning, &begin, &end);
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		size_t length = strlen(marks[i]);
		if (end - begin < length || strncasecmp(beginning + begin, marks[i], length) != 0)
			continue;
		enum status status = error_set(ERR_DATA, "'%s': an HTML page, not text: it begins with '%s'",
		                               path, marks[i]);
		error_hint("extract its text first, for instance with `lynx -dump` or trafilatura, or say "
		           "--input_form text");
		return status;
	}
	return OK;
}

static enum input_form find_input(const char *beginning, size_t size)
{
	static const enum input_form inputs[] = {[RECORDS_WIKI_XML] = INPUT_WIKI_XML,
	                                         [RECORDS_JSON] = INPUT_JSON,
	                                         [RECORDS_CIRRUS] = INPUT_CIRRUS,
	                                         [RECORDS_WIKIEXTRACTOR] = INPUT_WIKIEXTRACTOR,
	                                         [RECORDS_WARC] = INPUT_WARC};
	enum record_form form;

	if (records_recognise(beginning, size, &form))
		return inputs[form];
	return gutenberg_recognise(beginning, size) ? INPUT_GUTENBERG : INPUT_TEXT;
}

/* Finds or takes the form of lines of text. */
static enum status find_text_form(struct corpus *corpus, const char *beginning, size_t size)
{
	bool whole = size < BEGINNING_BYTES;

	corpus->form = corpus->settings.text_form;
	snprintf(corpus->reason, sizeof corpus->reason, "--text_form");
	corpus->builder.form = corpus->form;
	if (corpus->form == TEXT_FORM_AUTO) {
		if (corpus->input == INPUT_GUTENBERG) {
			size_t begin = gutenberg_begin(beginning, size);
			beginning += begin;
			size -= begin;
		}
		TRY(text_form_detect(beginning, size, whole, corpus->files.count, &corpus->form,
		                     corpus->reason));
		corpus->builder.form = corpus->form;
	}
	if (corpus->input == INPUT_GUTENBERG)
		snprintf(corpus->reason, sizeof corpus->reason, "%s; lines are %s",
		         input_reasons[INPUT_GUTENBERG], text_form_names[corpus->form]);
	return OK;
}

static enum status open_next_file(struct corpus *corpus)
{
	const char *beginning;
	size_t size;

	const char *path = corpus->files.names[corpus->next_file++];
	corpus->path = strcmp(path, "-") == 0 ? "standard input" : path;
	corpus->counts.files++;
	builder_reset(&corpus->builder);
	corpus->file_documents = 0;
	corpus->file_offset = 0;
	TRY(line_reader_open(&corpus->reader, path, LINE_LIMIT));
	TRY(stream_read_ahead(line_reader_stream(corpus->reader), corpus_threads(corpus)));
	TRY(line_reader_peek(corpus->reader, BEGINNING_BYTES, &beginning, &size));
	TRY(check_encoding(corpus->path, beginning, size));
	corpus->input = corpus->settings.input_form;
	if (corpus->input == INPUT_AUTO) {
		TRY(refuse_markup(corpus->path, beginning, size));
		corpus->input = find_input(beginning, size);
	}
	corpus->gutenberg = (struct gutenberg){0};
	if (corpus->input <= INPUT_GUTENBERG) {
		TRY(find_text_form(corpus, beginning, size));
	} else {
		TRY(open_records(corpus, beginning, size));
		snprintf(corpus->reason, sizeof corpus->reason, "%s", input_reasons[corpus->input]);
		if (corpus->input == INPUT_JSON)
			snprintf(corpus->reason, sizeof corpus->reason,
			         "JSON objects, the text under \"%.100s\"", corpus->text_key);
	}
	enum text_form found = found_form(corpus->input, corpus->form);
	bool asked = corpus->input <= INPUT_TEXT && corpus->settings.text_form != TEXT_FORM_AUTO;
	if (asked || corpus->quiet || corpus->form_said[found] || size == 0)
		log_detail("'%s' read as %s: %s", corpus->path, text_form_names[found], corpus->reason);
	else
		log_note("'%s' read as %s: %s", corpus->path, text_form_names[found], corpus->reason);
	corpus->form_said[found] = true;
	return OK;
}

static void close_file(struct corpus *corpus)
{
	corpus->done_bytes = corpus_done_bytes(corpus);
	line_reader_close(corpus->reader);
	corpus->reader = NULL;
	records_close(corpus->records);
	corpus->records = NULL;
}

/* A file that cannot be read on: passed over from there, if that is wanted. */
static enum status give_up_file(struct corpus *corpus, enum status status)
{
	if (status != ERR_DATA)
		return status;
	TRY(meet_damage(corpus));
	close_file(corpus);
	return OK;
}

/* Files of text */

static void count_line(struct corpus *corpus, const char *line, size_t size, bool continues)
{
	corpus->counts.bytes += line_reader_offset(corpus->reader) - corpus->file_offset;
	corpus->file_offset = line_reader_offset(corpus->reader);
	corpus->counts.lines += !continues;
	builder_count_bytes(&corpus->builder, line, size);
}

static enum status end_text_file(struct corpus *corpus)
{
	TRY(builder_end(&corpus->builder));
	corpus->counts.empty_files += corpus->file_documents + corpus->builder.document_count == 0;
	close_file(corpus);
	return OK;
}

/* Reads lines until a document is complete or the file ends. */
static enum status read_text(struct corpus *corpus)
{
	struct document_builder *builder = &corpus->builder;

	corpus->file_documents += builder->document_count;
	builder_reset(builder);
	corpus->next_document = 0;
	while (builder->document_count == 0 && corpus->reader) {
		const char *line;
		size_t size;
		bool continues, end_of_file;
		enum status status = line_reader_next(corpus->reader, &line, &size, &continues, &end_of_file);
		if (status != OK) {
			if (status == ERR_DATA && corpus->settings.skip_bad_records) {
				struct error error = *error_last();
				TRY(builder_end(builder));
				status = error_restore(&error);
			}
			return give_up_file(corpus, status);
		}
		if (end_of_file)
			return end_text_file(corpus);
		count_line(corpus, line, size, continues);
		if (corpus->input == INPUT_GUTENBERG && !gutenberg_line(&corpus->gutenberg, &line, &size))
			continue;
		TRY(builder_line(builder, line, size, continues));
	}
	return OK;
}

/* Files of records */

static void submit_batch(struct corpus *corpus, bool last)
{
	corpus->filling->last = last;
	corpus->filling->names = corpus->names;
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
	record_batch_reset(corpus->filling);
	corpus->filling->path = corpus->path;
	corpus->filling->input = corpus->input;
	corpus->filling->asked = corpus->settings.text_form;
	memcpy(corpus->filling->reason, corpus->reason, sizeof corpus->reason);
	return true;
}

/* A file of records without one that could be used is a mistake of whoever gave it. */
static enum status check_records(struct corpus *corpus)
{
	if (corpus->file_used > 0 || corpus->file_records == 0)
		return OK;
	if (corpus->input == INPUT_JSON) {
		enum status status = error_set(ERR_DATA, "'%s': none of its records has a text under \"%s\"",
		                               corpus->path, corpus->text_key);
		error_hint("give the key of the text with --text_key");
		return status;
	}
	if (corpus->input == INPUT_WARC) {
		enum status status =
		        error_set(ERR_DATA, "'%s': none of its records is plain text", corpus->path);
		error_hint("give the crawl's WET files, which hold the text of its pages");
		return status;
	}
	return OK;
}

/* Feeds the open file of records until a batch is full or the file ends. */
static enum status read_records(struct corpus *corpus)
{
	while (corpus->filling->raw.size < BATCH_BYTES) {
		const char *bytes;
		size_t size;
		TRY(line_reader_take(corpus->reader, &bytes, &size));
		corpus->counts.bytes += (int64_t)size;
		if (size == 0) {
			TRY(records_finish(corpus->records));
			TRY(check_records(corpus));
			submit_batch(corpus, true);
			close_file(corpus);
			return OK;
		}
		TRY(records_feed(corpus->records, bytes, size));
	}
	submit_batch(corpus, false);
	return OK;
}

/* Reads as far ahead as there is room: batches of the open file of records, and of those that follow. */
static enum status read_ahead(struct corpus *corpus)
{
	for (;;) {
		enum status status = OK;
		if (!corpus->reader) {
			if (corpus->next_file == corpus->files.count)
				return OK;
			status = open_next_file(corpus);
		} else if (!corpus->records) {
			return OK; /* text: read when its turn comes */
		} else if (corpus->ahead_bytes > AHEAD_BYTES || !find_slot(corpus)) {
			return OK;
		} else {
			status = read_records(corpus);
		}
		if (status == OK)
			continue;
		if (corpus->filling)
			submit_batch(corpus, true);
		TRY(give_up_file(corpus, status));
	}
}

/* Gives out the next batch that is done. */
static enum status take_batch(struct corpus *corpus)
{
	corpus->given = work_line_take(corpus->line);
	if (!corpus->given)
		return OK;
	corpus->next_document = 0;
	return corpus->given->status == OK ? OK : error_restore(&corpus->given->error);
}

static void put_batch_back(struct corpus *corpus)
{
	const struct corpus_counts *from = &corpus->given->counts;
	struct corpus_counts *to = &corpus->counts;

	to->documents += from->documents;
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
	for (int64_t i = 0; i < corpus->given->record_count; i++)
		corpus->ahead_bytes -= (int64_t)corpus->given->records[i].size;
	corpus->given = NULL;
	work_line_release(corpus->line);
}

static void give_document(struct corpus *corpus, const struct document_builder *builder, const char *path)
{
	const struct built_document *built = &builder->documents[corpus->next_document++];
	corpus->document = (struct document){.path = path,
	                                     .text = builder->text + built->text_begin,
	                                     .text_size = built->text_size,
	                                     .sentences = builder->sentences + built->first_sentence,
	                                     .sentence_count = built->sentence_count};
	corpus->document.hash = hash64(corpus->document.text, corpus->document.text_size);
}

enum status corpus_next(struct corpus *corpus, const struct document **out)
{
	*out = NULL;
	for (;;) {
		const struct document_builder *source =
		        corpus->given ? &corpus->given->builder : &corpus->builder;
		if (corpus->next_document < source->document_count) {
			give_document(corpus, source, corpus->given ? corpus->given->path : corpus->path);
			*out = &corpus->document;
			return OK;
		}
		if (corpus->given)
			put_batch_back(corpus);
		if (corpus->pending == OK) {
			corpus->pending = read_ahead(corpus);
			if (corpus->pending != OK)
				corpus->pending_error = *error_last();
		}
		if (corpus->line) {
			TRY(take_batch(corpus));
			if (corpus->given)
				continue;
		}
		if (corpus->pending != OK)
			return error_restore(&corpus->pending_error);
		if (!corpus->reader)
			return OK;
		TRY(read_text(corpus));
	}
}
