/* Files, one after the other, to documents. See corpus.h for what a document is, text_form.c for the forms.
 *
 * Lines come from a line_reader that cuts them at a megabyte. Running text collects in `paragraph` until its
 * line, block or megabyte is full, then goes through sentences_split; of a paragraph that goes on, the last
 * sentence waits for its rest.
 */
#include "text/corpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "formats/stream.h"
#include "text/utf8.h"

#define BEGINNING_BYTES ((size_t)1 << 20) /* looked at to find form and encoding */
#define LINE_LIMIT ((size_t)1 << 20)
#define SENTENCE_LIMIT ((size_t)64 << 10)
#define DOCUMENT_LIMIT ((size_t)64 << 20)
#define CHAPTER_LINES 3  /* blank lines in a row that end a document of wrapped text */
#define NUL_SHARE 1000   /* a binary file: more than one NUL in so many bytes */
#define INVALID_SHARE 10 /* not UTF-8: more than one invalid byte in so many */

struct corpus {
	struct name_list files;
	int64_t next_file;
	enum text_form asked, form;
	char reason[TEXT_FORM_REASON_BYTES];
	bool quiet;
	bool form_said[TEXT_FORM_DOCUMENTS + 1];
	struct line_reader *reader; /* of the file at next_file - 1; NULL between files */
	int blank_lines;            /* in a row before this line, in wrapped text */
	bool within_line;           /* the next piece goes on with a line already begun */
	int64_t file_sentences;     /* of this file so far */
	int64_t file_offset;        /* bytes of its text taken so far */
	struct buffer paragraph;
	struct document document;
	int64_t text_capacity, sentence_capacity;
	struct corpus_counts counts;
	int64_t total_bytes, done_bytes; /* of all files; of those already closed */
	uint64_t fingerprint;
};

enum text_form corpus_form(const struct corpus *corpus, const char **out_reason)
{
	*out_reason = corpus->reason;
	return corpus->form;
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
	describe(out, counts->sentence_cuts, "cut in a sentence over 64 KiB",
	         "cuts in sentences over 64 KiB");
	describe(out, counts->document_cuts, "cut in a document over 64 MiB",
	         "cuts in documents over 64 MiB");
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

enum status corpus_open(struct corpus **out, const char *const *patterns, int64_t pattern_count,
                        enum text_form form)
{
	struct corpus *corpus;
	enum status status = OK;

	*out = NULL;
	TRY(memory_new(&corpus, 1, sizeof *corpus, "corpus"));
	corpus->asked = form;
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
	line_reader_close(corpus->reader);
	name_list_release(&corpus->files);
	buffer_release(&corpus->paragraph);
	free(corpus->document.text);
	free(corpus->document.sentences);
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

static enum status open_next_file(struct corpus *corpus)
{
	const char *beginning;
	size_t size;

