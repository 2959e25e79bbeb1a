/* Splits running text into sentences. */
#ifndef TEXT_SENTENCES_H
#define TEXT_SENTENCES_H

#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"

/* Splits running text (UTF-8) into sentences: calls `emit` for each, trimmed and in order, never with an empty one.
 * Handles English abbreviations, initials, decimals and closing quotes; Chinese and Japanese marks; the full stops of
 * other scripts. */
MUST_USE enum status sentences_split(const char *text, size_t size, enum status (*emit)(void *context, size_t begin, size_t end),
				     void *context);

/* Whether a space separates a sentence that begins like this from the one before it: not in Chinese or Japanese. */
bool sentence_follows_space(const char *text, size_t size);

#endif
