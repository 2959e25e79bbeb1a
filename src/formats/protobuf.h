/* Writing protocol buffers: a message is a buffer, to which fields are appended in any order. */
#ifndef FORMATS_PROTOBUF_H
#define FORMATS_PROTOBUF_H

#include <stdint.h>
#include <string.h>
#include "base/buffer.h"
#include "formats/varint.h"

/* A field is a key (number * 8 + kind) and its value. */
enum protobuf_kind { PROTOBUF_VARINT = 0, PROTOBUF_64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_32 = 5 };

static inline void protobuf_varint(struct buffer *out, uint64_t value)
{
	unsigned char bytes[VARINT_BYTES];
	buffer_append(out, bytes, varint_put(bytes, value));
}

static inline void protobuf_key(struct buffer *out, int field, enum protobuf_kind kind)
{
	protobuf_varint(out, (uint64_t)field * 8 + kind);
}

static inline void protobuf_integer(struct buffer *out, int field, int64_t value)
{
	protobuf_key(out, field, PROTOBUF_VARINT);
	protobuf_varint(out, (uint64_t)value);
}

static inline void protobuf_float(struct buffer *out, int field, float value)
{
	protobuf_key(out, field, PROTOBUF_32);
	buffer_append(out, &value, sizeof(value));
}

static inline void protobuf_fixed32(struct buffer *out, int field, uint32_t value)
{
	protobuf_key(out, field, PROTOBUF_32);
	buffer_append(out, &value, sizeof(value));
}

static inline void protobuf_double(struct buffer *out, int field, double value)
{
	protobuf_key(out, field, PROTOBUF_64);
	buffer_append(out, &value, sizeof(value));
}

static inline void protobuf_bytes(struct buffer *out, int field, const void *bytes, size_t count)
{
	protobuf_key(out, field, PROTOBUF_BYTES);
	protobuf_varint(out, count);
	buffer_append(out, bytes, count);
}

static inline void protobuf_text(struct buffer *out, int field, const char *text)
{
	protobuf_bytes(out, field, text, strlen(text));
}

/* Moves `message` into a field of `out`. */
static inline void protobuf_message(struct buffer *out, int field, struct buffer *message)
{
	out->failed |= message->failed;
	protobuf_bytes(out, field, buffer_string(message), message->size);
	buffer_release(message);
}

#endif