	const char *path = corpus->files.names[corpus->next_file++];
	TRY(line_reader_open(&corpus->reader, path, LINE_LIMIT));
	corpus->document.path = strcmp(path, "-") == 0 ? "standard input" : path;
	corpus->counts.files++;
	corpus->within_line = false;
	corpus->blank_lines = 0;
	corpus->file_sentences = 0;
	corpus->file_offset = 0;
	TRY(line_reader_peek(corpus->reader, BEGINNING_BYTES, &beginning, &size));
	TRY(check_encoding(corpus->document.path, beginning, size));
	corpus->form = corpus->asked;
	snprintf(corpus->reason, sizeof corpus->reason, "--text_form");
	if (corpus->asked == TEXT_FORM_AUTO) {
		TRY(text_form_detect(beginning, size, size < BEGINNING_BYTES, corpus->files.count,
		                     &corpus->form, corpus->reason));
		if (!corpus->quiet && !corpus->form_said[corpus->form] && size > 0)
			log_note("'%s' read as %s: %s", corpus->document.path, text_form_names[corpus->form],
			         corpus->reason);
		else
			log_detail("'%s' read as %s: %s", corpus->document.path,
			           text_form_names[corpus->form], corpus->reason);
		corpus->form_said[corpus->form] = true;
	}
	return OK;
}

void corpus_quiet(struct corpus *corpus)
{
	corpus->quiet = true;
}

static void close_file(struct corpus *corpus)
{
	corpus->done_bytes = corpus_done_bytes(corpus);
	corpus->counts.empty_files += corpus->file_sentences == 0;
	line_reader_close(corpus->reader);
	corpus->reader = NULL;
}

/* Where to cut a sentence of more than SENTENCE_LIMIT bytes: after a space if there is one, else at a
 * character. */
static size_t cut_point(const char *text)
{
	for (size_t at = SENTENCE_LIMIT; at > SENTENCE_LIMIT / 2; at--)
		if (text[at - 1] == ' ' || text[at - 1] == '\t')
			return at;
	size_t at = SENTENCE_LIMIT;
	while (at > SENTENCE_LIMIT - 4 && ((unsigned char)text[at] & 0xC0) == 0x80)
		at--;
	return at;
}

static enum status append_sentence(struct corpus *corpus, const char *text, size_t size);

/* Appends pieces of [*begin, end) and moves *begin until no more than SENTENCE_LIMIT bytes are left. */
static enum status append_pieces(struct corpus *corpus, const char *text, size_t *begin, size_t end)
{
	while (end - *begin > SENTENCE_LIMIT) {
		size_t cut = cut_point(text + *begin);
		corpus->counts.sentence_cuts++;
		TRY(append_sentence(corpus, text + *begin, cut));
		*begin += cut;
	}
	return OK;
}

static enum status append_sentence(struct corpus *corpus, const char *text, size_t size)
{
	struct document *document = &corpus->document;
	size_t begin = 0, end = size;

	utf8_trim(text, &begin, &end);
	if (begin == end)
		return OK;
	if (end - begin > SENTENCE_LIMIT) {
		TRY(append_pieces(corpus, text, &begin, end));
		return append_sentence(corpus, text + begin, end - begin);
	}
	TRY(memory_grow(&document->text, &corpus->text_capacity,
	                (int64_t)(document->text_size + 1 + end - begin), 1, "text of a document"));
	TRY(memory_grow(&document->sentences, &corpus->sentence_capacity, document->sentence_count + 1,
	                sizeof *document->sentences, "sentences of a document"));
	if (document->sentence_count > 0)
		document->text[document->text_size++] = '\n';
	memcpy(document->text + document->text_size, text + begin, end - begin);
	document->sentences[document->sentence_count].begin = document->text_size;
	document->text_size += end - begin;
	document->sentences[document->sentence_count++].end = document->text_size;
	corpus->counts.sentences++;
	corpus->file_sentences++;
	return OK;
}

/* Appends the sentences of a running text as they are found, each when the next begins. */
struct sentence_sink {
	struct corpus *corpus;
	const char *text;
	size_t begin, end; /* of the sentence that waits */
};

static enum status take_sentence(void *context, size_t begin, size_t end)
{
	struct sentence_sink *sink = context;
	if (sink->end > sink->begin)
		TRY(append_sentence(sink->corpus, sink->text + sink->begin, sink->end - sink->begin));
	sink->begin = begin;
	sink->end = end;
	return OK;
}

static enum status append_running_text(struct corpus *corpus, const char *text, size_t size)
{
	struct sentence_sink sink = {corpus, text, 0, 0};
	TRY(sentences_split(text, size, take_sentence, &sink));
	return take_sentence(&sink, 0, 0);
}

/* Ends the paragraph (`finished`), or makes room in one that has grown large. */
static enum status flush_paragraph(struct corpus *corpus, bool finished)
{
	struct buffer *paragraph = &corpus->paragraph;
	struct sentence_sink sink = {corpus, buffer_string(paragraph), 0, 0};

