/* Variable-length numbers (7 bits per byte, low bits first), as in protocol buffers and LevelDB. */
#ifndef FORMATS_VARINT_H
#define FORMATS_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A range of bytes that is read front to back. */
struct byte_range {
	const unsigned char *at, *end;
};

static inline size_t range_left(const struct byte_range *range)
{
	return (size_t)(range->end - range->at);
}

/* Takes one number of at most 64 bits; false if it is longer or incomplete. */
static inline bool range_varint(struct byte_range *range, uint64_t *out)
{
	uint64_t value = 0;
	for (int shift = 0; shift < 64 && range->at < range->end; shift += 7) {
		unsigned char byte = *range->at++;
		if (shift == 63 && byte > 1)
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*out = value;
			return true;
		}
	}
	return false;
}

/* The maximum number of bytes of a number. */
enum { VARINT_BYTES = 10 };

/* Writes a number to `out`, which must have room for VARINT_BYTES; returns the number of bytes written. */
static inline size_t varint_put(void *out, uint64_t value)
{
	unsigned char *bytes = out;
	size_t size = 0;
	for (; value >= 128; value >>= 7)
		bytes[size++] = (unsigned char)(value | 128);
	bytes[size++] = (unsigned char)value;
	return size;
}

/* Takes `count` bytes; false if there are fewer. */
static inline bool range_bytes(struct byte_range *range, uint64_t count, struct byte_range *out)
{
	if (count > range_left(range))
		return false;
	out->at = range->at;
	out->end = range->at += count;
	return true;
}

#endif
