#include "text/unicode.h"

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

		out[0] = 0x1100 + index / (21 * 28); /* leading consonant, vowel, possibly trailing consonant */
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
