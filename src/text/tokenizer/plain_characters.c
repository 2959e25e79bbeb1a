/* Finds runs of characters that a stage leaves as they are. */
#include "text/tokenizer/plain_characters.h"

#include "text/utf8.h"

size_t plain_run_end(const struct plain_characters *plain, const char *text, size_t size, size_t at)
{
	for (size_t length; at < size; at += length) {
		uint32_t code_point;
		length = utf8_decode(text + at, size - at, &code_point);
		if (!plain_has(plain, code_point))
			break;
	}
	return at;
}
