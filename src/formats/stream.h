/* Byte streams: plain, gzip, bzip2, zstd, and xz files (recognized by their first bytes, never by name) and standard input ("-").
 * Concatenated members are read as one stream, and zero bytes after the last one are ignored (tape padding); a truncated or
 * corrupt stream, or one followed by anything else, is ERR_DATA with the offset in the compressed file. Other formats (zip, 7z,
 * lz4, ...) are rejected with advice. Memory does not depend on the size of the file: 256 KiB of input, the decoder's window
 * (zstd --long=31 and xz request up to 2 GiB), and what the caller provides. A regular file that is cut, written to, or grows
 * while it is read is ERR_STATE at its end. */
#ifndef FORMATS_STREAM_H
#define FORMATS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* How much of a file is read at a time. Made small for fuzzing, so that small inputs cross block boundaries. */
#ifndef STREAM_BLOCK_BYTES
#define STREAM_BLOCK_BYTES ((size_t)256 << 10)
#endif

struct stream;
/* A missing file or a folder is ERR_USAGE, an unreadable file ERR_RESOURCE. Pipes and devices are read as data arrives. */
MUST_USE enum status stream_open(struct stream **out, const char *path);
/* Checks paths as stream_open would, without opening them, so that errors show before work on the first one begins. */
MUST_USE enum status stream_check_paths(const char *const *paths, int64_t count);
/* Call before the first read: bzip2 data is then decoded ahead by up to `threads` (>= 1) threads, and no byte of a damaged block
 * is returned. (The other formats are decoded faster than their contents are processed.) */
MUST_USE enum status stream_read_ahead(struct stream *stream, int threads);
/* Reads up to `capacity` (> 0) bytes; *out_count is 0 only at the end. */
MUST_USE enum status stream_read(struct stream *stream, void *bytes, size_t capacity, size_t *out_count);
/* The path as given; "standard input" for "-". */
const char *stream_path(const struct stream *stream);
/* Bytes of the (compressed) file consumed so far, for progress. */
int64_t stream_position(const struct stream *stream);
void stream_close(struct stream *stream); /* NULL is allowed */
/* Whether a file that begins with these bytes is compressed. */
bool stream_is_compressed(const unsigned char *bytes, size_t size);

/* The lines of a stream, without their '\n', or their CR where that alone ends lines (formats/line_ends.h); a line is valid until
 * the next call. A line longer than `limit` (>= 16) bytes is cut at character boundaries into pieces of at most `limit` bytes
 * (*out_continues is true for all but the last), so a huge line needs no more memory than any other. The last line needs no '\n'.
 * A byte order mark at the beginning of the stream belongs to no line. */
struct line_reader;
MUST_USE enum status line_reader_open(struct line_reader **out, const char *path, size_t limit);
MUST_USE enum status line_reader_next(struct line_reader *reader, const char **out_line, size_t *out_size, bool *out_continues,
				      bool *out_end);
/* Finds out where lines end, as the first line_reader_next() does; bytes returned from now on have LF there. */
MUST_USE enum status line_reader_begin_lines(struct line_reader *reader);
/* The next `count` bytes (fewer only if the stream ends first) without consuming them; valid until the next call. */
MUST_USE enum status line_reader_peek(struct line_reader *reader, size_t count, const char **out_bytes, size_t *out_size);
/* Raw bytes instead of lines: those held or, if there are none, the next ones; all of them are consumed. *out_size is 0 only at
 * the end. Valid until the next call. */
MUST_USE enum status line_reader_take(struct line_reader *reader, const char **out_bytes, size_t *out_size);
/* Whether the next line would have to be waited for, because no whole line is held and standard input has nothing ready. False
 * for files, which never keep one waiting. */
bool line_reader_waits(const struct line_reader *reader);
struct stream *line_reader_stream(struct line_reader *reader);
/* Offset in the decompressed stream of the first byte that has not been returned. */
int64_t line_reader_offset(const struct line_reader *reader);
void line_reader_close(struct line_reader *reader); /* NULL is allowed */

#endif