	TRY(buffer_status(paragraph));
	if (finished) {
		TRY(append_running_text(corpus, buffer_string(paragraph), paragraph->size));
		buffer_clear(paragraph);
		return OK;
	}
	TRY(sentences_split(sink.text, paragraph->size, take_sentence, &sink));
	/* The last sentence may go on; where there are no sentences, text passes in sentences of the largest
	 * size. */
	size_t keep = sink.begin;
	TRY(append_pieces(corpus, sink.text, &keep, paragraph->size));
	memmove(paragraph->data, paragraph->data + keep, paragraph->size - keep);
	paragraph->size -= keep;
	return OK;
}

/* Joins a line of wrapped text to its paragraph: with a space, except after a hyphen ("well-" "known",
 * "word--" "word") and between East Asian characters. */
static void join_line(struct buffer *paragraph, const char *line, size_t size)
{
	if (paragraph->size > 0) {
		uint32_t before, after;
		utf8_decode_last(paragraph->data, paragraph->size, &before);
		utf8_decode(line, size, &after);
		bool east_asian = before >= 0x2E80 && before <= 0xFF60 && before != UTF8_INVALID &&
		                  after >= 0x2E80 && after <= 0xFF60;
		if (before != '-' && !east_asian)
			buffer_char(paragraph, ' ');
	}
	buffer_append(paragraph, line, size);
}

/* Takes one line (or piece of a long one); *out_ended: it ended the document. */
static enum status take_line(struct corpus *corpus, const char *line, size_t size, bool continues,
                             bool *out_ended)
{
	struct buffer *paragraph = &corpus->paragraph;
	bool long_line = continues || corpus->within_line, first_piece = !corpus->within_line;
	size_t begin = 0, end = size;

	utf8_trim(line, &begin, &end);
	bool blank = begin == end && !long_line;
	*out_ended = false;
	corpus->within_line = continues;
	if (long_line) {
		/* Running text whatever the form: no sentence fills a megabyte. */
		if (first_piece && paragraph->size > 0)
			buffer_char(paragraph, ' ');
		buffer_append(paragraph, line, size);
		TRY(flush_paragraph(corpus, !continues && corpus->form != TEXT_FORM_WRAPPED));
		*out_ended = !continues && corpus->form == TEXT_FORM_DOCUMENTS;
		return OK;
	}
	switch (corpus->form) {
	case TEXT_FORM_SENTENCES:
		*out_ended = blank;
		return append_sentence(corpus, line + begin, end - begin);
	case TEXT_FORM_PARAGRAPHS:
		*out_ended = blank;
		return append_running_text(corpus, line + begin, end - begin);
	case TEXT_FORM_DOCUMENTS:
		*out_ended = !blank;
		return append_running_text(corpus, line + begin, end - begin);
	case TEXT_FORM_WRAPPED:
		corpus->blank_lines = blank ? corpus->blank_lines + 1 : 0;
		if (blank) {
			*out_ended = corpus->blank_lines == CHAPTER_LINES;
			return flush_paragraph(corpus, true);
		}
		join_line(paragraph, line + begin, end - begin);
		return paragraph->size > LINE_LIMIT ? flush_paragraph(corpus, false) : OK;
	case TEXT_FORM_AUTO:
		break;
	}
	BUG_IF(corpus->form == TEXT_FORM_AUTO);
	return OK;
}

static void count_line(struct corpus *corpus, const char *line, size_t size, bool continues)
{
	corpus->counts.bytes += line_reader_offset(corpus->reader) - corpus->file_offset;
	corpus->file_offset = line_reader_offset(corpus->reader);
	corpus->counts.lines += !continues;
	corpus->counts.invalid_utf8_bytes += utf8_count_invalid(line, size);
	for (const char *at = line, *end = line + size; (at = memchr(at, 0, (size_t)(end - at))); at++)
		corpus->counts.nul_bytes++;
}

enum status corpus_next(struct corpus *corpus, const struct document **out)
{
	struct document *document = &corpus->document;
	bool ended = false;

	*out = NULL;
	document->text_size = 0;
	document->sentence_count = 0;
	while (!ended || document->sentence_count == 0) {
		const char *line;
		size_t size;
		bool continues, end_of_file;

		if (!corpus->reader) {
			if (corpus->next_file == corpus->files.count)
				return OK;
			TRY(open_next_file(corpus));
		}
		TRY(line_reader_next(corpus->reader, &line, &size, &continues, &end_of_file));
		if (end_of_file) {
			TRY(flush_paragraph(corpus, true));
			close_file(corpus);
			ended = true;
			continue;
		}
		count_line(corpus, line, size, continues);
		TRY(take_line(corpus, line, size, continues, &ended));
		if (document->text_size >= DOCUMENT_LIMIT) {
			corpus->counts.document_cuts++;
			ended = true;
		}
	}
	document->hash = hash64(document->text, document->text_size);
	corpus->counts.documents++;
	*out = document;
	return OK;
}
