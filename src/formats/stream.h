/* Byte streams: plain, gzip, bzip2, zstd, xz files (told by their first bytes, never by their name) and standard
 * input ("-"). Concatenated members are read through; a truncated or corrupt stream is ERR_DATA with the offset
 * in the compressed file. Memory does not depend on the size of the file. */
#ifndef FORMATS_STREAM_H
#define FORMATS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct stream;
MUST_USE enum status stream_open(struct stream **out, const char *path);
/* Reads up to `capacity` bytes; *out_count = 0 only at the end. */
MUST_USE enum status stream_read(struct stream *stream, void *bytes, size_t capacity, size_t *out_count);
const char *stream_path(const struct stream *stream);
/* Bytes of the (compressed) file read so far and its size (-1 if unknown): for progress. */
int64_t stream_position(const struct stream *stream);
int64_t stream_file_size(const struct stream *stream);
void stream_close(struct stream *stream);

/* Lines of a stream, without their '\n'; a line is valid until the next call. A line longer than `limit` bytes is
 * cut into pieces of at most `limit` bytes at a character boundary (`*out_continues` true for all but the last),
 * so one huge line needs no more memory than any other. */
struct line_reader;
MUST_USE enum status line_reader_open(struct line_reader **out, const char *path, size_t limit);
MUST_USE enum status line_reader_next(struct line_reader *reader, const char **out_line, size_t *out_size,
				      bool *out_continues, bool *out_end);
struct stream *line_reader_stream(struct line_reader *reader);
void line_reader_close(struct line_reader *reader);

#endif
