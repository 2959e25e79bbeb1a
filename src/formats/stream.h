/* Byte streams: plain, gzip, bzip2, zstd, xz files (recognized by their first bytes, never by their name) and
 * standard input ("-"). Concatenated members are read through, zero bytes after the last one are ignored
 * (tape padding); a truncated or corrupt stream, or one followed by anything else, is ERR_DATA with the
 * offset in the compressed file. Archives (zip, 7z, lz4, ...) are refused with advice. Memory does not depend
 * on the size of the file: 256 KiB of input, the decoder's window (zstd --long=31 and xz ask for up to 2
 * GiB), and what the caller gives. A regular file that was cut, written to or went on growing while it was read is
 * ERR_STATE at its end. */
#ifndef FORMATS_STREAM_H
#define FORMATS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* How much of a file is read at a time. Fuzzing makes it small, so that small inputs cross the borders of blocks. */
#ifndef STREAM_BLOCK_BYTES
#define STREAM_BLOCK_BYTES ((size_t)256 << 10)
#endif

struct stream;
/* A missing file or a folder is ERR_USAGE, an unreadable one ERR_RESOURCE. Pipes and devices are read as they
 * come. */
MUST_USE enum status stream_open(struct stream **out, const char *path);
/* Says of paths what stream_open would say, without opening them: of several, before work on the first begins. */
MUST_USE enum status stream_check_paths(const char *const *paths, int64_t count);
/* Before the first read: bzip2 data will be decoded by up to `threads` (>= 1) threads, ahead of the reads, and of damaged
 * data no byte of a bad block is given out. (The other formats are faster than what comes after them.) */
MUST_USE enum status stream_read_ahead(struct stream *stream, int threads);
/* Reads up to `capacity` (> 0) bytes; *out_count = 0 only at the end. */
MUST_USE enum status stream_read(struct stream *stream, void *bytes, size_t capacity, size_t *out_count);
/* The path as given; "standard input" for "-". */
const char *stream_path(const struct stream *stream);
/* Bytes of the (compressed) file consumed so far: for progress. */
int64_t stream_position(const struct stream *stream);
void stream_close(struct stream *stream); /* NULL is fine */

/* Lines of a stream, without their '\n'; a line is valid until the next call. A line longer than `limit` (>=
 * 16) bytes is cut into pieces of at most `limit` bytes at a character boundary (`*out_continues` true for
 * all but the last), so one huge line needs no more memory than any other. The last line needs no '\n'. */
struct line_reader;
MUST_USE enum status line_reader_open(struct line_reader **out, const char *path, size_t limit);
MUST_USE enum status line_reader_next(struct line_reader *reader, const char **out_line, size_t *out_size, bool *out_continues,
				      bool *out_end);
/* The next `count` bytes (fewer only if the stream ends before) without consuming them; valid until the next
 * call. */
MUST_USE enum status line_reader_peek(struct line_reader *reader, size_t count, const char **out_bytes, size_t *out_size);
/* Bytes as they come, instead of lines: those held or else the next ones, all of them consumed; *out_size = 0 only at
 * the end. Valid until the next call. */
MUST_USE enum status line_reader_take(struct line_reader *reader, const char **out_bytes, size_t *out_size);
/* Would the next line have to be waited for: no whole line is held, and standard input has nothing ready? False for files, which
 * never keep one waiting. */
bool line_reader_waits(const struct line_reader *reader);
struct stream *line_reader_stream(struct line_reader *reader);
/* Offset, in the decompressed stream, of the first byte that has not been given out. */
int64_t line_reader_offset(const struct line_reader *reader);
void line_reader_close(struct line_reader *reader); /* NULL is fine */

#endif
