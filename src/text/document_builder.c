/* Collects lines into paragraphs, and splits them into sentences and documents. */
#include "text/document_builder.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/sentences.h"
#include "text/utf8.h"

#define SENTENCE_LIMIT ((size_t)64 << 10)
#define CHAPTER_LINES 3 /* consecutive blank lines that end a document of wrapped text */

void builder_reset(struct document_builder *builder)
{
	BUG_IF(builder->open_text != builder->text_size);
	builder->text_size = builder->open_text = 0;
	builder->sentence_count = builder->open_sentence = 0;
	builder->document_count = 0;
	builder->anew = builder->unfinished = false;
	builder->within_line = false;
	builder->blank_lines = 0;
	buffer_clear(&builder->paragraph);
}

void builder_release(struct document_builder *builder)
{
	free(builder->text);
	free(builder->sentences);
	free(builder->documents);
	buffer_release(&builder->paragraph);
	*builder = (struct document_builder){0};
}

/* Where to cut a sentence of more than SENTENCE_LIMIT bytes: after a space if there is one, else between
 * characters. */
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

static enum status append_sentence(struct document_builder *builder, const char *text, size_t size);

/* Appends pieces of [*begin, end), advancing *begin, until at most SENTENCE_LIMIT bytes are left. */
static enum status append_pieces(struct document_builder *builder, const char *text, size_t *begin, size_t end)
{
	while (end - *begin > SENTENCE_LIMIT) {
		size_t cut = cut_point(text + *begin);
		builder->counts->sentence_cuts++;
		TRY(append_sentence(builder, text + *begin, cut));
		*begin += cut;
	}
	return OK;
}

static enum status append_sentence(struct document_builder *builder, const char *text, size_t size)
{
	size_t begin = 0, end = size;

	utf8_trim(text, &begin, &end);
	if (begin == end)
		return OK;
	if (end - begin > SENTENCE_LIMIT) {
		TRY(append_pieces(builder, text, &begin, end));
		return append_sentence(builder, text + begin, end - begin);
	}
	TRY(memory_grow(&builder->text, &builder->text_capacity, builder->text_size + (int64_t)(1 + end - begin), 1,
			"text of a document"));
	TRY(memory_grow(&builder->sentences, &builder->sentence_capacity, builder->sentence_count + 1, sizeof *builder->sentences,
			"sentences of a document"));
	if (builder->sentence_count > builder->open_sentence)
		builder->text[builder->text_size++] = '\n';
	memcpy(builder->text + builder->text_size, text + begin, end - begin);
	struct sentence_bounds *sentence = &builder->sentences[builder->sentence_count++];
	sentence->begin = (size_t)(builder->text_size - builder->open_text);
	sentence->end = sentence->begin + (end - begin);
	builder->text_size += (int64_t)(end - begin);
	builder->counts->sentences++;
	return OK;
}

/* Appends the sentences of running text as they are found, each when the next one begins. */
struct sentence_sink {
	struct document_builder *builder;
	const char *text;
	size_t begin, end; /* of the sentence found last, not appended yet */
};

static enum status take_sentence(void *context, size_t begin, size_t end)
{
	struct sentence_sink *sink = context;
	if (sink->end > sink->begin)
		TRY(append_sentence(sink->builder, sink->text + sink->begin, sink->end - sink->begin));
	sink->begin = begin;
	sink->end = end;
	return OK;
}

static enum status append_running_text(struct document_builder *builder, const char *text, size_t size)
{
	struct sentence_sink sink = {builder, text, 0, 0};
	TRY(sentences_split(text, size, take_sentence, &sink));
	return take_sentence(&sink, 0, 0);
}

/* Appends the sentences of the paragraph: all of them if it is `finished`; otherwise all but the last, to make room. */
static enum status flush_paragraph(struct document_builder *builder, bool finished)
{
	struct buffer *paragraph = &builder->paragraph;
	struct sentence_sink sink = {builder, buffer_string(paragraph), 0, 0};

	TRY(buffer_status(paragraph));
	if (finished) {
		TRY(append_running_text(builder, buffer_string(paragraph), paragraph->size));
		buffer_clear(paragraph);
		return OK;
	}
	TRY(sentences_split(sink.text, paragraph->size, take_sentence, &sink));
	/* The last sentence may continue. If the text cannot be split, it is passed on in sentences of the largest
	 * size. */
	size_t keep = sink.begin;
	TRY(append_pieces(builder, sink.text, &keep, paragraph->size));
	memmove(paragraph->data, paragraph->data + keep, paragraph->size - keep);
	paragraph->size -= keep;
	return OK;
}

/* Joins a line of wrapped text to its paragraph: with a space, except after a hyphen ("well-" "known",
 * "word--" "word") and between Chinese or Japanese characters. */
static void join_line(struct buffer *paragraph, const char *line, size_t size)
{
	if (paragraph->size > 0) {
		uint32_t before, after;
		utf8_decode_last(paragraph->data, paragraph->size, &before);
		utf8_decode(line, size, &after);
		if (before != '-' && !(utf8_is_unspaced(before) && utf8_is_unspaced(after)))
			buffer_char(paragraph, ' ');
	}
	buffer_append(paragraph, line, size);
}

