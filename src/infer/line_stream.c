/* Cuts files into chunks of lines and has helper threads prepare them ahead of the caller. */
#include "infer/line_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/work_line.h"
#include "formats/line_ends.h"
#include "formats/stream.h"
#include "formats/table.h"
#include "text/input_form.h"

/* Slots per helper: one chunk being prepared and one waiting. One more slot holds the chunk being answered. */
#define SLOTS_A_HELPER 2

struct line_stream {
	struct line_stream_settings settings;
	struct line_chunk *slots;
	int slot_count;
	struct work_line *line;
	struct line_chunk *taken;
	struct line_reader *reader; /* for file `place.file`; NULL: not open */
	struct line_place place;
	bool json_lines; /* whether that file has JSON lines */
	bool form_known; /* whether a line that is not blank has decided it */
	bool awaits_row; /* that line may be a header, and no other has followed */
	struct table_start table;
	int64_t stray_returns; /* CRs within its lines */
	const void *form;      /* found by begin_file() */
	int64_t bytes_before;  /* sizes of the files before it */
	int submitted;
	int64_t number;     /* number of the next chunk */
	enum status failed; /* failure met while reading ahead; reported when its turn comes */
	struct error error;
};

static void work_on_chunk(void *slot)
{
	struct line_chunk *chunk = slot;
	chunk->status = chunk->settings->work(chunk->settings->context, chunk);
	if (chunk->status != OK)
		chunk->error = *error_last();
}

enum status line_stream_open(struct line_stream **out, const struct line_stream_settings *settings)
{
	struct line_stream *stream;
	enum status status;
	*out = NULL;
	TRY(stream_check_paths(settings->paths, settings->path_count));
	TRY(memory_new(&stream, 1, sizeof *stream, "stream of lines"));
	stream->settings = *settings;
	stream->place.file = 0;
	stream->slot_count = SLOTS_A_HELPER * settings->helpers + 1;
	TRY_GOTO(memory_new(&stream->slots, stream->slot_count, sizeof *stream->slots, "chunks of lines"), fail);
	for (int i = 0; i < stream->slot_count; i++) {
		stream->slots[i].settings = &stream->settings;
		TRY_GOTO(memory_new(&stream->slots[i].own, 1, settings->own_bytes, "chunk of lines"), fail);
	}
	TRY_GOTO(work_line_open(&stream->line, settings->helpers, stream->slots, stream->slot_count, sizeof *stream->slots,
				work_on_chunk),
		 fail);
	*out = stream;
	return OK;

fail:
	line_stream_close(stream);
	return status;
}

enum status line_chunk_check(const struct line_chunk *chunk)
{
	for (int64_t i = 0; i < chunk->count; i++)
		if (chunk->lines[i].cut)
			return error_set(ERR_DATA, "'%s', line %lld: the line is longer than %zu bytes", chunk->path,
					 (long long)(chunk->first_line + i), chunk->settings->longest_line);
	return OK;
}

void line_stream_close(struct line_stream *stream)
{
	if (!stream)
		return;
	work_line_close(stream->line);
	for (int i = 0; stream->slots && i < stream->slot_count; i++) {
		struct line_chunk *chunk = &stream->slots[i];
		if (chunk->own && stream->settings.release_own)
			stream->settings.release_own(chunk->own);
		free(chunk->own);
		free(chunk->lines);
		buffer_release(&chunk->text);
	}
	line_reader_close(stream->reader);
	free(stream->slots);
	free(stream);
}

int64_t line_stream_size(const struct line_stream *stream)
{
	int64_t sum = 0;
	for (int64_t i = 0; i < stream->settings.path_count; i++) {
		int64_t size = file_size(stream->settings.paths[i]);
		if (size < 0)
			return 0;
		sum += size;
	}
	return sum;
}

