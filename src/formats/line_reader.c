/* The lines of a stream, in a buffer that holds at most one line (or the limit) in addition to what was read ahead. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/memory.h"
#include "formats/line_ends.h"
#include "formats/stream.h"

struct line_reader {
	struct stream *stream;
	size_t limit;
	char *buffer;
	int64_t capacity;
	size_t begin, end; /* of the bytes not yet returned */
	size_t searched;   /* no '\n' in [begin, searched) */
	int64_t offset;    /* of buffer[begin] in the decompressed stream */
	bool ended;        /* the stream has no more bytes */
	bool ends_known;   /* where lines end has been found out */
	bool ends_are_cr;  /* they end at CR, of which LF is made when bytes are read */
	bool after_cr;     /* the last byte read was one: an LF that follows belongs to it */
	bool standard_input;
	enum status failed; /* an error found while looking ahead, returned when its turn comes */
	struct error error;
};

enum status line_reader_open(struct line_reader **out, const char *path, size_t limit)
{
	struct line_reader *reader;

	BUG_IF(limit < 16);
	*out = NULL;
	TRY(memory_new(&reader, 1, sizeof *reader, "line reader"));
	reader->limit = limit;
	reader->standard_input = strcmp(path, "-") == 0;
	enum status status = memory_grow(&reader->buffer, &reader->capacity, STREAM_BLOCK_BYTES, 1, "line");
	if (status == OK)
		status = stream_open(&reader->stream, path);
	if (status != OK)
		line_reader_close(reader);
	else
		*out = reader;
	return status;
}

/* Makes LF of the CRs that end lines, in the bytes from `at`; an LF that follows a CR, even in the next block, goes with it. */
static void mend_bytes(struct line_reader *reader, size_t at)
{
	char *bytes = reader->buffer + at;
	if (at == reader->end)
		return;
	if (reader->after_cr && *bytes == '\n')
		memmove(bytes, bytes + 1, --reader->end - at);
	size_t size = reader->end - at;
	reader->after_cr = size > 0 && bytes[size - 1] == '\r';
	line_ends_mend(bytes, size);
}

/* Reads more bytes after those held; the buffer grows only when it is full. */
static enum status read_more(struct line_reader *reader)
{
	size_t held = reader->end - reader->begin;

	if (reader->failed != OK)
		return error_restore(&reader->error);
	if (reader->begin > 0 && (size_t)reader->capacity - reader->end < STREAM_BLOCK_BYTES) {
		memmove(reader->buffer, reader->buffer + reader->begin, held);
		reader->searched -= reader->begin;
		reader->begin = 0;
		reader->end = held;
	}
	TRY(memory_grow(&reader->buffer, &reader->capacity, (int64_t)(reader->end + STREAM_BLOCK_BYTES), 1, "line"));
	size_t count;
	TRY(stream_read(reader->stream, reader->buffer + reader->end, STREAM_BLOCK_BYTES, &count));
	size_t at = reader->end;
	reader->end += count;
	reader->ended = count == 0;
	if (reader->ends_are_cr)
		mend_bytes(reader, at);
	return OK;
}

enum status line_reader_begin_lines(struct line_reader *reader)
{
	while (!reader->ends_known) {
		size_t held = reader->end - reader->begin;
		const char *bytes = reader->buffer + reader->begin;
		reader->ends_known = reader->ended || held >= LINE_ENDS_BYTES || memchr(bytes, '\n', held);
		if (!reader->ends_known) {
			TRY(read_more(reader));
			continue;
		}
		if (reader->offset == 0 && held >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
			reader->searched = reader->begin += 3;
			reader->offset = 3;
		}
		reader->ends_are_cr = line_ends_are_cr(bytes, held, reader->ended);
		if (reader->ends_are_cr)
			mend_bytes(reader, reader->begin);
	}
	return OK;
}

enum status line_reader_peek(struct line_reader *reader, size_t count, const char **out_bytes, size_t *out_size)
{
	while (reader->end - reader->begin < count && !reader->ended) {
		enum status status = read_more(reader);
		if (status != OK && (status != ERR_DATA || reader->end == reader->begin))
			return status;
		if (status != OK) {
			reader->failed = status;
			reader->error = *error_last();
			break;
		}
	}
	size_t held = reader->end - reader->begin;
	*out_bytes = reader->buffer + reader->begin;
	*out_size = held < count ? held : count;
	return OK;
}

/* Where to cut a piece of at most `limit` bytes without splitting a UTF-8 character. */
static size_t character_boundary(const char *text, size_t limit)
{
	for (size_t back = 0; back < 4; back++)
		if (((unsigned char)text[limit - back] & 0xc0) != 0x80)
			return limit - back;
	return limit; /* not UTF-8 anyway */
}

enum status line_reader_next(struct line_reader *reader, const char **out_line, size_t *out_size, bool *out_continues,
			     bool *out_end)
{
	*out_line = "";
	*out_size = 0;
	*out_continues = *out_end = false;
	TRY(line_reader_begin_lines(reader));
	for (;;) {
		char *line = reader->buffer + reader->begin;
		size_t held = reader->end - reader->begin, size, used;
		size_t known = reader->searched - reader->begin;
		char *newline = held > known ? memchr(line + known, '\n', held - known) : NULL;

		if (newline && (size_t)(newline - line) <= reader->limit) {
			size = (size_t)(newline - line);
			used = size + 1;
			if (reader->ends_are_cr) /* a CR and its LF end one line, whether or not they came in one block */
				size = line_ends_trim(line, size);
		} else if (held > reader->limit) {
			size = used = character_boundary(line, reader->limit);
			*out_continues = true;
		} else if (reader->ended) {
			*out_end = held == 0;
			size = used = held;
		} else {
			reader->searched = reader->end;
			TRY(read_more(reader));
			continue;
		}
		*out_line = line;
		*out_size = size;
		reader->begin += used;
		reader->offset += (int64_t)used;
		/* After a cut the search starts again: the bytes after it may contain the newline already found. */
		reader->searched = reader->begin;
		return OK;
	}
}

enum status line_reader_take(struct line_reader *reader, const char **out_bytes, size_t *out_size)
{
	if (reader->begin == reader->end && !reader->ended)
		TRY(read_more(reader));
	*out_bytes = reader->buffer + reader->begin;
	*out_size = reader->end - reader->begin;
	reader->offset += (int64_t)*out_size;
	reader->begin = reader->searched = reader->end;
	return OK;
}

bool line_reader_waits(const struct line_reader *reader)
{
	size_t held = reader->end - reader->begin;
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	if (!reader->standard_input || reader->ended || reader->failed != OK || held > reader->limit)
		return false;
	return !memchr(reader->buffer + reader->begin, '\n', held) && poll(&input, 1, 0) == 0;
}

struct stream *line_reader_stream(struct line_reader *reader)
{
	return reader->stream;
}

int64_t line_reader_offset(const struct line_reader *reader)
{
	return reader->offset;
}

void line_reader_close(struct line_reader *reader)
{
	if (!reader)
		return;
	stream_close(reader->stream);
	free(reader->buffer);
	free(reader);
}
