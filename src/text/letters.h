/* Counts the kinds of letters that a text is written in. */
#ifndef TEXT_LETTERS_H
#define TEXT_LETTERS_H

#include <stddef.h>
#include <stdint.h>

/* Zero-initialize. */
struct text_letters {
	int64_t ideographs;
	int64_t others; /* letters of all other scripts */
};
/* Adds the letters of a text. */
void text_letters_count(const char *text, size_t size, struct text_letters *sum);

#endif
