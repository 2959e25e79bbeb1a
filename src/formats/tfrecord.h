/* TFRecord files: u64 length, masked CRC-32C of the length, payload, masked CRC-32C of the payload; plain, or the whole file
 * compressed (with zlib, gzip, or anything else that stream.h reads). TensorBoard's event files use the same framing. */
#ifndef FORMATS_TFRECORD_H
#define FORMATS_TFRECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* A longer record is taken for damage: the records we read have a few kilobytes. */
#define TFRECORD_BYTES_MAX ((size_t)64 << 20)

struct tfrecord_reader;
MUST_USE enum status tfrecord_open(struct tfrecord_reader **out, const char *path);
/* The next payload, valid until the next call; *out = NULL at the end. A record that is cut off, is too long, or has a wrong
 * checksum is ERR_DATA naming file, record (from 0), and offset in the uncompressed bytes. If the checksum of a payload was
 * wrong, the next call continues after it; after any other failure it reports the end. */
MUST_USE enum status tfrecord_next(struct tfrecord_reader *reader, const unsigned char **out, size_t *out_size);
/* Number and offset of the record that tfrecord_next returned or rejected last. */
int64_t tfrecord_record(const struct tfrecord_reader *reader);
int64_t tfrecord_offset(const struct tfrecord_reader *reader);
void tfrecord_close(struct tfrecord_reader *reader); /* NULL is allowed */

/* Writing is all or nothing (file.h); `gzip`: whether to compress. */
struct tfrecord_writer;
MUST_USE enum status tfrecord_writer_open(struct tfrecord_writer **out, const char *path, bool gzip);
/* Writes records framed by tfrecord_frame(), back to back. */
MUST_USE enum status tfrecord_writer_framed(struct tfrecord_writer *writer, const void *records, size_t size);
/* Frees the writer in any case. */
MUST_USE enum status tfrecord_writer_commit(struct tfrecord_writer *writer);
void tfrecord_writer_abandon(struct tfrecord_writer *writer); /* NULL is allowed */

/* Fills in the frame of a record whose payload of `size` bytes is at record + TFRECORD_HEAD_BYTES; the whole record has
 * TFRECORD_FRAME_BYTES more than the payload. */
#define TFRECORD_HEAD_BYTES 12
#define TFRECORD_FRAME_BYTES 16
void tfrecord_frame(unsigned char *record, size_t size);

#endif
