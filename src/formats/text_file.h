/* A text file read whole: unpacked (formats/stream.h), checked to be UTF-8 text, its byte order mark left out and lines that end
 * with CR alone, as on old Macintoshes, ended with LF. For files of labelled examples, which are kept in memory anyway. */
#ifndef FORMATS_TEXT_FILE_H
#define FORMATS_TEXT_FILE_H

#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

/* The largest file that is read, unpacked. */
#define TEXT_FILE_LIMIT ((int64_t)8 << 30)

struct text_file {
	const char *name;   /* of the file, for messages; borrowed from the path given ("standard input" for "-") */
	struct buffer text; /* its bytes, without the byte order mark */
};

/* Reads all of `path` ("-": standard input). ERR_USAGE: there is no such file. ERR_DATA: damaged packing; UTF-16 or UTF-32;
 * larger than `limit` bytes unpacked. ERR_STATE: the file changed while it was read, so that what was read may
 * be a mixture. Text that is not UTF-8 is left to text_check(), line by line. */
MUST_USE enum status text_file_read(struct text_file *out, const char *path, int64_t limit);
void text_file_release(struct text_file *file);

/* Is text[0 .. size) valid UTF-8 without NULs? Otherwise ERR_DATA that names file, line and byte, counting lines from
 * `line` and bytes from 1 within the line. */
MUST_USE enum status text_check(const char *name, int64_t line, const char *text, size_t size);

#endif
