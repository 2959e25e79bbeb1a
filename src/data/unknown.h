/* Checks how much of a text the vocabulary does not cover. */
#ifndef DATA_UNKNOWN_H
#define DATA_UNKNOWN_H

#include <stdint.h>
#include "base/error.h"

/* `unknown` of `tokens` are [UNK]: warns if that is unusually many, and refuses (ERR_STATE) if the vocabulary must be for another
 * script or casing altogether, since predicting [UNK] would look like learning. `what` names the text in messages: "'x.tsv'",
 * "the text". */
MUST_USE enum status unknown_check(const char *what, int64_t unknown, int64_t tokens);
/* Only the warning, for text that is input to a trained model. */
void unknown_warn(const char *what, int64_t unknown, int64_t tokens);

#endif
