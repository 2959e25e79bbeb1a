#include <string.h>
#include "formats/snappy.h"
#include "formats/varint.h"

bool snappy_size(const unsigned char *block, size_t size, size_t limit, size_t *out)
{
	struct byte_range in = {block, block + size};
	uint64_t promised;
	if (!range_varint(&in, &promised) || promised > limit)
		return false;
	*out = promised;
	return true;
}

/* Takes a number of `width` bytes, little-endian. */
static bool take_number(struct byte_range *in, int width, size_t *out)
{
	struct byte_range bytes;
	if (!range_bytes(in, (uint64_t)width, &bytes))
		return false;
	*out = 0;
	for (int i = 0; i < width; i++)
		*out |= (size_t)bytes.at[i] << (8 * i);
	return true;
}

/* Bytes as they are: lengths up to 60 lie in the tag, others in 1 to 4 bytes behind it. */
static bool unpack_literal(struct byte_range *in, unsigned tag, unsigned char *out, size_t *used, size_t capacity)
{
	size_t length = tag >> 2;
	struct byte_range bytes;
	if (length >= 60 && !take_number(in, (int)length - 59, &length))
		return false;
	length++;
	if (length > capacity - *used || !range_bytes(in, length, &bytes))
		return false;
	memcpy(out + *used, bytes.at, length);
	*used += length;
	return true;
}

/* Bytes that came before, which may overlap the ones they make. */
static bool unpack_copy(struct byte_range *in, unsigned tag, unsigned char *out, size_t *used, size_t capacity)
{
	size_t length = (tag >> 2) + 1, offset;
	int width = (tag & 3) == 3 ? 4 : (int)(tag & 3);
	if (!take_number(in, width, &offset))
		return false;
	if (width == 1) {
		length = (tag >> 2 & 7) + 4;
		offset |= (size_t)(tag >> 5) << 8;
	}
	if (offset == 0 || offset > *used || length > capacity - *used)
		return false;
	for (size_t i = 0; i < length; i++, ++*used)
		out[*used] = out[*used - offset];
	return true;
}

bool snappy_unpack(const unsigned char *block, size_t size, unsigned char *out, size_t capacity)
{
	struct byte_range in = {block, block + size};
	uint64_t promised;
	size_t used = 0;
	if (!range_varint(&in, &promised) || promised != capacity)
		return false;
	while (in.at < in.end) {
		unsigned tag = *in.at++;
		bool fits = (tag & 3) == 0 ? unpack_literal(&in, tag, out, &used, capacity)
					   : unpack_copy(&in, tag, out, &used, capacity);
		if (!fits)
			return false;
	}
	return used == capacity;
}
