/* Characters that a stage of a tokenizer leaves as they are, whatever stands beside them, so that runs of them are passed on or
 * copied. */
#ifndef TEXT_TOKENIZER_PLAIN_CHARACTERS_H
#define TEXT_TOKENIZER_PLAIN_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAIN_LIMIT 0x10000 /* characters from here on are rare, and none of them is plain */

/* A bit for each code point; none is plain at first. */
struct plain_characters {
	uint64_t bits[PLAIN_LIMIT / 64];
};

static inline void plain_add(struct plain_characters *plain, uint32_t code_point)
{
	plain->bits[code_point / 64] |= (uint64_t)1 << code_point % 64;
}

static inline bool plain_has(const struct plain_characters *plain, uint32_t code_point)
{
	return code_point < PLAIN_LIMIT && plain->bits[code_point / 64] >> code_point % 64 & 1;
}

/* Where the run of plain characters that begins at byte `at` of valid UTF-8 ends; `at` itself if there is none. */
size_t plain_run_end(const struct plain_characters *plain, const char *text, size_t size, size_t at);

#endif
