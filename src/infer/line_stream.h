/* Reads the lines of any number of files in chunks, which helper threads prepare (parse, tokenize) while earlier chunks are being
 * answered. Memory use depends on neither the number of lines nor their length.
 *
 * A chunk never spans files. Chunk boundaries depend only on the bytes of the files, except that a chunk of standard input also
 * ends where no more input is available yet, so that a program at the other end of a pipe gets its answers; but not within a row
 * of a table, between its header and its first row, or, if the form of files matters, before the first line that is not blank. */
#ifndef INFER_LINE_STREAM_H
#define INFER_LINE_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

/* A position between two lines. */
struct line_place {
	int64_t file; /* number of the file, from 0 */
	int64_t line; /* number of its lines before the position */
};

struct line {
	size_t begin, size; /* in the chunk's text, without the final '\n' or '\r\n' */
	bool cut;           /* it exceeded the limit, and only its beginning was kept */
};

struct line_chunk {
	int64_t number;     /* number of the chunk in the stream, from 0 */
	const char *path;   /* as given; "standard input" for "-" */
	bool json_lines;    /* the first line of its file that is not blank begins a JSON object */
	bool begins_file;   /* it contains the first lines of its file */
	const void *form;   /* what begin_file() found out about its file; NULL without it */
	bool done;          /* its lines precede the stream's beginning; delivered only because they show the file's form */
	int64_t first_line; /* number of its first line in its file, from 1 */
	struct buffer text;
	struct line *lines;
	int64_t count, capacity;
	struct line_place end; /* after its last line */
	int64_t bytes;         /* bytes of all files, as stored on disk, read up to the chunk's end */
	void *own;             /* the consumer's data for this slot; initially zero */
	enum status status;    /* result of `work` */
	struct error error;
	const struct line_stream_settings *settings;
};

struct line_stream_settings {
	const char *const *paths; /* borrowed; "-" is standard input */
	int64_t path_count;
	size_t longest_line; /* bytes; the rest of a longer line is skipped */
	size_t chunk_bytes;  /* of text; a chunk has at least one line */
	int64_t chunk_lines;
	struct line_place begin; /* where to begin; zero: at the beginning */
	/* Lines are rows of tables (formats/table.h), whose headers have these names; ends with NULL. No chunk ends inside a
	 * quoted field unless the field is too long, or with a first line that may be a header. NULL: each line is a text. */
	const char *const *header_names;
	const char *const *given_names; /* the same, and a line that has one of these is a header; may be NULL */
	int helpers;                    /* threads; 0: chunks are prepared when they are taken */
	/* Prepares a chunk, in any thread; never called twice for the same slot at the same time. */
	enum status (*work)(void *context, struct line_chunk *chunk);
	/* Called with the first chunk of each file, in order, before any chunk of the file is prepared. *out_form must remain
	 * valid while chunks of the file are in use. NULL: nothing is to be found out; without header_names, too, the form of
	 * files does not matter. */
	enum status (*begin_file)(void *context, const struct line_chunk *chunk, const void **out_form);
	void *context;
	size_t own_bytes;               /* size of chunk->own */
	void (*release_own)(void *own); /* frees what `own` refers to, but not `own` itself */
};

struct line_stream;
/* A path that cannot be read gives ERR_USAGE or ERR_RESOURCE before anything is read. */
MUST_USE enum status line_stream_open(struct line_stream **out, const struct line_stream_settings *settings);
/* Gets the next chunk in order, or NULL at the end; it is valid until the next call. Returns the status of the chunk's work. */
MUST_USE enum status line_stream_next(struct line_stream *stream, struct line_chunk **out);
/* Total size of all files on disk; 0 if the size of any is unknown. */
int64_t line_stream_size(const struct line_stream *stream);
/* Rejects a chunk with a line that was too long to be kept whole: ERR_DATA, with file and line. */
MUST_USE enum status line_chunk_check(const struct line_chunk *chunk);
void line_stream_close(struct line_stream *stream); /* NULL is fine */

#endif
