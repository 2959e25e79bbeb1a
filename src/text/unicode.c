#include "text/unicode.h"

size_t utf8_decode(const char *text, size_t size, uint32_t *out_code_point)
{
	const unsigned char *p = (const unsigned char *)text;
	unsigned char lead = p[0], low = 0x80, high = 0xBF; /* bounds of the second byte */
	size_t length;
	uint32_t code_point;

	*out_code_point = UTF8_INVALID;
	if (lead < 0x80) {
		*out_code_point = lead;
		return 1;
	} else if (lead < 0xC2) {
		return 1; /* a continuation byte, or an overlong form */
	} else if (lead < 0xE0) {
		length = 2;
		code_point = lead & 0x1F;
	} else if (lead < 0xF0) {
		length = 3;
		code_point = lead & 0x0F;
		if (lead == 0xE0)
			low = 0xA0; /* overlong */
		if (lead == 0xED)
			high = 0x9F; /* surrogates */
	} else if (lead < 0xF5) {
		length = 4;
		code_point = lead & 0x07;
		if (lead == 0xF0)
			low = 0x90; /* overlong */
		if (lead == 0xF4)
			high = 0x8F; /* above U+10FFFF */
	} else {
		return 1;
	}
	for (size_t i = 1; i < length; i++) {
		if (i == size || p[i] < low || p[i] > high)
			return i;
		code_point = code_point << 6 | (p[i] & 0x3F);
		low = 0x80;
		high = 0xBF;
	}
	*out_code_point = code_point;
	return length;
}

size_t utf8_encode(uint32_t code_point, char out[4])
{
	if (code_point < 0x80) {
		out[0] = (char)code_point;
		return 1;
	}
	if (code_point < 0x800) {
		out[0] = (char)(0xC0 | code_point >> 6);
		out[1] = (char)(0x80 | (code_point & 0x3F));
		return 2;
	}
	if (code_point < 0x10000) {
		out[0] = (char)(0xE0 | code_point >> 12);
		out[1] = (char)(0x80 | (code_point >> 6 & 0x3F));
		out[2] = (char)(0x80 | (code_point & 0x3F));
		return 3;
	}
	out[0] = (char)(0xF0 | code_point >> 18);
	out[1] = (char)(0x80 | (code_point >> 12 & 0x3F));
	out[2] = (char)(0x80 | (code_point >> 6 & 0x3F));
	out[3] = (char)(0x80 | (code_point & 0x3F));
	return 4;
}

size_t utf8_length(const char *text, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; i < size; i++)
		count += ((unsigned char)text[i] & 0xC0) != 0x80;
	return count;
}

static const struct unicode_property_row *property_row(uint32_t code_point)
{
	int low = 0, high = unicode_property_row_count;

	while (low < high) {
		int middle = (low + high) / 2;

		if (unicode_property_rows[middle].last < code_point)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < unicode_property_row_count && unicode_property_rows[low].first <= code_point)
		return &unicode_property_rows[low];
	return NULL;
}

uint8_t unicode_flags(enum unicode_column column, uint32_t code_point)
{
	const struct unicode_property_row *row = property_row(code_point);

	return row ? row->flags[column] : 0;
}

uint8_t unicode_combining_class(enum unicode_column column, uint32_t code_point)
{
	const struct unicode_property_row *row = property_row(code_point);

	return row ? row->combining_class[column] : 0;
}

uint32_t unicode_lowercase(enum unicode_column column, uint32_t code_point)
{
	int low = 0, high = unicode_lowercase_row_count;

	while (low < high) {
		int middle = (low + high) / 2;

		if (unicode_lowercase_rows[middle].last < code_point)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < unicode_lowercase_row_count) {
		const struct unicode_lowercase_row *row = &unicode_lowercase_rows[low];

		if (row->first <= code_point && (code_point - row->first) % (uint32_t)row->step == 0 &&
		    row->columns >> column & 1)
			return code_point + (uint32_t)row->delta;
	}
	return code_point;
}

int unicode_decompose(enum unicode_column column, uint32_t code_point, uint32_t out[4])
{
	int low = 0, high = unicode_decomposition_row_count;

	if (code_point >= HANGUL_FIRST && code_point <= HANGUL_LAST) {
		uint32_t index = code_point - HANGUL_FIRST;

		out[0] = 0x1100 + index / (21 * 28); /* leading consonant, vowel, perhaps a trailing consonant */
		out[1] = 0x1161 + index % (21 * 28) / 28;
		out[2] = 0x11A7 + index % 28;
		return index % 28 ? 3 : 2;
	}
	while (low < high) {
		int middle = (low + high) / 2;

		if (unicode_decomposition_rows[middle].code_point < code_point)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < unicode_decomposition_row_count) {
		const struct unicode_decomposition_row *row = &unicode_decomposition_rows[low];

		if (row->code_point == code_point && row->columns >> column & 1) {
			int count = 0;

			while (count < 4 && row->parts[count]) {
				out[count] = row->parts[count];
				count++;
			}
			return count;
		}
	}
	out[0] = code_point;
	return 1;
}
