/* Looks up properties of code points in the generated tables of unicode_tables.c. */
#include "text/unicode.h"

#include <utf8proc.h>

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
	if (!(unicode_flags(column, code_point) & UNICODE_REORDERED))
		return 0;
	return (uint8_t)utf8proc_get_property((utf8proc_int32_t)code_point)->combining_class;
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
	int low = 0, high = unicode_decomposition_row_count, class = 0;

	out[0] = code_point;
	while (low < high) {
		int middle = (low + high) / 2;

		if (unicode_decomposition_rows[middle].last < code_point)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == unicode_decomposition_row_count || unicode_decomposition_rows[low].first > code_point ||
	    !(unicode_decomposition_rows[low].columns >> column & 1))
		return 1;
	return (int)utf8proc_decompose_char((utf8proc_int32_t)code_point, (utf8proc_int32_t *)out, 4, UTF8PROC_DECOMPOSE, &class);
}
