/* What a text is mostly written with. */
#ifndef TEXT_LETTERS_H
#define TEXT_LETTERS_H

#include <stddef.h>
#include <stdint.h>

/* Zero-initialise. */
struct text_letters {
	int64_t ideographs;
	int64_t others; /* letters of all other scripts */
};
/* Adds those of a text. */
void text_letters_count(const char *text, size_t size, struct text_letters *sum);

#endif
