/* Models from the Hugging Face Hub as values of options. */
#ifndef CMD_HUB_MODELS_H
#define CMD_HUB_MODELS_H

#include "base/option.h"

/* Whether a value may have to be replaced. */
bool hub_models_are_named(const struct options *options);
/* Replaces hf:OWNER/NAME, where an option names a model, by the folder of that model, which is downloaded unless it is in the
 * cache. The folder's name is the commit, so that a run records, and resumes with, what it began with. For the list of `serve`,
 * also NAME=hf:OWNER/NAME. */
MUST_USE enum status hub_models_enter(struct options *options);

#endif
