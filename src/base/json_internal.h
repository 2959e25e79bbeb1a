/* What JSON needs and other files of src/base as well: numbers in any locale. */
#ifndef BASE_JSON_INTERNAL_H
#define BASE_JSON_INTERNAL_H

#include <locale.h>

/* The "C" locale: a decimal point is '.', whatever locale a program that links us has set. */
locale_t json_locale(void);

#endif
