#include "base/text.h"

size_t text_utf8_length(const unsigned char *p, size_t left)
{
	if (p[0] < 0x80)
		return 1;
	size_t length = p[0] >= 0xC2 && p[0] <= 0xDF ? 2 : (p[0] & 0xF0) == 0xE0 ? 3 : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4 : 0;
	if (length == 0 || length > left)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((p[i] & 0xC0) != 0x80)
			return 0;
	}
	if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF0 && p[1] < 0x90) ||
	    (p[0] == 0xF4 && p[1] > 0x8F))
		return 0;
	return length;
}
