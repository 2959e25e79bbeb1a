/* Words that the vocabulary does not know. */
#ifndef DATA_UNKNOWN_H
#define DATA_UNKNOWN_H

#include <stdint.h>
#include "base/error.h"

/* `unknown` of `tokens` are [UNK]: said where it is odd; refused (ERR_STATE) where the vocabulary is of another script or casing
 * altogether, since guessing [UNK] would look like learning. `what` is for the message: "'x.tsv'", "the text". */
MUST_USE enum status unknown_check(const char *what, int64_t unknown, int64_t tokens);
/* The same for texts that a model answers, where it is only said. */
void unknown_warn(const char *what, int64_t unknown, int64_t tokens);

#endif
