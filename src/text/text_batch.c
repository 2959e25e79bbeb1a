/* Converts a batch of lines or records to documents. */
#include "text/text_batch.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/utf8.h"

#define SHORT_LINE 100          /* in bytes; shorter lines of web pages that do not end a sentence are menus and captions */
#define LOOK ((size_t)64 << 10) /* how much of a text is examined to find out whether it is wrapped */

void text_batch_reset(struct text_batch *batch)
{
	buffer_clear(&batch->raw);
	batch->record_count = 0;
	batch->ahead_bytes = 0;
	batch->first = batch->last = batch->goes_on = false;
	batch->status = OK;
	batch->counts = (struct corpus_counts){0};
	builder_reset(&batch->builder);
}

void text_batch_release(struct text_batch *batch)
{
	buffer_release(&batch->raw);
	buffer_release(&batch->text);
	free(batch->records);
	builder_release(&batch->builder);
	wiki_scratch_release(&batch->wiki);
}

enum status text_batch_add(struct text_batch *batch, const char *text, size_t size, const char *title)
{
	TRY(memory_grow(&batch->records, &batch->record_capacity, batch->record_count + 1, sizeof *batch->records, "records"));
	struct raw_record *record = &batch->records[batch->record_count++];
	record->begin = batch->raw.size;
	record->size = size;
	buffer_append(&batch->raw, text, size);
	record->title_begin = batch->raw.size;
	record->title_size = title ? strlen(title) : 0;
	buffer_append(&batch->raw, title ? title : "", record->title_size);
	return buffer_status(&batch->raw);
}

/* Skips the first line if it is the title. */
static size_t skip_title(const char *text, size_t size, const char *title, size_t title_size)
{
	size_t begin = 0;
	while (begin < size && (text[begin] == '\n' || text[begin] == ' ' || text[begin] == '\r'))
		begin++;
	size_t end = begin + title_size;
	if (title_size == 0 || size < end || memcmp(text + begin, title, title_size) != 0)
		return 0;
	while (end < size && (text[end] == ' ' || text[end] == '\r' || text[end] == '.'))
		end++;
	return end == size || text[end] == '\n' ? end : 0;
}

static bool line_is_prose(const char *line, size_t size)
{
	if (size >= SHORT_LINE)
		return true;
	while (size > 0) {
		uint32_t c;
		size -= utf8_decode_last(line, size, &c);
		if (c == '"' || c == '\'' || c == ')' || c == 0x2019 || c == 0x201D || c == 0xBB || c == 0x300D || c == ' ' ||
		    c == '\r')
			continue;
		return c == '.' || c == '!' || c == '?' || c == 0x2026 || c == 0x3002 || c == 0xFF01 || c == 0xFF1F ||
		       c == 0x0964 || c == 0x061F || c == 0x06D4;
	}
	return false;
}

/* Appends the lines of a web page that are prose. */
static void keep_prose(const char *text, size_t size, struct buffer *out)
{
	for (size_t at = 0; at < size;) {
		const char *newline = memchr(text + at, '\n', size - at);
		size_t end = newline ? (size_t)(newline - text) : size;
		if (line_is_prose(text + at, end - at)) {
			buffer_append(out, text + at, end - at);
			buffer_char(out, '\n');
		}
		at = end + 1;
	}
}

static enum status convert(struct text_batch *batch, const struct raw_record *record)
{
	struct document_builder *builder = &batch->builder;
	const char *text = buffer_string(&batch->raw) + record->begin;
	size_t size = record->size;
	bool wrapped = false;

	buffer_clear(&batch->text);
	if (batch->input == INPUT_WIKI_XML) {
		builder_count_bytes(builder, text, size);
		TRY(wiki_text(text, size, &batch->names, &batch->wiki, &batch->text));
		text = buffer_string(&batch->text);
		size = batch->text.size;
		builder->form = TEXT_FORM_PARAGRAPHS;
	} else {
		size_t begin = skip_title(text, size, buffer_string(&batch->raw) + record->title_begin, record->title_size);
		text += begin;
		size -= begin;
		if (batch->asked == TEXT_FORM_AUTO && (batch->input == INPUT_JSON || batch->input == INPUT_WARC))
			TRY(text_is_wrapped(text, size < LOOK ? size : LOOK, &wrapped));
		if (batch->input == INPUT_WARC && batch->asked == TEXT_FORM_AUTO && !wrapped) {
			keep_prose(text, size, &batch->text);
			TRY(buffer_status(&batch->text));
			text = buffer_string(&batch->text);
			size = batch->text.size;
		}
		builder->form = batch->asked != TEXT_FORM_AUTO ? batch->asked
				: wrapped                      ? TEXT_FORM_WRAPPED
							       : TEXT_FORM_PARAGRAPHS;
	}
	TRY(builder_text(builder, text, size));
	return builder_end(builder);
}

/* Makes documents from lines. The last one stays open unless the file ends. */
static enum status convert_lines(struct text_batch *batch)
{
	struct document_builder *builder = &batch->builder;
	const char *raw = buffer_string(&batch->raw);
	size_t size = batch->raw.size;

	builder->form = batch->form;
	builder->anew |= batch->first;
	builder_count_bytes(builder, raw, size);
	for (size_t at = 0; at < size;) {
		const char *newline = memchr(raw + at, '\n', size - at);
		size_t end = newline ? (size_t)(newline - raw) : size;
		TRY(builder_line(builder, raw + at, end - at, newline == NULL));
		at = end + 1;
	}
	return batch->last ? builder_end(builder) : builder_pause(builder);
}

static void run(struct text_batch *batch)
{
	batch->builder.counts = &batch->counts;
	batch->builder.whole = batch->input > INPUT_GUTENBERG;
	if (batch->input <= INPUT_GUTENBERG)
		batch->status = convert_lines(batch);
	for (int64_t i = 0; i < batch->record_count && batch->status == OK; i++)
		batch->status = convert(batch, &batch->records[i]);
	if (batch->status != OK)
		batch->error = *error_last();
}

void text_batch_convert(void *context)
{
	struct text_batch *batch = context;
	if (!batch->goes_on)
		run(batch);
}

void text_batch_go_on(struct text_batch *batch, struct line_state *state)
{
	struct document_builder *builder = &batch->builder;
	struct buffer empty = builder->paragraph;
	builder->paragraph = state->paragraph;
	builder->within_line = state->within_line;
	builder->blank_lines = state->blank_lines;
	*state = (struct line_state){.paragraph = empty};
	run(batch);
}

void text_batch_stop(struct text_batch *batch, struct line_state *state)
{
	struct document_builder *builder = &batch->builder;
	struct buffer empty = state->paragraph;
	*state = (struct line_state){builder->paragraph, builder->within_line, builder->blank_lines};
	buffer_clear(&empty);
	builder->paragraph = empty;
}
