/* Locale-independent numbers, for JSON and other files of src/base. */
#ifndef BASE_JSON_INTERNAL_H
#define BASE_JSON_INTERNAL_H

#include <locale.h>

/* The "C" locale, in which the decimal point is '.', whatever locale the program that links us has set. */
locale_t json_locale(void);

#endif
