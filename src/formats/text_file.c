/* Reads a text file whole, and rejects encodings other than UTF-8. */
#include "formats/text_file.h"

#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "formats/line_ends.h"
#include "formats/stream.h"

#define READ_BYTES ((size_t)256 << 10)

static enum status read_all(struct stream *stream, int64_t limit, struct buffer *out)
{
	char size[FORMAT_BYTES], left[FORMAT_BYTES];
	for (;;) {
		size_t count;
		char *room = buffer_room(out, READ_BYTES);
		if (!room)
			return error_hinted(
				error_set(ERR_RESOURCE, "'%s': not enough memory to read it whole: %s so far, %s available",
					  stream_path(stream), format_size(size, (double)out->size),
					  format_size(left, (double)memory_available())),
				"is it a device, or an archive that unpacks to far more than it should? otherwise give a part of "
				"it");
		TRY(stream_read(stream, room, READ_BYTES, &count));
		if (count == 0)
			return OK;
		buffer_advance(out, count);
		if ((int64_t)out->size > limit)
			return error_hinted(error_set(ERR_DATA, "'%s': larger than %s", stream_path(stream),
						      format_size(size, (double)limit)),
					    "split the file and give its parts, or shorten it");
	}
}

/* Other encodings begin with a mark of their own. */
static enum status refuse_other_encodings(const struct text_file *file)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *encoding;
	} marks[] = {{"\xFF\xFE\0\0", 4, "UTF-32"},
		     {"\0\0\xFE\xFF", 4, "UTF-32"},
		     {"\xFF\xFE", 2, "UTF-16"},
		     {"\xFE\xFF", 2, "UTF-16"}};
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		if (file->text.size < marks[i].size || memcmp(file->text.data, marks[i].bytes, marks[i].size) != 0)
			continue;
		return error_hinted(error_set(ERR_DATA, "'%s': this is %s text, not UTF-8", file->name, marks[i].encoding),
				    "convert it: iconv -f %s -t UTF-8 FILE > NEW_FILE", marks[i].encoding);
	}
	return OK;
}

/* Makes every line end with LF. */
static void mend_line_ends(struct text_file *file)
{
	struct buffer *text = &file->text;
	if (text->size == 0)
		return;
	if (line_ends_are_cr(text->data, text->size, true))
		line_ends_mend(text->data, text->size);
	else
		line_ends_warn(file->name, line_ends_stray(text->data, text->size));
}

enum status text_file_read(struct text_file *out, const char *path, int64_t limit)
{
	struct stream *stream;
	*out = (struct text_file){.name = strcmp(path, "-") == 0 ? "standard input" : path};
	TRY(stream_open(&stream, path));
	enum status status = read_all(stream, limit, &out->text);
	stream_close(stream);
	if (status == OK)
		status = refuse_other_encodings(out);
	if (status != OK) {
		text_file_release(out);
		return status;
	}
	if (out->text.size >= 3 && memcmp(out->text.data, "\xEF\xBB\xBF", 3) == 0) {
		out->text.size -= 3;
		memmove(out->text.data, out->text.data + 3, out->text.size + 1);
	}
	mend_line_ends(out);
	return OK;
}

void text_file_release(struct text_file *file)
{
	buffer_release(&file->text);
	*file = (struct text_file){0};
}

enum status text_check(const char *name, int64_t line, const char *text, size_t size)
{
	size_t line_start = 0;
	for (size_t at = 0; at < size;) {
		size_t length = text[at] ? text_utf8_length((const unsigned char *)text + at, size - at) : 0;
		if (length == 0) {
			enum status status =
				error_set(ERR_DATA, "'%s', line %lld: %s at byte %zu of the line", name, (long long)line,
					  text[at] ? "invalid UTF-8" : "a NUL byte", at - line_start + 1);
			if (text[at])
				error_hint("if the file is in another encoding, convert it: iconv -f CP1252 -t UTF-8 FILE > "
					   "NEW_FILE; --on_bad_record skip leaves such records out and counts them");
			return status;
		}
		if (text[at] == '\n') {
			line++;
			line_start = at + 1;
		}
		at += length;
	}
	return OK;
}
