/* --end_with_pairs: a run in two phases of half the length each. In the first, the model learns masked words; in the second, also
 * to compare two texts (--next_sentence overlap), which it cannot learn before it knows words (docs/quality.md). */
#ifndef CMD_PRETRAIN_PRETRAIN_HALVES_H
#define CMD_PRETRAIN_PRETRAIN_HALVES_H

#include "base/option.h"

/* Once options and recipes have been read: a recipe that ends with pairs does so only where nobody has decided otherwise, and the
 * model can learn from them. ERR_USAGE if a user asks for it together with phases of their own. */
MUST_USE enum status halves_settle(struct options *options);

/* For a run without a list of phases: makes one of two phases of half the given length each. With `record`, that of the run to be
 * resumed, only if it was made in this way. */
MUST_USE enum status halves_split(struct options *options, const struct json *record);

#endif