static enum status finish_document(struct document_builder *builder)
{
	if (builder->sentence_count == builder->open_sentence) {
		builder->anew |= builder->document_count == 0;
		return OK;
	}
	TRY(memory_grow(&builder->documents, &builder->document_capacity, builder->document_count + 1, sizeof *builder->documents,
			"documents"));
	builder->documents[builder->document_count++] =
		(struct built_document){(size_t)builder->open_text, (size_t)(builder->text_size - builder->open_text),
					builder->open_sentence, builder->sentence_count - builder->open_sentence};
	builder->open_text = builder->text_size;
	builder->open_sentence = builder->sentence_count;
	return OK;
}

/* Takes one line, or a piece of a long one; *out_ended: it ended the document. */
static enum status take_line(struct document_builder *builder, const char *line, size_t size, bool continues, bool *out_ended)
{
	struct buffer *paragraph = &builder->paragraph;
	bool long_line = continues || builder->within_line, first_piece = !builder->within_line;
	size_t begin = 0, end = size;

	utf8_trim(line, &begin, &end);
	bool blank = begin == end && !long_line;
	*out_ended = false;
	builder->within_line = continues;
	if (long_line) {
		builder->blank_lines = 0;
		/* Treated as running text whatever the form: no sentence is a megabyte long. */
		if (first_piece && paragraph->size > 0)
			buffer_char(paragraph, ' ');
		buffer_append(paragraph, line, size);
		TRY(flush_paragraph(builder, !continues && builder->form != TEXT_FORM_WRAPPED));
		*out_ended = !continues && builder->form == TEXT_FORM_DOCUMENTS;
		return OK;
	}
	switch (builder->form) {
	case TEXT_FORM_SENTENCES: *out_ended = blank; return append_sentence(builder, line + begin, end - begin);
	case TEXT_FORM_PARAGRAPHS: *out_ended = blank; return append_running_text(builder, line + begin, end - begin);
	case TEXT_FORM_DOCUMENTS: *out_ended = !blank; return append_running_text(builder, line + begin, end - begin);
	case TEXT_FORM_WRAPPED:
		builder->blank_lines = blank ? builder->blank_lines + 1 : 0;
		if (blank) {
			*out_ended = builder->blank_lines == CHAPTER_LINES;
			return flush_paragraph(builder, true);
		}
		join_line(paragraph, line + begin, end - begin);
		return paragraph->size > TEXT_LINE_LIMIT ? flush_paragraph(builder, false) : OK;
	default: break;
	}
	BUG_IF(builder->form == TEXT_FORM_AUTO || builder->form > TEXT_FORM_DOCUMENTS);
	return OK;
}

enum status builder_line(struct document_builder *builder, const char *line, size_t size, bool continues)
{
	bool ended;
	TRY(take_line(builder, line, size, continues, &ended));
	if (ended && (!builder->whole || builder->form == TEXT_FORM_DOCUMENTS))
		return finish_document(builder);
	if (builder_open_bytes(builder) < DOCUMENT_LIMIT)
		return OK;
	builder->counts->document_cuts++;
	return finish_document(builder);
}

void builder_count_bytes(struct document_builder *builder, const char *text, size_t size)
{
	builder->counts->invalid_utf8_bytes += utf8_count_invalid(text, size);
	for (const char *at = text, *end = text + size; (at = memchr(at, 0, (size_t)(end - at))); at++)
		builder->counts->nul_bytes++;
}

enum status builder_text(struct document_builder *builder, const char *text, size_t size)
{
	builder_count_bytes(builder, text, size);
	for (size_t at = 0; at < size;) {
		const char *newline = memchr(text + at, '\n', size - at);
		size_t end = newline ? (size_t)(newline - text) : size, piece = end - at;
		bool continues = piece > TEXT_LINE_LIMIT;
		if (continues) {
			piece = TEXT_LINE_LIMIT;
			while (piece > TEXT_LINE_LIMIT - 4 && ((unsigned char)text[at + piece] & 0xC0) == 0x80)
				piece--;
		}
		TRY(builder_line(builder, text + at, piece, continues));
		at += piece + !continues;
	}
	return OK;
}

enum status builder_end(struct document_builder *builder)
{
	builder->within_line = false;
	builder->blank_lines = 0;
	TRY(flush_paragraph(builder, true));
	return finish_document(builder);
}

enum status builder_pause(struct document_builder *builder)
{
	builder->unfinished = builder->sentence_count > builder->open_sentence;
	return builder->unfinished ? finish_document(builder) : OK;
}

enum status builder_append(struct document_builder *builder, const struct document_builder *from, int64_t index)
{
	const struct built_document *document = &from->documents[index];
	bool begun = builder_open_bytes(builder) > 0;
	TRY(memory_grow(&builder->text, &builder->text_capacity, builder->text_size + begun + (int64_t)document->text_size, 1,
			"text of a document"));
	TRY(memory_grow(&builder->sentences, &builder->sentence_capacity, builder->sentence_count + document->sentence_count,
			sizeof *builder->sentences, "sentences of a document"));
	if (begun)
		builder->text[builder->text_size++] = '\n';
	size_t base = builder_open_bytes(builder);
	memcpy(builder->text + builder->text_size, from->text + document->text_begin, document->text_size);
	builder->text_size += (int64_t)document->text_size;
	for (int64_t i = 0; i < document->sentence_count; i++) {
		struct sentence_bounds sentence = from->sentences[document->first_sentence + i];
		builder->sentences[builder->sentence_count++] =
			(struct sentence_bounds){base + sentence.begin, base + sentence.end};
	}
	return OK;
}

size_t builder_open_bytes(const struct document_builder *builder)
{
	return (size_t)(builder->text_size - builder->open_text);
}
