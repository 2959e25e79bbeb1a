/* Running text to sentences. */
#ifndef TEXT_SENTENCES_H
#define TEXT_SENTENCES_H

#include <stddef.h>
#include "base/error.h"

/* Splits running text (UTF-8) into sentences: calls emit for each, trimmed, in order, never an empty one.
 * English abbreviations, initials, decimals, closing quotes; Chinese and Japanese marks; other scripts' full
 * stops. */
MUST_USE enum status sentences_split(const char *text, size_t size, enum status (*emit)(void *context, size_t begin, size_t end),
				     void *context);

#endif