static enum status open_file(struct line_stream *stream)
{
	const char *path = stream->settings.paths[stream->place.file];
	stream->place.line = stream->stray_returns = 0;
	stream->json_lines = stream->form_known = stream->awaits_row = false;
	stream->table = (struct table_start){.delimiter = 0};
	stream->form = NULL;
	return line_reader_open(&stream->reader, path, stream->settings.longest_line);
}

static size_t skip_blanks(const char *text, size_t size, size_t at)
{
	while (at < size && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r'))
		at++;
	return at;
}

/* Is a file's first line that is not blank the beginning of a JSON object, whole or damaged: a brace, and then a key or its end?
 */
static bool begins_json_object(const char *text, size_t size)
{
	size_t at = skip_blanks(text, size, 0);
	if (at == size || text[at] != '{')
		return false;
	at = skip_blanks(text, size, at + 1);
	return at < size && (text[at] == '"' || text[at] == '}');
}

/* The first line that is not blank shows the file's form. */
static void look_at_line(struct line_stream *stream, const char *text, size_t size)
{
	stream->awaits_row = false;
	if (stream->form_known)
		return;
	stream->form_known = true;
	stream->json_lines = begins_json_object(text, size);
	if (stream->json_lines || !stream->settings.header_names)
		return;
	table_look_at_first_line(&stream->table, text, size, stream->settings.header_names, stream->settings.given_names);
	stream->awaits_row = stream->table.may_be_header;
}

/* Appends the next line to the chunk, or only its beginning if it is too long. */
static enum status add_line(struct line_stream *stream, struct line_chunk *chunk, bool *out_end)
{
	const char *text;
	size_t size;
	bool continues;
	TRY(line_reader_next(stream->reader, &text, &size, &continues, out_end));
	if (*out_end)
		return OK;
	if (!continues)
		size = line_ends_trim(text, size);
	stream->stray_returns += line_ends_stray(text, size);
	TRY(memory_grow(&chunk->lines, &chunk->capacity, chunk->count + 1, sizeof *chunk->lines, "lines"));
	chunk->lines[chunk->count++] = (struct line){.begin = chunk->text.size, .size = size, .cut = continues};
	buffer_append(&chunk->text, text, size);
	buffer_char(&chunk->text, '\n');
	stream->place.line++;
	if (skip_blanks(text, size, 0) < size)
		look_at_line(stream, text, size);
	for (bool passed = false; continues && !passed; passed = !continues)
		TRY(line_reader_next(stream->reader, &text, &size, &continues, &passed));
	return buffer_status(&chunk->text);
}

static void close_file(struct line_stream *stream)
{
	const char *path = stream->settings.paths[stream->place.file];
	line_ends_warn(strcmp(path, "-") == 0 ? "standard input" : path, stream->stray_returns);
	stream->bytes_before += stream_position(line_reader_stream(stream->reader));
	line_reader_close(stream->reader);
	stream->reader = NULL;
	stream->place = (struct line_place){.file = stream->place.file + 1};
}

static bool is_before(struct line_place a, struct line_place b)
{
	return a.file < b.file || (a.file == b.file && a.line < b.line);
}

/* Files that end before the stream's beginning are not even opened. */
static void skip_files(struct line_stream *stream)
{
	while (!stream->reader && stream->place.file < stream->settings.begin.file) {
		int64_t size = file_size(stream->settings.paths[stream->place.file]);
		stream->bytes_before += size > 0 ? size : 0;
		stream->place.file++;
	}
}

/* A quoted field may contain line breaks: while the text ends inside one, more is added, within limits. */
static bool is_full(const struct line_stream *stream, const struct line_chunk *chunk)
{
	const struct line_stream_settings *settings = &stream->settings;
	const bool rows = settings->header_names && !stream->json_lines;
	if (chunk->count < settings->chunk_lines && chunk->text.size < settings->chunk_bytes)
		return false;
	return !rows || chunk->text.size >= 4 * settings->chunk_bytes ||
	       !table_ends_within_row(&stream->table, chunk->text.data, chunk->text.size);
}

/* Must more lines be waited for, because those of the chunk cannot be answered alone? */
static bool is_incomplete(const struct line_stream *stream, const struct line_chunk *chunk)
{
	const bool form_matters = stream->settings.header_names || stream->settings.begin_file;
	return (form_matters && !stream->form_known) || stream->awaits_row ||
	       table_ends_within_row(&stream->table, chunk->text.data, chunk->text.size);
}

/* Whether the chunk ends with the lines it has, because the stream begins after them or more would have to be waited for. */
static bool ends_early(const struct line_stream *stream, const struct line_chunk *chunk)
{
	const struct line_stream_settings *settings = &stream->settings;
	bool at_beginning = stream->place.file == settings->begin.file && stream->place.line == settings->begin.line;
	return chunk->count > 0 && (at_beginning || (line_reader_waits(stream->reader) && !is_incomplete(stream, chunk)));
}

/* The form of the file that the chunk begins. */
static enum status find_form(struct line_stream *stream, const struct line_chunk *chunk)
{
	const struct line_stream_settings *settings = &stream->settings;
	TRY(input_refuse_utf16(chunk->path, chunk->text.data, chunk->text.size));
	return settings->begin_file ? settings->begin_file(settings->context, chunk, &stream->form) : OK;
}

/* Fills a chunk with the next lines of one file. *out_any = false: no lines are left. */
static enum status fill_chunk(struct line_stream *stream, struct line_chunk *chunk, bool *out_any)
{
	const struct line_stream_settings *settings = &stream->settings;
	bool end = false;
	buffer_clear(&chunk->text);
	chunk->count = 0;
	*out_any = false;
	skip_files(stream);
	while (stream->place.file < settings->path_count && !*out_any) {
		if (!stream->reader)
			TRY(open_file(stream));
		const char *path = settings->paths[stream->place.file];
		chunk->path = strcmp(path, "-") == 0 ? "standard input" : path;
		chunk->first_line = stream->place.line + 1;
		chunk->begins_file = stream->place.line == 0;
		for (end = false; !end && !is_full(stream, chunk);) {
			if (ends_early(stream, chunk))
				break;
			TRY(add_line(stream, chunk, &end));
		}
		chunk->json_lines = stream->json_lines;
		chunk->end = stream->place;
		chunk->bytes = stream->bytes_before + stream_position(line_reader_stream(stream->reader));
		chunk->done = !is_before(settings->begin, chunk->end);
		if (chunk->begins_file && chunk->text.size > 0)
			TRY(find_form(stream, chunk));
		chunk->form = stream->form;
		/* Lines already done are delivered only if they are a file's first, which show its form. */
		*out_any = chunk->count > 0 && (!chunk->done || chunk->begins_file);
		if (!*out_any) {
			buffer_clear(&chunk->text);
			chunk->count = 0;
		}
		if (end)
			close_file(stream);
	}
	return OK;
}

/* Reads ahead into all free chunks, but never waits for input while a chunk is ready to be answered. */
static void read_ahead(struct line_stream *stream)
{
	struct line_chunk *chunk;
	bool any = true;
	while (stream->failed == OK && any && (chunk = work_line_free(stream->line)) != NULL) {
		if (stream->submitted > 0 && stream->reader && line_reader_waits(stream->reader))
			return;
		stream->failed = fill_chunk(stream, chunk, &any);
		if (stream->failed != OK)
			stream->error = *error_last();
		if (stream->failed == OK && any) {
			chunk->number = stream->number++;
			work_line_submit(stream->line);
			stream->submitted++;
		}
	}
}

enum status line_stream_next(struct line_stream *stream, struct line_chunk **out)
{
	if (stream->taken)
		work_line_release(stream->line);
	*out = stream->taken = NULL;
	read_ahead(stream);
	stream->taken = work_line_take(stream->line);
	if (!stream->taken)
		return stream->failed == OK ? OK : error_restore(&stream->error);
	stream->submitted--;
	*out = stream->taken;
	return stream->taken->status == OK ? OK : error_restore(&stream->taken->error);
}
