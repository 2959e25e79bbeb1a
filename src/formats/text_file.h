/* A text file read as a whole: decompressed (formats/stream.h), without its byte order mark, and with LF where
 * CR alone ends lines (formats/line_ends.h). UTF-16 and UTF-32 are rejected. For files of labeled examples, which are kept in
 * memory anyway. */
#ifndef FORMATS_TEXT_FILE_H
#define FORMATS_TEXT_FILE_H

#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

/* The largest file that is read, in decompressed bytes. */
#define TEXT_FILE_LIMIT ((int64_t)8 << 30)

struct text_file {
	const char *name;   /* the file's name for messages; borrowed from the path given ("standard input" for "-") */
	struct buffer text; /* its bytes, without the byte order mark */
};

/* Reads all of `path` ("-": standard input). ERR_USAGE: there is no such file. ERR_DATA: damaged compressed data; UTF-16 or
 * UTF-32; more than `limit` bytes decompressed. ERR_STATE: the file changed while it was read, so its contents may be mixed.
 * Invalid UTF-8 is left to text_check(), which works line by line. */
MUST_USE enum status text_file_read(struct text_file *out, const char *path, int64_t limit);
void text_file_release(struct text_file *file);

/* Checks that text[0 .. size) is valid UTF-8 without NULs. Otherwise ERR_DATA naming file, line, and byte, with lines counted
 * from `line` and bytes from 1 within the line. */
MUST_USE enum status text_check(const char *name, int64_t line, const char *text, size_t size);

#endif
