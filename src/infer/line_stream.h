/* Lines of any number of files in chunks, which helper threads make ready (parse, tokenise) while earlier chunks are being
 * answered. Memory depends on neither the number of lines nor their length.
 *
 * A chunk is of one file. Where files are cut into chunks depends on their bytes alone; standard input is also cut where nothing
 * more has come yet, so that a program at the other end of a pipe gets its answers. */
#ifndef INFER_LINE_STREAM_H
#define INFER_LINE_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

/* A place between two lines. */
struct line_place {
	int64_t file; /* number of the file, from 0 */
	int64_t line; /* lines of it that lie before */
};

struct line {
	size_t begin, size; /* in the chunk's text, without '\n' and '\r' before it */
	bool cut;           /* it was longer than the limit: this is its beginning */
};

struct line_chunk {
	int64_t number;     /* of the stream's chunks, from 0 */
	const char *path;   /* as given; "standard input" for "-" */
	bool json_lines;    /* the first line of its file is a JSON object */
	bool begins_file;   /* it holds the first lines of its file */
	bool done;          /* its lines lie before where the stream was to begin: given out for what they say of the file */
	int64_t first_line; /* number of its first line in its file, from 1 */
	struct buffer text;
	struct line *lines;
	int64_t count, capacity;
	struct line_place end; /* behind its last line */
	int64_t bytes;         /* of all files, as they lie on the disk, read up to its end */
	void *own;             /* the consumer's, of this slot; zero at first */
	enum status status;    /* what `work` came to */
	struct error error;
	const struct line_stream_settings *settings;
};

struct line_stream_settings {
	const char *const *paths; /* borrowed; "-" is standard input */
	int64_t path_count;
	size_t longest_line; /* bytes; the rest of a longer line is passed over */
	size_t chunk_bytes;  /* of text, and at least one line */
	int64_t chunk_lines;
	struct line_place begin; /* zero: the beginning */
	bool keeps_quotes;       /* no chunk ends within a quoted field, unless that is too long for one */
	int helpers;             /* threads; 0: chunks are made ready when they are taken */
	/* Makes a chunk ready, in any thread; runs for one slot at a time. */
	enum status (*work)(void *context, struct line_chunk *chunk);
	void *context;
	size_t own_bytes;               /* of chunk->own */
	void (*release_own)(void *own); /* frees what hangs on it */
};

struct line_stream;
/* A path that cannot be read is ERR_USAGE or ERR_RESOURCE before anything is read. */
MUST_USE enum status line_stream_open(struct line_stream **out, const struct line_stream_settings *settings);
/* The next chunk, in order; NULL at the end. Valid until the next call. The status of its work is returned. */
MUST_USE enum status line_stream_next(struct line_stream *stream, struct line_chunk **out);
/* Bytes of all files on the disk; 0 if one of them cannot tell. */
int64_t line_stream_size(const struct line_stream *stream);
void line_stream_close(struct line_stream *stream); /* NULL is fine */

#endif
