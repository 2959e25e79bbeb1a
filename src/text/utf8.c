/* Decodes, encodes, and counts UTF-8. */
#include "text/utf8.h"

#include <string.h>

void utf8_trim(const char *text, size_t *begin, size_t *end)
{
	uint32_t c;
	while (*begin < *end) {
		size_t length = utf8_decode(text + *begin, *end - *begin, &c);
		if (!utf8_is_space(c))
			break;
		*begin += length;
	}
	while (*begin < *end) {
		size_t length = utf8_decode_last(text + *begin, *end - *begin, &c);
		if (!utf8_is_space(c))
			break;
		*end -= length;
	}
}

int64_t utf8_count_invalid(const char *text, size_t size)
{
	int64_t invalid = 0;
	size_t i = 0;

	while (i < size) {
		/* Most text is ASCII: skip eight bytes at a time while their top bits are clear. */
		uint64_t eight;
		while (size - i >= sizeof eight) {
			memcpy(&eight, text + i, sizeof eight);
			if (eight & UINT64_C(0x8080808080808080))
				break;
			i += sizeof eight;
		}
		if (i == size)
			break;
		uint32_t character;
		size_t length = utf8_decode(text + i, size - i, &character);
		if (character == UTF8_INVALID)
			invalid += (int64_t)length;
		i += length;
	}
	return invalid;
}

size_t utf8_length(const char *text, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; i < size; i++)
		count += ((unsigned char)text[i] & 0xC0) != 0x80;
	return count;
}

size_t utf8_place_at(struct utf8_place *place, size_t byte)
{
	if (byte < place->byte)
		place->byte = place->character = 0;
	place->character += utf8_length(place->text + place->byte, byte - place->byte);
	place->byte = byte;
	return place->character;
}

int64_t utf8_offset(const char *text, size_t size, int64_t index)
{
	size_t at = 0;
	for (; at < size && index > 0; index--) {
		uint32_t character;
		at += utf8_decode(text + at, size - at, &character);
	}
	return index == 0 ? (int64_t)at : -1;
}
