/* Protocol buffers. For writing, a message is a buffer to which fields are appended in any order. Reading proceeds field by
 * field. */
#ifndef FORMATS_PROTOBUF_H
#define FORMATS_PROTOBUF_H

#include <stdbool.h>
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
	buffer_append(out, &value, sizeof value);
}

static inline void protobuf_fixed32(struct buffer *out, int field, uint32_t value)
{
	protobuf_key(out, field, PROTOBUF_32);
	buffer_append(out, &value, sizeof value);
}

static inline void protobuf_double(struct buffer *out, int field, double value)
{
	protobuf_key(out, field, PROTOBUF_64);
	buffer_append(out, &value, sizeof value);
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

/* A field of a message: `content` is set if it is PROTOBUF_BYTES, otherwise `value`. */
struct protobuf_field {
	uint32_t number; /* never 0 */
	enum protobuf_kind kind;
	struct byte_range content;
	uint64_t value;
};

/* Takes the next field of a message, which must have bytes left; false if it is malformed. */
static inline bool protobuf_next(struct byte_range *message, struct protobuf_field *out)
{
	uint64_t key, size;
	struct byte_range bytes;
	if (!range_varint(message, &key) || key >> 3 == 0 || key >> 3 > (1u << 29) - 1)
		return false;
	*out = (struct protobuf_field){.number = (uint32_t)(key >> 3), .kind = (enum protobuf_kind)(key & 7)};
	switch (out->kind) {
	case PROTOBUF_VARINT: return range_varint(message, &out->value);
	case PROTOBUF_64:
	case PROTOBUF_32:
		size = out->kind == PROTOBUF_64 ? 8 : 4;
		if (!range_bytes(message, size, &bytes))
			return false;
		memcpy(&out->value, bytes.at, size);
		return true;
	case PROTOBUF_BYTES: return range_varint(message, &size) && range_bytes(message, size, &out->content);
	}
	return false;
}

#endif
