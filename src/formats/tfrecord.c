/* Reads and writes TFRecord files, plain or compressed. */
#include "formats/tfrecord.h"
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "formats/stream.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lengths and checksums are read in the byte order of this machine");

#define GZIP_WINDOW (15 + 16) /* for zlib: the largest window, with a gzip header */

struct tfrecord_reader {
	struct stream *stream;
	bool is_zlib; /* a zlib stream, which stream.h does not support: inflated here */
	z_stream inflater;
	unsigned char *raw; /* [STREAM_BLOCK_BYTES], zlib only */
	bool zlib_ended;
	unsigned char *bytes; /* data read ahead is at [begin, end) */
	size_t begin, end;
	int64_t capacity;
	int64_t consumed; /* offset of bytes[begin] */
	int64_t record, offset, next_record;
	bool ended;
};

/* zlib's two header bytes could be the beginning of a record's length, but then the next six bytes would be zero (no record is
 * that long). */
static bool looks_like_zlib(const unsigned char *bytes, size_t size)
{
	if (size < 8 || (bytes[0] & 15) != 8 || bytes[0] >> 4 > 7 || (bytes[0] << 8 | bytes[1]) % 31 != 0)
		return false;
	return bytes[2] | bytes[3] | bytes[4] | bytes[5] | bytes[6] | bytes[7];
}

static enum status read_zlib(struct tfrecord_reader *reader, unsigned char *out, size_t capacity, size_t *out_count)
{
	z_stream *z = &reader->inflater;
	z->next_out = out;
	z->avail_out = (uInt)capacity;
	while (!reader->zlib_ended && z->avail_out == capacity) {
		if (z->avail_in == 0) {
			size_t count;
			TRY(stream_read(reader->stream, reader->raw, STREAM_BLOCK_BYTES, &count));
			if (count == 0)
				return error_set(ERR_DATA, "'%s': the zlib data end too early", stream_path(reader->stream));
			z->next_in = reader->raw;
			z->avail_in = (uInt)count;
		}
		int result = inflate(z, Z_NO_FLUSH);
		if (result == Z_STREAM_END)
			reader->zlib_ended = true;
		else if (result != Z_OK && result != Z_BUF_ERROR)
			return error_set(ERR_DATA, "'%s': corrupt zlib data near byte %lld", stream_path(reader->stream),
					 (long long)stream_position(reader->stream));
	}
	*out_count = capacity - z->avail_out;
	return OK;
}

/* Ensures that `wanted` bytes, or as many as there are, are available at bytes + begin. */
static enum status fill(struct tfrecord_reader *reader, size_t wanted)
{
	if (reader->end - reader->begin >= wanted)
		return OK;
	memmove(reader->bytes, reader->bytes + reader->begin, reader->end - reader->begin);
	reader->end -= reader->begin;
	reader->begin = 0;
	size_t room = wanted > STREAM_BLOCK_BYTES ? wanted : STREAM_BLOCK_BYTES;
	/* The buffer grows only as it is filled, so that a false length costs no memory. */
	while (reader->end < wanted) {
		size_t target = reader->end + STREAM_BLOCK_BYTES, count;
		target = target < room ? target : room;
		TRY(memory_grow(&reader->bytes, &reader->capacity, (int64_t)target, 1, "TFRecord"));
		TRY((reader->is_zlib ? read_zlib(reader, reader->bytes + reader->end, target - reader->end, &count)
				     : stream_read(reader->stream, reader->bytes + reader->end, target - reader->end, &count)));
		if (count == 0)
			break;
		reader->end += count;
	}
	return OK;
}

/* Recognizes a zlib stream by its beginning and sets up the inflater for it. */
static enum status begin_reading(struct tfrecord_reader *reader)
{
	TRY(fill(reader, TFRECORD_HEAD_BYTES));
	size_t size = reader->end - reader->begin;
	if (!looks_like_zlib(reader->bytes, size))
		return OK;
	TRY(memory_new(&reader->raw, STREAM_BLOCK_BYTES, 1, "zlib data"));
	memcpy(reader->raw, reader->bytes, size);
	if (inflateInit(&reader->inflater) != Z_OK)
		return error_set(ERR_RESOURCE, "not enough memory for the zlib decoder");
	reader->is_zlib = true;
	reader->inflater.next_in = reader->raw;
	reader->inflater.avail_in = (uInt)size;
	reader->begin = reader->end = 0;
	return OK;
}

enum status tfrecord_open(struct tfrecord_reader **out, const char *path)
{
	enum status status;
	struct tfrecord_reader *reader = NULL;
	*out = NULL;
	TRY(memory_new(&reader, 1, sizeof *reader, "TFRecord reader"));
	reader->record = -1;
	TRY_GOTO(memory_grow(&reader->bytes, &reader->capacity, STREAM_BLOCK_BYTES, 1, "TFRecord"), fail);
	TRY_GOTO(stream_open(&reader->stream, path), fail);
	TRY_GOTO(begin_reading(reader), fail);
	*out = reader;
	return OK;
fail:
	tfrecord_close(reader);
	return status;
}

static enum status refuse(struct tfrecord_reader *reader, const char *reason)
{
	enum status status = error_set(ERR_DATA, "'%s': record %lld at byte %lld: %s", stream_path(reader->stream),
				       (long long)reader->record, (long long)reader->offset, reason);
	if (reader->record == 0)
		error_hint("this may not be a TFRecord file");
	else
		error_hint("the file is damaged: get it again, or give --on_bad_record skip to continue without the record");
	return status;
}

static void consume(struct tfrecord_reader *reader, size_t count)
{
	reader->begin += count;
	reader->consumed += (int64_t)count;
}

