/* What JSON needs and other files of src/base as well: numbers and text in any locale. */
#ifndef BASE_JSON_INTERNAL_H
#define BASE_JSON_INTERNAL_H

#include <locale.h>
#include <stddef.h>

/* The "C" locale: a decimal point is '.', whatever locale a program that links us has set. */
locale_t json_locale(void);

/* Bytes of the UTF-8 sequence at p, or 0 if it is not valid (overlong, surrogate, above U+10FFFF, cut off). */
size_t json_utf8_length(const unsigned char *p, size_t left);

#endif