static uint32_t read_u32(const unsigned char *bytes)
{
	uint32_t value;
	memcpy(&value, bytes, sizeof value);
	return value;
}

static enum status next_record(struct tfrecord_reader *reader, const unsigned char **out, size_t *out_size)
{
	TRY(fill(reader, TFRECORD_HEAD_BYTES));
	size_t there = reader->end - reader->begin;
	if (there == 0) {
		reader->ended = true;
		return OK;
	}
	reader->record = reader->next_record++;
	reader->offset = reader->consumed;
	if (there < TFRECORD_HEAD_BYTES)
		return refuse(reader, "cut off within its length");
	const unsigned char *head = reader->bytes + reader->begin;
	uint64_t length;
	memcpy(&length, head, 8);
	if (read_u32(head + 8) != crc32c_masked(crc32c(0, head, 8)))
		return refuse(reader, "the checksum of its length is wrong");
	if (length > TFRECORD_BYTES_MAX)
		return refuse(reader, "longer than 64 MiB");
	TRY(fill(reader, TFRECORD_FRAME_BYTES + (size_t)length));
	if (reader->end - reader->begin < TFRECORD_FRAME_BYTES + (size_t)length)
		return refuse(reader, "cut off within its content");
	const unsigned char *payload = reader->bytes + reader->begin + TFRECORD_HEAD_BYTES;
	consume(reader, TFRECORD_FRAME_BYTES + (size_t)length);
	reader->ended = false;
	if (read_u32(payload + length) != crc32c_masked(crc32c(0, payload, (size_t)length)))
		return refuse(reader, "the checksum of its content is wrong");
	*out = payload;
	*out_size = (size_t)length;
	return OK;
}

enum status tfrecord_next(struct tfrecord_reader *reader, const unsigned char **out, size_t *out_size)
{
	*out = NULL;
	*out_size = 0;
	if (reader->ended)
		return OK;
	reader->ended = true; /* unless a whole frame is read */
	return next_record(reader, out, out_size);
}

int64_t tfrecord_record(const struct tfrecord_reader *reader)
{
	return reader->record;
}

int64_t tfrecord_offset(const struct tfrecord_reader *reader)
{
	return reader->offset;
}

void tfrecord_close(struct tfrecord_reader *reader)
{
	if (reader == NULL)
		return;
	if (reader->is_zlib)
		inflateEnd(&reader->inflater);
	stream_close(reader->stream);
	free(reader->raw);
	free(reader->bytes);
	free(reader);
}

struct tfrecord_writer {
	struct file_writer *file;
	bool gzip;
	z_stream deflater;
	unsigned char *packed; /* [STREAM_BLOCK_BYTES], gzip only */
};

enum status tfrecord_writer_open(struct tfrecord_writer **out, const char *path, bool gzip)
{
	enum status status;
	struct tfrecord_writer *writer = NULL;
	*out = NULL;
	TRY(memory_new(&writer, 1, sizeof *writer, "TFRecord writer"));
	if (gzip) {
		TRY_GOTO(memory_new(&writer->packed, STREAM_BLOCK_BYTES, 1, "gzip data"), fail);
		if (deflateInit2(&writer->deflater, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) !=
		    Z_OK) {
			status = error_set(ERR_RESOURCE, "not enough memory for the gzip encoder");
			goto fail;
		}
		writer->gzip = true;
	}
	TRY_GOTO(file_writer_open(&writer->file, path), fail);
	*out = writer;
	return OK;
fail:
	tfrecord_writer_abandon(writer);
	return status;
}

static enum status write_packed(struct tfrecord_writer *writer, int flush)
{
	z_stream *z = &writer->deflater;
	do {
		z->next_out = writer->packed;
		z->avail_out = STREAM_BLOCK_BYTES;
		BUG_IF(deflate(z, flush) == Z_STREAM_ERROR);
		TRY(file_writer_write(writer->file, writer->packed, STREAM_BLOCK_BYTES - z->avail_out));
	} while (z->avail_out == 0);
	return OK;
}

enum status tfrecord_writer_framed(struct tfrecord_writer *writer, const void *records, size_t size)
{
	if (!writer->gzip)
		return file_writer_write(writer->file, records, size);
	for (const unsigned char *next = records; size > 0;) {
		size_t part = size < STREAM_BLOCK_BYTES ? size : STREAM_BLOCK_BYTES;
		writer->deflater.next_in = (unsigned char *)(uintptr_t)next;
		writer->deflater.avail_in = (uInt)part;
		TRY(write_packed(writer, Z_NO_FLUSH));
		next += part;
		size -= part;
	}
	return OK;
}

void tfrecord_frame(unsigned char *record, size_t size)
{
	uint64_t length = size;
	memcpy(record, &length, 8);
	uint32_t crc = crc32c_masked(crc32c(0, record, 8));
	memcpy(record + 8, &crc, 4);
	crc = crc32c_masked(crc32c(0, record + TFRECORD_HEAD_BYTES, size));
	memcpy(record + TFRECORD_HEAD_BYTES + size, &crc, 4);
}

enum status tfrecord_writer_commit(struct tfrecord_writer *writer)
{
	enum status status = OK;
	if (writer->gzip) {
		writer->deflater.avail_in = 0;
		TRY_GOTO(write_packed(writer, Z_FINISH), done);
	}
	struct file_writer *file = writer->file;
	writer->file = NULL;
	status = file_writer_commit(file);
done:
	tfrecord_writer_abandon(writer);
	return status;
}

void tfrecord_writer_abandon(struct tfrecord_writer *writer)
{
	if (writer == NULL)
		return;
	file_writer_abandon(writer->file);
	if (writer->gzip)
		deflateEnd(&writer->deflater);
	free(writer->packed);
	free(writer);
}
